"""What a query reads, compares and computes: by these traits an evaluator is chosen (docs/semantics.md).

A number of the content counts once (``factor``); ``more`` are bits beside: 30 for a sum, 1 for an addition.
"""

import pytest

from streamgauge.query import parse_sparql
from streamgauge.semantics.query_traits import traits

SIZES = [
    ("SELECT ?s { ?s <urn:p> ?v }", {(1, 0)}),
    ("SELECT ?s { ?s <urn:p> ?v FILTER(?v > 5) }", {(1, 0)}),
    ("SELECT ?s { ?s <urn:p> ?v FILTER(?v + 1 > 5) }", {(1, 0), (1, 1)}),
    ("SELECT ?s { ?s <urn:p> ?v FILTER(?v - 1 > 5) }", {(1, 0), (1, 1)}),
    ("SELECT ?s { ?s <urn:p> ?v FILTER(?v * ?v > 5) }", {(1, 0), (2, 0)}),
    ("SELECT ?s { ?s <urn:p> ?v FILTER(?v * ?v * ?v > 5) }", {(1, 0), (3, 0)}),
    ("SELECT ?s { ?s <urn:p> ?v BIND(?v * ?v AS ?w) FILTER(?w > 5) }", {(1, 0), (2, 0)}),
    ("SELECT ?s { ?s <urn:p> ?v BIND(?v * ?v AS ?w) BIND(?w * ?w AS ?x) }", {(1, 0), (2, 0), (4, 0)}),
    ("SELECT (SUM(?v) AS ?t) { ?s <urn:p> ?v }", {(1, 0), (1, 30)}),
    ("SELECT (AVG(?v) AS ?t) { ?s <urn:p> ?v }", {(1, 0), (1, 30)}),
    ("SELECT (SUM(?v * ?v) AS ?t) { ?s <urn:p> ?v }", {(1, 0), (2, 0), (2, 30)}),
    ("SELECT (MAX(?v * ?v) AS ?t) { ?s <urn:p> ?v }", {(1, 0), (2, 0)}),
    ("SELECT (COUNT(?v) AS ?t) { ?s <urn:p> ?v }", {(1, 0), (0, 30)}),
    ("SELECT (COUNT(*) AS ?t) { ?s <urn:p> ?v }", {(1, 0), (0, 30)}),
]


@pytest.mark.parametrize(("sparql", "sizes"), SIZES)
def test_computed_numbers_are_bounded_by_those_of_the_content(sparql, sizes):
    found = {(each.factor, each.more) for each in traits(parse_sparql(sparql)).sizes}
    assert (max(f for f, _ in found), max(m for _, m in found)) == (max(f for f, _ in sizes), max(m for _, m in sizes))


@pytest.mark.parametrize(
    ("sparql", "plain"),
    [
        ("SELECT ?s ?v { ?s <urn:p> ?v }", (True, True)),
        ("SELECT ?s ?w { ?s <urn:p> ?v BIND(?v + 1 AS ?w) }", (True, False)),
        ("SELECT (SUM(?v) AS ?t) { ?s <urn:p> ?v }", (False,)),
        ("CONSTRUCT { ?s <urn:q> ?v } WHERE { ?s <urn:p> ?v }", (True, True, True)),
        ("CONSTRUCT { ?s <urn:q> ?w } WHERE { ?s <urn:p> ?v BIND(?v + 1 AS ?w) }", (True, True, False)),
        ("ASK { ?s <urn:p> ?v }", (False,)),
    ],
)
def test_columns_whose_terms_are_not_computed(sparql, plain):
    assert traits(parse_sparql(sparql)).plain_columns == plain
