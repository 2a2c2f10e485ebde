"""Feeding an engine: paced by event time, or as fast as it takes it; every hand-over is recorded."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from queue import SimpleQueue

from streamgauge.formats.lines import encode_advance
from streamgauge.formats.written import Written, written
from streamgauge.model.element import StreamElement
from streamgauge.model.run import Fed
from streamgauge.model.semantics import Due
from streamgauge.oracle.judging.clock import ADVANCE

HEARTBEAT_MS = 10
"""While a paced feeder waits, it tells the engine how far time has come this often (wall ms)."""

CHUNK = 2**15
"""Bytes that are written in one go without a pace, half of what a pipe holds."""

Clock = Callable[[], int]
Sleep = Callable[[float], None]
Write = Callable[[bytes], object]


@dataclass(frozen=True, slots=True)
class Pace:
    """``factor`` is event time over wall time, ``None`` as fast as possible; ``begin`` and ``advance_to`` in ms.

    Where only the last of several due windows counts (``due``), advancing between elements would change which one
    that is; with a ``lateness`` bound (ms) what is earlier may still come: then only the end of the stream is told.
    """

    factor: float | None
    begin: int
    advance_to: int
    due: Due = Due.ALL
    lateness: int | None = None

    @property
    def tells(self) -> bool:
        """Whether the engine is told between elements how far time has come."""
        return self.due is Due.ALL and self.lateness is None


class StoppedError(Exception):
    """The engine is gone: nobody reads any more. ``fed`` is what was handed over until then."""

    def __init__(self, fed: list[Fed]) -> None:
        super().__init__("the engine stopped reading its input")
        self.fed = fed


def feed_fast(stream: Iterable[StreamElement | Written], pace: Pace, write: Write, clock: Clock) -> list[Fed]:
    """Hand over everything as fast as the engine takes it (writing blocks), then advance; one record each.

    What is written in one go was handed over when all of it was.
    """
    fed: list[Fed] = []
    try:
        for together in _chunks(written(stream)):
            before = clock()
            write(b"".join([each.line for each in together]))
            handed = clock()
            fed.extend([Fed(each.sequence, each.time, before, handed, each.size) for each in together])
        before = clock()
        write(encode_advance(pace.advance_to))
    except OSError as error:
        raise StoppedError(fed) from error
    fed.append(Fed(ADVANCE, pace.advance_to, before, clock()))
    return fed


def _chunks(stream: Iterable[Written]) -> Iterator[list[Written]]:
    """As many elements as are written in one go."""
    together: list[Written] = []
    room = CHUNK
    for each in stream:
        together.append(each)
        room -= len(each.line)
        if room <= 0:
            yield together
            together, room = [], CHUNK
    if together:
        yield together


class PacedFeeder:
    """Hands over each element when its time has come, whatever the engine does: writing has a thread of its own."""

    def __init__(self, pace: Pace, write: Write, clock: Clock, sleep: Sleep = time.sleep) -> None:
        self._pace = pace
        self._factor = pace.factor or 1.0
        self._write = write
        self._clock = clock
        self._sleep = sleep
        self._queue: SimpleQueue[bytes | None] = SimpleQueue()
        self._stopped = threading.Event()
        self._fed: list[Fed] = []
        self._start = 0

    def feed(self, stream: Iterable[StreamElement | Written], start: int) -> list[Fed]:
        """Hand over the stream, whose time ``begin`` is the monotonic ``start`` (ns); ends with the last advance."""
        self._start = start
        writer = threading.Thread(target=self._drain, name="feed-writer", daemon=True)
        writer.start()
        told = self._pace.begin - 1
        last = told
        for sequence, at, size, line in written(stream):
            if at > last:
                told = self._wait(at, self._tell(last, told))
            last = max(last, at)
            self._put(line, Fed(sequence, at, self._wall(at), 0, size))
        until = self._pace.advance_to
        self._wait(until, self._tell(last, told) if last < until else last)
        self._put(encode_advance(until), Fed(ADVANCE, until, self._wall(until), 0))
        self._queue.put(None)
        writer.join()
        return self._fed

    def _wait(self, until: int, told: int) -> int:
        """Sleep to the wall time of ``until`` (ms), saying on the way how far time has come; returns what was told."""
        while not self._stopped.is_set():
            left = self._wall(until) - self._clock()
            if left <= 0:
                break
            come = min(until - 1, self._now() - 1)
            told = self._tell(come, told)
            self._sleep(min(left / 1e9, HEARTBEAT_MS / 1e3))
        if self._stopped.is_set():
            raise StoppedError(self._fed)
        return told

    def _tell(self, come: int, told: int) -> int:
        """Say that time has come to ``come`` (ms) unless that was told: what is at it has come."""
        if come <= told:
            return told
        if self._pace.tells:
            self._put(encode_advance(come), Fed(ADVANCE, come, self._wall(come), 0))
        return come

    def _put(self, line: bytes, fed: Fed) -> None:
        self._queue.put(line)
        self._fed.append(Fed(fed.sequence, fed.time, fed.planned, self._clock(), fed.size))

    def _drain(self) -> None:
        while (line := self._queue.get()) is not None:
            try:
                self._write(line)
            except OSError:
                self._stopped.set()
                return

    def _wall(self, event: int) -> int:
        return self._start + round((event - self._pace.begin) * 1e6 / self._factor)

    def _now(self) -> int:
        """The stream's time now, ms."""
        return self._pace.begin + int((self._clock() - self._start) * self._factor / 1e6)
