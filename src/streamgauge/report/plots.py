"""The plots of the page: the message of each as its heading, and the rule by which each is thinned.

Borders are bars over stream time, expected ones and those that fit best (YABench, figure 6); box plots are over
repetitions, neighbouring windows taken together.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TypeAlias

from streamgauge.model.phrases import counted
from streamgauge.model.run import Sample
from streamgauge.model.verdict import WindowVerdict
from streamgauge.report import charts, points
from streamgauge.report.cards import shifted
from streamgauge.report.charts import ChartAxis, ChartDrawing, ChartLine, ChartSize, PlacedBox
from streamgauge.report.numbers import duration, interval, mebibytes, number, percent
from streamgauge.report.points import Point, box, spread_sample, tooltip
from streamgauge.report.series import Series, state, unit_over

HALF, FULL, PHONE = ChartSize(560, 190, 240), ChartSize(1140, 0, 240), ChartSize(340, 170, 110)
POINTS = 1200  # over all series of one plot; every tooltip costs about 300 bytes
MiB = 2**20
STREAM_TIME = ChartAxis("stream time, s")
RUN_TIME = ChartAxis("time since the start of the feed, s")

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
class WindowMeasure:
    """A measure of windows in a line plot: name, value of a report, axis, writing of a value, and message."""

    name: str
    value: Callable[[WindowVerdict], float | None]
    axis: ChartAxis
    show: Callable[[float], str]
    message: Message


def share_of(size: ChartSize, series: Sequence[Series]) -> int:
    """The number of bins that each series may have in a plot of this size."""
    return max(12, min(size.bins, POINTS // max(1, len(series))))


def draw(
    drawing: ChartDrawing,
    message: str,
    chart: Callable[[ChartSize], charts.Spec],
    sizes: tuple[ChartSize, ChartSize] = (HALF, PHONE),
) -> tuple[str, ...]:
    """A chart drawn for wide and for narrow screens."""
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


SHARE = ChartAxis("", ".0%", (0, 1.04))
PRECISION = WindowMeasure(
    "Precision",
    lambda window: window.precision,
    SHARE._replace(title="precision, %"),
    percent,
    _below("Precision", lambda window: window.precision),
)
RECALL = WindowMeasure(
    "Recall",
    lambda window: window.recall,
    SHARE._replace(title="recall, %"),
    percent,
    _below("Recall", lambda window: window.recall),
)
CONTENT = WindowMeasure("Window size", _content, ChartAxis("triples in the window"), number, _contents)
DELAY = WindowMeasure("Delay", lambda window: window.delay, ChartAxis("delay, ms", ",~r"), duration, _delays)


def of_kind(drawing: ChartDrawing, series: Sequence[Series], kind: WindowMeasure) -> Iterator[Figure]:
    """The line plot of one value per report, all series overlaid."""
    content = {one.index: points.of_windows(one, kind.value) for one in series}
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
        made = [ChartLine(one.index, False, points.binned(one, content[one.index], limit, show)) for one in drawn]
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


def result_sizes(drawing: ChartDrawing, series: Sequence[Series]) -> Iterator[Figure]:
    """Expected (dashed) and actual result size per report."""
    drawn = [one for one in series if any(verdict.windows for _, verdict in one.runs)]
    if not drawn:
        return

    def chart(size: ChartSize) -> charts.Spec:
        limit = share_of(size, [*drawn, *drawn])
        return charts.lines(
            [line for one in drawn for line in _size_lines(one, limit)],
            STREAM_TIME,
            ChartAxis("result size, rows"),
            size,
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


def _size_lines(one: Series, limit: int) -> list[ChartLine]:
    actual = points.of_windows(one, lambda window: window.actual)
    expected = points.of_windows(one, lambda window: window.expected)
    return [
        ChartLine(one.index, False, points.binned(one, actual, limit, number)),
        ChartLine(one.index, True, points.binned(one, expected, limit, number)),
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
        content = {one.index: points.of_samples(one, reading.value, reading.show) for one in series}
        highest = max((point.y for found in content.values() for point in found), default=0.0)
        text = f"{reading.name}: at most {reading.show(highest)}"
        yield from _line_plot(drawing, series, content, (_saying(text), RUN_TIME, reading.axis, reading.show))


def feed(drawing: ChartDrawing, series: Sequence[Series]) -> Iterator[Figure]:
    """The feeder's lateness over stream time, for runs that were paced."""
    content = {one.index: points.of_feed(one) for one in series}
    latest = max((point.y for found in content.values() for point in found), default=0.0)
    text = f"Feeder: at most {duration(latest)} later than planned"
    axis = ChartAxis("lateness of the feeder, ms", ",~r")
    yield from _line_plot(drawing, series, content, (_saying(text), STREAM_TIME, axis, duration))


def _saying(text: str) -> Message:
    return lambda _: text


STRIP, LANES, ROWS = 40, 16, 24


