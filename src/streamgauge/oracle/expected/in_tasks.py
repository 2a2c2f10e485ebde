"""The definition in tasks of Spark: the contents of the reports of a stretch are evaluated on their own.

Nothing of the compiled plans is used, so an engine on Spark can be judged: a task gets the elements that its reports
may contain, and the code of ``semantics`` decides the contents and the answers.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark import StorageLevel

from streamgauge.model.query import ContinuousQuery
from streamgauge.model.report import DueReport, ExpectedReport
from streamgauge.model.run import RunHeader
from streamgauge.model.semantics import R2S, Report, Semantics
from streamgauge.model.terms import Term
from streamgauge.oracle.expected.due_table import DuePortion, DueTable
from streamgauge.oracle.expected.reports import Look
from streamgauge.oracle.expected.stretches import Stretch, between, by_unit, near, stretches, task_of, with_tasks
from streamgauge.semantics.arrivals import Contents, size
from streamgauge.semantics.definition import answered, operator, selected
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


class StretchReports:
    """The expected reports of one stretch (an ``Expect``), by the definition, from the elements near it."""

    def __init__(self, stretch: Stretch, rows: pa.Table, header: RunHeader, *, chosen: bool) -> None:
        """``chosen`` if all reports of the stretch are known to be due."""
        self.stretch, self._chosen = stretch, chosen
        self._differs = operator(header.query, header.semantics) is not R2S.RSTREAM
        self._near = near(rows, header.query, header.semantics)
        self._objects: list[Term] = rows.column("object").drop_null().unique().to_pylist()

    @property
    def has_before(self) -> bool:
        """Whether the first answer is a difference to an earlier report."""
        return self._differs and bool(self.stretch.before)

    @cached_property
    def _contents(self) -> dict[DueReport, Contents]:
        """The contents of the reports and of the one before, computed once for all calls."""
        return {report: self._near(report) for report in self.stretch.all}

    def __call__(
        self, query: ContinuousQuery, semantics: Semantics, _advanced_to: int, _t0: int
    ) -> tuple[ExpectedReport, ...]:
        """The due reports; also the one before, if whole answers of a run of differences are wanted."""
        now, looked = {*self.stretch.reports}, self._contents.items()
        pairs = looked if self._chosen else selected(looked, semantics)
        reports = answered([pair for pair in pairs if self._differs or pair[0] in now], query, semantics)
        whole_answers = self._differs and operator(query, semantics) is R2S.RSTREAM
        return tuple(report for report in reports if whole_answers or report.due in now)

    def instants(self, _query: ContinuousQuery, _semantics: Semantics, _advanced_to: int, _t0: int) -> set[int]:
        """The instants at which reports may be due."""
        return {report.instant for report in self.stretch.reports}

    def look(self, _query: ContinuousQuery, _semantics: Semantics, _t0: int) -> Look:
        """The contents of the reports."""
        return self._contents.__getitem__

    def objects(self, _query: ContinuousQuery, _class_of: object) -> Sequence[Term]:
        """The objects of the elements near the stretch."""
        return self._objects
