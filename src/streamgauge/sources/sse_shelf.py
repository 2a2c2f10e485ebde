"""The events that a server of events keeps, so that clients that come back go on after theirs."""

from collections import deque
from dataclasses import dataclass
from itertools import islice
from threading import Condition

from streamgauge.sources.contract import Delivery
from streamgauge.sources.sse_events import write_event

_BATCH = 64 * 1024
"""Bytes that one client is given at once, if more than one event."""


@dataclass(frozen=True, slots=True)
class SseOptions:
    """``buffer`` events and ``memory`` bytes are kept, ``clients`` served at once; ``token`` is asked of each.

    ``wait`` (ms): for clients that are behind, before events are given up; a client that takes nothing for ``stall``
    ms is let go.
    """

    buffer: int = 10_000
    memory: int = 64 * 2**20
    limit: int = 2**20
    clients: int = 100
    token: str | None = None
    wait: int = 5000
    stall: int = 30_000


@dataclass(slots=True)
class ShelvedEvent:
    """An event that clients can still be given, and whether one was."""

    text: bytes
    given: bool = False


class Shelf:
    """The last events in order, numbered from 1; thread-safe. ``run`` tells this numbering from others."""

    def __init__(self, options: SseOptions, run: str) -> None:
        self._options = options
        self._run = run
        self._changed = Condition()
        self._kept: deque[ShelvedEvent] = deque()
        self._bytes = 0
        self._first = 1
        self._clients = 0
        self._taken = 0
        self._lost = 0
        self._why: str | None = None
        self.over = False

    def put(self, message: bytes) -> None:
        """Keep one more; waits for clients that are behind, then the oldest is given up."""
        with self._changed:
            self._taken += 1
            text = write_event(message, f"{self._run}.{self._first + len(self._kept)}")
            if len(message) > self._options.limit:
                self._fail(f"{len(message)} bytes are more than the limit, {self._options.limit}")
                return
            self._changed.wait_for(lambda: self._room(len(text)) or not self._clients, self._options.wait / 1000)
            while self._kept and self._full(len(text)):
                self._drop()
            self._kept.append(ShelvedEvent(text))
            self._bytes += len(text)

    def place(self, last: str | None) -> int:
        """After which event a client begins: after its last one, now when it has none, else with all that are kept."""
        with self._changed:
            end = self._first + len(self._kept) - 1
            if last is None:
                return end
            run, _, number = last.rpartition(".")
            return min(int(number), end) if run == self._run and number.isdecimal() else self._first - 1

    def after(self, place: int) -> tuple[int, bytes, int]:
        """(how many events behind a place are no longer there, the text of the next ones, the place behind them)."""
        with self._changed:
            missed = max(0, self._first - 1 - place)
            found, size = list[bytes](), 0
            for kept in islice(self._kept, place + missed + 1 - self._first, None):
                if found and size + len(kept.text) > _BATCH:
                    break
                found.append(kept.text)
                size += len(kept.text)
            return missed, b"".join(found), place + missed + len(found)

    def given(self, place: int, behind: int) -> None:
        """A client was given the events after ``place`` up to ``behind``."""
        with self._changed:
            for kept in islice(self._kept, max(0, place + 1 - self._first), max(0, behind + 1 - self._first)):
                kept.given = True
            self._changed.notify_all()

    def enter(self) -> bool:
        """Whether one more client can be served."""
        with self._changed:
            if self._clients >= self._options.clients:
                return False
            self._clients += 1
            return True

    def leave(self) -> None:
        """A client went away."""
        with self._changed:
            self._clients -= 1
            self._changed.notify_all()

    def drain(self) -> Delivery:
        """Wait until all events were given to a client, if there is one; nothing is put any more."""
        with self._changed:
            self._changed.wait_for(lambda: not self._clients or self._all_given(), self._options.wait / 1000)
            for kept in self._kept:
                self._let_go(kept)
            self.over = True
            return Delivery(self._taken - self._lost, self._lost, self._why)

    def _room(self, size: int) -> bool:
        return not self._full(size) or self._kept[0].given

    def _full(self, size: int) -> bool:
        return len(self._kept) >= self._options.buffer or self._bytes + size > self._options.memory

    def _all_given(self) -> bool:
        return all(kept.given for kept in self._kept)

    def _drop(self) -> None:
        """The oldest event makes room."""
        kept = self._kept.popleft()
        self._first += 1
        self._bytes -= len(kept.text)
        self._let_go(kept)

    def _let_go(self, kept: ShelvedEvent) -> None:
        if not kept.given:
            self._fail("no client took it while it was kept")

    def _fail(self, why: str) -> None:
        self._lost += 1
        self._why = self._why or why
