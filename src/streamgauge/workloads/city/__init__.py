"""A city's sensors as in CityBench: traffic, parking, pollution, weather, users; generated, or from its CSV files.

Source: Ali, Gao and Mileo, CityBench: a configurable benchmark to evaluate RSP engines using smart city datasets
(ISWC 2015), and the layout of its files.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from math import ceil
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.formats.stream import SCHEMA
from streamgauge.model.terms import RDF_TYPE, XSD
from streamgauge.workloads import draws, on_spark
from streamgauge.workloads.city import files
from streamgauge.workloads.city.files import READING, SEEN
from streamgauge.workloads.draws import Ints
from streamgauge.workloads.parameters import Parameter, ParameterError, check_range, duration, resolve, whole
from streamgauge.workloads.plan import (
    Order,
    Section,
    Statement,
    TablePlan,
    Taken,
    background_plan,
    exploded,
    formatted,
    integers,
    numbers_of,
    text,
)

NAME = "city"
ABOUT = (
    "A city's traffic, parking, pollution, weather and users as CityBench has them, generated or from its CSV files."
)
QUERIES = Path(__file__).parent / "queries"

PARAMETERS = {
    "roads": Parameter(whole, 3, "number of roads with a traffic sensor"),
    "garages": Parameter(whole, 2, "number of parking garages"),
    "areas": Parameter(whole, 2, "number of areas with an air quality sensor"),
    "users": Parameter(whole, 1, "number of users who report their location"),
    "interval": Parameter(duration, 1000, "time between two readings of a sensor (ms, or 1s, 5m)"),
    "duration": Parameter(duration, 30_000, "length of the generated stream (ms, or 30s, 1h), both ends included"),
    "data": Parameter(str, "", "CityBench's files instead of generated readings, separated by commas"),
    "speedup": Parameter(whole, 1, "factor by which the files' time is sped up"),
    "static_triples": Parameter(whole, 300, "triples about sensors, roads, garages and events"),
}


def plan(seed: int, **parameters_: object) -> TablePlan:
    """The plan of the stream table (formats.stream.SCHEMA): a stream for each sensor, an element for each reading.

    ParameterError names a parameter that is unknown or out of range, FormatError the line and field of a file.
    """
    values: dict[str, Any] = resolve(NAME, PARAMETERS, parameters_)
    _check(values)
    if values["data"]:
        table = files.table(_files(values), values["interval"], values["speedup"])
        rows = len(table) * _TRIPLES * max(map(len, KINDS.values()))
        return TablePlan(len(table), rows, READING, SCHEMA, Taken(table), written, order=_ORDER)
    sensors = _sensors(values)
    drawing = SensorReadings(seed, sensors, values["interval"], values["duration"])
    observed = sum(len(KINDS[kind]) * number for kind, number in sensors.items())
    rows = drawing.ids // sum(sensors.values()) * observed * _TRIPLES
    return TablePlan(drawing.ids, rows, READING, SCHEMA, drawing, written, order=_ORDER)


def static_plan(seed: int, **parameters_: object) -> TablePlan:
    """The plan of the static triples about sensors, their places, and events (parameter ``static_triples``)."""
    values: dict[str, Any] = resolve(NAME, PARAMETERS, parameters_)
    _check(values)
    sensors, total = _sensors(values), values["static_triples"]
    least = sum(_triples(kind) * number for kind, number in sensors.items())
    if total < least:
        raise ParameterError(f"{NAME}: static_triples is {total}: these sensors need at least {least}")
    sections = [Section(1, number, _triples(kind), partial(_sensor, seed, kind)) for kind, number in sensors.items()]
    # As many events as fill the rest; the plan cuts the last one off at the total.
    events = Section(0, ceil((total - least) / _EVENT), _EVENT, partial(_event, seed))
    return background_plan((), (*sections, events), total)


generate = on_spark(plan)
static = on_spark(static_plan)


def _files(values: dict[str, Any]) -> list[Path]:
    return [Path(name.strip()) for name in values["data"].split(",")]


def _sensors(values: dict[str, Any]) -> dict[str, int]:
    """The number of sensors of each kind; there is one weather station."""
    if values["data"]:
        return files.sensors(_files(values))
    named = {"traffic": "roads", "parking": "garages", "pollution": "areas", "user": "users"}
    return {**{kind: values[name] for kind, name in named.items()}, "weather": 1}


def _check(values: dict[str, Any]) -> None:
    check_range(NAME, values, ("roads", "garages", "areas", "users", "interval", "speedup"))
    check_range(NAME, values, ("static_triples",), 0)


_EVENT = 7


def _triples(kind: str) -> int:
    """Static triples of a sensor: four for itself, three for each property."""
    return 4 + 3 * len(KINDS[kind])


def _sensor(seed: int, kind: str, ids: Ints) -> list[Statement]:
    sensor, where = _iri(f"{kind}-", ids), _iri(f"{kind}-", ids, "/place")
    latitude, longitude = place(seed, kind, ids)
    statements = [
        Statement(sensor, RDF_TYPE, text(len(ids), f"<{SSN}Sensor>")),
        Statement(where, RDF_TYPE, text(len(ids), f"<{SSN}FeatureOfInterest>")),
        Statement(where, f"<{CT}hasStartLatitude>", latitude),
        Statement(where, f"<{CT}hasStartLongitude>", longitude),
    ]
    for name in KINDS[kind]:
        observed = _iri(f"{kind}-", ids, f"/{name}")
        statements += [
            Statement(sensor, f"<{SSN}observes>", observed),
            Statement(observed, RDF_TYPE, text(len(ids), f"<{CT}{name}>")),
            Statement(observed, f"<{SSN}isPropertyOf>", where),
        ]
    return statements


def _event(seed: int, ids: Ints) -> list[Statement]:
    """Events: every fifth is a library event, the others are cultural; a ticket costs 0 to 499."""
    event, node, (latitude, longitude) = _iri("event-", ids), _iri("event-", ids, "/node"), place(seed, "event", ids)
    return [
        Statement(event, RDF_TYPE, formatted(ids % 5, lambda n: f"<{CT}{'Library' if n == 1 else 'Cultural'}Event>")),
        Statement(event, f"<{SAO}value>", text(len(ids), '"Event ', ids, '"')),
        Statement(event, f"<{CT}hasFirstNode>", node),
        Statement(node, f"<{CT}hasLatitude>", latitude),
        Statement(node, f"<{CT}hasLongitude>", longitude),
        Statement(event, f"<{CT}hasPrice>", integers(draws.below(500, seed, "price", ids))),
        Statement(event, f"<{SSN}featureOfInterest>", _iri("event-", ids, "/place")),
    ]


def _iri(kind: str, ids: Ints, rest: str = "") -> pa.Array:
    return text(len(ids), f"<{CITY}{kind}", ids, f"{rest}>")


CITY = "http://ex.org/city/"
CT = "http://www.insight-centre.org/citytraffic#"
SSN = "http://purl.oclc.org/NET/ssnx/ssn#"
SAO = "http://purl.oclc.org/NET/sao/"

KINDS = {
    "traffic": ("CongestionLevel", "AverageSpeed", "EstimatedTime"),
    "parking": ("ParkingVacancy",),
    "pollution": ("AirPollutionIndex",),
    "weather": ("Temperature", "Humidity", "WindSpeed"),
    "user": ("Location",),
}
"""The kinds of sensors with the classes of their observed properties.

