"""The log of a worker: the items over which a session can be started again."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import Final, TypeAlias

import numpy as np

from streamgauge.formats.batches import ElementBatch, Taken
from streamgauge.model.element import StreamElement

NumberedItem: TypeAlias = tuple[int, Taken]
"""An element or advance with its number in the journal, -1 where there is none; elements in columns with the last."""


class ItemLog:
    """The items that a worker has received, by position from 0; those before ``begin`` are dropped."""

    def __init__(self) -> None:
        self._items: list[NumberedItem] = []
        self._offset = self.begin = 0

    @property
    def end(self) -> int:
        """The position of the next item."""
        return self._offset + len(self._items)

    def add(self, items: Sequence[NumberedItem]) -> None:
        """Append items to the log."""
        self._items += items

    def part(self, first: int, end: int) -> list[NumberedItem]:
        """The items from position ``first`` up to ``end``."""
        return self._items[first - self._offset : end - self._offset]

    def place(self, number: int) -> int:
        """The position of the first item with this number in the journal, or a greater one."""
        return self._offset + bisect_left(self._items, number, key=itemgetter(0))

    def drop(self, end: int, floor: float) -> None:
        """Drop the items before position ``end`` up to the first with a time at or after ``floor`` (ms)."""
        while self.begin < end and latest_time(self._items[self.begin - self._offset][1]) < floor:
            self.begin += 1
        # Dropped at half the length, so that shifting the list costs O(1) an item.
        if 2 * (self.begin - self._offset) > len(self._items):
            del self._items[: self.begin - self._offset]
            self._offset = self.begin


STEPS: Final = 16
"""Slices of a batch in columns; after each, the needs of its queries are updated."""


def times_reached(item: Taken) -> Iterator[int]:
    """The latest times (ms) that an item reached: an element's, fewer than 2 ``STEPS`` of a batch's, no advance's."""
    if isinstance(item, StreamElement):
        yield item.time
    elif isinstance(item, ElementBatch):
        reached = np.maximum.accumulate(item.times)
        # Counted from the end, so that the last element is always among them.
        # For 100 elements the distance is 6: these are the 4th, the 10th and so on up to the 100th, 17 times.
        yield from reached[len(item) - 1 :: -max(1, len(item) // STEPS)][::-1].tolist()


def first_time(item: Taken) -> int:
    """The time of an element or advance, or the first of elements in columns (ms)."""
    return int(item.times[0]) if isinstance(item, ElementBatch) else item.time


def latest_time(item: Taken) -> int:
    """The time of an element or advance, or the greatest of elements in columns (ms)."""
    return int(item.times.max()) if isinstance(item, ElementBatch) else item.time
