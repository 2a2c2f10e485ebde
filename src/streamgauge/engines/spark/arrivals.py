"""Statistics of the rows of a micro-batch, from narrow columns in chunks, never with a whole file in memory.

One function counts a chunk. The driver applies it to local files without a Spark job, as small batches are answered in
a fraction of a second; tasks apply it to files on another file system.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import chain, groupby, pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn
from pyspark.sql.pandas.types import from_arrow_schema

from streamgauge.engines.spark.lateness import EARLY, Heads, LateRule, Numbers, heads_of
from streamgauge.formats.places import RemotePlace, place
from streamgauge.formats.stream import SCHEMA, UNTIL, StreamError
from streamgauge.formats.tables import opened
from streamgauge.model.terms import Term
from streamgauge.spark.files import FILE, placed
from streamgauge.spark.hadoop_tables import read_parquet

_NARROW: Final = ("stream", "time", "sequence")

_PART_ROWS: Final = 65_536
"""Rows per chunk."""


class FileArrivals(NamedTuple):
    """Statistics of the rows of a file, or a chunk of it, that are of the query's streams; times in ms.

    ``begin`` is the lowest sequence number and its time, ``end`` the highest; ``ordered``: rows are sorted by sequence;
    ``forward``: in that order time never goes back. ``stream`` is the only stream of all rows, if so; ``counted`` has
    the number of triples of each predicate of interest; ``ends``: elements may have an end.
    """

    file: str
    stream: str | None
    ends: bool
    rows: int
    first: int
    last: int
    begin: tuple[int, int]
    end: int
    ordered: bool
    forward: bool
    counted: tuple[int, ...]


def joined(one: FileArrivals, other: FileArrivals) -> FileArrivals:
    """The statistics of two adjacent chunks of a file."""
    # Chunks are joined in the order of the file; one that begins before its predecessor ends breaks the order.
    ordered = one.ordered and other.ordered and one.end <= other.begin[0]
    return FileArrivals(
        one.file,
        one.stream if one.stream == other.stream else None,
        one.ends,
        one.rows + other.rows,
        min(one.first, other.first),
        max(one.last, other.last),
        min(one.begin, other.begin),
        max(one.end, other.end),
        ordered,
        ordered and one.forward and other.forward and one.last <= other.first,
        tuple(map(sum, zip(one.counted, other.counted, strict=True))),
    )


class ElementReader(Protocol):
    """Finds late elements in files."""

    def late(self, came: Sequence[FileArrivals], rule: LateRule, greatest: int | None) -> Iterable[Numbers]:
        """The late elements of these files, in the order of the files."""


@dataclass
class BatchArrivals:
    """Statistics of a micro-batch by file, in order of sequence; every file has rows of the query's streams.

    ``rows`` is their number, ``first`` and ``last`` the earliest and latest time, ``begin`` that of the first element
    (ms). ``ends``: elements may have an end; ``stream`` is the only stream of all rows, if so; ``forward``: time never
    goes back.
    """

    came: tuple[FileArrivals, ...]
    reader: ElementReader

    def __post_init__(self) -> None:
        """Derive the totals of the batch from its files."""
        self.came = came = tuple(sorted(self.came, key=lambda one: one.begin))
        streams = {arrival.stream for arrival in came}
        self.rows = sum(arrival.rows for arrival in came)
        self.first, self.last = min(arrival.first for arrival in came), max(arrival.last for arrival in came)
        self.begin = came[0].begin[1]
        self.files = tuple(arrival.file for arrival in came)
        self.counted = tuple(map(sum, zip(*(arrival.counted for arrival in came), strict=True)))
        self.ends = any(arrival.ends for arrival in came)
        self.stream = streams.pop() if len(streams) == 1 else None
        self.forward = all(arrival.forward for arrival in came) and all(a.last <= b.first for a, b in pairwise(came))

    def late(self, rule: LateRule, greatest: int | None) -> Numbers:
        """Sequence numbers of the late elements; ``greatest`` is the greatest time (ms) before the batch.

        Elements are examined one by one only if times go back.
        """
        none = np.empty(0, np.int64)
        if self.forward and (greatest is None or self.first >= greatest):
            return none
        # Times go back, but not below any report: no element has to be looked at.
        if rule.never(self.first, self.last, greatest):
            return none
        return np.unique(np.concatenate([none, *self.reader.late(self.came, rule, greatest)]))


def arrived(files: Sequence[str], streams: frozenset[str], predicates: Sequence[Term]) -> BatchArrivals | None:
    """The statistics of some streams in these local stream tables; ``None`` without rows.

    StreamError names a file that is not a stream table.
    """
    return _batch([_came(file, streams, predicates) for file in files], LocalElements(streams))


def _batch(came: Iterable[FileArrivals], reader: ElementReader) -> BatchArrivals | None:
    own = tuple(one for one in came if one.rows)
    return BatchArrivals(own, reader) if own else None


def _came(file: str, streams: frozenset[str], predicates: Sequence[Term]) -> FileArrivals:
    names = [*_NARROW, *(["predicate"] if predicates else [])]
    with opened(Path(file), ["stream", "predicate"]) as parquet:
        columns = parquet.schema_arrow.names
        _check(file, columns)
        ends = UNTIL.name in columns
        parts = parquet.iter_batches(_PART_ROWS, columns=names)
        counted = [_counted(file, ends, part, streams, predicates) for part in parts]
    return reduce(joined, counted) if counted else _nothing(file, ends)


def _nothing(file: str, ends: bool, stream: str | None = None, kinds: int = 0) -> FileArrivals:
    """The neutral element of ``joined``: a chunk without rows of the query's streams."""
    # EARLY is below every time and -EARLY above: no maximum or minimum is ever one of them.
    return FileArrivals(file, stream, ends, 0, -EARLY, EARLY, (-EARLY, -EARLY), EARLY, True, True, (0,) * kinds)


