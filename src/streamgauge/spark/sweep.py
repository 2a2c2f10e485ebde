"""One pass over each key's rows in order of their first report: what plain Spark cannot do in linear time."""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from itertools import pairwise
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

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

    made = fn.arrow_udf(run, f"array<struct<{kind}>>")(fn.col("rows"))
    return frame.groupBy(*keys).agg(rows).select(*keys, fn.inline(made))


def _groups(groups: pa.Array) -> Iterator[list[Row]]:
    """The rows of each group of a list of structs."""
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
    """Rows (lo, hi, value) to disjoint ones: over which reports a value is the greatest of those that are there."""
    heap: list[tuple[int, int]] = []  # (-value, hi)
    at = 0
    for low, high, value in rows:
        at = yield from _greatest(heap, at, low)
        heappush(heap, (-value, high))
    yield from _greatest(heap, at, None)


def _greatest(heap: list[tuple[int, int]], at: int, until: int | None) -> Generator[Row, None, int]:
    """What is the greatest from ``at`` to before ``until``."""
    while heap and (until is None or at < until):
        value, high = heap[0]
        if high < at:
            heappop(heap)
            continue
        end = high if until is None else min(high, until - 1)
        yield at, end, -value
        at = end + 1
    return until if until is not None else at
