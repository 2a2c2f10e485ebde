"""Recorded streams as stream tables, by tasks of Spark: each reads parts of files by the format's own reader.

A part is a run of whole lines, as Spark cuts files, and fits a task's memory. Its elements are numbered from its own
beginning; a few numbers per part reach the driver, which computes how many elements came before each. Where consecutive
lines of one time are an element (``Format.parts``), lines of one time that meet at a cut are too.

Worked example: lines with the times 1 1 2 | 2 | 2 3 are three elements. The parts have 2, 1 and 2: the second part's
only element continues number 1 at position 1, the third part's first one continues it at position 2, and 3 is number 2.
"""

import io
import json
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn
from pyspark import StorageLevel
from pyspark.sql.pandas.types import from_arrow_schema

from streamgauge.formats.bounded_files import ByteReader
from streamgauge.formats.documents import BUFFER, Document, FormatError, documents, name_ending, suffix_of
from streamgauge.formats.places import Place, place
from streamgauge.formats.stream import SCHEMA, UNTIL, StreamError, record_batches
from streamgauge.formats.streams import Format, Reading, format_by_bytes, format_claimants, read_whole, stream_format
from streamgauge.formats.streams.format import Whole, logged, refused
from streamgauge.model.element import StreamElement
from streamgauge.sources.contract import SourceError, parse_address
from streamgauge.sources.named import Course, NamedSource, of_stream, reading_for, refuse_names
from streamgauge.spark.files import file_name, location
from streamgauge.spark.hadoop import HadoopFiles
from streamgauge.spark.hadoop_tables import write_table
from streamgauge.spark.requirements import classic_session

RELATIVE: Final = 1 << 62
"""The number of a part's first element that has none of its own; numbers that elements have are below."""

FILE_ROWS: Final = 2_000_000
"""Approximate rows per file of the table."""

_MARKS: Final = (BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE)
_PART: Final = ("file", "start")
_COLUMNS: Final = (*SCHEMA.names, UNTIL.name)
_ROWS: Final = pa.schema(
    [
        *zip(_PART, (pa.string(), pa.int64()), strict=True),
        *((field.name, field.type) for field in (*SCHEMA, UNTIL)),
        ("summary", pa.string()),
    ]
)
"""The rows of elements, and after them one row per part with its summary as JSON."""

Key: TypeAlias = tuple[str, int]
"""A part: the name of its file, and its first byte there."""


@dataclass
class PartSummary:
    """The first and the last element of a part: number, time (ms) and rows; its rows, and the times of all its items.

    ``error`` is the sentence on what could not be read.
    """

    first: tuple[int, int, int] | None = None
    last: tuple[int, int, int] | None = None
    rows: int = 0
    began: int | None = None
    reached: int | None = None
    notes: tuple[str, ...] = ()
    error: str = ""


@dataclass(frozen=True, slots=True)
class RecordedFiles:
    """The files of one source, in order, in a format that is read in parts."""

    files: tuple[Place, ...]
    form: Format


def recorded_files(session: SparkSession, source: NamedSource, reading: Reading) -> RecordedFiles:
    """The files of a source; SourceError, FormatError for one that is not read in parts, with the remedy."""
    address = parse_address(source.address)
    root = place(address.path if address.scheme == "file" else source.address.partition("?")[0])
    here = "leave out --master to read it in this process"
    if other := sorted({*address.options} - {"form"} | reading.chosen & {"once", "charset"}):
        raise SourceError(f"{source.address}: option {other[0]} is not for tasks of Spark: {here}")
    if isinstance(root, Path) and not root.exists():
        raise SourceError(f"{source.address}: there is no such file or folder")
    files = _listed(session, root)
    form = _format(session, root, files, address.options.get("form"), reading)
    own = files if len(files) == 1 else [file for file in files if name_ending(file.name) in form.endings]
    if form.parts is None or not own or any(suffix_of(file.name) != name_ending(file.name) for file in own):
        raise SourceError(f"{source.address}: {form.name} files like this are not read in parts: {here}")
    return RecordedFiles(tuple(own), form)


