"""Property paths over validity intervals (https://www.w3.org/TR/sparql11-query/#defn_PropertyPathExpr).

The transitive closure says which node reaches which, in which reports; its functions are plain Python.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any

from pyspark.sql import functions as fn

from streamgauge.model import algebra as al
from streamgauge.model.terms import Term
from streamgauge.spark.exists import distinct
from streamgauge.spark.facts import ANY, GraphFactsTable
from streamgauge.spark.intervals import swept
from streamgauge.spark.relation import Relation, always, block, column, join, union
from streamgauge.sparql.paths import at_terms

Span = tuple[int, int]
"""The first and last report of an interval, inclusive."""

Edge = tuple[Term, Term, int, int]
"""From, to, first and last report."""

Steps = Mapping[Term, list[tuple[Term, int, int]]]


def closure(edges: Iterable[Edge], sources: Iterable[Term] | None = None) -> Iterator[Edge]:
    """The pairs connected by one edge or more, each with disjoint intervals; from ``sources`` only when given.

    An edge counts in the reports in which it and the path to it are valid; cycles end because every step adds
    something.
    """
    steps: dict[Term, list[tuple[Term, int, int]]] = {}
    for start, end, low, high in edges:
        steps.setdefault(start, []).append((end, low, high))
    for source in steps if sources is None else dict.fromkeys(sources):
        for node, spans in _reached(steps, source).items():
            for low, high in spans:
                yield source, node, low, high


def _reached(steps: Steps, source: Term) -> dict[Term, list[Span]]:
    """Semi-naive evaluation: each round follows only the pairs that the last one found."""
    reached: dict[Term, list[Span]] = {}
    new = list(steps.get(source, ()))
    while new:
        node, low, high = new.pop()
        known = reached.setdefault(node, [])
        # Worked example: b is reached in the reports 0 to 4, and a second way reaches it in 3 to 6. Only 5 to 6 is
        # new, and only that is followed on.
        for first, last in missing(known, low, high):
            insert(known, first, last)
            for end, begins, ends in steps.get(node, ()):
                if begins <= last and first <= ends:
                    new.append((end, max(begins, first), min(ends, last)))
    return reached


def missing(known: list[Span], low: int, high: int) -> list[Span]:
    """The parts of an interval that sorted disjoint intervals do not cover."""
    ranges = []
    for first, last in known:
        if last < low:
            continue
        if first > high:
            break
        if first > low:
            ranges.append((low, first - 1))
        low = max(low, last + 1)
    if low <= high:
        ranges.append((low, high))
    return ranges


def insert(known: list[Span], low: int, high: int) -> None:
    """Adds an interval to sorted disjoint ones, joining it with those that it overlaps or touches."""
    apart = [span for span in known if span[1] < low - 1 or span[0] > high + 1]
    touching = [span for span in known if not (span[1] < low - 1 or span[0] > high + 1)]
    low, high = min([low, *(first for first, _ in touching)]), max([high, *(last for _, last in touching)])
    known[:] = sorted([*apart, (low, high)])


NODE = ".node"
_FROM, _TO, _VIA = ".from", ".to", ".via"
_PAIR = (_FROM, _TO)
_LISTED = ("lo", "hi", *map(column, _PAIR))


@dataclass(frozen=True)
class OuterNodes:
    """The nodes (over NODE) that EXISTS substitutes for these variables; they need not be in the graph."""

    nodes: Relation
    names: frozenset[str]

    def at(self, node: al.Node) -> Relation | None:
        """The nodes that a path of length zero connects with themselves."""
        return self.nodes if isinstance(node, al.Var) and node.name in self.names else None


def path_solutions(facts: GraphFactsTable, pattern: al.TriplePattern, outer: OuterNodes | None) -> Relation:
    """The solutions of a triple pattern with a path; ``outer`` are the nodes that EXISTS substitutes at its ends."""
    assert not isinstance(pattern.predicate, al.Var)
    subject, item = pattern.subject, pattern.object
    constants = (subject if isinstance(subject, str) else None, item if isinstance(item, str) else None)
    near = (None, None) if outer is None else (outer.at(subject), outer.at(item))
    ends = _Ends(*constants, *near)
    solutions = _Paths(facts).pairs(pattern.predicate, ends)
    names: dict[str, str] = {}
    for end, node in zip(_PAIR, (subject, item), strict=True):
        if isinstance(node, str):
            solutions = solutions.where(fn.col(column(end)) == node)
        elif node.name in names.values():
            solutions = solutions.where(fn.col(column(_FROM)) == fn.col(column(_TO)))
        else:
            names[end] = node.name
    return solutions.project(tuple(names)).rename(names)


@dataclass(frozen=True)
class _Ends:
    """The constants at a path's ends, or the nodes that EXISTS substitutes; ``None`` for a variable."""

    first: Term | None = None
    last: Term | None = None
    near_first: Relation | None = None
    near_last: Relation | None = None

    def turned(self) -> "_Ends":
        return _Ends(self.last, self.first, self.near_last, self.near_first)

    def opening(self) -> "_Ends":
        """The ends of a first step."""
        return _Ends(first=self.first, near_first=self.near_first)

    def closing(self) -> "_Ends":
        """The ends of a last step."""
        return _Ends(last=self.last, near_last=self.near_last)


