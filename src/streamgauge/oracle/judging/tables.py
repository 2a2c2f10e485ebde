"""A recorded run judged in its tables: Spark compares the rows, and one row per window reaches the driver.

Covers runs that ``refusal`` does not name. The definition judges by instants (``instant_tasks``). Rows of compiled
plans, and of answers that name no instant, are counted: expected and recorded ones together by report and row, so
neither side is collected, except up to ``witnesses`` differing rows. Answers without instants are aligned in order by
the numbers of rows that pairs share.
"""

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as fn
from pyspark import StorageLevel

from streamgauge.formats.places import Place
from streamgauge.model.algebra import Select
from streamgauge.model.report import DueReport, ExpectedReport
from streamgauge.model.run import Run, RunHeader
from streamgauge.model.semantics import R2S, Clock, Counting, EmptyAggregate, Grain
from streamgauge.model.terms import Row
from streamgauge.model.verdict import Evaluator, Verdict, WindowVerdict
from streamgauge.oracle.expected.due_table import DuePortion, DueTable, Numbers, portions
from streamgauge.oracle.expected.extent import Extent, admitted, extent
from streamgauge.oracle.expected.in_tasks import Answered, by_definition
from streamgauge.oracle.expected.planned import PlannedDifferences, refuse_planned
from streamgauge.oracle.expected.ranks import ArrivalsError, arrived, needs_arrivals, ranked, refuse_reports
from streamgauge.oracle.expected.reports import cuts, refuse_spark
from streamgauge.oracle.expected.stretches import between
from streamgauge.oracle.judging.align import BAND, Pair, align
from streamgauge.oracle.judging.compare import similarity
from streamgauge.oracle.judging.deltas import countable
from streamgauge.oracle.judging.gracious_tables import gracious_tables
from streamgauge.oracle.judging.hand_overs import HandOvers, by_arrival_table
from streamgauge.oracle.judging.instant_tasks import RECORDED, InstantJudging, NamedAnswers, NotByInstantError
from streamgauge.oracle.judging.metrics import Unit, judge
from streamgauge.oracle.judging.oracle import JudgedWindow, JudgingRules, Progress, Scored, compared_order, decide
from streamgauge.oracle.worlds.membership import Overlap
from streamgauge.oracle.worlds.restatement import is_compared_by_term
from streamgauge.query.stamps import reads_time
from streamgauge.semantics.arrivals import Arrivals
from streamgauge.semantics.beginning import is_sent
from streamgauge.semantics.definition import operator
from streamgauge.semantics.due import candidates_in_order
from streamgauge.semantics.honoured import DEFINED, SHARED, not_honoured
from streamgauge.semantics.refusal import RefusedError
from streamgauge.semantics.static_data import with_matched_static
from streamgauge.spark.answers import ContentChoices, answers
from streamgauge.spark.hadoop_tables import read_parquet, read_table
from streamgauge.spark.intervals import ContentSizes, contents
from streamgauge.spark.settings import fit
from streamgauge.spark.workers import cores


class NotInTablesError(ValueError):
    """A run that cannot be judged in its tables; the message says why. It is judged in this process instead."""


COUNTED: Final = SHARED | {
    "content": (Counting.SET, Counting.BAG),
    "answers": (Counting.BAG,),
    "grain": (Grain.REPORT,),
    "empty_aggregate": (EmptyAggregate.SPARQL,),
}
"""The semantics under which rows are counted."""


def refusal(header: RunHeader, evaluator: Evaluator) -> str | None:
    """Why a run with this header is not judged in its tables; ``None`` if only its rows may forbid it."""
    query, semantics = header.query, header.semantics
    if header.failure is not None:
        return "an engine that failed"
    if reason := not_honoured(semantics, DEFINED, "a judge in tables"):
        return reason
    if evaluator == "definition":
        return None
    if operator(query, semantics) is not R2S.RSTREAM:
        return refuse_planned(query, semantics) or refuse_spark(query, semantics)
    if countable(query, semantics) and needs_arrivals(query.windows, semantics):
        return "nearly the same rows at each arrival, which are counted by their changes"
    return refuse_counts(header) or refuse_spark(query, semantics)


