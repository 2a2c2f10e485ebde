"""Validity intervals: in which reports (first to last index) each triple of a stream is, window by window.

``first``, ``last``, ``seen`` and ``after`` of a window's views never decrease, so an arrival is in a contiguous range.
``swept`` makes one pass over the rows of each key in order of their first report, which Spark's own operators cannot do
in linear time.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import reduce
from heapq import heappop, heappush
from itertools import accumulate, pairwise, takewhile
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as fn

from streamgauge.model.query import StreamWindow
from streamgauge.model.report import DueReport, View
from streamgauge.model.semantics import Changes, Counting, Report
from streamgauge.model.terms import Term

TRIPLE = ("subject", "predicate", "object")
_NEVER = 1 << 62


class IntervalSource(NamedTuple):
    """One window: its position among a report's views, its stream (``None``: every element), the graph it feeds."""

    position: int
    stream: str | None = None
    graph: Term | None = None


def sources(windows: Sequence[StreamWindow]) -> tuple[IntervalSource, ...]:
    """The windows of a query; without any, one over every element that feeds the default graph."""
    if not windows:
        return (IntervalSource(0),)
    return tuple(
        IntervalSource(position, window.stream, None if window.name is None else f"<{window.name}>")
        for position, window in enumerate(windows)
    )


def intervals(stream: DataFrame, due: Sequence[DueReport], sources: Sequence[IntervalSource]) -> DataFrame:
    """Columns of the stream, window, lo, hi: one row per arrival that is in a view of a window (repeats kept).

    ``window`` is a position in ``given``. ValueError when the views of a window go back.
    """
    frames = [_held(stream, due, source) for source in sources]
    return reduce(DataFrame.unionByName, frames)


def _held(stream: DataFrame, due: Sequence[DueReport], source: IntervalSource) -> DataFrame:
    views = [report.views[source.position] for report in due]
    skipped = sum(1 for _ in takewhile(_nothing, views))
    frame = stream if source.stream is None else stream.filter(fn.col("stream") == source.stream)
    kept = [*stream.columns, fn.lit(source.position).alias("window")]
    views = views[skipped:]
    if not views:
        return frame.filter(fn.lit(False)).select(*kept, fn.lit(0).alias("lo"), fn.lit(0).alias("hi"))
    _check(views)
    frame, starts = _bounded(frame, _starts(stream, views))
    frame, ends = _bounded(frame, _ends(stream, views))
    low, high = fn.greatest(*starts, fn.lit(0)) + skipped, fn.least(*ends, fn.lit(len(views))) + (skipped - 1)
    rows = frame.select(*kept, low.alias("lo"), high.alias("hi")).filter("lo <= hi")
    return rows if len(due) > 1 else rows.withColumns({"lo": fn.lit(0), "hi": fn.lit(0)})  # known, so never joined by


def _nothing(view: View) -> bool:
    return view.last < view.first


_Bounds = dict[str, tuple[Column, list[int]]]
"""Column to add -> (a value, sorted bounds): how many bounds are below the value."""


def _starts(stream: DataFrame, views: Sequence[View]) -> _Bounds:
    """The condition that an arrival is in a view: visible, and not later than the view's last time."""
    starts = {"reached": (fn.col("time"), [view.last for view in views])}
    if "arrival" in stream.columns:
        starts["known"] = (fn.col("arrival") + 1, [view.seen for view in views])
    return starts


def _ends(stream: DataFrame, views: Sequence[View]) -> _Bounds:
    """Why a triple leaves: too early for the view, too far back in system time, or its own end."""
    ends = {"left": (fn.col("time") + 1, [view.first for view in views])}
    if "arrival" in stream.columns and views[-1].after:
        ends["passed"] = (fn.col("arrival") + 1, [view.after for view in views])
    if "until" in stream.columns:
        ends["ended"] = (fn.coalesce("until", fn.lit(_NEVER)), [view.last for view in views])
    return ends


def _bounded(frame: DataFrame, bounds: _Bounds) -> tuple[DataFrame, list[Column]]:
    for name, (value, values) in bounds.items():
        frame = _counted(frame, name, value, values)
    return frame, [fn.col(name) for name in bounds]


def longest(due: Sequence[DueReport], sources: Sequence[IntervalSource]) -> int:
    """An upper bound of the number of reports that one arrival is in."""
    return max((_longest([report.views[source.position] for report in due]) for source in sources), default=1)


def _longest(views: Sequence[View]) -> int:
    skipped = sum(1 for _ in takewhile(_nothing, views))
    firsts = [view.first for view in views[skipped:]]
    # Whatever enters with view i has left by the first view that begins after the end of view i.
    return max((bisect_right(firsts, view.last) - i for i, view in enumerate(views[skipped:])), default=1)