def _listed(session: SparkSession, root: Place) -> list[Place]:
    """The files of a folder by name, without hidden ones, or the file itself."""
    if isinstance(root, Path):
        return [Path(document.place) for document in documents(root)] if root.is_dir() else [root]
    listed = HadoopFiles(session).listed(root)
    return [file.place for file in listed if not file.folder and not file.place.name.startswith(("_", "."))]


def _format(session: SparkSession, root: Place, files: Sequence[Place], named: str | None, reading: Reading) -> Format:
    """The format of that name, else by the files' endings and first bytes."""
    if isinstance(root, Path):
        return stream_format(root, named, reading)
    if not files:
        raise SourceError(f"{root}: the folder has no files")
    claimants = format_claimants(Path(files[0].name), named)
    if len(claimants) == 1:
        return claimants[0]
    lines = _lines(session, files[:1]).limit(20).collect()
    return format_by_bytes(claimants, b"\n".join(bytes(row["line"]) for row in lines), reading)


def _lines(session: SparkSession, files: Sequence[Place]) -> DataFrame:
    """The lines of files with their parts; those of a part follow one another."""
    # By default Spark ends lines at a carriage return too, which is the formats' own business.
    text = session.read.option("lineSep", "\n").text([location(file) for file in files])
    part = (file_name().alias("file"), fn.col("_metadata.file_block_start").alias("start"))
    return text.select(*part, fn.col("value").cast("binary").alias("line"))


def write_recorded(
    session: SparkSession, source: NamedSource, streams: Sequence[str], reading: Reading, folder: Place
) -> Course:
    """Write a recorded source as a stream table to a new folder and return the course of its time.

    The rows are those of ``sources.named.recorded``. SourceError names the first line that cannot be read, StreamError
    an element that a table cannot hold.
    """
    classic_session(session, "making tables")
    refuse_names((source,), streams)
    recorded, own = recorded_files(session, source, reading), reading_for(source, streams, reading)
    read = partial(_read, recorded.form, replace(own, note=logged, numbered_from=RELATIVE), source.iri)
    lines = _lines(session, recorded.files).asTable()
    rows = fn.arrow_udtf(_part_by_part(read), returnType=from_arrow_schema(_ROWS))(lines)
    # Needed twice: for the summaries, and then for the table with the shifts that follow from them.
    rows = rows.persist(StorageLevel.DISK_ONLY)
    try:
        parts = _summaries(rows, [file.name for file in recorded.files])
        borders = PartBorders(recorded.form, reading)
        shifts = [(*key, *borders.passed(key, summary)) for key, summary in parts]
        for note in dict.fromkeys(note for _, summary in parts for note in summary.notes):
            reading.note(note)
        count = sum(summary.rows for _, summary in parts)
        write_table(_in_files(_numbered(session, rows, shifts), count), folder)
        return borders.course
    finally:
        rows.unpersist()


def _summaries(rows: DataFrame, names: Sequence[str]) -> list[tuple[Key, PartSummary]]:
    """The parts of all files in order."""
    # By the order in which the files were listed and not by name: sources may be given in any order.
    order = {name: place for place, name in enumerate(names)}
    said = rows.filter("summary is not null").select(*_PART, "summary").collect()
    return [
        ((file, start), PartSummary(**json.loads(text)))
        for file, start, text in sorted(said, key=lambda row: (order[row[0]], row[1]))
    ]