def refuse_counts(header: RunHeader) -> str | None:
    """Why the rows of a run with this header are not judged by counting equal ones."""
    query, semantics = header.query, header.semantics
    if compared_order(header):
        return "answers that keep the order of their rows"
    if reason := not_honoured(semantics, COUNTED, "a judge that counts rows"):
        return reason
    if operator(query, semantics) is not R2S.RSTREAM:
        return f"{operator(query, semantics)}"
    form = query.form
    if not isinstance(form, Select) or not is_compared_by_term(form):
        return "a query whose answers are not compared term by term"
    return "timestamp() or NOW()" if reads_time(form) else None


def judge_tables(
    session: SparkSession,
    run: Run,
    stream: Place,
    rules: JudgingRules,
    progress: Progress = lambda _a, _b: None,
    *,
    gracious: bool = False,
) -> Verdict:
    """The verdict on a run read without its rows (``formats.run.read_heads``); NotInTablesError if rows forbid it.

    The driver keeps a few numbers and at most ``rules.witnesses`` rows of each kind per window. ``gracious`` searches
    the borders that fit wrong answers best.
    """
    if reason := refusal(run.header, rules.evaluator):
        raise NotInTablesError(reason)
    table = read_table(session, stream)
    if run.header.semantics.clock is Clock.APPLICATION:
        return _judge_table(session, run, table, rules, progress, gracious=gracious)
    verdict = _judge_table(session, *by_arrival_table(session, run, table), rules, progress, gracious=gracious)
    other = _judge_table(session, run, table, rules)
    return replace(verdict, other_clock=(str(Clock.APPLICATION), other.precision, other.recall))


def _judge_table(
    session: SparkSession,
    run: Run,
    table: DataFrame,
    rules: JudgingRules,
    progress: Progress = lambda _a, _b: None,
    *,
    gracious: bool = False,
) -> Verdict:
    """``judge_tables`` by the times of a stream table."""
    reach = extent(table, run.header.query.streams)
    if not reach.ordered and run.header.semantics.lateness is None:
        raise NotInTablesError("elements that go back in time")
    named = _named(run)
    if reason := _refuse_rows(run, named, rules.evaluator, gracious=gracious):
        raise NotInTablesError(reason)
    fit(session, reach.triples, cores(session))
    judged = TableJudging(session, table, reach, run, named, rules)
    bound = None if named is None else judged.impossible
    try:
        verdict = decide(run, judged.score, reach.first, rules, progress, bound)
    except (NotByInstantError, ArrivalsError, RefusedError) as error:
        raise NotInTablesError(str(error)) from error
    return judged.graciously(verdict) if gracious else verdict


def _named(run: Run) -> NamedAnswers | None:
    """The answers by the instants that they name; ``None`` where some answer names none."""
    instants = array("q")
    for answer in run.answers:
        if answer.instant is None:
            return None
        instants.append(answer.instant)
    return NamedAnswers(np.array(instants, np.int64))


def _refuse_rows(run: Run, named: NamedAnswers | None, evaluator: Evaluator, *, gracious: bool) -> str | None:
    """Why the rows of a run are not counted, or not compared as they were recorded, where this is needed."""
    header, form = run.header, run.header.query.form
    differ = operator(header.query, header.semantics) is not R2S.RSTREAM
    if (evaluator == "definition" or differ) and named is not None and not gracious:
        return None
    if reason := refuse_counts(header):
        return reason
    if gracious and needs_arrivals(header.query.windows, header.semantics):
        return "borders of reports that arrivals make due"
    if differ:
        return "borders of differences"
    if not isinstance(form, Select) or any(
        answer.kind != "solutions" or answer.variables != form.variables for answer in run.answers
    ):
        return "answers with other columns than the query's"
    if named is not None and named.shared:
        return "answers that do not name an instant of their own"
    return None