@dataclass(frozen=True)
class _Paths:
    """The pairs of nodes (as a relation) that a path connects; with a constant end, perhaps only pairs with it."""

    facts: GraphFactsTable

    def pairs(self, path: al.Path, ends: _Ends) -> Relation:
        match path:
            case str():
                return self.facts.match(al.TriplePattern(al.Var(_FROM), path, al.Var(_TO)), frozenset())
            case al.Inverse(path=inner):
                return _turned(self.pairs(inner, ends.turned()))
            case al.Sequence(steps=steps):
                return self._sequence(steps, ends)
            case al.Alternative(choices=choices):
                return reduce(union, [self.pairs(choice, ends) for choice in choices])
            case al.NegatedSet():
                return self._others(path)
            case al.Repeat(path=inner, modifier="?"):
                # Optional and repeated paths connect a pair once, however many ways there are (18.4).
                return distinct(union(self.pairs(inner, _Ends()), self._zero(ends)))
            case al.Repeat(path=inner, modifier="+"):
                closed = _closed(self.pairs(inner, _Ends()), ends)
                # As in (p?)+, whose steps of length zero connect terms outside of the graph with themselves.
                return distinct(union(closed, self._zero(ends))) if at_terms(inner) else closed
            case al.Repeat(path=inner):
                return distinct(union(_closed(self.pairs(inner, _Ends()), ends), self._zero(ends)))

    def _sequence(self, steps: tuple[al.Path, ...], ends: _Ends) -> Relation:
        last = len(steps) - 1
        # A constant end narrows the first or the last step; steps between have variables at both ends.
        inside = [_Ends()] * (last - 1)
        known = [self.pairs(*step) for step in zip(steps, (ends.opening(), *inside, ends.closing()), strict=True)]
        return reduce(self._then, known)

    def _then(self, left: Relation, right: Relation) -> Relation:
        one, two = left.rename({_FROM: _FROM, _TO: _VIA}), right.rename({_FROM: _VIA, _TO: _TO})
        return join(one, two, self.facts.reports).project(_PAIR)

    def _others(self, path: al.NegatedSet) -> Relation:
        """One pair for each triple whose predicate is not in the set, forward, backward or both."""
        every = self.facts.match(ANY, frozenset())
        forward = every.rename({"s": _FROM, "p": _VIA, "o": _TO})
        backward = every.rename({"o": _FROM, "p": _VIA, "s": _TO})
        # A set of inverse predicates alone, as in !(^p), has no forward steps.
        ways = [(forward, path.forward)] if path.forward or not path.backward else []
        ways += [(backward, path.backward)] if path.backward else []
        others = [way.where(~fn.col(column(_VIA)).isin(*names)).project(_PAIR) for way, names in ways]
        return reduce(union, others)

    def _zero(self, ends: _Ends) -> Relation:
        """Every node with itself: a constant end alone, or the nodes of the graph and those near it."""
        constant = ends.first or ends.last
        if constant is not None:
            return always(self.facts.spark, self.facts.reports, _PAIR, [(constant, constant)])
        every = self.facts.match(ANY, frozenset())
        nodes = [every.project((name,)).rename({name: NODE}) for name in ("s", "o")]
        near = [near_end for near_end in (ends.near_first, ends.near_last) if near_end is not None]
        known = distinct(reduce(union, [*nodes, *near])).rename({NODE: _FROM})
        frame = known.frame.withColumn(column(_TO), fn.col(column(_FROM)))
        return replace(known, frame=frame, variables=_PAIR, certain=frozenset(_PAIR))


def _turned(relation: Relation) -> Relation:
    return relation.rename({_FROM: _TO, _TO: _FROM}).project(_PAIR)


def _closed(relation: Relation, ends: _Ends) -> Relation:
    """The pairs connected by one or more of the relation's, block by block of reports."""
    # From the constant end on: over turned edges, only nodes that are connected with it are visited.
    backward = ends.first is None and ends.last is not None
    source = ends.last if backward else ends.first
    reach = partial(_reach, sources=None if source is None else (source,))
    pairs = (_turned(relation) if backward else relation).project(_PAIR)
    parts = pairs.frame.select(block("lo", relation.width).cast("string").alias("block"), *_LISTED)
    closure = swept(parts, ["block"], reach, {name: "int" if name in ("lo", "hi") else "string" for name in _LISTED})
    closed = Relation(closure.select(*_LISTED), _PAIR, frozenset(_PAIR), relation.width)
    return _turned(closed) if backward else closed


def _reach(rows: Iterable[tuple[Any, ...]], sources: tuple[Term, ...] | None) -> Iterator[tuple[Any, ...]]:
    edges = ((start, end, low, high) for low, high, start, end in rows)
    return ((low, high, start, end) for start, end, low, high in closure(edges, sources))
