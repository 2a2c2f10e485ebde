"""When a report is due on the wall clock, for every kind of window and strategy."""

from dataclasses import replace

import pytest

from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.run import Fed, Run, RunHeader
from streamgauge.model.semantics import Borders, Report, Semantics, Tick
from streamgauge.oracle.judging.metrics import due_time, feeder_lateness
from streamgauge.query import parse_sparql
from streamgauge.semantics.definition import expected
from tests.notation import STREAM, stream

OTHER = "http://ex.org/streams/other"
TEXT = "1: a p b. | 2: b p c. c p d. | 6: d p e. | 7: e p f. | 11: f p g."
CLOSE = Semantics("close")
CHANGE = replace(CLOSE, name="change", report=frozenset({Report.CONTENT_CHANGE}), partial_head=True)
TIME, COUNT, MARK = Window(5, 5), Window(2, 2, "count"), Window(5, 5, "landmark")


def due(semantics: Semantics, *windows: Window, text: str = TEXT) -> list[tuple[int, int | None]]:
    """(instant, which hand-over made it due) for all reports; each element is handed over 1 s after the other."""
    elements = [replace(one, stream=OTHER) if one.time == 7 else one for one in stream(text)]
    names = [None, *(f"urn:w{n}" for n in range(1, len(windows)))]
    over = [StreamWindow(STREAM if n == 0 else OTHER, w, names[n]) for n, w in enumerate(windows)]
    query = ContinuousQuery(parse_sparql("SELECT * { ?s ?p ?o }"), tuple(over))
    records = [Fed(one.sequence, one.time, 0, place, len(one.added)) for place, one in enumerate(elements)]
    fed = (*records, Fed(-1, 15, 0, len(elements)))
    run = Run(RunHeader("test", query, "", "rspql", semantics, 15, 0), (), fed)
    when = due_time(run)
    return [(report.due.instant, when(report)) for report in expected(elements, query, semantics, 15, 0)]


