"""Equality, order and ranks of terms (SPARQL 1.1, 15.1 and 17.4.1.7)."""

from itertools import pairwise, permutations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.model.terms import XSD
from streamgauge.sparql.comparison import equal, less_values, order_key, ordered, ranks, same_term
from streamgauge.sparql.values import read


def literal(text, kind):
    return f'"{text}"^^<{XSD}{kind}>'


ONE, ALSO_ONE, NAN = literal("1", "integer"), literal("01", "integer"), literal("NaN", "double")
INSTANT, LOCAL = literal("2020-01-01T00:00:00Z", "dateTime"), literal("2020-01-01T00:00:00", "dateTime")
ASCENDING = [
    *(None, "_:b", "<urn:a>", "<urn:a1>", "<urn:b>"),
    *(
        literal("-INF", "double"),
        literal("-1", "integer"),
        literal("0.5", "decimal"),
        ONE,
        literal("9" * 30, "integer"),
    ),
]
SAMPLES = [
    *ASCENDING,
    *(ALSO_ONE, NAN, literal("1", "double"), literal("0.1", "float"), literal("x", "integer"), '"a"', '"b"', '"a"@en'),
    *('"a"^^<urn:t>', '"b"^^<urn:t>', literal("true", "boolean"), literal("0", "boolean"), INSTANT, LOCAL),
    *(literal("2020-01-02", "date"), literal("P1M", "duration"), literal("P30D", "duration"), "_:c"),
]
TERMS = [term for term in SAMPLES if term]


@pytest.mark.parametrize(("before", "after"), list(pairwise(ASCENDING)))
def test_unbound_blank_iri_literal(before, after):
    assert ordered(before, after) == -1
    assert ordered(after, before) == 1
    assert order_key(before) < order_key(after)


@pytest.mark.parametrize(
    ("one", "other", "order"),
    [
        (ONE, ALSO_ONE, 0),
        (ONE, literal("1.0", "decimal"), 0),
        ("_:b", "_:c", None),
        ("_:b", "_:b", 0),
        (ONE, '"a"', None),
        ('"a"', '"a"@en', None),
        ('"a"@en', '"b"@en', None),
        (NAN, ONE, None),
        (NAN, NAN, 0),
        (INSTANT, LOCAL, None),
        (LOCAL, literal("2020-01-03T00:00:00Z", "dateTime"), -1),
        (literal("P1M", "duration"), literal("P30D", "duration"), None),
        (literal("x", "integer"), ONE, None),
        ('"a"^^<urn:t>', '"b"^^<urn:t>', None),
        (literal("false", "boolean"), literal("1", "boolean"), -1),
    ],
)
def test_order_where_sparql_has_one(one, other, order):
    assert ordered(one, other) == order
    assert ordered(other, one) == (None if order is None else -order)


def test_the_sort_key_agrees_with_the_order():
    for one, other in permutations(SAMPLES, 2):
        step = ordered(one, other)
        if step:
            assert (order_key(one) < order_key(other)) == (step < 0), (one, other)
        assert order_key(one) != order_key(other)


def less(one, other):
    return less_values(read(one), read(other))


def test_equality_is_symmetric_and_excludes_less():
    for one, other in product(TERMS, repeat=2):
        assert equal(one, other) == equal(other, one)
        if same_term(one, other) and one != NAN:
            assert equal(one, other) is True
        assert not (less(one, other) and (equal(one, other) or less(other, one)))


def test_a_language_tag_is_the_same_in_any_case():
    assert same_term('"a"@en-GB', '"a"@EN-gb')
    assert not same_term('"A"@en', '"a"@en')
    assert not same_term('"a"@en', '"a"')
    assert not same_term(ONE, ALSO_ONE)


@given(st.lists(st.sampled_from(SAMPLES), max_size=8))
def test_ranks_decide_no_more_than_the_order(terms):
    results = list(zip(terms, ranks(terms), strict=True))
    for (one, (rank, decided)), (other, (place, _)) in product(results, repeat=2):
        step = ordered(one, other)
        if rank < place:
            assert step == -1
        if rank == place and decided:
            assert step == 0


def test_ranks_of_equal_and_of_unordered_terms():
    assert ranks([literal("2", "integer"), ONE, ALSO_ONE]) == [(3, True), (2, True), (2, True)]
    assert len(set(ranks([ONE, '"a"', NAN]))) == 1
    assert ranks([ONE, '"a"'])[0][1] is False
