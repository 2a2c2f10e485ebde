"""The log of a worker: the items from which a session can be begun anew, those that are older in columns."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from math import inf
from operator import itemgetter
from typing import Final, TypeAlias, cast

import numpy as np

from streamgauge.formats.batches import ElementBatch, Taken
from streamgauge.formats.lines import Input
from streamgauge.model.element import StreamElement
from streamgauge.servers.durable.segments import OpenSegment

NumberedItem: TypeAlias = tuple[int, Taken]
"""An element or advance with its number in the journal, -1 where there is none; elements in columns with the last."""


PACKED: Final = 4096
"""Items that are put into columns together."""


class ItemLog:
    """The items that a worker has taken, by their places from 0 on; those before ``begin`` are dropped.

    Elements that were put into columns are at the place of the first of them, and at the others is nothing.
    """

    def __init__(self) -> None:
        self._items: list[NumberedItem | None] = []
        self._offset = self.begin = self._packed = 0

    @property
    def end(self) -> int:
        """The place of the next item."""
        return self._offset + len(self._items)

    def add(self, items: Sequence[NumberedItem]) -> None:
        """Items have come."""
        self._items += items

    def part(self, first: int, end: int) -> list[NumberedItem]:
        """The items of some places."""
        return [item for item in self._items[first - self._offset : end - self._offset] if item is not None]

    def place(self, number: int) -> int:
        """The place of the first item that has a number in the journal or a greater one; before any is packed."""
        return self._offset + bisect_left(cast("list[NumberedItem]", self._items), number, key=itemgetter(0))

    def pack(self, starts: Iterable[int]) -> None:
        """Put elements that follow each other into columns, which take less room; places in ``starts`` are kept."""
        begin = self._packed = max(self._packed, self.begin)
        if self.end - begin < PACKED:
            return
        borders = sorted({begin, self.end, *(start for start in starts if begin < start < self.end)})
        for first, end in pairwise(borders):
            self._pack(first - self._offset, end - self._offset)
        self._packed = self.end

    def _pack(self, first: int, end: int) -> None:
        numbered = self._items[first:end]
        if any(item is None or isinstance(item[1], ElementBatch) for item in numbered):
            return  # packed as they came
        items = [(getattr(item, "stream", ""), item) for _, item in cast("list[tuple[int, Input]]", numbered)]
        for at, packed in OpenSegment(0).extend(items):
            if isinstance(packed, ElementBatch):
                part = cast("list[tuple[int, StreamElement]]", numbered[at : at + len(packed)])
                sequences = np.array([element.sequence for _, element in part], np.int64)
                batch = replace(packed, sequences=sequences)
                self._items[first + at : first + at + len(part)] = [(part[-1][0], batch), *[None] * (len(part) - 1)]

    def drop(self, end: int, floor: float) -> None:
        """Drop items before a place, as far as their times are before ``floor`` (ms)."""
        while self.begin < end and self._latest(self.begin) < floor:
            self.begin += 1
        if 2 * (self.begin - self._offset) > len(self._items):
            del self._items[: self.begin - self._offset]
            self._offset = self.begin

    def _latest(self, place: int) -> float:
        item = self._items[place - self._offset]
        return -inf if item is None else latest_time(item[1])


STEPS: Final = 16
"""Parts of elements in columns, after each of which it is looked what is needed no more."""


def times_reached(item: Taken) -> Iterator[int]:
    """The latest times (ms) that elements had, in steps where they are in columns; none of an advance."""
    if isinstance(item, StreamElement):
        yield item.time
    elif isinstance(item, ElementBatch):
        reached = np.maximum.accumulate(item.times)
        yield from reached[len(item) - 1 :: -max(1, len(item) // STEPS)][::-1].tolist()


def latest_time(item: Taken) -> int:
    """The time of an element or advance, or the greatest of elements in columns (ms)."""
    return int(item.times.max()) if isinstance(item, ElementBatch) else item.time
