"""All reports of a run in one Spark job: what a query answers, how much each report holds, which ones changed."""

from collections.abc import Iterable, Sequence
from itertools import accumulate

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from streamgauge.compute.spark.compiler import Compiler
from streamgauge.compute.spark.facts import gather
from streamgauge.compute.spark.intervals import intervals, merged, repeats
from streamgauge.compute.spark.reads import numeric_variables, reads
from streamgauge.compute.spark.refusal import refuse
from streamgauge.compute.spark.relation import Relation, refine
from streamgauge.compute.spark.running import INEXACT
from streamgauge.model.algebra import Ask, Construct, QueryForm, Select
from streamgauge.model.report import DueReport
from streamgauge.model.terms import XSD, Triple

__all__ = ["INEXACT", "MANY", "answers", "changed", "changes", "refuse", "sizes"]


MANY = 500
"""From how many reports on aggregates are kept as running totals instead of being computed report by report."""


def answers(
    spark: SparkSession,
    stream: DataFrame,
    due: Sequence[DueReport],
    query: QueryForm,
    static: Iterable[Triple] = (),
    many: int = MANY,
) -> DataFrame:
    """Columns ``report`` (index in ``due``) and one canonical term per variable (``ask`` for ASK); a row per solution.

    ``stream`` is the stream table, with a column ``arrival`` (rank in system time) when ``seen`` matters.
    ValueError names what Spark does not evaluate, or due reports that are out of order. A job over running totals
    (from ``many`` reports on) can fail with INEXACT in its message: ask again with a greater ``many``.
    """
    names = _columns(query)
    if not due:
        return spark.createDataFrame([], _schema("report int", names))
    found = _solutions(spark, stream, due, query, static, many)
    if isinstance(query, Ask):
        return _asked(spark, refine(found, 1).frame, len(due))
    found = refine(found, 1)
    return found.frame.select("lo", *map(found.value, names)).toDF("report", *names)


def changes(
    spark: SparkSession,
    stream: DataFrame,
    due: Sequence[DueReport],
    query: Select,
    static: Iterable[Triple] = (),
    many: int = MANY,
) -> DataFrame:
    """Columns ``report``, ``net`` and one term per variable: how many more (or fewer) copies of a row than before.

    The bag of the report before the first is empty. Costs as much as there are solutions, however many reports.
    """
    names = _columns(query)
    if not due:
        return spark.createDataFrame([], _schema("report int, net bigint", names))
    found = _solutions(spark, stream, due, query, static, many)
    terms = [found.value(name).alias(f"t{index}") for index, name in enumerate(names)]
    come = found.frame.select(fn.col("lo").alias("report"), fn.lit(1).alias("net"), *terms)
    go = found.frame.select((fn.col("hi") + 1).alias("report"), fn.lit(-1).alias("net"), *terms)
    keys = ["report", *(f"t{index}" for index in range(len(names)))]
    summed = come.unionByName(go).filter(fn.col("report") < len(due)).groupBy(*keys).agg(fn.sum("net").alias("net"))
    return summed.filter(fn.col("net") != 0).select("report", "net", *keys[1:]).toDF("report", "net", *names)


def _columns(query: QueryForm) -> tuple[str, ...]:
    if (reason := refuse(query)) is not None or isinstance(query, Construct):
        raise ValueError(reason)
    return ("ask",) if isinstance(query, Ask) else query.variables


def _schema(first: str, names: Sequence[str]) -> str:
    return ", ".join([first, *(f"`{name}` string" for name in names)])


def _solutions(
    spark: SparkSession,
    stream: DataFrame,
    due: Sequence[DueReport],
    query: QueryForm,
    static: Iterable[Triple],
    many: int,
) -> Relation:
    """The solutions over intervals of reports, projected to the form's variables."""
    graphs = {None: gather(spark, stream, due, static, reads(query.pattern)[None])}
    compiler = Compiler(graphs, numeric_variables(query.pattern), many)
    return compiler.relation(query.pattern).project(query.variables if isinstance(query, Select) else ())


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
