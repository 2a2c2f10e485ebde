"""What a query computes, samples and compares: which columns are compared by value, and what may be left open."""

import pytest

from streamgauge.model.algebra import QueryForm, Var
from streamgauge.oracle.worlds.restatement import (
    compares,
    computed_columns,
    computed_variables,
    constants,
    is_compared_by_term,
    loose_columns,
    restated,
)
from streamgauge.query import parse_sparql
from tests.notation import term


def form(text: str) -> QueryForm:
    return parse_sparql(f"PREFIX : <urn:> {text}")


@pytest.mark.parametrize(
    ("text", "computed", "by_term"),
    [
        ("SELECT ?s ?v { ?s :p ?v }", set(), True),
        ("SELECT ?s (?v AS ?w) { ?s :p ?v }", set(), True),
        ("SELECT ?s (7 AS ?w) { ?s :p ?v }", set(), True),
        ("SELECT (?v + 1 AS ?w) ?s { ?s :p ?v }", {0}, False),
        ("SELECT ?s (-?v AS ?w) { ?s :p ?v }", {1}, False),
        ("SELECT ?s (STR(?v) AS ?w) { ?s :p ?v }", {1}, True),
        ("SELECT ?s (ABS(?v) AS ?w) { ?s :p ?v }", {1}, False),
        ("SELECT ?s (<http://www.w3.org/2001/XMLSchema#integer>(?v) AS ?w) { ?s :p ?v }", {1}, False),
        ("SELECT ?s { ?s :p ?v FILTER(?v > 1) }", set(), True),
        ("SELECT ?s { ?s :p ?v FILTER(?v * 2 > 1) }", set(), False),
        ("SELECT ?s { ?s :p ?v } ORDER BY (?v * 2)", set(), False),
        ("SELECT ?s { ?s :p ?v } LIMIT 1", set(), False),
        ("SELECT REDUCED ?s { ?s :p ?v }", set(), False),
        ("SELECT DISTINCT ?s { ?s :p ?v }", set(), True),
        ("SELECT ?s (COUNT(*) AS ?n) { ?s :p ?v } GROUP BY ?s", {1}, True),
        ("SELECT ?s (SUM(?v) AS ?n) (COUNT(?v) AS ?m) { ?s :p ?v } GROUP BY ?s", {1, 2}, False),
        ("SELECT ?k { ?s :p ?v } GROUP BY (?v + 1 AS ?k)", {0}, False),
        ("SELECT ?v { ?s :p ?v } GROUP BY ?v", set(), True),
        ("SELECT ?s ?w { { SELECT ?s (?v + 1 AS ?w) { ?s :p ?v } } }", {1}, False),
        ("SELECT ?s (?w AS ?x) { ?s :p ?v BIND(?v + 1 AS ?w) }", {1}, False),
        ("SELECT ?w ?s { { SELECT ?w (COUNT(*) AS ?n) { ?s :p ?v BIND(?v + 1 AS ?w) } GROUP BY ?w } }", {0}, False),
        ("SELECT ?v ?w { ?s :p ?v OPTIONAL { ?s :q ?u BIND(?u + 1 AS ?w) } }", {1}, False),
        ("SELECT ?v ?w { { ?s :p ?v BIND(?v + 1 AS ?w) } UNION { ?s :q ?w } }", {1}, False),
        ("SELECT ?v ?w { { ?s :q ?w } UNION { ?s :p ?v BIND(?v + 1 AS ?w) } }", {1}, False),
        ("ASK { ?s :p ?v BIND(?v + 1 AS ?w) }", set(), False),
        ("CONSTRUCT { ?s :q ?w } WHERE { ?s :p ?v BIND(?v + 1 AS ?w) }", set(), False),
    ],
)
def test_columns_that_an_aggregate_or_an_expression_binds(text: str, computed: set[int], by_term: bool) -> None:
    assert computed_columns(form(text)) == computed
    assert is_compared_by_term(form(text)) is by_term


def test_computed_variables_of_static_patterns_are_none() -> None:
    pattern = form("SELECT * { VALUES ?s { 1 2 } ?s :p ?v MINUS { ?s :q ?w BIND(?w + 1 AS ?x) } }").pattern
    assert computed_variables(pattern) == {Var("x")}


@pytest.mark.parametrize(
    ("aggregate", "loose"),
    [
        *(("SAMPLE(?v)", True), ("GROUP_CONCAT(?v)", True), ("MIN(?v)", True), ("MAX(?v)", True)),
        *(("COUNT(?v)", False), ("SUM(?v)", False), ("AVG(?v)", False), ("MIN(?v) + 1", False)),
    ],
)
def test_columns_that_may_be_any_of_several_terms(aggregate: str, loose: bool) -> None:
    text = "{ ?s :p ?v } GROUP BY ?s"
    assert loose_columns(form(f"SELECT ?s ({aggregate} AS ?n) {text}")) == ({1} if loose else set())
    assert loose_columns(form(f"SELECT ({aggregate} AS ?n) ?s {text}")) == ({0} if loose else set())
    assert loose_columns(form(f"ASK {{ {{ SELECT ({aggregate} AS ?n) {text} }} }}")) == set()


@pytest.mark.parametrize(
    ("condition", "equality", "any_"),
    [
        *(("?a = ?b", True, True), ("?a != 3", True, True), ("?a = :x", False, True), (":x != ?a", False, True)),
        *(("?a < ?b", False, True), ("?a >= 3", False, True), ("?a IN (1, 2)", True, True)),
        *(("?a NOT IN (1)", True, True), ("?a IN (:x)", False, True), ("sameTerm(?a, ?b)", False, False)),
        *(("BOUND(?a)", False, False), ("?a < 3 || ?b = ?a", True, True), ("isIRI(?a) && ?a = :x", False, True)),
        ("EXISTS { ?s :p ?b FILTER(?b = ?a) }", True, True),
    ],
)
def test_comparisons_of_literals(condition: str, equality: bool, any_: bool) -> None:
    assert compares(form(f"SELECT * {{ ?s :p ?a ; :q ?b FILTER({condition}) }}")) == (equality, any_)
    assert compares(form(f"SELECT ({condition} AS ?c) {{ ?s :p ?a ; :q ?b }}")) == (equality, any_)


def test_constants_are_those_of_expressions_and_values() -> None:
    text = "SELECT (?v + 1 AS ?w) { VALUES (?s ?t) { (:a 2) (UNDEF 'x') } ?s :p ?v FILTER(?v < 3 || ?v = :b) }"
    assert {*constants(form(text))} >= {term(cell) for cell in ("1", "2", "3", "'x'", "a", "b")}
    assert None not in {*constants(form(text))}


@pytest.mark.parametrize(
    "text", ["SELECT ?s ?v { ?s :p ?v . ?v :q+ ?w }", "SELECT ?s { ?s :p ?v FILTER EXISTS { ?s :q ?v } } LIMIT 3"]
)
def test_what_computes_nothing_stays_as_it_is(text: str) -> None:
    assert restated(form(text).pattern) == form(text).pattern
