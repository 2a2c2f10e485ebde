"""EXISTS under a comparison with one direction, such as ``?w > ?v``: whether a row meets any follows from one value.

A left row meets some right row of its key if and only if it meets the extreme one: of the right values, that which
passes beside the most left values. Left rows that meet it and those that do not are in a heap each, with the row on top
that changes sides first. A change of the extreme value therefore costs the rows that change sides, any other change a
few operations of heaps, and neither side has to be sorted.

A worked example: the greatest reading of a sensor, ``?o :value ?v FILTER NOT EXISTS { ?p :value ?w FILTER(?w > ?v) }``,
over the values 3, 5 and 9: the extreme is 9; 3 and 5 meet it, 9 does not. 12 is added on both sides. The extreme
becomes 12, and 9, the least of the rows that met none, changes sides. 12 is removed. The extreme is 9 again, and of the
rows that met 12 the greatest, 9, changes back; the next one, 5, meets 9, so the search ends.
"""

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from itertools import count, takewhile
from typing import Any, Final, TypeAlias

from streamgauge.incremental.bands import LEFT, Band, Kind, place
from streamgauge.incremental.budget import EvaluationBudget
from streamgauge.incremental.crossovers import FEW_ROWS
from streamgauge.incremental.matches import MatchOutput
from streamgauge.incremental.neighbours import PerNeighbour
from streamgauge.incremental.operators import Bag, Key, Operator, add, add_all
from streamgauge.incremental.ordered_rows import BandSearch, OrderedIndex
from streamgauge.incremental.row_joins import Merge
from streamgauge.model.algebra import Call
from streamgauge.model.terms import Row, Term
from streamgauge.sparql.comparison import descending

_COMPARE: Final = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}

Placed: TypeAlias = tuple[Any, Term]
"""A value as its sort key among values of one kind (``bands.place``), and as a term."""


class BandDirection:
    """The direction of a band: which values come first in a heap, and whether two values satisfy it."""

    def __init__(self, band: Band, holds: Callable[[Any, Any], bool]) -> None:
        rising = bool(BandSearch(band, True).way), bool(BandSearch(band, False).way)
        limit = band.limits[0].condition
        assert isinstance(limit, Call)
        exact = band.direct and len(band.limits) == 1
        compare = _COMPARE[limit.operator] if exact else holds
        self._at = 0 if exact else 1  # a comparison of the values themselves needs no evaluation of the condition
        self._passes = (lambda left, right: compare(right, left)) if exact and limit.arguments[0] != LEFT else compare
        self.right = descending if rising[1] else _unchanged
        """Sorts right values: the extreme one first."""
        self.sides = (descending if rising[0] else _unchanged), (_unchanged if rising[0] else descending)
        """Sort left values that meet none, and those that meet some: first the one that changes sides first."""

    @staticmethod
    def has(band: Band) -> bool:
        """Whether a band has one direction."""
        return BandSearch(band, True).way is not None and BandSearch(band, False).way is not None

    def passes(self, left: Placed, right: Placed) -> bool:
        """Whether a left and a right value satisfy the band."""
        return self._passes(left[self._at], right[self._at])


def _unchanged(content: Any) -> Any:
    return content


