"""LIMIT and OFFSET: every legal slice, where SPARQL leaves open which rows are kept (15.1, 15.4, 15.5).

A row has to come before another one where the first key that tells them apart orders them. Rows that ORDER BY does
not order (equal keys, blank nodes, a number and a string, inexact numbers that overlap) come in any order:

    ORDER BY ?v LIMIT 1              5 "x" 6     legal: 5, or "x"; not 6, which comes after 5
    ORDER BY ?v OFFSET 1 LIMIT 1     5 "x" 6     legal: each of the three ("x" 5 6, 5 "x" 6, 5 6 "x")

Rows are a legal slice when no other row has to come both after one of them and before another one, when at most OFFSET
others have to come before them, and at least OFFSET others may.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Final

from streamgauge.model import algebra as a
from streamgauge.model.terms import Row, Term
from streamgauge.oracle.worlds.conditions import MAX_CASES, CutOffError
from streamgauge.oracle.worlds.intervals import UNORDERED, signs
from streamgauge.oracle.worlds.openings import CURRENT, Openings
from streamgauge.sparql.comparison import ordered, ranks

KEPT: Final = "the rows that LIMIT and OFFSET keep (SPARQL 15.1, 15.4, 15.5)"


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys by which ORDER BY orders a row, and whether each is descending."""

    terms: Row
    descending: tuple[bool, ...]

    def before(self, other: "Keys") -> bool:
        """Whether rows with these keys have to come before rows with the others."""
        for one, two, down in zip(self.terms, other.terms, self.descending, strict=True):
            sign = _compared(one, two)
            if sign is None:
                return False
            if sign:
                return (sign < 0) is not down
        return False


NO_KEYS: Final = Keys((), ())


def _compared(one: Term | None, two: Term | None) -> int | None:
    if one == two:
        return 0
    openings = CURRENT.get()
    if openings.is_open(one) or openings.is_open(two):
        left = None if one is None else openings.interval(one)
        right = None if two is None else openings.interval(two)
        if left is None or right is None:
            return None if one is not None and two is not None else ordered(one and '"0"', two and '"0"')
        possible = signs(left, right)
        return possible.pop() if len(possible) == 1 and UNORDERED not in possible else None
    return ordered(one, two)


def _ordered_pattern(form: a.QueryForm) -> a.OrderBy | None:
    pattern = form.pattern
    while isinstance(pattern, a.Slice | a.Distinct | a.Reduced | a.Project):
        pattern = pattern.pattern
    return pattern if isinstance(pattern, a.OrderBy) and isinstance(form, a.Select) else None


def is_ordered(form: a.QueryForm) -> bool:
    """Whether a SELECT orders its rows."""
    return _ordered_pattern(form) is not None


def order_keys(form: a.QueryForm) -> tuple[tuple[int, bool], ...]:
    """The columns by which a SELECT orders its rows, and whether descending; empty where a key is not a column."""
    pattern = _ordered_pattern(form)
    if pattern is None or not isinstance(form, a.Select):
        return ()
    names = [(key.name if isinstance(key, a.Var) else "", down) for key, down in pattern.keys]
    if any(name not in form.variables for name, _ in names):
        return ()
    return tuple((form.variables.index(name), down) for name, down in names)


def misplaced(rows: Sequence[Row], keys: Sequence[tuple[int, bool]]) -> list[Row]:
    """The rows that come after one that they have to come before, by the terms that were sent."""
    directions = tuple(down for _, down in keys)
    token = CURRENT.set(Openings())
    try:
        precedence = Precedence([Keys(tuple(row[at] for at, _ in keys), directions) for row in rows])
        kept: list[int] = []
        late: list[Row] = []
        for place, row in enumerate(rows):
            earlier = kept[-1:] if precedence.is_total else kept
            if any(precedence.before(place, other) for other in earlier):
                late.append(row)
            else:
                kept.append(place)
    finally:
        CURRENT.reset(token)
    return late


class Precedence:
    """Which of some rows have to come before which, by their places."""

    def __init__(self, keys: Sequence[Keys]) -> None:
        self._keys = keys
        self._ranks = self._totally_ordered()

    def _totally_ordered(self) -> list[tuple[int, ...]] | None:
        """The rank of each row where all keys order all rows or have equal terms."""
        openings = CURRENT.get()
        columns = []
        for place, down in enumerate(self._keys[0].descending if self._keys else ()):
            terms = [keys.terms[place] for keys in self._keys]
            if any(map(openings.is_open, terms)):
                return None
            ranked = ranks(terms)
            undecided = {rank for rank, decided in ranked if not decided}
            if any(
                len({term for term, (rank, _) in zip(terms, ranked, strict=True) if rank == tied}) > 1
                for tied in undecided
            ):
                return None
            columns.append([-rank if down else rank for rank, _ in ranked])
        return list(zip(*columns, strict=True)) if columns else [()] * len(self._keys)

    @property
    def is_total(self) -> bool:
        """Whether of two rows the keys are equal or one comes first."""
        return self._ranks is not None

    def before(self, one: int, other: int) -> bool:
        """Whether the row at one place has to come before that at another."""
        if self._ranks is not None:
            return self._ranks[one] < self._ranks[other]
        return self._keys[one].before(self._keys[other])

    def size(self, cut: a.Slice) -> int:
        """How many rows a LIMIT and OFFSET keep."""
        rest = max(0, len(self._keys) - cut.offset)
        return rest if cut.limit is None else min(cut.limit, rest)

    def is_slice(self, kept: Sequence[int], cut: a.Slice) -> bool:
        """Whether these rows, as many as are kept, follow OFFSET others in some legal order of all."""
        if not kept:
            return True
        inside = set(kept)
        others = [place for place in range(len(self._keys)) if place not in inside]
        if (ranks_ := self._ranks) is not None:
            low, high = min(ranks_[row] for row in kept), max(ranks_[row] for row in kept)
            first, last = {at for at in others if ranks_[at] < high}, {at for at in others if low < ranks_[at]}
        else:
            first = {place for place in others if any(self.before(place, row) for row in kept)}
            last = {place for place in others if any(self.before(row, place) for row in kept)}
        return not first & last and len(first) <= cut.offset <= len(others) - len(last)

    def slices(self, cut: a.Slice) -> list[tuple[int, ...]]:
        """Every legal slice, as places; CutOffError where they are too many."""
        everything, size, offset = range(len(self._keys)), self.size(cut), cut.offset
        if size == len(self._keys):
            return [tuple(everything)]
        certain, possible = [], []
        for place in everything:
            earliest = sum(self.before(other, place) for other in everything)
            latest = len(self._keys) - 1 - sum(self.before(place, other) for other in everything)
            if offset <= earliest and latest < offset + size:
                certain.append(place)
            elif earliest < offset + size and offset <= latest:
                possible.append(place)
        more = size - len(certain)
        if more < 0 or comb(len(possible), more) > 10 * MAX_CASES:
            raise CutOffError(f"more than {MAX_CASES:,} legal answers would have to be compared; open are: {KEPT}")
        slices = (tuple(sorted((*certain, *chosen))) for chosen in combinations(possible, more))
        return [rows for rows in slices if self.is_slice(rows, cut)]
