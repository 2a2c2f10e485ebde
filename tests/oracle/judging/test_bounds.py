"""Bounds on computed numbers moved: a row is near where the error may be as large as its distance from the bound.

The error is 1e-4 (xsd:float, and xsd:double, which may be of xsd:floats) or 1e-8 (xsd:decimal) of the sizes of all that
was added up: ten times the tolerances of docs/semantics.md, so that no content which may go either way is passed over.
Integers are exact.
"""

import pytest

from streamgauge.model import algebra as a
from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.oracle.judging.bounds import bounded
from streamgauge.query import parse_sparql
from streamgauge.query.traversal import every_pattern
from streamgauge.semantics.arrivals import Arrival
from streamgauge.semantics.evaluate import Snapshot
from tests.notation import STREAM, triples

WINDOWS = (StreamWindow(STREAM, Window(5, 5)),)


def named(form, text):
    """The local names of the first column, a letter per row."""
    arrival = Arrival(STREAM, 0, None, triples(text))
    rows = Snapshot(ContinuousQuery(form, WINDOWS)).rows(((arrival,),))
    return "".join(sorted((row[0] or "-")[5:-1] for row in rows))


def grouped(aggregate: str, bound: str) -> str:
    return f"SELECT ?s {{ ?s <urn:p> ?v }} GROUP BY ?s HAVING({aggregate} > {bound})"


def filtered(condition: str, more: str = "") -> str:
    return f"SELECT ?s {{ ?s <urn:p> ?v ; <urn:q> ?w {more} FILTER({condition}) }}"


AGGREGATES = [
    ("doubles that cancel", "SUM(?v)", "0.5", "a p 1e16. a p 1e0. a p -1e16. b p 9e0.", "ab", "b"),
    ("integers that cancel", "SUM(?v)", "1", "a p 100000. a p 1. a p -100000. b p 9.", "b", "b"),
    ("decimals", "SUM(?v)", "1.0", "a p 100000.5. a p 1.0. a p -100000.5. b p 9.5.", "ab", "b"),
    (
        "floats within a tenth of a thousandth",
        "AVG(?v)",
        "75",
        "a p 75.001f. b p 74.999f. c p 76f. d p 74f.",
        "abc",
        "c",
    ),
    ("doubles, which may be of floats", "AVG(?v)", "75", "a p 75.001e0. b p 74.999e0. c p 76e0. d p 74e0.", "abc", "c"),
    ("decimals are nearer", "AVG(?v)", "75", "a p 75.001. b p 74.999. c p 75.00000001.", "ac", "a"),
    ("the least beside a large one", "MIN(?v)", "0.5", "a p 0.1e0. a p 1e9. b p 0.1e0.", "a", ""),
    ("the greatest", "MAX(?v)", "0.5", "a p 0.1e0. a p -1e9. b p 0.1e0. c p 1e9.", "ac", "c"),
    ("many numbers", "SUM(?v)", "1e6", "a p 999999.9e0. b p 1e6. c p 999e3.", "ab", ""),
    ("a count", "COUNT(?v)", "1", "a p 1e0. b p 1e0. b p 2e0.", "b", "b"),
    ("a count of all", "COUNT(*)", "1", "a p 1e0. b p 1e0. b p 2e0.", "b", "b"),
    ("a sample", "SAMPLE(?v)", "1e0", "a p 9e0. b p 0e0.", "ab", ""),
    ("a concatenation", "STRLEN(GROUP_CONCAT(?v))", "9e0", "a p 9e0.", "a", ""),
    ("a sum of products", "SUM(?v * ?v)", "0.5", "a p 1e8. a p -1e8.", "a", "a"),
    ("the sizes of what is added", "SUM(?v + 1e9 - 1e9)", "0.5", "a p 0e0. b p 1e6.", "ab", "b"),
    ("what was computed before", "SUM(STRLEN(STR(?v * 2e0)) * 1e0)", "100", "a p 1e0.", "a", ""),
]


