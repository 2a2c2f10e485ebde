"""Updates: each element is matched alone, and the answer is what the newest one updates (``content = updates``).

A content is a sequence of elements, not one graph. Without aggregates the answer is the solutions over the newest
element. With them it is the groups in which the newest element has a solution, each aggregated over the solutions of
all elements of the window:

    0: a v 3.   1: b v 4.   2: a v 5.      SELECT ?s (SUM(?v) AS ?n) { ?s v ?v } GROUP BY ?s
    0: a 3      1: b 4      2: a 8         b is not updated at 2

The query is rewritten to SPARQL over a dataset with one graph per element.
"""

from dataclasses import replace
from functools import reduce
from itertools import count
from typing import TYPE_CHECKING, Final

from streamgauge.model import algebra as al
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.semantics import R2S, Semantics
from streamgauge.model.terms import Term
from streamgauge.query.stamps import reads_time
from streamgauge.query.traversal import every_expression, every_pattern, expressions, parts, variable_names

if TYPE_CHECKING:
    from streamgauge.semantics.arrivals import Contents

NEWEST: Final = "<urn:streamgauge:newest>"
"""The graph of the newest element."""

_ELEMENT: Final = "<urn:streamgauge:element:{}>"
_ABOVE: Final = al.Project | al.Extend | al.Filter
_BESIDE: Final[dict[type[al.Pattern], str]] = {
    al.Distinct: "DISTINCT",
    al.Reduced: "REDUCED",
    al.OrderBy: "ORDER BY",
    al.Slice: "LIMIT or OFFSET",
    al.Project: "a subselect",
    al.Group: "a subselect",
}


def updates(contents: "Contents", instant: int) -> bool:
    """Whether the content includes an element at the instant (ms); between two windows it does not."""
    (inside,) = contents
    return bool(inside) and inside[-1].time == instant


def element_graph(number: int, newest: int) -> Term:
    """The graph of the element at a position of the content; ``newest`` is the last position."""
    return NEWEST if number == newest else _ELEMENT.format(number)


def apart(query: al.Pattern) -> tuple[tuple[al.Pattern, ...], al.Group | None, al.Pattern]:
    """The operators above the aggregation (outermost first), the aggregation, and the pattern of each element."""
    above: list[al.Pattern] = []
    pattern = inner = _plain(query)
    while isinstance(inner, _ABOVE):
        above.append(inner)
        inner = inner.pattern
    if isinstance(inner, al.Group):
        return tuple(above), inner, inner.pattern
    # Without an aggregation only the projection and what is above it belong to the SELECT; the rest is its pattern.
    projects = [place for place, operator in enumerate(above) if isinstance(operator, al.Project)]
    outer = above[: projects[-1] + 1] if projects else []
    return tuple(outer), None, outer[-1].pattern if outer else pattern  # type: ignore[union-attr]


def no_update(query: ContinuousQuery, semantics: Semantics) -> str | None:
    """Why updates of the query are undefined; ``None`` if they are defined."""
    if len(query.windows) != 1 or query.windows[0].window.kind == "count":
        return "updates of several windows, or of a count-based one: take one time-based or landmark window"
    if (query.r2s or semantics.r2s) is not R2S.RSTREAM:
        return f"{query.r2s or semantics.r2s} of updates: an update is sent as it is, leave the operator out"
    if query.static:
        return "updates beside static data: elements are matched by themselves, put what they need into them"
    if not isinstance(query.form, al.Select) or reads_time(query.form):
        return "updates of ASK, CONSTRUCT, timestamp() or NOW(): use SELECT"
    if not _in_window(query.form.pattern, query.windows[0].name):
        return "updates of a query with GRAPH: put the window's name around its whole pattern, or give it none"
    above, group, matched = apart(query.form.pattern)
    beside = [part for part in every_pattern(matched) if type(part) in _BESIDE]
    trees = [tree for part in (*above, *every_pattern(matched)) for tree in expressions(part)]
    exists = any(isinstance(part, al.Exists) for tree in trees for part in every_expression(tree))
    if beside or exists or sum(isinstance(operator, al.Project) for operator in above) > 1:
        operator = _BESIDE[type(beside[0])] if beside else "EXISTS" if exists else "a subselect"
        return f"updates of a query with {operator}: one SELECT over a pattern, with FILTER, BIND, GROUP BY and HAVING"
    return None if group is None else _no_groups(group, matched)


def _in_window(pattern: al.Pattern, name: str | None) -> bool:
    """Whether all triple patterns read the window: in its graph if it is named."""
    graphs = [part for part in every_pattern(pattern) if isinstance(part, al.Graph)]
    if name is None:
        return not graphs
    inside = sum(isinstance(part, al.BGP) for graph in graphs for part in every_pattern(graph.pattern))
    # Empty basic graph patterns read nothing, and stand outside of GRAPH in every group.
    every = sum(isinstance(part, al.BGP) and bool(part.patterns) for part in every_pattern(pattern))
    return all(graph.name == f"<{name}>" for graph in graphs) and inside >= every


def _plain(pattern: al.Pattern) -> al.Pattern:
    """The pattern without GRAPH around the window's patterns."""
    if isinstance(pattern, al.Graph):
        return _plain(pattern.pattern)
    return parts(pattern, _plain, lambda tree: tree)


def _no_groups(group: al.Group, matched: al.Pattern) -> str | None:
    """Why an element's solutions do not determine its groups; ``None`` if they do."""
    triples = (pattern for part in every_pattern(matched) if isinstance(part, al.BGP) for pattern in part.patterns)
    bound = {var for triple in triples for var in al.triple_variables(triple)}
    # An unbound key joins with every group (SPARQL 1.1, 18.5), so an element would update groups that it has no part
    # in.
    if any(var != key or var not in bound for var, key in group.keys) or any(
        isinstance(part, al.LeftJoin | al.Union) for part in every_pattern(matched)
    ):
        return "updates of groups by an expression, or by what OPTIONAL or UNION may leave unbound: group by a variable"
    return None


def restated(form: al.QueryForm) -> al.QueryForm:
    """The query over the graphs of elements (``element_graph``).

    With aggregates: the groups over GRAPH ?element { matched }, joined with the distinct keys in the newest graph.
    """
    above, group, matched = apart(form.pattern)
    newest = al.Graph(NEWEST, matched)
    if group is None:
        return replace(form, pattern=_under(above, newest))
    taken = variable_names(form)
    name = next(al.Var(candidate) for number in count() if (candidate := f"element{number}") not in taken)
    # Projected: the element's graph must not become a column that the groups or the join see.
    solutions = al.Project(al.Graph(name, matched), al.pattern_variables(matched))
    touched = al.Distinct(al.Project(newest, tuple(var for var, _ in group.keys)))
    return replace(form, pattern=_under(above, al.Join(replace(group, pattern=solutions), touched)))


def _under(above: tuple[al.Pattern, ...], pattern: al.Pattern) -> al.Pattern:
    return reduce(lambda inner, outer: replace(outer, pattern=inner), reversed(above), pattern)
