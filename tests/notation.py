"""The tiny notation of stream cases, as the package reads it."""

from streamgauge.formats.notation import STREAM, rows, stream, term, triples

__all__ = ["STREAM", "rows", "stream", "term", "triples"]
