"""The numbers behind plots, and plots as files for papers: SVG, PNG, PDF, LaTeX, and all numbers as CSV."""

import csv
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from streamgauge.model.extras import require
from streamgauge.report import charts, vega
from streamgauge.report.latex import pgfplots_picture

if TYPE_CHECKING:
    from streamgauge.report.plots import Figure

Cell: TypeAlias = str | int | float | None
SHOWN: Final = 12
"""Maximum lines of a series in a plot's table."""
_SHARP: Final = 3.0
"""Pixels of a PNG per px of the plot."""


@dataclass(frozen=True)
class FigureNumbers:
    """The numbers of a plot: its file name, all numbers with units in the columns, and those on the page.

    ``every`` generates the lines, so that 100,000 windows cost nothing on a page that shows twelve. ``note`` states how
    the lines on the page were chosen; empty if they are all.
    """

    name: str
    columns: tuple[str, ...]
    every: Callable[[], Iterator[tuple[Cell, ...]]]
    shown_columns: tuple[str, ...]
    shown: tuple[tuple[str, ...], ...]
    note: str = ""


def named(*parts: str) -> str:
    """A file name from words: ``Delay, live as csparql`` is ``delay-live-as-csparql``."""
    text = "".join(letter if letter.isalnum() else " " for letter in " ".join(parts).lower())
    # Without a letter or digit nothing is left: the name must not be empty.
    return "-".join(text.split())[:80] or "figure"


def export(figures: Iterable["Figure"], labels: Sequence[str], folder: Path) -> list[Path]:
    """Write every figure as NAME.svg, NAME.png, NAME.pdf and NAME.csv, a line chart also as NAME.tex.

    ``labels`` name the series in the legends. Returns the files in order of writing. OSError, MissingExtraError.
    """
    require("plots")
    folder.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    for figure in figures:
        if figure.chart is None or figure.numbers is None:
            continue
        written += _drawn(standing_alone(figure, labels), folder / figure.numbers.name)
        written.append(write_numbers(figure.numbers, folder))
    return written


def standing_alone(figure: "Figure", labels: Sequence[str]) -> charts.Spec:
    """The chart of a figure for a file: with a legend, without links to the page's rows."""
    assert figure.chart is not None
    return with_legend(_unlinked(figure.chart(figure.size)), figure.legend(labels))


def on_white(chart: charts.Spec) -> charts.Spec:
    """The chart on white, for formats without transparency."""
    return chart | {"config": chart["config"] | {"background": "white"}}


def _drawn(chart: charts.Spec, path: Path) -> list[Path]:
    files = [Path(f"{path}.{kind}") for kind in ("svg", "png", "pdf")]
    files[0].write_text(vega.svg(chart), encoding="utf-8")
    files[1].write_bytes(vega.png(on_white(chart), _SHARP))
    files[2].write_bytes(vega.pdf(chart))
    if (picture := pgfplots_picture(chart)) is not None:
        files.append(Path(f"{path}.tex"))
        files[-1].write_text(picture, encoding="utf-8")
    return files


def write_numbers(numbers: FigureNumbers, folder: Path) -> Path:
    """Write all numbers as CSV (UTF-8, with a heading); floats with all digits."""
    path = folder / f"{numbers.name}.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(numbers.columns)
        writer.writerows(numbers.every())
    return path


def with_legend(chart: charts.Spec, series: Sequence[tuple[int, str]]) -> charts.Spec:
    """A chart for a file; with several series it gets the legend that the page shows."""
    names = {str(index): label for index, label in series}
    # Vega ignores it; ``latex.pgfplots_picture`` takes the names of the series from here.
    chart |= {"usermeta": chart.get("usermeta", {}) | {"series": names}}
    if len(series) < 2:
        return chart
    legend = {
        "title": None,
        "orient": "top",
        "values": list(names),
        "labelExpr": f"({charts.expression(names)})[datum.label]",
    }
    return chart | {"layer": [_legible(layer, legend) for layer in chart["layer"]]}


def _unlinked(chart: charts.Spec) -> charts.Spec:
    """The chart without links, whose targets are rows of the page."""
    layers = [
        layer | {"encoding": {name: value for name, value in layer["encoding"].items() if name != "href"}}
        for layer in chart["layer"]
    ]
    return chart | {"layer": layers}


def _legible(layer: charts.Spec, legend: charts.Spec) -> charts.Spec:
    encoding: dict[str, Any] = layer["encoding"]
    colour = encoding.get("color", {})
    if colour.get("field") != "series":
        return layer
    return layer | {"encoding": encoding | {"color": colour | {"legend": legend}}}
