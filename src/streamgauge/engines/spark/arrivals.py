"""The rows that a micro-batch brings, counted part by part: narrow columns, never a whole file in memory.

The counts of a part are one function of its rows. The driver applies it to local files without a Spark job, as small
batches are answered in a fraction of a second; files on another file system are counted by tasks.
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
from streamgauge.spark.hadoop_tables import read_parquet

_NARROW: Final = ("stream", "time", "sequence")

_PART_ROWS: Final = 65_536
"""Rows that are looked at together."""


class FileArrivals(NamedTuple):
    """The rows of one file, or of a part of it, that are of the query's streams: how many, their times (ms).

    ``begin`` has the least sequence number and the time of its element, ``end`` the greatest; ``ordered``: rows come by
    sequence; ``forward``: in that order no time goes back. ``stream`` is that of all rows if there is one; ``counted``
    has how many triples there are at most of each predicate that was asked for.
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
    """Two parts of a file, the second after the first."""
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
    """Reads the elements of files."""

    def late(self, came: Sequence[FileArrivals], rule: LateRule, greatest: int | None) -> Iterable[Numbers]:
        """The late elements of these files, which come in their order."""


@dataclass
class BatchArrivals:
    """The rows of a micro-batch of the query's streams, file by file in order of sequence, at least one row in each.

    ``rows`` are how many, ``first`` and ``last`` their earliest and latest time, ``begin`` that of the first element
    (ms). ``ends`` says whether elements may end by themselves, ``stream`` which one all rows are of, if there is one;
    ``forward`` that no time goes back.
    """

    came: tuple[FileArrivals, ...]
    reader: ElementReader

    def __post_init__(self) -> None:
        """Sum what the files say of their rows, times and streams."""
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
        """The late elements, by sequence number; ``greatest`` is the greatest time (ms) before the batch.

        Only where times go back are elements looked at one by one.
        """
        none = np.empty(0, np.int64)
        if self.forward and (greatest is None or self.first >= greatest):
            return none
        if rule.never(self.first, self.last, greatest):
            return none
        return np.unique(np.concatenate([none, *self.reader.late(self.came, rule, greatest)]))


def arrived(files: Sequence[str], streams: frozenset[str], predicates: Sequence[Term]) -> BatchArrivals | None:
    """The rows of some streams in these local stream tables; ``None`` for none.

    StreamError names a file that is no stream table.
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
    """A part without rows of the query's streams: joined with another it changes no number."""
    return FileArrivals(file, stream, ends, 0, -EARLY, EARLY, (-EARLY, -EARLY), EARLY, True, True, (0,) * kinds)


def _counted(
    file: str, ends: bool, rows: pa.RecordBatch, streams: frozenset[str], predicates: Sequence[Term]
) -> FileArrivals:
    """The counts of the rows that are of the query's streams."""
    names = pc.unique(rows.column("stream")).cast(pa.string()).to_pylist()
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
    """The elements of local files, part by part; of a file whose rows are not in order, the whole file's."""

    streams: frozenset[str]

    def late(self, came: Sequence[FileArrivals], rule: LateRule, greatest: int | None) -> Iterable[Numbers]:
        """The late elements of each part."""
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
            raise StreamError(f"{file}: column {name} is missing: expected are {', '.join(SCHEMA.names)}")


def own_rows(rows: "pa.Table | pa.RecordBatch", streams: frozenset[str]) -> "pa.Table | pa.RecordBatch":
    """The rows of these streams."""
    return rows.filter(pc.is_in(rows.column("stream").cast(pa.string()), pa.array(sorted(streams))))


