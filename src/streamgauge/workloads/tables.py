"""Where the tables of workloads are made: in this process while they are small, on Spark from ``LOCAL_ROWS`` rows on.

The number of rows is estimated from the parameters. A workload without a ``plan`` is always made on Spark.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from streamgauge.formats.files import made_folder
from streamgauge.model.terms import Triple
from streamgauge.workloads import Workload
from streamgauge.workloads.plan import TablePlan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LOCAL_ROWS: Final = 1_000_000
"""A table of at most so many rows, about, is made in this process."""


@dataclass(frozen=True, slots=True)
class Maker:
    """Makes tables; ``spark`` gives the session when one is needed, ``always`` makes all tables on Spark.

    ``tell`` is told what is made and which share (0 to 1) of a table that is made here is written.
    """

    spark: "Callable[[], SparkSession]"
    always: bool = False
    tell: Callable[[str, float], object] = lambda _what, _share: None

    def local(self, plan: TablePlan) -> bool:
        """Whether a table is made in this process."""
        return not self.always and plan.rows <= LOCAL_ROWS

    def stream(self, workload: Workload, seed: int, given: Mapping[str, object]) -> "TablePlan | DataFrame":
        """The stream table (wire.stream.SCHEMA) of a workload, to be made here or on Spark; ParameterError."""
        plan = _planned(workload, "plan", seed, given)
        if plan is not None and self.local(plan):
            return plan
        return workload.generate(self.spark(), seed, partitions=None, **given)

    def stream_table(self, workload: Workload, seed: int, given: Mapping[str, object]) -> pa.Table:
        """The stream table in memory, ordered by sequence and position."""
        found = self.stream(workload, seed, given)
        return found.table() if isinstance(found, TablePlan) else found.orderBy("sequence", "position").toArrow()

    def write_stream(self, workload: Workload, seed: int, given: Mapping[str, object], folder: Path) -> None:
        """The stream table as Parquet files in a folder that is not there yet."""
        found = self.stream(workload, seed, given)
        if not isinstance(found, TablePlan):
            self.tell("making the stream on Spark", 0.0)
            found.write.mode("error").parquet(str(folder.absolute()))
            return
        made_folder(folder)
        rows = 0
        with pq.ParquetWriter(folder / "part-0.parquet", found.schema, compression="zstd") as writer:
            for batch in found.batches():
                writer.write_batch(batch)
                rows += batch.num_rows
                self.tell(f"{rows:,} of about {found.rows:,} triples", min(1.0, rows / max(1, found.rows)))

    def static(self, workload: Workload, seed: int, given: Mapping[str, object]) -> "Iterable[pa.RecordBatch]":
        """The triples beside the stream, in batches; none where the workload has none; ParameterError."""
        plan = _planned(workload, "static_plan", seed, given)
        if plan is not None and self.local(plan):
            return plan.batches()
        make: Any = getattr(workload, "static", None)
        has_none = plan is None and hasattr(workload, "static_plan")
        table = None if make is None or has_none else make(self.spark(), seed, partitions=None, **given)
        return () if table is None else table.toArrow().to_batches()

    def write_static(self, workload: Workload, seed: int, given: Mapping[str, object], file: Path) -> None:
        """The triples beside the stream as N-Triples, in a file that is not there yet."""
        with file.open("x", encoding="utf-8", newline="\n") as lines:
            for batch in self.static(workload, seed, given):
                lines.writelines(f"{line}\n" for line in lines_of(batch).to_pylist())

    def static_triples(self, workload: Workload, seed: int, given: Mapping[str, object]) -> list[Triple]:
        """The triples beside the stream in memory."""
        batches = self.static(workload, seed, given)
        return [row for each in batches for row in zip(*(column.to_pylist() for column in each.columns), strict=True)]


def lines_of(rows: "pa.RecordBatch | pa.Table") -> "pa.Array | pa.ChunkedArray":
    """The triples of rows as lines of N-Triples, without their ends: terms are in that form already."""
    return pc.binary_join_element_wise(*(rows.column(name) for name in ("subject", "predicate", "object")), ".", " ")


def _planned(workload: Workload, name: str, seed: int, given: Mapping[str, object]) -> TablePlan | None:
    make: Callable[..., TablePlan | None] | None = getattr(workload, name, None)
    return None if make is None else make(seed, **given)
