"""The rows that a micro-batch brings, counted file by file: narrow columns, one file at a time, never all in memory.

The driver reads local files without a Spark job, as small batches are answered in a fraction of a second. It counts
remote ones by a job.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from streamgauge.formats.places import RemotePlace, place
from streamgauge.formats.stream import SCHEMA, UNTIL, StreamError
from streamgauge.formats.tables import opened
from streamgauge.model.terms import Term
from streamgauge.spark.files import location
from streamgauge.spark.hadoop_tables import CHECKED

Numbers: TypeAlias = "np.ndarray[tuple[int], np.dtype[np.int64]]"

_NARROW = ("stream", "time", "sequence")


@dataclass(frozen=True)
class Heads:
    """The elements of a batch without their triples, by ``sequence``; ``time`` in ms."""

    sequence: Numbers
    time: Numbers

    @classmethod
    def of(cls, sequence: Numbers, time: Numbers) -> "Heads":
        """From a row per triple, in any order."""
        once, places = np.unique(sequence, return_index=True)
        return cls(once, time[places])


class FileArrivals(NamedTuple):
    """The rows of one file that are of the query's streams: how many, their earliest and latest time (ms).

    ``begin`` has the least sequence number and the time of its element; ``stream`` is that of all its rows if there is
    one; ``counted`` has how many triples there are at most of each predicate that was asked for.
    """

    file: str
    stream: str | None
    ends: bool
    rows: int
    first: int
    last: int
    begin: tuple[int, int]
    counted: tuple[int, ...]


@dataclass
class BatchArrivals:
    """The rows of a micro-batch of the query's streams, file by file, at least one row in each.

    ``rows`` are how many, ``first`` and ``last`` their earliest and latest time, ``begin`` that of the first element
    (ms). ``ends`` says whether elements may end by themselves, ``stream`` which one all rows are of, if there is one.
    ``read_heads`` reads the elements of a file.
    """

    came: tuple[FileArrivals, ...]
    read_heads: Callable[[str], Heads]

    def __post_init__(self) -> None:
        """Count the rows."""
        came, streams = self.came, {each.stream for each in self.came}
        self.rows = sum(each.rows for each in came)
        self.first, self.last = min(each.first for each in came), max(each.last for each in came)
        self.begin = min(each.begin for each in came)[1]
        self.files = tuple(each.file for each in came)
        self.counted = tuple(map(sum, zip(*(each.counted for each in came), strict=True)))
        self.ends = any(each.ends for each in came)
        self.stream = streams.pop() if len(streams) == 1 else None

    def heads(self) -> Heads:
        """Each element once: 16 bytes an element, for batches in which some may be late."""
        heads = [self.read_heads(each.file) for each in self.came]
        return Heads.of(np.concatenate([one.sequence for one in heads]), np.concatenate([one.time for one in heads]))


def arrived(files: Sequence[str], streams: frozenset[str], predicates: Sequence[Term]) -> BatchArrivals | None:
    """The rows of some streams in these local stream tables; ``None`` for none.

    StreamError names a file that is no stream table.
    """
    came = [_came(file, streams, predicates) for file in sorted(files)]
    found = tuple(each for each in came if each is not None)
    return BatchArrivals(found, lambda file: _heads(file, streams)) if found else None


def _came(file: str, streams: frozenset[str], predicates: Sequence[Term]) -> FileArrivals | None:
    with opened(Path(file), ["stream", "predicate"]) as parquet:
        names = parquet.schema_arrow.names
        _check(file, names)
        table = parquet.read([*_NARROW, "predicate"] if predicates else list(_NARROW))
    found = {name for chunk in table.column("stream").chunks for name in chunk.dictionary.to_pylist()}
    own = table if found <= streams else own_rows(table, streams)
    if not len(own):
        return None
    sequence, time = (own.column(name).to_numpy() for name in ("sequence", "time"))
    counts = _counts(table.column("predicate"), predicates) if predicates else ()
    at = sequence.argmin()
    return FileArrivals(
        file,
        found.pop() if len(found) == 1 else None,
        UNTIL.name in names,
        len(own),
        int(time.min()),
        int(time.max()),
        (int(sequence[at]), int(time[at])),
        counts,
    )


def _heads(file: str, streams: frozenset[str]) -> Heads:
    with opened(Path(file), ["stream"]) as parquet:
        own = own_rows(parquet.read(list(_NARROW)), streams)
    return Heads.of(own.column("sequence").to_numpy(), own.column("time").to_numpy())


def _check(file: str, names: Iterable[str]) -> None:
    """StreamError names the column that a file lacks."""
    for name in SCHEMA.names:
        if name not in names:
            raise StreamError(f"{file}: column {name} is missing: expected are {', '.join(SCHEMA.names)}")


def own_rows(table: pa.Table, streams: frozenset[str]) -> pa.Table:
    """The rows of these streams."""
    return table.filter(pc.is_in(table.column("stream").cast(pa.string()), pa.array(sorted(streams))))


def _counts(column: pa.ChunkedArray, predicates: Sequence[Term]) -> tuple[int, ...]:
    """How many of the values are each of these predicates."""
    counts = dict.fromkeys(predicates, 0)
    for chunk in column.chunks:
        found = np.bincount(chunk.indices.to_numpy(), minlength=len(chunk.dictionary))
        for name, count in zip(chunk.dictionary.to_pylist(), found, strict=True):
            if name in counts:
                counts[name] += int(count)
    return tuple(counts.values())


def arrived_remotely(session: SparkSession, files: Sequence[str], streams: frozenset[str]) -> BatchArrivals | None:
    """The same of stream tables on another file system, counted by a job, without counts of predicates."""
    if not files:
        return None
    frame = session.read.options(**CHECKED).parquet(*map(location, files))
    _check(files[0], frame.columns)
    own = frame.filter(fn.col("stream").isin(*sorted(streams)))
    by_file = own.groupBy(fn.col("_metadata.file_name").alias("file")).agg(
        *(fn.min("stream"), fn.max("stream"), fn.count("*"), fn.min("time"), fn.max("time")),
        *(fn.min("sequence"), fn.min_by("time", "sequence")),
    )
    names = {_name(file): file for file in files}
    ends = UNTIL.name in frame.columns
    found = tuple(_of_row(names[row[0]], ends, *row[1:]) for row in by_file.collect())
    return BatchArrivals(tuple(sorted(found)), lambda file: _remote_heads(own, _name(file))) if found else None


def _of_row(
    file: str, ends: bool, least: str, greatest: str, rows: int, first: int, last: int, sequence: int, begin: int
) -> FileArrivals:
    return FileArrivals(file, least if least == greatest else None, ends, rows, first, last, (sequence, begin), ())


def _name(file: str) -> str:
    found = place(file)
    return found.name


def _remote_heads(own: DataFrame, name: str) -> Heads:
    rows = own.filter(fn.col("_metadata.file_name") == name).select("sequence", "time").distinct().toArrow()
    return Heads.of(rows.column("sequence").to_numpy(), rows.column("time").to_numpy())


_PART_ROWS = 131_072
_TERMS = pa.schema([(name, pa.string()) for name in ("stream", "subject", "predicate", "object")])


def triples(files: Sequence[str], streams: frozenset[str]) -> Iterator[pa.Table]:
    """The triples (columns stream, subject, predicate, object) of some streams in these files, a part at a time."""
    for file in files:
        with opened(Path(file)) as parquet:
            for part in parquet.iter_batches(_PART_ROWS, columns=_TERMS.names):
                yield own_rows(pa.table(part).select(_TERMS.names).cast(_TERMS), streams)  # writers differ in types


def are_remote(files: Iterable[str]) -> bool:
    """Whether files are on another file system than this machine's."""
    return any(isinstance(place(file), RemotePlace) for file in files)
