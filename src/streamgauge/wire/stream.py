"""The stream table: one row per triple, as Parquet files or an Arrow table, and its elements.

``sequence`` numbers the elements in system-time order, ``position`` the triples within one; times in ms.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from streamgauge.model.element import StreamElement

SCHEMA = pa.schema(
    [
        ("stream", pa.string()),
        ("time", pa.int64()),
        ("sequence", pa.int64()),
        ("position", pa.int32()),
        ("subject", pa.string()),
        ("predicate", pa.string()),
        ("object", pa.string()),
    ]
)
"""The columns of a stream table; all of them are required and none holds nulls."""

_BATCH = 65_536
_CHUNK = 20_000


class StreamError(ValueError):
    """A stream table or file that cannot be read, or elements that it cannot hold; the sentence names the place."""


def elements(source: pa.Table | str | Path) -> Iterator[StreamElement]:
    """The elements of an Arrow table, a Parquet file or a folder of them, in sequence order, batch by batch.

    StreamError names the file and column when a column is missing, mistyped or holds nulls, and the sequence
    number where rows are out of order.
    """
    carry: list[Any] = [[] for _ in SCHEMA]
    last = -1
    where = "the stream table"
    for where, batch in _batches(source):
        columns = [kept + column for kept, column in zip(carry, _lists(batch, where), strict=True)]
        starts = _starts(columns[2])
        for begin, end in pairwise(starts):
            element = _element(columns, begin, end, last, where)
            last = element.sequence
            yield element
        carry = [column[starts[-1] :] for column in columns] if starts else columns
    if carry[2]:
        yield _element(carry, 0, len(carry[2]), last, where)


def read_table(path: str | Path) -> pa.Table:
    """The whole stream table of a Parquet file or folder in memory; StreamError names file and column."""
    return pa.Table.from_batches([_conform(batch, where) for where, batch in _batches(path)], schema=SCHEMA)


def to_table(stream: Iterable[StreamElement]) -> pa.Table:
    """The stream table of elements, in memory; StreamError for an element that it cannot hold."""
    return pa.Table.from_batches(_record_batches(stream), schema=SCHEMA)


def write(stream: Iterable[StreamElement], path: str | Path) -> int:
    """Write elements as one Parquet file and return how many; StreamError for one that the table cannot hold."""
    count = 0
    with pq.ParquetWriter(path, SCHEMA, compression="zstd") as writer:
        for batch in _record_batches(stream):
            writer.write_batch(batch)
            count += pc.sum(pc.equal(batch.column("position"), 0)).as_py()
    return count


def files(path: str | Path) -> list[Path]:
    """The Parquet files of a stream, in name order; StreamError when there is none."""
    root = Path(path)
    if root.is_dir():
        found = sorted(file for file in root.glob("*.parquet") if not file.name.startswith(("_", ".")))
    else:
        found = [root] if root.is_file() else []
    if not found:
        raise StreamError(f"{root}: no stream here: name a Parquet file or a folder that holds some")
    return found


def _batches(source: pa.Table | str | Path) -> Iterator[tuple[str, pa.RecordBatch]]:
    if isinstance(source, pa.Table):
        yield from (("the stream table", batch) for batch in source.to_batches(max_chunksize=_BATCH))
        return
    for file in files(source):
        try:
            with pq.ParquetFile(file) as parquet:
                for batch in parquet.iter_batches(batch_size=_BATCH):
                    yield str(file), batch
        except (pa.ArrowException, OSError) as error:
            raise StreamError(f"{file}: not a readable Parquet file: {error}") from error


def _conform(batch: pa.RecordBatch, where: str) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([_column(batch, field, where) for field in SCHEMA], schema=SCHEMA)


def _column(batch: pa.RecordBatch, field: pa.Field, where: str) -> pa.Array:
    index = batch.schema.get_field_index(field.name)
    if index < 0:
        raise StreamError(f"{where}: column {field.name} is missing: a stream table has {', '.join(SCHEMA.names)}")
    column = batch.column(index)
    if column.type != field.type:
        column = _cast(column, field, where)
    if column.null_count:
        raise StreamError(f"{where}: column {field.name} has {column.null_count} nulls: every row needs a value")
    return column


def _cast(column: pa.Array, field: pa.Field, where: str) -> pa.Array:
    whole = pa.types.is_integer(column.type) and pa.types.is_integer(field.type)
    text = column.type in (pa.large_string(), pa.string_view()) or pa.types.is_dictionary(column.type)
    if whole or (text and field.type == pa.string()):
        try:
            return column.cast(field.type)
        except pa.ArrowInvalid as error:
            raise StreamError(f"{where}: column {field.name}: {error}") from error
    raise StreamError(f"{where}: column {field.name} is {column.type} where {field.type} is expected")


def _lists(batch: pa.RecordBatch, where: str) -> list[list[Any]]:
    columns = [_column(batch, field, where) for field in SCHEMA]
    return [_shared(column) if index in (0, 5) else column.to_pylist() for index, column in enumerate(columns)]


def _shared(column: pa.Array) -> list[str]:
    """The strings of a column with few distinct ones, each made once."""
    encoded = column.dictionary_encode()
    return list(map(encoded.dictionary.to_pylist().__getitem__, encoded.indices.to_pylist()))


def _starts(sequence: Sequence[int]) -> list[int]:
    if not sequence:
        return []
    previous = chain((None,), islice(sequence, len(sequence) - 1))
    return [index for index, (before, now) in enumerate(zip(previous, sequence, strict=True)) if before != now]


def _element(columns: list[list[Any]], begin: int, end: int, last: int, where: str) -> StreamElement:
    streams, times, sequences, positions, subjects, predicates, objects = columns
    sequence: int = sequences[begin]
    if sequence <= last:
        raise StreamError(f"{where}: sequence {sequence} comes after {last}: sort the rows by sequence, position")
    if positions[begin:end] != list(range(end - begin)):
        raise StreamError(f"{where}: sequence {sequence}: column position must count its rows from 0")
    if times[begin] != times[end - 1]:
        raise StreamError(f"{where}: sequence {sequence}: column time must be the same in all rows of an element")
    triples = tuple(zip(subjects[begin:end], predicates[begin:end], objects[begin:end], strict=True))
    return StreamElement(streams[begin], times[begin], sequence, triples)


def _record_batches(stream: Iterable[StreamElement]) -> Iterator[pa.RecordBatch]:
    iterator = iter(stream)
    while chunk := list(islice(iterator, _CHUNK)):
        rows = [row for element in chunk for row in _rows(element)]
        columns = zip(*rows, strict=True)
        arrays = [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def _rows(element: StreamElement) -> list[tuple[str, int, int, int, str, str, str]]:
    if element.removed or element.until is not None or not element.added:
        lack = "no triple" if not element.added else "removed triples or an end of validity"
        raise StreamError(f"sequence {element.sequence} holds {lack}: a stream table holds added triples only")
    head = (element.stream, element.time, element.sequence)
    return [(*head, position, *triple) for position, triple in enumerate(element.added)]
