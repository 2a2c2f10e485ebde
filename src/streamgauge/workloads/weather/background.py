"""Static data beside the weather stream: stations, cities, states, what lies in them, known hurricanes, classes.

Stations, cities (one for four stations) and states come first; airports, heritage sites and shores, each in a city,
fill up to the number of triples wanted. Vocabularies: GeoNames, WGS84, and DBpedia's for hurricanes (as in SRBench).
"""

from collections.abc import Mapping
from functools import partial
from math import ceil

import numpy as np
import pyarrow as pa

from streamgauge.model.terms import RDF_TYPE, XSD, Term, Triple
from streamgauge.workloads import draws
from streamgauge.workloads.background import Section, background_plan
from streamgauge.workloads.draws import Ints
from streamgauge.workloads.plan import TablePlan
from streamgauge.workloads.rows import Statement, formatted, integers, text
from streamgauge.workloads.weather.phenomena import PHENOMENA
from streamgauge.workloads.weather.triples import OM_OWL, WEATHER, system, tenths

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


def least(stations: int) -> int:
    """How many triples say what belongs to so many stations."""
    cities, states = _cities(stations), _states(stations)
    return len(_known()) + 3 * states + 6 * cities + 7 * stations


def static_plan(seed: int, stations: int, wanted: int) -> TablePlan:
    """The plan of ``wanted`` different triples."""
    cities, states = _cities(stations), _states(stations)
    sections = (
        Section(0, states, 3, _state),
        Section(0, cities, 6, partial(_city, seed, states)),
        Section(0, stations, 7, partial(_station, seed, stations)),
        Section(0, ceil((wanted - least(stations)) / 6), 6, partial(_place, seed, cities)),
    )
    return background_plan(_known(), sections, wanted)


def _cities(stations: int) -> int:
    return ceil(stations / 4)


def _states(stations: int) -> int:
    return ceil(_cities(stations) / 8)


def _known() -> tuple[Triple, ...]:
    """What is there whatever the size: classes of observations, the country, hurricanes with their winds (mph)."""
    weather = f"<{WEATHER}WeatherObservation>"
    precipitation = f"<{WEATHER}PrecipitationObservation>"
    above = {"RainfallObservation": precipitation, "SnowfallObservation": precipitation}
    classes = [(f"<{WEATHER}{each.kind}>", _SUBCLASS, above.get(each.kind, weather)) for each in PHENOMENA]
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
    said = {RDF_TYPE: _same(ids, f"<{GN}Feature>"), _NAME: _label("State", ids), _PARENT: _same(ids, _COUNTRY)}
    return _facts(_thing("state", ids), said)


def _city(seed: int, states: int, ids: Ints) -> list[Statement]:
    said = {
        RDF_TYPE: _same(ids, f"<{GN}PopulatedPlace>"),
        _NAME: _label("City", ids),
        _PARENT: _thing("state", ids % states),
        f"<{GN}population>": integers(1000 + draws.below(1_000_000, seed, "population", ids)),
        **_coordinates(seed, "city", ids),
    }
    return _facts(_thing("city", ids), said)


def _station(seed: int, stations: int, ids: Ints) -> list[Statement]:
    said = {
        RDF_TYPE: _same(ids, f"<{OM_OWL}System>"),
        _NAME: _label("Station", ids),
        _PARENT: _thing("city", ids // 4),
        **_coordinates(seed, "station", ids),
        f"<{GEO}alt>": tenths(draws.below(30_000, seed, "altitude", ids)),
        f"<{GN}neighbour>": system((ids + 1) % stations),
    }
    return _facts(system(ids), said)


def _place(seed: int, cities: int, ids: Ints) -> list[Statement]:
    said = {
        RDF_TYPE: formatted(ids % len(_KINDS), lambda kind: f"<{PLACES}{_KINDS[kind]}>"),
        _PARENT: _thing("city", ids // 3 % cities),
        _NAME: _label("Place", ids),
        f"<{PLACES}insured>": integers(1000 + draws.below(1_000_000, seed, "insured", ids)),
        **_coordinates(seed, "place", ids),
    }
    return _facts(_thing("place", ids), said)


def _facts(subject: pa.Array, objects: Mapping[str, pa.Array]) -> list[Statement]:
    return [Statement(subject, predicate, value) for predicate, value in objects.items()]


def _coordinates(seed: int, what: str, ids: Ints) -> dict[str, pa.Array]:
    """Degrees, in tenths."""
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
