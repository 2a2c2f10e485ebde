"""Measures over a load: a point for each swept value, a line for each combination of other traits, with intervals.

A load is a number that differs between series: the pace, a parameter of the workload or of the query. A line joins the
series that differ only in it.
"""

import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import Final, NamedTuple, TypeAlias

from streamgauge.model.phrases import counted
from streamgauge.model.verdict import Verdict
from streamgauge.report.charts import SHARE_FORM, ChartAxis, ChartDrawing, ChartLine, ChartSize, Spec, lines
from streamgauge.report.figures import Cell, FigureNumbers, named
from streamgauge.report.intervals import MeanInterval, mean_interval
from streamgauge.report.numbers import NOTHING, duration, number, percent
from streamgauge.report.plots import LOAD, SHARE, Figure, Plot, PlotMeasure, figure
from streamgauge.report.series import Bin, Series, median_delay, own_traits, traits_of, varying

WIDE_RANGE = 8
"""The ratio of the greatest to the smallest load from which the axis is logarithmic."""


_NUMBER: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|)")
_SECONDS: Final = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_FINDINGS: Final = frozenset({"content"})
"""Traits of a stream that depend on the load."""


class LoadLine(NamedTuple):
    """The index of the ``first`` series, a label without the load, and the loads with their series in order."""

    first: int
    label: str
    places: tuple[tuple[float, Series], ...]


def varied_loads(series: Sequence[Series]) -> list[str]:
    """The names of the numbers that differ between series."""
    traits = [traits_of(one.header) for one in series]
    return [name for name in varying(traits) if len({load for one in traits if (load := _load(one, name))}) > 1]


def _load(traits: Mapping[str, str], name: str) -> float | None:
    """A trait as a number above 0: a plain one, or a duration in s."""
    match = _NUMBER.fullmatch(traits.get(name, ""))
    return None if match is None else float(match[1]) * _SECONDS[match[2]] or None


def load_lines(series: Sequence[Series], name: str) -> list[LoadLine]:
    """The lines over a load: series that differ only in it, at least two with different loads."""
    groups: dict[Hashable, list[tuple[float, Series]]] = {}
    for one in series:
        traits, header = traits_of(one.header), one.header
        if (load := _load(traits, name)) is not None:
            # What a load causes must not separate its points into lines of one.
            rest = tuple(sorted((key, value) for key, value in traits.items() if key not in (name, *_FINDINGS)))
            own = tuple(sorted(own_traits(header).items()))
            groups.setdefault((header.engine, header.semantics.name, own, rest), []).append((load, one))
    return [
        LoadLine(places[0][1].index, _without(places[0][1], name), tuple(sorted(places, key=lambda place: place[0])))
        for places in groups.values()
        if len({load for load, _ in places}) > 1
    ]


def _without(one: Series, name: str) -> str:
    """The label of a series without one of its traits."""
    return one.label.replace(f", {name} {traits_of(one.header)[name]}", "")


LoadMeasure: TypeAlias = PlotMeasure[Verdict]
"""A measure of a run over a load."""

MEASURES: Final = (
    LoadMeasure("Delay", lambda run: median_delay(run.windows), ChartAxis("median delay", unit="ms"), duration),
    LoadMeasure("Precision", lambda run: run.precision, SHARE._replace(title="precision, %"), percent),
    LoadMeasure("Recall", lambda run: run.recall, SHARE._replace(title="recall, %"), percent),
)


@dataclass(frozen=True)
class LoadPoint:
    """A measure of the runs of one series at one load; ``values`` are of its repetitions that have one."""

    load: float
    values: tuple[float, ...]
    interval: MeanInterval


def loads(drawing: ChartDrawing, series: Sequence[Series]) -> Iterator[Figure]:
    """A figure for each load and measure, unless the measure is constant."""
    for name in varied_loads(series):
        drawn = load_lines(series, name)
        for measure in MEASURES if drawn else ():
            yield from _over_load(drawing, name, measure, drawn)


