"""Figures as files, Markdown for pull requests, JUnit's XML for CI: the same numbers as the page, nothing injected."""

import csv
import re
from collections import Counter
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from xml.etree import ElementTree

import pytest

from streamgauge.model.verdict import Judgement
from streamgauge.report import figures, junit, markdown
from streamgauge.report.charts import ChartDrawing
from streamgauge.report.document import document
from streamgauge.report.numbers import percent
from streamgauge.report.plots import plots
from streamgauge.report.series import series_of
from tests.report import build

EVIL = "<script>alert(1)</script> | [x](http://e.org) `a`\n# @all \x07"
AT = datetime(2026, 11, 23, 12, 0, 5)


def drawn(runs: list[build.Judged]) -> dict[str, figures.FigureNumbers]:
    """The numbers of the figures of a page, by their names."""
    results = [
        figure.numbers for plot in plots() for figure in plot.figures(ChartDrawing(drawn=False), series_of(runs))
    ]
    return {numbers.name: numbers for numbers in results if numbers is not None}


@pytest.mark.slow
def test_figures_are_files_with_the_numbers_of_the_table(tmp_path: Path) -> None:
    runs = [build.wrong(), build.right()]
    result = (figure for plot in plots() for figure in plot.figures(ChartDrawing(drawn=False), series_of(runs)))
    chosen = [figure for figure in result if figure.numbers and figure.numbers.name in ("delay", "precision")]
    written = figures.export(chosen, [one.label for one in series_of(runs)], tmp_path)
    assert sorted(Counter(path.suffix for path in written).items()) == [
        (s, 2) for s in (".csv", ".pdf", ".png", ".svg", ".tex")
    ]
    begins = {".svg": b"<svg", ".png": b"\x89PNG", ".pdf": b"%PDF", ".tex": b"% \\usepackage{pgfplots}"}
    assert all(path.read_bytes().startswith(begins.get(path.suffix, b"series,")) for path in written)
    assert "live as csparql" in (tmp_path / "delay.svg").read_text(encoding="utf-8")  # the legend
    for name, value in (("precision", lambda window: window.precision), ("delay", lambda window: window.delay)):
        with (tmp_path / f"{name}.csv").open(encoding="utf-8", newline="") as file:
            lines = list(csv.reader(file))[1:]
        windows = [window for _, verdict in runs for window in verdict.windows]
        placed = [window for window in windows if window.instant is not None and value(window) is not None]
        assert [float(line[-1]) for line in lines] == [value(window) for window in placed]
        assert [int(line[2]) for line in lines] == [window.index for window in placed]


@pytest.mark.slow
def test_the_table_behind_a_plot_is_its_csv_where_it_is_whole() -> None:
    run, verdict = build.wrong()
    short = replace(verdict, windows=verdict.windows[:9])
    for numbers in drawn([(run, short)]).values():
        if numbers.name in ("precision", "recall", "window-size", "result-size"):
            show = percent if numbers.name in ("precision", "recall") else "{:,}".format
            every = [(f"{line[3]:g}", show(line[4])) for line in numbers.every()]
            assert [line[1:] for line in numbers.shown] == every
            assert numbers.note == ""


@pytest.mark.slow
def test_every_plot_has_numbers_with_units_and_a_name_of_its_own() -> None:
    runs = [build.wrong(), *build.repetitions(2), build.fitted()]
    results = [figure for plot in plots() for figure in plot.figures(ChartDrawing(drawn=False), series_of(runs))]
    names = [figure.numbers.name for figure in results if figure.numbers is not None]
    assert len(names) == len(set(names)) >= 14
    assert all(re.fullmatch(r"[a-z0-9-]+", name) for name in names)
    for figure in results:
        if figure.numbers is not None:
            assert all(len(line) == len(figure.numbers.columns) for line in figure.numbers.every())
            assert all(len(line) == len(figure.numbers.shown_columns) for line in figure.numbers.shown)
            assert len(figure.numbers.shown) <= 3 * figures.SHOWN * len(series_of(runs))


def test_markdown_says_the_verdict_and_the_first_wrong_rows() -> None:
    run, verdict = build.wrong()
    text = markdown.page([build.right(), (replace(run, folder=Path("runs/a")), verdict)], "Hot")
    lines = text.splitlines()
    assert lines[0] == "## Hot"
    assert "Of 2 runs, 1 is right and 1 is wrong." in text
    rows = [line for line in lines if line.startswith("| ") and "---" not in line]
    assert rows[1].startswith("| live as csparql | ✅ right | 100% | 100% | 20 |")
    assert "| 3 | wrong |" in text
    assert "streamgauge explain runs/a --window 3" in text
    assert '    :S0; "30"^^xsd:float' in text
    with pytest.raises(ValueError, match="no run to report"):
        markdown.page([], "Nothing")


