"""The query streamer: queries kept current by polling facts that say when they end (Taelman et al., ESWC 2016, 5)."""
