"""Columnar joins over lists of terms, for contents that are small or evaluated once (``snapshot``).

A column is a list of terms, a solution is one index into all columns, and primitives process whole columns.
"""

from collections.abc import Sequence
from itertools import chain, compress, repeat
from typing import Any, NamedTuple, TypeAlias

from streamgauge.incremental.bands import Band, band
from streamgauge.incremental.budget import LARGEST, LargeJoinError
from streamgauge.incremental.conditions import Test, test, variables_of
from streamgauge.incremental.ordered_rows import ValueSpans, pairs_within
from streamgauge.incremental.plan import TripleRelation
from streamgauge.model.algebra import Expression
from streamgauge.model.terms import Triple

Column: TypeAlias = list[Any]
Index: TypeAlias = dict[Any, Any]


class PendingCondition(NamedTuple):
    """A condition over several variables, tested once all are bound; ``spans`` if it compares values of two."""

    names: tuple[str, ...]
    holds: Test
    condition: Expression
    spans: ValueSpans | None


def relation_tests(relation: TripleRelation) -> list[tuple[int, Test]]:
    """The compiled conditions of a relation, each with the position of the term that it tests."""
    return [(at, test(condition, [name])) for at, name, condition in relation.conditions]


def pending(condition: Expression) -> PendingCondition:
    """Compile a condition, as a band over two variables where it is one."""
    names = variables_of(condition)
    band_ = band([condition], names[:1], names[1:])[0] if len(names) == 2 else None
    return PendingCondition(names, test(condition, names), condition, None if band_ is None else ValueSpans(band_))


class JoinSide:
    """The distinct triples of a relation, with an index for each set of bound columns."""

    def __init__(self, triples: list[Triple], columns: tuple[int, ...]) -> None:
        self._columns, self.width = columns, len(columns)
        self._triples = _distinct(triples)
        self.size = len(self._triples)
        self._indexes: dict[tuple[int, ...], tuple[Index, bool]] = {}

    def cells(self, places: Sequence[int]) -> Column:
        """The terms at some of the columns, by their numbers; tuples when these are several."""
        positions = [self._columns[place] for place in places]
        if len(positions) == 1:
            at = positions[0]
            return [triple[at] for triple in self._triples]
        return [tuple([triple[at] for at in positions]) for triple in self._triples]

    def index(self, bound: tuple[int, ...]) -> tuple[Index, bool]:
        """The index from bound columns to the others; ``True`` if its values are lists, because a key has several."""
        if bound not in self._indexes:
            self._indexes[bound] = self._made(bound)
        return self._indexes[bound]

    def _made(self, bound: tuple[int, ...]) -> tuple[Index, bool]:
        keys = self.cells(bound)
        opened = tuple(place for place in range(self.width) if place not in bound)
        values = self.cells(opened) if opened else [()] * self.size
        # Most keys are unique (a property with one value): then the values themselves are stored, not a list of one
        # each.
        index: Index = dict(zip(keys, values, strict=True))
        if len(index) == len(keys):
            return index, False
        # A worked example: (r1, 5) and (r2, 9) keyed by the first column give {r1: 5, r2: 9}; with a third pair (r1,
        # 6) they give {r1: [5, 6], r2: [9]}.
        lists: Index = {key: [] for key in index}
        for key, value in zip(keys, values, strict=True):
            lists[key].append(value)
        return lists, True


class Solutions(JoinSide):
    """Solutions that were joined separately, as the right side of a join."""

    def __init__(self, table: "SolutionTable") -> None:
        super().__init__([], ())
        self._cells = list(table.columns.values())
        self.width, self.size = len(self._cells), table.size

    def cells(self, places: Sequence[int]) -> Column:
        """The terms at some of the columns, by their numbers; tuples when these are several."""
        return _zipped([self._cells[place] for place in places])


Named: TypeAlias = tuple[tuple[str, ...], JoinSide]
"""A side and the variables of its columns."""