def _over_load(drawing: ChartDrawing, name: str, measure: LoadMeasure, drawn: Sequence[LoadLine]) -> Iterator[Figure]:
    points = {line.first: _points(line, measure) for line in drawn}
    shown = [line for line in drawn if points[line.first]]
    every = [point for line in shown for point in points[line.first]]
    # A flat or single point is no curve.
    if len({point.load for point in every}) < 2 or len({point.interval.mean for point in every}) < 2:
        return
    at = [point.load for point in every]
    axis = ChartAxis(_title(name), scale="log" if min(at) > 0 and max(at) / min(at) >= WIDE_RANGE else "linear")

    def chart(size: ChartSize) -> Spec:
        content = [ChartLine(line.first, False, [_bin(line, one, name, measure) for one in points[line.first]])
                   for line in shown]  # fmt: skip
        return lines(content, axis, measure.axis, size)

    means = [point.interval.mean for point in every]
    message = f"{measure.name} over {_title(name)}: {measure.show(min(means))} to {measure.show(max(means))}"
    numbers = FigureNumbers(
        named(measure.name, "over", name),
        ("series", name, "repetition", _column(measure)),
        partial(_every, shown, points),
        ("series", name, "mean", "95% interval", "runs"),
        tuple(_cells(line, point, measure) for line in shown for point in points[line.first]),
    )
    labels = tuple((line.first, line.label) for line in shown)
    indexes = tuple(line.first for line in shown)
    yield figure(drawing, message, chart, indexes, _note(every), numbers=numbers, labels=labels)


def _points(line: LoadLine, measure: LoadMeasure) -> list[LoadPoint]:
    points = []
    for load, one in line.places:
        # The precision of a run without judged windows is 0, which says nothing about the load.
        values = [measure.value(verdict) for _, verdict in one.runs if verdict.windows]
        present = tuple(value for value in values if value is not None)
        if present:
            points.append(LoadPoint(load, present, mean_interval(present)))
    return points


def _title(name: str) -> str:
    return "pace, times real time" if name == "pace" else name


def _column(measure: LoadMeasure) -> str:
    return "median delay, ms" if measure.axis.unit == "ms" else measure.name.lower()


def _bin(line: LoadLine, point: LoadPoint, name: str, measure: LoadMeasure) -> Bin:
    shown = point.interval
    tip = f"{line.label}, {name} {number(point.load)}, {counted(shown.runs, 'run')}: mean {measure.show(shown.mean)}"
    if shown.half is not None:
        tip += f", 95% interval {_between(shown, measure)}"
    values = shown.runs if shown.half is not None else 1
    greatest = 1.0 if measure.axis.form == SHARE_FORM else inf
    return Bin(point.load, max(0.0, shown.low), shown.mean, min(greatest, shown.high), values, tip)


def _between(shown: MeanInterval, measure: LoadMeasure) -> str:
    return f"{measure.show(shown.low)} to {measure.show(shown.high)}"


def _cells(line: LoadLine, point: LoadPoint, measure: LoadMeasure) -> tuple[str, ...]:
    shown = point.interval
    between = NOTHING if shown.half is None else _between(shown, measure)
    return line.label, number(point.load), measure.show(shown.mean), between, str(shown.runs)


def _every(drawn: Sequence[LoadLine], points: dict[int, list[LoadPoint]]) -> Iterator[tuple[Cell, ...]]:
    for line in drawn:
        for point in points[line.first]:
            for repetition, value in enumerate(point.values, 1):
                yield line.label, point.load, repetition, value


def _note(points: Sequence[LoadPoint]) -> str:
    """The meaning of a line and its band."""
    if all(point.interval.half is None for point in points):
        return "A point is the mean over the runs; three repetitions or more have a 95% interval of it."
    return "The line is the mean over the repetitions, the band its 95% interval (Student's t)."


PLOTS = (Plot(LOAD, 5, loads),)
