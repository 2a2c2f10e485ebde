"""Foreign engines that fail in any way: the run says how, keeps what came before, is judged; nothing stays behind."""

import sys
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import psutil
import pytest

from streamgauge.formats.pipe import Task
from streamgauge.formats.run import read_run, stream_path, write_run
from streamgauge.formats.stream import write
from streamgauge.harness.process import ChildProcess
from streamgauge.harness.systems.pipe import PipeProgram, RunLimits, record
from streamgauge.model.verdict import Judgement
from streamgauge.oracle.judging.judge import Means, judge_run
from streamgauge.query import parse
from streamgauge.semantics.profiles import RSPQL
from tests.notation import STREAM, stream
from tests.oracle.runs import TEXT, right_run

pytestmark = pytest.mark.server

QUERY = f"""SELECT ?s FROM NAMED WINDOW <urn:w> ON <{STREAM}> [RANGE 5ms STEP 5ms]
WHERE {{ WINDOW <urn:w> {{ ?s <urn:p> ?o }} }}"""

PROGRAM = """
import json, os, subprocess, sys, time
task = json.loads(sys.stdin.readline())
RIGHT = {right!r}
def say(text):
    sys.stdout.write(text + "\\n")
    sys.stdout.flush()
def answer(count):
    for line in RIGHT[:count]:
        say(line)
def elements(count):
    for _ in range(count):
        sys.stdin.readline()
SLEEPER = [sys.executable, "-c", "import sys, time; time.sleep(600)", {here!r}]
"""
READY = "say('{\"ready\":true}')\n"
WHOLE = "answer(4)\nsys.stdin.read()\n"


LONG, SHORT, TIGHT = RunLimits(300), RunLimits(3), RunLimits(60, output=200_000)


@dataclass(frozen=True)
class Fault:
    """What a program does when it has its task, what the run says of it, and how many right answers it keeps."""

    does: str
    said: str
    answers: int
    limits: RunLimits = LONG
    factor: float | None = None


FAULTS = {
    "hangs at once": Fault(READY + "time.sleep(600)", "still running after its time limit of 3 s", 0, SHORT),
    "hangs in the middle": Fault(
        READY + "elements(9); answer(1); time.sleep(600)", "still running after its time limit", 1, SHORT
    ),
    "hangs at the end": Fault(READY + WHOLE + "time.sleep(600)", "still running after its time limit", 4, SHORT),
    "floods": Fault(READY + "answer(1)\nwhile True: say(RIGHT[0])", "a flood, so it was ended", 1, TIGHT),
    "floods without a line end": Fault(
        READY + "answer(1)\nwhile True: sys.stdout.write('x' * 4096)", "a flood, so it was ended", 1, TIGHT
    ),
    "floods on standard error": Fault(
        READY + "answer(1)\nwhile True: sys.stderr.write('x' * 4096)",
        "MiB on standard error, so it was ended",
        1,
        TIGHT,
    ),
    "dies before it is ready": Fault("sys.exit(3)", "exit code 3", 0),
    "dies in the middle": Fault(READY + "elements(9); answer(1); os._exit(9)", "exit code 9", 1),
    "is killed": Fault(READY + "elements(9); answer(1); os.kill(os.getpid(), 9)", "exit code -9: killed", 1),
    "has no more memory": Fault(
        READY + "elements(9); answer(1); raise MemoryError", "memory ran out: raise the heap", 1
    ),
    "throws": Fault(READY + "answer(2); raise OSError('no more room')", "its last words: Traceback", 2),
    "dies at the end": Fault(READY + WHOLE + "sys.exit(5)", "exit code 5 after 4 answers", 4),
    "ends quietly": Fault(
        READY + "answer(1); sys.exit(0)", "stopped reading its input; it ended with exit code 0", 1, factor=0.01
    ),
    "closes its output": Fault(
        READY + "answer(1); os.close(1); sys.stdin.read(); os._exit(0)",
        "closed its output before the end of its input, after 1 answer",
        1,
        factor=0.01,
    ),
    "closes its input": Fault(
        READY + "answer(1); os.close(0); time.sleep(4)", "the engine stopped reading its input", 1, factor=0.02
    ),
    "is never ready": Fault("sys.stdin.read()", "was not ready within 3 s", 0),
    "refuses": Fault('say(\'{"refused": "not that one"}\'); sys.stdin.read()', "refuses the task: not that one", 0),
    "babbles": Fault(
        READY + "answer(2); say('Hello!'); answer(4)", "line 3 of the engine's output is not an answer", 2
    ),
    "babbles and ends while elements are left": Fault(
        READY + "answer(1); say('Hello!'); sys.exit(0)",
        "line 2 of the engine's output is not an answer",
        1,
        factor=0.01,
    ),
    "writes bytes": Fault(
        READY + "answer(1); os.write(1, bytes([255, 0, 254, 10])); sys.stdin.read()", "line 2 of the engine's output", 1
    ),
    "nests without end": Fault(
        READY + "answer(1); say('[' * 100_000); sys.stdin.read()", "not a readable line of JSON", 1
    ),
    "answers half a character": Fault(
        READY + 'answer(1); say(\'{"vars": ["\\\\ud800"], "add": []}\'); sys.stdin.read()', "field vars is", 1
    ),
    "answers half a term": Fault(
        READY + 'answer(1); say(\'{"vars": ["s"], "add": [["\\\\ud800"]]}\'); sys.stdin.read()', "field add[0] holds", 1
    ),
    "answers at no time": Fault(
        READY + "answer(1); say(json.dumps({'vars': [], 'add': [], 'instant': 2**70})); sys.stdin.read()",
        "field instant is 1180591620717411303424",
        1,
    ),
    "cuts its last line": Fault(
        READY + "answer(2); sys.stdin.read(); sys.stdout.write(RIGHT[2][:9])", "line 3 of the engine's output", 2
    ),
    "leaves a child": Fault(
        READY + "subprocess.Popen(SLEEPER); answer(4); sys.stdin.read()", "left 1 of its processes running", 4
    ),
    "leaves a child that holds its pipes and is not a child any more": Fault(
        READY
        + "subprocess.Popen([sys.executable, '-c', 'import subprocess, sys;"
        + "subprocess.Popen(sys.argv[1:], start_new_session=True)', *SLEEPER], stdin=sys.stdin).wait()\n"
        + "answer(1); os._exit(0)",
        "its",
        1,
    ),
    "hangs with a child": Fault(
        READY + "subprocess.Popen(SLEEPER); answer(1); time.sleep(600)", "still running after its time limit", 1, SHORT
    ),
}


