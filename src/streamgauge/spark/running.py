"""GROUP BY over many reports: one sweep over the ends of intervals for each group, never a row per report.

A group changes only where a solution comes (``lo``) or goes (``hi`` + 1); between two such reports its aggregates hold,
so the result is a relation over intervals again and the cost grows with the solutions, not with the reports.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from streamgauge.model.algebra import Aggregate, Group
from streamgauge.spark.aggregates import shown, term_of_count, term_of_total
from streamgauge.spark.relation import Relation, column, number
from streamgauge.spark.scalars import fast, value
from streamgauge.spark.sweep import swept
from streamgauge.spark.tallies import Kind, groups


@dataclass(frozen=True)
class _Plan:
    """One aggregate: its kind of tally, what a solution brings (term, value), and the term of what the tally says."""

    name: str
    kind: Kind
    term: Column
    value: Column
    result: Column
    count: Column | None = None


def running_group(inner: Relation, node: Group, reports: int) -> Relation | None:
    """Group(keys, aggregates) over intervals; ``None`` when some aggregate needs every report's bag at once."""
    found = [_plan(f"a{i}", var.name, aggregate, inner) for i, (var, aggregate) in enumerate(node.aggregates)]
    plans = [plan for plan in found if plan is not None]
    if len(plans) < len(found):
        return None
    keys = [column(var.name) for var, _ in node.keys]
    given = [value(expression, inner).alias(column(var.name)) for var, expression in node.keys]
    brought = [item.alias(f"{name}{i}") for i, p in enumerate(plans) for name, item in (("t", p.term), ("v", p.value))]
    rows = inner.frame.select("lo", "hi", *brought, *given)
    sweep = partial(groups, kinds=tuple(plan.kind for plan in plans), keyed=bool(keys), reports=reports)
    said = {"lo": "int", "hi": "int"} | {k: v for i, plan in enumerate(plans) for k, v in plan.kind.columns(i).items()}
    return _relation(node, plans, swept(rows, keys, sweep, said), reports)


def _relation(node: Group, plans: Sequence[_Plan], frame: DataFrame, reports: int) -> Relation:
    for index, plan in enumerate(plans):
        if plan.kind.function == "sum":
            frame = frame.withColumn("rows", fn.col(f"a{index}_rows"))
        frame = frame.withColumn(column(plan.name), plan.result)
        if plan.count is not None:
            frame = frame.withColumn(number(plan.name), plan.count)
    counts = [plan.name for plan in plans if plan.count is not None]
    variables = (*(var.name for var, _ in node.keys), *(plan.name for plan in plans))
    kept = frame.select("lo", "hi", *map(column, variables), *map(number, counts))
    return Relation(kept, variables, frozenset(counts), reports, dict.fromkeys(counts, "integer"))


def _plan(prefix: str, name: str, aggregate: Aggregate, inner: Relation) -> _Plan | None:
    if aggregate.function == "COUNT":
        count = fn.col(f"{prefix}_count")
        term = _counted(aggregate, inner)
        kind = Kind("count", aggregate.distinct)
        return _Plan(name, kind, term, fn.lit(None).cast("string"), term_of_count(count), count)
    typed = fast(aggregate.argument, inner) if aggregate.argument is not None else None
    if typed is None or typed.kind == "boolean" or aggregate.argument is None:
        return None
    term = value(aggregate.argument, inner)
    if aggregate.function in ("MIN", "MAX"):
        kind = Kind("least" if aggregate.function == "MIN" else "greatest")
        return _Plan(name, kind, term, typed.column, fn.col(f"{prefix}_term"))
    if aggregate.function not in ("SUM", "AVG"):
        return None
    whole = typed.kind == "integer"
    kind = Kind("sum", aggregate.distinct, whole)
    result = term_of_total(prefix, aggregate.function, typed.kind)
    term = term if aggregate.distinct else fn.lit(None).cast("string")
    return _Plan(name, kind, term, typed.column.cast("bigint" if whole else "double"), result)


def _counted(aggregate: Aggregate, inner: Relation) -> Column:
    """A column that is not null for what counts: equal where DISTINCT takes two for one."""
    if aggregate.argument is not None:
        term = value(aggregate.argument, inner)
        return term if aggregate.distinct else fn.when(term.isNotNull(), fn.lit(""))
    if not aggregate.distinct:
        return fn.lit("")
    return fn.concat_ws("\n", *(fn.coalesce(inner.value(variable), fn.lit("")) for variable in shown(inner.variables)))
