"""Queries that ask the same are answered together, each as if it were alone."""

from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from streamgauge.engines import load
from streamgauge.formats.lines import Advance
from streamgauge.servers.http.events import End
from streamgauge.servers.queries.registry import Queries
from streamgauge.servers.queries.requests import QueryRegistration
from tests.examples import examples
from tests.servers.programs import PROGRAM
from tests.servers.queries.asks import IN, construct, element, select, service

pytestmark = pytest.mark.server

WAIT = 300


def lines(running):
    return [notification.line for notification in running.answers.subscribe(0, lambda: None).take()]


def counted(engine):
    """A service whose engine counts its sessions."""
    started = Counter()

    def start(query, semantics, emit):
        started[query.windows] += 1
        return engine.start(query, semantics, emit)

    return Queries(lambda _name: SimpleNamespace(refuse=engine.refuse, start=start), ("counted",)), started


def test_one_session_answers_all_that_ask_the_same_from_the_same_element_on():
    queries, started = counted(load("live"))
    same = [queries.register(QueryRegistration(text)) for text in (select(), f"# in other words\n{select()}")]
    other = queries.register(QueryRegistration(select(size=4)))
    queries.publish(IN, [element(0, "c p d.")])
    later = queries.register(QueryRegistration(select()))
    queries.publish(IN, [element(1000), element(4000)])
    assert queries.settle(WAIT)
    assert sorted(started.values()) == [1, 2]
    assert same[0].evaluation is same[1].evaluation is not later.evaluation is not other.evaluation
    assert lines(same[0]) == lines(same[1]) != lines(later)
    queries.deregister(same[0].name)
    queries.publish(IN, [element(8000)])
    assert queries.settle(WAIT)
    assert (same[0].answers.number, same[1].answers.number) == (2, 4)
    assert (same[0].state, same[1].state) == ("ended", "running")
    queries.close("over")


@pytest.mark.server
def test_a_program_is_started_once_for_those_that_share_it():
    queries, started = counted(PROGRAM)
    running = [queries.register(QueryRegistration(select())) for _ in range(3)]
    queries.publish(IN, [element(0), element(2500)])
    assert queries.settle(WAIT)
    queries.close("over")
    assert [process.answers.number for process in running] == [1, 1, 1]
    assert sum(started.values()) == 1


def test_queries_whose_answers_are_streams_have_sessions_of_their_own():
    queries, _ = counted(load("live"))
    unnamed = construct().partition(" AS ")[2]
    first, second = queries.register(QueryRegistration(unnamed)), queries.register(QueryRegistration(unnamed))
    assert first.worker is not second.worker
    queries.close("over")


def test_one_that_ended_is_joined_by_nobody():
    queries, _ = counted(load("live"))
    first = queries.register(QueryRegistration(select()))
    first.end(End("enough"))
    second = queries.register(QueryRegistration(select()))
    queries.publish(IN, [element(0), element(2000)])
    assert queries.settle(WAIT)
    assert (first.answers.number, second.answers.number) == (0, 1)
    queries.close("over")


def asked(r2s, size, **options):
    return QueryRegistration(
        f"REGISTER {r2s} <urn:out> AS {select(size=size)}", semantics="rspql", dialect="rspql", **options
    )


wishes = st.sampled_from(
    [
        asked("RSTREAM", 1),
        asked("ISTREAM", 2, lateness=1500),
        asked("DSTREAM", 2, t0=0),
        asked("RSTREAM", 2, lateness=1500),
    ]
)
elements = st.builds(element, st.integers(0, 1500), st.sampled_from(["a p b.", "b p c."]))
batches = st.lists(elements | st.builds(Advance, st.integers(0, 1500)), min_size=1, max_size=4)
acts = st.lists(wishes | batches | batches | st.integers(0, 9), min_size=4, max_size=25)


def moved(items, by):
    """Later, as streams go on; within a batch times go back and forth."""
    return [replace(item, time=item.time + by) for item in items]


@examples(20, prove=1000)
@given(acts)
@example([asked("RSTREAM", 2), [element(0)], asked("RSTREAM", 2), [element(100, "b p c."), element(3000)]])
def test_however_queries_come_and_go_each_is_answered_as_if_it_were_alone(acts):
    queries, started = counted(load("live"))
    seen, asked, begun = {}, {}, set()
    try:
        for place, act in enumerate(acts):
            if isinstance(act, QueryRegistration):
                running = queries.register(act)
                asked[running], seen[running] = act, []
            elif isinstance(act, list):
                batch = moved(act, place * 500)
                for running in queries.queries():
                    seen[running].append(batch)
                    begun.add(id(running.evaluation))
                queries.publish(IN, batch)
                assert queries.settle(WAIT)
            elif open_ := queries.queries():
                queries.deregister(open_[act % len(open_)].name)
        for running, wish in asked.items():
            result, late = alone(wish, seen[running])
            assert lines(running) == result
            assert running.fault or running.late == late
    finally:
        queries.close("over")
    assert sum(started.values()) == len(begun)


def alone(wish, batches):
    """The answers to a query that has the service for itself, and how many elements were late."""
    queries = service()
    running = queries.register(wish)
    for batch in batches:
        queries.publish(IN, batch)
    assert queries.settle(WAIT)
    result = lines(running), running.late
    queries.close("over")
    return result
