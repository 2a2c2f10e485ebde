"""Certification of an engine: every task is recorded as a run and judged by the common judge.

No engine judges itself. A deviating run is explained by the oracle's diagnosis, in words independent of the case.
"""

import re
import shlex
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from shutil import which
from tempfile import TemporaryDirectory
from threading import Event
from typing import TYPE_CHECKING, Self

from streamgauge.engines import dialect, evaluator, folder, load, named, profiles
from streamgauge.formats.pipe import TaskRefusedError, set_up_wrongly
from streamgauge.formats.stream import write
from streamgauge.harness import JudgedRun
from streamgauge.harness.process import ChildProcess
from streamgauge.harness.systems import RunLimits
from streamgauge.harness.systems.pipe import PipeProgram, last_words, program, task_of
from streamgauge.model.element import StreamElement
from streamgauge.model.mistake import MistakeError
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.run import Run, RunHeader
from streamgauge.model.semantics import Clock, Semantics
from streamgauge.model.verdict import Judgement, Part, Verdict
from streamgauge.oracle.diagnosis.diagnose import diagnose
from streamgauge.oracle.diagnosis.search import Search
from streamgauge.oracle.expected.reports import definition
from streamgauge.oracle.judging.judge import Means, first_time, judge_run
from streamgauge.oracle.judging.metrics import by_arrival, feeder_lateness
from streamgauge.oracle.judging.oracle import JudgingRules, check
from streamgauge.semantics.refusal import OutOfOrderError, RefusedError
from streamgauge.suites.conformance.cases import ConformanceTask, Scale, text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LIMITS = RunLimits(seconds=120.0, output=1 << 24)
"""Bounds on one task."""

TRIES = 3
"""Maximum attempts at a task whose elements were handed over too late."""

Refuse = Callable[[ContinuousQuery, Semantics], str | None]


@dataclass(frozen=True)
class Subject:
    """The engine to certify: a program on the pipe, its known properties, and the file of its deviations."""

    name: str
    command: tuple[str, ...]
    refuse: Refuse = lambda _query, _semantics: None
    dialect: str | None = None
    profiles: tuple[str, ...] | None = None
    evaluator: str | None = None
    scale: Scale = field(default_factory=Scale)
    deviations: Path | None = None


def engine(name: str) -> Subject:
    """The engine of a name; EngineError if it is unknown, or something that it needs is missing."""
    name = named(name)
    module = load(name)
    home = folder(module)
    unit, pace = getattr(module, "TIME_UNIT_MS", 1), getattr(module, "PACE_MS_PER_UNIT", Scale().pace)
    listed = None if home is None else home / getattr(module, "deviations", lambda: "deviations.toml")()
    return Subject(
        name,
        tuple(program(name)),
        module.refuse,
        dialect(module),
        profiles(module),
        evaluator(module),
        Scale(unit, pace),
        listed,
    )


def program_subject(program: str, option: str) -> Subject:
    """A program by its command line; MistakeError, naming the ``option``, if it cannot be started."""
    try:
        words = tuple(shlex.split(program))
    except ValueError:
        raise MistakeError(f"{option} {program}: a quotation mark is not closed") from None
    if not words or which(words[0]) is None:
        named = repr(words[0]) if words else "nothing"
        why = "there is no such program, or it may not be run (chmod +x)"
        raise MistakeError(f"{option} {program}: {named} cannot be started: {why}; write the command as in a shell")
    return Subject(program, words)


class SetUpError(RuntimeError):
    """An engine that cannot run here: a class, a library or memory is missing; the sentence has the remedy."""


class TaskResult(StrEnum):
    """The result of a task."""

    PASSED = "passed"
    REFUSED = "refused"
    WRONG = "wrong"


@dataclass(frozen=True)
class ConformanceOutcome:
    """The outcome of a task; ``sentence`` says why it was refused or what is wrong.

    ``run`` and ``verdict`` are its recording and judgement, ``None`` if it was refused.
    """

    asked: ConformanceTask
    kind: TaskResult
    sentence: str = ""
    run: Run | None = None
    verdict: Verdict | None = None

    @property
    def name(self) -> str:
        """The name of the task."""
        return self.asked.name

    def keep(self, folder: Path) -> None:
        """Write the recording as a run folder named after the task; nothing if the task was refused."""
        if self.run is not None and self.verdict is not None:
            run = JudgedRun(self.run, self.asked.case.stream, self.verdict)
            run.keep(folder / re.sub(r"[^\w.=-]+", "-", self.name))


