"""Evaluation that can be stopped: a thread that has computed for too long gets an exception at its next instruction.

CPython delivers it between two instructions of Python, so what runs within must be Python for the most part, calls into
C that each end soon, and must leave nothing half done that others see. Time is CPU time of the thread: a machine under
load stops nobody early. Collections of garbage run in whichever thread is due, over the objects of all threads: to a
thread they count as much as its own computing at most.
"""

import ctypes
import gc
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from math import inf
from operator import attrgetter
from threading import Lock, Thread, get_ident
from typing import Final

from streamgauge.incremental.budget import TooMuchError

LOOK_S: Final = 0.02
"""How often it is asked how long threads have computed."""

SOON_S: Final = 0.0002
"""When a thread is looked at again that collected garbage when it was to be stopped; the switch interval until then.

A thread that collects for most of the time lets others go on in a collection only: the usual interval, 5 ms, is
longer than its way from one collection to the next.
"""

IDLE: Final = 25
"""Looks without anybody to watch after which nobody looks any more: a thread takes longer to start than most work."""


AGAIN_S: Final = 1.0
"""After how much CPU a thread that was stopped and goes on is stopped again: CPython drops what comes in a finaliser.

Releasing the objects of a thread that is stopped may take 0.1 s and more. An exception that came again meanwhile would
come at the end of the block, where the thread says that it computes no more.
"""


class DeadlineError(TooMuchError):
    """An evaluation that was stopped because it took too long."""

    def __init__(self) -> None:
        super().__init__("its evaluation takes longer than it may")


class GrowthError(TooMuchError):
    """An evaluation that was stopped because the process grew too much meanwhile."""

    def __init__(self) -> None:
        super().__init__("its evaluation takes more memory than it may")


class Interruption(BaseException):
    """The exception of a thread that is stopped: no handler of errors on the way takes it for one of its own."""


@dataclass(eq=False, slots=True)
class Watched:
    """A thread that computes: each of its ``steps`` may take ``seconds`` by its CPU clock, and ``growth`` bytes.

    ``began`` is the clock (s) and ``held`` the bytes of the process when the last step was seen to begin.
    """

    thread: int
    clock: int
    seconds: float
    growth: int | None
    began: float = 0.0
    held: int = 0
    worked: float = 0.0
    """The seconds of its clock without collections of garbage when it was last looked at."""
    charged: float = 0.0
    """The bytes of growth that fell to it during the step, by its share of the CPU time between two looks."""
    steps: int = 0
    seen: int = -1
    stopped: type[TooMuchError] | None = None
    """The error that it is stopped by, once it is."""
    sent: float = -inf
    """Its clock when it was stopped last (s)."""
    whole: bool = False
    """Whether what is done now is not to be stopped in its midst."""
    collected: float = 0.0
    """The seconds of its clock that collections of garbage took, and ``collecting`` when the one that runs began."""
    collecting: float | None = None
    told: bool = False
    """Whether a collection runs in this thread, with its callbacks (``gc.callbacks``): CPython drops errors there."""
    spared: float = 0.0
    """The seconds of collections before the step."""
    missed: bool = False
    """Whether it collected garbage when it was to be stopped."""

    def collect(self, phase: str) -> None:
        """A collection of garbage begins (``start``) or ends in this thread."""
        self.told = True
        now = time.clock_gettime(self.clock)
        if phase == "start":
            self.collecting = now
        elif self.collecting is not None:
            self.collected += now - self.collecting
            self.collecting = None

    def collected_by(self, now: float) -> float:
        """The seconds of its clock that collections took, at a time of it."""
        collecting = self.collecting
        return self.collected + (0.0 if collecting is None else now - collecting)

    def look(self, now: float, size: int) -> type[TooMuchError] | None:
        """The error that stops it, if something does."""
        collected = self.collected_by(now)
        if self.seen != self.steps:
            self.seen, self.began, self.held, self.charged, self.spared = self.steps, now, size, 0.0, collected
        self.worked = now - collected
        took = now - self.began
        if min(took, 2 * (took - (collected - self.spared))) >= self.seconds:
            return DeadlineError
        if self.growth is not None and min(size - self.held, 2 * self.charged) >= self.growth:
            return GrowthError
        return None


