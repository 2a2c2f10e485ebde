"""Windows of another size or slide: which are worth trying, and what is said of them, by hand."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.semantics import Report, Scope
from streamgauge.oracle.diagnosis.faults import window_size_and_slide
from streamgauge.oracle.diagnosis.faults.window_size import change, others, window_part
from streamgauge.oracle.diagnosis.faults.window_size_and_slide import (
    _as_many,
    _closes,
    _grid,
    _possible,
    _read,
    _step,
    proposals,
)
from streamgauge.oracle.diagnosis.models import Case, Stream
from streamgauge.query import parse_sparql
from streamgauge.semantics.profiles import RSPQL
from tests.notation import STREAM

FORM = parse_sparql("SELECT ?s { ?s ?p ?o }")
CHANGE = frozenset({Report.CONTENT_CHANGE})


def case(*windows, **fields):
    query = ContinuousQuery(FORM, tuple(StreamWindow(STREAM, Window(*window)) for window in windows))
    return Case(query, replace(RSPQL, **fields), Stream(()), 100, 0)


def seen(instants, window=(20, 10), *, by_row=False, **fields):
    """Recorded answers that name these instants, or none."""
    recorded = SimpleNamespace(count=len(instants), instant=lambda at: instants[at], by_row=by_row)
    return SimpleNamespace(case=case(window, **fields), recorded=recorded)


def pairs(windows):
    return {(window.size, window.slide) for window in windows}


@pytest.mark.parametrize(
    ("window", "unit", "expected"),
    [
        (
            Window(10, 4),
            1,
            [
                *((size, 4) for size in (4, 9, 11, 6, 14, 20, 5)),
                *((10, slide) for slide in (10, 3, 5, 8, 2)),
                (4, 10),
            ],
        ),
        (
            Window(10, 10),
            3,
            [
                *((size, 10) for size in (10, 7, 13, 20, 5)),
                *((size, size) for size in (10, 7, 13, 20, 5)),
                *((10, slide) for slide in (7, 13, 20, 5)),
            ],
        ),
        (Window(2, 2), 2, [(2, 2), (4, 2), (4, 4), (1, 2), (1, 1), (2, 4), (2, 1)]),
        (
            Window(10, 4, "count"),
            100,
            [
                *((size, 4) for size in (4, 9, 11, 6, 14, 20, 5)),
                *((10, slide) for slide in (10, 3, 5, 8, 2)),
                (4, 10),
            ],
        ),
    ],
)
def test_windows_that_are_off_by_a_unit_a_slide_or_a_factor_of_2(window, unit, expected):
    found = list(others(window, unit))
    assert pairs(found) == set(expected)
    assert {other.kind for other in found} == {window.kind}


@pytest.mark.parametrize(
    ("declared", "window", "name", "more"),
    [
        (Window(10, 4), Window(1_000, 4), "window is RANGE 1,000 ms, SLIDE 4 ms", ""),
        (Window(10, 4), Window(9, 5), "window is RANGE 9 ms, SLIDE 5 ms", ""),
        (Window(10, 4), Window(10, 5), "window is RANGE 10 ms, SLIDE 5 ms", "1 ms on"),
        (Window(10, 4), Window(10, 2), "window is RANGE 10 ms, SLIDE 2 ms", "2 ms back"),
        (Window(10, 4, "count"), Window(10, 2, "count"), "window is RANGE 10 triples, SLIDE 2 triples", ""),
    ],
)
def test_a_window_is_said_with_what_a_moving_t0_would_give(declared, window, name, more):
    part = window_part(declared, window)
    assert part.name == name
    told = f"The {name}, whatever the query asks for."
    if more:
        told += f" The same answers come from the declared SLIDE when t0 moves {more} with each answer."
    assert part.sentence == told


def test_all_windows_of_that_size_and_slide_are_changed_and_no_others():
    changed = change(case((10, 4), (5, 5), (10, 4)), Window(10, 4), Window(7, 7))
    assert [window.window for window in changed.query.windows] == [Window(7, 7), Window(5, 5), Window(7, 7)]


@pytest.mark.parametrize(
    ("window", "steps", "size", "slide"),
    [
        (Window(4, 2), (2, 1), 8, 8),
        (Window(4, 4), (4, 2), 12, 12),
        (Window(10, 5), (5, 2), 20, 20),
        (Window(5, 1), (1,), 10, 10),
        (Window(3000, 2000), (1000, 500), 7000, 6000),
        (Window(6000, 2000), (2000, 1000), 12000, 12000),
    ],
)
def test_the_grid_has_multiples_of_a_common_divisor_of_half_of_it_and_of_a_second(window, steps, size, slide):
    expected = {
        (one, other) for step in steps for one in range(step, size + 1, step) for other in range(step, slide + 1, step)
    }
    assert pairs(_grid(window)) == expected


def test_a_grid_of_more_than_40_sizes_is_not_tried():
    assert pairs(_grid(Window(20, 10)))  # by 5 up to 40
    assert max(size for size, _ in pairs(_grid(Window(40, 1))) or {(0, 0)}) == 0  # by 1 up to 80
    assert len({size for size, _ in pairs(_grid(Window(20, 1)))}) == 40


@pytest.mark.parametrize(
    ("instants", "step"),
    [([10, 20, 50], 10), ([10, 16, 31], 3), ([10], 0), ([], 0), ([None, None], 0), ([10, None, 30], 20), ([5, 5], 0)],
)
def test_the_step_of_the_recorded_instants(instants, step):
    assert _step(seen(instants)) == step


@pytest.mark.parametrize(
    ("window", "head", "closes"),
    [((20, 10), False, 9), ((20, 10), True, 10), ((100, 7), False, 1), ((101, 7), False, 0)],
)
def test_closes_up_to_the_horizon(window, head, closes):
    given = seen([None] * closes, partial_head=head)
    assert _closes(given, Window(*window)) == closes
    assert _as_many(given, Window(*window))
    assert not _as_many(seen([None] * (closes + 1), partial_head=head), Window(*window))
    assert not _as_many(given, Window(*window, "count"))


@pytest.mark.parametrize(
    ("count", "fields", "possible"),
    [
        # Closes of a window of 20 each 10 ms up to 100: nine.
        (9, {}, True),
        (19, {}, True),
        (20, {}, False),
        (4, {}, True),
        (3, {}, False),
        (3, {"notify_empty": False}, True),
        (3, {"report": frozenset({Report.WINDOW_CLOSE, Report.NON_EMPTY})}, True),
        (20, {"notify_empty": False}, False),
        (1, {"report": CHANGE}, True),
    ],
)
def test_up_to_half_of_the_reports_may_be_lost_or_sent_twice(count, fields, possible):
    assert _possible(seen([None] * count, **fields), Window(20, 10), 0) is possible
    assert _possible(seen([None] * count, by_row=True, **fields), Window(20, 10), 0) is True


def test_a_window_closes_at_the_instants_and_a_pure_range_keeps_its_slide():
    assert [_possible(seen([None] * 9), Window(20, slide), 10) for slide in (10, 5, 3)] == [True, True, False]
    ranged = seen([None] * 9, report=CHANGE, scope=Scope.RANGE)
    assert [_possible(ranged, Window(30, slide), 0) for slide in (10, 5)] == [True, False]
    assert _possible(seen([None]), Window(3, 1, "count"), 0)


@pytest.mark.parametrize(
    ("step", "fields", "windows"),
    [
        (5, {}, {(20, 5), (10, 5)}),
        (10, {}, set()),
        (0, {}, set()),
        (30, {}, {(20, 30), (60, 30)}),
        (5, {"report": CHANGE}, set()),
    ],
)
def test_windows_with_the_slide_of_the_instants(step, fields, windows):
    assert pairs(_read(seen([], **fields), Window(20, 10), step)) == windows
    assert _read(seen([]), Window(20, 10, "count"), 5) == []


def test_the_windows_that_close_as_often_come_first_then_the_nearest(monkeypatch):
    given = seen([None] * 7)
    faults = list(proposals(given))
    names = [fault.part.name for fault in faults]
    assert all(fault.fine and fault.family == "window" for fault in faults)
    windows = [tuple(int(word.replace(",", "")) for word in name.split() if word[0].isdigit()) for name in names]
    declared = {(20, 10), *pairs(others(Window(20, 10), 1))}
    assert not declared & set(windows)

    def rank(window):
        size, slide = window
        as_often = (100 - size) // slide + 1 == 7
        return not as_often, abs(size - 20) + abs(slide - 10), size, slide

    assert windows == sorted(windows, key=rank)
    monkeypatch.setattr(window_size_and_slide, "MAX_PAIRS", 3)
    assert [fault.part.name for fault in proposals(given)] == names[:3]
    assert list(proposals(seen([], (5, 5, "landmark")))) == []
