"""What the stations see and in which order it arrives: other value distributions, late elements, system time."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from streamgauge.workloads import draws
from streamgauge.workloads.arrival import numbered
from streamgauge.workloads.weather.schedule import Size

_WALK_STEP = 10


def valued(observations: DataFrame, seed: int, size: Size, values: str) -> DataFrame:
    """The observations with ``value`` in tenths drawn anew: ``uniform`` whole degrees, ``normal`` or ``walk`` tenths.

    ``normal`` has its mean in the middle, a sixth of the range as deviation, and is cut at both ends; ``walk`` moves
    each station by at most one degree per observation and is reflected at both ends.
    """
    value = {"uniform": _uniform, "normal": _normal, "walk": _walk}[values](seed, size)
    return observations.withColumn("value", value.cast("long"))


def _uniform(seed: int, size: Size) -> Column:
    return (draws.below(size.high - size.low, seed, "value", F.col("station"), F.col("time")) + size.low) * 10


def _normal(seed: int, size: Size) -> Column:
    span = (size.high - size.low) * 10
    drawn = F.round(draws.normal(seed, "value", F.col("station"), F.col("time")) * (span / 6.0) + span / 2.0)
    return F.greatest(F.lit(0.0), F.least(F.lit(float(span)), drawn)).cast("long") + size.low * 10


def _walk(seed: int, size: Size) -> Column:
    span = (size.high - size.low) * 10
    start = draws.below(span + 1, seed, "start", F.col("station"))
    step = draws.below(2 * _WALK_STEP + 1, seed, "value", F.col("station"), F.col("time")) - _WALK_STEP
    path = Window.partitionBy("station").orderBy("time").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    folded = F.pmod(start + F.sum(step).over(path), F.lit(2 * span))
    return F.when(folded > span, 2 * span - folded).otherwise(folded) + size.low * 10


def arrived(observations: DataFrame, seed: int, share: float, bound: int) -> DataFrame:
    """The observations numbered by arrival: a ``share`` of them comes 1 to ``bound`` ms after its time.

    Ties go to the earlier time, then to the lower station.
    """
    late = draws.unit(seed, "late", F.col("station"), F.col("time")) < share
    delay = draws.below(max(bound, 1), seed, "delay", F.col("station"), F.col("time")) + 1
    rows = observations.withColumn("arrival", F.col("time") + F.when(late, delay).otherwise(F.lit(0)))
    return numbered(rows, "arrival", ("time", "station")).select("n", "station", "time", "value")
