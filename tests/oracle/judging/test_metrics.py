"""Precision, recall, delay and totals, by hand (docs/semantics.md, scores)."""

import pytest

from streamgauge.model.answer import Answer
from streamgauge.model.report import DueReport, ExpectedReport, View
from streamgauge.model.semantics import Borders, Report, Semantics, Tick
from streamgauge.oracle.judging.metrics import Trigger, Unit, judge, percentile, ratio, totals, trigger
from streamgauge.oracle.worlds.membership import Overlap

A, B, C = ("a",), ("b",), ("c",)
REPORT = ExpectedReport(DueReport(10, (View(5, 10, 5, 9, 2), View(0, 9, 0, 9, 2))), ("x",), (A, B, B), 7)
ANSWER = Answer(("x",), (A, C), received=4_500_000, instant=10, scope=(5, 10))


def due(_report: ExpectedReport) -> int:
    return 3_000_000


def scored(report=REPORT, answer=ANSWER, both=Overlap(1, (B, B), (C,)), position=3, **more):  # noqa: B008
    return judge(4, Unit(report, answer, position, both, **more), due, 1)


def test_a_report_beside_its_answer():
    result = scored()
    assert (result.index, result.report, result.due) == (4, 3, True)
    assert (result.start, result.end, result.instant) == (0, 10, 10)
    assert (result.true_positives, result.expected, result.actual, result.content) == (1, 3, 2, 7)
    assert (result.precision, result.recall) == (1 / 2, 1 / 3)
    assert (result.missing, result.surplus) == ((B,), (C,))
    assert result.delay == 1.5
    assert not result.right


def test_a_missed_report():
    result = scored(answer=None, position=None, both=Overlap(0, (A, B, B), ()))
    assert (result.report, result.due, result.actual, result.expected) == (None, True, 0, 3)
    assert (result.precision, result.recall, result.delay) == (0.0, 0.0, None)
    empty = ExpectedReport(REPORT.due, ("x",), (), 0)
    missed = scored(report=empty, answer=None, position=None, both=Overlap(0, (), ()))
    assert (missed.precision, missed.recall) == (0.0, 0.0)


def test_a_surplus_report():
    result = scored(report=None, both=Overlap(0, (), (A, C)))
    assert (result.due, result.expected, result.actual, result.content) == (False, 0, 2, 0)
    assert (result.precision, result.recall, result.delay) == (0.0, 0.0, None)
    assert (result.start, result.end, result.instant) == (5, 10, 10)
    nowhere = scored(report=None, answer=Answer(("x",), (A,), instant=7), both=Overlap(0, (), (A,)))
    assert (nowhere.start, nowhere.end, nowhere.instant) == (None, None, 7)


def test_the_rows_by_which_a_legal_answer_differs_are_counted_and_some_kept():
    result = scored(both=Overlap(2, (B,), ()), doubtful=(C, C))
    assert (result.actual, result.precision, result.undecided, result.doubtful) == (2, 1.0, 2, (C,))


def test_a_run_without_a_clock_has_no_delay():
    assert judge(0, Unit(REPORT, ANSWER, 0, Overlap(1, (), ())), lambda _: None, 1).delay is None


@pytest.mark.parametrize(
    ("part", "whole", "other", "result"), [(1, 2, 0, 0.5), (0, 2, 0, 0.0), (0, 0, 3, 0.0), (0, 0, 0, 1.0)]
)
def test_a_ratio_to_nothing_is_1_only_beside_nothing(part, whole, other, result):
    assert ratio(part, whole, other) == result


@pytest.mark.parametrize(
    ("values", "share", "result"),
    [([], 50, None), ([7.0], 50, 7.0), ([4.0, 1.0, 3.0, 2.0], 50, 2.0), ([4.0, 1.0, 3.0, 2.0], 51, 3.0),
     ([4.0, 1.0, 3.0, 2.0], 100, 4.0), ([4.0, 1.0, 3.0, 2.0], 1, 1.0)],
)  # fmt: skip
def test_a_percentile_is_the_smallest_value_that_so_many_do_not_exceed(values, share, result):
    assert percentile(values, share) == result


def test_totals_are_over_all_rows():
    whole = scored(answer=Answer(("x",), (A, B, B)), both=Overlap(3, (), ()))
    assert totals([whole, scored()]) == (4 / 5, 4 / 6)
    assert totals([]) == (1.0, 1.0)


