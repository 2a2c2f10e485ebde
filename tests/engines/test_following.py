"""An element that enters with stops where a pattern finds something is answered as triple by triple, row by row."""

import random
from dataclasses import replace

import pytest

from streamgauge.engines import live
from streamgauge.incremental.pool import Pool
from streamgauge.model.element import StreamElement
from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.semantics import R2S, Clock
from streamgauge.query import parse_sparql
from streamgauge.semantics.profiles import CQELS_1

QUERIES = (
    "SELECT ?s ?o { ?s <urn:p> ?o }",
    "SELECT ?s ?x { ?s <urn:p> ?o . ?o <urn:q> ?x }",
    "SELECT ?s { ?s <urn:p> ?o . ?s <urn:p> ?x . ?x <urn:p> ?s }",
    "SELECT ?s ?p { ?s ?p ?o . ?o <urn:q> ?s }",
    "SELECT ?s ?x { ?s <urn:p> ?o OPTIONAL { ?o <urn:q> ?x } }",
    "SELECT (COUNT(*) AS ?n) { { ?s <urn:p> ?o } UNION { ?o <urn:q> ?s } }",
    "SELECT DISTINCT ?s { ?s <urn:p> ?o MINUS { ?s <urn:q> ?o } }",
)


def stream(draws: random.Random) -> list[StreamElement]:
    """Small graphs over few terms, so that triples repeat, also in one element, and times do."""
    found, time = [], 0
    for number in range(60):
        time += draws.choice((0, 0, 1, 2, 7))
        triples = [
            (f"<urn:{draws.randrange(3)}>", f"<urn:{draws.choice('pqr')}>", f"<urn:{draws.randrange(3)}>")
            for _ in range(draws.randrange(6))
        ]
        until = time + draws.randrange(1, 9) if draws.random() < 0.2 else None
        found.append(StreamElement("urn:s", time, number, tuple(triples), until=until))
    return found


def answers(queries: list[ContinuousQuery], semantics, elements) -> list[list[object]]:
    found: list[list[object]] = [[] for _ in queries]
    session = live.start_all([(query, semantics, said.append) for query, said in zip(queries, found, strict=True)])
    for element in elements:
        session.push(element)
    session.advance(elements[-1].time + 20)
    session.close()
    return found


@pytest.mark.parametrize("r2s", [R2S.ISTREAM, R2S.DSTREAM])
@pytest.mark.parametrize("seed", range(5))
def test_with_stops_as_triple_by_triple(r2s, seed, monkeypatch):
    draws = random.Random(seed)
    semantics = replace(CQELS_1, clock=Clock.APPLICATION, r2s=r2s, r2s_able=frozenset({r2s}))
    window = StreamWindow("urn:s", Window(draws.choice((5, 10)), 5))
    asked = [ContinuousQuery(parse_sparql(text), (window,)) for text in QUERIES]
    elements = stream(draws)
    cases = [*([each] for each in asked), asked]
    followed = [answers(case, semantics, elements) for case in cases]
    monkeypatch.setattr(Pool, "follow", lambda _self, _graph: None)
    assert followed == [answers(case, semantics, elements) for case in cases]
    assert sum(len(said) for case in followed for said in case) > 100
