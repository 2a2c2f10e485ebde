"""Which departures are on the boards, and what is said of them at each update; now and then that changes.

Each hour of a station is cut into ``per_hour`` slots with a departure in each, at a second that is drawn. Times are
ms of the stream; ``speedup`` ms of the boards go by in one of them.
"""

from typing import NamedTuple

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812

from streamgauge.workloads import draws

_HOUR = 3_600
_LATEST = 15
"""The most minutes that a departure is late from the beginning."""


class Size(NamedTuple):
    """How much there is and how fast it moves on; times in ms."""

    stations: int
    per_hour: int
    ahead: int
    update: int
    duration: int
    speedup: int
    delayed: float
    head_signs: int
    platforms: int


def departures(spark: SparkSession, seed: int, size: Size, partitions: int | None) -> DataFrame:
    """Every departure that is on a board at some update, by station and ``number``, which counts a station's from 0.

    It ``leaves`` (s), is ``late`` (min), has a ``platform``, a head ``sign`` and a ``route``.
    """
    horizon = size.duration * size.speedup + size.ahead
    each = -(-horizon * size.per_hour // (_HOUR * 1000)) + 1
    rows = spark.range(0, size.stations * each, 1, partitions)
    rows = rows.select(
        (F.col("id") % size.stations + 1).alias("station"), F.floor(F.col("id") / size.stations).alias("number")
    )
    of = (F.col("station"), F.col("number"))
    begin = F.floor(F.col("number") * _HOUR / size.per_hour)
    slot = max(1, _HOUR // size.per_hour)
    late = draws.unit(seed, "delayed", *of) < size.delayed
    found = rows.select(
        *of,
        (begin + draws.below(slot, seed, "leaves", *of) + 1).alias("leaves"),
        F.when(late, draws.below(_LATEST, seed, "delay", *of) + 1).otherwise(0).alias("late"),
        draws.below(size.platforms, seed, "platform", *of).alias("platform"),
        (draws.below(size.head_signs, seed, "head sign", *of) + 1).alias("sign"),
        (draws.below(5_000, seed, "route", *of) + 100).alias("route"),
    )
    return found.where(F.col("leaves") * 1000 <= horizon).where(_last(size) >= _first(size))


def renewed(found: DataFrame, seed: int, size: Size, changes: tuple[float, float]) -> DataFrame:
    """A row for each departure and update at which it is on the board: what it was, and ``time`` (ms).

    ``late`` and ``platform`` as they are then; ``changes``: how often the delay and the platform change per update.
    """
    rows = found.withColumn("turn", F.explode(F.sequence(_first(size), _last(size))))
    of = (F.col("station"), F.col("number"), F.col("turn"))
    step = F.when(draws.below(3, seed, "shorter", *of) == 0, -1).otherwise(1)
    so_far = Window.partitionBy("station", "number").orderBy("turn").rowsBetween(Window.unboundedPreceding, 0)
    rows = rows.withColumn("grown", _now_and_then(seed, "grown", changes[0], step))
    rows = rows.withColumn("moved", _now_and_then(seed, "moved", changes[1], F.lit(1)))
    late = F.greatest(F.lit(0), F.col("late") + F.sum("grown").over(so_far))
    platform = (F.col("platform") + F.sum("moved").over(so_far)) % size.platforms
    columns = ("station", "number", "leaves", "sign", "route")
    return rows.select(
        *columns, late.alias("late"), platform.alias("platform"), (F.col("turn") * size.update).alias("time")
    )


def _now_and_then(seed: int, what: str, often: float, step: Column) -> Column:
    of = (F.col("station"), F.col("number"), F.col("turn"))
    return F.when(draws.unit(seed, what, *of) < often, step).otherwise(0)


def _first(size: Size) -> Column:
    """The update at which a departure comes onto the board."""
    since = F.greatest(F.lit(0), F.col("leaves") * 1000 - size.ahead)
    return F.ceil(since / (size.update * size.speedup)).cast("long")


def _last(size: Size) -> Column:
    """The update at which it is on the board for the last time: before it leaves, within the stream."""
    at_most = F.lit(size.duration // size.update)
    gone = F.floor((F.col("leaves") * 1000 - 1) / (size.update * size.speedup))
    return F.least(gone, at_most).cast("long")
