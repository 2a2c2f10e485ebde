"""Equality conditions between both sides of a join (``?v = ?w``), and indexes of rows by such terms.

Rows are joined by ``=`` or sameTerm as by a shared variable: a row meets the rows of its key whose term may be equal
to its own. The condition is tested on each pair all the same, so the index may return too many rows, but never too
few.

A worked example: ``=`` compares numbers in the wider of their datatypes, so it is not an equivalence: the integers
2**53 and 2**53 + 1 both equal the double 2**53, but not one another. Rows are therefore partitioned by the kind of
their term: exact numbers, floats, doubles and the rest. Each partition has a table per kind in which it is compared:
the double 2**53 is looked up among exact numbers by their nearest doubles, the integer 2**53 by the exact values.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Final, TypeAlias

from streamgauge.incremental.conditions import variables_of
from streamgauge.incremental.operators import Bag, Index, Key, add
from streamgauge.model.algebra import Call, Expression, Var
from streamgauge.model.terms import Row, Term
from streamgauge.query.traversal import reads_patterns
from streamgauge.sparql.comparison import value_key
from streamgauge.sparql.expression import row_expression
from streamgauge.sparql.values import BOOLEAN, DOUBLE, FLOAT, INTEGER, Value, nearest_double, nearest_single, read

ValueOf: TypeAlias = Callable[[Row], Term | None]

_EQUAL: Final = frozenset({"=", "SAMETERM"})
_OTHER: Final = BOOLEAN
"""The kind of all terms that are not numbers."""


@dataclass(frozen=True, slots=True)
class EqualTerms:
    """Expressions over the left and the right side of a join that are equal whenever rows meet."""

    left: Expression
    right: Expression


def equality(conditions: Iterable[Expression], lefts: Collection[str], rights: Collection[str]) -> EqualTerms | None:
    """The first condition that equates an expression of each side."""
    for condition in conditions:
        if not isinstance(condition, Call) or condition.operator.upper() not in _EQUAL or reads_patterns(condition):
            continue
        one, other = condition.arguments
        if _between(one, other, lefts, rights):
            return EqualTerms(one, other)
        if _between(other, one, lefts, rights):
            return EqualTerms(other, one)
    return None


def _between(left: Expression, right: Expression, lefts: Collection[str], rights: Collection[str]) -> bool:
    """Whether one expression reads the left side only and the other the right side only."""
    ours, theirs = set(variables_of(left)), set(variables_of(right))
    # An expression over variables that both sides have is not an equation between the sides, but the key that they are
    # already joined by.
    return ours <= set(lefts) and theirs <= set(rights) and not ours <= set(rights) and not theirs <= set(lefts)


def value_of(expression: Expression, variables: Sequence[str]) -> ValueOf:
    """A function from rows over ``variables`` to the value of an expression."""
    if isinstance(expression, Var):
        return itemgetter(variables.index(expression.name))
    return row_expression(expression, variables)


class EqualIndex(Index):
    """Bags of rows by key and by a term, which ``own`` and ``other`` return for rows of this and of the other side.

    The first lookup of a kind scans a partition; its table is kept.
    """

    def __init__(self, key: Callable[[Row], Row], own: ValueOf, other: ValueOf) -> None:
        super().__init__(key)
        self._own, self._other = own, other
        self._tables: dict[int, dict[int, defaultdict[Key, Bag]]] = {}

    def clear(self) -> None:
        """Remove all rows and their tables."""
        super().clear()
        self._tables.clear()

    def parts(self) -> Iterator[Mapping[Key, Bag]]:
        """The bags by key, and the tables of each kind."""
        yield from super().parts()
        for tables in self._tables.values():
            yield from tables.values()

    def meeting(self, key: Key, row: Row) -> Sequence[Bag]:
        """The rows, in bags, that may meet a row of the other side, which has this key."""
        term = self._other(row)
        if term is None:
            return ()
        # A worked example: the probe is the double 2**53, and the rows have integers. ``wider`` is DOUBLE, so the
        # table of integers by their nearest doubles is asked, and gives 2**53 and 2**53 + 1; the condition holds for
        # both.
        value, bags = read(term), list[Bag]()
        kind = _kind(value)
        for own, tables in self._tables.items():
            # A number never equals a term that is not a number; two kinds of numbers may.
            if own != kind and _OTHER in (own, kind):
                continue
            # SPARQL promotes both operands to the wider datatype before it compares them (17.3, by XPath's numeric
            # promotion).
            wider = max(own, kind)
            table = tables[wider] if wider in tables else self._table(own, wider)
            bag = table.get((*key, _compared(value, wider)))
            if bag:
                bags.append(bag)
        return bags

    def _table(self, kind: int, wider: int) -> defaultdict[Key, Bag]:
        """The rows with terms of a kind, by key and by these terms converted to a wider kind."""
        table = self._tables[kind][wider] = defaultdict(dict)
        for bag in self._tables[kind][kind].values():
            for row, count in bag.items():
                term = self._own(row)
                assert term is not None
                table[(*self.key(row), _compared(read(term), wider))][row] = count
        return table

    def add(self, change: Bag) -> None:
        """Add a change in place; rows without a term meet nothing."""
        super().add(change)
        for row, count in change.items():
            term = self._own(row)
            if term is None:
                continue
            value, key = read(term), self.key(row)
            kind = _kind(value)
            tables = self._tables.get(kind)
            if tables is None:
                tables = self._tables[kind] = {kind: defaultdict(dict)}
            for wider, table in tables.items():
                place = (*key, _compared(value, wider))
                add(table[place], row, count)
                if not table[place]:
                    del table[place]
            # When no row of a kind is left, the tables of its conversions go too; otherwise they would be maintained
            # for ever.
            if not tables[kind]:
                del self._tables[kind]


def _kind(value: Value) -> int:
    """The partition of a value: one for integers and decimals, one each for floats and doubles, one for the rest."""
    if value.kind > DOUBLE:
        return _OTHER
    return value.kind if value.kind >= FLOAT else INTEGER


def _compared(value: Value, kind: int) -> Any:
    """A key that is equal for values that are equal in a kind; NaN equals itself, as sameTerm has it."""
    if kind == _OTHER:
        return value_key(value)
    number = value.value
    if kind >= FLOAT and value.kind < FLOAT:
        return nearest_single(number) if kind == FLOAT else nearest_double(number)
    # As a key, NaN must equal itself for removal. "=" would be false, but the condition is tested on each pair anyway.
    return "NaN" if kind >= FLOAT and math.isnan(number) else number
