"""The expressions that Spark computes itself against those of the package sparql, and numbers to terms."""

from itertools import product

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as fn

from streamgauge.model.algebra import Call, Expression, Var
from streamgauge.model.terms import XSD, Row, Term
from streamgauge.spark.relation import Relation, column, number
from streamgauge.spark.scalars import BEYOND, Typed, canonical, computable, computable_terms, exact_kind, fast, parsed
from streamgauge.sparql.expression import row_expression

REALS = ("0", "-0", "1", "0.1", "0.3", "50.1", "16777216", "16777217", "1e30", "1e-30", "INF", "-INF", "NaN", "3.4e38")
WHOLES = ("0", "1", "-7", "50", "16777217", "007", "999999999", "-999999999")
SAMPLES = {"float": REALS, "double": (*REALS, "1e300", "4.9e-324"), "integer": WHOLES}
A, B = Var("a"), Var("B")


def literal(value: str, kind: str) -> Term:
    return f'"{value}"^^<{XSD}{kind}>'


CONSTANTS = tuple(
    literal(*pair) for pair in (("50", "integer"), ("50.1", "decimal"), ("0.1", "double"), ("NaN", "float"))
)
SIGNS = ("=", "!=", "<", "<=", ">", ">=", "+", "-", "*")


def expressions() -> list[Expression]:
    plain: list[Expression] = [Call(sign, pair) for sign in SIGNS for pair in ((A, B), *((A, c) for c in CONSTANTS))]
    less, equal = Call("<", (A, B)), Call("=", (A, CONSTANTS[0]))
    logic = [Call("&&", (less, equal)), Call("||", (less, equal)), Call("!", (less,)), Call("BOUND", (B,))]
    nested = Call(">", (Call("-", (A, B)), literal("0.5", "decimal")))
    return [*plain, *logic, nested, Call("SAMETERM", (A, B))]


@pytest.mark.parametrize("kinds", list(product(SAMPLES, repeat=2)), ids="-".join)
def test_fast_is_exact(spark: SparkSession, kinds: tuple[str, str]) -> None:
    first, second = ([literal(v, kind) for v in SAMPLES[kind]] for kind in kinds)
    rows: list[Row] = [*product(first, second), (None, second[0]), (first[0], None)]
    data = pa.table({column("a"): [row[0] for row in rows], column("B"): [row[1] for row in rows]})
    frame = spark.createDataFrame(data)
    for name, kind in zip(("a", "B"), kinds, strict=True):
        frame = frame.withColumn(number(name), parsed(fn.col(column(name)), kind))
    relation = Relation(frame, ("a", "B"), frozenset(), 1, dict(zip(("a", "B"), kinds, strict=True)))
    typed = {expression: result for expression in expressions() if (result := fast(expression, relation)) is not None}
    assert len(typed) > 40
    columns = [shown(result).alias(str(index)) for index, result in enumerate(typed.values())]
    got = zip(*(list(row) for row in frame.select(*columns).collect()), strict=True)
    for expression, values in zip(typed, got, strict=True):
        assert list(values) == list(map(row_expression(expression, ("a", "B")), rows)), expression


def shown(typed: Typed) -> fn.Column:
    if typed.kind != "boolean":
        return canonical(typed)
    return fn.concat(fn.lit('"'), typed.column.cast("string"), fn.lit(f'"^^<{XSD}boolean>'))


def test_what_is_not_exact_is_left_to_python(spark: SparkSession) -> None:
    relation = Relation(spark.range(1).toDF("v_a"), ("a",), frozenset("a"), 1, {"a": "integer"})
    half = literal("0.5", "decimal")
    for expression in (
        Call("/", (A, A)),
        Call("<", (A, half)),
        Call("<", (A, '"x"')),
        Call("=", (B, A)),
        Call("ABS", (A,)),
        Call("*", (A, Call("*", (A, A)))),
        Call(">", (A, literal("9223372036854775808", "integer"))),
    ):
        assert fast(expression, relation) is None


PLAIN = {
    ("7", "integer"): True,
    ("-007", "integer"): True,
    ("999999999", "integer"): True,
    ("1000000000", "integer"): False,
    ("9223372036854775808", "integer"): False,
    ("+7", "integer"): False,
    (" 7", "integer"): False,
    ("x", "integer"): False,
    ("1.50", "float"): True,
    ("-.5e-3", "double"): True,
    ("NaN", "double"): True,
    ("-INF", "float"): True,
    ("1.5f", "float"): False,
    ("Infinity", "double"): False,
    ("nan", "double"): False,
    (" 1", "double"): False,
}
"""Text and datatype of a number, and whether Spark computes with it."""


def test_spark_computes_with_plain_numbers_only(spark: SparkSession) -> None:
    """Others of the datatype, too great for 63 bits after some steps or no values at all, are Python's."""
    terms = {pair: literal(*pair) for pair in PLAIN}
    data = pa.table({"o": list(terms.values()), "kind": [kind for _, kind in terms]})
    kinds = sorted({kind for _, kind in PLAIN})
    of_kind = (fn.when(fn.col("kind") == kind, computable(fn.col("o"), kind)) for kind in kinds)
    result = spark.createDataFrame(data).select(fn.coalesce(*of_kind)).collect()
    assert {pair: row[0] for pair, row in zip(terms, result, strict=True)} == PLAIN
    for (_, kind), term, computed in zip(terms, terms.values(), PLAIN.values(), strict=True):
        assert exact_kind(term) == f"{'' if computed else BEYOND}{XSD}{kind}"
        assert computable_terms(pa.chunked_array([[term]]), kind).to_pylist() == [computed]