class SolutionTable:
    """Solutions as columns of length ``size``; ``largest`` is the maximum so far. Starts with one empty solution."""

    def __init__(self) -> None:
        self.columns: dict[str, Column] = {}
        self.size, self.largest = 1, 0

    def empty(self) -> "SolutionTable":
        """A new table with one empty solution."""
        return SolutionTable()

    def as_side(self) -> Named:
        """These solutions as the right side of a join."""
        return tuple(self.columns), Solutions(self)

    def filter(self, condition: PendingCondition) -> None:
        """Keep the solutions for which a condition holds."""
        columns = [self.columns[name] for name in condition.names]
        kept = None if condition.spans is None else _spanned(condition.spans, *columns)
        self.keep(_kept(condition.holds, columns) if kept is None else kept)

    def cost(self, names: Sequence[str], side: JoinSide) -> tuple[int, float]:
        """The join order: sides without open variables, then those that multiply solutions least, then products."""
        bound = self._bound(names)
        if len(bound) == len(names):
            return 0, side.size
        if not bound:
            return 2, side.size
        return 1, side.size / max(1, len(side.index(bound)[0]))

    def grown(self, names: Sequence[str], side: JoinSide) -> float:
        """The estimated number of solutions after a join."""
        kind, ratio = self.cost(names, side)
        return self.size * ratio if kind else self.size

    def makes(self, more_than: int, names: Sequence[str], side: JoinSide) -> bool:
        """Whether a join with a side that shares a variable gives more than this many solutions."""
        bound = self._bound(names)
        index, several = side.index(bound)
        # An upper bound from the longest list avoids counting for each solution in nearly all cases.
        if not several or self.size * max(map(len, index.values())) <= more_than:
            return False
        return sum(map(len, map(index.get, self._keys(names, bound), repeat(())))) > more_than

    def _keys(self, names: Sequence[str], bound: Sequence[int]) -> Column:
        return _zipped([self.columns[names[place]] for place in bound])

    def join(self, names: Sequence[str], side: JoinSide, needed: frozenset[str], within: Band | None = None) -> None:
        """Join with a side over these variables; only needed columns are kept.

        Solutions that fail the condition ``within`` may be left out.
        """
        if within is not None:
            self._join_within(names, side, needed, within)
            return
        bound = self._bound(names)
        keys = self._keys(names, bound)
        opened = tuple(place for place in range(len(names)) if place not in bound)
        self.columns = {name: column for name, column in self.columns.items() if name in needed}
        if not bound:
            self._multiply(side, opened, names, needed)
        # A semijoin: nothing is added, so membership is enough.
        elif not opened and not side.index(bound)[1]:
            self.keep(list(map(side.index(bound)[0].__contains__, keys)))
        else:
            values = self._looked_up(*side.index(bound), keys)
            self._add(values, [names[place] for place in opened], needed)

    def _join_within(self, names: Sequence[str], side: JoinSide, needed: frozenset[str], within: Band) -> None:
        bound = self._bound(names)
        lefts = zip(self._keys(names, bound), self.columns[within.left], strict=True)
        rights = zip(side.cells(bound), side.cells((names.index(within.right),)), strict=True)
        ones, others = pairs_within(within, lefts, rights, LARGEST)
        self.columns = {name: [column[at] for at in ones] for name, column in self.columns.items() if name in needed}
        for place, name in enumerate(names):
            if place not in bound and name in needed:
                cells = side.cells((place,))
                self.columns[name] = [cells[at] for at in others]
        self.size = len(ones)

    def keep(self, kept: list[bool]) -> None:
        """Keep the solutions that ``kept`` marks."""
        self.columns = {name: list(compress(column, kept)) for name, column in self.columns.items()}
        self.size = sum(kept)

    def _looked_up(self, index: Index, several: bool, keys: Column) -> Column:
        """The values of the keys in an index; solutions without a value are dropped, those with several repeated."""
        values: Column = list(map(index.get, keys))
        kept = [value is not None for value in values]
        if not all(kept):
            self.keep(kept)
            values = list(compress(values, kept))
        if several:
            self._repeat(list(map(len, values)))
            values = list(chain.from_iterable(values))
        return values

    def _multiply(self, side: JoinSide, opened: tuple[int, ...], names: Sequence[str], needed: frozenset[str]) -> None:
        """The product with a side that shares no variable."""
        before = self.size
        self._repeat([side.size] * before)
        for place in opened:
            if names[place] in needed:
                self.columns[names[place]] = side.cells((place,)) * before

    def _repeat(self, times: list[int]) -> None:
        """Repeat each solution; LargeJoinError if the table would become too large."""
        # Checked before the columns are built: the sum is known, and the memory would not be.
        if sum(times) > LARGEST:
            raise LargeJoinError
        self.columns = {
            name: list(chain.from_iterable(map(repeat, column, times))) for name, column in self.columns.items()
        }
        self.size = sum(times)

    def _add(self, values: Column, names: Sequence[str], needed: frozenset[str]) -> None:
        """Add one column, or several columns from tuples."""
        columns = [values] if len(names) == 1 else [[value[at] for value in values] for at in range(len(names))]
        self.columns |= {name: column for name, column in zip(names, columns, strict=True) if name in needed}

    def _bound(self, names: Sequence[str]) -> tuple[int, ...]:
        return tuple(place for place, name in enumerate(names) if name in self.columns)


def rows(relation: TripleRelation, triples: list[Triple], tests: Sequence[tuple[int, Test]]) -> list[Triple]:
    """The triples of a relation, from triples with its predicate."""
    for at in (0, 2):
        constant = relation.constants[at]
        if constant is not None:
            triples = [triple for triple in triples if triple[at] == constant]
    for at, first in enumerate(relation.equal):
        if first != at:
            triples = [triple for triple in triples if triple[at] == triple[first]]
    for at, holds in tests:
        triples = list(compress(triples, _kept(holds, [[triple[at] for triple in triples]])))
    return triples


def _kept(holds: Test, columns: Sequence[Column]) -> list[bool]:
    """Whether a condition holds for each row, evaluated once per distinct combination."""
    if len(columns) == 1:
        # Values repeat, so that a set of the cells saves most evaluations.
        known = {cell: holds(cell) for cell in set(columns[0])}
        return list(map(known.__getitem__, columns[0]))
    cells = list(zip(*columns, strict=True))
    known = {row: holds(*row) for row in set(cells)}
    return list(map(known.__getitem__, cells))


def _spanned(spans: ValueSpans, left: Column, right: Column) -> list[bool] | None:
    """Whether a band holds for each row; ``None`` if searching would cost more than testing."""
    lefts, rights = set(left), set(right)
    if not spans.worth(len(lefts), len(rights), len(left)) or (span_pairs := spans.of(lefts, rights)) is None:
        return None
    ends, places = dict(zip(lefts, span_pairs[0], strict=True)), dict(zip(rights, span_pairs[1], strict=True))
    between = zip(map(ends.__getitem__, left), map(places.__getitem__, right), strict=True)
    return [start <= at < end for (start, end), at in between]


def _distinct(triples: list[Triple]) -> list[Triple]:
    """The distinct triples; a fast path if all subjects differ."""
    # Hashing one string each instead of whole triples; observations usually have a subject of their own.
    if len({triple[0] for triple in triples}) == len(triples):
        return triples
    return list(dict.fromkeys(triples))


def _zipped(columns: Sequence[Column]) -> Column:
    """One column as it is, several as a column of tuples."""
    return columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))
