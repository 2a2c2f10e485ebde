"""Plots of measures: over time, against each other and over repetitions, with resources and the feeder."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any, TypeAlias

from streamgauge.model.phrases import counted
from streamgauge.model.run import Sample
from streamgauge.model.verdict import WindowVerdict
from streamgauge.report import charts
from streamgauge.report import series as runs
from streamgauge.report.charts import ChartAxis, ChartDrawing, ChartLine, ChartSize, PlacedBox, RuleLine
from streamgauge.report.figures import SHOWN, Cell, FigureNumbers, named
from streamgauge.report.numbers import duration, mebibytes, number, percent
from streamgauge.report.plots import (
    COST,
    FULL,
    HALF,
    LATE,
    PHONE,
    RIGHT,
    RUN_TIME,
    SHARE,
    STEADY,
    STREAM_TIME,
    Figure,
    Plot,
    PlotMeasure,
    figure,
)
from streamgauge.report.series import Point, PointCloud, Series, box, place, spread_sample, state, unit_over

POINTS = 1200  # over all series of one plot
SCATTERED = 120  # points of one plot without lines; every tooltip costs about 200 bytes
RINGED = 40  # late reports of one plot
POINTED = 18  # px between two places of a line that can be pointed at
MiB = 2**20

Message: TypeAlias = Callable[[Sequence[Series]], str]
Show: TypeAlias = Callable[[float], str]


@dataclass(frozen=True)
class WindowMeasure(PlotMeasure[WindowVerdict]):
    """A measure of windows in a line plot, with the plot's message."""

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
CONTENT = WindowMeasure("Window size", _content, ChartAxis("triples in the window", unit="count"), number, _contents)
DELAY = WindowMeasure("Delay", lambda window: window.delay, ChartAxis("delay", unit="ms"), duration, _delays)