class Deadlines:
    """Watches those that compute, from one thread of its own, which is there while there are any, or just were.

    Thread-safe.

    ``size`` gives the bytes of the process. Its growth between two looks falls to the threads by the CPU time of each
    meanwhile: of those that may not grow so much, and to whom half of that fell, the one is stopped that most fell to,
    and until its memory is back the others are not charged with it.
    """

    def __init__(self, size: Callable[[], int]) -> None:
        self._changed, self._watched = Lock(), dict[int, Watched]()
        self._held = 0
        self._leaving = False
        self._looking, self._size = False, size
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._begin_again)

    @contextmanager
    def within(self, seconds: float, growth: int | None = None) -> Iterator[Watched]:
        """DeadlineError in what is done here once this thread has computed for so many seconds.

        GrowthError where the process has grown by so many bytes meanwhile. A caller that counts ``steps`` has as
        much for each of them.
        """
        ident = get_ident()
        clock = _clock(ident)
        watched = Watched(ident, clock, seconds, growth)
        watched.look(time.clock_gettime(clock), 0 if growth is None else self._size())
        before = self._watched.get(ident)
        self._watch(watched)
        try:
            try:
                yield watched
            finally:
                self._forget(watched, before)
        except Interruption:
            stopped = watched.stopped
            self._forget(watched, before)  # the first may have been interrupted too
            if stopped is None:
                raise
            raise stopped from None

    @contextmanager
    def uninterrupted(self, watched: Watched) -> Iterator[None]:
        """A block that the watched thread completes before it is stopped: for shared data, and for their locks.

        The error that was due before comes at the beginning, one that was due meanwhile at the end.
        """
        with self._changed:
            watched.whole = True
            if watched.stopped is not None:
                _receive()
                raise Interruption
        try:
            yield
        finally:
            watched.whole = False
        if watched.stopped is not None:
            raise Interruption

    def _watch(self, watched: Watched) -> None:
        with self._changed:
            if not self._watched:
                self._held = watched.held
            self._watched[watched.thread] = watched
            if not self._looking:
                self._looking = True
                if self._collect not in gc.callbacks:
                    gc.callbacks.insert(0, self._collect)
                    gc.callbacks.append(self._collected)
                Thread(target=self._look, name="streamgauge-deadlines", daemon=True).start()

    def _forget(self, watched: Watched, before: Watched | None) -> None:
        """End the watch of a thread: an exception that was sent and has not come yet comes here.

        CPython can take one back, but looks for it at each call from then on: a traced thread never gets beyond that.
        """
        while True:
            try:
                watched.whole = True
                with self._changed:
                    self._leaving |= watched.stopped is GrowthError
                    if before is None:
                        self._watched.pop(watched.thread, None)
                    else:
                        self._watched[watched.thread] = before
                    _receive()
            except Interruption:
                continue
            return

    def _look(self) -> None:
        idle, missed = 0, False
        while True:
            if missed:
                _nap(SOON_S)
            else:
                time.sleep(LOOK_S)
            with self._changed:
                idle = 0 if self._watched else idle + 1
                if idle > IDLE:
                    self._looking = False
                    gc.callbacks.remove(self._collect)
                    gc.callbacks.remove(self._collected)
                    return
                self._stop()
                missed = any(watched.missed for watched in self._watched.values())

    def _collect(self, phase: str, _about: Mapping[str, int]) -> None:
        """Tell a watched thread of a collection. No lock is taken: a thread may come here with any lock held."""
        watched = self._watched.get(get_ident())
        if watched is not None:
            watched.collect(phase)

    def _collected(self, phase: str, _about: Mapping[str, int]) -> None:
        """The last callback of a collection: the thread may be stopped again."""
        watched = self._watched.get(get_ident())
        if watched is not None and phase == "stop":
            watched.told = False

    def _begin_again(self) -> None:
        """A forked child has nobody who looks."""
        self._changed, self._watched, self._looking = Lock(), {}, False

    def _stop(self) -> None:
        size = self._size() if any(watched.growth is not None for watched in self._watched.values()) else 0
        self._excuse(size)
        clocks = [(watched, time.clock_gettime(watched.clock)) for watched in self._watched.values()]
        self._charge(size, clocks)
        grown: list[Watched] = []
        for watched, now in clocks:
            if watched.stopped is not None:
                _stop(watched)
                continue
            error = watched.look(now, size)
            if error is GrowthError:
                grown.append(watched)
            elif error is not None:
                watched.stopped = error
                _stop(watched)
        if grown:
            largest = max(grown, key=attrgetter("charged"))
            largest.stopped = GrowthError
            _stop(largest)
            self._excuse(size)

    def _excuse(self, size: int) -> None:
        """Charge nobody with what one takes that was stopped for its growth, up to the look after its end."""
        taking = any(watched.stopped is GrowthError for watched in self._watched.values())
        if taking or self._leaving:
            for watched in self._watched.values():
                watched.held, watched.charged = size, 0.0
        self._leaving = False

    def _charge(self, size: int, clocks: Sequence[tuple[Watched, float]]) -> None:
        """Divide the growth since the last look among the threads by the CPU time of each since then."""
        grown, self._held = max(0, size - self._held), size
        worked = [now - watched.collected_by(now) - watched.worked for watched, now in clocks]
        total = sum(worked)
        for (watched, _), own in zip(clocks, worked, strict=True):
            watched.charged += grown * own / total if total else 0.0


