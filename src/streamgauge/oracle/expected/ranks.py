"""The order of arrivals of a stream table on Spark, which decides the reports that no clock sets.

The driver keeps the times of the arrivals, and each row on Spark gets the rank of its arrival.
"""

from array import array
from collections.abc import Sequence
from typing import Final

import numpy as np
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as fn

from streamgauge.formats.stream import UNTIL
from streamgauge.model.query import StreamWindow
from streamgauge.model.semantics import Due, Report, Semantics, Tick
from streamgauge.oracle.expected.due_table import Numbers
from streamgauge.semantics.arrivals import Arrivals, by_triple

RANK: Final = "arrival"
"""The column of a row's rank (``Arrivals``)."""

MAX_REPORTS: Final = 300_000
"""Reports that arrivals make due and that are aligned in order: each takes about a kilobyte in the driver."""

MAX_ARRIVALS: Final = 10_000_000
"""Arrivals that the driver orders, each of which takes about 50 bytes there."""

_BLOCK: Final = 1 << 20
"""Arrivals that one task ranks, about."""


class ArrivalsError(ValueError):
    """More arrivals, or reports that they make due, than fit the driver; the message has the limit."""


def needs_arrivals(windows: Sequence[StreamWindow], semantics: Semantics) -> bool:
    """Whether arrivals decide which reports are due or what they contain, rather than a clock alone."""
    clocked = {Report.WINDOW_CLOSE, Report.PERIODIC} & semantics.report or semantics.tick is Tick.TIME
    counted = any(window.window.kind == "count" for window in windows)
    return counted or not clocked or semantics.due is Due.LAST or Report.EXPIRATION in semantics.report


def arrived(table: DataFrame, triples: int, windows: Sequence[StreamWindow], semantics: Semantics) -> Arrivals:
    """The arrivals of a stream table of at most that many triples, all admitted; ArrivalsError for too many."""
    # One row per element where a whole element arrives at once: that of its first triple.
    heads = table if by_triple(windows, semantics.tick) else table.filter(fn.col("position") == 0)
    if triples > MAX_ARRIVALS and heads.count() > MAX_ARRIVALS:
        raise ArrivalsError(f"reports that more than {MAX_ARRIVALS:,} arrivals make due")
    until = [UNTIL.name] if UNTIL.name in table.columns else []
    collected = heads.select("time", "sequence", "stream", *until).toArrow()
    times, sequences = (collected.column(name).to_numpy() for name in ("time", "sequence"))
    # Of two keys the last one is the primary one.
    order = np.lexsort((sequences, times))
    ordered = collected.take(order)
    # One string per stream, not one per arrival.
    streams = ordered.column("stream").combine_chunks().dictionary_encode()
    names = streams.dictionary.to_pylist()
    ends = tuple(ordered.column(UNTIL.name).to_pylist()) if until else (None,) * len(order)
    return Arrivals(
        _integers(times[order]),
        tuple(names[code] for code in streams.indices.to_pylist()),
        _integers(sequences[order]),
        ends,
    )


def _integers(values: Numbers) -> "array[int]":
    """The values in 8 bytes each, as Python's integers when they are read."""
    return array("q", values.tobytes())


def refuse_reports(number: int) -> None:
    """ArrivalsError if more reports than MAX_REPORTS, which arrivals make due, would be aligned in the driver."""
    if number > MAX_REPORTS:
        raise ArrivalsError(f"more than {MAX_REPORTS:,} reports that arrivals make due, and answers without instants")


def ranked(table: DataFrame, arrivals: Arrivals, windows: Sequence[StreamWindow], tick: Tick) -> DataFrame:
    """The rows with their ``RANK``, counted within blocks of time, each from the arrivals before it.

    Worked example: times 1 1 5 6 in blocks of 4 ms: the blocks 0 and 1 begin at the ranks 0 and 2, so the row at 6, the
    second of its block, has rank 3.
    """
    times = np.asarray(arrivals.times, np.int64)
    if not len(times):
        return table.withColumn(RANK, fn.lit(0).cast("long"))
    first = int(times[0])
    # Blocks of time and not of ranks: a row's block must follow from the row alone.
    # Worked example: 4 million arrivals over 8,000 s give blocks of 2,097 s, each with about a million arrivals where
    # they are evenly spread.
    width = max(1, (int(times[-1]) - first) * _BLOCK // len(times))
    blocks = np.unique((times - first) // width)
    offsets = np.searchsorted(times, blocks * width + first)
    begins = fn.create_map(*(fn.lit(int(part)) for pair in zip(blocks, offsets, strict=True) for part in pair))
    block = fn.floor((fn.col("time") - first) / width)
    order = Window.partitionBy(block).orderBy("time", "sequence", *(["position"] if by_triple(windows, tick) else []))
    # Without ranks for triples all rows of an element share one.
    within = fn.row_number() if by_triple(windows, tick) else fn.dense_rank()
    return table.withColumn(RANK, (begins[block] + within.over(order) - 1).cast("long"))
