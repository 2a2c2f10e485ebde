"""The playground over HTTP: JSON, the form without script, links, examples, runs of the folder, limits."""

import csv
import json
import re
from dataclasses import replace
from html import unescape
from time import monotonic, sleep

import httpx
import pytest

from streamgauge.formats.lines import decode_answer
from streamgauge.formats.run import write_run
from streamgauge.formats.stream import write
from streamgauge.model.answer import Answer
from streamgauge.model.run import Run, RunHeader
from streamgauge.semantics.profiles import profile
from streamgauge.workbench.rooms.playground import recordings
from streamgauge.workbench.rooms.playground.examples import FIRST, examples
from streamgauge.workbench.rooms.playground.result import result
from streamgauge.workbench.rooms.playground.state import MOST_BYTES, of_link, to_json
from tests.report import build
from tests.workbench.runs.folders import keep
from tests.workbench.serving import opened

pytestmark = pytest.mark.server

HTML = {"accept": "text/html"}
OPEN_CLOSED = "(o, c]"


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    with (
        opened(tmp_path_factory.mktemp("runs")) as bench,
        httpx.Client(base_url=f"{bench.url}/playground", timeout=60) as client,
    ):
        client.folder = bench.folder
        yield client


def recorded(borders):
    """The answers of an engine with these borders to the first example."""
    outcome = result(FIRST)
    engine = outcome.b if borders == OPEN_CLOSED else outcome.a
    return [Answer(engine.variables, report.rows, instant=report.due.instant) for report in engine.reports]


def lines(answers):
    told = ({"vars": answer.variables, "add": answer.added, "instant": answer.instant} for answer in answers)
    return "\n".join(map(json.dumps, told))


def test_a_state_is_answered_as_json(bench):
    document = bench.post("/evaluate", json=to_json(FIRST)).json()
    assert document["errors"] == []
    assert document["summary"] == "From A to B, of 4 reports 4 change."
    assert [entry["instant"] for entry in document["differences"]] == [10_000, 15_000, 20_000, 25_000]
    assert {entry["field"] for entry in document["differences"]} == {"borders"}
    assert sorted(document["a"]["candidates"][0]["rows"]) == [["attic", "27"], ["hall", "22"], ["kitchen", "24"]]
    assert "<svg" in document["html"]
    assert bench.get("/", params={"s": document["link"]}, headers=HTML).text.count("≠ changes") == 4


def test_the_page_works_without_script(bench):
    page = bench.get("/", headers=HTML).text
    names = set(re.findall(r'name="([\w.]+)"', page))
    form = {"query": FIRST.query, "stream": FIRST.stream, "a.profile": "rspql", "start": "a", "second": "yes"}
    assert set(form) - {"start"} <= names
    again = bench.post("/", data={**form, "b.profile": "csparql-0.9.7"}, headers=HTML)
    assert again.status_code == 200
    assert "What differs" in again.text
    form = {"query": FIRST.query.replace("FILTER", "FLITER"), "stream": "0: a <p."}
    assert "did you mean FILTER" in bench.post("/", data=form, headers=HTML).text


def test_reports_are_files_of_what_was_typed(bench):
    form = {"query": FIRST.query, "stream": FIRST.stream, "advance": str(FIRST.advance), "second": "yes"}
    form |= {"a.profile": "rspql", "b.profile": "yasper"}
    outcome = result(replace(FIRST, b={"profile": "yasper"}))
    sides = [("A", outcome.a), ("B", outcome.b)]
    answer = bench.post("/", data={**form, "do": "reports.csv"}, headers=HTML)
    assert answer.headers["content-disposition"] == 'attachment; filename="reports.csv"'
    rows = list(csv.DictReader(answer.text.splitlines()))
    expected = [
        (name, str(report.due.instant), str(len(report.rows)), room.strip("<>"), degrees.split('"')[1])
        for name, side in sides for report in side.reports for room, degrees in report.rows or [("<>", '""')]
    ]  # fmt: skip
    assert [
        tuple(row[name] for name in ("semantics", "instant, ms", "rows", "room", "degrees")) for row in rows
    ] == expected
    assert rows[0]["windows, ms"] == "[0, 10,000)"
    assert {row["difference"] for row in rows} == {*(str(pair.change) for pair in outcome.pairs), ""} - {"same"}
    for name, side in sides:
        text = bench.post("/", data={**form, "do": f"answers-{name.lower()}.jsonl"}, headers=HTML).text
        answers = [decode_answer(line) for line in text.splitlines()]
        assert [(one.instant, one.added) for one in answers] == [(one.due.instant, one.rows) for one in side.reports]
    wrong = bench.post("/", data={**form, "stream": "0: a <p.", "do": "reports.csv"}, headers=HTML)
    assert "text/html" in wrong.headers["content-type"]


def test_every_example_is_listed_and_some_open(bench):
    page = bench.get("/examples", headers=HTML).text
    listed = re.findall(r'href="/playground/\?case=([\w-]+)"', page)
    assert listed == [example.name for example in examples()]
    for name in (listed[0], "csrbench-q6t", *listed[-90::30]):
        opened_page = bench.get("/", params={"case": name, "profile": "rspql"}, headers=HTML)
        assert opened_page.status_code == 200
        assert "<svg" in opened_page.text
    assert bench.get("/", params={"case": "none"}, headers=HTML).status_code == 400


