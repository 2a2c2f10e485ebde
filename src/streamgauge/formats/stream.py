"""The stream table: one row per triple, in Parquet files or an Arrow table; its elements, and their lines on the pipe.

``sequence`` numbers the elements in system-time order, ``position`` the triples within one; times in ms. A table may
have a column ``until``, when its elements end.
"""

import gc
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice, pairwise
from json.encoder import encode_basestring_ascii
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryDirectory
from typing import IO, Any, Final, NamedTuple, Protocol, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.formats import manifest, tables
from streamgauge.formats.batches import TERMS, ColumnTerms, ElementBatch
from streamgauge.formats.lines import encode_element
from streamgauge.formats.manifest import TableError
from streamgauge.model.element import StreamElement

SCHEMA = pa.schema(
    [
        pa.field("stream", pa.string(), nullable=False),
        pa.field("time", pa.int64(), nullable=False),
        pa.field("sequence", pa.int64(), nullable=False),
        pa.field("position", pa.int32(), nullable=False),
        pa.field("subject", pa.string(), nullable=False),
        pa.field("predicate", pa.string(), nullable=False),
        pa.field("object", pa.string(), nullable=False),
    ]
)
"""The columns of every stream table, without nulls."""

UNTIL = pa.field("until", pa.int64())
"""An optional column: when an element ends (ms), null if it does not."""

_WITH_UNTIL = SCHEMA.append(UNTIL)

_TEXTS: Final = ("stream", "subject", "predicate", "object")
_ENCODED = pa.schema(
    [
        field.with_type(pa.dictionary(pa.int32(), pa.string())) if field.name in _TEXTS else field
        for field in _WITH_UNTIL
    ]
)
"""The columns dictionary-encoded, as Parquet stores them: a seventh of the CPU to read."""

_BATCH = 65_536
_CHUNK = 20_000

_PRINTED = 0x20
"""The first code point that JSON strings may contain unescaped (RFC 8259, 7)."""

ROWS = 8192
"""Approximate number of rows in a batch."""

_PLAIN = re.compile("[ -~]*")

StreamError = TableError
"""A stream table that cannot be read, or elements that it cannot contain; the sentence names the place."""


def elements(source: pa.Table | str | Path) -> Iterator[StreamElement]:
    """The elements of an Arrow table, a Parquet file or a folder of them, in sequence order, batch by batch.

    StreamError names the file and a column that is missing, mistyped or has nulls, or the sequence number at which rows
    are out of order.
    """
    for batch in element_batches(source):
        if isinstance(batch, ElementBatch):
            yield from batch.elements()
        else:
            yield batch


def element_batches(source: pa.Table | str | Path) -> Iterator[ElementBatch | StreamElement]:
    """``elements`` in columns, about ``ROWS`` triples in each; elements that differ in kind one by one."""
    last, numbers = -1, ColumnTerms()
    for where, batch in whole(source, _ENCODED):
        starts = _borders(batch, last)
        if starts is None:
            yield from elements_of(batch, last, where)
        else:
            if len(numbers.terms) > TERMS:
                numbers = ColumnTerms()
            yield from _numbered(batch, starts, numbers)
        last = batch.column("sequence")[-1].as_py()


def _pieces(starts: Any) -> Iterator[tuple[int, int]]:
    """Ranges of elements that have about ``ROWS`` rows together."""
    begin, count = 0, len(starts) - 1
    while begin < count:
        # At least one element, also if it has more rows than a batch should.
        end = min(count, max(begin + 1, int(np.searchsorted(starts, starts[begin] + ROWS))))
        yield begin, end
        begin = end


def _numbered(batch: pa.RecordBatch, starts: Any, numbers: ColumnTerms) -> Iterator[ElementBatch]:
    """Elements of one stream that begin at ``starts`` (the last is the end) in columns of about ``ROWS`` triples."""
    stream: str = batch.column("stream")[0].as_py()
    added = np.stack(numbers.of([batch.column(name) for name in _TEXTS[1:]], f"<{stream}>"), axis=1)
    times, sequences = (batch.column(name).to_numpy()[starts[:-1]] for name in ("time", "sequence"))
    for begin, end in _pieces(starts):
        borders = starts[begin : end + 1]
        rows = added[borders[0] : borders[-1]].reshape(-1)
        yield ElementBatch(numbers.terms, stream, times[begin:end], sequences[begin:end], borders - borders[0], rows)


