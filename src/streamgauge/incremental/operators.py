"""Operators on signed bags: each pulls the changes of its inputs and returns the change of its output.

A bag maps rows to multiplicities, which are negative for removals and never 0. Linear operators pass changes on, the
join is bilinear, DISTINCT counts; the state of each operator is the sum of its changes.

An operator may have several readers (``Shared``). It is pulled once per pull of the whole query, whose leaves then
return nothing new. In ``p1*/p2*/.../pn*`` each operator has two readers, and two more below it, so that otherwise a
pull would take 2 ** n steps.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import Any, Final, Protocol, TypeAlias

from streamgauge.incremental.budget import EvaluationBudget
from streamgauge.incremental.conditions import Batch
from streamgauge.model.algebra import Pattern, Var
from streamgauge.model.terms import Row, Term

Bag = dict[Row, int]
Delta = Mapping[Row, int]
"""The exact change of a bag of solutions."""


def add(bag: Bag, row: Row, count: int) -> None:
    """Add ``count`` copies of a row in place; negative counts remove."""
    now = bag.get(row, 0) + count
    if now:
        bag[row] = now
    else:
        bag.pop(row, None)


def add_all(bag: Bag, delta: Mapping[Row, int]) -> None:
    """Add a whole change in place."""
    if not bag:
        bag.update(delta)
        return
    get = bag.get
    for row, count in delta.items():
        now = get(row, 0) + count
        if now:
            bag[row] = now
        else:
            del bag[row]


def collect(rows: Iterable[tuple[Row, int]]) -> Bag:
    """The bag of signed rows."""
    bag: Bag = {}
    for row, count in rows:
        add(bag, row, count)
    return bag


def repeated(bag: Iterable[tuple[Row, int]]) -> tuple[Row, ...]:
    """The rows, repeated by their multiplicity."""
    return tuple([row for row, count in bag for _ in range(count)])


def difference(after: Mapping[Row, int], before: Mapping[Row, int]) -> Bag:
    """The change from ``before`` to ``after``."""
    change = dict(after)
    add_all(change, {row: -count for row, count in before.items()})
    return change


Key = tuple[Term | None, ...]
Bound: TypeAlias = tuple[int, ...]
"""The bound ones of some columns, by their positions."""
CELL: Final = 64
"""Characters of a computed value that count as one row of the budget."""

Take: TypeAlias = Callable[[], Bag]
"""Returns the change of a leaf since the last call; the caller owns it."""


class Operator(Protocol):
    """A node of a running query: its columns, those that are bound in every row (``certain``), and its changes."""

    variables: tuple[str, ...]
    certain: frozenset[str]

    def pull(self) -> Bag:
        """The change of the output since the last pull."""


class Stateful:
    """An operator with state: its attributes that are dicts or indexes hold rows."""

    def tables(self) -> Iterator[Any]:
        """The tables of rows; read-only."""
        return (table for table in vars(self).values() if isinstance(table, dict | Index))

    @property
    def held(self) -> int:
        """The number of rows in the state."""
        return sum(map(len, self.tables()))

    def forget(self) -> None:
        """Reset: the next pull is a change from the empty state."""
        for table in self.tables():
            table.clear()


class Index:
    """Rows by key with their counts: ``single`` holds keys with one row, ``bags`` those with several.

    A key is in exactly one of the two. Most keys have one row, which needs no bag of its own.
    ``keys_of`` maps rows to keys in bulk.
    """

    def __init__(self, key: Callable[[Row], Row], keys: Callable[[Iterable[Row]], Iterable[Row]] | None = None) -> None:
        self.key, self.keys_of = key, keys or partial(map, key)
        self.single: dict[Key, tuple[Row, int]] = {}
        self.bags: dict[Key, Bag] = {}

    def __len__(self) -> int:
        return len(self.single) + sum(map(len, self.bags.values()))

    def __bool__(self) -> bool:
        return bool(self.single or self.bags)

    def __contains__(self, key: Key) -> bool:
        return key in self.single or key in self.bags

    def clear(self) -> None:
        """Remove all rows of the index."""
        self.single.clear()
        self.bags.clear()

    def get(self, key: Key) -> Bag:
        """The rows with this key; read-only."""
        only = self.single.get(key)
        if only is not None:
            return {only[0]: only[1]}
        return self.bags.get(key) or {}

    def meeting(self, key: Key, _row: Row) -> Sequence[Bag]:
        """The rows, in bags, that agree with a row of the other side, which has this key."""
        bag = self.get(key)
        return (bag,) if bag else ()

    def parts(self) -> Iterator[Mapping[Key, Bag]]:
        """The tables of bags beside ``single``; some rows may be in several of them."""
        yield self.bags

    def count(self, row: Row) -> int:
        """The multiplicity of a row."""
        key = self.key(row)
        only = self.single.get(key)
        if only is not None:
            return only[1] if only[0] == row else 0
        bag = self.bags.get(key)
        return bag.get(row, 0) if bag else 0

    def add(self, change: Bag) -> None:
        """Add a change in place."""
        single = self.single
        if not single and not self.bags:
            single.update(zip(self.keys_of(change), change.items(), strict=True))
            # Some keys came twice; the table has only the last row of each.
            if len(single) < len(change):
                self._part(change)
            return
        for key, moved in zip(self.keys_of(change), change.items(), strict=True):
            before = single.get(key)
            if before is None:
                if key in self.bags:
                    self._add_to_bag(key, *moved)
                else:
                    single[key] = moved
            elif before[0] != moved[0]:
                del single[key]
                # The second row of a key: they move to a bag. Copies of the first row are counted below.
                self.bags[key] = dict((before, moved))
            elif now := before[1] + moved[1]:
                single[key] = moved[0], now
            else:
                del single[key]

    def _part(self, rows: Bag) -> None:
        """Set the content to these rows, some of which share a key."""
        bags: defaultdict[Key, Bag] = defaultdict(dict)
        for key, (row, count) in zip(self.keys_of(rows), rows.items(), strict=True):
            bags[key][row] = count
        self.bags = {key: bag for key, bag in bags.items() if len(bag) > 1}
        self.single = {key: bag.popitem() for key, bag in bags.items() if len(bag) == 1}

    def _add_to_bag(self, key: Key, row: Row, count: int) -> None:
        bag = self.bags[key]
        add(bag, row, count)
        if len(bag) == 1:
            self.single[key] = bag.popitem()
            del self.bags[key]


class LooseIndex(Index):
    """Bags of rows by key and by loose columns, which are unbound in some rows.

    A loose column of two rows agrees if it is equal, or unbound in one of them. Rows are therefore partitioned by the
    loose columns that they bind, and a partition is looked up by those that the other row binds too. ``own`` and
    ``other`` are the loose columns of both sides. The first lookup of a kind scans the partition; its table is kept.
    """

    def __init__(self, key: Callable[[Row], Row], own: Sequence[int], other: Sequence[int]) -> None:
        super().__init__(key)
        self._own, self._other = tuple(own), tuple(other)
        self._tables: dict[Bound, dict[Bound, defaultdict[Key, Bag]]] = {}

    def clear(self) -> None:
        """Remove all rows and their tables."""
        super().clear()
        self._tables.clear()

    def parts(self) -> Iterator[Mapping[Key, Bag]]:
        """The bags by key, and the tables of each partition."""
        yield from super().parts()
        for tables in self._tables.values():
            yield from tables.values()

    def meeting(self, key: Key, row: Row) -> Sequence[Bag]:
        """The rows, in bags, that agree with a row of the other side, which has this key."""
        cells = [row[at] for at in self._other]
        bags = []
        for bound, tables in self._tables.items():
            both = tuple([at for at in bound if cells[at] is not None])
            table = tables[both] if both in tables else self._table(bound, both)
            bag = table.get((*key, *[cells[at] for at in both]))
            if bag:
                bags.append(bag)
        return bags

    def _table(self, bound: Bound, both: Bound) -> defaultdict[Key, Bag]:
        """The rows that bind the loose columns ``bound``, by their key and the columns ``both``."""
        table = self._tables[bound][both] = defaultdict(dict)
        for bag in self._tables[bound][bound].values():
            for row, count in bag.items():
                table[self._place(row, both)][row] = count
        return table

    def _place(self, row: Row, columns: Bound) -> Key:
        return (*self.key(row), *[row[self._own[at]] for at in columns])

    def add(self, change: Bag) -> None:
        """Add a change in place."""
        super().add(change)
        for row, count in change.items():
            bound = tuple([at for at, place in enumerate(self._own) if row[place] is not None])
            tables = self._tables.get(bound)
            if tables is None:
                tables = self._tables[bound] = {bound: defaultdict(dict)}
            for both, table in tables.items():
                place = self._place(row, both)
                add(table[place], row, count)
                if not table[place]:
                    del table[place]
            if not tables[bound]:
                del self._tables[bound]


class LeafSource:
    """A basic graph pattern, under conditions."""

    def __init__(self, take: Take, variables: tuple[str, ...], pattern: Pattern | None = None) -> None:
        self.variables, self.certain = variables, frozenset(variables)
        self.pull, self.pattern = take, pattern


class Constant(Stateful):
    """VALUES: all rows at the first pull, nothing later."""

    def __init__(self, variables: tuple[str, ...], rows: Sequence[Row]) -> None:
        self.variables = variables
        self.certain = frozenset(name for at, name in enumerate(variables) if all(row[at] is not None for row in rows))
        self._rows = tuple(rows)
        self._given = False

    def forget(self) -> None:
        """Reset: return the rows once more."""
        self._given = False

    def pull(self) -> Bag:
        """All rows at the first pull, then nothing."""
        if self._given:
            return {}
        self._given = True
        return collect((row, 1) for row in self._rows)


class FilterRows:
    """FILTER: the rows for which a condition holds."""

    def __init__(self, inner: Operator, condition: Batch) -> None:
        self.variables, self.certain = inner.variables, inner.certain
        self._inner, self.condition = inner, condition

    def pull(self) -> Bag:
        """The changed rows for which the condition holds."""
        change = self._inner.pull()
        if not change:
            return change
        kept = self.condition.holds(change)
        return {row: count for (row, count), keep in zip(change.items(), kept, strict=True) if keep}


class Compute:
    """BIND and SELECT expressions: an additional column, unbound if the expression is an error."""

    def __init__(self, inner: Operator, name: str, value: Batch, effort: EvaluationBudget) -> None:
        known = value.expression
        bound = isinstance(known, str) or (isinstance(known, Var) and known.name in inner.certain)
        self.variables, self.certain = (*inner.variables, name), inner.certain | ({name} if bound else frozenset())
        self._inner, self._value, self._effort = inner, value, effort

    def pull(self) -> Bag:
        """The change with the computed column."""
        change = self._inner.pull()
        if not change:
            return change
        values = self._value.values(change)
        self._effort.spend(sum(len(value) for value in values if value) // CELL)
        return {(*row, value): count for (row, count), value in zip(change.items(), values, strict=True)}


class Pick:
    """Projection by name; names that the input lacks are unbound."""

    def __init__(self, inner: Operator, variables: tuple[str, ...]) -> None:
        self.variables, self.certain = variables, inner.certain & frozenset(variables)
        self._inner = inner
        self._take = row_picker(inner.variables, variables)
        self._injective = frozenset(inner.variables) <= frozenset(variables)

    def pull(self) -> Bag:
        """The change, projected to the wanted variables."""
        change = self._inner.pull()
        if not change:
            return change
        rows, counts = self._take(change), change.values()
        # No two rows can become one if no column is dropped.
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


class Unique(Stateful):
    """DISTINCT: a row is added with its first copy and removed with its last."""

    def __init__(self, inner: Operator) -> None:
        self.variables, self.certain = inner.variables, inner.certain
        self._inner = inner
        self._counts: Bag = {}

    def pull(self) -> Bag:
        """The rows whose multiplicity rose from 0 or fell to 0."""
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


def picker(variables: Sequence[str], wanted: Sequence[str]) -> Callable[[Row], Row]:
    """A function from rows over ``variables`` to rows over ``wanted``; missing columns are unbound."""
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


def row_picker(variables: Sequence[str], wanted: Sequence[str]) -> Callable[[Iterable[Row]], Iterable[Row]]:
    """As ``picker``, for many rows at a time."""
    if tuple(wanted) == tuple(variables):
        return iter
    if len(wanted) == 1 and wanted[0] in variables:
        cell = itemgetter(variables.index(wanted[0]))
        return lambda rows: zip(map(cell, rows))
    return partial(map, picker(variables, wanted))


@dataclass
class Pull:
    """The number of the current pull of a whole query; one number for several queries while ``together``."""

    number: int = 0
    together: bool = False

    def begin(self) -> None:
        """Begin the pull of a query."""
        self.number += not self.together


class Shared(Stateful):
    """An operator whose changes go to all of its taps; ``pull`` is the query's."""

    def __init__(self, inner: Operator, pull: Pull) -> None:
        self.inner, self._pull, self._fetched = inner, pull, -1
        self._taps: list[Tap] = []

    @property
    def held(self) -> int:
        """The number of rows that wait for a reader."""
        return sum(len(tap.pending) for tap in self._taps)

    def tables(self) -> Iterator[Any]:
        """The rows that wait for each reader; read-only."""
        return (tap.pending for tap in self._taps)

    def forget(self) -> None:
        """Discard the changes not pulled yet."""
        for tap in self._taps:
            tap.pending = {}

    def tap(self) -> "Tap":
        """Add a reader; all readers are added before the first change."""
        tap = Tap(self)
        self._taps.append(tap)
        return tap

    def fetch(self) -> None:
        """Pull the operator and hand its change to all taps, once per pull of the query."""
        if self._fetched == self._pull.number:
            return
        self._fetched = self._pull.number
        change = self.inner.pull()
        if change:
            self.hand(change)

    def hand(self, change: Bag) -> None:
        """Hand a change to every tap."""
        for tap in self._taps:
            add_all(tap.pending, change)


class Tap:
    """A reader of a shared operator."""

    def __init__(self, shared: Shared) -> None:
        self.variables, self.certain = shared.inner.variables, shared.inner.certain
        self.shared = shared
        self.pending: Bag = {}

    def pull(self) -> Bag:
        """The change since this reader's last pull."""
        self.shared.fetch()
        change, self.pending = self.pending, {}
        return change


PRESENT = "1"
"""Marks a bound column in the keys of ``Keyed``."""


class Keyed:
    """An additional column that identifies some columns of a row: which are bound, then their values."""

    def __init__(self, inner: Operator, name: str, by: Sequence[str]) -> None:
        self.variables, self.certain = (*inner.variables, name), inner.certain | {name}
        self._inner = inner
        self._at = [inner.variables.index(column) for column in by]

    def pull(self) -> Bag:
        """The change with the key column."""
        return {(*row, self._key(row)): count for row, count in self._inner.pull().items()}

    def _key(self, row: Row) -> str:
        cells = [row[at] for at in self._at]
        return "".join([PRESENT if cell is not None else "0" for cell in cells]) + repr(cells)
