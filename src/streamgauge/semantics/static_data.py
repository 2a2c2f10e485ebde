"""Whether patterns inside a window clause match static data, which differs between dialects (``static_data``)."""

from dataclasses import replace

from streamgauge.model.query import ContinuousQuery
from streamgauge.model.semantics import Semantics, StaticData


def with_matched_static(query: ContinuousQuery, semantics: Semantics) -> ContinuousQuery:
    """The query with the static data that its patterns can match: none if one window clause contains all patterns.

    A query without a window clause (C-SPARQL, SPARQLstream, CQELS) has stream and static data in one graph; patterns
    outside of windows match static data there (docs/semantics.md, Several windows).
    """
    hidden = query.window_clause and semantics.static_data is StaticData.OUTSIDE
    return query.with_static(()) if hidden and query.static else query


def as_printed(query: ContinuousQuery, semantics: Semantics, dialect: str) -> Semantics:
    """The semantics for the query printed in a dialect: RSP-QL adds a window clause, which would hide static data."""
    # With named windows the query has window clauses already, which the printer keeps.
    clothed = dialect == "rspql" and not query.window_clause and all(window.name is None for window in query.windows)
    return replace(semantics, static_data=StaticData.BESIDE) if clothed and query.static else semantics
