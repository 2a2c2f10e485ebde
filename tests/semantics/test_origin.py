"""A query asked in the middle of time begins near the first element, and its reports are those of its own t0."""

from dataclasses import replace

import pytest

from streamgauge.model.answer import Answer
from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.semantics import R2S, Borders, Origin, Report, Semantics, Tick
from streamgauge.query import parse_sparql
from streamgauge.semantics.arrivals import beginning, near
from streamgauge.semantics.definition import expected
from streamgauge.semantics.profiles import CQELS, CSPARQL, RSPQL, YABENCH
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
    found = expected(stream(TEXT), query, semantics, FIRST + 40, t0)
    return [(report.due.instant, tuple(sorted(report.rows))) for report in found]


@pytest.mark.parametrize("borders", Borders)
@pytest.mark.parametrize("t0", [0, -5])
@pytest.mark.parametrize(
    "semantics",
    [
        CLOSE,
        replace(CLOSE, partial_head=True),
        replace(CLOSE, r2s=R2S.ISTREAM, notify_empty=False),
        CHANGE,
        replace(CHANGE, tick=Tick.TIME, time_unit=2),
        replace(CHANGE, tick=Tick.BATCH, partial_head=True),
        PERIODIC,
        replace(PERIODIC, lateness=6),
    ],
    ids=lambda each: each.name,
)
@pytest.mark.parametrize("sizes", [((10, 4),), ((5, 5),), ((10, 4), (6, 3))], ids=["sliding", "tumbling", "two"])
def test_reports_from_then_on_are_those_of_its_own_t0(semantics, sizes, t0, borders):
    own = replace(semantics, t0=t0, borders=borders)
    held = windows(*sizes)
    begun = beginning(held, own, FIRST)
    assert begun.semantics == replace(own, t0=begun.semantics.t0)
    assert t0 < begun.semantics.t0 < FIRST - (own.lateness or 0)
    assert begun.since is not None
    there = [each for each in reports(begun.semantics, held, begun.semantics.t0) if each[0] >= begun.since]
    assert there == [each for each in reports(own, held, t0) if each[0] >= begun.since]
    assert [each for each in reports(own, held, t0) if each[0] < begun.since and each[1]] == []


def test_t0_is_moved_along_the_grid_of_every_slide_to_before_all_that_hold_the_first():
    # Slides of 4 and 6: steps of 12. The last window of [10, 4) that could hold 1000 starts after 1000 - 14.
    assert beginning(windows((10, 4)), CLOSE, 1000).semantics.t0 == 984
    assert beginning(windows((10, 4), (6, 6)), CLOSE, 1000).semantics.t0 == 984
    assert beginning(windows((10, 4), (6, 6)), replace(CLOSE, t0=1), 1000).semantics.t0 == 985
    assert beginning(windows((10, 4)), replace(CLOSE, t0=3), 1000).semantics.t0 == 983
    assert beginning(windows((10, 4)), replace(CLOSE, t0=-3), 1000).semantics.t0 == 985
    assert beginning(windows((10, 4)), replace(CLOSE, time_unit=1000), 9900).semantics.t0 == 9000
    assert beginning(windows((10, 4)), replace(PERIODIC, period=7), 1000).semantics.t0 == 980
    assert beginning(windows((10, 4)), replace(CLOSE, lateness=100), 1000).semantics.t0 == 884
    assert beginning(windows((5, 5, "count")), replace(CHANGE, tick=Tick.TUPLE), 1000).semantics.t0 == 999


def test_a_first_element_near_t0_moves_nothing():
    for first in (0, 5, 14, 17):
        begun = beginning(windows((10, 4)), CLOSE, first)
        assert (begun.semantics, begun.since) == (CLOSE, None)
    assert beginning(windows((10, 4)), CLOSE, 18).semantics.t0 == 4


def test_an_origin_that_is_the_first_element_stays():
    semantics = replace(CLOSE, origin=Origin.FIRST)
    assert beginning(windows((10, 4)), semantics, FIRST) == beginning(windows((10, 4)), semantics, 0)
    assert beginning(windows((10, 4)), semantics, FIRST).since is None
    assert beginning(windows((10, 4)), semantics, 1_000_003).semantics is semantics
    assert beginning(windows((10, 4)), CSPARQL, 1_000_003).semantics.t0 > 0


@pytest.mark.parametrize(
    ("semantics", "sizes", "since"),
    [
        (CLOSE, ((10, 4),), 1001),
        (replace(CLOSE, lateness=30), ((10, 4),), 971),
        (replace(CLOSE, borders=Borders.CLOSED), ((10, 4),), 1000),
        (PERIODIC, ((10, 4),), 1001),
        (replace(CHANGE, tick=Tick.TIME), ((10, 4),), 1001),
        (CHANGE, ((10, 4),), 1000),
        (CLOSE, ((10, 4), (5, 5, "count")), 1000),
        (CQELS, ((10, 4),), 1000),
        (YABENCH, ((10, 4),), 1000),
    ],
)
def test_an_instant_of_a_clock_speaks_of_what_came_before_where_windows_are_open_at_their_end(semantics, sizes, since):
    assert beginning(windows(*sizes), semantics, 1000).since == since


def test_answers_of_the_time_before_do_not_count():
    begun = beginning(windows((10, 4)), CLOSE, 1000)
    assert [begun.counts(Answer(("s",), (), instant=at)) for at in (1000, 1001, None)] == [False, True, True]
    assert beginning(windows((10, 4)), CLOSE, 0).counts(Answer(("s",), (), instant=-1))


def test_near_moves_only_what_is_far():
    held = windows((30_000, 10_000))
    epoch = 1_772_352_002_000
    begun = near(held, RSPQL, epoch)
    assert begun.t0 % 10_000 == 0
    assert epoch - 60_000 < begun.t0 < epoch
    assert near(held, RSPQL, 10_000 * 10_000) is RSPQL
    assert near(held, RSPQL, None) is RSPQL


def test_a_window_of_triples_has_no_slide_in_time():
    held, semantics = windows((5, 50, "count")), replace(CHANGE, tick=Tick.TUPLE)
    assert near(held, semantics, 10_001).t0 == 10_000
    assert near(held, semantics, 10_000).t0 == 0
    assert near(held, replace(semantics, time_unit=2), 10_002).t0 == 0
