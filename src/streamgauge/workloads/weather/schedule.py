"""When which station observes: YABench's SG1 rule, or arrivals it lacks; as Spark tables of observations.

An observation is (n, station, time, value): n its place in generator order, time in ms, value in tenths of a degree.
"""

from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812

from streamgauge.workloads import draws
from streamgauge.workloads import java_random as random

_LOW = (1 << 24) - 1
BURST = 10
"""A burst sends so many intervals' observations within one interval, then the station is silent for the rest."""


class Size(NamedTuple):
    """The size of a stream: stations, interval and duration in ms, temperatures from ``low`` to below ``high``."""

    stations: int
    interval: int
    duration: int
    low: int
    high: int


def regular(spark: SparkSession, seed: int, size: Size, partitions: int | None) -> DataFrame:
    """SG1: every station once an interval, from its own offset; offsets and values from one java.util.Random(seed)."""
    state, offsets = _offsets(seed, size)
    order = sorted(range(size.stations), key=offsets.__getitem__)
    times = [offsets[station] for station in order]
    runs = list(random.accepted(state, size.high - size.low, _count(times, size)))
    rows = _numbered(spark, random.Run._fields, runs, partitions).select(
        "state", "first", "start", F.explode(F.sequence(F.lit(0), F.col("length").cast("int") - 1)).alias("k")
    )
    rows = rows.select((F.col("first") + F.col("k")).alias("n"), _draw(F.col("start") + F.col("k") + 1).alias("draw"))
    rows = rows.withColumn("place", F.col("n") % size.stations)
    stations = _table(spark, ("station", "offset"), list(zip(order, times, strict=True)))
    joined = rows.join(F.broadcast(stations.withColumnRenamed("id", "place")), "place")
    return joined.select("n", "station", _time(size).alias("time"), _value(size).alias("value"))


def irregular(spark: SparkSession, seed: int, size: Size, arrival: str, partitions: int | None) -> DataFrame:
    """``poisson``: a Poisson process per station, ``interval`` ms apart on average; ``bursts``: see BURST.

    Without n and value; a station observes at most once in a ms, so a few coinciding arrivals are dropped.
    """
    width = size.interval * (BURST if arrival == "bursts" else 1)
    cells = -(-(size.duration + 1) // width)
    cell = spark.range(0, cells * size.stations, 1, partitions)
    cell = cell.select(
        (F.col("id") % size.stations).alias("station"), F.floor(F.col("id") / size.stations).alias("cell")
    )
    count = F.lit(BURST) if arrival == "bursts" else draws.poisson(seed, "count", F.col("station"), F.col("cell"))
    point = cell.withColumn("count", count).where("count > 0")
    point = point.select("station", "cell", F.explode(F.sequence(F.lit(1), F.col("count"))).alias("point"))
    place = draws.below(size.interval, seed, "place", F.col("station"), F.col("cell"), F.col("point"))
    times = point.select("station", (F.col("cell") * width + place).alias("time"))
    return times.where(F.col("time") <= size.duration).distinct()


def heavy_tailed(spark: SparkSession, seed: int, size: Size, partitions: int | None) -> DataFrame:
    """``pareto``: each station waits Pareto times with shape 2 (infinite variance), ``interval`` ms on average.

    Shape 2 needs a square root only, which is exact on every machine. Without n and value.
    """
    least = max(1, size.interval // 2)
    turns = size.duration // least + 1
    turn = spark.range(0, turns * size.stations, 1, partitions)
    turn = turn.select(F.floor(F.col("id") / turns).alias("station"), (F.col("id") % turns).alias("turn"))
    draw = (draws.bits(seed, "wait", F.col("station"), F.col("turn")) + 1) * F.lit(2.0**-53)
    wait = F.greatest(F.lit(1), F.floor(F.lit(size.interval / 2) / F.sqrt(draw)))
    first = draws.below(size.interval, seed, "place", F.col("station"))
    ordered = Window.partitionBy("station").orderBy("turn").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    time = F.sum(F.when(F.col("turn") == 0, first).otherwise(wait)).over(ordered)
    return turn.select("station", time.cast("long").alias("time")).where(F.col("time") <= size.duration)


def _offsets(seed: int, size: Size) -> tuple[int, list[int]]:
    state, offsets = random.scramble(seed), []
    for _ in range(size.stations):
        state, offset = random.next_int(state, size.interval)
        offsets.append(offset)
    return state, offsets


def _count(times: list[int], size: Size) -> int:
    """How many observations fall due up to and including the duration; the first is sent at 0 whatever its offset."""
    due = sum((size.duration - time) // size.interval + 1 for time in times if time <= size.duration)
    return max(1, due)


def _table(spark: SparkSession, names: tuple[str, ...], rows: list[tuple[int, ...]]) -> DataFrame:
    columns = [pa.array(column, pa.int64()) for column in zip(*rows, strict=True)]
    ids = pa.array(range(len(rows)), pa.int64())
    return spark.createDataFrame(pa.table([ids, *columns], names=["id", *names]))


def _numbered(spark: SparkSession, names: tuple[str, ...], rows: list[random.Run], partitions: int | None) -> DataFrame:
    """The rows in order over ``partitions`` partitions."""
    ids = spark.range(0, len(rows), 1, partitions)
    return ids.join(F.broadcast(_table(spark, names, list(map(tuple, rows)))), "id")


def _draw(step: Column) -> Column:
    """The 31-bit draw ``step`` steps from ``state``; the product in halves of 24 bits, since ANSI longs do not wrap."""
    factors, addends = random.steps(random.BLOCK)
    factor, addend = _literal(factors)[step], _literal(addends)[step]
    high, low = F.shiftright("state", 24), F.col("state").bitwiseAND(_LOW)
    factor_high, factor_low = F.shiftright(factor, 24), factor.bitwiseAND(_LOW)
    upper = (factor_high * low + factor_low * high).bitwiseAND(_LOW)
    state = (F.shiftleft(upper, 24) + factor_low * low + addend).bitwiseAND(random.MASK)
    return F.shiftright(state, 17)


def _literal(numbers: list[int]) -> Column:
    """An array constant: text that Spark folds once, instead of one expression per number."""
    return F.split(F.lit(",".join(map(str, numbers))), ",").cast("array<bigint>")


def _time(size: Size) -> Column:
    turn = F.floor(F.col("n") / size.stations) * size.interval
    return F.when(F.col("n") == 0, F.lit(0)).otherwise(F.col("offset") + turn).cast("long")


def _value(size: Size) -> Column:
    bound = size.high - size.low
    power = bound & (bound - 1) == 0
    drawn = F.shiftright(F.col("draw") * bound, 31) if power else F.col("draw") % bound
    return ((drawn + size.low) * 10).cast("long")
