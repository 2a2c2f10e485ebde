"""A run judged instant by instant in tasks of Spark, each by the judge of a single process (``oracle.matched``).

A task gets the elements that windows may contain at an instant, those of the report before if the answer depends on it,
and the recorded rows. Tasks therefore reach the verdicts of a single process, also on computed numbers, choices that a
query leaves open, the order of rows, and differences. One instant's elements have to fit one task's memory; one row per
window, with at most ``witnesses`` rows of each kind, reaches the driver.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn
from pyspark.sql.pandas.types import from_arrow_schema

from streamgauge.formats.run import WINDOWS, window_verdicts, windows_table
from streamgauge.formats.tables import lists
from streamgauge.model.answer import Answer
from streamgauge.model.element import StreamElement
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.report import DueReport, ExpectedReport
from streamgauge.model.run import Run, RunHeader
from streamgauge.model.semantics import R2S, Report, Semantics
from streamgauge.model.terms import Row
from streamgauge.model.verdict import WindowVerdict
from streamgauge.oracle.expected.in_tasks import report_by_report, seen_by, seen_elements, whole
from streamgauge.oracle.expected.reports import Look, inspected
from streamgauge.oracle.judging.metrics import DueTime, Unit, judge
from streamgauge.oracle.judging.oracle import JudgingRules, Scored, in_columns, matched
from streamgauge.oracle.judging.units import is_right
from streamgauge.oracle.worlds.legality import ReportLegality
from streamgauge.semantics.arrivals import Contents
from streamgauge.semantics.definition import answered, columns, operator, selected
from streamgauge.semantics.evaluate import Snapshot

RECORDED: Final = ("unit", "answer", "position", "sign", "row")
"""The columns of recorded rows in a task: ``answer`` is the answer's place in the run, ``sign`` 1 or -1."""


def _as_in_spark(field: pa.Field) -> pa.Field:
    """The field with a type that Spark supports: lists of any length, nulls allowed."""
    fixed = pa.types.is_fixed_size_list(field.type)
    return pa.field(field.name, pa.list_(field.type.value_type) if fixed else field.type)


_JUDGED: Final = pa.schema(
    [
        ("unit", pa.int32()),
        *map(_as_in_spark, WINDOWS),
        ("retyped", pa.list_(pa.int32())),
        ("unknown", pa.string()),
        ("depends", pa.bool_()),
    ]
)
"""Window verdicts; ``depends`` if the verdict depends on which of several legal answers came before."""


class NotByInstantError(ValueError):
    """The instants of a run cannot be judged one by one; the message says why."""


class Instant(NamedTuple):
    """A time (ms), the report that may be due then, and the answers that name it, without their rows.

    ``reports`` ends with that report, preceded by the one before if the answer depends on it; it is empty for surplus
    answers. ``places`` are the answers' positions in the run.
    """

    reports: tuple[DueReport, ...]
    answers: tuple[Answer, ...]
    places: tuple[int, ...]
    time: int


def refusal(header: RunHeader) -> str | None:
    """Why a run cannot be judged instant by instant; ``None`` if it can."""
    sends, content = operator(header.query, header.semantics), {Report.NON_EMPTY, Report.CONTENT_CHANGE}
    if sends is not R2S.RSTREAM and header.semantics.report & content:
        return f"{sends} of reports that contents make due"
    return None


