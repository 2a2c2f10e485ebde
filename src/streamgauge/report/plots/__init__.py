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
from streamgauge.report.figures import FigureNumbers
from streamgauge.report.series import Series

HALF, FULL, PHONE = ChartSize(560, 190, 240), ChartSize(1140, 0, 240), ChartSize(340, 170, 110, pointer=False)
STREAM_TIME = ChartAxis("stream time", unit="s")
RUN_TIME = ChartAxis("time since the start of the feed", unit="s")
SHARE = ChartAxis("", charts.SHARE_FORM, (0, 1.04))


@dataclass(frozen=True)
class Figure:
    """One plot of the page: its message, a note, the drawings for wide and narrow screens, whom the legend names.

    ``chart`` and ``size`` draw it again for a file, ``numbers`` are the table behind it. ``labels`` are names in the
    legend for some series that are not the page's.
    """

    message: str
    note: str
    drawings: tuple[str, ...]
    series: tuple[int, ...] = ()
    span: str = "half"
    chart: Callable[[ChartSize], charts.Spec] | None = None
    size: ChartSize = HALF
    numbers: FigureNumbers | None = None
    labels: tuple[tuple[int, str], ...] = ()

    def legend(self, labels: Sequence[str]) -> list[tuple[int, str]]:
        """The series of the legend with their names; ``labels`` are those of the page."""
        own = dict(self.labels)
        return [(index, own.get(index) or labels[index]) for index in self.series]


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
    numbers: FigureNumbers | None = None,
    labels: tuple[tuple[int, str], ...] = (),
) -> Figure:
    """A chart as a figure; one of other than the usual sizes takes the page's full width."""
    wide, narrow = sizes or (HALF, PHONE)
    drawings = draw(drawing, message, chart, (wide, narrow))
    return Figure(message, note, drawings, series, "full" if sizes else "half", chart, wide, numbers, labels)


class Plot(NamedTuple):
    """A plot of the page: the heading of its section, its place on the page (0 to 100), and what draws it."""

    section: str
    place: int
    figures: Callable[[ChartDrawing, Sequence[Series]], Iterator[Figure]]


LOAD, RIGHT, LATE, COST, STEADY = "Under which load", "How right", "How late", "At what cost", "How steady"
"""Sections of the page."""


@cache
def plots() -> tuple[Plot, ...]:
    """The plots of all files here, by their places."""
    modules = [import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__)]
    return tuple(sorted((plot for module in modules for plot in module.PLOTS), key=lambda plot: plot.place))
