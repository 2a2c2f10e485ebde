"""The rows that later windows need: the source's own files, or copies of them without late elements.

A batch answers on a frame that stays the same: a folder of links to files, listed anew for each batch.
The driver reads the narrow columns of a batch's files without a Spark job; an element is late by the lateness bound,
element by element, however batches fall.
"""

import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, TypeAlias
from urllib.parse import unquote, urlparse

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from streamgauge.engines.spark.state import Closes, Pane, State
from streamgauge.formats.stream import SCHEMA, UNTIL, StreamError
from streamgauge.formats.tables import check, opened, seal_folder, writer
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.terms import Term
from streamgauge.semantics.refusal import OutOfOrderError
from streamgauge.spark.facts import PredicateCounts, counts_for
from streamgauge.spark.files import location

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


class _Came(NamedTuple):
    """The rows of one file that are of the query's streams; ``stream`` is that of all its rows if there is one."""

    file: str
    stream: str | None
    ends: bool
    sequence: Numbers
    time: Numbers
    counted: tuple[int, ...]


@dataclass
class BatchArrivals:
    """The rows of a micro-batch of the query's streams, file by file, at least one row in each.

    ``rows`` are how many, ``first`` and ``last`` their earliest and latest time, ``begin`` that of the first element
    (ms). ``counted`` has how many triples there are at most of each
    predicate that was asked for. ``ends`` says whether elements may end by themselves, ``stream`` which one all rows
    are of, if there is one.
    """

    came: tuple[_Came, ...]

    def __post_init__(self) -> None:
        """Count the rows."""
        came, streams = self.came, {each.stream for each in self.came}
        first = min(came, key=lambda each: int(each.sequence.min()))
        self.rows = sum(len(each.time) for each in came)
        self.first, self.last = min(int(each.time.min()) for each in came), max(int(each.time.max()) for each in came)
        self.begin = int(first.time[first.sequence.argmin()])
        self.files = tuple(each.file for each in came)
        self.counted = tuple(map(sum, zip(*(each.counted for each in came), strict=True)))
        self.ends = any(each.ends for each in came)
        self.stream = streams.pop() if len(streams) == 1 else None

    def heads(self) -> Heads:
        """Each element once."""
        sequences, times = ([getattr(each, name) for each in self.came] for name in ("sequence", "time"))
        return Heads.of(np.concatenate(sequences), np.concatenate(times))


def arrived(files: Sequence[str], streams: frozenset[str], predicates: Sequence[Term]) -> BatchArrivals | None:
    """The rows of some streams in these stream tables; ``None`` for none.

    StreamError names a file that is no stream table.
    """
    came = [_came(file, streams, predicates) for file in sorted(files)]
    found = tuple(each for each in came if len(each.time))
    return BatchArrivals(found) if found else None


def _came(file: str, streams: frozenset[str], predicates: Sequence[Term]) -> _Came:
    with opened(Path(file), ["stream", "predicate"]) as parquet:
        names = parquet.schema_arrow.names
        _check(file, names)
        table = parquet.read([*_NARROW, "predicate"] if predicates else list(_NARROW))
    found = {name for chunk in table.column("stream").chunks for name in chunk.dictionary.to_pylist()}
    own = table if found <= streams else _own(table, streams)
    sequence, time = (own.column(name).to_numpy() for name in ("sequence", "time"))
    counts = _counts(table.column("predicate"), predicates) if predicates else ()
    return _Came(file, found.pop() if len(found) == 1 else None, UNTIL.name in names, sequence, time, counts)


def _check(file: str, names: Sequence[str]) -> None:
    """StreamError names the column that a file lacks."""
    for name in SCHEMA.names:
        if name not in names:
            raise StreamError(f"{file}: column {name} is missing: expected are {', '.join(SCHEMA.names)}")


def _own(table: pa.Table, streams: frozenset[str]) -> pa.Table:
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


_PART_ROWS = 131_072
_TERMS = pa.schema([(name, pa.string()) for name in ("stream", "subject", "predicate", "object")])


def triples(files: Sequence[str], streams: frozenset[str]) -> Iterator[pa.Table]:
    """The triples (columns stream, subject, predicate, object) of some streams in these files, a part at a time."""
    for file in files:
        with opened(Path(file)) as parquet:
            for part in parquet.iter_batches(_PART_ROWS, columns=_TERMS.names):
                yield _own(pa.table(part).select(_TERMS.names).cast(_TERMS), streams)  # writers differ in their types


