"""Judging on Spark: windows beside pyoxigraph, and runs with tens of thousands of reports.

python -m benchmarks.oracle [--parts windows growth operators prefix choice] [--stations 10000] [--seconds 30] ...
python -m benchmarks.oracle --parts paired --before OTHER/src [--repeat 5]

CPU is user + system time of the process tree, the JVM included; resident memory is its peak.
`windows`: all windows of YABench's experiment (--query) in one Spark job, ``--repeat`` times, and window by window with
pyoxigraph, whose rows are compared with Spark's.
The other parts judge recorded answers of `live` to select, 5 s/5 s. A line is one whole judgement: reading the
stream's head, what is due, the expected answers, alignment and scores.
`growth`: content change, Rstream, on ``--base`` stations for 30 s times each of ``--factors``, after a run that is not
shown and warms the JVM up. `operators`: window close and content change under each operator; Rstream is recorded as
changes. `prefix`: the first ``--prefix`` ms by both sides: pyoxigraph evaluates each instant from scratch (the
definition), Spark does as above; its answers are whole bags.
`choice`: whole judgements by both sides in a session that is there, beside what `oracle/judging/estimate.py` expects of
them, and what starting a session adds.
`paired`: right answers, and answers of which some lack a row, judged by the definition of these sources and of those of
another checkout in turn, ``--repeat`` times; the least CPU of each. No Spark.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Final

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyoxigraph as ox
from pyspark.sql import SparkSession

from benchmarks.measure import Cost, OneOf, measured, options, own_cost, write_weather
from benchmarks.results import ResultTable
from benchmarks.stations import PREFIXES, QUERIES, STREAM, window_query
from streamgauge.engines import live
from streamgauge.formats.canonical import Canonical
from streamgauge.formats.stream import elements, write
from streamgauge.model.algebra import Select
from streamgauge.model.answer import Answer
from streamgauge.model.element import StreamElement
from streamgauge.model.report import DueReport, View
from streamgauge.model.run import Run, RunHeader
from streamgauge.model.semantics import R2S, Report, Semantics, Tick
from streamgauge.model.terms import Row
from streamgauge.model.verdict import Evaluator, Judgement, Verdict
from streamgauge.oracle.expected.on_spark import SparkReports, read_header, spark_changes
from streamgauge.oracle.expected.reports import definition
from streamgauge.oracle.judging.deltas import by_changes, countable
from streamgauge.oracle.judging.estimate import EVALUATORS, definition_seconds, spark_seconds, work_of
from streamgauge.oracle.judging.judge import Means, judge_run
from streamgauge.oracle.judging.oracle import JudgingRules, RowScores, decide
from streamgauge.query import parse_sparql
from streamgauge.query.printer import sparql
from streamgauge.spark.answers import answers
from streamgauge.spark.session import session

WINDOWS: Final = ((5000, 5000), (5000, 1000))
CHANGE = Semantics("change", report=frozenset({Report.CONTENT_CHANGE}), tick=Tick.BATCH, partial_head=True)
CLOSE = replace(CHANGE, name="close", report=frozenset({Report.WINDOW_CLOSE}))
QUERY = window_query("select", 5000, 5000)
OPERATORS = (R2S.ISTREAM, R2S.DSTREAM, R2S.RSTREAM)
HEAD = ("run", "judged by", "verdict", "P", "R", "reports", "expected rows", "wall s", "CPU s", "resident peak MB")


def due_reports(size: int, slide: int, end: int) -> list[DueReport]:
    closes = range(size, end + 1, slide)
    return [DueReport(close, (View(close - size, close, close - size, close - 1, 1 << 62),)) for close in closes]


def windows(arguments: argparse.Namespace, opened: SparkSession, folder: Path) -> None:
    size = {"stations": arguments.stations, "interval": "1s", "duration": f"{arguments.seconds}s"}
    path, target = write_weather(folder / "windows", **size), folder / "answers"
    query = parse_sparql(PREFIXES + QUERIES[arguments.query])
    assert isinstance(query, Select)
    columns = ("windows", "number", "rows", "Spark, successive runs in one session, CPU s (wall)",
               "pyoxigraph, CPU s (wall)", "ratio first / best", "answers", "resident peak MB")  # fmt: skip
    with ResultTable("oracle", columns) as table:
        for window in WINDOWS:
            due, costs = due_reports(*window, arguments.seconds * 1000), list[Cost]()
            for _ in range(arguments.repeat):
                with measured() as spent:
                    answers(opened, opened.read.parquet(str(path)), due, query).write.mode("overwrite").parquet(
                        str(target)
                    )
                costs.append(spent)
            with measured() as scratch:
                bag = Counter(hash(row) for row in by_pyoxigraph(path, due, query))
            rows = list(zip(*pq.read_table(target).to_pydict().values(), strict=True))
            bag.subtract(hash((report, tuple(row))) for report, *row in rows)
            ratios = " / ".join(
                f"{scratch.cpu / cost:.1f}x" for cost in (costs[0].cpu, min(cost.cpu for cost in costs))
            )
            same = "not compared" if arguments.query == "average" else "other rows" if any(bag.values()) else "the same"
            table.add(f"{window[0]} ms/{window[1]} ms", len(due), len(rows), ", ".join(map(_cost, costs)),
                      _cost(scratch), ratios, same, f"{max(cost.peak for cost in costs):,.0f}")  # fmt: skip


def _cost(spent: Cost) -> str:
    return f"{spent.cpu:.2f} ({spent.wall:.2f})"


def by_pyoxigraph(path: Path, due: Sequence[DueReport], query: Select) -> Iterator[tuple[int, Row]]:
    """Every row with the number of its window, one window after the other."""
    table = pq.read_table(path, columns=["time", "subject", "predicate", "object"])
    text, canonical = sparql(query), Canonical()
    for index, report in enumerate(due):
        inside = pc.and_(
            pc.greater_equal(table["time"], report.views[0].first), pc.less_equal(table["time"], report.last)
        )
        window = table.filter(inside)
        columns = [window.column(name).to_pylist() for name in ("subject", "predicate", "object")]
        lines = "\n".join(f"{s} {p} {o} ." for s, p, o in zip(*columns, strict=True))
        store = ox.Store()
        store.bulk_extend(ox.parse(lines.encode(), format=ox.RdfFormat.N_TRIPLES))
        rows = store.query(text)
        assert isinstance(rows, ox.QuerySolutions)
        for row in rows:
            yield index, tuple(canonical.term(row[name]) for name in query.variables)


def answered(fed: Sequence[StreamElement], semantics: Semantics) -> tuple[Answer, ...]:
    answers: list[Answer] = []
    with own_cost():
        running = live.start(QUERY, semantics, answers.append)
        for element in fed:
            running.push(element)
        running.advance(fed[-1].time)
    return tuple(answers)


def recorded(fed: Sequence[StreamElement], semantics: Semantics) -> dict[R2S, Run]:
    """The run under each operator; what comes and what goes are the changes that an Rstream run sends."""
    if Report.WINDOW_CLOSE in semantics.report:
        answers_by_operator = {R2S.RSTREAM: answered(fed, semantics)}
    else:
        come, gone = (answered(fed, replace(semantics, r2s=r2s)) for r2s in OPERATORS[:2])
        both = tuple(replace(one, removed=other.added) for one, other in zip(come, gone, strict=True))
        answers_by_operator = dict(zip(OPERATORS, (come, gone, both), strict=True))
    return {
        r2s: ran(answers, replace(semantics, r2s=r2s), fed[-1].time) for r2s, answers in answers_by_operator.items()
    }


def ran(answers: tuple[Answer, ...], semantics: Semantics, until: int) -> Run:
    return Run(RunHeader("live", QUERY, QUERY.sparql, "rspql", semantics, until, 0, 0, "changes", 1.0), answers, ())


def by_spark(run: Run, opened: SparkSession, path: Path) -> Verdict:
    header, rules = read_header(opened.read.parquet(str(path))), JudgingRules("spark")
    expect = SparkReports(opened, path, header)
    if countable(QUERY, run.header.semantics):
        score = by_changes(run, spark_changes(opened, path, header), RowScores(run, expect, rules), rules)
    else:
        score = RowScores(run, expect, rules)
    return decide(run, score, header.first, rules)


def by_definition(run: Run, path: Path) -> Verdict:
    elements_, rules = tuple(elements(path)), JudgingRules("definition")
    return decide(run, RowScores(run, definition(elements_), rules), elements_[0].time, rules)


def judged(table: ResultTable, title: str, judge: Callable[[], Verdict], evaluator: Evaluator = "spark") -> Cost:
    with measured() as spent:
        verdict = judge()
    expected = sum(window.expected for window in verdict.windows)
    table.add(
        title, evaluator, verdict.judgement, f"{verdict.precision:.4f}", f"{verdict.recall:.4f}",
        f"{len(verdict.windows):,}", f"{expected:,}", f"{spent.wall:.1f}", f"{spent.cpu:.1f}", f"{spent.peak:,.0f}",
    )  # fmt: skip
    return spent


def made(path: Path, stations: int, seconds: int) -> list[StreamElement]:
    """A stream of the weather workload at a path; its elements."""
    if not path.exists():
        write_weather(path, stations=stations, interval="1s", duration=f"{seconds}s")
    return list(elements(path))


def growth(arguments: argparse.Namespace, opened: SparkSession, folder: Path) -> None:
    warm = recorded(made(folder / "warm", 50, 10), CHANGE)[R2S.RSTREAM]
    by_spark(warm, opened, folder / "warm")
    spent: list[tuple[int, Cost]] = []
    with ResultTable("change_growth", HEAD) as table:
        for factor in arguments.factors:
            path = folder / f"growth{factor}"
            fed = made(path, arguments.base, 30 * factor)
            run = recorded(fed, CHANGE)[R2S.RSTREAM]
            title = f"x{factor}: {sum(len(element.added) for element in fed):,} triples"
            del fed
            spent.append((factor, judged(table, title, partial(by_spark, run, opened, path))))
    for (one, before), (other, after) in pairwise(spent):
        print(
            f"\nx{one} to x{other}: {other / one:.0f} times the stream, {after.wall / before.wall:.1f} times the wall "
            f"time, {after.cpu / before.cpu:.1f} times the CPU time",
            flush=True,
        )


def operators(arguments: argparse.Namespace, opened: SparkSession, folder: Path) -> None:
    fed = made(folder / "big", arguments.stations, arguments.seconds)
    size, times = sum(len(element.added) for element in fed), len({element.time for element in fed})
    print(f"\n{len(fed):,} elements, {size:,} triples, {times:,} distinct times; 5 s/5 s")
    with ResultTable("change_operators", HEAD) as table:
        for semantics, r2s, run in (
            (semantics_, *one) for semantics_ in (CLOSE, CHANGE) for one in recorded(fed, semantics_).items()
        ):
            judged(table, f"{semantics.name}, {r2s}", partial(by_spark, run, opened, folder / "big"))


def prefix(arguments: argparse.Namespace, opened: SparkSession, folder: Path) -> None:
    head = [
        element
        for element in made(folder / "big", arguments.stations, arguments.seconds)
        if element.time < arguments.prefix
    ]
    path = folder / "prefix.parquet"
    write(head, path)
    run = ran(answered(head, CHANGE), CHANGE, head[-1].time)
    print(f"\nthe first {arguments.prefix} ms: {len(head):,} elements; Rstream")
    with ResultTable("change_prefix", HEAD) as table:
        ours = judged(table, "prefix", lambda: by_spark(run, opened, path))
        theirs = judged(table, "prefix", lambda: by_definition(run, path), "definition")
    print(f"\nfrom scratch / from changes: wall {theirs.wall / ours.wall:.1f}x, CPU {theirs.cpu / ours.cpu:.1f}x")


@dataclass(frozen=True)
class JudgedPoint:
    """A run to judge by both sides: its query (stations.QUERIES), semantics, window (ms), stations, and length (s)."""

    query: str
    semantics: Semantics
    slide: int
    stations: int
    seconds: int

    @property
    def title(self) -> str:
        """The run's row in the table."""
        return f"{self.query}, {self.semantics.name} 5 s/{self.slide // 1000} s, {self.stations:,} stations"


