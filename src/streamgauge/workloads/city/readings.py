"""Readings of a city that is not there: each sensor once an interval, from an offset of its own."""

from collections.abc import Mapping
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from streamgauge.workloads import draws
from streamgauge.workloads.city.triples import decimal, degrees, integer

SOUTH, WEST = 5_600_000, 1_000_000
"""The corner of the city, in 1/100000 degrees; it spreads over 0.2 degrees."""

_SPREAD = 20_000


def drawn(
    spark: SparkSession, seed: int, sensors: Mapping[str, int], interval: int, duration: int, partitions: int | None
) -> DataFrame:
    """The readings (``model``) of so many sensors of each kind, ``interval`` ms apart, up to ``duration`` ms."""
    parts = [_readings(spark, seed, kind, number, interval, duration, partitions) for kind, number in sensors.items()]
    return reduce(DataFrame.unionAll, parts)


def place(seed: int, what: str, number: Column) -> tuple[Column, Column]:
    """Where something lies: latitude and longitude as terms."""
    north = SOUTH + draws.below(_SPREAD, seed, f"{what} latitude", number)
    east = WEST + draws.below(_SPREAD, seed, f"{what} longitude", number)
    return degrees(north), degrees(east)


def _readings(
    spark: SparkSession, seed: int, kind: str, number: int, interval: int, duration: int, partitions: int | None
) -> DataFrame:
    turns = duration // interval + 1
    rows = spark.range(0, turns * number, 1, partitions)
    rows = rows.select((F.col("id") % number + 1).alias("sensor"), F.floor(F.col("id") / number).alias("turn"))
    offset = draws.below(interval, seed, f"{kind} offset", F.col("sensor"))
    rows = rows.select("sensor", "turn", (offset + F.col("turn") * interval).cast("long").alias("time"))
    nowhere = F.lit(None).cast("string")
    latitude, longitude = _walk(seed) if kind == "user" else (nowhere, nowhere)
    found = rows.select(
        F.lit(kind).alias("kind"),
        "sensor",
        "time",
        F.array(*_SEEN[kind](seed)).cast("array<string>").alias("seen"),
        latitude.alias("Latitude"),
        longitude.alias("Longitude"),
    )
    return found.where(F.col("time") <= duration)


def _below(bound: int, seed: int, what: str) -> Column:
    return draws.below(bound, seed, what, F.col("sensor"), F.col("turn"))


def _traffic(seed: int) -> list[Column]:
    speed = 10 + _below(90, seed, "speed")
    length = 300 + draws.below(2000, seed, "length", F.col("sensor"))
    vehicles = _below(40, seed, "vehicles")
    return [integer(vehicles), integer(speed), integer(F.floor(length * 36 / (speed * 10)))]


def _parking(seed: int) -> list[Column]:
    return [integer(F.greatest(F.lit(0), _below(50, seed, "vacancies") - 10))]


def _pollution(seed: int) -> list[Column]:
    return [integer(15 + F.greatest(*(_below(200, seed, gas) for gas in ("O3", "PM", "CO", "SO2", "NO2"))))]


def _weather(seed: int) -> list[Column]:
    return [decimal(_below(300, seed, "temperature"), 1), integer(_below(101, seed, "humidity")),
            decimal(_below(200, seed, "wind"), 1)]  # fmt: skip


def _nothing(_seed: int) -> list[Column]:
    """A user is only somewhere."""
    return []


def _walk(seed: int) -> tuple[Column, Column]:
    """Where a user is at a reading: anywhere in the city."""
    where = (SOUTH + _below(_SPREAD, seed, "user latitude"), WEST + _below(_SPREAD, seed, "user longitude"))
    return degrees(where[0]), degrees(where[1])


_SEEN = {
    "traffic": _traffic,
    "parking": _parking,
    "pollution": _pollution,
    "weather": _weather,
    "user": _nothing,
}