def share_of(size: ChartSize, series: Sequence[Series]) -> int:
    """The maximum number of bins of each series in a plot of this size."""
    return max(12, min(size.bins, POINTS // max(1, len(series))))


def of_kind(drawing: ChartDrawing, series: Sequence[Series], kind: WindowMeasure) -> Iterator[Figure]:
    """The line plot of a measure, a value per report, with all series overlaid."""
    content = {one.index: runs.of_windows(one, kind.value) for one in series}
    every = partial(_every_window, series, (kind.value,))
    columns = (*_PLACED, _column(kind))
    yield from _line_plot(
        drawing, series, content, LinePlot(kind, kind.message, STREAM_TIME, columns, every, unit_over(series))
    )


_PLACED = ("series", "repetition", "window", "stream time, s")


def _column(kind: PlotMeasure[Any]) -> str:
    """The heading of a measure in a table: its name with the unit."""
    unit = kind.axis.unit if kind.axis.unit not in ("", "count") else ""
    title = kind.axis.title.removesuffix(", %") if kind.axis.form == charts.SHARE_FORM else kind.axis.title
    return f"{title}, {unit}" if unit else title


def _every_window(
    series: Sequence[Series], values: Sequence[Callable[[WindowVerdict], float | None]]
) -> Iterator[tuple[Cell, ...]]:
    """A line per report with all the values: series, repetition, number, place in stream time (s), values."""
    for one in series:
        for run, verdict in one.runs:
            again = one.repetition(run.header)
            for window in verdict.windows:
                at, values_ = place(window), [value(window) for value in values]
                # The same reports as in the plot, which has no place for one without a value.
                if at is not None and None not in values_:
                    yield one.label, again, window.index, at / 1000, *values_


@dataclass(frozen=True)
class LinePlot:
    """A line plot: measure, message, x axis, all numbers with their columns, and the noun for a value."""

    kind: PlotMeasure[Any]
    message: Message
    x: ChartAxis
    columns: tuple[str, ...]
    every: Callable[[], Iterator[tuple[Cell, ...]]]
    noun: str


def _line_plot(
    drawing: ChartDrawing, series: Sequence[Series], content: Mapping[int, PointCloud], plot: LinePlot
) -> Iterator[Figure]:
    drawn = [one for one in series if content[one.index].size]
    if not drawn:
        return
    kind = plot.kind

    def chart(size: ChartSize) -> charts.Spec:
        drawn_lines = [_line(one, content[one.index], size, share_of(size, drawn), kind.show) for one in drawn]
        return charts.lines(drawn_lines, plot.x, kind.axis, size, bounds, late)

    late, bounds = _late(drawn) if kind is DELAY else ([], [])
    longest = max(content[one.index].size for one in drawn)
    marked = "A ring marks a report that came later than allowed. " if late else ""
    note = marked + thinning(drawn, longest, plot.noun)
    numbers = FigureNumbers(
        named(kind.name), plot.columns, plot.every, *_brief(drawn, content, plot.columns[-2:], kind.show)
    )
    yield figure(drawing, plot.message(drawn), chart, tuple(one.index for one in drawn), note, numbers=numbers)


def _late(series: Sequence[Series]) -> tuple[list[Point], list[RuleLine]]:
    """The reports that were later than allowed (the latest, if there are many), and the allowed delays."""
    points = PointCloud.joined([runs.of_windows(one, _late_delay) for one in series])
    bounds = dict.fromkeys(verdict.delay_bound for one in series for _, verdict in one.runs if verdict.delay_bound)
    lines = [RuleLine("y", bound, f"allowed: {duration(bound)}") for bound in bounds if bound is not None]
    return spread_sample(points, RINGED), lines if points.size else []


def _line(
    one: Series, points: PointCloud, size: ChartSize, limit: int, show: Show, *, dashed: bool = False
) -> ChartLine:
    """The line of a series; fewer bins have tooltips than are drawn."""
    # Closer than this, a pointer could not tell two places apart, and each tooltip costs bytes.
    marks = runs.binned(one, points, min(limit, size.width // POINTED), show) if size.pointer and not dashed else ()
    return ChartLine(one.index, dashed, runs.binned(one, points, limit, show), marks)


def _brief(
    series: Sequence[Series], content: Mapping[int, PointCloud], columns: Sequence[str], show: Show
) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...], str]:
    """The table of a line plot: columns, a line per stretch of a series, and a note on their selection."""
    stretches = [(one, bin_) for one in series for bin_ in runs.binned(one, content[one.index], SHOWN, show)]
    whole = all(bin_.values == 1 for _, bin_ in stretches)
    names = [f"{columns[0]}", f"{columns[1]}" if whole else "median", *(() if whole else ("lowest", "highest"))]
    lines = []
    for one, bin_ in stretches:
        shown = (bin_.middle,) if whole else (bin_.middle, bin_.low, bin_.high)
        lines.append((one.label, number(bin_.x), *map(show, shown)))
    count = sum(content[one.index].size for one in series)
    note = "" if whole else f"A line stands for neighbouring values, {count:,} in all."
    return ("series", *names), tuple(lines), note


def thinning(series: Sequence[Series], count: int, noun: str) -> str:
    """The rule of thinning for ``count`` values in the longest series; empty if all are shown."""
    limit = share_of(HALF, series)
    repetitions = max(len(one.runs) for one in series)
    if repetitions > 1 and count <= limit * repetitions:
        return "The line is the median over the repetitions; the band reaches from the lowest to the highest."
    if count <= limit:
        return ""
    return (
        f"Of {counted(count, noun)}, neighbours are drawn together: the line is their median, the band reaches from "
        "their lowest to their highest value."
    )


def result_sizes(drawing: ChartDrawing, series: Sequence[Series]) -> Iterator[Figure]:
    """Expected (dashed) and received result size per report."""
    drawn = [one for one in series if any(verdict.windows for _, verdict in one.runs)]
    if not drawn:
        return
    actual = {one.index: runs.of_windows(one, _actual) for one in drawn}
    expected = {one.index: runs.of_windows(one, _expected) for one in drawn}

    def chart(size: ChartSize) -> charts.Spec:
        # Each series has two lines here.
        limit = share_of(size, [*drawn, *drawn])
        curves = [
            _line(one, points[one.index], size, limit, number, dashed=points is expected)
            for one in drawn
            for points in (actual, expected)
        ]
        return charts.lines(curves, STREAM_TIME, ChartAxis("result size, rows", unit="count"), size)

    windows = _windows(drawn)
    off = sum(window.expected != window.actual for window in windows)
    unit = unit_over(drawn)
    text = "Result size is the expected one in every " + unit
    if off:
        text = f"Result size differs from the expected one in {off:,} of {counted(len(windows), unit)}"
    longest = max(len(verdict.windows) for one in drawn for _, verdict in one.runs)
    note = "Solid: received; dashed: expected. " + thinning([*drawn, *drawn], longest, unit)
    columns = (*_PLACED, "received, rows", "expected, rows")
    every = partial(_every_window, drawn, (_actual, _expected))
    brief = _brief(drawn, actual, ("stream time, s", "received, rows"), number)
    numbers = FigureNumbers("result-size", columns, every, *brief)
    yield figure(drawing, text, chart, tuple(one.index for one in drawn), note, numbers=numbers)


def _actual(window: WindowVerdict) -> float:
    return window.actual


def _expected(window: WindowVerdict) -> float:
    return window.expected


def delay_by_size(drawing: ChartDrawing, series: Sequence[Series]) -> Iterator[Figure]:
    """Delay against result size, a point per report."""
    content = {one.index: runs.of_windows(one, lambda window: window.delay, _actual) for one in series}
    drawn = [one for one in series if content[one.index].size]
    if not drawn:
        return

    def sampled(bins: int) -> dict[int, list[Point]]:
        limit = max(20, min(bins // 2, SCATTERED // len(drawn)))
        return {one.index: spread_sample(content[one.index], limit) for one in drawn}

    def chart(size: ChartSize) -> charts.Spec:
        x, y = ChartAxis("result size, rows", unit="count"), ChartAxis("delay", unit="ms")
        return charts.scatter(sampled(size.bins), x, y, size)

    count = sum(content[one.index].size for one in drawn)
    kept = sampled(HALF.bins)
    note = ""
    if sum(map(len, kept.values())) < count:
        note = (
            f"Of {counted(count, unit_over(drawn))}, those are drawn that took longest for their result size, and an "
            "even sample of the others; equal ones once."
        )
    lines = [(one.label, number(point.x), duration(point.y)) for one in drawn for point in _longest(kept[one.index])]
    message = "" if len(lines) == count else f"The longest delays of {counted(count, 'value')}."
    every = partial(_every_window, drawn, (_actual, lambda window: window.delay))
    numbers = FigureNumbers(
        "delay-by-result-size", (*_PLACED, "result size, rows", "delay, ms"), every,
        ("series", "result size, rows", "delay"), tuple(lines), message,
    )  # fmt: skip
    names = tuple(one.index for one in drawn)
    yield figure(drawing, "Delay against result size", chart, names, note, numbers=numbers)


def _longest(points: Sequence[Point]) -> list[Point]:
    return sorted(points, key=lambda point: -point.y)[:SHOWN]


def _late_delay(window: WindowVerdict) -> float | None:
    """The delay (ms) of a report that was later than allowed."""
    return window.delay if window.late else None


SampleMeasure: TypeAlias = PlotMeasure[Sample]
"""A resource."""

READINGS = (
    SampleMeasure(
        "Memory",
        lambda sample: sample.rss / MiB,
        ChartAxis("resident memory", unit="MiB"),
        lambda value: mebibytes(value * MiB),
    ),
    SampleMeasure(
        "CPU", lambda sample: sample.cpu_percent, ChartAxis("CPU, % of one core"), lambda value: f"{number(value)}%"
    ),
    SampleMeasure("Threads", lambda sample: sample.threads, ChartAxis("threads", unit="count"), number),
)


FEEDER = SampleMeasure("Feeder", lambda _: 0.0, ChartAxis("lateness of the feeder", unit="ms"), duration)


def resources(drawing: ChartDrawing, series: Sequence[Series]) -> Iterator[Figure]:
    """Memory, CPU and threads of the engine's process tree over the time of the run."""
    for reading in READINGS:
        content = {one.index: runs.of_samples(one, reading.value, reading.show) for one in series}
        # The message has the exact maximum, whatever the plot's bins hide.
        highest = max((bin_.highest for bin_ in content.values()), default=0.0)
        text = f"{reading.name}: at most {reading.show(highest)}"
        columns = ("series", "repetition", "time since the start of the feed, s", _column(reading))
        every = partial(_every_sample, series, reading.value)
        plot = LinePlot(reading, _saying(text), RUN_TIME, columns, every, "sample")
        yield from _line_plot(drawing, series, content, plot)


def _every_sample(series: Sequence[Series], value: Callable[[Sample], float]) -> Iterator[tuple[Cell, ...]]:
    for one in series:
        for run, _ in one.runs:
            again = one.repetition(run.header)
            for sample in run.samples:
                yield one.label, again, (sample.at - run.header.started) / 1e9, value(sample)


def feed(drawing: ChartDrawing, series: Sequence[Series]) -> Iterator[Figure]:
    """The feeder's lateness over stream time, for paced runs."""
    content = {one.index: runs.of_feed(one) for one in series}
    latest = max((bin_.highest for bin_ in content.values()), default=0.0)
    text = f"Feeder: at most {duration(latest)} later than planned"
    columns = ("series", "repetition", "stream time, s", _column(FEEDER))
    every = partial(_every_element, series)
    yield from _line_plot(
        drawing, series, content, LinePlot(FEEDER, _saying(text), STREAM_TIME, columns, every, "element")
    )


def _every_element(series: Sequence[Series]) -> Iterator[tuple[Cell, ...]]:
    for one in series:
        for run, _ in one.runs:
            again = one.repetition(run.header)
            for fed in run.fed if run.header.factor is not None else ():
                yield one.label, again, fed.time / 1000, runs.lateness(fed)


def _saying(text: str) -> Message:
    return lambda _: text


BOXES = 24  # on half of a wide screen
WIDE_BOXES = 100  # on all of it


def box_plots(drawing: ChartDrawing, series: Sequence[Series]) -> Iterator[Figure]:
    """Three figures over repeated series, or six if some have too many windows for a box each.

    Equal values are only a sentence.
    """
    repeated = [one for one in series if len(one.runs) > 1]
    few = [one for one in repeated if _last(one) < BOXES]
    many = [one for one in repeated if one not in few]
    for group, about in ((few, ""), (many, ": " + ", ".join(one.label for one in many) if few else "")):
        for kind in (PRECISION, RECALL, DELAY) if group else ():
            yield from _figure(drawing, group, kind, about)


def _last(one: Series) -> int:
    """The greatest number of a report in any repetition."""
    return max((window.index for _, verdict in one.runs for window in verdict.windows), default=0)


def _figure(drawing: ChartDrawing, series: Sequence[Series], kind: WindowMeasure, about: str) -> Iterator[Figure]:
    # Of all windows, not of the boxes: the message must not depend on how many are drawn.
    values = {column for one in series for columns in _columns(one, kind).values() for column in columns}
    unit = unit_over(series)
    if not values:
        return
    # One value everywhere is a sentence and no drawing.
    if len(values) == 1:
        text = f"{kind.name} is {kind.show(values.pop())} in every {unit} of every repetition{about}"
        yield Figure(text, "", ())
        return
    text = f"{kind.name} over the repetitions{about}: {kind.show(min(values))} to {kind.show(max(values))}"
    count = sum(len(_columns(one, kind)) for one in series)
    wide = BOXES < count <= WIDE_BOXES
    limit = WIDE_BOXES if wide else BOXES
    width = _width(series, limit)
    note = "A line reaches from the lowest to the highest value, its box holds the middle half."
    if width > 1:
        note += f" Each box is over {width:,} neighbouring {unit}s."

    def chart(size: ChartSize) -> charts.Spec:
        placed = _placed(series, kind, limit if size.width > 400 else 8)
        return charts.boxes(placed, ChartAxis(unit), kind.axis, size)

    columns = (*_PLACED, _column(kind))
    every = partial(_every_window, series, (kind.value,))
    name = named(kind.name, "repetitions", *(("many windows",) if about else ()))
    numbers = FigureNumbers(name, columns, every, *_boxes_shown(series, kind, limit))
    sizes = (HALF._replace(width=FULL.width), PHONE) if wide else None
    yield figure(drawing, text, chart, tuple(one.index for one in series), note, sizes, numbers)


def _boxes_shown(
    series: Sequence[Series], kind: WindowMeasure, limit: int
) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...], str]:
    """The table of box plots: a line per box."""
    labels = {one.index: one.label for one in series}
    lines = [(labels[one.series], one.x, *map(kind.show, one.box[:5])) for one in _placed(series, kind, limit)]
    return ("series", "windows", "lowest", "first quartile", "median", "third quartile", "highest"), tuple(lines), ""


def _columns(one: Series, kind: WindowMeasure) -> dict[int, list[float]]:
    columns: dict[int, list[float]] = {}
    for _, verdict in one.runs:
        for window in verdict.windows:
            value = kind.value(window)
            if value is not None:
                columns.setdefault(window.index, []).append(value)
    return columns


def _width(series: Sequence[Series], limit: int) -> int:
    """The number of adjacent reports per box, so that there are at most ``limit`` boxes."""
    return -(-(max(map(_last, series)) + 1) // max(4, limit // len(series)))


def _placed(series: Sequence[Series], kind: WindowMeasure, limit: int) -> list[PlacedBox]:
    width = _width(series, limit)
    values_by_place: dict[tuple[int, int], list[float]] = {}
    for one in series:
        for index, values in _columns(one, kind).items():
            values_by_place.setdefault((index // width, one.index), []).extend(values)
    labels = {one.index: one.label for one in series}
    return [
        _box(group, index, width, values, kind, labels[index])
        for (group, index), values in sorted(values_by_place.items())
    ]


def _box(group: int, index: int, width: int, values: list[float], kind: WindowMeasure, label: str) -> PlacedBox:
    first, last = group * width, group * width + width - 1
    name = f"{first:,}" if width == 1 else f"{first:,}–{last:,}"
    drawn = box(values)
    first_to_third = ", ".join(map(kind.show, (drawn.first, drawn.middle, drawn.third)))
    tip = (
        f"{label}, {name}, {counted(drawn.values, 'value')}: lowest {kind.show(drawn.low)}, "
        f"quartiles {first_to_third}, highest {kind.show(drawn.high)}"
    )
    return PlacedBox(name, index, drawn, tip)


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