@dataclass(frozen=True)
class InstantJudging:
    """A run with its stream table; ``named`` maps instants (ms) to the positions of the answers that name them.

    ``recorded`` maps {position of an answer: unit} to the answers' recorded rows (``RECORDED``).
    """

    session: SparkSession
    stream: DataFrame
    run: Run
    named: Mapping[int, Sequence[int]]
    recorded: Callable[[Mapping[int, int]], DataFrame]
    rules: JudgingRules

    def score(self, t0: int, due: Sequence[DueReport], when: DueTime) -> Scored:
        """The scores under one t0 (ms), with the candidate reports ``due``.

        NotByInstantError if they are not independent.
        """
        query = self.run.header.query
        instants = list(self._instants(due))
        reaches = [_reach(instant.reports) for instant in instants if instant.reports]
        units = {place: unit for unit, instant in enumerate(instants) for place in instant.places}
        every = self.session.range(len(instants)).select(fn.col("id").cast("int").alias("unit"))
        rows = seen_by(self.stream, reaches, query).unionByName(self.recorded(units), allowMissingColumns=True)
        bare = replace(self.run, answers=(), fed=(), samples=(), folder=None)
        judging = report_by_report(_judging(bare, t0, instants, when, self.rules))
        judged = fn.arrow_udtf(judging, returnType=from_arrow_schema(_JUDGED))
        table = judged(rows.unionByName(every, allowMissingColumns=True).asTable().partitionBy("unit")).toArrow()
        if pc.any(table.column("depends")).as_py():
            raise NotByInstantError("differences to an answer that the query leaves open")
        names = columns(Snapshot(query).variables, operator(query, self.run.header.semantics))
        return _scored(table, [instant.time for instant in instants], names)

    def _instants(self, due: Sequence[DueReport]) -> "list[Instant]":
        """The instants of ``due``, in its order, then those of surplus answers."""
        header = self.run.header
        before = operator(header.query, header.semantics) is not R2S.RSTREAM
        before |= Report.CONTENT_CHANGE in header.semantics.report
        pairs = zip((None, *due), due, strict=False)
        views = [((earlier, report) if before and earlier else (report,)) for earlier, report in pairs]
        apart = sorted(self.named.keys() - {report.instant for report in due})
        return [self._instant(reports, reports[-1].instant) for reports in views] + [
            self._instant((), time) for time in apart
        ]

    def _instant(self, reports: tuple[DueReport, ...], time: int) -> Instant:
        places = tuple(self.named.get(time, ()))
        return Instant(reports, tuple(self.run.answers[place] for place in places), places, time)


def _reach(reports: Sequence[DueReport]) -> DueReport:
    """The last of these reports with views widened to what any of them may contain."""
    *_, last = reports
    firsts = [min(view.first for view in views) for views in zip(*(one.views for one in reports), strict=True)]
    return replace(last, views=tuple(replace(view, first=at) for view, at in zip(last.views, firsts, strict=True)))


def _scored(table: pa.Table, times: Sequence[int], names: tuple[str, ...]) -> Scored:
    """The scores from the verdicts, in the order of instants; ``times`` are those of units (ms)."""
    at = [times[unit] for unit in table.column("unit").to_pylist()]
    order = sorted(range(len(at)), key=at.__getitem__)
    ordered = table.take(pa.array(order, pa.int64()))
    windows = window_verdicts(ordered.select(WINDOWS.names))
    retyped = sorted({column for columns_ in ordered.column("retyped").to_pylist() for column in columns_})
    unknown = {index: text for index, text in enumerate(ordered.column("unknown").to_pylist()) if text}
    numbered = tuple(replace(window, index=index) for index, window in enumerate(windows))
    return Scored(names, numbered, tuple(names[place] for place in retyped), unknown)


