"""Plots of measures: over time, against each other and over repetitions, with resources and the feeder."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import TypeAlias

from streamgauge.model.phrases import counted
from streamgauge.model.run import Sample
from streamgauge.model.verdict import WindowVerdict
from streamgauge.report import charts
from streamgauge.report import series as runs
from streamgauge.report.charts import ChartAxis, ChartDrawing, ChartLine, ChartSize, PlacedBox
from streamgauge.report.numbers import duration, mebibytes, number, percent
from streamgauge.report.plots import COST, HALF, LATE, RIGHT, RUN_TIME, SHARE, STEADY, STREAM_TIME, Figure, Plot, figure
from streamgauge.report.series import Point, Series, box, spread_sample, state, unit_over

POINTS = 1200  # over all series of one plot; every tooltip costs about 300 bytes
MiB = 2**20

Message: TypeAlias = Callable[[Sequence[Series]], str]


@dataclass(frozen=True)
class WindowMeasure:
    """A measure of windows in a line plot: name, value of a report, axis, writing of a value, and message."""

    name: str
    value: Callable[[WindowVerdict], float | None]
    axis: ChartAxis
    show: Callable[[float], str]
    message: Message


def _windows(series: Sequence[Series]) -> list[WindowVerdict]:
    return [window for one in series for _, verdict in one.runs for window in verdict.windows]


def _content(window: WindowVerdict) -> float | None:
    return None if state(window) == "surplus" else window.content


def _below(name: str, value: Callable[[WindowVerdict], float]) -> Callable[[Sequence[Series]], str]:
    def message(series: Sequence[Series]) -> str:
        values = [value(window) for window in _windows(series)]
        low = sum(value < 1 for value in values)
        unit = unit_over(series)
        if not low:
            return f"{name} is 100% in every {unit}"
        return f"{name} is below 100% in {low:,} of {counted(len(values), unit)}"

    return message


def _delays(series: Sequence[Series]) -> str:
    delays = [window.delay for window in _windows(series) if window.delay is not None]
    return f"Delay: median {duration(median(delays))}, at most {duration(max(delays))}"


def _contents(series: Sequence[Series]) -> str:
    contents = [window.content for window in _windows(series) if _content(window) is not None]
    return f"Window size: {min(contents):,} to {max(contents):,} triples"


def _of_share(name: str, value: Callable[[WindowVerdict], float]) -> WindowMeasure:
    return WindowMeasure(name, value, SHARE._replace(title=f"{name.lower()}, %"), percent, _below(name, value))


PRECISION = _of_share("Precision", lambda window: window.precision)
RECALL = _of_share("Recall", lambda window: window.recall)
CONTENT = WindowMeasure("Window size", _content, ChartAxis("triples in the window"), number, _contents)
DELAY = WindowMeasure("Delay", lambda window: window.delay, ChartAxis("delay, ms", ",~r"), duration, _delays)


def share_of(size: ChartSize, series: Sequence[Series]) -> int:
    """The number of bins that each series may have in a plot of this size."""
    return max(12, min(size.bins, POINTS // max(1, len(series))))


def of_kind(drawing: ChartDrawing, series: Sequence[Series], kind: WindowMeasure) -> Iterator[Figure]:
    """The line plot of one value per report, all series overlaid."""
    content = {one.index: runs.of_windows(one, kind.value) for one in series}
    yield from _line_plot(drawing, series, content, (kind.message, STREAM_TIME, kind.axis, kind.show))


def _line_plot(
    drawing: ChartDrawing,
    series: Sequence[Series],
    content: dict[int, list[Point]],
    how: tuple[Message, ChartAxis, ChartAxis, Callable[[float], str]],
) -> Iterator[Figure]:
    message, x, y, show = how
    drawn = [one for one in series if content[one.index]]
    if not drawn:
        return

    def chart(size: ChartSize) -> charts.Spec:
        limit = share_of(size, drawn)
        made = [ChartLine(one.index, False, runs.binned(one, content[one.index], limit, show)) for one in drawn]
        return charts.lines(made, x, y, size)

    text = message(drawn)
    longest = max(len(content[one.index]) for one in drawn)
    note = thinning(drawn, longest)
    yield figure(drawing, text, chart, tuple(one.index for one in drawn), note)


def thinning(series: Sequence[Series], count: int) -> str:
    """The rule by which a plot with ``count`` values in its longest series is thinned, empty when all are shown."""
    limit = share_of(HALF, series)
    repeated = max(len(one.runs) for one in series) > 1
    if repeated and count <= limit * max(len(one.runs) for one in series):
        return "Line: median over the repetitions; band: lowest to highest."
    if count <= limit:
        return ""
    return f"{count:,} values in at most {limit} equal stretches; line: median of each, band: lowest to highest."


def result_sizes(drawing: ChartDrawing, series: Sequence[Series]) -> Iterator[Figure]:
    """Expected (dashed) and actual result size per report."""
    drawn = [one for one in series if any(verdict.windows for _, verdict in one.runs)]
    if not drawn:
        return

    def chart(size: ChartSize) -> charts.Spec:
        limit = share_of(size, [*drawn, *drawn])
        sizes = [line for one in drawn for line in _size_lines(one, limit)]
        return charts.lines(sizes, STREAM_TIME, ChartAxis("result size, rows"), size)

    windows = _windows(drawn)
    off = sum(window.expected != window.actual for window in windows)
    unit = unit_over(drawn)
    text = "Result size is the expected one in every " + unit
    if off:
        text = f"Result size differs from the expected one in {off:,} of {counted(len(windows), unit)}"
    note = "Solid: actual; dashed: expected. " + thinning(
        [*drawn, *drawn], max(len(verdict.windows) for one in drawn for _, verdict in one.runs)
    )
    yield figure(drawing, text, chart, tuple(one.index for one in drawn), note)


def _size_lines(one: Series, limit: int) -> list[ChartLine]:
    actual = runs.of_windows(one, lambda window: window.actual)
    expected = runs.of_windows(one, lambda window: window.expected)
    return [
        ChartLine(one.index, False, runs.binned(one, actual, limit, number)),
        ChartLine(one.index, True, runs.binned(one, expected, limit, number)),
    ]


def delay_by_size(drawing: ChartDrawing, series: Sequence[Series]) -> Iterator[Figure]:
    """Delay against result size, a point per report."""
    content = {one.index: _delay_points(one) for one in series}
    drawn = [one for one in series if content[one.index]]
    if not drawn:
        return

    def chart(size: ChartSize) -> charts.Spec:
        limit = max(20, min(2 * size.bins, POINTS // len(drawn)))
        kept = {one.index: spread_sample(content[one.index], limit) for one in drawn}
        return charts.scatter(kept, ChartAxis("result size, rows"), ChartAxis("delay, ms", ",~r"), size)

    count = sum(len(content[one.index]) for one in drawn)
    note = f"{count:,} reports; where too many to draw: the longest delays of each size and every n-th of the rest."
    series_of = tuple(one.index for one in drawn)
    yield figure(drawing, "Delay against result size", chart, series_of, note if count > 200 else "")


def _delay_points(one: Series) -> list[Point]:
    return [
        Point(window.actual, window.delay, runs.tooltip(one, judged, window))
        for judged in one.runs
        for window in judged[1].windows
        if window.delay is not None
    ]


@dataclass(frozen=True)
class SampleMeasure:
    """A resource: value of a sample, axis title, writing of a value, and its message's first word."""

    name: str
    value: Callable[[Sample], float]
    axis: ChartAxis
    show: Callable[[float], str]