def test_a_missed_or_surplus_report_without_rows_weighs_one_row():
    empty = ExpectedReport(REPORT.due, ("x",), (), 0)
    right = scored(report=empty, answer=Answer(("x",), ()), both=Overlap(0, (), ()))
    missed = scored(report=empty, answer=None, position=None, both=Overlap(0, (), ()))
    surplus = scored(report=None, answer=Answer(("x",), ()), both=Overlap(0, (), ()))
    assert totals([right]) == (1.0, 1.0)
    assert totals([right, missed]) == (0.0, 0.0)
    assert totals([right, surplus]) == (0.0, 0.0)
    whole = scored(answer=Answer(("x",), (A, B, B)), both=Overlap(3, (), ()))
    assert totals([whole, missed]) == (1.0, 3 / 4)
    assert totals([whole, surplus]) == (3 / 4, 1.0)
    assert totals([whole, missed, surplus, surplus]) == (3 / 5, 3 / 4)
    rows_missed = scored(answer=None, position=None, both=Overlap(0, (A, B, B), ()))
    assert totals([whole, rows_missed]) == (1.0, 1 / 2)


def test_surplus_rows_beside_a_surplus_report_without_rows_are_no_recall():
    surplus = scored(report=None, answer=Answer(("x",), (A,)), both=Overlap(0, (), (A,)))
    hollow = scored(report=None, answer=Answer(("x",), ()), both=Overlap(0, (), ()))
    assert totals([surplus, hollow]) == (0.0, 0.0)


CLOSE, CHANGE = frozenset({Report.WINDOW_CLOSE}), frozenset({Report.CONTENT_CHANGE})
PERIOD, ENDS = frozenset({Report.PERIODIC}), frozenset({Report.EXPIRATION})
OPEN, RIGHT, BOTH = Borders.CLOSED_OPEN, Borders.OPEN_CLOSED, Borders.CLOSED


@pytest.mark.parametrize(
    ("report", "tick", "borders", "record"),
    [
        *((CLOSE, tick, OPEN, Trigger.SAME) for tick in Tick),
        *((CLOSE, tick, RIGHT, Trigger.LATER) for tick in Tick),
        *((CLOSE, tick, BOTH, Trigger.LATER) for tick in Tick),
        (CLOSE | {Report.NON_EMPTY}, Tick.TUPLE, OPEN, Trigger.SAME),
        (CLOSE | CHANGE, Tick.TUPLE, RIGHT, Trigger.LATER),
        *((PERIOD, tick, OPEN, Trigger.SAME) for tick in Tick),
        *((PERIOD, tick, RIGHT, Trigger.LATER) for tick in Tick),
        (CHANGE, Tick.TIME, OPEN, Trigger.SAME),
        (CHANGE, Tick.TIME, BOTH, Trigger.LATER),
        *((CHANGE, Tick.TUPLE, borders, Trigger.ARRIVAL) for borders in Borders),
        *((CHANGE, Tick.ELEMENT, borders, Trigger.ARRIVAL) for borders in Borders),
        *((CHANGE, Tick.BATCH, borders, Trigger.LATER) for borders in Borders),
        *((ENDS, tick, OPEN, Trigger.LATER) for tick in Tick),
        *((ENDS, tick, RIGHT, Trigger.SAME) for tick in Tick),
    ],
)
def test_the_record_that_makes_a_report_due(report, tick, borders, record):
    period = 5 if report & (PERIOD | ENDS) else None
    semantics = Semantics("s", report=report, tick=tick, borders=borders, period=period)
    assert trigger(DueReport(10, (View(5, 10, 5, 9, 2), View(0, 10, 0, 9, 2))), semantics, [0, 1]) is record


@pytest.mark.parametrize(("at_time", "record"), [([0], Trigger.SAME), ([1], Trigger.ARRIVAL), ([], Trigger.ARRIVAL)])
def test_beside_windows_of_counts_a_close_in_time_waits_for_time(at_time, record):
    """The first window closes at 10, the other one has closed at 9."""
    semantics = Semantics("s", report=CLOSE, tick=Tick.TUPLE)
    assert trigger(REPORT.due, semantics, at_time) is record
