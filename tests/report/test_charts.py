"""Every chart is valid Vega-Lite, by the schema that Altair ships, and is drawn."""

from typing import Any

import pytest

from streamgauge.report import charts
from streamgauge.report.charts import Bar, ChartAxis, ChartDrawing, ChartLine, ChartSize, FittedBorders, PlacedBox
from streamgauge.report.series import Bin, Box, Point

SIZE = ChartSize(600, 200, 20)
X, SHARE, LOG = ChartAxis("time (s)"), ChartAxis("recall", ".0%", (0, 1)), ChartAxis("rows", scale="log")
BINS = [Bin(n, 1.0, 2.0, 3.0, n + 1, f"bin {n}") for n in range(4)]
CHARTS = {
    "lines": charts.lines([ChartLine(0, False, BINS), ChartLine(1, True, BINS)], X, SHARE, SIZE),
    "one line": charts.lines([ChartLine(0, False, BINS[:1])], X, LOG, SIZE),
    "scatter": charts.scatter(
        {0: [Point(1, 2, "first")], 3: [Point(2, 4, "second")]}, X, ChartAxis("delay (ms)"), SIZE
    ),
    "boxes": charts.boxes([PlacedBox("10", 0, Box(1, 2, 3, 4, 5, 9), "box")], X, ChartAxis("delay (ms)"), SIZE),
    "borders": charts.borders([Bar(0, 5, n, state, "bar") for n, state in enumerate(charts.SYMBOLS)], X, SIZE),
    "reconstructed": charts.reconstructed(
        [FittedBorders(0, 5, 1, 6, "wrong", "fit"), FittedBorders(5, 10, None, None, "missed", "no fit")], X, SIZE
    ),
}


def schema() -> Any:
    """Altair's class of layered charts; Altair takes long to import, which not every process of the suite need do."""
    from altair import LayerChart

    return LayerChart


@pytest.mark.slow
@pytest.mark.parametrize("name", CHARTS)
def test_a_chart_is_valid_and_drawn(name: str) -> None:
    schema().from_dict(CHARTS[name], validate=True)
    drawn = ChartDrawing().svg(CHARTS[name], name, "half")
    assert f'aria-label="{name}"' in drawn
    assert "<path" in drawn


def test_the_schema_finds_a_misspelt_channel() -> None:
    wrong = CHARTS["scatter"] | {"layer": [{"mark": "point", "encoding": {"colour": {"field": "x"}}}]}
    with pytest.raises(Exception, match="colour"):
        schema().from_dict(wrong, validate=True)
