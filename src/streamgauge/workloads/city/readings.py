"""Readings of a city that is not there: each sensor once an interval, from an offset of its own."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from streamgauge.workloads import draws
from streamgauge.workloads.city.model import SEEN
from streamgauge.workloads.city.triples import decimal, degrees
from streamgauge.workloads.draws import Ints
from streamgauge.workloads.rows import integers, text

SOUTH, WEST = 5_600_000, 1_000_000
"""The corner of the city, in 1/100000 degrees; it spreads over 0.2 degrees."""

_SPREAD = 20_000


def place(seed: int, what: str, number: Ints) -> tuple[pa.Array, pa.Array]:
    """Where something lies: latitude and longitude as terms."""
    north = SOUTH + draws.below(_SPREAD, seed, f"{what} latitude", number)
    east = WEST + draws.below(_SPREAD, seed, f"{what} longitude", number)
    return degrees(north), degrees(east)


@dataclass(frozen=True, slots=True)
class Drawing:
    """The readings (``model``) of so many sensors of each kind, ``interval`` ms apart, up to ``duration`` ms.

    The ids of a kind follow those of the kind before; sensors of a kind take turns.
    """

    seed: int
    sensors: Mapping[str, int]
    interval: int
    duration: int

    @property
    def ids(self) -> int:
        """How many readings are drawn; a few are later than the duration."""
        return self._turns * sum(self.sensors.values())

    @property
    def _turns(self) -> int:
        return self.duration // self.interval + 1

    def __call__(self, ids: Ints) -> Iterator[pa.RecordBatch]:
        """The readings of some ids."""
        begin = 0
        for kind, number in self.sensors.items():
            of = ids[(ids >= begin) & (ids < begin + number * self._turns)] - begin
            begin += number * self._turns
            if len(of):
                yield self._readings(kind, of % number + 1, of // number)

    def _readings(self, kind: str, sensor: Ints, turn: Ints) -> pa.RecordBatch:
        time = draws.below(self.interval, self.seed, f"{kind} offset", sensor) + turn * self.interval
        within = time <= self.duration
        sensor, turn, time = sensor[within], turn[within], time[within]
        drawing = _Sensors(self.seed, sensor, turn)
        nothing = pa.nulls(len(sensor), pa.string())
        latitude, longitude = drawing.walk() if kind == "user" else (nothing, nothing)
        seen = [*_SEEN[kind](drawing), *[nothing] * len(SEEN)]
        columns = {"kind": text(len(sensor), kind), "sensor": pa.array(sensor), "time": pa.array(time)}
        columns |= dict(zip(SEEN, seen, strict=False))
        return pa.RecordBatch.from_pydict({**columns, "Latitude": latitude, "Longitude": longitude})


@dataclass(frozen=True, slots=True)
class _Sensors:
    """What sensors of a kind see, each in one of its turns."""

    seed: int
    sensor: Ints
    turn: Ints

    def below(self, bound: int, what: str) -> Ints:
        return draws.below(bound, self.seed, what, self.sensor, self.turn)

    def traffic(self) -> list[pa.Array]:
        speed = 10 + self.below(90, "speed")
        length = 300 + draws.below(2000, self.seed, "length", self.sensor)
        return [integers(self.below(40, "vehicles")), integers(speed), integers(length * 36 // (speed * 10))]

    def parking(self) -> list[pa.Array]:
        return [integers(np.maximum(0, self.below(50, "vacancies") - 10))]

    def pollution(self) -> list[pa.Array]:
        gases = [self.below(200, gas) for gas in ("O3", "PM", "CO", "SO2", "NO2")]
        return [integers(15 + np.maximum.reduce(gases))]

    def weather(self) -> list[pa.Array]:
        temperature, wind = (
            decimal(self.below(bound, what), 1) for bound, what in ((300, "temperature"), (200, "wind"))
        )
        return [temperature, integers(self.below(101, "humidity")), wind]

    def nothing(self) -> list[pa.Array]:
        """A user is only somewhere."""
        return []

    def walk(self) -> tuple[pa.Array, pa.Array]:
        """Where a user is at a reading: anywhere in the city."""
        north, east = self.below(_SPREAD, "user latitude"), self.below(_SPREAD, "user longitude")
        return degrees(SOUTH + north), degrees(WEST + east)


_SEEN = {
    "traffic": _Sensors.traffic,
    "parking": _Sensors.parking,
    "pollution": _Sensors.pollution,
    "weather": _Sensors.weather,
    "user": _Sensors.nothing,
}
