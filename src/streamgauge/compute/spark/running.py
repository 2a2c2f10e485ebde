"""COUNT, SUM and AVG over many reports: running totals over the ends of intervals, never a row per report.

A group's totals change only where a solution comes (``lo``) or goes (``hi`` + 1); between two such reports they hold,
so the result is a relation over intervals again and the cost grows with the solutions, not with the reports.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as fn
from pyspark.sql.types import DecimalType

from streamgauge.compute.spark.aggregates import term_of_count, term_of_total
from streamgauge.compute.spark.relation import Relation, column, number
from streamgauge.compute.spark.scalars import Typed, fast, value
from streamgauge.model.algebra import Aggregate, Group

INEXACT = "streamgauge: running totals are not exact enough here"
"""In the message of the error that a job fails with when rounding might show; the totals then need expanding."""

_TOLERANCE = {"float": 1e-6, "double": 1e-10}
_WHOLE = float(1 << 53)
_FINITE = 1e300  # Spark has NaN above every number


@dataclass(frozen=True)
class _Total:
    """One aggregate as running totals: what a solution adds to each, and the term that the totals give."""

    name: str
    adds: dict[str, Column]
    result: Column
    count: Column | None = None
    kind: str | None = None


def running_group(spark: SparkSession, inner: Relation, node: Group, reports: int) -> Relation | None:
    """Group(keys, aggregates) over intervals, ``None`` when some aggregate has no running total."""
    totals = [_total(f"a{i}", var.name, aggregate, inner) for i, (var, aggregate) in enumerate(node.aggregates)]
    if any(total is None for total in totals):
        return None
    known = [total for total in totals if total is not None]
    keys = [value(expression, inner).alias(column(var.name)) for var, expression in node.keys]
    names = [column(var.name) for var, _ in node.keys]
    frame = _held(_events(spark, inner, keys, known), names, reports)
    frame = frame.filter(fn.col("rows") > 0) if names else frame.withColumn("rows", fn.nullif("rows", fn.lit(0)))
    counts = {total.name: total.count for total in known if total.count is not None}
    terms = [_checked(total).alias(column(total.name)) for total in known]
    numbers = [count.alias(number(name)) for name, count in counts.items()]
    variables = (*(var.name for var, _ in node.keys), *(total.name for total in known))
    frame = frame.select("lo", "hi", *names, *terms, *numbers)
    return Relation(frame, variables, frozenset(counts), reports, dict.fromkeys(counts, "integer"))


def _total(prefix: str, name: str, aggregate: Aggregate, inner: Relation) -> _Total | None:
    if aggregate.distinct or aggregate.function not in ("COUNT", "SUM", "AVG"):
        return None
    if aggregate.function == "COUNT":
        given = fn.lit(1) if aggregate.argument is None else value(aggregate.argument, inner).isNotNull().cast("int")
        count = fn.coalesce(fn.col(f"{prefix}_count"), fn.lit(0)).cast("bigint")
        return _Total(name, {f"{prefix}_count": given}, term_of_count(count), count)
    typed = fast(aggregate.argument, inner) if aggregate.argument is not None else None
    if typed is None or typed.kind == "boolean":
        return None
    return _sum(prefix, name, aggregate, typed)


def _sum(prefix: str, name: str, aggregate: Aggregate, typed: Typed) -> _Total:
    """The sum of the numbers, exact for integers, and how many they are."""
    real = typed.kind != "integer"
    whole = typed.column.cast("double" if real else "decimal(19,0)")
    adds = {
        f"{prefix}_sum": fn.coalesce(whole, fn.lit(0)),
        f"{prefix}_count": typed.column.isNotNull().cast("int"),
    }
    result = term_of_total(prefix, aggregate.function, typed.kind)
    return _Total(name, adds, result, kind=typed.kind if real else None)


def _events(spark: SparkSession, inner: Relation, keys: Sequence[Column], totals: Sequence[_Total]) -> DataFrame:
    """What is added to and taken from each total at each report, one row per report and key."""
    adds = {name: given for total in totals for name, given in total.adds.items()}
    rows = inner.frame.select("lo", "hi", *keys, *(given.alias(name) for name, given in adds.items()))
    names = [key for key in rows.columns if key not in ("lo", "hi", *adds)]
    sizes = {f"{name}_size": fn.abs(fn.col(name)) for name in adds if name.endswith("_sum")}
    broken = {
        f"{name}_broken": (fn.col(name) != fn.rint(fn.col(name))).cast("int") for name in adds if name.endswith("_sum")
    }
    extra = [given.cast("double").alias(name) for name, given in (sizes | broken).items()]
    come = rows.select(fn.col("lo").alias("lo"), *names, *adds, fn.lit(1).alias("rows"), *extra)
    minus = [(-fn.col(name)).alias(name) for name in adds]
    go = rows.select((fn.col("hi") + 1).alias("lo"), *names, *minus, fn.lit(-1).alias("rows"), *extra)
    both = come.unionByName(go)
    if not names:
        both = both.unionByName(_zero(spark, both))
    summed = [fn.sum(name).alias(name) for name in (*adds, "rows", *sizes, *broken)]
    return both.groupBy("lo", *names).agg(*summed)


def _zero(spark: SparkSession, like: DataFrame) -> DataFrame:
    """Nothing, at the first report: without keys there is a group before the first solution."""
    kinds = [fn.lit(0).cast(field.dataType).alias(field.name) for field in like.schema.fields]
    return spark.range(1).select(*kinds)


def _held(events: DataFrame, keys: Sequence[str], reports: int) -> DataFrame:
    """Totals after each event, with the interval of reports over which they hold."""
    order = Window.partitionBy(*keys).orderBy("lo")
    so_far = order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    added = [name for name in events.columns if name not in ("lo", *keys)]
    whole = {f.name for f in events.schema.fields if isinstance(f.dataType, DecimalType)}
    totals = {name: fn.sum(name).over(so_far) for name in added}
    columns = [(t.try_cast("bigint") if name in whole else t).alias(name) for name, t in totals.items()]
    steps = fn.row_number().over(order).alias("steps")
    until = (fn.lead("lo", 1, reports).over(order) - 1).alias("hi")
    frame = events.select("lo", until, *keys, *columns, steps)
    return frame.filter((fn.col("lo") <= fn.col("hi")) & (fn.col("lo") < reports))


def _checked(total: _Total) -> Column:
    """The aggregate's term; the job fails with INEXACT where 64-bit rounding might exceed the tolerance."""
    if total.kind is None:
        return total.result
    name = next(name for name in total.adds if name.endswith("_sum"))
    size, broken = fn.col(f"{name}_size"), fn.col(f"{name}_broken")
    exact = (broken == 0) & (size < _WHOLE)
    error = size * fn.col("steps") * 2.0**-52
    bounded = error <= fn.abs(fn.col(name)) * _TOLERANCE[total.kind]
    failed = fn.raise_error(fn.lit(INEXACT)).cast("string")
    safe = fn.coalesce((size < _FINITE) & (exact | bounded), fn.lit(False))
    return fn.when(safe, total.result).otherwise(failed)
