"""Every value stands under its own heading, on every surface that shows measures: all values differ from each other."""

import csv
import re
from dataclasses import replace
from html.parser import HTMLParser
from io import StringIO

import pytest
from rich.console import Console

from streamgauge.model.verdict import Judgement
from streamgauge.report import markdown
from streamgauge.report import page as html_page
from streamgauge.report.capacity import Carried
from streamgauge.report.capacity import page as capacity_page
from streamgauge.report.sepbm import COLUMNS, line
from streamgauge.report.tables import csv_table, latex_tables
from streamgauge.report.text import verdict_json, verdict_lines
from streamgauge.suites.experiments.capacity import Bound, Capacity, CapacityAxis, Limit, LoadProbe
from streamgauge.suites.experiments.load_search import Harder
from streamgauge.suites.sepbm.analysis import NotificationScore, Throughput, TimeStatistics
from streamgauge.workbench.rooms.runs.comparison import compare
from streamgauge.workbench.rooms.runs.run_list import RunLines
from tests.report import build
from tests.report.swapped_headings import ROOT, SWAPS, survivors, swapped
from tests.workbench.runs.folders import EXPERIMENT, bench, keep

RUN = {
    "Precision": "91%", "Recall": "82%", "Reports": "20", "Missed": "3", "Surplus": "4", "Late": "5",
    "Median delay": "61 ms", "Longest delay": "72 ms", "Last answer after start": "99 s",
}  # fmt: skip
REPORT = {
    "State": "wrong", "Borders": "(5, 10] s", "Due at": "10 s", "Precision": "53%", "Recall": "64%", "Expected": "41",
    "Received": "42", "Triples in window": "43", "Delay": "61 ms", "Undecided": "7",
    "Fits best": "(5.2, 10.3] s: 75%, 86%",
}  # fmt: skip


class Tables(HTMLParser):
    """Rows of a page's tables: dictionaries from heading to text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.rows, self._heads, self._cells, self._cell, self._depth = [], [], [], None, 0
        self.feed(text)

    def handle_starttag(self, tag, _attributes):
        if tag == "table":
            self._heads = []
        if tag == "tr":
            self._cells = []
        if tag in ("td", "th"):
            self._cell = ""

    def handle_endtag(self, tag):
        if tag in ("td", "th") and self._cell is not None:
            self._cells.append(" ".join(self._cell.split()))
            self._cell = None
        if tag == "tr" and self._heads and len(self._cells) == len(self._heads):
            self.rows.append(dict(zip(self._heads, self._cells, strict=True)))
        if tag == "thead":
            self._heads = self._cells

    def handle_data(self, data):
        if self._cell is not None:
            self._cell += data


def judged():
    """A run whose measures all differ; its second report is wrong, undecided in part and fits other borders."""
    run, verdict = build.right()
    odd = replace(
        verdict.windows[1], precision=0.53, recall=0.64, true_positives=30, expected=41, actual=42, content=43,
        delay=61.0, undecided=7, borders=(5200, 10_300), fitted=(0.75, 0.86),
    )  # fmt: skip
    windows = tuple(replace(window, delay=61.0) for window in verdict.windows)
    windows = (windows[0], odd, *windows[2:])
    more = {"precision": 0.91, "recall": 0.82, "missed": 3, "surplus": 4, "late": 5, "max_delay": 72.0}
    return run, replace(verdict, judgement=Judgement.WRONG, windows=windows, last_answer=99_000.0, **more)


def agrees(row, expected, name=str):
    """The row's values under those of the expected headings that it has, which are at least three."""
    shared = {heading: value for heading, value in expected.items() if name(heading) in row}
    assert len(shared) > 2
    assert {heading: row[name(heading)] for heading in shared} == shared


@pytest.fixture(scope="module")
def page():
    return Tables(html_page([judged()], "all differ")).rows


def test_the_page_of_runs(page):
    [row] = [row for row in page if "Longest delay" in row]
    assert row.keys() == {"Run", "Verdict", *RUN}
    agrees(row, RUN)


def test_the_page_of_reports(page):
    [row] = [row for row in page if row.get("Borders") == REPORT["Borders"]]
    assert row.keys() == {"Report", *REPORT}
    agrees(row, REPORT)


def cells(row):
    return [cell.strip().replace("\\", "") for cell in row.strip().strip("|").split(" | ")]


@pytest.mark.parametrize(("first", "expected"), [("Run", RUN), ("Window", REPORT)])
def test_markdown(first, expected):
    lines = markdown.page([judged()], "all differ").splitlines()
    at = next(place for place, text in enumerate(lines) if text.startswith(f"| {first} "))
    agrees(dict(zip(cells(lines[at]), cells(lines[at + 2]), strict=True)), expected)


def test_the_table_of_runs_as_csv():
    [row] = csv.DictReader(csv_table([judged()]).splitlines())
    numbers = {
        "precision (0 to 1)": "0.91", "recall (0 to 1)": "0.82", "reports": "20", "missed": "3", "surplus": "4",
        "late": "5", "median delay, ms": "61.0", "longest delay, ms": "72.0", "last answer after start, ms": "99000.0",
        "verdict": "wrong", "engine": "live",
    }  # fmt: skip
    assert {name: row[name] for name in numbers} == numbers


def test_the_table_of_runs_in_latex():
    lines = latex_tables([judged()], "t").splitlines()
    heads, values = (lines[lines.index(rule) + 1] for rule in (r"\toprule", r"\midrule"))
    row = dict(
        zip(*(line.removesuffix(r" \\").replace(r"\%", "%").split(" & ") for line in (heads, values)), strict=True)
    )
    agrees(row, RUN)
    assert row["Verdict"] == "wrong"