def repeats(frame: DataFrame, keys: Sequence[str] = TRIPLE) -> bool:
    """Whether a key may occur twice (equal hashes count as equal): then its intervals must be merged."""
    counted = frame.agg(fn.count("*"), fn.count_distinct(fn.xxhash64(*keys))).head()
    return counted is not None and counted[0] != counted[1]


def merged(frame: DataFrame, keys: Sequence[str] = TRIPLE) -> DataFrame:
    """One row per key and maximal interval: overlapping and adjacent intervals of equal keys joined."""
    merged_rows = islands(frame, keys).groupBy(*keys, "island").agg(fn.min("lo").alias("lo"), fn.max("hi").alias("hi"))
    return merged_rows.select(*keys, "lo", "hi")


def islands(frame: DataFrame, keys: Sequence[str]) -> DataFrame:
    """The rows with a column ``island``: the number of the key's maximal interval that a row is in."""
    ordered = Window.partitionBy(*keys).orderBy("lo", "hi")
    # The greatest end so far, which need not be that of the row before.
    before = fn.max("hi").over(ordered.rowsBetween(Window.unboundedPreceding, -1))
    # Indexes begin at 0, so with -2 the first row of a key always starts an island.
    starts = fn.when(fn.col("lo") > fn.coalesce(before, fn.lit(-2)) + 1, 1).otherwise(0)
    return frame.withColumn("start", starts).withColumn("island", fn.sum("start").over(ordered)).drop("start")


def _check(views: Sequence[View]) -> None:
    for name in ("first", "last", "seen", "after"):
        values = [getattr(view, name) for view in views]
        if any(later < earlier for earlier, later in pairwise(values)):
            raise ValueError(f"due reports are out of order: {name} decreases, so an arrival is in no range of them")


def _counted(frame: DataFrame, name: str, value: Column, bounds: Sequence[int]) -> DataFrame:
    """Adds column ``name``: how many of the (sorted) bounds are below the value."""
    steps = {later - earlier for earlier, later in pairwise(bounds)}
    # Evenly spaced bounds are a division in Spark; only uneven ones need Python.
    if len(steps) > 1:
        return frame.withColumn(name, _looked_up(bounds)(value.cast("long")))
    above = value.cast("long") - fn.lit(bounds[0] + 1)
    count = fn.lit(len(bounds))
    # Worked example: bounds 10, 15, 20 and the value 17. (17 - 11) / 5 is 1.2, so 1 + 1 bounds are below it.
    if step := max(steps, default=0):
        count = fn.least(count, fn.floor(above / step) + 1)
    return frame.withColumn(name, fn.when(above < 0, 0).otherwise(count).cast("int"))


def _looked_up(bounds: Sequence[int]) -> Callable[[Column], Column]:
    def find(values: pa.Array) -> pa.Array:
        # Many rows share a time: each is searched once.
        once = values.dictionary_encode()
        places = [bisect_left(bounds, value) for value in once.dictionary.to_pylist()]
        return pa.array(places, pa.int32()).take(once.indices)

    lookup: Callable[[Column], Column] = fn.arrow_udf(find, "int")
    return lookup


Row = tuple[Any, ...]
Sweep = Callable[[Iterable[Row]], Iterator[Row]]
"""The rows of one key, without it and by ascending ``lo`` (their first column), to the rows that follow from them."""

_ARROW = {"int": pa.int32(), "bigint": pa.int64(), "double": pa.float64(), "string": pa.string()}


def swept(frame: DataFrame, keys: Sequence[str], sweep: Sweep, result: Mapping[str, str]) -> DataFrame:
    """Columns of the keys and of ``result`` (column to Spark type): what ``sweep`` makes of each key's rows.

    The other columns of the frame, ``lo`` first, are a row. Without keys all rows are one key's, even when none is.
    """
    others = [name for name in frame.columns if name not in keys]
    rows = fn.sort_array(fn.collect_list(fn.struct(*others))).alias("rows")
    kind = ", ".join(f"`{name}`: {kind}" for name, kind in result.items())
    fields = [pa.field(name, _ARROW[kind]) for name, kind in result.items()]

    def run(groups: pa.Array) -> pa.Array:
        return _nested([list(sweep(group)) for group in _groups(groups)], fields)

    # One call of Python has a batch of groups, so that small groups do not each cost a call.
    rows_out = fn.arrow_udf(run, f"array<struct<{kind}>>")(fn.col("rows"))
    return frame.groupBy(*keys).agg(rows).select(*keys, fn.inline(rows_out))


