"""Repeated property paths where SPARQL says more than pyoxigraph, cycles that break, static data, and their memory."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.query import parse_sparql
from tests.incremental.evaluation import Evaluator

A, B, C, D = (f"<urn:{name}>" for name in "abcd")
P, Q = "<urn:p>", "<urn:q>"
ONE = '"1"^^<http://www.w3.org/2001/XMLSchema#integer>'


def solutions(text, triples=(), gone=(), static=()):
    evaluator = Evaluator(parse_sparql(text), static)
    evaluator.change(triples, ())
    evaluator.change((), gone)
    return evaluator.solutions()


@pytest.mark.parametrize(
    ("pattern", "rows"),
    [
        (f"{A} <urn:p>* ?y", {(A,): 1}),
        (f"?y <urn:p>? {A}", {(A,): 1}),
        (f"{A} (<urn:p>|<urn:q>*)+ ?y", {(A,): 1}),
        (f"{A} <urn:p>+ ?y", {}),
        (f"?y <urn:p>* {ONE}", {(ONE,): 1}),
        (f"VALUES ?y {{ {A} }} ?y <urn:p>* ?z", {}),
    ],
)
def test_a_constant_reaches_itself_in_a_graph_that_does_not_have_it(pattern, rows):
    assert solutions(f"SELECT ?y {{ {pattern} }}") == rows


def test_two_constants_are_joined_once_or_not_at_all():
    circle = ((A, P, B), (B, P, A))
    for ends, modifier, count in (
        (f"{A} {A}", "*", 1),
        (f"{A} {B}", "*", 1),
        (f"{A} {C}", "*", 0),
        (f"{A} {A}", "+", 1),
    ):
        one, two = ends.split()
        assert solutions(f"SELECT * {{ {one} <urn:p>{modifier} {two} }}", circle) == ({(): count} if count else {})


def test_a_broken_cycle_lets_go_of_what_only_it_reached():
    circle = ((A, P, B), (B, P, C), (C, P, A))
    text = "SELECT ?x ?y { ?x <urn:p>+ ?y }"
    assert solutions(text, circle) == {(x, y): 1 for x in (A, B, C) for y in (A, B, C)}
    assert solutions(text, circle, gone=(circle[2],)) == {(A, B): 1, (A, C): 1, (B, C): 1}
    assert solutions("SELECT ?x { ?x <urn:p>+ ?x }", circle, gone=(circle[2],)) == {}


def test_a_second_way_keeps_what_the_first_one_loses():
    diamond = ((A, P, B), (A, P, C), (B, P, D), (C, P, D))
    for gone in diamond[2:]:
        assert (D,) in solutions(f"SELECT ?y {{ {A} <urn:p>+ ?y }}", diamond, gone=(gone,))
    assert (D,) not in solutions(f"SELECT ?y {{ {A} <urn:p>+ ?y }}", diamond, gone=diamond[2:])


def test_only_what_is_asked_for_is_followed():
    chain = tuple((f"<urn:n{n}>", P, f"<urn:n{n + 1}>") for n in range(200))
    evaluator = Evaluator(parse_sparql("SELECT ?x ?y { ?x a ?c . ?x <urn:p>+ ?y }"), chain)
    evaluator.change(((chain[190][0], "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>", C),), ())
    assert len(evaluator.solutions()) == 10
    (held,) = [held for name, held in evaluator.remembered().items() if name.startswith("Reach")]
    assert held == 200 + 1 + 10


nodes = st.sampled_from((A, B, C, D))
edges = st.lists(st.tuples(nodes, st.sampled_from((P, Q)), nodes), max_size=8, unique=True)


def closure(pairs):
    results = set(pairs)
    while more := {(x, z) for x, y in results for other, z in pairs if y == other} - results:
        results |= more
    return results


@given(st.lists(st.tuples(edges, st.integers(0, 8)), max_size=6))
def test_reachability_is_the_closure_of_what_is_there(history):
    texts = {"+": "SELECT ?x ?y { ?x <urn:p>+ ?y }", "seen": "SELECT ?x ?y { ?x <urn:q> ?z . ?x <urn:p>+ ?y }"}
    evaluators = {name: Evaluator(parse_sparql(text)) for name, text in texts.items()}
    there = []
    for plus, count in history:
        fresh = [edge for edge in plus if edge not in there]
        gone, there = there[:count], there[count:] + fresh
        for evaluator in evaluators.values():
            evaluator.change(fresh, gone)
        pairs = closure({(s, o) for s, p, o in there if p == P})
        assert evaluators["+"].solutions() == dict.fromkeys(pairs, 1)
        from_q = [s for s, p, _ in there if p == Q]
        wanted = {(x, y): from_q.count(x) for x, y in pairs if x in from_q}
        assert evaluators["seen"].solutions() == wanted


@pytest.mark.parametrize(
    "ends", [f"?x <urn:q> ?t . ?t <urn:p>* {A}", "?x <urn:q> ?t . ?t <urn:p>* ?c", f"{A} <urn:p>* ?t"]
)
def test_triples_that_the_path_does_not_need_are_not_remembered(ends):
    evaluator = Evaluator(parse_sparql(f"SELECT ?t {{ {ends} }}"))
    evaluator.change([(B, "<urn:other>", C)], ())
    assert not any(evaluator.remembered().values())
    evaluator.change([(B, Q, D)], ())
    assert evaluator.solutions() == ({(D,): 1} if "?c" in ends else {(A,): 1} if ends.startswith(A) else {})
