"""The plots of the page: which there are, what each says as its heading, and by which rule it is thinned."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TypeAlias

from streamgauge.model.counts import counted
from streamgauge.model.run import Sample
from streamgauge.model.verdict import WindowVerdict
from streamgauge.report import charts, points
from streamgauge.report.charts import Axis, Line, Size
from streamgauge.report.numbers import duration, mebibytes, number, percent
from streamgauge.report.series import Series, state, unit_over
from streamgauge.report.svg import Drawing
from streamgauge.report.thin import Point, spread_sample

HALF, FULL, PHONE = Size(560, 190, 240), Size(1140, 0, 240), Size(340, 170, 110)
POINTS = 1200  # over all series of one plot; every tooltip costs about 300 bytes
MiB = 2**20
STREAM_TIME = Axis("stream time, s")
RUN_TIME = Axis("time since the start of the feed, s")

Message: TypeAlias = Callable[[Sequence[Series]], str]


@dataclass(frozen=True)
class Figure:
    """One plot of the page: its message, a note, the drawings for wide and narrow screens, whom the legend names."""

    message: str
    note: str
    drawings: tuple[str, ...]
    series: tuple[int, ...] = ()
    span: str = "half"


@dataclass(frozen=True)
class Kind:
    """What a line plot shows: name, value of a report, axis, writing of a value, and its message."""

    name: str
    value: Callable[[WindowVerdict], float | None]
    axis: Axis
    show: Callable[[float], str]
    message: Message


def share_of(size: Size, series: Sequence[Series]) -> int:
    """How many bins each series may have in a plot of this size."""
    return max(12, min(size.bins, POINTS // max(1, len(series))))


def draw(
    drawing: Drawing, message: str, chart: Callable[[Size], charts.Spec], sizes: tuple[Size, Size] = (HALF, PHONE)
) -> tuple[str, ...]:
    """The same chart for wide and for narrow screens."""
    return tuple(drawing.svg(chart(size), message, kind) for size, kind in zip(sizes, ("wide", "narrow"), strict=True))


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


SHARE = Axis("", ".0%", (0, 1.04))
PRECISION = Kind(
    "Precision",
    lambda window: window.precision,
    SHARE._replace(title="precision, %"),
    percent,
    _below("Precision", lambda window: window.precision),
)
RECALL = Kind(
    "Recall",
    lambda window: window.recall,
    SHARE._replace(title="recall, %"),
    percent,
    _below("Recall", lambda window: window.recall),
)
CONTENT = Kind("Window size", _content, Axis("triples in the window"), number, _contents)
DELAY = Kind("Delay", lambda window: window.delay, Axis("delay, ms", ",~r"), duration, _delays)


def of_kind(drawing: Drawing, series: Sequence[Series], kind: Kind) -> Iterator[Figure]:
    """The line plot of one value per report, all series overlaid."""
    content = {one.index: points.of_windows(one, kind.value) for one in series}
    yield from _line_plot(drawing, series, content, (kind.message, STREAM_TIME, kind.axis, kind.show))


def _line_plot(
    drawing: Drawing,
    series: Sequence[Series],
    content: dict[int, list[Point]],
    how: tuple[Message, Axis, Axis, Callable[[float], str]],
) -> Iterator[Figure]:
    message, x, y, show = how
    drawn = [one for one in series if content[one.index]]
    if not drawn:
        return

    def chart(size: Size) -> charts.Spec:
        limit = share_of(size, drawn)
        made = [Line(one.index, False, points.binned(one, content[one.index], limit, show)) for one in drawn]
        return charts.lines(made, x, y, size)

    text = message(drawn)
    longest = max(len(content[one.index]) for one in drawn)
    note = thinning(drawn, longest)
    yield Figure(text, note, draw(drawing, text, chart), tuple(one.index for one in drawn))


def thinning(series: Sequence[Series], count: int) -> str:
    """The rule by which a plot with ``count`` values in its longest series is thinned, empty when all are shown."""
    limit = share_of(HALF, series)
    repeated = max(len(one.runs) for one in series) > 1
    if repeated and count <= limit * max(len(one.runs) for one in series):
        return "Line: median over the repetitions; band: lowest to highest."
    if count <= limit:
        return ""
    return f"{count:,} values in at most {limit} equal stretches; line: median of each, band: lowest to highest."


def result_sizes(drawing: Drawing, series: Sequence[Series]) -> Iterator[Figure]:
    """Expected (dashed) and actual result size per report."""
    drawn = [one for one in series if any(verdict.windows for _, verdict in one.runs)]
    if not drawn:
        return

    def chart(size: Size) -> charts.Spec:
        limit = share_of(size, [*drawn, *drawn])
        return charts.lines(
            [line for one in drawn for line in _size_lines(one, limit)], STREAM_TIME, Axis("result size, rows"), size
        )

    windows = _windows(drawn)
    off = sum(window.expected != window.actual for window in windows)
    unit = unit_over(drawn)
    text = "Result size is the expected one in every " + unit
    if off:
        text = f"Result size differs from the expected one in {off:,} of {counted(len(windows), unit)}"
    note = "Solid: actual; dashed: expected. " + thinning(
        [*drawn, *drawn], max(len(verdict.windows) for one in drawn for _, verdict in one.runs)
    )
    yield Figure(text, note, draw(drawing, text, chart), tuple(one.index for one in drawn))


def _size_lines(one: Series, limit: int) -> list[Line]:
    actual = points.of_windows(one, lambda window: window.actual)
    expected = points.of_windows(one, lambda window: window.expected)
    return [
        Line(one.index, False, points.binned(one, actual, limit, number)),
        Line(one.index, True, points.binned(one, expected, limit, number)),
    ]


def delay_by_size(drawing: Drawing, series: Sequence[Series]) -> Iterator[Figure]:
    """Delay against result size, a point per report."""
    content = {one.index: _delay_points(one) for one in series}
    drawn = [one for one in series if content[one.index]]
    if not drawn:
        return

    def chart(size: Size) -> charts.Spec:
        limit = max(20, min(2 * size.bins, POINTS // len(drawn)))
        kept = {one.index: spread_sample(content[one.index], limit) for one in drawn}
        return charts.scatter(kept, Axis("result size, rows"), Axis("delay, ms", ",~r"), size)

    count = sum(len(content[one.index]) for one in drawn)
    note = (
        ""
        if count <= 200
        else f"{count:,} reports; where too many to draw: the longest delays of each size and every n-th of the rest."
    )
    text = "Delay against result size"
    yield Figure(text, note, draw(drawing, text, chart), tuple(one.index for one in drawn))


def _delay_points(one: Series) -> list[Point]:
    return [
        Point(window.actual, window.delay, points.tooltip(one, judged, window))
        for judged in one.runs
        for window in judged[1].windows
        if window.delay is not None
    ]


@dataclass(frozen=True)
class Reading:
    """A resource: value of a sample, axis title, writing of a value, and its message's first word."""

    name: str
    value: Callable[[Sample], float]
    axis: Axis
    show: Callable[[float], str]


