"""Tasks run and judged: in order, refused by whom it may be, never judged by the evaluator that answered."""

import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from streamgauge.engines import EngineError, live
from streamgauge.formats.run import read_run, read_verdict, stream_path
from streamgauge.model.answer import Answer
from streamgauge.model.run import Fed, Run, RunHeader
from streamgauge.model.verdict import Judgement
from streamgauge.oracle.expected.reports import definition
from streamgauge.oracle.judging.judge import Means, first_time, judge_run
from streamgauge.oracle.judging.oracle import JudgingRules, check
from streamgauge.query import parse, print_query
from streamgauge.suites.conformance.cases import ConformanceTask, Scale, asked, load
from streamgauge.suites.conformance.runner import (
    NONE_FITS,
    TRIES,
    ConformanceOutcome,
    Subject,
    TaskResult,
    certify,
    contradicted,
    engine,
    findings,
    in_time,
)

MINIMAL = Path(__file__).resolve().parents[3] / "examples" / "engines" / "minimal.py"
TASKS = {task.name: task for task in asked(load(), ("rspql",), Scale())}
HALF_OPEN = TASKS["tumbling windows are half-open @ rspql"]
SLIDING = TASKS["sliding windows overlap @ rspql"]
OPTIONAL = TASKS["OPTIONAL leaves unbound what is not there @ rspql"]
NAMED = TASKS["named windows are named graphs @ rspql"]


def no_spark():
    pytest.fail("the definition may judge this engine")


def outcomes(subject: Subject, *tasks: ConformanceTask, jobs: int = 1, spark=no_spark):
    return list(certify(subject, tasks, jobs, spark))


def minimal(tmp_path, change: str = "", into: str = "", **fields) -> Subject:
    """The reference engine, something of it changed."""
    text = MINIMAL.read_text()
    assert change in text
    file = tmp_path / "engine.py"
    file.write_text(text.replace(change, into) if change else text)
    return Subject("minimal", (sys.executable, str(file)), **fields)


@pytest.mark.server
def test_outcomes_come_in_the_order_of_the_tasks(tmp_path):
    tasks = [task for task in TASKS.values() if task.case.theme in {"borders", "gaps"}]
    result = outcomes(minimal(tmp_path), *tasks, jobs=3)
    assert [outcome.asked for outcome in result] == tasks
    assert Counter(outcome.kind for outcome in result).keys() == {TaskResult.PASSED, TaskResult.REFUSED}


@pytest.mark.server
def test_a_task_is_refused_by_the_engine_its_program_or_its_language(tmp_path):
    (program,) = outcomes(minimal(tmp_path), OPTIONAL)
    assert (program.kind, program.sentence[:18]) == (TaskResult.REFUSED, "this engine reads ")
    (module,) = outcomes(minimal(tmp_path, refuse=lambda _query, semantics: f"not {semantics.name}"), HALF_OPEN)
    assert (module.kind, module.sentence) == (TaskResult.REFUSED, "not rspql")
    (language,) = outcomes(minimal(tmp_path, dialect="csparql"), NAMED)
    assert language.kind is TaskResult.REFUSED
    assert "C-SPARQL has no named windows" in language.sentence


@pytest.mark.server
@pytest.mark.parametrize(
    ("change", "into", "words"),
    [
        ("while self.close <= item", "while self.close < item", "of 2 reports: 1 missed"),
        ("start <= e[", "start < e[", "of 2 reports: 2 wrong"),
        ('"instant": end, ', "", ""),
        ("self.elements.append(item)", "raise RuntimeError('on purpose')", "on purpose"),
    ],
    ids=["late", "left border", "says no instant", "crash"],
)
def test_what_is_wrong_is_said(tmp_path, change, into, words):
    (outcome,) = outcomes(minimal(tmp_path, change, into), HALF_OPEN)
    assert outcome.kind is (TaskResult.WRONG if words else TaskResult.PASSED)
    assert words in outcome.sentence