POINTS: Final = (
    JudgedPoint("select", CLOSE, 5000, 50, 30),
    JudgedPoint("select", CLOSE, 5000, 1000, 30),
    JudgedPoint("select", CLOSE, 5000, 4000, 30),
    JudgedPoint("select", CLOSE, 1000, 1000, 30),
    JudgedPoint("select", CLOSE, 1000, 3000, 30),
    JudgedPoint("average", CLOSE, 1000, 1000, 30),
    JudgedPoint("variation", CLOSE, 5000, 100, 30),
    JudgedPoint("top", CLOSE, 1000, 300, 30),
    JudgedPoint("select", CHANGE, 5000, 50, 10),
    JudgedPoint("select", CHANGE, 5000, 300, 10),
)


def choice(_given: argparse.Namespace, opened: SparkSession, folder: Path) -> None:
    columns = ("run", "triples", "definition CPU s", "estimate", "Spark CPU s", "estimate ", "cheaper", "chosen")
    judge_by("spark", POINTS[0], opened, folder)
    with ResultTable("oracle_choice", columns) as table:
        for point in POINTS:
            path, run = judge_run_at(point, folder)
            work = work_of(path, run.header.query, run.header.semantics, run.header.advanced_to)
            spent = {evaluator: judge_by(evaluator, point, opened, folder) for evaluator in EVALUATORS}
            cheaper = min(spent, key=lambda evaluator: spent[evaluator])
            table.add(
                point.title, f"{work.triples:,}",
                f"{spent['definition']:.2f}", f"{definition_seconds(work):.2f}",
                f"{spent['spark']:.2f}", f"{spark_seconds(work, warm=True):.2f}",
                cheaper, "definition" if definition_seconds(work) <= spark_seconds(work, warm=True) else "spark",
            )  # fmt: skip


