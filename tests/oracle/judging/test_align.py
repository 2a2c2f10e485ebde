"""Alignment is of least cost, keeps order, mentions every report and answer once, and pays once for a lost report."""

from functools import cache

from hypothesis import given
from hypothesis import strategies as st

from streamgauge.model.answer import Answer
from streamgauge.model.report import DueReport, ExpectedReport, View
from streamgauge.oracle.judging import align as aligning
from streamgauge.oracle.judging.align import BAND, align, by_order

BAGS = st.lists(st.frozensets(st.sampled_from("abc"), max_size=2), max_size=6)


def reports(bags):
    return [
        ExpectedReport(DueReport(i, (View(i, i + 1, i, i, 0),)), ("x",), tuple((x,) for x in sorted(bag)), 1)
        for i, bag in enumerate(bags)
    ]


def answers(bags):
    return [Answer(("x",), tuple((x,) for x in sorted(bag))) for bag in bags]


def jaccard(left, right) -> float:
    return len(left & right) / len(left | right) if left | right else 1.0


def least(expected, said) -> float:
    @cache
    def cost(i: int, j: int) -> float:
        if i == len(expected) or j == len(said):
            return len(expected) - i + len(said) - j
        pair = cost(i + 1, j + 1) + 1 - jaccard(expected[i], said[j])
        return min(pair, cost(i + 1, j) + 1, cost(i, j + 1) + 1)

    return cost(0, 0)


def aligned(expected, said):
    return by_order(range(len(expected)), range(len(said)), lambda i, j: jaccard(expected[i], said[j]))


def wrong(expected, said) -> int:
    return sum(i is None or j is None or expected[i] != said[j] for i, j in aligned(expected, said))


@given(BAGS, BAGS)
def test_the_alignment_costs_the_least_possible(expected, said):
    pairs = align(reports(expected), answers(said), lambda i, j: jaccard(expected[i], said[j]))
    assert [i for i, _ in pairs if i is not None] == list(range(len(expected)))
    assert [j for _, j in pairs if j is not None] == list(range(len(said)))
    cost = sum(1 if i is None or j is None else 1 - jaccard(expected[i], said[j]) for i, j in pairs)
    assert abs(cost - least(expected, said)) < 1e-6


def sliding(count: int, width: int) -> list[frozenset[int]]:
    """Neighbours share most of their rows, as those of sliding windows do."""
    return [frozenset(range(i, i + width)) for i in range(count)]


@given(st.integers(1, 300), st.integers(1, 6), st.data())
def test_as_many_windows_are_wrong_as_reports_are_lost(count, width, data):
    right = sliding(count, width)
    lost = data.draw(st.sets(st.integers(0, count - 1), max_size=40))
    assert wrong(right, [bag for i, bag in enumerate(right) if i not in lost]) == len(lost)


@given(st.integers(1, 300), st.integers(1, 6), st.data())
def test_as_many_windows_are_wrong_as_reports_are_surplus(count, width, data):
    right = sliding(count, width)
    said = list(right)
    extra = data.draw(st.lists(st.tuples(st.integers(0, count), st.sampled_from(right)), max_size=40))
    for place, bag in extra:
        said.insert(place, bag)
    assert wrong(right, said) == len(extra)


@given(st.integers(20, 200), st.data())
def test_lost_and_surplus_reports_cost_at_most_one_window_each(count, data):
    right = sliding(count, 1)
    said = list(right)
    edits = data.draw(st.lists(st.tuples(st.booleans(), st.integers(0, count - 20)), max_size=15))
    for loses, place in edits:
        said[place : place + loses] = [] if loses else [frozenset({-place - 1})]
    assert wrong(right, said) <= len(edits)


@given(st.lists(st.sampled_from("ab"), min_size=1, max_size=6))
def test_ties_go_to_the_earlier_report(said):
    expected = [frozenset(name) for name in said]
    for place in range(len(expected)):
        pairs = aligned(expected, [expected[place]])
        paired = next(i for i, j in pairs if j == 0)
        assert paired == expected.index(expected[place])


def test_beyond_the_band_every_report_and_answer_still_appears_once_and_in_order():
    """As many reports lost at the head as are surplus at the tail: no shift within the band explains them."""
    right = sliding(300, 1)
    far = BAND + 60
    said = right[far:] + [frozenset({-i}) for i in range(far)]
    pairs = aligned(right, said)
    assert [i for i, _ in pairs if i is not None] == list(range(300))
    assert [j for _, j in pairs if j is not None] == list(range(300))
    near = right[BAND:] + [frozenset({-i - 1}) for i in range(BAND)]
    assert wrong(right, near) <= 2 * BAND
    assert sum(i is not None and j is not None and right[i] == near[j] for i, j in aligned(right, near)) == 300 - BAND


def test_a_long_lost_head_is_found_although_it_is_longer_than_the_band():
    right = sliding(400, 3)
    assert wrong(right, right[3 * BAND :]) == 3 * BAND


def test_answers_that_name_their_instant_are_matched_by_it():
    expected = reports(["a", "b", "c"])
    said = [Answer(("x",), (("z",),), instant=2), Answer(("x",), (("a",),), instant=9)]
    assert align(expected, said, lambda _i, _j: 0.5) == [(0, None), (1, None), (2, 0), (None, 1)]


def test_where_the_least_cost_would_take_hours_answers_go_to_the_first_report_as_far_along_that_shares_something():
    expected, said = sliding(12_000, 1), [frozenset(range(at, at + 10)) for at in range(0, 12_000, 10)]
    pairs = aligned(expected, said)
    assert len(expected) * (len(expected) - len(said)) > aligning.MAX_CORRIDOR
    assert [i for i, _ in pairs if i is not None] == list(range(len(expected)))
    assert [j for _, j in pairs if j is not None] == list(range(len(said)))
    assert {(i, j) for i, j in pairs if i is not None and j is not None} == {(10 * j, j) for j in range(len(said))}


@given(BAGS, BAGS)
def test_as_far_along_mentions_all_once_in_order_and_pairs_only_what_shares_something(expected, said):
    pairs = aligning._as_far_along(range(len(expected)), range(len(said)), lambda i, j: jaccard(expected[i], said[j]))
    assert [i for i, _ in pairs if i is not None] == list(range(len(expected)))
    assert [j for _, j in pairs if j is not None] == list(range(len(said)))
    assert all(jaccard(expected[i], said[j]) > 0 for i, j in pairs if i is not None and j is not None)
