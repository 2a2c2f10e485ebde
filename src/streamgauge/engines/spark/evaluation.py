"""The answers of a micro-batch's reports: windows through ``spark``, then the query's R2S operator."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from streamgauge.engines.spark.arrivals import triples
from streamgauge.engines.spark.panes import PaneRows, ShownFrame
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.report import DueReport
from streamgauge.model.semantics import R2S, Counting, Report, Semantics
from streamgauge.model.terms import Row, Term, rows_of
from streamgauge.query.stamps import reads_time
from streamgauge.semantics.static_data import with_matched_static
from streamgauge.spark.answers import ContentChoices, answers, changes
from streamgauge.spark.compiler import lasting
from streamgauge.spark.facts import Looked, PredicateCounts, Profile
from streamgauge.spark.failures import JOB_ERRORS
from streamgauge.spark.intervals import intervals, sources
from streamgauge.spark.scalars import OTHER_KIND
from streamgauge.spark.settings import fit


class Learned:
    """Learns the datatype of each predicate's objects (``None`` if several), and whether triples often repeat."""

    def __init__(self, counts: PredicateCounts, streams: frozenset[str]) -> None:
        self._counts, self._streams = counts, streams
        self._kinds: dict[Term, str | None] = {}
        self._often: bool | None = None

    def profile(self, pane_rows: PaneRows) -> Profile:
        """The profile of some files; predicates without a known datatype are sampled first."""
        present = {name for name, count in zip(self._counts.predicates, pane_rows.counted, strict=True) if count}
        if self._often is None or not present.intersection(self._counts.numeric) <= self._kinds.keys():
            self._look(pane_rows.files)
        return self._counts.profile(pane_rows.counted, Looked(self._kinds, bool(self._often)))

    def mistaken(self, files: Sequence[str]) -> None:
        """Handle files with another datatype than expected: sample them, or expect none if that shows nothing new."""
        before = dict(self._kinds)
        self._look(files)
        # Sampling did not find the other datatype, so this would go on for ever: plans without typed numbers take any.
        if self._kinds == before:
            self._kinds = dict.fromkeys(self._kinds)

    def _look(self, files: Sequence[str]) -> None:
        counts = self._counts.look(triples(files, self._streams))
        for name, kind in counts.kinds.items():
            self._kinds[name] = kind if self._kinds.get(name, kind) == kind else None
        self._often = self._often or counts.often


Compiling: TypeAlias = Callable[[DataFrame, Sequence[DueReport], Profile | None], DataFrame]
"""(rows, reports, profile) -> a Spark plan."""

Shape: TypeAlias = tuple[object, ...]
"""The key of a plan: what it computes, the reports relative to their base, the columns, the profile of triples."""

MAX_PLANS = 16
"""Maximum number of plans in the cache, the oldest of which is evicted."""


class LastingPlan:
    """A plan that Spark optimizes once and runs many times, over the current files of its frame.

    An executed plan caches its file list, broadcasts and shuffles. So each run clones the physical plan from before
    exchanges were inserted, and prepares the clone.
    """

    def __init__(self, frame: DataFrame) -> None:
        self._frame = frame
        self._physical: Any = None

    def rows(self) -> pa.Table:
        """The rows over the current files, in one job plus those of its broadcasts."""
        spark = self._frame.sparkSession
        own, execution = spark._jsparkSession, spark._jvm.org.apache.spark.sql.execution
        if self._physical is None:
            self._physical = self._frame._jdf.queryExecution().sparkPlan()
        with _active(spark):
            copied = execution.QueryExecution.prepareExecutedPlan(own, self._physical.clone())
            executed = execution.reuse.ReuseExchangeAndSubquery.apply(copied).execute()
        return DataFrame(own.internalCreateDataFrame(executed, self._frame._jdf.schema(), False), spark).toArrow()


@contextmanager
def _active(spark: SparkSession) -> Iterator[None]:
    """Activate a session's settings in this thread of the JVM."""
    sessions = spark._jvm.org.apache.spark.sql.classic.SparkSession
    before = sessions.getActiveSession()
    sessions.setActiveSession(spark._jsparkSession)
    try:
        yield
    finally:
        if before.isDefined():
            sessions.setActiveSession(before.get())
        else:
            sessions.clearActiveSession()


