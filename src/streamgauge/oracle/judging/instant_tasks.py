"""A run judged by its instants in tasks of Spark, each by the judge of a single process (``oracle.matched``).

A task gets a stretch of reports: the elements that their windows may contain, those of the report before if answers
depend on it, and the recorded rows. Tasks therefore reach the verdicts of a single process, also on computed numbers,
choices that a query leaves open, the order of rows, and differences. A stretch's elements have to fit one task's
memory; one row per window, with at most ``witnesses`` rows of each kind, reaches the driver.

Differences may come from compiled plans instead (``planned``); where an answer is not theirs and the query leaves
something open, the definition has to judge.
"""

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from streamgauge.formats.paged import PAGE
from streamgauge.formats.tables import lists
from streamgauge.formats.windows import WINDOWS, gathered_windows, window_verdicts, windows_table
from streamgauge.model.answer import Answer
from streamgauge.model.report import DueReport
from streamgauge.model.run import Run
from streamgauge.model.semantics import R2S, Grain, Report
from streamgauge.model.terms import Row
from streamgauge.model.verdict import WindowVerdict
from streamgauge.oracle.expected.due_table import DuePortion, DueTable, Numbers
from streamgauge.oracle.expected.in_tasks import StretchReports, due_by_content
from streamgauge.oracle.expected.on_spark import collected
from streamgauge.oracle.expected.planned import PlannedDifferences, planned_reports
from streamgauge.oracle.expected.stretches import Stretch, between, by_unit, stretches, task_of, with_tasks
from streamgauge.oracle.judging.hand_overs import HandOvers, due_times
from streamgauge.oracle.judging.metrics import Unit, due_time, judge
from streamgauge.oracle.judging.oracle import JudgedWindow, JudgingRules, Scored, aligned, in_columns, is_open, matched
from streamgauge.oracle.judging.units import is_right
from streamgauge.oracle.worlds.legality import ReportLegality
from streamgauge.semantics.definition import columns, operator
from streamgauge.semantics.evaluate import Snapshot
from streamgauge.spark.workers import cores

CONTENT: Final = frozenset({Report.NON_EMPTY, Report.CONTENT_CHANGE})
"""The strategies by which contents make reports due."""

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
        ("position", pa.int64()),
    ]
)
"""Window verdicts; ``depends`` if they change with the legal answer that came before, or that an engine meant.

``report`` is the answer's place in the run, or that of the first row of its instant and scope where answers of a row
each are merged; ``position`` is its place among the (merged) answers of its stretch.
"""


class NotByInstantError(ValueError):
    """Instants that cannot be judged one stretch at a time; the message says why."""


class JudgedStretch(NamedTuple):
    """A stretch of reports, and the answers that name an instant of its time, without their rows.

    ``places`` are the answers' positions in the run, ``handed`` the reports' hand-overs (``HandOvers.of``). ``sizes``
    are those of the reports' contents, where the rows of plans are compared instead of the definition's.
    """

    reports: Stretch
    answers: tuple[Answer, ...]
    places: tuple[int, ...]
    handed: tuple[int, ...] | None
    sizes: tuple[int, ...] | None = None


class UnitPlaces(NamedTuple):
    """The units of a portion, by the answers' positions in the run and by the places of its reports."""

    answers: dict[int, int]
    reports: dict[int, int]


class NamedAnswers:
    """The answers of a run by the instants (ms) that they name: 16 bytes each. ``places`` are positions in the run."""

    def __init__(self, instants: Numbers) -> None:
        """``instants`` has that of each answer, in recorded order."""
        order = np.argsort(instants, kind="stable")
        self.instants, self.places = instants[order], order

    @property
    def shared(self) -> bool:
        """Whether two answers name the same instant."""
        return bool((self.instants[1:] == self.instants[:-1]).any())

    def until(self, instant: int | None) -> int:
        """The number of answers that name an instant up to this one, all for ``None``."""
        return len(self.instants) if instant is None else int(np.searchsorted(self.instants, instant, "right"))


