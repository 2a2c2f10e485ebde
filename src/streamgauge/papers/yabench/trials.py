"""YABench's experiments on real engines, run in real time and stored, with lines by YABench's own rules."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamgauge.engines import EngineError, command, load, profiles
from streamgauge.formats.files import put_if_absent, stage
from streamgauge.formats.seals import check_beside, seal_beside
from streamgauge.formats.stream import elements
from streamgauge.model.run import Run
from streamgauge.model.semantics import Clock, Report
from streamgauge.model.terms import Row
from streamgauge.model.verdict import Judgement, Verdict, WindowVerdict
from streamgauge.oracle.judging.judge import Means, judge_run
from streamgauge.oracle.judging.metrics import feeder_lateness
from streamgauge.papers.rules import RuleSettings
from streamgauge.papers.yabench import rules
from streamgauge.papers.yabench.measure import EXPERIMENTS, LOADS, NAMES, SIZE, WINDOW
from streamgauge.papers.yabench.oracle_files import OracleLine, parse
from streamgauge.query import fill
from streamgauge.query import parse as parse_query
from streamgauge.semantics.profiles import profile
from streamgauge.semantics.refusal import RefusedError
from streamgauge.suites.experiments import Experiment, ExperimentError
from streamgauge.suites.experiments.runner import STREAM, ExperimentContext, run_experiment
from streamgauge.workloads import load as load_workload
from streamgauge.workloads import query_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTLE_MS = 2000
"""Additional time after the stream's end plus a window, so that the last window closes, as in YABench."""

HURRICANE_MS = 33_000
STAND_IN = {"stations": 28, "duration": HURRICANE_MS, "humidity": True, "values": "normal"}
"""A substitute for CSRBench's stream: 34 s, about 28 observations each of temperature and humidity per second."""
THEIR_STATION, OUR_STATION = "System_C1190", "System_A0"
"""The station of Q7, in CSRBench's data and in the substitute."""


@dataclass(frozen=True)
class YabenchTrial:
    """A test: name, number of the experiment (0: CSRBench's queries), published load, workload and query.

    ``duration`` of the stream and size of its ``window`` are in ms.
    """

    name: str
    number: int
    load: str | None
    seed: int
    workload: dict[str, Any]
    query: dict[str, Any]
    duration: int
    window: int
    gracious: bool = False
    once: bool = False


@dataclass(frozen=True)
class TrialSide:
    """An engine under a semantics, and the engine whose published files it is compared with."""

    engine: str
    semantics: str
    published: str
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The engine, with the semantics if it is not the engine's own."""
        return self.engine if self.engine == self.published else f"{self.engine} as {self.semantics}"


OPTIONS: dict[str, dict[str, Any]] = {"csparql": {"settle": 0}}
"""Options of engines: time advances until the last window has closed, so C-SPARQL need not wait after it."""

OWN = {"csparql": ("csparql-0.9.7-wall",), "cqels": ("cqels-1.x-yabench",), "live": ("yabench", "yabench-change")}
"""Semantics of engines as YABench ran them, and of `live` both of its oracle's; others have their first profile."""


def sides(engine: str) -> tuple[TrialSide, ...]:
    """The semantics under which an engine takes part."""
    names = OWN.get(engine) or (profiles(load(engine)) or ("rspql",))[:1]
    return tuple(TrialSide(engine, name, _beside(name), OPTIONS.get(engine, {})) for name in names)


def _beside(name: str) -> str:
    """C-SPARQL's files for engines that report at window close, CQELS's for those that report changes."""
    return "cqels" if Report.CONTENT_CHANGE in profile(name).report else "csparql"


def trials(hurricane: Path | None, only: Sequence[str]) -> tuple[YabenchTrial, ...]:
    """All tests, or those selected by name or prefix; ExperimentError for an unknown one lists the names."""
    trials_ = (*_generated(), *_csrbench(hurricane))
    unknown = [name for name in only if not any(_named(test, name) for test in trials_)]
    if unknown:
        raise ExperimentError(f"--only {unknown[0]}: there is {', '.join(test.name for test in trials_)}")
    return tuple(test for test in trials_ if not only or any(_named(test, name) for name in only))


def _named(test: YabenchTrial, name: str) -> bool:
    # `E1` selects E1/small, E1/medium and E1/big.
    return name in (test.name, test.name.partition("/")[0])


def _generated() -> tuple[YabenchTrial, ...]:
    """Experiments 1 to 4, with a variant of experiment 2 small with the paper's one station."""
    trials_ = [_weather(f"E1/{load}", 1, load) for load in LOADS]
    # Its configuration says one station, the published files are of five: both are run, and only the latter compared.
    trials_.append(replace(_weather("E2/small-1", 2, "small", stations=1), load=None))
    trials_ += [_weather(f"E2/{load}", 2, load) for load in LOADS]
    trials_ += [replace(_weather(f"E3/{load}", 3, load), load=None) for load in LOADS]
    return (*trials_, replace(_weather("E4", 4, "one"), load="non-gracious"))