class PartBorders:
    """The state between two parts: the next number, and the last element, which the next part may continue."""

    def __init__(self, form: Format, reading: Reading) -> None:
        self._form, self._reading, self.course = form, reading, Course()
        self._file, self._next, self._rows, self._last = "", 0, 0, -1
        self._time: int | None = None

    def passed(self, key: Key, part: PartSummary) -> tuple[int, int]:
        """Add a part; return the shift of its relative numbers, and that of the positions in its first element."""
        if part.error:
            raise SourceError(part.error)
        self.course.extend(part.began, part.reached)
        if key[0] != self._file and self._form.read is None:  # each file has a reader of its own
            self._next, self._time = 0, None
        if part.first is None or part.last is None:
            return 0, 0
        (first, time, _), (last, end, rows) = part.first, part.last
        joined = self._form.parts == "times" and key[0] == self._file and time == self._time
        if not joined and self._reading.lateness is None and self._time is not None and time < self._time:
            where = place_of(*key)
            raise SourceError(
                f"{where}: time goes back from {self._time} to {time} ms: declare a lateness bound or sort"
            )
        # Worked example: the parts of the docstring above have 2, 1 and 2 elements from RELATIVE on. The shifts, less
        # RELATIVE, are 0, 2 - 1 = 1 and 2 - 1 = 1: numbers 0 and 1, then 1 again, then 1 and 2.
        shift = self._next - joined - RELATIVE if first >= RELATIVE else 0
        if not joined and first + shift <= self._last:
            raise StreamError(
                f"sequence {first + shift} comes after {self._last}: number the elements of a stream in rising order"
            )
        positions = self._rows if joined else 0
        self._last = last + shift
        self._file, self._next, self._time = key[0], self._last + 1, end
        # If the part is one element only, and that continues another one, the rows of both are before those of the
        # next part.
        self._rows = rows + (positions if first == last else 0)
        return shift, positions


def _numbered(session: SparkSession, rows: DataFrame, shifts: Sequence[tuple[str, int, int, int]]) -> DataFrame:
    """The rows of the elements with their numbers and positions in the whole stream."""
    schema = "file string, start long, shift long, positions int"
    shifted = rows.filter("summary is null").join(fn.broadcast(session.createDataFrame(shifts, schema)), [*_PART])
    moved = fn.when(fn.col("sequence") == RELATIVE, fn.col("positions")).otherwise(0)
    sequence = fn.col("sequence") + fn.when(fn.col("sequence") >= RELATIVE, fn.col("shift")).otherwise(0)
    changed = {"sequence": sequence, "position": (fn.col("position") + moved).cast("int")}
    return shifted.select(*(changed.get(name, fn.col(name)).alias(name) for name in _COLUMNS))


