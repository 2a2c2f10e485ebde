"""The pipe contract: several tasks to one process, preloaded input, late elements, a program as a session."""

import queue
import subprocess
import sys
from dataclasses import replace

import pytest

from streamgauge.formats.lines import Late, decode_output, encode_advance, encode_element
from streamgauge.formats.pipe import CLOSE, CLOSED, READY, PipedSession, PipeError, decode_task, encode_task
from streamgauge.harness.systems.pipe import RunLimits, program, record, task_of
from streamgauge.model.answer import Answer
from streamgauge.query import parse, print_query
from streamgauge.semantics.profiles import RSPQL
from tests.notation import stream
from tests.oracle.runs import right_run

pytestmark = pytest.mark.server

TEXT = """PREFIX : <urn:> SELECT ?s FROM NAMED WINDOW :w ON <http://ex.org/streams/test> [RANGE PT0.005S STEP PT0.005S]
WHERE { WINDOW :w { ?s :p ?o } }"""
QUERY = parse(TEXT)
RUN = right_run(RSPQL)
RUN = replace(RUN, header=replace(RUN.header, query=QUERY, query_text=TEXT))
ELEMENTS = list(stream("0: a p b. | 3: b p c. | 3: c p d. | 40: d p e."))
LIVE = program("live")


def said(answers) -> list[tuple[int | None, frozenset]]:
    return [(answer.instant, frozenset(answer.added)) for answer in answers]


def alone() -> list[Answer]:
    """What the engine says when the run is all that it does."""
    run = record(replace(RUN.header, advanced_to=50), LIVE, ELEMENTS, RunLimits(300))
    assert run.header.failure is None
    assert len(run.answers) > 2
    return list(run.answers)


def test_a_process_answers_one_task_after_another():
    asked = [encode_task(task_of(RUN.header)), *map(encode_element, ELEMENTS), encode_advance(50), CLOSE]
    done = subprocess.run(LIVE, input=b"".join(asked * 2), stdout=subprocess.PIPE, check=True)
    first, second, rest = done.stdout.split(CLOSED)
    assert first == second
    assert rest == b""
    ready, *lines = first.splitlines(keepends=True)
    assert ready == READY
    assert said(map(decode_output, lines)) == said(alone())


def test_preloaded_input_gives_the_same_answers():
    header = replace(RUN.header, advanced_to=50, options={"preload": True})
    run = record(header, LIVE, ELEMENTS, RunLimits(300))
    assert run.header.failure is None
    assert said(run.answers) == said(alone())
    assert all(answer.received >= run.header.started for answer in run.answers)


def test_elements_that_come_too_late_are_counted_in_the_run():
    header = replace(RUN.header, advanced_to=50, semantics=replace(RSPQL, lateness=5))
    late = [*ELEMENTS, replace(ELEMENTS[0], sequence=9, time=1)]
    assert record(header, LIVE, late, RunLimits(300)).header.late == 1


def test_a_program_is_a_session():
    answers: list[Answer] = []
    session = PipedSession(LIVE, task_of(RUN.header), answers.append)
    for element in ELEMENTS:
        session.push(element)
    session.advance(50)
    session.close()
    assert said(answers) == said(alone())


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("import sys; sys.exit('not today')", "not today"),
        ("print('{\"ready\":true}', flush=True); input(); raise SystemExit(3)", "exit code 3"),
        ("print('{\"ready\":true}\\nwhat', flush=True); import sys; sys.stdin.read()", "not an answer"),
    ],
    ids=["dies at once", "exit code", "babble"],
)
def test_a_program_that_fails_says_how(body, words):
    def all_of_it() -> None:
        session = PipedSession([sys.executable, "-c", body], task_of(RUN.header), lambda _: None)
        for element in ELEMENTS:
            session.push(element)
        session.close()

    with pytest.raises(PipeError, match=words):
        all_of_it()


def test_a_program_that_is_gone_when_input_comes_says_how():
    body = "import sys; print('{\"ready\":true}', flush=True); sys.stdin.readline(); raise SystemExit(3)"
    session = PipedSession([sys.executable, "-c", body], task_of(RUN.header), lambda _: None)
    session._process.wait(30)

    def push_all() -> None:
        for element in ELEMENTS * 1000:
            session.push(element)

    with pytest.raises(
        PipeError, match="stopped reading its input and ended with exit code 3: its standard error is empty"
    ):
        push_all()


@pytest.mark.parametrize("early", [True, False])
def test_a_program_that_ends_while_nothing_comes_is_told(early):
    body = "print('{\"ready\":true}', flush=True); input(); input(); raise SystemExit('done')"
    session = PipedSession([sys.executable, "-c", body], task_of(RUN.header), lambda _: None)
    told: queue.Queue[str] = queue.Queue()
    if early:
        session.on_failure(told.put)
    session.push(ELEMENTS[0])
    if not early:
        session._reader.join(20)
        session.on_failure(told.put)
    assert told.get(timeout=300) == "the engine ended with exit code 1 before its input did: its last words: done"
    with pytest.raises(PipeError, match="exit code 1"):
        session.close()
    assert told.empty()


def test_a_program_that_ends_with_its_input_has_not_failed():
    session, told = PipedSession(LIVE, task_of(RUN.header), lambda _: None), []
    session.on_failure(told.append)
    session.close()
    assert told == []


def test_a_task_is_the_same_after_its_line():
    task = replace(task_of(RUN.header), static=(("<urn:a>", "<urn:p>", '"1"'),), options={"n": 1})
    assert decode_task(encode_task(task)) == task
    assert decode_output(b'{"late":3}') == Late(3)


def test_a_query_is_given_in_the_dialect_that_the_engine_reads():
    task = task_of(RUN.header, "csparql")
    assert task.dialect == "csparql"
    assert "FROM STREAM" in task.query


def test_a_query_in_the_engines_own_dialect_has_the_printed_layout():
    assert task_of(RUN.header, "rspql").query == print_query(QUERY, "rspql") != TEXT
    assert task_of(RUN.header).query == TEXT
