"""Interval arithmetic: what is exact stays a point, what is not spans what implementations may compute."""

from collections import Counter
from fractions import Fraction
from math import inf

import pytest

from streamgauge.model.algebra import Call
from streamgauge.model.terms import XSD
from streamgauge.oracle.worlds import intervals
from streamgauge.oracle.worlds.intervals import (
    HOLDS,
    Interval,
    IntervalSum,
    OpenError,
    arithmetic,
    cast,
    signs,
    unary,
)
from streamgauge.sparql.expression import evaluate
from tests.notation import term


def compared(operator: str, left: Interval, right: Interval) -> tuple[bool, bool]:
    """Whether a comparison may hold, and whether it has to."""
    outcomes = {HOLDS[operator](sign) for sign in signs(left, right)}
    return True in outcomes, False not in outcomes


def number(text: str) -> Interval:
    result = intervals.read(term(text))
    assert result is not None
    return result


def shown(result: Interval | None) -> str:
    """``2.5 double``, or the two ends."""
    if result is None:
        return "error"
    if result.special is not None or result.exact:
        name = intervals.datatype_of(result).removeprefix(XSD)
        text = intervals.own(result)[1:].partition('"')[0]
        return (
            f"{float(text)!r} {name}".replace("inf", "INF").replace("nan", "NaN")
            if result.kind > 1
            else f"{text} {name}"
        )
    return f"{float(result.low):.12g} .. {float(result.high):.12g}"


@pytest.mark.parametrize(
    ("left", "operator", "right", "result"),
    [
        ("1", "+", "2", "3 integer"),
        ("1", "/", "4", "0.25 decimal"),
        ("1", "/", "3", "0.333333333333 .. 0.333333333333"),
        ("0.1", "+", "0.2", "0.3 decimal"),
        ("0.1e0", "-", "0.1e0", "0.0 double"),
        ("0.1e0", "/", "0.1e0", "1.0 double"),
        ("0e0", "/", "0e0", "NaN double"),
        ("1e0", "/", "0", "INF double"),
        ("-1e0", "/", "0", "-INF double"),
        ("1", "/", "0", "error"),
        ("INFf", "-", "INFf", "NaN float"),
        ("INFf", "+", "1", "INF float"),
        ("1", "/", "INFf", "0.0 float"),
        ("50e0", "*", "2", "100.0 double"),
        ("16777216f", "+", "1f", "16777049.2278 .. 16777384.7722"),
        ("16777216e0", "+", "1f", "16777217.0 double"),
        ("0.1f", "+", "0", "0.1 .. 0.10000000149"),
        ("0.1f", "*", "1e0", "0.1 .. 0.10000000149"),
        ("0.5f", "+", "0.1", "0.599994 .. 0.600006001490"),
        ("0.1e0", "*", "3", "0.2999999997 .. 0.3000000003"),
    ],
)
def test_an_operation_is_exact_where_its_result_is(left: str, operator: str, right: str, result: str) -> None:
    outcome = shown(arithmetic(operator, number(left), number(right)))
    assert outcome == result or outcome.split(" .. ")[0] == result.split(" .. ")[0]


@pytest.mark.parametrize(
    ("left", "right"), [("1e308", "1e308"), ("300000000000000000000f", "300000000000000000000f"), ("0.1e0", "INF")]
)
def test_beyond_the_range_or_beside_an_infinity_nothing_is_bounded(left: str, right: str) -> None:
    with pytest.raises(OpenError):
        arithmetic("*", number(left), number("INFf") if right == "INF" else number(right))


def test_a_division_by_what_may_be_zero_is_open() -> None:
    near = arithmetic("-", number("0.3e0"), number("0.1e0"))
    assert near is not None
    zero = arithmetic("-", near, number("0.2e0"))
    assert zero is not None
    with pytest.raises(OpenError):
        arithmetic("/", number("1"), zero)


@pytest.mark.parametrize(
    ("numbers", "total", "average"),
    [
        ("", "0 integer", "0 integer"),
        ("1 2 4", "7 integer", "2.33333333333"),
        ("1 2 3", "6 integer", "2 decimal"),
        ("0.1 0.2", "0.3 decimal", "0.15 decimal"),
        ("49f 51f", "100.0 float", "50.0 float"),
        ("49.5e0 50.5", "100.0 double", "50.0 double"),
        ("1048576e0 0.5e0 -1048576e0", "0.5 double", "0.1666666665"),
        ("16777216f 1f -16777216f", "-5.00000017", "-1.6666"),
        ("16777216f 1f", "16777049.2", "8388"),
        ("1e16 1e0 -1e16", "-5.66133814775", "-1.887"),
        ("0.1e0", "0.1", "0.1"),
        ("INFf 1", "INF float", "INF float"),
        ("INFf -INFf", "NaN float", "NaN float"),
    ],
)
def test_a_sum_is_exact_when_every_partial_sum_is(numbers: str, total: str, average: str) -> None:
    interval_sum = IntervalSum([number(text) for text in numbers.split()])
    for value, wanted in ((interval_sum.total, total), (interval_sum.average, average)):
        assert shown(value).startswith(wanted) or shown(value) == wanted


def test_a_sum_counts_how_often_a_number_comes() -> None:
    interval_sum = IntervalSum(Counter({number("0.5e0"): 3}))
    assert (interval_sum.count, shown(interval_sum.total), shown(interval_sum.average)) == (
        3,
        "1.5 double",
        "0.5 double",
    )


