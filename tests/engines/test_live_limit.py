"""LIMIT and OFFSET on `live`: every answer is one that SPARQL allows, by the oracle; the only one is given."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.engines.live import refuse
from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.semantics import R2S, Borders, Report, Tick
from streamgauge.model.verdict import Judgement
from streamgauge.oracle.expected.reports import definition
from streamgauge.oracle.judging.oracle import JudgingRules, check
from streamgauge.query import parse_sparql
from streamgauge.semantics.profiles import RSPQL
from tests.engines.test_live import agree, said
from tests.examples import examples
from tests.notation import STREAM, stream
from tests.oracle.runs import right_run

CHANGE = replace(RSPQL, report=frozenset({Report.CONTENT_CHANGE}), tick=Tick.BATCH, partial_head=True)
WAYS = (
    (RSPQL, Window(5, 5)),
    (RSPQL, Window(8, 2)),
    (replace(RSPQL, borders=Borders.OPEN_CLOSED), Window(6, 3)),
    (CHANGE, Window(5, 1)),
    (replace(CHANGE, tick=Tick.TUPLE), Window(6, 3)),
    (CHANGE, Window(4, 1, "count")),
)
"""Looks at contents whole, and changes."""
TIES = (
    "SELECT ?s ?v { ?s <urn:v> ?v } ORDER BY ?v LIMIT 2",
    "SELECT ?s { ?s <urn:v> ?v } ORDER BY DESC(?v) ?s LIMIT 3 OFFSET 1",
    "SELECT ?s { ?s <urn:v> ?v } LIMIT 2",
    "SELECT * { ?s <urn:v> ?v } OFFSET 2",
    "SELECT DISTINCT ?v { ?s <urn:v> ?v } ORDER BY ?v LIMIT 2",
    "SELECT ?s (COUNT(*) AS ?n) { ?s <urn:v> ?v } GROUP BY ?s ORDER BY DESC(?n) LIMIT 1",
    "SELECT ?s (MAX(?v) AS ?m) { ?s <urn:v> ?v } GROUP BY ?s HAVING(MAX(?v) > 1) ORDER BY ?m LIMIT 2",
    "SELECT ?s ?w { ?s <urn:v> ?v OPTIONAL { ?s <urn:w> ?w } } ORDER BY ?w DESC(?v) LIMIT 2",
    "SELECT ?s { ?s <urn:v> ?v FILTER NOT EXISTS { ?s <urn:w> ?v } } ORDER BY (?v * -1) LIMIT 1",
    "SELECT ?s ?v { { ?s <urn:v> ?v } UNION { ?s <urn:w> ?v } } ORDER BY ?v LIMIT 4",
)
ONE = (
    "SELECT ?s ?v { ?s <urn:v> ?v } ORDER BY ?v ?s LIMIT 2",
    "SELECT ?s ?v { ?s <urn:v> ?v } ORDER BY DESC(?s) ?v LIMIT 2 OFFSET 1",
    "SELECT ?s (COUNT(*) AS ?n) { ?s <urn:v> ?v } GROUP BY ?s ORDER BY DESC(?n) ?s LIMIT 1",
    "SELECT ?s { ?s <urn:v> ?v } ORDER BY DESC(timestamp(?s, <urn:v>, ?v)) ?s ?v LIMIT 1",
)


@st.composite
def texts(draw):
    """Elements of a few subjects and values, so that keys are equal."""
    times = sorted(draw(st.lists(st.integers(0, 14), min_size=1, max_size=9)))
    names, values = st.sampled_from("abc"), st.integers(0, 3)
    triples = [
        " ".join(
            f"{draw(names)} {draw(st.sampled_from('vvw'))} {draw(values)}." for _ in range(draw(st.integers(1, 2)))
        )
        for _ in times
    ]
    return " | ".join(f"{time}: {triple}" for time, triple in zip(times, triples, strict=True))


@pytest.mark.slow
@examples(30, prove=2000)
@given(texts(), st.sampled_from(WAYS), st.sampled_from(TIES))
def test_every_answer_is_a_legal_one(text, way, sparql):
    semantics, window = way
    query = ContinuousQuery(parse_sparql(sparql), (StreamWindow(STREAM, window),))
    assert refuse(query, semantics) is None
    run = right_run(semantics, text=text)
    answers = tuple(said(query, semantics, stream(text), 20))
    run = replace(run, header=replace(run.header, query=query), answers=answers)
    verdict = check(run, definition(stream(text)), 0, JudgingRules())
    assert verdict.judgement is Judgement.RIGHT, (verdict.reason, verdict.windows)


@pytest.mark.slow
@examples(40, prove=1000)
@given(texts(), st.sampled_from(WAYS), st.sampled_from(ONE), st.sampled_from(R2S))
def test_where_one_answer_is_legal_it_is_the_definition_s(text, way, sparql, sends):
    semantics = replace(way[0], r2s=sends, r2s_able=frozenset(R2S))
    agree(ContinuousQuery(parse_sparql(sparql), (StreamWindow(STREAM, way[1]),)), semantics, stream(text), 20)


def test_what_of_a_limit_is_refused_by_name():
    for text, reason in (
        ("SELECT ?s { ?s <urn:v> ?v } ORDER BY (EXISTS { ?s <urn:w> ?w }) LIMIT 1", "EXISTS in ORDER BY"),
        ("SELECT ?s { ?s <urn:v> ?v } ORDER BY RAND() LIMIT 1", "RAND"),
    ):
        query = ContinuousQuery(parse_sparql(text), (StreamWindow(STREAM, Window(5, 5)),))
        assert reason in (refuse(query, RSPQL) or "")


@pytest.mark.parametrize("way", WAYS[:4], ids=range(4))
def test_the_window_moves_by_a_row_where_one_comes_before_it(way):
    semantics, window = way
    text = " | ".join(f"{at}: s{at} v {9 - at}." for at in range(10))
    query = ContinuousQuery(parse_sparql(ONE[0]), (StreamWindow(STREAM, window),))
    agree(query, semantics, stream(text), 15)
    assert all(len(answer.added) <= 2 for answer in said(query, semantics, stream(text), 15))