READINGS = (
    Reading(
        "Memory", lambda sample: sample.rss / MiB, Axis("resident memory, MiB"), lambda value: mebibytes(value * MiB)
    ),
    Reading("CPU", lambda sample: sample.cpu_percent, Axis("CPU, % of one core"), lambda value: f"{number(value)}%"),
    Reading("Threads", lambda sample: sample.threads, Axis("threads"), number),
)


def resources(drawing: Drawing, series: Sequence[Series]) -> Iterator[Figure]:
    """Memory, CPU and threads of the engine's process tree over the time of the run."""
    for reading in READINGS:
        content = {one.index: points.of_samples(one, reading.value, reading.show) for one in series}
        highest = max((point.y for found in content.values() for point in found), default=0.0)
        text = f"{reading.name}: at most {reading.show(highest)}"
        yield from _line_plot(drawing, series, content, (_saying(text), RUN_TIME, reading.axis, reading.show))


def feed(drawing: Drawing, series: Sequence[Series]) -> Iterator[Figure]:
    """How much later than planned the feeder handed the elements over, for runs that were paced."""
    content = {one.index: points.of_feed(one) for one in series}
    latest = max((point.y for found in content.values() for point in found), default=0.0)
    text = f"Feeder: at most {duration(latest)} later than planned"
    axis = Axis("lateness of the feeder, ms", ",~r")
    yield from _line_plot(drawing, series, content, (_saying(text), STREAM_TIME, axis, duration))


def _saying(text: str) -> Message:
    return lambda _: text