@pytest.fixture
def right():
    """A right run, and its answers as lines."""
    from streamgauge.formats.lines import encode_answer

    run = right_run(RSPQL)
    header = replace(run.header, query=parse(QUERY, "rspql"), query_text=QUERY)
    run = replace(run, header=header)
    return run, [encode_answer(answer).decode().strip() for answer in run.answers]


def command(folder: Path, lines: Sequence[str], does: str) -> list[str]:
    script = folder / "engine.py"
    script.write_text(textwrap.dedent(PROGRAM).format(right=list(lines), here=str(folder)) + does)
    return [sys.executable, str(script)]


def left_behind(folder: Path) -> list[str]:
    results = []
    for process in psutil.process_iter():
        try:
            line = process.cmdline()
        except psutil.Error:
            continue
        if any(str(folder) in word for word in line):
            results.append(" ".join(line))
    return results


@pytest.mark.parametrize("name", FAULTS)
def test_the_run_says_how_it_failed_and_keeps_what_came(name: str, right, tmp_path: Path, monkeypatch):
    monkeypatch.setenv("STREAMGAUGE_START_LIMIT_S", "3" if name == "is never ready" else "300")
    whole, lines = right
    fault = FAULTS[name]
    header = replace(whole.header, factor=fault.factor)
    run = record(header, command(tmp_path, lines, fault.does), stream(TEXT), fault.limits)
    assert run.header.failure is not None
    assert fault.said in run.header.failure
    assert left_behind(tmp_path) == []
    kept = [replace(answer, received=0) for answer in run.answers[: fault.answers]]
    assert kept == [replace(answer, received=0) for answer in whole.answers[: fault.answers]]
    assert len(run.answers) == fault.answers or name == "floods"
    judged_as_far_as_it_came(run, tmp_path, fault.answers)


def test_a_process_that_is_found_late_holds_no_run(right, tmp_path: Path, monkeypatch):
    """The look after the end misses the process that holds the output, as it may while a program is being replaced."""
    monkeypatch.setattr(ChildProcess, "bury", lambda child: child.wait() * 0)
    whole, lines = right
    fault = FAULTS["leaves a child that holds its pipes and is not a child any more"]
    run = record(whole.header, command(tmp_path, lines, fault.does), stream(TEXT), fault.limits)
    assert "left 1 of its processes running" in run.header.failure
    assert left_behind(tmp_path) == []


def judged_as_far_as_it_came(run, folder: Path, answers: int) -> None:
    """A folder of the run is read back, and each answer that came is right in its verdict."""
    write_run(folder / "run", run)
    write(stream(TEXT), folder / "run" / "stream.parquet")
    again = read_run(folder / "run", parse)
    assert again.header.failure == run.header.failure
    verdict = judge_run(again, stream_path(folder / "run"), Means(no_spark, "definition"))
    assert (verdict.judgement is Judgement.UNKNOWN) is (answers == 0)
    assert run.header.failure in (verdict.reason or "") or answers
    assert sum(window.right for window in verdict.windows if window.actual) >= answers


def no_spark():
    raise AssertionError("a small run needs no Spark")


def test_an_engine_that_is_slow_is_right_and_late(right, tmp_path: Path):
    whole, lines = right
    does = READY + "sys.stdin.read()\nfor n in range(4):\n    time.sleep(0.2)\n    say(RIGHT[n])"
    run = record(whole.header, command(tmp_path, lines, does), stream(TEXT), LONG)
    write(stream(TEXT), tmp_path / "stream.parquet")
    verdict = judge_run(run, tmp_path / "stream.parquet", Means(no_spark, "definition", max_delay=50))
    assert (run.header.failure, verdict.judgement) == (None, Judgement.LATE)


TASKS = ["hangs in the middle", "floods", "dies in the middle", "babbles", "is never ready"]


@pytest.mark.parametrize("name", TASKS)
def test_a_program_that_does_many_tasks_may_fail_in_one(name: str, right, tmp_path: Path, monkeypatch):
    monkeypatch.setenv("STREAMGAUGE_START_LIMIT_S", "3" if name == "is never ready" else "300")
    whole, lines = right
    fault = FAULTS[name]
    task = Task(QUERY, "rspql", RSPQL)
    with PipeProgram(command(tmp_path, lines, fault.does), fault.limits) as program:
        run = program.record(whole.header, stream(TEXT), task)
        again = program.record(whole.header, stream(TEXT), task)
    assert left_behind(tmp_path) == []
    assert run.header.failure
    assert again.header.failure
    assert len(run.answers) >= fault.answers
