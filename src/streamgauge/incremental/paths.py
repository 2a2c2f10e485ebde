"""Repeated property paths: the pairs of nodes that they connect, maintained under changes of edges.

Property paths with ``*``, ``+`` and ``?`` return the nodes reachable from given nodes (SPARQL 1.1, 18.4,
ZeroLengthPath and ALP): pairs are a set; a path of length zero connects every node of the graph, and every constant
at an end of the path, with itself.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from typing import Any, Final, cast

from streamgauge.incremental.budget import EvaluationBudget
from streamgauge.incremental.operators import Bag, Operator, Stateful, add, collect
from streamgauge.incremental.reach import Edge, ReachedNodes, SteppedNodes
from streamgauge.model import algebra as al
from streamgauge.model.terms import Row, Term

START, END, NODE = ".start", ".end", ".node"
_ONCE: Final = "?"


class GraphNodes:
    """The terms of two columns, with multiplicity."""

    variables: tuple[str, ...] = (NODE,)
    certain: frozenset[str] = frozenset(variables)

    def __init__(self, pairs: Operator) -> None:
        self._pairs = pairs

    def pull(self) -> Bag:
        """The change of both columns."""
        change = self._pairs.pull()
        return collect(((cell,), count) for row, count in change.items() for cell in row)


class Reachability(Stateful):
    """The pairs (start, end) of the starts in ``demand``: along ``edges``, and of length zero for nodes in ``same``.

    All three inputs are sets. The modifier ``?`` allows one step, the others any number.
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
        """Return to the state before the first edge."""
        self._nodes = SteppedNodes(self._effort) if self._once else ReachedNodes(self._effort)
        self._own: set[Term] = set()
        self._placed: set[Term] = set()

    @property
    def held(self) -> int:
        """The number of edges, starts and ends in the state."""
        return self._nodes.held + len(self._own)

    def tables(self) -> Iterator[Any]:
        """The tables of edges and ends; read-only."""
        return self._nodes.tables()

    def pull(self) -> Bag:
        """The change of the pairs."""
        came, gone = _signed(self._edges.pull())
        demanded, dropped = _signed(self._demand.pull())
        touched: list[Term] = []
        if self._same is not None:
            own, strange = _signed(self._same.pull())
            self._own.update(_nodes(own))
            self._own.difference_update(_nodes(strange))
            # Whether a node is connected with itself by length zero depends on all three: it is a start, it is in the
            # graph, and no cycle of edges leads back to it.
            touched = _nodes((*demanded, *dropped, *own, *strange))
        change: Bag = {}
        kept = self._effort.weight - 1  # each pair was looked at once
        moves = self._nodes.change(_edges(came), _edges(gone), _nodes(demanded), _nodes(dropped))
        for start, lost, gained in moves:
            for ends, count in ((lost, -1), (gained, 1)):
                if ends:
                    self._effort.spend(kept * len(ends))
                    change.update(dict.fromkeys(zip(repeat(start), ends, strict=False), count))
            touched.append(start)
        self._place(touched, change)
        return change

    def _place(self, touched: Iterable[Term], change: Bag) -> None:
        """Add the pairs of length zero of nodes that do not reach themselves over edges."""
        for node in touched if self._own or self._placed else ():
            # Pairs are a set: a node on a cycle already has the pair with itself from its edges.
            placed = node in self._own and node in self._nodes.starts and node not in self._nodes.ends(node)
            if placed is not (node in self._placed):
                (self._placed.add if placed else self._placed.discard)(node)
                add(change, (node, node), 1 if placed else -1)


def _signed(change: Bag) -> tuple[list[Row], list[Row]]:
    """The added and the removed rows."""
    came, gone = list[Row](), list[Row]()
    for row, count in change.items():
        (came if count > 0 else gone).append(row)
    return came, gone


def _edges(rows: Sequence[Row]) -> Sequence[Edge]:
    """Rows of two bound terms."""
    return cast(Sequence[Edge], rows)


def _nodes(rows: Sequence[Row]) -> list[Term]:
    """The terms of rows of one bound term."""
    return [node for (node,) in rows if node is not None] if rows else []


class PathSolutions:
    """Pairs as solutions of a pattern: constants, and a variable at both ends, must agree."""

    def __init__(self, pairs: Operator, nodes: tuple[al.Node, al.Node]) -> None:
        self.variables = tuple(dict.fromkeys(node.name for node in nodes if isinstance(node, al.Var)))
        self.certain = frozenset(self.variables)
        self._pairs, self._nodes = pairs, nodes
        self._at = [nodes.index(al.Var(name)) for name in self.variables]

    def pull(self) -> Bag:
        """The change of the solutions."""
        one, two = self._nodes
        pairs = self._pairs.pull()
        # Two different variables: the pairs are the solutions.
        if self._at == [0, 1]:
            return pairs
        bag: Bag = {}
        for pair, count in pairs.items():
            start, end = pair
            if (isinstance(one, str) and one != start) or (isinstance(two, str) and two != end):
                continue
            # ``?x :p* ?x`` asks for nodes that reach themselves.
            if one != two or start == end:
                add(bag, tuple([pair[at] for at in self._at]), count)
        return bag
