"""Alignment at its edges: instants at 0, and answers without a report of their own."""

from streamgauge.model.answer import Answer
from streamgauge.model.report import DueReport, ExpectedReport, View
from streamgauge.oracle.judging.align import BAND, align, by_order


def report(instant: int) -> ExpectedReport:
    return ExpectedReport(DueReport(instant, (View(0, instant, 0, instant, 0),)), ("x",), (), 0)


def answer(instant: int | None) -> Answer:
    return Answer(("x",), (), instant=instant)


def same(_i: int, _j: int) -> float:
    return 1.0


def test_an_answer_that_names_the_instant_0_speaks_of_it():
    pairs = align([report(0), report(1)], [answer(1), answer(0)], same)
    assert sorted(pairs) == [(0, 1), (1, 0)]
    assert align([report(0)], [answer(1)], same) == [(0, None), (None, 0)]
    assert align([report(1)], [answer(0)], same) == [(None, 0), (0, None)]


def test_several_of_one_instant_are_aligned_in_order():
    reports, answers = [report(5), report(5), report(9)], [answer(9), answer(5)]
    alike = {(1, 1): 1.0, (2, 0): 1.0}
    assert align(reports, answers, lambda i, j: alike.get((i, j), 0.0)) == [(0, None), (1, 1), (2, 0)]


def test_one_answer_without_an_instant_has_all_aligned_in_order():
    pairs = align([report(1), report(2)], [answer(2), answer(None)], same)
    assert pairs == [(0, 0), (1, 1)]


def test_what_is_alone_on_one_side():
    assert by_order([3, 4], [], same) == [(3, None), (4, None)]
    assert by_order([], [3, 4], same) == [(None, 3), (None, 4)]
    assert by_order([], [], same) == []


def test_the_earlier_report_is_taken_where_the_cost_is_equal():
    assert by_order([0, 1], [0], lambda i, j: 0.5) == [(0, 0), (1, None)]
    assert by_order([0], [0, 1], lambda i, j: 0.5) == [(0, 0), (None, 1)]


def test_an_answer_moves_by_no_more_than_the_band():
    count = 4 * BAND
    for moved, result in ((BAND, True), (BAND + 1, False)):
        pairs = by_order(range(count), range(count), lambda i, j, moved=moved: float(i == j + moved))
        assert ((moved, 0) in pairs) is result


def test_a_corridor_is_widened_while_an_alignment_outside_of_it_may_cost_less():
    """Three missed, four pairs and five surplus answers cost 8; seven pairs of no likeness and two surplus ones 9."""
    reports, said = "abcdefg", "defgvwxyz"
    pairs = by_order(range(7), range(9), lambda i, j: float(reports[i] == said[j]))
    assert pairs == [
        *((i, None) for i in range(3)),
        *((3 + j, j) for j in range(4)),
        *((None, j) for j in range(4, 9)),
    ]
