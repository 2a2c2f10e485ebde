"""The plots of the page of runs: each file here has some, in ``PLOTS``; one more is one more file.

A plot says its message as a heading and the rule by which it is thinned as a note. Borders are bars over stream time
(YABench, figure 6); box plots are over repetitions, neighbouring windows taken together.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import NamedTuple

from streamgauge.report import charts
from streamgauge.report.charts import ChartAxis, ChartDrawing, ChartSize
from streamgauge.report.series import Series

HALF, FULL, PHONE = ChartSize(560, 190, 240), ChartSize(1140, 0, 240), ChartSize(340, 170, 110)
STREAM_TIME = ChartAxis("stream time, s")
RUN_TIME = ChartAxis("time since the start of the feed, s")
SHARE = ChartAxis("", ".0%", (0, 1.04))


@dataclass(frozen=True)
class Figure:
    """One plot of the page: its message, a note, the drawings for wide and narrow screens, whom the legend names."""

    message: str
    note: str
    drawings: tuple[str, ...]
    series: tuple[int, ...] = ()
    span: str = "half"


def draw(
    drawing: ChartDrawing,
    message: str,
    chart: Callable[[ChartSize], charts.Spec],
    sizes: tuple[ChartSize, ChartSize] = (HALF, PHONE),
) -> tuple[str, ...]:
    """A chart drawn for wide and for narrow screens."""
    return tuple(drawing.svg(chart(size), message, kind) for size, kind in zip(sizes, ("wide", "narrow"), strict=True))


def figure(
    drawing: ChartDrawing,
    message: str,
    chart: Callable[[ChartSize], charts.Spec],
    series: tuple[int, ...] = (),
    note: str = "",
    sizes: tuple[ChartSize, ChartSize] | None = None,
) -> Figure:
    """A chart as a figure; one of other than the usual sizes takes the page's full width."""
    drawings = draw(drawing, message, chart, sizes or (HALF, PHONE))
    return Figure(message, note, drawings, series, "full" if sizes else "half")


class Plot(NamedTuple):
    """A plot of the page: the heading of its section, its place on the page (0 to 100), and what draws it."""

    section: str
    place: int
    figures: Callable[[ChartDrawing, Sequence[Series]], Iterator[Figure]]


RIGHT, LATE, COST, STEADY = "How right", "How late", "At what cost", "How steady"
"""Sections of the page."""


@cache
def plots() -> tuple[Plot, ...]:
    """The plots of all files here, by their places."""
    modules = [import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__)]
    return tuple(sorted((plot for module in modules for plot in module.PLOTS), key=lambda plot: plot.place))