def judge_run_at(point: JudgedPoint, folder: Path) -> tuple[Path, Run]:
    """The stream table of a point, and `live`'s run on it."""
    path = folder / f"choice{point.stations}-{point.seconds}"
    fed = made(path, point.stations, point.seconds)
    query, answers = window_query(point.query, 5000, point.slide), list[Answer]()
    running = live.start(query, point.semantics, answers.append)
    for element in fed:
        running.push(element)
    running.advance(point.seconds * 1000)
    head = RunHeader("live", query, query.sparql, "rspql", point.semantics, point.seconds * 1000, 0, 0, "changes", 1.0)
    return path, Run(head, tuple(answers), ())


def judge_by(evaluator: Evaluator, point: JudgedPoint, opened: SparkSession, folder: Path) -> float:
    """CPU seconds of a whole judgement; the verdict has to be right."""
    path, run = judge_run_at(point, folder)
    with measured() as spent:
        verdict = judge_run(run, path, Means(lambda: opened, evaluator))
    if verdict.judgement is not Judgement.RIGHT:
        raise SystemExit(f"{point.title}: {evaluator} judges it {verdict.judgement}: {verdict.reason}")
    return spent.cpu


PAIRED: Final = (
    *POINTS[:2],
    JudgedPoint("select", CLOSE, 1000, 300, 30),
    JudgedPoint("average", CLOSE, 1000, 300, 30),
    *POINTS[6:9],
    JudgedPoint("optionals", CLOSE, 5000, 100, 30),
    JudgedPoint("optionals", CLOSE, 5000, 400, 30),
    JudgedPoint("optionals", CLOSE, 1000, 50, 30),
)
JUDGE: Final = """
import sys, time
from dataclasses import replace
from pathlib import Path
from streamgauge.engines import live
from streamgauge.formats.stream import elements
from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.run import Run, RunHeader
from streamgauge.model.semantics import Report, Semantics, Tick
from streamgauge.oracle.judging.judge import Means, judge_run
from streamgauge.query import parse_sparql
stream, name, text, slide, report, seconds, lost = sys.argv[1:]
query = ContinuousQuery(parse_sparql(text), (StreamWindow(name, Window(5000, int(slide))),), sparql=text)
semantics = Semantics("benchmark", report=frozenset({Report(report)}), tick=Tick.BATCH, partial_head=True)
answers = []
running = live.start(query, semantics, answers.append)
for element in elements(Path(stream)):
    running.push(element)
running.advance(int(seconds) * 1000)
answers = [replace(a, added=a.added[1:]) if lost and at % 3 == 1 else a for at, a in enumerate(answers)]
header = RunHeader("live", query, text, "rspql", semantics, int(seconds) * 1000, 0, 0, "changes", 1.0)
run, means = Run(header, tuple(answers), ()), Means(None, "definition")
judge_run(run, Path(stream), means)
began = time.process_time()
verdict = judge_run(run, Path(stream), means)
print(time.process_time() - began, verdict.judgement)
"""
"""The second of two equal judgements, in a process that finds the sources of either checkout."""