@pytest.mark.parametrize(
    ("aggregate", "bound", "text", "loose", "tight"),
    [case[1:] for case in AGGREGATES],
    ids=[case[0] for case in AGGREGATES],
)
def test_an_aggregate_is_near_by_the_sizes_of_its_numbers(aggregate, bound, text, loose, tight):
    forms = bounded(parse_sparql(grouped(aggregate, bound)))
    assert forms is not None
    assert tuple(named(form, text) for form in forms) == (loose, tight)


NUMBERS = "a p 1e0. a q 1e0. b p 2e0. b q 1e0. c p 1e0. c q 2e0. d p 1.00000001e0. d q 1e0."
FILTERS = [
    ("a difference", "?v - ?w > 0.0", NUMBERS, "abd", "b"),
    ("or equal", "?v - ?w >= 0.0", NUMBERS, "abd", "b"),
    ("less", "?v - ?w < 0.0", NUMBERS, "acd", "c"),
    ("less or equal", "?v - ?w <= 0.0", NUMBERS, "acd", "c"),
    ("equal", "?v - ?w = 0.0", NUMBERS, "ad", ""),
    ("not equal", "?v - ?w != 0.0", NUMBERS, "abcd", "bc"),
    ("the bound on the left", "0.0 < ?v - ?w", NUMBERS, "abd", "b"),
    ("a negation", "!(?v - ?w > 0.0)", NUMBERS, "acd", "c"),
    ("and", "?v - ?w > 0.0 && ?w < 2", NUMBERS, "abd", "b"),
    ("or", "?v - ?w > 0.0 || ?w = 2e0", NUMBERS, "abcd", "bc"),
    ("a list", "?v - ?w IN (1.0, 0.0)", NUMBERS, "abd", ""),
    ("not in a list", "?v - ?w NOT IN (1.0, 0.0)", NUMBERS, "abcd", "c"),
    ("a number as a condition", "?v - ?w", NUMBERS, "abcd", "bc"),
    ("a product as a condition", "?v * ?w", NUMBERS + " e p 0e0. e q 1e0.", "abcde", "abcd"),
    ("a size as a condition", "ABS(?v - ?w)", NUMBERS, "abcd", "bc"),
    ("a sign", "-?v > -1.0", NUMBERS, "acd", ""),
    ("a size", "ABS(?v - ?w) > 0.0", NUMBERS, "abcd", "bc"),
    ("a product", "?v * ?w > 1.0", NUMBERS, "abcd", "bc"),
    ("a large product", "?v * ?w > 1e16", "a p 1e8. a q 1e8. b p 1e8. b q 2e8. c p 1e8. c q 1.0005e8.", "abc", "bc"),
    ("a quotient", "?v / ?w > 1.0", NUMBERS, "abd", "b"),
    (
        "a quotient by a small number",
        "?v / ?w > 1e9",
        "a p 1e0. a q 1e-9. b p 2e0. b q 1e-9. c p 0e0. c q 1e-9.",
        "ab",
        "b",
    ),
    ("a quotient by a computed number", "?v / (?w + 0.0) > 5", NUMBERS, "abcd", ""),
    ("a rounded number", "ROUND(?v) > 1", "a p 1e0. a q 1e0. b p 9e0. b q 1e0.", "ab", "b"),
    ("a rounded computed number", "ROUND(?v * 1e0) > 5", NUMBERS, "abcd", ""),
    ("a text", "STR(?v + 1.0) = '7'", NUMBERS, "abcd", ""),
    ("a function of a computed number", "CONTAINS(STR(?v + 1.0), '7')", NUMBERS, "abcd", ""),
    ("large numbers that cancel", "?v + 1e9 - 1e9 > 5", "a p 1e0. a q 1e0. b p 1e6. b q 1e0.", "ab", "b"),
    ("what is not there", "?v - ?x > 0.0", NUMBERS, "", ""),
    ("integers", "?v - ?w > 0", "a p 1. a q 1. b p 2. b q 1.", "b", "b"),
]


