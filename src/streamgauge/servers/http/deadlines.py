"""Limits on the CPU time and memory of an evaluation: its thread gets an asynchronous exception when it exceeds them.

CPython raises the exception between two bytecode instructions. The evaluation must therefore be mostly Python, call
into C only briefly, and change no shared data outside ``uninterrupted``. Time is CPU time of the thread, so a busy
machine does not cut evaluations short. CPython collects garbage in whichever thread triggers it, over the objects of
all threads; such a collection counts at most as much as the thread's own computing.

A worked example: a thread with 1 s of budget has used 1.5 s, of which 0.9 s were collections. Its own 0.6 s count
twice at most, 1.2 s, so it is stopped. Had 1.2 s been collections, it would count 0.6 s and go on.
"""

import ctypes
import gc
import os
import sys
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from math import inf
from operator import attrgetter
from threading import Lock, Thread, get_ident
from typing import Final

from streamgauge.incremental.budget import TooMuchError

LOOK_S: Final = 0.02
"""Interval between two checks of all watched threads."""

SOON_S: Final = 0.0002
"""Interval between checks, and CPython's switch interval, while a thread to be stopped is collecting garbage.

A thread that collects most of the time gives the interpreter lock up only inside a collection: between two collections
it runs for less than the usual switch interval of 5 ms.
"""

MAX_IDLE_CHECKS: Final = 25
"""Checks without a watched thread after which that thread ends: starting one takes longer than most queries."""


AGAIN_S: Final = 1.0
"""CPU time after which a thread that was interrupted but still runs is interrupted again.

The first exception may be lost, because CPython drops those raised in a finaliser. Unwinding a stopped thread releases
its objects, which may take 0.1 s and more; a second exception in that time would reach the end of the block, where
the thread is being unregistered.
"""


class DeadlineError(TooMuchError):
    """An evaluation that exceeded its CPU time."""

    def __init__(self) -> None:
        super().__init__("its evaluation takes longer than it may")


class GrowthError(TooMuchError):
    """An evaluation during which the process grew beyond its memory limit."""

    def __init__(self) -> None:
        super().__init__("its evaluation takes more memory than it may")


class Interruption(BaseException):
    """Interrupts a thread. A BaseException, so that no ``except Exception`` on the way swallows it."""


@dataclass(slots=True)
class _Charge:
    """The CPU time and growth of a step or stage since a check saw it begin.

    That was at CPU clock ``began`` (s), when the process had ``size`` bytes and collections had taken ``spared`` s.
    """

    began: float = 0.0
    size: int = 0
    spared: float = 0.0
    growth: float = 0.0
    """The thread's share of the process's growth (bytes), by its share of the CPU time between two checks."""

    def seconds(self, now: float, collected: float) -> float:
        """CPU time (s) up to ``now``, when collections have taken ``collected`` s."""
        took = now - self.began
        # Collections count up to the thread's own time: it may have made the garbage, or only have been next in turn.
        return min(took, 2 * (took - (collected - self.spared)))

    def bytes(self, size: int) -> float:
        """The growth up to a process size of ``size`` bytes."""
        # At least half of the growth has to be this thread's, or it would be stopped for a neighbour's.
        return min(size - self.size, 2 * self.growth)


