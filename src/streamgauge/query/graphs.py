"""Windows as named graphs: the patterns that read them, and GRAPH pushed down to the basic graph patterns.

Source: https://www.w3.org/TR/sparql11-query/#defn_evalGraph
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from streamgauge.model import algebra as al
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.terms import Term
from streamgauge.query.traversal import (
    children,
    every_pattern,
    exists_parts,
    exists_patterns,
    is_subquery,
    parts,
    patterns_replaced,
    reads_patterns,
    with_parts,
    with_pattern,
)


def reads(form: al.QueryForm) -> tuple[al.Node | None, ...]:
    """The graphs that a form's triple patterns read, in order.

    ``None`` is the default graph, a variable ``GRAPH ?g``.
    """
    return tuple(dict.fromkeys(_reads(form.pattern, None)))


def _reads(pattern: al.Pattern, graph: al.Node | None) -> list[al.Node | None]:
    match pattern:
        case al.BGP(patterns=patterns):
            return [graph] if patterns else []
        # The name itself counts, as a variable is bound by GRAPH even over an empty pattern.
        case al.Graph(name=name, pattern=inner):
            return [name, *_reads(inner, name)]
    return [name for below in (*children(pattern), *exists_patterns(pattern)) for name in _reads(below, graph)]


def renamed(form: al.QueryForm, names: Mapping[Term, Term]) -> al.QueryForm:
    """The form with graphs renamed; other names are unchanged."""

    def new(part: Any) -> Any:
        if isinstance(part, al.Graph) and isinstance(part.name, str):
            return replace(part, name=names.get(part.name, part.name))
        return part

    return with_parts(form, new)


def enclosed(form: al.QueryForm, name: Term) -> al.QueryForm:
    """The form with GRAPH ``name`` around the patterns of EXISTS in HAVING, ORDER BY and SELECT, outside of WHERE."""
    return with_pattern(form, _enclosed(form.pattern, name))


def _enclosed(pattern: al.Pattern, name: Term) -> al.Pattern:
    if not _is_outside_where(pattern):
        return pattern
    into = partial(exists_parts, on_pattern=partial(al.Graph, name))
    # Below the aggregation is the WHERE, which is left alone.
    if isinstance(pattern, al.Group):
        return parts(pattern, lambda inner: inner, into)
    return parts(pattern, partial(_enclosed, name=name), into)


def streamed(form: al.QueryForm, name: Term) -> al.QueryForm:
    """The form with GRAPH ``name`` around its WHERE, except for trailing FILTERs, which stay outside."""
    return with_pattern(enclosed(form, name), _streamed(enclosed(form, name).pattern, name))


def _streamed(pattern: al.Pattern, name: Term) -> al.Pattern:
    below = partial(_streamed, name=name)
    if _is_outside_where(pattern):
        if isinstance(pattern, al.Join):  # with VALUES after the WHERE, which are in no window
            return al.Join(below(pattern.left), pattern.right)
        return parts(pattern, below, lambda tree: tree)
    # An EXISTS reads the active graph, so its FILTER has to be inside GRAPH.
    if isinstance(pattern, al.Filter) and not reads_patterns(pattern.condition):
        return al.Filter(pattern.condition, below(pattern.pattern))
    return al.Graph(name, pattern)


def _is_outside_where(pattern: al.Pattern) -> bool:
    """Whether a SELECT writes this operator outside of its WHERE."""
    match pattern:
        case al.Extend(pattern=inner) | al.Filter(pattern=inner) | al.Join(left=inner, right=al.Values()):
            return isinstance(inner, al.Group | al.Extend | al.Filter | al.Join) and _is_outside_where(inner)
        case _:
            return is_subquery(pattern)


def unnamed(query: ContinuousQuery) -> bool:
    """Whether no window has a name; ValueError if only some have, or if GRAPH names no window."""
    names = {window.name for window in query.windows}
    if None in names and len(names) > 1:
        raise ValueError("only some windows have names: name all of them")
    graphs = {pattern.name for pattern in every_pattern(query.form.pattern) if isinstance(pattern, al.Graph)}
    for name in sorted(name for name in graphs if isinstance(name, str)):
        if name[1:-1] not in names:
            raise ValueError(f"GRAPH {name} is not a window of the query: leave GRAPH out for patterns on static data")
    variables = sorted(name.name for name in graphs if isinstance(name, al.Var))
    if names == {None} and variables:
        raise ValueError(f"GRAPH ?{variables[0]}: the query has no named window")
    for name in sorted(filter(None, names)):
        if not variables and f"<{name}>" not in graphs:
            raise ValueError(f"no pattern uses the window <{name}>: leave it out")
    return names == {None}


STAMPS: Final = "urn:streamgauge:stamps"


def spread(form: al.QueryForm, names: Sequence[Term]) -> al.QueryForm:
    """The form with every GRAPH pushed down to single basic graph patterns: ``Graph(<name>, BGP)``.

    ``names`` are the windows' names as terms. ``GRAPH ?g { P }`` becomes the union over them of P in that graph, joined
    with ?g (18.6): inside P, ?g is an ordinary variable, so ``BOUND(?g)`` is false there. GRAPH of any other name
    matches nothing, except graphs of stamps. Returns the same object if there is no GRAPH.
    """
    if not any(isinstance(pattern, al.Graph) for pattern in every_pattern(form.pattern)):
        return form
    return with_pattern(form, _push(form.pattern, None, tuple(dict.fromkeys(names))))


def _push(pattern: al.Pattern, graph: Term | None, names: tuple[Term, ...]) -> al.Pattern:
    """The pattern with this active graph pushed down; ``None`` is the default graph."""
    match pattern:
        case al.BGP(patterns=patterns):
            # An empty pattern has one solution in any graph.
            return pattern if graph is None or not patterns else al.Graph(graph, pattern)
        case al.Graph(name=al.Var() as variable, pattern=inner):
            return _over_all(variable, inner, names)
        case al.Graph(name=str() as name, pattern=inner):
            known = name in names or name.startswith(f"<{STAMPS}")
            return _push(inner, name, names) if known else _nothing(inner)
        case _:
            return patterns_replaced(pattern, partial(_push, graph=graph, names=names))


def _over_all(variable: al.Var, inner: al.Pattern, names: tuple[Term, ...]) -> al.Pattern:
    # VALUES binds ?g outside of P, so that P cannot see it.
    choices: list[al.Pattern] = [
        al.Join(_push(inner, name, names), al.Values((variable,), ((name,),))) for name in names
    ]
    return _union(choices) if choices else _nothing(al.Graph(variable, inner))


def _union(choices: Sequence[al.Pattern]) -> al.Pattern:
    """The union of patterns as a balanced tree, because later passes recurse over it."""
    if len(choices) == 1:
        return choices[0]
    # 500 windows nested from left to right would be 500 levels of recursion, half of CPython's limit; as a balanced
    # tree they are nine.
    half = (len(choices) + 1) // 2
    return al.Union(_union(choices[:half]), _union(choices[half:]))


def _nothing(pattern: al.Pattern) -> al.Values:
    """A pattern without solutions over the same named variables."""
    return al.Values(tuple(var for var in al.pattern_variables(pattern) if not var.name.startswith(("_:", "."))), ())
