"""Which computed values of a received row are equal to those of an expected one, report by report.

Equal terms are equal. Of other numbers the report's content decides which ones implementations may have computed
(``latitude.py``); the content is looked at only where a row is neither equal nor different by its exact columns.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from streamgauge.model import algebra as a
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.report import ExpectedReport
from streamgauge.model.semantics import R2S, Semantics
from streamgauge.model.terms import Row, Term, datatype
from streamgauge.oracle.judging import choices
from streamgauge.oracle.judging.compare import Alike, alike, computed_columns, fits
from streamgauge.oracle.judging.intervals import INTERVAL, OpenError
from streamgauge.oracle.judging.latitude import BINARY, CASTS, UNARY
from streamgauge.oracle.judging.support import REASON
from streamgauge.oracle.judging.undecided import Possibilities
from streamgauge.query.traversal import every_expression, every_pattern, expressions
from streamgauge.semantics.definition import operator


class ComputedEquality:
    """The equality of computed values in one run's expected reports; ``columns`` are the computed ones."""

    def __init__(
        self,
        query: ContinuousQuery,
        semantics: Semantics,
        expected: Sequence[ExpectedReport],
        possible: Possibilities | None,
        *,
        exact_datatypes: bool = False,
    ) -> None:
        self.columns = computed_columns(query.form)
        self._expected, self._possible, self._exact_datatypes = expected, possible, exact_datatypes
        self._plain = operator(query, semantics) is R2S.RSTREAM
        self._inexact = inexact(query.form)
        self._width = len(query.form.variables) if isinstance(query.form, a.Select) else None
        self._groups: dict[int, dict[Row, list[Row]] | str] = {}

    def of(self, report: int) -> Alike:
        """Which rows are equal to those of the report at this place."""
        return lambda expected, actual: self._equal(report, expected, actual)

    def _equal(self, report: int, expected: Row, actual: Row) -> bool:
        if len(expected) != len(actual):
            return False
        if self._exact_datatypes and any(_typed(expected[at]) != _typed(actual[at]) for at in self.columns):
            return False
        if all(fits(expected[at], actual[at]) for at in self.columns):
            return True
        if not self._inexact:
            return False
        found = self._possible_rows(report)
        if found is None:
            return alike(expected, actual, self.columns)
        return any(
            all(fits(row[at], expected[at]) and fits(row[at], actual[at]) for at in self.columns)
            for row in found.get(self._key(expected), ())
        )

    def _key(self, row: Row) -> Row:
        return tuple(term for place, term in enumerate(row[: self._width]) if place not in self.columns)

    def _possible_rows(self, report: int) -> dict[Row, list[Row]] | None:
        """The rows of the report's possible answers, by their exact columns; ``None`` where they are not known."""
        if report not in self._groups:
            self._groups[report] = self._grouped(report)
        found = self._groups[report]
        return None if isinstance(found, str) else found

    def _grouped(self, report: int) -> dict[Row, list[Row]] | str:
        if self._possible is None:
            return "the contents are not at hand"
        groups: dict[Row, list[Row]] = {}
        try:
            for row in self._rows(report):
                groups.setdefault(self._key(row), []).append(row)
        except OpenError as error:
            return str(error)
        return groups

    def _rows(self, report: int) -> Iterator[Row]:
        """The possible rows at a report, and those at the one before where differences are sent."""
        assert self._possible is not None
        for place in self._places(report):
            yield from self._possible.of(self._expected[place].due).loose

    def _places(self, report: int) -> list[int]:
        """The reports whose contents decide what is sent at one."""
        return [report] if self._plain else [place for place in (report, report - 1) if place >= 0]

    def unknown(self, report: int, said: Sequence[Row]) -> str:
        """Why nobody can tell whether an answer that differs from the report is wrong; empty where it is."""
        reason = self._unknown(report)
        if REASON not in reason or not self._plain or self._possible is None:
            return reason
        return "" if self._possible.exclude(self._expected[report].due, said) else reason

    def _unknown(self, report: int) -> str:
        if self._possible is None:
            return ""
        try:
            for place in self._places(report):
                self._possible.refuse(self._expected[place].due)
        except OpenError as error:
            return str(error)
        if not self._inexact or all(
            self._possible.certain(self._expected[place].due) for place in self._places(report)
        ):
            return ""
        self._possible_rows(report)
        found = self._groups[report]
        if isinstance(found, str):
            return found
        terms = [term for rows in found.values() for row in rows for term in row if term is not None]
        if not self._plain and any(map(choices.is_open, terms)):
            return "what SAMPLE or GROUP_CONCAT gave before is open: differences to it cannot be compared"
        if self._width is None and any(choices.is_open(term) or INTERVAL in term for term in terms):
            return "a CONSTRUCT has terms that implementations may compute differently"
        return ""


def _typed(term: Term | None) -> str | None:
    return datatype(term) if term is not None else None


def inexact(form: a.QueryForm) -> bool:
    """Whether the query has an operation of which implementations may give different values."""
    for pattern in every_pattern(form.pattern):
        if isinstance(pattern, a.Group) and any(each.function in _OPEN for _, each in pattern.aggregates):
            return True
        parts = (part for tree in expressions(pattern) for part in every_expression(tree))
        if any(isinstance(part, a.Call) and part.operator in _OPERATIONS for part in parts):
            return True
    return False


def chooses(form: a.QueryForm) -> bool:
    """Whether the query has SAMPLE or GROUP_CONCAT, of which SPARQL leaves the value open (18.5.1.7, 18.5.1.8)."""
    groups = (pattern for pattern in every_pattern(form.pattern) if isinstance(pattern, a.Group))
    return any(each.function in ("SAMPLE", "GROUP_CONCAT") for group in groups for _, each in group.aggregates)


_OPEN: Final = frozenset({"SUM", "AVG", "SAMPLE", "GROUP_CONCAT"})
_OPERATIONS: Final = BINARY | UNARY | CASTS.keys()
