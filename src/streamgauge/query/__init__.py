"""Continuous SPARQL: dialects in, one algebra, any dialect out."""

from streamgauge.query.errors import QueryError
from streamgauge.query.parser import parse_sparql

__all__ = ["QueryError", "parse_sparql"]
