"""Expressions over a relation: as Spark columns where that is exact, else row by row in Python.

Canonical numeric terms become values by a datatype known before the query runs. An error is null, so Spark's
three-valued logic is SPARQL's. Whole numbers stay Spark's as long as their operands cannot take them beyond 63 bits:
values from data have 31 bits at most, 31 and 31 bits multiply to 62.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column
from pyspark.sql import functions as fn

from streamgauge.model.algebra import Call, Expression, Var, expression_variables
from streamgauge.model.terms import XSD, Row, Term, datatype, is_iri
from streamgauge.spark.relation import Relation, number
from streamgauge.sparql.expression import row_condition, row_expression
from streamgauge.sparql.values import INTEGER, read

SPARK_TYPES = {"integer": "bigint", "float": "float", "double": "double"}
"""The datatypes (local names in XSD) that Spark computes exactly as SPARQL does; other numbers are Python's."""

DATA_BITS = 31
"""Whole numbers from data that Spark computes with are below 10^9, and counts are below 2^31."""

_REAL = r"(?:[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?INF|NaN)"
_FORMS = {"integer": "-?[0-9]{1,9}", "float": _REAL, "double": _REAL}
BEYOND = "beyond "
"""Before the datatype's IRI: numbers of it that Spark does not compute with, or that are none."""

OTHER_KIND = "streamgauge: an object is of another datatype than the ones before it"
"""Part of the message of a job that fails because its data is no longer what its plan was compiled for."""

RANK = {kind: rank for rank, kind in enumerate(SPARK_TYPES)}


def kind_of(term: Term) -> str | None:
    """The numeric kind of a literal: a key of SPARK_TYPES, ``decimal``, or ``None``."""
    name = (datatype(term) or "").removeprefix(XSD)
    return name if name in SPARK_TYPES or name == "decimal" else None


def computable(form: Column, kind: str) -> Column:
    """Whether Spark computes with a literal like SPARQL: its form is valid, and an integer is short."""
    return form.rlike(_pattern(kind))


def computable_terms(terms: pa.ChunkedArray, kind: str) -> pa.ChunkedArray:
    """Which terms are literals of that kind that are ``computable``, in the driver."""
    return pc.and_(pc.ends_with(terms, suffix(kind)), pc.match_substring_regex(terms, _pattern(kind)))


def _pattern(kind: str) -> str:
    return f'^"{_FORMS[kind]}"'


def exact_kind(term: Term) -> str | None:
    """A literal's datatype IRI, prefixed by BEYOND if Spark cannot compute with it; ``None`` for other terms."""
    iri = datatype(term)
    kind = (iri or "").removeprefix(XSD)
    return iri if kind not in _FORMS or re.match(_pattern(kind), term) else f"{BEYOND}{iri}"


def suffix(kind: str) -> str:
    """How the canonical terms of a kind end."""
    return f'"^^<{XSD}{kind}>'


def parsed(term: Column, kind: str) -> Column:
    """The value of a term of that kind that is ``computable``."""
    return fn.substring(term, fn.lit(2), fn.length(term) - (len(suffix(kind)) + 1)).try_cast(SPARK_TYPES[kind])


def guarded(term: Column, kind: str) -> Column:
    """The value of a term that should be of that kind; a job that meets another one fails with OTHER_KIND."""
    other = fn.raise_error(fn.lit(OTHER_KIND)).cast(SPARK_TYPES[kind])
    return fn.when(term.endswith(suffix(kind)) & computable(term, kind), parsed(term, kind)).otherwise(other)


def literal(term: Term, kind: str) -> Column:
    """A canonical numeric constant as a value."""
    return fn.lit(term[1 : term.rindex('"')]).try_cast(SPARK_TYPES[kind])


def integer_term(value: Column) -> Column:
    """The canonical xsd:integer term of a whole number."""
    return fn.concat(fn.lit('"'), value.cast("string"), fn.lit(f'"^^<{XSD}integer>'))


def real_term(value: Column, kind: str) -> Column:
    """A term of that kind with the value; ``scalars.canonical`` makes its form canonical."""
    text = fn.when(value == float("inf"), "INF").when(value == float("-inf"), "-INF").otherwise(value.cast("string"))
    return fn.concat(fn.lit('"'), text, fn.lit(f'"^^<{XSD}{kind}>'))


_COMPARISONS: dict[str, Callable[[Column, Column], Column]] = {
    "=": Column.__eq__,
    "!=": Column.__ne__,
    "<": Column.__lt__,
    ">": Column.__gt__,
    "<=": Column.__le__,
    ">=": Column.__ge__,
}
_ARITHMETIC: dict[str, Callable[[Column, Column], Column]] = {
    "+": Column.__add__,
    "-": Column.__sub__,
    "*": Column.__mul__,
}
_MOST_BITS = 62


@dataclass(frozen=True)
class Typed:
    """A column whose values are all of one ``kind``: a numeric kind or ``boolean``; null is an error.

    Whole numbers have at most ``bits`` bits beside their sign.
    """

    column: Column
    kind: str
    bits: int = DATA_BITS


def condition(expression: Expression, relation: Relation) -> Column:
    """A boolean column: true if FILTER(expression) keeps the row."""
    typed = fast(expression, relation)
    if typed is not None and typed.kind == "boolean":
        return typed.column
    return _batched(expression, relation, _conditions, "boolean")


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
    return _batched(expression, relation, _terms, "string")


def computed(expression: Expression, columns: dict[str, Column]) -> Column:
    """The canonical term of an expression over named term columns (their forms need not be canonical)."""
    return _batch(expression, columns, _terms, "string")


