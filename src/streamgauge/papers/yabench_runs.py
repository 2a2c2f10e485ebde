"""YABench's experiments done on real engines in real time, each run kept, and scored by YABench's own rules."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from streamgauge.engines import EngineError, command, load
from streamgauge.formats.making import keep_first, making
from streamgauge.formats.stream import elements
from streamgauge.model.run import Run
from streamgauge.model.semantics import Clock, Report
from streamgauge.model.terms import Row
from streamgauge.model.verdict import Judgement, Verdict, WindowVerdict
from streamgauge.oracle.judging.clock import feeder_lateness
from streamgauge.oracle.judging.judge import Means, judge_run
from streamgauge.papers.rules import Settings, yabench
from streamgauge.papers.rules.yabench_lines import Line, parse
from streamgauge.papers.yabench_published import NAMES
from streamgauge.papers.yabench_trials import Side, Trial, experiment, sides
from streamgauge.semantics.refusal import RefusedError
from streamgauge.suites.experiments.experiment import ExperimentError
from streamgauge.suites.experiments.runner import STREAM, ExperimentContext, run_experiment

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

AROUND_MS = 15_000
"""About how long starting, judging and keeping a run take beside its stream, for the time that is left."""

MIB = 2**20


class Outcome(StrEnum):
    """A cell of table 1."""

    RIGHT = "right"
    NEXT = "right, but some rows are in the next window"
    WRONG = "wrong"


@dataclass(frozen=True)
class Kept:
    """What is shown of a run: the common judge's words, YABench's lines, and when (s) and how much memory (MiB).

    ``refused`` says why YABench's rules gave no lines; ``outcome`` is for CSRBench's queries only.
    """

    folder: Path
    judgement: Judgement
    precision: float
    recall: float
    last_answer: float | None
    memory: tuple[tuple[float, float], ...]
    feeder: float
    lines: tuple[Line, ...] = ()
    gracious: tuple[Line, ...] = ()
    refused: str = ""
    outcome: Outcome | None = None
    failure: str = ""


@dataclass(frozen=True)
class Done:
    """A test on one side: its runs, or why there are none."""

    test: Trial
    side: Side
    runs: tuple[Kept, ...]
    reason: str = ""


@dataclass(frozen=True)
class Doer:
    """What doing the tests may use: the folder of the runs, Spark, repetitions, whom to tell (what, share)."""

    out: Path
    spark: "Callable[[], SparkSession]"
    repetitions: int
    tell: Callable[[str, float], None]


def available(engines: Iterable[str]) -> tuple[tuple[Side, ...], dict[str, str]]:
    """How the engines that are here take part, and the sentence of each that is not."""
    found: list[Side] = []
    absent: dict[str, str] = {}
    for name in engines:
        try:
            command(load(name))
            found.extend(sides(name))
        except EngineError as error:
            absent[name] = str(error)
    return tuple(found), absent


def do(trials: Sequence[Trial], taking_part: Sequence[Side], doer: Doer) -> Iterator[Done]:
    """Every test on every side; a test that an engine refuses says so. Runs that exist are not done again."""
    todo = [(test, side) for test in trials for side in taking_part]
    lengths = [_length(test, doer) for test, _ in todo]
    for place, (test, side) in enumerate(todo):
        left = sum(lengths[place:])
        doer.tell(f"{test.name}, {side.label}, at most {left / 60_000:.0f} min left", 1 - left / max(1, sum(lengths)))
        try:
            yield Done(test, side, tuple(_runs(test, side, doer)))
        except (ExperimentError, EngineError) as error:
            yield Done(test, side, (), str(error))


def _length(test: Trial, doer: Doer) -> int:
    return (1 if test.once else doer.repetitions) * (test.duration + test.window + AROUND_MS)


def _runs(test: Trial, side: Side, doer: Doer) -> Iterator[Kept]:
    name = test.name.replace("/", "-")
    doing = ExperimentContext(doer.out / name, doer.spark, streams=doer.out / "streams")
    for folder, run, verdict in run_experiment(experiment(test, side, doer.repetitions), doing):
        yield _kept(test, folder, run, verdict, doer)


def _kept(test: Trial, folder: Path, run: Run, verdict: Verdict, doer: Doer) -> Kept:
    plain, refused = scored(folder, run, gracious=False)
    fitted = scored(folder, run, gracious=True)[0] if test.gracious else ()
    started = run.header.started
    return Kept(
        folder=folder,
        judgement=verdict.judgement,
        precision=verdict.precision,
        recall=verdict.recall,
        last_answer=None if verdict.last_answer is None else verdict.last_answer / 1000,
        memory=tuple(((sample.at - started) / 1e9, sample.rss / MIB) for sample in run.samples),
        feeder=feeder_lateness(run)[1],
        lines=plain,
        gracious=fitted,
        refused=refused,
        outcome=None if test.number else told(folder, run, verdict, Means(doer.spark)),
        failure=run.header.failure or "",
    )


def scored(folder: Path, run: Run, *, gracious: bool) -> tuple[tuple[Line, ...], str]:
    """The lines by YABench's rules, kept as the ORACLE_ file that it writes; or why there are none."""
    file = folder / ("ORACLE_gracious" if gracious else "ORACLE")
    if not file.exists():
        settings = Settings(gracious=gracious, single_result=False)
        try:
            found = yabench.lines(run, tuple(elements(folder / STREAM)), settings)
        except RefusedError as error:
            return (), str(error)
        _keep(file, "".join(f"{line.text()}\n" for line in found))
    return tuple(map(parse, file.read_text(encoding="utf-8").splitlines())), ""


