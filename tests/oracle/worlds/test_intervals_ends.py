"""Intervals at their ends: infinities, numbers of many digits, ends that touch, and errors by name."""

from fractions import Fraction
from math import inf

import pytest

from streamgauge.oracle.worlds import intervals
from streamgauge.oracle.worlds.intervals import (
    DECIMAL,
    DOUBLE,
    FLOAT,
    INTEGER,
    TOLERANCE,
    Interval,
    IntervalSum,
    OpenError,
    arithmetic,
    cast,
    fits,
    unary,
)
from tests.notation import term
from tests.oracle.worlds.test_intervals import compared, number


def spanning(low: int, high: int) -> Interval:
    return Interval(DOUBLE, Fraction(low), Fraction(high), Fraction(low + high, 2))


@pytest.mark.parametrize(
    ("possible", "given", "fit"),
    [
        ("INFf", "INFf", True),
        ("INFf", "-INFf", False),
        ("NaNf", "NaNf", True),
        ("NaNf", "INFf", False),
        ("INFf", "1f", False),
        ("1f", "INFf", False),
        ("1f", "1e0", True),
    ],
)
def test_an_infinity_is_itself_only(possible, given, fit):
    assert fits(number(possible), number(given)) is fit


def test_a_decimal_of_25_digits_is_cut_to_18():
    exact = Fraction(1, 10**25)
    assert intervals.own(Interval(DECIMAL, exact, exact, exact)).startswith('"0"')
    assert not intervals.representable(exact, DECIMAL)
    assert intervals.representable(Fraction(3, 8), DECIMAL)
    assert not intervals.representable(Fraction(1, 3), DECIMAL)


@pytest.mark.parametrize(("left", "right"), [("3.3e0", "-4.4e0"), ("-4.4e0", "3.3e0"), ("0.1f", "-7.7f")])
def test_the_error_of_a_sum_is_that_of_its_larger_operand(left, right):
    result, other = arithmetic("+", number(left), number(right)), arithmetic("+", number(right), number(left))
    assert result is not None
    assert result == other
    largest = max(number(left).size, number(right).size)
    assert result.high - result.low >= 2 * TOLERANCE[result.kind] * largest


def test_intervals_that_touch_may_be_equal():
    assert compared("=", spanning(1, 2), spanning(2, 3)) == (True, False)
    assert compared("!=", spanning(2, 3), spanning(1, 2)) == (True, False)
    assert compared("=", spanning(1, 2), spanning(3, 4)) == (False, False)
    assert compared("<", spanning(1, 2), spanning(2, 3)) == (True, False)
    assert compared("<=", spanning(1, 2), spanning(2, 3)) == (True, True)


def test_the_size_of_a_stored_number_is_stored():
    assert compared("=", unary("ABS", number("-0.1f")), number("0.1f")) == (True, True)
    assert compared(">", unary("ABS", number("-0.1f")), number("0.1f")) == (False, False)


def test_multiples_of_a_power_of_two_add_exactly_while_their_quotients_do():
    assert IntervalSum([number("18014398509481984e0"), number("4e0")]).total.exact
    assert not IntervalSum([number("18014398509481984e0"), number("1e0")]).total.exact


def test_numbers_that_nobody_can_bound_say_why():
    with pytest.raises(OpenError, match="beyond the range of its datatype"):
        arithmetic("*", number("1e300"), number("1e300"))


def test_a_number_as_one_of_a_wider_datatype():
    large = intervals.point(INTEGER, 2**60 + 1)
    assert intervals.promoted(large, DECIMAL) == intervals.point(DECIMAL, 2**60 + 1)
    assert intervals.promoted(intervals.point(INTEGER, -(10**400)), DOUBLE).special == -inf
    assert compared("<", number("1e300"), intervals.point(INTEGER, 10**400)) == (True, True)


@pytest.mark.parametrize(("kind", "value"), [(DOUBLE, 0.1), (FLOAT, 13421773 / 2**27)])
def test_a_decimal_cast_to_a_binary_number_is_the_nearest_one_or_itself(kind, value):
    result = cast(kind, number("0.1"))
    assert result is not None
    assert {result.low, result.high} == {Fraction(1, 10), Fraction(value)}
    assert result.value == Fraction(value)


def test_a_double_cast_to_a_decimal_may_lose_the_digits_beyond_its_18th():
    result = cast(DECIMAL, number("0.1e0"))
    assert result is not None
    assert (result.kind, result.value) == (DECIMAL, Fraction(0.1))
    assert result.high - result.low >= Fraction(1, 10**18)
    assert cast(DECIMAL, number("0.375e0")) == intervals.point(DECIMAL, Fraction(3, 8))


@pytest.mark.parametrize("bits", ["byte", "short", "int", "long"])
@pytest.mark.parametrize("sign", ["", "unsigned"])
def test_integers_of_every_length_are_integers(bits, sign):
    name = sign + bits.capitalize() if sign else bits
    result = intervals.read(f'"7"^^<http://www.w3.org/2001/XMLSchema#{name}>')
    assert result is not None
    assert (result.kind, result.value) == (INTEGER, 7)


def test_the_size_of_a_number_around_0_is_of_its_datatype():
    assert unary("ABS", spanning(-1, 3)) == Interval(DOUBLE, Fraction(0), Fraction(3), Fraction(1))


def test_decimals_add_exactly_while_their_sum_has_at_most_18_digits():
    large = "4" + "0" * 17 + ".0"
    assert IntervalSum([number(large), number("1.0")]).total.exact
    assert not IntervalSum([number(large), number("0.1")]).total.exact
    assert not IntervalSum([number(large)] * 3).total.exact


def test_an_inexact_decimal_is_sent_as_the_double_near_it():
    third = IntervalSum([number("1"), number("0"), number("0")]).average
    assert third.kind == DECIMAL
    assert fits(third, number("0.3333333333333333e0"))
    assert not fits(third, number("0.33333e0"))


def test_what_is_summed_inexactly_is_not_exact():
    assert not IntervalSum([spanning(1, 2), number("2e0")]).total.exact


def test_a_computed_float_has_the_digits_of_a_float():
    tenth = Interval(FLOAT, Fraction(1, 11), Fraction(1, 9), Fraction(1, 10))
    assert intervals.own(tenth) == term("0.1f")
