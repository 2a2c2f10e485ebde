"""Live queries: SPARQL kept current over facts that say when they end (Taelman et al., ESWC 2016, 5)."""
