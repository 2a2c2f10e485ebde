"""Publications on their way into a broker: the queue, the lock with priorities, and the worker thread."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import Condition, Event, Lock, RLock, Thread
from time import monotonic
from typing import Final, NamedTuple, Protocol

from streamgauge.model.terms import Triple
from streamgauge.query.updates import UpdateOperation
from streamgauge.servers.broker.limits import BusyError, LimitError, Limits
from streamgauge.servers.http.access import OPEN
from streamgauge.servers.http.retries import RetryKey


class FailedError(RuntimeError):
    """A broker that has failed; it accepts nothing until it is restarted."""


class Receipt(NamedTuple):
    """The number of a publication; ``repeated`` if its key was known, so that it had no effect."""

    number: int
    repeated: bool = False


class WaitingPublication(NamedTuple):
    """A queued publication of the identity ``owner``; ``receive`` is called with its receipt or error."""

    added: tuple[Triple, ...]
    removed: tuple[Triple, ...]
    key: RetryKey | None
    owner: str
    receive: Callable[[Receipt | BaseException], None]
    changes: Sequence[UpdateOperation] = ()
    """Operations whose effect depends on the facts at their turn; such a publication is a batch of its own."""


class PublicationQueue:
    """Publications in order of arrival, at most ``limits.waiting`` of each identity. Thread-safe."""

    def __init__(self, limits: Limits) -> None:
        self._limits, self._lock = limits, RLock()
        self._waiting: deque[WaitingPublication] = deque()
        self._own: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, waiting: WaitingPublication) -> None:
        """Queue a publication; LimitError if it has too many triples, BusyError if too many of its owner's wait."""
        if len(waiting.added) + len(waiting.removed) > self._limits.graph:
            raise LimitError(f"a publication of more than {self._limits.graph} triples: publish it in parts")
        with self._lock:
            # Without tokens all clients share one identity, and with it one limit.
            own = len(self._waiting) if waiting.owner == OPEN else self._own.get(waiting.owner, 0)
            if own >= self._limits.waiting:
                raise BusyError(f"{own} publications wait already: come again")
            if waiting.owner != OPEN:
                self._own[waiting.owner] = own + 1
            self._waiting.append(waiting)

    def batch(self) -> list[WaitingPublication]:
        """Take a batch: waiting publications up to the next with ``changes``, or that one alone."""
        batch: list[WaitingPublication] = []
        with self._lock:
            while self._waiting and len(batch) < self._limits.batch:
                # An update is evaluated over the facts of all publications before it, so these have to be applied
                # first.
                if self._waiting[0].changes and batch:
                    break
                batch.append(self._waiting.popleft())
                if batch[0].changes:
                    break
            # Counted as waiting until they are taken, not until they are done: the batch is bounded by itself.
            for publication in batch:
                if publication.owner != OPEN:
                    self._own[publication.owner] -= 1
        return batch


PATIENCE_S: Final = 0.1
"""How long ``later`` yields to others; then it queues like them, so that it does not starve."""


class Turns:
    """A reentrant lock, taken by ``with``; ``later`` yields to all who want it now.

    Publications take it by ``with``; long preparations of channels take it in short turns by ``later``, so that they
    do not delay publications.
    """

    def __init__(self) -> None:
        self._lock = RLock()
        self._calm, self._waiting = Condition(Lock()), 0

    def __enter__(self) -> None:
        # The usual case is a free lock, for which nobody needs to be counted.
        if not self._lock.acquire(blocking=False):
            self._wait()

    def __exit__(self, *_error: object) -> None:
        self._lock.release()

    def _wait(self) -> None:
        """Take the lock when it is released, counted as waiting."""
        with self._calm:
            self._waiting += 1
        try:
            self._lock.acquire()
        finally:
            with self._calm:
                self._waiting -= 1
                if not self._waiting:
                    # All: those who wait for calm compete for the lock themselves.
                    self._calm.notify_all()

    @contextmanager
    def later(self) -> Iterator[None]:
        """Take the lock for one turn, behind those who want it now."""
        end = monotonic() + PATIENCE_S
        self._take_later(end)
        try:
            yield
        finally:
            self._lock.release()

    def _take_later(self, end: float) -> None:
        """Take the lock when no other thread waits for it, and unconditionally after ``end`` (steady clock, s)."""
        while True:
            with self._calm:
                self._calm.wait_for(lambda: not self._waiting, max(0.0, end - monotonic()))
            self._lock.acquire()
            # Somebody may have begun to wait between the condition and the lock: that one goes first.
            if not self._waiting or monotonic() >= end:
                return
            self._lock.release()


class Steps(Protocol):
    """The part of a broker that its worker thread uses."""

    fault: str
    wake: Callable[[], None]

    def step(self) -> int:
        """Process a batch of waiting publications; returns their number."""

    def evaluate(self) -> None:
        """Run the deferred evaluations."""


IDLE_S: Final = 0.5
"""Seconds without publications after which deferred evaluations are done and acknowledgements made durable."""


class PublicationWorker:
    """Processes a broker's publications in a thread, from ``start`` until ``close``."""

    def __init__(self, broker: Steps) -> None:
        self._broker, self._come, self._ending = broker, Event(), False
        broker.wake = self._come.set
        self._thread = Thread(target=self._work, name="streamgauge-broker", daemon=True)

    def start(self) -> None:
        """Start the worker thread."""
        self._thread.start()

    def close(self) -> None:
        """Process all waiting publications, and end the thread."""
        self._ending = True
        self._come.set()
        # A thread that was never started cannot be joined.
        if self._thread.ident is not None:
            self._thread.join()

    def _work(self) -> None:
        while not self._ending:
            # The event is cleared before the step, so a publication that is queued during the step sets it again.
            if self._come.wait(IDLE_S):
                self._come.clear()
                self._step()
            else:
                self._rest()
        self._step()

    def _step(self) -> None:
        """Process what waits; after a failure the remaining publications are answered with the broker's fault."""
        with suppress(Exception):
            while self._broker.step():
                pass
        # Each of these steps only answers a batch with the failure.
        while self._broker.fault and self._broker.step():
            pass

    def _rest(self) -> None:
        if not self._broker.fault:
            with suppress(Exception):  # from then on it is `fault`
                self._broker.evaluate()