def hostile() -> build.Judged:
    run, verdict = build.wrong(EVIL, failure=EVIL, semantics=replace(build.CSPARQL, name=EVIL))
    windows = [replace(one, missing=((f'"{EVIL}"', None),)) if one.missing else one for one in verdict.windows]
    return run, replace(verdict, windows=tuple(windows), cautions=(EVIL,), reason=EVIL)


def test_markdown_shows_hostile_texts_as_they_are() -> None:
    text = markdown.page([hostile()], EVIL)
    shown = [line for line in text.splitlines() if not line.startswith("    ")]
    assert sum("script" in line for line in shown) >= 6
    for line in shown:
        assert not re.search(r"(?<!\\)[`@]|(?<!\\)\]\(|http://|(?<!\\)<(?!/?details>|/?summary>)", line)
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} <= {10, 7}


CHILDREN = {
    "testsuites": ["testsuite"],
    "testsuite": ["properties", "testcase", "system-out", "system-err"],
    "properties": ["property"],
    "testcase": ["skipped", "error", "failure"],
}
REQUIRED = {
    "testsuite": "name package id timestamp hostname tests failures errors time",
    "property": "name value",
    "testcase": "name classname time",
    "failure": "type",
    "error": "type",
}


def sound(element: ElementTree.Element) -> None:
    """Elements in the order, and with the attributes, that the schema of Ant's JUnit task has."""
    order = CHILDREN.get(element.tag, [])
    places = [order.index(child.tag) for child in element]
    assert places == sorted(places)
    assert set(REQUIRED.get(element.tag, "").split()) <= set(element.attrib)
    for name in ("name", "classname"):
        assert element.get(name, "x") == " ".join(element.get(name, "x").split()) != ""
    if element.tag == "testsuite":
        assert [child.tag for child in element][-2:] == ["system-out", "system-err"]
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", element.attrib["timestamp"])
        for kind in ("failure", "error", "skipped"):
            plural = kind if kind == "skipped" else f"{kind}s"
            assert int(element.attrib[plural]) == len(element.findall(f"testcase/{kind}"))
        assert int(element.attrib["tests"]) == len(element.findall("testcase"))
    assert element.tag != "testcase" or len(element) <= 1
    for child in element:
        sound(child)


def test_junit_has_a_suite_for_a_run_and_a_case_for_a_window() -> None:
    runs = [build.right(), build.wrong(), build.late(), build.failed(), build.unknown(), hostile()]
    root = ElementTree.fromstring(junit.page(runs, AT))
    sound(root)
    counts = [(suite.get("tests"), suite.get("failures"), suite.get("errors"), suite.get("skipped")) for suite in root]
    late = sum(window.late for window in build.late()[1].windows)
    assert counts[:2] == [("20", "0", "0", "0"), ("21", "5", "0", "0")]
    assert counts[2] == ("20", str(late), "0", "0")
    assert counts[3][2:] == ("1", "0")
    assert counts[4] == ("1", "0", "0", "1")
    (failure,) = root[1].findall("testcase[@name='window 3']/failure")
    assert failure.get("message") == "1 of 1 window not as expected"
    assert "missing: ?station :S0, ?value" in failure.text
    assert root[1].get("timestamp") == "2026-11-23T12:00:05"


def test_many_windows_are_grouped() -> None:
    root = ElementTree.fromstring(junit.page([build.large(1050, 3)], AT))
    sound(root)
    cases = root.findall("testsuite/testcase")
    assert len(cases) <= junit.CASES
    assert cases[0].get("name") == "reports 0 to 10"
    assert cases[-1].get("name").endswith("to 1049")


def test_every_judgement_has_a_sign() -> None:
    assert set(markdown.SIGNS) == set(Judgement)


def test_free_text_with_control_characters_is_shown_in_every_format():
    characters = "\0\x01\x1b\x9b\ud800\ufffe"
    texts = dict.fromkeys(("engine", "experiment", "failure", "query_text"), f"a{characters}b")
    tables = {name: {f"a{characters}b": f"c{characters}d"} for name in ("workload", "options", "versions")}
    run, verdict = build.right(**texts, **tables)
    odd = (run, replace(verdict, reason=f"why{characters}", cautions=(f"mind{characters}",)))
    for text in (document([odd], "t"), markdown.page([odd], "t"), junit.page([odd], AT)):
        text.encode()
        assert not set(characters) & set(text)
    assert ElementTree.fromstring(junit.page([odd], AT)) is not None
