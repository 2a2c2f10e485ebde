"""Static data beside the weather stream: stations, cities, states, what lies in them, known hurricanes, classes.

Stations, cities (one for four stations) and states come first; airports, heritage sites and shores, each in a city,
fill up to the number of triples wanted. Vocabularies: GeoNames, WGS84, and DBpedia's for hurricanes (as in SRBench).
"""

from collections.abc import Mapping
from functools import reduce
from math import ceil

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from streamgauge.model.terms import RDF_TYPE, XSD, Triple
from streamgauge.workloads import draws
from streamgauge.workloads.weather.phenomena import PHENOMENA
from streamgauge.workloads.weather.triples import OM_OWL, SSW, WEATHER, tenths

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


def triples(spark: SparkSession, seed: int, stations: int, wanted: int, partitions: int | None) -> DataFrame:
    """``wanted`` different triples, in an order that is the same whatever the partitions."""
    rest = wanted - least(stations)
    cities, states = _cities(stations), _states(stations)
    columns = zip(*_known(), strict=True)
    known = spark.createDataFrame(pa.table(list(map(pa.array, columns)), ["subject", "predicate", "object"]))
    parts = [
        known.coalesce(1),
        _facts(spark.range(0, states, 1, partitions), _state()),
        _facts(spark.range(0, cities, 1, partitions), _city(seed, states)),
        _facts(spark.range(0, stations, 1, partitions), _station(seed, stations)),
    ]
    if rest:
        places = _facts(spark.range(0, ceil(rest / 6), 1, partitions), _place(seed, cities), below=rest)
        parts.append(places)
    return reduce(DataFrame.unionAll, parts)


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


def _facts(ids: DataFrame, said: tuple[Column, Mapping[str, Column]], below: int | None = None) -> DataFrame:
    """A row for each thing and predicate, the first ``below`` of them."""
    subject, objects = said
    pairs = [F.struct(F.lit(name).alias("predicate"), value.alias("object")) for name, value in objects.items()]
    found = ids.select("id", subject.alias("subject"), F.posexplode(F.array(*pairs)).alias("at", "said"))
    if below is not None:
        found = found.where(F.col("id") * len(pairs) + F.col("at") < below)
    return found.select("subject", "said.predicate", "said.object")


def _state() -> tuple[Column, Mapping[str, Column]]:
    return _named("state"), {
        RDF_TYPE: F.lit(f"<{GN}Feature>"),
        _NAME: _label("State"),
        _PARENT: F.lit(_COUNTRY),
    }


def _city(seed: int, states: int) -> tuple[Column, Mapping[str, Column]]:
    return _named("city"), {
        RDF_TYPE: F.lit(f"<{GN}PopulatedPlace>"),
        _NAME: _label("City"),
        _PARENT: _thing("state", F.col("id") % states),
        f"<{GN}population>": _integer(1000 + draws.below(1_000_000, seed, "population", F.col("id"))),
        **_coordinates(seed, "city"),
    }


def _station(seed: int, stations: int) -> tuple[Column, Mapping[str, Column]]:
    return _system(F.col("id")), {
        RDF_TYPE: F.lit(f"<{OM_OWL}System>"),
        _NAME: _label("Station"),
        _PARENT: _thing("city", F.floor(F.col("id") / 4)),
        **_coordinates(seed, "station"),
        f"<{GEO}alt>": tenths(draws.below(30_000, seed, "altitude", F.col("id"))),
        f"<{GN}neighbour>": _system((F.col("id") + 1) % stations),
    }


def _place(seed: int, cities: int) -> tuple[Column, Mapping[str, Column]]:
    kind = F.element_at(F.array(*(F.lit(f"<{PLACES}{kind}>") for kind in _KINDS)), (F.col("id") % 3 + 1).cast("int"))
    return _named("place"), {
        RDF_TYPE: kind,
        _PARENT: _thing("city", F.floor(F.col("id") / 3) % cities),
        _NAME: _label("Place"),
        f"<{PLACES}insured>": _integer(1000 + draws.below(1_000_000, seed, "insured", F.col("id"))),
        **_coordinates(seed, "place"),
    }


def _coordinates(seed: int, what: str) -> dict[str, Column]:
    """Degrees, in tenths."""
    return {
        f"<{GEO}lat>": tenths(draws.below(900, seed, f"{what} latitude", F.col("id"))),
        f"<{GEO}long>": tenths(draws.below(1800, seed, f"{what} longitude", F.col("id"))),
    }


def _named(kind: str) -> Column:
    return _thing(kind, F.col("id"))


def _thing(kind: str, number: Column) -> Column:
    return F.concat(F.lit(f"<{PLACES}{kind}-"), number.cast("string"), F.lit(">"))


def _system(number: Column) -> Column:
    return F.concat(F.lit(f"<{SSW}System_A"), number.cast("string"), F.lit(">"))


def _label(kind: str) -> Column:
    return F.concat(F.lit(f'"{kind} '), F.col("id").cast("string"), F.lit('"'))


def _integer(number: Column) -> Column:
    return F.concat(F.lit('"'), number.cast("string"), F.lit(f'"^^<{XSD}integer>'))
