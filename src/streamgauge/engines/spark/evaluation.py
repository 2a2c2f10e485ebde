"""What the due reports of a micro-batch say: windows through ``compute/spark``, then the query's operator."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from streamgauge.compute.spark.answers import Means, answers, changes, columns
from streamgauge.compute.spark.intervals import intervals, sources
from streamgauge.compute.spark.profile import Profile
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.report import DueReport
from streamgauge.model.semantics import R2S, Counting, Report, Semantics


@dataclass(frozen=True)
class Said:
    """One report: ``rows`` has a string column for each of the answer's columns, ordered by all of them."""

    due: DueReport
    rows: pa.Table


@dataclass(frozen=True)
class Evaluation:
    """Evaluates a query over rows of its streams."""

    spark: SparkSession
    query: ContinuousQuery
    semantics: Semantics

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of an answer's columns."""
        return columns(self.query.form)

    def evaluated(self, rows: DataFrame, due: Sequence[DueReport]) -> tuple[DueReport, ...]:
        """The reports that the strategies about content leave."""
        if Report.NON_EMPTY not in self.semantics.report or not due:
            return tuple(due)
        held = intervals(rows, due, sources(self.query.windows)).groupBy("lo", "hi").count().toArrow().to_pydict()
        steps = [0] * (len(due) + 1)
        for low, high, count in zip(held["lo"], held["hi"], held["count"], strict=True):
            steps[low] += count
            steps[high + 1] -= count
        return tuple(report for report, size in zip(due, accumulate(steps), strict=False) if size)

    def said(
        self, rows: DataFrame, due: Sequence[DueReport], last: DueReport | None, known: Profile | None
    ) -> Iterator[Said]:
        """What is sent at the reports when ``last`` was evaluated before them; nothing for a silent one.

        ``known`` is the profile of the rows, if it is known.
        """
        if not due:
            return
        if (self.query.r2s or self.semantics.r2s) is R2S.RSTREAM:
            tables = self._bags(rows, due, known)
        else:
            tables = self._differences(rows, due, last, known)
        for report, table in zip(due, tables, strict=True):
            if len(table) or self.semantics.notify_empty:
                yield Said(report, table)

    def _bags(self, rows: DataFrame, due: Sequence[DueReport], known: Profile | None) -> Iterator[pa.Table]:
        query = self.query
        found = answers(
            self.spark, rows, due, query.form, query.static, windows=query.windows, means=self._means(known)
        ).toArrow()
        if self.semantics.answers is Counting.SET:
            names = [f"c{index}" for index in range(found.num_columns)]
            found = found.rename_columns(names).group_by(names).aggregate([])
        return self._apart(found.column(0), found.columns[1:], len(due))

    def _differences(
        self, rows: DataFrame, due: Sequence[DueReport], last: DueReport | None, known: Profile | None
    ) -> Iterator[pa.Table]:
        """Rows that came since the report before, or those that went."""
        query, wanted = self.query, [last, *due] if last else list(due)
        found = changes(
            self.spark, rows, wanted, query.form, query.static, windows=query.windows, means=self._means(known)
        ).toArrow()
        report, net, *terms = found.columns
        if self.semantics.answers is Counting.SET:
            net = _of_sets(report, net, terms)
        sign = 1 if (query.r2s or self.semantics.r2s) is R2S.ISTREAM else -1
        copies = np.maximum(sign * net.to_numpy(), 0)
        places = pa.array(np.repeat(np.arange(len(copies)), copies))
        tables = self._apart(report.take(places), [column.take(places) for column in terms], len(wanted))
        if last:
            next(tables)
        return tables

    def _apart(self, report: pa.ChunkedArray, terms: Sequence[pa.ChunkedArray], count: int) -> Iterator[pa.Table]:
        """One table for each report, in order."""
        names = ["report", *(f"c{index}" for index in range(len(terms)))]
        table = pa.table([report, *terms], names=names)
        table = table.take(pc.sort_indices(table, sort_keys=[(name, "ascending") for name in names]))
        borders = np.searchsorted(table.column(0).to_numpy(), np.arange(count + 1))
        plain = table.drop_columns(["report"])
        return (plain.slice(low, high - low) for low, high in pairwise(map(int, borders)))

    def _means(self, known: Profile | None) -> Means:
        return Means(self.semantics.content, self.semantics.empty_aggregate, known)


def _of_sets(report: pa.ChunkedArray, net: pa.ChunkedArray, terms: Sequence[pa.ChunkedArray]) -> pa.Array:
    """Changes of bags as changes of their sets: a row comes with its first copy and goes with its last."""
    order = pc.sort_indices(report).to_pylist()
    rows = list(zip(*(column.to_pylist() for column in terms), strict=True)) or [()] * len(report)
    counts, held, found = net.to_pylist(), Counter[tuple[str | None, ...]](), [0] * len(report)
    for place in order:
        before = held[rows[place]] > 0
        held[rows[place]] += counts[place]
        found[place] = (held[rows[place]] > 0) - before
    return pa.array(found, pa.int64())
