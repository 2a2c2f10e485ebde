"""What channels are due, all publications at once on Spark: where rows' intervals of states begin and end."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from streamgauge.model.algebra import Select
from streamgauge.model.report import DueReport, View
from streamgauge.model.terms import Row
from streamgauge.spark.answers import Means, answers, changes
from streamgauge.spark.intervals import TRIPLE
from streamgauge.spark.profile import Profile, profiled
from streamgauge.suites.sepbm.alike import Shape, shapes
from streamgauge.suites.sepbm.configuration import Stored
from streamgauge.suites.sepbm.contract import Due
from streamgauge.suites.sepbm.histories import standing
from streamgauge.suites.sepbm.states import in_order

Tell = Callable[[str], None]
"""Told what is done next."""


def due(
    spark: SparkSession, configuration: Stored, order: Sequence[int] = (), tell: Tell = lambda _what: None
) -> list[Due]:
    """What the channels are due, in the order in which publications took effect, that of the sequence unless given.

    Every fact gets the states in which it stands, the closure and the answers follow over intervals, and only rows
    that come or go after state 0 are collected. ValueError names what of a query Spark does not evaluate.
    """
    numbers = [0, *(each.number for each in in_order(configuration.sequence(), order))]
    tell("closure")
    facts = kept(standing(spark, configuration, order))
    try:
        profile = look(facts)
        found: dict[tuple[int, str], tuple[list[Row], list[Row]]] = defaultdict(lambda: ([], []))
        for shape in shapes(configuration):
            tell(shape.name)
            for channel, state, sign, row in _moved(spark, facts, profile, shape, len(numbers)):
                found[state, channel][sign < 0].append(row)
    finally:
        facts.unpersist()
    return [
        Due(channel, numbers[state], tuple(added), tuple(removed))
        for (state, channel), (added, removed) in sorted(found.items())
    ]


def kept(facts: DataFrame) -> DataFrame:
    """Facts computed once, ordered so that those of a class or property are found without reading the others."""
    ordered = facts.repartitionByRange("predicate", "object").sortWithinPartitions("predicate", "object")
    return ordered.persist(StorageLevel.MEMORY_AND_DISK)


def answered(spark: SparkSession, facts: DataFrame, known: Profile, form: Select) -> DataFrame:
    """The set of a query's rows in state 0, columns t0, t1, ...; ValueError names what Spark does not evaluate."""
    rows = answers(spark, stream(facts, 1), states(1), form, means=Means(known=known)).drop("report")
    return rows.toDF(*(f"t{index}" for index in range(len(rows.columns)))).distinct()


def look(facts: DataFrame) -> Profile:
    """What is known of facts whose intervals are disjoint: none is there twice in a state."""
    return replace(profiled(facts), repeated=False)


def _moved(
    spark: SparkSession, facts: DataFrame, profile: Profile, shape: Shape, count: int
) -> Iterator[tuple[str, int, int, Row]]:
    """Channel, state, sign and row of all that comes or goes after state 0, for the channels of a shape."""
    moved = changes(spark, stream(facts, count), states(count), shape.form, many=1, means=Means(known=profile))
    names = [f"t{index}" for index in range(len(moved.columns) - 2)]
    told = moved.toDF("report", "net", *names).filter("report > 0")
    if shape.value is not None:
        values = pa.table({"value": list(shape.channels), "channel": list(shape.channels.values())})
        told = told.join(fn.broadcast(spark.createDataFrame(values)), fn.col(names[-1]) == fn.col("value"))
        told = told.withColumn("channel", fn.explode("channel")).drop("value", names[-1])
    else:
        told = told.withColumn("channel", fn.lit(shape.channels[""][0]))
    found = told.toArrow()
    channel, report, net = (found.column(name).to_pylist() for name in ("channel", "report", "net"))
    terms = [found.column(name).to_pylist() for name in found.column_names if name.startswith("t")]
    rows: Iterable[Row] = zip(*terms, strict=True) if terms else iter([()] * len(net))
    yield from zip(channel, report, net, rows, strict=True)


def stream(facts: DataFrame, count: int) -> DataFrame:
    """Facts with intervals of ``count`` states as what the evaluator reads."""
    ends = fn.when(fn.col("hi") < count - 1, fn.col("hi").cast("long") + 1)
    return facts.select(fn.col("lo").cast("long").alias("time"), *TRIPLE, ends.alias("until"))


def states(count: int) -> tuple[DueReport, ...]:
    """A report for each state, of all that stands in it."""
    return tuple(DueReport(state, (View(0, state + 1, 0, state, 0),)) for state in range(count))
