"""The rows behind the range of ORDER BY with LIMIT, sorted by their first key alone.

Most rows of a window never come near the range. Those of one first key are put in order only when the range reaches
that key. With LIMIT 2 over the numbers 9, 8, 8, 8, 3, 3, 1 in descending order, the rows of 9 and 8 are sorted, and
those of 3 and 1 wait in a bag each.
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, TypeAlias

from sortedcontainers import SortedList

from streamgauge.incremental.operators import Bag, add
from streamgauge.model.terms import Row

Waiting: TypeAlias = tuple[Row, int] | Bag
"""The rows of one key: a single row with its count, or a bag, as most keys of some orders have one row."""


class RowsBehind:
    """Rows by their first key, which are hashable and have a total order."""

    def __init__(self) -> None:
        self._rows: dict[Any, Waiting] = {}
        self._keys = SortedList()

    def __bool__(self) -> bool:
        return bool(self._rows)

    @property
    def held(self) -> int:
        """The number of different rows."""
        return sum(1 if isinstance(waiting, tuple) else len(waiting) for waiting in self._rows.values())

    def add(self, keys: Iterable[Any], moves: Iterable[tuple[Row, int]]) -> None:
        """Add a change, given the first key of each row; what it removes has been added."""
        if not self._rows:
            self._fill(keys, moves)
            return
        rows = self._rows
        for key, (row, count) in zip(keys, moves, strict=True):
            waiting = rows.get(key)
            if waiting is None:
                rows[key] = row, count
                self._keys.add(key)
                continue
            if isinstance(waiting, tuple):
                waiting = rows[key] = dict((waiting,))
            add(waiting, row, count)
            if not waiting:
                del rows[key]
                self._keys.remove(key)

    def _fill(self, keys: Iterable[Any], rows: Iterable[tuple[Row, int]]) -> None:
        """Add rows, all different, where there are none."""
        bags: defaultdict[Any, Bag] = defaultdict(dict)
        for key, (row, count) in zip(keys, rows, strict=True):
            bags[key][row] = count
        self._rows = {key: bag if len(bag) > 1 else bag.popitem() for key, bag in bags.items()}
        # Sorting all keys at once is much cheaper than inserting them one by one.
        self._keys = SortedList(bags)

    def take(self, count: int) -> tuple[Any, Bag]:
        """Remove the rows of the first keys, at least ``count`` or all, and return the last key and the rows."""
        taken: Bag = {}
        held, key = 0, None
        while self._keys and held < count:
            key = self._keys.pop(0)
            waiting = self._rows.pop(key)
            # A row has one key, so rows of different keys are different.
            taken.update((waiting,) if isinstance(waiting, tuple) else waiting)
            held += waiting[1] if isinstance(waiting, tuple) else sum(waiting.values())
        return key, taken
