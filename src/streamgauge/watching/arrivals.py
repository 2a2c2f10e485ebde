"""Several sources merged into one sequence in the order of arrival."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from threading import Condition, Thread, current_thread
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from streamgauge.formats.lines import Advance, Input
from streamgauge.model.element import StreamElement
from streamgauge.sources.named import numbered

if TYPE_CHECKING:
    from streamgauge.formats.batches import Taken

MAX_WAITING_ITEMS = 4096
"""Items that may wait to be processed; then sources are blocked."""

MAX_WAITING_BATCHES = 16
"""Items that may wait before a batch of elements has to, which takes as much memory as 1,000 elements or more."""

LEAVE_S = 1.0
"""Seconds that closing waits for the threads of all sources: an interrupted command ends within 5."""

Place: TypeAlias = int
"""The number of a source."""

_NO_SOURCE: Place = -1


class Placed(msgspec.Struct, frozen=True, gc=False):
    """An item with its source and the position after it there; ``None`` for an advance that other sources hold back.

    Its element keeps the number that its source gave it.
    """

    source: int
    item: "Taken | None"
    place: object


Arrival: TypeAlias = "Taken | Placed"
"""An item of a source."""


class MergedStreams:
    """Items in order of arrival, renumbered; yields ``None`` after ``patience`` seconds without an item.

    ``until_due`` may be replaced to give the patience of each wait. The reading thread is woken by the first item and
    waits ``together`` seconds for more, because switching threads costs as much as processing several items. Time
    advances to the minimum over all sources. A source's error is raised in the reading thread.

    The queue is a deque, whose append and popleft are atomic, so no lock is taken per item. A thread announces that it
    waits (``_taking``, ``_putting``) before it checks the queue for the last time; hence either it sees the other
    thread's change, or the other thread sees the announcement and notifies it.
    """

    def __init__(self, patience: float | None = None, together: float = 0.0) -> None:
        self.until_due: Callable[[], float | None] = lambda: patience
        self._together = together
        self._changed = Condition()
        self._waiting: deque[tuple[Place, Arrival | BaseException | None]] = deque()
        self._times: dict[Place, int | None] = {}
        self._threads: list[Thread] = []
        self._sequence = 0
        self._woken = self._over = self._taking = False
        self._putting = 0

    def expect(self) -> Place:
        """Register a source; returns its number."""
        place = len(self._times)
        self._times[place] = None
        return place

    def read(self, items: "Iterable[Arrival]") -> None:
        """Read a source in a new thread."""
        thread = Thread(target=self._read, args=(self.expect(), items), name="streamgauge-source", daemon=True)
        self._threads.append(thread)
        thread.start()

    def put(self, place: Place, item: "Arrival") -> bool:
        """Add an item, waiting for room; false after ``stop``."""
        # An item of a durable watch is wrapped with its position.
        single = isinstance(item.item if isinstance(item, Placed) else item, StreamElement | Advance)
        limit = MAX_WAITING_ITEMS if single else MAX_WAITING_BATCHES
        if len(self._waiting) >= limit:
            with self._changed:
                self._putting += 1
                # Several sources may pass the test at once and exceed the limit by one item each, which is harmless.
                self._changed.wait_for(lambda: len(self._waiting) < limit or self._over)
                self._putting -= 1
        if not self._over:
            self._waiting.append((place, item))
            self._notify(self._taking)
        return not self._over

    def offer(self, place: Place, item: Input) -> bool:
        """Add an item if there is room; returns whether it was added."""
        with self._changed:
            # Called in the event loop, which must not block: a full queue is waited for in a thread
            # (`AsyncWatch._pump`).
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
        """Record that a source has ended, or failed with ``error``."""
        with self._changed:
            self._waiting.append((place, error))
            self._changed.notify_all()

    def fail(self, error: BaseException) -> None:
        """Raise an error that is not a source's in the reading thread."""
        self.end(_NO_SOURCE, error)

    def wake(self) -> None:
        """Wake the reading thread without an item."""
        with self._changed:
            self._woken = True
            self._changed.notify_all()

    def stop(self) -> None:
        """Stop reading; sources that wait for room are released and end."""
        with self._changed:
            self._over = True
            self._changed.notify_all()

    def join(self) -> None:
        """Wait for the threads of the sources to end."""
        # One deadline for all threads together; they are daemons, so one that hangs in a read does not keep the
        # process.
        end = monotonic() + LEAVE_S
        for thread in self._threads:
            # A source may close the watch from within its own iteration.
            if thread is not current_thread():
                thread.join(max(0.0, end - monotonic()))

    def __iter__(self) -> Iterator[Any]:
        """Yield items until every source has ended."""
        # All sources are registered before the iteration begins.
        open_sources = set(self._times)
        while open_sources and not self._over:
            for place, item in self._taken():
                if isinstance(item, BaseException):
                    raise item
                if item is None:
                    open_sources.discard(place)
                    # An ended source no longer holds time back.
                    del self._times[place]
                    continue
                if (counted := self._counted(place, item)) is not None:
                    yield counted
            # After each batch, too: the watch looks at its clock between items, not only when none come.
            yield None

    def _taken(self) -> "list[tuple[Place, Arrival | BaseException | None]]":
        if not (self._waiting or self._woken):
            with self._changed:
                self._taking = True
                self._changed.wait_for(lambda: self._waiting or self._woken or self._over, self.until_due())
                self._taking = False
            # Outside the lock, so that sources can add their items meanwhile.
            if self._together and self._waiting and not self._over:
                sleep(self._together)
        # Before the items are taken: a wake-up that comes later is for the next round.
        self._woken = False
        if self._over:
            return []
        taken = [self._waiting.popleft() for _ in range(len(self._waiting))]
        self._notify(self._putting)
        return taken

    def _counted(self, place: Place, item: "Arrival") -> "Arrival | None":
        if isinstance(item, Placed):
            advance = item.item
            if not isinstance(advance, Advance):
                return item
            # The position counts even while the advance is held back by other sources.
            return Placed(item.source, self._come_to(place, advance.time), item.place)
        if isinstance(item, Advance):
            return self._come_to(place, item.time)
        begin = self._sequence
        # The numbers that the sources gave would collide.
        self._sequence += 1 if isinstance(item, StreamElement) else len(item)
        return numbered(item, begin)

    def _come_to(self, place: Place, time: int) -> Advance | None:
        """Record a source's time (ms); returns the advance to the minimum of all, ``None`` while some have none."""
        self._times[place] = time
        times = [time for time in self._times.values() if time is not None]
        return Advance(min(times)) if len(times) == len(self._times) else None

    def _read(self, place: Place, items: "Iterable[Arrival]") -> None:
        error: BaseException | None = None
        try:
            for item in items:
                if not self.put(place, item):
                    break
        # Raised in the thread that iterates (`__iter__`), where somebody can catch it.
        except Exception as failed:
            error = failed
        self.end(place, error)
