"""Whether static data are matched inside a window clause: a choice of the dialect, and a field of Semantics."""

from dataclasses import replace

from streamgauge.model.query import ContinuousQuery
from streamgauge.model.semantics import Semantics, StaticData


def with_matched_static(query: ContinuousQuery, semantics: Semantics) -> ContinuousQuery:
    """The query with the static data that its patterns match: none where all of them stand in a clause for the stream.

    A query without a window clause (C-SPARQL, SPARQLstream, CQELS's own form) has stream and static data in one graph;
    one with patterns outside of its windows matches static data there (docs/semantics.md, static data).
    """
    hidden = query.window_clause and semantics.static_data is StaticData.OUTSIDE
    return query.with_static(()) if hidden and query.static else query


def as_printed(query: ContinuousQuery, semantics: Semantics, dialect: str) -> Semantics:
    """The semantics for a text of the query in a dialect: RSP-QL's has a window clause where the query has none."""
    clothed = dialect == "rspql" and not query.window_clause and all(window.name is None for window in query.windows)
    return replace(semantics, static_data=StaticData.BESIDE) if clothed and query.static else semantics
