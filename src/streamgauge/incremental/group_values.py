"""The rows of a large change, group by group, and the values of an aggregate in each group.

A worked example: the keys a b a with the values 7 7 5 and one copy each have the groups a, rows 0 and 2, and b, row 1.
In a the values 7 and 5 have one copy each, in b the value 7.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import count, pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from streamgauge.model.terms import Row
from streamgauge.sparql.values import INTEGER, read

Numbers = npt.NDArray[np.int64]

_LARGEST_SUM: Final = 2**62


def _numbered(values: Iterable[Hashable], size: int) -> tuple[list[Any], Numbers]:
    """The distinct values in order of first occurrence, and the number of each value."""
    numbers = defaultdict[Hashable, int](count().__next__)
    places = np.fromiter(map(numbers.__getitem__, values), np.int64, size)
    return list(numbers), places


class GroupedRows:
    """Rows sorted by group; ``keys`` are the groups in order of first occurrence."""

    def __init__(self, keys: Iterable[Row], copies: Iterable[int], size: int) -> None:
        self.keys, groups = _numbered(keys, size)
        # Stable, so that each group's rows keep their order.
        self._order = np.argsort(groups, kind="stable")
        self._borders = [0, *np.cumsum(np.bincount(groups)).tolist()]
        self._copies = np.fromiter(copies, np.int64, size)[self._order]

    def sizes(self) -> Iterator[int]:
        """The number of rows that each group gains."""
        return (int(self._copies[begin:end].sum()) for begin, end in pairwise(self._borders))

    def values(self, column: Sequence[Any]) -> "Iterator[GroupValues]":
        """The values of each group, from those of all rows."""
        terms, places = _numbered(column, len(column))
        values = ColumnValues(terms, int(np.abs(self._copies).sum()))
        places = places[self._order]
        return (
            GroupValues(values, places[begin:end], self._copies[begin:end]) for begin, end in pairwise(self._borders)
        )


class ColumnValues:
    """The distinct values of all groups, of which there are ``copies`` in all."""

    def __init__(self, terms: Sequence[Any], copies: int) -> None:
        self.terms, self._copies = terms, copies

    @cached_property
    def unbound(self) -> int | None:
        """The place of ``None``, if it is among the values."""
        return self.terms.index(None) if None in self.terms else None

    @cached_property
    def integers(self) -> Numbers | None:
        """The values as integers; ``None`` if another value is among them or a sum may exceed 64 bits."""
        numbers = [None if term is None else read(term) for term in self.terms]
        if any(number is None or number.kind != INTEGER for number in numbers):
            return None
        amounts: list[int] = [number.value for number in numbers if number is not None]
        if max(map(abs, amounts), default=0) * self._copies > _LARGEST_SUM:
            return None
        return np.array(amounts, np.int64)


class GroupValues:
    """The values of one group: of each row the ``places`` in the column's values, and its ``copies``."""

    def __init__(self, column: ColumnValues, places: Numbers, copies: Numbers) -> None:
        self._column, self._places, self._copies = column, places, copies

    def __iter__(self) -> Iterator[tuple[Any, int]]:
        """The value and copies of each row, in order."""
        terms = self._column.terms
        return (
            (terms[place], copies) for place, copies in zip(self._places.tolist(), self._copies.tolist(), strict=True)
        )

    @cached_property
    def _distinct(self) -> tuple[Numbers, Numbers]:
        """The places of the values whose copies do not cancel out, and the sums of their copies."""
        places, indices = np.unique(self._places, return_inverse=True)
        sums = np.zeros(len(places), np.int64)
        np.add.at(sums, indices, self._copies)
        there = np.flatnonzero(sums)
        return places[there], sums[there]

    def distinct(self) -> Iterator[tuple[Any, int]]:
        """The distinct values whose copies do not cancel out, with their sums, in no particular order."""
        places, sums = self._distinct
        return zip(map(self._column.terms.__getitem__, places.tolist()), sums.tolist(), strict=True)

    def amounts(self) -> Numbers | None:
        """The integers of ``distinct``; ``None`` if the column has other values."""
        amounts = self._column.integers
        return None if amounts is None else amounts[self._distinct[0]]

    def bound(self) -> int:
        """The copies of all values but ``None``."""
        copies = int(self._copies.sum())
        unbound = self._column.unbound
        return copies if unbound is None else copies - int(self._copies[self._places == unbound].sum())

    def integers(self) -> tuple[int, int] | None:
        """The sum of all values and their number, if the column has only integers; else ``None``."""
        amounts = self._column.integers
        if amounts is None:
            return None
        return int((amounts[self._places] * self._copies).sum()), int(self._copies.sum())
