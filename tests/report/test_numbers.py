"""Numbers as people read them, and series thinned without losing their extremes."""

import json
from dataclasses import replace
from io import StringIO
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from streamgauge.model.phrases import counted
from streamgauge.model.semantics import Borders
from streamgauge.report import numbers, text
from streamgauge.report.colours import MUTED, SERIES, STATE
from streamgauge.report.series import Point, PointCloud, bins, box, spread_sample
from streamgauge.report.windows import cut, shortener
from tests.report import build


@pytest.mark.parametrize(
    ("share", "shown"),
    [(1, "100%"), (0, "0%"), (0.5, "50%"), (0.98765, "98.8%"), (0.99999, ">99.9%"), (0.00001, "<0.1%"), (None, "–")],
)
def test_percent(share: float | None, shown: str) -> None:
    assert numbers.percent(share) == shown


@pytest.mark.parametrize(
    ("ms", "shown"),
    [
        (0, "0 s"),
        (-5, "\N{MINUS SIGN}0.005 s"),
        (1_763_900_000_250, "2025-11-23 12:13:20.250Z"),
        (253_402_300_799_999, "9999-12-31 23:59:59.999Z"),
        (253_402_300_800_000, "253,402,300,800 s"),
        (2**62, "4,611,686,018,427,388 s"),
    ],
)
def test_moments_are_dates_as_far_as_there_are_dates(ms: int, shown: str) -> None:
    assert numbers.moment(ms) == shown
    if "Z" not in shown:
        assert numbers.interval(0, ms, Borders.CLOSED_OPEN).endswith(f"{shown.removesuffix(' s')}) s")


@pytest.mark.parametrize(
    ("ms", "shown"),
    [(0, "0 ms"), (3.14159, "3.1 ms"), (123.4, "123 ms"), (1234, "1.23 s"), (1_234_567, "1,234.57 s"), (-2, "−2 ms")],
)
def test_duration(ms: float, shown: str) -> None:
    assert numbers.duration(ms) == shown


def test_borders_and_sizes() -> None:
    assert numbers.interval(0, 2500, Borders.OPEN_CLOSED) == "(0, 2.5] s"
    assert numbers.interval(None, 2500, Borders.CLOSED) == "–"
    assert numbers.mebibytes(1_234 * 2**20) == "1,234 MiB"
    assert counted(1, "window") == "1 window"
    assert counted(30_000, "window") == "30,000 windows"


POINTS = st.lists(
    st.builds(Point, st.integers(0, 10_000).map(float), st.floats(-1e6, 1e6), st.just("")), min_size=1, max_size=300
)


@given(POINTS, st.integers(1, 40))
def test_bins_keep_every_value_and_the_extremes(points: list[Point], limit: int) -> None:
    made = bins(points, limit, str)
    assert len(made) <= limit
    assert sum(one.values for one in made) == len(points)
    assert min(one.low for one in made) == min(point.y for point in points)
    assert max(one.high for one in made) == max(point.y for point in points)
    assert all(before.x < after.x for before, after in pairwise(made))


@given(POINTS, st.integers(4, 40))
def test_a_sample_keeps_the_highest_point(points: list[Point], limit: int) -> None:
    kept = spread_sample(PointCloud.of(points), limit)
    assert len(kept) <= 2 * limit
    assert max(point.y for point in kept) == max(point.y for point in points)


def test_a_sample_of_few_points_is_each_of_them_once() -> None:
    cloud = PointCloud.of([Point(1, 5, "a"), Point(0, 2, "b"), Point(1, 5, "c"), Point(1, 4, "d")])
    assert spread_sample(cloud, 4) == [Point(1, 5, "a"), Point(0, 2, "b"), Point(1, 4, "d")]


def test_points_of_several_clouds_keep_their_tooltips() -> None:
    clouds = [PointCloud.of([]), PointCloud.of([Point(1, 2, "a")]), PointCloud.of([Point(3, 4, "b"), Point(5, 6, "c")])]
    joined = PointCloud.joined(clouds)
    assert [(x, y, joined.tip(at)) for at, (x, y) in enumerate(zip(joined.xs, joined.ys, strict=True))] == [
        (1, 2, "a"), (3, 4, "b"), (5, 6, "c")
    ]  # fmt: skip


def test_quartiles_follow_yabench() -> None:
    assert box([4, 1, 3, 2])[:5] == (1, 1.5, 2.5, 3.5, 4)
    assert box([1, 2, 3, 4, 5])[:5] == (1, 2, 3, 4, 5)
    assert box([7])[:5] == (7, 7, 7, 7, 7)


def test_terms_are_written_with_the_prefixes_of_the_query() -> None:
    short = shortener("PREFIX ex: <http://ex.org/a#>\nPREFIX : <http://ex.org/>")
    assert short("<http://ex.org/a#b>") == "ex:b"
    assert short("<http://ex.org/c>") == ":c"
    assert short("<http://ex.org/c/d>") == "<http://ex.org/c/d>"
    assert short('"<http://ex.org/c>"') == '"<http://ex.org/c>"'
    assert short('"1"^^<http://www.w3.org/2001/XMLSchema#float>') == '"1"^^xsd:float'
    assert cut("x" * 1_203).endswith("… (1,003 more characters)")


def luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def test_text_colours_stand_out_in_both_themes() -> None:
    for shade in (*STATE.values(), MUTED):
        assert min(contrast(shade.light, "#ffffff"), contrast(shade.light, "#f2f4f7")) >= 4.5, shade
        assert min(contrast(shade.dark, "#181c22"), contrast(shade.dark, "#11151a")) >= 4.5, shade
    for shade in SERIES:
        assert min(contrast(shade.light, "#ffffff"), contrast(shade.dark, "#181c22")) >= 3, shade


def printed(judged: build.Judged) -> str:
    console = Console(width=110, record=True, file=StringIO())
    console.print(text.verdict_lines(judged[0].header, judged[1]))
    return console.export_text()


def test_the_terminal_says_the_same() -> None:
    shown = printed(build.wrong("[red]x[/red]"))
    assert "✗ wrong  [red]x[/red] as csparql" in shown
    assert "5 of 21 windows not as expected" in shown
    assert "(75, 80] s" in shown
    assert build.KILLED[:40] in printed(build.failed())
    assert "and 8 more reports" in printed(build.failed())
    assert "100%, 100%" in printed(build.right())
    assert "0%" not in printed(build.unknown())


def test_json_holds_the_whole_verdict() -> None:
    run, verdict = build.wrong()
    result = json.loads(json.dumps(text.verdict_json(run.header, verdict), allow_nan=False))
    assert result["judgement"] == "wrong"
    assert result["recall"] == verdict.recall
    assert [one["state"] for one in result["windows"]].count("right") == 16
    assert result["windows"][15]["state"] == "missed"
    assert result["windows"][20]["state"] == "surplus"
    assert result["windows"][3]["missing"][0] == list(verdict.windows[3].missing[0])
    assert result["other_clock"] == {"clock": "arrival", "precision": 0.98, "recall": 0.97}
    assert text.verdict_json(run.header, replace(verdict, other_clock=None))["other_clock"] is None
