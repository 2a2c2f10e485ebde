"""Stretches of reports, each with the elements that its reports may contain, for tasks of Spark.

Reports that follow one another mostly contain the same elements: a task gets these once, and of all reports only its
own. A stretch's elements fit one task's memory.
"""

import pickle
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

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
        first, *_, last = (*self.all, *self.all)
        views = zip(first.views, last.views, strict=True)
        return replace(last, views=tuple(replace(view, first=early.first) for early, view in views))


def stretches(reports: DueTable, cores: int, *, before: bool) -> Iterator[Stretch]:
    """Cut reports into stretches; reports of one instant stay together.

    ``before`` gives each stretch the report before its first. Worked example: windows of 10 s that slide by 2 s reach
    back 10 s, so the reports at 10, 12 and 14 s (which reach from 0 to 14) are a stretch, with 16 s it would be longer
    than 15 s. Windows that do not overlap are stretches of their own.
    """
    limit = min(MAX_REPORTS, max(1, len(reports) // (TASKS_A_CORE * cores)))
    instants, firsts, lasts = reports.instants, reports.firsts, reports.lasts
    start, taken = 0, 0
    for _, together in groupby(range(len(reports)), key=instants.__getitem__):
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
            limits.extend((1, 0) if report is None else _limits(report, places))
        pickled.append(pickle.dumps(task))
    borders = np.array(limits, np.int64).reshape(-1, len(streams), 2)
    by_stream = {name: (borders[:, at, 0], borders[:, at, 1]) for at, name in enumerate(streams)}
    names = [*SCHEMA.names, *(name for name in (UNTIL.name, RANK) if name in stream.columns)]
    place = fn.arrow_udf(_placing(by_stream), "struct<low: int, high: int>")
    placed = stream.select(*names, place("time", "stream").alias("units")).filter("units.low <= units.high")
    rows = placed.select(fn.explode(fn.sequence("units.low", "units.high")).alias("unit"), *names)
    return rows.unionByName(session.createDataFrame(_task_table(pickled)), allowMissingColumns=True)


def _task_table(pickled: Sequence[bytes]) -> pa.Table:
    """The tasks by their units, in batches of some megabytes, each of which Spark makes a partition."""
    own = pa.table([pa.array(range(len(pickled)), pa.int32()), pa.array(pickled, pa.large_binary())], ["unit", _TASK])
    rows = max(1, _BATCH_BYTES * len(pickled) // max(1, own.nbytes))
    return pa.Table.from_batches(own.to_batches(max_chunksize=rows), own.schema)


def task_of(rows: pa.Table) -> Any:
    """The task of a unit, from its rows (``with_tasks``)."""
    (task,) = rows.column(_TASK).drop_null().to_pylist()
    return pickle.loads(task)


def _places(query: ContinuousQuery, stream: str) -> list[int]:
    """The positions of the windows over a stream."""
    return [place for place, window in enumerate(query.windows) if window.stream == stream]


def _limits(report: DueReport, places: Sequence[int]) -> tuple[int, int]:
    """The first and the last time (ms) that any of these windows of a report may contain."""
    return min(report.views[place].first for place in places), max(report.views[place].last for place in places)


def _placing(borders: dict[str, tuple[Numbers, Numbers]]) -> Callable[[pa.Array, pa.Array], pa.Array]:
    """The first and the last unit that may contain a row, by its time and stream; last < first if none may.

    ``borders`` are the first and the last times (ms) of a stream's units. Worked example: windows of 10 ms that slide
    by 5 have views that begin at 0, 5, 10 and end at 9, 14, 19. For an element at 12 the first view that ends at or
    after 12 is the second, the last that begins by 12 the third.
    """

    def place(time: pa.Array, stream: pa.Array) -> pa.Array:
        times = time.to_numpy()
        low, high = np.zeros(len(times), np.int32), np.full(len(times), -1, np.int32)
        for name, (firsts, lasts) in borders.items():
            own = pc.equal(stream, name).to_numpy(zero_copy_only=False)
            low[own] = np.searchsorted(lasts, times[own])
            high[own] = np.searchsorted(firsts, times[own], "right") - 1
        return pa.StructArray.from_arrays([pa.array(low), pa.array(high)], ["low", "high"])

    return place


def unit_by_unit(evaluate: Callable[[int, pa.Table], pa.Table]) -> type:
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
                rows = pa.Table.from_batches(self._batches)
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
