"""Due reports aligned with answers: compared with the evaluator's own answers, then with all legal ones."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from heapq import merge
from math import inf

from streamgauge.model.answer import Answer
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.report import DueReport, ExpectedReport
from streamgauge.model.run import Run
from streamgauge.model.semantics import R2S, Counting, Semantics
from streamgauge.model.terms import Row, datatype
from streamgauge.oracle.expected.reports import Expect, every_instant
from streamgauge.oracle.judging.align import Similarity, align, merged
from streamgauge.oracle.judging.compare import Bags, alike, fits, overlap
from streamgauge.oracle.judging.histories import Histories, SentDifference
from streamgauge.oracle.judging.metrics import Unit
from streamgauge.oracle.worlds.legality import Opinion, ReportLegality
from streamgauge.oracle.worlds.membership import Overlap
from streamgauge.oracle.worlds.restatement import computed_columns, loose_columns
from streamgauge.oracle.worlds.slices import misplaced
from streamgauge.semantics.beginning import is_sent
from streamgauge.semantics.definition import operator


def is_right(unit: Unit) -> bool:
    """Whether a due report and its answer have the same rows."""
    return unit.report is not None and unit.answer is not None and not unit.both.differs


def in_order(unit: Unit, keys: Sequence[tuple[int, bool]]) -> Unit:
    """The unit, in which rows that break ORDER BY count both as missing and as surplus."""
    if not is_right(unit) or unit.answer is None:
        return unit
    late = tuple(misplaced(unit.answer.added, keys))
    if not late:
        return unit
    both = unit.both
    return replace(unit, both=Overlap(both.common - len(late), late, late, both.retyped))


class Alignment:
    """Expected reports aligned with the answers of one run by their common rows."""

    def __init__(
        self,
        expected: Sequence[ExpectedReport],
        answers: Sequence[Answer],
        query: ContinuousQuery,
        semantics: Semantics,
        *,
        exact_datatypes: bool = False,
    ) -> None:
        self.expected, self.received, self.query, self.semantics = expected, answers, query, semantics
        self._columns, self.exact_datatypes = computed_columns(query.form), exact_datatypes
        near = partial(alike, computed=self._columns, loose=loose_columns(query.form))
        self.answers = merged(answers, expected, semantics.grain, self._columns, near)
        if semantics.answers is Counting.SET:
            self.answers = tuple(replace(one, added=tuple(dict.fromkeys(one.added))) for one in self.answers)
        sides = [report.rows for report in expected], [answer.added for answer in self.answers]
        self._similar: Similarity = Bags(*sides, self._columns, near).similarity

    def _equal(self, expected: Row, actual: Row) -> bool:
        """Whether two rows of equal exact terms are equal in the computed columns too, by value."""
        if len(expected) != len(actual):
            return False
        pairs = [(expected[at], actual[at]) for at in self._columns]
        if self.exact_datatypes and any(datatype(one or "") != datatype(other or "") for one, other in pairs):
            return False
        return all(fits(one, other) for one, other in pairs)

    def units(self) -> list[Unit]:
        """The aligned units, compared with the evaluator's own answers."""
        return self._units(self._similar)

    def _units(self, similar: Similarity) -> list[Unit]:
        return [self._unit(i, j) for i, j in align(self.expected, self.answers, similar)]

    def _unit(self, i: int | None, j: int | None) -> Unit:
        """The unit of report i and answer j; either may be missing."""
        report = None if i is None else self.expected[i]
        answer = None if j is None else self.answers[j]
        if report is not None and answer is not None:
            return Unit(report, answer, j, overlap(report.rows, answer.added, self._columns, self._equal))
        return Unit(report, answer, j, Overlap(0, report.rows if report else (), answer.added if answer else ()))

    def aligned(self, legality: ReportLegality) -> list[Unit]:
        """The units of an alignment in which any legal answer of a report matches it fully."""

        @lru_cache(maxsize=1 << 16)
        def similar(i: int, j: int) -> float:
            near = self._similar(i, j)
            if near == 1.0 and not (self._columns and self._unit(i, j).both.differs):
                return 1.0
            due = self.expected[i].due
            legal = not legality.is_closed(due) and legality.of(due, self.answers[j].added).legal
            # Below 1, so that a legal answer is preferred to the most similar illegal one.
            return 1.0 if legal else min(near, 0.999)

        return self._units(similar)


