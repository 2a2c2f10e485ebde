"""Stretches of reports, each with the elements that its reports may contain, for tasks of Spark.

Reports that follow one another mostly contain the same elements: a task gets these once, and of all reports only its
own. A stretch's elements fit one task's memory.
"""

import pickle
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby, pairwise
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from streamgauge.formats.stream import SCHEMA, UNTIL, elements
from streamgauge.model.element import StreamElement
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.report import DueReport, View
from streamgauge.model.semantics import Semantics
from streamgauge.oracle.expected.due_table import DueTable, Numbers
from streamgauge.oracle.expected.ranks import RANK
from streamgauge.oracle.expected.reports import Look, inspected

EVERY: Final = 1 << 62
"""A ``View.seen`` beyond every rank: all arrivals within the view's times."""

MAX_REPORTS: Final = 100
"""Reports of a stretch: their contents are in a task's memory together."""

MAX_WIDENING: Final = 1.5
"""How much longer the time of a stretch may be than that of its first report."""

TASKS_A_CORE: Final = 4
"""Stretches that each core gets at least, so that none waits long for another."""

_BATCH_BYTES: Final = 4 << 20
"""Bytes of tasks, about, that go to Spark together."""

_PACK: Final = "pack"
"""The column of the rows of a unit: some of them in Arrow's stream format, compressed; null in recorded rows."""

_PACKS: Final = pa.schema([("unit", pa.int32()), (_PACK, pa.binary())])

Borders: TypeAlias = dict[str, tuple[Numbers, Numbers]]
"""The first and the last times (ms) of the units of each stream."""

_TASK: Final = "task"
"""The column of what the task of a unit has to do, pickled; null in other rows than the unit's own."""


class Stretch(NamedTuple):
    """Consecutive reports, of which ``start`` is the first one's index, and the one before them where it matters."""

    start: int
    before: tuple[DueReport, ...]
    reports: tuple[DueReport, ...]

    @property
    def all(self) -> tuple[DueReport, ...]:
        """The reports with the one before."""
        return (*self.before, *self.reports)

    @property
    def reach(self) -> DueReport | None:
        """The last report, with views widened to what any report may contain; ``None`` without reports."""
        if not self.all:
            return None
        # Twice, so that a single report is both the first and the last.
        first, *_, last = (*self.all, *self.all)
        views = zip(first.views, last.views, strict=True)
        return replace(last, views=tuple(replace(view, first=early.first) for early, view in views))