def _counted(
    file: str, ends: bool, rows: pa.RecordBatch, streams: frozenset[str], predicates: Sequence[Term]
) -> FileArrivals:
    """The statistics of a chunk's rows that are of the query's streams."""
    names = pc.unique(rows.column("stream")).cast(pa.string()).to_pylist()
    # Usually all rows are of the query's streams, so that nothing is copied.
    own = rows if streams.issuperset(names) else own_rows(rows, streams)
    stream = names[0] if len(names) == 1 else None
    if not len(own):
        return _nothing(file, ends, stream, len(predicates))
    sequence, time = (own.column(name).to_numpy() for name in ("sequence", "time"))
    ordered = bool(np.all(sequence[1:] >= sequence[:-1]))
    at = int(sequence.argmin())
    return FileArrivals(
        file,
        stream,
        ends,
        len(own),
        int(time.min()),
        int(time.max()),
        (int(sequence[at]), int(time[at])),
        int(sequence.max()),
        ordered,
        ordered and bool(np.all(time[1:] >= time[:-1])),
        _counts(own.column("predicate"), predicates) if predicates else (),
    )


@dataclass(frozen=True)
class LocalElements:
    """Reads elements from local files in chunks; a file with unordered rows is read whole."""

    streams: frozenset[str]

    def late(self, came: Sequence[FileArrivals], rule: LateRule, greatest: int | None) -> Iterable[Numbers]:
        """The late elements of each chunk."""
        return rule.late(chain.from_iterable(map(self._heads, came)), greatest)

    def _heads(self, one: FileArrivals) -> Iterator[Heads]:
        with opened(Path(one.file), ["stream"]) as parquet:
            if one.ordered:
                for part in parquet.iter_batches(_PART_ROWS, columns=list(_NARROW)):
                    yield heads_of(own_rows(part, self.streams))
            else:
                yield heads_of(own_rows(parquet.read(list(_NARROW)).combine_chunks(), self.streams))


def _check(file: str, names: Iterable[str]) -> None:
    """StreamError names the column that a file lacks."""
    for name in SCHEMA.names:
        if name not in names:
            raise StreamError(f"{file}: column {name} is missing: a stream table has {', '.join(SCHEMA.names)}")


def own_rows(rows: "pa.Table | pa.RecordBatch", streams: frozenset[str]) -> "pa.Table | pa.RecordBatch":
    """The rows of these streams."""
    return rows.filter(pc.is_in(rows.column("stream").cast(pa.string()), pa.array(sorted(streams))))


def _counts(column: pa.DictionaryArray, predicates: Sequence[Term]) -> tuple[int, ...]:
    """The number of occurrences of each of these predicates."""
    # Over the codes of the dictionary, so that no term is compared.
    counts = np.bincount(column.indices.to_numpy(), minlength=len(column.dictionary)).tolist()
    present = dict(zip(column.dictionary.to_pylist(), counts, strict=True))
    return tuple(present.get(name, 0) for name in predicates)


_COUNTED: Final = pa.schema(
    [
        ("file", pa.string()),
        ("stream", pa.string()),
        *((name, pa.bool_()) for name in ("ends", "ordered", "forward")),
        *((name, pa.int64()) for name in ("rows", "first", "last", "begin", "begins", "end")),
    ]
)
"""The columns of ``FileArrivals``, without counts of predicates."""


