"""Window verdicts as a table: windows.parquet of a run folder, and those of a judge that are too many for memory."""

from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from typing import Any, Final

import pyarrow as pa

from streamgauge.formats import tables
from streamgauge.formats.paged import RecordForm, gathered
from streamgauge.model.verdict import WindowVerdict

_LATER = ("late",)
"""Columns that folders of earlier versions lack."""

WINDOWS = tables.schema_of(WindowVerdict, _LATER)
"""The columns of windows.parquet, one row per window verdict, named like its fields."""


def windows_table(windows: Sequence[WindowVerdict]) -> pa.Table:
    """Window verdicts as a table (``WINDOWS``)."""
    return tables.table_of(WINDOWS, windows)


def window_verdicts(table: pa.Table) -> tuple[WindowVerdict, ...]:
    """The window verdicts of a table (``windows_table``)."""
    columns = [_values(field, table[field.name]) for field in WINDOWS]  # Spark has pairs as lists of any length
    return tuple(WindowVerdict(*values) for values in zip(*columns, strict=True))


def _values(field: pa.Field, column: pa.ChunkedArray) -> Sequence[Any]:
    if pa.types.is_list(field.type):
        return _bags(column)
    values: list[Any] = column.to_pylist()
    if field.name in _LATER:
        return [bool(value) for value in values]
    return [pair and tuple(pair) for pair in values] if pa.types.is_fixed_size_list(field.type) else values


def _bags(column: pa.ChunkedArray) -> list[Sequence[Any]]:
    bags: list[Sequence[Any]] = []
    for chunk in column.chunks:
        rows = tables.lists(pa.chunked_array([chunk.flatten()], type=pa.list_(pa.string())))
        borders = accumulate(chunk.value_lengths().to_pylist(), initial=0)
        bags.extend(tuple(rows[begin:end]) for begin, end in pairwise(borders))
    return bags


WINDOW_FORM: Final = RecordForm(WINDOWS, window_verdicts, _LATER)


def gathered_windows(windows: Iterable[WindowVerdict]) -> Sequence[WindowVerdict]:
    """Window verdicts that are computed one by one, as a sequence (``paged``)."""
    return gathered(windows, WINDOW_FORM, windows_table)
