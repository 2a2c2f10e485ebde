"""Several clocks as one: every instant once, in order, and everything moved that has an instant there."""

from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.incremental.drivers.frames import NEVER, Clocks, Hand, Ticking
from streamgauge.model.semantics import Due


def clocks(steps, due=Due.ALL):
    moved = [[] for _ in steps]
    hands = [Hand(Ticking(first, step), (log.append,)) for (first, step), log in zip(steps, moved, strict=True)]
    return Clocks(hands, due), moved


def given_up_to(clock, limit):
    results = []
    for instant, moves, reports in clock.up_to(limit):
        for move in moves:
            move(instant)
        results.append((instant, reports))
    return results


STEPS = st.lists(st.tuples(st.integers(0, 9), st.integers(1, 5)), max_size=3)


@pytest.mark.slow
@given(STEPS, st.lists(st.integers(-1, 40), max_size=5).map(sorted))
def test_bit_by_bit_is_at_once(steps, limits):
    clock, moved = clocks(steps)
    results = [instant for limit in limits for instant, _ in given_up_to(clock, limit)]
    last = max(limits, default=-1)
    wanted = [set(range(first, last + 1, step)) for first, step in steps]
    assert results == sorted(set().union(*wanted))
    assert [set(log) for log in moved] == wanted
    assert clock.passed == max((max(instants) for instants in wanted if instants), default=None)
    assert clock.next == min(
        (first + len(w) * step for (first, step), w in zip(steps, wanted, strict=True)), default=NEVER
    )


def test_only_the_last_of_each_clock_reports():
    clock, moved = clocks([(2, 2), (3, 3)], Due.LAST)
    assert given_up_to(clock, 9) == [(2, False), (3, False), (4, False), (6, False), (8, True), (9, True)]
    assert moved == [[2, 4, 6, 8], [3, 6, 9]]


def test_what_is_left_out_moves_to_the_last():
    clock, moved = clocks([(2, 2), (30, 3)])
    assert list(clock.up_to(9, lambda: True)) == []
    assert moved == [[8], []]
    assert (clock.next, clock.passed) == (10, 8)


def test_the_rest_is_left_out_as_soon_as_all_is_still():
    clock, moved = clocks([(2, 2), (3, 3)])
    for instant, moves, _ in clock.up_to(21, lambda: bool(moved[1])):
        for move in moves:
            move(instant)
    assert moved == [[2, 20], [3, 21]]
    assert (clock.next, clock.passed) == (22, 21)


def test_a_jump_in_time_is_gone_through_one_by_one():
    clock, _ = clocks([(0, 1), (0, 7)])
    assert [instant for instant, _, _ in islice(clock.up_to(10**12), 9)] == list(range(9))
