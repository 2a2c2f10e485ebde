"""Bags compared pair by pair: how alike they are, and what either side has alone."""

from decimal import Decimal

import pytest

from streamgauge.oracle.judging.compare import Bags, alike, fits, overlap
from streamgauge.oracle.worlds.intervals import close, finite
from streamgauge.oracle.worlds.membership import Overlap
from tests.notation import rows, term

X, Z = ("<urn:x>",), ("<urn:z>",)
FIRST = frozenset({0})


def similarity(expected: str, actual: str, computed=frozenset()):
    return Bags([rows(expected)], [rows(actual)], computed).similarity(0, 0)


@pytest.mark.parametrize(
    ("expected", "actual", "result"),
    [
        ("", "", 1.0),
        ("x", "", 0.0),
        ("x ; y", "x ; y", 1.0),
        ("x ; y", "y ; x", 1.0),
        ("x ; y", "x", 1 / 2),
        ("x ; x ; y", "x ; y ; y", 2 / 4),
        ("x", "x ; y ; z", 1 / 3),
        ("_:a ; _:b", "_:c ; _:d", 1.0),
        ("_:a ; x", "_:c ; y", 1 / 3),
    ],
)
def test_bags_are_alike_by_what_they_share(expected, actual, result):
    assert similarity(expected, actual) == result


def test_computed_numbers_are_alike_by_value():
    near = ("0.30000000000000004e0", "0.3e0")
    assert similarity(*near, FIRST) == 1.0
    assert similarity(*near) == 0.0
    assert similarity(f"x {near[0]} ; y 2e0", f"x {near[1]} ; y 3e0", frozenset({1})) == 1 / 3
    assert similarity("1e0", "1e0", FIRST) == 1.0
    assert similarity("1e0", "2e0", FIRST) == 0.0


def test_two_bags_apart():
    result = overlap(rows("x ; x ; y"), rows("x ; y ; z ; z"), frozenset())
    assert result == Overlap(2, (X,), (Z, Z))
    assert result.differs
    assert not overlap(rows("x"), rows("x"), frozenset()).differs
    assert overlap((), rows("x"), frozenset()).differs
    assert overlap(rows("x"), (), frozenset()).differs


def test_a_datatype_that_differs_is_told():
    result = overlap(rows("x 4 4"), rows("x 4e0 4"), frozenset({1, 2}))
    assert (result.common, result.retyped) == (1, frozenset({1}))
    assert overlap(rows("x 4"), rows("x 4"), frozenset({1})).retyped == frozenset()
    assert overlap(rows("x 4"), (), frozenset({1})).retyped == frozenset()


def test_rows_are_alike_in_terms_exactly_and_in_computed_numbers_by_value():
    one, other = rows("x 0.30000000000000004e0 ; x 0.3e0")
    assert alike(one, other, frozenset({1}))
    assert not alike(one, other, frozenset())
    assert not alike(one, (*other, "<urn:y>"), frozenset({1}))
    assert not alike(one, ("<urn:y>", other[1]), frozenset({1}))


@pytest.mark.parametrize(
    ("one", "other", "result"),
    [
        ("1", "1", True),
        ("1", "2", False),
        ("1", "1.0", True),
        ("100000000000000000000", "100000000000000000001", False),
        ("1", "1.0000000000000000001", True),
        ("1", "1.00000000000000001", False),
        ("1e0", "1.0000000001e0", True),
        ("1e0", "1.00000001e0", False),
        ("1f", "1.000001f", True),
        ("1f", "1.0001f", False),
        ("1f", "1.000001e0", True),
        ("1000f", "1000.001f", True),
        ("0", "0.0000000000000000001", True),
        ("-1e0", "1e0", False),
        ("1000000000e0", "999999999e0", True),
        ("1000000000e0", "999999998e0", False),
        ("-100000f", "-99999f", True),
        ("1.0", "1.000000000000000001", True),
        ("1.0", "1.000000000000000002", False),
        ("0.5", "0.500000000000000001", True),
        ("0.5", "0.5000000000000000011", False),
        ("-100.0", "-100.0000000000000001", True),
        ("100.0", "100.0000000000000002", False),
        ("'1'", "1", False),
        ("x", "x", True),
        ("NaN", "1e0", False),
        ("NaN", "NaNf", True),
        ("INF", "INFf", True),
        ("INF", "-INF", False),
    ],
)
def test_numbers_are_equal_within_the_looser_datatypes_tolerance(one, other, result):
    assert close(term(one), term(other)) is result
    assert close(term(other), term(one)) is result


def test_what_is_no_finite_number_has_none():
    assert finite(None) is None
    assert finite(term("x")) is None
    assert finite('"x"^^<http://www.w3.org/2001/XMLSchema#integer>') is None
    assert finite(term("INF")) is None
    assert finite(term("2.50")) == Decimal("2.5")
    assert not close(None, term("1"))
    assert close(None, None)


def test_a_number_fits_in_the_datatype_in_which_it_is_sent():
    assert fits(term("0.3"), term("0.3e0"))
    assert not fits(term("0.3"), term("0.30000000000000004e0")), "a decimal is exact"
    assert not fits(term("1"), term("2.1e0"))
    assert not fits(term("1"), term("'x'"))
    assert not fits(term("1"), None)
    assert fits(None, None)
    assert not fits(None, term("1"))
