"""One pass over rows in order of their key and first report: what plain Spark expressions cannot do in linear time."""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from itertools import groupby, islice
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

Row = tuple[Any, ...]
Sweep = Callable[[Iterable[Row]], Iterator[Row]]
"""The rows of one key, without it and by ascending ``lo`` (their first column), to the rows that follow from them."""

_BATCH = 20_000
_ARROW = {"int": pa.int32(), "bigint": pa.int64(), "double": pa.float64(), "string": pa.string()}


def swept(frame: DataFrame, keys: Sequence[str], sweep: Sweep, result: Mapping[str, str]) -> DataFrame:
    """Columns of the keys (strings) and of ``result`` (column to Spark type): what ``sweep`` makes of each key's rows.

    The other columns of the frame, ``lo`` first, are a row. Without keys everything is one key's, in one task.
    """
    others = [name for name in frame.columns if name not in keys]
    parts = frame.repartition(*keys) if keys else frame.repartition(1)
    ordered = parts.select(*keys, *others).sortWithinPartitions(*keys, "lo")
    kinds = dict.fromkeys(keys, "string") | dict(result)
    schema = pa.schema([(name, _ARROW[kind]) for name, kind in kinds.items()])
    width = len(keys)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return _batches(_by_key(_rows(batches), width, sweep), schema)

    return ordered.mapInArrow(run, ", ".join(f"`{name}` {kind}" for name, kind in kinds.items()))


def _rows(batches: Iterable[pa.RecordBatch]) -> Iterator[Row]:
    for batch in batches:
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def _by_key(rows: Iterable[Row], width: int, sweep: Sweep) -> Iterator[Row]:
    for key, group in groupby(rows, key=lambda row: row[:width]):
        for made in sweep(row[width:] for row in group):
            yield (*key, *made)


def _batches(rows: Iterator[Row], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    while chunk := list(islice(rows, _BATCH)):
        columns = zip(*chunk, strict=True)
        arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


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
