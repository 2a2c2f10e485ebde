"""Workload tables on Spark: tasks draw and write the blocks of a plan."""

import pickle
from base64 import b64decode, b64encode
from collections.abc import Iterator, Sequence
from itertools import count, pairwise
from typing import Final
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import ArrayType, StructType

from streamgauge.spark.requirements import classic_session
from streamgauge.spark.workers import cores
from streamgauge.workloads.plan import Order, TablePlan

_NAMES: Final = WeakKeyDictionary[SparkSession, str]()
_NUMBERS: Final = count(1)

PART_ROWS: Final = 2_000_000
"""Approximate maximum number of rows in a part file.

It follows from 1.7 CPU s and 13 MB per million rows (``benchmarks.scale``): a task of 3 s, which is all that a lost
worker costs, and a file of 26 MB, which Spark reads in one task and the spark engine in one batch.
"""

_SLICE: Final = 256
"""Drawn rows whose table rows are passed to Spark as one array, which is then exploded."""


def frame(spark: SparkSession, plan: TablePlan, partitions: int | None = None) -> DataFrame:
    """The table of a plan, in its order; the rows do not depend on the number of partitions."""
    classic_session(spark, "making tables")
    # At most one task per id, as an id cannot be divided.
    tasks = max(1, min(partitions or max(cores(spark), -(-plan.rows // PART_ROWS)), plan.ids))
    # Options of a data source are strings, and the only way from the driver to its reader.
    options = {"plan": b64encode(pickle.dumps(plan)).decode(), "tasks": str(tasks)}
    rows = spark.read.format(_registered(spark)).options(**options).load()
    return rows if plan.order is None else _written(_ordered(rows, plan.order, tasks), plan)


class Blocks(DataSource):  # type: ignore[misc]
    """A Spark data source of a plan's rows: those of the table, or drawn rows that are sorted later."""

    @classmethod
    def name(cls) -> str:
        """The name under which Spark knows it."""
        return "streamgauge-blocks"

    def schema(self) -> StructType:
        """The columns of its rows."""
        plan = _plan(self.options["plan"])
        return from_arrow_schema(plan.schema if plan.order is None else plan.drawn)

    def reader(self, schema: object) -> "PlanReader":  # noqa: ARG002
        """The reader of the plan's rows."""
        return PlanReader(_plan(self.options["plan"]), int(self.options["tasks"]))


class Ids(InputPartition):  # type: ignore[misc]
    """The ids of one task."""

    def __init__(self, first: int, end: int) -> None:
        super().__init__((first, end))
        self.first, self.end = first, end


class PlanReader(DataSourceReader):  # type: ignore[misc]
    """Draws the blocks of a plan; each task has consecutive ids."""

    def __init__(self, plan: TablePlan, tasks: int) -> None:
        self._plan, self._tasks = plan, tasks

    def partitions(self) -> Sequence[Ids]:
        """The ranges of ids, one per task."""
        ends = [self._plan.ids * number // self._tasks for number in range(self._tasks + 1)]
        return [Ids(first, end) for first, end in pairwise(ends)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a task's ids."""
        assert isinstance(partition, Ids)
        return self._plan.part(partition.first, partition.end)


def _plan(text: str) -> TablePlan:
    plan = pickle.loads(b64decode(text))
    assert isinstance(plan, TablePlan)
    return plan


def _registered(spark: SparkSession) -> str:
    """The source's name in a session, registered on first use; sessions of one JVM cannot share a name."""
    name = _NAMES.get(spark)
    if name is None:
        name = f"{Blocks.name()}-{next(_NUMBERS)}"
        # The name is a class method, so each name needs a class of its own.
        spark.dataSource.register(type("Blocks", (Blocks,), {"name": classmethod(lambda _cls: name)}))
        _NAMES[spark] = name
    return name


def _written(rows: DataFrame, plan: TablePlan) -> DataFrame:
    names = tuple(rows.columns)

    def write(*columns: pa.Array) -> pa.Array:
        return _write(plan, names, columns)

    inlined = F.arrow_udf(write, ArrayType(from_arrow_schema(plan.schema)))
    return rows.select(F.inline(inlined(*names)))


def _write(plan: TablePlan, names: Sequence[str], columns: Sequence[pa.Array]) -> pa.Array:
    """The table's rows for drawn rows: an array at the first row of each slice, empty arrays at the others.

    A function over columns must return one value per input row, but a slice may have more or fewer table rows.
    """
    drawn = pa.RecordBatch.from_arrays(list(columns), list(names))
    counts = np.zeros(len(drawn) + 1, np.int32)
    batches = []
    for first in range(0, len(drawn), _SLICE):
        batches.append(plan.write(drawn.slice(first, _SLICE)))
        counts[first + 1] = len(batches[-1])
    rows = pa.Table.from_batches(batches, plan.schema).to_struct_array().combine_chunks()
    return pa.ListArray.from_arrays(pa.array(np.cumsum(counts, dtype=np.int32)), rows)


def _ordered(rows: DataFrame, order: Order, tasks: int) -> DataFrame:
    if not order.number:
        return _in_ranges(rows, tasks, *order.columns)
    return numbered(rows, order.columns[0], order.columns[1:], tasks)


def _in_ranges(rows: DataFrame, tasks: int, *columns: str) -> DataFrame:
    """The rows in order in exactly ``tasks`` partitions: adaptive plans keep an explicit number."""
    # Not ``sort``, whose number of partitions an adaptive plan may change.
    return rows.repartitionByRange(tasks, *columns).sortWithinPartitions(*columns)


def numbered(rows: DataFrame, arrival: str, ties: Sequence[str], tasks: int) -> DataFrame:
    """The rows numbered by ``n`` from 0, in the order of the column ``arrival`` (ms), then of the columns ``ties``.

    The number is the count of arrivals in earlier ms plus the position within the ms, so that no task has to see the
    whole stream.
    """
    counts = rows.groupBy(arrival).count()
    # Over one row per millisecond only, as this window is sorted in a single task.
    before = Window.orderBy(arrival).rowsBetween(Window.unboundedPreceding, -1)
    bases = counts.select(arrival, F.coalesce(F.sum("count").over(before), F.lit(0)).alias("base"))
    within = Window.partitionBy(arrival).orderBy(*ties)
    ranked = rows.withColumn("place", F.row_number().over(within) - 1).join(bases, arrival)
    numbered_rows = ranked.withColumn("n", F.col("base") + F.col("place")).drop("base", "place")
    return _in_ranges(numbered_rows.select(*rows.columns, "n"), tasks, "n")
