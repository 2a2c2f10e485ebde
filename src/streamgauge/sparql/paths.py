"""Walks along property paths (SPARQL 1.2, 18.4).

An end of a path is a term of the query (a constant, or a variable that EXISTS substitutes) or a variable. A path of
length zero connects a *term* with itself, even if the graph does not contain it; between two variables it connects
nodes of the graph only. A sequence is a join on a fresh variable, so its middle is never such a term: over ``:a :p
:b``, ``:x :q* ?y`` gives ``:x`` and ``:x :q*/:q* ?y`` gives nothing.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from streamgauge.model.algebra import Alternative, Inverse, NegatedSet, Path, Repeat
from streamgauge.model.algebra import Sequence as PathSequence
from streamgauge.model.terms import Term
from streamgauge.sparql.bgp import IndexedGraph

Ends: TypeAlias = Mapping[Term, int]
"""The ends of a path with their multiplicity."""


def at_terms(path: Path) -> bool:
    """Whether the path connects a term outside of the graph with itself; a sequence never does (see above)."""
    match path:
        case Repeat(path=inner, modifier=modifier):
            return modifier in "*?" or at_terms(inner)
        case Alternative(choices=choices):
            return any(map(at_terms, choices))
        case Inverse(path=inner):
            return at_terms(inner)
        case _:
            return False


class PathWalks:
    """Walks along property paths in one graph."""

    def __init__(self, graph: IndexedGraph) -> None:
        self.graph = graph

    def ends(self, path: Path, start: Term, forward: bool, near: bool, far: Term | None) -> Ends:
        """The other ends of a path from ``start``, which is its subject if ``forward``, else its object.

        ``near``: ``start`` is a term of the query. ``far`` is the other end if that is a term of the query.
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
                    # A sequence is a join, in which multiplicities multiply.
                    following[end] += times * count
            reached = following
        return reached

    def _others(self, negated: NegatedSet, start: Term, forward: bool) -> Ends:
        """The ends of triples with another predicate, forward, backward, or both."""
        targets: Counter[Term] = Counter()
        if negated.forward or not negated.backward:
            targets.update(self._except(negated.forward, start, forward))
        if negated.backward:
            targets.update(self._except(negated.backward, start, not forward))
        return targets

    def _except(self, names: tuple[Term, ...], start: Term, forward: bool) -> Iterator[Term]:
        place, other = (0, 2) if forward else (2, 0)
        return (triple[other] for triple in self.graph.at((place,), start) if triple[1] not in names)

    def _repeated(self, path: Repeat, start: Term, forward: bool, near: bool, far: Term | None) -> Ends:
        """ZeroOrOnePath, ZeroOrMorePath, OneOrMorePath: each end has multiplicity 1 (18.4)."""
        in_graph = near or start == far or start in self.graph.nodes
        if path.modifier == "?":
            once = dict.fromkeys(self.ends(path.path, start, forward, near, far), 1)
            return {**once, start: 1} if in_graph else once
        if not in_graph:
            return {}
        seen: dict[Term, int] = {start: 1} if path.modifier == "*" else {}
        waiting = [start]
        while waiting:
            for end in self.ends(path.path, waiting.pop(), forward, True, None):
                if end not in seen:
                    seen[end] = 1
                    waiting.append(end)
        return seen
