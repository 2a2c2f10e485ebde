"""Joins of rows, and OPTIONAL, MINUS and EXISTS, which remember the rows of both sides by key.

The rows of a touched key are answered before and after, and the difference is passed on.
"""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from streamgauge.incremental.budget import EvaluationBudget
from streamgauge.incremental.conditions import Batch
from streamgauge.incremental.operators import PRESENT, Bag, Key, Operator, Shared, add, difference, picker
from streamgauge.model.terms import XSD, Row, Term


class Index:
    """Bags of rows by key."""

    def __init__(self, key: Callable[[Row], Row]) -> None:
        self.key = key
        self.bags: defaultdict[Key, Bag] = defaultdict(dict)

    @property
    def held(self) -> int:
        """How many rows are in it."""
        return sum(map(len, self.bags.values()))

    def get(self, key: Key) -> Bag:
        """The rows with this key."""
        return self.bags.get(key) or {}

    def add(self, change: Bag) -> None:
        """Add a change in place."""
        bags = self.bags
        if not bags:
            for key, row in zip(map(self.key, change), change, strict=True):
                bags[key][row] = change[row]
            return
        for key, (row, count) in zip(map(self.key, change), change.items(), strict=True):
            bag = bags[key]
            now = bag.get(row, 0) + count
            if now:
                bag[row] = now
                continue
            bag.pop(row, None)
            if not bag:
                del bags[key]


class Merge:
    """How rows of two sides meet: the key that is bound on both, compatibility of the rest, the merged row."""

    def __init__(self, left: Operator, right: Operator) -> None:
        shared = [name for name in left.variables if name in right.variables]
        certain = [name for name in shared if name in left.certain and name in right.certain]
        self.variables = (*left.variables, *(name for name in right.variables if name not in shared))
        self.crosses = not certain
        """Whether each row on one side has the key of each on the other."""
        self.left_key = picker(left.variables, certain)
        self.right_key = picker(right.variables, certain)
        self.loose = [
            (left.variables.index(name), right.variables.index(name)) for name in shared if name not in certain
        ]
        self.shared = [(left.variables.index(name), right.variables.index(name)) for name in shared]
        self.rest = picker(right.variables, self.variables[len(left.variables) :])
        self.width = len(self.variables)

    def compatible(self, left: Row, right: Row) -> bool:
        """Whether two rows with the same key agree wherever both are bound."""
        return all(left[i] is None or right[j] is None or left[i] == right[j] for i, j in self.loose)

    def merged(self, left: Row, right: Row) -> Row:
        """One row of both; what is unbound on the left is taken from the right."""
        if self.loose:
            row = list(left)
            for i, j in self.loose:
                row[i] = right[j] if row[i] is None else row[i]
            left = tuple(row)
        return left + self.rest(right)


class TwoSided:
    """An operator that remembers the rows of both sides by the key that is bound on both."""

    def __init__(self, left: Operator, right: Operator, merge: Merge) -> None:
        self._left, self._right = left, right
        self._lefts, self._rights = Index(merge.left_key), Index(merge.right_key)

    @property
    def held(self) -> int:
        """How many rows of both sides there are."""
        return self._lefts.held + self._rights.held

    def forget(self) -> None:
        """Begin again from nothing."""
        self._lefts.bags.clear()
        self._rights.bags.clear()


class JoinRows(TwoSided):
    """Join: the product rule, new left with old right and all left with new right."""

    def __init__(self, left: Operator, right: Operator, effort: EvaluationBudget) -> None:
        self._merge, self._effort = Merge(left, right), effort
        super().__init__(left, right, self._merge)
        self._crosses = self._merge.crosses
        self.variables, self.certain = self._merge.variables, left.certain | right.certain

    def pull(self) -> Bag:
        """The change of the product."""
        change: Bag = {}
        left, right = self._left.pull(), self._right.pull()
        if self._crosses:
            self._spend(len(left) * self._rights.held + len(right) * (self._lefts.held + len(left)))
        for row, count in left.items():
            self._pairs(change, {row: count}, self._rights.get(self._lefts.key(row)))
        self._lefts.add(left)
        for row, count in right.items():
            self._pairs(change, self._lefts.get(self._rights.key(row)), {row: count})
        self._rights.add(right)
        return change

    def _spend(self, pairs: int) -> None:
        """Each pair is a row that is kept; how many a product without a key has is known before it is made."""
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
                if merge.compatible(left, right):
                    add(change, merge.merged(left, right), m * n)


