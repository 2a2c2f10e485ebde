"""The expected reports of a recorded stream, all windows in one Spark job."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from streamgauge.bench.expected import (
    Expect,
    Header,
    all_candidates,
    cuts,
    expected_reports,
    in_order,
    refuse_spark,
    reports,
)
from streamgauge.compute.spark.answers import MANY, answers, changes
from streamgauge.compute.spark.contents import changed, sizes
from streamgauge.compute.spark.running import INEXACT
from streamgauge.model.algebra import Select
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.report import DueReport, ExpectedReport
from streamgauge.model.semantics import R2S, Counting, Report, Semantics, Tick
from streamgauge.semantics.definition import operator
from streamgauge.semantics.order import Arrivals, Head
from streamgauge.semantics.refusal import RefusedError

_NEVER = 1 << 62


def spark(session: SparkSession, stream: Path, header: Header) -> Expect:
    """Expected reports by the Spark evaluator over a stream table on disk (``wire/stream.py``)."""
    table = session.read.parquet(str(stream))

    def expect(query: ContinuousQuery, semantics: Semantics, advanced_to: int, t0: int) -> tuple[ExpectedReport, ...]:
        if reason := refuse_spark(query, semantics):
            raise RefusedError(f"the Spark oracle does not judge {reason}: use the definition (--evaluator definition)")
        due, arrived, late = all_candidates(header, query, semantics, advanced_to, t0)
        seen = _seen(session, table, late, arrived, semantics, cut=cuts(due, arrived.times))
        return _evaluate(session, seen, due, query, semantics)

    return expect


def read_header(table: DataFrame) -> Header:
    """One row per element, collected through Arrow."""
    until = f.first("until") if "until" in table.columns else f.lit(None).cast("long")
    first = (f.first("stream").alias("stream"), f.first("time").alias("time"))
    heads = table.groupBy("sequence").agg(*first, f.count("*").alias("size"), until.alias("until")).toArrow()
    columns = (heads.column(name).to_pylist() for name in ("stream", "time", "sequence", "size", "until"))
    return Header(Head(*values) for values in zip(*columns, strict=True))


def _seen(
    session: SparkSession,
    table: DataFrame,
    late: set[int],
    arrived: Arrivals,
    semantics: Semantics,
    *,
    cut: bool,
) -> DataFrame:
    """The table without late elements, with each triple's rank in system time when reports cut inside a time."""
    if late:
        dropped = session.createDataFrame([(sequence,) for sequence in sorted(late)], "sequence long")
        table = table.join(f.broadcast(dropped), "sequence", "left_anti")
    if not cut:
        return table
    if semantics.tick is Tick.TUPLE:
        from pyspark.sql import Window

        order = Window.orderBy("time", "sequence", "position")
        return table.withColumn("arrival", f.row_number().over(order).cast("long") - 1)
    ranks = [(sequence, rank) for rank, sequence in enumerate(arrived.sequences)]
    return table.join(f.broadcast(session.createDataFrame(ranks, "sequence long, arrival long")), "sequence")


def _evaluate(
    session: SparkSession, stream: DataFrame, due: Sequence[DueReport], query: ContinuousQuery, semantics: Semantics
) -> tuple[ExpectedReport, ...]:
    """Contents first, then what the reports send whose content satisfies the strategies, in one job."""
    contents = {row[0]: row[1] for row in sizes(session, stream, due).collect()}
    kept = _kept(session, stream, due, contents, semantics)
    wanted = [due[index] for index in kept]
    held = [contents.get(index, 0) for index in kept]
    r2s = operator(query, semantics)
    form = query.form
    if r2s is R2S.RSTREAM or semantics.answers is Counting.SET or not isinstance(form, Select):
        found = _collected(lambda many: answers(session, stream, wanted, form, query.static, many))
        bags = in_order(zip(found[0], zip(*found[1:], strict=True), strict=True), len(wanted))
        return reports(wanted, bags, held, query, semantics)
    found = _collected(lambda many: changes(session, stream, wanted, form, query.static, many))
    sign = 1 if r2s is R2S.ISTREAM else -1
    rows = zip(found[0], found[1], zip(*found[2:], strict=True), strict=True)
    bags = in_order(((at, row) for at, net, row in rows for _ in range(sign * net)), len(wanted))
    notified = ((report, bag) for report, bag in zip(wanted, bags, strict=True) if bag or semantics.notify_empty)
    return expected_reports(notified, dict(zip(wanted, held, strict=True)), query)


def _collected(job: Callable[[int], DataFrame]) -> list[list[Any]]:
    """A job's columns; where its running totals are not exact enough it is done again report by report."""
    try:
        table = job(MANY).toArrow()
    except PySparkException as error:
        if INEXACT not in str(error):
            raise
        table = job(_NEVER).toArrow()
    return [column.to_pylist() for column in table.columns]


def _kept(
    session: SparkSession,
    stream: DataFrame,
    due: Sequence[DueReport],
    contents: dict[int, int],
    semantics: Semantics,
) -> list[int]:
    """The candidates whose content satisfies the strategies about content, in order."""
    kept = set(range(len(due)))
    if Report.CONTENT_CHANGE in semantics.report:
        kept &= changed(session, stream, due)
    if Report.NON_EMPTY in semantics.report:
        kept &= {index for index, content in contents.items() if content}
    return sorted(kept)
