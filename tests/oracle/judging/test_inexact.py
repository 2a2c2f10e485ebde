"""Which queries have values that implementations may compute, or choose, differently; and numbers at the edges."""

from math import inf

import pytest

from streamgauge.oracle.judging.intervals import read
from streamgauge.oracle.judging.oracle import chooses, inexact
from streamgauge.query import parse_sparql

XSD = "http://www.w3.org/2001/XMLSchema#"


@pytest.mark.parametrize(
    ("sparql", "rounds", "open_"),
    [
        ("SELECT ?s { ?s <urn:p> ?v }", False, False),
        ("SELECT ?s { ?s <urn:p> ?v FILTER(?v > 3 && STRLEN(STR(?v)) < 9) }", False, False),
        ("SELECT (COUNT(?v) AS ?n) { ?s <urn:p> ?v }", False, False),
        ("SELECT (MIN(?v) AS ?n) (MAX(?v) AS ?m) { ?s <urn:p> ?v }", False, False),
        ("SELECT (SUM(?v) AS ?n) { ?s <urn:p> ?v }", True, False),
        ("SELECT (AVG(?v) AS ?n) { ?s <urn:p> ?v }", True, False),
        ("SELECT (SAMPLE(?v) AS ?n) { ?s <urn:p> ?v }", True, True),
        ("SELECT (GROUP_CONCAT(?v) AS ?n) { ?s <urn:p> ?v }", True, True),
        ("SELECT ?s { ?s <urn:p> ?v FILTER(?v + 1 > 3) }", True, False),
        ("SELECT ?s { ?s <urn:p> ?v FILTER(?v * 2 > 3) }", True, False),
        ("SELECT ?s { ?s <urn:p> ?v FILTER(ROUND(?v) > 3) }", True, False),
        (f"SELECT ?s {{ ?s <urn:p> ?v FILTER(<{XSD}integer>(?v) > 3) }}", True, False),
        (f"SELECT ?s {{ ?s <urn:p> ?v FILTER(<{XSD}string>(?v) = '3') }}", False, False),
        ("SELECT ?s { ?s <urn:p> ?v BIND(ABS(?v) AS ?w) }", True, False),
        ("SELECT ?s { { SELECT ?s (SAMPLE(?v) AS ?w) { ?s <urn:p> ?v } GROUP BY ?s } }", True, True),
        ("CONSTRUCT { ?s <urn:q> ?v } WHERE { ?s <urn:p> ?v }", False, False),
    ],
)
def test_what_may_be_computed_differently(sparql, rounds, open_):
    form = parse_sparql(sparql)
    assert (inexact(form), chooses(form)) == (rounds, open_)


@pytest.mark.parametrize(
    ("text", "special"),
    [
        ("1e39", inf),
        ("-1e39", -inf),
        ("3e38", None),
        ("1e999", inf),
        ("-1e999", -inf),
        ("1e2000", inf),
        ("1e-2000", None),
    ],
)
def test_a_float_beyond_its_range_is_an_infinity(text, special):
    found = read(f'"{text}"^^<{XSD}float>')
    assert found is not None
    assert found.special == special
    if "-" in text and special is None:
        assert (found.low, found.high) == (0, 0)