@dataclass(slots=True)
class KeyExtreme:
    """The rows of one key: the right values, and whether each left row meets any (``met``).

    All values are of one ``kind``. A heap may have outdated entries, of rows that have left or changed sides.
    """

    direction: BandDirection
    kind: Kind
    lefts: Bag = field(default_factory=dict)
    rights: Bag = field(default_factory=dict)
    met: dict[Row, bool] = field(default_factory=dict)
    _top: Placed | None = None
    _copies: dict[Any, int] = field(default_factory=dict)
    _values: list[tuple[Any, int, Placed]] = field(default_factory=list)
    _heaps: tuple[list[Any], list[Any]] = field(default_factory=lambda: ([], []))
    _numbers: "count[int]" = field(default_factory=count)  # parts entries of equal values, whose rows have no order

    def add_right(self, row: Row, value: Placed | None, copies: int) -> None:
        """Add copies of a right row; a negative number removes."""
        add(self.rights, row, copies)
        if value is None:
            return
        content = value[0]
        before = self._copies.get(content, 0)
        if not before + copies:
            del self._copies[content]
            return
        self._copies[content] = before + copies
        if not before:
            heappush(self._values, (self.direction.right(content), next(self._numbers), value))

    def turned(self) -> tuple[Bag, Bag]:
        """Find the extreme value anew; the left rows that begin, and those that cease, to meet a right row."""
        values, copies = self._values, self._copies
        # Heaps cannot remove from the middle: values that have left are dropped when they reach the top.
        while values and values[0][2][0] not in copies:
            heappop(values)
        # At most half of a heap is outdated, but for a few rows.
        if len(values) > 2 * len(copies) + FEW_ROWS:
            # By value, since one that left and came back was pushed twice.
            values[:] = {value[0]: (key, n, value) for key, n, value in values if value[0] in copies}.values()
            heapify(values)
        before, self._top = self._top, values[0][2] if values else None
        return ({}, {}) if self._top == before else (self._moved(False), self._moved(True))

    def _moved(self, met: bool) -> Bag:
        """The rows of one side that have to change to the other."""
        heap, moved = self._heaps[met], Bag()
        while heap:
            _, _, value, row = heap[0]
            # Otherwise the entry is outdated: the row has left or changed sides since it was pushed.
            current = self.met.get(row) is met
            if current and self._meets(value) is met:
                break
            heappop(heap)
            if current:
                self._place(row, value, not met)
                moved[row] = self.lefts[row]
        return moved

    def _meets(self, value: Placed) -> bool:
        return self._top is not None and self.direction.passes(value, self._top)

    def add_left(self, row: Row, value: Placed | None, copies: int) -> bool:
        """Add copies of a left row (a negative number removes); whether it meets a right row."""
        add(self.lefts, row, copies)
        known = self.met.get(row)
        if known is None:
            # Against the extreme as of the last ``turned``; a later change of it moves this row like all others.
            known = value is not None and self._meets(value)
            # A row without a value meets nothing and never changes sides, so it is in no heap.
            if value is not None:
                self._place(row, value, known)
        elif row not in self.lefts:
            del self.met[row]
        return known

    def _place(self, row: Row, value: Placed, met: bool) -> None:
        self.met[row] = met
        heap = self._heaps[met]
        heappush(heap, (self.direction.sides[met](value[0]), next(self._numbers), value, row))
        if len(heap) > 2 * len(self.met) + FEW_ROWS:
            heap[:] = {entry[3]: entry for entry in heap if self.met.get(entry[3]) is met}.values()
            heapify(heap)