class LegalUnits:
    """The units of a run by all legal answers, if some differ from the evaluator's own."""

    def __init__(self, run: Run, expect: Expect, t0: int, legality: ReportLegality, plain: Alignment) -> None:
        self._run, self._expect, self._t0, self._legality, self._plain = run, expect, t0, legality, plain
        self._query, self._semantics = run.header.query, run.header.semantics
        self._r2s = operator(self._query, self._semantics)

    def units(self, plain: Sequence[Unit]) -> list[Unit]:
        """The units, each right if its answer is legal."""
        alignment = self._with_silent(plain)
        if self._r2s is not R2S.RSTREAM:
            return self._differences(alignment.units())
        named = all(answer.instant is not None for answer in alignment.answers)
        units = alignment.units() if named else alignment.aligned(self._legality)
        return self._judged(units, {unit.report.due: self._opinion(unit) for unit in units if unit.report is not None})

    def _judged(self, units: Sequence[Unit], opinions: Mapping[DueReport, Opinion]) -> list[Unit]:
        """The units by the opinions on their reports; a missed report that may legally be silent has no unit."""
        kept: list[Unit] = []
        for unit in units:
            right = is_right(unit)
            opinion = Opinion(right) if unit.report is None else opinions.get(unit.report.due, Opinion(right))
            if unit.report is None or (opinion.legal and right):
                kept.append(unit)
            elif unit.answer is not None:
                kept.append(_legal(unit) if opinion.legal else _illegal(unit, opinion))
            # An answer was due even if it has no rows, so a missed one is wrong.
            elif self._semantics.notify_empty:
                kept.append(unit)
            elif not opinion.legal:
                kept.append(replace(unit, unknown=opinion.unknown))
        return kept

    def _with_silent(self, plain: Sequence[Unit]) -> Alignment:
        """The alignment with reports added that only another legal answer than the evaluator's makes due."""
        if self._semantics.notify_empty:  # every evaluated instant is expected to send something
            return self._plain
        # An answer that names such a report's instant is surplus; one without may be aligned with any other report.
        named = all(answer.instant is not None for answer in self._plain.answers)
        if named and not any(unit.report is None for unit in plain):
            return self._plain
        known = {report.due for report in self._plain.expected}
        reports = self._everything()
        silent = [
            report
            # Each report with the one before it, which a difference depends on as well.
            for before, report in zip((None, *reports), reports, strict=False)
            if report.due not in known
            and is_sent(report.due.instant, self._semantics)
            and self._may_speak(report, before)
        ]
        empty = [replace(report, rows=()) for report in silent]
        order = sorted((*self._plain.expected, *empty), key=lambda report: (report.due.instant, report.due.seen))
        exact = self._plain.exact_datatypes
        return Alignment(order, self._plain.received, self._query, self._semantics, exact_datatypes=exact)

    def _may_speak(self, report: ExpectedReport, before: ExpectedReport | None) -> bool:
        """Whether a report that the evaluator does not send has rows in some legal answer, or some difference."""
        certain = self._legality.is_certain(report.due)
        if self._r2s is R2S.RSTREAM:
            return not certain and self._legality.may_speak(report.due)
        return not certain or (before is not None and not self._legality.is_certain(before.due))

    def _everything(self) -> tuple[ExpectedReport, ...]:
        """The whole answers at all evaluated instants, sent or not."""
        query, semantics = replace(self._query, r2s=R2S.RSTREAM), every_instant(self._semantics)
        return self._expect(query, semantics, self._run.header.advanced_to, self._t0)

    def _opinion(self, unit: Unit) -> Opinion:
        """Whether the answer of a unit is legal; without an answer, whether sending nothing is."""
        assert unit.report is not None
        due, received = unit.report.due, unit.answer.added if unit.answer else ()
        if is_right(unit) or self._legality.is_closed(due):
            return Opinion(is_right(unit))
        opinion = self._legality.of(due, received)
        if opinion.legal or opinion.unknown or unit.answer is None:
            return opinion
        return replace(opinion, nearest=self._legality.nearest(due, received))

    def _differences(self, units: Sequence[Unit]) -> list[Unit]:
        """The units of differences: each is right if it fits a legal history together with those before it."""
        by_due = {unit.report.due: unit for unit in units if unit.report is not None}
        reports = self._everything()
        sent = [self._sent(report, by_due.get(report.due)) for report in reports]
        opinions = Histories(self._legality, self._r2s, sent).opinions()
        by_report = {report.due: opinion for report, opinion in zip(reports, opinions, strict=True)}
        fitted = self._judged(units, by_report)
        silent = [
            Unit(replace(report, rows=nearest.missing), None, None, Overlap(0, nearest.missing, ()))
            for report in reports
            if report.due not in by_due and (nearest := by_report[report.due].nearest) is not None
        ]
        return list(merge(fitted, silent, key=_instant))

    def _sent(self, report: ExpectedReport, unit: Unit | None) -> SentDifference:
        """The difference received at an evaluated instant, which may have no unit."""
        rows = Counter(set(report.rows) if self._semantics.answers is Counting.SET else report.rows)
        sent = is_sent(report.due.instant, self._semantics)
        if unit is None or unit.answer is None:
            silent = unit is None or not unit.both.missing
            return SentDifference(report.due, rows, (), silent, sent)
        return SentDifference(report.due, rows, unit.answer.added, is_right(unit), sent)


def _instant(unit: Unit) -> float:
    return inf if unit.report is None else unit.report.due.instant


def _illegal(unit: Unit, opinion: Opinion) -> Unit:
    """A unit whose answer is illegal or undecided, compared with the nearest legal answer if there is one."""
    nearest = opinion.nearest
    if nearest is None or not nearest.differs:
        return replace(unit, unknown=opinion.unknown)
    assert unit.report is not None
    assert unit.answer is not None
    received = unit.answer.added
    # Scores need only the size of the nearest legal answer (common + missing); its rows are any of that number.
    rows = len(received) - len(nearest.surplus) + len(nearest.missing)
    report = replace(unit.report, rows=(*unit.report.rows, *nearest.missing, *received)[:rows])
    return replace(unit, report=report, both=nearest)


def _legal(unit: Unit) -> Unit:
    """A unit whose answer is legal: right, with the rows that differ from the evaluator's own as ``doubtful``."""
    assert unit.report is not None
    assert unit.answer is not None
    received = unit.answer.added
    report = replace(unit.report, rows=received)
    return replace(
        unit,
        report=report,
        both=Overlap(len(received), (), (), retyped=unit.both.retyped),
        doubtful=(*unit.both.missing, *unit.both.surplus),
    )