def whole(
    source: pa.Table | str | Path, schema: pa.Schema = _WITH_UNTIL
) -> Iterator[tuple[str | Path, pa.RecordBatch]]:
    """The rows of a stream with ``until``, and their place, in batches that end at borders of elements.

    StreamError names a term that is invalid at its place in a triple.
    """
    carry: pa.RecordBatch | None = None
    where: str | Path = "the stream table"
    for where, rows in _batches(source, schema):
        _check_places(rows, where)
        batch = rows if carry is None else _joined(carry, rows)
        # The last element may go on in the next batch, so it is carried over.
        last = _last_start(batch)
        if last:
            yield where, batch.slice(0, last)
        carry = _with_own_texts(batch.slice(last))
    if carry is not None and len(carry):
        yield where, carry


def _check_places(rows: pa.RecordBatch, where: str | Path) -> None:
    """StreamError for a literal or triple term as subject, and for a predicate that is not an IRI."""
    for name, wrong in (("subject", r'^(?:"|<<\()'), ("predicate", r"^(?:[^<]|<<\()")):
        column = rows.column(name)
        terms = column.dictionary if pa.types.is_dictionary(column.type) else column
        misplaced = terms.filter(pc.match_substring_regex(terms, wrong))
        if len(misplaced):
            raise StreamError(f"{where}: a row is not a triple: its {name} is {misplaced[0].as_py():.120}")


