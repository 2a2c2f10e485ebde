"""Where no t0 is stated reports begin as the stream does, and are those of the semantics' own t0."""

from dataclasses import replace

import pytest

from streamgauge.model.answer import Answer
from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.run import Run, RunHeader
from streamgauge.model.semantics import R2S, Borders, Origin, Report, Semantics, Tick
from streamgauge.query import parse_sparql
from streamgauge.semantics.beginning import after, awaited, begun, begun_run, is_sent, near
from streamgauge.semantics.definition import expected
from streamgauge.semantics.profiles import CQELS, CSPARQL, FRAGMENTS, RSPQL, SENS, YABENCH
from tests.notation import STREAM, stream

FIRST = 103
TEXT = " | ".join(f"{FIRST + at}: s{at} p o{at}." for at in (0, 1, 1, 4, 9, 10, 17, 26))
CLOSE = replace(RSPQL, name="close")
CHANGE = replace(CLOSE, report=frozenset({Report.CONTENT_CHANGE}))
PERIODIC = replace(CLOSE, report=frozenset({Report.PERIODIC}), period=3)


def windows(*sizes: tuple[int, int] | tuple[int, int, str]) -> tuple[StreamWindow, ...]:
    return tuple(StreamWindow(STREAM, Window(*size), f"urn:w{at}" if at else None) for at, size in enumerate(sizes))


def reports(
    semantics: Semantics, held: tuple[StreamWindow, ...], t0: int
) -> list[tuple[int, tuple[tuple[str | None, ...], ...]]]:
    query = ContinuousQuery(parse_sparql("SELECT ?s ?o { ?s <urn:p> ?o }"), held)
    result = expected(stream(TEXT), query, semantics, FIRST + 40, t0)
    return [(report.due.instant, tuple(sorted(report.rows))) for report in result]


@pytest.mark.parametrize("borders", Borders)
@pytest.mark.parametrize("t0", [0, -5])
@pytest.mark.parametrize(
    "semantics",
    [
        CLOSE,
        replace(CLOSE, partial_head=True),
        replace(CLOSE, r2s=R2S.ISTREAM, notify_empty=False),
        replace(CLOSE, report=frozenset({Report.WINDOW_CLOSE, Report.PERIODIC}), period=6),
        CHANGE,
        replace(CHANGE, tick=Tick.TIME, time_unit=2),
        replace(CHANGE, tick=Tick.BATCH, partial_head=True),
        PERIODIC,
        replace(PERIODIC, lateness=6),
        replace(CLOSE, lateness=6),
    ],
    ids=lambda entry: entry.name,
)
@pytest.mark.parametrize("sizes", [((10, 4),), ((5, 5),), ((3, 7),), ((10, 4), (6, 3))], ids=str)
def test_reports_are_those_of_its_own_t0_but_for_those_of_the_time_before(semantics, sizes, t0, borders):
    own = replace(semantics, t0=t0, borders=borders)
    held = windows(*sizes)
    result = begun(held, own, FIRST)
    every = reports(own, held, t0)
    if result.t0 == t0:
        assert (result.since, reports(result, held, t0)) == (None, every)
        return
    assert t0 < result.t0
    since = result.since if result.since is not None else min(report[0] for report in reports(result, held, result.t0))
    assert since <= FIRST + 12
    assert reports(result, held, result.t0) == [entry for entry in every if entry[0] >= since]
    assert [entry for entry in every if entry[0] < since and entry[1]] == []


@pytest.mark.parametrize(
    ("semantics", "sizes", "t0", "since"),
    [
        (CLOSE, ((10, 4),), 992, None),
        (CLOSE, ((10, 10),), 1000, None),
        (CLOSE, ((3, 7),), 994, 1001),
        (CLOSE, ((10, 4), (6, 6)), 984, 1001),
        (replace(CLOSE, t0=3), ((10, 4),), 991, None),
        (replace(CLOSE, t0=-3), ((10, 4),), 993, None),
        (replace(CLOSE, borders=Borders.CLOSED), ((10, 4),), 992, None),
        (replace(CLOSE, time_unit=300), ((10, 4),), 900, 1001),
        (replace(CLOSE, partial_head=True), ((10, 4),), 984, 1001),
        (replace(CLOSE, lateness=30), ((10, 4),), 956, 971),
        (replace(CLOSE, partial_head=True, borders=Borders.OPEN_CLOSED), ((10, 4),), 984, 1000),
        (replace(PERIODIC, period=7), ((10, 4),), 980, 1001),
        (YABENCH, ((10, 4),), 984, 1000),
        (FRAGMENTS, ((1000, 1000, "landmark"),), 0, 1000),
    ],
)
def test_t0_is_on_the_grid_of_every_slide_and_since_there_only_where_something_came_before(semantics, sizes, t0, since):
    result = begun(windows(*sizes), semantics, 1000)
    assert (result.t0, result.since) == (t0, since)


