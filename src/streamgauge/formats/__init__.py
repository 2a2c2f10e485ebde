"""Streams, runs and verdicts as files and in pipes: RDF formats, canonical terms, run folders."""
