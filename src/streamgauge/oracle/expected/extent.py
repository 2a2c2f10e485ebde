"""How far a stream table on Spark reaches, and whether its elements are in order: a few numbers, whatever its size."""

from collections.abc import Collection
from typing import Final, NamedTuple

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as fn

BLOCK: Final = 1 << 20
"""Sequence numbers that one task looks at in order; a row for each such block comes to the driver."""


class Extent(NamedTuple):
    """The first element's time, the latest time (ms), how many triples; ``ordered`` when no element goes back."""

    first: int | None
    last: int
    triples: int
    ordered: bool


def extent(table: DataFrame, streams: Collection[str]) -> Extent:
    """The extent of a stream table; ``ordered`` speaks of the elements of these streams alone.

    Worked example: blocks of 4 of times 1 1 2 2 | 2 3 5 4 | 5 6: within the second block 4 follows 5, so the elements
    are not in order. With 1 1 2 9 | 2 3 the blocks are, but 9 is above the second block's 2.
    """
    first, last, triples = table.agg(fn.min_by("time", "sequence"), fn.max("time"), fn.count("*")).first() or (
        None,
        0,
        0,
    )
    own = table.filter(fn.col("position") == 0).filter(fn.col("stream").isin(*sorted(streams)))
    block = Window.partitionBy("block").orderBy("sequence")
    placed = own.select("time", "sequence", fn.floor(fn.col("sequence") / BLOCK).alias("block"))
    back = (fn.col("time") < fn.lag("time").over(block)).alias("back")
    blocks = placed.select("block", "time", back).groupBy("block")
    extents = (
        blocks.agg(fn.min("time"), fn.max("time"), fn.coalesce(fn.max("back"), fn.lit(False))).sort("block").collect()
    )
    ordered, greatest = True, None
    for _block, least, largest, goes_back in extents:
        ordered &= not goes_back and (greatest is None or least >= greatest)
        greatest = largest
    return Extent(first, last or 0, triples, ordered)