@pytest.mark.parametrize(
    ("condition", "text", "loose", "tight"), [case[1:] for case in FILTERS], ids=[case[0] for case in FILTERS]
)
def test_a_condition_is_near_by_the_sizes_of_its_operands(condition, text, loose, tight):
    forms = bounded(parse_sparql(filtered(condition)))
    assert forms is not None
    assert tuple(named(form, text) for form in forms) == (loose, tight)


NEAR = "FILTER(?v - ?w > 0.0)"
PATTERNS = [
    ("MINUS turns around", f"?s <urn:p> ?v MINUS {{ ?s <urn:p> ?v ; <urn:q> ?w {NEAR} }}", "acd", "c"),
    ("NOT EXISTS too", f"?s <urn:p> ?v FILTER NOT EXISTS {{ ?s <urn:q> ?w {NEAR} }}", "acd", "c"),
    ("EXISTS does not", f"?s <urn:p> ?v FILTER EXISTS {{ ?s <urn:q> ?w {NEAR} }}", "abd", "b"),
    (
        "OPTIONAL",
        "?s <urn:p> ?v BIND(?v * 1e0 AS ?x) OPTIONAL { ?s <urn:q> ?w FILTER(?x > ?w) } FILTER(BOUND(?w))",
        "abd",
        "b",
    ),
    ("BIND below", "?s <urn:p> ?v ; <urn:q> ?w BIND(?v - ?w AS ?d) FILTER(?d > 0.0)", "abd", "b"),
    ("BIND keeps the sizes", "?s <urn:p> ?v BIND(?v + 1e9 AS ?d) FILTER(?d - 1e9 > 1.5)", "abcd", ""),
    ("BIND of a constant", "?s <urn:p> ?v BIND(1.0 AS ?d) FILTER(?v * ?d > 1.0)", "abcd", "b"),
    ("a subquery", "{ SELECT ?s (SUM(?v) AS ?d) { ?s <urn:p> ?v } GROUP BY ?s } FILTER(?d > 1.0)", "abcd", "b"),
    ("a subquery of stored numbers", "{ SELECT ?s ?v { ?s <urn:p> ?v } } FILTER(?v * 1e0 > 1.5)", "b", "b"),
    (
        "a subquery keeps the sizes",
        "{ SELECT ?s (SUM(?v + 1e9 - 1e9) AS ?d) { ?s <urn:p> ?v } GROUP BY ?s } FILTER(?d > 3)",
        "abcd",
        "",
    ),
    (
        "a DISTINCT subquery does not",
        "{ SELECT DISTINCT ?s (SUM(?v) AS ?d) { ?s <urn:p> ?v } GROUP BY ?s } FILTER(?d > 3)",
        "abcd",
        "",
    ),
    (
        "a subquery without the sizes",
        "{ SELECT ?s (SAMPLE(?v) AS ?d) { ?s <urn:p> ?v } GROUP BY ?s } FILTER(?d * 1e0 > 3)",
        "abcd",
        "",
    ),
    (
        "a union",
        "{ ?s <urn:p> ?v BIND(?v * 1e0 AS ?d) } UNION { ?s <urn:q> ?v BIND(?v - 5e0 AS ?d) } FILTER(?d > 7)",
        "aabbccdd",
        "",
    ),
    (
        "one side of a union",
        "{ ?s <urn:p> ?v BIND(?v * 1e0 AS ?d) } UNION { ?s <urn:q> ?w } FILTER(?d > 1.0)",
        "abcd",
        "b",
    ),
    (
        "a join",
        "{ ?s <urn:p> ?v BIND(?v * 1e0 AS ?d) } { ?s <urn:q> ?w BIND(?w * 1e0 AS ?e) } FILTER(?d > ?e)",
        "abd",
        "b",
    ),
    ("a graph pattern around", f"{{ {{ ?s <urn:p> ?v ; <urn:q> ?w {NEAR} }} }}", "abd", "b"),
    (
        "a DISTINCT subquery beside OPTIONAL",
        "{ SELECT DISTINCT ?s (SUM(?v) AS ?d) { ?s <urn:p> ?v } GROUP BY ?s } "
        "OPTIONAL { ?s <urn:q> ?w FILTER(?w = ?d) } FILTER(BOUND(?w))",
        "abcd",
        "",
    ),
    (
        "the first of a subquery",
        "{ SELECT ?s ?v { ?s <urn:p> ?v } ORDER BY DESC(?v) LIMIT 1 } FILTER(?v * 1e0 > 1.5)",
        "b",
        "b",
    ),
    (
        "the last of a subquery",
        "{ SELECT ?s ?v { ?s <urn:p> ?v } ORDER BY DESC(?v) OFFSET 3 } FILTER(?v * 1e0 <= 1.0)",
        "c",
        "",
    ),
    ("DISTINCT around", f"{{ SELECT DISTINCT ?s {{ ?s <urn:p> ?v ; <urn:q> ?w {NEAR} }} }}", "abd", "b"),
    ("REDUCED around", f"{{ SELECT REDUCED ?s {{ ?s <urn:p> ?v ; <urn:q> ?w {NEAR} }} }}", "abd", "b"),
    ("GRAPH in a UNION", f"{{ ?s <urn:p> ?v ; <urn:q> ?w {NEAR} }} UNION {{ GRAPH ?g {{ ?s ?p ?o }} }}", "abd", "b"),
    ("names that are taken", f"?s <urn:p> ?v ; <urn:q> ?w BIND(1 AS ?reach0) {NEAR}", "abd", "b"),
]


