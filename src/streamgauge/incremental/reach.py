"""Reachability over a changing set of edges, maintained for a changing set of start nodes.

A change costs as much as the pairs (start, end) that it makes or breaks. Starts are visited backwards from the sources
of the changed edges, and the search goes on only behind starts that gained or lost an end: a new path from a start
begins with a new edge, or with an edge to a node that gained the end. Each start is visited once per change.

- *Inserted edges.* From the heads of new edges, nodes are followed that the start did not reach before.
- *Deleted edges.* An edge (u, v) breaks nothing if another path leads from u to v. For the others, the nodes behind
  the heads are visited by strongly connected component of the remaining graph, in topological order: a component is
  lost to a start unless an edge leads into it from the start, or from an end outside of it that is not lost.

A worked example: a -> b -> c and a -> d -> c, and b -> c is deleted. First b: one edge is left into c, from d, which b
does not reach, so b loses c. Then a, behind b: c has an edge from d, which a still reaches, so a loses nothing.

If much changes at once, the affected starts are recomputed component by component from the components that they lead
to, so that the starts of one component share one set.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from heapq import heappop, heappush
from typing import Any, Final, TypeAlias

from streamgauge.incremental.budget import EvaluationBudget
from streamgauge.incremental.crossovers import FEW_ROWS, RESTART_SHARE
from streamgauge.model.terms import Term

Edge: TypeAlias = tuple[Term, Term]
Edges: TypeAlias = dict[Term, set[Term]]
Reached: TypeAlias = set[Term] | frozenset[Term]
_NOWHERE: Final = frozenset[Term]()
# Greater than any number of a node, so that nodes of finished components never pop a border (see ``components``).
_COMPLETE: Final = 1 << 62


class EdgeIndex:
    """Edges, indexed by both ends."""

    def __init__(self) -> None:
        self.forward: Edges = {}
        self.backward: Edges = {}
        self.size = 0

    def add(self, edges: Iterable[Edge]) -> None:
        """Add edges that are not in the graph."""
        for source, target in edges:
            self.forward.setdefault(source, set()).add(target)
            self.backward.setdefault(target, set()).add(source)
            self.size += 1

    def remove(self, edges: Iterable[Edge]) -> None:
        """Remove edges that are in the graph."""
        for source, target in edges:
            _take(self.forward, source, target)
            _take(self.backward, target, source)
            self.size -= 1

    def connects(self, source: Term, target: Term, effort: EvaluationBudget) -> bool:
        """Whether a path leads from one node to another: bidirectional search, extending the smaller frontier."""
        sides = (({source}, self.forward), ({target}, self.backward))
        waiting: list[AbstractSet[Term]] = [{source}, {target}]
        while waiting[0] and waiting[1]:
            # The smaller frontier: a hub on one side is not expanded while the other side has few nodes.
            at = int(len(waiting[1]) < len(waiting[0]))
            (seen, edges), (other, _) = sides[at], sides[1 - at]
            fresh = set[Term]().union(*[edges.get(node, _NOWHERE) for node in waiting[at]])
            effort.spend(len(waiting[at]) + len(fresh))
            if not fresh.isdisjoint(other):
                return True
            fresh -= seen
            seen |= fresh
            waiting[at] = fresh
        return False


class ReachedNodes:
    """The ends that start nodes reach over one or more edges."""

    def __init__(self, effort: EvaluationBudget) -> None:
        self.edges, self._effort = EdgeIndex(), effort
        self.starts: set[Term] = set()
        self._ends: dict[Term, Reached] = {}
        self._moves: dict[Term, tuple[AbstractSet[Term], AbstractSet[Term]]] = {}

    @property
    def held(self) -> int:
        """The number of edges, starts and pairs in the state."""
        return self.edges.size + len(self.starts) + sum(map(len, self._ends.values()))

    def tables(self) -> Iterator[dict[Term, Any]]:
        """The tables of edges and ends; read-only."""
        yield from (self.edges.forward, self.edges.backward, self._ends)

    def ends(self, start: Term) -> Reached:
        """The ends of a start; read-only."""
        return self._ends.get(start, _NOWHERE)

    def change(
        self, came: Collection[Edge], gone: Collection[Edge], demanded: Collection[Term], dropped: Collection[Term]
    ) -> Iterator[tuple[Term, AbstractSet[Term], AbstractSet[Term]]]:
        """Apply changes of edges and starts; yields (start, lost ends, gained ends) where ends changed."""
        self._moves = {}
        for start in dropped:
            self.starts.discard(start)
            self._moved(start, self._ends.pop(start, _NOWHERE), _NOWHERE)
        if (len(came) + len(gone)) * RESTART_SHARE > self.edges.size:
            self._again(came, gone)
        else:
            if gone:
                self._leave(gone)
            if came:
                self._enter(came)
        if demanded:
            self.starts.update(demanded)
            self._ask(demanded)
        return ((start, lost, gained) for start, (lost, gained) in self._moves.items() if lost or gained)

    def _moved(self, start: Term, lost: AbstractSet[Term], gained: AbstractSet[Term]) -> None:
        """Record what a start lost and gained; an end that is lost and gained cancels out."""
        if start in self._moves:
            gone, came = self._moves[start]
            lost, gained = (gone - gained) | (lost - came), (came - lost) | (gained - gone)
        self._moves[start] = lost, gained

    def _own(self, start: Term) -> set[Term]:
        """The ends of a start in a set that it does not share."""
        ends = self._ends.get(start)
        if not isinstance(ends, set):
            # Starts of one component share a frozenset (``_joined``), which is copied when the first of them changes.
            ends = self._ends[start] = set(ends or ())
        return ends

    def _behind(self, sources: Iterable[Term], gone: Mapping[Term, Sequence[Term]]) -> "_Backwards":
        return _Backwards(sources, self.edges.backward, gone)

    def _enter(self, came: Collection[Edge]) -> None:
        """Add edges, and update every start that gains ends."""
        self.edges.add(came)
        heads = _by_source(came)
        # The usual case, one edge into a node that reaches little: all starts gain from the same small set.
        few = self._few([head for _, head in came]) if len(came) == 1 else None
        behind = self._behind(heads, {})
        for start in behind:
            if start in self.starts:
                ends = self.ends(start)
                gained = self._gained(start, ends, heads) if few is None else few - ends
                # What this start did not gain, none behind it can gain through it: the search stops here.
                if not gained:
                    continue
                self._own(start).update(gained)
                self._moved(start, _NOWHERE, gained)
            behind.go_on(start)
        self._effort.spend(len(behind.seen) * (1 if few is None else 1 + len(few)))

    def _few(self, heads: Sequence[Term]) -> set[Term] | None:
        """The heads and everything that they reach, if known and few; starts then only compare sets."""
        reached = set(heads)
        for head in heads:
            ends = self._ends.get(head, () if head not in self.edges.forward else None)
            if ends is None or len(ends) > FEW_ROWS:
                return None
            reached.update(ends)
        return reached

    def _gained(self, start: Term, ends: Reached, heads: Mapping[Term, Sequence[Term]]) -> set[Term]:
        """The nodes that a start newly reaches through the heads of new edges."""
        forward = self.edges.forward
        gained = {head for head in _heads_at(start, ends, heads) if head not in ends}
        waiting = list(gained)
        while waiting:
            # Nodes that the start reached before are not followed: whatever is behind them, it reached too.
            fresh = forward.get(waiting.pop(), _NOWHERE) - ends - gained
            self._effort.spend(1 + len(fresh))
            gained |= fresh
            waiting += fresh
        return gained

    def _leave(self, gone: Collection[Edge]) -> None:
        """Remove edges, and update every start that loses ends."""
        self.edges.remove(gone)
        # Where another way leads from source to target, every path over the edge has a detour, and nothing is lost.
        broken = [edge for edge in gone if not self.edges.connects(*edge, self._effort)]
        heads, behind = _by_source(broken), self._behind((source for source, _ in broken), _by_target(broken))
        parts: Components | None = None
        for start in behind:
            if start in self.starts:
                # Its last edge went, and all ends with it.
                if start not in self.edges.forward:
                    lost: AbstractSet[Term] = self.ends(start)
                else:
                    parts = parts or Components([head for _, head in broken], self.edges, self._effort)
                    lost = parts.lost(start, self.ends(start), _heads_at(start, self.ends(start), heads))
                if not lost:
                    continue
                self._moved(start, lost, _NOWHERE)
                self._less(start, lost)
            behind.go_on(start)
        self._effort.spend(len(behind.seen))

    def _less(self, start: Term, lost: AbstractSet[Term]) -> None:
        ends = self._own(start)
        if len(lost) == len(ends):
            del self._ends[start]
        else:
            ends -= lost

    def _again(self, came: Collection[Edge], gone: Collection[Edge]) -> None:
        """Apply many changes of edges: recompute all starts that could, or can, reach one of them."""
        # With the new and the old edges together, so that starts are found that lose an end as well as those that gain
        # one.
        self.edges.add(came)
        # With the new and the old edges together, so that starts are found that lose an end as well as those that gain
        # one.
        behind = self._behind({source for source, _ in (*came, *gone)}, {})
        for node in behind:
            self._effort.spend(1)
            behind.go_on(node)
        self.edges.remove(gone)
        self._follow(behind.seen & self.starts)

    def _ask(self, demanded: Collection[Term]) -> None:
        """Find the ends of new starts."""
        if len(demanded) * RESTART_SHARE > len(self.starts):
            self._follow(demanded)
            return
        for start in demanded:
            ends = self._reached(start)
            if ends:
                self._ends[start] = ends
                self._moved(start, _NOWHERE, ends)

    def _follow(self, starts: Collection[Term]) -> None:
        """Recompute the ends of starts, and report the difference."""
        for start, ends in self._followed(starts):
            before = self.ends(start)
            if ends:
                self._ends[start] = ends
            else:
                self._ends.pop(start, None)
            self._moved(start, before - ends, ends - before if before else ends)

    def _followed(self, starts: Collection[Term]) -> Iterator[tuple[Term, Reached]]:
        """The ends of starts, one by one, or of the whole graph by components if starts are a large share of it."""
        forward = self.edges.forward
        if RESTART_SHARE * len(starts) < len(forward):
            yield from ((start, self._reached(start, known=False)) for start in starts)
            return
        wanted, reached = set(starts), dict[Term, Reached]()
        for members in components(starts, forward, self._effort):
            # Components come in reverse topological order, so all that this one leads to is known.
            ends = _joined(members, forward, reached)
            self._effort.spend(sum(member in wanted for member in members) * len(ends))
            reached.update(dict.fromkeys(members, ends))
        yield from ((start, reached[start]) for start in starts)

    def _reached(self, start: Term, known: bool = True) -> set[Term]:
        """The ends of a start; with ``known``, reusing the ends of starts on the way."""
        forward, reached, waiting = self.edges.forward, set[Term](), [start]
        while waiting:
            node = waiting.pop()
            fresh: AbstractSet[Term] = forward.get(node, _NOWHERE)
            if known and node != start and node in self._ends:
                reached |= self._ends[node]
                self._effort.spend(1 + len(self._ends[node]))
                continue
            self._effort.spend(1 + len(fresh))
            # A copy: ``forward`` holds the set itself.
            fresh = fresh - reached
            reached |= fresh
            waiting += fresh
        return reached


class SteppedNodes:
    """The ends to which start nodes have an edge."""

    def __init__(self, effort: EvaluationBudget) -> None:
        self.edges, self.starts, self._effort = EdgeIndex(), set[Term](), effort

    @property
    def held(self) -> int:
        """The number of edges and starts in the state."""
        return self.edges.size + len(self.starts)

    def tables(self) -> Iterator[dict[Term, Any]]:
        """The tables of edges; read-only."""
        yield from (self.edges.forward, self.edges.backward)

    def ends(self, start: Term) -> AbstractSet[Term]:
        """The ends of a start; read-only."""
        return self.edges.forward.get(start, _NOWHERE) if start in self.starts else _NOWHERE

    def change(
        self, came: Collection[Edge], gone: Collection[Edge], demanded: Collection[Term], dropped: Collection[Term]
    ) -> Iterator[tuple[Term, AbstractSet[Term], AbstractSet[Term]]]:
        """Apply changes of edges and starts; yields (start, lost ends, gained ends) where ends changed."""
        touched = {source for source, _ in (*came, *gone)} & self.starts | {*demanded, *dropped}
        before = {start: set(self.ends(start)) for start in touched}
        self.edges.remove(gone)
        self.edges.add(came)
        self.starts.difference_update(dropped)
        self.starts.update(demanded)
        for start, had in before.items():
            ends = self.ends(start)
            self._effort.spend(1 + len(ends))
            yield start, had - ends, ends - had


class Components:
    """The strongly connected components behind the heads of deleted edges, in topological order."""

    def __init__(self, heads: Iterable[Term], edges: EdgeIndex, effort: EvaluationBudget) -> None:
        # Components come in reverse topological order; reversed, each is decided before those that it leads to.
        self._members = list(components(heads, edges.forward, effort))[::-1]
        self._place = {node: place for place, members in enumerate(self._members) for node in members}
        self._edges, self._effort = edges, effort

    def lost(self, start: Term, ends: AbstractSet[Term], heads: Iterable[Term]) -> set[Term]:
        """The ends that a start no longer reaches, given the ``heads`` that it reached through deleted edges."""
        place_of, forward, lost = self._place, self._edges.forward, set[Term]()
        # By place, which is topological order: when a component is taken, all that lead to it have been decided.
        # A sorted list is a heap already.
        waiting = sorted({place_of[head] for head in heads})
        queued = set(waiting)
        while waiting:
            place = heappop(waiting)
            if self._supported(place, start, ends, lost):
                continue
            lost.update(self._members[place])
            for node in self._members[place]:
                # Each component that it leads to has lost an edge from here and needs another support.
                for further in forward.get(node, _NOWHERE):
                    if (next_ := place_of[further]) not in queued:
                        queued.add(next_)
                        heappush(waiting, next_)
        return lost

    def _supported(self, place: int, start: Term, ends: AbstractSet[Term], lost: AbstractSet[Term]) -> bool:
        """Whether an edge leads into a component from the start, or from an end outside of it that is not lost."""
        place_of, backward = self._place, self._edges.backward
        for node in self._members[place]:
            sources = backward.get(node, _NOWHERE)
            self._effort.spend(1 + len(sources))
            for source in sources:
                if source == start:
                    return True
                if source in ends and source not in lost and place_of.get(source) != place:
                    return True
        return False


class _Backwards:
    """Nodes to look at, each once: sources first, then the nodes before those from where it goes on."""

    def __init__(self, sources: Iterable[Term], edges: Edges, more: Mapping[Term, Sequence[Term]]) -> None:
        self._waiting = list(dict.fromkeys(sources))
        self._edges, self._more = edges, more
        self.seen = set(self._waiting)

    def __iter__(self) -> Iterator[Term]:
        while self._waiting:
            yield self._waiting.pop()

    def go_on(self, node: Term) -> None:
        """The nodes with an edge to a node wait, those of ``more`` too."""
        seen, waiting = self.seen, self._waiting
        for target in (*self._edges.get(node, ()), *self._more.get(node, ())):
            if target not in seen:
                seen.add(target)
                waiting.append(target)


def components(roots: Iterable[Term], edges: Edges, effort: EvaluationBudget) -> Iterator[list[Term]]:
    """The strongly connected components reachable from roots, in reverse topological order.

    Gabow's algorithm (2000): two stacks, and a third one instead of recursion.
    """
    number: dict[Term, int] = {}
    for root in roots:
        if root in number:
            continue
        # A worked example: a -> b -> c, c -> b, c -> d, from a. The stacks grow to a b c. The edge back to b pops the
        # border c: b and c are one component, whose border is b. d is opened and complete, so {d} comes first, then
        # {c, b}, when the search returns to its border b, then {a}.
        waiting, borders, opened = [(root, iter(edges.get(root, _NOWHERE)))], [root], [root]
        number[root] = len(number)
        while waiting:
            node, ends = waiting[-1]
            for end in ends:
                seen = number.get(end)
                if seen is None:
                    number[end] = len(number)
                    waiting.append((end, iter(edges.get(end, _NOWHERE))))
                    borders.append(end)
                    opened.append(end)
                    break
                # An edge back to a node that is still open: everything above it on the stack is in its component.
                while number[borders[-1]] > seen:
                    borders.pop()
            else:
                waiting.pop()
                effort.spend(1)
                # No edge led back beyond this node: it is the first one of its component.
                if borders[-1] == node:
                    borders.pop()
                    members = [opened.pop()]
                    while members[-1] != node:
                        members.append(opened.pop())
                    number.update(dict.fromkeys(members, _COMPLETE))
                    yield members


def _joined(members: Sequence[Term], forward: Edges, reached: Mapping[Term, Reached]) -> Reached:
    """The ends of a component's nodes, from the ends of the components that it leads to."""
    ends = set[Term]()
    for further in set[Term]().union(*[forward.get(node, _NOWHERE) for node in members]):
        if further in reached and further not in ends:
            ends.add(further)
            ends |= reached[further]
    if len(members) == 1:
        return ends | {members[0]} if members[0] in forward.get(members[0], _NOWHERE) else ends
    return frozenset(ends.union(members))


def _heads_at(start: Term, ends: AbstractSet[Term], heads: Mapping[Term, Sequence[Term]]) -> list[Term]:
    """The heads of the edges whose source is the start or one of its ends."""
    targets = [head for source in heads.keys() & ends for head in heads[source]]
    return targets if start in ends else [*targets, *heads.get(start, ())]


def _by_source(edges: Iterable[Edge]) -> dict[Term, list[Term]]:
    targets: dict[Term, list[Term]] = {}
    for source, target in edges:
        targets.setdefault(source, []).append(target)
    return targets


def _by_target(edges: Iterable[Edge]) -> dict[Term, list[Term]]:
    return _by_source((target, source) for source, target in edges)


def _take(edges: Edges, source: Term, target: Term) -> None:
    targets = edges[source]
    targets.discard(target)
    if not targets:
        del edges[source]
