"""Dialects of continuous SPARQL, one file each: parse and print."""