def _counts(column: pa.DictionaryArray, predicates: Sequence[Term]) -> tuple[int, ...]:
    """How many of the values are each of these predicates."""
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
    """The same of stream tables on another file system, counted by tasks, without counts of predicates."""
    if not files:
        return None
    frame = read_parquet(session, *files)
    _check(files[0], frame.columns)
    narrow = frame.select(fn.col("_metadata.file_name").alias("file"), *_NARROW)
    ends = UNTIL.name in frame.columns

    counting = fn.arrow_udtf(_counting(ends, streams), returnType=from_arrow_schema(_COUNTED))
    rows = counting(narrow.asTable()).toArrow().to_pylist()
    names = {_name(file): file for file in files}
    parts = sorted((_of_row(names[row["file"]], row) for row in rows), key=lambda part: (part.file, part.begin))
    came = [reduce(joined, group) for _, group in groupby(parts, key=lambda part: part.file)]
    own = narrow.filter(fn.col("stream").isin(*sorted(streams)))
    return _batch(came, RemoteElements(own, {file: name for name, file in names.items()}))


def _counting(ends: bool, streams: frozenset[str]) -> type:
    """A table function of rows that a task reads, file after file: the counts of each file."""

    class CountingTask:
        """Keeps the counts of the files so far."""

        def __init__(self) -> None:
            self._counts: dict[str, FileArrivals] = {}

        def eval(self, batch: pa.RecordBatch) -> Iterator[pa.Table]:
            """Count the next rows."""
            for file, rows in _by_file(batch):
                counted = _counted(file, ends, rows, streams, ())
                self._counts[file] = joined(self._counts[file], counted) if file in self._counts else counted
            return iter(())

        def terminate(self) -> Iterator[pa.Table]:
            """The counts of all rows."""
            if self._counts:
                yield pa.Table.from_pylist(list(map(_row_of, self._counts.values())), _COUNTED)

    return CountingTask


def _by_file(batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
    """The rows of a batch, those of one file at a time."""
    files = batch.column("file").dictionary_encode()
    borders = np.flatnonzero(np.diff(files.indices.to_numpy(), prepend=-1, append=-1))
    for low, high in pairwise(borders.tolist()):
        yield files[low].as_py(), batch.slice(low, high - low)


def _finding(rule: LateRule, before: Mapping[str, int | None]) -> type:
    """A table function of one file's rows in order of sequence: the late elements, by sequence number."""

    class LateElements:
        """Carries the greatest time of each file from batch to batch."""

        def __init__(self) -> None:
            self._reached = dict(before)

        def eval(self, batch: pa.RecordBatch) -> Iterator[pa.Table]:
            """The late ones among the next rows."""
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
    """The elements of files on another file system: tasks apply the rule, a file each; late ones come to the driver."""

    narrow: DataFrame
    names: Mapping[str, str]

    def late(self, came: Sequence[FileArrivals], rule: LateRule, greatest: int | None) -> Iterable[Numbers]:
        """The late elements of all files."""
        before: dict[str, int | None] = {}
        for one in came:
            before[self.names[one.file]] = greatest
            greatest = one.last if greatest is None else max(greatest, one.last)

        find = fn.arrow_udtf(_finding(rule, before), returnType="sequence long")
        late = find(self.narrow.asTable().partitionBy("file").orderBy("sequence"))
        yield late.toArrow().column(0).to_numpy()


def _name(file: str) -> str:
    place_ = place(file)
    return place_.name


_TERM_ROWS: Final = 8_192
_TERMS = pa.schema([(name, pa.string()) for name in ("stream", "subject", "predicate", "object")])


def triples(files: Sequence[str], streams: frozenset[str]) -> Iterator[pa.Table]:
    """The triples (columns stream, subject, predicate, object) of some streams in these files, a part at a time."""
    for file in files:
        with opened(Path(file)) as parquet:
            for part in parquet.iter_batches(_TERM_ROWS, columns=_TERMS.names):
                yield own_rows(pa.table(part).select(_TERMS.names).cast(_TERMS), streams)  # writers differ in types


def are_remote(files: Iterable[str]) -> bool:
    """Whether files are on another file system than this machine's."""
    return any(isinstance(place(file), RemotePlace) for file in files)
