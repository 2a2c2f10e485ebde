"""The expressions that Spark computes itself against pyoxigraph, and numbers to terms."""

from itertools import product

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as fn

from streamgauge.compute.expressions import evaluate
from streamgauge.compute.spark.numbers import parsed
from streamgauge.compute.spark.relation import Relation, column, number
from streamgauge.compute.spark.scalars import Typed, canonical, fast
from streamgauge.model.algebra import Call, Expression, Var
from streamgauge.model.terms import XSD, Row, Term

REALS = ("0", "-0", "1", "0.1", "0.3", "50.1", "16777216", "16777217", "1e30", "1e-30", "INF", "-INF", "NaN", "3.4e38")
WHOLES = ("0", "1", "-7", "50", "16777217", "9007199254740993", "9223372036854775807", "-9223372036854775808")
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
    return [*plain, *logic, nested, Call("sameTerm", (A, B))]


@pytest.mark.parametrize("kinds", list(product(SAMPLES, repeat=2)), ids="-".join)
def test_fast_is_exact(spark: SparkSession, kinds: tuple[str, str]) -> None:
    first, second = ([evaluate(literal(v, kind), (), [()])[0] for v in SAMPLES[kind]] for kind in kinds)
    rows: list[Row] = [*product(first, second), (None, second[0]), (first[0], None)]
    data = pa.table({column("a"): [row[0] for row in rows], column("B"): [row[1] for row in rows]})
    frame = spark.createDataFrame(data)
    for name, kind in zip(("a", "B"), kinds, strict=True):
        frame = frame.withColumn(number(name), parsed(fn.col(column(name)), kind))
    relation = Relation(frame, ("a", "B"), frozenset(), 1, dict(zip(("a", "B"), kinds, strict=True)))
    typed = {expression: found for expression in expressions() if (found := fast(expression, relation)) is not None}
    assert len(typed) > 40
    columns = [shown(found).alias(str(index)) for index, found in enumerate(typed.values())]
    got = zip(*(list(row) for row in frame.select(*columns).collect()), strict=True)
    for expression, values in zip(typed, got, strict=True):
        assert list(values) == evaluate(expression, ("a", "B"), rows), expression


def shown(typed: Typed) -> fn.Column:
    if typed.kind != "boolean":
        return canonical(typed)
    return fn.concat(fn.lit('"'), typed.column.cast("string"), fn.lit(f'"^^<{XSD}boolean>'))


def test_what_is_not_exact_is_left_to_pyoxigraph(spark: SparkSession) -> None:
    relation = Relation(spark.range(1).toDF("v_a"), ("a",), frozenset("a"), 1, {"a": "integer"})
    half = literal("0.5", "decimal")
    for expression in (
        Call("/", (A, A)),
        Call("<", (A, half)),
        Call("<", (A, '"x"')),
        Call("=", (B, A)),
        Call("ABS", (A,)),
    ):
        assert fast(expression, relation) is None
