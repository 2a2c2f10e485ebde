"""Which queries have values that implementations may compute, or choose, differently; and numbers at the edges."""

from math import inf

import pytest

from streamgauge.oracle.worlds.closed import may_be_open
from streamgauge.oracle.worlds.intervals import read
from streamgauge.query import parse_sparql

XSD = "http://www.w3.org/2001/XMLSchema#"


@pytest.mark.parametrize(
    ("sparql", "open_"),
    [
        ("SELECT ?s { ?s <urn:p> ?v }", False),
        ("SELECT DISTINCT ?s { { ?s <urn:p> ?v } UNION { ?s <urn:q> ?v } MINUS { ?s <urn:r> ?v } }", False),
        ("SELECT ?s { ?s <urn:p> ?v FILTER(?v != 'x') }", True),
        ("SELECT (COUNT(*) AS ?n) { ?s <urn:p> ?v }", True),
        ("SELECT REDUCED ?s { ?s <urn:p> ?v }", True),
        ("SELECT ?s { ?s <urn:p> ?v } LIMIT 3", True),
        ("SELECT ?s { ?s <urn:p> ?v BIND(STR(?v) AS ?w) }", True),
        ("CONSTRUCT { ?s <urn:q> ?v } WHERE { ?s <urn:p> ?v }", False),
    ],
)
def test_which_queries_may_have_several_legal_answers(sparql, open_):
    form = parse_sparql(sparql)
    assert may_be_open(form) is open_


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
    result = read(f'"{text}"^^<{XSD}float>')
    assert result is not None
    assert result.special == special
    if "-" in text and special is None:
        assert (result.low, result.high) == (0, 0)
