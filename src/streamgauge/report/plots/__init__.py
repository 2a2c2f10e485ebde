"""The plots of the page of runs; each file here has some in ``PLOTS``, and another plot is another file.

A plot has its message as a heading and the rule of thinning as a note. Borders are bars over stream time (YABench,
figure 6); box plots are over repetitions, with adjacent windows grouped.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, Generic, NamedTuple, TypeVar

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
    """A plot of the page: message, note, drawings for wide and narrow screens, series of the legend.

    ``chart`` and ``size`` draw it again for a file, ``numbers`` are its table. ``labels`` are names of series in the
    legend that differ from the page's.
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
        """The series of the legend with their names; ``labels`` are the page's."""
        own = dict(self.labels)
        return [(index, own.get(index) or labels[index]) for index in self.series]


def draw(
    drawing: ChartDrawing,
    message: str,
    chart: Callable[[ChartSize], charts.Spec],
    sizes: tuple[ChartSize, ChartSize] = (HALF, PHONE),
) -> tuple[str, ...]:
    """Draw a chart for wide and for narrow screens."""
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
    """A chart as a figure; one of an unusual size takes the page's full width."""
    wide, narrow = sizes or (HALF, PHONE)
    drawings = draw(drawing, message, chart, (wide, narrow))
    return Figure(message, note, drawings, series, "full" if sizes else "half", chart, wide, numbers, labels)


Of = TypeVar("Of", contravariant=True)


@dataclass(frozen=True)
class PlotMeasure(Generic[Of]):
    """A measure in plots: its name, its value of a window, sample or verdict, its axis, and how a value is written.

    Only the value of a window may be ``None``.
    """

    name: str
    value: Callable[[Of], Any]
    axis: ChartAxis
    show: Callable[[float], str]


class Plot(NamedTuple):
    """A plot of the page: heading of its section, order on the page (0 to 100), and function."""

    section: str
    place: int
    figures: Callable[[ChartDrawing, Sequence[Series]], Iterator[Figure]]


LOAD, RIGHT, LATE, COST, STEADY = "Under which load", "How right", "How late", "At what cost", "How steady"
"""Sections of the page."""


@cache
def plots() -> tuple[Plot, ...]:
    """The plots of all files here, in order."""
    # On demand: these files import this one.
    modules = [import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__)]
    return tuple(sorted((plot for module in modules for plot in module.PLOTS), key=lambda plot: plot.place))
