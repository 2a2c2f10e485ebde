"""Operators on signed bags: each pulls the change of its inputs and gives the change of its output.

Linear operators pass changes, the join is bilinear, DISTINCT counts; every operator's state is what it has passed on.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Final, Protocol, TypeAlias

from streamgauge.incremental.bags import Bag, add, add_all, collect
from streamgauge.incremental.conditions import Batch
from streamgauge.incremental.effort import Effort
from streamgauge.model.terms import Row, Term

Key = tuple[Term | None, ...]
CELL: Final = 64
"""Characters of a computed value that count as one row."""

Take: TypeAlias = Callable[[], Bag]
"""Gives the change of a leaf since it was last asked; the caller may keep it."""


class Operator(Protocol):
    """A node of the running query: its columns, those that are bound in every row, and the change since last asked."""

    variables: tuple[str, ...]
    certain: frozenset[str]

    def pull(self) -> Bag:
        """The change of the output since the last pull."""
        ...


class Stateful(Protocol):
    """What remembers rows."""

    @property
    def held(self) -> int:
        """How many it remembers."""
        ...

    def forget(self) -> None:
        """Begin again: the next pull is a change from nothing."""
        ...


class Source:
    """A basic graph pattern."""

    def __init__(self, take: Take, variables: tuple[str, ...]) -> None:
        self.variables, self.certain = variables, frozenset(variables)
        self.pull = take


class Constant:
    """Inline data: everything at the first pull, nothing later."""

    held = 0

    def __init__(self, variables: tuple[str, ...], rows: Sequence[Row]) -> None:
        self.variables = variables
        self.certain = frozenset(name for at, name in enumerate(variables) if all(row[at] is not None for row in rows))
        self._rows = collect((row, 1) for row in rows)
        self._given = False

    def forget(self) -> None:
        """Give the rows again."""
        self._given = False

    def pull(self) -> Bag:
        """The rows, once."""
        if self._given:
            return {}
        self._given = True
        return self._rows.copy()


class Keep:
    """FILTER."""

    def __init__(self, inner: Operator, condition: Batch) -> None:
        self.variables, self.certain = inner.variables, inner.certain
        self._inner, self._condition = inner, condition

    def pull(self) -> Bag:
        """The rows of the change for which the condition holds."""
        change = self._inner.pull()
        kept = self._condition.holds(change) if change else ()
        return {row: count for (row, count), keep in zip(change.items(), kept, strict=True) if keep}


class Compute:
    """BIND and SELECT expressions: one more column, unbound where the expression errs."""

    def __init__(self, inner: Operator, name: str, value: Batch, effort: Effort) -> None:
        self.variables, self.certain = (*inner.variables, name), inner.certain
        self._inner, self._value, self._effort = inner, value, effort

    def pull(self) -> Bag:
        """The rows of the change with their values."""
        change = self._inner.pull()
        values = self._value.values(change) if change else ()
        self._effort.spend(sum(len(value) for value in values if value) // CELL)
        return {(*row, value): count for (row, count), value in zip(change.items(), values, strict=True)}


class Pick:
    """Projection, by name; a name that the input does not have is unbound."""

    def __init__(self, inner: Operator, variables: tuple[str, ...]) -> None:
        self.variables, self.certain = variables, inner.certain & frozenset(variables)
        self._inner = inner
        self._take = picker(inner.variables, variables)
        self._injective = frozenset(inner.variables) <= frozenset(variables)

    def pull(self) -> Bag:
        """The change, column by column."""
        change = self._inner.pull()
        rows, counts = map(self._take, change), change.values()
        return dict(zip(rows, counts, strict=True)) if self._injective else collect(zip(rows, counts, strict=True))


class Both:
    """UNION: the sum of two bags with the same columns."""

    def __init__(self, left: Operator, right: Operator, certain: frozenset[str]) -> None:
        self.variables, self.certain = left.variables, certain
        self._left, self._right = left, right

    def pull(self) -> Bag:
        """The sum of both changes."""
        change = self._left.pull()
        add_all(change, self._right.pull())
        return change


class Unique:
    """DISTINCT: a row comes with its first copy and goes with its last."""

    def __init__(self, inner: Operator) -> None:
        self.variables, self.certain = inner.variables, inner.certain
        self._inner = inner
        self._counts: Bag = {}

    @property
    def held(self) -> int:
        """How many rows have copies."""
        return len(self._counts)

    def forget(self) -> None:
        """Begin again from nothing."""
        self._counts.clear()

    def pull(self) -> Bag:
        """Rows whose number of copies rose from, or fell to, nothing."""
        change: Bag = {}
        counts = self._counts
        for row, count in self._inner.pull().items():
            had = counts.get(row, 0)
            now = had + count
            if now:
                counts[row] = now
                if not had:
                    change[row] = 1
            elif had:
                del counts[row]
                change[row] = -1
        return change


class Index:
    """Bags of rows by key."""

    def __init__(self, key: Callable[[Row], Row]) -> None:
        self.key = key
        self.bags: defaultdict[Key, Bag] = defaultdict(dict)

    @property
    def held(self) -> int:
        """How many rows are in it."""
        return sum(map(len, self.bags.values()))

    def forget(self) -> None:
        """Begin again from nothing."""
        self.bags.clear()

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


class JoinRows:
    """Join: the product rule, new left with old right and all left with new right."""

    def __init__(self, left: Operator, right: Operator, effort: Effort) -> None:
        self._merge, self._effort = Merge(left, right), effort
        self._crosses = self._merge.crosses
        self.variables, self.certain = self._merge.variables, left.certain | right.certain
        self._left, self._right = left, right
        self._lefts, self._rights = Index(self._merge.left_key), Index(self._merge.right_key)

    @property
    def held(self) -> int:
        """How many rows of both sides there are."""
        return self._lefts.held + self._rights.held

    def forget(self) -> None:
        """Begin again from nothing."""
        self._lefts.forget()
        self._rights.forget()

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


def picker(variables: Sequence[str], wanted: Sequence[str]) -> Callable[[Row], Row]:
    """A function from a row over ``variables`` to the row over ``wanted`` (unbound where it is missing)."""
    positions = [variables.index(name) if name in variables else -1 for name in wanted]
    if positions == list(range(len(variables))):
        return lambda row: row
    if -1 in positions:
        return lambda row: tuple([row[at] if at >= 0 else None for at in positions])
    if not positions:
        return lambda _row: ()
    if len(positions) == 1:
        (only,) = positions
        return lambda row: (row[only],)
    return itemgetter(*positions)
