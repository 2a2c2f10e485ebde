"""Exponential backoff with jitter for retries."""

from random import Random


class Backoff:
    """Delays (s) that double from ``first`` to ``most``, each drawn between half and all of it."""

    def __init__(self, random: Random, first: float = 0.1, most: float = 10.0) -> None:
        self._random = random
        self._first = first
        self._most = most
        self._bound = first

    def next(self) -> float:
        """The next delay in seconds."""
        bound = self._bound
        self._bound = min(2 * bound, self._most)
        # Jitter: clients that lost the same server must not all return at once.
        return self._random.uniform(bound / 2, bound)

    def reset(self) -> None:
        """Restart at the first delay, after a success."""
        self._bound = self._first
