"""Observations as arrays, one row each: stations and times (YABench's generator SG1 or other distributions), the
phenomena of LinkedSensorData (SRBench, section 3; temperature first), their values, and late elements.
"""

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from streamgauge.workloads import draws
from streamgauge.workloads import java_random as random
from streamgauge.workloads.draws import Floats, Ints
from streamgauge.workloads.plan import expanded, running


class Phenomenon(NamedTuple):
    """A property, its class of observations, its unit (``None`` for a boolean), and how its values are drawn.

    A value is the station's base (below ``bases``) plus a draw below ``spread``, in whole units.
    """

    name: str
    kind: str
    unit: str | None
    bases: int = 0
    spread: int = 0
    purpose: str = ""

    def drawn(self, seed: int, station: Ints, time: Ints, value: Ints) -> Ints:
        """The values in tenths; ``value`` itself for the temperature, which is drawn elsewhere."""
        if not self.spread:
            return value
        purpose = self.purpose or self.name
        base = draws.below(self.bases, seed, f"{purpose} base", station) if self.bases else np.zeros_like(station)
        drawn = draws.below(self.spread, seed, purpose, station, time)
        return (base + drawn if self.unit else np.where(base == 0, drawn, 0)) * 10


TEMPERATURE = Phenomenon("AirTemperature", "TemperatureObservation", "fahrenheit")
HUMIDITY = Phenomenon("RelativeHumidity", "RelativeHumidityObservation", "percentage", 0, 101, "humidity")

PHENOMENA = (
    TEMPERATURE,
    HUMIDITY,
    Phenomenon("WindSpeed", "WindSpeedObservation", "milesPerHour", 80, 21),
    Phenomenon("WindDirection", "WindDirectionObservation", "degrees", 300, 60),
    Phenomenon("Rainfall", "RainfallObservation", "centimeters", 30, 11),
    Phenomenon("Visibility", "VisibilityObservation", "centimeters", 90, 21),
    Phenomenon("Snowfall", "SnowfallObservation", None, 3, 8),
)
"""All phenomena in the order in which a station reports them; it snows, mostly, at one station in three."""

SETS = {"temperature": (TEMPERATURE,), "humidity": (TEMPERATURE, HUMIDITY), "all": PHENOMENA}
"""Values of the parameter ``observes``, with ``humidity`` for the parameter of that name."""


BURST = 10
"""Observations of a burst: those of so many intervals fall into one, then the station is silent for the others."""


class StreamSize(NamedTuple):
    """The size of a stream: stations, interval and duration in ms, temperatures from ``low`` to below ``high``."""

    stations: int
    interval: int
    duration: int
    low: int
    high: int


class Times(NamedTuple):
    """Observation times of stations; a station's rows are adjacent and in order of time."""

    station: Ints
    time: Ints


