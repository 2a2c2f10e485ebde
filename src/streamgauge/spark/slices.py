"""LIMIT and OFFSET, report by report: the rows that ORDER BY determines, or an error where SPARQL leaves them open."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as fn

from streamgauge.model import algebra as al
from streamgauge.spark.intervals import swept
from streamgauge.spark.relation import Relation, column
from streamgauge.spark.term_order import chosen, places

AMBIGUOUS = (
    "streamgauge: LIMIT or OFFSET cuts between rows that ORDER BY does not tell apart: several answers are legal"
)
"""In the message of the error that a job fails with when a legal answer might be another one."""

_OPEN = "open"


@dataclass(frozen=True)
class Parts:
    """A SELECT under LIMIT and OFFSET taken apart; ``variables`` is ``None`` without a projection."""

    pattern: al.Pattern
    variables: tuple[str, ...] | None
    keys: tuple[tuple[al.Expression, bool], ...]
    distinct: bool


def taken_apart(node: al.Slice) -> Parts:
    """The sliced pattern, from DISTINCT down to the pattern under ORDER BY."""
    inner = node.pattern
    variables: tuple[str, ...] | None = None
    keys: tuple[tuple[al.Expression, bool], ...] = ()
    distinct = isinstance(inner, al.Distinct)
    if isinstance(inner, al.Distinct | al.Reduced):
        inner = inner.pattern
    if isinstance(inner, al.Project):
        variables, inner = tuple(var.name for var in inner.variables), inner.pattern
    if isinstance(inner, al.OrderBy):
        keys, inner = inner.keys, inner.pattern
    return Parts(inner, variables, keys, distinct)


def sliced(relation: Relation, node: al.Slice, keys: Sequence[Column], within: Sequence[str] = ()) -> Relation:
    """The rows that are kept of each report (and of each value of the variables ``within``) of an expanded relation.

    ``keys`` are the terms of the ORDER BY keys, as columns over it.
    """
    parts = taken_apart(node)
    names = relation.variables if parts.variables is None else (*parts.variables, *within)
    terms = [relation.value(name).alias(f"t{index}") for index, name in enumerate(names)]
    ordered = [key.alias(f"k{index}") for index, key in enumerate(keys)]
    groups = [fn.col("lo").cast("string").alias("g"), *(fn.col(column(n)).alias(f"g{i}") for i, n in enumerate(within))]
    rows = relation.frame.select(*groups, "lo", *terms, *ordered)
    kinds = {"lo": "int", **{f"t{index}": "string" for index in range(len(names))}, _OPEN: "int"}
    found = swept(rows, rows.columns[: len(groups)], partial(_keep, node, parts, len(names)), kinds)
    failed = fn.raise_error(fn.lit(AMBIGUOUS)).cast("int")
    low = fn.when(fn.col(_OPEN) == 1, failed).otherwise(fn.col("lo"))
    chosen_terms = [fn.col(f"t{index}").alias(column(name)) for index, name in enumerate(names)]
    frame = found.select(low.alias("lo"), *chosen_terms).select("lo", fn.col("lo").alias("hi"), *map(column, names))
    return Relation(frame, names, relation.certain & set(names), 1)


def _keep(node: al.Slice, parts: Parts, width: int, listed: Iterable[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    """The rows (report, terms, whether the choice is open) that are kept of rows (report, terms, keys)."""
    given = list(listed)
    terms = [row[1 : width + 1] for row in given]
    stands = places([row[width + 1 :] for row in given], [down for _, down in parts.keys])
    found = chosen(terms, stands, parts.distinct, node.offset, node.limit)
    if found is None:
        yield *given[0][: width + 1], 1
    for index in found or ():
        yield *given[index][: width + 1], 0