@dataclass(eq=False, slots=True)
class Watched:
    """A thread whose ``steps`` may each take ``seconds`` of CPU time and grow the process by ``growth`` bytes.

    Where a step has stages, each value of ``stage`` has the limits to itself, and the step those of all that were seen.
    """

    thread: int
    clock: int
    seconds: float
    growth: int | None
    stage: Callable[[], Hashable] = lambda: None
    worked: float = 0.0
    """Its CPU time (s) without garbage collections at the last check."""
    steps: int = 0
    seen: int = -1
    stages: dict[Hashable, None] = field(default_factory=dict)
    """The stages of the step that were seen, in order of the last time."""
    step_charge: _Charge = field(default_factory=_Charge)
    stage_charge: _Charge = field(default_factory=_Charge)
    stopped: type[TooMuchError] | None = None
    """The error of a thread that is being stopped."""
    sent: float = -inf
    """Its CPU clock (s) when it was interrupted last."""
    whole: bool = False
    """Whether it is in an ``uninterrupted`` block."""
    collected: float = 0.0
    """CPU time (s) of its finished garbage collections; ``collecting`` is the clock when the current one began."""
    collecting: float | None = None
    in_collection: bool = False
    """Whether a collection runs in it, callbacks (``gc.callbacks``) included: CPython drops exceptions there."""
    missed: bool = False
    """Whether the last attempt to interrupt it came during a collection."""

    def collect(self, phase: str) -> None:
        """A garbage collection begins (``start``) or ends in this thread."""
        # At the start and at the end alike: the callbacks of both phases are bytecode in which CPython drops
        # exceptions.
        self.in_collection = True
        now = time.clock_gettime(self.clock)
        if phase == "start":
            self.collecting = now
        elif self.collecting is not None:
            self.collected += now - self.collecting
            self.collecting = None

    def collected_by(self, now: float) -> float:
        """CPU time (s) of all collections up to ``now``, a reading of its clock."""
        collecting = self.collecting
        return self.collected + (0.0 if collecting is None else now - collecting)

    def look(self, now: float, size: int) -> type[TooMuchError] | None:
        """The error of a limit that is exceeded at CPU clock ``now`` and process size ``size``, if any."""
        collected = self.collected_by(now)
        self._begin(self.stage(), now, size, collected)
        self.worked = now - collected
        # A worked example: 10 s for each of three queries. The first is stopped after 10 s. If each takes 4 s, and so
        # again at further reports of the same element, the step is stopped after 30 s.
        for charge, parts in ((self.stage_charge, 1), (self.step_charge, len(self.stages))):
            if charge.seconds(now, collected) >= parts * self.seconds:
                return DeadlineError
            if self.growth is not None and charge.bytes(size) >= parts * self.growth:
                return GrowthError
        return None

    def _begin(self, stage: Hashable, now: float, size: int, collected: float) -> None:
        """Begin to charge a step, or a stage, that was not under way at the last check."""
        # The watched thread only increments `steps`; the reading of clocks, which costs a system call, is left to the
        # checks. A step thus begins for its limits at the first check that sees it, up to `LOOK_S` late.
        if self.seen != self.steps:
            self.seen, self.step_charge = self.steps, _Charge(now, size, collected)
            self.stages.clear()
        if next(reversed(self.stages), self) != stage:
            self.stages.pop(stage, None)
            self.stages[stage], self.stage_charge = None, _Charge(now, size, collected)

    def charge(self, growth: float) -> None:
        """Charge it with bytes by which the process has grown."""
        self.step_charge.growth += growth
        self.stage_charge.growth += growth

    def excuse(self, size: int) -> None:
        """Begin to charge growth anew, from a process size in bytes."""
        for charge in (self.step_charge, self.stage_charge):
            charge.size, charge.growth = size, 0.0


class Deadlines:
    """Checks the watched threads from a thread of its own, which ends soon after the last of them. Thread-safe.

    ``size`` returns the bytes of the process. Growth between two checks is divided among the threads by the CPU time
    that they used in between. If several exceed their limit, the one with the largest share is stopped, and the others
    are not charged until it has ended and released its memory.
    """

    def __init__(self, size: Callable[[], int]) -> None:
        self._changed, self._watched = Lock(), dict[int, Watched]()
        self._last_size = 0
        self._leaving = False
        self._looking, self._size = False, size
        # The lock may be held by a thread that does not exist in the child.
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._begin_again)

    @contextmanager
    def within(
        self, seconds: float, growth: int | None = None, stage: Callable[[], Hashable] = lambda: None
    ) -> Iterator[Watched]:
        """Raise DeadlineError in the block once this thread has used ``seconds`` of CPU time in it.

        GrowthError once the process has grown by ``growth`` bytes. A caller that increments ``steps`` has both limits
        for each step, and for each ``stage`` of a step, which another thread calls: it takes no locks.
        """
        ident = get_ident()
        clock = _clock(ident)
        watched = Watched(ident, clock, seconds, growth, stage)
        # Takes the base values of the first step before the thread is watched, or work before the block would count.
        watched.look(time.clock_gettime(clock), 0 if growth is None else self._size())
        # An outer block of the same thread: it is watched again after this one, but not meanwhile.
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
            # Blocks nest: an exception sent for the outer block of this thread is the outer block's to translate.
            if stopped is None:
                raise
            raise stopped from None

    @contextmanager
    def uninterrupted(self, watched: Watched) -> Iterator[None]:
        """A block that the watched thread completes before it is stopped, for changes to shared data under a lock.

        A stop that was pending is raised before the block, one that came during the block after it.
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
                # Growth while nobody was watched belongs to no thread.
                self._last_size = watched.step_charge.size
            self._watched[watched.thread] = watched
            if not self._looking:
                self._looking = True
                if self._collect not in gc.callbacks:
                    # First and last of all callbacks, so that `in_collection` is true while any other callback runs.
                    gc.callbacks.insert(0, self._collect)
                    gc.callbacks.append(self._collected)
                # A daemon: the end of the process must not wait for `MAX_IDLE_CHECKS` more checks.
                Thread(target=self._look, name="streamgauge-deadlines", daemon=True).start()

    def _forget(self, watched: Watched, before: Watched | None) -> None:
        """Unregister a thread, and receive an exception that was sent to it but not raised yet.

        CPython can also revoke a pending exception (by NULL), but a thread under ``sys.settrace`` then loops for ever.
        """
        # Again after each Interruption: one may arrive anywhere in here, even on the way out of the lock.
        while True:
            try:
                watched.whole = True
                with self._changed:
                    # Its memory is released after this, so the next check would charge its neighbours for what they did
                    # not take.
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
                # Decided under the lock in which `_watch` tests `_looking`: a thread that begins now finds this one
                # alive or starts another.
                idle = 0 if self._watched else idle + 1
                if idle > MAX_IDLE_CHECKS:
                    self._looking = False
                    gc.callbacks.remove(self._collect)
                    gc.callbacks.remove(self._collected)
                    return
                self._stop()
                missed = any(watched.missed for watched in self._watched.values())

    def _collect(self, phase: str, _about: Mapping[str, int]) -> None:
        """The first callback of a collection. Takes no lock: the collecting thread may hold any of them."""
        watched = self._watched.get(get_ident())
        if watched is not None:
            watched.collect(phase)

    def _collected(self, phase: str, _about: Mapping[str, int]) -> None:
        """The last callback of a collection, after which the thread can be interrupted again."""
        watched = self._watched.get(get_ident())
        if watched is not None and phase == "stop":
            watched.in_collection = False

    def _begin_again(self) -> None:
        """Reset a forked child, in which the checking thread does not exist."""
        self._changed, self._watched, self._looking = Lock(), {}, False

    def _stop(self) -> None:
        # Reading /proc fifty times a second is left out while nobody has a limit of memory.
        size = self._size() if any(watched.growth is not None for watched in self._watched.values()) else 0
        self._excuse(size)
        clocks = [(watched, time.clock_gettime(watched.clock)) for watched in self._watched.values()]
        # For all threads before any of them is judged: the shares of one check have to be complete to be compared.
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
            # One at a time: its memory may be enough for all, and stopping a second query would have been for nothing.
            largest = max(grown, key=attrgetter("step_charge.growth"))
            largest.stopped = GrowthError
            _stop(largest)
            self._excuse(size)

    def _excuse(self, size: int) -> None:
        """Charge no thread while one stopped for its growth still has its memory, up to the check after its end."""
        taking = any(watched.stopped is GrowthError for watched in self._watched.values())
        if taking or self._leaving:
            for watched in self._watched.values():
                watched.excuse(size)
        self._leaving = False

    def _charge(self, size: int, clocks: Sequence[tuple[Watched, float]]) -> None:
        """Divide the growth since the last look among the threads by the CPU time of each since then."""
        # A process that shrinks pays nobody back: who freed the memory cannot be told, and it may be the one that took
        # it.
        grown, self._last_size = max(0, size - self._last_size), size
        worked = [now - watched.collected_by(now) - watched.worked for watched, now in clocks]
        total = sum(worked)
        for (watched, _), own in zip(clocks, worked, strict=True):
            watched.charge(grown * own / total if total else 0.0)


def _clock(thread: int) -> int:
    """The clock id of a thread's CPU time; the monotonic clock where the system has no thread clocks (macOS)."""
    own = getattr(time, "pthread_getcpuclockid", None)
    return time.CLOCK_MONOTONIC if own is None else int(own(thread))


