"""Repeated property paths: the pairs of nodes that steps of a graph connect, kept while edges come and go.

Property paths with ``*``, ``+`` and ``?`` give the nodes that requested nodes reach (SPARQL 1.1, 18.4, ZeroLengthPath
and ALP): pairs are a set; a path of length zero joins every node of the graph, and every constant at an end of the
path, with itself.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from streamgauge.incremental.budget import EvaluationBudget
from streamgauge.incremental.operators import Bag, Operator, Stateful, add, collect
from streamgauge.model import algebra as al
from streamgauge.model.terms import Term

START, END, NODE = ".start", ".end", ".node"
_ONCE: Final = "?"

Edges = dict[Term, set[Term]]
_NOWHERE: Final = frozenset[Term]()


class GraphNodes:
    """The terms in two columns, each as often as it stands there."""

    variables: tuple[str, ...] = (NODE,)
    certain: frozenset[str] = frozenset(variables)

    def __init__(self, pairs: Operator) -> None:
        self._pairs = pairs

    def pull(self) -> Bag:
        """The change, one column after the other."""
        change = self._pairs.pull()
        return collect(((cell,), count) for row, count in change.items() for cell in row)


class Reachability(Stateful):
    """The pairs (start, end) for the starts that ``demand`` holds: along ``edges``, and in place for those of ``same``.

    All three inputs are sets. When edges change, the starts that could reach one are followed again from scratch, so
    cycles need no care. With the modifier ``?`` one step is made, otherwise any number.
    """

    variables: tuple[str, ...] = (START, END)
    certain: frozenset[str] = frozenset(variables)

    def __init__(
        self, edges: Operator, demand: Operator, same: Operator | None, modifier: str, effort: EvaluationBudget
    ) -> None:
        self._edges, self._demand, self._same, self._effort = edges, demand, same, effort
        self._once = modifier == _ONCE
        self.forget()

    def forget(self) -> None:
        """Begin again from nothing."""
        self._forward: Edges = {}
        self._backward: Edges = {}
        self._starts: set[Term] = set()
        self._own: set[Term] = set()
        self._ends: Edges = {}

    @property
    def held(self) -> int:
        """How many edges, starts and ends it remembers."""
        return sum(map(len, (*self._forward.values(), *self._ends.values(), self._starts, self._own)))

    def pull(self) -> Bag:
        """The pairs of the touched starts, new ones less old ones."""
        touched = self._follow_edges(self._edges.pull())
        touched |= _update(self._starts, self._demand.pull())
        if self._same is not None:
            touched |= _update(self._own, self._same.pull())
        change: Bag = {}
        for start in touched:
            self._refresh(change, start)
        return change

    def _follow_edges(self, change: Bag) -> set[Term]:
        """Take in changed edges; the starts that could reach one of them, before or after."""
        gone = []
        for row, count in change.items():
            source, target = _pair(row)
            if count > 0:
                self._forward.setdefault(source, set()).add(target)
                self._backward.setdefault(target, set()).add(source)
            else:
                gone.append((source, target))
        sources = {source for source, _ in map(_pair, change)}
        touched = sources if self._once else sources | _reached(sources, self._backward, self._effort)
        for source, target in gone:
            _take(self._forward, source, target)
            _take(self._backward, target, source)
        return touched & self._starts

    def _refresh(self, change: Bag, start: Term) -> None:
        old = self._ends.pop(start, set())
        new = self._follow(start) if start in self._starts else set()
        if new:
            self._ends[start] = new
        for end in old - new:
            add(change, (start, end), -1)
        for end in new - old:
            add(change, (start, end), 1)

    def _follow(self, start: Term) -> set[Term]:
        ends = set(self._forward.get(start, ())) if self._once else _reached((start,), self._forward, self._effort)
        if start in self._own:
            ends.add(start)
        return ends


def _pair(row: tuple[Term | None, ...]) -> tuple[Term, Term]:
    source, target = row
    assert source is not None
    assert target is not None
    return source, target


def _update(known: set[Term], change: Bag) -> set[Term]:
    """Bring a set of nodes up to date; the nodes that came or went."""
    touched = set()
    for (node,), count in change.items():
        assert node is not None
        (known.add if count > 0 else known.discard)(node)
        touched.add(node)
    return touched


def _take(edges: Edges, source: Term, target: Term) -> None:
    targets = edges[source]
    targets.discard(target)
    if not targets:
        del edges[source]


def _reached(starts: Iterable[Term], edges: Mapping[Term, set[Term]], effort: EvaluationBudget) -> set[Term]:
    """The nodes at the end of one step or more."""
    found: set[Term] = set()
    waiting = list(starts)
    while waiting:
        ends = edges.get(waiting.pop(), _NOWHERE)
        effort.spend(1 + len(ends))
        fresh = ends - found
        found |= fresh
        waiting += fresh
    return found


class PathSolutions:
    """Pairs put in the place of two nodes of a pattern: constants and a variable at both ends must agree."""

    def __init__(self, pairs: Operator, nodes: tuple[al.Node, al.Node]) -> None:
        self.variables = tuple(dict.fromkeys(node.name for node in nodes if isinstance(node, al.Var)))
        self.certain = frozenset(self.variables)
        self._pairs, self._nodes = pairs, nodes
        self._at = [nodes.index(al.Var(name)) for name in self.variables]

    def pull(self) -> Bag:
        """The change over the variables."""
        one, two = self._nodes
        found: Bag = {}
        for pair, count in self._pairs.pull().items():
            start, end = pair
            if (isinstance(one, str) and one != start) or (isinstance(two, str) and two != end):
                continue
            if one != two or start == end:
                add(found, tuple([pair[at] for at in self._at]), count)
        return found
