"""Joins over the numbers of terms, column by column: what ``snapshot`` does with lists, for contents that are large.

A column is an array of numbers. Numbers are dense, so an index from one column is a table with a place for each number;
an index from several columns is sorted. Conditions are asked once for each term.
"""

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from streamgauge.incremental.bands import Band
from streamgauge.incremental.budget import TooMuchError
from streamgauge.incremental.conditions import Test
from streamgauge.incremental.list_joins import PendingCondition
from streamgauge.incremental.operators import Bag
from streamgauge.incremental.ordered_rows import ValueSpans, pairs_within
from streamgauge.incremental.plan import TripleRelation
from streamgauge.incremental.term_ids import Ids, Places, TermIds
from streamgauge.model.terms import Term

Mask: TypeAlias = npt.NDArray[np.bool_]

LARGEST: Final = 20_000_000
"""Rows that one join makes, at most: they are made by one call that nothing stops."""

MAX_PACKED_TERMS: Final = 2_000_000
"""Terms of which three numbers make one of 64 bits."""

SPARSE: Final = 16
"""How many numbers there may be for each row for an index to be a table."""


class IdConditions:
    """Conditions on terms by their numbers; what one term gives is remembered."""

    def __init__(self, ids: TermIds) -> None:
        self.ids, self._turn = ids, ids.turn
        self._known: dict[Test, npt.NDArray[np.int8]] = {}

    def kept(self, holds: Test, column: Ids) -> Mask:
        """Whether a condition on one term holds at each place."""
        known = self._table(holds)
        ids = known[column]
        if len(unknown := column[ids < 0]):
            for number in np.unique(unknown).tolist():
                known[number] = holds(self.ids.terms[number])
            ids = known[column]
        return ids.astype(np.bool_)

    def _table(self, holds: Test) -> npt.NDArray[np.int8]:
        if self._turn != self.ids.turn:
            self._known.clear()
            self._turn = self.ids.turn
        known = self._known.get(holds, np.empty(0, np.int8))
        if len(known) < len(self.ids):
            more = np.full(2 * len(self.ids) - len(known), -1, np.int8)
            known = self._known[holds] = np.concatenate([known, more])
        return known

    def several(self, condition: PendingCondition, columns: Sequence[Ids]) -> Mask:
        """The same for several columns, asked once for equal terms."""
        numbered = [_numbered(column, len(self.ids)) for column in columns]
        spanned = None if condition.spans is None else self._spanned(condition.spans, *numbered)
        if spanned is not None:
            return spanned
        rows, total = numbered[0][1], len(numbered[0][0])
        for numbers, places in numbered[1:]:
            numbers_, rows = _numbered(rows * len(numbers) + places, total * len(numbers))
            total = len(numbers_)
        first = np.empty(total, np.int64)
        first[rows] = np.arange(len(rows))
        cells = [self.ids.texts(column[first]) for column in columns]
        kept: Mask = np.fromiter(map(condition.holds, *cells), np.bool_, total)
        return kept[rows]

    def _spanned(self, spans: ValueSpans, left: "Numbered", right: "Numbered") -> Mask | None:
        """Whether a band holds at each place, where searches say so with less effort than tests."""
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
"""The different numbers of a column, and for each place which of them is there."""


def _numbered(column: Any, bound: int) -> Numbered:
    """The different numbers of a column, which are less than ``most``."""
    if bound > SPARSE * (len(column) + 1000):
        numbers, places = np.unique(column, return_inverse=True)
        return numbers, places
    there = np.zeros(bound, np.bool_)
    there[column] = True
    numbers = np.flatnonzero(there)
    places = np.empty(bound, np.int64)
    places[numbers] = np.arange(len(numbers))
    return numbers, places[column]


class IdSide:
    """The distinct rows of some columns, with an index for each way that they are looked up."""

    def __init__(self, columns: Sequence[Ids], size: int, terms: int) -> None:
        self._columns, self.size, self._terms = list(columns), size, terms
        self._indexes: dict[tuple[int, ...], KeyIndex] = {}

    def cells(self, place: int) -> Ids:
        """One column."""
        return self._columns[place]

    def index(self, bound: tuple[int, ...]) -> "KeyIndex":
        """From the values of bound columns to rows."""
        if bound not in self._indexes:
            columns = [self._columns[place] for place in bound]
            dense = len(bound) == 1 and self._terms <= SPARSE * (self.size + 1000)
            self._indexes[bound] = (
                KeyTable(columns[0], self._terms) if dense else SortedKeys(_keys(columns, self._terms), self._terms)
            )
        return self._indexes[bound]


def _keys(columns: Sequence[Ids], terms: int) -> Places:
    """One number for the numbers of several columns."""
    keys = columns[0].astype(np.int64)
    for column in columns[1:]:
        keys = keys * terms + column
    return keys


class KeyIndex:
    """From keys to rows; ``keys`` is how many different keys there are."""

    keys: int

    def counts(self, columns: Sequence[Ids]) -> Places:
        """How many rows each key has."""
        raise NotImplementedError

    def rows(self, columns: Sequence[Ids]) -> tuple[Places | None, Places]:
        """Places of keys and the rows that they have, side by side; ``None``: each key has one row."""
        raise NotImplementedError


