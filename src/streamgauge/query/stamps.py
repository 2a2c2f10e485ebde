"""``timestamp()`` as plain SPARQL: *stamps* are facts, next to a window's content, about each triple's last arrival.

One mechanism for all evaluators: ``stamped`` replaces a call by a variable that a left join with the stamps binds.
Source: C-SPARQL's timestamp function (Barbieri et al. 2010; CSRBench, Listing 3).

Worked example: in ``{ ?s :p ?o FILTER(timestamp(?s, :p, ?o) > 5) }`` the pattern becomes ``{ ?s :p ?o OPTIONAL { GRAPH
<urn:streamgauge:stamps> { ?fact :subject ?s ; :predicate :p ; :object ?o ; :time ?t } } FILTER(?t > 5) }``.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import blake2b
from itertools import chain
from typing import Any, Final, cast
from urllib.parse import quote

from streamgauge.model import algebra as al
from streamgauge.model.terms import XSD, Term, Triple
from streamgauge.query.graphs import STAMPS
from streamgauge.query.instants import uses_now, with_instant
from streamgauge.query.traversal import (
    below,
    children,
    every_expression,
    every_pattern,
    expressions,
    is_subquery,
    parts,
    patterns_replaced,
    variable_names,
    with_names,
    with_pattern,
    with_value,
)

TIMESTAMP: Final = "TIMESTAMP"
FUNCTION: Final = "<http://larkc.eu/csparql/sparql/jena/ext#timestamp>"
_SUBJECT, _PREDICATE, _OBJECT, _TIME = (
    f"<urn:streamgauge:{name}>" for name in ("subject", "predicate", "object", "time")
)


def stamps_graph(window: str | None = None) -> Term:
    """The name of the graph with the stamps of a window (its IRI without brackets) or of the default graph."""
    return f"<{STAMPS}>" if window is None else f"<{STAMPS}?window={quote(window, safe='')}>"


def stamp(triple: Triple) -> tuple[Triple, Triple, Triple]:
    """The facts of a triple's stamp that do not change: its subject, predicate and object."""
    name = _name(triple)
    subject, predicate, item = triple
    return (name, _SUBJECT, subject), (name, _PREDICATE, predicate), (name, _OBJECT, item)


def time_fact(triple: Triple, time: int) -> Triple:
    """The fact that a triple's latest arrival within the content was at ``time`` (ms of application time)."""
    return retimed((_name(triple), _TIME, ""), time)


def retimed(fact: Triple, time: int) -> Triple:
    """The fact with another time (ms)."""
    return fact[0], _TIME, time_term(time)


def time_term(time: int) -> Term:
    """A time (ms) as an xsd:integer term."""
    return f'"{time}"^^<{XSD}integer>'


def _name(triple: Triple) -> Term:
    # A digest, so that the same triple has the same stamp in each report and can be retimed without a table.
    digest = blake2b("\n".join(triple).encode(), digest_size=16).hexdigest()
    return f"<urn:streamgauge:stamp:{digest}>"


def uses_timestamp(form: al.QueryForm) -> bool:
    """Whether the query calls timestamp() anywhere."""
    return any(map(calls_timestamp, every_pattern(form.pattern)))


def reads_time(form: al.QueryForm) -> bool:
    """Whether answers depend on more than the triples of a content: on their times, or on the instant."""
    return uses_timestamp(form) or uses_now(form)


def calls_timestamp(pattern: al.Pattern) -> bool:
    """Whether the operator's own expressions call timestamp(), not those of the patterns below it."""
    return any(map(_calls, expressions(pattern)))


def stamped_predicates(form: al.QueryForm, graph: Term) -> frozenset[Term] | None:
    """The predicates of the triples whose stamps a query reads from a graph of stamps, ``None`` for all.

    Raises ValueError as ``stamped``.
    """
    predicates: set[Term] = set()
    for pattern in every_pattern(stamped(form).pattern):
        # A variable ranges over all graphs, also over those of stamps.
        if isinstance(pattern, al.Graph) and isinstance(pattern.name, al.Var):
            return None
        if isinstance(pattern, al.Graph) and pattern.name == graph:
            for block in every_pattern(pattern.pattern):
                if isinstance(block, al.BGP) and (predicate := _stamped_predicate(block)) is not None:
                    predicates.add(predicate)
                elif isinstance(block, al.BGP):
                    return None
    return frozenset(predicates)


def stamp_nodes(block: al.BGP) -> tuple[al.Node, ...] | None:
    """(Name, subject, predicate, object, time) of a block that matches one whole stamp, else ``None``."""
    names = tuple(dict.fromkeys(pattern.subject for pattern in block.patterns))
    whole = [pattern.predicate for pattern in block.patterns] == [_SUBJECT, _PREDICATE, _OBJECT, _TIME]
    return (*names, *(pattern.object for pattern in block.patterns)) if whole and len(names) == 1 else None