def _weather(name: str, number: int, load: str, stations: int | None = None) -> YabenchTrial:
    experiment = EXPERIMENTS[number]
    workload = {"name": "weather", "stations": stations or experiment.stations[load], "duration": experiment.duration}
    query = {"name": experiment.query, "parameters": {**WINDOW, **experiment.parameters}}
    once = number == 4
    return YabenchTrial(
        name, number, load, experiment.seed, workload, query, experiment.duration, SIZE, gracious=once, once=once
    )


def _csrbench(hurricane: Path | None) -> tuple[YabenchTrial, ...]:
    """Q1 to Q7 on CSRBench's stream, or on the substitute."""
    workload: dict[str, Any] = {"name": "weather", **STAND_IN}
    if hurricane is not None:
        workload = {"name": "csrbench", "data": str(hurricane)}
    texts = {f"Q{number}": _text(number, hurricane) for number in range(1, 8)}
    return tuple(
        YabenchTrial(name, 0, None, 1, workload, {"text": text}, HURRICANE_MS, parse_query(text).window.size)
        for name, text in texts.items()
    )


def _text(number: int, hurricane: Path | None) -> str:
    text = fill(query_text(load_workload("csrbench"), f"q{number}"), {})
    return text if hurricane is not None else text.replace(THEIR_STATION, OUR_STATION)


def experiment(test: YabenchTrial, side: TrialSide, repetitions: int) -> Experiment:
    """The experiment file of a test: real time, one seed, YABench's number of repetitions."""
    return Experiment.model_validate(
        {
            "name": test.name,
            "seeds": [test.seed],
            "repetitions": 1 if test.once else repetitions,
            "workload": test.workload,
            "query": test.query,
            "engine": [{"name": side.engine, "semantics": [side.semantics], "options": side.options}],
            "feed": {"pace": "real time", "advance_to": test.duration + test.window + SETTLE_MS},
        }
    )


AROUND_MS = 15_000
"""Estimated overhead of a run besides its stream, for the remaining time."""

MIB = 2**20


class TableOneCell(StrEnum):
    """A cell of table 1."""

    RIGHT = "right"
    NEXT = "right, but some rows are in the next window"
    WRONG = "wrong"


@dataclass(frozen=True)
class TrialRun:
    """A stored run: the common judge's results, YABench's lines, and memory (MiB) over time (s).

    ``refused`` is the reason if YABench's rules gave no lines; ``outcome`` is for CSRBench's queries only.
    """

    folder: Path
    judgement: Judgement
    precision: float
    recall: float
    last_answer: float | None
    memory: tuple[tuple[float, float], ...]
    feeder: float
    lines: tuple[OracleLine, ...] = ()
    gracious: tuple[OracleLine, ...] = ()
    refused: str = ""
    outcome: TableOneCell | None = None
    failure: str = ""


@dataclass(frozen=True)
class TrialOutcome:
    """A test on one side: its runs, or the reason why there are none."""

    test: YabenchTrial
    side: TrialSide
    runs: tuple[TrialRun, ...]
    reason: str = ""


@dataclass(frozen=True)
class TrialRunner:
    """The folder of runs, Spark, repetitions, and the receiver of progress."""

    out: Path
    spark: "Callable[[], SparkSession]"
    repetitions: int
    tell: Callable[[str, float], None]


def available(engines: Iterable[str]) -> tuple[tuple[TrialSide, ...], dict[str, str]]:
    """The sides of the installed engines, and the sentence of each absent one."""
    sides_: list[TrialSide] = []
    absent: dict[str, str] = {}
    for name in engines:
        try:
            command(load(name))
            sides_.extend(sides(name))
        except EngineError as error:
            absent[name] = str(error)
    return tuple(sides_), absent


def do(trials: Sequence[YabenchTrial], taking_part: Sequence[TrialSide], doer: TrialRunner) -> Iterator[TrialOutcome]:
    """Run every test on every side; existing runs are reused, and refusals have a reason."""
    todo = [(test, side) for test in trials for side in taking_part]
    lengths = [_length(test, doer) for test, _ in todo]
    for place, (test, side) in enumerate(todo):
        left = sum(lengths[place:])
        doer.tell(f"{test.name}, {side.label}, at most {left / 60_000:.0f} min left", 1 - left / max(1, sum(lengths)))
        try:
            yield TrialOutcome(test, side, tuple(_runs(test, side, doer)))
        except (ExperimentError, EngineError) as error:
            yield TrialOutcome(test, side, (), str(error))


