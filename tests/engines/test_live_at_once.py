"""Rows that no later element of their time takes back are sent with the element that makes them."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.engines import load
from streamgauge.model.element import StreamElement
from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.semantics import Borders, Counting, Report
from streamgauge.query import parse_sparql
from streamgauge.semantics.growth import sent_at_once, waits_for_time
from streamgauge.semantics.profiles import CQELS
from tests.engines.test_live import agree
from tests.examples import examples
from tests.notation import STREAM

GROWING = (
    "SELECT ?s ?v { ?s <urn:p> ?v }",
    "SELECT ?v { ?s <urn:p> ?v ; <urn:q> ?w FILTER(?v > 1) }",
    "SELECT DISTINCT ?v { { ?s <urn:p> ?v } UNION { ?s <urn:q> ?v } }",
    "SELECT ?s ?n { ?s <urn:p> ?v BIND(?v + 1 AS ?n) }",
)
OTHER = (
    "SELECT (COUNT(*) AS ?n) { ?s <urn:p> ?v }",
    "SELECT ?s { ?s <urn:p> ?v FILTER NOT EXISTS { ?s <urn:r> ?w } }",
    "SELECT * { ?s <urn:p> ?v OPTIONAL { ?s <urn:q> ?w } }",
    "SELECT ?s { ?s <urn:p> ?v MINUS { ?s <urn:r> ?w } }",
    "SELECT ?s ?v { ?s <urn:p> ?v } ORDER BY ?v ?s LIMIT 1",
)


def asked(text: str, size: int = 5) -> ContinuousQuery:
    return ContinuousQuery(parse_sparql(text), (StreamWindow(STREAM, Window(size, 1)),), sparql=text)


def alert(time: int, number: int) -> StreamElement:
    subject = f"<urn:s{number}>"
    value = f'"{number}"^^<http://www.w3.org/2001/XMLSchema#integer>'
    return StreamElement(STREAM, time, number, ((subject, "<urn:p>", value), (subject, "<urn:q>", value)))


@pytest.mark.parametrize("text", [*GROWING, *OTHER])
def test_rows_go_out_with_their_element(text):
    query, answers = asked(text), []
    session = load("live").start(query, CQELS, answers.append)
    session.push(alert(1, 7))
    assert bool(answers) is (text in GROWING) is sent_at_once(query, CQELS)
    assert bool(waits_for_time(query, CQELS)) is (text in OTHER)
    before = len(answers)
    session.push(alert(1, 8))
    assert (len(answers) > before) is (text in GROWING)
    session.push(alert(3, 9))
    assert answers


def test_rows_wait_where_late_elements_count():
    query = asked(GROWING[0])
    assert sent_at_once(query, CQELS)
    assert not sent_at_once(query, replace(CQELS, lateness=0))
    assert waits_for_time(query, replace(CQELS, lateness=0))


def test_a_row_that_left_and_comes_again_at_one_time_is_not_new():
    query, answers = asked(GROWING[0], 3), []
    session = load("live").start(query, CQELS, answers.append)
    for time, number in ((0, 1), (3, 2), (3, 1), (3, 3)):
        session.push(alert(time, number))
    session.advance(9)
    assert [(answer.instant, answer.added[0][0]) for answer in answers] == [
        (0, "<urn:s1>"),
        (3, "<urn:s2>"),
        (3, "<urn:s3>"),
    ]


@st.composite
def streams(draw: st.DrawFn) -> list[StreamElement]:
    made, time = [], 0
    for number in range(draw(st.integers(1, 12))):
        time += draw(st.sampled_from([0, 0, 0, 1, 2, 4]))
        triple = st.tuples(
            st.sampled_from(["<urn:s1>", "<urn:s2>"]),
            st.sampled_from(["<urn:p>", "<urn:q>", "<urn:r>"]),
            st.sampled_from([f'"{n}"^^<http://www.w3.org/2001/XMLSchema#integer>' for n in (1, 2)]),
        )
        until = time + draw(st.integers(0, 3)) if draw(st.integers(0, 9)) == 0 else None
        made.append(StreamElement(STREAM, time, number, tuple(draw(st.lists(triple, max_size=3))), (), until))
    return made


@pytest.mark.slow
@examples(60, prove=4000)
@given(
    st.sampled_from([*GROWING, *OTHER]),
    st.integers(1, 5),
    st.sampled_from(list(Borders)),
    st.sampled_from(list(Counting)[:2]),
    st.booleans(),
    streams(),
)
def test_answers_are_the_definitions(text, size, borders, answers, non_empty, fed):
    report = frozenset({Report.CONTENT_CHANGE, *([Report.NON_EMPTY] if non_empty else [])})
    agree(asked(text, size), replace(CQELS, name="drawn", report=report, borders=borders, answers=answers), fed, 30)
