"""The report's page in the workbench: cheap to open, drawn by parts, its plots given as files."""

import csv
import io
import re
import sys
from time import process_time
from xml.etree import ElementTree

import pytest

from tests.contention import CONTENDED
from tests.report import build
from tests.workbench.runs.folders import bench, keep

pytestmark = pytest.mark.slow
PLACE = "/runs/report/runs/wrong%20%3Cone%3E"
OPENED_S = 0.7
"""CPU seconds of the first page of a process on an idle machine, at most."""


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bench")
    keep(folder / "runs" / "wrong <one>", build.wrong())
    with bench(folder) as client:
        yield client


@pytest.fixture(scope="module")
def page(client):
    begin = process_time()
    text = client.get(PLACE).text
    assert process_time() - begin < CONTENDED * OPENED_S
    return text


def test_every_plot_of_the_saved_page_is_drawn_when_it_is_asked_for(client, page):
    asked = re.findall(r'data-drawing="([^"]*)"', page)
    saved = client.get(f"{PLACE}?saved=1")
    assert "attachment" in saved.headers["content-disposition"]
    assert "<script" not in saved.text
    drawn = [client.get(item) for item in asked]
    assert [item.text for item in drawn] == re.findall(r'<svg class="plot .*?</svg>', saved.text, re.DOTALL)
    assert len(asked) == 22


def test_each_plot_is_given_as_svg_png_pdf_csv_and_latex_and_the_runs_as_tables(client, page):
    addresses = re.findall(r'<a href="([^"]*)" download="delay\.\w+"', page)
    drawing, picture, paper, numbers, latex = (client.get(address) for address in addresses)
    assert ElementTree.fromstring(drawing.text).tag == "{http://www.w3.org/2000/svg}svg"
    assert picture.content.startswith(b"\x89PNG")
    assert paper.content.startswith(b"%PDF")
    assert r"\begin{axis}" in latex.text
    tables = [client.get(item).text for item in re.findall(r'<a href="([^"]*)" download="runs\.\w+"', page)]
    assert [table.split(",")[0].split("{")[0] for table in tables] == ["engine", r"\begin"]
    lines = list(csv.DictReader(io.StringIO(numbers.text)))
    delays = [window.delay for window in build.wrong()[1].windows if window.delay is not None]
    assert [float(line["delay, ms"]) for line in lines] == delays
    assert numbers.headers["content-disposition"] == "attachment; filename*=UTF-8''delay.csv"


@pytest.mark.parametrize(
    "query",
    [
        "drawing=22",
        "drawing=-1",
        "drawing=x",
        "file=delay.eps",
        "file=delay-by-result-size.tex",
        "file=runs.pdf",
        "file=../../run.json",
        "file=delay.csv.svg",
    ],
)
def test_what_the_page_does_not_have_is_refused(client, page, query):
    answer = client.get(f"{PLACE}?{query}")
    assert answer.status_code == 400
    assert "of the report on runs/wrong &lt;one&gt;" in answer.text


def test_without_the_extra_that_draws_each_plot_says_so_and_gives_its_numbers(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    keep(tmp_path / "runs" / "wrong <one>", build.wrong())
    with bench(tmp_path) as client:
        text = client.get(PLACE).text
        assert "data-drawing" not in text
        assert len(re.findall(r"Not drawn: drawing plots needs vl-convert: pip install", text)) == 11
        assert re.findall(r'download="delay\.(\w+)"', text) == ["csv", "tex"]
        assert client.get(f"{PLACE}?file=delay.csv").text.startswith("series,repetition,window")
        assert client.get(f"{PLACE}?saved=1").status_code == 200
        refusal = client.get(f"{PLACE}?file=delay.svg")
        assert (refusal.status_code, "pip install" in refusal.text) == (400, True)
