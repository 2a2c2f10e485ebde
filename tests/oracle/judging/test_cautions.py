"""Verdicts in which every window expected nothing or got nothing: said first, with the likely cause."""

import json
from dataclasses import replace

import pytest

from streamgauge.formats.run import write_run
from streamgauge.formats.stream import write
from streamgauge.query import parse
from streamgauge.semantics.definition import expected
from streamgauge.semantics.profiles import RSPQL
from tests.notation import STREAM, stream
from tests.oracle.runs import TEXT, right_run

HEAD = "SELECT ?s FROM NAMED WINDOW <urn:w> ON <%s> [RANGE PT0.005S STEP PT0.005S] "
PLAIN = HEAD % STREAM + "{ WINDOW <urn:w> { ?s <urn:p> ?o } }"


def folder(path, text, answers=None):
    """A run on the stream of ``TEXT``, judged by the query of ``text``; its answers are right for the plain query."""
    run = right_run(RSPQL)
    run = replace(run, header=replace(run.header, query=parse(text), query_text=text))
    write_run(path / "run", run if answers is None else replace(run, answers=tuple(answers(run.answers))))
    write(stream(TEXT), path / "run" / "stream.parquet")
    return path / "run"


def said(command, path, text, answers=None):
    """What check says, its lines without margins, and the cautions of its JSON."""
    run = folder(path, text, answers)
    result = json.loads(command("check", run, "--json").out)["cautions"]
    lines = [line.strip() for line in command("check", run).out.splitlines()]
    assert " ".join(lines[1:]).startswith(" ".join(result)) or not result
    return result


def test_a_run_with_rows_on_both_sides_has_no_caution(tmp_path, command):
    assert said(command, tmp_path, PLAIN) == []


@pytest.mark.parametrize(
    ("pattern", "causes"),
    [
        ("WINDOW <urn:w> { ?s <urn:p> ?o } ?o <urn:in> ?room", ["the run has none. Name it with --static"]),
        ("WINDOW <urn:w> { ?s <http://other.org/p> ?o }", ["<http://other.org/p> of the query", "there is <urn:p>"]),
        ("WINDOW <urn:w> { ?s <urn:pp> ?o }", ["<urn:pp> of the query is in no triple", "there is <urn:p>"]),
        ("WINDOW <urn:w> { <urn:S1> <urn:p> ?o }", ["<urn:S1> of the query is in no triple", "there is <urn:s1>"]),
        ("WINDOW <urn:w> { ?s <urn:p> ?o FILTER(?o = <urn:no>) }", ["look at its constants and filters"]),
    ],
)
def test_nothing_was_expected(tmp_path, command, pattern, causes):
    result = said(command, tmp_path, HEAD % STREAM + "{ " + pattern + " }")
    assert result[0].startswith("Every one of 4 due reports expected nothing: this verdict says little")
    for cause in causes:
        assert any(cause in sentence for sentence in result[1:]), result


def test_a_static_graph_that_was_forgotten(tmp_path, command):
    text = PLAIN.replace("SELECT ?s FROM", "SELECT ?s FROM <urn:rooms> FROM").replace(
        "?o } }", "?o } ?o <urn:in> ?room }"
    )
    assert any("static data and the run has none" in sentence for sentence in said(command, tmp_path, text))


def test_a_window_over_a_stream_that_was_not_recorded(tmp_path, command):
    second = "FROM NAMED WINDOW <urn:v> ON <http://ex.org/streams/tset> [RANGE PT0.005S STEP PT0.005S] "
    text = HEAD % STREAM + second + "{ WINDOW <urn:w> { ?s <urn:p> ?o } WINDOW <urn:v> { ?s <urn:q> ?x } }"
    result = said(command, tmp_path, text)
    assert "the query reads the stream <http://ex.org/streams/tset>, and what was recorded is" in result[1]


@pytest.mark.parametrize(
    ("answers", "sentence"),
    [
        (lambda answers: [replace(one, added=()) for one in answers], "Every answer was empty although rows were"),
        (lambda _: [], "Nothing was answered although rows were expected"),
    ],
)
def test_nothing_was_got(tmp_path, command, answers, sentence):
    (result,) = said(command, tmp_path, PLAIN, answers)
    assert sentence in result
    assert f"was the engine given the stream <{STREAM}>" in result


def test_right_for_nothing_says_so_too(tmp_path, command):
    text = HEAD % STREAM + "{ WINDOW <urn:w> { ?s <urn:pp> ?o } }"

    def empty(answers):
        reports = expected(stream(TEXT), parse(text), RSPQL, 20, 0)
        return [replace(one, added=report.rows) for one, report in zip(answers, reports, strict=True)]

    result = said(command, tmp_path, text, empty)
    assert "expected nothing, and every answer was empty: this verdict says little" in result[0]
    assert "<urn:pp> of the query" in result[1]


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
def test_explain_and_the_page_say_it_first(tmp_path, command):
    run = folder(tmp_path, HEAD % STREAM + "{ WINDOW <urn:w> { ?s <urn:pp> ?o } }")
    command("check", run)
    out = command("explain", run).out
    assert out.lstrip().startswith("Every one of 4 due reports expected nothing")
    assert json.loads(command("explain", run, "--json").out)["cautions"]
    assert command("report", tmp_path, "--out", tmp_path / "page.html").code == 0
    page = (tmp_path / "page.html").read_text()
    assert page.index("due reports expected nothing") < page.index("not as expected")
