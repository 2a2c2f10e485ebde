"""The closure under rules of facts that are valid over intervals of report indexes: bulk data and histories.

A fact is subject, predicate, object, lo, hi (first and last index, inclusive); data without time is valid from 0 to 0.
A derived fact is valid where all of its rule's body is. Facts that follow from a single fact (hierarchies, domains,
inverses) are precomputed on the driver and found in one pass; rules with joins run in semi-naive rounds, whose results
are materialised so that plans do not grow.

Rules with joins are evaluated by shape. The shape of a rule is the variables of its patterns, numbered in order; its
constants are a row in the table of the shape, so that the plan grows with the number of shapes, not of rules.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import repeat
from typing import TypeAlias

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as fn
from pyspark import StorageLevel

from streamgauge.incremental.facts.facts import HIDDEN, Facts
from streamgauge.model.algebra import Node, TriplePattern, Var
from streamgauge.model.terms import RDF_TYPE, Term
from streamgauge.reasoning import Rule, Rules
from streamgauge.reasoning.rules import LITERAL_TESTS, SAME, FactSteps, PropertyLinks, instance, is_unnamed, passes
from streamgauge.spark.intervals import TRIPLE, islands, merged

Slots = tuple[int | None, int | None, int | None]
"""The numbers of the variables at a pattern's subject, predicate and object, ``None`` for a constant."""

_Tests: TypeAlias = tuple[tuple[str, tuple[int | Term, ...]], ...]
_Key: TypeAlias = tuple[tuple[Slots, ...], Slots, _Tests]

_RULE = "rule"


@dataclass(frozen=True)
class RuleShape:
    """The rules with these variables in their body and head; ``constants`` of each rule, pattern by pattern.

    ``tests`` are of literals: a key of ``LITERAL_TESTS``, variables by number, other terms.
    """

    body: tuple[Slots, ...]
    head: Slots
    constants: tuple[tuple[tuple[Term | None, ...], ...], ...]
    tests: _Tests = ()

    def conclusions(
        self, spark: SparkSession, known: DataFrame, new: DataFrame | None, worlds: Sequence[str]
    ) -> DataFrame:
        """The facts that rules derive of known facts and, unless it is ``None``, at least one that is new.

        Columns of the facts are ``worlds`` (by which they are kept apart), the triple's and lo, hi; heads whose subject
        is a literal are left out.
        """
        # Semi-naive: a conclusion is new only if some pattern of the body matches a new fact, so each pattern in turn
        # does.
        seats: Iterable[int | None] = (None,) if new is None else range(len(self.body))
        heads = [self._heads(spark, self._joined(spark, known, new, seat, worlds), worlds) for seat in seats]
        return reduce(DataFrame.unionByName, heads)

    def _joined(
        self, spark: SparkSession, known: DataFrame, new: DataFrame | None, seat: int | None, worlds: Sequence[str]
    ) -> DataFrame:
        # The new facts begin the join: usually they are the fewest.
        order = self._order(seat or 0)
        sides = [self._matched(spark, new if new is not None and at == seat else known, at, worlds) for at in order]
        joined = reduce(lambda left, right: _join(left, right), sides)
        return reduce(DataFrame.filter, [_tested(*test) for test in self.tests], joined)

    def _order(self, first: int) -> list[int]:
        """The patterns in join order: each shares a variable with an earlier one, if possible."""
        order, left = [first], [at for at in range(len(self.body)) if at != first]
        while left:
            seen = {slot for at in order for slot in self.body[at]}
            order.append(min(left, key=lambda at: not any(slot in seen for slot in self.body[at] if slot is not None)))
            left.remove(order[-1])
        return order

    def _matched(self, spark: SparkSession, facts: DataFrame, at: int, worlds: Sequence[str]) -> DataFrame:
        """The facts that match a pattern of some rule: the rule and its variables."""
        slots = self.body[at]
        table, tests = self._table(spark, at, slots), list[Column]()
        firsts: dict[int, str] = {}
        for name, slot in zip(TRIPLE, slots, strict=True):
            if slot is None:
                tests.append(fn.col(name) == fn.col(f"c_{name}"))
            elif slot in firsts:
                tests.append(fn.col(name) == fn.col(firsts[slot]))
            else:
                firsts[slot] = name
        paired = facts.join(fn.broadcast(table), reduce(Column.__and__, tests, fn.lit(True)))
        return paired.select(
            *worlds, _RULE, *(fn.col(name).alias(f"v{slot}") for slot, name in firsts.items()), "lo", "hi"
        )

    def _heads(self, spark: SparkSession, joined: DataFrame, worlds: Sequence[str]) -> DataFrame:
        rows = joined
        if None in self.head:
            rows = joined.join(fn.broadcast(self._table(spark, len(self.body), self.head)), _RULE)
        nodes = [
            fn.col(f"c_{name}" if slot is None else f"v{slot}").alias(name)
            for name, slot in zip(TRIPLE, self.head, strict=True)
        ]
        heads = rows.select(*worlds, *nodes, "lo", "hi")
        if self.head[0] is not None:
            heads = heads.filter(~fn.col("subject").startswith('"'))
        if self.head[1] is not None:
            heads = heads.filter(fn.col("predicate").startswith("<"))
        if self.head[1] is not None or any(row[-1][1] == SAME for row in self.constants):
            # That a node is the same as itself follows for every node and tells nothing.
            heads = heads.filter((fn.col("predicate") != SAME) | (fn.col("subject") != fn.col("object")))
        return heads

    def _table(self, spark: SparkSession, at: int, slots: Slots) -> DataFrame:
        """The constants of a pattern (``c_subject`` ...) of each rule of this shape; the head is the last pattern."""
        rows = [constants[at] for constants in self.constants]
        columns = {_RULE: pa.array(range(len(rows)), pa.int32())}
        for index, (name, slot) in enumerate(zip(TRIPLE, slots, strict=True)):
            if slot is None:
                columns[f"c_{name}"] = pa.array([row[index] for row in rows], pa.string())
        return spark.createDataFrame(pa.table(columns))


