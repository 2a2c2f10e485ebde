"""Closure over intervals against a closure of its own for every report."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from streamgauge.spark.paths import closure, insert, missing

REPORTS = 8
SPANS = st.tuples(st.integers(0, REPORTS - 1), st.integers(0, REPORTS - 1)).map(lambda span: (min(span), max(span)))
EDGES = st.lists(
    st.builds(lambda start, end, span: (start, end, *span), st.sampled_from("abcde"), st.sampled_from("abcde"), SPANS),
    max_size=10,
)


def reached(edges, report):
    """The pairs of one report, by repeating until nothing is new."""
    now = {(start, end) for start, end, low, high in edges if low <= report <= high}
    pairs = set(now)
    while True:
        more = {(start, end) for start, middle in pairs for via, end in now if via == middle} - pairs
        if not more:
            return pairs
        pairs |= more


@given(EDGES)
def test_every_report_has_its_own_closure(edges):
    results = list(closure(edges))
    for report in range(REPORTS):
        here = [(start, end) for start, end, low, high in results if low <= report <= high]
        assert len(here) == len(set(here))
        assert set(here) == reached(edges, report)


@given(EDGES, st.sampled_from("abcz"))
def test_from_some_nodes_only(edges, source):
    assert sorted(closure(edges, (source,))) == sorted(edge for edge in closure(edges) if edge[0] == source)


@given(st.lists(SPANS), SPANS)
def test_intervals(spans, asked):
    known = []
    for low, high in spans:
        insert(known, low, high)
    covered = {at for low, high in spans for at in range(low, high + 1)}
    assert {at for low, high in known for at in range(low, high + 1)} == covered
    assert all(high + 1 < low for (_, high), (low, _) in pairwise(known))
    gaps = {at for low, high in missing(known, *asked) for at in range(low, high + 1)}
    assert gaps == set(range(asked[0], asked[1] + 1)) - covered
