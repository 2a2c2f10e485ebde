"""Rules that join, as Spark joins over facts with intervals: one join for all rules of a shape, the rules a table.

The shape of a rule is the variables of its patterns, numbered in order; what is constant in it is a row of its shape's
table, so that the plan grows with the shapes of an ontology's rules, never with their number.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import repeat
from typing import TypeAlias

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as fn

from streamgauge.model.algebra import Node, TriplePattern, Var
from streamgauge.model.terms import Term
from streamgauge.reasoning import Rule, literals
from streamgauge.reasoning.rules import SAME
from streamgauge.spark.intervals import TRIPLE

Slots = tuple[int | None, int | None, int | None]
"""The variables of a pattern's subject, predicate and object by number, ``None`` where there is a constant."""

_Tests: TypeAlias = tuple[tuple[str, tuple[int | Term, ...]], ...]
_Key: TypeAlias = tuple[tuple[Slots, ...], Slots, _Tests]

_RULE = "rule"


@dataclass(frozen=True)
class Shape:
    """The rules with these variables in their body and head; ``constants`` of each rule, pattern by pattern.

    ``tests`` are of literals: a function of ``reasoning.literals`` by its name, variables by number, other terms.
    """

    body: tuple[Slots, ...]
    head: Slots
    constants: tuple[tuple[tuple[Term | None, ...], ...], ...]
    tests: _Tests = ()

    def conclusions(
        self, spark: SparkSession, known: DataFrame, new: DataFrame | None, worlds: Sequence[str]
    ) -> DataFrame:
        """What the rules derive of known facts and, unless it is ``None``, at least one that is new.

        Columns of the facts are ``worlds`` (by which they are kept apart), the triple's and lo, hi; heads whose subject
        is a literal are left out.
        """
        seats: Iterable[int | None] = (None,) if new is None else range(len(self.body))
        found = [self._heads(spark, self._joined(spark, known, new, seat, worlds), worlds) for seat in seats]
        return reduce(DataFrame.unionByName, found)

    def _joined(
        self, spark: SparkSession, known: DataFrame, new: DataFrame | None, seat: int | None, worlds: Sequence[str]
    ) -> DataFrame:
        order = self._order(seat or 0)
        sides = [self._matched(spark, new if new is not None and at == seat else known, at, worlds) for at in order]
        joined = reduce(lambda left, right: _join(left, right), sides)
        return reduce(DataFrame.filter, [_tested(*test) for test in self.tests], joined)

    def _order(self, first: int) -> list[int]:
        """The patterns, each after one that it shares a variable with where there is one."""
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
        found = joined
        if None in self.head:
            found = joined.join(fn.broadcast(self._table(spark, len(self.body), self.head)), _RULE)
        nodes = [
            fn.col(f"c_{name}" if slot is None else f"v{slot}").alias(name)
            for name, slot in zip(TRIPLE, self.head, strict=True)
        ]
        heads = found.select(*worlds, *nodes, "lo", "hi")
        if self.head[0] is not None:
            heads = heads.filter(~fn.col("subject").startswith('"'))
        if self.head[1] is not None:
            heads = heads.filter(fn.col("predicate").startswith("<"))
        if self.head[1] is not None or any(row[-1][1] == SAME for row in self.constants):
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


def shapes(rules: Iterable[Rule]) -> list[Shape]:
    """The rules by their shapes; ValueError where a predicate is a path or a head's variable is not in the body."""
    found: dict[_Key, list[tuple[tuple[Term | None, ...], ...]]] = {}
    for rule in rules:
        numbers: dict[Var, int] = {}
        patterns = (*rule.body, rule.head)
        slots = [_slots(pattern, numbers) for pattern in patterns]
        constants = tuple(tuple(None if isinstance(n, Var) else n for n in _nodes(pattern)) for pattern in patterns)
        *body, head = slots
        if any(slot is not None and not any(slot in each for each in body) for slot in head):
            raise ValueError(f"the rule of {rule.axiom or rule.head} concludes about what its body does not name")
        tests = tuple((each.kind, tuple(_place(node, numbers) for node in each.nodes)) for each in rule.tests)
        found.setdefault((tuple(body), head, tests), []).append(constants)
    return [Shape(body, head, tuple(dict.fromkeys(rows)), tests) for (body, head, tests), rows in found.items()]


def _place(node: Node, numbers: dict[Var, int]) -> int | Term:
    """A node of a test: the number of its variable, or the term."""
    return numbers[node] if isinstance(node, Var) else node


def _tested(kind: str, nodes: Sequence[int | Term]) -> Column:
    """A test of literals over the variables' columns; Python decides it."""
    holds = getattr(literals, kind)

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
    """The pairs of one rule with equal variables, where both hold."""
    shared = [name for name in left.columns if name in right.columns and name not in ("lo", "hi")]
    renamed = right.select(*(fn.col(name).alias(f"r_{name}") for name in right.columns))
    tests = [fn.col(name) == fn.col(f"r_{name}") for name in shared]
    overlap = (fn.col("lo") <= fn.col("r_hi")) & (fn.col("r_lo") <= fn.col("hi"))
    paired = left.join(renamed, reduce(Column.__and__, tests, overlap))
    more = [name for name in right.columns if name not in left.columns]
    kept = [name for name in left.columns if name not in ("lo", "hi")]
    low, high = fn.greatest("lo", "r_lo").alias("lo"), fn.least("hi", "r_hi").alias("hi")
    return paired.select(*kept, *(fn.col(f"r_{name}").alias(name) for name in more), low, high)
