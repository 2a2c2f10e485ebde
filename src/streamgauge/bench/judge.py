"""Judging a run folder: which evaluator, under which clock, against which stream."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from streamgauge.bench.clock import ADVANCE
from streamgauge.bench.expected import Expect, definition, refuse_spark
from streamgauge.bench.oracle import Progress, Rules, check, unknown
from streamgauge.model.element import StreamElement
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.run import Run
from streamgauge.model.semantics import Clock, Report, Semantics
from streamgauge.model.verdict import Evaluator, Verdict
from streamgauge.semantics.definition import refuse
from streamgauge.semantics.refusal import OutOfOrderError, RefusedError
from streamgauge.wire.stream import elements, files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEFINITION_LIMIT = 3_000_000
"""Triples that the definition may look at over all windows before Spark is asked instead."""


@dataclass(frozen=True, slots=True)
class Means:
    """What judging may use: ``evaluator`` ``None`` chooses by size; ``spark`` makes the session when it is needed."""

    spark: "Callable[[], SparkSession]"
    evaluator: Evaluator | None = None
    max_delay: float | None = None
    progress: Progress = lambda _tried, _of: None


def judge_run(run: Run, stream: Path, means: Means) -> Verdict:
    """The verdict on a recorded run whose stream table is at ``stream``; unknown with the reason when none can be."""
    if run.header.semantics.clock is not Clock.APPLICATION:
        return _under_both_clocks(run, stream, means)
    return _judge(run, run.header.semantics, stream, means)


def _judge(run: Run, semantics: Semantics, stream: Path, means: Means) -> Verdict:
    try:
        refuse(run.header.query, semantics)
        evaluator = means.evaluator or choose(stream, run.header.query, semantics, run.header.evaluator)
        rules = Rules(evaluator, means.max_delay)
        expect, first, _last = expectation(evaluator, stream, means)
        return check(run, expect, first, rules, means.progress)
    except (RefusedError, OutOfOrderError) as error:
        return unknown(run, str(error))


def choose(stream: Path, query: ContinuousQuery, semantics: Semantics, own: str | None) -> Evaluator:
    """The definition where its work is bounded, Spark beyond that; never what the engine itself runs on."""
    triples = len(_times(stream))
    overlap = max(1, -(-query.window.size // query.window.slide))
    small = triples * overlap <= DEFINITION_LIMIT and not _reevaluates(stream, query, semantics, triples)
    if own == "definition" or (not small and own != "spark" and refuse_spark(query, semantics) is None):
        return "spark"
    return "definition"


def _times(stream: Path) -> pa.ChunkedArray:
    return pa.chunked_array(
        [c for file in files(stream) for c in pq.read_table(file, columns=["time"])[0].chunks], pa.int64()
    )


def _reevaluates(stream: Path, query: ContinuousQuery, semantics: Semantics, triples: int) -> bool:
    """Whether a report per tick would make the definition look at too many triples."""
    if Report.CONTENT_CHANGE not in semantics.report:
        return False
    times = _times(stream)
    span = max(1, pc.max(times).as_py() - pc.min(times).as_py()) if triples else 1
    per_window = triples * min(1.0, query.window.size / span)
    return len(pc.unique(times)) * per_window > DEFINITION_LIMIT


def expectation(evaluator: Evaluator, stream: Path, means: Means) -> tuple[Expect, int | None, int]:
    """The expected reports of a stream as a function, the first element's time, and the latest time (ms)."""
    if evaluator == "spark":
        from streamgauge.bench.expected_spark import read_header, spark

        session = means.spark()
        header = read_header(session.read.parquet(str(stream)))
        return spark(session, stream, header), header.first, header.last
    held = tuple(elements(stream))
    return definition(held), first_time(held), max((element.time for element in held), default=0)


def first_time(held: Sequence[StreamElement]) -> int | None:
    """The application time (ms) of the element with the smallest system time."""
    return min(held, key=lambda element: element.sequence).time if held else None


def _under_both_clocks(run: Run, stream: Path, means: Means) -> Verdict:
    """The verdict under arrival times as recorded, with the application clock's precision and recall beside it."""
    held = tuple(elements(stream))
    arrived = by_arrival(run, held)
    wall = replace(run, header=replace(run.header, advanced_to=_last_arrival(run), begin=0))
    rules = Rules(means.evaluator or "definition", means.max_delay)
    try:
        verdict = check(wall, definition(arrived), first_time(arrived), rules, means.progress)
        other = check(run, definition(held), first_time(held), rules, means.progress)
    except (RefusedError, OutOfOrderError) as error:
        return unknown(run, str(error))
    return replace(verdict, other_clock=(str(Clock.APPLICATION), other.precision, other.recall))


def by_arrival(run: Run, held: Sequence[StreamElement]) -> tuple[StreamElement, ...]:
    """The elements stamped with the time at which they were handed over, ms after the feed's start."""
    handed = {fed.sequence: fed.handed for fed in run.fed if fed.sequence != ADVANCE}
    return tuple(
        replace(element, time=(handed[element.sequence] - run.header.started) // 1_000_000)
        for element in held
        if element.sequence in handed
    )


def _last_arrival(run: Run) -> int:
    return max((fed.handed - run.header.started for fed in run.fed), default=0) // 1_000_000
