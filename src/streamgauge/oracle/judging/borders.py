"""The borders of a window under which an answer fits best, among all pairs of a start and an end.

F1 depends on two counts: the rows that answer and content share, and the rows of the content. Both are sums over
**quadrants**: a solution whose triples arrived from rank 4 to rank 7 counts for every start at or before 4 and every
end after 7. A quadrant is a place in the grid of starts (ascending) and ends (ascending) with a weight; the count at
(start, end) is the sum of the quadrants at this or later starts and this or earlier ends. Weights may be negative: a
row that exists from (4, 7) on or from (7, 9) on has 1 at each of these, and -1 at (4, 9), where both are counted.

A grid of n starts and n ends has n * n pairs. It is cut into blocks; the counts at a block's corners bound F1 within
it, and only blocks that may contain the best pair are evaluated.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

Numbers: TypeAlias = npt.NDArray[np.int64]
Scores: TypeAlias = npt.NDArray[np.float64]

MAX_BLOCK_PAIRS: Final = 1 << 18
"""Pairs of one block, evaluated together in memory."""
MIN_BLOCKS: Final = 64
"""Minimum number of blocks along each side of the grid."""


@dataclass(frozen=True, slots=True)
class Quadrants:
    """A count over a grid as quadrants: ``start``, ``end`` (places in the grid) and ``weight``, each of shape n.

    ``constant`` is added everywhere. A start of -1, or an end beyond the grid, counts nowhere.
    """

    start: Numbers
    end: Numbers
    weight: Numbers
    constant: int = 0

    def counts(self, starts: Numbers, ends: Numbers) -> Numbers:
        """The counts at these places (ascending): shape len(starts) x len(ends)."""
        # The last of these starts at which a quadrant counts; the suffix sum below reaches the earlier ones.
        # A worked example: a quadrant at start 1 and end 2 in a grid of 3 x 4 counts at the starts 0 and 1 and the
        # ends 2 and 3. It is put into the cell (1, 2), from which the sums below carry it to smaller starts and
        # greater ends.
        row = np.searchsorted(starts, self.start, "right") - 1
        column = np.searchsorted(ends, self.end, "left")
        inside = (row >= 0) & (column < len(ends))
        shape = len(starts), len(ends)
        place = row[inside] * shape[1] + column[inside]
        table = np.bincount(place, weights=self.weight[inside], minlength=shape[0] * shape[1]).reshape(shape)
        # A two-dimensional suffix sum over starts and prefix sum over ends: every cell becomes the sum of the quadrants
        # that count for it.
        summed = np.cumsum(np.cumsum(table[::-1], axis=0)[::-1], axis=1)
        # bincount with weights gives floats, which are exact for counts of this size.
        return np.rint(summed).astype(np.int64) + self.constant

    def split(self) -> tuple["Quadrants", "Quadrants"]:
        """The quadrants of positive weight with the constant, and those of negative weight."""
        up, down = self.weight > 0, self.weight < 0
        gained = Quadrants(self.start[up], self.end[up], self.weight[up], self.constant)
        return gained, Quadrants(self.start[down], self.end[down], self.weight[down])


@dataclass(frozen=True, slots=True)
class BorderGrid:
    """Candidate starts and ends (ms, ascending), and the distance of each from the declared one (ms)."""

    starts: Numbers
    ends: Numbers
    start_shift: Numbers
    end_shift: Numbers

    @staticmethod
    def of(starts: Numbers, ends: Numbers, start: int, end: int) -> "BorderGrid":
        """The grid of candidate borders around the declared ``start`` and ``end`` (ms)."""
        return BorderGrid(starts, ends, np.abs(starts - start), np.abs(ends - end))


@dataclass(frozen=True, slots=True)
class BestPair:
    """The best pair of borders (places in the grid), with the numbers of common rows and of the content's rows."""

    start: int
    end: int
    common: int
    rows: int


_Rank: TypeAlias = tuple[float, ...]
"""(F1 negated, total shift, shift of the start, start, end): the least is the best."""