def canonical(typed: Typed) -> Column:
    """The canonical term of a typed number."""
    if typed.kind == "integer":
        return integer_term(typed.column)
    return computed(Call(f"<{XSD}{typed.kind}>", (Var("x"),)), {"x": real_term(typed.column, typed.kind)})


def fast(expression: Expression, relation: Relation) -> Typed | None:
    """The expression as an exact Spark column, ``None`` when Spark is not exact."""
    match expression:
        case Var(name=name):
            kind = relation.numbers.get(name)
            return None if kind is None else Typed(fn.col(number(name)), kind)
        case Call("BOUND", (Var(name=name),)):
            return Typed(relation.value(name).isNotNull(), "boolean")
        case Call("SAMETERM", (Var(name=one), Var(name=other))):
            return Typed(relation.value(one) == relation.value(other), "boolean")
        # Only the same IRI equals an IRI, and comparing with one is never an error: terms suffice.
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
    # Division too is Python's: a quotient of integers is a decimal.
    if operator not in _COMPARISONS and operator not in _ARITHMETIC:
        return None
    pair = _promoted(left, right, relation)
    if pair is None:
        return None
    one, other = pair
    if operator in _COMPARISONS:
        return Typed(_compared(operator, one, other), "boolean")
    # A sum of two numbers of n bits has at most n + 1, a product the bits of both factors together.
    bits = one.bits + other.bits if operator == "*" else max(one.bits, other.bits) + 1
    if one.kind == "integer" and bits > _MOST_BITS:
        return None
    return Typed(_ARITHMETIC[operator](one.column, other.column), one.kind, bits)


def _logical(operator: str, left: Typed | None, right: Typed | None) -> Typed | None:
    if left is None or right is None or left.kind != "boolean" or right.kind != "boolean":
        return None
    both = left.column & right.column if operator == "&&" else left.column | right.column
    return Typed(both, "boolean")


def _promoted(left: Expression, right: Expression, relation: Relation) -> tuple[Typed, Typed] | None:
    """Both numbers in the wider of their kinds (SPARQL 1.1, 17.3); ``None`` unless both are known numbers."""
    sides = [fast(side, relation) for side in (left, right)]
    kinds = [typed.kind for typed in sides if typed is not None]
    if not kinds or "boolean" in kinds:
        return None
    constants = [side for side, typed in zip((left, right), sides, strict=True) if typed is None]
    if not all(isinstance(side, str) and kind_of(side) for side in constants):
        return None
    kinds += [kind for side in constants if (kind := kind_of(str(side))) in RANK]
    kind = max(kinds, key=RANK.__getitem__)
    both = [
        _constant(str(side), kind) if typed is None else Typed(typed.column.cast(_spark(kind)), kind, typed.bits)
        for side, typed in zip((left, right), sides, strict=True)
    ]
    one, other = both
    return None if one is None or other is None else (one, other)


def _spark(kind: str) -> str:
    return "bigint" if kind == "integer" else kind


def _constant(term: Term, kind: str) -> Typed | None:
    """A numeric constant promoted; ``None`` for a decimal beside an integer, and for an integer beyond 62 bits."""
    if kind_of(term) == "decimal" and kind == "integer":
        return None
    promoted = row_expression(Call(f"<{XSD}{kind}>", (term,)), ())(())
    if promoted is None:
        return None
    number = read(promoted)
    bits = number.value.bit_length() if number.kind == INTEGER else DATA_BITS
    return None if bits > _MOST_BITS else Typed(literal(promoted, kind), kind, bits)


def _compared(operator: str, left: Typed, right: Typed) -> Column:
    """A comparison as in XPath: NaN equals nothing and has no order (F&O 3.1, 4.3), unlike Spark's own."""
    plain = _COMPARISONS[operator](left.column, right.column)
    if left.kind == "integer":
        return plain
    # To Spark, NaN = NaN is true and NaN is greater than any number; in SPARQL both are false.
    either = fn.isnan(left.column) | fn.isnan(right.column)
    present = left.column.isNotNull() & right.column.isNotNull()
    return fn.when(present & either, fn.lit(operator == "!=")).otherwise(plain)


def _terms(expression: Expression, names: Sequence[str], rows: Sequence[Row]) -> list[Term | None]:
    return list(map(row_expression(expression, names), rows))


def _conditions(expression: Expression, names: Sequence[str], rows: Sequence[Row]) -> list[bool]:
    return list(map(row_condition(expression, names), rows))


Evaluate = Callable[[Expression, Sequence[str], Sequence[Row]], list[Term | None] | list[bool]]


def _batched(expression: Expression, relation: Relation, evaluate: Evaluate, result: str) -> Column:
    names = sorted(var.name for var in expression_variables(expression))
    return _batch(expression, {name: relation.value(name) for name in names}, evaluate, result)


def _batch(expression: Expression, columns: dict[str, Column], evaluate: Evaluate, result: str) -> Column:
    names = tuple(columns)
    if not names:
        # A constant: the tasks need no Python for it.
        return fn.lit(evaluate(expression, (), [()])[0]).cast(result)

    def compute(*arrays: pa.Array) -> pa.Array:
        rows = list(zip(*(array.to_pylist() for array in arrays), strict=True))
        # Rows repeat the same terms; each combination is evaluated once per batch.
        distinct = list(dict.fromkeys(rows))
        known = dict(zip(distinct, evaluate(expression, names, distinct), strict=True))
        return pa.array([known[row] for row in rows], pa.string() if result == "string" else pa.bool_())

    return fn.arrow_udf(compute, result)(*columns.values())
