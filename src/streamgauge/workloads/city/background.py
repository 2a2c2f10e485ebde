"""Static data of the city: each sensor with what it observes and where, then cultural and library events.

Where a sensor lies is drawn, also for CityBench's files. Events fill up to the number of triples wanted.
"""

from collections.abc import Mapping, Sequence
from functools import reduce
from math import ceil

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from streamgauge.model.terms import RDF_TYPE
from streamgauge.workloads import draws
from streamgauge.workloads.city.model import CITY, CT, KINDS, SAO, SSN
from streamgauge.workloads.city.readings import place
from streamgauge.workloads.city.triples import integer

Facts = Sequence[tuple[Column, str, Column]]
_EVENT = 7


def least(sensors: Mapping[str, int]) -> int:
    """How many triples say what belongs to the sensors: four for each, three for each property."""
    return sum((4 + 3 * len(KINDS[kind])) * number for kind, number in sensors.items())


def triples(
    spark: SparkSession, seed: int, sensors: Mapping[str, int], wanted: int, partitions: int | None
) -> DataFrame:
    """``wanted`` different triples, in an order that is the same whatever the partitions."""
    parts = [_rows(spark.range(1, number + 1, 1, partitions), _sensor(seed, kind)) for kind, number in sensors.items()]
    rest = wanted - least(sensors)
    if rest:
        parts.append(_rows(spark.range(0, ceil(rest / _EVENT), 1, partitions), _event(seed), below=rest))
    return reduce(DataFrame.unionAll, parts)


def _rows(ids: DataFrame, facts: Facts, below: int | None = None) -> DataFrame:
    said = [F.struct(s.alias("subject"), F.lit(p).alias("predicate"), o.alias("object")) for s, p, o in facts]
    found = ids.select("id", F.posexplode(F.array(*said)).alias("at", "said"))
    if below is not None:
        found = found.where(F.col("id") * len(facts) + F.col("at") < below)
    return found.select("said.subject", "said.predicate", "said.object")


def _sensor(seed: int, kind: str) -> Facts:
    sensor, where = _iri(f"{kind}-"), _iri(f"{kind}-", "/place")
    latitude, longitude = place(seed, kind, F.col("id"))
    found = [
        (sensor, RDF_TYPE, F.lit(f"<{SSN}Sensor>")),
        (where, RDF_TYPE, F.lit(f"<{SSN}FeatureOfInterest>")),
        (where, f"<{CT}hasStartLatitude>", latitude),
        (where, f"<{CT}hasStartLongitude>", longitude),
    ]
    for name in KINDS[kind]:
        observed = _iri(f"{kind}-", f"/{name}")
        found += [
            (sensor, f"<{SSN}observes>", observed),
            (observed, RDF_TYPE, F.lit(f"<{CT}{name}>")),
            (observed, f"<{SSN}isPropertyOf>", where),
        ]
    return found


def _event(seed: int) -> Facts:
    """Every fifth event is a library's, the others are cultural; a ticket costs 0 to 499."""
    event, node, latitude, longitude = _iri("event-"), _iri("event-", "/node"), *place(seed, "event", F.col("id"))
    kind = F.when(F.col("id") % 5 == 1, F.lit(f"<{CT}LibraryEvent>")).otherwise(F.lit(f"<{CT}CulturalEvent>"))
    title = F.concat(F.lit('"Event '), F.col("id").cast("string"), F.lit('"'))
    return [
        (event, RDF_TYPE, kind),
        (event, f"<{SAO}value>", title),
        (event, f"<{CT}hasFirstNode>", node),
        (node, f"<{CT}hasLatitude>", latitude),
        (node, f"<{CT}hasLongitude>", longitude),
        (event, f"<{CT}hasPrice>", integer(draws.below(500, seed, "price", F.col("id")))),
        (event, f"<{SSN}featureOfInterest>", _iri("event-", "/place")),
    ]


def _iri(kind: str, rest: str = "") -> Column:
    return F.concat(F.lit(f"<{CITY}{kind}"), F.col("id").cast("string"), F.lit(f"{rest}>"))