Answer = Callable[[Bag, Bag], Bag]
Apart = Callable[[Bag], Bag]
TRUE: Final[Term] = f'"true"^^<{XSD}boolean>'
FALSE: Final[Term] = f'"false"^^<{XSD}boolean>'


_NONE: Final[Bag] = {}


@dataclass(frozen=True)
class Domain:
    """The outer solutions, ``variables`` of them under a ``key`` each that is made of the variables ``keyed``."""

    key: str
    keyed: tuple[str, ...]
    variables: tuple[str, ...]
    rows: Shared

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that every operator beside the domain carries."""
        return (self.key, *self.variables)

    @property
    def places(self) -> dict[str, int]:
        """Where in a key it says whether a variable has a value outside."""
        return {name: self.keyed.index(name) for name in self.variables}

    def tap(self) -> Operator:
        """The distinct outer solutions with their keys."""
        return self.rows.tap()


def has_value(key: Term | None, place: int) -> bool:
    """Whether the outer variable at this place of a key has a value."""
    return key is not None and key[place] == PRESENT


class PerKey(TwoSided):
    """An operator whose output for one key depends on the rows of both sides with that key only."""

    def __init__(
        self,
        left: Operator,
        right: Operator,
        merge: Merge,
        answer: Answer,
        apart: Apart,
        variables: tuple[str, ...],
        certain: frozenset[str],
    ) -> None:
        super().__init__(left, right, merge)
        self.variables, self.certain = variables, certain
        self._answer, self._apart = answer, apart

    def pull(self) -> Bag:
        """The change of the output over all touched keys; without rows on the left there is none.

        Rows of different keys are different: they hold the rows on the left.
        """
        left, right = self._left.pull(), self._right.pull()
        if not left and not right:
            return {}
        if not self._lefts.bags:
            return self._begun(left, right)
        lefts, rights, answer = self._lefts.bags, self._rights.bags, self._answer
        there = lefts.keys()
        touched = set(map(self._lefts.key, left))
        keys = touched | (there & set(map(self._rights.key, right)))
        before = {key: answer(lefts[key], rights.get(key, _NONE)) for key in keys & there}
        self._lefts.add(left)
        self._rights.add(right)
        change: Bag = {}
        for key in keys:
            after = answer(lefts[key], rights.get(key, _NONE)) if key in lefts else {}
            old = before.get(key)
            change.update(difference(after, old) if old else after)
        return change

    def _begun(self, left: Bag, right: Bag) -> Bag:
        """The output where there was no row on the left: those without one of their key on the right all at once."""
        self._lefts.add(left)
        self._rights.add(right)
        lefts, rights, answer = self._lefts.bags, self._rights.bags, self._answer
        met = lefts.keys() & rights.keys()
        if not met:
            return self._apart(left)
        key_of = self._lefts.key
        change = self._apart({row: count for row, count in left.items() if key_of(row) not in met})
        for key in met:
            change.update(answer(lefts[key], rights[key]))
        return change


def optional(
    left: Operator, right: Operator, condition: Batch | None, merge: Merge, effort: EvaluationBudget
) -> PerKey:
    """LeftJoin(left, right, condition)."""
    padding = (None,) * (merge.width - len(left.variables))

    def answer(lefts: Bag, rights: Bag) -> Bag:
        effort.spend(len(lefts) * (1 + len(rights) * effort.weight))
        if not rights:
            return {row + padding: count for row, count in lefts.items()}
        if condition is None and not merge.loose:
            rests = [(merge.rest(other), count) for other, count in rights.items()]
            return {row + rest: count * other for row, count in lefts.items() for rest, other in rests}
        pairs = [(row, other) for row in lefts for other in rights if not merge.loose or merge.compatible(row, other)]
        merged = [merge.merged(row, other) for row, other in pairs]
        kept = condition.holds(merged) if condition else [True] * len(merged)
        found: Bag = {}
        matched: set[Row] = set()
        for (row, other), whole, keep in zip(pairs, merged, kept, strict=True):
            if keep:
                matched.add(row)
                add(found, whole, lefts[row] * rights[other])
        for row, count in lefts.items():
            if row not in matched:
                add(found, row + padding, count)
        return found

    def apart(lefts: Bag) -> Bag:
        effort.spend(len(lefts))
        return {row + padding: count for row, count in lefts.items()}

    return PerKey(left, right, merge, answer, apart, merge.variables, left.certain)


def without(
    left: Operator, right: Operator, names: frozenset[str], domain: Domain | None, effort: EvaluationBudget
) -> PerKey:
    """MINUS: rows that are compatible with none on the right, with which they share a bound variable of ``names``.

    A variable for which EXISTS has put a value is none any more.
    """
    merge = Merge(left, right)
    places = {} if domain is None else domain.places
    key = -1 if domain is None else left.variables.index(domain.key)
    shared = [(i, j, places.get(left.variables[i])) for i, j in merge.shared if left.variables[i] in names]
    plain = bool(shared) and not merge.loose and not places

    def removes(row: Row, other: Row) -> bool:
        return merge.compatible(row, other) and any(
            row[i] is not None and other[j] is not None and (place is None or not has_value(row[key], place))
            for i, j, place in shared
        )

    def answer(lefts: Bag, rights: Bag) -> Bag:
        effort.spend(len(lefts) * (1 + len(rights)))
        if plain and rights:
            return {}
        return {row: count for row, count in lefts.items() if not any(removes(row, other) for other in rights)}

    def apart(lefts: Bag) -> Bag:
        effort.spend(len(lefts))
        return lefts.copy()

    return PerKey(left, right, merge, answer, apart, left.variables, left.certain)


def existing(left: Operator, right: Operator, wanted: object, effort: EvaluationBudget) -> PerKey:
    """EXISTS (``wanted`` true) and NOT EXISTS (false): rows with a compatible one on the right, or with none."""
    merge = Merge(left, right)

    def answer(lefts: Bag, rights: Bag) -> Bag:
        effort.spend(len(lefts) * (1 + len(rights)) if merge.loose else len(lefts))
        if not (merge.loose and rights):
            return dict(lefts) if bool(rights) is wanted else {}
        return {row: count for row, count in lefts.items() if _meets(merge, row, rights) is wanted}

    def apart(lefts: Bag) -> Bag:
        effort.spend(len(lefts))
        return {} if wanted else lefts.copy()

    return PerKey(left, right, merge, answer, apart, left.variables, left.certain)


def marked(left: Operator, right: Operator, name: str, effort: EvaluationBudget) -> PerKey:
    """EXISTS as a value: one more column, true for rows with a compatible one on the right, else false."""
    merge = Merge(left, right)

    def answer(lefts: Bag, rights: Bag) -> Bag:
        effort.spend(len(lefts) * (1 + len(rights)) if merge.loose else len(lefts))
        return {(*row, TRUE if _meets(merge, row, rights) else FALSE): count for row, count in lefts.items()}

    def apart(lefts: Bag) -> Bag:
        effort.spend(len(lefts))
        return {(*row, FALSE): count for row, count in lefts.items()}

    return PerKey(left, right, merge, answer, apart, (*left.variables, name), left.certain | {name})


def _meets(merge: Merge, row: Row, rights: Bag) -> bool:
    """Whether a row is compatible with one of those that have its key."""
    return bool(rights) if not merge.loose else any(merge.compatible(row, other) for other in rights)