def best_pair(grid: BorderGrid, common: Quadrants, rows: Quadrants, received: int) -> BestPair:
    """The pair with the highest F1, then the least total shift, then the least shift of the start.

    ``common`` counts the rows that content and answer share, ``rows`` those of the content; ``received`` is the size
    of the answer.
    """
    search = _Search(grid, common, rows, received)
    for block in search.blocks():
        search.look(*block)
    assert search.best is not None  # the declared borders are a pair
    return search.best


class _Search:
    def __init__(self, grid: BorderGrid, common: Quadrants, rows: Quadrants, received: int) -> None:
        self._grid, self._common, self._rows, self._received = grid, common, rows, received
        self.best: BestPair | None = None
        self._rank: _Rank = (inf,)  # worse than any pair

    def blocks(self) -> Iterator[tuple[Numbers, Numbers]]:
        """The blocks (places of starts, of ends) that may contain a better pair than the best so far, by rank."""
        size = len(self._grid.starts), len(self._grid.ends)
        if size[0] * size[1] <= MAX_BLOCK_PAIRS:
            yield np.arange(size[0]), np.arange(size[1])
            return
        rows, columns = (_cuts(length) for length in size)
        bounds = self._bounds(rows, columns)
        shifts = _least(self._grid.start_shift, rows)[:, None] + _least(self._grid.end_shift, columns)[None, :]
        # By descending bound, then by shift: the last key of lexsort is the primary one.
        for place in np.lexsort((shifts.ravel(), -bounds.ravel())):
            at, to = divmod(int(place), len(columns) - 1)
            bound, shift = float(bounds[at, to]), int(shifts[at, to])
            # Read again for each block: ``look`` raises the best between two of them. No later block can have a better
            # rank than this one.
            if (-bound, shift) > self._rank[:2]:
                return
            yield np.arange(rows[at], rows[at + 1]), np.arange(columns[to], columns[to + 1])

    def _bounds(self, rows: Numbers, columns: Numbers) -> Scores:
        """An upper bound of F1 in each block.

        Positive weights only grow as a content widens, negative ones only shrink it, so the count is at most the
        positive part at the block's widest content plus the negative part at its narrowest, and at least the reverse.
        """
        wide, narrow = (rows[:-1], columns[1:] - 1), (rows[1:] - 1, columns[:-1])
        (gained, lost), (grown, shrunk) = self._common.split(), self._rows.split()
        common, expected = gained.counts(*wide) + lost.counts(*narrow), grown.counts(*narrow) + shrunk.counts(*wide)
        return np.minimum(1.0, _f1(np.maximum(common, 0), np.maximum(expected, 0), self._received))

    def look(self, starts: Numbers, ends: Numbers) -> None:
        """Evaluate all pairs of a block, and keep the best one if it is better than the best so far."""
        common, rows = self._common.counts(starts, ends), self._rows.counts(starts, ends)
        scores = _f1(common, rows, self._received)
        # A start after its end is not a window.
        scores[self._grid.starts[starts][:, None] > self._grid.ends[ends][None, :]] = -1.0
        top = float(scores.max())
        if -top > self._rank[0]:
            return
        at, to = np.nonzero(scores == top)
        first, last = starts[at], ends[to]
        own = self._grid.start_shift[first]
        total = own + self._grid.end_shift[last]
        chosen = int(np.lexsort((last, first, own, total))[0])
        rank = -top, int(total[chosen]), int(own[chosen]), int(first[chosen]), int(last[chosen])
        if rank < self._rank:
            self._rank = rank
            borders = int(at[chosen]), int(to[chosen])
            self.best = BestPair(rank[3], rank[4], int(common[borders]), int(rows[borders]))


def _f1(common: Numbers, rows: Numbers, received: int) -> Scores:
    """F1 from the numbers of common rows, of the content's rows and of received rows; 1 where both sides are empty."""
    sizes = rows + received
    return np.where(sizes > 0, 2 * common / np.maximum(sizes, 1), 1.0)


def _cuts(length: int) -> Numbers:
    """The places at which a side is cut, both ends included: with another side no block exceeds MAX_BLOCK_PAIRS."""
    number = max(MIN_BLOCKS, -(-length // int(MAX_BLOCK_PAIRS**0.5)))
    return np.unique(np.linspace(0, length, number + 1).astype(np.int64))


def _least(shifts: Numbers, cuts: Numbers) -> Numbers:
    return np.minimum.reduceat(shifts, cuts[:-1])