def test_a_long_state_is_a_link_too(bench):
    stream = "\n".join(f"{n * 40}: room{n * 7919 % 997} degrees {n * 31 % 61}." for n in range(600))
    document = bench.post("/evaluate?brief", json=to_json(FIRST) | {"stream": stream}).json()
    assert set(document) >= {"html", "link", "places"}
    assert "a" not in document
    assert f"{599 * 40}: room" in bench.get("/", params={"s": document["link"]}, headers=HTML).text


def test_hostile_text_stays_text(bench):
    bad = "<script>alert(1)</script>"
    state = to_json(FIRST) | {"stream": f"0: a p '{bad}'.", "query": FIRST.query.replace("21", f"'{bad}'")}
    for text in (bench.post("/evaluate", json=state).json()["html"], bench.post("/", data={"query": bad}).text):
        assert bad not in text


def test_what_is_too_large_or_no_state_is_refused(bench):
    assert bench.post("/evaluate", content=b"x" * (MOST_BYTES + 1)).status_code == 413
    assert bench.post("/evaluate", content=b"[" * 2_000).status_code == 400
    assert "not part of a state" in bench.post("/evaluate", json={"colour": 1}).json()["error"]
    assert bench.post("/generate", json={"workload": "weather", "parameters": "data=/etc"}).status_code == 400
    assert bench.post("/profile", json={"name": "none"}).status_code == 400
    assert bench.post("/profile", json={"name": "cqels"}).json()["r2s"] == "Istream"


def test_a_recording_is_diagnosed(bench):
    state = {**to_json(FIRST), "b": None, "recording": lines(recorded(OPEN_CLOSED))}
    document = bench.post("/diagnose", json=state).json()
    assert document["judgement"] == "wrong"
    assert "(o, c]" in document["parts"][0]
    second = result_of(bench, document["second"])
    assert second["b"]["semantics"]["borders"] == OPEN_CLOSED
    right = bench.post("/diagnose", json={**state, "recording": lines(recorded("[o, c)"))}).json()
    assert right["judgement"] == "right"
    typed = {name: state[name] for name in ("query", "stream", "recording")}
    form = {**typed, "advance": "25000", "a.profile": "rspql", "start": "a", "do": "diagnose"}
    page = bench.post("/", data=form)
    assert unescape(document["headline"]) in unescape(page.text)
    assert "line 1 of the recording" in bench.post("/diagnose", json={**state, "recording": "?"}).json()["trouble"]


def test_a_search_that_takes_too_long_says_what_is_known_by_then(bench, monkeypatch):
    monkeypatch.setattr(recordings, "PATIENCE_S", -1)
    state = {**to_json(FIRST), "b": None, "recording": lines(recorded(OPEN_CLOSED))}
    document = bench.post("/diagnose", json=state).json()
    assert document["headline"] == "No model that was tried gives these answers."
    assert document["proof"].startswith(
        "The search ended after -1 s of CPU, before all models were tried; 4 of 4 reports"
    )
    assert [entry["word"] for entry in document["reports"]] == ["wrong"] * 4


def result_of(bench, link):
    """The state behind a link, evaluated."""
    return bench.post("/evaluate", json=to_json(of_link(link))).json()


def test_a_run_of_the_folder_opens_and_no_other(bench, tmp_path):
    outcome = result(FIRST)
    header = RunHeader("mine", outcome.query, FIRST.query, "rspql", profile("rspql"), advanced_to=25_000, started=0)
    folder = bench.folder / "mine"
    folder.mkdir()
    write(outcome.stream.elements, folder / "stream.parquet")
    write_run(folder, Run(header, tuple(recorded(OPEN_CLOSED)), ()), "stream.parquet")
    page = bench.get("/", params={"run": "mine"}, headers=HTML)
    assert page.status_code == 200
    assert "2500: hall degrees 22." in page.text
    (bench.folder / "out").symlink_to(tmp_path)
    for name in ("../mine", "out", "/etc", "none"):
        assert bench.get("/", params={"run": name}, headers=HTML).status_code == 400


def test_a_run_that_cannot_be_opened_is_named_without_its_path_on_this_machine(bench):
    keep(bench.folder / "unfed", build.wrong())
    page = bench.get("/", params={"run": "unfed"}, headers=HTML)
    assert page.status_code == 400
    alert = unescape(page.text.split('role="alert"')[1].split("</p>")[0])
    assert "unfed/stream.parquet: missing: the stream of the run belongs there" in alert
    assert alert.endswith("The first example is opened in its place.")
    assert str(bench.folder) not in page.text


def test_an_internal_error_is_logged_and_not_shown(bench, monkeypatch, caplog):
    def broken(*_arguments):
        raise ValueError("a fault of the program")

    monkeypatch.setattr("streamgauge.workbench.rooms.playground.result.evaluated", broken)
    answer = bench.post("/evaluate", json=to_json(FIRST))
    assert (answer.status_code, answer.json()) == (500, {"error": "Internal Server Error"})
    until = monotonic() + 10  # logged once the answer is sent
    while "a fault of the program" not in caplog.text and monotonic() < until:
        sleep(0.01)
    assert "a fault of the program" in caplog.text
