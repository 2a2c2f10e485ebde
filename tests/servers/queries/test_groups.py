"""Different queries over the same windows share a session, each answered as if it were alone, whatever happens."""

from dataclasses import replace
from itertools import groupby
from types import SimpleNamespace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from streamgauge.engines import live
from streamgauge.formats.batches import NumberedTerms
from streamgauge.formats.lines import Advance, decode_answer
from streamgauge.model.element import StreamElement
from streamgauge.semantics.jumps import TimeJumpError
from streamgauge.servers.queries.catalogue import ConflictError
from streamgauge.servers.queries.limits import QueryLimits
from streamgauge.servers.queries.registry import Queries
from streamgauge.servers.queries.requests import QueryRegistration
from tests.engines.test_live_batches import in_columns as columns
from tests.examples import examples
from tests.servers.queries.asks import IN, element

pytestmark = pytest.mark.server

WAIT = 300
PATTERNS = (
    "SELECT * {} WHERE {{ WINDOW <urn:w> {{ ?s <urn:p> ?o }} }}",
    "SELECT * {} WHERE {{ WINDOW <urn:w> {{ ?s <urn:p> <urn:b> }} }}",
    "SELECT ?s ?q {} WHERE {{ WINDOW <urn:w> {{ ?s <urn:p> ?o . ?o <urn:p> ?q }} }}",
    "SELECT ?p (COUNT(*) AS ?n) {} WHERE {{ WINDOW <urn:w> {{ ?s ?p ?o }} }} GROUP BY ?p",
)
ALIKE = (
    "SELECT * {} WHERE {{ WINDOW <urn:w> {{ ?x <urn:p> <urn:c> }} }}",
    "SELECT ?q {} WHERE {{ WINDOW <urn:w> {{ <urn:a> <urn:p> ?o . ?o <urn:p> ?q }} }}",
    "SELECT ?o {} WHERE {{ WINDOW <urn:w> {{ <urn:c> <urn:p> ?q . ?q <urn:p> ?o }} }}",
)
"""Beside ``PATTERNS``: patterns that differ in a constant."""
ONE = '"1"^^<http://www.w3.org/2001/XMLSchema#integer>'
FAILS = "SELECT ?bad {} WHERE {{ WINDOW <urn:w> {{ ?s <urn:fails> ?bad }} }}"


def asked(pattern, r2s="RSTREAM", semantics="rspql", step=1, **options):
    window = f"FROM NAMED WINDOW <urn:w> ON <{IN}> [RANGE PT2S STEP PT{step}S]"
    text = f"REGISTER {r2s} <urn:out> AS {pattern.format(window)}"
    return QueryRegistration(text, semantics=semantics, dialect="rspql", **options)


def constructed(r2s="RSTREAM", semantics="rspql", step=1, **options):
    """A query whose answers are a stream of its own."""
    window = f"FROM NAMED WINDOW <urn:w> ON <{IN}> [RANGE PT2S STEP PT{step}S]"
    text = f"CONSTRUCT {r2s} {{ ?o <urn:of> ?s }} {window} WHERE {{ WINDOW <urn:w> {{ ?s <urn:p> ?o }} }}"
    return QueryRegistration(text, semantics=semantics, dialect="rspql", **options)


def failing(emit):
    """Raise where an answer has a row of a query that fails."""

    def checked(answer):
        if answer.variables == ("bad",) and (answer.added or answer.removed):
            raise RuntimeError("out of luck")
        emit(answer)

    return checked


def service(**limits):
    def start_all(queries):
        return live.start_all([(query, semantics, failing(emit)) for query, semantics, emit in queries])

    engine = SimpleNamespace(refuse=live.refuse, start_all=start_all, start=lambda *query: start_all([query]))
    return Queries(lambda _name: engine, ("live",), QueryLimits(**limits), clock=lambda: 0, steady=lambda: 0.0)


def outcome(running):
    """What a client sees; rows of a report have no order."""
    answers = [decode_answer(notification.line) for notification in running.answers.subscribe(0, lambda: None).take()]
    rows = [
        replace(notification, added=tuple(sorted(notification.added)), removed=tuple(sorted(notification.removed)))
        for notification in answers
    ]
    counts = (running.elements, running.late) if running.fault != "deregistered" else ()
    return rows, counts, running.state, running.fault


