"""Several sources as one sequence: by application time when they are finite, as they come when they are live."""

from collections import deque
from collections.abc import Iterable, Iterator
from threading import Condition, Thread, current_thread
from time import sleep
from typing import Any, NamedTuple, TypeAlias

from streamgauge.formats.lines import Advance, Input
from streamgauge.model.element import StreamElement
from streamgauge.sources.named import numbered

MAX_WAITING_ITEMS = 4096
"""How many items may wait to be looked at; a source that brings more waits itself."""

LEAVE_S = 5.0
"""How long closing waits for the thread of a source to end."""

Place: TypeAlias = int
"""Which source."""

_NO_SOURCE: Place = -1


class Placed(NamedTuple):
    """An item with its source and the place behind it there; no item where time has not come on all sources.

    Its element has the number of its source.
    """

    source: int
    item: Input | None
    place: object


Arrival: TypeAlias = Input | Placed
"""What sources bring."""


class MergedStreams:
    """Items in the order in which they come, numbered anew; ``None`` when nothing came for ``patience`` seconds.

    A thread that waits is woken by the first item and waits ``together`` seconds more for others: a switch of threads
    costs as much as several items.
    How far time has come is what all sources have told. A source's error is raised where its items are taken.
    Threads are only notified where one waits: putting and taking an item are one step of the interpreter each, and a
    thread says that it waits before it looks for the last time.
    """

    def __init__(self, patience: float | None = None, together: float = 0.0) -> None:
        self._patience, self._together = patience, together
        self._changed = Condition()
        self._waiting: deque[tuple[Place, Arrival | BaseException | None]] = deque()
        self._told: dict[Place, int | None] = {}
        self._threads: list[Thread] = []
        self._sequence = 0
        self._woken = self._over = self._taking = False
        self._putting = 0

    def expect(self) -> Place:
        """One more source will bring items."""
        place = len(self._told)
        self._told[place] = None
        return place

    def read(self, items: Iterable[Arrival]) -> None:
        """Take what a source brings in a thread of its own."""
        thread = Thread(target=self._read, args=(self.expect(), items), name="streamgauge-source", daemon=True)
        self._threads.append(thread)
        thread.start()

    def put(self, place: Place, item: Arrival) -> bool:
        """Hand an item over, waiting for room; false when nobody takes items any more."""
        if len(self._waiting) >= MAX_WAITING_ITEMS:
            with self._changed:
                self._putting += 1
                self._changed.wait_for(lambda: len(self._waiting) < MAX_WAITING_ITEMS or self._over)
                self._putting -= 1
        if not self._over:
            self._waiting.append((place, item))
            self._notify(self._taking)
        return not self._over

    def offer(self, place: Place, item: Input) -> bool:
        """Hand an item over where there is room for it."""
        with self._changed:
            accepted = len(self._waiting) < MAX_WAITING_ITEMS and not self._over
            if accepted:
                self._waiting.append((place, item))
                self._changed.notify_all()
            return accepted

    def _notify(self, awaited: bool | int) -> None:
        if awaited:
            with self._changed:
                self._changed.notify_all()

    def end(self, place: Place, error: BaseException | None = None) -> None:
        """A source has ended, or failed."""
        with self._changed:
            self._waiting.append((place, error))
            self._changed.notify_all()

    def fail(self, error: BaseException) -> None:
        """Something else than a source has failed: it is raised where items are taken."""
        self.end(_NO_SOURCE, error)

    def wake(self) -> None:
        """Something else has happened: let whoever takes items look."""
        with self._changed:
            self._woken = True
            self._changed.notify_all()

    def stop(self) -> None:
        """Nobody takes items any more: sources that wait for room go on and end."""
        with self._changed:
            self._over = True
            self._changed.notify_all()

    def join(self) -> None:
        """Wait for the threads of the sources to end."""
        for thread in self._threads:
            if thread is not current_thread():
                thread.join(LEAVE_S)

    def __iter__(self) -> Iterator[Any]:
        """Until every source has ended."""
        open_sources = set(self._told)
        while open_sources and not self._over:
            for place, item in self._taken():
                if isinstance(item, BaseException):
                    raise item
                if item is None:
                    open_sources.discard(place)
                    del self._told[place]
                    continue
                if (counted := self._counted(place, item)) is not None:
                    yield counted
            yield None

    def _taken(self) -> list[tuple[Place, Arrival | BaseException | None]]:
        if not (self._waiting or self._woken):
            with self._changed:
                self._taking = True
                self._changed.wait_for(lambda: self._waiting or self._woken or self._over, self._patience)
                self._taking = False
            if self._together and self._waiting and not self._over:
                sleep(self._together)
        self._woken = False
        if self._over:
            return []
        taken = [self._waiting.popleft() for _ in range(len(self._waiting))]
        self._notify(self._putting)
        return taken

    def _counted(self, place: Place, item: Arrival) -> Arrival | None:
        if isinstance(item, Placed):
            advance = item.item
            return item._replace(item=self._come_to(place, advance.time)) if isinstance(advance, Advance) else item
        if isinstance(item, StreamElement):
            self._sequence += 1
            return numbered(item, self._sequence - 1)
        return self._come_to(place, item.time)

    def _come_to(self, place: Place, time: int) -> Advance | None:
        """A source says how far time (ms) has come: what all have said of it."""
        self._told[place] = time
        times = [time for time in self._told.values() if time is not None]
        return Advance(min(times)) if len(times) == len(self._told) else None

    def _read(self, place: Place, items: Iterable[Arrival]) -> None:
        error: BaseException | None = None
        try:
            for item in items:
                if not self.put(place, item):
                    break
        except Exception as failed:
            error = failed
        self.end(place, error)