@pytest.mark.parametrize(
    ("pattern", "loose", "tight"), [case[1:] for case in PATTERNS], ids=[case[0] for case in PATTERNS]
)
def test_a_bound_is_moved_wherever_it_is(pattern, loose, tight):
    forms = bounded(parse_sparql(f"SELECT ?s {{ {pattern} }}"))
    assert forms is not None
    assert tuple(named(form, NUMBERS) for form in forms) == (loose, tight)


@pytest.mark.parametrize(
    "pattern",
    [
        "?s <urn:p> ?v FILTER(?v > 1.0)",
        "?s <urn:p> ?v BIND(?v * 1e0 AS ?d) FILTER(BOUND(?d))",
        "?s <urn:p> ?v BIND(?v * 1e0 AS ?d) FILTER(ISNUMERIC(?d))",
        "?s <urn:p> ?v BIND(?v * 1e0 AS ?d) FILTER(?v IN ())",
        "{ SELECT ?s (SUM(?v) AS ?d) { ?s <urn:p> ?v } GROUP BY ?s }",
    ],
)
def test_a_query_without_a_bound_on_a_computed_number_has_none_to_move(pattern):
    found = bounded(parse_sparql(f"SELECT ?s {{ {pattern} }}"))
    assert found is None


def test_the_columns_stay():
    query = "SELECT ?s (SUM(?v) AS ?t) { ?s <urn:p> ?v } GROUP BY ?s HAVING(SUM(?v) > 1.0)"
    forms = bounded(parse_sparql(query))
    assert forms is not None
    assert [form.variables for form in forms] == [("s", "t"), ("s", "t")]


def test_only_subqueries_have_more_columns():
    """The outermost projection is what is sent."""
    for modified in ("", "DISTINCT ", "REDUCED "):
        query = f"SELECT {modified}?s (SUM(?v) AS ?t) {{ ?s <urn:p> ?v }} GROUP BY ?s HAVING(SUM(?v) > 1.0) ORDER BY ?t"
        for form in bounded(parse_sparql(query)) or ():
            (outermost,) = (each for each in every_pattern(form.pattern) if isinstance(each, a.Project))
            assert outermost.variables == (a.Var("s"), a.Var("t"))
    inner = "SELECT ?s { { SELECT ?s (SUM(?v) AS ?t) { ?s <urn:p> ?v } GROUP BY ?s } FILTER(?t > 1.0) }"
    for form in bounded(parse_sparql(inner)) or ():
        sizes = [len(each.variables) for each in every_pattern(form.pattern) if isinstance(each, a.Project)]
        assert sizes == [1, 3]
