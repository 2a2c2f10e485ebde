"""Differences from report to report by compiled plans, portion by portion, for tasks of Spark that compare them.

The definition evaluates each content anew: under content change, 30,000 reports over windows of 35,000 triples match a
billion triples. A plan finds the rows that come and go at each report from the intervals in which they hold.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from streamgauge.formats.tables import lists
from streamgauge.model.algebra import Slice
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.report import ExpectedReport
from streamgauge.model.run import RunHeader
from streamgauge.model.semantics import Counting, Semantics
from streamgauge.model.terms import Row, Term
from streamgauge.oracle.expected.due_table import DuePortion, DueTable
from streamgauge.oracle.expected.on_spark import literals_of
from streamgauge.oracle.expected.reports import ContentChange, differences
from streamgauge.oracle.expected.stretches import Stretch, between
from streamgauge.semantics.static_data import with_matched_static
from streamgauge.spark.answers import ContentChoices, changes
from streamgauge.spark.intervals import contents


def refuse_planned(query: ContinuousQuery, semantics: Semantics) -> str | None:
    """Why plans cannot compute the differences of a run portion by portion; ``None`` if they can."""
    if semantics.answers is Counting.SET:
        return "differences of sets, which depend on all reports before"
    return "differences of answers with LIMIT" if isinstance(query.form.pattern, Slice) else None


@dataclass(frozen=True)
class PlannedDifferences:
    """The differences from report to report of a run, over the rows of its streams (``seen``)."""

    session: SparkSession
    seen: DataFrame
    header: RunHeader

    def due(self, portion: DuePortion) -> tuple[DueTable, tuple[int, ...]]:
        """The candidates of a portion that their contents make due, and the number of triples in each content."""
        query, semantics = self.header.query, self.header.semantics
        near = between(self.seen, portion.due)
        found = contents(near, portion.due, query.windows, semantics.content, semantics.changes)
        places = found.due(semantics.report, portion.skip)
        return portion.due.take(places), tuple(found.sizes[place] for place in places)

    def rows(self, portion: DuePortion, units: Mapping[int, int]) -> DataFrame:
        """The rows that come and go at each report of a portion of due reports, by the unit of the report's place.

        The columns are those of recorded rows: ``position`` is the report's place, ``sign`` the number of copies.
        """
        query, semantics = self.header.query, self.header.semantics
        static = with_matched_static(query, semantics).static
        choices = ContentChoices(semantics.content, semantics.empty_aggregate)
        near = between(self.seen, portion.due)
        net = changes(self.session, near, portion.due, query.form, static, windows=query.windows, means=choices)
        terms = fn.array(*(fn.col(f"`{name}`") for name in net.columns[2:])).cast("array<string>")
        columns = [pa.array(list(units), pa.int32()), pa.array(list(units.values()), pa.int32())]
        places = self.session.createDataFrame(pa.table(columns, ["report", "unit"]))
        position, sign = fn.col("report").cast("int").alias("position"), fn.col("net").alias("sign")
        # The reports that only precede the others have no unit.
        return net.join(fn.broadcast(places), "report").select("unit", position, sign, terms.alias("row"))

    def objects(self, _query: ContinuousQuery, class_of: Callable[[Term], str]) -> Iterable[Term]:
        """A literal of each class among the objects of the run's streams."""
        return literals_of(self.seen, class_of)


def planned_reports(
    stretch: Stretch, sizes: Sequence[int], rows: pa.Table, query: ContinuousQuery, semantics: Semantics
) -> tuple[ExpectedReport, ...]:
    """The reports that a stretch sends, from the rows of its unit; ``sizes`` are those of its reports' contents."""
    own = rows.filter(pc.and_(pc.is_null(rows.column("answer")), pc.is_valid(rows.column("row"))))
    nets: dict[int, dict[Row, int]] = defaultdict(dict)
    numbers = zip(own.column("position").to_pylist(), own.column("sign").to_pylist(), strict=True)
    for (place, copies), row in zip(numbers, lists(own.column("row")), strict=True):
        nets[place][row] = copies
    reports = enumerate(zip(stretch.reports, sizes, strict=True), stretch.start)
    return differences((ContentChange(due, size, nets[place]) for place, (due, size) in reports), query, semantics)