def test_the_terminal():
    run, verdict = judged()
    console = Console(width=200, file=StringIO(), record=True)
    console.print(verdict_lines(run.header, verdict))
    lines = console.export_text().splitlines()
    at = next(place for place, text in enumerate(lines) if text.split()[:2] == ["window", "state"])
    ends = {heading: lines[at].index(heading.lower()) for heading in REPORT if heading.lower() in lines[at]}
    assert ends.keys() == REPORT.keys() - {"Due at", "Triples in window"}
    for heading, begin in ends.items():
        here = lines[at + 1][: begin + len(heading)] if heading not in ("State", "Borders", "Fits best") else ""
        assert here.endswith(REPORT[heading]) or lines[at + 1][begin:].startswith(REPORT[heading])
    text = "\n".join(" ".join(line.split()) for line in lines)
    for words in ("Precision, recall 91%, 82%", "Missed, surplus, late 3, 4, 5", "Delay median 61 ms, at most 72 ms"):
        assert words in text


def test_probes_of_a_capacity():
    probe = LoadProbe(40, 1000.0, 22, 21, 0.91, 0.82, 1.0, 2.0, 3.0, 4.0, Bound.DELAY, "so")
    axis = CapacityAxis("pace", "times", 20, Harder.GREATER, True, lambda experiment, _: experiment)
    one = Capacity("live", "rspql", (probe,), None, 40)
    rows = Tables(capacity_page(Carried("c", axis, Limit(1000, 250), 0.05, [one]))).rows
    [row] = [row for row in rows if "feeder p99" in row]
    expected = {
        "pace, times": "40", "triples/s": "1,000", "right": "21 of 22", "precision": "91%", "recall": "82%",
        "delay p50": "1 ms", "p99": "2 ms", "slowest window's p99": "3 ms", "feeder p99": "4 ms", "bound by": "delay",
    }  # fmt: skip
    agrees(row, expected)


def test_notifications():
    made, received = TimeStatistics(9, 11.0, 12.0, 13.0, 14.0), TimeStatistics(9, 21.0, 22.0, 23.0, 24.0)
    score = NotificationScore(1, 2, 3, 4, 5, 6, made, received, Throughput(30, 2.0))
    assert dict(zip(COLUMNS, line("all", score).cells, strict=True)) == {
        "channels": "all", "due": "1", "told": "2", "missed": "3", "surplus": "4", "deferred": "5",
        "notification time, mean": "11 ms", "median": "12 ms", "p99": "13 ms", "received, mean": "21 ms",
        "complete publications": "30", "publications/s": "15",
    }  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bench")
    run, verdict = judged()
    keep(folder / "first", (replace(run, header=replace(run.header, cpu=2.5)), verdict))
    keep(folder / "second", build.right())
    return folder


def test_the_list_of_runs(folder):
    with bench(folder) as client:
        rows = Tables(client.get("/runs/").text).rows
    [row] = [row for row in rows if row.get("Run", "").startswith("first")]
    agrees(row, RUN)
    assert row["Memory"].endswith("MiB")
    assert row["CPU"] == "2.5 s"


def test_the_page_of_a_run(folder):
    with bench(folder) as client:
        page = client.get("/runs/run/first").text
    pairs = dict(re.findall(r"<dt>([^<]*)</dt><dd>([^<]*)</dd>", page))
    agrees(pairs, RUN)
    assert pairs["Memory"].endswith("MiB")
    assert pairs["CPU"] == "2.5 s"
    assert "precision 91%, recall 82%" in page


def test_the_runs_of_an_experiment(folder):
    (folder / "heat.toml").write_text(EXPERIMENT)
    with bench(folder) as client:
        planned = client.get("/runs/experiment/heat.toml").text
    name = re.findall(r'<th scope="row">([^<]+)</th>', planned)[0]
    run, verdict = judged()
    keep(folder / "runs" / "heat" / name, (replace(run, header=replace(run.header, cpu=2.5)), verdict))
    with bench(folder) as client:
        rows = Tables(client.get("/runs/experiment/heat.toml").text).rows
    [row] = [row for row in rows if row.get("Run") == name]
    agrees(row, RUN)
    assert row["CPU"] == "2.5 s"


def test_what_other_programs_read():
    run, verdict = judged()
    told = verdict_json(run.header, verdict)
    assert {name: told[name] for name in ("precision", "recall", "missed", "surplus", "late")} == {
        "precision": 0.91, "recall": 0.82, "missed": 3, "surplus": 4, "late": 5,
    }  # fmt: skip
    odd = told["windows"][1]
    names = ("precision", "recall", "expected", "actual", "content", "delay", "undecided")
    assert [odd[name] for name in names] == [0.53, 0.64, 41, 42, 43, 61.0, 7]


def test_two_runs_beside_each_other(folder):
    comparison = compare(folder, tuple(RunLines(folder).of(["first", "second"])))
    values = {measure.name: measure.first for measure in comparison.measures}
    agrees(values, RUN)


def test_the_swaps_are_of_what_the_sources_have():
    for swap in SWAPS:
        text = (ROOT / "src" / "streamgauge" / swap.file).read_text(encoding="utf-8")
        assert swapped(swap, text) != text, swap


@pytest.mark.prove
def test_every_swap_of_headings_is_seen():
    assert list(survivors()) == []
