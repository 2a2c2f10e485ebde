"""Named graphs, timestamps, EXISTS, aggregates and CONSTRUCT: what is special about each, and what is refused."""

import pytest

from streamgauge.incremental import UnsupportedError, refuse
from streamgauge.model.semantics import EmptyAggregate
from streamgauge.query import parse_sparql
from streamgauge.query.stamps import stamp, stamped, stamps_graph, time_fact
from tests.incremental.evaluation import Evaluator

A, B, C = "<urn:a>", "<urn:b>", "<urn:c>"
P, Q = "<urn:p>", "<urn:q>"
W, V = "<urn:w>", "<urn:v>"


def number(value):
    return f'"{value}"^^<http://www.w3.org/2001/XMLSchema#integer>'


def solutions(text, triples=(), names=(), **graphs):
    evaluator = Evaluator(parse_sparql(text), names=names)
    evaluator.enter(triples)
    for name, inside in graphs.items():
        evaluator.feeds(f"<urn:{name}>")[0](inside)
    evaluator.settle()
    return evaluator.solutions()


def test_a_triple_is_in_the_graph_that_it_entered():
    text = "SELECT ?x ?y { ?x <urn:p> ?y . GRAPH <urn:w> { ?y <urn:p> ?z } }"
    assert solutions(text, [(A, P, B)], (W, V), w=[(B, P, C)], v=[(B, P, A)]) == {(A, B): 1}
    assert solutions(text, [(A, P, B)], (W, V), v=[(B, P, C)]) == {}
    assert solutions(text, [(A, P, B), (B, P, C)], (W, V)) == {}


def test_a_variable_graph_is_each_window_in_turn():
    text = "SELECT ?g ?x { GRAPH ?g { ?x <urn:p> ?y } }"
    assert solutions(text, [(C, P, C)], (W, V), w=[(A, P, B)], v=[(A, P, C), (B, P, C)]) == {
        (W, A): 1,
        (V, A): 1,
        (V, B): 1,
    }


def test_a_graph_that_is_no_window_matches_nothing_and_takes_anything():
    evaluator = Evaluator(parse_sparql("SELECT ?x { GRAPH <urn:other> { ?x <urn:p> ?y } }"), names=(W,))
    enter, leave = evaluator.feeds("<urn:other>")
    enter([(A, P, B)])
    assert evaluator.settle() == {}
    leave([(A, P, B)])
    assert evaluator.settle() == {}


def test_a_triple_that_leaves_one_graph_stays_in_the_other():
    evaluator = Evaluator(parse_sparql("SELECT ?g { GRAPH ?g { ?x <urn:p> ?y } }"), names=(W, V))
    for name in (W, V):
        evaluator.feeds(name)[0]([(A, P, B)])
    evaluator.settle()
    evaluator.feeds(W)[1]([(A, P, B)])
    assert evaluator.settle() == {(W,): -1}


def test_a_timestamp_follows_the_latest_arrival():
    form = parse_sparql("SELECT ?x ?t { ?x <urn:p> ?y BIND(TIMESTAMP(?x, <urn:p>, ?y) AS ?t) }")
    triple = (A, P, B)
    for query in (form, stamped(form)):
        evaluator = Evaluator(query)
        enter, leave = evaluator.feeds(stamps_graph())
        evaluator.enter([triple])
        enter((*stamp(triple), time_fact(triple, 5)))
        assert evaluator.settle() == {(A, number(5)): 1}
        leave([time_fact(triple, 5)])
        enter([time_fact(triple, 9)])
        assert evaluator.settle() == {(A, number(5)): -1, (A, number(9)): 1}


LINKED = [(A, P, number(1)), (B, P, number(2)), (A, Q, B), (C, Q, A)]


