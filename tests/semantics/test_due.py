"""Which reports are due and what their scopes are, against the worked examples of the papers."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.model.query import StreamWindow, Window
from streamgauge.model.semantics import Borders, Due, Report, Scope, Semantics, Tick
from streamgauge.semantics import due as due_instants
from streamgauge.semantics.arrivals import Head, arrivals
from streamgauge.semantics.due import active_start, candidates, content_from
from streamgauge.semantics.profiles import CQELS, RSPQL, YABENCH
from streamgauge.semantics.refusal import RefusedError

CLOSE = Semantics("close")
CHANGE = Semantics("change", report=frozenset({Report.CONTENT_CHANGE}), tick=Tick.BATCH, partial_head=True)


def reports(times, window, semantics, t0=0, advanced_to=40):
    """Candidates of one window over elements of one triple each at these times."""
    windows = (StreamWindow("urn:s", window),)
    heads = [Head("urn:s", time, number, 1) for number, time in enumerate(times)]
    return candidates(arrivals(heads, windows, semantics.tick), windows, semantics, t0, advanced_to)


def views(due):
    return [(view.first, view.last) for report in due for view in report.views]


def scopes(times, window, semantics, t0=0, advanced_to=40):
    return [(report.start, report.end) for report in reports(times, window, semantics, t0, advanced_to)]


def test_figure_4_of_csrbench():
    """Windows [1,4), [3,6), [5,8) of size 3 and slide 2: at 6 the active one is [3,6)."""
    assert active_start(Window(3, 2), 1, 6) == 3
    assert active_start(Window(3, 2), 1, 4) == 1
    assert active_start(Window(3, 2), 1, 7) == 5


@pytest.mark.parametrize(
    ("window", "t0", "expected"),
    [
        (Window(10, 3), 0, [(0, 1), (0, 3), (3, 12), (6, 15)]),
        (Window(10, 3), 2, [(2, 3), (5, 12), (8, 15)]),
        (Window(1, 1), 0, [(1, 1), (3, 3), (12, 12), (15, 15)]),
    ],
)
def test_content_change_scopes_of_csrbenchs_oracle(window, t0, expected):
    """Its own test: data at 1, 3, 12, 15; a scope [o, d + unit) there is [o, d] here."""
    assert scopes([1, 3, 12, 15], window, CHANGE, t0) == expected


def test_window_close_scopes_of_csrbenchs_oracle():
    assert scopes([1, 3, 12, 15], Window(10, 3), CLOSE, 2, 18) == [(2, 12), (5, 15), (8, 18)]


def test_yabench_windows_are_partial_at_the_head_and_closed():
    due = reports([0, 3, 6], Window(5, 2), YABENCH, 0, 8)
    assert views(due) == [(0, 2), (0, 4), (1, 6), (3, 8)]


@pytest.mark.parametrize(
    ("borders", "expected"),
    [
        (Borders.CLOSED_OPEN, [(0, 4), (5, 9)]),
        (Borders.OPEN_CLOSED, [(1, 5), (6, 10)]),
        (Borders.CLOSED, [(0, 5), (5, 10)]),
    ],
)
def test_borders_say_which_times_belong(borders, expected):
    due = reports([], Window(5, 5), replace(CLOSE, borders=borders), 0, 10)
    assert views(due) == expected


def test_pure_range_looks_back_from_the_instant():
    semantics = replace(CHANGE, scope=Scope.RANGE, borders=Borders.CLOSED)
    due = reports([1, 3, 12, 15], Window(4, 2), semantics, 0, 20)
    assert views(due) == [(0, 1), (0, 3), (8, 12), (11, 15)]


def test_ticks_decide_how_often_content_is_looked_at():
    times = [1, 1, 3]
    window = Window(10, 10)
    seen = {
        tick: [(d.instant, d.seen) for d in reports(times, window, replace(CHANGE, tick=tick), 0, 3)]
        for tick in (Tick.ELEMENT, Tick.BATCH, Tick.TIME)
    }
    assert seen[Tick.ELEMENT] == [(1, 1), (1, 2), (3, 3)]
    assert seen[Tick.BATCH] == [(1, 2), (3, 3)]
    assert seen[Tick.TIME] == [(1, 0), (2, 2), (3, 2)]


def test_a_clock_that_starts_far_before_the_stream_is_refused():
    with pytest.raises(RefusedError, match="instants, more than 5,000,000"):
        reports([1_700_000_000_000], Window(5000, 5000), RSPQL, 0, 1_700_000_030_000)


def test_a_window_of_triples_has_no_clock_that_could_be_too_long():
    window = Window(2, 1, "count")
    assert len(reports([5, 1_700_000_000_000], window, RSPQL, 0, 1_700_000_030_000)) == 1


def test_periodic_reports_every_period():
    semantics = Semantics("p", report=frozenset({Report.PERIODIC}), period=3, partial_head=True)
    assert [d.instant for d in reports([], Window(10, 10), semantics, 1, 12)] == [4, 7, 10]


def test_close_and_periodic_is_a_conjunction():
    semantics = Semantics("p", report=frozenset({Report.PERIODIC, Report.WINDOW_CLOSE}), period=6)
    assert [d.instant for d in reports([], Window(4, 2), semantics, 0, 14)] == [6, 12]


def test_a_close_at_the_beginning_is_in_no_period():
    """Windows of triples close with a triple, which may come at t0; the first period ends later."""
    semantics = Semantics("p", report=frozenset({Report.PERIODIC, Report.WINDOW_CLOSE}), period=6)
    assert [d.instant for d in reports([0, 6, 7, 12], Window(1, 1, "count"), semantics, 0, 14)] == [6, 12]


def test_only_the_last_of_several_due_windows():
    """rsp-js after a gap: elements at 1, 3 and 30, RANGE 10 STEP 2."""
    semantics = replace(RSPQL, due=Due.LAST)
    assert scopes([1, 3, 30], Window(10, 2), semantics, 0, 30) == [(20, 30)]


def test_before_the_first_full_window_only_partial_heads_report():
    whole = replace(CQELS, partial_head=False)
    assert [d.instant for d in reports([1, 4, 6, 9], Window(5, 5), whole, 0, 10)] == [6, 9]
    assert [d.instant for d in reports([1, 4, 6, 9], Window(5, 5), CQELS, 0, 10)] == [1, 4, 6, 9]


@given(
    st.lists(st.integers(0, 60), max_size=12).map(sorted),
    st.integers(1, 12),
    st.integers(1, 12),
    st.integers(0, 5),
    st.sampled_from(list(Borders)),
    st.sampled_from(list(Tick)),
    st.sampled_from([frozenset({Report.WINDOW_CLOSE}), frozenset({Report.CONTENT_CHANGE})]),
    st.booleans(),
)
def test_scopes_only_move_forward(times, size, slide, t0, borders, tick, report, partial):
    """What the evaluators build on: first, last and seen never go back."""
    semantics = Semantics("s", report=report, borders=borders, tick=tick, partial_head=partial)
    due = reports(times, Window(size, slide), semantics, t0, 60)
    for before, after in pairwise(report.views[0] for report in due):
        assert before.first <= after.first
        assert before.last <= after.last
        assert before.seen <= after.seen
        assert before.after <= after.after


def instants(times, window, semantics, **how):
    return [report.instant for report in reports(times, window, semantics, **how)]


@pytest.mark.parametrize("tick", [Tick.ELEMENT, Tick.TUPLE, Tick.BATCH, Tick.TIME])
def test_time_comes_as_far_as_it_is_said_that_instant_included(tick):
    for last, result in ((4, [1, 3]), (5, [1, 3, 5]), (6, [1, 3, 5])):
        assert instants([1, 3, 5, 7], Window(1, 1, "count"), CLOSE, advanced_to=last) == result
        seen = instants([1, 3, 5, 7], Window(9, 9), replace(CHANGE, tick=tick), advanced_to=last)
        assert seen == (result if tick is not Tick.TIME else list(range(1, last + 1)))
    periodic = replace(CLOSE, report=frozenset({Report.PERIODIC}), period=5, partial_head=True)
    for last, result in ((9, [5]), (10, [5, 10])):
        assert instants([], Window(5, 5), CLOSE, advanced_to=last) == result
        assert instants([], Window(5, 5, "landmark"), CLOSE, advanced_to=last) == result
        assert instants([], Window(5, 5), periodic, advanced_to=last) == result
        expiring = replace(periodic, report=frozenset({Report.EXPIRATION}))
        assert instants([], Window(5, 5, "landmark"), expiring, advanced_to=last) == [0, *result]


def test_a_window_that_has_never_closed_is_empty_at_t0():
    windows = (StreamWindow("urn:s", Window(5, 5)), StreamWindow("urn:s", Window(10, 10), "urn:w"))
    counted = (windows[0], StreamWindow("urn:s", Window(4, 4, "count"), "urn:w"))
    for item in (windows, counted):
        heads = [Head("urn:s", time, number, 1) for number, time in enumerate((2, 3, 7))]
        result = candidates(arrivals(heads, item, CLOSE.tick), item, CLOSE, 1, 6)
        assert [(view.start, view.end, view.first, view.last, view.seen) for view in result[0].views] == [
            (1, 6, 1, 5, 2),
            (1, 1, 1, 0, 0),
        ]


def test_triples_before_t0_are_not_counted():
    assert instants([1, 3, 5, 7, 9], Window(2, 2, "count"), CLOSE, t0=3) == [5, 9]
    assert instants([1, 3, 5, 7, 9], Window(2, 2, "count"), CLOSE, t0=4) == [7]


@pytest.mark.parametrize("tick", [Tick.ELEMENT, Tick.BATCH])
def test_a_window_of_triples_is_whole_from_its_last_triple_on(tick):
    whole = replace(CHANGE, tick=tick, partial_head=False)
    assert instants([1, 3, 5, 7], Window(3, 3, "count"), whole) == [5, 7]
    assert instants([1, 3, 5, 7], Window(3, 3, "count"), replace(whole, partial_head=True)) == [1, 3, 5, 7]
    assert instants([1, 3, 5, 7], Window(3, 1), whole) == [3, 5, 7]
    assert instants([1, 3, 5, 7], Window(9, 9, "landmark"), whole, t0=3) == [3, 5, 7]


@pytest.mark.parametrize(
    ("borders", "instant", "result"),
    [
        (Borders.CLOSED_OPEN, 9, (0, 0)),
        (Borders.CLOSED_OPEN, 10, (4, 4)),
        (Borders.OPEN_CLOSED, 10, (0, 1)),
        (Borders.OPEN_CLOSED, 11, (4, 5)),
        (Borders.CLOSED, 10, (0, 0)),
    ],
)
def test_the_first_time_that_the_earliest_open_window_holds(borders, instant, result):
    """Windows of 10 ms every 4 ms: at their start where they are closed there, else 1 ms after."""
    assert content_from(Window(10, 4), replace(CHANGE, borders=borders), 0, instant) == result


def test_a_clock_of_just_as_many_instants_as_one_run_may_have(monkeypatch):
    monkeypatch.setattr(due_instants, "MAX_INSTANTS", 10)
    windows = (StreamWindow("urn:s", Window(10, 10)),)
    due_instants.refuse_clock(windows, CLOSE, 0, 109)
    with pytest.raises(RefusedError, match="there are 11 instants, more than 10"):
        due_instants.refuse_clock(windows, CLOSE, 0, 110)


@pytest.mark.parametrize("due", Due)
def test_each_triple_that_closes_a_window_of_triples_is_a_report(due):
    result = reports([1, 1, 1, 1, 1], Window(2, 2, "count"), replace(CLOSE, due=due))
    assert [(answer.instant, answer.views[0].seen) for answer in result] == [(1, 2), (1, 4)]
