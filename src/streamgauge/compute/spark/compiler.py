"""SPARQL algebra to relations: one case per operator, all reports of a run at once."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import pyarrow as pa

from streamgauge.compute.spark import relation as rel
from streamgauge.compute.spark.aggregates import group
from streamgauge.compute.spark.facts import Facts
from streamgauge.compute.spark.numbers import SPARK_TYPES
from streamgauge.compute.spark.refusal import conjuncts, negated
from streamgauge.compute.spark.relation import Relation, column, number
from streamgauge.compute.spark.running import running_group
from streamgauge.compute.spark.scalars import canonical, condition, fast, value
from streamgauge.compute.spark.stars import basic_graph_pattern
from streamgauge.model import algebra as al
from streamgauge.model.terms import Term


@dataclass(frozen=True)
class Compiler:
    """Compiles patterns over the facts of each graph (``None``: the default graph) that `reads` names.

    ``numeric`` names the variables whose values are wanted as numbers.
    From ``many`` reports on, aggregates are kept as running totals where they can be.
    """

    graphs: Mapping[Term | None, Facts]
    numeric: frozenset[str]
    many: int
    graph: Term | None = None

    @property
    def facts(self) -> Facts:
        """The facts of the graph that patterns are matched with."""
        return self.graphs[self.graph]

    def relation(self, pattern: al.Pattern) -> Relation:
        """The solutions of a pattern in all reports."""
        compilers: dict[type, Callable[[Any], Relation]] = {
            al.BGP: self._bgp,
            al.Join: self._join,
            al.LeftJoin: self._left_join,
            al.Filter: self._filter,
            al.Union: self._union,
            al.Minus: self._minus,
            al.Extend: self._extend,
            al.Values: self._values,
            al.Group: self._group,
            al.Project: self._project,
            al.Distinct: self._distinct,
            al.Graph: self._in_graph,
            al.Reduced: self._same,
            al.OrderBy: self._same,
        }
        return compilers[type(pattern)](pattern)

    def expanded(self, pattern: al.Pattern) -> Relation:
        """The solutions of a pattern, a row for each report."""
        return rel.refine(self.relation(pattern), 1)

    def _bgp(self, node: al.BGP, filtered: frozenset[str] = frozenset()) -> Relation:
        if not node.patterns:
            return self._table((), ((),))
        return basic_graph_pattern(self.facts, node.patterns, self.numeric, filtered)

    def _in_graph(self, node: al.Graph) -> Relation:
        assert isinstance(node.name, str)
        return replace(self, graph=node.name).relation(node.pattern)

    def _join(self, node: al.Join) -> Relation:
        return rel.join(self.relation(node.left), self.relation(node.right), self.facts.reports)

    def _union(self, node: al.Union) -> Relation:
        return rel.union(self.relation(node.left), self.relation(node.right))

    def _minus(self, node: al.Minus) -> Relation:
        return rel.minus(self.expanded(node.left), self.expanded(node.right), self.facts.reports)

    def _left_join(self, node: al.LeftJoin) -> Relation:
        left, right = self.expanded(node.left), self.expanded(node.right)
        if node.condition is None:
            return rel.left_join(left, right, self.facts.reports)
        both = rel.join(left, right, self.facts.reports)
        matched = both.where(condition(node.condition, both))
        return rel.union(matched, rel.kept(left, matched, "left_anti"))

    def _filter(self, node: al.Filter) -> Relation:
        parts = conjuncts(node.condition)
        names = frozenset(var.name for part in parts for var in al.expression_variables(part))
        inner = self._bgp(node.pattern, names) if isinstance(node.pattern, al.BGP) else self.relation(node.pattern)
        plain = [part for part in parts if not isinstance(negated(part) or part, al.Exists)]
        inner = reduce(lambda found, part: found.where(condition(part, found)), plain, inner)
        return reduce(self._exists, [part for part in parts if part not in plain], inner)

    def _extend(self, node: al.Extend) -> Relation:
        inner, name = self.relation(node.pattern), node.variable.name
        typed = fast(node.expression, inner)
        numbers = dict(inner.numbers)
        frame = inner.frame
        if typed is not None and typed.kind in SPARK_TYPES:
            numbers[name] = typed.kind
            frame = frame.withColumn(number(name), typed.column)
        simple = isinstance(node.expression, al.Var) or name not in numbers or typed is None
        term = value(node.expression, inner) if simple or typed is None else canonical(typed)
        frame = frame.withColumn(column(name), term)
        sure = isinstance(node.expression, str) or (
            isinstance(node.expression, al.Var) and node.expression.name in inner.certain
        )
        certain = inner.certain | {name} if sure else inner.certain
        return Relation(frame, (*inner.variables, name), certain, inner.width, numbers)

    def _values(self, node: al.Values) -> Relation:
        return self._table(tuple(var.name for var in node.variables), node.rows)

    def _group(self, node: al.Group) -> Relation:
        inner = self.relation(node.pattern)
        if inner.width > 1 and self.facts.reports >= self.many:
            running = running_group(self.facts.spark, inner, node, self.facts.reports)
            if running is not None:
                return running
        return group(self.facts.spark, rel.refine(inner, 1), node, self.facts.reports)

    def _project(self, node: al.Project) -> Relation:
        return self.relation(node.pattern).project(tuple(var.name for var in node.variables))

    def _distinct(self, node: al.Distinct) -> Relation:
        inner = self.expanded(node.pattern)
        return replace(inner, frame=inner.frame.dropDuplicates(["lo", *map(column, inner.variables)]))

    def _same(self, node: al.Reduced | al.OrderBy) -> Relation:
        return self.relation(node.pattern)

    def _table(self, variables: tuple[str, ...], rows: tuple[tuple[str | None, ...], ...]) -> Relation:
        """Rows that are solutions of every report."""
        data = {"lo": pa.array([0] * len(rows), pa.int32())}
        data["hi"] = pa.array([self.facts.reports - 1] * len(rows), pa.int32())
        for index, name in enumerate(variables):
            data[column(name)] = pa.array([row[index] for row in rows], pa.string())
        bound = frozenset(name for i, name in enumerate(variables) if all(row[i] is not None for row in rows))
        return Relation(self.facts.spark.createDataFrame(pa.table(data)), variables, bound, self.facts.reports)

    def _exists(self, outer: Relation, part: al.Expression) -> Relation:
        """The rows of ``outer`` that EXISTS or NOT EXISTS keeps."""
        exists = negated(part) or part
        assert isinstance(exists, al.Exists)
        kind = "left_semi" if exists is part else "left_anti"
        inner, conditions = exists.pattern, []
        while isinstance(inner, al.Filter):
            conditions.append(inner.condition)
            inner = inner.pattern
        left, right = rel.refine(outer, 1), self.expanded(inner)
        if not conditions:
            return rel.semi_join(left, right, self.facts.reports, kind)
        both = rel.join(left, right, self.facts.reports)
        matched = reduce(lambda found, part: found.where(condition(part, found)), conditions, both)
        return rel.kept(left, matched, kind)