READINGS = (
    SampleMeasure(
        "Memory",
        lambda sample: sample.rss / MiB,
        ChartAxis("resident memory, MiB"),
        lambda value: mebibytes(value * MiB),
    ),
    SampleMeasure(
        "CPU", lambda sample: sample.cpu_percent, ChartAxis("CPU, % of one core"), lambda value: f"{number(value)}%"
    ),
    SampleMeasure("Threads", lambda sample: sample.threads, ChartAxis("threads"), number),
)


def resources(drawing: ChartDrawing, series: Sequence[Series]) -> Iterator[Figure]:
    """Memory, CPU and threads of the engine's process tree over the time of the run."""
    for reading in READINGS:
        content = {one.index: runs.of_samples(one, reading.value, reading.show) for one in series}
        highest = max((point.y for found in content.values() for point in found), default=0.0)
        text = f"{reading.name}: at most {reading.show(highest)}"
        yield from _line_plot(drawing, series, content, (_saying(text), RUN_TIME, reading.axis, reading.show))


def feed(drawing: ChartDrawing, series: Sequence[Series]) -> Iterator[Figure]:
    """The feeder's lateness over stream time, for runs that were paced."""
    content = {one.index: runs.of_feed(one) for one in series}
    latest = max((point.y for found in content.values() for point in found), default=0.0)
    text = f"Feeder: at most {duration(latest)} later than planned"
    axis = ChartAxis("lateness of the feeder, ms", ",~r")
    yield from _line_plot(drawing, series, content, (_saying(text), STREAM_TIME, axis, duration))


