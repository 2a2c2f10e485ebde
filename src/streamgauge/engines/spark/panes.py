"""The rows that later windows need: the source's own files, or copies of them without what came too late."""

import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from urllib.parse import unquote, urlparse

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from streamgauge.compute.spark.intervals import varying
from streamgauge.compute.spark.profile import Counts, Profile, counts_for
from streamgauge.engines.spark.lateness import Heads
from streamgauge.engines.spark.state import Pane, State
from streamgauge.model.query import ContinuousQuery
from streamgauge.wire.stream import SCHEMA, StreamError

ROWS = (
    "stream string, time long, sequence long, position int, subject string, predicate string, object string, until long"
)
"""A stream table as Spark reads it."""

HEADS = ("stream", "time", "sequence", "position", "predicate", "object", "file")


@dataclass(frozen=True, slots=True)
class Arrived:
    """What a micro-batch brought of the query's streams, and in which files.

    ``first`` and ``last`` are the earliest and latest time, ``begin`` that of the first element (ms); ``lowest`` and
    ``highest`` are sequence numbers. ``counted`` is what the query's profile needs.
    """

    rows: int
    first: int
    last: int
    begin: int
    lowest: int
    highest: int
    files: tuple[str, ...]
    counted: tuple[int, ...]


def streaming(spark: SparkSession, folder: str, per_batch: int) -> DataFrame:
    """The files of a growing folder of stream tables as a streaming frame of heads, ``per_batch`` files at a time."""
    reader = spark.readStream.schema(ROWS).option("maxFilesPerTrigger", per_batch)
    return reader.parquet(folder).select(*HEADS[:-1], fn.col("_metadata.file_path").alias(HEADS[-1]))


@dataclass(frozen=True)
class Panes:
    """Reads and writes panes under ``folder``; only rows of the query's streams count."""

    spark: SparkSession
    folder: Path
    query: ContinuousQuery

    def measure(self, heads: DataFrame) -> Arrived | None:
        """What came, in one small job; ``None`` when nothing did. StreamError names a file that is no stream table."""
        places = (fn.min("sequence").alias("lowest"), fn.max("sequence").alias("highest"))
        times = (fn.min("time").alias("first"), fn.max("time").alias("last"))
        whole = (fn.min_by("time", "sequence").alias("begin"), fn.count("time").alias("rows"))
        counted = self._counts.columns() if self._counts else []
        found = self._own(heads).groupBy("file").agg(*places, *times, *whole, *counted).collect()
        if not found:
            return None
        files = tuple(sorted(_path(row.file) for row in found))
        for file in files:
            _check(file)
        return Arrived(
            sum(row.rows for row in found),
            min(row.first for row in found),
            max(row.last for row in found),
            min(found, key=lambda row: row.lowest).begin,
            min(row.lowest for row in found),
            max(row.highest for row in found),
            files,
            tuple(map(sum, zip(*(row[7:] for row in found), strict=True))),
        )

    def heads(self, heads: DataFrame) -> Heads:
        """The elements that came, collected through Arrow."""
        return Heads.of(self._own(heads).filter("position = 0").select("sequence", "time").toArrow())

    def pane(self, batch: int, arrived: Arrived, late: Sequence[int]) -> Pane:
        """Where the rows that came in time are: the source's files, copied only to leave out late elements."""
        if not late:
            return Pane(batch, arrived.first, arrived.last, arrived.files, arrived.counted)
        dropped = self.spark.createDataFrame(pa.table({"sequence": pa.array(late, pa.int64())}))
        kept = self._read(arrived.files).join(fn.broadcast(dropped), "sequence", "left_anti")
        target = self.folder / f"{batch:06}"
        kept.write.mode("overwrite").parquet(str(target))
        files = tuple(sorted(map(str, target.glob("*.parquet"))))
        return Pane(batch, arrived.first, arrived.last, files, arrived.counted)

    def rows(self, panes: Iterable[Pane], first: int, last: int) -> tuple[DataFrame, Profile | None]:
        """The rows of the query's streams from one time to another (ms, both included), and what is known of them."""
        held = [pane for pane in panes if pane.first <= last and pane.last >= first]
        files = [file for pane in held for file in pane.files]
        frame = self._read(files) if files else self.spark.createDataFrame([], ROWS)
        known = self._counts.profile(pane.counted for pane in held) if self._counts else None
        time = fn.col("time")
        return self._own(frame).filter(time.between(varying(first, time), varying(last, time))), known

    def delete(self, before: State, after: State) -> None:
        """Remove own files that neither the batch before nor this one needs, so that a batch can be done again."""
        kept = {f"{pane.batch:06}" for pane in (*before.panes, *after.panes)}
        for folder in self.folder.glob("*"):
            if folder.name not in kept:
                shutil.rmtree(folder, ignore_errors=True)

    def _own(self, frame: DataFrame) -> DataFrame:
        return frame.filter(fn.col("stream").isin(*sorted({each.stream for each in self.query.windows})))

    @cached_property
    def _counts(self) -> Counts | None:
        return counts_for(self.query.form, self.query.windows)

    def _read(self, files: Sequence[str]) -> DataFrame:
        frame = self.spark.read.schema(ROWS).parquet(*files)
        ends = any("until" in pq.read_schema(file).names for file in files)
        return frame if ends else frame.drop("until")


def _path(file: str) -> str:
    """A file's path as Spark's metadata names it."""
    parsed = urlparse(file)
    return unquote(parsed.path) if parsed.scheme in ("", "file") else file


def _check(file: str) -> None:
    """StreamError names the column that a file lacks."""
    names = pq.read_schema(file).names
    for field in SCHEMA:
        if field.name not in names:
            raise StreamError(f"{file}: column {field.name} is missing: expected are {', '.join(SCHEMA.names)}")
