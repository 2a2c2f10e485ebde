"""Validity intervals: in which reports (first to last index) each triple of a stream is.

``first``, ``last`` and ``seen`` of due reports never decrease, so an arrival is in a contiguous range of them.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import pairwise

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as fn

from streamgauge.model.report import DueReport

TRIPLE = ("subject", "predicate", "object")


def intervals(spark: SparkSession, stream: DataFrame, due: Sequence[DueReport]) -> DataFrame:
    """Columns subject, predicate, object, lo, hi: one row per arrival that is in a report (repeats kept)."""
    _check(due)
    time = fn.col("time")
    frame = _counted(spark, stream, "lo", time, [report.last for report in due])
    frame = _counted(spark, frame, "hi", time + 1, [report.views[0].first for report in due])
    frame = frame.withColumn("hi", fn.col("hi") - 1)
    if "arrival" in stream.columns:
        frame = _counted(spark, frame, "known", fn.col("arrival") + 1, [report.seen for report in due])
        frame = frame.withColumn("lo", fn.greatest("lo", "known"))
    return frame.filter("lo <= hi").select(*TRIPLE, "lo", "hi")


def longest(due: Sequence[DueReport]) -> int:
    """An upper bound of the number of reports that one arrival is in."""
    firsts = [report.views[0].first for report in due]
    return max((bisect_right(firsts, report.last) - index for index, report in enumerate(due)), default=1)


def repeats(frame: DataFrame) -> bool:
    """Whether a triple may occur twice (equal hashes count as equal): then its intervals must be merged."""
    counted = frame.agg(fn.count("*"), fn.count_distinct(fn.xxhash64(*TRIPLE))).head()
    return counted is not None and counted[0] != counted[1]


def merged(frame: DataFrame) -> DataFrame:
    """One row per triple and maximal interval: overlapping and adjacent intervals of equal triples joined."""
    ordered = Window.partitionBy(*TRIPLE).orderBy("lo", "hi")
    before = fn.max("hi").over(ordered.rowsBetween(Window.unboundedPreceding, -1))
    starts = fn.when(fn.col("lo") > fn.coalesce(before, fn.lit(-2)) + 1, 1).otherwise(0)
    islands = frame.withColumn("start", starts).withColumn("island", fn.sum("start").over(ordered))
    found = islands.groupBy(*TRIPLE, "island").agg(fn.min("lo").alias("lo"), fn.max("hi").alias("hi"))
    return found.select(*TRIPLE, "lo", "hi")


def _check(due: Sequence[DueReport]) -> None:
    for name in ("first", "last", "seen"):
        values = [getattr(report.views[0], name) for report in due]
        if any(later < earlier for earlier, later in pairwise(values)):
            raise ValueError(f"due reports are out of order: {name} decreases, so an arrival is in no range of them")


def _counted(spark: SparkSession, frame: DataFrame, name: str, value: Column, bounds: Sequence[int]) -> DataFrame:
    """Adds column ``name``: how many of the (sorted) bounds are below the value."""
    steps = {later - earlier for earlier, later in pairwise(bounds)}
    if len(steps) > 1:
        return _looked_up(spark, frame, name, value, bounds)
    above = (value - (bounds[0] + 1)).cast("long")
    count = fn.lit(len(bounds))
    if step := max(steps, default=0):
        count = fn.least(count, fn.floor(above / step) + 1)
    return frame.withColumn(name, fn.when(above < 0, 0).otherwise(count).cast("int"))


def _looked_up(spark: SparkSession, frame: DataFrame, name: str, value: Column, bounds: Sequence[int]) -> DataFrame:
    key = f"{name}_of"
    keyed = frame.withColumn(key, value.cast("long"))
    values = keyed.select(key).distinct().toArrow().column(0).to_pylist()
    positions = pa.array([bisect_left(bounds, item) for item in values], pa.int32())
    table = pa.table({key: pa.array(values, pa.int64()), name: positions})
    return keyed.join(spark.createDataFrame(table), key).drop(key)