def _saying(text: str) -> Message:
    return lambda _: text


BOXES = 24  # of each series, on a wide screen


def box_plots(drawing: ChartDrawing, series: Sequence[Series]) -> Iterator[Figure]:
    """Three figures over the series that were repeated; one of equal values is only a sentence."""
    repeated = [one for one in series if len(one.runs) > 1]
    if repeated:
        for kind in (PRECISION, RECALL, DELAY):
            yield from _figure(drawing, repeated, kind)


def _figure(drawing: ChartDrawing, series: Sequence[Series], kind: WindowMeasure) -> Iterator[Figure]:
    values = {found for one in series for columns in _columns(one, kind).values() for found in columns}
    unit = unit_over(series)
    if not values:
        return
    if len(values) == 1:
        text = f"{kind.name} is {kind.show(values.pop())} in every {unit} of every repetition"
        yield Figure(text, "", ())
        return
    text = f"{kind.name} over the repetitions: {kind.show(min(values))} to {kind.show(max(values))}"
    width = _width(series, BOXES)
    note = "Whiskers: lowest and highest; box: quartiles."
    if width > 1:
        note += f" Each box takes {counted(width, unit)} together."

    def chart(size: ChartSize) -> charts.Spec:
        placed = _placed(series, kind, BOXES if size.width > 400 else 8)
        return charts.boxes(placed, ChartAxis(unit), kind.axis, size)

    yield figure(drawing, text, chart, tuple(one.index for one in series), note)


def _columns(one: Series, kind: WindowMeasure) -> dict[int, list[float]]:
    columns: dict[int, list[float]] = {}
    for _, verdict in one.runs:
        for window in verdict.windows:
            value = kind.value(window)
            if value is not None:
                columns.setdefault(window.index, []).append(value)
    return columns


def _width(series: Sequence[Series], limit: int) -> int:
    last = max((window.index for one in series for _, verdict in one.runs for window in verdict.windows), default=0)
    return -(-(last + 1) // max(4, limit // len(series)))


def _placed(series: Sequence[Series], kind: WindowMeasure, limit: int) -> list[PlacedBox]:
    width = _width(series, limit)
    found: dict[tuple[int, int], list[float]] = {}
    for one in series:
        for index, values in _columns(one, kind).items():
            found.setdefault((index // width, one.index), []).extend(values)
    labels = {one.index: one.label for one in series}
    return [_box(group, index, width, values, kind, labels[index]) for (group, index), values in sorted(found.items())]


def _box(group: int, index: int, width: int, values: list[float], kind: WindowMeasure, label: str) -> PlacedBox:
    first, last = group * width, group * width + width - 1
    name = f"{first:,}" if width == 1 else f"{first:,}–{last:,}"
    made = box(values)
    first_to_third = ", ".join(map(kind.show, (made.first, made.middle, made.third)))
    tip = (
        f"{label}, {name}, {counted(made.values, 'value')}: lowest {kind.show(made.low)}, "
        f"quartiles {first_to_third}, highest {kind.show(made.high)}"
    )
    return PlacedBox(name, index, made, tip)


PLOTS = (
    Plot(RIGHT, 10, partial(of_kind, kind=PRECISION)),
    Plot(RIGHT, 20, partial(of_kind, kind=RECALL)),
    Plot(RIGHT, 30, result_sizes),
    Plot(RIGHT, 40, partial(of_kind, kind=CONTENT)),
    Plot(LATE, 70, partial(of_kind, kind=DELAY)),
    Plot(LATE, 75, delay_by_size),
    Plot(LATE, 80, feed),
    Plot(COST, 90, resources),
    Plot(STEADY, 100, box_plots),
)