def _stamped_predicate(block: al.BGP) -> Term | None:
    """The constant predicate of the stamp that a block matches, else ``None``."""
    stamps = {pattern.subject for pattern in block.patterns}
    named = [pattern.object for pattern in block.patterns if pattern.predicate == _PREDICATE]
    if len(stamps) != 1 or not all(isinstance(pattern.predicate, str) for pattern in block.patterns):
        return None
    return next((name for name in named if isinstance(name, str)), None)


def stamped(form: al.QueryForm) -> al.QueryForm:
    """The form with timestamp() and NOW() replaced by variables; the same object if it calls neither.

    Raises ValueError for a call that names no triple pattern of its group, or several. Apply it before ``spread``.
    """
    if not uses_timestamp(form):
        return with_instant(form)
    if any(
        isinstance(pattern, al.Graph) and isinstance(pattern.name, al.Var) for pattern in every_pattern(form.pattern)
    ):
        raise ValueError("timestamp() with GRAPH ?variable is not supported: name the window")
    result = with_pattern(form, _StampRewriter(variable_names(form)).pattern(form.pattern))
    for pattern in every_pattern(result.pattern):
        for call in (call for tree in expressions(pattern) for call in _calls(tree)):
            raise ValueError(f"{_shown(call)} matches no triple pattern of its group: {_HOW}")
    return with_instant(result)


_HOW: Final = "write timestamp(?s, ?p, ?o) with the three parts of one of its triple patterns"


@dataclass(frozen=True, slots=True)
class _Site:
    """A BGP below an expression: its depth, its active graph (``window``), and the path of fields to it (``way``)."""

    depth: int
    way: tuple[str, ...]
    block: al.BGP
    window: Term | None


@dataclass(slots=True)
class _StampRewriter:
    """Rewrites one form, naming new variables that are not ``taken``."""

    taken: frozenset[str]
    count: int = field(default=0)

    def pattern(self, pattern: al.Pattern, window: Term | None = None) -> al.Pattern:
        """The pattern under the active graph ``window``, with all calls replaced whose triple pattern is below them."""
        inside = pattern.name if isinstance(pattern, al.Graph) and isinstance(pattern.name, str) else window
        result = patterns_replaced(pattern, partial(self.pattern, window=inside))
        for call in dict.fromkeys(call for tree in expressions(result) for call in _open_calls(tree)):
            result = self._resolved(call, result, window)
        return result

    def _resolved(self, call: al.Call, pattern: al.Pattern, window: Term | None) -> al.Pattern:
        # The condition of an OPTIONAL prefers the triple pattern beside it.
        for scope in ("right", "left") if isinstance(pattern, al.LeftJoin) else ("pattern",):
            site = _nearest(call, getattr(pattern, scope), window)
            if site:
                below, variable = self._put(call, getattr(pattern, scope), site)
                holder = _replaced(pattern, (scope,), below)
                return parts(holder, lambda inner: inner, partial(with_value, call=call, value=variable))
        return pattern

    def _put(self, call: al.Call, pattern: al.Pattern, sites: list[_Site]) -> tuple[al.Pattern, al.Var]:
        """The pattern with the sites' blocks left-joined with stamps, and the variable of the time."""
        # A second call for the same triple pattern reads the same variable.
        variable = next(filter(None, (_known(call, pattern, site) for site in sites)), None)
        if variable is not None:
            return pattern, variable
        # Printers replace the dot by an underscore, so both spellings have to be free.
        while any(f"_stamp{self.count}" in name or f".stamp{self.count}" in name for name in self.taken):
            self.count += 1
        number, self.count = self.count, self.count + 1
        for site in sites:
            pattern = _replaced(pattern, site.way, _joined(call, site, number))
        return pattern, al.Var(f".stamp{number}")


def _calls(tree: al.Expression) -> tuple[al.Call, ...]:
    return tuple(part for part in every_expression(tree) if isinstance(part, al.Call) and part.operator == TIMESTAMP)


def _open_calls(tree: al.Expression) -> Iterator[al.Call]:
    """The calls in an expression and in its EXISTS, as far as these name triple patterns outside."""
    yield from _calls(tree)
    for part in every_expression(tree):
        if isinstance(part, al.Exists):
            for inner in chain.from_iterable(map(expressions, _visible(part.pattern))):
                yield from _open_calls(inner)


def _visible(pattern: al.Pattern) -> Iterator[al.Pattern]:
    """The pattern and those below it, without subqueries, whose variables are local."""
    if not is_subquery(pattern):
        yield pattern
        for child in children(pattern):
            yield from _visible(child)