@dataclass
class InstantJudging:
    """A run with its stream table under one t0 (ms), judged portion by portion.

    ``recorded`` maps {position of an answer: unit} to the answers' recorded rows (``RECORDED``).
    """

    session: SparkSession
    stream: DataFrame
    run: Run
    named: NamedAnswers
    recorded: Callable[[Mapping[int, int]], DataFrame]
    rules: JudgingRules
    t0: int
    planned: PlannedDifferences | None = None
    _judged: int = 0
    _answered: int = 0
    _before: DueTable | None = None
    _keys: "array[int]" = field(default_factory=lambda: array("q"))

    def score(self, portions: Iterable[DuePortion]) -> Scored:
        """The scores of all portions; NotByInstantError if stretches of them are not independent."""
        query, semantics = self.run.header.query, self.run.header.semantics
        names = columns(Snapshot(query).variables, operator(query, semantics))
        judged = chain.from_iterable(map(self._judged_windows, portions))
        scored = Scored.of(names, judged, self.rules.max_delay)
        return scored if semantics.grain is Grain.REPORT else replace(scored, windows=self._numbered(scored.windows))

    @cached_property
    def _hand_overs(self) -> HandOvers:
        return HandOvers(self.run)

    @property
    def _is_chosen(self) -> bool:
        """Whether contents say first which reports are due: the one before, for a difference, may be far back."""
        query, semantics = self.run.header.query, self.run.header.semantics
        return operator(query, semantics) is not R2S.RSTREAM and bool(semantics.report & CONTENT)

    @cached_property
    def _is_open(self) -> bool:
        """Whether an answer that depends on legal ones before, or differs from the plans', may still be legal."""
        return self.planned is None or is_open(self.run.header.query, self.planned.objects)

    def _judged_windows(self, portion: DuePortion) -> Iterator[JudgedWindow]:
        """The verdicts of a portion, the indexes of windows counted through."""
        query, sizes = self.run.header.query, None
        if self.planned is not None:
            own, sizes = self.planned.due(portion)
            portion = self._after_last(own, portion)
        elif self._is_chosen:
            own = due_by_content(self.session, self.stream, portion, query, self.run.header.semantics)
            portion = self._after_last(own, portion)
        # Nothing is due in this portion; answers that name its instants are surplus of the next one.
        if len(portion.due) == portion.skip and not portion.final:
            return
        units = UnitPlaces({}, {})
        stream = between(self.stream, portion.due if sizes is None else portion.due.take([]))
        rows = with_tasks(self.session, stream, self._tasks(portion, sizes, units), query)
        rows = rows.unionByName(self.recorded(units.answers), allowMissingColumns=True)
        if self.planned is not None:
            rows = rows.unionByName(self.planned.rows(portion, units.reports), allowMissingColumns=True)
        # Each task gets a copy of this: only its header is needed, and the answers of a stretch come with it.
        bare = Run(self.run.header, (), ())
        table = collected(by_unit(rows, _judging(bare, self.t0, self.rules, chosen=self._is_chosen), _JUDGED))
        # A stretch would have to know which of the legal answers its predecessor found: the run has to be judged in
        # one go. Plans know one of the legal answers only.
        if pc.any(table.column("depends")).as_py() and self._is_open:
            raise NotByInstantError("differences to an answer that the query leaves open")
        ordered = table.sort_by([("unit", "ascending"), ("index", "ascending")])
        for begin in range(0, len(ordered), PAGE):
            yield from self._windows(ordered.slice(begin, PAGE))

    def _windows(self, table: pa.Table) -> Iterator[JudgedWindow]:
        """The verdicts of a page of a portion, from its table in order."""
        indexes = pa.array(range(self._judged, self._judged + len(table)), pa.int64())
        self._judged += len(table)
        if self.run.header.semantics.grain is Grain.ROW:
            known = table.select(["report", "position"]).filter(pc.is_valid(table.column("report")))
            self._keys.extend(np.stack([column.to_numpy() for column in known.columns], axis=1).reshape(-1).tolist())
        # Tasks number their windows from 0.
        windows = pa.table({name: indexes if name == "index" else table.column(name) for name in WINDOWS.names})
        further = (table.column(name).to_pylist() for name in ("unknown", "retyped"))
        return map(JudgedWindow, window_verdicts(windows), *further)

    def _numbered(self, windows: Sequence[WindowVerdict]) -> Sequence[WindowVerdict]:
        """The windows with their merged answers numbered through, 16 bytes for each of them."""
        keys = np.array(self._keys, np.int64).reshape(-1, 2)
        numbers = iter(np.unique(keys, axis=0, return_inverse=True)[1].reshape(-1).tolist())
        return gathered_windows(
            window if window.report is None else replace(window, report=next(numbers)) for window in windows
        )

    def _after_last(self, own: DueTable, portion: DuePortion) -> DuePortion:
        """A portion's ``own`` reports that contents make due, after the last such report of earlier portions."""
        before = own.take([]) if self._before is None else self._before
        self._before = own.take([len(own) - 1]) if own else self._before
        return DuePortion(own.after(before), len(before), portion.final)

    def _tasks(
        self, portion: DuePortion, sizes: Sequence[int] | None, units: UnitPlaces
    ) -> Iterator[tuple[DueReport | None, JudgedStretch]]:
        """The stretches of a portion with their reach; ``units`` receives the unit of each answer and report.

        Each has the answers up to its last instant, the last one of the run all that follow. ``sizes`` are those of the
        contents of the portion's own reports.
        """
        query, semantics, answers = self.run.header.query, self.run.header.semantics, self.run.answers
        before = operator(query, semantics) is not R2S.RSTREAM or Report.CONTENT_CHANGE in semantics.report
        due, skip = portion.due, portion.skip
        cut: Iterable[Stretch] = stretches(due, cores(self.session), before=before, skip=skip)
        if len(due) == skip and portion.final:
            # Without any report left, the answers that follow the last one still have to be judged: they are surplus.
            cut = [Stretch(skip, (), ())]
        handed = self._hand_overs.of(portion.own)
        for unit, stretch in enumerate(cut):
            end = stretch.start + len(stretch.reports)
            last = None if portion.final and end == len(due) else stretch.reports[-1].instant
            # Answers are sorted by instant, so those of a stretch follow those of the one before.
            begin, self._answered = self._answered, self.named.until(last)
            places = tuple(self.named.places[begin : self._answered].tolist())
            units.answers.update(dict.fromkeys(places, unit))
            units.reports.update(dict.fromkeys(range(stretch.start, end), unit))
            own = slice(stretch.start - skip, end - skip)
            times, counts = (None if one is None else tuple(one[own]) for one in (handed, sizes))
            named = tuple(answers[place] for place in places)
            yield stretch.reach, JudgedStretch(stretch, named, places, times, counts)


