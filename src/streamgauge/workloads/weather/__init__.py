"""Weather stations: the stream of YABench's generator SG1, with more options."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from streamgauge.formats.stream import SCHEMA
from streamgauge.model.terms import RDF_TYPE, XSD, Term, Triple
from streamgauge.workloads import draws, on_spark
from streamgauge.workloads.draws import Ints
from streamgauge.workloads.parameters import (
    Parameter,
    ParameterError,
    check_range,
    choice,
    duration,
    resolve,
    share,
    switch,
    whole,
)
from streamgauge.workloads.plan import (
    Order,
    Section,
    Statement,
    TablePlan,
    background_plan,
    batch,
    exploded,
    formatted,
    integers,
    numbers_of,
    text,
)
from streamgauge.workloads.weather import observations
from streamgauge.workloads.weather.observations import BURST, PHENOMENA, SETS, Phenomenon, Regular, StreamSize, Times

NAME = "weather"
ABOUT = "Weather stations that report the air temperature, exactly as YABench's generator SG1 by default."
QUERIES = Path(__file__).parent / "queries"
STREAM = "http://ex.org/streams/test"

PARAMETERS = {
    "stations": Parameter(whole, 10, "number of stations"),
    "interval": Parameter(duration, 1000, "time between two observations of a station (ms, or 1s, 5m)"),
    "duration": Parameter(duration, 30_000, "length of the stream (ms, or 30s, 1h), both ends included"),
    "min_temp": Parameter(whole, 0, "lowest temperature (degrees)"),
    "max_temp": Parameter(whole, 100, "upper bound of temperatures, excluded (degrees)"),
    "arrival": Parameter(
        choice("regular", "poisson", "bursts", "pareto"), "regular", "distribution of observation times"
    ),
    "values": Parameter(choice("uniform", "normal", "walk"), "uniform", "distribution of temperatures"),
    "late_share": Parameter(share, 0.0, "share of the observations that arrive late (0 to 1)"),
    "late_bound": Parameter(duration, 0, "maximum lateness (ms, or 2s)"),
    "humidity": Parameter(switch, False, "add an observation of relative humidity to each (true, false)"),
    "observes": Parameter(choice("temperature", "all"), "temperature", "phenomena that a station reports"),
    "stream": Parameter(str, STREAM, "IRI of the stream"),
    "streams": Parameter(whole, 1, "number of streams; several get the IRI with -1, -2, ... appended"),
    "static_triples": Parameter(whole, 0, "number of static triples about stations and places"),
}


def plan(seed: int, **parameters_: object) -> TablePlan:
    """The plan of the stream table (formats.stream.SCHEMA), in order of sequence.

    ParameterError names a parameter that is unknown or out of range.
    """
    values: dict[str, Any] = resolve(NAME, PARAMETERS, parameters_)
    _check(values)
    size = StreamSize(
        values["stations"], values["interval"], values["duration"], values["min_temp"], values["max_temp"]
    )
    regular = observations.regular(seed, size) if values["arrival"] == "regular" else None
    drawing = DrawnObservations(seed, size, values, regular)
    # All phenomena include the humidity.
    humid = values["humidity"] and values["observes"] == "temperature"
    seen = SETS["humidity" if humid else values["observes"]]
    ids, limit = drawing.ids()
    return TablePlan(
        ids=ids,
        rows=size.stations * (size.duration // size.interval + 1) * len(seen) * _TRIPLES,
        drawn=_ARRIVING if drawing.arrives else _NUMBERED,
        schema=SCHEMA,
        draw=drawing,
        write=ObservationWriter(seed, seen, values["stream"], values["streams"]),
        most=limit,
        order=_BY_ARRIVAL if drawing.arrives else _BY_NUMBER if drawing.walks else None,
    )


def static_plan(seed: int, **parameters_: object) -> TablePlan | None:
    """The plan of ``static_triples`` triples about the stations and their places, ``None`` if that is 0.

    ParameterError if these are too few for the stations.
    """
    values: dict[str, Any] = resolve(NAME, PARAMETERS, parameters_)
    _check(values)
    total = values["static_triples"]
    if not total:
        return None
    stations = values["stations"]
    # Four stations to a city, eight cities to a state: 100 stations are in 25 cities and 4 states.
    cities, states = _cities(stations), _states(stations)
    least = len(_known()) + 3 * states + 6 * cities + 7 * stations
    if total < least:
        raise ParameterError(f"{NAME}: static_triples is {total}: {stations} stations need at least {least}, or 0")
    sections = (
        Section(0, states, 3, _state),
        Section(0, cities, 6, partial(_city, seed, states)),
        Section(0, stations, 7, partial(_station, seed, stations)),
        Section(0, ceil((total - least) / 6), 6, partial(_place, seed, cities)),
    )
    return background_plan(_known(), sections, total)


generate = on_spark(plan)
static = on_spark(static_plan)


def _check(values: dict[str, Any]) -> None:
    check_range(NAME, values, ("stations", "interval", "streams"))
    check_range(NAME, values, ("static_triples",), 0)
    # A float has 24 bits: whole numbers up to 2^24 are exact, and decimals of six digits.
    bound = 1 << 24 if values["values"] == "uniform" else 99_999
    for name in ("min_temp", "max_temp"):
        if abs(values[name]) > bound:
            raise ParameterError(f"{NAME}: {name} is {values[name]}: xsd:float is exact from {-bound} to {bound}")
    if values["max_temp"] <= values["min_temp"]:
        raise ParameterError(f"{NAME}: max_temp is {values['max_temp']}: it must be above min_temp")
    if values["late_share"] and not values["late_bound"]:
        raise ParameterError(f"{NAME}: late_bound is 0: set the maximum lateness of the late_share, such as 2s")


GN = "http://www.geonames.org/ontology#"
GEO = "http://www.w3.org/2003/01/geo/wgs84_pos#"
DBO = "http://dbpedia.org/ontology/"
PLACES = "http://ex.org/places/"
_SUBCLASS = "<http://www.w3.org/2000/01/rdf-schema#subClassOf>"
_PARENT = f"<{GN}parentFeature>"
_NAME = f"<{GN}name>"

_COUNTRY = f"<{PLACES}country>"
_HURRICANES = (75, 80, 85, 90, 95)
_KINDS = ("Airport", "HeritageSite", "Shore")


def _cities(stations: int) -> int:
    return ceil(stations / 4)


def _states(stations: int) -> int:
    return ceil(_cities(stations) / 8)


def _known() -> tuple[Triple, ...]:
    """The fixed static triples: classes of observations, the country, hurricanes with their wind speeds (mph)."""
    weather = f"<{WEATHER}WeatherObservation>"
    precipitation = f"<{WEATHER}PrecipitationObservation>"
    above = {"RainfallObservation": precipitation, "SnowfallObservation": precipitation}
    classes = [
        (f"<{WEATHER}{phenomenon.kind}>", _SUBCLASS, above.get(phenomenon.kind, weather)) for phenomenon in PHENOMENA
    ]
    hurricanes = [
        (f"<{PLACES}hurricane-{wind}>", predicate, value)
        for wind in _HURRICANES
        for predicate, value in (
            (RDF_TYPE, f"<{DBO}Hurricane>"),
            (_NAME, f'"Hurricane {wind}"'),
            (f"<{DBO}windSpeed>", f'"{wind}"^^<{XSD}float>'),
        )
    ]
    country = [(_COUNTRY, RDF_TYPE, f"<{GN}Feature>"), (_COUNTRY, _NAME, '"Country"')]
    return (*classes, (precipitation, _SUBCLASS, weather), *hurricanes, *country)


def _state(ids: Ints) -> list[Statement]:
    statements = {RDF_TYPE: _same(ids, f"<{GN}Feature>"), _NAME: _label("State", ids), _PARENT: _same(ids, _COUNTRY)}
    return _facts(_thing("state", ids), statements)


def _city(seed: int, states: int, ids: Ints) -> list[Statement]:
    statements = {
        RDF_TYPE: _same(ids, f"<{GN}PopulatedPlace>"),
        _NAME: _label("City", ids),
        _PARENT: _thing("state", ids % states),
        f"<{GN}population>": integers(1000 + draws.below(1_000_000, seed, "population", ids)),
        **_coordinates(seed, "city", ids),
    }
    return _facts(_thing("city", ids), statements)


def _station(seed: int, stations: int, ids: Ints) -> list[Statement]:
    statements = {
        RDF_TYPE: _same(ids, f"<{OM_OWL}System>"),
        _NAME: _label("Station", ids),
        _PARENT: _thing("city", ids // 4),
        **_coordinates(seed, "station", ids),
        f"<{GEO}alt>": tenths(draws.below(30_000, seed, "altitude", ids)),
        # The stations form a ring.
        f"<{GN}neighbour>": system((ids + 1) % stations),
    }
    return _facts(system(ids), statements)


def _place(seed: int, cities: int, ids: Ints) -> list[Statement]:
    statements = {
        RDF_TYPE: formatted(ids % len(_KINDS), lambda kind: f"<{PLACES}{_KINDS[kind]}>"),
        _PARENT: _thing("city", ids // 3 % cities),
        _NAME: _label("Place", ids),
        f"<{PLACES}insured>": integers(1000 + draws.below(1_000_000, seed, "insured", ids)),
        **_coordinates(seed, "place", ids),
    }
    return _facts(_thing("place", ids), statements)


def _facts(subject: pa.Array, objects: Mapping[str, pa.Array]) -> list[Statement]:
    return [Statement(subject, predicate, value) for predicate, value in objects.items()]


def _coordinates(seed: int, what: str, ids: Ints) -> dict[str, pa.Array]:
    """Drawn coordinates, in degrees with one decimal."""
    return {
        f"<{GEO}lat>": tenths(draws.below(900, seed, f"{what} latitude", ids)),
        f"<{GEO}long>": tenths(draws.below(1800, seed, f"{what} longitude", ids)),
    }


def _same(ids: Ints, term: Term) -> pa.Array:
    return text(len(ids), term)


def _thing(kind: str, number: Ints) -> pa.Array:
    return text(len(number), f"<{PLACES}{kind}-", np.asarray(number), ">")


def _label(kind: str, ids: Ints) -> pa.Array:
    return text(len(ids), f'"{kind} ', ids, '"')


SSW = "http://knoesis.wright.edu/ssw/"
OM_OWL = SSW + "ont/sensor-observation.owl#"
WEATHER = SSW + "ont/weather.owl#"


@dataclass(frozen=True, slots=True)
class ObservationWriter:
    """Writes observations (n, station, time, value in tenths) as elements, one per phenomenon.

    A station's observations enter the stream ``iri``, or with several streams ``iri-1`` to ``iri-streams`` in turn.
    """

    seed: int
    seen: Sequence[Phenomenon]
    iri: str
    streams: int

    def __call__(self, observations: pa.RecordBatch) -> pa.RecordBatch:
        """The rows of a batch of observations."""
        n, station, time, value = numbers_of(observations, "n", "station", "time", "value")
        # With two phenomena observation 0 makes the elements 0 and 1, observation 1 the elements 2 and 3.
        elements = np.arange(len(n)) * len(self.seen)
        groups = [
            (
                elements + which,
                _statements(phenomenon, station, time, phenomenon.drawn(self.seed, station, time, value)),
            )
            for which, phenomenon in enumerate(self.seen)
        ]
        exploded_rows = exploded(groups)
        of, which = np.divmod(exploded_rows.row, len(self.seen))
        # An element per phenomenon, numbered without gaps.
        sequence = n[of] * len(self.seen) + which
        columns = [
            self._stream(station[of]),
            pa.array(time[of]),
            pa.array(sequence),
            pa.array(exploded_rows.position, pa.int32()),
            *exploded_rows.triples,
        ]
        return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)

    def _stream(self, station: Ints) -> pa.Array:
        if self.streams == 1:
            return text(len(station), self.iri)
        return formatted(station % self.streams + 1, lambda number: f"{self.iri}-{number}")


def _statements(seen: Phenomenon, station: Ints, time: Ints, value: Ints) -> list[Statement]:
    count = len(station)
    place = text(count, f"{seen.name}_A", station, "_", time)
    observation = text(count, f"<{SSW}Observation_", place, ">")
    measure = text(count, f"<{SSW}MeasureData_", place, ">")
    return [
        Statement(observation, RDF_TYPE, text(count, f"<{WEATHER}{seen.kind}>")),
        Statement(observation, f"<{OM_OWL}observedProperty>", text(count, f"<{WEATHER}_{seen.name}>")),
        Statement(observation, f"<{OM_OWL}procedure>", system(station)),
        Statement(observation, f"<{OM_OWL}result>", measure),
        *(_truth(measure, value) if seen.unit is None else _number(measure, value, seen.unit)),
    ]


def _number(measure: pa.Array, value: Ints, unit: str) -> list[Statement]:
    return [
        Statement(measure, RDF_TYPE, text(len(value), f"<{OM_OWL}MeasureData>")),
        Statement(measure, f"<{OM_OWL}floatValue>", tenths(value)),
        Statement(measure, f"<{OM_OWL}uom>", text(len(value), f"<{WEATHER}{unit}>")),
    ]


def _truth(measure: pa.Array, value: Ints) -> list[Statement]:
    booleans = {0: f'"false"^^<{XSD}boolean>', 1: f'"true"^^<{XSD}boolean>'}
    return [
        Statement(measure, RDF_TYPE, text(len(value), f"<{OM_OWL}TruthData>")),
        Statement(measure, f"<{OM_OWL}booleanValue>", formatted((value > 0).astype(np.int64), booleans.__getitem__)),
    ]


def system(station: Ints) -> pa.Array:
    """The IRIs of stations."""
    return text(len(station), f"<{SSW}System_A", station, ">")


def tenths(counts: Ints) -> pa.Array:
    """The xsd:float literals of numbers of tenths, with one decimal as YABench's SG1 writes them: ``27.0``."""
    return formatted(counts, lambda count: f'"{_decimal(count)}"^^<{XSD}float>')


