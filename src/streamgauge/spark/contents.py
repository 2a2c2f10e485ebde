"""How much each report's content holds, and which contents change: over (window, triple) pairs, never over stamps."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from streamgauge.model.query import StreamWindow
from streamgauge.model.report import DueReport
from streamgauge.model.semantics import Changes, Counting
from streamgauge.spark.intervals import TRIPLE, intervals, merged, repeats, sources

_PAIR = ("window", *TRIPLE)


@dataclass(frozen=True, slots=True)
class Contents:
    """Of each report the number of (window, triple) pairs (``sizes``); the reports whose content is not the last one's.

    The first report's is compared with the empty content; under ``Changes.ARRIVALS`` only what comes counts.
    """

    sizes: tuple[int, ...]
    changed: frozenset[int]


def contents(
    stream: DataFrame,
    due: Sequence[DueReport],
    windows: Sequence[StreamWindow] = (),
    counting: Counting = Counting.SET,
    changes: Changes = Changes.BOTH,
) -> Contents:
    """What the due reports' contents are, without their triples; copies of a triple count in a bag only."""
    if not due:
        return Contents((), frozenset())
    held = _held(stream, due, windows, counting)
    counts = held.groupBy("lo", "hi").agg(fn.count("*").alias("count")).toArrow().to_pydict()
    steps, edges = [0] * (len(due) + 1), set[int]()
    for low, high, count in zip(*counts.values(), strict=True):
        steps[low] += count
        steps[high + 1] -= count
        edges |= {low} if changes is Changes.ARRIVALS else {low, high + 1}
    if counting is Counting.BAG:
        edges = _net(held, changes)
    return Contents(tuple(accumulate(steps))[: len(due)], frozenset(edges - {len(due)}))


def _held(
    stream: DataFrame,
    due: Sequence[DueReport],
    windows: Sequence[StreamWindow],
    counting: Counting,
) -> DataFrame:
    """Pairs with intervals: maximal ones of each pair for a set, one per arrival for a bag."""
    frame = intervals(stream, due, sources(windows)).select(*_PAIR, "lo", "hi")
    return merged(frame, _PAIR) if counting is Counting.SET and repeats(frame, _PAIR) else frame


def _net(frame: DataFrame, changes: Changes) -> set[int]:
    """The reports at which some pair has more copies than before, or fewer ones where those count too."""
    come = frame.select(*_PAIR, fn.col("lo").alias("at"), fn.lit(1).alias("net"))
    go = frame.select(*_PAIR, (fn.col("hi") + 1).alias("at"), fn.lit(-1).alias("net"))
    summed = come.unionByName(go).groupBy("at", *_PAIR).agg(fn.sum("net").alias("net"))
    counts = fn.col("net") > 0 if changes is Changes.ARRIVALS else fn.col("net") != 0
    return set(summed.filter(counts).select("at").distinct().toArrow().column(0).to_pylist())
