"""GROUP BY and aggregates over expanded relations, one group per report and key."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from streamgauge.model.algebra import Aggregate, Call, Group, Var
from streamgauge.model.terms import XSD, Term
from streamgauge.spark.numbers import DATA_BITS, integer_term, real_term
from streamgauge.spark.relation import Relation, column, number
from streamgauge.spark.scalars import Typed, computed, fast, value
from streamgauge.sparql.aggregates import aggregate as evaluated
from streamgauge.sparql.aggregates import concatenation

ZERO = f'"0"^^<{XSD}integer>'
_ERROR = ""  # no term is the empty string


@dataclass(frozen=True)
class Plan:
    """One aggregate: the input columns of a row, the grouped columns, and the term they give."""

    inputs: tuple[Column, ...]
    grouped: tuple[Column, ...]
    result: Column
    count: Column | None = None


def group(every: DataFrame, inner: Relation, node: Group, within: Sequence[str] = ()) -> Relation:
    """Group(keys, aggregates) of an expanded relation, apart for each value of the variables ``within``.

    Without keys there is one row for each row of ``every``: the reports (``lo``) and the columns of ``within``.
    """
    keys = [value(expression, inner).alias(column(var.name)) for var, expression in node.keys]
    plans = [(var.name, _plan(f"a{i}", aggregate, inner)) for i, (var, aggregate) in enumerate(node.aggregates)]
    parts = list(map(column, within))
    rows = inner.frame.select("lo", *parts, *keys, *(item for _, plan in plans for item in plan.inputs))
    names = [*parts, *(column(var.name) for var, _ in node.keys)]
    found = rows.groupBy("lo", *names).agg(fn.count("*").alias("rows"), *(g for _, plan in plans for g in plan.grouped))
    if not node.keys:
        found = every.join(found, ["lo", *parts], "left")
    terms = [plan.result.alias(column(name)) for name, plan in plans]
    counts = {name: plan.count for name, plan in plans if plan.count is not None}
    values = [count.alias(number(name)) for name, count in counts.items()]
    variables = (*within, *(var.name for var, _ in node.keys), *(name for name, _ in plans))
    frame = found.select("lo", fn.col("lo").alias("hi"), *names, *terms, *values)
    return Relation(frame, variables, frozenset(counts) | set(within), 1, dict.fromkeys(counts, "integer"))


def _plan(name: str, aggregate: Aggregate, inner: Relation) -> Plan:
    if aggregate.function == "COUNT":
        return _count(name, aggregate, inner)
    if aggregate.function == "SAMPLE" and aggregate.argument is not None:
        given = value(aggregate.argument, inner).alias(name)
        return Plan((given,), (fn.min(name).alias(name),), fn.col(name))
    if aggregate.function == "GROUP_CONCAT":
        return _concatenated(name, aggregate, inner)
    assert aggregate.argument is not None
    typed = fast(aggregate.argument, inner)
    if typed is None or typed.kind == "boolean":
        return _collected(name, aggregate, inner)
    if aggregate.function in ("MIN", "MAX"):
        return _extreme(name, aggregate, typed, value(aggregate.argument, inner))
    wide = typed.kind == "integer" and typed.bits > DATA_BITS
    return _collected(name, aggregate, inner) if aggregate.distinct or wide else _summed(name, aggregate, typed)


def _count(name: str, aggregate: Aggregate, inner: Relation) -> Plan:
    if aggregate.argument is not None:
        given = value(aggregate.argument, inner)
    elif aggregate.distinct:
        given = fn.struct(fn.lit(1), *(fn.col(column(variable)) for variable in shown(inner.variables)))
    else:
        given = fn.lit(1)
    counted = fn.count_distinct(fn.col(name)) if aggregate.distinct else fn.count(name)
    count = fn.coalesce(fn.col(name), fn.lit(0)).cast("bigint")
    return Plan((given.alias(name),), (counted.alias(name),), term_of_count(count), count)


def shown(variables: Iterable[str]) -> tuple[str, ...]:
    """The variables that ``*`` means: not a query's blank nodes, nor the middles of its paths (18.3.1)."""
    return tuple(name for name in variables if not name.startswith(("_:", ".")))


