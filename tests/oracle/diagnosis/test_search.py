"""What a search evaluates of each model, and at which t0: cases with too many reports, or too few, are skipped."""

from dataclasses import replace
from typing import Any

import pytest

from streamgauge.model.answer import Answer
from streamgauge.model.query import StreamWindow, Window
from streamgauge.model.semantics import Due, Grain, Report, Tick
from streamgauge.model.verdict import Part
from streamgauge.oracle.diagnosis import search as searching
from streamgauge.oracle.diagnosis.models import Case, Fault
from streamgauge.oracle.diagnosis.search import Search
from streamgauge.semantics.profiles import RSPQL
from tests.notation import STREAM, stream
from tests.oracle.runs import right_run

TEXT = "0: a p 1. b p 2. | 0: c p 3. | 7: d p 4."
CHANGE = frozenset({Report.CONTENT_CHANGE})
PERIODS = frozenset({Report.PERIODIC})
FILLED = frozenset({Report.WINDOW_CLOSE, Report.NON_EMPTY})


def searched(answers: int = 4, *, open_ended: bool = False, named: bool = False, advance: int = 27) -> Search:
    """A search over a recording of windows of 10 ms each 5 ms, with so many answers."""
    run = right_run(RSPQL, TEXT, window=(10, 5), advance=advance)
    said = [Answer(("s",), (("<urn:a>",),), instant=5 * at if named else None) for at in range(answers)]
    return Search(replace(run, answers=tuple(said)), stream(TEXT), open_ended)


def over(case: Case, *windows: Window) -> Case:
    return case.asking(replace(case.query, windows=tuple(StreamWindow(STREAM, window) for window in windows)))


def as_it_is(case: Case) -> Case:
    return case


@pytest.mark.parametrize(
    ("change", "fewer", "as_many", "more"),
    [
        (as_it_is, False, True, False),  # closes at 10, 15, 20 and 25
        (lambda case: case.under(report=FILLED), True, True, False),
        (lambda case: case.under(notify_empty=False), True, True, False),
        (lambda case: replace(case, gate=lambda _seen: True), True, True, False),
        (lambda case: case.under(grain=Grain.ROW), True, True, True),
        (lambda case: case.under(report=CHANGE), True, True, True),
        (lambda case: case.under(since=12), True, True, True),
        (lambda case: replace(case, report_rules=(tuple,)), True, True, True),
        (lambda case: case.under(due=Due.LAST), True, True, True),
        (lambda case: over(case, Window(10, 5), Window(10, 5)), True, True, True),
        (lambda case: over(case, Window(4, 2, "count")), True, True, True),
    ],
)
def test_another_number_of_closes_than_of_answers_is_not_evaluated(change, fewer, as_many, more):
    for answers, evaluated in ((3, fewer), (4, as_many), (5, more)):
        search = searched(answers)
        search.comes_out(change(search.base))
        assert (search.evaluated == 1) is evaluated, answers


@pytest.mark.parametrize(
    ("head", "horizon", "closes"),
    [(False, 25, 4), (False, 24, 3), (False, 9, 0), (False, 2, 0), (True, 25, 5), (True, 24, 4), (True, 4, 0)],
)
def test_the_first_close_is_that_of_a_full_window_or_of_a_partial_one(head, horizon, closes):
    for answers in range(7):
        search = searched(answers)
        search.comes_out(replace(search.base, advanced_to=horizon).under(partial_head=head))
        assert (search.evaluated == 1) is (answers == closes), answers


def test_where_the_end_is_open_fewer_answers_are_evaluated_too():
    search = searched(3, open_ended=True)
    # Beyond the last element by the size and as many slides as there are answers.
    assert (search.base.advanced_to, search.open_end) == (27 + 3 * 5, 7)
    assert searched(3, open_ended=True, advance=12).base.advanced_to == 7 + 10 + 3 * 5
    assert searched(60, open_ended=True).base.advanced_to == 27 + 50 * 5
    search.comes_out(search.base)
    assert search.evaluated == 1
    more = searched(60, open_ended=True)
    more.comes_out(more.base)
    assert more.evaluated == 0


@pytest.mark.parametrize(
    ("change", "most"),
    [
        (as_it_is, 5),  # 27 ms by 5
        (lambda case: replace(case, t0=12), 3),
        (lambda case: replace(case, t0=40), 0),
        (lambda case: over(case, Window(10, 5), Window(4, 3)), 5 + 9),
        (lambda case: over(case, Window(10, 5), Window(4, 3, "count")), 5 + 4),
        (lambda case: case.under(report=CHANGE, tick=Tick.TUPLE), 4),
        (lambda case: case.under(report=CHANGE, tick=Tick.ELEMENT), 3),
        (lambda case: case.under(report=CHANGE, tick=Tick.BATCH), 2),
        (lambda case: case.under(report=CHANGE, tick=Tick.TIME, time_unit=2), 13),
        (lambda case: case.under(report=PERIODS, period=9, tick=Tick.TUPLE), 3),
    ],
)
def test_a_model_with_more_reports_than_are_tried_is_not_evaluated(change, most, monkeypatch):
    search = searched()
    case = change(search.base)
    monkeypatch.setattr(search, "_as_many", lambda _case: True)
    told = search.reports(case)
    assert len(told) <= most
    for limit, evaluated in ((most, 1), (most - 1, 0)):
        monkeypatch.setattr(searching, "REPORTS_LIMIT", limit)
        search.evaluated = 0
        search.comes_out(case)
        assert search.evaluated == evaluated
        assert search.reports(case) == (told if evaluated else ())


def fault(t0: int | None = None, change: Any = as_it_is) -> Fault:
    return Fault(Part("", ""), change, t0)


def test_a_fault_with_a_t0_of_its_own_is_tried_once():
    search = searched()
    search.origins = (3, 4, 5)
    later = fault(9, lambda case: replace(case, t0=9))
    asked = fault(change=lambda case: case.under(since=1))
    assert [case.t0 for case in search.cases((asked,))] == [3, 4, 5]
    assert [case.t0 for case in search.cases((asked,), (1, 2))] == [1, 2]
    assert [(case.t0, case.semantics.since) for case in search.cases((asked, later))] == [(9, 1)]
    assert [case.t0 for case in search.cases((later,), (7, 8))] == [9]


@pytest.mark.parametrize("named", [True, False])
def test_instants_tell_reports_apart_where_answers_name_them(named):
    search = searched(named=named)
    reports = search.reports(search.base)
    moved = tuple(replace(report, instant=report.instant + 1) for report in reports)
    assert (search.key(search.base, reports) == search.key(search.base, moved)) is not named
    assert search.key(search.base, reports) != search.key(search.base, reports[1:])
    assert search.key(search.base, reports) != search.key(search.base.under(grain=Grain.ROW), reports)