def _decimal(count: int) -> str:
    # Of the absolute value, since -5 // 10 is -1: -5 tenths are -0.5.
    whole, rest = divmod(abs(count), 10)
    return f"{'-' if count < 0 else ''}{whole}.{rest}"


_TRIPLES: Final = 7
_NUMBERED: Final = pa.schema([(name, pa.int64()) for name in ("station", "time", "value", "n")])
_ARRIVING: Final = pa.schema([(name, pa.int64()) for name in ("station", "time", "value", "arrival")])
_BY_ARRIVAL: Final = Order(("arrival", "time", "station"))
_BY_NUMBER: Final = Order(("n",), number=False)


@dataclass(frozen=True, slots=True)
class DrawnObservations:
    """Draws observations; an id is SG1's number, a cell of a station, or a station if each row depends on the last."""

    seed: int
    size: StreamSize
    values: Mapping[str, Any]
    regular: Regular | None

    @property
    def walks(self) -> bool:
        """Whether each value depends on the one before."""
        return bool(self.values["values"] == "walk")

    @property
    def arrives(self) -> bool:
        """Whether observations are ordered by arrival; SG1's are drawn in order."""
        return self.regular is None or bool(self.values["late_share"])

    def ids(self) -> tuple[int, int]:
        """The number of ids, and the approximate maximum number of observations of one."""
        stations, arrival = self.size.stations, self.values["arrival"]
        if self.regular is not None:
            return (stations, -(-self.regular.count // stations)) if self.walks else (self.regular.count, 1)
        if arrival == "pareto":
            return stations, observations.turns(self.size)
        cells, per_cell = observations.cells(self.size, arrival), BURST if arrival == "bursts" else 2
        return (stations, cells * per_cell) if self.walks else (stations * cells, per_cell)

    def __call__(self, ids: Ints) -> Iterator[pa.RecordBatch]:
        """The observations of some ids."""
        if self.regular is not None:
            n = self.regular.of_stations(ids) if self.walks else ids
            times = self.regular.times(n)
        else:
            n, times = ids, self._times(ids)
        if self.regular is not None and self.values["values"] == "uniform":
            value = self.regular.values(n)
        else:
            value = observations.valued(self.seed, self.size, self.values["values"], times)
        if self.arrives:
            share, bound = self.values["late_share"], self.values["late_bound"]
            arrival = observations.arrival(self.seed, share, bound, times)
            yield batch(station=times.station, time=times.time, value=value, arrival=arrival)
        else:
            yield batch(station=times.station, time=times.time, value=value, n=n)

    def _times(self, ids: Ints) -> Times:
        stations, arrival = self.size.stations, self.values["arrival"]
        if arrival == "pareto":
            return observations.heavy_tailed(self.seed, self.size, ids)
        if not self.walks:
            return observations.irregular(self.seed, self.size, arrival, ids % stations, ids // stations)
        cells = observations.cells(self.size, arrival)
        # A walk needs all cells of a station in one call.
        station, cell = np.repeat(ids, cells), np.tile(np.arange(cells), len(ids))
        return observations.irregular(self.seed, self.size, arrival, station, cell)
