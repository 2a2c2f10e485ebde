"""The expected reports of a recorded stream, all windows in one Spark job."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as f

from streamgauge.formats.stream import elements
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.report import DueReport, ExpectedReport
from streamgauge.model.semantics import R2S, Counting, Semantics
from streamgauge.model.terms import Row, Term, rows_of
from streamgauge.oracle.expected.cuts import uncut
from streamgauge.oracle.expected.reports import (
    ContentChange,
    ExpectChanges,
    Header,
    Look,
    all_candidates,
    as_sets,
    cuts,
    differences,
    in_order,
    inspected,
    refuse_spark,
    reports,
)
from streamgauge.semantics.arrivals import Arrivals, Contents, Head, admit, arrivals, by_triple
from streamgauge.semantics.definition import operator
from streamgauge.semantics.refusal import RefusedError
from streamgauge.semantics.static_data import with_matched_static
from streamgauge.spark.answers import ContentChoices, answers, changes
from streamgauge.spark.compiler import AMBIGUOUS
from streamgauge.spark.failures import JOB_ERRORS
from streamgauge.spark.hadoop_tables import read_table
from streamgauge.spark.intervals import contents
from streamgauge.spark.settings import fit


class SparkReports:
    """Expected reports by Spark over a stream table (``formats/stream.py``), on disk or as a data frame."""

    def __init__(self, session: SparkSession, stream: Path | DataFrame, header: Header) -> None:
        self._session, self._table, self._header = session, _table(session, stream), header

    def __call__(
        self, query: ContinuousQuery, semantics: Semantics, advanced_to: int, t0: int
    ) -> tuple[ExpectedReport, ...]:
        """The reports that are due up to ``advanced_to`` (ms)."""
        wanted = _wanted(self._session, self._table, self._header, query, semantics, advanced_to, t0)
        if operator(query, semantics) is R2S.RSTREAM:
            return reports(wanted.due, wanted.bags(query, semantics), wanted.sizes, query, semantics)
        return differences(wanted.changes(query, semantics), query, semantics)

    def instants(self, query: ContinuousQuery, semantics: Semantics, advanced_to: int, t0: int) -> Set[int]:
        """The instants (ms) at which reports may be due."""
        return self._header.instants(query, semantics, advanced_to, t0)

    def look(self, query: ContinuousQuery, semantics: Semantics, t0: int) -> Look:
        """The contents of the reports under one t0 (ms), each by a search of the table."""
        admitted, late = admit(self._header.elements, semantics, query.windows, t0)
        times = arrivals(admitted, query.windows, semantics.tick).times
        seen = _seen(self._session, self._table, query, {head.sequence for head in late})

        def look(due_report: DueReport) -> Contents:
            first, last = min(view.first for view in due_report.views), due_report.last
            inside = seen.filter(f.col("time").between(first, last)).orderBy("sequence", "position")
            ordered = sorted(elements(inside.toArrow()), key=lambda element: (element.time, element.sequence))
            return inspected(ordered, query, semantics, bisect_left(times, first))(due_report)

        return look

    def objects(self, query: ContinuousQuery, class_of: Callable[[Term], str]) -> Iterable[Term]:
        """A literal of each class among the objects of the query's streams."""
        return literals_of(_seen(self._session, self._table, query, set()), class_of)


def literals_of(seen: DataFrame, class_of: Callable[[Term], str]) -> list[Term]:
    """A literal of each class among the objects of a stream table's rows."""

    def classify(texts: pa.Array) -> pa.Array:
        coded = texts.dictionary_encode()
        return pa.array(map(class_of, coded.dictionary.to_pylist()), pa.string()).take(coded.indices)

    literals = seen.select("object").filter("object like '\"%'")
    classes = literals.groupBy(f.arrow_udf(classify, "string")("object")).agg(f.min("object").alias("object"))
    return [str(term) for term in classes.toArrow()["object"].to_pylist()]


def spark_changes(session: SparkSession, stream: Path | DataFrame, header: Header) -> ExpectChanges:
    """The answers of an Rstream as changes, one row for each solution that comes or goes (``deltas.py``)."""
    table = _table(session, stream)

    def expect(query: ContinuousQuery, semantics: Semantics, advanced_to: int, t0: int) -> tuple[ContentChange, ...]:
        return tuple(_wanted(session, table, header, query, semantics, advanced_to, t0).changes(query, semantics))

    return expect


def _table(session: SparkSession, stream: Path | DataFrame) -> DataFrame:
    return read_table(session, stream) if isinstance(stream, Path) else stream


def arrived(session: SparkSession, stream: Path, times: Mapping[int, int]) -> DataFrame:
    """The stream table under arrival times: ``times`` maps sequence numbers to ms; other elements are left out."""
    rows = pa.table({"sequence": pa.array(list(times), pa.int64()), "time": pa.array(list(times.values()), pa.int64())})
    stamped = f.broadcast(session.createDataFrame(rows))
    return read_table(session, stream).drop("time").join(stamped, "sequence")


