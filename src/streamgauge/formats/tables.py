"""Checked Parquet tables: a file or a folder of part files in name order, every column of its declared type.

A folder grows by whole part files, so that what was written before a crash or a full disk stays readable.
"""

import errno
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from streamgauge.model.mistake import MistakeError
from streamgauge.model.obstacles import obstacle

_BATCH = 65_536


class TableError(MistakeError, ValueError):
    """A table that is missing, unreadable or of another shape, or a disk that is full; names the file and column."""


def files(path: Path) -> list[Path]:
    """The Parquet files of a table, in name order, 9 before 10; TableError when there is none."""
    if path.is_dir():
        found = sorted((file for file in path.glob("*.parquet") if not file.name.startswith(("_", "."))), key=_order)
    else:
        found = [path] if path.is_file() else []
    if not found:
        raise TableError(f"{path}: missing: a Parquet file or a folder of Parquet files is expected here")
    return found


def _order(file: Path) -> list[str]:
    """A file's name, its numbers by their value."""
    return [part.zfill(20) if part.isdigit() else part for part in re.split(r"(\d+)", file.name)]


def batches(path: Path, schema: pa.Schema, optional: Collection[str] = ()) -> Iterator[tuple[Path, pa.RecordBatch]]:
    """The rows of a table, batch by batch in the schema's columns, each with the file that it comes from.

    ``optional`` columns that a file does not have are null.
    """
    for file in files(path):
        try:
            with pq.ParquetFile(file) as parquet:
                for batch in parquet.iter_batches(batch_size=_BATCH):
                    yield file, conform(batch, schema, str(file), optional)
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise TableError(f"{file}: not a readable Parquet file: was it cut, or is it of another kind?") from error


def read(path: Path, schema: pa.Schema, optional: Collection[str] = ()) -> pa.Table:
    """The whole table in memory; TableError names file and column."""
    return pa.Table.from_batches([batch for _, batch in batches(path, schema, optional)], schema=schema)


def conform(batch: pa.RecordBatch, schema: pa.Schema, where: str, optional: Collection[str] = ()) -> pa.RecordBatch:
    """The batch with the schema's columns, widths and encodings cast; TableError names ``where`` and column."""
    there = batch.schema.names
    columns = [
        pa.nulls(len(batch), field.type)
        if field.name in optional and field.name not in there
        else _column(batch, field, schema, where)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def write_part(folder: Path, number: int, table: pa.Table) -> Path:
    """Add part file ``number`` to a table's folder, whole or not at all; TableError when the disk is full."""
    part = folder / f"part-{number:05}.parquet"
    unfinished = folder / f".{part.name}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, unfinished, compression="zstd")
        unfinished.replace(part)
    except OSError as error:
        raise not_written(part, error) from error
    finally:
        unfinished.unlink(missing_ok=True)
    return part


def not_written(file: Path, error: OSError) -> TableError:
    """The error for a file that could not be written: a full disk says so."""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    reason = "the disk is full: free some space; what was written before is kept" if full else obstacle(error)
    return TableError(f"{file}: could not be written: {reason}")


def _column(batch: pa.RecordBatch, field: pa.Field, schema: pa.Schema, where: str) -> pa.Array:
    index = batch.schema.get_field_index(field.name)
    if index < 0:
        raise TableError(f"{where}: column {field.name} is missing: expected are {', '.join(schema.names)}")
    column: Any = batch.column(index)
    if column.type != field.type:
        column = _cast(column, field, where)
    try:
        column.validate(full=True)
    except pa.ArrowException as error:
        raise TableError(f"{where}: column {field.name} is corrupt: {error}") from error
    if column.null_count and not field.nullable:
        raise TableError(f"{where}: column {field.name} has {column.null_count} nulls: every row needs a value")
    return column


def _cast(column: pa.Array, field: pa.Field, where: str) -> pa.Array:
    if not _kin(column.type, field.type):
        raise TableError(f"{where}: column {field.name} is {column.type} where {field.type} is expected")
    try:
        return column.cast(field.type)
    except pa.ArrowException as error:
        raise TableError(f"{where}: column {field.name} cannot be read as {field.type}: {error}") from error


def _kin(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether two types differ in width or encoding only."""
    if pa.types.is_list(wanted):
        return (pa.types.is_list(given) or pa.types.is_large_list(given)) and (
            given.value_type == wanted.value_type or _kin(given.value_type, wanted.value_type)
        )
    if wanted == pa.string():
        return given in (pa.string(), pa.large_string(), pa.string_view()) or pa.types.is_dictionary(given)
    if pa.types.is_integer(wanted):
        return bool(pa.types.is_integer(given))
    return bool(pa.types.is_floating(wanted) and pa.types.is_floating(given))