def _sites(pattern: al.Pattern, depth: int, way: tuple[str, ...], window: Term | None) -> Iterator[_Site]:
    """The BGPs whose variables are visible in the pattern, without subqueries.

    OPTIONAL and UNION count as deeper, so that a call prefers a triple pattern that every solution matches.
    """
    match pattern:
        case al.BGP():
            yield _Site(depth, way, pattern, window)
        case al.Graph(name=str() as name, pattern=inner) if not name.startswith(f"<{STAMPS}"):
            yield from _sites(inner, depth + 1, (*way, "pattern"), name)
        # The right side of MINUS binds nothing that an expression could see.
        case al.Minus(left=left):
            yield from _sites(left, depth, (*way, "left"), window)
        case al.Join() | al.LeftJoin() | al.Union() | al.Filter() | al.Extend():
            for name in below(pattern):
                deeper = isinstance(pattern, al.Union) or (isinstance(pattern, al.LeftJoin) and name == "right")
                yield from _sites(getattr(pattern, name), depth + deeper, (*way, name), window)


def _nearest(call: al.Call, pattern: al.Pattern, window: Term | None) -> list[_Site]:
    """The nearest sites with a triple pattern that the call names; several only if they are branches of a UNION."""
    sites = [site for site in _sites(pattern, 0, (), window) if _named(call, site.block)]
    nearest = [site for site in sites if site.depth == min(other.depth for other in sites)]
    for one, two in ((one, two) for one in nearest for two in nearest if one is not two):
        if not isinstance(_fork(pattern, one.way, two.way), al.Union):
            raise ValueError(f"{_shown(call)} matches triple patterns in two places: move it next to one of them")
    for site in nearest:
        if len(_named(call, site.block)) > 1:
            raise ValueError(f"{_shown(call)} matches several triple patterns: {_HOW}")
    return nearest


def _fork(pattern: al.Pattern, one: tuple[str, ...], two: tuple[str, ...]) -> al.Pattern:
    """The lowest pattern that is common to two paths."""
    return pattern if one[0] != two[0] else _fork(getattr(pattern, one[0]), one[1:], two[1:])


def _named(call: al.Call, block: al.BGP) -> tuple[al.TriplePattern, ...]:
    """The triple patterns of the block that the call names."""
    plain = [triple for triple in block.patterns if isinstance(triple.predicate, al.Var | str)]
    match call.arguments:
        case (subject, predicate, item):
            return tuple(
                dict.fromkeys(t for t in plain if (t.subject, t.predicate, t.object) == (subject, predicate, item))
            )
        case (al.Var() as variable,):
            objects = tuple(dict.fromkeys(triple for triple in plain if triple.object == variable))
            return objects or tuple(dict.fromkeys(triple for triple in plain if triple.subject == variable))
        case _:
            raise ValueError(
                f"{_shown(call)} has wrong arguments: write a variable, or the three parts of a triple pattern"
            )


def _shown(call: al.Call) -> str:
    return (
        f"timestamp({', '.join(f'?{part.name}' if isinstance(part, al.Var) else str(part) for part in call.arguments)})"
    )


def _joined(call: al.Call, site: _Site, number: int) -> al.LeftJoin:
    """The site's block left-joined with the stamp of the named triple, whose blank nodes become variables."""
    (named,) = _named(call, site.block)
    # The stamp is in another graph, so another basic graph pattern, where a label would be another blank node.
    blanks = (var for var in al.triple_variables(named) if var.name.startswith("_:"))
    names = {var: al.Var(f".node{var.name[2:]}") for var in blanks}
    block = al.BGP(tuple(with_names(triple, names) for triple in site.block.patterns))
    graph = stamps_graph(None if site.window is None else site.window[1:-1])
    stamp_block = _stamp_block(with_names(named, names), f".fact{number}", al.Var(f".stamp{number}"))
    return al.LeftJoin(block, al.Graph(graph, stamp_block))


def _stamp_block(triple: al.TriplePattern, fact: str, time: al.Var) -> al.BGP:
    stamp_of = al.Var(fact)
    middle = triple.predicate
    assert isinstance(middle, al.Var | str)
    positions = ((_SUBJECT, triple.subject), (_PREDICATE, middle), (_OBJECT, triple.object), (_TIME, time))
    return al.BGP(tuple(al.TriplePattern(stamp_of, name, node) for name, node in positions))


def _known(call: al.Call, pattern: al.Pattern, site: _Site) -> al.Var | None:
    """The variable of an existing join of the site's triple with its stamp, else ``None``."""
    (named,) = _named(call, site.block)
    holder = pattern
    for step in site.way:
        if isinstance(holder, al.LeftJoin) and step == "left" and isinstance(holder.right, al.Graph):
            inner = holder.right.pattern
            if isinstance(inner, al.BGP) and inner.patterns and isinstance(inner.patterns[-1].object, al.Var):
                first, last = inner.patterns[0].subject, inner.patterns[-1].object
                if isinstance(first, al.Var) and inner == _stamp_block(named, first.name, last):
                    return last
        holder = getattr(holder, step)
    return None


def _replaced(pattern: al.Pattern, way: tuple[str, ...], new: al.Pattern) -> al.Pattern:
    if not way:
        return new
    changed: al.Pattern = replace(cast(Any, pattern), **{way[0]: _replaced(getattr(pattern, way[0]), way[1:], new)})
    return changed
