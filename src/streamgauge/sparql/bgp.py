"""Basic graph patterns (SPARQL 1.1, 18.3): triple patterns joined one after the other through the graph's indexes.

The order is chosen when a block is planned: next comes the pattern that shares a variable with those before it and has
the fewest triples to look at. Property paths come last, each after the patterns that bind one of its ends.

``{ ?obs :procedure ?s ; :result ?r . ?r :floatValue ?v }`` over 2,000 observations: the first pattern reads 2,000
triples through the index by predicate, each other one triple per solution through the index by subject and predicate.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TypeAlias

from streamgauge.model.algebra import BGP, Node, TriplePattern, Var, triple_variables
from streamgauge.model.terms import Term, Triple
from streamgauge.sparql.dataset import IndexedGraph, Positions
from streamgauge.sparql.paths import path_step

Solution: TypeAlias = dict[str, Term]
"""A solution mapping: terms by the names of the variables that are bound."""

Step: TypeAlias = Callable[[Iterable[Solution]], Iterator[Solution]]
"""Solutions extended by one pattern of a block."""


class Block:
    """A basic graph pattern over one graph, planned for solutions that bind certain variables."""

    def __init__(self, block: BGP, graph: IndexedGraph, fixed: Mapping[str, Term], bound: Iterable[str] = ()) -> None:
        """``fixed`` are the terms that EXISTS puts for variables (18.6); ``bound`` are the variables known before."""
        patterns = [_substituted(triple, fixed) for triple in block.patterns]
        known = set(bound)
        self._steps: list[Step] = []
        for triple in _ordered(patterns, graph, known):
            self._steps.append(_step(triple, graph, frozenset(known)))
            known.update(var.name for var in triple_variables(triple))
        self._blank = any(name.startswith("_:") for name in known)

    def solutions(self, start: Solution) -> Iterator[Solution]:
        """The solutions that extend one, with its multiplicity; blank nodes of the query are no part of them."""
        found: Iterator[Solution] = iter((start,))
        for step in self._steps:
            found = step(found)
        return map(_without_blank_nodes, found) if self._blank else found


def _without_blank_nodes(solution: Solution) -> Solution:
    return {name: term for name, term in solution.items() if not name.startswith("_:")}


def _substituted(triple: TriplePattern, fixed: Mapping[str, Term]) -> TriplePattern:
    if not fixed:
        return triple

    def put(node: Node) -> Node:
        return fixed.get(node.name, node) if isinstance(node, Var) else node

    middle = triple.predicate
    return TriplePattern(put(triple.subject), put(middle) if isinstance(middle, Var) else middle, put(triple.object))


def _is_plain(triple: TriplePattern) -> bool:
    return isinstance(triple.predicate, Var | str)


def _ordered(patterns: Sequence[TriplePattern], graph: IndexedGraph, bound: set[str]) -> Iterator[TriplePattern]:
    """The patterns in the order of evaluation."""
    known = set(bound)
    left = [triple for triple in patterns if _is_plain(triple)]
    while left:
        best = min(left, key=lambda triple: _cost(triple, graph, known)) if len(left) > 1 else left[0]
        left.remove(best)
        yield best
        known.update(var.name for var in triple_variables(best))
    left = [triple for triple in patterns if not _is_plain(triple)]
    while left:
        best = min(left, key=lambda triple: _open_ends(triple, known))
        left.remove(best)
        yield best
        known.update(var.name for var in triple_variables(best))


def _open_ends(triple: TriplePattern, known: set[str]) -> int:
    return sum(isinstance(node, Var) and node.name not in known for node in (triple.subject, triple.object))


def _cost(triple: TriplePattern, graph: IndexedGraph, known: set[str]) -> tuple[bool, float]:
    """Whether the pattern shares nothing with what is known, and how many triples it looks at for one solution."""
    nodes = _nodes(triple)
    constant = tuple(place for place, node in enumerate(nodes) if isinstance(node, str))
    looked = len(graph.at(constant, _key([node for node in nodes if isinstance(node, str)])))
    places = tuple(place for place, node in enumerate(nodes) if isinstance(node, str) or node.name in known)
    if places == constant:
        return bool(known), looked
    return False, min(looked, len(graph.triples) / (len(graph.index(places)) or 1))


def _nodes(triple: TriplePattern) -> tuple[Node, Node, Node]:
    middle = triple.predicate
    assert isinstance(middle, Var | str)
    return triple.subject, middle, triple.object


def _key(terms: Sequence[Term]) -> Hashable:
    return terms[0] if len(terms) == 1 else tuple(terms)


def _step(triple: TriplePattern, graph: IndexedGraph, known: frozenset[str]) -> Step:
    if not _is_plain(triple):
        return path_step(triple, graph, known)
    nodes = _nodes(triple)
    places = tuple(place for place, node in enumerate(nodes) if isinstance(node, str) or node.name in known)
    fresh = [(node.name, place) for place, node in enumerate(nodes) if isinstance(node, Var) and place not in places]
    return _extending(_candidates(nodes, places, graph), fresh)


def _candidates(
    nodes: Sequence[Node], places: Positions, graph: IndexedGraph
) -> Callable[[Solution], Sequence[Triple]]:
    """The triples that agree with a solution at the known positions."""
    parts = [nodes[place] for place in places]
    names = [part.name for part in parts if isinstance(part, Var)]
    if not names:
        found = graph.at(places, _key([part for part in parts if isinstance(part, str)]))
        return lambda _solution: found
    get = graph.index(places).get
    if len(parts) == 1:
        (name,) = names
        return lambda solution: get(solution[name], ())
    if len(parts) == 2 and len(names) == 1:
        (constant,) = (part for part in parts if isinstance(part, str))
        (name,) = names
        if isinstance(parts[0], str):
            return lambda solution: get((constant, solution[name]), ())
        return lambda solution: get((solution[name], constant), ())

    def several(solution: Solution) -> Sequence[Triple]:
        return get(tuple(solution[part.name] if isinstance(part, Var) else part for part in parts), ())

    return several


def _extending(candidates: Callable[[Solution], Sequence[Triple]], fresh: Sequence[tuple[str, int]]) -> Step:
    """The step that binds the variables at the open positions; one that is there twice needs the same term twice."""
    first: dict[str, int] = {}
    same = [(first[name], place) for name, place in fresh if first.setdefault(name, place) != place]
    names = list(first.items())

    def repeated(solutions: Iterable[Solution]) -> Iterator[Solution]:
        for solution in solutions:
            for triple in candidates(solution):
                if all(triple[one] == triple[two] for one, two in same):
                    yield {**solution, **{name: triple[place] for name, place in names}}

    def none(solutions: Iterable[Solution]) -> Iterator[Solution]:
        return chain.from_iterable([solution] * len(candidates(solution)) for solution in solutions)

    def one(solutions: Iterable[Solution]) -> Iterator[Solution]:
        ((name, place),) = names
        for solution in solutions:
            for triple in candidates(solution):
                yield {**solution, name: triple[place]}

    def two(solutions: Iterable[Solution]) -> Iterator[Solution]:
        (name, place), (other, where) = names
        for solution in solutions:
            for triple in candidates(solution):
                yield {**solution, name: triple[place], other: triple[where]}

    return repeated if same or len(names) > 2 else (none, one, two)[len(names)]