def shapes(rules: Iterable[Rule]) -> list[RuleShape]:
    """The rules by their shapes; ValueError for a path as predicate or a head's variable that is not in the body."""
    constants_by_shape: dict[_Key, list[tuple[tuple[Term | None, ...], ...]]] = {}
    for rule in rules:
        numbers: dict[Var, int] = {}
        patterns = (*rule.body, rule.head)
        slots = [_slots(pattern, numbers) for pattern in patterns]
        constants = tuple(tuple(None if isinstance(n, Var) else n for n in _nodes(pattern)) for pattern in patterns)
        *body, head = slots
        if any(slot is not None and not any(slot in slots for slots in body) for slot in head):
            raise ValueError(
                f"the rule of {rule.axiom or rule.head} has a variable in its head that is not in its body"
            )
        tests = tuple((test.kind, tuple(_place(node, numbers) for node in test.nodes)) for test in rule.tests)
        constants_by_shape.setdefault((tuple(body), head, tests), []).append(constants)
    return [
        RuleShape(body, head, tuple(dict.fromkeys(rows)), tests)
        for (body, head, tests), rows in constants_by_shape.items()
    ]


def _place(node: Node, numbers: dict[Var, int]) -> int | Term:
    """A node of a test: the number of its variable, or the term."""
    return numbers[node] if isinstance(node, Var) else node


def _tested(kind: str, nodes: Sequence[int | Term]) -> Column:
    """A test of literals over the variables' columns; Python decides it."""
    holds = LITERAL_TESTS[kind]

    def decide(*columns: pa.Array) -> pa.Array:
        values = iter([column.to_pylist() for column in columns])
        terms = [repeat(node, len(columns[0])) if isinstance(node, str) else next(values) for node in nodes]
        return pa.array([holds(*pair) for pair in zip(*terms, strict=True)], pa.bool_())

    return fn.arrow_udf(decide, "boolean")(*(fn.col(f"v{node}") for node in nodes if not isinstance(node, str)))


def _slots(pattern: TriplePattern, numbers: dict[Var, int]) -> Slots:
    one, two, three = (numbers.setdefault(n, len(numbers)) if isinstance(n, Var) else None for n in _nodes(pattern))
    return one, two, three


def _nodes(pattern: TriplePattern) -> Iterator[Node]:
    if not isinstance(pattern.predicate, Var | str):
        raise ValueError("a rule has no property paths")
    yield from (pattern.subject, pattern.predicate, pattern.object)


