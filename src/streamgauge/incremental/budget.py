"""The budget of an evaluation, in facts and rows that it reads where products can arise.

Expressions count too: by their size per row, and slow ones by their CPU time, in microseconds.
``gc_frozen`` avoids full garbage collections, which would stop the process to visit every long-lived object.
"""

import gc
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from threading import Lock, RLock
from typing import Final

_NEVER: Final = 2**31 - 1
YOUNG: Final = 20_000
"""Allocations between two young collections (default: 700), used while few objects are garbage."""
# gc.freeze() applies to the whole process: a second thread that froze in between would keep the garbage of the first.
_ONE: Final = RLock()


class _FullCollections:
    """Suspends full garbage collections while any thread is inside ``off``.

    Young collections are rarer meanwhile.
    """

    def __init__(self) -> None:
        # A counter instead of nested contexts: blocks of several threads overlap in any order, and the thresholds may
        # only come back with the last one that ends.
        self._lock, self._users = Lock(), 0
        self._thresholds = gc.get_threshold()

    @contextmanager
    def off(self) -> Iterator[None]:
        """Suspend full collections in the block."""
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
    """Exempt all objects that exist at the end of the block from collections until ``gc.unfreeze``.

    Only young objects are collected meanwhile. A full collection would untrack dicts of strings; with the next tuple
    put into them, they would return to the young generation and be traversed there (``untrack_dicts`` in CPython's
    gcmodule.c). One thread at a time.
    """
    with _ONE, _FULL.off():
        try:
            yield
        finally:
            # Young garbage must go before the freeze, since frozen objects are not collected until unfreeze.
            gc.collect(1)
            gc.freeze()


def gc_young() -> AbstractContextManager[None]:
    """Suspend full garbage collections in the block, which creates or frees many objects."""
    return _FULL.off()


class TooMuchError(RuntimeError):
    """An evaluation exceeded its budget; the message has the limit."""


LARGEST: Final = 20_000_000
"""Maximum rows of one join, which runs in a single call that cannot be interrupted."""


class LargeJoinError(TooMuchError):
    """A join would make more rows at once than ``limit``."""

    def __init__(self, limit: int = LARGEST) -> None:
        super().__init__(f"its evaluation makes more than {limit} rows at once")


BOUNDLESS: Final = 1 << 62


class EvaluationBudget:
    """The facts and rows that an evaluation may still read; ``most`` after ``renew``. Not thread-safe."""

    __slots__ = ("left", "most", "weight")

    def __init__(self, limit: int = BOUNDLESS, weight: int = 1) -> None:
        self.most = self.left = limit
        self.weight = weight
        """The number of facts that a derived row counts as."""

    @property
    def bounded(self) -> bool:
        """Whether a limit is set."""
        return self.most != BOUNDLESS

    def renew(self, limit: int | None = None) -> None:
        """Reset for the next evaluation, optionally with a new limit."""
        self.most = self.left = self.most if limit is None else limit

    def spend(self, count: int) -> None:
        """Charge facts and rows; TooMuchError beyond the budget."""
        self.left -= count
        if self.left < 0:
            raise self.too_much

    @property
    def too_much(self) -> TooMuchError:
        """The error of a spent budget."""
        return _looks_at_more(self.most)


@dataclass(slots=True)
class ChangeBudget:
    """The facts and rows that queries may read for one change of the facts; ``turn`` numbers changes.

    A query may read ``most``. All together may read ``whole`` beyond an equal share that each of the ``asking`` queries
    has to itself, so that a cheap query is served whatever the others do.
    """

    most: int = BOUNDLESS
    whole: int = BOUNDLESS
    turn: int = 0
    asking: int = 0
    left: int = BOUNDLESS
    """The rest of ``whole`` for this change."""
    part: int = BOUNDLESS
    """The share that each query has to itself."""
    full: bool = False
    """Whether a query was refused because of the others."""

    def begin(self, limit: int, whole: int) -> None:
        """Reset for the next change, which may read ``whole`` facts and rows."""
        self.most, self.whole, self.left, self.full = limit, whole, whole, False
        # Fixed at the start of a change, so that a query's share does not depend on which of the queries run before
        # it.
        self.part = whole // (self.asking or 1)

    def grant(self, granted: int, need: int, limit: int) -> int:
        """Grant more facts and rows to a query that was ``granted`` some and needs ``need`` more; 0 if refused.

        It gets its share first and then doubles, so that this is called rarely; at most ``limit`` in all.
        """
        if granted + need > limit:
            return 0
        # A worked example: four queries and ``whole`` = 400, so each has 100 to itself. A query that needs 10 gets its
        # 100; when these are spent 100 more out of the common 400, then 200; then only the 10 that it needs, as 400
        # more are not left.
        part = self.part
        # First twice what it has, so that a query that reads n facts asks log(n) times; if that much is no longer
        # left, exactly what it needs, so that the last facts of the budget are used.
        for size in (min(limit - granted, max(need, granted or part)), need):
            if self.spend(granted + size - max(part, granted)):
                return size
        return 0

    def spend(self, beyond: int) -> bool:
        """Charge what a query reads beyond its share; whether that much is left."""
        if beyond <= 0:
            return True
        if beyond > self.left:
            self.full = True
            return False
        self.left -= beyond
        return True

    def evaluate(self) -> int:
        """The number of rows that a query may read above its patterns."""
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
