"""LIMIT and OFFSET: all legal slices, because SPARQL leaves open which of the tied rows are kept (15.1, 15.4, 15.5).

A row has to precede another if the first key in which they differ orders them. Rows that ORDER BY does not order
(equal keys, blank nodes, a number and a string, overlapping inexact numbers) may come in any order:

    ORDER BY ?v LIMIT 1              5 "x" 6     legal: 5, or "x"; not 6, which comes after 5
    ORDER BY ?v OFFSET 1 LIMIT 1     5 "x" 6     legal: each of the three ("x" 5 6, 5 "x" 6, 5 6 "x")

Rows are a legal slice if no other row has to be between two of them, at most OFFSET other rows have to precede them,
and at least OFFSET other rows may.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Final

from streamgauge.model import algebra as a
from streamgauge.model.terms import Row, Term
from streamgauge.oracle.worlds.conditions import MAX_CASES, CutOffError
from streamgauge.oracle.worlds.intervals import signs
from streamgauge.oracle.worlds.openings import CURRENT, Openings
from streamgauge.query.traversal import answer_order
from streamgauge.sparql.comparison import ordered, ranks

KEPT: Final = "the rows that LIMIT and OFFSET keep (SPARQL 15.1, 15.4, 15.5)"


@dataclass(frozen=True, slots=True)
class Keys:
    """A row's values of the keys of ORDER BY, and whether each is descending."""

    terms: Row
    descending: tuple[bool, ...]

    def before(self, other: "Keys") -> bool:
        """Whether a row with these keys has to precede a row with the others."""
        for one, two, down in zip(self.terms, other.terms, self.descending, strict=True):
            sign = _compared(one, two)
            # An unordered key leaves the order open; later keys only break ties of equal ones.
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
        return possible.pop() if len(possible) == 1 else None
    return ordered(one, two)


def order_keys(form: a.QueryForm) -> tuple[tuple[int, bool], ...]:
    """The columns of ORDER BY, each with whether it is descending; empty if a key is not a column."""
    pattern = answer_order(form)
    if pattern is None or not isinstance(form, a.Select):
        return ()
    names = [(key.name if isinstance(key, a.Var) else "", down) for key, down in pattern.keys]
    # A key that is not shown cannot be checked on received rows.
    if any(name not in form.variables for name, _ in names):
        return ()
    return tuple((form.variables.index(name), down) for name, down in names)


def misplaced(rows: Sequence[Row], keys: Sequence[tuple[int, bool]]) -> list[Row]:
    """The received rows that follow a row that they have to precede."""
    directions = tuple(down for _, down in keys)
    token = CURRENT.set(Openings())
    try:
        precedence = Precedence([Keys(tuple(row[at] for at, _ in keys), directions) for row in rows])
        kept: list[int] = []
        late: list[Row] = []
        for place, row in enumerate(rows):
            # Under a total order the last row in place is the greatest, and comparing with it suffices.
            earlier = kept[-1:] if precedence.is_total else kept
            if any(precedence.before(place, other) for other in earlier):
                late.append(row)
            else:
                kept.append(place)
    finally:
        CURRENT.reset(token)
    return late


class Precedence:
    """The partial order of rows by ORDER BY; rows are named by their places."""

    def __init__(self, keys: Sequence[Keys]) -> None:
        self._keys = keys
        self._ranks = self._totally_ordered()

    def _totally_ordered(self) -> list[tuple[int, ...]] | None:
        """The rank of each row, if every two rows are ordered or have equal keys; else ``None``."""
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
        """Whether any two rows are ordered or have equal keys."""
        return self._ranks is not None

    def before(self, one: int, other: int) -> bool:
        """Whether the row at one place has to precede that at another."""
        if self._ranks is not None:
            return self._ranks[one] < self._ranks[other]
        return self._keys[one].before(self._keys[other])

    def size(self, cut: a.Slice) -> int:
        """The number of rows that LIMIT and OFFSET keep."""
        rest = max(0, len(self._keys) - cut.offset)
        return rest if cut.limit is None else min(cut.limit, rest)

    def is_slice(self, kept: Sequence[int], cut: a.Slice) -> bool:
        """Whether these rows follow exactly OFFSET others in some legal order of all rows."""
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
        """All legal slices, as places; CutOffError if there are too many."""
        everything, size, offset = range(len(self._keys)), self.size(cut), cut.offset
        if size == len(self._keys):
            return [tuple(everything)]
        certain, possible = [], []
        for place in everything:
            earliest = sum(self.before(other, place) for other in everything)
            latest = len(self._keys) - 1 - sum(self.before(place, other) for other in everything)
            # A row whose earliest and latest position are both within the slice is in every slice.
            if offset <= earliest and latest < offset + size:
                certain.append(place)
            elif earliest < offset + size and offset <= latest:
                possible.append(place)
        more = size - len(certain)
        # Tenfold, because a partial order leaves only some of the combinations as slices.
        if more < 0 or comb(len(possible), more) > 10 * MAX_CASES:
            raise CutOffError(f"more than {MAX_CASES:,} legal answers would have to be compared; open are: {KEPT}")
        slices = (tuple(sorted((*certain, *chosen))) for chosen in combinations(possible, more))
        return [rows for rows in slices if self.is_slice(rows, cut)]