def _groups(groups: pa.Array) -> Iterator[list[Row]]:
    """Explode a list of structs to rows, per group."""
    offsets = groups.offsets.to_pylist()
    flat = groups.values
    for low, high in pairwise(offsets):
        part = flat.slice(low, high - low).flatten()
        yield list(zip(*(column.to_pylist() for column in part), strict=True))


def _nested(groups: Sequence[Sequence[Row]], fields: Sequence[pa.Field]) -> pa.Array:
    offsets = [0]
    for group in groups:
        offsets.append(offsets[-1] + len(group))
    columns = list(zip(*(row for group in groups for row in group), strict=True)) or [()] * len(fields)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, fields, strict=True)]
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.StructArray.from_arrays(arrays, fields=fields))


def latest(rows: Iterable[Row]) -> Iterator[Row]:
    """Rows (lo, hi, value) as disjoint intervals of reports, each with the greatest value valid there."""
    heap: list[tuple[int, int]] = []  # (-value, hi)
    at = 0
    for low, high, value in rows:
        at = yield from _greatest(heap, at, low)
        heappush(heap, (-value, high))
    yield from _greatest(heap, at, None)


def _greatest(heap: list[tuple[int, int]], at: int, until: int | None) -> Generator[Row, None, int]:
    """The greatest value from ``at`` to before ``until``."""
    while heap and (until is None or at < until):
        value, high = heap[0]
        # Only the top has to be valid: an ended value below it costs nothing until it gets there.
        if high < at:
            heappop(heap)
            continue
        end = high if until is None else min(high, until - 1)
        yield at, end, -value
        at = end + 1
    return until if until is not None else at


_PAIR = ("window", *TRIPLE)


@dataclass(frozen=True, slots=True)
class ContentSizes:
    """The number of (window, triple) pairs of each report (``sizes``); the reports whose content is not the last one's.

    The first report's is compared with the empty content; under ``Changes.ARRIVALS`` only arrivals count.
    """

    sizes: tuple[int, ...]
    changed: frozenset[int]

    def due(self, report: Set[Report], skip: int = 0) -> list[int]:
        """The indexes of the reports, from ``skip`` on, that their contents make due under a strategy ``report``."""
        return [
            place
            for place, size in enumerate(self.sizes)
            if place >= skip
            and (size or Report.NON_EMPTY not in report)
            and (place in self.changed or Report.CONTENT_CHANGE not in report)
        ]


def contents(
    stream: DataFrame,
    due: Sequence[DueReport],
    windows: Sequence[StreamWindow] = (),
    counting: Counting = Counting.SET,
    changes: Changes = Changes.BOTH,
) -> ContentSizes:
    """The contents of the due reports, without their triples; copies of a triple count in a bag only."""
    if not due:
        return ContentSizes((), frozenset())
    pairs = _pairs(stream, due, windows, counting)
    counts = pairs.groupBy("lo", "hi").agg(fn.count("*").alias("count")).toArrow().to_pydict()
    # Differences from report to report, whose running sums are the sizes.
    steps, edges = [0] * (len(due) + 1), set[int]()
    for low, high, count in zip(*counts.values(), strict=True):
        steps[low] += count
        steps[high + 1] -= count
        edges |= {low} if changes is Changes.ARRIVALS else {low, high + 1}
    if counting is Counting.BAG:
        # In a bag, a copy may enter as another one leaves, and the content is the same.
        edges = _net(pairs, changes)
    return ContentSizes(tuple(accumulate(steps))[: len(due)], frozenset(edges - {len(due)}))


def _pairs(
    stream: DataFrame,
    due: Sequence[DueReport],
    windows: Sequence[StreamWindow],
    counting: Counting,
) -> DataFrame:
    """Pairs with intervals: maximal ones of each pair for a set, one per arrival for a bag."""
    frame = intervals(stream, due, sources(windows)).select(*_PAIR, "lo", "hi")
    return merged(frame, _PAIR) if counting is Counting.SET and repeats(frame, _PAIR) else frame


def _net(frame: DataFrame, changes: Changes) -> set[int]:
    """The reports at which some pair has more copies than before, or, if removals count, fewer."""
    come = frame.select(*_PAIR, fn.col("lo").alias("at"), fn.lit(1).alias("net"))
    go = frame.select(*_PAIR, (fn.col("hi") + 1).alias("at"), fn.lit(-1).alias("net"))
    summed = come.unionByName(go).groupBy("at", *_PAIR).agg(fn.sum("net").alias("net"))
    counts = fn.col("net") > 0 if changes is Changes.ARRIVALS else fn.col("net") != 0
    return set(summed.filter(counts).select("at").distinct().toArrow().column(0).to_pylist())
