"""The budget of one evaluation, counted in the facts and rows that are looked at where products of them arise.

Expressions count too: by their size for each row, and by the CPU time of those that take long, a microsecond each.
Full collections of garbage, which would stop the process for every object that stays, are avoided by ``gc_frozen``.
"""

import gc
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from threading import Lock, RLock
from typing import Final

_NEVER: Final = 2**31 - 1
YOUNG: Final = 20_000
"""Objects that are made between two collections of the youngest, 700 by default, while few of them are garbage."""
_ONE: Final = RLock()


class _FullCollections:
    """Full collections of garbage, which do not run while somebody is in ``off``; in any number of threads.

    Collections of the youngest objects are rarer meanwhile.
    """

    def __init__(self) -> None:
        self._lock, self._users = Lock(), 0
        self._thresholds = gc.get_threshold()

    @contextmanager
    def off(self) -> Iterator[None]:
        """No full collection begins in the block."""
        with self._lock:
            if self._users == 0:
                self._thresholds = gc.get_threshold()
                gc.set_threshold(max(YOUNG, self._thresholds[0]), self._thresholds[1], _NEVER)
            self._users += 1
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if self._users == 0:
                    gc.set_threshold(*self._thresholds)


_FULL: Final = _FullCollections()


@contextmanager
def gc_frozen() -> Iterator[None]:
    """All objects that are there at the end of the block are not looked at again, until ``gc.unfreeze``.

    Only young objects are collected meanwhile. A full collection would untrack tables of texts, which come back among
    the youngest objects, and are gone through there, with the next tuple that is put into them (``untrack_dicts`` in
    CPython's gcmodule.c). One thread at a time.
    """
    with _ONE, _FULL.off():
        try:
            yield
        finally:
            gc.collect(1)
            gc.freeze()


def gc_young() -> AbstractContextManager[None]:
    """No full collection of garbage runs in the block, which makes many objects that stay or that it lets go of."""
    return _FULL.off()


class TooMuchError(RuntimeError):
    """An evaluation that was stopped; the sentence says after how much."""


LARGEST: Final = 20_000_000
"""Rows that one join makes, at most: they are made by one call that nothing stops."""


class LargeJoinError(TooMuchError):
    """A join makes more rows at once than were asked for."""

    def __init__(self, limit: int = LARGEST) -> None:
        super().__init__(f"its evaluation makes more than {limit} rows at once")


BOUNDLESS: Final = 1 << 62


class EvaluationBudget:
    """The facts and rows that an evaluation may still look at, ``most`` when it was renewed. One thread at a time."""

    __slots__ = ("left", "most", "weight")

    def __init__(self, limit: int = BOUNDLESS, weight: int = 1) -> None:
        self.most = self.left = limit
        self.weight = weight
        """The number of facts that a row counts for that is made of others, and kept."""

    @property
    def bounded(self) -> bool:
        """Whether there is a bound at all."""
        return self.most != BOUNDLESS

    def renew(self, limit: int | None = None) -> None:
        """Begin another evaluation, with another bound where one is given."""
        self.most = self.left = self.most if limit is None else limit

    def spend(self, count: int) -> None:
        """Count facts and rows that are looked at; TooMuchError beyond the budget."""
        self.left -= count
        if self.left < 0:
            raise self.too_much

    @property
    def too_much(self) -> TooMuchError:
        """The error of a spent budget."""
        return _looks_at_more(self.most)


@dataclass(slots=True)
class ChangeBudget:
    """The facts and rows that queries may look at because of one change of the facts; ``turn`` numbers changes.

    A query may look at ``most``. All of them together may look at ``whole``, beside a part of as much that each of
    those ``asking`` has for itself: a query that looks at little goes on whatever others do.
    """

    most: int = BOUNDLESS
    whole: int = BOUNDLESS
    turn: int = 0
    asking: int = 0
    left: int = BOUNDLESS
    """Facts and rows of ``whole`` that this change may still look at."""
    part: int = BOUNDLESS
    """The facts and rows that each query may look at whatever others do."""
    full: bool = False
    """Whether a query was refused more because of the others."""

    def begin(self, limit: int, whole: int) -> None:
        """Start counting anew for the next change, which may look at ``whole`` facts and rows."""
        self.most, self.whole, self.left, self.full = limit, whole, whole, False
        self.part = whole // (self.asking or 1)

    def grant(self, granted: int, need: int, limit: int) -> int:
        """How many may be looked at more beside those granted before, of ``most``: ``need``, if not twice as many.

        A query is granted its part at first, then as many as before, so that few calls come here; 0 is no more.
        """
        if granted + need > limit:
            return 0
        part = self.part
        for size in (min(limit - granted, max(need, granted or part)), need):
            if self.spend(granted + size - max(part, granted)):
                return size
        return 0

    def spend(self, beyond: int) -> bool:
        """Count what one query looks at beyond its part; whether that much is left."""
        if beyond <= 0:
            return True
        if beyond > self.left:
            self.full = True
            return False
        self.left -= beyond
        return True

    def evaluate(self) -> int:
        """How many rows one query may look at above its patterns."""
        return min(self.most, max(self.part, self.left))

    @property
    def too_much(self) -> TooMuchError:
        """The error of a spent budget."""
        if not self.full:
            return _looks_at_more(self.most)
        return TooMuchError(
            f"one publication has all channels look at more than {self.whole} facts and rows, this one at more than "
            f"{self.part}, its part of as many"
        )


def _looks_at_more(limit: int) -> TooMuchError:
    return TooMuchError(f"its evaluation reads more than {limit} facts and rows")
