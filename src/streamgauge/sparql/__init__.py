"""SPARQL 1.1 expressions (section 17) over terms that keep their lexical form, computed exactly."""