def groups(running):
    return [len(group.evaluations) for group in running.worker._groups]


def test_one_that_comes_later_is_joined_when_the_windows_that_it_missed_are_over():
    queries = service()
    first = [queries.register(asked(pattern)) for pattern in PATTERNS[:3]]
    queries.publish(IN, [element(time) for time in range(0, 3000, 500)])
    later = queries.register(asked(PATTERNS[3]))
    queries.publish(IN, [element(3000)])
    assert queries.settle(WAIT)
    assert later.worker is first[0].worker
    assert groups(later) == [3, 1]
    for time in range(3500, 20_000, 500):
        queries.publish(IN, [element(time)])
        assert queries.settle(WAIT)
    assert groups(later) == [4]
    assert (first[0].elements, later.elements) == (40, 34)
    queries.close("over")


def test_a_query_whose_answers_are_a_stream_shares_a_session_which_waits_for_readers_of_it():
    queries = service(waiting=2)
    first, writer = queries.register(asked(PATTERNS[0])), queries.register(constructed())
    text = f"SELECT (COUNT(*) AS ?n) FROM NAMED WINDOW <urn:w> ON <{writer.question.output}> [RANGE PT1S] "
    reader = queries.register(QueryRegistration(text + "WHERE { WINDOW <urn:w> { ?o <urn:of> ?s } }", dialect="rspql"))
    assert writer.worker is first.worker
    assert reader.worker is not first.worker
    for time in range(0, 20_000, 500):
        queries.publish(IN, [element(time)])
        assert queries.settle(WAIT)
    assert groups(first) == [2]
    assert [row for answer in outcome(reader)[0] for row in answer.added] == [(ONE,)] * (outcome(reader)[1][0] - 1)
    assert outcome(reader)[1] == (len(outcome(writer)[0]), 0)
    with pytest.raises(ConflictError, match="would be its own input"):
        queries.register(
            QueryRegistration(
                f"REGISTER STREAM <{IN}> AS CONSTRUCT {{ ?s <urn:of> ?o }} FROM NAMED WINDOW <urn:w> ON "
                f"<{writer.question.output}> [RANGE PT1S] WHERE {{ WINDOW <urn:w> {{ ?o <urn:of> ?s }} }}",
                dialect="rspql",
            )
        )
    queries.close("over")


def test_a_query_that_another_joins_jumps_as_far_as_if_it_was_alone():
    queries = service(jump=10)
    first = queries.register(asked(PATTERNS[0]))
    queries.publish(IN, [element(0)])
    second = queries.register(asked(PATTERNS[1]))
    for time in (8_000, 16_000, 24_000):  # 8 closes each
        queries.publish(IN, [element(time)])
        assert queries.settle(WAIT)
    assert second.worker is first.worker
    with pytest.raises(TimeJumpError):
        queries.publish(IN, [element(35_000)])
    queries.close("over")


@pytest.mark.parametrize(("count", "kept"), [(1, 1), (2, 12)])
def test_the_log_of_a_stream_keeps_what_windows_need_where_they_are_shared(count, kept):
    queries = service()
    running, *_ = [queries.register(asked(pattern)) for pattern in PATTERNS[:count]]
    for time in range(0, 200_000, 1000):
        queries.publish(IN, [element(time)])
        assert queries.settle(WAIT)
    log = running.worker._log
    assert log.end - log.begin < kept
    assert len(log.part(log.begin, log.end)) == log.end - log.begin
    queries.close("over")


def test_one_that_fails_ends_alone():
    queries = service()
    running = [queries.register(asked(pattern)) for pattern in (*PATTERNS, FAILS)]
    queries.publish(IN, [element(0), element(500, "a fails b."), element(1000), element(3500)])
    for time in range(4000, 20_000, 500):
        queries.publish(IN, [element(time)])
        assert queries.settle(WAIT)
    assert [process.state for process in running] == ["running"] * 4 + ["failed"]
    assert running[-1].fault == "the engine failed: out of luck"
    assert groups(running[0]) == [4]
    queries.close("over")


