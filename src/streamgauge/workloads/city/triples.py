"""Readings as RDF: an ssn:Observation of four triples for each value; a user's place is a node with coordinates."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from streamgauge.model.terms import RDF_TYPE, XSD
from streamgauge.workloads.arrival import numbered
from streamgauge.workloads.city.model import CITY, CT, KINDS, SAO, SSN


def stream_table(readings: DataFrame) -> DataFrame:
    """The stream table of readings (``model``), numbered by time, kind and sensor; a sensor's stream is its IRI."""
    rows = numbered(readings, "time", ("kind", "sensor", "seen", "Latitude", "Longitude"))
    found = rows.select("n", "time", "kind", "sensor", F.posexplode(_triples()).alias("position", "triple"))
    return found.select(
        _sensor("").alias("stream"),
        "time",
        F.col("n").alias("sequence"),
        "position",
        *(F.col("triple")[part].alias(part) for part in ("subject", "predicate", "object")),
    )


def degrees(count: Column) -> Column:
    """The canonical xsd:double of a number of 1/100000 degrees."""
    return decimal(count, 5)


def decimal(count: Column, places: int) -> Column:
    """The canonical xsd:double of a number of units of that decimal place, 0 or more, below 10^7."""
    whole = F.floor(count / 10**places).cast("string")
    rest = F.lpad((count % 10**places).cast("string"), places, "0")
    number = F.regexp_replace(F.concat(whole, F.lit("."), rest), r"\.?0+$", "")
    return F.concat(F.lit('"'), number, F.lit(f'"^^<{XSD}double>'))


def integer(number: Column) -> Column:
    """The canonical xsd:integer of a number."""
    return F.concat(F.lit('"'), number.cast("string"), F.lit(f'"^^<{XSD}integer>'))


def _triples() -> Column:
    """A reading's triples in order."""
    by_kind = [F.when(F.col("kind") == kind, _observations(kind)) for kind in KINDS]
    return F.coalesce(*by_kind)


def _observations(kind: str) -> Column:
    found: list[Column] = []
    for at, name in enumerate(KINDS[kind]):
        observation = _name(f"observation-{name}")
        found += [
            _triple(observation, RDF_TYPE, F.lit(f"<{SSN}Observation>")),
            _triple(observation, f"<{SSN}observedBy>", F.concat(F.lit("<"), _sensor(""), F.lit(">"))),
            _triple(observation, f"<{SSN}observedProperty>", F.concat(F.lit("<"), _sensor(f"/{name}"), F.lit(">"))),
            _triple(observation, f"<{SAO}hasValue>", _name("place") if name == "Location" else F.col("seen")[at]),
        ]
    if kind == "user":
        found += [_triple(_name("place"), f"<{CT}has{name}>", F.col(name)) for name in ("Latitude", "Longitude")]
    return F.array(*found)


def _sensor(rest: str) -> Column:
    return F.concat(F.lit(CITY), F.col("kind"), F.lit("-"), F.col("sensor").cast("string"), F.lit(rest))


def _name(what: str) -> Column:
    return F.concat(F.lit("<"), _sensor(f"/{what}-"), F.col("time").cast("string"), F.lit(">"))


def _triple(subject: Column, predicate: str, obj: Column) -> Column:
    return F.struct(subject.alias("subject"), F.lit(predicate).alias("predicate"), obj.alias("object"))
