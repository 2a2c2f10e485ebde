"""The rows that a batch answers on as a frame that stays the same: a folder of links to files, listed anew."""

import re
import shutil
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from streamgauge.formats.stream import SCHEMA
from streamgauge.spark.locations import location

ROWS = (
    "stream string, time long, sequence long, position int, subject string, predicate string, object string, until long"
)
"""A stream table as Spark reads it."""


@dataclass(frozen=True, slots=True)
class Held:
    """Files with rows that a report may look at; whether elements may end; how many triples of each predicate.

    ``stream`` is the one that all rows are of, if there is one.
    """

    files: tuple[str, ...]
    ends: bool
    counted: tuple[int, ...]
    stream: str | None = None


@dataclass
class Shown:
    """Shows files as one frame whose times count from a base, which is in the data: plans over it last.

    The base is the name of the folder that the links are in (``base=5000``), so a column that Spark knows for nothing.
    """

    spark: SparkSession
    folder: Path
    streams: frozenset[str]
    _read: dict[bool, DataFrame] = field(default_factory=dict)
    _frames: dict[tuple[bool, str | None], DataFrame] = field(default_factory=dict)
    _now: tuple[Held, int] | None = None

    def show(self, held: Held, base: int) -> DataFrame:
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

    def _link(self, held: Held, base: int) -> None:
        root = self.folder / _name(held.ends)
        shutil.rmtree(root, ignore_errors=True)
        inside = root / f"base={base}"
        inside.mkdir(parents=True)
        for number, file in enumerate(held.files):
            (inside / f"{number:06}.parquet").symlink_to(Path(file).absolute())
        if not held.files:
            pq.write_table(SCHEMA.empty_table(), inside / "none.parquet")

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
