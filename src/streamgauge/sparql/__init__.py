"""SPARQL's algebra and expressions over terms that keep their lexical form, computed exactly (docs/sparql.md)."""
