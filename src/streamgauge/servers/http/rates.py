"""How much may come per second."""

from collections.abc import Callable
from threading import Lock


class Rate:
    """A bucket of one second's amount that fills steadily; ``clock`` in seconds. Thread-safe."""

    def __init__(self, per_second: float, clock: Callable[[], float]) -> None:
        self._rate, self._clock, self._lock = per_second, clock, Lock()
        self._level, self._at = per_second, clock()

    def take(self, amount: int) -> float:
        """Take an amount: 0.0 when it was there, else the seconds to wait; a full bucket gives any amount once."""
        with self._lock:
            now = self._clock()
            self._level = min(self._rate, self._level + (now - self._at) * self._rate)
            self._at = now
            wanted = min(float(amount), self._rate)
            if self._level < wanted:
                return (wanted - self._level) / self._rate
            self._level -= amount
            return 0.0
