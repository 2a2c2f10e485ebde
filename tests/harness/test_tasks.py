"""Many runs of one program: kept alive between tasks, started again when it ended, its failures its own."""

import sys
import textwrap
from dataclasses import replace

import pytest

from streamgauge.formats.pipe import PipedSession, TaskRefusedError, word
from streamgauge.harness.systems import RunLimits
from streamgauge.harness.systems.pipe import PipeProgram, program, record, task_of
from streamgauge.semantics.profiles import PROFILES, RSPQL
from tests.harness.test_pipe import ELEMENTS, RUN, said

pytestmark = pytest.mark.server

HEADER = replace(RUN.header, advanced_to=50)
ECHO = """
import json, os, sys
def say(line): print(json.dumps(line), flush=True)
for item in map(json.loads, sys.stdin):
    if "query" in item:
        name = item["semantics"]["name"]
        if name == "refuse":
            say({"refused": "not this one"})
        else:
            say({"ready": True})
    elif "close" in item:
        if name == "once": break
        say({"closed": True})
    elif "t" in item:
        if name == "crash": raise RuntimeError("broken on purpose")
        if name == "hang": import time; time.sleep(60)
        if name == "babble": print("what", flush=True)
        if name == "quit": sys.exit(0)
        say({"vars": ["p"], "add": [[json.dumps(str(os.getpid()))]]})
"""


def engine(tmp_path) -> list[str]:
    file = tmp_path / "engine.py"
    file.write_text(textwrap.dedent(ECHO))
    return [sys.executable, str(file)]


def asked(tasks: PipeProgram, name: str):
    header = replace(HEADER, semantics=replace(RSPQL, name=name))
    return tasks.record(header, ELEMENTS, task_of(header))


def pid(run) -> str:
    assert run.header.failure is None
    assert len(run.answers) == len(ELEMENTS)
    (row,) = {answer.added for answer in run.answers}
    return row[0][0]


def test_one_program_does_one_task_after_another(tmp_path):
    with PipeProgram(engine(tmp_path), RunLimits(30)) as tasks:
        assert pid(asked(tasks, "a")) == pid(asked(tasks, "b"))


def test_a_program_that_does_one_task_is_started_for_each(tmp_path):
    with PipeProgram(engine(tmp_path), RunLimits(30)) as tasks:
        assert len({pid(asked(tasks, "once")) for _ in range(3)}) == 3


def test_a_refused_task_is_followed_by_the_next(tmp_path):
    with PipeProgram(engine(tmp_path), RunLimits(30)) as tasks:
        before = pid(asked(tasks, "a"))
        with pytest.raises(TaskRefusedError, match=r"^not this one$"):
            asked(tasks, "refuse")
        assert pid(asked(tasks, "a")) == before


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("crash", "broken on purpose"),
        ("hang", "time limit of 2 s"),
        ("babble", "line 1 of the engine's output is not an answer"),
    ],
)
def test_a_failure_is_of_its_task_alone(tmp_path, name, words):
    with PipeProgram(engine(tmp_path), RunLimits(2)) as tasks:
        assert words in (asked(tasks, name).header.failure or "")
        assert pid(asked(tasks, "a"))


def test_a_program_that_ends_while_it_is_fed_has_not_answered(tmp_path):
    with PipeProgram(engine(tmp_path), RunLimits(30)) as tasks:
        assert asked(tasks, "quit").answers == ()
        assert pid(asked(tasks, "a"))


def test_a_flood_is_ended(tmp_path):
    with PipeProgram(engine(tmp_path), RunLimits(30, output=100)) as tasks:
        assert "a flood" in (asked(tasks, "a").header.failure or "")


def test_a_program_that_never_gets_ready_says_so():
    with PipeProgram([sys.executable, "-c", "pass"], RunLimits(30)) as tasks:
        assert "before it was ready" in (asked(tasks, "a").header.failure or "")


def test_the_answers_are_those_of_a_run_alone():
    with PipeProgram(program("live"), RunLimits(300)) as tasks:
        runs = [tasks.record(HEADER, ELEMENTS, task_of(HEADER)) for _ in range(2)]
    alone = record(HEADER, program("live"), ELEMENTS, RunLimits(300))
    assert [said(run.answers) for run in runs] == [said(alone.answers)] * 2


def test_live_refuses_on_the_pipe_what_it_refuses():
    header = replace(HEADER, semantics=PROFILES["cqels-1.x"])
    with (
        PipeProgram(program("live"), RunLimits(300)) as tasks,
        pytest.raises(TaskRefusedError, match="no clock of its own"),
    ):
        tasks.record(header, ELEMENTS, task_of(header))
    run = record(header, program("live"), ELEMENTS, RunLimits(300))
    assert "the engine refuses the task: cqels-1.x timestamps elements" in (run.header.failure or "")
    assert run.fed == ()


def test_a_refusal_in_process_is_the_programs_sentence(tmp_path):
    header = replace(HEADER, semantics=replace(RSPQL, name="refuse"))
    with pytest.raises(TaskRefusedError, match="not this one"):
        PipedSession(engine(tmp_path), task_of(header), lambda _answer: None)


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        (b'{"ready":true}\n', "ready"),
        (b' { "ready" : true }\r\n', "ready"),
        (b'{"closed": true}\n', "closed"),
        (b'{"refused": "why"}\n', "refused"),
        (b'{"refused": ""}\n', None),
        (b'{"refused": null}\n', None),
        (b'{"ready":' + b"[" * 100_000, None),
        (b'{"ready":1}\n', None),
        (b'{"ready":true\n', None),
        (b'{"vars":["ready"],"add":[]}\n', None),
    ],
)
def test_words_are_told_from_answers_however_they_are_laid_out(line, wanted):
    result = word(line)
    assert (result.kind if result else None) == wanted
