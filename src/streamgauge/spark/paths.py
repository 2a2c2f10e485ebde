"""Property paths over validity intervals (https://www.w3.org/TR/sparql11-query/#defn_PropertyPathExpr)."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any

from pyspark.sql import functions as fn

from streamgauge.model import algebra as al
from streamgauge.model.terms import Term
from streamgauge.spark.closure import closure
from streamgauge.spark.facts import Facts
from streamgauge.spark.presence import distinct
from streamgauge.spark.reads import ANY
from streamgauge.spark.relation import Relation, always, block, column, join, union
from streamgauge.spark.sweep import swept

NODE = ".node"
_FROM, _TO, _VIA = ".from", ".to", ".via"
_PAIR = (_FROM, _TO)
_LISTED = ("lo", "hi", *map(column, _PAIR))


def path_solutions(facts: Facts, pattern: al.TriplePattern, near: Relation | None) -> Relation:
    """The solutions of a triple pattern whose predicate is a path.

    ``near`` (over NODE) are nodes that need not be in the graph and have a path of length zero: what EXISTS puts there.
    """
    assert not isinstance(pattern.predicate, al.Var)
    subject, item = pattern.subject, pattern.object
    ends = _Ends(subject if isinstance(subject, str) else None, item if isinstance(item, str) else None)
    found = _Paths(facts, near).pairs(pattern.predicate, ends)
    names: dict[str, str] = {}
    for end, node in zip(_PAIR, (subject, item), strict=True):
        if isinstance(node, str):
            found = found.where(fn.col(column(end)) == node)
        elif node.name in names.values():
            found = found.where(fn.col(column(_FROM)) == fn.col(column(_TO)))
        else:
            names[end] = node.name
    return found.project(tuple(names)).rename(names)


@dataclass(frozen=True)
class _Ends:
    """The constants at a path's ends, ``None`` where it is open."""

    first: Term | None = None
    last: Term | None = None


@dataclass(frozen=True)
class _Paths:
    """Pairs of nodes (as a relation) that a path connects; where an end is a constant, other pairs may be left out."""

    facts: Facts
    near: Relation | None

    def pairs(self, path: al.Path, ends: _Ends) -> Relation:
        match path:
            case str():
                return self.facts.match(al.TriplePattern(al.Var(_FROM), path, al.Var(_TO)), frozenset())
            case al.Inverse(path=inner):
                return _turned(self.pairs(inner, _Ends(ends.last, ends.first)))
            case al.Sequence(steps=steps):
                return self._sequence(steps, ends)
            case al.Alternative(choices=choices):
                return reduce(union, [self.pairs(choice, ends) for choice in choices])
            case al.NegatedSet():
                return self._others(path)
            case al.Repeat(path=inner, modifier="?"):
                return distinct(union(self.pairs(inner, _Ends()), self._zero(ends)))
            case al.Repeat(path=inner, modifier="+"):
                return _closed(self.pairs(inner, _Ends()), ends)
            case al.Repeat(path=inner):
                return distinct(union(_closed(self.pairs(inner, _Ends()), ends), self._zero(ends)))

    def _sequence(self, steps: tuple[al.Path, ...], ends: _Ends) -> Relation:
        last = len(steps) - 1
        known = [
            self.pairs(step, _Ends(ends.first if index == 0 else None, ends.last if index == last else None))
            for index, step in enumerate(steps)
        ]
        return reduce(self._then, known)

    def _then(self, left: Relation, right: Relation) -> Relation:
        one, two = left.rename({_FROM: _FROM, _TO: _VIA}), right.rename({_FROM: _VIA, _TO: _TO})
        return join(one, two, self.facts.reports).project(_PAIR)

    def _others(self, path: al.NegatedSet) -> Relation:
        """One pair for each triple whose predicate is not in the set, forward, backward or both."""
        every = self.facts.match(ANY, frozenset())
        forward = every.rename({"s": _FROM, "p": _VIA, "o": _TO})
        backward = every.rename({"o": _FROM, "p": _VIA, "s": _TO})
        ways = [(forward, path.forward)] if path.forward or not path.backward else []
        ways += [(backward, path.backward)] if path.backward else []
        found = [way.where(~fn.col(column(_VIA)).isin(*names)).project(_PAIR) for way, names in ways]
        return reduce(union, found)

    def _zero(self, ends: _Ends) -> Relation:
        """Every node with itself: a constant end alone, or the nodes of the graph and those near it."""
        constant = ends.first or ends.last
        if constant is not None:
            return always(self.facts.spark, self.facts.reports, _PAIR, [(constant, constant)])
        every = self.facts.match(ANY, frozenset())
        nodes = [every.project((name,)).rename({name: NODE}) for name in ("s", "o")]
        known = distinct(reduce(union, [*nodes, self.near] if self.near else nodes)).rename({NODE: _FROM})
        frame = known.frame.withColumn(column(_TO), fn.col(column(_FROM)))
        return replace(known, frame=frame, variables=_PAIR, certain=frozenset(_PAIR))


def _turned(relation: Relation) -> Relation:
    return relation.rename({_FROM: _TO, _TO: _FROM}).project(_PAIR)


def _closed(relation: Relation, ends: _Ends) -> Relation:
    """The pairs connected by one or more of the relation's, block by block of reports."""
    backward = ends.first is None and ends.last is not None
    source = ends.last if backward else ends.first
    reach = partial(_reach, sources=None if source is None else (source,))
    pairs = (_turned(relation) if backward else relation).project(_PAIR)
    parts = pairs.frame.select(block("lo", relation.width).cast("string").alias("block"), *_LISTED)
    found = swept(parts, ["block"], reach, {name: "int" if name in ("lo", "hi") else "string" for name in _LISTED})
    closed = Relation(found.select(*_LISTED), _PAIR, frozenset(_PAIR), relation.width)
    return _turned(closed) if backward else closed


def _reach(rows: Iterable[tuple[Any, ...]], sources: tuple[Term, ...] | None) -> Iterator[tuple[Any, ...]]:
    edges = ((start, end, low, high) for low, high, start, end in rows)
    return ((low, high, start, end) for start, end, low, high in closure(edges, sources))
