"""The incremental evaluator against pyoxigraph on the current set of triples, after every change."""

from collections import Counter

import pyoxigraph as ox
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from streamgauge.incremental import refuse
from streamgauge.query import parse_sparql
from streamgauge.query.printer import sparql
from tests.examples import examples
from tests.incremental.evaluation import Evaluator
from tests.sparql import draw
from tests.sparql.pyoxigraph.restated import restated
from tests.sparql.suite import Result, difference, from_pyoxigraph
from tests.sparql.wide import pyoxigraph_differs


def store(triples):
    store = ox.Store()
    text = "\n".join(f"{s} {p} {o} ." for s, p, o in triples)
    store.extend(ox.parse(text, format=ox.RdfFormat.N_TRIPLES))
    return store


def reference(form, triples):
    return from_pyoxigraph(store(triples).query(sparql(restated(form))))


def answer(evaluator, kind="solutions"):
    bag = evaluator.solutions()
    assert all(count > 0 for count in bag.values()), bag
    return Result(kind, evaluator.variables, tuple(Counter(bag).elements()))


def histories(steps=6):
    """Changes of a few triples: copies may be added, only what is there is removed."""
    change = st.tuples(draw.triples(max_size=8), st.integers(0, 10), st.randoms(use_true_random=False))
    return st.lists(change, min_size=1, max_size=steps)


def play(evaluator, history):
    """Yield the set that is there and the change of the answer, step by step; ends with everything removed."""
    there = Counter()
    for plus, count, random in history:
        old = sorted(there.elements())
        minus = random.sample(old, min(count, len(old)))
        delta = evaluator.change(plus, minus)
        there.update(plus)
        there.subtract(minus)
        there = +there
        yield set(there), delta
    yield set(), evaluator.change((), tuple(there.elements()))


OPERATORS = [
    frozenset(),
    frozenset({"FILTER"}),
    frozenset({"FILTER", "DISTINCT", "BIND", "UNION"}),
    frozenset({"GROUP", "HAVING", "FILTER"}),
    frozenset({"OPTIONAL", "MINUS", "FILTER", "VALUES"}),
    draw.OPERATORS,
]


@pytest.mark.slow
@pytest.mark.parametrize("operators", OPERATORS, ids=lambda names: "+".join(sorted(names)) or "BGP")
def test_every_change_gives_what_pyoxigraph_says(operators):
    @examples(16 if operators == draw.OPERATORS else 8, prove=2000)
    @given(draw.queries(operators), histories())
    def check(form, history):
        assume(pyoxigraph_differs(form) is None)
        evaluator = Evaluator(form)
        total = Counter()
        for there, delta in play(evaluator, history):
            total.update(delta)
            assert all(delta.values())
            assert not difference(reference(form, there), answer(evaluator)), sparql(form)
            assert {row: n for row, n in total.items() if n} == evaluator.solutions()

    check()


@pytest.mark.slow
@examples(10, prove=2000)
@given(draw.queries(frozenset({"FILTER", "UNION", "DISTINCT"})), histories(), draw.triples())
def test_static_data_stays(form, history, static):
    evaluator = Evaluator(form, static)
    for there, _ in play(evaluator, history):
        assert not difference(reference(form, there | set(static)), answer(evaluator))


@pytest.mark.slow
@examples(12, prove=2000)
@given(draw.queries(frozenset({"FILTER"})), histories())
def test_nothing_is_left_when_everything_has_gone(form, history):
    evaluator = Evaluator(form)
    for _ in play(evaluator, history):
        pass
    assert evaluator.solutions() == {}
    assert not any(evaluator.remembered().values()), evaluator.remembered()


A, B = "<urn:a>", "<urn:b>"
P = "<urn:p>"


def run(text, *changes):
    evaluator = Evaluator(parse_sparql(text))
    return [dict(evaluator.change(plus, minus)) for plus, minus in changes]


def test_one_triple_in_two_places_counts_once():
    loop = (A, P, A)
    assert run("SELECT ?x ?y { ?x <urn:p> ?y . ?y <urn:p> ?x }", ([loop], []), ([], [loop])) == [
        {(A, A): 1},
        {(A, A): -1},
    ]


def test_a_triple_leaves_with_its_last_copy():
    triple = (A, P, B)
    deltas = run("SELECT ?x { ?x <urn:p> ?y }", ([triple, triple], []), ([], [triple]), ([], [triple]))
    assert deltas == [{(A,): 1}, {}, {(A,): -1}]


def test_ask_and_construct_change_too():
    triple = (A, P, B)
    true, false = (
        ('"true"^^<http://www.w3.org/2001/XMLSchema#boolean>',),
        ('"false"^^<http://www.w3.org/2001/XMLSchema#boolean>',),
    )
    assert run("ASK { ?x <urn:p> ?y }", ([], []), ([triple], []), ([], [triple])) == [
        {false: 1},
        {false: -1, true: 1},
        {true: -1, false: 1},
    ]
    assert run("CONSTRUCT { ?y <urn:q> ?x } WHERE { ?x <urn:p> ?y }", ([triple, (A, P, '"l"')], [])) == [
        {(B, "<urn:q>", A): 1}
    ]


def test_a_word_among_numbers_unbinds_the_average_until_it_leaves():
    xsd = "http://www.w3.org/2001/XMLSchema#"
    one, two, word = (A, P, f'"1"^^<{xsd}float>'), (B, P, f'"0.5"^^<{xsd}float>'), (A, P, '"x"')
    deltas = run(
        "SELECT (AVG(?v) AS ?a) (COUNT(?v) AS ?n) { ?x <urn:p> ?v }", ([one, two], []), ([word], []), ([], [word])
    )
    average, count = f'"0.75"^^<{xsd}float>', '"{}"^^<http://www.w3.org/2001/XMLSchema#integer>'
    assert deltas[0] == {(average, count.format(2)): 1}
    assert deltas[1] == {(average, count.format(2)): -1, (None, count.format(3)): 1}
    assert deltas[2] == {(average, count.format(2)): 1, (None, count.format(3)): -1}


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("SELECT * { ?x <urn:p> ?y } LIMIT 3", "LIMIT"),
        ("SELECT (RAND() AS ?c) { ?x <urn:p> ?y }", "RAND"),
    ],
)
def test_what_is_not_kept_is_refused_by_name(text, named):
    assert named in (refuse(parse_sparql(text)) or "")