@dataclass(frozen=True)
class ReportRows:
    """One report: ``rows`` has a string column for each of the answer's columns, ordered by all of them."""

    due: DueReport
    rows: pa.Table

    def as_rows(self) -> Iterator[Row]:
        """The rows as terms."""
        return rows_of([column.to_pylist() for column in self.rows.columns], len(self.rows))


class Evaluation:
    """Evaluates a query over rows of its streams; ``folder`` is for links to their files.

    Plans use times relative to the first report, so batches with the same pattern of reports share one.
    """

    def __init__(
        self,
        spark: SparkSession,
        query: ContinuousQuery,
        semantics: Semantics,
        folder: Path,
        counts: PredicateCounts | None,
    ) -> None:
        self._spark, self._query, self._semantics = spark, query, semantics
        streams = frozenset(window.stream for window in query.windows)
        self._shown = ShownFrame(spark, folder, streams)
        self._learned = Learned(counts, streams) if counts else None
        self._absolute = reads_time(query.form)
        self._lasting = counts is not None and lasting(query.form)
        self._plans: dict[Shape, LastingPlan] = {}

    def evaluated(self, pane_rows: PaneRows, due: Sequence[DueReport]) -> tuple[DueReport, ...]:
        """The reports that remain under the report strategies about content (non-empty content)."""
        if Report.NON_EMPTY not in self._semantics.report or not due:
            return tuple(due)
        counted = self._answered(pane_rows, due, self._of_contents).to_pydict()
        steps = [0] * (len(due) + 1)
        for low, high, count in zip(counted["lo"], counted["hi"], counted["count"], strict=True):
            # A worked example: intervals 0 to 2 and 2 to 3 with 5 and 1 triples are the steps +5, 0, +1, -5, -1, so
            # the reports have 5, 5, 6 and 1.
            steps[low] += count
            steps[high + 1] -= count
        return tuple(report for report, size in zip(due, accumulate(steps), strict=False) if size)

    def answers_of(self, pane_rows: PaneRows, due: Sequence[DueReport], last: DueReport | None) -> Iterator[ReportRows]:
        """The answers of the reports after ``last``, without silent ones."""
        if not due:
            return
        rstream = (self._query.r2s or self._semantics.r2s) is R2S.RSTREAM
        tables = self._bags(pane_rows, due) if rstream else self._differences(pane_rows, due, last)
        for report, table in zip(due, tables, strict=True):
            if len(table) or self._semantics.notify_empty:
                yield ReportRows(report, table)

    def _bags(self, pane_rows: PaneRows, due: Sequence[DueReport]) -> Iterator[pa.Table]:
        answered = self._answered(pane_rows, due, self._of_bags)
        if self._semantics.answers is Counting.SET:
            names = [f"c{index}" for index in range(answered.num_columns)]
            answered = answered.rename_columns(names).group_by(names).aggregate([])
        return self._apart(answered.column(0), answered.columns[1:], len(due))

    def _differences(self, pane_rows: PaneRows, due: Sequence[DueReport], last: DueReport | None) -> Iterator[pa.Table]:
        """Rows added (Istream) or removed (Dstream) since the previous report."""
        # The previous report is evaluated again: its answer is not stored, which would be as large as the answer.
        wanted = [last, *due] if last else list(due)
        report, net, *terms = self._answered(pane_rows, wanted, self._of_changes).columns
        if self._semantics.answers is Counting.SET:
            net = _of_sets(report, net, terms)
        sign = 1 if (self._query.r2s or self._semantics.r2s) is R2S.ISTREAM else -1
        # Rows that changed in the other direction are not sent by this operator.
        copies = np.maximum(sign * net.to_numpy(), 0)
        places = pa.array(np.repeat(np.arange(len(copies)), copies))
        tables = self._apart(report.take(places), [column.take(places) for column in terms], len(wanted))
        if last:
            # The table of the previous report compares it with nothing.
            next(tables)
        return tables

    def _answered(self, pane_rows: PaneRows, due: Sequence[DueReport], compiling: Compiling) -> pa.Table:
        """The result of a plan on these files, recompiled if their datatypes have changed."""
        # A query that reads times shows them, so they cannot be relative.
        base = 0 if self._absolute else due[0].instant
        rows = self._shown.show(pane_rows, base)
        shape = tuple(_from(base, report) for report in due)
        try:
            return self._rows(rows, pane_rows, shape, compiling)
        except JOB_ERRORS as error:
            if self._learned is None or OTHER_KIND not in str(error):
                raise
            self._learned.mistaken(pane_rows.files)
            return self._rows(rows, pane_rows, shape, compiling)

    def _rows(self, rows: DataFrame, pane_rows: PaneRows, shape: Sequence[DueReport], compiling: Compiling) -> pa.Table:
        """The rows of a plan, cached by the magnitude of the input too, since joins are chosen by it."""
        known = self._learned.profile(pane_rows) if self._learned else None
        if known is None or not self._lasting:
            fit(self._spark, pane_rows.rows)
            return compiling(rows, shape, known).toArrow()
        # Half the bits: the joins are chosen anew at each power of four.
        signature = tuple(known.kinds.items()), known.repeated, sum(pane_rows.counted).bit_length() // 2
        key = (compiling, tuple(shape), pane_rows.ends, pane_rows.stream, signature)
        if key not in self._plans:
            if len(self._plans) == MAX_PLANS:
                del self._plans[next(iter(self._plans))]
            fit(self._spark, pane_rows.rows)  # a plan has as many partitions as the session when it was made
            self._plans[key] = LastingPlan(compiling(rows, shape, known))
        return self._plans[key].rows()

    def _of_bags(self, rows: DataFrame, due: Sequence[DueReport], known: Profile | None) -> DataFrame:
        query, means = with_matched_static(self._query, self._semantics), self._means(known)
        return answers(self._spark, rows, due, query.form, query.static, windows=query.windows, means=means)

    def _of_changes(self, rows: DataFrame, due: Sequence[DueReport], known: Profile | None) -> DataFrame:
        query, means = with_matched_static(self._query, self._semantics), self._means(known)
        return changes(self._spark, rows, due, query.form, query.static, windows=query.windows, means=means)

    def _means(self, known: Profile | None) -> ContentChoices:
        return ContentChoices(self._semantics.content, self._semantics.empty_aggregate, known)

    def _of_contents(self, rows: DataFrame, due: Sequence[DueReport], _known: Profile | None) -> DataFrame:
        return intervals(rows, due, sources(self._query.windows)).groupBy("lo", "hi").count()

    def _apart(self, report: pa.ChunkedArray, terms: Sequence[pa.ChunkedArray], count: int) -> Iterator[pa.Table]:
        """One table for each report, in order."""
        names = ["report", *(f"c{index}" for index in range(len(terms)))]
        table = pa.table([report, *terms], names=names)
        # By the terms as well, so that a repeated batch writes its rows in the same order, under the same keys.
        table = table.take(pc.sort_indices(table, sort_keys=[(name, "ascending") for name in names]))
        borders = np.searchsorted(table.column(0).to_numpy(), np.arange(count + 1))
        plain = table.drop_columns(["report"])
        return (plain.slice(low, high - low) for low, high in pairwise(map(int, borders)))


def _from(base: int, due_report: DueReport) -> DueReport:
    """The report with times relative to ``base`` (ms)."""
    views = tuple(
        replace(view, start=view.start - base, end=view.end - base, first=view.first - base, last=view.last - base)
        for view in due_report.views
    )
    return DueReport(due_report.instant - base, views)


def _of_sets(report: pa.ChunkedArray, net: pa.ChunkedArray, terms: Sequence[pa.ChunkedArray]) -> pa.Array:
    """Changes of bags as changes of sets: a row is added with its first copy and removed with its last."""
    order = pc.sort_indices(report).to_pylist()
    rows = list(rows_of([column.to_pylist() for column in terms], len(report)))
    counts, multiplicities, changes = net.to_pylist(), Counter[tuple[str | None, ...]](), [0] * len(report)
    for place in order:
        before = multiplicities[rows[place]] > 0
        multiplicities[rows[place]] += counts[place]
        changes[place] = (multiplicities[rows[place]] > 0) - before
    return pa.array(changes, pa.int64())