def _length(test: YabenchTrial, doer: TrialRunner) -> int:
    return (1 if test.once else doer.repetitions) * (test.duration + test.window + AROUND_MS)


def _runs(test: YabenchTrial, side: TrialSide, doer: TrialRunner) -> Iterator[TrialRun]:
    name = test.name.replace("/", "-")
    doing = ExperimentContext(doer.out / name, doer.spark, streams=doer.out / "streams")
    for folder, run, verdict in run_experiment(experiment(test, side, doer.repetitions), doing):
        yield _kept(test, folder, run, verdict, doer)


def _kept(test: YabenchTrial, folder: Path, run: Run, verdict: Verdict, doer: TrialRunner) -> TrialRun:
    plain, refused = scored(folder, run, gracious=False)
    fitted = scored(folder, run, gracious=True)[0] if test.gracious else ()
    started = run.header.started
    return TrialRun(
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
        outcome=None if test.number else table_cell(folder, run, verdict, Means(doer.spark)),
        failure=run.header.failure or "",
    )


def scored(folder: Path, run: Run, *, gracious: bool) -> tuple[tuple[OracleLine, ...], str]:
    """The lines by YABench's rules, stored as an ORACLE_ file; or the reason why there are none."""
    file = folder / ("ORACLE_gracious" if gracious else "ORACLE")
    if not file.exists():
        settings = RuleSettings(gracious=gracious, single_result=False)
        try:
            lines = rules.lines(run, tuple(elements(folder / STREAM)), settings)
        except RefusedError as error:
            return (), str(error)
        _keep(file, "".join(f"{line.text()}\n" for line in lines))
    return tuple(map(parse, _sealed_text(file).splitlines())), ""


def table_cell(folder: Path, run: Run, verdict: Verdict, means: Means) -> TableOneCell:
    """The run's cell, stored in its folder."""
    file = folder / "TABLE_1"
    if not file.exists():
        _keep(file, outcome(run, verdict, folder / STREAM, means))
    return TableOneCell(_sealed_text(file))


def _keep(file: Path, text: str) -> None:
    with stage(file) as place:
        place.write_text(text, encoding="utf-8")
        # Another process may have kept it meanwhile; its text is the same.
        put_if_absent(place, file)


def _sealed_text(file: Path) -> str:
    """The text of a stored file, checked against its seal."""
    if not check_beside(file):
        seal_beside(file)
    return file.read_text(encoding="utf-8")


def outcome(run: Run, verdict: Verdict, stream: Path, means: Means) -> TableOneCell:
    """A cell of table 1: right under either clock, or right except for rows that were late for their window.

    A published engine that reports at window close has CSRBench's rule: no partial windows before the first full one.
    """
    header, declared = run.header, run.header.semantics
    closes = Report.WINDOW_CLOSE in declared.report
    own = replace(declared, partial_head=False) if closes and header.engine in NAMES else declared
    # A dict drops the second semantics where it equals the first.
    for semantics in dict.fromkeys((own, replace(own, clock=Clock.APPLICATION))):
        if semantics != declared:
            verdict = judge_run(replace(run, header=replace(header, semantics=semantics)), stream, means)
        if _right(verdict):
            return TableOneCell.RIGHT
    window = header.query.windows[0].window
    # Rounded up: windows of 5 s that slide by 2 s overlap the next two, so a row that is late for one can first be
    # surplus in the third after it.
    if closes and moved_on(verdict.windows, -(-window.size // window.slide)):
        return TableOneCell.NEXT
    return TableOneCell.WRONG


def _right(verdict: Verdict) -> bool:
    return verdict.judgement in {Judgement.RIGHT, Judgement.LATE}


def moved_on(windows: Sequence[WindowVerdict], lag: int) -> bool:
    """Whether every missing row is surplus ``lag`` windows later, the first possible one, and no other row is surplus.

    That is the next window if windows do not overlap; rows missing in the last windows cannot appear later.
    """
    missing: dict[int, Counter[Row]] = {}
    surplus: dict[int, Counter[Row]] = {}
    for window in windows:
        lost, more = window.expected - window.true_positives, window.actual - window.true_positives
        # Witnesses are limited in number. Where some were left out, it cannot be decided, and the cell counts as
        # wrong.
        if not window.due or (len(window.missing), len(window.surplus)) != (lost, more):
            return False
        missing[window.index], surplus[window.index] = Counter(window.missing), Counter(window.surplus)
    last = max(missing, default=0)
    return all(
        # With a lag of 1: what window 3 misses is what window 4 has in surplus, and window 0, with no one before it,
        # has no surplus.
        (index + lag > last or rows == surplus[index + lag]) and (index - lag in missing or not surplus[index])
        for index, rows in missing.items()
    )