class TaskRunner:
    """Runs tasks one after another on a program of a subject, and judges the answers; a context manager.

    ``spark`` starts the session for answers that the definition must not judge.
    """

    def __init__(self, subject: Subject, spark: "Callable[[], SparkSession]") -> None:
        self._subject, self._spark = subject, spark
        self._stack = ExitStack()
        self._started = False

    def __enter__(self) -> Self:
        folder = Path(self._stack.enter_context(TemporaryDirectory()))
        self._judge = partial(_verdict, folder=folder, spark=self._spark)
        self._program = self._stack.enter_context(PipeProgram(self._subject.command, LIMITS))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def outcome(self, task: ConformanceTask) -> ConformanceOutcome:
        """The outcome of a task; SetUpError if a class, a library or memory is missing, or nothing starts."""
        began = time.monotonic()
        result = _outcome(self._subject, task, self._program, self._judge)
        # Only at the first task: a program that ended later was able to start, so its end is a deviation.
        if not self._started:
            _refuse_unstarted(self._subject, result, time.monotonic() - began)
        self._started = True
        return result


def certify(
    subject: Subject, tasks: Sequence[ConformanceTask], jobs: int, spark: "Callable[[], SparkSession]"
) -> Iterator[ConformanceOutcome]:
    """The outcome of every task, in order, on ``jobs`` programs in parallel.

    SetUpError at the first task that fails because a class, a library or memory is missing, or because the program
    cannot start: that is not a deviation.
    """
    free: SimpleQueue[TaskRunner] = SimpleQueue()
    stopped = Event()
    with ExitStack() as stack:
        for _ in range(jobs):
            # A queue of idle programs: whichever thread takes one has it for itself.
            free.put(stack.enter_context(TaskRunner(subject, spark)))

        def one(task: ConformanceTask) -> ConformanceOutcome:
            runner = free.get()
            try:
                if stopped.is_set():
                    raise SetUpError(f"{subject.name}: not done, as a task before it showed a fault of the set-up")
                return runner.outcome(task)
            except SetUpError:
                stopped.set()
                raise
            finally:
                free.put(runner)

        with ThreadPoolExecutor(jobs) as pool:
            try:
                yield from pool.map(one, tasks)
            except SetUpError:
                # Otherwise leaving the pool would wait for all tasks that are queued.
                pool.shutdown(cancel_futures=True)
                raise


def _refuse_unstarted(subject: Subject, outcome: ConformanceOutcome, took: float) -> None:
    """SetUpError if the first task failed before the program was ready, and the program also ends without a task.

    Programs on the pipe wait for a task, so one that ends by itself was never able to start. ``took`` is the duration
    (s) of the task; the end of the program is awaited for about twice as long.
    """
    run = outcome.run
    # A program that accepted elements was able to start.
    if run is None or run.header.failure is None or run.fed:
        return
    with ChildProcess(subject.command) as process:
        try:
            process.wait(1 + 2 * took)
        except subprocess.TimeoutExpired:
            return
        raise SetUpError(
            f"{subject.name} cannot be started, so nothing is certified: the program ends before it is asked anything, "
            f"with {process.how()}; {last_words(process)}"
        )


def _verdict(run: Run, task: ConformanceTask, folder: Path, spark: "Callable[[], SparkSession]") -> Verdict:
    """The definition's verdict.

    If the engine is the definition itself, or arrival times count, ``judge_run`` chooses the evaluator.
    """
    stream = task.case.stream
    if run.header.evaluator != "definition" and task.semantics.clock is Clock.APPLICATION:
        return check(run, definition(stream), first_time(stream), JudgingRules("definition"))
    with TemporaryDirectory(dir=folder) as table:
        write(stream, Path(table) / "part-0.parquet")
        return judge_run(run, Path(table), Means(spark))


def _outcome(
    subject: Subject, task: ConformanceTask, tasks: PipeProgram, judge: Callable[[Run, ConformanceTask], Verdict]
) -> ConformanceOutcome:
    case = task.case
    if reason := subject.refuse(case.query, task.semantics):
        return ConformanceOutcome(task, TaskResult.REFUSED, reason)
    try:
        written, language = text(case.query, subject.dialect)
    except ValueError as error:
        return ConformanceOutcome(task, TaskResult.REFUSED, str(error))
    header = RunHeader(
        subject.name,
        case.query,
        written,
        language,
        task.semantics,
        case.advance,
        0,
        evaluator=subject.evaluator,
        factor=task.factor,
        ordered=subject.evaluator != "spark",
    )
    try:
        run = in_time(tasks, header, task)
    except TaskRefusedError as error:
        return ConformanceOutcome(task, TaskResult.REFUSED, str(error))
    if run.header.failure and (reason := set_up_wrongly(run.header.failure)):
        raise SetUpError(
            f"{subject.name} is not set up rightly, so nothing is certified: {reason}. In the task {task.name}: "
            f"{run.header.failure}"
        )
    verdict = judge(run, task)
    if verdict.judgement is Judgement.RIGHT:
        return ConformanceOutcome(task, TaskResult.PASSED, run=run, verdict=verdict)
    return ConformanceOutcome(task, TaskResult.WRONG, _fault(run, verdict), run, verdict)