def test_nobody_is_ended_by_a_question_that_nobody_asks_any_more():
    queries = service()
    stays, fails = queries.register(asked(PATTERNS[0])), queries.register(asked(FAILS))
    queries.deregister(fails.name)
    for item in (element(0, "a fails b."), element(1000), element(2500)):
        queries.publish(IN, [item])
        assert queries.settle(WAIT)
    assert (stays.state, stays.elements, groups(stays)) == ("running", 3, [1])
    queries.close("over")


steps = st.sampled_from([1, 1, 1, 2])
operators = st.sampled_from(["RSTREAM", "RSTREAM", "ISTREAM", "DSTREAM"])
bounds = {"lateness": st.sampled_from([None, 700]), "t0": st.sampled_from([None, 0])}
wishes = (
    st.builds(asked, st.sampled_from([*PATTERNS, *ALIKE, FAILS]), operators, step=steps)
    | st.builds(asked, st.sampled_from(PATTERNS + ALIKE), operators, **bounds)
    | st.builds(constructed, operators, step=steps)
    | st.builds(asked, st.sampled_from(PATTERNS + ALIKE), st.just("ISTREAM"), st.just("cqels"), **bounds)
)
elements = st.builds(
    element, st.integers(0, 900), st.sampled_from(["a p b.", "b p c.", "a p c. c p b.", "a q b.", "a fails b."])
)
batches = st.lists(elements | elements | st.builds(Advance, st.integers(0, 900)), min_size=1, max_size=4)
acts = st.lists(wishes | batches | batches | st.integers(0, 9), min_size=6, max_size=40)
SAME = [*(asked(pattern) for pattern in PATTERNS), constructed()]
ROUND = [[element(0)], [element(300, "b p c.")], [element(700, "a p c. c p b.")]]


@examples(8, prove=3000)
@given(acts)
@example([*SAME[:2], *ROUND * 3, *SAME[2:], *ROUND * 6, asked(FAILS), *ROUND * 6, [element(0, "a fails b.")], *ROUND])
@example([*SAME, asked(FAILS), *ROUND * 2, 0, 0, 0, [element(0, "a fails b.")], *ROUND * 5])
@example(
    [asked(PATTERNS[0], "ISTREAM", "cqels"), [element(0)], asked(PATTERNS[0], "ISTREAM", "cqels"), 1, SAME[0], *ROUND]
)
@example(
    [
        *([SAME[0]] * 3),
        [Advance(0)],
        SAME[0],
        [element(0, "a p b.")],
        SAME[0],
        [element(0, "b p c.")],
        [element(0, "a p b.")],
    ]
)
@example([*SAME[:3], 1, 1, [element(500), element(900, "a p c.")], SAME[1], *[[element(900, "b p c.")]] * 4])
def test_different_queries_are_each_answered_as_if_they_were_alone(acts):
    queries = service(queries=100)
    seen, asks = {}, {}
    try:
        for place, act in enumerate(acts):
            if isinstance(act, QueryRegistration):
                running = queries.register(act)
                asks[running], seen[running] = act, []
            elif isinstance(act, list):
                batch = [replace(item, time=item.time + place * 400) for item in act]
                published = batch if place % 2 else [*in_columns(batch)]
                for running in queries.queries():
                    seen[running].append((batch, published))
                queries.publish(IN, published)
                assert queries.settle(WAIT)
            elif open_ := queries.queries():
                queries.deregister(open_[act % len(open_)].name)
        for running, ask in asks.items():
            assert outcome(running) == alone(ask, seen[running], running)
    finally:
        queries.close("over")


def in_columns(items):
    """The elements that follow each other together."""
    for kind, group in groupby(items, type):
        alike = list(group)
        yield from [columns(NumberedTerms(), alike)] if kind is StreamElement else alike


def alone(ask, batches, other):
    """The outcome for a query that has the service for itself and ends as another did, its elements one by one.

    They come as they came to the other if that failed, as a batch in columns is counted as a whole or not at all.
    """
    queries = service()
    running = queries.register(ask)
    for batch, published in batches:
        queries.publish(IN, published if other.state == "failed" else batch)
    assert queries.settle(WAIT)
    if other.fault == "deregistered":
        queries.deregister(running.name)
    rows = outcome(running)
    queries.close("over")
    return rows
