"""The rows that later windows need: the source's own files, or copies of them without what came too late."""

import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from urllib.parse import unquote, urlparse

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from streamgauge.engines.spark.arrived import Arrived, arrived
from streamgauge.engines.spark.shown import ROWS, Held
from streamgauge.engines.spark.state import Pane, State
from streamgauge.model.query import ContinuousQuery
from streamgauge.spark.locations import location
from streamgauge.spark.profile import Counts, counts_for


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

    def measure(self, files: Sequence[str]) -> Arrived | None:
        """What came; ``None`` when nothing did. StreamError names a file that is no stream table."""
        streams = frozenset(each.stream for each in self.query.windows)
        return arrived(files, streams, self.counts.predicates if self.counts else ())

    def pane(self, batch: int, came: Arrived, late: Sequence[int]) -> Pane:
        """Where the rows of a batch are that came in time: the source's files, copied only to leave out late ones."""
        files = self._without(batch, came.files, late) if late else came.files
        return Pane(batch, came.first, came.last, files, came.counted, came.ends, came.stream)

    def held(self, panes: Iterable[Pane], first: int, last: int) -> Held:
        """What may be of some time between two (ms, both included)."""
        found = [pane for pane in panes if pane.first <= last and pane.last >= first]
        files = tuple(file for pane in found for file in pane.files)
        none = (0,) * len(self.counts.predicates) if self.counts else ()
        counted = map(sum, zip(none, *(pane.counted for pane in found), strict=True))
        streams = {pane.stream for pane in found}
        stream = streams.pop() if len(streams) == 1 else None
        return Held(files, any(pane.ends for pane in found), tuple(counted), stream)

    def delete(self, before: State, after: State) -> None:
        """Remove own files that neither the batch before nor this one needs, so that a batch can be done again."""
        kept = {f"{pane.batch:06}" for pane in (*before.panes, *after.panes)}
        for folder in self.folder.glob("*"):
            if folder.name not in kept:
                shutil.rmtree(folder, ignore_errors=True)

    @cached_property
    def counts(self) -> Counts | None:
        """What has to be known of the triples."""
        return counts_for(self.query.form, self.query.windows)

    def _without(self, batch: int, files: Sequence[str], late: Sequence[int]) -> tuple[str, ...]:
        """The paths of copies without these elements."""
        dropped = self.spark.createDataFrame(pa.table({"sequence": pa.array(late, pa.int64())}))
        read = self.spark.read.schema(ROWS).parquet(*map(location, files))
        target = self.folder / f"{batch:06}"
        read.join(fn.broadcast(dropped), "sequence", "left_anti").write.mode("overwrite").parquet(
            str(target.absolute())
        )
        return tuple(sorted(map(str, target.glob("*.parquet"))))


def _path(file: str) -> str:
    """A file's path as Spark names it."""
    parsed = urlparse(file)
    return unquote(parsed.path) if parsed.scheme in ("", "file") else file