Congestion is a number of vehicles (as in CityBench's files), speed in km/h, time in s; free parking spaces; an air
pollution index, the maximum over five gases; degrees C, %, m/s.
"""

SOUTH, WEST = 5_600_000, 1_000_000
"""The corner of the city, in 1/100000 degrees; it spreads over 0.2 degrees."""

_SPREAD = 20_000


def place(seed: int, what: str, number: Ints) -> tuple[pa.Array, pa.Array]:
    """Drawn latitudes and longitudes as terms."""
    north = SOUTH + draws.below(_SPREAD, seed, f"{what} latitude", number)
    east = WEST + draws.below(_SPREAD, seed, f"{what} longitude", number)
    return degrees(north), degrees(east)


@dataclass(frozen=True, slots=True)
class SensorReadings:
    """Readings (``READING``) of a number of sensors of each kind, ``interval`` ms apart, up to ``duration`` ms.

    Each kind has a contiguous range of ids, within which its sensors take turns.
    """

    seed: int
    sensors: Mapping[str, int]
    interval: int
    duration: int

    @property
    def ids(self) -> int:
        """The number of drawn readings, a few of which are later than the duration and left out."""
        return self._turns * sum(self.sensors.values())

    @property
    def _turns(self) -> int:
        return self.duration // self.interval + 1

    def __call__(self, ids: Ints) -> Iterator[pa.RecordBatch]:
        """The readings of some ids."""
        begin = 0
        for kind, number in self.sensors.items():
            # An id within its kind is turn * number + sensor - 1: with 3 roads, the ids 0, 1, 2 are the sensors 1, 2,
            # 3 in turn 0, and 3 is sensor 1 in turn 1.
            of = ids[(ids >= begin) & (ids < begin + number * self._turns)] - begin
            begin += number * self._turns
            if len(of):
                yield self._readings(kind, of % number + 1, of // number)

    def _readings(self, kind: str, sensor: Ints, turn: Ints) -> pa.RecordBatch:
        time = draws.below(self.interval, self.seed, f"{kind} offset", sensor) + turn * self.interval
        # A sensor's offset moves its last turn beyond the end.
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
    """Draws the readings of sensors of one kind; row i is sensor i in turn i."""

    seed: int
    sensor: Ints
    turn: Ints

    def below(self, bound: int, what: str) -> Ints:
        return draws.below(bound, self.seed, what, self.sensor, self.turn)

    def traffic(self) -> list[pa.Array]:
        speed = 10 + self.below(90, "speed")
        length = 300 + draws.below(2000, self.seed, "length", self.sensor)
        # Time in s from length in m and speed in km/h: 1,000 m at 36 km/h take 1000 * 36 // (36 * 10) = 100 s.
        return [integers(self.below(40, "vehicles")), integers(speed), integers(length * 36 // (speed * 10))]

    def parking(self) -> list[pa.Array]:
        # A fifth of the draws are 10 or less and become 0: full garages are common.
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
        """No values: a user only reports a location."""
        return []

    def walk(self) -> tuple[pa.Array, pa.Array]:
        """The location of a user, independent of the one before: anywhere in the city."""
        north, east = self.below(_SPREAD, "user latitude"), self.below(_SPREAD, "user longitude")
        return degrees(SOUTH + north), degrees(WEST + east)


_SEEN = {
    "traffic": _Sensors.traffic,
    "parking": _Sensors.parking,
    "pollution": _Sensors.pollution,
    "weather": _Sensors.weather,
    "user": _Sensors.nothing,
}


def written(readings: pa.RecordBatch) -> pa.RecordBatch:
    """The stream table's rows for numbered readings (``READING``); a sensor's stream is its IRI."""
    kinds = readings.column("kind")
    groups = []
    # By kind, as each has its own statements; ``exploded`` puts the rows back into their order.
    for kind in KINDS:
        rows = np.flatnonzero(pc.equal(kinds, kind).to_numpy(zero_copy_only=False))
        groups.append((rows, _statements(kind, readings.take(pa.array(rows)))))
    exploded_rows = exploded(groups)
    n, time, sensor = (column[exploded_rows.row] for column in numbers_of(readings, "n", "time", "sensor"))
    columns = [
        text(len(n), CITY, kinds.take(pa.array(exploded_rows.row)), "-", sensor),
        pa.array(time),
        pa.array(n),
        pa.array(exploded_rows.position, pa.int32()),
        *exploded_rows.triples,
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def degrees(counts: Ints) -> pa.Array:
    """Canonical xsd:double literals of numbers of 1/100000 degrees."""
    return decimal(counts, 5)


def decimal(counts: Ints, places: int) -> pa.Array:
    """Canonical xsd:double literals of ``counts`` x 10^-``places``, for values from 0 to below 10^7."""
    return formatted(counts, partial(_decimal, places=places))


def _decimal(count: int, places: int) -> str:
    whole, rest = divmod(count, 10**places)
    # 12 and 5 of 100 are 12.05, and 12 and 50 are 12.5.
    number = f"{whole}.{rest:0{places}}".rstrip("0").rstrip(".")
    return f'"{number}"^^<{XSD}double>'


def _statements(kind: str, rows: pa.RecordBatch) -> list[Statement]:
    """The triples of readings of a kind, in order."""
    sensor, time = numbers_of(rows, "sensor", "time")
    count, name = len(sensor), text(len(sensor), CITY, f"{kind}-", sensor)
    place = text(count, "<", name, "/place-", time, ">")
    statements: list[Statement] = []
    for observed, seen in zip(KINDS[kind], SEEN, strict=False):
        observation = text(count, "<", name, f"/observation-{observed}-", time, ">")
        value = place if observed == "Location" else rows.column(seen)
        statements += [
            Statement(observation, RDF_TYPE, text(count, f"<{SSN}Observation>")),
            Statement(observation, f"<{SSN}observedBy>", text(count, "<", name, ">")),
            Statement(observation, f"<{SSN}observedProperty>", text(count, "<", name, f"/{observed}>")),
            Statement(observation, f"<{SAO}hasValue>", value),
        ]
    if kind == "user":
        statements += [Statement(place, f"<{CT}has{end}>", rows.column(end)) for end in ("Latitude", "Longitude")]
    return statements


# Down to the values: files may have two readings of a sensor at one time, and their order must not depend on tasks.
_ORDER: Final = Order(("time", "kind", "sensor", *SEEN, "Latitude", "Longitude"))
_TRIPLES: Final = 4