def stretches(reports: DueTable, cores: int, *, before: bool, skip: int = 0) -> Iterator[Stretch]:
    """Cut reports, after the first ``skip``, into stretches; reports of one instant stay together.

    ``before`` gives each stretch the report before its first. Worked example: windows of 10 s that slide by 2 s reach
    back 10 s, so the reports at 10, 12 and 14 s (which reach from 0 to 14) are a stretch, with 16 s it would be longer
    than 15 s. Windows that do not overlap are stretches of their own.
    """
    limit = min(MAX_REPORTS, max(1, len(reports) // (TASKS_A_CORE * cores)))
    instants, firsts, lasts = reports.instants, reports.firsts, reports.lasts
    start, taken = skip, skip
    for _, together in groupby(range(skip, len(reports)), key=instants.__getitem__):
        *_, last = together
        length, longest = lasts[last] - firsts[start], MAX_WIDENING * max(0, lasts[start] - firsts[start])
        if taken > start and (last + 1 - start > limit or length > longest):
            yield _stretch(reports, start, taken, before=before)
            start = taken
        taken = last + 1
    if taken > start:
        yield _stretch(reports, start, taken, before=before)


def _stretch(reports: DueTable, start: int, end: int, *, before: bool) -> Stretch:
    return Stretch(start, reports[max(0, start - before) : start], reports[start:end])


def between(stream: DataFrame, reports: DueTable) -> DataFrame:
    """The rows of a stream table within the times that some of these reports may contain, as files are skipped by."""
    if not reports:
        return stream.filter(fn.lit(False))
    return stream.filter(fn.col("time").between(min(reports.firsts), max(reports.lasts)))


def with_tasks(
    session: SparkSession, stream: DataFrame, tasks: Iterable[tuple[DueReport | None, object]], query: ContinuousQuery
) -> DataFrame:
    """The rows of a stream table by the units whose tasks need them, and for each unit a row with its task.

    A task is for the elements that its report, ascending in time, may contain (none without a report); ``task_of``
    gives it to the unit ``n``, the n-th. The driver keeps 16 bytes a task and stream, and the pickled tasks.
    """
    streams = {name: _places(query, name) for name in sorted(query.streams)}
    limits, pickled = array("q"), list[bytes]()
    for report, task in tasks:
        for places in streams.values():
            # An empty range: last before first.
            limits.extend((1, 0) if report is None else _limits(report, places))
        pickled.append(pickle.dumps(task))
    borders = np.array(limits, np.int64).reshape(-1, len(streams), 2)
    by_stream = {name: (borders[:, at, 0], borders[:, at, 1]) for at, name in enumerate(streams)}
    own = stream.select(*SCHEMA.names, *(name for name in (UNTIL.name, RANK) if name in stream.columns))
    rows = fn.arrow_udtf(_packing(by_stream), returnType=from_arrow_schema(_PACKS))(own.asTable())
    none = _packed(pa.RecordBatch.from_pylist([], to_arrow_schema(own.schema)))
    return rows.unionByName(session.createDataFrame(_task_table(pickled, none)), allowMissingColumns=True)


def _task_table(pickled: Sequence[bytes], none: bytes) -> pa.Table:
    """The tasks by their units, in batches of some megabytes, each of which Spark makes a partition.

    Each is beside ``none``, a pack without rows, so that a unit without elements has their columns.
    """
    units, tasks = pa.array(range(len(pickled)), pa.int32()), pa.array(pickled, pa.large_binary())
    own = pa.table([units, tasks, pa.array([none] * len(pickled), pa.binary())], ["unit", _TASK, _PACK])
    rows = max(1, _BATCH_BYTES * len(pickled) // max(1, own.nbytes))
    return pa.Table.from_batches(own.to_batches(max_chunksize=rows), own.schema)


def task_of(rows: pa.Table) -> Any:
    """The task of a unit, taken from its rows (``with_tasks``)."""
    (task,) = rows.column(_TASK).drop_null().to_pylist()
    return pickle.loads(task)


def _places(query: ContinuousQuery, stream: str) -> list[int]:
    """The positions of the windows over a stream."""
    return [place for place, window in enumerate(query.windows) if window.stream == stream]


def _limits(report: DueReport, places: Sequence[int]) -> tuple[int, int]:
    """The first and the last time (ms) that any of these windows of a report may contain."""
    return min(report.views[place].first for place in places), max(report.views[place].last for place in places)


def _packing(borders: Borders) -> type:
    """A table function from rows of a stream table to packs (``_PACKS``), one for each batch and unit of its rows.

    Spark would convert and sort rows of seven columns one by one, but only moves packs.
    """

    class Packs:
        """Packs batch by batch."""

        def eval(self, batch: pa.RecordBatch) -> Iterator[pa.Table]:
            """The packs of a batch."""
            places, units = _by_unit(*_placed(batch.column("time"), batch.column("stream"), borders))
            rows = batch.take(pa.array(places))
            # Units ascend here, so the first place of each is where the one before ends.
            numbers, starts = np.unique(units, return_index=True)
            packs = [_packed(rows.slice(low, high - low)) for low, high in pairwise([*starts.tolist(), len(units)])]
            yield pa.table([pa.array(numbers, pa.int32()), pa.array(packs, pa.binary())], schema=_PACKS)

    return Packs


def _by_unit(low: Numbers, high: Numbers) -> tuple[Numbers, Numbers]:
    """Places and units, ascending by unit: each place with all units from its ``low`` to its ``high``.

    Worked example: of three rows with low 0 1 1 and high 1 0 1 the first is of the units 0 and 1, the second of none:
    places 0 0 2, units 0 1 1.
    """
    counts = np.maximum(high - low + 1, 0)
    places = np.repeat(np.arange(len(low)), counts)
    # Counts upwards from ``low`` within each place, without a loop.
    units = low[places] + np.arange(len(places)) - np.repeat(np.cumsum(counts) - counts, counts)
    order = np.argsort(units, kind="stable")
    return places[order], units[order]


def _packed(rows: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as stream:
        stream.write_batch(rows)
    return bytes(sink.getvalue())


def _unpacked(rows: pa.Table) -> pa.Table:
    """The rows of a unit with those of its packs in place of the packs."""
    packs = rows.column(_PACK).drop_null()
    own = rows.filter(pc.or_(pc.is_null(rows.column(_PACK)), pc.is_valid(rows.column(_TASK)))).drop_columns([_PACK])
    tables = [pa.ipc.open_stream(pack.as_buffer()).read_all() for chunk in packs.chunks for pack in chunk]
    return pa.concat_tables([own, *tables], promote_options="default")


def _placed(time: pa.Array, stream: pa.Array, borders: Borders) -> tuple[Numbers, Numbers]:
    """The first and the last unit that may contain each row, by its time and stream; last < first if none may.

    ``borders`` are the first and the last times (ms) of a stream's units. Worked example: windows of 10 ms that slide
    by 5 have views that begin at 0, 5, 10 and end at 9, 14, 19. For an element at 12 the first view that ends at or
    after 12 is the second, the last that begins by 12 the third.
    """
    times = time.to_numpy()
    low, high = np.zeros(len(times), np.int64), np.full(len(times), -1, np.int64)
    for name, (firsts, lasts) in borders.items():
        own = pc.equal(stream, name).to_numpy(zero_copy_only=False)
        # Units ascend in both borders, so those that may contain a time are a range between two binary searches.
        low[own] = np.searchsorted(lasts, times[own])
        high[own] = np.searchsorted(firsts, times[own], "right") - 1
    return low, high


def by_unit(rows: DataFrame, evaluate: Callable[[int, pa.Table], pa.Table], schema: pa.Schema) -> DataFrame:
    """The tables (``schema``) that ``evaluate`` makes of each unit and all of its rows, each in a task."""
    function = fn.arrow_udtf(_unit_by_unit(evaluate), returnType=from_arrow_schema(schema))
    return function(rows.asTable().partitionBy("unit"))


def _unit_by_unit(evaluate: Callable[[int, pa.Table], pa.Table]) -> type:
    """A table function, partitioned by ``unit``, that calls ``evaluate`` with a unit and all of its rows."""

    class UnitRows:
        """Collects the batches of one unit; those of other units stay in Spark's shuffle."""

        def __init__(self) -> None:
            self._batches: list[pa.RecordBatch] = []

        def eval(self, batch: pa.RecordBatch) -> Iterator[pa.Table]:
            """Collect the next batch of the unit's rows."""
            self._batches.append(batch)
            return iter(())

        def terminate(self) -> Iterator[pa.Table]:
            """The unit's result, after its last batch."""
            if self._batches:  # or it is a task without units
                rows = _unpacked(pa.Table.from_batches(self._batches))
                yield evaluate(rows.column("unit")[0].as_py(), rows)

    return UnitRows


def seen_elements(rows: pa.Table) -> list[StreamElement]:
    """The elements among the rows of a unit, by application time, then by sequence number."""
    own = rows.filter(pc.is_valid(rows.column("time")))
    columns = [name for name in (*SCHEMA.names, UNTIL.name) if name in own.column_names]
    by_sequence = own.select(columns).sort_by([("sequence", "ascending"), ("position", "ascending")])
    return sorted(elements(by_sequence), key=lambda element: (element.time, element.sequence))


def whole(report: DueReport) -> DueReport:
    """The report over all that came in its times."""
    return replace(report, views=tuple(replace(view, seen=EVERY, after=0) for view in report.views))


def near(rows: pa.Table, query: ContinuousQuery, semantics: Semantics) -> Look:
    """The contents of the reports of a unit, from its rows (``with_tasks``)."""
    look = inspected(seen_elements(rows), query, semantics)
    if RANK not in rows.column_names:
        return lambda report: look(whole(report))
    ranks = np.unique(rows.column(RANK).drop_null().to_numpy())
    return lambda report: look(replace(report, views=tuple(_among(view, ranks) for view in report.views)))


def _among(view: View, ranks: Numbers) -> View:
    """The view by ranks among a unit's arrivals, which have these ``ranks`` in the stream.

    Worked example: a unit has the arrivals 40, 41 and 43, since 42 is of a stream with a shorter window. A view of
    those from 41 on, before 44, has its arrivals 1 and 2, so it begins after 1 and has seen 3.
    """
    seen, after = np.searchsorted(ranks, [view.seen, view.after]).tolist()
    return replace(view, seen=seen, after=after)
