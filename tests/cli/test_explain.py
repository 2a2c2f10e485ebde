"""``streamgauge explain``: the sentence, the proof and one window; kept in the run's verdict."""

import functools
import json
import re
import shlex
from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from streamgauge.cli import verdicts
from streamgauge.formats.run import read_run, read_verdict, write_run
from streamgauge.formats.stream import write
from streamgauge.model.semantics import Borders
from streamgauge.model.verdict import Diagnosis, Part
from streamgauge.oracle.diagnosis import whole_run
from streamgauge.query import parse
from streamgauge.report.series import series_of
from streamgauge.report.text import explained_lines
from streamgauge.report.windows import window_tables
from streamgauge.semantics.profiles import RSPQL
from tests.notation import stream
from tests.oracle.runs import TEXT, right_run
from tests.report import build

QUERY = """REGISTER STREAM <urn:out> AS
SELECT ?s ?o FROM NAMED WINDOW <urn:w> ON <http://ex.org/streams/test> [RANGE PT0.005S STEP PT0.005S]
WHERE { WINDOW <urn:w> { ?s <urn:p> ?o } }
"""


@pytest.fixture
def recorded(tmp_path):
    def record(run, rewrite=lambda answers: answers):
        header = replace(run.header, query_text=QUERY)
        write_run(tmp_path / "run", replace(run, header=header, answers=tuple(rewrite(run.answers))))
        write(stream(TEXT), tmp_path / "run" / "stream.parquet")
        return tmp_path / "run"

    return record


@pytest.fixture
def explain(command):
    return functools.partial(command, "explain")


CLOSE = replace(RSPQL, name="close")
NAMELESS = {"sparql": "SELECT ?s ?o { ?s <urn:p> ?o }", "named": False}
OTHER = right_run(replace(CLOSE, borders=Borders.OPEN_CLOSED), **NAMELESS)


def right():
    return right_run(CLOSE, **NAMELESS)


def test_a_lost_report_is_explained_and_kept(recorded, explain):
    folder = recorded(right(), lambda answers: answers[1:])
    code, out, _ = explain(folder)
    assert code == 0
    assert "The first report of the run is lost." in out
    assert "Proof: this model gives exactly the recorded answers" in out
    assert "no report" in out
    kept = read_verdict(folder).diagnosis
    assert kept.exact
    assert kept.differs == 1


def test_a_large_run_is_explained_by_its_beginning_and_says_so(recorded, explain, command, monkeypatch):
    wrong = right_run(replace(CLOSE, borders=Borders.OPEN_CLOSED), sparql=NAMELESS["sparql"])
    folder = recorded(replace(wrong, header=replace(wrong.header, semantics=CLOSE)))
    assert command("check", folder)[0] == 1
    for module in (verdicts, whole_run):
        monkeypatch.setattr(module, "TRIPLES_LIMIT", 12)
    code, out, _ = explain(folder)
    assert code == 0
    assert "The diagnosis was found on the first 12 of 20 triples." in out
    kept = read_verdict(folder)
    assert kept.diagnosis.models[0][0].name == "borders = (o, c]"
    assert kept.cautions[-1].startswith("The diagnosis was found on the first")


def test_json_has_the_models_and_the_window(recorded, explain):
    folder = recorded(
        right(), lambda answers: [replace(one, added=one.added[:1]) for one in answers[:1]] + [*answers[1:]]
    )
    code, out, _ = explain(folder, "--json")
    said = json.loads(out)
    assert code == 0
    assert said["exact"]
    assert said["models"][0][0]["name"] == "rows lost in 1 report"
    assert len(said["window"]["recorded"]) == 1 < len(said["window"]["expected"])


def test_equally_good_models_and_longer_ones_are_told_apart(recorded, explain):
    code, out, _ = explain(recorded(right_run(CLOSE, **NAMELESS), lambda answers: OTHER.answers))
    assert code == 0
    assert "equally good: the recorded answers cannot tell them apart" in out
    assert "bits, the first has" in out


def test_models_of_more_free_choices_are_told_after_those_that_are_equally_good():
    one, other, long = (Part(name, name) for name in ("one", "other", "long"))
    diagnosis = Diagnosis(((one,), (other,), (one, long)), 0, 1, 4, bits=(6.0, 7.5, 15.0))
    string_io = StringIO()
    run, verdict = build.wrong()
    Console(file=string_io, width=120).print(explained_lines(run.header, replace(verdict, diagnosis=diagnosis), None))
    assert [line.strip() for line in string_io.getvalue().splitlines()[3:7]] == [
        "1 other model is equally good: the recorded answers cannot tell them apart.",
        "- other (8 bits, the first has 6)",
        "1 model with more free choices gives the same answers:",
        "- one and long (15 bits, the first has 6)",
    ]


def test_a_right_run_has_nothing_to_explain(recorded, explain):
    code, out, _ = explain(recorded(right()))
    assert code == 0
    assert "there is nothing to explain" in out


@pytest.mark.slow
def test_none_fits_is_said_and_not_a_diagnosis(recorded, explain):
    never = (("<urn:never>", "<urn:never>"),)
    code, out, _ = explain(recorded(right(), lambda answers: [replace(answers[0], added=never), *answers[1:]]))
    assert code == 4
    assert "None fits" in out
    assert "Proof" not in out


def test_the_command_of_the_report_shows_one_window(recorded, command):
    folder = recorded(
        right(), lambda answers: [answers[0], replace(answers[1], added=answers[1].added[1:]), *answers[2:]]
    )
    command("check", folder)
    run, verdict = read_run(folder, parse), read_verdict(folder)
    (table,) = window_tables(series_of([(run, verdict)]))
    wrong = next(line for line in table.lines if line.state == "wrong")
    window = verdict.windows[1]
    code, out, _ = command(*shlex.split(wrong.command)[1:])
    assert code == 1
    assert f"window {window.index}: wrong" in out
    assert f"{window.content} triple" in out
    assert re.search(rf"rows in all +{window.expected} +{window.actual}\b", out)
    code, out, _ = command("explain", folder, "--window", window.index, "--json")
    told = json.loads(out)
    assert len(told["expected_rows"]) == window.expected == len(told["received_rows"]) + 1
    assert len(told["content_triples"]) == window.content
    assert told["missing"] == [row for row in told["expected_rows"] if row not in told["received_rows"]]
    code, _, told = command("explain", folder, "--window", "999")
    assert code == 2
    assert "the verdict has" in told
