"""Property paths (SPARQL 1.1, 18.4): the ends that a path reaches from a node, with their multiplicity.

An end of a path is a term of the query (a constant, or a variable for which EXISTS puts a term) or a variable. A path
of length zero joins a *term* with itself, also where the graph does not have it; between two variables it joins nodes
of the graph only. A sequence is a join through a variable that nothing else sees, so its middle is never such a term:
over ``:a :p :b``, ``:x :q* ?y`` gives ``:x`` and ``:x :q*/:q* ?y`` gives nothing.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeAlias

from streamgauge.model.algebra import Alternative, Inverse, NegatedSet, Node, Path, Repeat, TriplePattern, Var
from streamgauge.model.algebra import Sequence as PathSequence
from streamgauge.model.terms import Term
from streamgauge.sparql.dataset import IndexedGraph

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
