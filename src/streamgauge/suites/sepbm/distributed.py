"""A configuration's data on Spark: facts in all states, rows due to channels, the closure for selection.

State 0 is the base load, state k follows publication k; ``lo`` and ``hi`` are the first and last state of an interval.
In the stream, states are ms of application time, so that the common oracle judges channels as continuous queries over
landmark facts. Rows are due where their intervals begin and end.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as fn
from pyspark import StorageLevel

from streamgauge.formats.stream import elements
from streamgauge.model.algebra import Select
from streamgauge.model.element import StreamElement
from streamgauge.model.report import DueReport, View
from streamgauge.model.terms import Row, Term, Triple, rows_of
from streamgauge.reasoning import Rules
from streamgauge.spark.answers import ContentChoices, answers, changes
from streamgauge.spark.entailment import entailed
from streamgauge.spark.facts import Profile, profiled
from streamgauge.spark.files import LINE, location, write_lines
from streamgauge.spark.intervals import TRIPLE
from streamgauge.suites.sepbm import (
    BASE,
    STREAM,
    Configuration,
    ConfigurationError,
    DueRows,
    Span,
    in_order,
    spans,
)
from streamgauge.suites.sepbm.selection import ChannelShape, SelectionRule, shapes

_END = " ."


def history(spark: SparkSession, configuration: Configuration, order: Sequence[int] = ()) -> Iterator[StreamElement]:
    """The closure's facts as elements: those with the same interval are one, with ``until`` as its end.

    ``order`` are all publications by number in the order in which they took effect (default: that of the sequence).
    """
    table = history_table(standing(spark, configuration, order), states(configuration))
    return elements(table.orderBy("sequence", "position").toArrow())


def history_table(facts: DataFrame, last: int) -> DataFrame:
    """Facts with intervals of states as a stream table (``formats.stream``); ``last`` is the last state."""
    moment = Window.orderBy("lo", fn.desc("hi"))
    spans = facts.select("lo", "hi").distinct().withColumn("sequence", fn.row_number().over(moment).cast("long") - 1)
    within = Window.partitionBy("sequence").orderBy(*TRIPLE)
    # Facts that hold in the last state have no end: null, as in every stream table.
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
    """The number of the last state, which is the number of publications."""
    return sum(1 for _ in configuration.sequence())


def standing(spark: SparkSession, configuration: Configuration, order: Sequence[int] = ()) -> DataFrame:
    """The closure's facts, subject, predicate, object, lo, hi: intervals of a fact are disjoint and maximal."""
    return entailed(spark, explicit(spark, configuration, order), configuration.rules())


def explicit(spark: SparkSession, configuration: Configuration, order: Sequence[int] = ()) -> DataFrame:
    """The explicit facts with their intervals; publishing a known fact or deleting an unknown one has no effect."""
    publications = in_order(configuration.sequence(), order)
    base = _base(spark, configuration)
    touched = dict.fromkeys(
        triple for publication in publications for triple in (*publication.added, *publication.removed)
    )
    # The sequence touches few facts beside those of the base load, so their table is sent to every task.
    moving = _frame(spark, touched)
    own = base.join(fn.broadcast(moving), [*TRIPLE], "left_semi").toArrow()
    there = set(zip(*(own.column(name).to_pylist() for name in TRIPLE), strict=True))
    still = base.join(fn.broadcast(moving), [*TRIPLE], "left_anti")
    always = still.select(*TRIPLE, fn.lit(0).alias("lo"), fn.lit(len(publications)).alias("hi"))
    spans_by_triple = spans(publications, there)
    rows = [(triple, span) for triple, listed in spans_by_triple.items() for span in listed]
    return always.unionByName(_frame(spark, (triple for triple, _ in rows), [span for _, span in rows]))


def _base(spark: SparkSession, configuration: Configuration) -> DataFrame:
    """The base load, one line per fact; a job fails with the first line that is not a fact."""
    file = configuration.folder / BASE
    if not file.is_file():
        raise ConfigurationError(f"{file}: the base load is missing")
    lines = spark.read.text(location(file), lineSep="\n")
    # Three pieces at most: the object may contain spaces.
    terms = fn.split("value", " ", 3)
    message = fn.concat(fn.lit(f"{file}: expected a canonical N-Triples line: s p o .: "), fn.col("value"))
    ends = fn.coalesce(terms.getItem(2).endswith(_END), fn.lit(False))
    end = fn.when(ends, terms.getItem(2)).otherwise(fn.raise_error(message).cast("string"))
    triples = lines.select(terms.getItem(0).alias("subject"), terms.getItem(1).alias("predicate"), end.alias("object"))
    return triples.withColumn("object", fn.expr(f"substring(object, 1, length(object) - {len(_END)})"))


