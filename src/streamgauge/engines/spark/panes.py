"""The rows that later windows need: the source's own files, or copies of them without late elements.

All batches query the same frame, a folder of links to files that is listed again for each batch.
"""

import re
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from urllib.parse import unquote, urlparse

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from streamgauge.engines.spark.arrivals import BatchArrivals, are_remote, arrived, arrived_remotely
from streamgauge.engines.spark.lateness import Numbers
from streamgauge.engines.spark.state import Pane, State
from streamgauge.formats.places import place
from streamgauge.formats.stream import SCHEMA
from streamgauge.formats.tables import check, seal_folder, writer
from streamgauge.model.query import ContinuousQuery
from streamgauge.spark.facts import PredicateCounts, counts_for
from streamgauge.spark.hadoop_tables import read_parquet, stream_parquet

ROWS = (
    "stream string, time long, sequence long, position int, subject string, predicate string, object string, until long"
)
"""A stream table as Spark reads it."""


@dataclass(frozen=True, slots=True)
class PaneRows:
    """Files with the rows of some reports; ``ends``: elements may have an end; ``counted``: triples per predicate.

    ``stream`` is the only stream of all rows, if so; ``rows`` is the number of the files' triples.
    """

    files: tuple[str, ...]
    ends: bool
    counted: tuple[int, ...]
    stream: str | None = None
    rows: int = 0


@dataclass
class ShownFrame:
    """Presents files as one frame with times relative to a base that is data, so that plans over it can be reused.

    The base is in the name of the folder of links (``base=5000``), a partition column that costs Spark nothing.
    """

    spark: SparkSession
    folder: Path
    streams: frozenset[str]
    _read: dict[bool, DataFrame] = field(default_factory=dict)
    _frames: dict[tuple[bool, str | None], DataFrame] = field(default_factory=dict)
    _now: tuple[PaneRows, int] | None = None

    def show(self, pane_rows: PaneRows, base: int) -> DataFrame:
        """The frame of the query's rows, times relative to ``base`` (ms); valid until the next call."""
        if are_remote(pane_rows.files):  # no folder of links spans two file systems
            rows = read_parquet(self.spark, *pane_rows.files, schema=ROWS).withColumn("base", fn.lit(base))
            return self._shifted(rows, pane_rows.ends, pane_rows.stream)
        if self._now != (pane_rows, base):
            self._link(pane_rows, base)
            self._now = pane_rows, base
            self._listed(pane_rows.ends)
        kind = pane_rows.ends, pane_rows.stream
        if kind not in self._frames:
            self._frames[kind] = self._frame(*kind)
        return self._frames[kind]

    def _listed(self, ends: bool) -> None:
        """Make Spark list the folder, or list it again."""
        if ends in self._read:
            # Spark caches the list of a folder's files; without this, a plan would read the links of the batch before.
            self.spark.catalog.refreshTable(self._view(ends))
            return
        self._read[ends] = read_parquet(self.spark, self.folder / _name(ends), schema=f"{ROWS}, base long")
        self._read[ends].createOrReplaceTempView(self._view(ends))

    def _link(self, pane_rows: PaneRows, base: int) -> None:
        root = self.folder / _name(pane_rows.ends)
        shutil.rmtree(root, ignore_errors=True)
        inside = root / f"base={base}"
        inside.mkdir(parents=True)
        for number, file in enumerate(pane_rows.files):
            # Numbered, because files of different batches may have the same name.
            (inside / f"{number:06}.parquet").symlink_to(Path(file).absolute())
        # Without a file, Spark would find no partition and thereby no base.
        if not pane_rows.files:
            with writer(inside / "none.parquet", SCHEMA):
                pass

    def _frame(self, ends: bool, stream: str | None) -> DataFrame:
        return self._shifted(self._read[ends], ends, stream)

    def _shifted(self, rows: DataFrame, ends: bool, stream: str | None) -> DataFrame:
        """The query's rows with times relative to the base."""
        columns = {name: fn.col(name) - fn.col("base") for name in ("time", "until")}
        # One stream only: a constant instead of a filter over all rows.
        if stream in self.streams:
            own = rows.withColumns(columns | {"stream": fn.lit(stream)})
        else:
            own = rows.filter(fn.col("stream").isin(*sorted(self.streams))).withColumns(columns)
        return own.drop("base") if ends else own.drop("base", "until")

    def _view(self, ends: bool) -> str:
        """The folder's name in Spark's catalog, which is needed to list it again."""
        return re.sub(r"\W", "_", str(self.folder / _name(ends)))


