"""Rows that LIMIT and OFFSET may keep of a tie whose keys are partly comparable: against all orders of a few rows."""

from collections import Counter
from itertools import combinations_with_replacement, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.model.terms import XSD
from streamgauge.oracle.judging.choices import legal, positions


def number(value: int, kind: str = "integer") -> str:
    return f'"{value}"^^<{XSD}{kind}>'


TRUE, FALSE, NAN = f'"true"^^<{XSD}boolean>', f'"false"^^<{XSD}boolean>', f'"NaN"^^<{XSD}double>'
POOL = (number(5), number(6), number(6, "double"), number(7), '"x"', '"y"', '"z"@en', TRUE, FALSE, NAN, "_:a", None)


@pytest.mark.parametrize(
    ("terms", "order"),
    [
        ((number(5), '"x"', number(6)), ((0, 0), (1, 0), (0, 1))),
        (('"y"', number(6, "double"), '"x"', number(6)), ((0, 1), (1, 0), (0, 0), (1, 0))),
        ((number(5), '"x"', TRUE), ()),
        ((number(5), NAN, '"x"@en'), ()),
        (("_:a", "_:b"), ()),
        ((), ()),
    ],
)
def test_comparable_keys_are_a_chain(terms, order):
    assert dense(positions(terms, descending=False)) == order


def dense(order):
    """Levels counted from 0 within each chain."""
    levels = {chain: sorted({level for other, level in order if other == chain}) for chain, _ in order}
    return tuple((chain, levels[chain].index(level)) for chain, level in order)


def test_descending_turns_the_chains():
    assert dense(positions((number(5), '"x"', number(6)), descending=True)) == ((0, 1), (1, 0), (0, 0))


def extensions(order):
    """Every order of the rows in which each chain keeps its levels."""
    for each in permutations(range(len(order))):
        rank = {index: place for place, index in enumerate(each)}
        pairs = [(a, b) for a in rank for b in rank if order[a][0] == order[b][0] and order[a][1] < order[b][1]]
        if all(rank[a] < rank[b] for a, b in pairs):
            yield each


@given(st.lists(st.sampled_from(POOL), min_size=1, max_size=5), st.booleans(), st.data())
def test_legal_as_all_orders_say(terms, down, data):
    order = positions(terms, down) or tuple((0, 0) for _ in terms)
    rows = [(term, index) for index, term in enumerate(terms)]
    skipped = data.draw(st.integers(0, len(rows) - 1))
    take = data.draw(st.integers(1, len(rows) - skipped))
    possible = {frozenset(rows[index] for index in each[skipped : skipped + take]) for each in extensions(order)}
    for kept in {frozenset(some) for some in combinations_with_replacement(rows, take) if len(set(some)) == take}:
        assert legal(Counter(kept), rows, order, skipped) == (kept in possible), (kept, skipped, order)


def test_rows_that_hide_their_keys_are_legal():
    assert legal(Counter([("a",)]), [("a",), ("a",)], [(0, 0), (0, 1)], 0)
