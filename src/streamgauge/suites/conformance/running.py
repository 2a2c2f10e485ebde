"""Certifying an engine: every task recorded as a run and judged by the common judge; nobody judges itself."""

import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory
from threading import Event
from typing import TYPE_CHECKING

from streamgauge.engines import dialect, evaluator, folder, load, named, profiles
from streamgauge.formats.endings import set_up_wrongly
from streamgauge.formats.stream import write
from streamgauge.formats.task import TaskRefusedError
from streamgauge.harness.observed import Limits, last_words, start
from streamgauge.harness.record import program, task_of
from streamgauge.harness.tasks import Tasks
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.run import Run, RunHeader
from streamgauge.model.semantics import Clock, Semantics
from streamgauge.model.verdict import Judgement, Verdict
from streamgauge.oracle.expected.reports import definition
from streamgauge.oracle.judging.clock import feeder_lateness
from streamgauge.oracle.judging.judge import Means, first_time, judge_run
from streamgauge.oracle.judging.oracle import Rules, check
from streamgauge.suites.conformance.asking import Asked, Scale, text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LIMITS = Limits(seconds=120.0, output=1 << 24)
"""What one task may take and write."""

TRIES = 3
"""How often a task is done at most when its elements were handed over too late."""

Refuse = Callable[[ContinuousQuery, Semantics], str | None]


@dataclass(frozen=True)
class Subject:
    """What is certified: a program on the pipe, what is known of it beforehand, and where its deviations are listed."""

    name: str
    command: tuple[str, ...]
    refuse: Refuse = lambda _query, _semantics: None
    dialect: str | None = None
    profiles: tuple[str, ...] | None = None
    evaluator: str | None = None
    scale: Scale = field(default_factory=Scale)
    deviations: Path | None = None


def engine(name: str) -> Subject:
    """The engine of that name; EngineError when there is none, or when something that it needs is absent."""
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


class SetUpError(RuntimeError):
    """An engine that cannot work here: a class, a library or memory is missing; the sentence says what to do."""


class Kind(StrEnum):
    """How one task went."""

    PASSED = "passed"
    REFUSED = "refused"
    WRONG = "wrong"


@dataclass(frozen=True)
class Outcome:
    """How a task went: ``sentence`` says why it was refused or what is wrong, ``run`` is what was recorded."""

    asked: Asked
    kind: Kind
    sentence: str = ""
    run: Run | None = None

    @property
    def name(self) -> str:
        """The task's name."""
        return self.asked.name


def certify(
    subject: Subject, asked: Sequence[Asked], jobs: int, spark: "Callable[[], SparkSession]"
) -> Iterator[Outcome]:
    """The outcome of every task, in order; ``jobs`` programs run at a time, each given task after task.

    SetUpError at the first task that fails for lack of a class, a library or memory, or because the program cannot
    start: that is no deviation.
    """
    free: SimpleQueue[Tasks] = SimpleQueue()
    stopped, started = Event(), Event()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        for _ in range(jobs):
            free.put(stack.enter_context(Tasks(subject.command, LIMITS)))

        def one(each: Asked) -> Outcome:
            tasks = free.get()
            try:
                if stopped.is_set():
                    raise SetUpError(f"{subject.name}: not done, as a task before it showed a fault of the set-up")
                began = time.monotonic()
                found = _outcome(subject, each, tasks, _Judge(folder, spark))
                if not started.is_set():
                    _refuse_unstarted(subject, found, time.monotonic() - began)
                started.set()
                return found
            except SetUpError:
                stopped.set()
                raise
            finally:
                free.put(tasks)

        with ThreadPoolExecutor(jobs) as pool:
            try:
                yield from pool.map(one, asked)
            except SetUpError:
                pool.shutdown(cancel_futures=True)
                raise


def _refuse_unstarted(subject: Subject, outcome: Outcome, took: float) -> None:
    """SetUpError when the first task failed before the program was ready, and the program ends when asked nothing too.

    Programs on the pipe wait for a task; one that ends by itself was never able to start. ``took`` (s) is how long the
    task was, about as long as the end of such a program is waited for.
    """
    run = outcome.run
    if run is None or run.header.failure is None or run.fed:
        return
    with tempfile.TemporaryFile() as words:
        with start(subject.command, words) as process:
            try:
                process.wait(1 + 2 * took)
            except subprocess.TimeoutExpired:
                return
            finally:
                process.kill()
        raise SetUpError(
            f"{subject.name} cannot be started, so nothing is certified: the program ends before it is asked anything, "
            f"with {process.how()}; {last_words(words)}"
        )


@dataclass(frozen=True)
class _Judge:
    folder: Path
    spark: "Callable[[], SparkSession]"

    def verdict(self, run: Run, asked: Asked) -> Verdict:
        """The verdict by the definition; by whatever may judge where that may not, or where arrival times count."""
        stream = asked.case.stream
        if run.header.evaluator != "definition" and asked.semantics.clock is Clock.APPLICATION:
            return check(run, definition(stream), first_time(stream), Rules("definition"))
        with TemporaryDirectory(dir=self.folder) as table:
            write(stream, Path(table) / "part-0.parquet")
            return judge_run(run, Path(table), Means(self.spark))


def _outcome(subject: Subject, asked: Asked, tasks: Tasks, judge: _Judge) -> Outcome:
    case = asked.case
    if reason := subject.refuse(case.query, asked.semantics):
        return Outcome(asked, Kind.REFUSED, reason)
    try:
        written, language = text(case.query, subject.dialect)
    except ValueError as error:
        return Outcome(asked, Kind.REFUSED, str(error))
    header = RunHeader(
        subject.name,
        case.query,
        written,
        language,
        asked.semantics,
        case.advance,
        0,
        evaluator=subject.evaluator,
        factor=asked.factor,
    )
    try:
        run = in_time(tasks, header, asked)
    except TaskRefusedError as error:
        return Outcome(asked, Kind.REFUSED, str(error))
    if run.header.failure and (reason := set_up_wrongly(run.header.failure)):
        raise SetUpError(
            f"{subject.name} is not set up rightly, so nothing is certified: {reason}. In the task {asked.name}: "
            f"{run.header.failure}"
        )
    verdict = judge.verdict(run, asked)
    if verdict.judgement is Judgement.RIGHT:
        return Outcome(asked, Kind.PASSED, run=run)
    return Outcome(asked, Kind.WRONG, _what(run, verdict), run)


def in_time(tasks: Tasks, header: RunHeader, asked: Asked) -> Run:
    """The run; the last of a few when the machine did not hand over in time what comes by the wall clock."""
    for _ in range(TRIES):
        run = tasks.record(header, asked.case.stream, task_of(header))
        if asked.slack is None or feeder_lateness(run)[1] <= asked.slack:
            break
    return run


def _what(run: Run, verdict: Verdict) -> str:
    """What is wrong in a sentence: a failure, or how many reports are not right and how."""
    if run.header.failure or verdict.reason:
        return run.header.failure or verdict.reason
    wrong = sum(not window.right for window in verdict.windows if window.due and window.report is not None)
    said = [(wrong, "wrong"), (verdict.missed, "missed"), (verdict.surplus, "too many")]
    return f"of {len(verdict.windows)} reports: " + ", ".join(f"{count} {word}" for count, word in said if count)