def _join(left: DataFrame, right: DataFrame) -> DataFrame:
    """The join of two patterns of a rule, over the states in which both are valid."""
    shared = [name for name in left.columns if name in right.columns and name not in ("lo", "hi")]
    renamed = right.select(*(fn.col(name).alias(f"r_{name}") for name in right.columns))
    tests = [fn.col(name) == fn.col(f"r_{name}") for name in shared]
    overlap = (fn.col("lo") <= fn.col("r_hi")) & (fn.col("r_lo") <= fn.col("hi"))
    paired = left.join(renamed, reduce(Column.__and__, tests, overlap))
    more = [name for name in right.columns if name not in left.columns]
    kept = [name for name in left.columns if name not in ("lo", "hi")]
    low, high = fn.greatest("lo", "r_lo").alias("lo"), fn.least("hi", "r_hi").alias("hi")
    return paired.select(*kept, *(fn.col(f"r_{name}").alias(name) for name in more), low, high)


CASE = "case"
"""The optional column that separates facts of different worlds."""

Tell = Callable[[int, int], None]
"""Called after each round of joins with its number and the number of new facts (with intervals) to follow."""

_ROWS = 250_000
"""Approximate number of facts per task."""

_BROUGHT = pa.list_(pa.struct([("kind", pa.string()), ("name", pa.string())]))


def entailed(spark: SparkSession, facts: DataFrame, rules: Rules, tell: Tell | None = None) -> DataFrame:
    """The closure of ``facts``: columns subject, predicate, object, lo, hi, and ``case`` if the facts have it.

    The intervals of a fact are disjoint and maximal. The facts are read three times: persist them if they are
    expensive.
    """
    worlds = [name for name in facts.columns if name == CASE]
    facts = facts.select(*worlds, *TRIPLE, "lo", "hi")
    extent = facts.agg(fn.count("*"), fn.min("lo"), fn.max("hi")).head()
    assert extent is not None
    # At a single instant, equal facts are plain duplicates: no sort by time is needed to merge them.
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
    """The facts, and those of the ontology, which are always valid, in every case."""
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
    """The identity of facts: their key columns, whether all are valid at one instant, and the number of tasks."""

    keys: tuple[str, ...]
    instant: bool
    tasks: int

    def once(self, frame: DataFrame) -> DataFrame:
        """Each fact with its maximal intervals."""
        frame = self._dealt(frame)
        return frame.dropDuplicates([*self.keys]) if self.instant else merged(frame, self.keys)

    def grown(self, known: DataFrame, data_frame: DataFrame) -> DataFrame:
        """Both once, with a column ``fresh``: whether an interval is new, or longer than the known ones."""
        # The length of a known interval shows whether the merged one has grown; -1 is shorter than any.
        old = known.withColumn("known", fn.col("hi") - fn.col("lo"))
        new = data_frame.withColumn("known", fn.lit(-1).cast(old.schema["known"].dataType))
        frame = islands(self._dealt(old.unionByName(new)), self.keys).groupBy(*self.keys, "island")
        spans = frame.agg(fn.min("lo").alias("lo"), fn.max("hi").alias("hi"), fn.max("known").alias("known"))
        return spans.select(*self.keys, "lo", "hi", (fn.col("known") < fn.col("hi") - fn.col("lo")).alias("fresh"))

    def settled(self, frame: DataFrame) -> DataFrame:
        """Compute the frame and keep it; many facts are kept on disk, so that sorting has the memory."""
        level = StorageLevel.DISK_ONLY if self.tasks > 1 else StorageLevel.MEMORY_AND_DISK
        return frame.localCheckpoint(eager=True, storageLevel=level)

    def _dealt(self, frame: DataFrame) -> DataFrame:
        return frame.repartition(self.tasks, *self.keys) if self.tasks > 1 else frame


@dataclass(frozen=True)
class _Joins:
    """The rules that join, and the consequences of their conclusions by steps."""

    shapes: list[RuleShape]
    steps: "_Steps"
    wanted: "_Wanted"

    def found(self, spark: SparkSession, known: DataFrame, new: DataFrame | None) -> DataFrame:
        """The facts that follow from known facts and, unless it is ``None``, at least one that is new."""
        worlds = [name for name in known.columns if name == CASE]
        heads = [shape.conclusions(spark, known, new, worlds) for shape in self.shapes]
        return self.steps.taken(reduce(DataFrame.unionByName, heads))