def _in_files(rows: DataFrame, count: int) -> DataFrame:
    ordered = rows.repartitionByRange(max(1, -(-count // FILE_ROWS)), "sequence")
    return ordered.sortWithinPartitions("sequence", "position")


def place_of(file: str, start: int) -> str:
    """A part, as errors name it: a file, and the byte from which its lines are counted."""
    return f"{file}, from byte {start:,} on" if start else file


def _part_by_part(read: Callable[[Key, Sequence[bytes]], Iterator[pa.RecordBatch]]) -> type:
    """A table function over lines that calls ``read`` with each part and its lines, which are in memory together."""

    class PartCollector:
        """Collects the lines of a part, until those of another come."""

        def __init__(self) -> None:
            self._key: Key | None = None
            self._lines: list[bytes] = []

        def eval(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
            """Collect lines; the rows of the part that they end."""
            for key, lines in _chunks(batch):
                if key != self._key:
                    yield from self.terminate()
                    self._key, self._lines = key, []
                self._lines.append(lines)

        def terminate(self) -> Iterator[pa.RecordBatch]:
            """The rows of the last part."""
            if self._key is not None:
                yield from read(self._key, self._lines)

    return PartCollector


def _read(
    form: Format, reading: Reading, iri: str | None, key: Key, lines: Sequence[bytes]
) -> Iterator[pa.RecordBatch]:
    """The rows (``_ROWS``) of a part."""
    file, start = key
    reader = PartReader(place_of(file, start), file, form, reading, iri)
    for batch in reader.batches(iter(lines), first=start == 0):
        yield _filled(batch, file=file, start=start)
    yield _filled(None, file=file, start=start, summary=json.dumps(asdict(reader.summary)))


def _chunks(batch: pa.RecordBatch) -> Iterator[tuple[Key, bytes]]:
    """The lines of a batch that belong to one part."""
    files, starts = batch.column("file").dictionary_encode(), batch.column("start").to_numpy()
    codes = files.indices.to_numpy()
    cuts = np.flatnonzero((np.diff(codes) != 0) | (np.diff(starts) != 0)) + 1
    for begin, end in zip([0, *cuts], [*cuts, len(batch)] if len(batch) else [], strict=False):
        lines = batch.column("line").slice(begin, end - begin).to_pylist()
        # Spark has removed the ends of the lines.
        yield (files.dictionary[int(codes[begin])].as_py(), int(starts[begin])), b"\n".join(lines) + b"\n"


def _filled(batch: pa.RecordBatch | None, **constants: object) -> pa.RecordBatch:
    """A batch, or one row, in the columns of ``_ROWS``, of which other ones have a constant or nothing."""
    there = () if batch is None else batch.schema.names
    length = 1 if batch is None else len(batch)

    def column(field: pa.Field) -> pa.Array:
        if batch is not None and field.name in there:
            return batch.column(field.name)
        return pa.repeat(pa.scalar(constants.get(field.name), field.type), length)

    return pa.RecordBatch.from_arrays([column(field) for field in _ROWS], schema=_ROWS)


class PartReader:
    """Reads one part; ``summary`` is complete after ``batches``, whose error ends it."""

    def __init__(self, place: str, name: str, form: Format, reading: Reading, iri: str | None) -> None:
        self.summary = PartSummary()
        self._place, self._name, self._form, self._iri = place, name, form, iri
        self._notes: list[str] = []
        self._reading = replace(reading, note=self._notes.append)

    def batches(self, chunks: Iterator[bytes], *, first: bool) -> Iterator[pa.RecordBatch]:
        """The rows of the part's elements."""
        course, rest = Course(), _Rest(chunks)
        document = Document(self._place, self._name, lambda: io.BufferedReader(ByteReader(rest.take), BUFFER))
        try:
            # UTF-8's mark may begin a file, but not a later part; UTF-16 cannot be cut at single bytes of line ends.
            if rest.begins_with(_MARKS[0] if not first else b"", *_MARKS[1:]):
                raise FormatError(f"{self._place}: a byte order mark: leave out --master to read UTF-16")
            items = read_whole(Whole(self._place, (document,)), self._form, self._reading, refused)
            named = items if self._iri is None else of_stream(items, self._iri)
            yield from record_batches(self._followed(course.elements(named)))
        except (FormatError, StreamError) as error:
            self.summary.error = str(error)
        self.summary.began, self.summary.reached = course.first, course.last
        self.summary.notes = tuple(self._notes)

    def _followed(self, elements: Iterable[StreamElement]) -> Iterator[StreamElement]:
        summary = self.summary
        for count, element in enumerate(elements):
            summary.last = element.sequence, element.time, len(element.added)
            summary.first = summary.first or summary.last
            summary.rows += len(element.added)
            # Either all elements of a part have numbers of their own, below RELATIVE, or all are counted from there.
            if element.sequence != RELATIVE + count and max(element.sequence, summary.first[0]) >= RELATIVE:
                raise FormatError(f"{self._place}: only some elements have a number: leave out --master to read them")
            yield element


class _Rest:
    """A file-like reader over chunks of bytes."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks, self._ahead = chunks, next(chunks, b"")

    def begins_with(self, *marks: bytes) -> bool:
        """Whether the first bytes are one of these marks."""
        return self._ahead.startswith(tuple(filter(None, marks)))

    def take(self, size: int) -> bytes:
        """The next bytes, at most ``size``."""
        ahead = self._ahead or next(self._chunks, b"")
        self._ahead = ahead[size:]
        return ahead[:size]