@pytest.mark.parametrize(
    ("left", "operator", "right", "outcome"),
    [
        ("1", "<", "2", (True, True)),
        ("2", "<=", "2", (True, True)),
        ("2", "<", "2", (False, False)),
        ("0.1f", "=", "0.1f", (True, True)),
        ("0.1f", "!=", "0.1", (False, False)),
        ("NaNf", "!=", "1", (True, True)),
        ("NaNf", "<", "1", (False, False)),
        ("INFf", ">", "1e300", (True, True)),
        ("~0.3e0", ">", "0.3", (True, False)),
        ("~0.3e0", ">=", "0.3", (True, False)),
        ("~0.3e0", "<", "0.3", (True, False)),
        ("~0.3e0", "=", "0.3", (True, False)),
        ("~0.3e0", "!=", "0.3", (True, False)),
        ("~0.3e0", "!=", "0.4", (True, True)),
        ("~0.3e0", "=", "0.4", (False, False)),
        ("~0.3e0", "<=", "0.31", (True, True)),
        ("~0.3e0", ">", "0.31", (False, False)),
    ],
)
def test_a_comparison_may_hold_and_must_hold(left: str, operator: str, right: str, outcome: tuple[bool, bool]) -> None:
    """``~x`` is computed, so within the tolerance of x."""
    first = number(left.lstrip("~"))
    if left.startswith("~"):
        computed = arithmetic("*", arithmetic("/", first, number("3")) or first, number("3"))
        assert computed is not None
        first = computed
    assert compared(operator, first, number(right)) == outcome


@pytest.mark.parametrize(
    ("function", "operand", "result"),
    [
        ("-", "2.5", "-2.5 decimal"),
        ("+", "2.5", "2.5 decimal"),
        ("ABS", "-2.5", "2.5 decimal"),
        ("CEIL", "2.1", "3 decimal"),
        ("FLOOR", "-2.1", "-3 decimal"),
        ("ROUND", "2.5", "3 decimal"),
        ("ROUND", "2.4", "2 decimal"),
        ("ROUND", "-2.5", "-2 decimal"),
        ("-", "INFf", "-INF float"),
        ("FLOOR", "INFf", "INF float"),
    ],
)
def test_functions_of_one_number(function: str, operand: str, result: str) -> None:
    assert shown(unary(function, number(operand))) == result


def test_an_interval_around_zero_has_a_size_from_zero() -> None:
    around = Interval(3, Fraction(-1), Fraction(2), Fraction(0))
    assert (unary("ABS", around).low, unary("ABS", around).high) == (0, 2)


@pytest.mark.parametrize(
    ("kind", "operand", "result"),
    [(0, "2.9", "2 integer"), (0, "-2.9", "-2 integer"), (1, "0.5e0", "0.5 decimal"), (3, "0.5f", "0.5 double"),
     (2, "0.5e0", "0.5 float"), (1, "INFf", "error"), (3, "INFf", "INF double")],
)  # fmt: skip
def test_casts(kind: int, operand: str, result: str) -> None:
    assert shown(cast(kind, number(operand))) == result


@pytest.mark.parametrize(
    "text",
    [
        *("'x'", "a", "'1e5'^^integer", "'x'^^integer", "'1_0'^^integer", "'1/2'^^decimal", "'1.5'^^integer", "true"),
        *("'1_0'^^decimal", "'1_0'^^double", "'1/2'^^float", "'1e1'^^decimal", "'1E1'^^decimal", "'1e'^^decimal"),
        *(
            "'\N{ARABIC-INDIC DIGIT ONE}'^^decimal",
            "'1\N{FULLWIDTH DIGIT TWO}'^^double",
            "'300'^^byte",
            "'INF'^^decimal",
        ),
        *("'nan'^^double", "'inf'^^float", "''^^decimal", "'1e'^^double", "'x'^^double", "'1'^^boolean", "'1'"),
    ],
)
def test_what_is_no_number(text: str) -> None:
    assert intervals.read(term(text)) is None


def test_an_interval_has_the_value_of_sparql() -> None:
    product = arithmetic("*", number("0.1e0"), number("3"))
    assert product is not None
    assert intervals.own(product) == evaluate(Call("*", (term("0.1e0"), term("3"))), {})


def test_numbers_of_great_exponents_are_read_at_once() -> None:
    assert shown(intervals.read(f'"1e999999999"^^<{XSD}double>')) == "INF double"
    assert shown(intervals.read(f'"1e-999999999"^^<{XSD}double>')) == "0.0 double"


@pytest.mark.parametrize(("power", "is_exact"), [(1, False), (999, False), (1000, True), (100_000, True)])
def test_a_literal_of_a_large_exponent_is_its_rounded_value(power: int, is_exact: bool) -> None:
    """0.1 is written with so many zeros before it; from 1000 on its exact value is no longer computed."""
    result = number(f"0.{power * '0'}1e{power}")
    assert result.value == Fraction(0.1)
    assert result.exact is is_exact


@pytest.mark.parametrize(("text", "value"), [("1e999", inf), ("-1e1000", -inf), ("1e-1000", 0), ("1e-400", 0)])
def test_a_literal_beyond_the_range_of_its_datatype(text: str, value: float) -> None:
    result = number(text)
    assert result.number == value
    assert (result.special is None) is (value == 0)
