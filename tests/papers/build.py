"""A reproduction and a tiny data folder, made by hand."""

import json
from pathlib import Path

from streamgauge.papers.reproduction import Reproduction
from streamgauge.report import charts
from streamgauge.report.charts import ChartDrawing
from streamgauge.report.plots import FULL, PHONE, STREAM_TIME, Figure, draw
from streamgauge.report.sections import PageSection, PageTable, TableLine

LONG = "a_note_that_nobody_broke_into_words_" * 4


def reproduction(*, agrees: bool = True) -> Reproduction:
    """Two tables, one compared, and a plot."""
    compared = PageTable(
        "Compared <b>",
        ("engine", "published", "ours", "note"),
        (
            TableLine(("C-SPARQL", "1", "1", LONG), True),
            TableLine(("CQELS", "2", "2" if agrees else "3", "[brackets]"), agrees),
        ),
        "A note below.",
    )
    page_table = PageTable("Told", ("claim", "files"), (TableLine(("something", "else")),))
    section = PageSection("first", "First things", ("A sentence & more.",), (compared, page_table), (_figure(),))
    data = {"cells": [{"engine": "C-SPARQL"}]}
    return Reproduction(
        "A reproduction", "A paper, 2013", (section, PageSection("rest", "The rest", ("Nothing.",))), data
    )


def _figure() -> Figure:
    fits = [charts.FittedBorders(0.0, 5.0, 1.0, 5.0, "right", "window 1")]

    def chart(size: charts.ChartSize) -> object:
        return charts.reconstructed(fits, STREAM_TIME, size._replace(height=24))

    return Figure("Borders", "Outline: expected.", draw(ChartDrawing(), "Borders", chart, (FULL, PHONE)), (), "full")  # type: ignore[arg-type]


TURTLE = """@prefix om-owl: <http://knoesis.wright.edu/ssw/ont/sensor-observation.owl#> .
<http://ex.org/o> om-owl:observedProperty <http://knoesis.wright.edu/ssw/ont/weather.owl#_AirTemperature> ;
  om-owl:procedure <http://ex.org/s> ; om-owl:result <http://ex.org/r> .
<http://ex.org/r> om-owl:floatValue "90"^^<http://www.w3.org/2001/XMLSchema#double> .
"""


def csrbench(root: Path) -> Path:
    """A data folder of one hot observation at 1 s; no engine ever reported anything, which fits every t0."""
    head = root / "answers" / "2013-head"
    head.mkdir(parents=True)
    (root / "stream").mkdir()
    (root / "stream" / "data_01.ttl").write_text(TURTLE)
    for engine in ("csparql", "cqels", "sparqlstream"):
        for number in range(1, 8):
            (head / f"{engine}-answer-{number}.json").write_text(json.dumps({"relations": []}))
    return root
