"""The static data beside a query, read from a file."""

from pathlib import Path

from streamgauge.formats.streams import read_triples
from streamgauge.model.mistake import MistakeError
from streamgauge.model.query import ContinuousQuery, static_missing


class BackgroundError(MistakeError, ValueError):
    """A query names a static graph and nobody says which file has its triples."""


def beside(query: ContinuousQuery, static: Path | None) -> ContinuousQuery:
    """The query with the triples of an RDF file as static data; BackgroundError when it needs some and has none."""
    if static is not None:
        return query.with_static(tuple(read_triples(static)))
    if query.background:
        raise BackgroundError(static_missing(query))
    return query