class PerExtreme(PerNeighbour):
    """EXISTS under a band with one direction. Keys with few rows, or several kinds of values, are left to the base.

    ``_extremes`` has the rows of all other keys, ``_mixed`` the keys with several kinds of values.
    """

    def __init__(
        self,
        sides: tuple[Operator, Operator],
        merge: Merge,
        output: MatchOutput,
        variables: tuple[str, ...],
        effort: EvaluationBudget,
        band: Band,
    ) -> None:
        super().__init__(sides, merge, output, variables, effort, band)
        self._direction, self._direct = BandDirection(band, self._holds), band.direct
        self._extremes: dict[Key, KeyExtreme] = {}
        self._mixed: dict[Key, None] = {}

    def tables(self) -> Iterator[Any]:
        """The tables of rows, those of each key too; read-only."""
        extremes = tuple(self._extremes.values())
        yield from (table for table in super().tables() if table is not self._extremes)
        for extreme in extremes:
            yield from (extreme.lefts, extreme.rights)

    def forget(self) -> None:
        """Reset: the next pull is a change from the empty state."""
        super().forget()
        self._extremes.clear()

    def _met_by(self, right: Bag, change: Bag) -> None:
        touched, others = dict[Key, KeyExtreme](), dict[Row, int]()
        key_of, value_of = self._rights.key, self._rights.own
        for row, copies in right.items() if self._extremes else ():
            extreme = self._extremes.get(key := key_of(row))
            if extreme is None:
                others[row] = copies
                continue
            term = value_of(row)
            value = None if term is None else self._placed(extreme, term)
            if term is None or value is not None:
                extreme.add_right(row, value, copies)
                touched[key] = extreme
                continue
            self._dissolve(key)
            others[row] = copies
            # The rows of this key that came earlier in the same change are in the extreme already, and ``_dissolve``
            # has handed them to the base. They are taken back there and added again with the rest, so that the base
            # sees them as one change.
            before = takewhile(lambda move, row=row: move[0] is not row, right.items())  # type: ignore[misc]
            taken = {other: times for other, times in before if key_of(other) == key}
            self._rights.add({other: -times for other, times in taken.items()})
            others |= taken
        for key, extreme in touched.items():
            # It may have been dissolved after it was touched.
            if self._extremes.get(key) is extreme:
                for rows, met in zip(extreme.turned(), (True, False), strict=True):
                    if rows:
                        self._turn(change, rows, met)
                if not extreme.lefts and not extreme.rights:
                    del self._extremes[key]
        self._others(self._rights, others if touched or others else right, change)

    def _meet(self, left: Bag, change: Bag) -> None:
        met, alone, others = dict[Row, int](), dict[Row, int](), dict[Row, int]()
        key_of, value_of = self._lefts.key, self._lefts.own
        for row, copies in left.items() if self._extremes else ():
            extreme = self._extremes.get(key := key_of(row))
            term = None if extreme is None else value_of(row)
            value = None if extreme is None or term is None else self._placed(extreme, term)
            if extreme is None or (term is not None and value is None):
                others[row] = copies
                if extreme is not None:
                    self._dissolve(key)
                continue
            (met if extreme.add_left(row, value, copies) else alone)[row] = copies
            if not extreme.lefts and not extreme.rights:
                del self._extremes[key]
        add_all(change, self._output.met(met))
        add_all(change, self._output.alone(alone))
        self._others(self._lefts, others if met or alone or others else left, change)

    def _placed(self, extreme: KeyExtreme, term: Term) -> Placed | None:
        """A value of the kind of an extreme; ``None`` for another kind."""
        placed = place(term, self._direct)
        return None if placed is None or placed[0] != extreme.kind else (placed[1], term)

    def _others(self, index: OrderedIndex, rows: Bag, change: Bag) -> None:
        """Apply the change of keys without an extreme, and give those that have become large one."""
        if not rows:
            return
        (super()._meet if index is self._lefts else super()._met_by)(rows, change)
        for key in dict.fromkeys(map(index.key, rows)):
            if key in self._mixed:
                if key not in self._lefts and key not in self._rights:
                    del self._mixed[key]
            elif len(index.bags.get(key, ())) > FEW_ROWS:
                self._begin(key)

    def _begin(self, key: Key) -> None:
        """Give a key an extreme; without effect if its values are of several kinds."""
        sides = [(index, dict(index.get(key))) for index in (self._lefts, self._rights)]
        terms = [term for index, rows in sides for row in rows if (term := index.own(row)) is not None]
        kinds = {None if placed is None else placed[0] for placed in (place(term, self._direct) for term in terms)}
        # Remembered in ``_mixed``, or each further row would scan the key again.
        if len(kinds) != 1 or None in kinds:
            self._mixed[key] = None
            return
        (kind,) = kinds
        assert kind is not None
        extreme = self._extremes[key] = KeyExtreme(self._direction, kind)
        # Right rows first: left rows are placed by whether they meet the extreme.
        for at, add_row in ((1, extreme.add_right), (0, extreme.add_left)):
            index, rows = sides[at]
            for row, copies in rows.items():
                term = index.own(row)
                add_row(row, None if term is None else self._placed(extreme, term), copies)
            # The rows move out of the base; in both they would be counted twice by ``tables`` and matched twice.
            index.add({row: -copies for row, copies in rows.items()})
            extreme.turned()

    def _dissolve(self, key: Key) -> None:
        """Leave the rows of a key to the base from now on, since a value of another kind is among them."""
        extreme = self._extremes.pop(key)
        self._lefts.add(extreme.lefts)
        self._rights.add(extreme.rights)
        self._mixed[key] = None
