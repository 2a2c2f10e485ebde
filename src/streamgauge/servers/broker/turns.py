"""A lock for work of two kinds: what somebody waits for goes first, what is long comes in turns between."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition, Lock, RLock
from typing import Final

PATIENCE_S: Final = 0.1
"""How long a turn waits for all that goes first: after that it queues with the rest, so that it comes at all."""


class Turns:
    """A reentrant lock, taken by ``with``; ``later`` takes it only when nobody else wants it. Thread-safe."""

    def __init__(self) -> None:
        self._lock, self._counting = RLock(), Lock()
        self._calm, self._wanted, self._patient = Condition(self._counting), 0, 0

    def __enter__(self) -> None:
        with self._counting:
            self._wanted += 1
        self._lock.acquire()

    def __exit__(self, *_error: object) -> None:
        self._lock.release()
        with self._counting:
            self._wanted -= 1
            if self._patient and not self._wanted:
                self._calm.notify_all()

    @contextmanager
    def later(self) -> Iterator[None]:
        """Take it for one turn, behind those who want it now."""
        with self._calm:
            self._patient += 1
            self._calm.wait_for(lambda: not self._wanted, PATIENCE_S)
            self._patient -= 1
        with self._lock:
            yield
