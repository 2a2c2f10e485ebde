"""Measures over a load: lines, means with intervals, tables for papers."""

import csv
import json
import re
from dataclasses import replace
from math import sqrt

import pytest

from streamgauge.report import page
from streamgauge.report.charts import ChartDrawing
from streamgauge.report.figures import standing_alone
from streamgauge.report.intervals import mean_interval
from streamgauge.report.latex import pgfplots_picture, tex
from streamgauge.report.plots.loads import load_lines, loads, varied_loads
from streamgauge.report.series import series_of
from streamgauge.report.tables import csv_table, latex_tables, mean_lines
from tests.report import build

UNDRAWN = ChartDrawing(drawn=False)


def at(pace, repetition, delay, engine="live"):
    """A run at a pace whose every report came after a delay (ms)."""
    run, verdict = build.right(engine=engine, factor=pace, repetition=repetition)
    return run, replace(verdict, windows=tuple(replace(window, delay=delay) for window in verdict.windows))


RUNS = [
    at(pace, repetition, 10.0 * pace + repetition, engine)
    for engine in ("live", "other") for pace in (1.0, 4.0, 16.0) for repetition in (1, 2, 3)
]  # fmt: skip


def test_an_interval_is_students():
    result = mean_interval([1.0, 2.0, 3.0])
    assert (result.mean, result.half) == (2.0, pytest.approx(4.303 / sqrt(3)))
    assert mean_interval([1.0, 3.0]) == (2.0, None, 2)
    assert mean_interval([float(n % 2) for n in range(40)]).half == pytest.approx(1.96 * 0.5064 / sqrt(40), abs=1e-3)


def test_series_that_differ_in_the_load_alone_are_a_line():
    series = series_of(RUNS)
    assert varied_loads(series) == ["pace"]
    lines = load_lines(series, "pace")
    assert [(line.label, [load for load, _ in line.places]) for line in lines] == [
        ("live as csparql", [1, 4, 16]), ("other as csparql", [1, 4, 16]),
    ]  # fmt: skip


def test_the_delay_over_the_load_has_a_mean_with_its_interval_at_each_point():
    (figure,) = loads(UNDRAWN, series_of(RUNS))
    assert figure.message == "Delay over pace, times real time: 12 ms to 162 ms"
    assert figure.legend(["x"] * 6) == [(0, "live as csparql"), (3, "other as csparql")]
    assert figure.numbers.name == "delay-over-pace"
    assert figure.numbers.shown[1] == ("live as csparql", "4", "42 ms", "39.5 ms to 44.5 ms", "3")
    assert list(figure.numbers.every())[:2] == [
        ("live as csparql", 1.0, 1, 11.0), ("live as csparql", 1.0, 2, 12.0),
    ]  # fmt: skip
    drawn = figure.chart(figure.size)
    assert '"log"' in str(drawn).replace("'", '"')
    assert {(row["x"], row["y"]) for row in drawn["data"]["values"]} == {(1, 12), (4, 42), (16, 162)}


def test_the_figure_is_a_picture_of_pgfplots_with_its_axes_means_and_intervals():
    (figure,) = loads(UNDRAWN, series_of([*RUNS, at(2.0, 1, 21.0)]))
    text = pgfplots_picture(json.loads(json.dumps(standing_alone(figure, ["x"] * 7))))
    assert text.count("{") == text.count("}")
    assert r"xlabel={pace, times real time}" in text
    assert "xmode=log" in text
    assert re.search(r"ytick=\{0, 50, 100, 150, 200\},\n *yticklabels=\{\{0\}, \{50\}", text)
    live, other = text.split(r"\addplot")[1:]
    half = [f"{4.303 / sqrt(3):.12g}"] * 2
    assert live.split("{\n")[1].split("};")[0].split() == [
        *["x", "y", "minus", "plus", "1", "12"], *half, *["2", "21", "0", "0", "4", "42"], *half, "16", "162", *half,
    ]  # fmt: skip
    assert r"\addlegendentry{live as csparql}" in live
    assert r"\addlegendentry{other as csparql}" in other
    assert live.count("error bars") == other.count("error bars") == 2


def test_one_load_has_no_figure():
    assert list(loads(UNDRAWN, series_of(RUNS[:3]))) == []


def test_each_run_is_a_line_of_the_csv_with_its_numbers():
    rows = list(csv.DictReader(csv_table(RUNS).splitlines()))
    assert len(rows) == len(RUNS)
    fourth = rows[3]
    assert (fourth["engine"], fourth["pace"], fourth["repetition"], fourth["verdict"]) == ("live", "4", "1", "right")
    assert (fourth["median delay, ms"], fourth["precision (0 to 1)"], fourth["missed"]) == ("41.0", "1.0", "0")


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
def test_the_means_are_on_the_page_and_in_latex():
    line = next(mean_lines(series_of(RUNS)))
    assert line == ("live as csparql, pace 1", "3", "100% ± 0%", "100% ± 0%", "12 ms ± 2.5 ms", "17.6 ms ± 4.3 ms")
    assert "12 ms ± 2.5 ms" in page(RUNS, "loads")
    text = latex_tables(RUNS, "50% & more_")
    assert r"\caption{50\% \& more\_: runs}" in text
    assert r"live as csparql, pace 1 & 3 & 100\% $\pm$ 0\%" in text
    assert text.count(r"\toprule") == text.count(r"\bottomrule") == 2
    assert latex_tables(RUNS[:1], "one").count(r"\toprule") == 1


def test_no_letter_of_a_text_is_a_command():
    assert tex("a\\b{c}$d$ ~^<x>") == (
        r"a\textbackslash{}b\{c\}\$d\$ \textasciitilde{}\textasciicircum{}\textless{}x\textgreater{}"
    )
