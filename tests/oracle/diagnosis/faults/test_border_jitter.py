"""Borders that jitter: the moves past elements within a time unit, what they cost, and what windows hold then."""

from dataclasses import replace

import pytest

from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.report import DueReport, View
from streamgauge.model.semantics import CQL, R2S, Report
from streamgauge.oracle.diagnosis.faults.border_jitter import _Jitter, _swaying, proposals
from streamgauge.oracle.diagnosis.models import Case, Seen, Stream
from streamgauge.query import parse_sparql
from streamgauge.semantics.profiles import RSPQL
from tests.notation import STREAM, stream

FORM = parse_sparql("SELECT ?s { ?s <urn:p> ?o }")
TIMES = (1, 9, 10, 14, 20, 22)


class World:
    """In the place of a simulator: windows of 10 ms, whose answers are the times of the elements in them."""

    def __init__(self, slide=10, filled=False):
        self.slide, self.filled = slide, filled

    def candidates(self, _case):
        starts = range(0, 30, self.slide)
        return tuple(DueReport(at + 10, (View(at, at + 10, at, at + 9, 7),)) for at in starts if at + 10 <= 30)

    def seen(self, _case, last):
        return sum(time <= last for time in TIMES)

    def rows_at(self, _case):
        def rows(due):
            (view,) = due.views
            inside = tuple((f'"{time}"',) for time in TIMES if view.first <= time <= view.last)
            return inside or (None if self.filled else ())

        return rows


def case(unit=1, slide=10, **fields):
    query = ContinuousQuery(FORM, (StreamWindow(STREAM, Window(10, slide)),))
    elements = stream(" | ".join(f"{time}: s p {time}." for time in TIMES))
    return Case(query, replace(RSPQL, time_unit=unit, **fields), Stream(elements), 30, 0)


def times(report):
    return None if report is None else [int(row[0].strip('"')) for row in report.rows]


@pytest.mark.parametrize(
    ("unit", "border", "moves"),
    [
        (1, 10, (0, -1, 1)),  # the worked example: elements at 9 and 10
        (1, 20, (0, 1)),
        (1, 21, (0, -1)),
        (1, 15, (0, -1)),
        (1, 14, (0, 1)),
        (1, 5, (0,)),
        (2, 20, (0, 1)),
        (3, 20, (0, 1, 3)),
        (6, 14, (0, -5, -4, 1)),
        (1, 0, (0,)),
        (2, 0, (0, 2)),
    ],
)
def test_a_border_moves_just_past_each_element_within_a_time_unit(unit, border, moves):
    jitter = _Jitter(World(), case(unit))
    found = jitter._moves(border)
    assert sorted(found) == sorted(moves)
    assert found[0] == 0


def test_tumbling_windows_share_a_border_that_is_paid_for_once():
    jitter = _Jitter(World(), case())
    first = {carry: (cost, times(report)) for cost, carry, report in jitter.emissions(0, (0, ()))}
    assert first == {(0, ()): (0, [1, 9]), (-1, ()): (1, [1]), (1, ()): (1, [1, 9, 10])}
    # The second begins where the first ended.
    for begun, own in ((0, [10, 14]), (-1, [9, 10, 14]), (1, [14])):
        second = {carry[0]: (cost, times(report)) for cost, carry, report in jitter.emissions(1, (begun, ()))}
        assert second == {0: (0, own), 1: (1, [*own, 20])}
    swaying = jitter.swaying()
    assert swaying.start == (0, ())
    assert [times(report) for report in swaying.reports] == [[1, 9], [10, 14], [20, 22]]
    # At 10 two moves, at 20 one; the start at 0 and the end at 30 are near no element.
    assert swaying.choices == 3


def test_each_of_sliding_windows_has_borders_of_its_own():
    jitter = _Jitter(World(slide=5), case(slide=5))
    second = [(cost, carry, times(report)) for cost, carry, report in jitter.emissions(1, (1, ()))]  # 5 to 15
    assert sorted(second) == [(0, (0, ()), [9, 10, 14]), (1, (0, ()), [9, 10])]
    third = [(cost, times(report)) for cost, _, report in jitter.emissions(2, (0, ()))]  # 10 to 20
    assert sorted(third) == [
        *((0, [10, 14]), (1, [9, 10, 14]), (1, [10, 14, 20]), (1, [14])),
        *((2, [9, 10, 14, 20]), (2, [14, 20])),
    ]
    ends, starts = 2 + 1 + 1 + 0 + 0, 0 + 0 + 2 + 1 + 1  # ends at 10, 15, 20, 25, 30; starts at 0, 5, 10, 15, 20
    assert jitter.swaying().choices == ends + starts


@pytest.mark.parametrize(("filled", "notify", "sent"), [(False, True, []), (False, False, None), (True, True, None)])
def test_a_window_that_is_empty_with_moved_borders(filled, notify, sent):
    due = DueReport(24, (View(21, 24, 21, 23, 9),))
    jitter = _Jitter(World(filled=filled), case(2, notify_empty=notify))
    jitter.due = (due,)
    found = {(cost, carry[0]): times(report) for cost, carry, report in jitter.emissions(0, (0, ()))}
    assert found[0, 0] == [22]
    assert found[1, -2] == sent  # 21 to 22


def test_differences_are_taken_to_the_answer_before():
    semantics = {"r2s": R2S.ISTREAM, "r2s_able": frozenset(CQL)}
    jitter = _Jitter(World(), case(**semantics))
    before = (('"10"',), ('"3"',))
    found = {carry[0]: (carry[1], times(report)) for _, carry, report in jitter.emissions(1, (0, before))}
    assert found[0] == ((('"10"',), ('"14"',)), [14])
    assert found[1] == ((('"10"',), ('"14"',), ('"20"',)), [14, 20])


def test_what_an_end_that_moves_sees():
    reports = {carry[0]: report for _, carry, report in _Jitter(World(), case()).emissions(0, (0, ()))}
    assert {move: report.due.views[0].seen for move, report in reports.items()} == {0: 7, -1: 1, 1: 3}
    assert {move: report.due.views[0].last for move, report in reports.items()} == {0: 9, -1: 8, 1: 10}


@pytest.mark.parametrize(
    ("change", "sways"),
    [
        (lambda one: one, True),
        (lambda one: one.under(report=frozenset({Report.WINDOW_CLOSE, Report.NON_EMPTY})), True),
        (lambda one: one.under(report=frozenset({Report.CONTENT_CHANGE})), False),
        (lambda one: one.under(report=frozenset({Report.CONTENT_CHANGE, Report.WINDOW_CLOSE})), False),
        (lambda one: replace(one, gate=lambda _seen: True), False),
        (lambda one: replace(one, report_rules=(tuple,)), False),
    ],
)
def test_only_reports_that_follow_closes_sway(change, sways):
    assert (_swaying(World(), change(case())) is not None) is sways


def test_only_one_window_in_time_sways():
    def proposed(*windows):
        asked = replace(case(), query=ContinuousQuery(FORM, tuple(StreamWindow(STREAM, one) for one in windows)))
        return list(proposals(Seen(asked, None, ())))

    assert [len(proposed(Window(10, 10))), proposed(Window(10, 10, "count")), proposed(*[Window(10, 10)] * 2)] == [
        *(1, [], [])
    ]
    (sway,) = proposed(Window(10, 10))
    assert sway.describe(1, 12).name == "border jitter at 1 border"
    assert sway.describe(3, 12).sentence == (
        "Borders jitter by up to one time unit: 3 borders moved, over 12 reports; elements there land in the "
        "neighbouring window."
    )
