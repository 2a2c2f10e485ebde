"""Plots of YABench's figures 3, 4 and 6 from runs made here, the published ones beside where there are files."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from streamgauge.papers.yabench.measure import PublishedLines
from streamgauge.papers.yabench.oracle_files import OracleLine
from streamgauge.report import charts
from streamgauge.report.charts import ChartAxis, ChartDrawing
from streamgauge.report.numbers import duration, mebibytes, number, percent
from streamgauge.report.plots import FULL, PHONE, RUN_TIME, SHARE, STREAM_TIME, Figure, figure
from streamgauge.report.series import Box, Point, bins, box

Shown = Mapping[int, tuple[str, PublishedLines]]
"""Number of a series to its label and lines."""

DELAY = ChartAxis("delay, ms", ",~r", None, "symlog")
MOST_BINS = 60
WIDE = (FULL._replace(height=190), PHONE)


def boxes(
    drawing: ChartDrawing,
    title: str,
    found: Shown,
    value: Callable[[OracleLine], float],
    how: tuple[ChartAxis, Callable[[float], str]],
) -> Iterator[Figure]:
    """A box per window and series: whiskers to the lowest and highest run, quartiles over the runs."""
    axis, show = how
    placed = [
        charts.PlacedBox(f"W{window + 1}", series, made := box(values), _tip(label, window, made, show))
        for series, (label, lines) in found.items()
        for window in range(lines.windows)
        if (values := lines.column(value, window))
    ]
    if placed:
        placed.sort(key=lambda one: int(one.x[1:]))
        chart = partial(charts.boxes, placed, ChartAxis("window"), axis)
        yield figure(drawing, title, chart, tuple(found), "Whiskers: lowest and highest run; box: quartiles.", WIDE)


def _tip(label: str, window: int, made: Box, show: Callable[[float], str]) -> str:
    return f"{label}, W{window + 1}: lowest {show(made.low)}, median {show(made.middle)}, highest {show(made.high)}"


def correctness(drawing: ChartDrawing, title: str, found: Shown) -> Iterator[Figure]:
    """Figures 3a to 3c: precision and recall."""
    precision, recall = (SHARE._replace(title=f"{name}, %") for name in ("precision", "recall"))
    yield from boxes(drawing, f"{title}: precision", found, lambda line: line.precision, (precision, percent))
    yield from boxes(drawing, f"{title}: recall", found, lambda line: line.recall, (recall, percent))


def delay(drawing: ChartDrawing, title: str, found: Shown) -> Iterator[Figure]:
    """Figures 3d to 3f."""
    yield from boxes(drawing, f"{title}: delay", found, lambda line: float(line.delay), (DELAY, duration))


def memory(
    drawing: ChartDrawing, title: str, found: Mapping[int, tuple[str, Sequence[tuple[float, float]]]]
) -> Iterator[Figure]:
    """Figures 4a to 4c: resident memory (MiB) over the time of the run (s)."""
    lines = [
        charts.ChartLine(series, False, bins(_over_time(label, values), MOST_BINS, lambda value: f"{value:,.0f} MiB"))
        for series, (label, values) in found.items()
        if values
    ]
    if lines:
        chart = partial(charts.lines, lines, RUN_TIME, ChartAxis("resident memory, MiB"))
        yield figure(drawing, f"{title}: memory", chart, tuple(line.series for line in lines), sizes=WIDE)


def _over_time(label: str, values: Sequence[tuple[float, float]]) -> list[Point]:
    return [Point(at, size, f"{label}, {at:.1f} s: {mebibytes(size * 2**20)}") for at, size in values if at >= 0]


def size_and_delay(
    drawing: ChartDrawing, title: str, found: Mapping[int, tuple[str, Sequence[OracleLine]]]
) -> Iterator[Figure]:
    """Figure 4d: result size and delay of one run, a point a window."""
    points = {
        series: [
            Point(line.actual, line.delay, f"{label}, W{at}: {number(line.actual)} rows, {duration(line.delay)}")
            for at, line in enumerate(lines, 1)
        ]
        for series, (label, lines) in found.items()
        if lines
    }
    if points:
        chart = partial(charts.scatter, points, ChartAxis("result size, rows"), DELAY)
        yield figure(drawing, title, chart, tuple(points), "The first run of each.")


def borders(drawing: ChartDrawing, title: str, lines: Sequence[OracleLine], size_ms: int) -> Iterator[Figure]:
    """Figure 6: each window's borders, and those that gracious mode found."""
    fits = [_fit(place, line, size_ms) for place, line in enumerate(lines)]
    if fits:
        sizes = (FULL._replace(height=24 * len(fits)), PHONE._replace(height=24 * len(fits)))
        note = "Outline: the window; filled: the borders under which precision and recall are best."
        yield figure(drawing, title, partial(charts.reconstructed, fits, STREAM_TIME), note=note, sizes=sizes)


def _fit(place: int, line: OracleLine, size_ms: int) -> charts.FittedBorders:
    start, end = place * size_ms / 1000, (place + 1) * size_ms / 1000
    word = "right" if (line.precision, line.recall) == (1.0, 1.0) else "wrong"
    shares = f"precision {percent(line.precision)}, recall {percent(line.recall)}"
    tip = f"window {place + 1}: [{line.start / 1000:g}, {line.end / 1000:g}] s, {shares}"
    return charts.FittedBorders(start, end, line.start / 1000, line.end / 1000, word, tip)
