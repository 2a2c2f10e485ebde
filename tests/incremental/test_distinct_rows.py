"""Equal rows of term ids are counted as they are by their terms, in order of first occurrence."""

from collections import Counter
from random import Random

import numpy as np
import pytest

from streamgauge.incremental import window_columns
from streamgauge.incremental.window_columns import distinct_rows


@pytest.mark.parametrize("seed", range(40))
def test_equal_rows_are_counted(monkeypatch, seed):
    monkeypatch.setattr(window_columns, "BY_NUMBERS", 1)
    random = Random(seed)
    values = [random.sample(range(50), random.choice((1, 2, 3))) for _ in range(random.choice((1, 2)))]
    columns = [np.array([random.choice(some) for _ in range(300)], np.int32) for some in values]
    places, counts = distinct_rows(columns, 50)
    rows = [tuple(int(column[place]) for column in columns) for place in places]
    expected = Counter(zip(*[column.tolist() for column in columns], strict=True))
    assert list(zip(rows, counts.tolist(), strict=True)) == list(expected.items())


@pytest.mark.parametrize(
    ("columns", "terms"),
    [([], 5), ([np.arange(4000)], 4000), ([np.zeros(4000, np.int32)], 10**6), ([np.zeros(1999, np.int32)], 1)],
    ids=["no columns", "distinct rows", "many terms", "few rows"],
)
def test_rows_that_are_not_worth_it_are_left(columns, terms):
    assert distinct_rows(columns, terms) is None