class RowCounts(NamedTuple):
    """The numbers of expected, of recorded and of common rows of a unit."""

    expected: int = 0
    actual: int = 0
    common: int = 0


_UNIT, _ANSWER, _ROW, _EXPECTED, _ACTUAL = "unit", "answer", "row", "expected", "actual"


@dataclass(frozen=True)
class TableJudging:
    """A run with the tables of its stream and rows; a unit is a due report (by index), or a surplus answer.

    Without ``named`` the answers are aligned in order.
    """

    session: SparkSession
    stream: DataFrame
    reach: Extent
    run: Run
    named: NamedAnswers | None
    rules: JudgingRules
    # Arrivals by the t0 on which they depend; ``None`` if they do not depend on it.
    known: dict[int | None, Arrivals] = field(default_factory=dict)

    def score(self, t0: int) -> Scored:
        """The scores of the run under one t0 (ms)."""
        by_plans, header = self.rules.evaluator == "spark", self.run.header
        differ = operator(header.query, header.semantics) is not R2S.RSTREAM
        if self.named is not None and (differ or not by_plans):
            seen, rules = self._seen(t0), self.rules
            planned = PlannedDifferences(self.session, seen, header) if by_plans else None
            judging = InstantJudging(self.session, seen, self.run, self.named, self._recorded, rules, t0, planned)
            return judging.score(self._portions(t0))
        windows = enumerate(self._in_order(t0) if self.named is None else self._by_portion(t0, self.named))
        judged = (JudgedWindow(replace(window, index=index)) for index, window in windows)
        return Scored.of(self._names, judged, self.rules.max_delay)

    def _in_order(self, t0: int) -> Iterator[WindowVerdict]:
        """The verdicts where answers name no instant: they are aligned in order, all at once."""
        due = self._candidates(t0)
        if needs_arrivals(self.run.header.query.windows, self.run.header.semantics):
            refuse_reports(len(due))
        answered = self._answered(DuePortion(due, 0, final=True), self._seen(t0))
        try:
            pairs, after = self._by_order(answered), len(due)
            yield from self._scored(answered, pairs, after, HandOvers(self.run))
        finally:
            answered.release()

    def _by_portion(self, t0: int, named: NamedAnswers) -> Iterator[WindowVerdict]:
        """The verdicts where answers name their instants, portion by portion."""
        seen, hand_overs, begin = self._seen(t0), HandOvers(self.run), 0
        for portion in self._portions(t0):
            answered = self._answered(portion, between(seen, portion.due))
            last = None if portion.final else portion.due.instants[-1]
            end = named.until(last)
            places = dict(zip(named.instants[begin:end].tolist(), named.places[begin:end].tolist(), strict=True))
            yield from self._scored(answered, self._by_instant(answered, places), len(portion.due), hand_overs)
            begin = end

    def _scored(
        self, answered: Answered, aligned: Iterable[Pair], candidates: int, hand_overs: HandOvers
    ) -> Iterator[WindowVerdict]:
        """The verdicts of reports (units, below ``candidates``) and answers (positions) that are aligned."""
        # Surplus answers get the numbers after the reports, as units of their own.
        surplus = count(candidates)
        units = [(next(surplus) if unit is None else unit, position) for unit, position in aligned]
        counted = self._counted(answered.rows, {position: unit for unit, position in units if position is not None})
        counts = _totals(counted)
        wrong = [unit for unit, _ in units if len({*counts.get(unit, RowCounts())}) > 1]
        witnesses = _witnesses(counted, wrong, self.rules.witnesses) if wrong else {}
        return self._windows(answered.due, units, counts, witnesses, hand_overs)

    def _by_instant(self, answered: Answered, places: Mapping[int, int]) -> list[Pair]:
        """Due reports (units) paired with the answers (positions) of their instants, in order of time."""
        semantics = self.run.header.semantics
        units = {due.instant: unit for unit, (due, _) in answered.due.items() if is_sent(due.instant, semantics)}
        if len(units) < sum(is_sent(due.instant, semantics) for due, _ in answered.due.values()):
            raise NotInTablesError("reports that share an instant")
        return [(units.get(instant), places.get(instant)) for instant in sorted({*units, *places})]

    def _by_order(self, answered: Answered) -> list[Pair]:
        """Due reports aligned with answers in order at minimal cost (``align``), by their numbers of common rows."""
        semantics, answers = self.run.header.semantics, self.run.answers
        sizes = _sizes(answered.rows, _UNIT)
        units = [
            unit
            for unit, (due, _) in answered.due.items()
            if is_sent(due.instant, semantics) and (semantics.notify_empty or sizes.get(unit))
        ]
        received = _sizes(self._rows, _ANSWER)
        # The corridor of the alignment: pairs further apart are never compared.
        common = self._common(answered.rows, units, BAND + abs(len(units) - len(answers)))

        def similar(i: int, j: int) -> float:
            return similarity(common.get((i, j), 0), sizes.get(units[i], 0), received.get(j, 0))

        expected = [ExpectedReport(answered.due[unit][0], self._names, (), 0) for unit in units]
        return [(None if i is None else units[i], j) for i, j in align(expected, answers, similar)]

    def _common(self, rows: DataFrame, units: Sequence[int], band: int) -> dict[tuple[int, int], int]:
        """The number of common rows of report i of ``units`` and answer j, for |i - j| <= ``band``."""
        places = self.session.createDataFrame([*zip(units, range(len(units)), strict=True)], f"{_UNIT} int, place int")
        expected = rows.join(fn.broadcast(places), _UNIT).groupBy("place", _ROW).agg(fn.count("*").alias(_EXPECTED))
        received = self._rows.groupBy(_ANSWER, _ROW).agg(fn.count("*").alias(_ACTUAL))
        paired = expected.join(received, _ROW).filter(fn.abs(fn.col("place") - fn.col(_ANSWER)) <= band)
        # A row that the report has three times and the answer twice is common twice.
        sums = paired.groupBy("place", _ANSWER).agg(fn.sum(fn.least(_EXPECTED, _ACTUAL)))
        return {(i, j): shared for i, j, shared in sums.collect()}

    def impossible(self, t0: int) -> tuple[bool, float, int]:
        """An upper bound of the rank of a t0 (``oracle.best_possible``), without counting rows."""
        assert self.named is not None
        semantics, instants = self.run.header.semantics, self.named.instants
        met = np.zeros(len(instants), bool)
        for portion in self._portions(t0):
            due = [instant for instant in portion.due.instants if is_sent(instant, semantics)]
            # An answer at an instant at which nothing is due can match no report under this t0: the fewer, the better
            # it may rank.
            met |= np.isin(instants, np.array(due, np.int64))
        apart = self._number(instants[~met], self.named.places[~met])
        named = len(np.unique(instants))
        return not apart, 1.0 if named > apart or not apart else 0.0, -apart

    def _number(self, instants: Numbers, places: Numbers) -> int:
        """The answers at these instants and places; those of a row each are one for each instant and scope."""
        if self.run.header.semantics.grain is Grain.REPORT:
            return len(places)
        pairs = zip(instants.tolist(), places.tolist(), strict=True)
        return len({(instant, self.run.answers[place].scope) for instant, place in pairs})

    def graciously(self, verdict: Verdict) -> Verdict:
        """The verdict with the borders that fit best (``gracious_tables``)."""
        if verdict.t0 is None:
            return verdict
        due = {report.instant: report for report in self._candidates(verdict.t0)}
        return gracious_tables(self._seen(verdict.t0), self.run, due, self._recorded, verdict)

    def _admitted(self, t0: int) -> DataFrame:
        """The rows of the query's streams, without elements that are late under a t0 (ms)."""
        query, semantics = self.run.header.query, self.run.header.semantics
        own = self.stream.filter(fn.col("stream").isin(*sorted(query.streams)))
        return admitted(own, self.reach, semantics, query.windows, t0)

    def _seen(self, t0: int) -> DataFrame:
        """The same rows, with their ranks where reports depend on them."""
        windows, semantics = self.run.header.query.windows, self.run.header.semantics
        # Under a tick for each time, arrivals make reports due, and each of them sees all arrivals of its times.
        if not needs_arrivals(windows, semantics) or not cuts(self._in_time(t0), self._arrivals(t0).times):
            return self._admitted(t0)
        return ranked(self._admitted(t0), self._arrivals(t0), windows, semantics.tick)

    @property
    def _names(self) -> tuple[str, ...]:
        form = self.run.header.query.form
        assert isinstance(form, Select)
        return form.variables

    def _candidates(self, t0: int) -> DueTable:
        return DueTable.of(self._in_time(t0), len(self.run.header.query.windows))

    def _portions(self, t0: int) -> Iterator[DuePortion]:
        return portions(self._in_time(t0), len(self.run.header.query.windows))

    def _in_time(self, t0: int) -> Iterator[DueReport]:
        """The candidates under a t0 (ms), in order of time."""
        header = self.run.header
        windows, semantics, until = header.query.windows, header.semantics, header.advanced_to
        arrivals = self._arrivals(t0) if needs_arrivals(windows, semantics) else Arrivals((), (), ())
        return candidates_in_order(arrivals, windows, semantics, t0, until)

    def _arrivals(self, t0: int) -> Arrivals:
        """The arrivals under a t0 (ms), which matters to late ones only."""
        windows, semantics = self.run.header.query.windows, self.run.header.semantics
        key = None if semantics.lateness is None else t0
        if key not in self.known:
            self.known[key] = arrived(self._admitted(t0), self.reach.triples, windows, semantics)
        return self.known[key]

    def _answered(self, portion: DuePortion, seen: DataFrame) -> Answered:
        """The due reports among these candidates, and their rows, by compiled plans or by the definition."""
        query, semantics, due = self.run.header.query, self.run.header.semantics, portion.due
        if self.rules.evaluator == "definition":
            return by_definition(self.session, seen, due, query, semantics)
        sizes: ContentSizes = contents(seen, due, query.windows, semantics.content, semantics.changes)
        kept = [(due[place], sizes.sizes[place]) for place in sizes.due(semantics.report, portion.skip)]
        means = ContentChoices(semantics.content, semantics.empty_aggregate)
        reports = [report for report, _ in kept]
        static = with_matched_static(query, semantics).static
        wanted = answers(self.session, seen, reports, query.form, static, windows=query.windows, means=means)
        # The first column is the report's number.
        terms = fn.array(*(fn.col(f"`{name}`") for name in wanted.columns[1:])).cast("array<string>")
        rows = wanted.select(fn.col("report").cast("int").alias(_UNIT), terms.alias(_ROW))
        if self.named is not None:
            return Answered(dict(enumerate(kept)), rows)
        again = rows.persist(StorageLevel.DISK_ONLY)  # alignment reads them before they are compared
        return Answered(dict(enumerate(kept)), again, again.unpersist)

    def _counted(self, rows: DataFrame, units: Mapping[int, int]) -> DataFrame:
        """The multiplicity of each row of each unit on both sides."""
        recorded = self._recorded(units).select(_UNIT, _ROW, *_once(False))
        sides = rows.select(_UNIT, _ROW, *_once(True)).unionByName(recorded)
        return sides.groupBy(_UNIT, _ROW).agg(*(fn.sum(name).alias(name) for name in (_EXPECTED, _ACTUAL)))

    @cached_property
    def _rows(self) -> DataFrame:
        """The recorded rows, by the position of their answer; NotInTablesError where some undo earlier ones."""
        assert self.run.folder is not None
        rows = read_parquet(self.session, self.run.folder / "rows.parquet")
        sends = operator(self.run.header.query, self.run.header.semantics)
        if sends is not R2S.CHANGES and rows.filter(fn.col("sign") != 1).limit(1).count():
            raise NotInTablesError("answers that remove rows")
        return rows.withColumnsRenamed({"report": _ANSWER, "values": _ROW})

    def _recorded(self, units: Mapping[int, int]) -> DataFrame:
        """The recorded rows (``instant_tasks.RECORDED``), by the unit that their answer (a position) belongs to."""
        columns = [pa.array(list(units), pa.int64()), pa.array(list(units.values()), pa.int32())]
        places = self.session.createDataFrame(pa.table(columns, [_ANSWER, _UNIT]))
        # Rows are in order of their answers, so that a portion of them skips most row groups.
        near = self._rows.filter(fn.col(_ANSWER).between(min(units, default=0), max(units, default=0)))
        return near.join(fn.broadcast(places), _ANSWER).select(*RECORDED)

    def _windows(
        self,
        due: Mapping[int, tuple[DueReport, int]],
        units: Sequence[tuple[int, int | None]],
        counts: Mapping[int, RowCounts],
        witnesses: Mapping[int, tuple[tuple[Row, ...], tuple[Row, ...]]],
        hand_overs: HandOvers,
    ) -> Iterator[WindowVerdict]:
        """The verdict of each unit; reports without rows only count if the semantics notifies of them."""
        notified = self.run.header.semantics.notify_empty
        when = hand_overs.due_time([report for report, _ in due.values()])
        for unit, place in units:
            sides = counts.get(unit, RowCounts())
            answer = None if place is None else self.run.answers[place]
            report = None
            if unit in due and (sides.expected or notified):
                report = ExpectedReport(due[unit][0], self._names, (), due[unit][1])
            if report is None and answer is None:
                continue
            both = Overlap(sides.common, *witnesses.get(unit, ((), ())))
            compared = Unit(report, answer, place, both)
            yield judge(0, compared, when, self.rules.witnesses, (sides.expected, sides.actual))