def _judging(run: Run, t0: int, rules: JudgingRules, *, chosen: bool) -> Callable[[int, pa.Table], pa.Table]:
    """A function from a unit and its rows (elements, recorded answers, task) to its verdicts (``_JUDGED``).

    ``chosen`` if all reports of the tasks are known to be due.
    """
    variables = Snapshot(run.header.query).variables

    def judged(unit: int, rows: pa.Table) -> pa.Table:
        stretch: JudgedStretch = task_of(rows)
        handed = stretch.handed
        when = due_time(run) if handed is None else due_times(stretch.reports.reports, handed)
        received = (in_columns(answer, variables) for answer in _with_rows(stretch, rows))
        own = replace(run, answers=tuple(received))
        if stretch.sizes is None:
            expect = StretchReports(stretch.reports, rows, run.header, chosen=chosen)
            units = matched(own, expect, t0, rules)[1]
            certain = all(map(_is_plain, units)) or _is_certain_before(expect, run, rules)
            depends = expect.has_before and not certain
        else:
            query, semantics = run.header.query, run.header.semantics
            reports = planned_reports(stretch.reports, stretch.sizes, rows, query, semantics)
            units = aligned(own, reports, rules)[1].units()
            depends = not all(map(is_right, units))
        windows = [
            replace(judge(index, one, when, rules.witnesses), report=_place(one, stretch, run.header.semantics.grain))
            for index, one in enumerate(units)
        ]
        extra = {
            "unit": pa.array([unit] * len(units), pa.int32()),
            "retyped": pa.array([sorted(one.both.retyped) for one in units], _JUDGED.field("retyped").type),
            "unknown": pa.array([one.unknown for one in units], pa.string()),
            "depends": pa.array([depends] * len(units), pa.bool_()),
            "position": pa.array([one.position for one in units], pa.int64()),
        }
        table = windows_table(windows)
        columns = {name: extra[name] if name in extra else table[name] for name in _JUDGED.names}
        return pa.table({field.name: columns[field.name].cast(field.type) for field in _JUDGED}, schema=_JUDGED)

    return judged


def _is_certain_before(expect: StretchReports, run: Run, rules: JudgingRules) -> bool:
    """Whether only one answer is legal at the report before a stretch."""
    query, semantics = run.header.query, run.header.semantics
    look = expect.look(query, semantics, 0)
    legality = ReportLegality(look, query, semantics, exact_datatypes=rules.exact_datatypes)
    return all(map(legality.is_certain, expect.stretch.before))


def _is_plain(unit: Unit) -> bool:
    """Whether an answer is right and the evaluator's own."""
    return is_right(unit) and not unit.doubtful


def _place(unit: Unit, stretch: JudgedStretch, grain: Grain) -> int | None:
    """The place of a unit's answer in the run (``_JUDGED``)."""
    if unit.position is None or unit.answer is None:
        return None
    if grain is Grain.REPORT:
        return stretch.places[unit.position]
    # An answer merged of several rows is at the place of the first of them.
    key = unit.answer.instant, unit.answer.scope
    answers = zip(stretch.answers, stretch.places, strict=True)
    return next(place for answer, place in answers if (answer.instant, answer.scope) == key)


def _with_rows(stretch: JudgedStretch, rows: pa.Table) -> list[Answer]:
    """The answers of a stretch with their rows, in recorded order."""
    own = rows.filter(pc.is_valid(rows.column("answer"))).sort_by([("position", "ascending")])
    bags: dict[tuple[int, int], list[Row]] = {}
    keys = zip(own.column("answer").to_pylist(), own.column("sign").to_pylist(), strict=True)
    for key, row in zip(keys, lists(own.column("row")), strict=True):
        bags.setdefault(key, []).append(row)
    return [
        replace(answer, added=tuple(bags.get((place, 1), ())), removed=tuple(bags.get((place, -1), ())))
        for answer, place in zip(stretch.answers, stretch.places, strict=True)
    ]
