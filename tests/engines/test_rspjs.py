"""rsp-js: what it refuses and says when it is absent; preloaded input; as a session in process."""

from collections import Counter
from dataclasses import replace

import pytest

from streamgauge.engines import EngineUnavailableError, load
from streamgauge.engines.rspjs import HOME, command, refuse, start
from streamgauge.harness.systems.pipe import RunLimits, record, task_of
from streamgauge.model.run import RunHeader
from streamgauge.query import print_query
from streamgauge.semantics.profiles import RSPJS, RSPQL
from streamgauge.suites.conformance.cases import load as cases

CASES = {case.name: case for case in cases()}
MANY = CASES["many rows in one window"]


def bags(answers) -> Counter:
    return Counter(row for answer in answers for row in answer.added)


@pytest.fixture
def program() -> list[str]:
    try:
        return command()
    except EngineUnavailableError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize(
    ("name", "semantics", "words"),
    [
        ("many rows in one window", RSPQL, "its own semantics: use rsp-js"),
        ("ASK streams a boolean", RSPJS, "SELECT queries only"),
        ("static data has no timestamp", RSPJS, "no timestamp"),
        ("a landmark window and pure RANGE", RSPJS, "time-based windows only"),
        ("the query's keyword wins over the semantics' default", RSPJS, "Rstream only"),
    ],
)
def test_what_it_cannot_do_it_refuses_by_name(name, semantics, words):
    assert words in (refuse(CASES[name].query, semantics) or "")


def test_what_it_can_do_it_does_not_refuse():
    assert refuse(MANY.query, RSPJS) is None
    assert load("rspjs").refuse is refuse


def test_an_absent_package_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setenv(HOME, str(tmp_path))
    with pytest.raises(EngineUnavailableError, match=r"npm install rsp-js@1\.3\.5|needs Node"):
        command()


@pytest.mark.server
def test_preloaded_input_keeps_its_windows_in_place(program):
    text = print_query(MANY.query, "rspql")
    header = RunHeader("rspjs", MANY.query, text, "rspql", RSPJS, MANY.advance, 0, options={"preload": True})
    run = record(header, program, MANY.stream, RunLimits(300))
    assert run.header.failure is None
    assert bags(run.answers) == Counter(row for _, rows in MANY.expected for row in rows)
    live = replace(header, options={})
    lost = record(live, program, MANY.stream, RunLimits(300), task=task_of(live))
    assert bags(lost.answers) < bags(run.answers)


@pytest.mark.server
def test_it_is_a_session_in_process(program):
    answers: list = []
    session = start(MANY.query, RSPJS, answers.append)
    for element in MANY.stream:
        session.push(element)
    session.advance(MANY.advance)
    session.close()
    assert bags(answers)[("<urn:a>",)] == 1


def test_starting_what_is_refused_is_an_error():
    with pytest.raises(ValueError, match="use rsp-js"):
        start(MANY.query, RSPQL, lambda _answer: None)
