"""The legal answers of a report: the query's worlds over its content, and whether a received answer is one of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from streamgauge.model import algebra as a
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.report import DueReport
from streamgauge.model.semantics import Counting, Semantics
from streamgauge.model.terms import Row
from streamgauge.oracle.worlds.algebra import PossibleRow, answers
from streamgauge.oracle.worlds.blank_nodes import alike_numbers, has_blanks, renamed
from streamgauge.oracle.worlds.conditions import ALWAYS, CutOffError
from streamgauge.oracle.worlds.intervals import OpenError
from streamgauge.oracle.worlds.membership import Overlap, PossibleAnswers
from streamgauge.oracle.worlds.openings import CURRENT, Openings, is_plain
from streamgauge.oracle.worlds.restatement import computed_columns, constants, is_compared_by_term, restated
from streamgauge.query.traversal import with_pattern
from streamgauge.semantics.arrivals import Contents
from streamgauge.semantics.evaluate import snapshot_under
from streamgauge.semantics.refusal import RefusedError
from streamgauge.sparql.algebra import FALSE, UndefinedError, answer
from streamgauge.sparql.bgp import Dataset
from streamgauge.sparql.expression import UnsupportedFunctionError


@dataclass(frozen=True, slots=True)
class Opinion:
    """Whether an answer is legal; where nobody can tell, ``unknown`` says why. ``nearest`` is beside an illegal one."""

    legal: bool
    unknown: str = ""
    nearest: Overlap | None = None


_LEGAL: Final = Opinion(True)


class Legality:
    """The legal answers of one query over contents, computed when they are asked for."""

    def __init__(self, query: ContinuousQuery, semantics: Semantics, *, exact_datatypes: bool = False) -> None:
        self._query, self._semantics, self._exact_datatypes = query, semantics, exact_datatypes
        self._snapshot = snapshot_under(query, semantics)
        self._form = with_pattern(self._snapshot.form, restated(self._snapshot.form.pattern))
        self._computed = computed_columns(query.form)
        pattern = self._form.pattern
        self._cut = pattern if isinstance(self._form, a.Select) and isinstance(pattern, a.Slice) else None

    def answers(self, contents: Contents, *, lenient: bool = False) -> PossibleAnswers:
        """The possible rows over a content; OpenError or CutOffError where they cannot be told."""
        as_sets = self._semantics.answers is Counting.SET
        if self._cut and as_sets:
            raise CutOffError("answers compared as sets do not tell how many rows LIMIT kept")
        openings = Openings(lenient=lenient)
        token = CURRENT.set(openings)
        dataset = self._snapshot.dataset(contents)
        try:
            rows = self._over_nothing(contents, dataset)
            if rows is None:
                rows = answers(self._form, dataset)
        except (UndefinedError, UnsupportedFunctionError) as error:
            raise RefusedError(str(error)) from error
        finally:
            CURRENT.reset(token)
        return PossibleAnswers(
            rows, openings, self._computed, self._cut, exact_datatypes=self._exact_datatypes, as_sets=as_sets
        )

    def _over_nothing(self, contents: Contents, dataset: Dataset) -> list[PossibleRow] | None:
        """The engine's own value of an aggregate over nothing, where it has another one than SPARQL's."""
        matches = self._snapshot.matches
        if matches is None or answer(matches, dataset) != ((FALSE,),):
            return None
        return [PossibleRow(row, ALWAYS) for row in self._snapshot.rows(contents)]


def opinion(answers: Callable[[bool], PossibleAnswers], received: Sequence[Row]) -> Opinion:
    """Whether the rows are a legal answer; leniently, where only what need not be supported makes them one, unknown."""
    try:
        strict = answers(False)
        if _admitted(strict, received):
            return _LEGAL
        if strict.openings.lenience and _admitted(answers(True), received):
            return Opinion(False, strict.openings.lenience)
    except (OpenError, CutOffError, RefusedError) as error:
        return Opinion(False, str(error))
    return Opinion(False)


def _admitted(possible: PossibleAnswers, received: Sequence[Row]) -> bool:
    return any(possible.admit(rows) for rows in readings(possible, received))


def readings(possible: PossibleAnswers, received: Sequence[Row]) -> list[Sequence[Row]]:
    """The received rows with the blank nodes of the possible ones, where they have some."""
    known = [possible.legal(row) for row in possible.rows]
    if not has_blanks(received) or not has_blanks(known):
        return [received]
    plain = {place for row in possible.rows for place, term in enumerate(row.terms) if possible.openings.is_open(term)}
    every = [*known, *received]
    nothing = {
        place: {row[place]: None for row in every if len(row) > place and not has_blanks([row[place : place + 1]])}
        for place in plain | possible.computed
    }
    wide = [row for row in every if len(row) > max(possible.computed, default=0)]
    return [renamed(known, received, alike_numbers(wide, possible.computed)), renamed(known, received, nothing)]


class ReportLegality:
    """The legal answers of the reports of one stream under one t0; ``contents`` gives what windows hold at a report."""

    def __init__(
        self,
        contents: Callable[[DueReport], Contents],
        query: ContinuousQuery,
        semantics: Semantics,
        *,
        exact_datatypes: bool = False,
    ) -> None:
        self._contents = contents
        self._legality = Legality(query, semantics, exact_datatypes=exact_datatypes)
        named = (*constants(query.form), *(triple[2] for triple in query.static))
        by_bags = semantics.answers is not Counting.SET
        self._by_term = by_bags and is_compared_by_term(query.form) and all(map(is_plain, named))
        self._known: dict[tuple[DueReport, bool], PossibleAnswers | str] = {}
        self._closed: dict[DueReport, bool] = {}

    def answers(self, due: DueReport, *, lenient: bool = False) -> PossibleAnswers:
        """The possible answers of a report; OpenError where nobody can tell."""
        key = due, lenient
        if key not in self._known:
            try:
                self._known[key] = self._legality.answers(self._contents(due), lenient=lenient)
            except (OpenError, CutOffError, RefusedError) as error:
                self._known[key] = str(error)
        known = self._known[key]
        if isinstance(known, str):
            raise OpenError(known)
        return known

    def is_closed(self, due: DueReport) -> bool:
        """Whether one answer only is legal, the evaluator's own: the query and the content leave nothing open."""
        if due not in self._closed:
            self._closed[due] = self._by_term and all(
                is_plain(triple[2]) for view in self._contents(due) for arrival in view for triple in arrival.triples
            )
        return self._closed[due]

    def is_certain(self, due: DueReport) -> bool:
        """Whether one answer only is legal, whatever the content holds that no choice is about."""
        try:
            return self.is_closed(due) or self.answers(due).is_certain
        except OpenError:
            return False

    def of(self, due: DueReport, received: Sequence[Row]) -> Opinion:
        """Whether the rows are a legal answer of a report."""
        return opinion(lambda lenient: self.answers(due, lenient=lenient), received)

    def nearest(self, due: DueReport, received: Sequence[Row]) -> Overlap | None:
        """A legal answer near the received one; ``None`` where that cannot be told."""
        try:
            possible = self.answers(due)
            answers = [possible.nearest(rows) for rows in readings(possible, received)]
        except (OpenError, CutOffError):
            return None
        return None if possible.is_cut else max(answers, key=lambda answer: answer.common)

    def may_speak(self, due: DueReport) -> bool:
        """Whether some legal answer of a report has rows."""
        try:
            return bool(self.answers(due).rows)
        except OpenError:
            return True
