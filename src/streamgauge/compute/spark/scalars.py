"""Expressions over a relation: as Spark columns where that is exact, else in batches by pyoxigraph.

An error is null, so Spark's three-valued logic is SPARQL's.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as fn

from streamgauge.compute import expressions
from streamgauge.compute.spark.numbers import RANK, integer_term, kind_of, literal, real_term
from streamgauge.compute.spark.relation import Relation, number
from streamgauge.model.algebra import Call, Expression, Var, expression_variables
from streamgauge.model.terms import XSD, Term, is_iri

_COMPARISONS: dict[str, Callable[[Column, Column], Column]] = {
    "=": Column.__eq__,
    "!=": Column.__ne__,
    "<": Column.__lt__,
    ">": Column.__gt__,
    "<=": Column.__le__,
    ">=": Column.__ge__,
}
_REAL_ARITHMETIC: dict[str, Callable[[Column, Column], Column]] = {
    "+": Column.__add__,
    "-": Column.__sub__,
    "*": Column.__mul__,
}
_WHOLE_ARITHMETIC: dict[str, Callable[[Column, Column], Column]] = {
    "+": fn.try_add,
    "-": fn.try_subtract,
    "*": fn.try_multiply,
}


@dataclass(frozen=True)
class Typed:
    """A column whose values are all of one ``kind``: a numeric kind or ``boolean``; null is an error."""

    column: Column
    kind: str


def condition(expression: Expression, relation: Relation) -> Column:
    """A boolean column: true where FILTER(expression) keeps the row."""
    typed = fast(expression, relation)
    if typed is not None and typed.kind == "boolean":
        return typed.column
    return _batched(expression, relation, expressions.holds, "boolean")


def value(expression: Expression, relation: Relation) -> Column:
    """The canonical term of an expression; null for an error or unbound."""
    match expression:
        case Var(name=name):
            return relation.value(name)
        case str():
            return fn.lit(expression)
    typed = fast(expression, relation)
    if typed is not None and typed.kind == "integer":
        return integer_term(typed.column)
    return _batched(expression, relation, expressions.evaluate, "string")


def computed(expression: Expression, columns: dict[str, Column]) -> Column:
    """The canonical term of an expression over named term columns (their forms need not be canonical)."""
    return _batch(expression, columns, expressions.evaluate, "string")


def canonical(typed: Typed) -> Column:
    """The canonical term of a typed number."""
    if typed.kind == "integer":
        return integer_term(typed.column)
    return computed(Call(f"<{XSD}{typed.kind}>", (Var("x"),)), {"x": real_term(typed.column, typed.kind)})


def fast(expression: Expression, relation: Relation) -> Typed | None:
    """The expression as an exact Spark column, ``None`` when only pyoxigraph is exact."""
    match expression:
        case Var(name=name):
            kind = relation.numbers.get(name)
            return None if kind is None else Typed(fn.col(number(name)), kind)
        case Call("BOUND", (Var(name=name),)):
            return Typed(relation.value(name).isNotNull(), "boolean")
        case Call("sameTerm", (Var(name=one), Var(name=other))):
            return Typed(relation.value(one) == relation.value(other), "boolean")
        case Call("=" | "!=" as operator, (Var(name=name), str(term))) if is_iri(term):
            return Typed(_COMPARISONS[operator](relation.value(name), fn.lit(term)), "boolean")
        case Call("!", (argument,)):
            typed = fast(argument, relation)
            return Typed(~typed.column, "boolean") if typed is not None and typed.kind == "boolean" else None
        case Call(operator, (left, right)):
            return _binary(operator, left, right, relation)
        case _:
            return None


def _binary(operator: str, left: Expression, right: Expression, relation: Relation) -> Typed | None:
    if operator in ("&&", "||"):
        return _logical(operator, fast(left, relation), fast(right, relation))
    if operator not in _COMPARISONS and operator not in _REAL_ARITHMETIC:
        return None
    pair = _promoted(left, right, relation)
    if pair is None:
        return None
    one, other, kind, alike = pair
    if operator in _COMPARISONS:
        return Typed(_compared(operator, one, other, kind, alike), "boolean")
    arithmetic = _WHOLE_ARITHMETIC if kind == "integer" else _REAL_ARITHMETIC
    return Typed(arithmetic[operator](one, other), kind)


def _logical(operator: str, left: Typed | None, right: Typed | None) -> Typed | None:
    if left is None or right is None or left.kind != "boolean" or right.kind != "boolean":
        return None
    both = left.column & right.column if operator == "&&" else left.column | right.column
    return Typed(both, "boolean")


def _promoted(left: Expression, right: Expression, relation: Relation) -> tuple[Column, Column, str, bool] | None:
    """Both numbers in the wider of their kinds (SPARQL 1.1, 17.3), and whether these were equal.

    ``None`` unless both are known numbers.
    """
    sides = [fast(side, relation) for side in (left, right)]
    kinds = [typed.kind for typed in sides if typed is not None]
    if not kinds or "boolean" in kinds:
        return None
    constants = [side for side, typed in zip((left, right), sides, strict=True) if typed is None]
    if not all(isinstance(side, str) and kind_of(side) for side in constants):
        return None
    kinds += [kind for side in constants if (kind := kind_of(str(side))) in RANK]
    kind = max(kinds, key=RANK.__getitem__)
    columns = [
        _constant(str(side), kind) if typed is None else typed.column.cast(_spark(kind))
        for side, typed in zip((left, right), sides, strict=True)
    ]
    one, other = columns
    return None if one is None or other is None else (one, other, kind, len(set(kinds)) == 1)


def _spark(kind: str) -> str:
    return "bigint" if kind == "integer" else kind


def _constant(term: Term, kind: str) -> Column | None:
    """A numeric constant promoted by pyoxigraph; a decimal beside an integer stays with pyoxigraph."""
    if kind_of(term) == "decimal" and kind == "integer":
        return None
    promoted = expressions.evaluate(Call(f"<{XSD}{kind}>", (term,)), (), [()])[0]
    return None if promoted is None else literal(promoted, kind)


def _compared(operator: str, left: Column, right: Column, kind: str, alike: bool) -> Column:
    """A comparison where NaN equals nothing and has no order; pyoxigraph orders it with a NaN of the same kind."""
    plain = _COMPARISONS[operator](left, right)
    if kind == "integer":
        return plain
    either, both = fn.isnan(left) | fn.isnan(right), fn.isnan(left) & fn.isnan(right)
    present = left.isNotNull() & right.isNotNull()
    if operator in ("=", "!="):
        return fn.when(present & either, fn.lit(operator == "!=")).otherwise(plain)
    if not alike:
        return fn.when(~either, plain)
    return fn.when(present & both, fn.lit(operator in ("<=", ">="))).when(~either, plain)


Evaluate = Callable[[Expression, Sequence[str], Sequence[tuple[str | None, ...]]], list[str | None] | list[bool]]


def _batched(expression: Expression, relation: Relation, evaluate: Evaluate, result: str) -> Column:
    names = sorted(var.name for var in expression_variables(expression))
    return _batch(expression, {name: relation.value(name) for name in names}, evaluate, result)


def _batch(expression: Expression, columns: dict[str, Column], evaluate: Evaluate, result: str) -> Column:
    names = tuple(columns)
    if not names:
        return fn.lit(evaluate(expression, (), [()])[0]).cast(result)

    def compute(*arrays: pa.Array) -> pa.Array:
        rows = list(zip(*(array.to_pylist() for array in arrays), strict=True))
        distinct = list(dict.fromkeys(rows))
        known = dict(zip(distinct, evaluate(expression, names, distinct), strict=True))
        return pa.array([known[row] for row in rows], pa.string() if result == "string" else pa.bool_())

    return fn.arrow_udf(compute, result)(*columns.values())
