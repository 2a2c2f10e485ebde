"""Re-evaluation by columns against the incremental broker: the same differences after each publication."""

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgauge.query import parse_sparql
from streamgauge.servers.broker.broker import Broker
from streamgauge.suites.sepbm.adapters.columns import ColumnStrategy, FactTables, statement
from tests.servers.broker.world import BASE, RULES, Clock, broker, listening, student

graphs = st.builds(
    lambda n, first, last: student(n)[first:last], *[st.integers(*ends) for ends in ((0, 2), (0, 4), (3, 7))]
)
steps = st.lists(st.tuples(st.booleans(), st.one_of(graphs, st.just(BASE[-1:]))), min_size=1, max_size=5)


@pytest.mark.slow
@settings(deadline=None, max_examples=5)
@given(steps)
def test_the_same_rows_come_and_go_as_incrementally(steps):
    clock = Clock()
    made = [Broker(ColumnStrategy(RULES, duckdb.connect()), clock.wall, clock.steady), broker()]
    messages = []
    for item in made:
        item.load(BASE)
        messages.append(listening(item))
    for publishes, graph in steps:
        for item in made:
            (item.publish if publishes else item.delete)(graph)
        one, two = ({name: [(frozenset(n.added), frozenset(n.removed)) for n in subscribed.take()]
                     for name, subscribed in taken.items()} for taken in messages)  # fmt: skip
        assert one == two


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("ASK { ?s ?p ?o }", "SELECT queries only"),
        ("SELECT * { ?s ?p ?o }", "name the property"),
        ("SELECT * { ?s a ?c }", "name the class"),
        ("SELECT ?x ?y { ?x a <urn:c> }", "is never bound"),
        ("SELECT * { ?x <urn:p> ?y OPTIONAL { ?y <urn:p> ?z } }", "LeftJoin is not evaluated by columns"),
        ("SELECT * { ?x <urn:p> ?y FILTER (?y > 3) }", "Filter is not evaluated by columns"),
    ],
)
def test_what_is_not_done_is_named(query, why):
    with pytest.raises(ValueError, match=why):
        statement(FactTables(duckdb.connect()), parse_sparql(query))
