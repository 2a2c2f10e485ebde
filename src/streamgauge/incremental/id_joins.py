"""Columnar joins over term ids: what ``list_joins`` does with lists of terms, for large contents.

A column is an array of ids. Ids are dense, so the index of one column is a table with a slot per id; the index of
several columns is sorted. Conditions are evaluated once per distinct term.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from streamgauge.incremental.bands import Band
from streamgauge.incremental.budget import LARGEST, LargeJoinError
from streamgauge.incremental.conditions import Test
from streamgauge.incremental.crossovers import SPARSE
from streamgauge.incremental.list_joins import PendingCondition
from streamgauge.incremental.operators import Bag
from streamgauge.incremental.ordered_rows import ValueSpans, pairs_within
from streamgauge.incremental.plan import TripleRelation
from streamgauge.incremental.spans import TripleSpans
from streamgauge.incremental.term_ids import Ids, Places, TermIds
from streamgauge.model.terms import Term

Mask: TypeAlias = npt.NDArray[np.bool_]


class IdConditions:
    """Conditions on terms by their ids; the result per term is cached."""

    def __init__(self, ids: TermIds) -> None:
        self.ids, self._turn = ids, ids.turn
        self._known: dict[Test, npt.NDArray[np.int8]] = {}

    def kept(self, holds: Test, column: Ids) -> Mask:
        """Whether a condition on one term holds for each row."""
        # -1 is unknown, 0 and 1 are results: one array lookup decides the whole column once its terms are known.
        known = self._table(holds)
        ids = known[column]
        if len(unknown := column[ids < 0]):
            # Only here is a term decoded and Python's test called, once per distinct term.
            for number in np.unique(unknown).tolist():
                known[number] = holds(self.ids.terms[number])
            ids = known[column]
        return ids.astype(np.bool_)

    def _table(self, holds: Test) -> npt.NDArray[np.int8]:
        # Ids were renumbered, so each number now means another term.
        if self._turn != self.ids.turn:
            self._known.clear()
            self._turn = self.ids.turn
        known = self._known.get(holds, np.empty(0, np.int8))
        if len(known) < len(self.ids):
            # Doubled, or each look with new terms would copy the whole table.
            more = np.full(2 * len(self.ids) - len(known), -1, np.int8)
            known = self._known[holds] = np.concatenate([known, more])
        return known

    def several(self, condition: PendingCondition, columns: Sequence[Ids]) -> Mask:
        """Whether a condition on several columns holds for each row, evaluated once per distinct combination."""
        numbered = [_numbered(column, len(self.ids)) for column in columns]
        spanned = None if condition.spans is None else self._spanned(condition.spans, *numbered)
        if spanned is not None:
            return spanned
        rows, total = numbered[0][1], len(numbered[0][0])
        for numbers, places in numbered[1:]:
            # Numbered again after each column: the product of three columns' sizes might exceed 64 bits, that of
            # distinct pairs and one column does not.
            numbers_, rows = _numbered(rows * len(numbers) + places, total * len(numbers))
            total = len(numbers_)
        first = np.empty(total, np.int64)
        # Repeated indexes: the last write wins, and any row of a combination can represent it.
        first[rows] = np.arange(len(rows))
        cells = [self.ids.texts(column[first]) for column in columns]
        kept: Mask = np.fromiter(map(condition.holds, *cells), np.bool_, total)
        return kept[rows]

    def _spanned(self, spans: ValueSpans, left: "Numbered", right: "Numbered") -> Mask | None:
        """Whether a band holds for each row; ``None`` if searching would cost more than testing."""
        (lefts, left_at), (rights, right_at) = left, right
        if not spans.worth(len(lefts), len(rights), len(left_at)):
            return None
        span_pairs = spans.of(self.ids.texts(lefts), self.ids.texts(rights))
        if span_pairs is None:
            return None
        ends = np.array(span_pairs[0], np.int64).reshape(-1, 2)
        places = np.array(span_pairs[1], np.int64)[right_at]
        kept: Mask = (ends[left_at, 0] <= places) & (places < ends[left_at, 1])
        return kept


Numbered: TypeAlias = tuple[Any, Places]
"""The distinct ids of a column, and for each row the index of its id among them."""


def _numbered(column: Any, bound: int) -> Numbered:
    """The distinct ids of a column; all are less than ``bound``."""
    # A table with a slot per id is linear in all ids, sorting is n log n in the rows.
    if bound > SPARSE * (len(column) + 1000):
        numbers, places = np.unique(column, return_inverse=True)
        return numbers, places
    there = np.zeros(bound, np.bool_)
    there[column] = True
    numbers = np.flatnonzero(there)
    places = np.empty(bound, np.int64)
    places[numbers] = np.arange(len(numbers))
    return numbers, places[column]


Admits: TypeAlias = Callable[[Places, Places], Mask]
"""Which pairs of a solution and a span are joined, by their positions."""

Named: TypeAlias = tuple[tuple[str, ...], TripleSpans]
"""Spans and the variables of their columns."""


class IdTable:
    """Solutions as columns of length ``size``; ``largest`` is the maximum so far. Starts with one empty solution."""

    def __init__(self, conditions: IdConditions, columns: dict[str, Any] | None = None, size: int = 1) -> None:
        self._conditions = conditions
        self.columns, self.size, self.largest = columns or {}, size, 0

    def empty(self) -> "IdTable":
        """A new table with one empty solution."""
        return IdTable(self._conditions)

    @property
    def _terms(self) -> int:
        return len(self._conditions.ids)

    def as_side(self) -> Named:
        """These solutions as the right side of a join."""
        side, none = TripleSpans(len(self.columns)), np.zeros(self.size, np.int64)
        side.number(self._terms)
        side.append(list(self.columns.values()), none, none)
        return tuple(self.columns), side

    def cost(self, names: Sequence[str], side: TripleSpans) -> tuple[int, float]:
        """The join order: sides without open variables, then those that multiply solutions least, then products."""
        bound = self._bound(names)
        if len(bound) == len(names):
            # A side without open variables is a semijoin: it can only remove rows.
            return 0, len(side)
        if not bound:
            # A product comes last: by then the other joins have removed what they can.
            return 2, len(side)
        return 1, len(side) / max(1, side.number_of_keys(bound))

    def grown(self, names: Sequence[str], side: TripleSpans) -> float:
        """The estimated number of solutions after a join."""
        kind, ratio = self.cost(names, side)
        return self.size * ratio if kind else self.size

    def makes(self, more_than: int, names: Sequence[str], side: TripleSpans) -> bool:
        """Whether a join with a side that shares a variable gives more than this many solutions."""
        return side.number_of_pairs(self._keyed(names)) > more_than

    def join(
        self,
        names: Sequence[str],
        side: TripleSpans,
        needed: frozenset[str],
        within: Band | None = None,
        limit: int = LARGEST,
        admits: Admits | None = None,
    ) -> None:
        """Join with spans over these variables; only needed columns are kept.

        Solutions that fail the condition ``within`` may be left out. LargeJoinError beyond ``limit``.
        """
        if within is not None:
            self._join_within(names, side, needed, within)
            return
        keyed = self._keyed(names)
        if not keyed:
            self._multiply(names, side, needed)
            return
        which, places = side.pairs(keyed, limit)
        if admits is not None:
            kept = admits(which, places)
            which, places = which[kept], places[kept]
        opened = [at for at in range(len(names)) if at not in keyed and names[at] in needed]
        self.columns = {name: column for name, column in self.columns.items() if name in needed}
        self.take(which)
        self.columns |= {names[at]: side.cells(at, places) for at in opened}

    def _join_within(self, names: Sequence[str], side: TripleSpans, needed: frozenset[str], within: Band) -> None:
        keyed, texts = self._keyed(names), self._conditions.ids.texts
        keys = [_keys(list(keyed.values()), self._terms), _keys([side.column(at) for at in keyed], self._terms)]
        values = texts(self.columns[within.left]), texts(side.column(names.index(within.right)))
        lefts, rights = (zip(key.tolist(), value, strict=True) for key, value in zip(keys, values, strict=True))
        ones, others = (np.array(pair_column, np.int64) for pair_column in pairs_within(within, lefts, rights, LARGEST))
        self.columns = {name: column[ones] for name, column in self.columns.items() if name in needed}
        opened = (at for at, name in enumerate(names) if at not in keyed and name in needed)
        self.columns |= {names[at]: side.column(at)[others] for at in opened}
        self.size = len(ones)

    def filter(self, condition: PendingCondition) -> None:
        """Keep the solutions for which a condition holds."""
        columns = [self.columns[name] for name in condition.names]
        self.take(np.flatnonzero(self._conditions.several(condition, columns)))

    def take(self, places: Places) -> None:
        """Keep the solutions at these positions, in this order."""
        # Usually nothing is filtered out, and copying every column would cost more than this comparison.
        if len(places) != self.size or not (places == np.arange(self.size)).all():
            self.columns = {name: column[places] for name, column in self.columns.items()}
        self.size = len(places)

    def _multiply(self, names: Sequence[str], side: TripleSpans, needed: frozenset[str]) -> None:
        """The product with a side that shares no variable."""
        before, size = self.size, len(side)
        self.size = before * size
        if self.size > LARGEST:
            raise LargeJoinError
        self.columns = {name: np.repeat(column, size) for name, column in self.columns.items() if name in needed}
        self.columns |= {name: np.tile(side.column(at), before) for at, name in enumerate(names) if name in needed}

    def _keyed(self, names: Sequence[str]) -> dict[int, Ids]:
        """The bound columns of a side, with the terms that they must have."""
        return {at: self.columns[names[at]] for at in self._bound(names)}

    def _bound(self, names: Sequence[str]) -> tuple[int, ...]:
        return tuple(place for place, name in enumerate(names) if name in self.columns)


def _keys(columns: Sequence[Ids], terms: int) -> Places:
    """One number per row for several columns of ids."""
    keys = columns[0].astype(np.int64)
    for column in columns[1:]:
        keys = keys * terms + column
    return keys


class IdGraph:
    """The triples of a graph at one look, in columns of ids."""

    def __init__(self, ids: TermIds, flat: Ids, conditions: IdConditions) -> None:
        self._ids, self._conditions = ids, conditions
        self._triples = RelationTriples((flat[0::3], flat[1::3], flat[2::3]), conditions)
        self.size = len(flat) // 3
        self._sides: dict[TripleRelation, TripleSpans] = {}

    def table(self) -> IdTable:
        """A table with one empty solution."""
        return IdTable(self._conditions)

    def bag(self, column: Ids) -> Bag:
        """The rows of one column as a bag of terms."""
        numbers, counts = np.unique(column, return_counts=True)
        return dict(zip(zip(self._ids.texts(numbers), strict=True), counts.tolist(), strict=True))

    def texts(self, columns: Sequence[Ids]) -> list[list[Term]]:
        """Columns of ids decoded to terms."""
        return list(map(self._ids.texts, columns))

    def side(self, relation: TripleRelation, tests: Sequence[tuple[int, Test]]) -> TripleSpans:
        """The distinct triples of a relation, built once per look."""
        side = self._sides.get(relation)
        if side is None:
            places = self._triples.places(relation, tests)
            columns, none = stored(relation), np.zeros(len(places), np.int64)
            side = self._sides[relation] = TripleSpans(len(columns))
            side.number(len(self._ids))
            # One look without a past: all spans are born at 0 and never end, so repeated triples merge into one span.
            side.enter([self._triples.columns[at][places] for at in columns], none, none, none)
        return side


def stored(relation: TripleRelation) -> tuple[int, ...]:
    """The positions that distinguish the triples of a relation; any one if all are constants."""
    return relation.columns or (0,)


class RelationTriples:
    """The triples of relations in columns of subjects, predicates and objects."""

    def __init__(self, columns: Sequence[Ids], conditions: IdConditions) -> None:
        self.columns, self._conditions = columns, conditions
        self._known: dict[tuple[Term | None, ...], Places] = {}

    def places(self, relation: TripleRelation, tests: Sequence[tuple[int, Test]]) -> Places:
        """The positions of a relation's triples; relations with the same constants are searched once."""
        columns = self.columns
        places = self._known.get(relation.constants)
        if places is None:
            places = self._known[relation.constants] = self._equal(relation.constants)
        for at, first in enumerate(relation.equal):
            if first != at:
                places = places[columns[at][places] == columns[first][places]]
        for at, holds in tests:
            places = places[self._conditions.kept(holds, columns[at][places])]
        return places

    def _equal(self, constants: Sequence[Term | None]) -> Places:
        """The positions of triples with these constants."""
        places = np.arange(len(self.columns[0]))
        # The predicate first: it is nearly always constant and removes most.
        for at in (1, 0, 2):
            constant = constants[at]
            if constant is not None:
                places = places[self.columns[at][places] == self._conditions.ids.known(constant)]
        return places
