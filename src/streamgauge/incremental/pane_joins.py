"""Panes: the triples between two beginnings of windows, each joined separately and as a whole, as lists of terms.

A pane is joined in columns (``snapshot``), which costs half as much as processing single triples, and only once,
however many looks see it; its solutions are added and removed with it. This is exact as long as no solution has
triples of two panes and no triple is in two. Both hold if panes have no common terms at variables shared by patterns:
a solution over two panes has two patterns that meet in such a term, one in each pane, and each pattern has such a
variable.

A worked example: ``?obs :result ?res . ?res :value ?v``, and panes of one second. Patterns share ``?res``. The first
pane has (o1 result r1), (r1 value 5) and (o2 result r2): one solution, and the terms r1 and r2 of ``?res``. The second
has (o3 result r3), (r3 value 7): no common term, one more solution. The third has (r2 value 9): r2 is in the first
pane too, so panes are given up.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby

from streamgauge.incremental.operators import Bag, add_all
from streamgauge.incremental.plan import BgpRequest, plan
from streamgauge.incremental.snapshot import Matches, Parted
from streamgauge.incremental.window_pieces import Arrivals, size_of
from streamgauge.model.terms import Term

SharedTerms = dict[str, set[Term]]


@dataclass(frozen=True, slots=True)
class JoinedPane:
    """A pane from ``time`` (ms) on: its number of triples, and per pattern its solutions and shared terms."""

    time: int
    size: int
    found: list[Bag]
    shared: list[SharedTerms]


class WindowPanes:
    """The panes of a content; changes of patterns are added to their bags.

    ``joining`` is the number of the pattern being joined.
    """

    def __init__(self, requests: Sequence[tuple[BgpRequest, Bag]], begun: Callable[[int], int]) -> None:
        self._begun, self._parted = begun, Parted()
        self._bags = [bag for _, bag in requests]
        planned = [(plan(request.bgp, request.conditions), request.output) for request, _ in requests]
        self._matches = [Matches(plan_, output, self._parted) for plan_, output in planned]
        self._seen: list[SharedTerms] = [{} for _ in requests]
        self._panes: deque[JoinedPane] = deque()
        self.held = 0
        self.joining: int | None = None

    def move(self, arrivals: Arrivals, horizon: int) -> bool:
        """Process a look: the arrivals since the last one, and a new horizon (ms); ``False`` if panes share terms."""
        # Horizons are beginnings of windows, and a pane lies between two of them: it leaves as a whole.
        while self._panes and self._panes[0].time < horizon:
            self._count(self._panes.popleft(), -1)
        for _, group in groupby(arrivals, lambda arrival: self._begun(arrival[0])):
            pane = self._joined(list(group))
            if self._meets(pane):
                return False
            self._panes.append(pane)
            self._count(pane, 1)
        return True

    def take_back(self) -> None:
        """Retract the solutions of all panes."""
        for pane in self._panes:
            self._count(pane, -1)

    def _joined(self, arrivals: Arrivals) -> JoinedPane:
        self._parted.fill([triples for _, triples in arrivals])
        for match in self._matches:
            match.renew()
        bags = []
        for number, match in enumerate(self._matches):
            self.joining = number
            bags.append(match.take())
        self.joining = None
        shared = [match.shared() for match in self._matches]
        # The triples belong to the content; the pane keeps solutions and shared terms only.
        self._parted.fill(())
        return JoinedPane(arrivals[0][0], size_of(arrivals), bags, shared)

    def _meets(self, pane: JoinedPane) -> bool:
        """Whether a pane and an older one have a common term at a shared variable."""
        return any(
            not terms.isdisjoint(seen.get(name, ()))
            for seen, shared in zip(self._seen, pane.shared, strict=True)
            for name, terms in shared.items()
        )

    def _count(self, pane: JoinedPane, sign: int) -> None:
        """Add or remove the solutions and terms of a pane."""
        self.held += sign * pane.size
        for seen, shared in zip(self._seen, pane.shared, strict=True):
            for name, terms in shared.items():
                known = seen.setdefault(name, set())
                # No counts are needed: panes have no common terms at these variables, or they would have been given
                # up.
                (known.update if sign > 0 else known.difference_update)(terms)
        for change, bag in zip(self._bags, pane.found, strict=True):
            add_all(change, bag if sign > 0 else {row: -count for row, count in bag.items()})
