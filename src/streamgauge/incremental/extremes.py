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
from itertools import count
from typing import Any, Final, TypeAlias

from streamgauge.incremental.bands import LEFT, Band, Kind, place
from streamgauge.incremental.budget import EvaluationBudget
from streamgauge.incremental.crossovers import FEW_ROWS
from streamgauge.incremental.matches import MatchOutput
from streamgauge.incremental.neighbours import PerNeighbour
from streamgauge.incremental.operators import Bag, Key, Operator, add_all
from streamgauge.incremental.ordered_rows import BandSearch, OrderedIndex
from streamgauge.incremental.row_joins import Merge
from streamgauge.model.algebra import Call
from streamgauge.model.terms import Row, Term
from streamgauge.sparql.comparison import descending

_COMPARE: Final = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
_SPARE: Final = 64
"""Outdated entries that a heap may have, beside as many as it has rows."""

Placed: TypeAlias = tuple[Any, Term]
"""A value as its sort key among values of one kind (``bands.place``), and as a term."""


class Direction:
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
class Extreme:
    """The rows of one key: the right values, and whether each left row meets any (``met``).

    All values are of one ``kind``. A heap may have outdated entries, of rows that have left or changed sides.
    """

    direction: Direction
    kind: Kind
    met: dict[Row, bool] = field(default_factory=dict)
    _top: Placed | None = None
    _copies: dict[Any, int] = field(default_factory=dict)
    _rights: list[tuple[Any, int, Placed]] = field(default_factory=list)
    _heaps: tuple[list[Any], list[Any]] = field(default_factory=lambda: ([], []))
    _numbers: "count[int]" = field(default_factory=count)  # parts entries of equal values, whose rows have no order

    def add_right(self, value: Placed, copies: int) -> None:
        """Add copies of a right value; a negative number removes."""
        content = value[0]
        before = self._copies.get(content, 0)
        if not before + copies:
            del self._copies[content]
            return
        self._copies[content] = before + copies
        if not before:
            heappush(self._rights, (self.direction.right(content), next(self._numbers), value))

    def turned(self) -> tuple[list[Row], list[Row]]:
        """Find the extreme value anew; the left rows that begin, and those that cease, to meet a right row."""
        rights, copies = self._rights, self._copies
        while rights and rights[0][2][0] not in copies:
            heappop(rights)
        if len(rights) > 2 * len(copies) + _SPARE:
            rights[:] = {value[0]: (key, n, value) for key, n, value in rights if value[0] in copies}.values()
            heapify(rights)
        before, self._top = self._top, rights[0][2] if rights else None
        return ([], []) if self._top == before else (self._moved(False), self._moved(True))

    def _moved(self, met: bool) -> list[Row]:
        """The rows of one side that have to change to the other."""
        heap, moved = self._heaps[met], list[Row]()
        while heap:
            _, _, value, row = heap[0]
            current = self.met.get(row) is met
            if current and self._meets(value) is met:
                break
            heappop(heap)
            if current:
                self._place(row, value, not met)
                moved.append(row)
        return moved

    def _meets(self, value: Placed) -> bool:
        return self._top is not None and self.direction.passes(value, self._top)

    def add_left(self, row: Row, value: Placed) -> bool:
        """Add a left row; whether it meets a right row."""
        met = self._meets(value)
        self._place(row, value, met)
        return met

    def _place(self, row: Row, value: Placed, met: bool) -> None:
        self.met[row] = met
        heap = self._heaps[met]
        heappush(heap, (self.direction.sides[met](value[0]), next(self._numbers), value, row))
        if len(heap) > 2 * len(self.met) + _SPARE:
            heap[:] = {entry[3]: entry for entry in heap if self.met.get(entry[3]) is met}.values()
            heapify(heap)


