"""Pacing: elements handed over by event time, at a rate, or as fast as possible; every hand-over is recorded."""

import threading
import time
from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

from streamgauge.harness.forms import Coming, LineForm, Portion, Stream, StreamForm
from streamgauge.harness.systems import Clock
from streamgauge.model.run import Fed
from streamgauge.model.semantics import Due
from streamgauge.oracle.judging.metrics import ADVANCE

HEARTBEAT_MS = 10
"""Interval (wall ms) at which a waiting paced feeder advances the engine's time."""

LOOK_S = 0.1
"""The longest sleep of a schedule, after which a waiting publisher checks whether the run is over."""

SPIN_S = 200e-6
"""How long before a planned time to spin on the clock, since sleep is inaccurate."""

Sleep = Callable[[float], object]
Write = Callable[[bytes], object]


@dataclass(slots=True)
class Schedule:
    """Planned times on a clock: place ``n`` is at ``start + n * every`` ns, however late other places were."""

    start: int
    every: float
    clock: Clock
    sleep: Sleep = time.sleep

    def planned(self, place: float) -> int:
        """The planned time of a place, ns."""
        return self.start + round(place * self.every)

    def wait(
        self,
        place: float,
        stopped: Callable[[], bool],
        tick: Callable[[float], None] | None = None,
        longest: float = LOOK_S,
        spin: float = SPIN_S,
    ) -> int:
        """Wait for a place, or until ``stopped``; returns the planned time (ns).

        Sleeps last ``longest`` s at most; ``tick`` is called with the current place before each. The last ``spin`` s
        are spent spinning.
        """
        due, clock = self.planned(place), self.clock
        while (left := due - (now := clock())) > 0 and not stopped():
            if tick is not None:
                tick((now - self.start) / self.every)
            # ``sleep(0)`` yields to other threads while spinning.
            self.sleep(min(longest, left / 1e9 - spin) if left > 1e9 * spin else 0)
        return due


Element = TypeVar("Element")


class HandoverLog(Generic[Element]):
    """A log of hand-overs in preallocated arrays, so that logging costs little more than reading the clock.

    By the element's place: when it was ``planned``, ``handed`` over and ``acknowledged`` (ns, 0: not yet), and the
    system's number for it (``known_as``), if any.
    """

    def __init__(self, elements: Sequence[Element], clock: Clock) -> None:
        self.elements, self._clock = elements, clock
        # Arrays of machine integers: a list would create an object per time, and garbage collections to measure.
        self.planned, self.handed, self.acknowledged = (array("q", [0]) * len(elements) for _ in range(3))
        self.known_as: list[int | None] = [None] * len(elements)

    @property
    def done(self) -> int:
        """The number of acknowledged elements."""
        return len(self.elements) - self.acknowledged.count(0)

    def feed_settled(
        self,
        feed: Callable[[Element], int | None],
        settle: Callable[[], None],
        places: Iterable[int],
        stopped: Callable[[], bool],
    ) -> None:
        """Hand over the elements of these places, each when the previous one is settled (a closed loop)."""
        clock, elements, known_as = self._clock, self.elements, self.known_as
        planned, handed, acknowledged = self.planned, self.handed, self.acknowledged
        for place in places:
            if stopped():
                return
            planned[place] = handed[place] = clock()
            known_as[place] = feed(elements[place])
            acknowledged[place] = clock()
            settle()

    def feed_planned(
        self,
        feed: Callable[[Element], int | None],
        times: Iterable[tuple[int, float]],
        schedule: Schedule,
        stopped: Callable[[], bool],
    ) -> None:
        """Hand over the elements of (place, position in the schedule) at their times (an open loop).

        A late element is handed over immediately and keeps its planned time: delays that are measured from it include
        the time that a slow system made others wait (no coordinated omission).
        """
        clock = self._clock
        for place, position in times:
            planned = schedule.wait(position, stopped)
            if stopped():
                return
            self.planned[place], self.handed[place] = planned, clock()
            self.known_as[place] = feed(self.elements[place])
            self.acknowledged[place] = clock()


@dataclass(frozen=True, slots=True)
class RunPace:
    """``factor`` is event time over wall time, ``None`` for as fast as possible; ``begin`` and ``advance_to`` in ms.

    If only the last of several due windows counts (``due``), advancing between elements would change which one that is;
    with a ``lateness`` bound (ms) earlier elements may still come. In both cases only the stream's end is announced.
    """

    factor: float | None
    begin: int
    advance_to: int
    due: Due = Due.ALL
    lateness: int | None = None

    @property
    def advances(self) -> bool:
        """Whether time is advanced between elements."""
        return self.due is Due.ALL and self.lateness is None


class StoppedError(Exception):
    """The engine has stopped reading; ``fed`` are the records of the elements so far."""

    def __init__(self, fed: list[Fed]) -> None:
        super().__init__("the engine stopped reading its input")
        self.fed = fed


