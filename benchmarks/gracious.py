"""Gracious mode beside the plain check on the loads of YABench's experiments: CPU seconds, paired, and the ratio.

python -m benchmarks.gracious [LOAD ...] [--shift 50] [--rounds 3] [--seconds 6] [--evaluator definition|spark]

LOAD is EXPERIMENT/LOAD/ENGINE, such as 1/small/csparql or 1/medium/cqels; all unless named. The answers are those of
`live` with every window's borders ``--shift`` ms late (csparql: start and end; cqels: the start, as a window that is so
much smaller). ``--seconds`` takes only the beginning of a load. Both sides judge the same recording in turn: by the
definition in this process, or by Spark, which large loads under content change need (the JVM's CPU counts). The median
ratio of ``--rounds`` counts. Exit code 1 where gracious mode takes over 3 times the plain check, or finds no exact
borders for an answer (a report that the smaller window misses has none).
"""

import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from benchmarks.measure import OneOf, measured, own_cost, parser, write_weather
from benchmarks.results import ResultTable
from streamgauge.engines import live
from streamgauge.formats.stream import elements
from streamgauge.model.answer import Answer
from streamgauge.model.query import Window
from streamgauge.model.run import Run, RunHeader
from streamgauge.model.verdict import Evaluator, Verdict
from streamgauge.oracle.judging.estimate import EVALUATORS
from streamgauge.oracle.judging.judge import Means, judge_run
from streamgauge.papers.yabench.measure import EXPERIMENTS, query_of
from streamgauge.semantics.profiles import YABENCH, YABENCH_CHANGE
from streamgauge.spark.session import session

TIMES = 3.0
"""The goal: how many times the plain check's CPU gracious mode may take."""
SEMANTICS = {"csparql": YABENCH, "cqels": YABENCH_CHANGE}
COLUMNS = ("load", "triples", "windows", "check, CPU s", "gracious, CPU s", "ratio", "answers fitted")


@dataclass(frozen=True)
class YabenchLoad:
    """One load of an experiment, on an engine of this report policy."""

    experiment: int
    load: str
    engine: str

    @property
    def name(self) -> str:
        """The load's row in the table."""
        return f"{self.experiment}/{self.load}/{self.engine}"


def loads(names: list[str]) -> list[YabenchLoad]:
    """The loads of these names, all where there are none; SystemExit names those that there are."""
    known = [
        YabenchLoad(number, load, engine)
        for number, experiment in EXPERIMENTS.items()
        for load in experiment.stations
        for engine in (("csparql", "cqels") if number == 1 else ("csparql",))
    ]
    loads_ = {load.name: load for load in known}
    if unknown := [name for name in names if name not in loads_]:
        raise SystemExit(f"there is no load {unknown[0]}: there is {', '.join(loads_)}")
    return [loads_[name] for name in names or loads_]


def recorded(load: YabenchLoad, stream: Path, shift: int, duration: int) -> Run:
    """A run over ``duration`` (ms) whose windows have their borders ``shift`` ms late."""
    experiment, semantics = EXPERIMENTS[load.experiment], SEMANTICS[load.engine]
    text, query = query_of(experiment)
    moved, late = query, shift
    if load.engine == "cqels":
        own = query.windows[0]
        smaller = replace(own, window=Window(own.window.size - shift, own.window.slide))
        moved, late = replace(query, windows=(smaller,)), 0
    answers: list[Answer] = []
    session = live.start(moved, semantics, answers.append)
    for element in elements(stream):
        if element.time >= late:
            session.push(replace(element, time=element.time - late))
    session.advance(duration - late)
    session.close()
    header = RunHeader("live", query, text, "rspql", semantics, duration - late, 0, evaluator="changes")
    return Run(header, tuple(answers), ())


def judged(run: Run, stream: Path, means: Means, *, gracious: bool) -> tuple[float, Verdict]:
    """CPU seconds of a judgement, and the verdict."""
    with own_cost() if means.evaluator == "definition" else measured() as cost:
        verdict = judge_run(run, stream, replace(means, gracious=gracious))
    return cost.cpu, verdict


def means_of(evaluator: Evaluator) -> Means:
    """The means of this evaluator; Spark is started and warm."""
    if evaluator == "definition":
        return Means(lambda: sys.exit("the definition needs no Spark"), evaluator)
    opened = session("local[2]", memory="6g", shuffle=4)
    means = Means(lambda: opened, evaluator)
    tuple(row_of(YabenchLoad(1, "small", "cqels"), means, shift=50, repetitions=1, seconds=6))
    return means


def row_of(load: YabenchLoad, means: Means, shift: int, repetitions: int, seconds: int | None) -> Iterator[object]:
    """The cells of a load's row."""
    experiment = EXPERIMENTS[load.experiment]
    duration = experiment.duration if seconds is None else seconds * 1000
    size = {"stations": experiment.stations[load.load], "duration": duration}
    with tempfile.TemporaryDirectory() as folder:
        stream = write_weather(Path(folder) / "stream", experiment.seed, **size)
        run = recorded(load, stream, shift, duration)
        pairs = [
            (judged(run, stream, means, gracious=False), judged(run, stream, means, gracious=True))
            for _ in range(repetitions)
        ]
        triples = sum(len(element.added) for element in elements(stream))
    plain, graced = pairs[0][0][1], pairs[0][1][1]
    answered = [window for window in graced.windows if window.report is not None]
    fitted = [window for window in answered if window.fitted == (1.0, 1.0)]
    yield load.name if seconds is None else f"{load.name}, {seconds} s"
    yield f"{triples:,}"
    yield f"{len(plain.windows):,}"
    yield f"{median(cost for (cost, _), _ in pairs):.2f}"
    yield f"{median(cost for _, (cost, _) in pairs):.2f}"
    yield f"{median(own / other for (other, _), (own, _) in pairs):.2f}"
    yield f"{len(fitted):,} of {len(answered):,}"


def main() -> None:
    command = parser(__doc__, shift=50, rounds=3, seconds=int, evaluator=OneOf(EVALUATORS, "definition"))
    command.add_argument("loads", nargs="*", metavar="LOAD")
    arguments = command.parse_args()
    failed = False
    means = means_of(arguments.evaluator)
    with ResultTable("gracious", COLUMNS, bool(arguments.loads)) as table:
        for load in loads(arguments.loads):
            row = [*row_of(load, means, arguments.shift, arguments.rounds, arguments.seconds)]
            table.add(*row)
            fitted, _, answered = str(row[6]).partition(" of ")
            failed |= float(str(row[5])) > TIMES or fitted != answered
    sys.exit(failed)


if __name__ == "__main__":
    main()
