"""The nouns on disk and through a pipe: RDF formats, canonical terms, run folders."""
