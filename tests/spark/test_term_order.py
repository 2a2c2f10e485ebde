"""The order of terms against pyoxigraph's ORDER BY, and what LIMIT and OFFSET keep."""

from itertools import permutations

import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.formats.canonical import Canonical
from streamgauge.model.terms import XSD
from streamgauge.spark.term_order import chosen, places, ranks

CANONICAL = Canonical()


def literal(value, kind):
    return f'"{value}"^^<{XSD}{kind}>'


NUMBERS = [
    literal(*pair) for pair in ((1, "integer"), (1, "decimal"), ("2.5", "decimal"), (2, "float"), (-3, "double"))
]
DATES = [literal(f"2020-01-0{day}T00:00:00Z", "dateTime") for day in (1, 2, 3)]
LOCAL = [literal("2020-01-02T00:00:00", "dateTime")]
STRINGS = ['"a"', '"b"', '"\\n"', '"ä"', '"a\\"b"']
BOOLEANS = [literal("true", "boolean"), literal("false", "boolean")]
OTHERS = ['"a"@en', literal("x", "unknown"), literal("NaN", "double")]
IRIS, BLANKS = ["<urn:b>", "<urn:a>", "<urn:a1>"], ["_:x", "_:y"]


def sorted_by_pyoxigraph(terms):
    store = ox.Store()
    lines = [f"<urn:{index}> <urn:p> {term} ." for index, term in enumerate(terms) if term]
    store.extend(ox.parse("\n".join(lines), format=ox.RdfFormat.N_TRIPLES))
    result = store.query("SELECT ?o { ?s <urn:p> ?o } ORDER BY ?o")
    return [None] * terms.count(None) + [CANONICAL.term(row[0]) for row in result]


@given(
    st.sampled_from([NUMBERS, DATES, STRINGS, BOOLEANS]).flatmap(
        lambda literals: st.lists(st.sampled_from([*literals, *IRIS, None]), max_size=8)
    )
)
def test_comparable_terms_stand_as_pyoxigraph_sorts_them(terms):
    rank = dict(zip(terms, ranks(terms), strict=True))
    assert all(decided for _, decided in rank.values())
    order = [rank[term] for term in sorted_by_pyoxigraph(terms)]
    assert order == sorted(order)
    apart = {frozenset((NUMBERS[0], NUMBERS[1]))}
    for one, other in permutations(set(terms), 2):
        assert (rank[one] == rank[other]) == (frozenset((one, other)) in apart)


@pytest.mark.parametrize(
    "terms", [BLANKS, [NUMBERS[0], '"a"'], [*DATES, *LOCAL], OTHERS[:2], [OTHERS[2], NUMBERS[0]], [OTHERS[0], '"a"']]
)
def test_what_sparql_does_not_order_is_not_ordered(terms):
    results = set(ranks(terms))
    assert len(results) == 1
    assert not next(iter(results))[1]


def test_kinds_of_terms_stand_in_sparqls_order():
    order = [rank for rank, _ in ranks([None, "_:x", "<urn:a>", '"a"', NUMBERS[0]])]
    assert order == sorted(order)
    assert len(set(order)) == 4


def test_the_next_key_decides_only_between_equal_ones():
    rows = [(NUMBERS[0], '"b"'), (NUMBERS[1], '"a"'), ("_:x", '"d"'), ("_:y", '"c"')]
    one, same, blank, other = places(rows, [False, False])
    assert same < one
    assert blank == other < one
    one, same, blank, other = places(rows, [True, True])
    assert one < same < blank == other


ROWS = [('"a"',), ('"b"',), ('"b"',), ('"c"',)]


@pytest.mark.parametrize(
    ("stands", "distinct", "offset", "limit", "kept"),
    [
        ([(0,), (1,), (1,), (2,)], False, 0, 2, [0, 1]),  # equal rows: either does
        ([(0,), (1,), (1,), (1,)], False, 0, 2, None),
        ([(0,), (1,), (1,), (1,)], False, 1, None, [1, 2, 3]),
        ([(2,), (1,), (1,), (0,)], False, 1, 1, [1]),
        ([(), (), (), ()], False, 0, 1, None),
        ([(), (), (), ()], False, 0, 4, [0, 1, 2, 3]),
        ([(), (), (), ()], False, 4, 1, []),
        ([(), (), (), ()], False, 0, 0, []),
        ([(0,), (1,), (1,), (2,)], True, 1, 2, [1, 3]),
        (
            [(0,), (1,), (3,), (2,)],
            True,
            1,
            1,
            None,
        ),  # the copies of a row stand apart: which of them DISTINCT keeps is open
        ([(0,), (1,), (3,), (2,)], True, 0, 3, [0, 1, 3]),
    ],
)
def test_chosen(stands, distinct, offset, limit, kept):
    assert chosen(ROWS, stands, distinct, offset, limit) == kept