def read_header(table: DataFrame) -> Header:
    """The heads of a stream table, one row per element collected through Arrow."""
    until = f.first("until") if "until" in table.columns else f.lit(None).cast("long")
    first = (f.first("stream").alias("stream"), f.first("time").alias("time"))
    # All rows of an element have its stream and time, so any of them says both.
    heads = table.groupBy("sequence").agg(*first, f.count("*").alias("size"), until.alias("until")).toArrow()
    columns = (heads.column(name).to_pylist() for name in ("stream", "time", "sequence", "size", "until"))
    return Header(Head(*values) for values in zip(*columns, strict=True))


class _Wanted:
    """The due reports of one stream with the sizes of their contents, and the jobs that evaluate them."""

    def __init__(
        self, session: SparkSession, stream: DataFrame, due: Sequence[DueReport], sizes: Sequence[int]
    ) -> None:
        self.session, self.stream, self.due, self.sizes = session, stream, due, sizes

    def bags(self, query: ContinuousQuery, semantics: Semantics) -> list[tuple[Row, ...]]:
        """The solutions of each report; under LIMIT one of the legal answers."""
        whole = uncut(query)
        if whole is not None:
            return [whole.kept(rows) for rows in self.bags(whole.query, semantics)]
        table = self._asked(answers, query, semantics)
        report, *terms = (column.to_pylist() for column in table.columns)
        return in_order(zip(report, rows_of(terms, len(report)), strict=True), len(self.due))

    def changes(self, query: ContinuousQuery, semantics: Semantics) -> Iterable[ContentChange]:
        """The difference of each report's solutions to those of the report before."""
        table = self._asked(changes, query, semantics)
        report, net, *terms = (column.to_pylist() for column in table.columns)
        nets: list[dict[Row, int]] = [{} for _ in self.due]
        for at, count, row in zip(report, net, rows_of(terms, len(report)), strict=True):
            nets[at][row] = count
        plain = map(ContentChange, self.due, self.sizes, nets)
        return as_sets(plain) if semantics.answers is Counting.SET else plain

    def _asked(self, job: Callable[..., DataFrame], query: ContinuousQuery, semantics: Semantics) -> pa.Table:
        means = ContentChoices(semantics.content, semantics.empty_aggregate)
        static = with_matched_static(query, semantics).static
        return collected(
            job(self.session, self.stream, self.due, query.form, static, windows=query.windows, means=means)
        )


def collected(frame: DataFrame) -> pa.Table:
    """A job's result; RefusedError if the job finds that several answers are legal."""
    try:
        return frame.toArrow()
    except JOB_ERRORS as error:
        # The job raises inside of a task, and Spark passes on the text only.
        if AMBIGUOUS not in str(error):
            raise
        what = AMBIGUOUS.removeprefix("streamgauge: ")
        raise RefusedError(f"the expected answer is not determined: {what}; order by every column") from None


def _wanted(
    session: SparkSession,
    table: DataFrame,
    header: Header,
    query: ContinuousQuery,
    semantics: Semantics,
    advanced_to: int,
    t0: int,
) -> _Wanted:
    """The due reports: candidates whose content satisfies non-empty content and content change."""
    if reason := refuse_spark(query, semantics):
        raise RefusedError(f"the Spark oracle does not judge {reason}: use the definition (--evaluator definition)")
    fit(session, sum(head.size for head in header.elements))
    due, arrived, late = all_candidates(header, query, semantics, advanced_to, t0)
    seen = _seen(session, table, query, late)
    # Ranking needs an order over the whole stream, so it is left out where times alone decide.
    if cuts(due, arrived.times):
        seen = _ranked(session, seen, arrived, query, semantics)
    contents_ = contents(seen, due, query.windows, semantics.content, semantics.changes)
    kept = contents_.due(semantics.report)
    return _Wanted(session, seen, [due[index] for index in kept], [contents_.sizes[index] for index in kept])


def _seen(session: SparkSession, table: DataFrame, query: ContinuousQuery, late: Set[int]) -> DataFrame:
    """The rows of the query's streams, without late elements."""
    seen = table.filter(f.col("stream").isin(sorted({window.stream for window in query.windows})))
    if not late:
        return seen
    dropped = session.createDataFrame([(sequence,) for sequence in sorted(late)], "sequence long")
    return seen.join(f.broadcast(dropped), "sequence", "left_anti")


def _ranked(
    session: SparkSession, seen: DataFrame, arrived: Arrivals, query: ContinuousQuery, semantics: Semantics
) -> DataFrame:
    """The rows with their rank in system time: a report may see only some of the arrivals of one time."""
    if by_triple(query.windows, semantics.tick):
        order = Window.orderBy("time", "sequence", "position")
        return seen.withColumn("arrival", f.row_number().over(order).cast("long") - 1)
    ranks = [(sequence, rank) for rank, sequence in enumerate(arrived.sequences)]
    return seen.join(f.broadcast(session.createDataFrame(ranks, "sequence long, arrival long")), "sequence")