@pytest.mark.server
@pytest.mark.parametrize(
    ("change", "into", "finding"),
    [
        ("self.close += self.slide", "self.close += self.size", "window is RANGE 4 ms, SLIDE 4 ms"),
        ("if self.semantics[\"partial_head\"]", "if True", "partial_head = True"),
        ("raise ValueError(\"this engine reports", "raise SystemExit(\"this engine reports", None),
        ("self.elements.append(item)", "raise RuntimeError('in 5 ms')", "fails: RuntimeError: in n ms"),
        ('"add": rows,', '"add": [["<urn:never>"]],', NONE_FITS),
    ],
    ids=["slide", "partial head", "nothing", "crash", "nonsense"],
)  # fmt: skip
def test_the_oracle_finds_what_it_is(tmp_path, change, into, finding):
    (outcome,) = outcomes(minimal(tmp_path, change, into), SLIDING)
    if finding is None:
        assert outcome.kind is TaskResult.PASSED
    else:
        assert finding in findings(outcome)


@pytest.mark.server
def test_a_task_that_is_right_speaks_against_faults_that_would_change_it(tmp_path):
    right = outcomes(minimal(tmp_path), HALF_OPEN, SLIDING)
    assert {outcome.kind for outcome in right} == {TaskResult.PASSED}
    denied = {"due = last", "r2s = Dstream", "borders = [o, c]", "due = last and static data ignored"}
    assert contradicted(right, denied | {"reports lost at the tail", "static data ignored", NONE_FITS}) == denied


def test_the_definition_does_not_judge_an_engine_that_runs_on_it(tmp_path, spark):
    asked_for = []

    def session():
        asked_for.append("spark")
        return spark

    (outcome,) = outcomes(minimal(tmp_path, evaluator="definition"), HALF_OPEN, spark=session)
    assert outcome.kind is TaskResult.PASSED
    assert asked_for


def test_an_engine_that_there_is_not_is_named():
    with pytest.raises(EngineError, match="unknown engine 'dead'"):
        engine("dead")
    assert engine("live").evaluator == "changes"


class LateTasks:
    """Hands the element of one run after the other over so many ms late."""

    def __init__(self, *late: int) -> None:
        self.late = list(late)

    def record(self, header: RunHeader, _stream, _task) -> Run:
        return Run(header, (), (Fed(0, 0, 0, self.late.pop(0) * 1_000_000), Fed(-1, 0, 0, 10**12)))


@pytest.mark.parametrize(
    ("slack", "late", "left"),
    [
        (100, (100, 0), 1),
        (100, (101, 5, 0), 1),
        (100, (300, 200, 101, 0), 1),
        (None, (300, 0), 1),
    ],
)
def test_a_task_whose_elements_came_too_late_is_done_again_a_few_times(slack, late, left):
    case, tasks = HALF_OPEN.case, LateTasks(*late)
    header = RunHeader("late", case.query, "", "rspql", HALF_OPEN.semantics, case.advance, 0)
    run = in_time(tasks, header, replace(HALF_OPEN, slack=slack))
    assert len(tasks.late) == left
    assert run.fed[0].handed == late[-1 - left] * 1_000_000
    assert len(late) - left <= TRIES


def test_a_recorded_task_is_a_run_that_check_judges_alike(tmp_path):
    """Its folder is named as the task; a refused one leaves none; a second certification takes its place."""
    messages: list[Answer] = []
    case = HALF_OPEN.case
    session = live.start(case.query, HALF_OPEN.semantics, messages.append)
    for element in case.stream:
        session.push(element)
    session.advance(case.advance)
    written = print_query(case.query, "rspql")
    head = RunHeader("live", case.query, written, "rspql", HALF_OPEN.semantics, case.advance, 0)
    for answers, kind in ((messages, TaskResult.PASSED), (messages[1:], TaskResult.WRONG)):
        run = Run(head, tuple(answers), ())
        verdict = check(run, definition(case.stream), first_time(case.stream), JudgingRules())
        ConformanceOutcome(HALF_OPEN, kind, "", run, verdict).keep(tmp_path)
        ConformanceOutcome(OPTIONAL, TaskResult.REFUSED, "no").keep(tmp_path)
        (folder,) = tmp_path.iterdir()
        assert folder.name == "tumbling-windows-are-half-open-rspql"
        result = judge_run(read_run(folder, parse), stream_path(folder), Means(no_spark))
        assert (result.judgement, result.windows) == (verdict.judgement, read_verdict(folder).windows)
        assert (result.judgement is Judgement.RIGHT) is (kind is TaskResult.PASSED)
