"""Joins of rows, which keep the rows of both sides by key, and the rules by which rows of two sides meet."""

from dataclasses import dataclass
from operator import itemgetter
from typing import Final

from streamgauge.incremental.bands import Band
from streamgauge.incremental.budget import EvaluationBudget
from streamgauge.incremental.equalities import EqualIndex, EqualTerms, value_of
from streamgauge.incremental.operators import (
    PRESENT,
    Bag,
    Index,
    LooseIndex,
    Operator,
    Shared,
    Stateful,
    add,
    picker,
    row_picker,
)
from streamgauge.incremental.ordered_rows import BandSearch, OrderedIndex
from streamgauge.model.terms import XSD, Row, Term


class Merge:
    """How rows of two sides meet: the key of columns bound on both sides, the loose columns, the merged row."""

    def __init__(self, left: Operator, right: Operator) -> None:
        shared = [name for name in left.variables if name in right.variables]
        # Columns that may be unbound cannot be part of the key: an unbound one is compatible with every value.
        certain = [name for name in shared if name in left.certain and name in right.certain]
        self.variables = (*left.variables, *(name for name in right.variables if name not in shared))
        self.left_key = picker(left.variables, certain)
        self.right_key = picker(right.variables, certain)
        self._names = left.variables, right.variables
        self._keys = row_picker(left.variables, certain), row_picker(right.variables, certain)
        self.loose = [
            (left.variables.index(name), right.variables.index(name)) for name in shared if name not in certain
        ]
        self.crosses = not shared
        """Whether the sides share no variable, so that all rows meet."""
        self.shared = [(left.variables.index(name), right.variables.index(name)) for name in shared]
        self.rest = picker(right.variables, self.variables[len(left.variables) :])
        self.width = len(self.variables)

    def merged(self, left: Row, right: Row) -> Row:
        """The merged row; columns unbound on the left are taken from the right."""
        if self.loose:
            row = list(left)
            for i, j in self.loose:
                row[i] = right[j] if row[i] is None else row[i]
            left = tuple(row)
        return left + self.rest(right)

    def indexes(self, band: Band | EqualTerms | None = None) -> tuple[Index, Index]:
        """The indexes of both sides; those of the condition unless columns are loose."""
        # Loose columns decide the index, so a condition is not indexed as well; it is still tested on each pair.
        if self.loose:
            lefts, rights = zip(*self.loose, strict=True)
            return LooseIndex(self.left_key, lefts, rights), LooseIndex(self.right_key, rights, lefts)
        if isinstance(band, EqualTerms):
            left, right = value_of(band.left, self._names[0]), value_of(band.right, self._names[1])
            return EqualIndex(self.left_key, left, right), EqualIndex(self.right_key, right, left)
        if band is not None:
            return self.ordered(band)
        return Index(self.left_key, self._keys[0]), Index(self.right_key, self._keys[1])

    def ordered(self, band: Band) -> tuple[OrderedIndex, OrderedIndex]:
        """The indexes of both sides, sorted by the values that a band compares."""
        (lefts, rights), (left_keys, right_keys) = self._names, self._keys
        left, right = itemgetter(lefts.index(band.left)), itemgetter(rights.index(band.right))
        return (
            OrderedIndex(self.left_key, left_keys, left, right, BandSearch(band, True)),
            OrderedIndex(self.right_key, right_keys, right, left, BandSearch(band, False)),
        )


class TwoSided(Stateful):
    """An operator that keeps the rows of both sides by their key, and by a condition."""

    def __init__(
        self, left: Operator, right: Operator, merge: Merge, condition: Band | EqualTerms | None = None
    ) -> None:
        self._left, self._right = left, right
        self._lefts, self._rights = merge.indexes(condition)


class JoinRows(TwoSided):
    """Join by the product rule: new left rows with old right rows, then all left rows with new right rows."""

    def __init__(
        self, left: Operator, right: Operator, effort: EvaluationBudget, equal: EqualTerms | None = None
    ) -> None:
        self._merge, self._effort = Merge(left, right), effort
        super().__init__(left, right, self._merge, equal)
        self._crosses = self._merge.crosses and equal is None
        self.variables, self.certain = self._merge.variables, left.certain | right.certain

    def pull(self) -> Bag:
        """The change of the join."""
        change: Bag = {}
        left, right = self._left.pull(), self._right.pull()
        if self._crosses:
            # Charged ahead: a product is as large as its sides say, and the budget should end it before memory does.
            self._spend(len(left) * len(self._rights) + len(right) * (len(self._lefts) + len(left)))
        for row, count in left.items() if self._rights else ():
            for rights in self._rights.meeting(self._lefts.key(row), row):
                self._pairs(change, {row: count}, rights)
        # Between both loops, so that new rows meet new ones once: d(L x R) = dL x R + (L + dL) x dR.
        self._lefts.add(left)
        for row, count in right.items() if self._lefts else ():
            for lefts in self._lefts.meeting(self._rights.key(row), row):
                self._pairs(change, lefts, {row: count})
        self._rights.add(right)
        return change

    def _spend(self, pairs: int) -> None:
        """Charge pairs, each of which becomes a row; the size of a product is known before it is built."""
        self._effort.spend(pairs * self._effort.weight)

    def _pairs(self, change: Bag, lefts: Bag, rights: Bag) -> None:
        merge = self._merge
        if not self._crosses:
            self._spend(len(lefts) * len(rights))
        if not merge.loose:
            rests = [(merge.rest(right), n) for right, n in rights.items()]
            for left, m in lefts.items():
                for rest, n in rests:
                    add(change, left + rest, m * n)
            return
        for left, m in lefts.items():
            for right, n in rights.items():
                add(change, merge.merged(left, right), m * n)


TRUE: Final[Term] = f'"true"^^<{XSD}boolean>'
FALSE: Final[Term] = f'"false"^^<{XSD}boolean>'


@dataclass(frozen=True)
class Domain:
    """The outer solutions of an EXISTS: their ``variables``, and a ``key`` made of the variables ``keyed``."""

    key: str
    keyed: tuple[str, ...]
    variables: tuple[str, ...]
    rows: Shared

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that every operator of the inner pattern carries."""
        return (self.key, *self.variables)

    @property
    def places(self) -> dict[str, int]:
        """The positions in a key that tell whether a variable is bound outside."""
        return {name: self.keyed.index(name) for name in self.variables}

    def tap(self) -> Operator:
        """A reader of the distinct outer solutions with their keys."""
        return self.rows.tap()


def has_value(key: Term | None, place: int) -> bool:
    """Whether the outer variable at this position of a key is bound."""
    return key is not None and key[place] == PRESENT
