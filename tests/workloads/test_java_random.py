"""java.util.Random: known draws, and the jump ahead equals drawing one by one, rejections included."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.workloads import java_random as random


def one_by_one(seed: int, bound: int, count: int) -> list[int]:
    """nextInt(bound) as the JDK documents it, int overflow and all."""
    state, values = (seed ^ 0x5DEECE66D) % 2**48, []
    while len(values) < count:
        state = (state * 0x5DEECE66D + 11) % 2**48
        draw = state // 2**17
        if bound & -bound == bound:
            values.append(bound * draw // 2**31)
        elif draw - draw % bound + (bound - 1) < 2**31:
            values.append(draw % bound)
    return values


def jumped(seed: int, bound: int, count: int) -> list[int]:
    factors, addends = random.steps(random.BLOCK)
    values: list[int] = []
    for run in random.accepted(random.scramble(seed), bound, count):
        assert run.first == len(values)
        for step in range(run.start + 1, run.start + run.length + 1):
            state = (run.state * factors[step] + addends[step]) & random.MASK
            values.append(random.reduce(state >> 17, bound))
    return values


def test_the_documented_first_draws_of_seed_42():
    assert one_by_one(42, 10, 5) == [0, 3, 8, 4, 0]
    assert jumped(42, 10, 5) == [0, 3, 8, 4, 0]


@given(
    seed=st.integers(-(2**63), 2**63 - 1),
    bound=st.one_of(st.integers(1, 200), st.integers(1, 2**31 - 1), st.sampled_from([2**30 + 1, 2**20, 2**31 - 1])),
    count=st.sampled_from([1, 7, 100, 5000]),
)
def test_jumping_ahead_equals_drawing_one_by_one(seed: int, bound: int, count: int):
    assert jumped(seed, bound, count) == one_by_one(seed, bound, count)


@pytest.mark.parametrize("bound", [2**30 + 1, 2**24 + 1])
def test_these_bounds_do_reject(bound: int):
    runs = list(random.accepted(random.scramble(7), bound, 4000))
    assert len(runs) > 2 * 4000 // random.BLOCK + 1
    assert sum(run.length for run in runs) == 4000


@given(seed=st.integers(0, 2**48), bound=st.sampled_from([1000, 2**30 + 1, 64]))
def test_next_int_walks_the_same_draws(seed: int, bound: int):
    state, values = random.scramble(seed), []
    for _ in range(50):
        state, value = random.next_int(state, bound)
        values.append(value)
    assert values == one_by_one(seed, bound, 50)
