"""Judging runs with tens of thousands of reports on Spark: experiment 1 big as content change, and as window close.

python -m benchmarks.change [--stations 10000] [--seconds 30] [--base 500] [--growth 1 4 16] [--prefix 300]
The recorded answers are those of `live` (the incremental evaluator), which Spark judges; Rstream is recorded as
changes. A line is one whole judgement: reading the stream's head, what is due, the expected answers, alignment and
scores. CPU is user + system time of the process tree, the JVM included; resident memory is its peak while judging.
Growth is the same query on `base` stations for 30 s times the factor, Rstream, after a run that is not shown and warms
the JVM up. The prefix is judged by both sides: pyoxigraph evaluates each instant from scratch (the definition), Spark
does as above; its answers are whole bags. Times in seconds, the prefix in ms.
"""

import argparse
import gc
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks.measure import PREFIXES, QUERIES, SEED, Cost, measured
from benchmarks.results import ResultTable
from streamgauge.engines import live
from streamgauge.formats.stream import elements, write
from streamgauge.model.answer import Answer
from streamgauge.model.element import StreamElement
from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.run import Run, RunHeader
from streamgauge.model.semantics import R2S, Report, Semantics, Tick
from streamgauge.model.verdict import Evaluator, Verdict
from streamgauge.oracle.expected.on_spark import SparkReports, read_header, spark_changes
from streamgauge.oracle.expected.reports import definition
from streamgauge.oracle.judging.deltas import by_changes, countable
from streamgauge.oracle.judging.oracle import JudgingRules, by_rows, decide
from streamgauge.query import parse_sparql
from streamgauge.spark.session import session
from streamgauge.workloads.weather import STREAM, generate

CHANGE = Semantics("change", report=frozenset({Report.CONTENT_CHANGE}), tick=Tick.BATCH, partial_head=True)
CLOSE = replace(CHANGE, name="close", report=frozenset({Report.WINDOW_CLOSE}))
TEXT = PREFIXES + QUERIES["select"]
QUERY = ContinuousQuery(parse_sparql(TEXT), (StreamWindow(STREAM, Window(5000, 5000)),), sparql=TEXT)
OPERATORS = (R2S.ISTREAM, R2S.DSTREAM, R2S.RSTREAM)


def answered(fed: Sequence[StreamElement], semantics: Semantics, until: int) -> list[Answer]:
    found: list[Answer] = []
    gc.freeze()
    running = live.start(QUERY, semantics, found.append)
    for element in fed:
        running.push(element)
    running.advance(until)
    gc.unfreeze()
    return found


def recorded(fed: Sequence[StreamElement], semantics: Semantics) -> dict[R2S, Run]:
    """The run under each operator; what comes and what goes are the changes that an Rstream run sends."""
    until = fed[-1].time
    if Report.WINDOW_CLOSE in semantics.report:
        said = {R2S.RSTREAM: answered(fed, semantics, until)}
    else:
        come, gone = (answered(fed, replace(semantics, r2s=r2s), until) for r2s in OPERATORS[:2])
        both = [replace(one, removed=other.added) for one, other in zip(come, gone, strict=True)]
        said = dict(zip(OPERATORS, (come, gone, both), strict=True))
    return {r2s: ran(answers, replace(semantics, r2s=r2s), until) for r2s, answers in said.items()}


def ran(answers: Sequence[Answer], semantics: Semantics, until: int) -> Run:
    header = RunHeader("live", QUERY, TEXT, "rspql", semantics, until, 0, 0, "changes", 1.0)
    return Run(header, tuple(answers), ())


def by_spark(run: Run, given: SparkSession, path: Path) -> Verdict:
    header, rules = read_header(given.read.parquet(str(path))), JudgingRules("spark")
    expect = SparkReports(given, path, header)
    if countable(QUERY, run.header.semantics):
        score = by_changes(run, spark_changes(given, path, header), expect, rules)
    else:
        score = by_rows(run, expect, rules)
    return decide(run, score, header.first, rules)


def by_pyoxigraph(run: Run, path: Path) -> Verdict:
    held, rules = tuple(elements(path)), JudgingRules("definition")
    return decide(run, by_rows(run, definition(held), rules), held[0].time, rules)


