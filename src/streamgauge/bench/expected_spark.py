"""The expected reports of a recorded stream, all windows in one Spark job."""

from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from streamgauge.bench.expected import Expect, Header, all_candidates, cuts, in_order, refuse_spark, reports
from streamgauge.compute.spark.answers import answers, changed, sizes
from streamgauge.model.element import StreamElement
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.report import DueReport, ExpectedReport
from streamgauge.model.semantics import Report, Semantics, Tick
from streamgauge.semantics.refusal import RefusedError


def spark(session: SparkSession, stream: Path, header: Header) -> Expect:
    """Expected reports by the Spark evaluator over a stream table on disk (``wire/stream.py``)."""
    table = session.read.parquet(str(stream))

    def expect(query: ContinuousQuery, semantics: Semantics, advanced_to: int, t0: int) -> tuple[ExpectedReport, ...]:
        if reason := refuse_spark(query, semantics):
            raise RefusedError(f"the Spark oracle does not judge {reason}: use the definition (--evaluator definition)")
        due, admitted, late, times = all_candidates(header, query, semantics, advanced_to, t0)
        seen = _seen(session, table, late, admitted, semantics, cut=cuts(due, times))
        return _evaluate(session, seen, due, query, semantics)

    return expect


def read_header(table: DataFrame) -> Header:
    """One row per element, collected through Arrow."""
    heads = table.groupBy("sequence").agg(f.first("time").alias("time"), f.count("*").alias("size")).toArrow()
    columns = (heads.column(name).to_pylist() for name in ("time", "sequence", "size"))
    return Header(list(zip(*columns, strict=True)))


def _seen(
    session: SparkSession,
    table: DataFrame,
    late: set[int],
    admitted: Sequence[StreamElement],
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
    ranks = [(element.sequence, rank) for rank, element in enumerate(admitted)]
    return table.join(f.broadcast(session.createDataFrame(ranks, "sequence long, arrival long")), "sequence")


def _evaluate(
    session: SparkSession, stream: DataFrame, due: Sequence[DueReport], query: ContinuousQuery, semantics: Semantics
) -> tuple[ExpectedReport, ...]:
    """Contents first, then the answers of the reports whose content satisfies the strategies, in one job."""
    contents = {row[0]: row[1] for row in sizes(session, stream, due).collect()}
    kept = _kept(session, stream, due, contents, semantics)
    found = answers(session, stream, [due[index] for index in kept], query.form, query.static).toArrow()
    columns = [column.to_pylist() for column in found.columns]
    bags = in_order(zip(columns[0], zip(*columns[1:], strict=True), strict=True), len(kept))
    return reports([due[i] for i in kept], bags, [contents.get(i, 0) for i in kept], query, semantics)


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