_NAPPING: Final = Lock()
"""Held while the switch interval is shortened. A fork waits for it, or the child would keep the short interval."""
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_NAPPING.acquire, after_in_parent=_NAPPING.release, after_in_child=_NAPPING.release)


def _nap(seconds: float) -> None:
    """Sleep with a switch interval of as many seconds, so that this thread gets the interpreter lock back promptly."""
    with _NAPPING:  # a second thread would restore the short interval of the first
        usual = sys.getswitchinterval()
        sys.setswitchinterval(seconds)
        try:
            time.sleep(seconds)
        finally:
            sys.setswitchinterval(usual)


def _stop(watched: Watched) -> None:
    """Interrupt a thread, and again if it still runs after ``AGAIN_S`` of CPU.

    During a garbage collection it is not interrupted: the next bytecode would be that of a ``gc`` callback, where
    CPython drops exceptions.
    """
    now = time.clock_gettime(watched.clock)
    due = not watched.whole and now - watched.sent >= AGAIN_S
    watched.missed = due and not _send(watched)
    if due and not watched.missed:
        watched.sent = now


def _send(watched: Watched) -> bool:
    """Interrupt a thread; false while it collects garbage.

    That is tested last: between the test and the call is no bytecode at which CPython switches threads.
    """
    # Looked up before the test, so that nothing but the call itself is left after it.
    number, send = ctypes.c_ulong(watched.thread), ctypes.pythonapi.PyThreadState_SetAsyncExc
    error = ctypes.py_object(Interruption)
    if watched.in_collection:
        return False
    send(number, error)
    return True


def _receive() -> None:
    """Let a pending asynchronous exception be raised here."""
    # CPython looks for pending exceptions when a loop jumps back.
    for _ in range(2):
        pass


@cache
def _statm(process: int) -> int:
    """The descriptor of a process's ``statm``, kept open because opening costs more than reading."""
    # By process id, and not `self`: a forked child inherits the descriptor, which still shows its parent, so it opens
    # its own.
    return os.open(f"/proc/{process}/statm", os.O_RDONLY | os.O_CLOEXEC)


def resident() -> int:
    """The resident set of this process in bytes; 0 without /proc."""
    try:
        return int(os.pread(_statm(os.getpid()), 128, 0).split()[1]) * PAGE
    except OSError:
        return 0


PAGE: Final = os.sysconf("SC_PAGE_SIZE")
DEADLINES: Final = Deadlines(resident)
"""The watched threads of this process."""
