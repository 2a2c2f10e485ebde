"""Which elements are late, decided per element in order of sequence, independently of batch boundaries.

The only state between chunks is the greatest time so far, so that at most one chunk is in memory, in this process or in
a task.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa

from streamgauge.engines.spark.state import Closes, State
from streamgauge.semantics.refusal import OutOfOrderError

Numbers: TypeAlias = "np.ndarray[tuple[int], np.dtype[np.int64]]"

EARLY: Final = -(2**62)
"""A time (ms) before every element."""


@dataclass(frozen=True)
class Heads:
    """Elements without their triples, ordered by ``sequence``, possibly with repetitions; ``time`` in ms."""

    sequence: Numbers
    time: Numbers

    @classmethod
    def of(cls, sequence: Numbers, time: Numbers) -> "Heads":
        """The heads of rows, one per triple, in any order."""
        if np.all(sequence[1:] >= sequence[:-1]):
            # Rows are triples: the first one of each element stands for it.
            new = np.flatnonzero(np.diff(sequence, prepend=EARLY))
            return cls(sequence[new], time[new])
        once, places = np.unique(sequence, return_index=True)
        return cls(once, time[places])


@dataclass(frozen=True)
class LateRule:
    """The rule of a batch: reports up to ``passed`` (ms) are done; without a lateness bound time may not go back."""

    closes: Closes
    passed: int | None

    @classmethod
    def of(cls, state: State, closes: Closes) -> "LateRule":
        """The rule for elements after a state."""
        return cls(closes, state.passed)

    def never(self, first: int, last: int, greatest: int | None) -> bool:
        """Whether no element of a batch within these times (ms) can be late; always false without a bound."""
        lateness = self.closes.semantics.lateness
        if lateness is None:
            return False
        latest = last if greatest is None else max(last, greatest)
        return bool(first >= self._frontier(np.array([latest - lateness]))[0])

    def late(self, parts: Iterable[Heads], greatest: int | None) -> Iterator[Numbers]:
        """The late sequence numbers of each chunk; ``greatest`` is the greatest time (ms) before them.

        OutOfOrderError for disorder without a lateness bound.

        Worked example: windows of 1 s from 0, a bound of 0.5 s, elements at 900, 1,600, 400: after 1,600 the
        watermark is 1,100 and the window up to 1,000 is closed, so 400 is late.
        """
        reached = EARLY if greatest is None else greatest
        lateness = self.closes.semantics.lateness
        for heads in parts:
            times = heads.time
            # The greatest time before each element, not including its own.
            before = np.maximum.accumulate(np.concatenate([[reached], times]))[:-1]
            reached = max(reached, int(times.max(initial=EARLY)))
            if lateness is None:
                _refuse_disorder(heads, before)
                continue
            late = (times < before) & (times < self._frontier(before - lateness))
            yield heads.sequence[late]

    def _frontier(self, watermarks: Numbers) -> Numbers:
        """For each watermark (ms) the time below which elements are late."""
        closed = 0 if self.closes.half_open else 1
        # Reports that are done count even if the watermark alone would not have made them due: an advance may have.
        limits = watermarks - closed if self.passed is None else np.maximum(watermarks - closed, self.passed)
        frontier = np.full(len(watermarks), EARLY)
        for first, step in self.closes.steps():
            passed = first + (limits - first) // step * step
            frontier = np.maximum(frontier, np.where(limits >= first, passed + closed, EARLY))
        return frontier


def _refuse_disorder(heads: Heads, before: Numbers) -> None:
    back = np.flatnonzero(heads.time < before)
    if len(back):
        at = back[0]
        raise OutOfOrderError(
            f"element {heads.sequence[at]} goes back from {before[at]} to {heads.time[at]} ms: sort the stream or "
            "declare a lateness bound (a watermark)"
        )


def heads_of(rows: pa.RecordBatch | pa.Table) -> Heads:
    """The elements of rows of a stream table."""
    return Heads.of(rows.column("sequence").to_numpy(), rows.column("time").to_numpy())
