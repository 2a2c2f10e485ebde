"""Continuous SPARQL: dialects in, one algebra, any dialect out."""