def _joined(one: pa.RecordBatch, other: pa.RecordBatch) -> pa.RecordBatch:
    """The rows of both; dictionaries are concatenated, so that a text may occur twice."""
    columns = [
        pa.DictionaryArray.from_arrays(
            np.concatenate([first.indices.to_numpy(), second.indices.to_numpy() + np.int32(len(first.dictionary))]),
            pa.concat_arrays([first.dictionary, second.dictionary]),
        )
        if pa.types.is_dictionary(first.type)
        else pa.concat_arrays([first, second])
        for first, second in zip(one.columns, other.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=one.schema)


def _with_own_texts(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The rows with dictionaries of their own texts only: otherwise those of all row groups would accumulate."""
    columns = [
        column.dictionary_decode().dictionary_encode() if pa.types.is_dictionary(column.type) else column
        for column in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def elements_of(batch: pa.RecordBatch, last: int, where: str | Path) -> Iterator[StreamElement]:
    """The elements of a batch of ``whole``; ``last`` is the previous sequence number. StreamError as ``elements``."""
    columns = _lists(batch)
    for begin, end in pairwise([*_starts(columns[2]), len(batch)]):
        element = _element(columns, begin, end, last, where)
        last = element.sequence
        yield element


def _last_start(batch: pa.RecordBatch) -> int:
    """The first row of the last element of a batch."""
    sequence = batch.column("sequence").to_numpy()
    changes = np.flatnonzero(sequence[1:] != sequence[:-1])
    return int(changes[-1]) + 1 if len(changes) else 0


def to_table(stream: Iterable[StreamElement]) -> pa.Table:
    """The stream table of elements in memory, with ``until`` if one ends; StreamError for an invalid element."""
    return _without_nulls(pa.Table.from_batches(record_batches(stream), schema=_WITH_UNTIL))


def _without_nulls(table: pa.Table) -> pa.Table:
    ends = table.column(UNTIL.name)
    return table.drop_columns([UNTIL.name]) if ends.null_count == len(ends) else table


def write(stream: Iterable[StreamElement], path: str | Path | IO[bytes]) -> int:
    """Write elements as one Parquet file, by name or open; returns their number. StreamError as ``to_table``."""
    if isinstance(path, str | Path):
        return _write(stream, Path(path))
    with TemporaryDirectory() as scratch:  # a seal is put into a file that is whole
        place = Path(scratch) / "stream.parquet"
        count = _write(stream, place)
        with place.open("rb") as written:
            copyfileobj(written, path)
    return count


def _write(stream: Iterable[StreamElement], path: Path) -> int:
    count = 0
    try:
        with tables.writer(path, _WITH_UNTIL) as parquet:
            for batch in record_batches(stream):
                parquet.write_batch(batch)
                count += pc.sum(pc.equal(batch.column("position"), 0)).as_py()
    except OSError as error:
        raise tables.not_written(path, error) from error
    return count


def files(path: str | Path) -> list[Path]:
    """The Parquet files of a stream, in order; StreamError if there are none."""
    return manifest.files(Path(path))


def time_at(path: Path, sequence: int) -> int:
    """The time (ms) of the element of a stream table with this sequence number; StreamError if there is none."""
    for part in manifest.manifest(path).parts:
        if part.sequence is not None and part.sequence.least <= sequence <= part.sequence.greatest:
            file = path / part.file if path.is_dir() else path
            for _, batch in tables.batches(file, pa.schema([SCHEMA.field("sequence"), SCHEMA.field("time")])):
                times = batch.column("time").filter(pc.equal(batch.column("sequence"), sequence))
                if len(times):
                    return int(times[0].as_py())
    raise StreamError(f"{path}: no element has the sequence number {sequence}")


def stream_names(path: Path) -> set[str]:
    """The names of the streams in a stream table, from its manifest or its rows; StreamError."""
    listed = manifest.manifest(path).streams
    if listed is not None:
        return set(listed)
    names: set[str] = set()
    for _, batch in tables.batches(path, pa.schema([SCHEMA.field("stream")])):
        names.update(pc.unique(batch.column("stream")).to_pylist())
    return names


def _batches(source: pa.Table | str | Path, schema: pa.Schema) -> Iterator[tuple[str | Path, pa.RecordBatch]]:
    if not isinstance(source, pa.Table):
        for file in files(source):
            yield from tables.batches(file, schema, (UNTIL.name,))
        return
    for batch in source.to_batches(max_chunksize=_BATCH):
        yield "the stream table", tables.conform(batch, schema, "the stream table", (UNTIL.name,))


def _lists(batch: pa.RecordBatch) -> list[list[Any]]:
    *columns, ends = batch.columns
    lists = [
        _shared(column) if index in (0, 5) or pa.types.is_dictionary(column.type) else column.to_pylist()
        for index, column in enumerate(columns)
    ]
    return [*lists, [None] * len(batch) if ends.null_count == len(batch) else ends.to_pylist()]


def _shared(column: pa.Array) -> list[str]:
    """The strings of a column with few distinct ones; equal strings are one object."""
    encoded = column.dictionary_encode()
    return list(map(encoded.dictionary.to_pylist().__getitem__, encoded.indices.to_pylist()))


def _starts(sequence: Sequence[int]) -> list[int]:
    if not sequence:
        return []
    previous = chain((None,), islice(sequence, len(sequence) - 1))
    return [index for index, (before, now) in enumerate(zip(previous, sequence, strict=True)) if before != now]


def _element(columns: list[list[Any]], begin: int, end: int, last: int, where: str | Path) -> StreamElement:
    streams, times, sequences, positions, subjects, predicates, objects, ends = columns
    sequence: int = sequences[begin]
    if sequence <= last:
        raise StreamError(f"{where}: sequence {sequence} comes after {last}: sort the rows by sequence, position")
    # Consecutive positions from 0 show that neither the end of the element before nor rows of this one are missing.
    if positions[begin:end] != list(range(end - begin)):
        raise StreamError(f"{where}: sequence {sequence}: column position must count its rows from 0")
    if times[begin] != times[end - 1]:
        raise StreamError(f"{where}: sequence {sequence}: column time must be the same in all rows of an element")
    if ends[begin] != ends[end - 1]:
        raise StreamError(f"{where}: sequence {sequence}: column until must be the same in all rows of an element")
    if ends[begin] is not None and ends[begin] <= times[begin]:
        raise StreamError(
            f"{where}: sequence {sequence} ends at {ends[begin]} ms: that must be after {times[begin]} ms"
        )
    triples = tuple(zip(subjects[begin:end], predicates[begin:end], objects[begin:end], strict=True))
    return StreamElement(streams[begin], times[begin], sequence, triples, (), ends[begin])


def record_batches(stream: Iterable[StreamElement]) -> Iterator[pa.RecordBatch]:
    """The rows of elements, with ``until``; StreamError for an element that a stream table cannot hold."""
    iterator = iter(stream)
    last = -1
    while chunk := list(islice(iterator, _CHUNK)):
        last = _rising(chunk, last)
        rows = [row for element in chunk for row in _rows(element)]
        columns = zip(*rows, strict=True)
        try:
            arrays = [pa.array(column, field.type) for column, field in zip(columns, _WITH_UNTIL, strict=True)]
        except (OverflowError, ValueError, pa.ArrowException) as error:
            where = f"sequences {chunk[0].sequence} to {chunk[-1].sequence}"
            raise StreamError(f"{where}: a number exceeds 64 bits, or a text has an unpaired surrogate") from error
        yield pa.RecordBatch.from_arrays(arrays, schema=_WITH_UNTIL)


def _rising(chunk: Sequence[StreamElement], last: int) -> int:
    """The last sequence number of elements, which must rise from ``last`` on; StreamError."""
    for element in chunk:
        if element.sequence <= last:
            raise StreamError(
                f"sequence {element.sequence} comes after {last}: number the elements of a stream in rising order"
            )
        last = element.sequence
    return last


def _rows(element: StreamElement) -> list[tuple[str, int, int, int, str, str, str, int | None]]:
    if element.removed or not element.added:
        lack = "no triple" if not element.added else "removed triples"
        raise StreamError(f"sequence {element.sequence} has {lack}: a stream table contains added triples only")
    if element.until is not None and element.until <= element.time:
        raise StreamError(
            f"sequence {element.sequence} ends at {element.until} ms: that must be after its time, {element.time} ms"
        )
    head = (element.stream, element.time, element.sequence)
    return [(*head, position, *triple, element.until) for position, triple in enumerate(element.added)]


# Elements as the lines that an engine reads


class Written(NamedTuple):
    """One element: its sequence number, application time (ms), triples added, and its line."""

    sequence: int
    time: int
    size: int
    line: bytes


def written(stream: Iterable[StreamElement | Written]) -> Iterator[Written]:
    """The lines of elements; those that are lines already are returned unchanged."""
    for item in stream:
        yield item if isinstance(item, Written) else _line(item)


class Followed(Protocol):
    """One or several elements in any form: the sequence number and time (ms) of the last."""

    @property
    def sequence(self) -> int:
        """The sequence number of the last element."""

    @property
    def time(self) -> int:
        """The time of the last element, ms."""


class StoredStream:
    """A stream table that is read as lines (by iteration), elements or batches. StreamError as ``elements``.

    ``follow`` is called with the elements as they are handed over, and returns them.
    """

    def __init__(self, source: pa.Table | str | Path) -> None:
        self._source = source
        self.follow: Callable[[Iterator[Any]], Iterator[Any]] = iter

    def __iter__(self) -> Iterator[Written]:
        return read_written(self._source)

    def elements(self) -> Iterator[StreamElement]:
        """The elements as objects."""
        return elements(self._source)

    def batches(self) -> Iterator[ElementBatch | StreamElement]:
        """The elements in columns."""
        return element_batches(self._source)


Item = TypeVar("Item")

AHEAD: Final = 300_000
"""Elements read before a paced run begins: reading later would delay the feeder by 0.1 s at a time."""


@contextmanager
def ahead(stream: Iterator[Item], stored: bool = True) -> Iterator[Iterator[Item]]:
    """The same elements; the first of a stored stream are read at once and excluded from garbage collection."""
    if not stored:
        yield stream
        return
    first = list(islice(stream, AHEAD))
    gc.collect()
    gc.freeze()
    try:
        yield chain(first, stream)
    finally:
        gc.unfreeze()


def read_written(source: pa.Table | str | Path) -> Iterator[Written]:
    """The lines of a stream table, like ``written(elements(source))``; StreamError as ``elements``."""
    last = -1
    for where, batch in whole(source):
        starts = _borders(batch, last)
        if starts is None:
            yield from map(_line, elements_of(batch, last, where))
        else:
            yield from _by_columns(batch, starts)
        last = batch.column("sequence")[-1].as_py()


def _line(element: StreamElement) -> Written:
    return Written(element.sequence, element.time, len(element.added), encode_element(element))


def _borders(batch: pa.RecordBatch, last: int) -> Any:
    """The first rows of elements, and the end; ``None`` for a batch with irregular elements."""
    sequence, time, position = (batch.column(name).to_numpy() for name in ("sequence", "time", "position"))
    steps = np.diff(sequence)
    starts = np.concatenate(([0], np.flatnonzero(steps) + 1, [len(sequence)]))
    # Worked example: starts 0, 2, 5 give 0 1 2 3 4 less 0 0 2 2 2, the positions 0 1 0 1 2 that the rows should have.
    counted = np.arange(len(sequence)) - np.repeat(starts[:-1], np.diff(starts))
    # All checks in columns; a batch that fails one is read element by element, whose errors name the place.
    sound = sequence[0] > last and (steps >= 0).all() and (position == counted).all()
    sound = sound and not (np.diff(time)[steps == 0]).any() and batch.column("until").null_count == len(batch)
    streams = _distinct(batch.column("stream"))
    return starts if sound and len(streams) == 1 and _PLAIN.fullmatch(streams[0].as_py()) else None


def _distinct(column: pa.Array) -> pa.Array:
    """The distinct texts of a column."""
    return pc.unique(
        column.dictionary.take(pc.unique(column.indices)) if pa.types.is_dictionary(column.type) else column
    )


def _by_columns(batch: pa.RecordBatch, starts: Any) -> Iterator[Written]:
    """The lines of elements of one stream, without ends."""
    texts = _texts(batch, starts)
    first = starts[:-1]
    sequences = batch.column("sequence").to_numpy()[first].tolist()
    times = batch.column("time").to_numpy()[first].tolist()
    stream = encode_basestring_ascii(batch.column("stream")[0].as_py()).encode()
    for sequence, time, size, text in zip(sequences, times, np.diff(starts).tolist(), texts, strict=True):
        line = b'{"t":%d,"n":%d,"stream":%b,"add":"%b"}\n' % (time, sequence, stream, text)
        yield Written(sequence, time, size, line)


def _texts(batch: pa.RecordBatch, starts: Any) -> Iterator[bytes]:
    """The N-Triples of each element, escaped for a JSON string, some elements at a time."""
    terms = [_escaped(batch.column(name)) for name in ("subject", "predicate", "object")]
    lines = pc.binary_join_element_wise(*terms, ".\\n", " ")
    # As many elements as have about ``ROWS`` rows together, by the average of this batch.
    step = max(1, ROWS * (len(starts) - 1) // max(1, len(batch)))
    for at in range(0, len(starts) - 1, step):
        borders = starts[at : at + step + 1]
        rows = lines.slice(int(borders[0]), int(borders[-1] - borders[0]))
        listed = pa.ListArray.from_arrays(pa.array(borders - borders[0], pa.int32()), rows)
        yield from pc.binary_join(listed, "").cast(pa.binary()).to_pylist()


def _escaped(terms: pa.Array) -> pa.Array:
    """Terms escaped for JSON strings."""
    # The bytes of all texts at once, from Arrow's data buffer: most columns need no escape at all.
    text = np.frombuffer(terms.buffers()[2], np.uint8)
    if (text < _PRINTED).any():
        return pa.array([encode_basestring_ascii(term)[1:-1] for term in terms.to_pylist()])
    # The backslash first, or those of escaped quotes would be escaped again.
    for mark in ("\\", '"'):
        if (text == ord(mark)).any():
            terms = pc.replace_substring(terms, mark, "\\" + mark)
    return terms