def told(folder: Path, run: Run, verdict: Verdict, means: Means) -> Outcome:
    """The cell, kept in the run's folder."""
    file = folder / "TABLE_1"
    if not file.exists():
        _keep(file, outcome(run, verdict, folder / STREAM, means))
    return Outcome(file.read_text(encoding="utf-8"))


def _keep(file: Path, text: str) -> None:
    with making(file) as place:
        place.write_text(text, encoding="utf-8")
        keep_first(place, file)


def outcome(run: Run, verdict: Verdict, stream: Path, means: Means) -> Outcome:
    """A cell of table 1: right under either clock; else right but for rows that came too late for their window.

    A published engine that reports windows that close has CSRBench's: no partial ones before the first full one.
    """
    header, declared = run.header, run.header.semantics
    closes = Report.WINDOW_CLOSE in declared.report
    own = replace(declared, partial_head=False) if closes and header.engine in NAMES else declared
    for semantics in dict.fromkeys((own, replace(own, clock=Clock.APPLICATION))):
        if semantics != declared:
            verdict = judge_run(replace(run, header=replace(header, semantics=semantics)), stream, means)
        if _right(verdict):
            return Outcome.RIGHT
    window = header.query.windows[0].window
    if closes and moved_on(verdict.windows, -(-window.size // window.slide)):
        return Outcome.NEXT
    return Outcome.WRONG


def _right(verdict: Verdict) -> bool:
    return verdict.judgement in {Judgement.RIGHT, Judgement.LATE}


def moved_on(windows: Sequence[WindowVerdict], lag: int) -> bool:
    """Whether every missing row is surplus ``lag`` windows later, where it first could be, and no other row is surplus.

    That is the next window where windows do not overlap; rows missing in the last windows have none to be in.
    """
    missing: dict[int, Counter[Row]] = {}
    surplus: dict[int, Counter[Row]] = {}
    for window in windows:
        lost, more = window.expected - window.true_positives, window.actual - window.true_positives
        if not window.due or (len(window.missing), len(window.surplus)) != (lost, more):
            return False
        missing[window.index], surplus[window.index] = Counter(window.missing), Counter(window.surplus)
    last = max(missing, default=0)
    return all(
        (index + lag > last or rows == surplus[index + lag]) and (index - lag in missing or not surplus[index])
        for index, rows in missing.items()
    )