class PerExtreme(PerNeighbour):
    """EXISTS under a band with one direction. Keys with few rows, or several kinds of values, are left to the base.

    ``_extremes`` has the other keys, ``_mixed`` those with several kinds of values.
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
        self._direction, self._direct = Direction(band, self._holds), band.direct
        self._extremes: dict[Key, Extreme] = {}
        self._mixed: dict[Key, None] = {}

    def tables(self) -> Iterator[Any]:
        """The tables of rows, those of each key too; read-only."""
        yield from super().tables()
        yield from (extreme.met for extreme in self._extremes.values())

    def _met_by(self, right: Bag, change: Bag) -> None:
        own, others = self._split(self._rights, right)
        begun, ceased = dict[Row, int](), dict[Row, int]()
        for key, moves in own.items():
            extreme = self._extremes[key]
            for value, _, copies in moves:
                extreme.add_right(value, copies)
            for turned, moved in zip((begun, ceased), extreme.turned(), strict=True):
                turned.update((row, self._lefts.count(row)) for row in moved)
        if own:
            self._rights.add({row: right[row] for moves in own.values() for _, row, _ in moves})
        for rows, met in ((begun, True), (ceased, False)):
            if rows:
                self._turn(change, rows, met)
        if others:
            super()._met_by(others, change)
        self._tend(self._rights, right)

    def _meet(self, left: Bag, change: Bag) -> None:
        own, others = self._split(self._lefts, left)
        met, alone = dict[Row, int](), dict[Row, int]()
        for key, moves in own.items():
            extreme = self._extremes[key]
            for value, row, copies in moves:
                known = extreme.met.get(row)
                if known is None:
                    known = extreme.add_left(row, value)
                elif not self._lefts.count(row) + copies:
                    del extreme.met[row]
                (met if known else alone)[row] = copies
        if own:
            self._lefts.add(met | alone)
            add_all(change, self._output.met(met))
            add_all(change, self._output.alone(alone))
        if others:
            super()._meet(others, change)
        self._tend(self._lefts, left)

    def _split(self, index: OrderedIndex, change: Bag) -> tuple[dict[Key, list[tuple[Placed, Row, int]]], Bag]:
        """The rows of keys with an extreme, by key, and the others; a value of another kind ends its key's extreme."""
        own, others = dict[Key, list[tuple[Placed, Row, int]]](), Bag()
        if not self._extremes:
            return own, change
        for row, copies in change.items():
            key, term = index.key(row), index.own(row)
            extreme = self._extremes.get(key)
            placed = None if extreme is None or term is None else place(term, self._direct)
            if extreme is not None and term is not None and placed is not None and placed[0] == extreme.kind:
                own.setdefault(key, []).append(((placed[1], term), row, copies))
                continue
            others[row] = copies
            if extreme is not None and term is not None:
                del self._extremes[key]
                self._mixed[key] = None
                others.update((other, times) for _, other, times in own.pop(key, ()))
        return own, others

    def _tend(self, index: OrderedIndex, change: Bag) -> None:
        """Give keys that have become large an extreme, and forget keys that have become empty."""
        for key in dict.fromkeys(map(index.key, change)):
            if key in self._lefts or key in self._rights:
                if key not in self._extremes and key not in self._mixed and len(index.bags.get(key, ())) > FEW_ROWS:
                    self._begin(key)
            else:
                self._extremes.pop(key, None)
                self._mixed.pop(key, None)

    def _begin(self, key: Key) -> None:
        """Compute the extreme of a key from its rows; without effect if values are of several kinds."""
        rights = list(self._valued(self._rights, key))
        lefts = list(self._valued(self._lefts, key))
        kinds = {None if placed is None else placed[0] for _, placed, _, _ in (*rights, *lefts)}
        if len(kinds) != 1 or None in kinds:
            self._mixed[key] = None
            return
        (kind,) = kinds
        assert kind is not None
        extreme = self._extremes[key] = Extreme(self._direction, kind)
        for _, placed, term, copies in rights:
            assert placed is not None
            extreme.add_right((placed[1], term), copies)
        extreme.turned()
        for row, placed, term, _ in lefts:
            assert placed is not None
            extreme.add_left(row, (placed[1], term))

    def _valued(self, index: OrderedIndex, key: Key) -> Iterator[tuple[Row, tuple[Kind, Any] | None, Term, int]]:
        """The rows of a key that have a value, with its place, the term and the number of copies."""
        for row, copies in index.get(key).items():
            term = index.own(row)
            if term is not None:
                yield row, place(term, self._direct), term, copies
