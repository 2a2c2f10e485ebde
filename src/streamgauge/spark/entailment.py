"""What rules derive of facts that hold over intervals of report indexes, all at once: bulk data and histories alike.

A fact is subject, predicate, object, lo, hi (first and last index, inclusive); data without time hold from 0 to 0. A
derived fact holds where all of its rule's body does. What one fact brings by steps (hierarchies, domains, inverses) is
closed on the driver and found in one pass; rules that join go in semi-naive rounds, each of them settled, so that
plans do not grow.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as fn

from streamgauge.incremental.facts.facts import HIDDEN, Facts
from streamgauge.model.terms import RDF_TYPE, Term
from streamgauge.reasoning import Rules
from streamgauge.reasoning.rules import instance, is_unnamed, passes
from streamgauge.reasoning.steps import Link, Steps
from streamgauge.spark.horn import Shape, shapes
from streamgauge.spark.intervals import TRIPLE, islands, merged

CASE = "case"
"""A column by which facts of different worlds are kept apart, where a frame has it."""

Tell = Callable[[int, int], None]
"""Told after each round of joins: its number, and how many facts (with an interval) are new that may bring more."""

_ROWS = 250_000
"""Facts in a task, about, where there are many."""

_BROUGHT = pa.list_(pa.struct([("kind", pa.string()), ("name", pa.string())]))


def entailed(spark: SparkSession, facts: DataFrame, rules: Rules, tell: Tell | None = None) -> DataFrame:
    """The closure of ``facts``: columns subject, predicate, object, lo, hi, and ``case`` if the facts have it.

    The intervals of a fact are disjoint and maximal. The facts are read three times: persist what is dear to make.
    """
    worlds = [name for name in facts.columns if name == CASE]
    facts = facts.select(*worlds, *TRIPLE, "lo", "hi")
    extent = facts.agg(fn.count("*"), fn.min("lo"), fn.max("hi")).head()
    assert extent is not None
    apart = _Apart((*worlds, *TRIPLE), extent[1] == extent[2], extent[0] // _ROWS)
    facts = _with_stated(spark, facts, rules, worlds, (extent[1] or 0, extent[2] or 0))
    steps = _Steps.of(spark, rules)
    joins = shapes(rule for rule in rules.rules if rule.body and not rule.is_step)
    stepped = steps.taken(facts)
    if joins:
        wanted = _Wanted.of(spark, joins)
        derived = _rounds(spark, wanted.among(stepped), _Joins(joins, steps, wanted), apart, tell)
        stepped = stepped.unionByName(derived)
    return _shown(apart.once(stepped), rules)


def _with_stated(
    spark: SparkSession, facts: DataFrame, rules: Rules, worlds: list[str], span: tuple[int, int]
) -> DataFrame:
    """The facts, and those that the ontology states, which hold all the time, in every case."""
    stated = [rule for rule in rules.rules if not rule.body and passes(rule, {})]
    triples = [triple for rule in stated if (triple := instance(rule.head, {})) is not None]
    if not triples:
        return facts
    columns = {
        name: pa.array(terms, pa.string()) for name, terms in zip(TRIPLE, zip(*triples, strict=True), strict=True)
    }
    always = spark.createDataFrame(pa.table(columns))
    for name, bound in zip(("lo", "hi"), span, strict=True):
        always = always.withColumn(name, fn.lit(bound).cast(facts.schema[name].dataType))
    if worlds:
        always = facts.select(*worlds).distinct().crossJoin(fn.broadcast(always))
    return facts.unionByName(always)


def _shown(frame: DataFrame, rules: Rules) -> DataFrame:
    """Without memberships of the ontology's hidden classes."""
    if not any(is_unnamed(str(rule.head.object)) for rule in rules.rules):
        return frame
    return frame.filter(~fn.col("object").startswith(HIDDEN))


@dataclass(frozen=True)
class _Apart:
    """How facts are told from each other: their keys; whether all hold at one instant; tasks, where they are many."""

    keys: tuple[str, ...]
    instant: bool
    tasks: int

    def once(self, frame: DataFrame) -> DataFrame:
        """Each fact with its maximal intervals."""
        frame = self._dealt(frame)
        return frame.dropDuplicates([*self.keys]) if self.instant else merged(frame, self.keys)

    def grown(self, known: DataFrame, found: DataFrame) -> DataFrame:
        """Both once, with a column ``fresh``: whether an interval is new, or longer than the known ones."""
        old = known.withColumn("known", fn.col("hi") - fn.col("lo"))
        new = found.withColumn("known", fn.lit(-1).cast(old.schema["known"].dataType))
        frame = islands(self._dealt(old.unionByName(new)), self.keys).groupBy(*self.keys, "island")
        spans = frame.agg(fn.min("lo").alias("lo"), fn.max("hi").alias("hi"), fn.max("known").alias("known"))
        return spans.select(*self.keys, "lo", "hi", (fn.col("known") < fn.col("hi") - fn.col("lo")).alias("fresh"))

    def settled(self, frame: DataFrame) -> DataFrame:
        """The frame computed; many facts leave the memory to sorting, as what is kept lives as long as the closure."""
        level = StorageLevel.DISK_ONLY if self.tasks > 1 else StorageLevel.MEMORY_AND_DISK
        return frame.localCheckpoint(eager=True, storageLevel=level)

    def _dealt(self, frame: DataFrame) -> DataFrame:
        return frame.repartition(self.tasks, *self.keys) if self.tasks > 1 else frame


