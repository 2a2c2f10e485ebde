"""A configuration's facts with the publications in which they stand, explicit or closed, on Spark and as a stream.

State 0 is the base load, state k what holds after the k-th publication; ``lo`` and ``hi`` are the first and last state
of an interval. In the stream states are ms of application time, so that the common oracle judges channels as
continuous queries over landmark facts.
"""

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as fn

from streamgauge.formats.stream import elements
from streamgauge.model.element import StreamElement
from streamgauge.model.terms import Triple
from streamgauge.spark.entailment import entailed
from streamgauge.spark.intervals import TRIPLE
from streamgauge.suites.sepbm.configuration import BASE, ConfigurationError
from streamgauge.suites.sepbm.contract import Configuration
from streamgauge.suites.sepbm.states import Span, in_order, spans

STREAM = "http://ex.org/streams/publications"

_END = " ."


def history(spark: SparkSession, configuration: Configuration, order: Sequence[int] = ()) -> Iterator[StreamElement]:
    """The closure's facts as elements: those that come and go together are one, ``until`` when they go.

    ``order`` are all publications by number in the order in which they took effect, that of the sequence unless given.
    """
    table = history_table(standing(spark, configuration, order), states(configuration))
    return elements(table.orderBy("sequence", "position").toArrow())


def history_table(facts: DataFrame, last: int) -> DataFrame:
    """Facts with intervals of states as a stream table (``formats.stream``); ``last`` is the last state."""
    moment = Window.orderBy("lo", fn.desc("hi"))
    spans = facts.select("lo", "hi").distinct().withColumn("sequence", fn.row_number().over(moment).cast("long") - 1)
    within = Window.partitionBy("sequence").orderBy(*TRIPLE)
    ends = fn.when(fn.col("hi") < last, fn.col("hi").cast("long") + 1)
    return facts.join(fn.broadcast(spans), ["lo", "hi"]).select(
        fn.lit(STREAM).alias("stream"),
        fn.col("lo").cast("long").alias("time"),
        "sequence",
        (fn.row_number().over(within) - 1).alias("position"),
        *TRIPLE,
        ends.alias("until"),
    )


def states(configuration: Configuration) -> int:
    """The number of the last state: how many publications there are."""
    return sum(1 for _ in configuration.sequence())


def standing(spark: SparkSession, configuration: Configuration, order: Sequence[int] = ()) -> DataFrame:
    """The closure's facts, subject, predicate, object, lo, hi: intervals of a fact are disjoint and maximal."""
    return entailed(spark, explicit(spark, configuration, order), configuration.rules())


def explicit(spark: SparkSession, configuration: Configuration, order: Sequence[int] = ()) -> DataFrame:
    """The explicit facts with their intervals; publishing what stands and deleting what does not change nothing."""
    publications = in_order(configuration.sequence(), order)
    base = _base(spark, configuration)
    touched = dict.fromkeys(triple for each in publications for triple in (*each.added, *each.removed))
    moving = _frame(spark, touched)
    own = base.join(fn.broadcast(moving), [*TRIPLE], "left_semi").toArrow()
    there = set(zip(*(own.column(name).to_pylist() for name in TRIPLE), strict=True))
    still = base.join(fn.broadcast(moving), [*TRIPLE], "left_anti")
    always = still.select(*TRIPLE, fn.lit(0).alias("lo"), fn.lit(len(publications)).alias("hi"))
    found = spans(publications, there)
    rows = [(triple, span) for triple, listed in found.items() for span in listed]
    return always.unionByName(_frame(spark, (triple for triple, _ in rows), [span for _, span in rows]))


def _base(spark: SparkSession, configuration: Configuration) -> DataFrame:
    """The base load, a line a fact; a job on a file with another line in it fails and says which."""
    file = configuration.folder / BASE
    if not file.is_file():
        raise ConfigurationError(f"{file}: the base load is missing")
    lines = spark.read.text(str(file.resolve()), lineSep="\n")
    terms = fn.split("value", " ", 3)
    said = fn.concat(fn.lit(f"{file}: expected a canonical N-Triples line: s p o .: "), fn.col("value"))
    ends = fn.coalesce(terms.getItem(2).endswith(_END), fn.lit(False))
    end = fn.when(ends, terms.getItem(2)).otherwise(fn.raise_error(said).cast("string"))
    found = lines.select(terms.getItem(0).alias("subject"), terms.getItem(1).alias("predicate"), end.alias("object"))
    return found.withColumn("object", fn.expr(f"substring(object, 1, length(object) - {len(_END)})"))


def _frame(spark: SparkSession, triples: Iterable[Triple], found: Sequence[Span] | None = None) -> DataFrame:
    """Triples as a table, with their intervals where they are given."""
    listed = list(triples)
    columns = {name: pa.array([triple[at] for triple in listed], pa.string()) for at, name in enumerate(TRIPLE)}
    if found is not None:
        columns |= {name: pa.array([span[at] for span in found], pa.int32()) for at, name in enumerate(("lo", "hi"))}
    return spark.createDataFrame(pa.table(columns))
