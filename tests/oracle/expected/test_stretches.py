"""Reports that follow one another are cut into stretches, whose tasks get the elements of all of them."""

import pytest

from streamgauge.model.query import StreamWindow, Window
from streamgauge.model.report import DueReport, View
from streamgauge.model.semantics import Semantics
from streamgauge.oracle.expected import stretches as cutting
from streamgauge.oracle.expected.due_table import PORTION, DueTable, portions
from streamgauge.oracle.expected.stretches import stretches
from streamgauge.semantics.arrivals import Arrivals
from streamgauge.semantics.due import candidates, candidates_in_order


def closes(size: int, slide: int, until: int):
    """The reports of windows from 0 on (s)."""
    windows = (StreamWindow("urn:s", Window(size, slide)),)
    reports = candidates_in_order(Arrivals((), (), ()), windows, Semantics("closes", time_unit=1), 0, until)
    return DueTable.of(reports, 1)


@pytest.mark.parametrize(
    ("size", "slide", "cut"),
    [
        (10, 2, [(10, 14), (16, 20), (22, 26), (28, 30)]),
        (10, 10, [(10, 10), (20, 20), (30, 30)]),
        (20, 1, [(20, 22), (23, 25), (26, 28), (29, 30)]),
    ],
    ids=["the worked example", "windows that do not overlap", "never more than a core's share"],
)
def test_a_stretch_is_little_longer_than_its_first_report(monkeypatch, size, slide, cut):
    monkeypatch.setattr(cutting, "TASKS_A_CORE", 1 if slide == 1 else 0.1)
    results = list(stretches(closes(size, slide, 30), 3 if slide == 1 else 1, before=False))
    assert [(one.reports[0].instant, one.reports[-1].instant) for one in results] == cut
    assert [one.start for one in results] == [
        sum(len(one.reports) for one in results[:at]) for at in range(len(results))
    ]


def test_a_stretch_reaches_back_to_the_report_before(monkeypatch):
    monkeypatch.setattr(cutting, "TASKS_A_CORE", 0.1)
    _, second, *_ = stretches(closes(10, 2, 30), 1, before=True)
    assert [one.instant for one in second.all] == [14, 16, 18, 20]
    (view,) = second.reach.views
    assert (view.first, view.last) == (4, 19)


def test_portions_begin_with_the_last_report_before_and_part_no_instant():
    """The last instant of the first portion has two reports."""
    instants = [*range(PORTION), PORTION - 1, PORTION, PORTION + 1]
    first, second = portions((DueReport(at, (View(0, at, 0, at, 0),)) for at in sorted(instants)), 1)
    assert (len(first.due), first.skip, first.final) == (PORTION + 1, 0, False)
    assert (list(second.due.instants), second.skip, second.final) == ([PORTION - 1, PORTION, PORTION + 1], 1, True)
    assert list(second.own.instants) == [PORTION, PORTION + 1]
    (only,) = portions((), 1)
    assert (len(only.due), only.skip, only.final) == (0, 0, True)


def test_a_table_of_reports_has_the_reports():
    windows = (StreamWindow("urn:s", Window(10, 5)), StreamWindow("urn:t", Window(3, 2)))
    reports = candidates(Arrivals((), (), ()), windows, Semantics("closes", time_unit=1), 0, 30)
    table = DueTable.of(reports, 2)
    assert tuple(table) == table[:] == reports
    assert tuple(table.take([1, 3])) == (reports[1], reports[3])
    assert list(table.lasts) == [report.last for report in reports]
    assert list(table.firsts) == [min(view.first for view in report.views) for report in reports]
    assert (len(DueTable.of((), 2)), DueTable.of((), 2)[:]) == (0, ())
