"""The static data beside a query, read from a file."""

from pathlib import Path

from streamgauge.formats.streams import read_triples
from streamgauge.model.mistake import MistakeError
from streamgauge.model.query import ContinuousQuery


class BackgroundError(MistakeError, ValueError):
    """A query names a static graph and nobody says which file has its triples."""


def beside(query: ContinuousQuery, static: Path | None) -> ContinuousQuery:
    """The query with the triples of an RDF file as static data; BackgroundError when it needs some and has none."""
    if static is not None:
        return query.with_static(tuple(read_triples(static)))
    if query.background:
        named = " and ".join(f"<{name}>" for name in query.background)
        raise BackgroundError(f"the query reads {named}: name the file that has its triples (static)")
    return query
