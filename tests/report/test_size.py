"""Pages stay small: drawings without what nobody sees, long runs thinned, a demo's page below 300 kB."""

import random
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge import report
from streamgauge.model.run import Fed
from streamgauge.report import compact, windows
from streamgauge.report.series import series_of
from tests.examples import examples
from tests.report import build
from tests.report.test_page import read

NUMBER = re.compile(r"-?\d*\.?\d+")


def drawn(path: str) -> list[tuple[float, float]]:
    """The points of a simplified path, in absolute places."""
    numbers = [float(number) for number in NUMBER.findall(path)]
    x, y = numbers[:2]
    points = [(x, y)]
    for across, down in zip(numbers[2::2], numbers[3::2], strict=True):
        x, y = x + across, y + down
        points.append((x, y))
    return points


@examples(60, 2000)
@given(st.lists(st.floats(0, 200), min_size=2, max_size=60))
def test_a_simplified_line_is_where_it_was(heights: list[float]) -> None:
    points = [(2.3 * place, height) for place, height in enumerate(heights)]
    result = drawn(compact.simplified("M" + "L".join(f"{x:.3f},{y:.3f}" for x, y in points)))
    assert len(result) <= len(points)
    for x, y in points:
        lines = [(a, b) for a, b in pairwise(result) if a[0] - 0.2 <= x <= b[0] + 0.2]
        assert min(compact._off((x, y), a, b) for a, b in lines) < compact.TOLERANCE + 0.2


def test_a_straight_line_has_two_points() -> None:
    assert compact.simplified("M0,7.31L1.96,7.31L6.12,7.31L8.21,7.31") == "M0,7.3l8.2 0"
    assert compact.simplified("M0,0L5,0L5,9Z") == "M0,0l5 0 0 9Z"


def demo() -> list[build.Judged]:
    """As many reports, elements and samples as the demo has: all right, delays of all sizes."""
    draw = random.Random(3)
    content = [build.window(index, draw, 41) for index in range(729)]
    close = [build.window(index, draw) for index in range(6)]
    runs = []
    for semantics, reports in ((build.CQELS, content), (build.CSPARQL, close)):
        run = build.observed(build.header(semantics=semantics), reports, draw)
        fed = tuple(build._fed(number, draw) for number in range(1500))
        runs.append((replace(run, fed=fed, samples=run.samples[:13]), build.verdict(reports)))
    return runs


@pytest.mark.slow
def test_a_page_of_the_demos_size_is_below_300_kilobytes() -> None:
    assert len(report.page(demo(), "demo").encode()) < 300_000


@pytest.mark.slow
def test_a_run_of_ten_thousand_reports_makes_a_small_page_quickly() -> None:
    began = time.process_time()
    page = report.page([build.large(10_000, 700)], "Large")
    assert time.process_time() - began < 20
    assert len(page.encode()) < 700_000


class Elements(Sequence[Fed]):
    """Ten million elements without the memory of ten million objects."""

    def __init__(self, count: int) -> None:
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, at: int) -> Fed:
        planned = build.START + at * 500_000
        return Fed(at, at // 2, planned, planned + (at * 7919) % 1_000_003)

    def __iter__(self) -> Iterator[Fed]:
        return map(self.__getitem__, range(self._count))


@pytest.mark.prove
def test_ten_million_elements_in_100_000_windows_make_a_page_below_5_megabytes() -> None:
    run, verdict = build.large(100_000, 5_000)
    began = time.process_time()
    page = report.page([(replace(run, fed=Elements(10_000_000)), verdict)], "Ten million")
    took, size = time.process_time() - began, len(page.encode())
    print(f"{size:,} bytes, {took:.1f} CPU s")
    assert size < 5_000_000
    assert took < 120
    assert "200 of 100,000 reports listed: 200 of the 5,000 that are not right" in read(page).text


@pytest.mark.slow
def test_a_long_run_lists_what_is_not_right_and_some_of_the_others() -> None:
    (one,) = series_of([build.large(1000, 30)])
    result = windows.listed(one.runs[0][1], windows.listing_limit([one]))
    assert [place for place, _ in result] == sorted(place for place, _ in result)
    assert sum(not window.right for _, window in result) == 30
    assert len(result) == 30 + windows.OTHERS
