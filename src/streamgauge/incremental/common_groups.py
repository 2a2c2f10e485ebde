"""Aggregations shared by several queries of a session.

A hundred queries with the same pattern and aggregates but different HAVING process a triple once. If HAVING compares
an aggregate with a number, the queries are sorted by that number: a changed row is handed only to those whose
threshold it passes. The queries have the same windows and static data.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Final

from streamgauge.incremental.grouped import Grouped
from streamgauge.incremental.operators import Bag, Pull, Shared, Tap, add, add_all
from streamgauge.model import algebra as al
from streamgauge.model.terms import Term

_SLACK: Final = 1e-9
"""Relative tolerance around a threshold, within which rows are handed over; the query's filter compares exactly."""

_ABOVE: Final = {">": True, ">=": True, "<": False, "<=": False}
_MIRRORED: Final = {">": "<", ">=": "<=", "<": ">", "<=": ">="}


@dataclass(frozen=True, slots=True)
class Threshold:
    """A comparison of a variable with a number: whether greater values pass, and the number."""

    name: str
    above: bool
    number: float


def threshold(condition: al.Expression, names: Iterable[str]) -> Threshold | None:
    """A condition as a comparison of one of these variables with a number; ``None`` for any other condition."""
    if not isinstance(condition, al.Call) or condition.operator not in _ABOVE:
        return None
    left, right, operator = *condition.arguments, condition.operator
    if isinstance(right, al.Var):
        left, right, operator = right, left, _MIRRORED[operator]
    if not isinstance(left, al.Var) or not isinstance(right, str) or left.name not in names:
        return None
    number = _number(right)
    return None if number is None else Threshold(left.name, _ABOVE[operator], number)


class CommonGroup(Shared):
    """An aggregation with a reader per query; later readers begin with all current rows."""

    def __init__(self, grouped: Grouped, pull: Pull) -> None:
        super().__init__(grouped, pull)
        self.grouped = grouped
        self._whole: list[Tap] = []
        self._ordered: dict[tuple[str, bool], _OrderedTaps] = {}

    def tap(self) -> Tap:
        """Add a reader of all rows."""
        tap_ = self._late_tap()
        self._whole.append(tap_)
        return tap_

    def _late_tap(self) -> Tap:
        # A query that starts later shares an aggregation that already has rows; without them it would see only
        # differences.
        tap_ = super().tap()
        tap_.pending = dict.fromkeys(self.grouped.rows, 1)
        return tap_

    def tap_beyond(self, limit: Threshold) -> Tap:
        """Add a reader of the rows that may pass a threshold."""
        tap_ = self._late_tap()
        key = limit.name, limit.above
        if key not in self._ordered:
            self._ordered[key] = _OrderedTaps(self.grouped.variables.index(limit.name), limit.above)
        self._ordered[key].add(limit.number, tap_)
        return tap_

    def hand(self, change: Bag) -> None:
        """Hand a change to the readers that it concerns."""
        for tap in self._whole:
            add_all(tap.pending, change)
        for ordered in self._ordered.values():
            ordered.hand(change)


class _OrderedTaps:
    """Readers sorted by threshold; the values in column ``at`` are compared with it."""

    def __init__(self, at: int, above: bool) -> None:
        self._at, self._above = at, above
        self._numbers: list[float] = []
        self._taps: list[Tap] = []

    def add(self, number: float, tap: Tap) -> None:
        place = bisect_right(self._numbers, number)
        # A sorted list: readers are added when queries start, rows are compared with every change.
        self._numbers.insert(place, number)
        self._taps.insert(place, tap)

    def hand(self, change: Bag) -> None:
        for row, count in change.items():
            for tap in self._passed(row[self._at]):
                add(tap.pending, row, count)

    def _passed(self, value: Term | None) -> Sequence[Tap]:
        number = None if value is None else _number(value)
        if number is None:
            return self._taps
        # Floats decide only who is asked. Within the slack a reader is asked in vain, but never left out.
        slack = _SLACK * abs(number)
        if self._above:
            return self._taps[: bisect_right(self._numbers, number + slack)]
        return self._taps[bisect_left(self._numbers, number - slack) :]


@dataclass
class CommonGroups:
    """Aggregations by normal pattern; ``pull`` is shared by all queries."""

    pull: Pull
    known: dict[al.Group, CommonGroup] = field(default_factory=dict)


def _number(term: Term) -> float | None:
    """The approximate value of a literal of any datatype; ``None`` if its text is not a finite number."""
    try:
        # The lexical form is enough: the exact comparison follows in the query's own filter, so a decimal need not be
        # parsed.
        value = float(term[1 : term.index('"', 1)])
    except ValueError:
        return None
    return value if -inf < value < inf else None
