"""A lock for work of two kinds: what somebody waits for goes first, what is long comes in turns between."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition, Lock, RLock
from time import monotonic
from typing import Final

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
