"""Queries over stored facts: which of them pyoxigraph answers, and the terms that are put back."""

import pyoxigraph as ox
import pytest

from streamgauge.query import parse_sparql
from streamgauge.semantics.stored_query import StoredQuery, store_gap
from tests.notation import term

NUMBER = term("1")
LONGER = NUMBER.replace('"1"', '"01"')


def select(condition: str, head: str = "?s ?o"):
    return parse_sparql(f"SELECT {head} {{ ?s <urn:p> ?o {condition} }}")


@pytest.mark.parametrize(
    ("condition", "gap"),
    [
        ("", None),
        ("FILTER REGEX(?o, 'a')", None),
        ("FILTER REGEX(?o, '^(a|b)$')", None),
        ("FILTER(!REGEX(STR(?o), 'a b') || ?o = 1)", None),
        ("MINUS { ?s ?p ?x FILTER REGEX(?x, 'a') }", None),
        ("OPTIONAL { ?s ?p ?x FILTER REGEX(?x, 'a+') }", "REGEX"),
        ("FILTER REGEX(?o, 'a.')", "REGEX"),
        ("FILTER REGEX(?o, 'a', 'i')", "REGEX"),
        ("FILTER REGEX(?o, ?s)", "REGEX"),
    ],
)
def test_a_plain_regular_expression_is_as_exact_as_contains(condition, gap):
    assert store_gap(select(condition)) == gap
    assert StoredQuery(select(condition)).forms(frozenset()) == ({} if gap is None else None)


def test_a_graph_that_is_there_is_no_gap():
    form = parse_sparql("SELECT ?s { GRAPH <urn:g> { ?s ?p ?o } }")
    assert store_gap(form) == "GRAPH with a name that no graph has"
    assert store_gap(form, ["<urn:g>"]) is None
    assert StoredQuery(form, ["<urn:g>"]).forms(frozenset()) == {}


def test_another_value_each_time_is_left_to_the_store_whatever_else_there_is():
    volatile = StoredQuery(select("FILTER(RAND() < 2 && REGEX(?o, 'a+'))"))
    assert volatile.forms({NUMBER, LONGER}) == {}


def test_the_literals_of_the_facts_are_put_back_where_they_are_not_computed():
    asked = StoredQuery(select("BIND(?o + 0 AS ?x)", "?o ?x"))
    store = ox.Store()
    store.extend(ox.parse(f"<urn:a> <urn:p> {LONGER} .".encode(), format=ox.RdfFormat.N_TRIPLES))
    forms = asked.forms({LONGER})
    assert forms == {NUMBER: LONGER}
    assert list(asked.rows(store.query(asked.text), forms)) == [(LONGER, NUMBER)]
    assert list(asked.rows(store.query(asked.text), {})) == [(NUMBER, NUMBER)]
    assert asked.forms({LONGER, NUMBER}) is None


def test_what_is_not_bound_stays_so():
    asked = StoredQuery(parse_sparql("SELECT ?s ?x { ?s <urn:p> ?o OPTIONAL { ?s <urn:q> ?x } }"))
    store = ox.Store()
    store.extend(ox.parse(b"<urn:a> <urn:p> <urn:b> .", format=ox.RdfFormat.N_TRIPLES))
    for forms in ({}, {NUMBER: LONGER}):
        assert list(asked.rows(store.query(asked.text), forms)) == [("<urn:a>", None)]
