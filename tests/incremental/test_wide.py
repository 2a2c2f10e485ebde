"""Paths, named graphs, functions, EXISTS anywhere, GROUP_CONCAT and CONSTRUCT against pyoxigraph after every change."""

from collections import Counter
from dataclasses import replace

import pyoxigraph as ox
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from streamgauge.formats.canonical import parse_term
from streamgauge.incremental import refuse
from streamgauge.query.printer import sparql
from tests.examples import examples
from tests.incremental.evaluation import Evaluator
from tests.sparql import draw, wide
from tests.sparql.pyoxigraph.restated import restated
from tests.sparql.suite import Result, difference, from_pyoxigraph

DEFAULT = None
GRAPHS = (DEFAULT, *wide.NAMES)
SIMPLE = frozenset({"FILTER", "OPTIONAL", "UNION", "BIND"})


def reference(form, content):
    store = ox.Store()
    for name in wide.NAMES:
        store.add_graph(parse_term(name))
    for name, triples in content.items():
        graph = ox.DefaultGraph() if name is DEFAULT else parse_term(name)
        store.extend(ox.Quad(*map(parse_term, triple), graph) for triple in triples)
    return from_pyoxigraph(store.query(sparql(restated(form))))


def answer(evaluator, kind="solutions"):
    bag = evaluator.solutions()
    assert all(count > 0 for count in bag.values()), bag
    return Result(kind, evaluator.variables, tuple(Counter(bag).elements()))


def histories(steps=6, graphs=GRAPHS):
    change = st.tuples(
        st.sampled_from(graphs), draw.triples(max_size=8), st.integers(0, 10), st.randoms(use_true_random=False)
    )
    return st.lists(change, min_size=1, max_size=steps)


def play(evaluator, history):
    """Yield the sets that are there and the change of the answer, step by step; ends with everything removed."""
    there = {name: Counter() for name in GRAPHS}
    feeds = {name: (evaluator.enter, evaluator.leave) if name is DEFAULT else evaluator.feeds(name) for name in GRAPHS}
    for name, plus, count, random in history:
        old = sorted(there[name].elements())
        minus = random.sample(old, min(count, len(old)))
        enter, leave = feeds[name]
        enter(plus)
        leave(minus)
        there[name].update(plus)
        there[name].subtract(minus)
        there[name] = +there[name]
        yield {name: set(triples) for name, triples in there.items()}, evaluator.settle()
    for name, triples in there.items():
        feeds[name][1](tuple(triples.elements()))
    yield {}, evaluator.settle()


def holds(form, history, seen=lambda result: result, kind="solutions"):
    """Every change gives what pyoxigraph says, the changes add up, nothing is left at the end."""
    assume(wide.pyoxigraph_differs(form) is None)
    assume("may be unbound outside" not in (refuse(form, wide.NAMES) or ""))
    evaluator = Evaluator(form, names=wide.NAMES)
    total = Counter()
    for there, delta in play(evaluator, history):
        total.update(delta)
        assert all(delta.values())
        told = difference(seen(reference(form, there)), seen(answer(evaluator, kind)))
        assert not told, f"{sparql(form)}\n{there}\n{told}"
        assert {row: n for row, n in total.items() if n} == evaluator.solutions()
    assert not any(evaluator.remembered().values()), evaluator.remembered()


CASES = [
    (SIMPLE, {"PATH"}),
    (SIMPLE, {"GRAPH"}),
    (SIMPLE, {"FUNCTION"}),
    (SIMPLE, {"EXISTS"}),
    (draw.OPERATORS, {"EXISTS"}),
    (draw.OPERATORS - {"MINUS"}, wide.FEATURES),
]


@pytest.mark.slow
@pytest.mark.parametrize(("operators", "features"), CASES, ids=lambda names: "+".join(sorted(names)))
def test_every_change_gives_what_pyoxigraph_says(operators, features):
    @examples(16 if features == wide.FEATURES else 7, prove=2000)
    @given(wide.widened(draw.queries(operators), frozenset(features)), histories())
    def check(form, history):
        holds(form, history)

    check()


@pytest.mark.slow
@examples(12, prove=2000)
@given(wide.constructs(draw.queries(SIMPLE)), histories(graphs=(DEFAULT,)))
def test_triples_are_made_up_to_the_names_of_their_blank_nodes(form, history):
    holds(form, history, kind="triples")


@pytest.mark.slow
@examples(12, prove=2000)
@given(wide.concatenations(SIMPLE), histories(graphs=(DEFAULT,)))
def test_concatenations_hold_the_same_pieces(form, history):
    def seen(result):
        at = result.variables.index("x_concat")
        rows = tuple((*row[:at], wide.sorted_pieces(row[at]), *row[at + 1 :]) for row in result.rows)
        return replace(result, rows=rows)

    holds(form, history, seen)
