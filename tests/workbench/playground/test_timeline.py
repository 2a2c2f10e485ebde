"""The timeline: shapes stand where their times are, and say in words what they show."""

from dataclasses import replace
from itertools import pairwise

import pytest

from streamgauge.workbench.rooms.playground.examples import FIRST
from streamgauge.workbench.rooms.playground.result import result
from streamgauge.workbench.rooms.playground.state import PlaygroundState
from streamgauge.workbench.rooms.playground.timeline import timeline


def lanes(state):
    outcome = timeline(result(state))
    return outcome, {lane.name: lane for lane in outcome.lanes}


def test_shapes_stand_where_their_times_are():
    outcome, by_name = lanes(FIRST)
    scale = outcome.scale
    item = (scale.right - scale.left) / (scale.last - scale.first)
    times = [0, 2500, 5000, 8000, 10_000, 14_000, 15_000, 21_000]
    assert (scale.first, scale.last) == (0, 25_000)
    assert [shape.x for shape in by_name["elements"].shapes] == [round(scale.left + time * item, 1) for time in times]
    window = by_name["windows-B"].shapes[1]
    assert (window.x, window.borders) == (round(scale.left + 5000 * item, 1), "(]")
    assert window.x + window.width == pytest.approx(scale.left + 15_000 * item, abs=0.2)
    assert window.members == (3, 4, 5, 6)
    assert "(5,000, 15,000] ms holds 5 triples" in window.title
    reports = by_name["reports-A"].shapes
    assert [shape.text for shape in reports] == ["3", "4", "3", "2"]
    assert {(shape.sign, shape.kind) for shape in reports} == {("≠", "report changes")}


def test_lanes_do_not_overlap_and_overlapping_windows_have_rows_of_their_own():
    outcome, by_name = lanes(FIRST)
    tops = [(lane.top, lane.top + lane.height) for lane in outcome.lanes]
    assert all(end <= start for (_, end), (start, _) in pairwise(tops))
    assert outcome.height >= tops[-1][1]
    windows = by_name["windows-A"].shapes
    for at, one in enumerate(windows):
        for other in windows[at + 1 :]:
            apart = one.x + one.width <= other.x + 0.2 or other.x + other.width <= one.x + 0.2
            assert apart or one.y != other.y


def test_windows_of_b_are_drawn_where_they_are_others():
    _, by_name = lanes(replace(FIRST, b={"profile": "rspql", "notify_empty": False}))
    assert "windows-B" not in by_name
    assert "reports-B" in by_name


def test_a_candidate_that_sends_nothing_says_why():
    state = replace(FIRST, stream="0: a degrees 30.\n", b=None, a={"profile": "rspql", "notify_empty": False})
    _, by_name = lanes(state)
    titles = [shape.title for shape in by_name["reports-A"].shapes if shape.kind == "silent"]
    assert titles
    assert all("the answer is empty, and empty answers are not sent" in title for title in titles)


def test_a_stream_without_elements_is_drawn():
    outcome, by_name = lanes(PlaygroundState(FIRST.query, advance=10_000, a={"profile": "rspql"}))
    assert by_name["elements"].shapes == ()
    assert (outcome.scale.first, outcome.scale.last) == (0, 10_000)


def test_what_has_no_room_is_drawn_in_bins_and_each_where_one_zooms_in():
    stream = "\n".join(f"{n * 20}: r{n % 7} degrees {15 + n * 7 % 13}." for n in range(300))
    query = FIRST.query.replace("RANGE 10s STEP 5s", "RANGE PT0.1S STEP PT0.01S")
    state = replace(FIRST, query=query, stream=stream, advance=5_980, width=280)
    _, by_name = lanes(state)
    bins = by_name["elements"].shapes
    assert {shape.kind for shape in bins} == {"bin elements"}
    assert sum(int(shape.title.split()[0]) for shape in bins) == 300
    assert by_name["windows-A"].shapes == ()
    assert "windows of A: zoom in to see each" in by_name["windows-A"].heading
    reports = by_name["reports-A"].shapes
    assert any("with a difference" in shape.title for shape in reports)
    first, last = bins[30].span
    outcome, by_name = lanes(replace(state, view=(first, last)))
    assert (outcome.scale.first, outcome.scale.last, outcome.scale.whole) == (first, last, (0, 5_980))
    assert {shape.kind for shape in by_name["elements"].shapes} == {"element"}
    assert len(by_name["elements"].shapes) == int(bins[30].title.split()[0])
    windows = {name for shape in by_name["windows-A"].shapes for name in shape.scopes}
    assert windows >= {name for shape in by_name["reports-A"].shapes for name in shape.scopes} != set()


def test_equal_elements_of_different_times_are_members_of_their_own_windows():
    state = replace(FIRST, stream="1000: a degrees 30.\n12000: a degrees 30.\n", b=None)
    _, by_name = lanes(state)
    assert [shape.members for shape in by_name["windows-A"].shapes] == [(0,), (1,), (1,), ()]
