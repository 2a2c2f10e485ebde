"""The fast path for numbers against pyoxigraph: the same value, or UNKNOWN, never another."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.compute import expressions
from streamgauge.compute.changes.conditions import test as compiled
from streamgauge.compute.numbers import BINARY, DECIMAL, FLOAT, UNKNOWN, Number, decimal, integer, number
from streamgauge.model.algebra import Call, Var
from streamgauge.model.terms import XSD
from streamgauge.wire.canonical import Canonical, parse_term

CANONICAL = Canonical()
PAIR = ("a", "b")


def literal(text, kind):
    return CANONICAL.term(parse_term(f'"{text}"^^<{XSD}{kind}>'))


INTEGERS = st.one_of(st.integers(-3, 3), st.integers(-(2**63), 2**63 - 1)).map(lambda n: literal(n, "integer"))
DECIMALS = st.decimals(-(10**12), 10**12, places=6).map(lambda d: literal(f"{d:f}", "decimal"))
FLOATS = st.one_of(st.floats(width=32), st.integers(-50, 50).map(float))
SINGLES = FLOATS.map(lambda x: literal(_text(x), "float"))
DOUBLES = st.one_of(st.floats(), st.integers(-50, 50).map(float)).map(lambda x: literal(_text(x), "double"))
NUMBERS = st.one_of(INTEGERS, DECIMALS, SINGLES, DOUBLES)
TERMS = st.one_of(NUMBERS, st.sampled_from(('"x"', "<urn:a>", "<urn:b>", '"1"@en', '"x"^^<urn:t>', None)))


def _text(x):
    return "NaN" if math.isnan(x) else f"{'-' if x < 0 else ''}INF" if math.isinf(x) else repr(x)


@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=30), st.sampled_from(sorted(BINARY)))
def test_operators_give_what_pyoxigraph_gives(pairs, operator):
    expected = expressions.evaluate(Call(operator, (Var("a"), Var("b"))), PAIR, pairs)
    for (left, right), wanted in zip(pairs, expected, strict=True):
        first, second = number(left), number(right)
        found = UNKNOWN if UNKNOWN in (first, second) else BINARY[operator](first, second)
        if found is not UNKNOWN:
            assert same(found, wanted), (left, operator, right)


def same(found, wanted):
    if found is None or isinstance(found, bool):
        return wanted == (None if found is None else f'"{str(found).lower()}"^^<{XSD}boolean>')
    if found.kind < FLOAT:
        return wanted == (decimal(found.value) if found.kind == DECIMAL else integer(found.value))
    read = number(wanted)
    both_nan = math.isnan(found.value) and math.isnan(read.value)
    return isinstance(read, Number) and read.kind == found.kind and (read.value == found.value or both_nan)


OPERANDS = st.one_of(
    st.sampled_from((Var("a"), Var("b"))),
    st.sampled_from(("0", "1", "2")).map(lambda text: literal(text, "integer")),
    st.builds(lambda o, x, y: Call(o, (x, y)), st.sampled_from("+-*"), st.sampled_from((Var("a"), Var("b"))), NUMBERS),
)
COMPARISONS = st.builds(lambda o, x, y: Call(o, (x, y)), st.sampled_from(("=", "!=", "<", ">=")), OPERANDS, OPERANDS)
CONDITIONS = st.recursive(
    COMPARISONS,
    lambda inner: st.one_of(
        st.builds(lambda o, x, y: Call(o, (x, y)), st.sampled_from(("&&", "||")), inner, inner),
        inner.map(lambda x: Call("!", (x,))),
    ),
    max_leaves=4,
)


@given(CONDITIONS, st.lists(st.tuples(TERMS, TERMS), min_size=1, max_size=20))
def test_conditions_hold_where_pyoxigraph_says(condition, rows):
    decide = compiled(condition, PAIR)
    assert [decide(*row) for row in rows] == expressions.holds(condition, PAIR, rows)


def test_nan_beside_itself_is_ordered_as_pyoxigraph_orders_it():
    """NaN < 1 is an error there, NaN < NaN (one term twice) is not."""
    nan, one = literal("NaN", "float"), literal("1", "float")
    for operator in ("<", "<=", ">", ">="):
        condition = Call("!", (Call(operator, (Var("a"), Var("b"))),))
        rows = [(nan, nan), (nan, one), (one, nan)]
        assert [compiled(condition, PAIR)(*row) for row in rows] == expressions.holds(condition, PAIR, rows)


@given(NUMBERS)
def test_a_canonical_number_is_read_exactly(term):
    read = number(term)
    if read is not UNKNOWN and read.kind < FLOAT:
        assert (decimal(read.value) if read.kind == DECIMAL else integer(read.value)) == term


@pytest.mark.parametrize(
    "term", ['"1_0"^^<%sinteger>', '" 1"^^<%sinteger>', '"nan"^^<%sfloat>', '"٣"^^<%sinteger>', "x"]
)
def test_what_only_python_reads_as_a_number_is_unknown(term):
    assert number(term % XSD if "%" in term else term) is UNKNOWN