def test_what_is_not_due_before_anything_came_needs_no_other_t0_but_one_that_is_near():
    for semantics in (CSPARQL, CQELS, CHANGE):
        assert begun(windows((10, 4)), semantics, 1000) == semantics
        far = begun(windows((10, 4)), semantics, 1_772_352_002_000)
        assert far.since is None
        assert 1_772_352_000_000 - 2 * semantics.time_unit < far.t0 < 1_772_352_002_000
    assert begun(windows((5, 50, "count")), replace(CHANGE, tick=Tick.TUPLE), 10_001).t0 == 10_000
    ticking = replace(CHANGE, tick=Tick.TIME, time_unit=2)  # far are 10,000 ticks, however long the slides are
    assert near(windows((1000, 1000)), ticking, 20_000) == ticking
    assert near(windows((1000, 1000)), ticking, 20_001).t0 > 0
    assert near(windows((10, 10)), RSPQL, 100_000) == RSPQL != begun(windows((10, 10)), RSPQL, 100_000)


def test_a_first_element_in_the_first_windows_moves_nothing():
    for first in (0, 5, 9):
        assert begun(windows((10, 4)), CLOSE, first) == CLOSE
    assert [begun(windows((10, 4)), CLOSE, first).t0 for first in (10, 13, 14)] == [4, 4, 8]


def test_a_period_over_windows_of_triples_begins_at_the_last_before_the_first_element():
    periodic = replace(CLOSE, report=frozenset({Report.PERIODIC}), period=4)
    assert [begun(windows((5, 50, "count")), periodic, first).t0 for first in (4, 10)] == [0, 8]


def test_t0_is_moved_back_to_before_a_first_element_that_is_earlier():
    assert begun(windows((10, 4)), CLOSE, -1) == replace(CLOSE, t0=-4)
    assert begun(windows((10, 4)), replace(CLOSE, t0=3), -1) == replace(CLOSE, t0=3)
    assert begun(windows((10, 4)), replace(CLOSE, lateness=30), -1) == replace(CLOSE, t0=-32, lateness=30)
    assert begun(windows((10, 4)), replace(CLOSE, lateness=30), 5) == replace(CLOSE, lateness=30)
    epoch = begun(windows((10, 4)), CLOSE, -1_772_352_002_001)
    assert epoch.t0 == -1_772_352_002_004


def test_an_origin_that_is_the_first_element_stays():
    semantics = replace(CLOSE, origin=Origin.FIRST)
    for first in (0, FIRST, 1_000_003):
        assert begun(windows((10, 4)), semantics, first) is semantics


def test_a_subscription_keeps_its_own_since():
    assert begun(windows((10, 10, "landmark")), replace(SENS, since=1), 0).since == 1
    assert begun(windows((10, 4)), replace(YABENCH, since=2000), 1000).since == 2000


@pytest.mark.parametrize("instants", [(10, 14, 18), (14,), (18, None, 22)])
def test_answers_of_before_say_where_reports_begin(instants):
    query = ContinuousQuery(parse_sparql("SELECT ?s { ?s ?p ?o }"), windows((10, 4)))
    said = tuple(Answer(("s",), (), instant=at) for at in instants)
    header = RunHeader("mine", query, "", "rspql", CLOSE, 200, 0)
    result = begun_run(Run(header, said, ()), 103).header.semantics
    first = min(at for at in instants if at is not None)
    assert (result.t0, result.since) == (first - 10, None)
    assert begun_run(Run(header, (), ()), 103).header.semantics.t0 == 96


@pytest.mark.parametrize("instant", [-7, 3, -(10**9), 1_772_352])
def test_an_answer_of_no_time_of_the_stream_does_not(instant):
    """Before t0, or by far too early: seconds in place of milliseconds."""
    query = ContinuousQuery(parse_sparql("SELECT ?s { ?s ?p ?o }"), windows((10, 4)))
    semantics = replace(CLOSE, t0=5)
    header = RunHeader("mine", query, "", "rspql", semantics, 200, 0)
    said = (Answer(("s",), (), instant=instant),)
    assert begun_run(Run(header, said, ()), 1_772_352_002_000).header.semantics.t0 == 1_772_352_001_993


@pytest.mark.parametrize("lateness", [None, 30])
def test_a_run_without_elements_begins_after_its_horizon(lateness):
    query = ContinuousQuery(parse_sparql("SELECT ?s { ?s ?p ?o }"), windows((10, 4)))
    header = RunHeader("mine", query, "", "rspql", replace(CLOSE, lateness=lateness), 200, 0)
    result = begun_run(Run(header, (), ()), None).header.semantics
    assert max(result.t0 + 10, result.since or 0) > 200
    assert expected((), query, result, 200, result.t0) == ()


def test_where_nothing_comes_nothing_is_due():
    held = windows((10, 4))
    for semantics in (CLOSE, replace(CLOSE, lateness=7), YABENCH, PERIODIC):
        result = begun(held, semantics, after(200, semantics))
        query = ContinuousQuery(parse_sparql("SELECT ?s { ?s ?p ?o }"), held)
        assert expected((), query, result, 200, result.t0) == ()


def test_what_is_sent():
    assert is_sent(-5, CLOSE)
    assert [is_sent(at, replace(CLOSE, since=7)) for at in (6, 7)] == [False, True]


@pytest.mark.parametrize(("horizon", "clause"), [(24_999, "the first window closes at 25,000 ms"), (25_000, "")])
def test_the_close_that_is_awaited_is_the_first_of_the_grid_that_is_sent(horizon, clause):
    assert awaited(windows((10_000, 5_000)), replace(CLOSE, since=22_000), 0, horizon) == clause