@dataclass(frozen=True, slots=True)
class Regular:
    """SG1: every station once per interval, from its own offset; offsets and values from one java.util.Random(seed).

    ``stations`` and ``offsets`` are in the order of observation; ``runs`` are the accepted draws of the values, as
    columns first, state and start.
    """

    size: StreamSize
    count: int
    stations: Ints
    offsets: Ints
    runs: tuple[Ints, Ints, Ints]

    def times(self, n: Ints) -> Times:
        """The stations and times of numbered observations; SG1 sends the first at 0 whatever its offset."""
        place, turn = n % self.size.stations, n // self.size.stations
        time = np.where(n == 0, 0, self.offsets[place] + turn * self.size.interval)
        return Times(self.stations[place], time)

    def of_stations(self, stations: Ints) -> Ints:
        """The numbers of all observations of some stations."""
        # The inverse of the order of observation: the place of each station in it.
        places = np.argsort(self.stations)[stations]
        of, turn = expanded(np.maximum(0, -(-(self.count - places) // self.size.stations)))
        places_: Ints = places[of] + turn * self.size.stations
        return places_

    def values(self, n: Ints) -> Ints:
        """The temperatures of observations by number."""
        first, state, start = self.runs
        run = np.searchsorted(first, n, side="right") - 1
        factors, addends = _steps()
        step = start[run] + n - first[run] + 1
        # Products wrap at 2^64, a multiple of the generator's modulus 2^48.
        # The generator is a linear map; so are k steps of it. One product and sum leads from a known state to any
        # later one.
        states = (factors[step] * state[run].astype(np.uint64) + addends[step]) & np.uint64(random.MASK)
        drawn = (states >> np.uint64(17)).astype(np.int64)
        bound = self.size.high - self.size.low
        # As in java.util.Random: for a power of two its high bits, otherwise the remainder.
        value: Ints = (drawn * bound) >> 31 if bound & (bound - 1) == 0 else drawn % bound
        return (value + self.size.low) * 10


@cache
def _steps() -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    factors, addends = random.steps(random.BLOCK)
    return np.array(factors, np.uint64), np.array(addends, np.uint64)


def regular(seed: int, size: StreamSize) -> Regular:
    """SG1's schedule for a seed."""
    state, offsets = _offsets(seed, size)
    order = sorted(range(size.stations), key=offsets.__getitem__)
    times = np.array([offsets[station] for station in order], np.int64)
    count = _count(times, size)
    runs = list(random.accepted(state, size.high - size.low, count))
    columns = tuple(np.array([getattr(run, name) for run in runs], np.int64) for name in ("first", "state", "start"))
    return Regular(size, count, np.array(order, np.int64), times, (columns[0], columns[1], columns[2]))


def cells(size: StreamSize, arrival: str) -> int:
    """The number of cells into which a station's time is divided; arrivals are drawn per cell."""
    return -(-(size.duration + 1) // _width(size, arrival))


def irregular(seed: int, size: StreamSize, arrival: str, station: Ints, cell: Ints) -> Times:
    """Arrivals in some cells: ``poisson``, a Poisson process per station with mean ``interval`` ms, or ``bursts``.

    A station observes at most once per ms, so a few coinciding arrivals are dropped.
    """
    bursts = arrival == "bursts"
    count = np.full(len(station), BURST) if bursts else draws.poisson(seed, "count", station, cell)
    of, point = expanded(count)
    # The hash depends on a counter's width: another integer type would change every published stream.
    place = draws.below(size.interval, seed, "place", station[of], cell[of], (point + 1).astype(np.int32))
    order = np.lexsort((place, of))
    of, place = of[order], place[order]
    # The slice is for no arrivals at all, where ``append`` still gives one row.
    new = np.append(True, (of[1:] != of[:-1]) | (place[1:] != place[:-1]))[: len(of)]
    of, place = of[new], place[new]
    time = cell[of] * _width(size, arrival) + place
    within = time <= size.duration
    return Times(station[of][within], time[within])


def turns(size: StreamSize) -> int:
    """Maximum number of waits of a station under ``pareto``."""
    return size.duration // max(1, size.interval // 2) + 1


def heavy_tailed(seed: int, size: StreamSize, stations: Ints) -> Times:
    """``pareto``: each station waits Pareto times with shape 2 (infinite variance), ``interval`` ms on average.

    Shape 2 needs a square root only, which is exact on every machine.
    """
    station, turn = np.repeat(stations, turns(size)), np.tile(np.arange(turns(size)), len(stations))
    draw: Floats = (draws.bits(seed, "wait", station, turn) + 1) * 2.0**-53
    # For a draw u from (0, 1], m / sqrt(u) has a Pareto distribution of shape 2 with the least value m, and 2m on
    # average.
    wait = np.maximum(1, np.floor(size.interval / 2 / np.sqrt(draw)).astype(np.int64))
    first = draws.below(size.interval, seed, "place", station)
    time = np.cumsum(np.where(turn == 0, first, wait).reshape(len(stations), -1), axis=1).ravel()
    within = time <= size.duration
    return Times(station[within], time[within])


def _width(size: StreamSize, arrival: str) -> int:
    return size.interval * (BURST if arrival == "bursts" else 1)


def _offsets(seed: int, size: StreamSize) -> tuple[int, list[int]]:
    state, offsets = random.scramble(seed), []
    for _ in range(size.stations):
        state, offset = random.next_int(state, size.interval)
        offsets.append(offset)
    return state, offsets


def _count(times: Ints, size: StreamSize) -> int:
    """The number of observations up to and including the duration, at least the first."""
    due = times[times <= size.duration]
    return max(1, int(((size.duration - due) // size.interval + 1).sum()))


_WALK_STEP = 10


def valued(seed: int, size: StreamSize, values: str, times: Times) -> Ints:
    """Values in tenths of a degree; ``uniform`` ones are whole degrees.

    ``normal`` has its mean in the middle, a sixth of the range as deviation, and is clipped at both ends; ``walk``
    moves each station by at most one degree per observation and is reflected at both ends, so ``times`` must have all
    times of a station.
    """
    return {"uniform": _uniform, "normal": _normal, "walk": _walk}[values](seed, size, times)


def _uniform(seed: int, size: StreamSize, times: Times) -> Ints:
    return (draws.below(size.high - size.low, seed, "value", *times) + size.low) * 10


def _normal(seed: int, size: StreamSize, times: Times) -> Ints:
    span = (size.high - size.low) * 10
    drawn = draws.normal(seed, "value", *times) * (span / 6.0) + span / 2.0
    whole = np.trunc(drawn)
    # Half away from zero, by operations that are exact on every machine.
    rounded: Floats = whole + np.sign(drawn) * (np.abs(drawn - whole) >= 0.5)
    tenths: Ints = np.clip(rounded, 0.0, float(span)).astype(np.int64)
    return tenths + size.low * 10


def _walk(seed: int, size: StreamSize, times: Times) -> Ints:
    span = (size.high - size.low) * 10
    start = draws.below(span + 1, seed, "start", times.station)
    steps = draws.below(2 * _WALK_STEP + 1, seed, "value", *times) - _WALK_STEP
    first = np.append(True, times.station[1:] != times.station[:-1])[: len(steps)]
    # Reflection: a walk on a circle of twice the range, whose second half is the first one backwards.
    folded = (start + running(steps, first)) % (2 * span)
    return np.where(folded > span, 2 * span - folded, folded) + size.low * 10


def arrival(seed: int, share: float, bound: int, times: Times) -> Ints:
    """The arrival times of observations (ms): for a ``share`` of these, 1 to ``bound`` ms after the observation."""
    late = draws.unit(seed, "late", *times) < share
    return times.time + np.where(late, draws.below(max(bound, 1), seed, "delay", *times) + 1, 0)
