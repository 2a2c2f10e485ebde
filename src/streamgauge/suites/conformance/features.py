"""What a task asks for, so that an engine's outcomes can be told by it: strategies, borders, windows, SPARQL."""

from collections.abc import Iterator

from streamgauge.model import algebra as al
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.semantics import Semantics
from streamgauge.query.rebuild import every_expression, every_pattern, expressions
from streamgauge.query.stamps import uses_timestamp
from streamgauge.suites.conformance.asking import Asked

DIMENSIONS = ("semantics", "theme", "report", "tick", "R2S", "borders", "windows", "SPARQL")

_OPERATORS = {
    al.Filter: "FILTER",
    al.LeftJoin: "OPTIONAL",
    al.Union: "UNION",
    al.Minus: "MINUS",
    al.Extend: "BIND",
    al.Values: "VALUES",
    al.Graph: "GRAPH",
    al.Group: "GROUP BY and aggregates",
    al.Distinct: "DISTINCT",
}
_FORMS = {al.Select: "SELECT", al.Ask: "ASK", al.Construct: "CONSTRUCT"}


def features(asked: Asked) -> Iterator[tuple[str, str]]:
    """(dimension, value) of everything that the task asks for."""
    yield "semantics", asked.profile
    yield "theme", asked.case.theme
    yield from _chosen(asked.semantics, asked.case.query)
    yield from (("windows", kind) for kind in _windows(asked.case.query))
    yield from (("SPARQL", word) for word in _sparql(asked.case.query))


def _chosen(semantics: Semantics, query: ContinuousQuery) -> Iterator[tuple[str, str]]:
    yield "report", " and ".join(sorted(semantics.report))
    yield "tick", str(semantics.tick)
    yield "R2S", str(query.r2s or semantics.r2s)
    yield "borders", str(semantics.borders)


def _windows(query: ContinuousQuery) -> set[str]:
    found = {_kind(each.window.kind, each.window.size, each.window.slide) for each in query.windows}
    if len(query.windows) > 1:
        found.add("several")
    if any(each.name is not None for each in query.windows):
        found.add("named")
    return found


def _kind(kind: str, size: int, slide: int) -> str:
    if kind != "time":
        return kind
    return "tumbling" if size == slide else "sliding"


def _sparql(query: ContinuousQuery) -> set[str]:
    patterns = list(every_pattern(query.form.pattern))
    found = {_FORMS[type(query.form)]}
    found |= {word for kind, word in _OPERATORS.items() if any(isinstance(each, kind) for each in patterns)}
    trees = [part for each in patterns for tree in expressions(each) for part in every_expression(tree)]
    if any(isinstance(part, al.Exists) for part in trees):
        found.add("EXISTS")
    if uses_timestamp(query.form):
        found.add("timestamp()")
    if query.static:
        found.add("static data")
    return found
