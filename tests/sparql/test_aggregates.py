"""Set functions over one group (SPARQL 1.1, 18.5.1), and the accumulators of changes that must say the same."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.incremental.aggregates import accumulator
from streamgauge.model.algebra import Aggregate, Var
from streamgauge.model.terms import XSD
from streamgauge.sparql.aggregates import aggregate, rounded
from streamgauge.sparql.values import DOUBLE, FLOAT, Value, single, written


def integer(text):
    return f'"{text}"^^<{XSD}integer>'


def decimal(text):
    return f'"{text}"^^<{XSD}decimal>'


def double(text):
    return f'"{text}"^^<{XSD}double>'


def float32(text):
    return f'"{text}"^^<{XSD}float>'


GREAT = integer(2**63 - 1)
CASES = [
    ("COUNT", [], integer(0)),
    ("COUNT", [integer(1), integer("01"), None], integer(2)),
    ("COUNT DISTINCT", [integer(1), integer("01"), decimal("1.0"), decimal("1.00"), integer(1)], integer(4)),
    ("SUM", [], integer(0)),
    ("SUM", [GREAT, integer(1)], integer(2**63)),
    ("SUM", [GREAT, GREAT, GREAT], integer(3 * (2**63 - 1))),
    ("SUM", [integer("007"), integer("-7")], integer(0)),
    ("SUM", [decimal("0.1"), decimal("0.20")], decimal("0.3")),
    ("SUM", [decimal("0.1"), GREAT], decimal("9223372036854775807.1")),
    ("SUM", [decimal("0." + "0" * 30 + "1"), decimal("1" + "0" * 30)], decimal("1" + "0" * 30 + "." + "0" * 30 + "1")),
    ("SUM", [double("1e16"), double("1.0"), double("-1e16")], double("1")),
    ("SUM", [double("-1e16"), double("1e16"), double("1.0")], double("1")),
    ("SUM", [float32("0.1"), float32("0.2")], float32("0.3")),
    ("SUM", [float32("0.5"), double("0.25")], double("0.75")),
    ("SUM", [double("1e308"), double("1e308")], double("INF")),
    ("SUM", [double("INF"), double("-INF")], double("NaN")),
    ("SUM", [double("INF"), integer(1)], double("INF")),
    ("SUM", [integer(1), None], None),
    ("SUM", [integer(1), '"2"'], None),
    ("SUM", [integer("x")], None),
    ("SUM DISTINCT", [integer(1), integer("01"), integer(1)], integer(2)),
    ("AVG", [], integer(0)),
    ("AVG", [integer(1), integer(2)], decimal("1.5")),
    ("AVG", [integer(2), integer(2)], decimal("2")),
    ("AVG", [integer(1), integer(0), integer(0)], decimal("0.333333333333333333")),
    ("AVG", [GREAT, GREAT], decimal(2**63 - 1)),
    ("AVG", [double("1"), integer(2)], double("1.5")),
    ("AVG", [float32("0.1"), float32("0.3")], float32("0.2")),
    ("AVG", [integer(1), "<urn:a>"], None),
    ("MIN", [], None),
    ("MIN", [integer("010"), integer(9)], integer(9)),
    ("MIN", [integer("01"), integer(2)], integer("01")),
    ("MIN", [integer(1), integer("01")], integer("01")),
    ("MAX", [integer(1), integer("01")], integer("01")),
    ("MAX", [decimal("1.50"), integer(1)], decimal("1.50")),
    ("MAX", [integer(2**64), double("1e3")], integer(2**64)),
    ("MAX", [integer(1), double("NaN")], double("NaN")),
    ("MIN", [integer(1), double("NaN")], integer(1)),
    ("MIN", [integer(1), "<urn:a>"], "<urn:a>"),
    ("MAX", ['"a"', '"b"', "<urn:z>"], '"b"'),
    ("MIN", [integer(1), None], None),
    ("SAMPLE", [None, integer("01")], integer("01")),
    ("SAMPLE", [], None),
    ("GROUP_CONCAT", [], '""'),
    ("GROUP_CONCAT", ['"a"', '"b\\"c"'], '"a b\\"c"'),
    ("GROUP_CONCAT", ['"a"@en', '"b"@en'], '"a b"'),
    ("GROUP_CONCAT DISTINCT", ['"a"', '"a"'], '"a"'),
    ("GROUP_CONCAT", ['"a"', integer(1)], None),
]


@pytest.mark.parametrize(("function", "values", "expected"), CASES)
def test_aggregates_of_a_group(function, values, expected):
    name, _, distinct = function.partition(" ")
    assert aggregate(name, values, distinct=bool(distinct)) == expected


@pytest.mark.parametrize(("function", "values", "expected"), CASES)
def test_accumulators_say_the_same_after_values_came_and_went(function, values, expected):
    name, _, distinct = function.partition(" ")
    kept = accumulator(Aggregate(name, Var("x"), bool(distinct)))
    other = [double("1e300"), integer(10**40), '"gone"', None]
    for value in [*other, *values]:
        kept.add(value, 2)
    for value in other:
        kept.add(value, -2)
    for value in values:
        kept.add(value, -1)
    assert kept.result() == expected


def test_a_separator():
    assert aggregate("GROUP_CONCAT", ['"a"', '"b"'], separator='"') == '"a\\"b"'


NUMBERS = st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(NUMBERS, min_size=1, max_size=8), st.randoms())
def test_sums_of_doubles_are_rounded_once_whatever_the_order(numbers, random):
    terms = [written(Value(DOUBLE, number)) for number in numbers]
    shuffled = random.sample(terms, len(terms))
    try:
        expected = math.fsum(numbers)
    except OverflowError:
        return
    result = aggregate("SUM", terms)
    assert result == aggregate("SUM", shuffled)
    assert result == written(Value(DOUBLE, expected + 0.0))


@given(st.fractions(), st.sampled_from([Fraction(0), Fraction(1, 10**30), Fraction(-1, 10**30)]))
def test_a_float_of_32_bits_is_rounded_once(number, aside):
    exact = Fraction(1) + Fraction(1, 2**24) + aside if abs(number) < 1 else number
    result = rounded(exact.numerator, exact.denominator, FLOAT)
    assert result == single(result)
    step = Fraction(2) ** -149 if not result else abs(Fraction(result)) / 2**23
    for other in (result, single(float(Fraction(result) + step)), single(float(Fraction(result) - step))):
        assert abs(Fraction(other) - exact) >= abs(Fraction(result) - exact)