def arrived_remotely(session: SparkSession, files: Sequence[str], streams: frozenset[str]) -> BatchArrivals | None:
    """``arrived`` for stream tables on another file system, by Spark tasks and without counts of predicates."""
    if not files:
        return None
    frame = read_parquet(session, *files)
    _check(files[0], frame.columns)
    narrow = frame.select(fn.col(FILE).alias("file"), *_NARROW)
    ends = UNTIL.name in frame.columns

    counting = fn.arrow_udtf(_counting(ends, streams), returnType=from_arrow_schema(_COUNTED))
    rows = counting(narrow.asTable()).toArrow().to_pylist()
    place_of = placed(map(place, files))
    names = {url: str(place_of(url)) for url in {row["file"] for row in rows}}
    # Tasks return parts of a file in any order, but only neighbours can be joined.
    parts = sorted((_of_row(names[row["file"]], row) for row in rows), key=lambda part: (part.file, part.begin))
    came = [reduce(joined, group) for _, group in groupby(parts, key=lambda part: part.file)]
    own = narrow.filter(fn.col("stream").isin(*sorted(streams)))
    return _batch(came, RemoteElements(own, {file: name for name, file in names.items()}))


def _counting(ends: bool, streams: frozenset[str]) -> type:
    """A table function over a task's rows, file after file, that returns the statistics of each file."""

    class CountingTask:
        """Accumulates the statistics of the files so far."""

        def __init__(self) -> None:
            self._counts: dict[str, FileArrivals] = {}

        def eval(self, batch: pa.RecordBatch) -> Iterator[pa.Table]:
            """Add a batch of rows."""
            for file, rows in _by_file(batch):
                counted = _counted(file, ends, rows, streams, ())
                self._counts[file] = joined(self._counts[file], counted) if file in self._counts else counted
            return iter(())

        def terminate(self) -> Iterator[pa.Table]:
            """Return the statistics of all files."""
            if self._counts:
                yield pa.Table.from_pylist(list(map(_row_of, self._counts.values())), _COUNTED)

    return CountingTask


def _by_file(batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
    """(file, rows) for each run of rows from one file."""
    files = batch.column("file").dictionary_encode()
    # No code is -1, so both ends of the batch are borders.
    borders = np.flatnonzero(np.diff(files.indices.to_numpy(), prepend=-1, append=-1))
    for low, high in pairwise(borders.tolist()):
        yield files[low].as_py(), batch.slice(low, high - low)


def _finding(rule: LateRule, before: Mapping[str, int | None]) -> type:
    """A table function over one file's rows in order of sequence that returns late sequence numbers."""

    class LateElements:
        """Carries the greatest time so far of each file from batch to batch."""

        def __init__(self) -> None:
            self._reached = dict(before)

        def eval(self, batch: pa.RecordBatch) -> Iterator[pa.Table]:
            """Return the late elements of a batch of rows."""
            for file, rows in _by_file(batch):
                heads, reached = heads_of(rows), self._reached[file]
                for late in rule.late([heads], reached):
                    yield pa.table({"sequence": pa.array(late, pa.int64())})
                latest = int(heads.time.max())
                self._reached[file] = latest if reached is None else max(latest, reached)

    return LateElements


def _row_of(one: FileArrivals) -> dict[str, object]:
    """Counts as a row of ``_COUNTED``."""
    return one._asdict() | {"begin": one.begin[0], "begins": one.begin[1]}


def _of_row(file: str, row: dict[str, Any]) -> FileArrivals:
    begin = row["begin"], row.pop("begins")
    return FileArrivals(**(row | {"file": file, "begin": begin, "counted": ()}))


@dataclass(frozen=True)
class RemoteElements:
    """Finds late elements on another file system: a task per file applies the rule, the driver collects the numbers."""

    narrow: DataFrame
    names: Mapping[str, str]

    def late(self, came: Sequence[FileArrivals], rule: LateRule, greatest: int | None) -> Iterable[Numbers]:
        """The late elements of all files."""
        # Each file's task starts from the greatest time of the files before it, so tasks need not wait for one
        # another.
        before: dict[str, int | None] = {}
        for one in came:
            before[self.names[one.file]] = greatest
            greatest = one.last if greatest is None else max(greatest, one.last)

        find = fn.arrow_udtf(_finding(rule, before), returnType="sequence long")
        late = find(self.narrow.asTable().partitionBy("file").orderBy("sequence"))
        yield late.toArrow().column(0).to_numpy()


_TERM_ROWS: Final = 8_192
_TERMS = pa.schema([(name, pa.string()) for name in ("stream", "subject", "predicate", "object")])


def triples(files: Sequence[str], streams: frozenset[str]) -> Iterator[pa.Table]:
    """Triples (columns stream, subject, predicate, object) of some streams in these files, in chunks."""
    for file in files:
        with opened(Path(file)) as parquet:
            for part in parquet.iter_batches(_TERM_ROWS, columns=_TERMS.names):
                yield own_rows(pa.table(part).select(_TERMS.names).cast(_TERMS), streams)  # writers differ in types


def are_remote(files: Iterable[str]) -> bool:
    """Whether some files are on another file system than this machine's."""
    return any(isinstance(place(file), RemotePlace) for file in files)