_EARLY = -(2**62)


def surely_in_time(first: int, last: int, state: State, closes: Closes) -> bool:
    """Whether no element of a batch that spans these times (ms) can be late; never sure without a lateness bound."""
    lateness = closes.semantics.lateness
    if lateness is None:
        return False
    greatest = max(last, state.greatest if state.greatest is not None else last)
    return bool(first >= _frontier(np.array([greatest - lateness]), state, closes)[0])


def late(heads: Heads, state: State, closes: Closes) -> list[int]:
    """The sequence numbers of the late elements; OutOfOrderError for disorder without a lateness bound."""
    times = heads.time
    before = np.maximum.accumulate(np.concatenate([[_EARLY if state.greatest is None else state.greatest], times]))[:-1]
    lateness = closes.semantics.lateness
    if lateness is None:
        _refuse_disorder(heads, before)
        return []
    found = (times < before) & (times < _frontier(before - lateness, state, closes))
    return [int(sequence) for sequence in heads.sequence[found]]


def _refuse_disorder(heads: Heads, before: Numbers) -> None:
    back = np.flatnonzero(heads.time < before)
    if len(back):
        at = back[0]
        raise OutOfOrderError(
            f"element {heads.sequence[at]} goes back from {before[at]} to {heads.time[at]} ms: sort the stream or "
            "declare a lateness bound (a watermark)"
        )


def _frontier(watermarks: Numbers, state: State, closes: Closes) -> Numbers:
    """The times (ms) below which nothing may come any more when the watermark is at these."""
    closed = 0 if closes.half_open else 1
    limits = watermarks - closed if state.passed is None else np.maximum(watermarks - closed, state.passed)
    found = np.full(len(watermarks), _EARLY)
    for first, step in closes.steps():
        passed = first + (limits - first) // step * step
        found = np.maximum(found, np.where(limits >= first, passed + closed, _EARLY))
    return found


ROWS = (
    "stream string, time long, sequence long, position int, subject string, predicate string, object string, until long"
)
"""A stream table as Spark reads it."""


@dataclass(frozen=True, slots=True)
class PaneRows:
    """Files with rows that a report may look at; whether elements may end; how many triples of each predicate.

    ``stream`` is the one that all rows are of, if there is one.
    """

    files: tuple[str, ...]
    ends: bool
    counted: tuple[int, ...]
    stream: str | None = None


@dataclass
class ShownFrame:
    """Shows files as one frame whose times count from a base, which is in the data: plans over it last.

    The base is the name of the folder that the links are in (``base=5000``), so a column that Spark knows for nothing.
    """

    spark: SparkSession
    folder: Path
    streams: frozenset[str]
    _read: dict[bool, DataFrame] = field(default_factory=dict)
    _frames: dict[tuple[bool, str | None], DataFrame] = field(default_factory=dict)
    _now: tuple[PaneRows, int] | None = None

    def show(self, held: PaneRows, base: int) -> DataFrame:
        """The frame of the query's rows, times from ``base`` (ms) on; it shows these files until it is called again."""
        if self._now != (held, base):
            self._link(held, base)
            self._now = held, base
            self._listed(held.ends)
        kind = held.ends, held.stream
        if kind not in self._frames:
            self._frames[kind] = self._frame(*kind)
        return self._frames[kind]

    def _listed(self, ends: bool) -> None:
        """List the folder, anew where it was read before."""
        if ends in self._read:
            self.spark.catalog.refreshTable(self._view(ends))
            return
        self._read[ends] = self.spark.read.schema(f"{ROWS}, base long").parquet(location(self.folder / _name(ends)))
        self._read[ends].createOrReplaceTempView(self._view(ends))

    def _link(self, held: PaneRows, base: int) -> None:
        root = self.folder / _name(held.ends)
        shutil.rmtree(root, ignore_errors=True)
        inside = root / f"base={base}"
        inside.mkdir(parents=True)
        for number, file in enumerate(held.files):
            (inside / f"{number:06}.parquet").symlink_to(Path(file).absolute())
        if not held.files:
            with writer(inside / "none.parquet", SCHEMA):
                pass

    def _frame(self, ends: bool, stream: str | None) -> DataFrame:
        columns = {name: fn.col(name) - fn.col("base") for name in ("time", "until")}
        if stream in self.streams:
            own = self._read[ends].withColumns(columns | {"stream": fn.lit(stream)})
        else:
            own = self._read[ends].filter(fn.col("stream").isin(*sorted(self.streams))).withColumns(columns)
        return own.drop("base") if ends else own.drop("base", "until")

    def _view(self, ends: bool) -> str:
        """The name under which Spark's catalog knows the folder, to list it anew."""
        return re.sub(r"\W", "_", str(self.folder / _name(ends)))