@dataclass(frozen=True)
class _Joins:
    """Rules that join, and what their conclusions bring."""

    shapes: list[Shape]
    steps: "_Steps"
    wanted: "_Wanted"

    def found(self, spark: SparkSession, known: DataFrame, new: DataFrame | None) -> DataFrame:
        """What follows from known facts and, unless it is ``None``, at least one that is new."""
        worlds = [name for name in known.columns if name == CASE]
        heads = [shape.conclusions(spark, known, new, worlds) for shape in self.shapes]
        return self.steps.taken(reduce(DataFrame.unionByName, heads))


def _rounds(spark: SparkSession, base: DataFrame, joins: _Joins, apart: _Apart, tell: Tell | None) -> DataFrame:
    """All that joins derive of the base, and the base; each round follows only what the one before it found."""
    known, new, number = apart.settled(apart.once(base)), None, 0
    while True:
        number += 1
        grown = apart.settled(apart.grown(known, joins.found(spark, known, new)))
        new = joins.wanted.among(grown.filter("fresh").drop("fresh"))
        known = grown.drop("fresh")
        count = new.count()
        if tell is not None:
            tell(number, count)
        if not count:
            return known


@dataclass(frozen=True)
class _Wanted:
    """Which facts the bodies of rules that join are about, as a table."""

    table: DataFrame

    @classmethod
    def of(cls, spark: SparkSession, joins: list[Shape]) -> "_Wanted":
        found = {row[at][1:] for each in joins for row in each.constants for at in range(len(each.body))}
        columns = zip(*sorted(found, key=str), strict=True)
        names = ("w_predicate", "w_object")
        table = pa.table({name: pa.array(ends, pa.string()) for name, ends in zip(names, columns, strict=True)})
        return cls(spark.createDataFrame(table))

    def among(self, frame: DataFrame) -> DataFrame:
        """Those of the facts that a rule's body may be about."""
        tests = [fn.col(f"w_{name}").isNull() | (fn.col(name) == fn.col(f"w_{name}")) for name in TRIPLE[1:]]
        return frame.join(fn.broadcast(self.table), tests[0] & tests[1], "left_semi")


@dataclass(frozen=True)
class _Steps:
    """What a fact brings by rules with one pattern in their body, as a table; ``None`` when nothing does."""

    table: DataFrame | None

    @classmethod
    def of(cls, spark: SparkSession, rules: Rules) -> "_Steps":
        rows = list(_brought(rules))
        if not rows:
            return cls(None)
        keys, literals, brought = zip(*rows, strict=True)
        columns = {"key": pa.array(keys), "literal": pa.array(literals), "brought": pa.array(brought, _BROUGHT)}
        return cls(spark.createDataFrame(pa.table(columns)))

    def taken(self, facts: DataFrame) -> DataFrame:
        """The facts, and all that each of them brings."""
        if self.table is None:
            return facts
        is_type = fn.col("predicate") == RDF_TYPE
        key = fn.when(is_type, fn.concat_ws(" ", "predicate", "object")).otherwise(fn.col("predicate"))
        test = (key == fn.col("key")) & (fn.col("object").startswith('"') == fn.col("literal"))
        own = fn.array(fn.struct(fn.lit("same").alias("kind"), fn.col("predicate").alias("name")))
        brought = fn.concat(own, fn.coalesce("brought", fn.array().cast(self.table.schema["brought"].dataType)))
        paired = facts.join(fn.broadcast(self.table), test, "left")
        worlds = [name for name in facts.columns if name == CASE]
        each = paired.select(*worlds, "subject", "object", "lo", "hi", fn.explode(brought).alias("each"))
        return each.select(*worlds, *_triple(), "lo", "hi")


def _triple() -> Iterator[Column]:
    """The triple that a step gives of a subject and an object."""
    kind, name = fn.col("each.kind"), fn.col("each.name")
    forward = kind.isin("same", "subject")
    yield fn.when(forward, fn.col("subject")).otherwise(fn.col("object")).alias("subject")
    yield fn.when(kind.isin("same", "turned"), name).otherwise(RDF_TYPE).alias("predicate")
    end = fn.when(kind == "same", fn.col("object")).when(kind == "turned", fn.col("subject")).otherwise(name)
    yield end.alias("object")


def _brought(rules: Rules) -> Iterator[tuple[str, bool, list[dict[str, str]]]]:
    """For each property, or class, whether the object is a literal, what a fact brings beside itself."""
    single = [rule for rule in rules.rules if rule.is_step]
    steps, bodies = Steps(single, (), Facts()), [pattern for rule in single for pattern in rule.body]
    for pattern in dict.fromkeys(
        (body.predicate, body.object if body.predicate == RDF_TYPE else "") for body in bodies
    ):
        predicate, name = map(str, pattern)
        if predicate == RDF_TYPE:
            above = [{"kind": "subject", "name": each.name} for each in steps.above(name)[1:]]
            yield f"{RDF_TYPE} {name}", False, above
            continue
        link = steps.link(predicate)
        yield predicate, False, _of(link)
        yield predicate, True, _of(link.literal or link)


def _of(link: Link) -> list[dict[str, Term]]:
    pairs = [*(("same", each.name) for each in link.same), *(("turned", each.name) for each in link.turned)]
    members = [
        *(("subject", each.name) for each in link.of_subject),
        *(("object", each.name) for each in link.of_object),
    ]
    return [{"kind": kind, "name": name} for kind, name in (*pairs, *members)]
