"""All reports of a run in one Spark job: what a query answers, how much each report holds, which ones changed."""

from collections.abc import Iterable, Sequence
from itertools import accumulate

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from streamgauge.compute.spark.compiler import Compiler, numeric_variables, triple_patterns
from streamgauge.compute.spark.facts import gather
from streamgauge.compute.spark.intervals import intervals, merged, repeats
from streamgauge.compute.spark.refusal import refuse
from streamgauge.compute.spark.relation import refine
from streamgauge.model.algebra import Ask, Construct, QueryForm
from streamgauge.model.report import DueReport
from streamgauge.model.terms import XSD, Triple

__all__ = ["answers", "changed", "refuse", "sizes"]


def answers(
    spark: SparkSession, stream: DataFrame, due: Sequence[DueReport], query: QueryForm, static: Iterable[Triple] = ()
) -> DataFrame:
    """Columns ``report`` (index in ``due``) and one canonical term per variable (``ask`` for ASK); a row per solution.

    ``stream`` is the stream table, with a column ``arrival`` (rank in system time) when ``seen`` matters.
    ValueError names what Spark does not evaluate, or due reports that are out of order.
    """
    reason = refuse(query)
    if reason is not None or isinstance(query, Construct):
        raise ValueError(reason)
    names = ("ask",) if isinstance(query, Ask) else query.variables
    if not due:
        return spark.createDataFrame([], ", ".join(["report int", *(f"`{name}` string" for name in names)]))
    patterns = tuple(triple_patterns(query.pattern))
    compiler = Compiler(gather(spark, stream, due, static, patterns), numeric_variables(query.pattern))
    found = compiler.relation(query.pattern)
    if isinstance(query, Ask):
        return _asked(spark, refine(found.project(()), 1).frame, len(due))
    found = refine(found.project(query.variables), 1)
    columns = [found.value(name) for name in query.variables]
    return found.frame.select("lo", *columns).toDF("report", *query.variables)


def sizes(spark: SparkSession, stream: DataFrame, due: Sequence[DueReport]) -> DataFrame:
    """Columns ``report`` and ``content``: the number of distinct triples in each report."""
    steps = [0] * (len(due) + 1)
    for low, high, count in _interval_counts(spark, stream, due):
        steps[low] += count
        steps[high + 1] -= count
    content = pa.array(list(accumulate(steps))[: len(due)], pa.int64())
    return spark.createDataFrame(pa.table({"report": pa.array(range(len(due)), pa.int32()), "content": content}))


def changed(spark: SparkSession, stream: DataFrame, due: Sequence[DueReport]) -> frozenset[int]:
    """The reports whose content differs from that of the report before (the first: from the empty content)."""
    edges = {edge for low, high, _ in _interval_counts(spark, stream, due) for edge in (low, high + 1)}
    return frozenset(edges - {len(due)})


def _interval_counts(spark: SparkSession, stream: DataFrame, due: Sequence[DueReport]) -> list[tuple[int, int, int]]:
    """How many triples have each maximal interval of reports."""
    if not due:
        return []
    frame = intervals(spark, stream, due)
    frame = merged(frame) if repeats(frame) else frame
    table = frame.groupBy("lo", "hi").agg(fn.count("*").alias("count")).toArrow()
    return list(zip(*(table.column(name).to_pylist() for name in ("lo", "hi", "count")), strict=True))


def _asked(spark: SparkSession, matched: DataFrame, reports: int) -> DataFrame:
    every = spark.range(reports).select(fn.col("id").cast("int").alias("report"))
    found = matched.select(fn.col("lo").alias("report"), fn.lit(True).alias("found")).distinct()
    said = fn.when(fn.col("found"), "true").otherwise("false")
    ask = fn.concat(fn.lit('"'), said, fn.lit(f'"^^<{XSD}boolean>'))
    return every.join(found, "report", "left").select("report", ask.alias("ask"))