def _rounds(spark: SparkSession, base: DataFrame, joins: _Joins, apart: _Apart, tell: Tell | None) -> DataFrame:
    """The closure of the base under joins, semi-naively: each round follows only the new facts of the one before."""
    # ``None`` in the first round: all facts are new, and joining them with themselves once is enough.
    known, new, number = apart.settled(apart.once(base)), None, 0
    while True:
        number += 1
        grown = apart.settled(apart.grown(known, joins.found(spark, known, new)))
        # Facts that no body is about are in the closure but cannot take part in a further join.
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
    def of(cls, spark: SparkSession, joins: list[RuleShape]) -> "_Wanted":
        rows = {row[at][1:] for join in joins for row in join.constants for at in range(len(join.body))}
        columns = zip(*sorted(rows, key=str), strict=True)
        names = ("w_predicate", "w_object")
        table = pa.table({name: pa.array(ends, pa.string()) for name, ends in zip(names, columns, strict=True)})
        return cls(spark.createDataFrame(table))

    def among(self, frame: DataFrame) -> DataFrame:
        """The facts that a rule's body may be about."""
        tests = [fn.col(f"w_{name}").isNull() | (fn.col(name) == fn.col(f"w_{name}")) for name in TRIPLE[1:]]
        return frame.join(fn.broadcast(self.table), tests[0] & tests[1], "left_semi")


@dataclass(frozen=True)
class _Steps:
    """The consequences of one fact by rules with a single pattern in their body, as a table; ``None`` for none."""

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
        """The facts and their consequences by steps."""
        if self.table is None:
            return facts
        is_type = fn.col("predicate") == RDF_TYPE
        # What follows from a type depends on its class, what follows from any other fact on its property.
        key = fn.when(is_type, fn.concat_ws(" ", "predicate", "object")).otherwise(fn.col("predicate"))
        test = (key == fn.col("key")) & (fn.col("object").startswith('"') == fn.col("literal"))
        # A fact is a consequence of itself: one explode gives the facts and what follows.
        own = fn.array(fn.struct(fn.lit("same").alias("kind"), fn.col("predicate").alias("name")))
        brought = fn.concat(own, fn.coalesce("brought", fn.array().cast(self.table.schema["brought"].dataType)))
        paired = facts.join(fn.broadcast(self.table), test, "left")
        worlds = [name for name in facts.columns if name == CASE]
        taken_rows = paired.select(*worlds, "subject", "object", "lo", "hi", fn.explode(brought).alias("each"))
        return taken_rows.select(*worlds, *_triple(), "lo", "hi")


def _triple() -> Iterator[Column]:
    """The triple that a step gives of a subject and an object."""
    kind, name = fn.col("each.kind"), fn.col("each.name")
    forward = kind.isin("same", "subject")
    yield fn.when(forward, fn.col("subject")).otherwise(fn.col("object")).alias("subject")
    yield fn.when(kind.isin("same", "turned"), name).otherwise(RDF_TYPE).alias("predicate")
    end = fn.when(kind == "same", fn.col("object")).when(kind == "turned", fn.col("subject")).otherwise(name)
    yield end.alias("object")


def _brought(rules: Rules) -> Iterator[tuple[str, bool, list[dict[str, str]]]]:
    """The consequences of a fact by its property or class, and by whether its object is a literal."""
    single = [rule for rule in rules.rules if rule.is_step]
    steps, bodies = FactSteps(single, (), Facts()), [pattern for rule in single for pattern in rule.body]
    for pattern in dict.fromkeys(
        (body.predicate, body.object if body.predicate == RDF_TYPE else "") for body in bodies
    ):
        predicate, name = map(str, pattern)
        if predicate == RDF_TYPE:
            above = [{"kind": "subject", "name": class_.name} for class_ in steps.above[name][1:]]
            yield f"{RDF_TYPE} {name}", False, above
            continue
        link = steps.links[predicate]
        yield predicate, False, _of(link)
        yield predicate, True, _of(link.literal or link)


def _of(link: PropertyLinks) -> list[dict[str, Term]]:
    pairs = [
        *(("same", property_.name) for property_ in link.same),
        *(("turned", property_.name) for property_ in link.turned),
    ]
    members = [
        *(("subject", class_.name) for class_ in link.of_subject),
        *(("object", class_.name) for class_ in link.of_object),
    ]
    return [{"kind": kind, "name": name} for kind, name in (*pairs, *members)]
