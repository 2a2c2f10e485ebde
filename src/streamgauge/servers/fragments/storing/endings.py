"""When quads end: by quad, and the nearest first."""

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Final

from streamgauge.servers.fragments.storing.order import EditSketch, Order
from streamgauge.servers.fragments.storing.shelf import Shelf

TIME: Final = 8
"""Bytes of a time."""

EVER: Final = bytes(TIME)
"""Before any time."""

BY_KEY: Final = b"k"
BY_END: Final = b"e"
"""The names of the two orders of ends."""

_ZERO: Final = 1 << 63


class Endings:
    """Ends (ms) of keys of ``width`` bytes on a shelf; a key has one or none.

    ``few`` ends at most are looked at for the nearest.
    """

    few: Final = 256

    def __init__(self, width: int, shelf: Shelf) -> None:
        self._width = width
        self._by_key, self._by_end = Order(BY_KEY, width + TIME, shelf), Order(BY_END, TIME + width, shelf)

    def __len__(self) -> int:
        """How many keys have an end."""
        return len(self._by_key)

    def end(self, key: bytes) -> int | None:
        """When a key ends."""
        found = self._by_key.one(key)
        return time_of(found[self._width :]) if found else None

    def nearest(self, wanted: Callable[[bytes], bool], now: int) -> int | None:
        """The earliest end after ``now`` of a wanted key, or that of the last that was looked at, which is before."""
        last = None
        for entry in islice(self._by_end.above(stamped(now + 1)), self.few):
            last = time_of(entry[:TIME])
            if wanted(entry[TIME:]):
                return last
        return last if self._longer(now) else None

    def until(self, now: int, limit: int) -> Iterator[bytes]:
        """Keys that ended at or before ``now``, those that ended first, at most ``limit``."""
        many = min(limit, self._by_end.rank(stamped(now + 1)))
        return (entry[TIME:] for entry in self._by_end.first(many))

    def edits(
        self, ended: Mapping[bytes, int | None], ends: Mapping[bytes, int | None]
    ) -> list[tuple[Order, EditSketch]]:
        """The orders that change by other ends, ``ended`` being those there are; none when they are the same."""
        gone = [(key, end) for key, end in ended.items() if end is not None and ends.get(key) != end]
        come = [(key, end) for key, end in ends.items() if end is not None and ended.get(key) != end]
        if not (gone or come):
            return []
        by_key = EditSketch(
            sorted(key + stamped(end) for key, end in gone), sorted(key + stamped(end) for key, end in come)
        )
        by_end = EditSketch(
            sorted(stamped(end) + key for key, end in gone), sorted(stamped(end) + key for key, end in come)
        )
        return [(self._by_key, by_key), (self._by_end, by_end)]

    def _longer(self, now: int) -> bool:
        """Whether more keys end after ``now`` than are looked at."""
        return next(islice(self._by_end.above(stamped(now + 1)), self.few, None), None) is not None


def stamped(time: int) -> bytes:
    """A time (ms) as bytes that sort as times do."""
    return (time + _ZERO).to_bytes(TIME)


def time_of(end: bytes) -> int:
    """The time (ms) of such bytes."""
    return int.from_bytes(end) - _ZERO
