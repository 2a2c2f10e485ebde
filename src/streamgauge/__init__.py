"""Streamgauge: answer, judge and measure continuous queries over RDF."""

__version__ = "0.1.0"
