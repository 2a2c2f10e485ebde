"""A window's content as it moves: what arrives enters the evaluator at once, what no later report can see leaves it."""

from collections import deque
from collections.abc import Iterator
from heapq import heappop, heappush
from itertools import count
from typing import TypeAlias

from streamgauge.incremental.drivers.latest import Feed, Latest
from streamgauge.incremental.drivers.noticing import Moves, Noticing
from streamgauge.incremental.generate import Follow
from streamgauge.model.terms import Triple

Entry: TypeAlias = tuple[int, tuple[Triple, ...], int]
"""Time (ms), the triples that arrived at it, and a number when they end (0 when they do not)."""


class Content:
    """What a window holds, in order of time; says at each look whether its set of triples has changed."""

    def __init__(
        self,
        enter: Feed,
        leave: Feed,
        noticing: Noticing | None = None,
        latest: Latest | None = None,
        follow: Follow | None = None,
    ) -> None:
        self._enter, self._leave, self._latest = enter, leave, latest
        self._follow = follow if isinstance(noticing, Moves) and latest is None else None
        self._live: deque[Entry] = deque()
        self._ends: list[tuple[int, int, Entry]] = []
        self._running: set[int] = set()
        self._numbers = count(1)
        self._ended = 0
        self._changes = noticing

    @property
    def telling(self) -> bool:
        """Whether a look at which no answer changes is none."""
        return isinstance(self._changes, Moves)

    @property
    def held(self) -> bool:
        """Whether any triple is held."""
        return len(self._live) > self._ended

    @property
    def still(self) -> bool:
        """Nothing is held and nothing has changed since the last look."""
        return not self.held and (self._changes is None or self._changes.none)

    @property
    def span(self) -> tuple[int, int] | None:
        """The times (ms) of the oldest and the newest arrival in scope, ended ones included; ``None`` without any."""
        return (self._live[0][0], self._live[-1][0]) if self._live else None

    def graphs(self) -> list[tuple[Triple, ...]]:
        """The triples that are held, arrival by arrival."""
        running = self._running
        return [triples for _, triples, number in self._live if not number or number in running]

    @property
    def follows(self) -> bool:
        """Whether triples can enter with a stop wherever a pattern finds something."""
        return self._follow is not None

    def follow(self, time: int, triples: tuple[Triple, ...], until: int | None) -> Iterator[None]:
        """Triples enter as by ``enter``, with a stop after each that changes what a pattern finds."""
        if self._follow is None or not self._keep(time, triples, until):
            return
        coming = iter(triples)
        self._came(triples)
        while self._follow(coming):
            yield
            self._came(triples)

    def _came(self, triples: tuple[Triple, ...]) -> None:
        if self._changes is not None:
            self._changes.came(triples)

    def enter(self, time: int, triples: tuple[Triple, ...], until: int | None) -> None:
        """Triples of ``time`` (ms), which never goes back, enter; they end at ``until``."""
        if not self._keep(time, triples, until):
            return
        self._enter(triples)
        if self._changes is not None:
            self._changes.came(triples)
        if self._latest is not None:
            self._latest.came(time, triples)

    def _keep(self, time: int, triples: tuple[Triple, ...], until: int | None) -> bool:
        """Keep an arrival; whether it holds anything."""
        if not triples:
            return False
        if until is not None:
            return self._will_end(time, triples, until)
        self._live.append((time, triples, 0))
        return True

    def _will_end(self, time: int, triples: tuple[Triple, ...], until: int) -> bool:
        """Keep an entry that ends; whether it holds at all."""
        entry = (time, triples, next(self._numbers))
        self._live.append(entry)
        if until <= time:
            self._ended += 1
            return False
        self._running.add(entry[2])
        heappush(self._ends, (until, entry[2], entry))
        return True

    def show(self) -> None:
        """Let in what waits for a look; here nothing waits."""

    def drop(self, first: int) -> None:
        """What is earlier than ``first`` (ms) leaves."""
        live = self._live
        if not live or live[0][0] >= first:
            return
        gone = []
        while live and live[0][0] < first:
            gone.append(live.popleft())
        self._went(self._unended(gone))

    def crop(self, size: int) -> None:
        """All but the newest ``size`` arrivals leave."""
        live = self._live
        if len(live) > size:
            self._went(self._unended([live.popleft() for _ in range(len(live) - size)]))

    def end(self, last: int) -> None:
        """What ends at ``last`` (ms) or before is no longer held, but keeps its place among the arrivals."""
        over = []
        while self._ends and self._ends[0][0] <= last:
            _, number, entry = heappop(self._ends)
            if number in self._running:
                self._running.discard(number)
                over.append(entry)
        if over:
            self._ended += len(over)
            self._went(over)

    def settle(self) -> bool:
        """Whether the set has changed since the last look in the way that counts; from now on counted from here."""
        return self._changes is None or self._changes.settle(self.held)

    def _unended(self, out: list[Entry]) -> list[Entry]:
        """Those of the entries out of scope that have not ended before."""
        if not self._running and not self._ended:
            return out
        kept = [entry for entry in out if not entry[2] or entry[2] in self._running]
        self._ended -= len(out) - len(kept)
        self._running.difference_update(entry[2] for entry in kept)
        return kept

    def _went(self, entries: list[Entry]) -> None:
        gone: list[Triple] = []
        for _, triples, _ in entries:
            gone += triples
        self._leave(gone)
        if self._changes is not None:
            self._changes.went(gone)
        if self._latest is not None:
            for time, triples, _ in entries:
                self._latest.went(time, triples)


class Waiting(Content):
    """A content that stands still between the looks of its window: what arrives waits for the next."""

    def __init__(
        self,
        enter: Feed,
        leave: Feed,
        noticing: Noticing | None = None,
        latest: Latest | None = None,
        _follow: Follow | None = None,
    ) -> None:
        super().__init__(enter, leave, noticing, latest)
        self._waiting: list[tuple[int, tuple[Triple, ...], int | None]] = []

    @property
    def still(self) -> bool:
        """Nothing is held, nothing waits and nothing has changed since the last look."""
        return not self._waiting and super().still

    def enter(self, time: int, triples: tuple[Triple, ...], until: int | None) -> None:
        """Triples of ``time`` (ms) wait."""
        self._waiting.append((time, triples, until))

    def show(self) -> None:
        """What waits enters."""
        for time, triples, until in self._waiting:
            super().enter(time, triples, until)
        self._waiting.clear()
