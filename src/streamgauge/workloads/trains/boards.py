"""Which departures are on the boards, and what is said of them at each update; now and then that changes.

Each hour of a station is cut into ``per_hour`` slots with a departure in each, at a second that is drawn. Times are
ms of the stream; ``speedup`` ms of the boards go by in one of them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from streamgauge.workloads import draws
from streamgauge.workloads.draws import Ints
from streamgauge.workloads.rows import batch, expanded, running

_HOUR = 3_600
_LATEST = 15
"""The most minutes that a departure is late from the beginning."""


class Size(NamedTuple):
    """How much there is and how fast it moves on; times in ms."""

    stations: int
    per_hour: int
    ahead: int
    update: int
    duration: int
    speedup: int
    delayed: float
    head_signs: int
    platforms: int

    @property
    def horizon(self) -> int:
        """The latest departure that comes onto a board (ms)."""
        return self.duration * self.speedup + self.ahead

    @property
    def departures(self) -> int:
        """How many departures are drawn; those that are on no board are left out."""
        return self.stations * (-(-self.horizon * self.per_hour // (_HOUR * 1000)) + 1)

    @property
    def updates(self) -> int:
        """At how many updates a departure is on the board, at most."""
        return 1 + min(self.duration // self.update, self.ahead // (self.update * self.speedup) + 1)


class Departures(NamedTuple):
    """Departures by station and ``number``, which counts a station's from 0.

    One ``leaves`` (s), is ``late`` (min), has a ``platform``, a head ``sign`` and a ``route``.
    """

    station: Ints
    number: Ints
    leaves: Ints
    late: Ints
    platform: Ints
    sign: Ints
    route: Ints

    def take(self, rows: Ints) -> "Departures":
        """Some of them."""
        return Departures(*(column[rows] for column in self))


DEPARTURE = pa.schema([(name, pa.int64()) for name in Departures._fields])
RENEWED = pa.schema([*DEPARTURE, ("time", pa.int64())])


def departures(seed: int, size: Size, ids: Ints) -> Departures:
    """The departures of some ids that are on a board at some update."""
    of = (ids % size.stations + 1, ids // size.stations)
    begin = of[1] * _HOUR // size.per_hour
    slot = max(1, _HOUR // size.per_hour)
    late = draws.unit(seed, "delayed", *of) < size.delayed
    found = Departures(
        *of,
        leaves=begin + draws.below(slot, seed, "leaves", *of) + 1,
        late=np.where(late, draws.below(_LATEST, seed, "delay", *of) + 1, 0),
        platform=draws.below(size.platforms, seed, "platform", *of),
        sign=draws.below(size.head_signs, seed, "head sign", *of) + 1,
        route=draws.below(5_000, seed, "route", *of) + 100,
    )
    first, last = _turns(size, found.leaves)
    return found.take(np.flatnonzero((found.leaves * 1000 <= size.horizon) & (last >= first)))


@dataclass(frozen=True, slots=True)
class Boards:
    """A row for each departure that is on a board at some update."""

    seed: int
    size: Size

    def __call__(self, ids: Ints) -> Iterator[pa.RecordBatch]:
        """The departures of some ids."""
        yield batch(**departures(self.seed, self.size, ids)._asdict())


@dataclass(frozen=True, slots=True)
class Renewing:
    """A row for each departure and update at which it is on the board: what it was, and ``time`` (ms).

    ``late`` and ``platform`` as they are then; ``changes``: how often the delay and the platform change per update.
    """

    seed: int
    size: Size
    changes: tuple[float, float]

    def __call__(self, ids: Ints) -> Iterator[pa.RecordBatch]:
        """The updates of the departures of some ids."""
        found = departures(self.seed, self.size, ids)
        first, last = _turns(self.size, found.leaves)
        of, since = expanded(last - first + 1)
        rows, turn, begins = found.take(of), first[of] + since, since == 0
        key = (rows.station, rows.number, turn)
        step = np.where(draws.below(3, self.seed, "shorter", *key) == 0, -1, 1)
        grown = np.where(draws.unit(self.seed, "grown", *key) < self.changes[0], step, 0)
        moved = (draws.unit(self.seed, "moved", *key) < self.changes[1]).astype(np.int64)
        late = np.maximum(0, rows.late + running(grown, begins))
        platform = (rows.platform + running(moved, begins)) % self.size.platforms
        yield batch(**rows._replace(late=late, platform=platform)._asdict(), time=turn * self.size.update)


def _turns(size: Size, leaves: Ints) -> tuple[Ints, Ints]:
    """The first and the last update at which departures are on the board: before they leave, within the stream."""
    each = size.update * size.speedup
    first = -(-np.maximum(0, leaves * 1000 - size.ahead) // each)
    return first, np.minimum((leaves * 1000 - 1) // each, size.duration // size.update)
