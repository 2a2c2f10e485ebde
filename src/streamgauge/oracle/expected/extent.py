"""How far a stream table on Spark reaches, and which of its elements are late: a few numbers, whatever its size."""

from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as fn

from streamgauge.model.query import StreamWindow
from streamgauge.model.semantics import Semantics
from streamgauge.semantics.arrivals import frontier

BLOCK: Final = 1 << 20
"""Sequence numbers that one task sorts; one row per block reaches the driver."""


class Extent(NamedTuple):
    """The first element's time, the latest time (ms), how many triples; ``ordered`` when no element goes back.

    ``reached`` has the greatest time before each block of sequence numbers but the first that has elements.
    """

    first: int | None
    last: int
    triples: int
    ordered: bool
    reached: Mapping[int, int]


def extent(table: DataFrame, streams: Collection[str]) -> Extent:
    """The extent of a stream table; ``ordered`` considers the elements of these streams only.

    Worked example: blocks of 4 of times 1 1 2 2 | 2 3 5 4 | 5 6: within the second block 4 follows 5, so the elements
    are not in order. With 1 1 2 9 | 2 3 the blocks are, but 9 is above the second block's 2.
    """
    first, last, triples = table.agg(fn.min_by("time", "sequence"), fn.max("time"), fn.count("*")).first() or (
        None,
        0,
        0,
    )
    # A window without partitions would sort the whole stream in one task.
    within = Window.partitionBy("block").orderBy("sequence")
    back = (fn.col("time") < fn.lag("time").over(within)).alias("back")
    blocks = _heads(table, streams).select("block", "time", back).groupBy("block")
    extents = (
        blocks.agg(fn.min("time"), fn.max("time"), fn.coalesce(fn.max("back"), fn.lit(False))).sort("block").collect()
    )
    ordered, greatest, reached = True, None, dict[int, int]()
    for block, least, largest, goes_back in extents:
        ordered &= not goes_back and (greatest is None or least >= greatest)
        # Null before the first block: there nothing can be late.
        if greatest is not None:
            reached[block] = greatest
        greatest = largest if greatest is None else max(greatest, largest)
    return Extent(first, last or 0, triples, ordered, reached)


def _heads(table: DataFrame, streams: Collection[str]) -> DataFrame:
    """The elements of these streams, with the blocks of their sequence numbers."""
    own = table.filter(fn.col("position") == 0).filter(fn.col("stream").isin(*sorted(streams)))
    return own.select("time", "sequence", fn.floor(fn.col("sequence") / BLOCK).alias("block"))


def admitted(
    table: DataFrame, reach: Extent, semantics: Semantics, windows: Sequence[StreamWindow], t0: int
) -> DataFrame:
    """The rows of a stream table without late elements (``arrivals.admit``), under a t0 (ms) and a lateness bound.

    Worked example: a bound of 2 ms, windows that close at 10, 20, ..., times 8 13 9 | 21: when 13 has come, the window
    up to 10 is closed, so 9 is late. The second block begins with 13, the greatest time of the first, and asks for no
    other of its elements.
    """
    if reach.ordered:
        return table
    within = Window.partitionBy("block").orderBy("sequence").rowsBetween(Window.unboundedPreceding, -1)
    heads = _heads(table, {window.stream for window in windows})
    before = fn.greatest(_reached(reach.reached), fn.max("time").over(within))
    back = heads.select("sequence", "time", before.alias("before")).filter("time < before")

    def is_late(times: pa.Array, greatest: pa.Array) -> pa.Array:
        # Not an expression of Spark: the border of late elements has one definition, for all evaluators.
        border, bound = frontier(semantics, windows, t0), semantics.lateness or 0
        pairs = zip(times.to_pylist(), greatest.to_pylist(), strict=True)
        return pa.array([time < border(reached - bound) for time, reached in pairs], pa.bool_())

    late = back.filter(fn.arrow_udf(is_late, "boolean")("time", "before"))
    return table.join(late.select("sequence"), "sequence", "left_anti")


def _reached(reached: Mapping[int, int]) -> Column:
    """The greatest time before the block of a row; null before the first."""
    pairs = [fn.lit(part) for pair in reached.items() for part in pair]
    return fn.create_map(*pairs)[fn.col("block")] if pairs else fn.lit(None).cast("long")
