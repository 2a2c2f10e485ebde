"""How much each report's content holds, and which contents change: over (window, triple) pairs, never over stamps."""

from collections.abc import Iterator, Sequence
from itertools import accumulate

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from streamgauge.compute.spark.intervals import TRIPLE, intervals, merged, repeats, sources
from streamgauge.model.query import StreamWindow
from streamgauge.model.report import DueReport
from streamgauge.model.semantics import Changes, Counting

_PAIR = ("window", *TRIPLE)


def sizes(
    spark: SparkSession,
    stream: DataFrame,
    due: Sequence[DueReport],
    windows: Sequence[StreamWindow] = (),
    counting: Counting = Counting.SET,
) -> DataFrame:
    """Columns ``report`` and ``content``: the number of (window, triple) pairs in each report, distinct for a set."""
    steps = [0] * (len(due) + 1)
    for low, high, count in _counts(_held(spark, stream, due, windows, counting) if due else None):
        steps[low] += count
        steps[high + 1] -= count
    content = pa.array(list(accumulate(steps))[: len(due)], pa.int64())
    return spark.createDataFrame(pa.table({"report": pa.array(range(len(due)), pa.int32()), "content": content}))


def changed(
    spark: SparkSession,
    stream: DataFrame,
    due: Sequence[DueReport],
    windows: Sequence[StreamWindow] = (),
    counting: Counting = Counting.SET,
    changes: Changes = Changes.BOTH,
) -> frozenset[int]:
    """The reports whose content differs from that of the report before (the first: from the empty content).

    Only what comes counts under ``Changes.ARRIVALS``.
    """
    if not due:
        return frozenset()
    held = _held(spark, stream, due, windows, counting)
    if counting is Counting.BAG:
        found = _net(held, changes)
    elif changes is Changes.ARRIVALS:
        found = {low for low, _, _ in _counts(held)}
    else:
        found = {edge for low, high, _ in _counts(held) for edge in (low, high + 1)}
    return frozenset(found - {len(due)})


def _held(
    spark: SparkSession,
    stream: DataFrame,
    due: Sequence[DueReport],
    windows: Sequence[StreamWindow],
    counting: Counting,
) -> DataFrame:
    """Pairs with intervals: maximal ones of each pair for a set, one per arrival for a bag."""
    frame = intervals(spark, stream, due, sources(windows)).select(*_PAIR, "lo", "hi")
    return merged(frame, _PAIR) if counting is Counting.SET and repeats(frame, _PAIR) else frame


def _counts(frame: DataFrame | None) -> Iterator[tuple[int, int, int]]:
    """How many rows have each interval of reports."""
    if frame is None:
        return
    table = frame.groupBy("lo", "hi").agg(fn.count("*").alias("count")).toArrow()
    yield from zip(*(table.column(name).to_pylist() for name in ("lo", "hi", "count")), strict=True)


def _net(frame: DataFrame, changes: Changes) -> set[int]:
    """The reports at which some pair has more copies than before, or fewer ones where those count too."""
    come = frame.select(*_PAIR, fn.col("lo").alias("at"), fn.lit(1).alias("net"))
    go = frame.select(*_PAIR, (fn.col("hi") + 1).alias("at"), fn.lit(-1).alias("net"))
    summed = come.unionByName(go).groupBy("at", *_PAIR).agg(fn.sum("net").alias("net"))
    counts = fn.col("net") > 0 if changes is Changes.ARRIVALS else fn.col("net") != 0
    return set(summed.filter(counts).select("at").distinct().toArrow().column(0).to_pylist())