def paired(arguments: argparse.Namespace, folder: Path) -> None:
    checkouts = arguments.before, Path(__file__).parents[1] / "src"
    with ResultTable("oracle_paired", ("run", "answers", "before, CPU s", "now, CPU s", "ratio", "verdict")) as table:
        for point in PAIRED:
            path = folder / f"paired{point.stations}-{point.seconds}"
            made(path, point.stations, point.seconds)
            for answers_are, lost in (("right", ""), ("a row lost of every third", "lost")):
                both = [
                    [_judged_by(sources, path, point, lost) for sources in checkouts] for _ in range(arguments.repeat)
                ]
                before, now = (min(pair[side][0] for pair in both) for side in (0, 1))
                verdicts = " / ".join(sorted({verdict for pair in both for _, verdict in pair}))
                table.add(point.title, answers_are, f"{before:.3f}", f"{now:.3f}", f"{now / before:.2f}", verdicts)


def _judged_by(sources: Path, stream: Path, point: JudgedPoint, lost: str) -> tuple[float, str]:
    """CPU seconds of one judgement in a process of its own, and the verdict."""
    (report,) = point.semantics.report
    words = (STREAM, PREFIXES + QUERIES[point.query], str(point.slide), report.value, str(point.seconds), lost)
    command = [sys.executable, "-c", JUDGE, str(stream), *words]
    ended = subprocess.run(command, env={**os.environ, "PYTHONPATH": str(sources)}, capture_output=True, text=True)
    if ended.returncode:
        raise SystemExit(ended.stderr)
    seconds, verdict = ended.stdout.split(maxsplit=1)
    return float(seconds), verdict.strip()


PARTS = {"windows": windows, "growth": growth, "operators": operators, "prefix": prefix, "choice": choice}


def main() -> None:
    arguments = options(
        __doc__, parts=OneOf([*PARTS, "paired"], tuple(PARTS)), stations=10_000, seconds=30,
        query=OneOf(QUERIES, "select"), repeat=2, base=500, factors=(1, 4, 16), prefix=300, before=Path,
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        if "paired" in arguments.parts:
            paired(arguments, Path(folder))
            return
        with measured() as starting:
            opened = session("local[2]", memory="6g", shuffle=4)
            opened.range(1).count()
        print(f"\na session and its first job: {_cost(starting)}")
        try:
            for name in arguments.parts:
                PARTS[name](arguments, opened, Path(folder))
        finally:
            opened.stop()


if __name__ == "__main__":
    main()