class KeyTable(KeyIndex):
    """An index from one column: a table over all numbers."""

    def __init__(self, column: Ids, terms: int) -> None:
        places = np.arange(len(column))
        self._row: Places = np.full(terms, -1, np.int64)
        self._row[column] = places
        self._starts: Places | None = None
        self.keys = len(column)
        if not (self._row[column] == places).all():
            self._counts = np.bincount(column, minlength=terms)
            self._starts = np.cumsum(self._counts) - self._counts
            self._order = np.argsort(column, kind="stable")
            self.keys = int(np.count_nonzero(self._counts))

    def counts(self, columns: Sequence[Ids]) -> Places:
        """How many rows each key has."""
        if self._starts is None:
            return (self._row[columns[0]] >= 0).astype(np.int64)
        counts: Places = self._counts[columns[0]]
        return counts

    def rows(self, columns: Sequence[Ids]) -> tuple[Places | None, Places]:
        """Places of keys and the rows that they have."""
        keys = columns[0]
        if self._starts is not None:
            return _expanded(self._counts[keys], self._starts[keys], self._order)
        rows = self._row[keys]
        there = rows >= 0
        if there.all():
            return None, rows
        places = np.flatnonzero(there)
        return places, rows[places]


class SortedKeys(KeyIndex):
    """An index from several columns, or from one with few of many numbers: their keys sorted."""

    def __init__(self, keys: Places, terms: int) -> None:
        self._order = np.argsort(keys, kind="stable")
        self._sorted, self._terms = keys[self._order], terms
        self.keys = len(keys) and int(np.count_nonzero(np.diff(self._sorted))) + 1

    def counts(self, columns: Sequence[Ids]) -> Places:
        """How many rows each key has."""
        begin, end = self._ends(columns)
        return end - begin

    def rows(self, columns: Sequence[Ids]) -> tuple[Places | None, Places]:
        """Places of keys and the rows that they have."""
        begin, end = self._ends(columns)
        return _expanded(end - begin, begin, self._order)

    def _ends(self, columns: Sequence[Ids]) -> tuple[Places, Places]:
        keys = _keys(columns, self._terms)
        return self._sorted.searchsorted(keys), self._sorted.searchsorted(keys, "right")


def _expanded(counts: Places, starts: Places, order: Places) -> tuple[Places, Places]:
    """Each place as often as it has rows, and these rows."""
    total = _bounded(int(counts.sum()))
    before = np.cumsum(counts) - counts
    return np.repeat(np.arange(len(counts)), counts), order[np.repeat(starts - before, counts) + np.arange(total)]


def _bounded(rows: int) -> int:
    if rows > LARGEST:
        raise TooMuchError(f"its evaluation makes more than {LARGEST} rows at once")
    return rows


Named: TypeAlias = tuple[tuple[str, ...], IdSide]
"""A side and the variables of its columns."""


