"""SEP-BM's plots: a channel with nothing to tell leaves a gap, and no later one stands under another's name."""

import re

import pytest

from streamgauge.report.charts import ChartDrawing
from streamgauge.report.numbers import rate
from streamgauge.report.sepbm import NOTIFICATION, Compared, page, plotted
from tests.report.sepbm import ran

TICK = re.compile(r'<text x="(-?[\d.]+)"[^>]*>(q\d+)</text>')
MARK = re.compile(r'<(?:use|path)[^>]*?(?: x="([\d.]+)"|translate\(([\d.]+),)[^>]*>\s*<title>(q\d+):')


@pytest.mark.slow
def test_points_stand_over_their_names() -> None:
    results = {0: {"q01": 1.0, "q03": 3.0, "q04": 4.0}, 1: {"q01": 0.02, "q04": 50.0}}
    (figure,) = plotted(ChartDrawing(), "Times", results, NOTIFICATION, ["q01", "q02", "q03", "q04"])
    wide = figure.drawings[0]
    ticks = {name: float(x) for x, name in TICK.findall(wide)}
    assert list(ticks) == ["q01", "q02", "q03", "q04"]
    marks = [(name, float(x or moved)) for x, moved, name in MARK.findall(wide)]
    assert sorted(name for name, _ in marks) == ["q01", "q01", "q03", "q04", "q04"]
    for name, x in marks:
        assert x == pytest.approx(ticks[name], abs=1.5)
    assert figure.note == "Nothing to show for q02."
    assert {"10 µs", "1 ms", "100 ms"} <= set(re.findall(r">([\d.]+ [µm]?s)<", wide))


@pytest.mark.slow
def test_a_table_has_a_title_or_no_fold() -> None:
    text = page(Compared("SEP-BM", {"incremental": ran("incremental", ("q01",), {"q01": 1.0})}))
    assert '<span class="what"></span>' not in text
    assert "<details" in text


@pytest.mark.parametrize(
    ("value", "text"), [(5504.52, "5,500"), (12.345, "12.3"), (0.03456, "0.0346"), (0, "0"), (99.96, "100")]
)
def test_a_rate_has_three_figures(value: float, text: str) -> None:
    assert rate(value) == text
