"""Publications on their way into a broker: the queue where they wait, the lock and the thread that takes them."""

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
    """The journal could not be written: nothing is taken any more until the broker is started again."""


class Receipt(NamedTuple):
    """A publication has taken effect: its number; ``repeated`` when its key was known and nothing was done."""

    number: int
    repeated: bool = False


class WaitingPublication(NamedTuple):
    """A publication that waits, by its identity ``owner``; ``receive`` takes its receipt or error."""

    added: tuple[Triple, ...]
    removed: tuple[Triple, ...]
    key: RetryKey | None
    owner: str
    receive: Callable[[Receipt | BaseException], None]
    changes: Sequence[UpdateOperation] = ()
    """Operations that depend on the facts at their turn: such a publication is taken by itself."""


class PublicationQueue:
    """Publications in the order in which they came, so many of each identity. Thread-safe."""

    def __init__(self, limits: Limits) -> None:
        self._limits, self._lock = limits, RLock()
        self._waiting: deque[WaitingPublication] = deque()
        self._own: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, waiting: WaitingPublication) -> None:
        """A publication waits. LimitError for one with too many triples, BusyError when too many wait."""
        if len(waiting.added) + len(waiting.removed) > self._limits.graph:
            raise LimitError(f"a publication of more than {self._limits.graph} triples: publish it in parts")
        with self._lock:
            own = len(self._waiting) if waiting.owner == OPEN else self._own.get(waiting.owner, 0)
            if own >= self._limits.waiting:
                raise BusyError(f"{own} publications wait already: come again")
            if waiting.owner != OPEN:
                self._own[waiting.owner] = own + 1
            self._waiting.append(waiting)

    def batch(self) -> list[WaitingPublication]:
        """The waiting publications, up to one whose changes depend on them, which is a batch of its own."""
        batch: list[WaitingPublication] = []
        with self._lock:
            while self._waiting and len(batch) < self._limits.batch:
                if self._waiting[0].changes and batch:
                    break
                batch.append(self._waiting.popleft())
                if batch[0].changes:
                    break
            for publication in batch:
                if publication.owner != OPEN:
                    self._own[publication.owner] -= 1
        return batch


PATIENCE_S: Final = 0.1
"""How long a turn waits for all that goes first: after that it queues with the rest, so that it comes at all."""


class Turns:
    """A reentrant lock, taken by ``with``; ``later`` takes it only when nobody else wants it. Thread-safe."""

    def __init__(self) -> None:
        self._lock = RLock()
        self._calm, self._waiting = Condition(Lock()), 0

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            self._wait()

    def __exit__(self, *_error: object) -> None:
        self._lock.release()

    def _wait(self) -> None:
        """Take it once whoever has it now lets go."""
        with self._calm:
            self._waiting += 1
        try:
            self._lock.acquire()
        finally:
            with self._calm:
                self._waiting -= 1
                if not self._waiting:
                    self._calm.notify_all()

    @contextmanager
    def later(self) -> Iterator[None]:
        """Take it for one turn, behind those who want it now."""
        end = monotonic() + PATIENCE_S
        self._take_later(end)
        try:
            yield
        finally:
            self._lock.release()

    def _take_later(self, end: float) -> None:
        """Take it when nobody waits, or at a time by the steady clock (s)."""
        while True:
            with self._calm:
                self._calm.wait_for(lambda: not self._waiting, max(0.0, end - monotonic()))
            self._lock.acquire()
            if not self._waiting or monotonic() >= end:
                return
            self._lock.release()


class Steps(Protocol):
    """A broker, as the thread that steps it sees it."""

    fault: str
    wake: Callable[[], None]

    def step(self) -> int:
        """Take in publications that wait; how many they were."""

    def evaluate(self) -> None:
        """Do the work that was put off."""


IDLE_S: Final = 0.5
"""After how long without publications what was put off is done, and acknowledgements become durable."""


class PublicationWorker:
    """Steps a broker in a thread of its own, from ``start`` until ``close``."""

    def __init__(self, broker: Steps) -> None:
        self._broker, self._come, self._ending = broker, Event(), False
        broker.wake = self._come.set
        self._thread = Thread(target=self._work, name="streamgauge-broker", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def close(self) -> None:
        """Take in what waits, and end."""
        self._ending = True
        self._come.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _work(self) -> None:
        while not self._ending:
            if self._come.wait(IDLE_S):
                self._come.clear()
                self._step()
            else:
                self._rest()
        self._step()

    def _step(self) -> None:
        """Take in what waits; who waits is told what fails, and from then on its fault."""
        with suppress(Exception):
            while self._broker.step():
                pass
        while self._broker.fault and self._broker.step():
            pass

    def _rest(self) -> None:
        if not self._broker.fault:
            with suppress(Exception):  # it is the broker's fault from then on
                self._broker.evaluate()