class IdTable:
    """Solutions as columns of one length, ``size``; at first there is one without variables."""

    def __init__(self, conditions: IdConditions, terms: int) -> None:
        self._conditions, self._terms = conditions, terms
        self.columns: dict[str, Ids] = {}
        self.size = 1

    def empty(self) -> "IdTable":
        """Another that has nothing joined."""
        return IdTable(self._conditions, self._terms)

    def as_side(self) -> Named:
        """These solutions, to be joined."""
        return tuple(self.columns), IdSide(list(self.columns.values()), self.size, self._terms)

    def cost(self, names: Sequence[str], side: IdSide) -> tuple[int, float]:
        """How soon to join a side: when all is bound first, then what multiplies the solutions least, products last."""
        bound = self._bound(names)
        if len(bound) == len(names):
            return 0, side.size
        if not bound:
            return 2, side.size
        return 1, side.size / max(1, side.index(bound).keys)

    def grown(self, names: Sequence[str], side: IdSide) -> float:
        """About how many solutions there are after a join."""
        kind, ratio = self.cost(names, side)
        return self.size * ratio if kind else self.size

    def makes(self, more_than: int, names: Sequence[str], side: IdSide) -> bool:
        """Whether there are more solutions than that after a join with a side that shares a variable."""
        bound = self._bound(names)
        return int(side.index(bound).counts([self.columns[names[place]] for place in bound]).sum()) > more_than

    def join(self, names: Sequence[str], side: IdSide, needed: frozenset[str], within: Band | None = None) -> None:
        """Join with a side whose columns are these variables; only needed columns stay.

        Solutions that do not hold ``within`` a condition of both may be left out.
        """
        if within is not None:
            self._join_within(names, side, needed, within)
            return
        bound = self._bound(names)
        keys = [self.columns[names[place]] for place in bound]
        opened = [place for place in range(len(names)) if place not in bound and names[place] in needed]
        self.columns = {name: column for name, column in self.columns.items() if name in needed}
        if not bound:
            self._multiply(side, opened, names)
            return
        places, rows = side.index(bound).rows(keys)
        if places is not None:
            self._take(places)
        self.columns |= {names[place]: side.cells(place)[rows] for place in opened}

    def _join_within(self, names: Sequence[str], side: IdSide, needed: frozenset[str], within: Band) -> None:
        bound, texts = self._bound(names), self._conditions.ids.texts
        keys = [_keys([self.columns[names[place]] for place in bound], self._terms)]
        keys.append(_keys([side.cells(place) for place in bound], self._terms))
        values = texts(self.columns[within.left]), texts(side.cells(names.index(within.right)))
        lefts, rights = (zip(key.tolist(), value, strict=True) for key, value in zip(keys, values, strict=True))
        ones, others = (np.array(pair_column, np.int64) for pair_column in pairs_within(within, lefts, rights, LARGEST))
        self.columns = {name: column[ones] for name, column in self.columns.items() if name in needed}
        opened = (place for place, name in enumerate(names) if place not in bound and name in needed)
        self.columns |= {names[place]: side.cells(place)[others] for place in opened}
        self.size = len(ones)

    def filter(self, condition: PendingCondition) -> None:
        """Keep the solutions for whose variables a condition holds."""
        columns = [self.columns[name] for name in condition.names]
        self._take(np.flatnonzero(self._conditions.several(condition, columns)))

    def _take(self, places: Places) -> None:
        if len(places) != self.size or not (places == np.arange(self.size)).all():
            self.columns = {name: column[places] for name, column in self.columns.items()}
        self.size = len(places)

    def _multiply(self, side: IdSide, opened: Sequence[int], names: Sequence[str]) -> None:
        """Every solution with every row of a side that shares no variable."""
        before = self.size
        self.size = _bounded(before * side.size)
        if before != 1:
            self.columns = {name: np.repeat(column, side.size) for name, column in self.columns.items()}
            self.columns |= {names[place]: np.tile(side.cells(place), before) for place in opened}
            return
        self.columns = {name: np.repeat(column, side.size) for name, column in self.columns.items()}
        self.columns |= {names[place]: side.cells(place) for place in opened}

    def _bound(self, names: Sequence[str]) -> tuple[int, ...]:
        return tuple(place for place, name in enumerate(names) if name in self.columns)


class IdGraph:
    """The triples of a graph at one look, in columns."""

    def __init__(self, ids: TermIds, flat: Ids, conditions: IdConditions) -> None:
        self._ids, self._conditions = ids, conditions
        self._columns = (flat[0::3], flat[1::3], flat[2::3])
        self._sides: dict[TripleRelation, IdSide] = {}

    def table(self) -> IdTable:
        """Solutions with nothing joined."""
        return IdTable(self._conditions, len(self._ids))

    def bag(self, column: Ids) -> Bag:
        """Rows of one column as a bag, their terms as texts."""
        numbers, counts = np.unique(column, return_counts=True)
        return dict(zip(zip(self._ids.texts(numbers), strict=True), counts.tolist(), strict=True))

    def texts(self, columns: Sequence[Ids]) -> list[list[Term]]:
        """Columns of terms as texts."""
        return list(map(self._ids.texts, columns))

    def side(self, relation: TripleRelation, tests: Sequence[tuple[int, Test]]) -> IdSide:
        """The distinct triples of a relation, the same object for all that want it at one look."""
        if relation not in self._sides:
            self._sides[relation] = self._made(relation, tests)
        return self._sides[relation]

    def _made(self, relation: TripleRelation, tests: Sequence[tuple[int, Test]]) -> IdSide:
        places = matching(self._columns, relation, tests, self._conditions)
        columns = [self._columns[at][places] for at in relation.columns]
        if not columns:
            return IdSide([], min(1, len(places)), len(self._ids))
        columns = _distinct(columns, len(self._ids))
        return IdSide(columns, len(columns[0]), len(self._ids))


def matching(
    columns: Sequence[Ids], relation: TripleRelation, tests: Sequence[tuple[int, Test]], conditions: IdConditions
) -> Places:
    """The places of a relation's triples, among triples whose subjects, predicates and objects are columns."""
    places = np.arange(len(columns[0]))
    for at in (1, 0, 2):
        constant = relation.constants[at]
        if constant is not None:
            places = places[columns[at][places] == conditions.ids.known(constant)]
    for at, first in enumerate(relation.equal):
        if first != at:
            places = places[columns[at][places] == columns[first][places]]
    for at, holds in tests:
        places = places[conditions.kept(holds, columns[at][places])]
    return places


def _distinct(columns: list[Ids], terms: int) -> list[Ids]:
    """Each row once; first columns that are all different say that they are."""
    first = columns[0]
    places = np.arange(len(first), dtype=np.int32)
    row = np.empty(terms, np.int32)
    row[first] = places
    if (row[first] == places).all():
        return columns
    if len(columns) == 1:
        return [np.unique(first)]
    kept = np.unique(_keys(columns, terms), return_index=True)[1]
    return [column[np.sort(kept)] for column in columns]