def term_of_count(count: Column) -> Column:
    """The term of COUNT."""
    return integer_term(count)


def _extreme(name: str, aggregate: Aggregate, typed: Typed, term: Column) -> Plan:
    """MIN or MAX of numbers of one kind: NaN is the greatest; of equal numbers the least term is taken."""
    if aggregate.function == "MIN":
        rank = [typed.column]
    elif typed.kind == "integer":
        rank = [-typed.column]
    else:
        rank = [~fn.isnan(typed.column), -typed.column]
    given = fn.when(typed.column.isNotNull(), fn.struct(*rank, term.alias("term")))
    grouped = (fn.min(name).alias(name), fn.count(name).alias(f"{name}_count"))
    result = fn.when(fn.col(f"{name}_count") == fn.col("rows"), fn.col(f"{name}.term"))
    return Plan((given.alias(name),), grouped, result)


def _summed(name: str, aggregate: Aggregate, typed: Typed) -> Plan:
    """SUM or AVG of numbers of one kind: xsd:float and xsd:double are added up in 64 bits, integers of 31 bits too."""
    grouped = (fn.sum(name).alias(f"{name}_sum"), fn.count(name).alias(f"{name}_count"))
    return Plan((typed.column.alias(name),), grouped, term_of_total(name, aggregate.function, typed.kind))


def term_of_total(name: str, function: str, kind: str) -> Column:
    """The term of SUM or AVG from the columns ``<name>_sum``, ``<name>_count`` and ``rows`` (null for no solution)."""
    total, count = fn.col(f"{name}_sum"), fn.col(f"{name}_count")
    whole = kind == "integer"
    text = integer_term(total) if whole else real_term(total.cast(kind), kind)
    terms = {"sum": text, "count": integer_term(count)}
    sum_only = Call("+", (Var("sum"), ZERO))
    last = sum_only if function == "SUM" else Call("/", (Var("sum"), Var("count")))
    result = terms["sum"] if whole and last is sum_only else computed(last, terms)
    return fn.when(fn.col("rows").isNull(), ZERO).when(count == fn.col("rows"), result)


def _collected(name: str, aggregate: Aggregate, inner: Relation) -> Plan:
    """Any aggregate of terms of any kinds, group by group."""
    once = aggregate.distinct or aggregate.function in ("MIN", "MAX")
    return _gathered(name, aggregate, inner, once, partial(aggregated, aggregate.function))


def _concatenated(name: str, aggregate: Aggregate, inner: Relation) -> Plan:
    """GROUP_CONCAT in the order of the terms: SPARQL leaves the order open."""
    return _gathered(name, aggregate, inner, aggregate.distinct, partial(concatenated, aggregate.separator))


def _gathered(
    name: str,
    aggregate: Aggregate,
    inner: Relation,
    once: bool,
    evaluate: Callable[[list[list[Term]]], list[Term | None]],
) -> Plan:
    assert aggregate.argument is not None
    given = fn.coalesce(value(aggregate.argument, inner), fn.lit(_ERROR)).alias(name)
    gathered = fn.collect_set(name) if once else fn.collect_list(name)

    def compute(groups: pa.Array) -> pa.Array:
        return pa.array(evaluate(groups.to_pylist()), pa.string())

    result = fn.arrow_udf(compute, "string")(fn.coalesce(fn.col(name), fn.array().cast("array<string>")))
    return Plan((given,), (gathered.alias(name),), result)


def concatenated(separator: str, groups: Sequence[Sequence[Term]]) -> list[Term | None]:
    """GROUP_CONCAT of each bag of terms: a simple literal; the empty string stands for an error."""
    return [concatenation([term or None for term in sorted(terms)], separator) for terms in groups]


def aggregated(function: str, groups: Sequence[Sequence[Term]]) -> list[Term | None]:
    """SUM, AVG, MIN or MAX of each bag of terms; the empty string stands for an error."""
    return [evaluated(function, [term or None for term in sorted(terms)]) for terms in groups]