def _judging(
    run: Run, t0: int, instants: Sequence[Instant], when: DueTime, rules: JudgingRules
) -> Callable[[int, pa.Table], pa.Table]:
    """A function from a unit and its rows (elements and recorded answers) to its verdicts (``_JUDGED``)."""
    variables = Snapshot(run.header.query).variables

    def judged(unit: int, rows: pa.Table) -> pa.Table:
        instant = instants[unit]
        expect = InstantReports(instant.reports, seen_elements(rows), run.header)
        received = (in_columns(answer, variables) for answer in _with_rows(instant, rows))
        units = matched(replace(run, answers=tuple(received)), expect, t0, rules)[1]
        windows = [_verdict(one, instant.places, when, rules.witnesses) for one in units]
        depends = expect.has_before and not all(map(_is_plain, units)) and not expect.is_certain_before(rules)
        extra = {
            "unit": pa.array([unit] * len(units), pa.int32()),
            "retyped": pa.array([sorted(one.both.retyped) for one in units], _JUDGED.field("retyped").type),
            "unknown": pa.array([one.unknown for one in units], pa.string()),
            "depends": pa.array([depends] * len(units), pa.bool_()),
        }
        table = windows_table(windows)
        columns = {name: extra[name] if name in extra else table[name] for name in _JUDGED.names}
        return pa.table({field.name: columns[field.name].cast(field.type) for field in _JUDGED}, schema=_JUDGED)

    return judged


def _is_plain(unit: Unit) -> bool:
    """Whether an answer is right and the evaluator's own."""
    return is_right(unit) and not unit.doubtful


def _verdict(unit: Unit, places: Sequence[int], when: DueTime, witnesses: int) -> WindowVerdict:
    place = None if unit.position is None else places[unit.position]
    return replace(judge(0, unit, when, witnesses), report=place)


def _with_rows(instant: Instant, rows: pa.Table) -> list[Answer]:
    """The answers of an instant with their rows, in recorded order."""
    own = rows.filter(pc.is_valid(rows.column("answer"))).sort_by([("position", "ascending")])
    bags: dict[tuple[int, int], list[Row]] = {}
    keys = zip(own.column("answer").to_pylist(), own.column("sign").to_pylist(), strict=True)
    for key, row in zip(keys, lists(own.column("row")), strict=True):
        bags.setdefault(key, []).append(row)
    return [
        replace(answer, added=tuple(bags.get((place, 1), ())), removed=tuple(bags.get((place, -1), ())))
        for answer, place in zip(instant.answers, instant.places, strict=True)
    ]


class InstantReports:
    """The expected reports of one instant (an ``Expect``), by the definition, from the elements near it."""

    def __init__(self, reports: Sequence[DueReport], elements: Sequence[StreamElement], header: RunHeader) -> None:
        self._reports, self._elements, self._header = reports, elements, header
        self._differs = operator(header.query, header.semantics) is not R2S.RSTREAM

    @property
    def has_before(self) -> bool:
        """Whether the answer is a difference to an earlier report."""
        return self._differs and len(self._reports) > 1

    @cached_property
    def _contents(self) -> dict[DueReport, Contents]:
        look = inspected(self._elements, self._header.query, self._header.semantics)
        return {report: look(whole(report)) for report in self._reports}

    def __call__(
        self, query: ContinuousQuery, semantics: Semantics, _advanced_to: int, _t0: int
    ) -> tuple[ExpectedReport, ...]:
        """The report, if due; also the one before, if whole answers of a run of differences are wanted."""
        now = self._reports[-1:]
        pairs = [pair for pair in selected(self._contents.items(), semantics) if self._differs or pair[0] in now]
        reports = answered(pairs, query, semantics)
        whole_answers = self._differs and operator(query, semantics) is R2S.RSTREAM
        return tuple(report for report in reports if whole_answers or report.due in now)

    def instants(self, _query: ContinuousQuery, _semantics: Semantics, _advanced_to: int, _t0: int) -> set[int]:
        """The instant, if a report may be due then."""
        return {report.instant for report in self._reports[-1:]}

    def look(self, _query: ContinuousQuery, _semantics: Semantics, _t0: int) -> Look:
        """The contents, computed once for all calls."""
        return self._contents.__getitem__

    def is_certain_before(self, rules: JudgingRules) -> bool:
        """Whether only one answer is legal at the report before."""
        header = self._header
        exact = rules.exact_datatypes
        legality = ReportLegality(self._contents.__getitem__, header.query, header.semantics, exact_datatypes=exact)
        return legality.is_certain(self._reports[0])