def border_strips(drawing: ChartDrawing, series: Sequence[Series]) -> Iterator[Figure]:
    """Window borders as bars, one strip per series."""
    for one in series:
        _, verdict = one.runs[0]
        placed = [window for window in verdict.windows if window.start is not None and window.end is not None]
        if placed:
            yield _strip(drawing, one, placed)


def _strip(drawing: ChartDrawing, one: Series, placed: list[WindowVerdict]) -> Figure:
    odd = next((place for place, window in enumerate(placed) if state(window) != "right"), 0)
    begin = max(0, min(odd - 5, len(placed) - STRIP))
    shown = placed[begin : begin + STRIP]
    if max(bar.lane for bar in _bars(one, shown)) >= LANES:
        shown = shown[:LANES]
    text = f"Window borders: {one.label}"
    note = "✓ right, ✗ wrong rows, ? missed, + surplus."
    if len(shown) < len(placed):
        which = "around the first that is not right, else the first ones"
        note += f" {len(shown)} of {counted(len(placed), one.unit)}: {which}."

    def chart(size: ChartSize) -> charts.Spec:
        part = shown if size.width > 600 else shown[:16]
        bars = _bars(one, part)
        height = 16 * (1 + max(bar.lane for bar in bars))
        return charts.borders(bars, STREAM_TIME, size._replace(height=height))

    return Figure(text, note, draw(drawing, text, chart, (FULL, PHONE)), (), "full")


def _bars(one: Series, windows: Sequence[WindowVerdict]) -> list[charts.Bar]:
    """Bars in as few lanes as keep them apart."""
    ends: list[int] = []
    bars = []
    for window in windows:
        start, end = window.start or 0, window.end or 0
        lane = next((lane for lane, last in enumerate(ends) if last <= start), len(ends))
        ends[lane : lane + 1] = [max(end, start + 1)]
        bars.append(charts.Bar(start / 1000, end / 1000, lane, state(window), tooltip(one, one.runs[0], window)))
    return bars


def reconstructed(drawing: ChartDrawing, series: Sequence[Series]) -> Iterator[Figure]:
    """Expected borders against those that fit best, for the first graciously judged run of each series."""
    for one in series:
        for _, verdict in one.runs:
            placed = [window for window in verdict.windows if window.start is not None and window.end is not None]
            if any(window.borders is not None for window in placed):
                yield _against(drawing, one, placed)
                break


def _against(drawing: ChartDrawing, one: Series, placed: list[WindowVerdict]) -> Figure:
    odd = next((place for place, window in enumerate(placed) if shifted(window)), 0)
    begin = max(0, min(odd - 2, len(placed) - ROWS))
    shown = placed[begin : begin + ROWS]
    moved = [window for window in placed if shifted(window)]
    text = f"Borders that fit best: {one.label}"
    note = (
        f"Outline: expected borders; filled: those under which the answer fits best (✓ exactly, ✗ not, ? missed). "
        f"{len(moved):,} of {counted(len(placed), one.unit)} moved{_directions(moved)}."
    )
    if len(shown) < len(placed):
        note += f" {len(shown)} are drawn, from around the first that moved."

    def chart(size: ChartSize) -> charts.Spec:
        part = shown if size.width > 600 else shown[:12]
        bars = [_fit(one, window) for window in part]
        return charts.reconstructed(bars, STREAM_TIME, size._replace(height=18 * len(bars)))

    return Figure(text, note, draw(drawing, text, chart, (FULL, PHONE)), (), "full")


def _directions(moved: Sequence[WindowVerdict]) -> str:
    """The directions in which starts and ends moved, in words."""
    ways = []
    for name, place in (("start", 0), ("end", 1)):
        shifts = [_shift(window, place) for window in moved]
        left, right = sum(shift < 0 for shift in shifts), sum(shift > 0 for shift in shifts)
        ways += [f"{name} left in {left:,}"] * bool(left) + [f"{name} right in {right:,}"] * bool(right)
    return f": {', '.join(ways)}" if ways else ""


def _shift(window: WindowVerdict, place: int) -> int:
    found, stated = window.borders or (0, 0), (window.start or 0, window.end or 0)
    return found[place] - stated[place]


def _fit(one: Series, window: WindowVerdict) -> charts.FittedBorders:
    start, end = window.start or 0, window.end or 0
    borders = one.header.semantics.borders
    where = interval(start, end, borders)
    if window.borders is None or window.fitted is None:
        tip = f"{one.label}, {one.unit} {window.index:,} {where}, {state(window)}"
        return charts.FittedBorders(start / 1000, end / 1000, None, None, "missed", tip)
    precision, recall = window.fitted
    tip = (
        f"{one.label}, {one.unit} {window.index:,}: expected {where}, fits best {interval(*window.borders, borders)} "
        f"with precision {percent(precision)}, recall {percent(recall)}"
    )
    word = "right" if window.fitted == (1.0, 1.0) else "wrong"
    found = tuple(border / 1000 for border in window.borders)
    return charts.FittedBorders(start / 1000, end / 1000, found[0], found[1], word, tip)


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

    yield Figure(text, note, draw(drawing, text, chart), tuple(one.index for one in series))


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