def feed_fast(
    stream: Stream, pace: RunPace, write: Write, clock: Clock, form: "StreamForm[Any] | None" = None
) -> list[Fed]:
    """Hand over everything as fast as the engine reads (writes block), then advance; one record per element.

    Elements of one write share its time of hand-over; their planned time is when they could be encoded.
    """
    form = form or LineForm()
    handed: list[tuple[Portion, int, int]] = []
    portions = form.portions(stream)
    try:
        while True:
            planned = clock()
            if (portion := next(portions, None)) is None:
                break
            # Without the bytes, since all portions are remembered until the end of the run.
            handed.append((portion._replace(data=b""), planned, clock()))
            write(portion.data)
        last = Portion([ADVANCE], [pace.advance_to], [0], b"")
        handed.append((last, planned, clock()))
        write(form.encoded([form.advance(pace.advance_to)]) + form.end())
    except OSError as error:
        raise StoppedError(_records(handed)) from error
    return _records(handed)


def _records(handed: Iterable[tuple[Portion, int, int]]) -> list[Fed]:
    """The records of portions with their times; they are created after the run, when the engine does not wait."""
    return [
        Fed(sequence, time, planned, at, size)
        for portion, planned, at in handed
        for sequence, time, size in zip(portion.sequences, portion.times, portion.sizes, strict=True)
    ]


class PacedFeeder:
    """Hands over each element at its time, whatever the engine does: writes are done by another thread.

    That thread writes all waiting items, as many at once as the form allows. So a slow engine makes writes late, but
    never the recorded times of hand-over.
    """

    def __init__(
        self,
        pace: RunPace,
        write: Write,
        clock: Clock,
        sleep: Sleep = time.sleep,
        form: "StreamForm[Any] | None" = None,
    ) -> None:
        self._pace, self._write, self._clock = pace, write, clock
        self._form = form or LineForm()
        self._begin, self._every = pace.begin, 1e6 / (pace.factor or 1.0)
        self._schedule = Schedule(0, self._every, clock, sleep)
        self._queue: SimpleQueue[Any] = SimpleQueue()
        self._stopped = threading.Event()
        self._fed: list[Fed] = []
        self._start, self._advanced = 0, pace.begin - 1
        self._until = self._advanced

    def feed(self, stream: Stream, start: int) -> list[Fed]:
        """Hand over the stream, whose ``begin`` corresponds to the monotonic ``start`` (ns), and the last advance."""
        with self._form.one_by_one(stream) as coming:
            return self.hand_over(coming, start)

    def hand_over(self, coming: Iterable[Coming[Any]], start: int) -> list[Fed]:
        """``feed`` for elements that have already been read."""
        self._schedule.start = self._start = start
        writer = threading.Thread(target=self._drain, name="feed-writer", daemon=True)
        writer.start()
        last = self._advanced = self._pace.begin - 1
        for sequence, at, size, item in coming:
            # Only now: until here others at the same time could follow.
            if at > last:
                self._tell(last)
                self._wait(at)
                last = at
            self._put(item, sequence, at, size)
        until = self._pace.advance_to
        if last < until:
            self._tell(last)
        self._wait(until)
        self._put(self._form.advance(until), ADVANCE, until)
        self._queue.put(None)
        writer.join()
        return self._fed

    def _wait(self, until: int) -> None:
        """Wait for the wall time of ``until`` (ms), advancing the engine's time meanwhile."""
        self._until = until
        self._schedule.wait(until - self._begin, self._stopped.is_set, self._tick, HEARTBEAT_MS / 1e3, 0.0)
        if self._stopped.is_set():
            raise StoppedError(self._fed)

    def _tick(self, place: float) -> None:
        # One ms less: elements at the current ms may still come.
        self._tell(min(self._until, self._begin + int(place)) - 1)

    def _tell(self, come: int) -> None:
        """Advance the engine's time to ``come`` (ms), at which all elements have been handed over."""
        if come > self._advanced:
            self._advanced = come
            if self._pace.advances:
                self._put(self._form.advance(come), ADVANCE, come)

    def _put(self, item: Any, sequence: int, at: int, size: int = 0) -> None:
        """Pass an element or advance, planned for the wall time of ``at`` (ms), to the writer."""
        planned = self._start + round((at - self._begin) * self._every)
        self._fed.append(Fed(sequence, at, planned, self._clock(), size))
        self._queue.put(item)

    def _drain(self) -> None:
        form, more = self._form, True
        while more:
            items = [self._queue.get()]
            # Everything that waits, so that an engine that was slow catches up with few writes.
            while len(items) < form.most and items[-1] is not None and not self._queue.empty():
                items.append(self._queue.get())
            if items[-1] is None:
                items.pop()
                more = False
            data = (form.encoded(items) if items else b"") + (b"" if more else form.end())
            try:
                if data:
                    self._write(data)
            except OSError:
                self._stopped.set()
                return