@pytest.mark.parametrize(
    ("condition", "kept"),
    [
        ("EXISTS { ?z <urn:q> ?x FILTER(?v < 2) }", {A}),
        ("EXISTS { ?z <urn:q> ?x FILTER(?v > 1) }", {B}),
        ("NOT EXISTS { ?z <urn:p> ?w FILTER(?w > ?v) }", {B}),
        ("?v > 1 || EXISTS { ?x <urn:q> ?z }", {A, B}),
        ("!(?v > 1 && EXISTS { ?z <urn:q> ?x })", {A}),
        ("IF(EXISTS { ?z <urn:q> ?x . FILTER NOT EXISTS { ?z <urn:p> ?v2 } }, true, false)", {A}),
        ("EXISTS { { ?z <urn:q> ?x } UNION { ?x <urn:none> ?z } FILTER(?v = 1) }", {A}),
        ("EXISTS { OPTIONAL { ?x <urn:q> ?z FILTER(?v = 1) } FILTER(BOUND(?z)) }", {A}),
        ("EXISTS { ?x <urn:p> ?w MINUS { ?x <urn:q> ?z } }", {A, B}),
        ("EXISTS { ?x <urn:p> ?w MINUS { ?z <urn:p> ?w FILTER(?v = 2) } }", {A}),
        ("EXISTS { ?z <urn:q> ?y MINUS { ?z <urn:q> ?x } }", {A, B}),
        ("EXISTS { ?z <urn:q> ?y . ?w <urn:q> ?x MINUS { ?w <urn:q> ?y } }", {A, B}),
        ("EXISTS { { SELECT ?z { ?z <urn:p> ?x MINUS { ?z <urn:q> ?x } } } FILTER(?v = 1) }", {A}),
        ("EXISTS { { SELECT ?z { ?z <urn:q> ?x MINUS { ?z <urn:q> ?x } } } FILTER(?v = 1) }", set()),
        ("EXISTS { SELECT ?x { ?z <urn:q> ?x } GROUP BY ?x HAVING(COUNT(*) = 1) }", {A, B}),
        ("EXISTS { BIND(?v + 1 AS ?next) ?z <urn:p> ?next }", {A}),
        ("EXISTS { ?z <urn:q>+ ?x FILTER(?v = 2) }", {B}),
        ("EXISTS { VALUES (?x ?w) { (<urn:a> UNDEF) (UNDEF 7) } FILTER(?v = 2) }", {B}),
    ],
)
def test_exists_sees_the_solution_around_it(condition, kept):
    result = solutions(f"SELECT ?x {{ ?x <urn:p> ?v FILTER({condition}) }}", LINKED)
    assert {x for (x,) in result} == kept


def test_a_value_put_into_exists_has_a_path_of_length_zero():
    text = "SELECT ?x { VALUES ?x { <urn:nowhere> <urn:a> } FILTER EXISTS { ?x <urn:q>* ?y } }"
    assert solutions(text, LINKED) == {("<urn:nowhere>",): 1, (A,): 1}
    text = "SELECT ?x { VALUES ?x { <urn:nowhere> <urn:b> } FILTER EXISTS { <urn:a> <urn:q>* ?y . ?y <urn:q>? ?x } }"
    assert solutions(text, LINKED) == {(B,): 1}


def test_exists_is_a_value_and_a_condition_of_optional():
    text = "SELECT ?x ?linked { ?x <urn:p> ?v BIND(EXISTS { ?z <urn:q> ?x FILTER(?v > 1) } AS ?linked) }"
    boolean = '"{}"^^<http://www.w3.org/2001/XMLSchema#boolean>'.format
    assert solutions(text, LINKED) == {(A, boolean("false")): 1, (B, boolean("true")): 1}
    text = "SELECT ?x ?z { ?x <urn:p> ?v OPTIONAL { ?z <urn:q> ?x FILTER(?v = 1 && EXISTS { ?z ?any ?x }) } }"
    assert solutions(text, LINKED) == {(A, C): 1, (B, None): 1}


def test_what_exists_changes_with_what_it_looks_at():
    evaluator = Evaluator(
        parse_sparql("SELECT ?x { ?x <urn:p> ?v FILTER NOT EXISTS { ?y <urn:p> ?w FILTER(?w > ?v) } }")
    )
    assert evaluator.change([(A, P, number(1))], ()) == {(A,): 1}
    assert evaluator.change([(B, P, number(2))], ()) == {(A,): -1, (B,): 1}
    assert evaluator.change((), [(B, P, number(2))]) == {(A,): 1, (B,): -1}


def test_count_of_an_expression_counts_its_values():
    text = "SELECT (COUNT(?v + 1) AS ?n) (COUNT(DISTINCT ?v - ?v) AS ?d) { ?x <urn:p> ?v }"
    assert solutions(text, [(A, P, number(1)), (B, P, number(2)), (C, P, '"word"')]) == {(number(2), number(1)): 1}


def test_a_concatenation_is_in_code_point_order_whatever_came_first():
    evaluator = Evaluator(parse_sparql('SELECT (GROUP_CONCAT(?v; SEPARATOR=", ") AS ?all) { ?x <urn:p> ?v }'))
    assert evaluator.settle() == {('""',): 1}
    evaluator.change([(A, P, '"b"'), (B, P, '"b"'), (A, P, '"B\\""@en')], ())
    assert evaluator.solutions() == {('"B\\", b, b"',): 1}
    evaluator.change([(A, P, number(1))], [(A, P, '"b"')])
    assert evaluator.solutions() == {(None,): 1}
    evaluator.change((), [(A, P, number(1))])
    assert evaluator.solutions() == {('"B\\", b"',): 1}


