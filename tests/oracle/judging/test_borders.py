"""The best pair of borders is the one that trying all pairs finds, whatever the blocks are."""

from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.oracle.judging import borders
from streamgauge.oracle.judging.borders import BorderGrid, Quadrants, best_pair
from tests.examples import examples

place = st.integers(-1, 13)
quadrant = st.tuples(place, place, st.sampled_from([1, 1, 1, 2, -1]))


def quadrants(parts, constant=0):
    columns = zip(*parts, strict=True) if parts else ((), (), ())
    return Quadrants(*(np.array(column, dtype=np.int64) for column in columns), constant)


def count(parts, constant, start, end):
    return constant + sum(weight for at, to, weight in parts if at >= start and to <= end)


def tried(starts, ends, start, end, common, rows, received):
    """Every pair, by the definition of the best."""
    ranked = []
    for a, first in enumerate(starts):
        for b, last in enumerate(ends):
            if first <= last:
                shared, sent = count(*common, a, b), count(*rows, a, b)
                f1 = 2 * shared / (sent + received) if sent + received > 0 else 1.0
                shift = abs(first - start)
                ranked.append((-f1, shift + abs(last - end), shift, first, last, shared, sent))
    return min(ranked)


@examples(200, prove=5000)
@given(st.data())
def test_the_best_pair_is_the_one_that_trying_all_finds(data):
    starts = sorted(data.draw(st.sets(st.integers(0, 30), min_size=1, max_size=12)))
    ends = sorted(data.draw(st.sets(st.integers(0, 40), min_size=1, max_size=12)))
    start, end = data.draw(st.sampled_from(starts)), data.draw(st.sampled_from(ends))
    if starts[0] > ends[-1]:
        ends.append(starts[0])
    shared = data.draw(st.lists(quadrant, max_size=12))
    alone = data.draw(st.lists(st.tuples(place, place, st.just(1)), max_size=12))
    constant = -sum(weight for _, _, weight in shared if weight < 0)
    received = constant + sum(weight for _, _, weight in shared if weight > 0) + data.draw(st.integers(0, 9))
    wanted = (shared, constant), ([*shared, *alone], constant)
    blocks, corners = borders.MAX_BLOCK_PAIRS, borders.MIN_BLOCKS
    borders.MAX_BLOCK_PAIRS, borders.MIN_BLOCKS = data.draw(st.sampled_from([(1 << 18, 64), (4, 3), (1, 2), (9, 1)]))
    try:
        grid = BorderGrid.of(np.array(starts), np.array(ends), start, end)
        result = best_pair(grid, quadrants(*wanted[0]), quadrants(*wanted[1]), received)
    finally:
        borders.MAX_BLOCK_PAIRS, borders.MIN_BLOCKS = blocks, corners
    best = tried(starts, ends, start, end, *wanted, received)
    assert (starts[result.start], ends[result.end], result.common, result.rows) == best[3:]


class Watched(Quadrants):
    """Quadrants that note the pairs at which they are counted."""

    pairs: ClassVar[list[int]] = []

    def counts(self, starts, ends):
        self.pairs.append(len(starts) * len(ends))
        return super().counts(starts, ends)


def test_blocks_that_hold_no_better_pair_are_not_evaluated(monkeypatch):
    """256 pairs in blocks of 4 by 4. One row exists from (4, 7) or (7, 9) on: only the block of (4, 7) fits exactly
    under the declared borders (4, 7); F1 is less wherever one of the five other rows, at (1, 12), is inside.
    """
    monkeypatch.setattr(borders, "MAX_BLOCK_PAIRS", 16)
    monkeypatch.setattr(borders, "MIN_BLOCKS", 4)
    Watched.pairs.clear()
    places = np.arange(16)
    grid = BorderGrid.of(places, places, 4, 7)
    row = [(4, 7, 1), (7, 9, 1), (4, 9, -1)]
    rows = quadrants([*row, *[(1, 12, 1)] * 5])
    common = Watched(*(getattr(quadrants(row), name) for name in ("start", "end", "weight")))
    result = best_pair(grid, common, rows, 1)
    assert (result.start, result.end, result.common, result.rows) == (4, 7, 1, 1)
    assert Watched.pairs == [16]


@pytest.mark.parametrize(("start", "end", "number"), [(4, 7, 1), (7, 9, 1), (4, 9, 1), (5, 8, 0), (8, 9, 0)])
def test_a_solution_with_two_ways_to_exist_counts_once(start, end, number):
    """The example of the module: from (4, 7) or from (7, 9) on."""
    both = quadrants([(4, 7, 1), (7, 9, 1), (4, 9, -1)])
    assert both.counts(np.array([start]), np.array([end])).item() == number