def _frame(spark: SparkSession, triples: Iterable[Triple], triple_spans: Sequence[Span] | None = None) -> DataFrame:
    """Triples as a table, with their intervals if they have any."""
    listed = list(triples)
    columns = {name: pa.array([triple[at] for triple in listed], pa.string()) for at, name in enumerate(TRIPLE)}
    if triple_spans is not None:
        columns |= {
            name: pa.array([span[at] for span in triple_spans], pa.int32()) for at, name in enumerate(("lo", "hi"))
        }
    return spark.createDataFrame(pa.table(columns))


Tell = Callable[[str], None]
"""Called with the next step."""


def due(
    spark: SparkSession, configuration: Configuration, order: Sequence[int] = (), tell: Tell = lambda _what: None
) -> list[DueRows]:
    """The rows due, in the order in which publications took effect (default: that of the sequence).

    Every fact gets the states in which it holds, closure and answers follow over intervals, and only changes after
    state 0 are collected. ValueError names a part of a query that Spark does not evaluate.
    """
    # State 0 is that of the base load, so the number of a state's publication is at the state's place.
    numbers = [0, *(publication.number for publication in in_order(configuration.sequence(), order))]
    tell("closure")
    facts = kept(standing(spark, configuration, order))
    try:
        profile = look(facts)
        rows_by_change: dict[tuple[int, str], tuple[list[Row], list[Row]]] = defaultdict(lambda: ([], []))
        for shape in shapes(configuration):
            tell(shape.name)
            for channel, state, sign, row in _moved(spark, facts, profile, shape, len(numbers)):
                rows_by_change[state, channel][sign < 0].append(row)
    finally:
        facts.unpersist()
    return [
        DueRows(channel, numbers[state], tuple(added), tuple(removed))
        for (state, channel), (added, removed) in sorted(rows_by_change.items())
    ]


def kept(facts: DataFrame) -> DataFrame:
    """Facts computed once, sorted so that those of a class or property are found without reading the others."""
    ordered = facts.repartitionByRange("predicate", "object").sortWithinPartitions("predicate", "object")
    return ordered.persist(StorageLevel.MEMORY_AND_DISK)


def answered(spark: SparkSession, facts: DataFrame, known: Profile, form: Select) -> DataFrame:
    """The distinct rows of a query in state 0, in columns t0, t1, ...; ValueError for a query that Spark cannot run."""
    rows = answers(spark, state_stream(facts, 1), state_reports(1), form, means=ContentChoices(known=known)).drop(
        "report"
    )
    return rows.toDF(*(f"t{index}" for index in range(len(rows.columns)))).distinct()


def look(facts: DataFrame) -> Profile:
    """The profile of facts with disjoint intervals: no fact is repeated within a state."""
    # The same fact in two intervals is a repetition to ``profiled``, but not within a state.
    return replace(profiled(facts), repeated=False)


def _moved(
    spark: SparkSession, facts: DataFrame, profile: Profile, shape: ChannelShape, count: int
) -> Iterator[tuple[str, int, int, Row]]:
    """Channel, state, sign and row of all changes after state 0, for the channels of a shape."""
    moved = changes(
        spark, state_stream(facts, count), state_reports(count), shape.form, many=1, means=ContentChoices(known=profile)
    )
    names = [f"t{index}" for index in range(len(moved.columns) - 2)]
    # Report 0 is the answer over the base load, which nobody is notified of.
    changed = moved.toDF("report", "net", *names).filter("report > 0")
    if shape.value is not None:
        values = pa.table({"value": list(shape.channels), "channel": list(shape.channels.values())})
        changed = changed.join(fn.broadcast(spark.createDataFrame(values)), fn.col(names[-1]) == fn.col("value"))
        # Several channels may have the same constant, and each receives the row.
        changed = changed.withColumn("channel", fn.explode("channel")).drop("value", names[-1])
    else:
        changed = changed.withColumn("channel", fn.lit(shape.channels[""][0]))
    table = changed.toArrow()
    channel, report, net = (table.column(name).to_pylist() for name in ("channel", "report", "net"))
    terms = [table.column(name).to_pylist() for name in table.column_names if name.startswith("t")]
    yield from zip(channel, report, net, rows_of(terms, len(net)), strict=True)


def state_stream(facts: DataFrame, count: int) -> DataFrame:
    """Facts with intervals of ``count`` states in the form that the evaluator reads."""
    ends = fn.when(fn.col("hi") < count - 1, fn.col("hi").cast("long") + 1)
    return facts.select(fn.col("lo").cast("long").alias("time"), *TRIPLE, ends.alias("until"))


def state_reports(count: int) -> tuple[DueReport, ...]:
    """A report for each state, over all facts that hold in it."""
    return tuple(DueReport(state, (View(0, state + 1, 0, state, 0),)) for state in range(count))


