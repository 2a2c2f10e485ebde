"""Joins over windows that slide: what came between two looks is a pane, joined by itself, whole, when it is looked at.

A pane is joined column by column (``snapshot``), which costs half of following each triple, and once, however many
looks see it; its solutions come when it comes and go when it goes. That is exact as long as no solution has triples of
two panes and no triple is in two. Both are so where panes have no term in common at the variables that patterns share:
a solution of two panes has two patterns that meet in such a term, one in each pane, and each pattern has such a
variable. Where panes do have a term in common, where one goes in parts, or where panes are small, each triple is
followed from then on (``window_joins``).

A worked example: ``?obs :result ?res . ?res :value ?v``, and panes of one second. Patterns share ``?res``. The first
pane has (o1 result r1), (r1 value 5) and (o2 result r2): one solution, and the terms r1 and r2 of ``?res``. The second
has (o3 result r3), (r3 value 7): no term in common, one solution more. The third has (r2 value 9): r2 is of the first
pane too. All triples that are held enter the joins that follow each, which find three solutions; the change is what
these find less the two that were given.
"""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Final

from streamgauge.incremental.operators import Bag, Take, add_all
from streamgauge.incremental.plan import BgpRequest, Feed, Follow, Held, InColumns, disconnected, plan
from streamgauge.incremental.snapshot import Matches, Parted
from streamgauge.incremental.window_joins import WindowJoins
from streamgauge.incremental.window_pieces import Gather, PartedTriples, WindowBegins
from streamgauge.model.algebra import Node, Var
from streamgauge.model.query import Window
from streamgauge.model.terms import Term, Triple

LEAST: Final = 200
"""Triples of a pane, on average, from which on panes are joined. Chosen: a join has a cost of its own for each pane."""

MOST: Final = 4
"""Patterns of one graph that are joined so, at most: more are followed, those that differ in conditions together."""


@dataclass(frozen=True, slots=True)
class JoinedPane:
    """The arrivals between two looks: their triples, the solutions of each pattern, the terms that each shares."""

    triples: Sequence[Triple]
    found: list[Bag]
    shared: list[dict[str, set[Term]]]


@dataclass(slots=True)
class PanedGraph:
    """The panes of one graph, the newest last; those that have gone but were not looked at since; what waits."""

    parted: Parted = field(default_factory=Parted)
    matches: list[Matches] = field(default_factory=list)
    changes: list[Bag] = field(default_factory=list)
    follows: list[Bag] = field(default_factory=list)
    waiting: list[Sequence[Triple]] = field(default_factory=list)
    gather: Callable[[Collection[Term], int], PartedTriples | None] | None = None
    parts: list[Sequence[Triple]] = field(default_factory=list)
    panes: deque[JoinedPane] = field(default_factory=deque)
    gone: list[JoinedPane] = field(default_factory=list)
    seen: list[dict[str, set[Term]]] = field(default_factory=list)
    entered: int = 0
    number: int = 0
    followed: bool = False

    def ask(self, request: BgpRequest, follows: Bag) -> int:
        """Request the solutions of one more pattern, whose changes are put into a bag when followed; its place."""
        self.matches.append(Matches(plan(request.bgp, request.conditions), request.output, self.parted))
        self.changes.append({})
        self.follows.append(follows)
        self.seen.append({})
        return len(self.matches) - 1

    def take(self, place: int) -> Bag:
        """The change of the solutions of a pattern since it was last taken, by panes."""
        change, self.changes[place] = self.changes[place], {}
        return change

    def goes(self, triples: Sequence[Triple]) -> bool:
        """Whether triples that leave are the oldest panes and parts, which go then."""
        self.cut()
        at = number = 0
        held = [*(pane.triples for pane in self.panes), *self.parts]
        while at < len(triples):
            if number == len(held) or triples[at : at + len(held[number])] != list(held[number]):
                return False
            at += len(held[number])
            number += 1
        joined = min(number, len(self.panes))
        self.gone += [self.panes.popleft() for _ in range(joined)]
        del self.parts[: number - joined]
        return True

    def turn(self) -> bool:
        """Count the panes that left and came; ``False``, with new ones waiting, where panes are joined no more."""
        for pane in self.gone:
            self._count(pane, -1)
        self.gone.clear()
        self.cut()
        while self.parts:
            pane = self._joined(self.parts[0])
            self.number += 1
            self.entered += pane.triples.came if isinstance(pane.triples, PartedTriples) else len(pane.triples)
            if self.entered < LEAST * (self.number - 2) or self._meets(pane):
                return False
            del self.parts[0]
            self.panes.append(pane)
            self._count(pane, 1)
        return True

    def cut(self) -> None:
        """Make a pane, or a part of one, of the waiting triples."""
        if self.waiting:
            predicates, piece = self.parted.predicates, None
            if predicates is not None and self.gather is not None:
                piece = self.gather(predicates, len(self.waiting))
            self.parts.append(list(chain.from_iterable(self.waiting)) if piece is None else piece)
            self.waiting.clear()

    def held(self) -> Iterable[Triple]:
        """The triples of all panes, and those that wait."""
        return chain.from_iterable([*(pane.triples for pane in self.panes), *self.parts, *self.waiting])

    def follow(self, enter: Feed) -> None:
        """The joins that follow each triple have all that is held: what they find more than was given is a change."""
        enter(self.held())
        for place, found in enumerate(self.follows):
            for pane in chain(self.panes, self.gone):
                add_all(found, _negative(pane.found[place]))
        self.followed = True
        for each in (self.panes, self.gone, self.parts, self.waiting, self.seen):
            each.clear()

    def _joined(self, triples: Sequence[Triple]) -> JoinedPane:
        """Triples as a pane."""
        self.parted.fill([triples])
        for each in self.matches:
            each.renew()
        pane = JoinedPane(triples, [each.take() for each in self.matches], [each.shared() for each in self.matches])
        self.parted.fill(())
        return pane

    def _meets(self, pane: JoinedPane) -> bool:
        """Whether a pane and an older one have a term of a shared variable in common."""
        return any(
            not terms.isdisjoint(seen.get(name, ()))
            for seen, shared in zip(self.seen, pane.shared, strict=True)
            for name, terms in shared.items()
        )

    def _count(self, pane: JoinedPane, sign: int) -> None:
        """The solutions of a pane come or go, and its terms."""
        for seen, shared in zip(self.seen, pane.shared, strict=True):
            for name, terms in shared.items():
                known = seen.setdefault(name, set())
                (known.update if sign > 0 else known.difference_update)(terms)
        for change, found in zip(self.changes, pane.found, strict=True):
            add_all(change, found if sign > 0 else _negative(found))