def in_time(tasks: PipeProgram, header: RunHeader, task: ConformanceTask) -> Run:
    """The run of a task, repeated up to ``TRIES`` times while elements were handed over too late."""
    for _ in range(TRIES):
        run = tasks.record(header, task.case.stream, task_of(header))
        # The last try counts even if it is late: the judge sees when elements were handed over.
        if task.slack is None or feeder_lateness(run)[1] <= task.slack:
            break
    return run


def _fault(run: Run, verdict: Verdict) -> str:
    """The fault of a run in a sentence: a failure, or the numbers of wrong, missed and surplus reports."""
    if run.header.failure or verdict.reason:
        return run.header.failure or verdict.reason
    wrong = sum(not window.right for window in verdict.windows if window.due and window.report is not None)
    counts = [(wrong, "wrong"), (verdict.missed, "missed"), (verdict.surplus, "too many")]
    return f"of {len(verdict.windows)} reports: " + ", ".join(f"{count} {word}" for count, word in counts if count)


NONE_FITS = "no semantics, no named fault and no two of them give these answers"

_AND = " and "
_COUNTED = re.compile(r"\b[\d,]+ (report|border)s?\b")
_NTH = re.compile(r"\b(?:first|last|\d+(?:st|nd|rd|th))(?= element lost)")
_NUMBER = re.compile(r"-?\b\d[\d,.]*")


def findings(outcome: ConformanceOutcome) -> tuple[str, ...]:
    """All explanations of a wrong outcome: the failure, the models that fit, or that none does."""
    assert outcome.run is not None
    if outcome.run.header.failure:
        return (_failed(outcome.run.header.failure),)
    run, stream = recorded(outcome)
    try:
        diagnosis = diagnose(run, stream)
    except (RefusedError, OutOfOrderError) as error:
        return (f"not diagnosed: {error}",)
    if not diagnosis.exact:
        return (NONE_FITS,)
    return tuple(dict.fromkeys(map(_words, diagnosis.models)))


def contradicted(outcomes: Iterable[ConformanceOutcome], candidates: Set[str]) -> frozenset[str]:
    """The findings that a task with right answers contradicts: one of their parts would change its answers.

    A fault that shows only occasionally (a lost report, a jittering border) is never contradicted.
    """
    left = set(candidates)
    for outcome in outcomes:
        if outcome.kind is TaskResult.PASSED:
            denied = _denied(*recorded(outcome), left)
            left -= {finding for finding in left if any(_has(finding, part) for part in denied)}
    return frozenset(candidates) - left


def _has(finding: str, part: str) -> bool:
    # A finding of two parts is "A and B", of which either side may be contradicted.
    return finding == part or finding.startswith(part + _AND) or finding.endswith(_AND + part)


def _denied(run: Run, stream: Sequence[StreamElement], findings: Set[str]) -> set[str]:
    """The parts of these findings that would change this run's answers in every case."""
    try:
        search = Search(run, stream)
    except (RefusedError, OutOfOrderError):
        return set()
    denied: dict[str, bool] = {}
    for fault in (*search.faults, *search.fine):
        part = _general(fault.part.name)
        # A part with several variants is denied only if every one of them would change the answers.
        if denied.get(part, True) and any(_has(finding, part) for finding in findings):
            denied[part] = not any(map(search.comes_out, search.cases((fault,))))
    return {part for part, is_so in denied.items() if is_so}


def recorded(outcome: ConformanceOutcome) -> tuple[Run, tuple[StreamElement, ...]]:
    """The run and its stream for the diagnosis, with arrival times as element times unless the clock is application."""
    run, stream = outcome.run, outcome.asked.case.stream
    assert run is not None
    if outcome.asked.semantics.clock is Clock.APPLICATION:
        return run, stream
    return by_arrival(run, stream)


def _words(model: Sequence[Part]) -> str:
    return _AND.join(sorted(_general(part.name) for part in model))


def _general(name: str) -> str:
    """The name of a part without details of one run (expressions, which element, how often), to compare tasks.

    ``3rd element lost`` becomes ``one element lost``.
    """
    kind, colon, _ = name.partition(": ")
    return kind if colon else _NTH.sub("one", _COUNTED.sub(r"\1s", name))


def _failed(failure: str) -> str:
    """The last line of a failure with ``n`` for numbers, so that addresses and times do not distinguish tasks."""
    # In a trace the last line has the error, all others the places in the code.
    last = failure.strip().splitlines()[-1].strip()
    return "fails: " + _NUMBER.sub("n", last)[:160]