def _sizes(rows: DataFrame, key: str) -> dict[int, int]:
    """The number of rows of each key."""
    return dict(rows.groupBy(key).count().collect())


def _once(expected: bool) -> list[Column]:
    return [fn.lit(int(expected)).alias(_EXPECTED), fn.lit(int(not expected)).alias(_ACTUAL)]


def _totals(counted: DataFrame) -> dict[int, RowCounts]:
    """The counts of each unit; NotInTablesError for blank nodes, whose rows are compared by isomorphism."""
    # A triple term may contain a blank node.
    blank = fn.exists(_ROW, lambda term: term.startswith("_:") | term.startswith("<<"))
    # The smaller multiplicities add up to the size of the bags' intersection.
    sums = [fn.sum(column) for column in (_EXPECTED, _ACTUAL, fn.least(_EXPECTED, _ACTUAL))]
    totals = counted.groupBy(_UNIT).agg(*sums, fn.max(fn.coalesce(blank, fn.lit(False)))).collect()
    if any(row[-1] for row in totals):
        raise NotInTablesError("blank nodes or triple terms in rows")
    return {row[0]: RowCounts(*row[1:4]) for row in totals}


def _witnesses(
    counted: DataFrame, units: Sequence[int], limit: int
) -> dict[int, tuple[tuple[Row, ...], tuple[Row, ...]]]:
    """For each unit at most ``limit`` missing rows and ``limit`` surplus rows, in order of their terms."""
    net = (fn.col(_EXPECTED) - fn.col(_ACTUAL)).alias("net")
    differing = counted.filter(fn.col(_UNIT).isin(*units)).select(_UNIT, _ROW, net).filter("net != 0")
    ranked = Window.partitionBy(_UNIT, fn.col("net") > 0).orderBy(_ROW)
    kept = differing.withColumn("rank", fn.row_number().over(ranked)).filter(fn.col("rank") <= limit)
    rows: dict[tuple[int, bool], list[Row]] = {}
    for unit, row, copies, _rank in kept.sort(_UNIT, "rank").collect():
        # One row may be missing any number of times, of which the verdict keeps no more than ``limit``.
        rows.setdefault((unit, copies > 0), []).extend([tuple(row)] * min(abs(copies), limit))
    return {
        unit: (tuple(rows.get((unit, True), ())[:limit]), tuple(rows.get((unit, False), ())[:limit])) for unit in units
    }