def _clock(thread: int) -> int:
    """The clock of a thread's CPU time; of time itself where the system has none for threads (macOS)."""
    own = getattr(time, "pthread_getcpuclockid", None)
    return time.CLOCK_MONOTONIC if own is None else int(own(thread))


_NAPPING: Final = Lock()
"""Held while the switch interval is another one; a fork waits for its end, or the child would keep the interval."""
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_NAPPING.acquire, after_in_parent=_NAPPING.release, after_in_child=_NAPPING.release)


def _nap(seconds: float) -> None:
    """Sleep, and go on as soon after it: not after the usual switch interval."""
    with _NAPPING:  # of two, the second would take the interval of the first for the usual one
        usual = sys.getswitchinterval()
        sys.setswitchinterval(seconds)
        try:
            time.sleep(seconds)
        finally:
            sys.setswitchinterval(usual)


def _stop(watched: Watched) -> None:
    """Stop a thread, and again when it goes on for ``AGAIN_S``.

    In a collection of garbage it is not stopped: its next instruction is one of those who are told of collections, and
    CPython drops what comes there.
    """
    now = time.clock_gettime(watched.clock)
    due = not watched.whole and now - watched.sent >= AGAIN_S
    watched.missed = due and not _send(watched)
    if due and not watched.missed:
        watched.sent = now


def _send(watched: Watched) -> bool:
    """Interrupt a thread; unless it collects garbage, which is asked last of all.

    Between that question and the call is no instruction at which CPython lets another thread go on.
    """
    number, send = ctypes.c_ulong(watched.thread), ctypes.pythonapi.PyThreadState_SetAsyncExc
    error = ctypes.py_object(Interruption)
    if watched.told:
        return False
    send(number, error)
    return True


def _receive() -> None:
    """Instructions at which an exception comes that was sent to this thread."""
    for _ in range(2):
        pass


@cache
def _statm(process: int) -> int:
    """A file about a process, which stays open: opening costs more than the rest."""
    return os.open(f"/proc/{process}/statm", os.O_RDONLY | os.O_CLOEXEC)


def resident() -> int:
    """Bytes that the process has of the machine's memory; 0 where /proc does not say."""
    try:
        return int(os.pread(_statm(os.getpid()), 128, 0).split()[1]) * PAGE
    except OSError:
        return 0


PAGE: Final = os.sysconf("SC_PAGE_SIZE")
DEADLINES: Final = Deadlines(resident)
"""Of this process."""
