"""The definition in tasks of Spark: the contents of the reports of a stretch are evaluated on their own.

Nothing of the compiled plans is used, so an engine on Spark can be judged: a task gets the elements that its reports
may contain, and the code of ``semantics`` decides the contents and the answers.
"""

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark import StorageLevel

from streamgauge.model.query import ContinuousQuery
from streamgauge.model.report import DueReport
from streamgauge.model.semantics import Report, Semantics
from streamgauge.oracle.expected.due_table import DuePortion, DueTable
from streamgauge.oracle.expected.stretches import Stretch, between, by_unit, near, stretches, task_of, with_tasks
from streamgauge.semantics.arrivals import Contents, size
from streamgauge.semantics.definition import selected
from streamgauge.semantics.evaluate import Loaded, snapshot_under
from streamgauge.spark.workers import cores

_ANSWER: Final = pa.schema([("unit", pa.int32()), ("row", pa.list_(pa.string())), ("size", pa.int64())])
"""The rows of a report's answer, after one row with the size of its content."""


class Answered(NamedTuple):
    """The due reports by unit, each with the size of its content, and the units' rows on Spark.

    ``rows`` has the columns ``unit`` and ``row``; ``release`` frees their disk space.
    """

    due: dict[int, tuple[DueReport, int]]
    rows: DataFrame
    release: Callable[[], object] = lambda: None


def by_definition(
    session: SparkSession, stream: DataFrame, due: DueTable, query: ContinuousQuery, semantics: Semantics
) -> Answered:
    """The answers of the candidate reports ``due`` over a stream table, by the definition.

    A unit is an index into ``due``. The answers stay on disk until they are released.
    """
    snapshot = snapshot_under(query, semantics)

    def answer(chosen: Iterator[tuple[int, DueReport, Contents]]) -> Iterator[tuple[int, list[str | None] | None, int]]:
        loaded: Loaded | None = None
        for unit, report, contents in chosen:
            loaded = Loaded(contents, loaded)
            # Also a unit without answers has this row, so that its report is known to be due.
            yield unit, None, size(contents, semantics.content)
            for row in snapshot.at(report.instant).rows(contents, loaded):
                yield unit, list(row), 0

    # Read twice, for the heads and for the rows; computing the answers again would double the cost of a verdict.
    kept = _by_stretch(session, stream, due, query, semantics, answer).persist(StorageLevel.DISK_ONLY)
    heads = kept.filter("row is null").select("unit", "size").toArrow().sort_by("unit")
    sizes = zip(*(heads.column(name).to_pylist() for name in ("unit", "size")), strict=True)
    rows = kept.filter("row is not null").select("unit", "row")
    return Answered({unit: (due[unit], number) for unit, number in sizes}, rows, kept.unpersist)


def due_by_content(
    session: SparkSession, stream: DataFrame, portion: DuePortion, query: ContinuousQuery, semantics: Semantics
) -> DueTable:
    """The reports among the candidates of a portion that their contents make due, by the definition."""

    def name(chosen: Iterator[tuple[int, DueReport, Contents]]) -> Iterator[tuple[int, None, int]]:
        return ((unit, None, 0) for unit, _report, _contents in chosen)

    due, skip = portion.due, portion.skip
    named = _by_stretch(session, between(stream, due), due, query, semantics, name, skip)
    return due.take(np.sort(named.select("unit").toArrow().column("unit").to_numpy()))


def _by_stretch(
    session: SparkSession,
    stream: DataFrame,
    due: DueTable,
    query: ContinuousQuery,
    semantics: Semantics,
    answer: Callable[[Iterator[tuple[int, DueReport, Contents]]], Iterator[tuple[int, list[str | None] | None, int]]],
    skip: int = 0,
) -> DataFrame:
    """The rows (``_ANSWER``) that ``answer`` makes of the due reports of each stretch and their indices in ``due``.

    The first ``skip`` candidates only precede the others.
    """
    cut = stretches(due, cores(session), before=Report.CONTENT_CHANGE in semantics.report, skip=skip)

    def evaluate(_unit: int, rows: pa.Table) -> pa.Table:
        answered = answer(_chosen(task_of(rows), rows, query, semantics))
        return pa.Table.from_pylist([dict(zip(_ANSWER.names, line, strict=True)) for line in answered], _ANSWER)

    rows = with_tasks(session, stream, ((stretch.reach, stretch) for stretch in cut), query)
    return by_unit(rows, evaluate, _ANSWER)


def _chosen(
    stretch: Stretch, rows: pa.Table, query: ContinuousQuery, semantics: Semantics
) -> Iterator[tuple[int, DueReport, Contents]]:
    """The reports of a stretch that their contents make due, with their indices among all reports."""
    look, places = near(rows, query, semantics), {report: place for place, report in enumerate(stretch.reports)}
    for report, contents in selected(((report, look(report)) for report in stretch.all), semantics):
        if report in places:
            yield stretch.start + places[report], report, contents