@pytest.mark.parametrize(
    ("semantics", "windows", "wanted"),
    [
        (CLOSE, [TIME], [(5, 2), (10, 4), (15, 5)]),
        (CLOSE, [MARK], [(5, 2), (10, 4), (15, 5)]),
        (replace(CLOSE, borders=Borders.OPEN_CLOSED), [TIME], [(5, 2), (10, 4), (15, 5)]),
        (CLOSE, [COUNT], [(2, 1), (6, 2)]),
        (CLOSE, [TIME, COUNT], [(5, 2), (10, 4), (15, 5)]),
        (CLOSE, [COUNT, TIME], [(2, 1), (5, 2), (6, 2), (10, 4), (15, 5)]),
        (replace(CHANGE, tick=Tick.ELEMENT), [TIME], [(1, 0), (2, 1), (6, 2), (11, 4)]),
        (replace(CHANGE, tick=Tick.TUPLE), [TIME], [(1, 0), (2, 1), (2, 1), (6, 2), (11, 4)]),
        (replace(CHANGE, tick=Tick.BATCH), [TIME], [(1, 1), (2, 2), (6, 3), (11, 5)]),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_due_by_the_hand_over_that_shows_it(semantics, windows, wanted):
    assert due(semantics, *windows) == wanted


TWICE = "1: a p b. | 2: b p c. c p d. | 2: d p e. | 6: e p f."


@pytest.mark.parametrize(
    ("tick", "wanted"),
    [
        (Tick.ELEMENT, [(1, 0), (2, 1), (2, 2), (6, 3)]),
        (Tick.TUPLE, [(1, 0), (2, 1), (2, 1), (2, 2), (6, 3)]),
        (Tick.BATCH, [(1, 1), (2, 3), (6, 4)]),
    ],
)
def test_elements_of_one_instant_are_due_one_by_one_where_each_is_looked_at(tick, wanted):
    assert due(replace(CHANGE, tick=tick), TIME, text=TWICE) == wanted


HELD = "1..4: a p b. | 2: c p d. | 4: e p f. | 6: g p h."


@pytest.mark.parametrize(
    ("borders", "wanted"),
    [
        (Borders.CLOSED_OPEN, [(0, 0), (3, 2), (4, 3), (7, 4), (10, 4), (13, 4)]),
        (Borders.OPEN_CLOSED, [(0, 0), (3, 2), (4, 2), (7, 4), (10, 4), (13, 4)]),
    ],
)
def test_what_ends_is_reported_once_all_that_holds_then_has_come(borders, wanted):
    """What begins at an instant holds then within [initial, final), not yet within (initial, final]."""
    ends = replace(CHANGE, report=frozenset({Report.EXPIRATION}), period=3, borders=borders)
    assert due(ends, MARK, text=HELD) == wanted


def test_what_nobody_handed_over_is_never_due():
    elements = stream(TEXT)
    query = ContinuousQuery(parse_sparql("SELECT * { ?s ?p ?o }"), (StreamWindow(STREAM, TIME),))
    fed = tuple(Fed(one.sequence, one.time, 0, place, len(one.added)) for place, one in enumerate(elements[:2]))
    when = due_time(Run(RunHeader("test", query, "", "rspql", CLOSE, 15, 0), (), fed))
    assert [when(report) for report in expected(elements, query, CLOSE, 15, 0)] == [None, None, None]


def test_at_a_pace_reports_are_due_by_the_wall_clock():
    query = ContinuousQuery(parse_sparql("SELECT * { ?s ?p ?o }"), (StreamWindow(STREAM, TIME),))
    header = RunHeader("test", query, "", "rspql", CLOSE, 15, 7)
    for factor, begin, wanted in ((1.0, 0, [5_000_007, 10_000_007]), (2.0, 4, [500_007, 3_000_007])):
        when = due_time(Run(replace(header, factor=factor, begin=begin), (), ()))
        assert [when(report) for report in expected(stream(TEXT), query, CLOSE, 10, 0)] == wanted


def test_an_advance_is_no_element():
    """The second element is the third record, after an advance."""
    query = ContinuousQuery(parse_sparql("SELECT * { ?s ?p ?o }"), (StreamWindow(STREAM, TIME),))
    semantics = replace(CHANGE, tick=Tick.ELEMENT)
    fed = (Fed(0, 1, 0, 10, 1), Fed(-1, 2, 0, 20), Fed(1, 2, 0, 30, 1), Fed(-1, 5, 0, 40))
    run = Run(RunHeader("test", query, "", "rspql", semantics, 5, 0), (), fed)
    reports = expected(stream("1: a p b. | 2: c p d."), query, semantics, 5, 0)
    assert [due_time(run)(report) for report in reports] == [10, 30]


def test_how_late_the_feeder_was_says_nothing_of_advances():
    run = Run(RunHeader("test", ContinuousQuery(parse_sparql("ASK {}"), ()), "", "rspql", CHANGE, 5, 0), (), ())
    assert feeder_lateness(run) == (0.0, 0.0)
    fed = (Fed(0, 1, 0, 1_000_000, 1), Fed(1, 2, 1_000_000, 4_000_000, 1), Fed(-1, 9, 0, 90_000_000))
    assert feeder_lateness(replace(run, fed=fed)) == (2.0, 3.0)
    assert feeder_lateness(replace(run, fed=fed[2:])) == (0.0, 0.0)


def test_a_window_of_triples_closes_when_its_last_triple_comes():
    """Three triples are there with the third element, which has the time of the second."""
    text = "1: a p b. | 2: c p d. | 2: e p f. | 7: g p h."
    assert due(CLOSE, TIME, Window(3, 3, "count"), text=text.replace("7:", "8:"))[:1] == [(5, 3)]
    assert due(CLOSE, Window(3, 3, "count"), TIME, text=text)[:2] == [(2, 2), (5, 3)]