class DistributedData:
    """Facts and their closure, cached while it is open."""

    def __init__(self, spark: SparkSession, facts: DataFrame, rules: Rules) -> None:
        self._open, self._spark = ExitStack(), spark
        self._facts = self._kept(facts.persist(StorageLevel.MEMORY_AND_DISK))
        still = self._facts.select(*TRIPLE, *(fn.lit(0).alias(name) for name in ("lo", "hi")))
        self._closed = self._kept(kept(entailed(spark, still, rules)))
        self._known = look(self._closed)
        self._described = self._kept(_described(self._facts).persist())
        self.explicit, self.closure = self._facts.count(), self._closed.count()

    def _kept(self, frame: DataFrame) -> DataFrame:
        self._open.callback(frame.unpersist)
        return frame

    def answer(self, form: Select) -> "DistributedRows":
        """The distinct rows of a query; ValueError for a query that Spark cannot run."""
        rows = answered(self._spark, self._closed, self._known, form)
        return DistributedRows(self._kept(rows.persist()), self._described)

    def descriptions(self, resources: Sequence[Term]) -> dict[Term, tuple[Triple, ...]]:
        """The statements about each resource, sorted."""
        among = fn.broadcast(_among(self._spark, resources))
        table = self._facts.join(among, "subject", "left_semi").select(*TRIPLE).toArrow()
        triples_by_subject: dict[Term, list[Triple]] = {}
        for triple in sorted(zip(*(table.column(name).to_pylist() for name in TRIPLE), strict=True)):
            triples_by_subject.setdefault(triple[0], []).append(triple)
        return {term: tuple(triples) for term, triples in triples_by_subject.items()}

    def write_base(self, without: Sequence[Term], file: Path) -> None:
        """Write the facts about none of these resources as N-Triples, sorted by bytes."""
        facts = self._facts.join(fn.broadcast(_among(self._spark, without)), "subject", "left_anti")
        write_lines(facts.selectExpr(LINE), file)

    def close(self) -> None:
        """Release the cached tables."""
        self._open.close()


@dataclass(frozen=True)
class DistributedRows:
    """The distinct rows of a query; ``described`` has a column ``subject`` with the resources of statements."""

    rows: DataFrame
    described: DataFrame

    def count(self) -> int:
        """The number of distinct rows."""
        count_: int = self.rows.count()
        return count_

    def resources(self, rule: SelectionRule, seed: int, name: str, limit: int) -> list[Term]:
        """The first ``limit`` IRIs with statements, in an order drawn for the query."""
        columns = self.rows.columns if rule is SelectionRule.ANY else self.rows.columns[:1]
        named = reduce(DataFrame.unionByName, [self.rows.select(fn.col(column).alias("subject")) for column in columns])
        subjects = named.filter(_is_iri(fn.col("subject"))).distinct().join(self.described, "subject", "left_semi")
        return _drawn(subjects, seed, name, limit)

    def values(self, other_than: Term | None, seed: int, name: str, limit: int) -> list[Term]:
        """The first ``limit`` terms of the last column, in an order drawn by seed and name."""
        values = self.rows.select(self.rows.columns[-1]).distinct()
        if other_than is not None:
            values = values.filter(fn.col(values.columns[0]) != other_than)
        return _drawn(values, seed, name, limit)


def _drawn(terms: DataFrame, seed: int, name: str, limit: int) -> list[Term]:
    """The first ``limit`` of the distinct terms of a one-column frame, in an order drawn by seed and name.

    The order is that of ``workloads.draws.text_bits``, then of the terms.
    """
    (column,) = terms.columns
    # The same 53 bits as in ``text_bits``: both generators draw the same terms.
    hashed = fn.xxhash64(fn.lit(seed), fn.lit(f"sepbm {name}"), column)
    ordered = terms.orderBy(fn.shiftrightunsigned(hashed, 11), column).limit(limit)
    terms_drawn: list[Term] = ordered.toArrow().column(column).to_pylist()
    return terms_drawn


def _is_iri(column: Column) -> Column:
    # Triple terms begin with two.
    return column.startswith("<") & ~column.startswith("<<")


def _described(facts: DataFrame) -> DataFrame:
    """The subjects of statements without blank nodes, which would be other nodes after publication."""
    blank = fn.max(fn.col("object").startswith("_:"))
    return facts.groupBy("subject").agg(blank.alias("blank")).filter("not blank").select("subject")


def _among(spark: SparkSession, resources: Sequence[Term]) -> DataFrame:
    """The resources as a column ``subject``."""
    return spark.createDataFrame(pa.table({"subject": pa.array(resources, pa.string())}))
