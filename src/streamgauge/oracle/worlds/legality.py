"""The legal answers of a report: the worlds of the query over its content, and whether an answer is one of them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from streamgauge.model import algebra as a
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.report import DueReport
from streamgauge.model.semantics import Counting, Semantics
from streamgauge.model.terms import Row, Term
from streamgauge.oracle.worlds.algebra import PossibleRow, answers
from streamgauge.oracle.worlds.blank_nodes import has_blanks, readings
from streamgauge.oracle.worlds.closed import ClosedTerms
from streamgauge.oracle.worlds.conditions import CutOffError
from streamgauge.oracle.worlds.intervals import OpenError
from streamgauge.oracle.worlds.membership import Overlap, PossibleAnswers
from streamgauge.oracle.worlds.openings import CURRENT, Openings
from streamgauge.oracle.worlds.restatement import computed_columns, restated
from streamgauge.query.traversal import with_pattern
from streamgauge.semantics.arrivals import Contents
from streamgauge.semantics.evaluate import snapshot_under
from streamgauge.semantics.refusal import RefusedError
from streamgauge.sparql.algebra import UndefinedError
from streamgauge.sparql.expression import UnsupportedFunctionError


@dataclass(frozen=True, slots=True)
class Opinion:
    """Whether an answer is legal, or why that is ``unknown``; ``nearest`` compares an illegal one with a legal one."""

    legal: bool
    unknown: str = ""
    nearest: Overlap | None = None


class ReportLegality:
    """The legal answers of the reports of one stream under one t0, computed on demand.

    ``contents`` maps a report to the contents of its windows.
    """

    def __init__(
        self,
        contents: Callable[[DueReport], Contents],
        query: ContinuousQuery,
        semantics: Semantics,
        *,
        exact_datatypes: bool = False,
    ) -> None:
        self._contents, self._exact_datatypes = contents, exact_datatypes
        self._as_sets = semantics.answers is Counting.SET
        self._snapshot = snapshot_under(query, semantics)
        self._form = with_pattern(self._snapshot.form, restated(self._snapshot.form.pattern))
        self._computed = computed_columns(query.form)
        pattern = self._form.pattern
        self._cut = pattern if isinstance(self._form, a.Select) and isinstance(pattern, a.Slice) else None
        self._closed_terms = ClosedTerms(query)
        # A reason, as text, where the answers cannot be decided: an error is as dear to find again as answers are.
        self._known: dict[tuple[DueReport, bool], PossibleAnswers | str] = {}
        self._closed: dict[DueReport, bool] = {}

    def answers(self, due_report: DueReport, *, lenient: bool = False) -> PossibleAnswers:
        """The possible answers of a report; OpenError if they cannot be decided.

        ``lenient`` also allows what implementations need not support, such as other results for long integers.
        """
        key = due_report, lenient
        if key not in self._known:
            try:
                self._known[key] = self._evaluated(due_report, lenient)
            except (OpenError, CutOffError, RefusedError, UndefinedError, UnsupportedFunctionError) as error:
                self._known[key] = str(error)
        known = self._known[key]
        if isinstance(known, str):
            raise OpenError(known)
        return known

    def _evaluated(self, due_report: DueReport, lenient: bool) -> PossibleAnswers:
        if self._cut and self._as_sets:
            raise CutOffError("answers compared as sets do not tell how many rows LIMIT kept")
        openings = Openings(lenient=lenient)
        # The extension functions of a restated query find the openings only by this variable.
        token = CURRENT.set(openings)
        try:
            rows = self._rows(due_report)
        finally:
            CURRENT.reset(token)
        return PossibleAnswers(
            rows, openings, self._computed, self._cut, exact_datatypes=self._exact_datatypes, as_sets=self._as_sets
        )

    def _rows(self, due_report: DueReport) -> list[PossibleRow]:
        """The possible rows, with the semantics' value of an aggregate over nothing (``empty_aggregate``)."""
        snapshot = self._snapshot.at(due_report.instant)
        return answers(self._form, snapshot.dataset(self._contents(due_report)), snapshot.over_nothing)

    def is_closed(self, due_report: DueReport) -> bool:
        """Whether nothing in the query and the content is open, so that only the evaluator's own answer is legal."""
        if due_report not in self._closed:
            self._closed[due_report] = self._closed_terms.hold(partial(self._objects, due_report))
        return self._closed[due_report]

    def _objects(self, due_report: DueReport) -> Iterator[Term]:
        contents = self._contents(due_report)
        return (triple[2] for content in contents for arrival in content for triple in arrival.triples)

    def is_certain(self, due_report: DueReport) -> bool:
        """Whether only one answer is legal, decided by evaluating all possible rows."""
        try:
            return self.is_closed(due_report) or self.answers(due_report).is_certain
        except OpenError:
            return False

    def of(self, due_report: DueReport, received: Sequence[Row]) -> Opinion:
        """Whether the rows are a legal answer; unknown if they are legal only under leniency."""
        try:
            strict = self.answers(due_report)
            if self._admit(strict, received):
                return Opinion(True)
            lenience = strict.openings.lenience
            # Leniency only after the strict answers failed: nearly all received rows are legal without it.
            if lenience and self._admit(self.answers(due_report, lenient=True), received):
                return Opinion(False, lenience)
        except (OpenError, CutOffError) as error:
            return Opinion(False, str(error))
        return Opinion(False)

    def _admit(self, possible: PossibleAnswers, received: Sequence[Row]) -> bool:
        return any(map(possible.admit, self._readings(possible, received)))

    def _readings(self, possible: PossibleAnswers, received: Sequence[Row]) -> Iterator[Sequence[Row]]:
        """The received rows, with blank nodes renamed to those of the possible rows."""
        if not has_blanks(received):
            return iter((received,))
        opened = (
            place for row in possible.rows for place, term in enumerate(row.terms) if possible.openings.is_open(term)
        )
        return readings(list(map(possible.legal, possible.rows)), received, self._computed, {*opened})

    def nearest(self, due_report: DueReport, received: Sequence[Row]) -> Overlap | None:
        """The comparison with a legal answer near the received one; ``None`` if none can be computed."""
        try:
            possible = self.answers(due_report)
            answers = map(possible.nearest, self._readings(possible, received))
            return None if possible.is_cut else max(answers, key=lambda answer: answer.common)
        except (OpenError, CutOffError):
            return None

    def may_speak(self, due_report: DueReport) -> bool:
        """Whether some legal answer of a report may have rows."""
        try:
            return bool(self.answers(due_report).rows)
        except OpenError:
            return True
