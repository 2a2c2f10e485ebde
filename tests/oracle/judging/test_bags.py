"""Bags compared pair by pair: how alike they are, and what either side has alone."""

from decimal import Decimal

import pytest

from streamgauge.model.report import TiePool
from streamgauge.oracle.judging.compare import Bags, Overlap, alike, close, fits, number, overlap
from tests.notation import rows, term

X, Y, Z = ("<urn:x>",), ("<urn:y>",), ("<urn:z>",)
FIRST = frozenset({0})


def similarity(expected: str, actual: str, computed=frozenset(), doubtful: str = "", pools=()):
    bags = Bags(
        [rows(expected)], [rows(actual)], computed, [rows(doubtful)] if doubtful else (), None, [pools] if pools else ()
    )
    return bags.similarity(0, 0)


@pytest.mark.parametrize(
    ("expected", "actual", "found"),
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
def test_bags_are_alike_by_what_they_share(expected, actual, found):
    assert similarity(expected, actual) == found


def test_computed_numbers_are_alike_by_value():
    near = ("0.30000000000000004e0", "0.3e0")
    assert similarity(*near, FIRST) == 1.0
    assert similarity(*near) == 0.0
    assert similarity(f"x {near[0]} ; y 2e0", f"x {near[1]} ; y 3e0", frozenset({1})) == 1 / 3
    assert similarity("1e0", "1e0", FIRST) == 1.0
    assert similarity("1e0", "2e0", FIRST) == 0.0


def test_rows_of_which_either_answer_is_right_count_for_neither_side():
    assert similarity("x", "x ; y", doubtful="y") == 1.0
    assert similarity("x", "x ; y ; y", doubtful="y") == 1 / 2
    assert similarity("x", "x", doubtful="y") == 1.0


def test_rows_of_a_pool_stand_for_each_other():
    pools = (TiePool((X, Y, Z), 1),)
    assert similarity("x", "y", pools=pools) == 1.0
    assert similarity("x", "w", pools=pools) == 0.0


def test_two_bags_apart():
    found = overlap(rows("x ; x ; y"), rows("x ; y ; z ; z"), frozenset())
    assert found == Overlap(2, (X,), (Z, Z))
    assert found.differs
    assert not overlap(rows("x"), rows("x"), frozenset()).differs
    assert overlap((), rows("x"), frozenset()).differs
    assert overlap(rows("x"), (), frozenset()).differs


@pytest.mark.parametrize(
    ("expected", "actual", "pool", "take", "found"),
    [
        ("y ; y", "x ; z", "y ; y ; x ; x", 2, Overlap(1, (Y,), (Z,))),
        ("y ; y", "x ; x", "y ; y ; x ; x", 2, Overlap(2, (), ())),
        ("y ; y", "x ; x ; x", "y ; y ; x ; x ; x", 2, Overlap(2, (), (X,))),
        ("y", "x ; x", "y ; x ; x", 1, Overlap(1, (), (X,))),
        ("y ; z", "x ; x", "y ; x ; x", 1, Overlap(1, (Z,), (X,))),
        ("y ; z", "y ; x", "y ; x", 1, Overlap(1, (Z,), (X,))),
        ("y ; z", "y ; x", "y ; z ; x", 2, Overlap(2, (), ())),
        ("y ; z ; w", "y ; x ; w", "w ; y ; z ; x ; x", 3, Overlap(3, (), ())),
    ],
)
def test_of_a_pool_as_many_rows_are_legal_as_were_taken_from_it(expected, actual, pool, take, found):
    assert overlap(rows(expected), rows(actual), frozenset(), pools=(TiePool(rows(pool), take),)) == found


def test_a_row_of_a_pool_may_have_a_computed_number():
    pool = TiePool(rows("x 1e0 ; y 2e0"), 1)
    found = overlap(rows("x 1e0"), rows("y 2.0000000000000001e0"), frozenset({1}), pools=(pool,))
    assert (found.common, found.missing, found.surplus) == (1, (), ())
    other = overlap(rows("x 1e0"), rows("z 2.0000000000000001e0"), frozenset({1}), pools=(pool,))
    assert other.common == 0


def test_doubtful_rows_are_taken_out_of_the_surplus_by_value_too():
    found = overlap(rows("x"), rows("x ; y ; z"), frozenset(), rows("y ; w"))
    assert (found.common, found.surplus, found.undecided) == (1, (Z,), 1)
    twice = overlap((), rows("y 0.3e0 ; y 0.30000000000000004e0"), frozenset({1}), rows("y 0.3e0"))
    assert (twice.surplus, twice.undecided) == (rows("y 0.30000000000000004e0"), 1)
    near = overlap((), rows("y 0.3e0 ; y 7e0"), frozenset({1}), rows("y 0.30000000000000004e0"))
    assert (near.surplus, near.undecided) == (rows("y 7e0"), 1)


def test_a_datatype_that_differs_is_told():
    found = overlap(rows("x 4 4"), rows("x 4e0 4"), frozenset({1, 2}))
    assert (found.common, found.retyped) == (1, frozenset({1}))
    assert overlap(rows("x 4"), rows("x 4"), frozenset({1})).retyped == frozenset()
    assert overlap(rows("x 4"), (), frozenset({1})).retyped == frozenset()


def test_rows_are_alike_in_terms_exactly_and_in_computed_numbers_by_value():
    one, other = rows("x 0.30000000000000004e0 ; x 0.3e0")
    assert alike(one, other, frozenset({1}))
    assert not alike(one, other, frozenset())
    assert not alike(one, (*other, "<urn:y>"), frozenset({1}))
    assert not alike(one, ("<urn:y>", other[1]), frozenset({1}))


@pytest.mark.parametrize(
    ("one", "other", "found"),
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
    ],
)
def test_numbers_are_equal_within_the_looser_datatypes_tolerance(one, other, found):
    assert close(term(one), term(other)) is found
    assert close(term(other), term(one)) is found


def test_what_is_no_finite_number_has_none():
    assert number(None) is None
    assert number(term("x")) is None
    assert number('"x"^^<http://www.w3.org/2001/XMLSchema#integer>') is None
    assert number(term("INF")) is None
    assert number(term("2.50")) == Decimal("2.5")
    assert not close(None, term("1"))
    assert close(None, None)


def test_a_number_fits_an_interval():
    possible = '"1 2 3/2"^^<urn:streamgauge:interval:3>'
    assert fits(possible, term("1.5e0"))
    assert fits(possible, term("2e0"))
    assert not fits(possible, term("2.1e0"))
    assert not fits(possible, term("'x'"))
    assert not fits(possible, None)
    assert fits(None, None)
    assert not fits(None, term("1"))


def test_a_row_of_a_pool_is_sent_as_often_as_it_is_there():
    pool = TiePool(rows("y 1e0 ; z 1e0 ; x 2e0"), 2)
    found = overlap(rows("y 1e0 ; z 1e0"), rows("x 2e0 ; x 2.0000000001e0"), frozenset({1}), pools=(pool,))
    assert (found.common, len(found.missing), len(found.surplus)) == (1, 1, 1)