def _name(ends: bool) -> str:
    return "ending" if ends else "lasting"


def streaming(spark: SparkSession, folder: str, per_batch: int) -> DataFrame:
    """The files of a growing folder of stream tables as a streaming frame, ``per_batch`` files at a time.

    A batch is its files (``files_of``): its rows are read by the plans that answer the query.
    """
    reader = spark.readStream.schema(ROWS).option("maxFilesPerTrigger", per_batch)
    return reader.parquet(location(folder)).select("sequence")


def files_of(batch: DataFrame) -> list[str]:
    """The paths of the files that a micro-batch takes: its plan has them, no job is needed."""
    partitions = batch._jdf.queryExecution().toRdd().partitions()
    return sorted({_path(file.urlEncodedPath()) for partition in partitions for file in partition.files()})


@dataclass(frozen=True)
class Panes:
    """Looks at files, and keeps copies under ``folder``; only rows of the query's streams count."""

    spark: SparkSession
    folder: Path
    query: ContinuousQuery
    checked: set[str] = field(default_factory=set)
    """The files whose seals were checked: Spark reads them without."""

    def measure(self, files: Sequence[str]) -> BatchArrivals | None:
        """The arrivals in these files; ``None`` for none. StreamError names a file that is no stream table."""
        streams = frozenset(each.stream for each in self.query.windows)
        self.checked.update(files)  # reading them does
        return arrived(files, streams, self.counts.predicates if self.counts else ())

    def pane(self, batch: int, came: BatchArrivals, late: Sequence[int]) -> Pane:
        """Where the rows of a batch are that came in time: the source's files, copied only to leave out late ones."""
        files = self._without(batch, came.files, late) if late else came.files
        return Pane(batch, came.first, came.last, files, came.counted, came.ends, came.stream)

    def held(self, panes: Iterable[Pane], first: int, last: int) -> PaneRows:
        """The rows that may be between two times (ms, both included)."""
        found = [pane for pane in panes if pane.first <= last and pane.last >= first]
        files = tuple(file for pane in found for file in pane.files)
        for file in {*files} - self.checked:
            check(Path(file))
            self.checked.add(file)
        none = (0,) * len(self.counts.predicates) if self.counts else ()
        counted = map(sum, zip(none, *(pane.counted for pane in found), strict=True))
        streams = {pane.stream for pane in found}
        stream = streams.pop() if len(streams) == 1 else None
        return PaneRows(files, any(pane.ends for pane in found), tuple(counted), stream)

    def delete(self, before: State, after: State) -> None:
        """Remove own files that neither the batch before nor this one needs, so that a batch can be done again."""
        kept = {f"{pane.batch:06}" for pane in (*before.panes, *after.panes)}
        for folder in self.folder.glob("*"):
            if folder.name not in kept:
                shutil.rmtree(folder, ignore_errors=True)

    @cached_property
    def counts(self) -> PredicateCounts | None:
        """The counts that plans need."""
        return counts_for(self.query.form, self.query.windows)

    def _without(self, batch: int, files: Sequence[str], late: Sequence[int]) -> tuple[str, ...]:
        """The paths of copies without these elements."""
        dropped = self.spark.createDataFrame(pa.table({"sequence": pa.array(late, pa.int64())}))
        read = self.spark.read.schema(ROWS).parquet(*map(location, files))
        target = self.folder / f"{batch:06}"
        read.join(fn.broadcast(dropped), "sequence", "left_anti").write.mode("overwrite").parquet(
            str(target.absolute())
        )
        seal_folder(target)
        return tuple(sorted(map(str, target.glob("*.parquet"))))


def _path(file: str) -> str:
    """A file's path as Spark names it."""
    parsed = urlparse(file)
    return unquote(parsed.path) if parsed.scheme in ("", "file") else file