def _name(ends: bool) -> str:
    return "ending" if ends else "lasting"


def streaming(spark: SparkSession, folder: str, per_batch: int) -> DataFrame:
    """The files of a growing folder of stream tables as a streaming frame, ``per_batch`` files at a time.

    A batch is its files (``files_of``): its rows are read by the plans that answer the query.
    """
    return stream_parquet(spark, folder, ROWS, per_batch).select("sequence")


def files_of(batch: DataFrame) -> list[str]:
    """The files of a micro-batch, from its plan, without a job."""
    partitions = batch._jdf.queryExecution().toRdd().partitions()
    # A set: Spark splits large files, so several partitions may name one.
    return sorted({_path(file.urlEncodedPath()) for partition in partitions for file in partition.files()})


@dataclass(frozen=True)
class Panes:
    """Measures files and keeps copies in ``folder``; only rows of the query's streams count."""

    spark: SparkSession
    folder: Path
    query: ContinuousQuery
    remote: bool = False
    """The source is on another file system, so that jobs measure its files."""
    checked: set[str] = field(default_factory=set)
    """Files whose seals have been checked, as Spark itself does not check them."""

    def measure(self, files: Sequence[str]) -> BatchArrivals | None:
        """The statistics of these files; ``None`` without rows. StreamError names a file that is not a stream table."""
        streams = frozenset(window.stream for window in self.query.windows)
        if self.remote:
            return arrived_remotely(self.spark, files, streams)
        self.checked.update(files)  # ``arrived`` checks their seals
        return arrived(files, streams, self.counts.predicates if self.counts else ())

    def of_batch(self, batch: int, came: BatchArrivals, late: Numbers) -> tuple[Pane, ...]:
        """The panes of a batch, one per file of the source, so that reports read only the files of their times.

        If some elements are late, copies without them are a single pane.
        """
        if len(late):
            files = self._without(batch, came.files, late)
            return (Pane(batch, came.first, came.last, files, came.counted, came.ends, came.stream, came.rows),)
        return tuple(
            Pane(batch, one.first, one.last, (one.file,), one.counted, one.ends, one.stream, one.rows)
            for one in came.came
        )

    def between(self, panes: Iterable[Pane], first: int, last: int) -> PaneRows:
        """The files that may have rows between two times (ms, both included)."""
        wanted = [pane for pane in panes if pane.first <= last and pane.last >= first]
        files = tuple(file for pane in wanted for file in pane.files)
        for file in {*files} - self.checked:
            if isinstance(place_ := place(file), Path):
                check(place_)
            self.checked.add(file)
        none = (0,) * len(self.counts.predicates) if self.counts else ()
        counted = map(sum, zip(none, *(pane.counted for pane in wanted), strict=True))
        streams = {pane.stream for pane in wanted}
        stream = streams.pop() if len(streams) == 1 else None
        rows = sum(pane.rows for pane in wanted)
        return PaneRows(files, any(pane.ends for pane in wanted), tuple(counted), stream, rows)

    def delete(self, before: State, after: State) -> None:
        """Remove copies that neither the previous batch nor this one needs; a batch can then still be repeated."""
        kept = {f"{pane.batch:06}" for pane in (*before.panes, *after.panes)}
        for folder in self.folder.glob("*"):
            if folder.name not in kept:
                shutil.rmtree(folder, ignore_errors=True)

    @cached_property
    def counts(self) -> PredicateCounts | None:
        """The statistics that plans need, ``None`` if they need none."""
        return None if self.remote else counts_for(self.query.form, self.query.windows)

    def _without(self, batch: int, files: Sequence[str], late: Numbers) -> tuple[str, ...]:
        """Write copies of the files without these elements and return their paths."""
        dropped = self.spark.createDataFrame(pa.table({"sequence": pa.array(late, pa.int64())}))
        read = read_parquet(self.spark, *files, schema=ROWS)
        target = self.folder / f"{batch:06}"
        # Overwritten, so that a batch repeated after a crash leaves no files of the first attempt.
        read.join(fn.broadcast(dropped), "sequence", "left_anti").write.mode("overwrite").parquet(
            str(target.absolute())
        )
        seal_folder(target)
        return tuple(sorted(map(str, target.glob("*.parquet"))))


def _path(file: str) -> str:
    """A file's path as Spark names it."""
    parsed = urlparse(file)
    return unquote(parsed.path if parsed.scheme in ("", "file") else file)
