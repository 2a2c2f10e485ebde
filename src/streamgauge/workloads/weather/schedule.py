"""When which station observes: YABench's SG1 rule, or arrivals that SG1 lacks; as arrays, a row an observation.

Times are ms; temperatures are in tenths of a degree.
"""

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from streamgauge.workloads import draws
from streamgauge.workloads import java_random as random
from streamgauge.workloads.draws import Floats, Ints
from streamgauge.workloads.rows import expanded

BURST = 10
"""A burst sends so many intervals' observations within one interval, then the station is silent for the rest."""


class Size(NamedTuple):
    """The size of a stream: stations, interval and duration in ms, temperatures from ``low`` to below ``high``."""

    stations: int
    interval: int
    duration: int
    low: int
    high: int


class Times(NamedTuple):
    """When stations observe: the rows of a station follow each other in the order of time."""

    station: Ints
    time: Ints


@dataclass(frozen=True, slots=True)
class Regular:
    """SG1: every station once an interval, from its own offset; offsets and values from one java.util.Random(seed).

    ``stations`` and ``offsets`` are in the order in which stations observe; ``runs`` are the accepted draws of the
    values, a column each of first, state and start.
    """

    size: Size
    count: int
    stations: Ints
    offsets: Ints
    runs: tuple[Ints, Ints, Ints]

    def times(self, n: Ints) -> Times:
        """The station and the time of observations by number; the first is sent at 0 whatever its offset."""
        place, turn = n % self.size.stations, n // self.size.stations
        time = np.where(n == 0, 0, self.offsets[place] + turn * self.size.interval)
        return Times(self.stations[place], time)

    def of_stations(self, stations: Ints) -> Ints:
        """The numbers of all observations of some stations."""
        places = np.argsort(self.stations)[stations]
        of, turn = expanded(np.maximum(0, -(-(self.count - places) // self.size.stations)))
        found: Ints = places[of] + turn * self.size.stations
        return found

    def values(self, n: Ints) -> Ints:
        """The temperatures of observations by number."""
        first, state, start = self.runs
        run = np.searchsorted(first, n, side="right") - 1
        factors, addends = _steps()
        step = start[run] + n - first[run] + 1
        states = (factors[step] * state[run].astype(np.uint64) + addends[step]) & np.uint64(random.MASK)
        drawn = (states >> np.uint64(17)).astype(np.int64)
        bound = self.size.high - self.size.low
        value: Ints = (drawn * bound) >> 31 if bound & (bound - 1) == 0 else drawn % bound
        return (value + self.size.low) * 10


@cache
def _steps() -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    factors, addends = random.steps(random.BLOCK)
    return np.array(factors, np.uint64), np.array(addends, np.uint64)


def regular(seed: int, size: Size) -> Regular:
    """SG1's schedule for a seed."""
    state, offsets = _offsets(seed, size)
    order = sorted(range(size.stations), key=offsets.__getitem__)
    times = np.array([offsets[station] for station in order], np.int64)
    count = _count(times, size)
    runs = list(random.accepted(state, size.high - size.low, count))
    columns = tuple(np.array([getattr(run, name) for run in runs], np.int64) for name in ("first", "state", "start"))
    return Regular(size, count, np.array(order, np.int64), times, (columns[0], columns[1], columns[2]))


def cells(size: Size, arrival: str) -> int:
    """How many cells a station's time has, in each of which arrivals are drawn."""
    return -(-(size.duration + 1) // _width(size, arrival))


def irregular(seed: int, size: Size, arrival: str, station: Ints, cell: Ints) -> Times:
    """``poisson``: a Poisson process per station, ``interval`` ms apart on average; ``bursts``: see BURST.

    The arrivals of some cells of stations. A station observes at most once in a ms, so a few coinciding arrivals are
    dropped.
    """
    bursts = arrival == "bursts"
    count = np.full(len(station), BURST) if bursts else draws.poisson(seed, "count", station, cell)
    of, point = expanded(count)
    place = draws.below(size.interval, seed, "place", station[of], cell[of], (point + 1).astype(np.int32))
    order = np.lexsort((place, of))
    of, place = of[order], place[order]
    new = np.append(True, (of[1:] != of[:-1]) | (place[1:] != place[:-1]))[: len(of)]
    of, place = of[new], place[new]
    time = cell[of] * _width(size, arrival) + place
    within = time <= size.duration
    return Times(station[of][within], time[within])


def turns(size: Size) -> int:
    """How often a station waits at most when waits have a heavy tail."""
    return size.duration // max(1, size.interval // 2) + 1


def heavy_tailed(seed: int, size: Size, stations: Ints) -> Times:
    """``pareto``: each station waits Pareto times with shape 2 (infinite variance), ``interval`` ms on average.

    Shape 2 needs a square root only, which is exact on every machine.
    """
    station, turn = np.repeat(stations, turns(size)), np.tile(np.arange(turns(size)), len(stations))
    draw: Floats = (draws.bits(seed, "wait", station, turn) + 1) * 2.0**-53
    wait = np.maximum(1, np.floor(size.interval / 2 / np.sqrt(draw)).astype(np.int64))
    first = draws.below(size.interval, seed, "place", station)
    time = np.cumsum(np.where(turn == 0, first, wait).reshape(len(stations), -1), axis=1).ravel()
    within = time <= size.duration
    return Times(station[within], time[within])


def _width(size: Size, arrival: str) -> int:
    return size.interval * (BURST if arrival == "bursts" else 1)


def _offsets(seed: int, size: Size) -> tuple[int, list[int]]:
    state, offsets = random.scramble(seed), []
    for _ in range(size.stations):
        state, offset = random.next_int(state, size.interval)
        offsets.append(offset)
    return state, offsets


def _count(times: Ints, size: Size) -> int:
    """How many observations fall due up to and including the duration, at least the first."""
    due = times[times <= size.duration]
    return max(1, int(((size.duration - due) // size.interval + 1).sum()))
