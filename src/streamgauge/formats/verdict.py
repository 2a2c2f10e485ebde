"""Verdicts in a run folder: ``verdict.json`` for the whole run, ``windows.parquet`` for its windows."""

from collections.abc import Sequence
from dataclasses import fields
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa

from streamgauge.formats import observed, tables
from streamgauge.formats.fields import FieldError, decode, encode
from streamgauge.formats.run import RunError, read_json, write_json
from streamgauge.model.verdict import Verdict, WindowVerdict

FORMAT = "streamgauge verdict"
VERSION = 1

_BAGS = ("missing", "surplus", "doubtful")
_OPTIONAL = ("start", "end", "instant", "report", "delay", "borders", "fitted")
_PAIRS = {"borders": pa.int64(), "fitted": pa.float64()}
_SHARES = ("precision", "recall", "delay")
_LATER = ("late",)
"""Columns that folders of earlier versions do not have: their windows were not late."""


def _column(name: str) -> pa.Field:
    if name in _BAGS:
        return pa.field(name, pa.list_(pa.list_(pa.string())), nullable=False)
    if name in _PAIRS:
        return pa.field(name, pa.list_(_PAIRS[name], 2))
    kind = pa.bool_() if name in ("due", "late") else pa.float64() if name in _SHARES else pa.int64()
    return pa.field(name, kind, nullable=name in _OPTIONAL or name in _LATER)


WINDOWS = pa.schema([_column(field.name) for field in fields(WindowVerdict)])
"""The columns of windows.parquet, one row per window verdict, named as its fields."""


def write_verdict(path: str | Path, verdict: Verdict) -> None:
    """Write a verdict into a run folder, in place of an earlier one; RunError when it cannot be written."""
    root = Path(path)
    folder = root / "windows.parquet"
    columns = [[getattr(window, name) for window in verdict.windows] for name in WINDOWS.names]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, WINDOWS, strict=True)]
    try:
        tables.write_part(folder, 0, pa.table(arrays, schema=WINDOWS))
    except tables.TableError as error:
        raise RunError(str(error)) from error
    data = {"format": FORMAT, "version": VERSION, "verdict": encode(verdict, leave_out={"windows"})}
    write_json(root / "verdict.json", data)


def read_verdict(path: str | Path) -> Verdict:
    """The verdict in a run folder; RunError names the file and the field or column that is wrong."""
    root = Path(path)
    file = root / "verdict.json"
    data = read_json(file, FORMAT, VERSION)
    try:
        return decode(Verdict, data.get("verdict"), "verdict", {"windows": _windows(root)})
    except FieldError as error:
        raise RunError(f"{file}: field {error}") from error
    except tables.TableError as error:
        raise RunError(str(error)) from error


def _windows(root: Path) -> tuple[WindowVerdict, ...]:
    found = tables.read(root / "windows.parquet", WINDOWS, _LATER)
    columns = [_values(name, found[name]) for name in WINDOWS.names]
    return tuple(WindowVerdict(*values) for values in zip(*columns, strict=True))


def _values(name: str, column: pa.ChunkedArray) -> Sequence[Any]:
    if name in _BAGS:
        return _bags(column)
    values: list[Any] = column.to_pylist()
    if name in _LATER:
        return [bool(value) for value in values]
    return [pair and tuple(pair) for pair in values] if name in _PAIRS else values


def _bags(column: pa.ChunkedArray) -> list[Sequence[Any]]:
    bags: list[Sequence[Any]] = []
    for chunk in column.chunks:
        rows = observed.lists(pa.chunked_array([chunk.flatten()], type=pa.list_(pa.string())))
        borders = accumulate(chunk.value_lengths().to_pylist(), initial=0)
        bags.extend(tuple(rows[begin:end]) for begin, end in pairwise(borders))
    return bags
