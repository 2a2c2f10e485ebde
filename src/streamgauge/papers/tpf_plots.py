"""Figures 2 to 4 of the paper on the TPF Query Streamer, from what was measured here."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from streamgauge.report import charts
from streamgauge.report.charts import Axis
from streamgauge.report.plots import FULL, PHONE, Figure, draw
from streamgauge.report.svg import Drawing
from streamgauge.report.thin import Point, bins

WIDE = (FULL._replace(height=230), PHONE)
CLIENTS = Axis("clients")
CPU = Axis("CPU, % of a core", ",~r", None, "symlog")
TIME = Axis("time since the clients began, s")
ITERATION = Axis("iteration")
TOOK = Axis("time of the iteration, ms")
MOST_BINS = 80

Curves = Mapping[int, tuple[str, Sequence[tuple[float, float]]]]
"""Number of a series to its label and values."""


def curves(
    drawing: Drawing, title: str, found: Curves, axes: tuple[Axis, Axis], show: Callable[[float], str], note: str = ""
) -> Iterator[Figure]:
    """A line for each series."""
    x, y = axes
    lines = [
        charts.Line(series, False, bins([Point(at, value, f"{label}, {at:g}: {show(value)}") for at, value in values],
                                        MOST_BINS, show))
        for series, (label, values) in found.items() if values
    ]  # fmt: skip
    if lines:

        def chart(size: charts.Size) -> charts.Spec:
            return charts.lines(lines, x, y, size)

        yield Figure(title, note, draw(drawing, title, chart, WIDE), tuple(line.series for line in lines), "full")