def test_each_solution_has_blank_nodes_of_its_own_as_long_as_it_is_there():
    text = "CONSTRUCT { _:n <urn:of> ?x ; <urn:has> _:m } WHERE { ?x <urn:p> ?v }"
    evaluator = Evaluator(parse_sparql(text))
    first = evaluator.change([(A, P, number(1)), (A, P, number(2)), (B, P, number(1))], ())
    assert len(first) == 6
    assert len({s for s, _, _ in first} | {o for _, p, o in first if p == "<urn:has>"}) == 6
    gone = evaluator.change((), [(A, P, number(2))])
    assert len(gone) == 2
    assert set(gone.values()) == {-1}
    assert set(gone) <= set(first)
    assert evaluator.change([(A, P, number(2))], ()) == dict.fromkeys(gone, 1)


def test_reduced_is_no_change_and_undef_joins_with_anything():
    assert solutions("SELECT REDUCED ?x { ?x <urn:p> ?v }", [(A, P, B), (A, P, C)]) == {(A,): 2}
    text = "SELECT ?x ?v { VALUES (?x ?v) { (<urn:a> UNDEF) (UNDEF <urn:c>) } ?x <urn:p> ?v }"
    assert solutions(text, [(A, P, B), (A, P, C), (B, P, C)]) == {(A, B): 1, (A, C): 2, (B, C): 1}


def test_alternatives_and_negated_sets_give_a_solution_for_each_triple():
    triples = [(A, P, B), (A, Q, B), (B, "<urn:r>", A)]
    assert solutions("SELECT ?x { ?x (<urn:p>|<urn:q>) ?y }", triples) == {(A,): 2}
    assert solutions("SELECT ?x ?y { ?x !(<urn:p>|^<urn:q>) ?y }", triples) == {(A, B): 2, (B, A): 2}
    assert solutions("SELECT ?x ?y { ?x (<urn:p>|<urn:q>)? ?y FILTER(?x != ?y) }", triples) == {(A, B): 1}


def test_a_long_group_is_joined_in_portions():
    chain = [(f"<urn:n{n}>", P, f"<urn:n{n + 1}>") for n in range(40)]
    text = "SELECT ?v0 ?v39 { " + " . ".join(f"?v{n} <urn:p> ?v{n + 1}" for n in reversed(range(39))) + " }"
    assert solutions(text, chain) == {("<urn:n0>", "<urn:n39>"): 1, ("<urn:n1>", "<urn:n40>"): 1}


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("SELECT * { ?x <urn:p> ?y } OFFSET 3", "LIMIT and OFFSET"),
        ("SELECT * { ?x <urn:p> ?y FILTER EXISTS { ?x <urn:q> ?z BIND(1 + ?y AS ?w) BIND(2 AS ?y) } }", "assigns"),
        (
            "SELECT * { ?x <urn:p> ?y OPTIONAL { ?y <urn:q> ?z } FILTER EXISTS { ?z <urn:p>* ?w } }",
            "path of length zero",
        ),
        ("SELECT (UUID() AS ?c) { ?x <urn:p> ?y }", "UUID"),
        ("SELECT * { ?x <urn:p> ?y FILTER EXISTS { ?x <urn:q> ?z FILTER(RAND() > ?z) } }", "RAND"),
    ],
)
def test_what_is_not_kept_is_refused_by_name(text, named):
    form = parse_sparql(text)
    assert named in (refuse(form) or "")
    with pytest.raises(UnsupportedError, match=named):
        Evaluator(form)


def test_the_outermost_aggregation_is_the_one_that_may_be_empty():
    text = (
        "SELECT (AVG(?v) AS ?a) { ?x <urn:p> ?v } "
        "HAVING(COUNT(*) >= 0 && EXISTS { { SELECT (COUNT(*) AS ?n) { ?s ?p ?o } } })"
    )
    evaluator = Evaluator(parse_sparql(text), [(A, Q, B)], EmptyAggregate.UNBOUND)
    assert evaluator.settle() == {(None,): 1}
    assert evaluator.change([(A, P, number(2))], ()) == {
        (None,): -1,
        ('"2"^^<http://www.w3.org/2001/XMLSchema#decimal>',): 1,
    }
