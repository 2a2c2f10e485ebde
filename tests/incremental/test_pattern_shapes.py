"""Patterns that differ in one constant are joined once, and each is answered as if it were alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.incremental import SnapshotContents, Snapshots
from streamgauge.incremental.drivers.content import WindowContent
from streamgauge.incremental.evaluator import KeptAnswer
from streamgauge.incremental.plan import unheard
from streamgauge.incremental.window_joins import WindowJoins
from streamgauge.query import parse_sparql
from tests.examples import examples
from tests.incremental.evaluation import Evaluator

PATTERNS = (
    "?s <urn:p> {0}",
    "?x <urn:p> {0}",
    "?s <urn:p> {0} ; <urn:q> ?v",
    "?s <urn:p> {0} ; <urn:q> ?v FILTER(?v = <urn:a>)",
    "{0} <urn:p> ?o . ?o <urn:p> ?q",
    "?s <urn:p> {0} ; <urn:q> {1}",
    "?s <urn:p> {0} . ?s <urn:q> {0}",
    "?s <urn:p> {0} . ?t <urn:q> {1}",
    "?s ?p {0}",
    "?s a {0} ; <urn:p> {1}",
    "?s <urn:p> {0} OPTIONAL {{ ?s <urn:q> {1} }}",
)
nodes = st.sampled_from(["<urn:a>", "<urn:b>", "<urn:c>"])
predicates = st.sampled_from(["<urn:p>", "<urn:p>", "<urn:q>", "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"])
forms = st.builds(
    lambda pattern, *terms: parse_sparql(f"SELECT * {{ {pattern.format(*terms)} }}"),
    st.sampled_from(PATTERNS),
    nodes | st.just('"a"'),
    nodes,
)
triples = st.sets(st.tuples(nodes, predicates, nodes | st.just('"a"')), max_size=8)


@examples(60, prove=5000)
@given(st.lists(forms, min_size=2, max_size=5), st.lists(triples, min_size=1, max_size=4))
def test_patterns_alike_are_answered_as_alone(forms, contents):
    pool, snapshots, content = WindowJoins(), SnapshotContents(), WindowContent(unheard, unheard)
    together = [KeptAnswer(form, pool.leaf) for form in forms]
    looking = [Snapshots(form, snapshots) for form in forms]
    enter, leave = pool.feeds(None)
    snapshots.bind(None, content)
    before = set()
    for at, now in enumerate(contents):
        enter(now - before)
        leave(before - now)
        content.drop(at)
        content.enter(at, tuple(now), None)
        snapshots.look()
        expected = [alone(form, now) for form in forms]
        assert [item.answer() for item in together] == expected
        assert [item.answer() for item in looking] == expected
        before = now


def alone(form, triples):
    evaluator = Evaluator(form)
    evaluator.enter(triples)
    return evaluator.answer()


@pytest.mark.parametrize(
    ("pattern", "joined"),
    [("?s <urn:p> {0} ; <urn:q> ?v", 1), ("?s <urn:p> {0} ; <urn:q> {0}", 1), ("?s <urn:p> {0} . ?t <urn:q> ?v", 9)],
)
def test_patterns_that_differ_in_a_constant_are_one_join(pattern, joined):
    pool = WindowJoins()
    for number in range(9):
        KeptAnswer(parse_sparql(f"SELECT * {{ {pattern.format(f'<urn:{number}>')} }}"), pool.leaf)
    assert len(pool.leaves) == joined