def judged(table: ResultTable, title: str, judge: Callable[[], Verdict], evaluator: Evaluator = "spark") -> Cost:
    with measured() as spent:
        verdict = judge()
    expected = sum(window.expected for window in verdict.windows)
    table.add(
        title, evaluator, verdict.judgement, f"{verdict.precision:.4f}", f"{verdict.recall:.4f}",
        f"{len(verdict.windows):,}", f"{expected:,}", f"{spent.wall:.1f}", f"{spent.cpu:.1f}", f"{spent.peak:,.0f}",
    )  # fmt: skip
    return spent


HEAD = ("run", "judged by", "verdict", "P", "R", "reports", "expected rows", "wall s", "CPU s", "resident peak MB")


def made(given: SparkSession, path: Path, stations: int, seconds: int) -> list[StreamElement]:
    table = generate(given, SEED, stations=stations, interval="1s", duration=f"{seconds}s")
    table.write.parquet(str(path))
    return list(elements(path))


def big(given: SparkSession, folder: Path, stations: int, seconds: int) -> list[StreamElement]:
    fed = made(given, folder / "big", stations, seconds)
    size, times = sum(len(each.added) for each in fed), len({each.time for each in fed})
    print(f"\n{len(fed):,} elements, {size:,} triples, {times:,} distinct times; 5 s/5 s")
    with ResultTable("change_operators", HEAD) as table:
        for semantics, r2s, run in ((each, *one) for each in (CLOSE, CHANGE) for one in recorded(fed, each).items()):
            judged(table, f"{semantics.name}, {r2s}", lambda run=run: by_spark(run, given, folder / "big"))
    return fed


def warm(given: SparkSession, folder: Path) -> None:
    """One judgement that is not shown: the JVM's start is nobody's growth."""
    run = recorded(made(given, folder / "warm", 50, 10), CHANGE)[R2S.RSTREAM]
    by_spark(run, given, folder / "warm")


def growth(given: SparkSession, folder: Path, base: int, factors: Sequence[int]) -> None:
    print(f"\n{base} stations, {', '.join(f'{30 * factor} s' for factor in factors)}; Rstream")
    spent = []
    warm(given, folder)
    with ResultTable("change_growth", HEAD) as table:
        for factor in factors:
            path = folder / f"growth{factor}"
            fed = made(given, path, base, 30 * factor)
            run = recorded(fed, CHANGE)[R2S.RSTREAM]
            title = f"x{factor}: {sum(len(each.added) for each in fed):,} triples"
            del fed
            spent.append(judged(table, title, lambda run=run, path=path: by_spark(run, given, path)))
    for (one, before), (other, after) in zip(
        zip(factors, spent, strict=True), list(zip(factors, spent, strict=True))[1:], strict=False
    ):
        print(
            f"\nx{one} to x{other}: {other / one:.0f} times the stream, {after.wall / before.wall:.1f} times the wall "
            f"time, {after.cpu / before.cpu:.1f} times the CPU time",
            flush=True,
        )


def prefix(given: SparkSession, folder: Path, fed: Sequence[StreamElement], until: int) -> None:
    head = [each for each in fed if each.time < until]
    path = folder / "prefix.parquet"
    write(head, path)
    run = ran(answered(head, CHANGE, head[-1].time), CHANGE, head[-1].time)
    print(f"\nthe first {until} ms: {len(head):,} elements; Rstream")
    with ResultTable("change_prefix", HEAD) as table:
        ours = judged(table, "prefix", lambda: by_spark(run, given, path))
        theirs = judged(table, "prefix", lambda: by_pyoxigraph(run, path), "definition")
    print(f"\nfrom scratch / from changes: wall {theirs.wall / ours.wall:.1f}x, CPU {theirs.cpu / ours.cpu:.1f}x")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--stations", type=int, default=10_000)
    options.add_argument("--seconds", type=int, default=30)
    options.add_argument("--base", type=int, default=500)
    options.add_argument("--growth", type=int, nargs="*", default=[1, 4, 16])
    options.add_argument("--prefix", type=int, default=300)
    chosen = options.parse_args()
    given = session("local[2]", memory="6g", shuffle=4)
    try:
        with tempfile.TemporaryDirectory() as name:
            growth(given, Path(name), chosen.base, chosen.growth)
            fed = big(given, Path(name), chosen.stations, chosen.seconds)
            prefix(given, Path(name), fed, chosen.prefix)
    finally:
        given.stop()


if __name__ == "__main__":
    main()
