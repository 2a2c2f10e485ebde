"""Facts of a broker keep their lexical form, in every strategy, also where a store keeps their value alone."""

import pytest

from streamgauge.query import parse_sparql
from streamgauge.reasoning.closure import NO_RULES
from streamgauge.servers.broker.evaluation import IndexedClosure
from streamgauge.servers.broker.limits import Limits, read_graph
from tests.lexical import N_TRIPLES, SAME_VALUE, TRIPLES, P, S, typed
from tests.servers.broker.world import broker

ALL = parse_sparql("SELECT ?o { ?s ?p ?o }")
EQUAL = parse_sparql("SELECT ?o ?q { ?s ?p ?o , ?q FILTER(?o = ?q) }")
ONE, OLD = typed("1", "integer"), typed("01", "integer")


def stored(*terms):
    closure = IndexedClosure(NO_RULES)
    closure.load([(S, P, term) for term in terms])
    return closure


def rows(*terms):
    return {(term,) for term in terms}


@pytest.mark.parametrize("group", SAME_VALUE, ids=lambda group: group[0])
def test_facts_of_one_value_come_and_go_one_by_one(group):
    facts = stored(group[0])
    last = parse_sparql(f"SELECT ?s {{ ?s ?p {group[-1]} }}")
    assert facts.rows(ALL) == rows(group[0])
    assert facts.rows(last) == set()
    facts.change([(S, P, term) for term in group], [])
    assert facts.rows(ALL) == rows(*group)
    assert facts.rows(last) == {(S,)}
    assert facts.rows(EQUAL) == {(one, other) for one in group for other in group}
    facts.change([], [(S, P, group[0])])
    assert facts.rows(ALL) == rows(*group[1:])
    assert facts.holds(parse_sparql(f"ASK {{ ?s ?p {group[-1]} }}"))
    assert not facts.holds(parse_sparql(f"ASK {{ ?s ?p {group[0]} }}"))
    facts.change([(S, P, '"plain"')], [(S, P, term) for term in group])
    assert facts.rows(ALL) == rows('"plain"')


@pytest.mark.parametrize("name", ["incremental", "reevaluate", "stringrs", "graphss"])
def test_subscribers_are_told_the_terms_that_were_published(name):
    made = broker(name)
    made.load([(S, P, ONE)])
    made.create_channel("all", f"SELECT ?o {{ ?s {P} ?o }}")
    subscription = made.subscribe("all", "me", lambda: None)
    made.publish(read_graph(f"{S} {P} {OLD} .".encode(), "text/turtle", Limits()))
    assert [notification.added for notification in subscription.take()] == [((OLD,),)]
    assert set(made.rows("all")[1]) == rows(ONE, OLD)
    made.update([], [(S, P, ONE)])
    assert [notification.removed for notification in subscription.take()] == [((ONE,),)]
    assert set(made.rows("all")[1]) == rows(OLD)


def test_a_graph_that_is_published_has_its_terms():
    assert read_graph(N_TRIPLES.encode(), "text/turtle", Limits()) == TRIPLES