class PaneJoins(WindowJoins):
    """Patterns over a window that is looked at when it closes, joined pane by pane where they can be.

    ``right_closed``: what comes at the time of a border is before it.
    """

    def __init__(self, window: Window, begins: WindowBegins, *, right_closed: bool) -> None:
        super().__init__()
        self._window, self._begins, self._skip, self._t0 = window, begins, int(right_closed), 0
        self._graphs: dict[Node | None, PanedGraph] = {}

    def leaf(self, request: BgpRequest) -> Take:
        """Request the solutions of a pattern."""
        followed = super().leaf(request)
        graph = self._graphs.setdefault(request.graph, PanedGraph())
        if len(graph.matches) >= MOST or not _is_joined(request):
            graph.followed = True
        return partial(_taken, graph, graph.ask(request, self._found[-1]), followed)

    def feeds(self, graph: Term | None) -> tuple[Feed, Feed]:
        """Functions that take the triples that enter and leave a graph."""
        feeds = super().feeds(graph)
        paned = self._graphs.get(graph)
        if paned is None or paned.followed:
            return feeds
        return partial(_enter, paned, feeds[0]), partial(_leave, paned, feeds)

    def see(
        self,
        graph: Term | None,
        held: Held,  # noqa: ARG002
        columns: InColumns | None = None,  # noqa: ARG002
        gather: Gather | None = None,
    ) -> None:
        """The content of a graph puts its latest arrivals together when these are a pane."""
        paned = self._graphs.get(graph)
        if paned is not None and gather is not None:
            paned.gather = lambda predicates, number: gather(predicates, self._begun, number)

    def _begun(self, time: int) -> int:
        return self._begins.last(time, self._t0)

    def follow(self, graph: Term | None) -> Follow | None:  # noqa: ARG002
        """Nothing is followed up to a triple that changes solutions: looks come at instants of a clock."""
        return None

    def cut(self, time: int, t0: int) -> int | None:
        """End the panes of all graphs; the next time (ms) at which a window begins or ends."""
        self._t0 = t0
        for graph in self._graphs.values():
            graph.cut()
        slide = self._window.slide
        borders = (t0 + self._skip, t0 + self._skip + self._window.size % slide)
        return min(border + ((time - border) // slide + 1) * slide for border in borders)

    def look(self) -> None:
        """A look begins: panes come and go."""
        super().look()
        for name, graph in self._graphs.items():
            if not graph.followed and not isinstance(name, Var) and not graph.turn():
                graph.follow(super().feeds(name)[0])

    def remembered(self) -> dict[str, int]:
        """How many entries each index holds, and how many triples panes."""
        panes = {f"panes {at}": sum(1 for _ in each.held()) for at, each in enumerate(self._graphs.values())}
        return super().remembered() | panes


def _enter(graph: PanedGraph, enter: Feed, triples: Iterable[Triple]) -> None:
    if graph.followed:
        enter(triples)
    else:
        graph.waiting.append(tuple(triples))


def _leave(graph: PanedGraph, feeds: tuple[Feed, Feed], triples: Iterable[Triple]) -> None:
    gone = list(triples)
    if not graph.followed:
        if graph.goes(gone):
            return
        graph.follow(feeds[0])
    feeds[1](gone)


def _negative(bag: Bag) -> Bag:
    return {row: -count for row, count in bag.items()}


def _is_joined(request: BgpRequest) -> bool:
    """Whether each pattern shares a variable with another, all of them connected."""
    patterns = request.bgp.patterns
    return len(patterns) > 1 and len(disconnected(request.bgp)) == 1 and not isinstance(request.graph, Var)


def _taken(graph: PanedGraph, place: int, followed: Callable[[], Bag]) -> Bag:
    change = graph.take(place)
    add_all(change, followed())
    return change
