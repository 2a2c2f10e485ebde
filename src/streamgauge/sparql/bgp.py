"""Datasets in memory, basic graph patterns and property paths over them (SPARQL 1.1, 18.3 and 18.4).

Terms are equal when their strings are equal (RDF 1.1 Concepts, 3.3: literal term equality), so ``"01"^^xsd:integer``
and ``"1"^^xsd:integer`` are two terms.

Triple patterns are joined one after the other through the graph's indexes. The order is chosen when a block is planned:
next comes the pattern that shares a variable with those before it and has the fewest triples to look at. Paths come
last, each after the patterns that bind one of its ends. ``{ ?obs :procedure ?s ; :result ?r . ?r :floatValue ?v }``
over 2,000 observations: the first pattern reads 2,000 triples through the index by predicate, each other one triple per
solution through the index by subject and predicate.

An end of a path is a term of the query (a constant, or a variable for which EXISTS puts a term) or a variable. A path
of length zero joins a *term* with itself, also where the graph does not have it; between two variables it joins nodes
of the graph only. A sequence is a join through a variable that nothing else sees, so its middle is never such a term:
over ``:a :p :b``, ``:x :q* ?y`` gives ``:x`` and ``:x :q*/:q* ?y`` gives nothing.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Final, TypeAlias

from streamgauge.model.algebra import (
    BGP,
    Alternative,
    Inverse,
    NegatedSet,
    Node,
    Path,
    Repeat,
    TriplePattern,
    Var,
    triple_variables,
)
from streamgauge.model.algebra import Sequence as PathSequence
from streamgauge.model.terms import Term, Triple

Positions: TypeAlias = tuple[int, ...]
"""Positions of a triple, ascending: 0 subject, 1 predicate, 2 object."""

Index: TypeAlias = Mapping[Hashable, list[Triple]]
"""Triples by the terms at some positions: one term for one position, else a tuple of them."""

_NONE: Final[list[Triple]] = []


class IndexedGraph:
    """A graph whose indexes are built when they are first used; triples keep the order in which they came.

    With ``occurrences`` a triple that comes several times is there several times (a content that is a bag).
    """

    __slots__ = ("_indexes", "_nodes", "triples")

    def __init__(self, triples: Iterable[Triple], occurrences: bool = False) -> None:
        self.triples: list[Triple] = list(triples) if occurrences else list(dict.fromkeys(triples))
        self._indexes: dict[Positions, dict[Hashable, list[Triple]]] = {}
        self._nodes: frozenset[Term] | None = None

    @property
    def nodes(self) -> frozenset[Term]:
        """Every subject and object: the nodes of the graph (SPARQL 1.1, 18.4)."""
        if self._nodes is None:
            self._nodes = frozenset(node for subject, _, item in self.triples for node in (subject, item))
        return self._nodes

    def index(self, positions: Positions) -> Index:
        """The triples by the terms at these positions; one entry, ``()``, for no position."""
        found = self._indexes.get(positions)
        if found is None:
            found = self._indexes[positions] = self._built(positions)
        return found

    def at(self, positions: Positions, key: Hashable) -> list[Triple]:
        """The triples with these terms at these positions, keyed as ``index`` does."""
        return self.index(positions).get(key, _NONE)

    def _built(self, positions: Positions) -> dict[Hashable, list[Triple]]:
        if not positions:
            return {(): self.triples}
        index: dict[Hashable, list[Triple]] = {}
        if len(positions) == 1:
            (position,) = positions
            for triple in self.triples:
                index.setdefault(triple[position], []).append(triple)
        elif len(positions) == 2:
            one, two = positions
            for triple in self.triples:
                index.setdefault((triple[one], triple[two]), []).append(triple)
        else:
            for triple in self.triples:
                index.setdefault(triple, []).append(triple)
        return index


@dataclass(frozen=True, slots=True)
class Dataset:
    """A default graph and named graphs, by the IRI of their name as a term (SPARQL 1.1, 13)."""

    default: IndexedGraph
    named: Mapping[Term, IndexedGraph] = field(default_factory=dict)


Ends: TypeAlias = Mapping[Term, int]
"""How often a path reaches each end."""

Solutions: TypeAlias = Iterable[dict[str, Term]]
Walk: TypeAlias = Callable[[Solutions], Iterator[dict[str, Term]]]


def path_step(triple: TriplePattern, graph: IndexedGraph, known: frozenset[str]) -> Walk:
    """The step of a block that extends solutions, which bind the variables ``known``, by a path pattern."""
    path = triple.predicate
    assert not isinstance(path, Var)
    walks = PathWalks(graph)
    subject, item = triple.subject, triple.object
    if isinstance(subject, str):
        far = item if isinstance(item, str) else None
        return _from_term(walks.ends(path, subject, True, True, far), item, known)
    if isinstance(item, str):
        return _from_term(walks.ends(path, item, False, True, None), subject, known)
    if subject.name in known:
        return _from_variable(lambda start: walks.ends(path, start, True, False, None), subject, item, known)
    if item.name in known:
        return _from_variable(lambda start: walks.ends(path, start, False, False, None), item, subject, known)
    return _everywhere(walks, path, subject.name, item.name)


def _from_term(ends: Ends, other: Node, known: frozenset[str]) -> Walk:
    """Solutions extended by the ends that a path has from a term."""

    def closed(solutions: Solutions) -> Iterator[dict[str, Term]]:
        for solution in solutions:
            wanted = solution[other.name] if isinstance(other, Var) else other
            for _ in range(ends.get(wanted, 0)):
                yield solution

    def opened(solutions: Solutions) -> Iterator[dict[str, Term]]:
        assert isinstance(other, Var)
        for solution in solutions:
            for end, count in ends.items():
                for _ in range(count):
                    yield {**solution, other.name: end}

    return closed if isinstance(other, str) or other.name in known else opened


def _from_variable(ends: Callable[[Term], Ends], start: Var, other: Var, known: frozenset[str]) -> Walk:
    """Solutions extended by the ends that a path has from the term that a variable is bound to."""
    walked: dict[Term, Ends] = {}

    def step(solutions: Solutions) -> Iterator[dict[str, Term]]:
        for solution in solutions:
            node = solution[start.name]
            found = walked.get(node)
            if found is None:
                found = walked[node] = ends(node)
            if other.name in known:
                for _ in range(found.get(solution[other.name], 0)):
                    yield solution
            else:
                for end, count in found.items():
                    for _ in range(count):
                        yield {**solution, other.name: end}

    return step


def _everywhere(walks: "PathWalks", path: Path, subject: str, item: str) -> Walk:
    """Solutions extended by every pair of ends between nodes of the graph."""
    pairs: list[tuple[Term, Term, int]] = []
    filled = False

    def fill() -> Iterator[tuple[Term, Term, int]]:
        for start in sorted(walks.graph.nodes):
            for end, count in walks.ends(path, start, True, False, None).items():
                if subject != item or start == end:
                    yield start, end, count

    def step(solutions: Solutions) -> Iterator[dict[str, Term]]:
        nonlocal filled
        for solution in solutions:
            if not filled:
                pairs.extend(fill())
                filled = True
            for start, end, count in pairs:
                for _ in range(count):
                    yield {**solution, subject: start, item: end}

    return step


class PathWalks:
    """Walks along property paths in one graph."""

    def __init__(self, graph: IndexedGraph) -> None:
        self.graph = graph

    def ends(self, path: Path, start: Term, forward: bool, near: bool, far: Term | None) -> Ends:
        """The other ends of a path from ``start``, its subject's end when ``forward`` holds, else its object's.

        ``near`` says that ``start`` is a term of the query; ``far`` is the other end when that is one.
        """
        match path:
            case str():
                return self._links(path, start, forward)
            case Inverse(path=inner):
                return self.ends(inner, start, not forward, near, far)
            case PathSequence(steps=steps):
                return self._sequence(steps if forward else steps[::-1], start, forward, near, far)
            case Alternative(choices=choices):
                together: Counter[Term] = Counter()
                for choice in choices:
                    together.update(self.ends(choice, start, forward, near, far))
                return together
            case NegatedSet():
                return self._others(path, start, forward)
            case Repeat():
                return self._repeated(path, start, forward, near, far)

    def _links(self, predicate: Term, start: Term, forward: bool) -> Ends:
        if forward:
            return Counter(triple[2] for triple in self.graph.at((0, 1), (start, predicate)))
        return Counter(triple[0] for triple in self.graph.at((1, 2), (predicate, start)))

    def _sequence(self, steps: tuple[Path, ...], start: Term, forward: bool, near: bool, far: Term | None) -> Ends:
        reached: Counter[Term] = Counter({start: 1})
        for place, step in enumerate(steps):
            first, last = place == 0, place == len(steps) - 1
            following: Counter[Term] = Counter()
            for node, times in reached.items():
                for end, count in self.ends(step, node, forward, near and first, far if last else None).items():
                    following[end] += times * count
            reached = following
        return reached

    def _others(self, negated: NegatedSet, start: Term, forward: bool) -> Ends:
        """One end for each triple with another predicate, forward, backward, or both."""
        found: Counter[Term] = Counter()
        if negated.forward or not negated.backward:
            found.update(self._except(negated.forward, start, forward))
        if negated.backward:
            found.update(self._except(negated.backward, start, not forward))
        return found

    def _except(self, names: tuple[Term, ...], start: Term, forward: bool) -> Iterator[Term]:
        place, other = (0, 2) if forward else (2, 0)
        return (triple[other] for triple in self.graph.at((place,), start) if triple[1] not in names)

    def _repeated(self, path: Repeat, start: Term, forward: bool, near: bool, far: Term | None) -> Ends:
        """ZeroOrOnePath, ZeroOrMorePath, OneOrMorePath: each end once."""
        there = near or start == far or start in self.graph.nodes
        if path.modifier == "?":
            once = dict.fromkeys(self.ends(path.path, start, forward, near, far), 1)
            return {**once, start: 1} if there else once
        if not there:
            return {}
        seen: dict[Term, int] = {start: 1} if path.modifier == "*" else {}
        waiting = [start]
        while waiting:
            for end in self.ends(path.path, waiting.pop(), forward, True, None):
                if end not in seen:
                    seen[end] = 1
                    waiting.append(end)
        return seen


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
