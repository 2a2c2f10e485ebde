"""Drawn triples of RDF 1.2: what `live` answers on them is right, whatever a query does with their terms."""

import pytest
from hypothesis import given

import streamgauge
from streamgauge.model.verdict import Judgement
from tests.examples import examples
from tests.rdf12 import TRIPLES

WINDOW = "FROM NAMED WINDOW <urn:w> ON <urn:s> [RANGE PT5S STEP PT5S]"
BODIES = {
    "all": ("SELECT ?s ?p ?o", "?s ?p ?o"),
    "parts": ("SELECT ?a ?b ?c", "?s ?p <<( ?a ?b ?c )>>"),
    "nested": ("SELECT ?s ?c", "?s ?p <<( ?a ?b <<( ?c ?d ?e )>> )>>"),
    "joined": ("SELECT ?s ?t", "?s ?p ?o . ?t ?q <<( ?s ?r ?x )>>"),
    "languages": ("SELECT ?o ?l ?d", "?s ?p ?o BIND(LANG(?o) AS ?l) BIND(LANGDIR(?o) AS ?d) FILTER(!isIRI(?o))"),
    "texts": ("SELECT ?t ?n", "?s ?p ?o BIND(STR(?o) AS ?t) BIND(STRLEN(?t) AS ?n)"),
    "made": ("SELECT ?t", "?s ?p ?o BIND(TRIPLE(?s, ?p, ?o) AS ?t)"),
    "taken apart": ("SELECT ?t ?x", "?s ?p ?t FILTER(isTRIPLE(?t)) BIND(OBJECT(?t) AS ?x)"),
    "equal": ("SELECT ?o ?q", "?s ?p ?o . ?t ?r ?q FILTER(?o = ?q)"),
    "counted": ("SELECT ?o (COUNT(*) AS ?n)", "?s ?p ?o"),
    "without": ("SELECT ?o", "?s ?p ?o MINUS { ?t ?q <<( ?s ?r ?o )>> }"),
    "made triples": ("CONSTRUCT { ?o ?p ?s . ?s <urn:has> ?o ~ ?s {| ?p ?o |} }", "?s ?p ?o"),
}


def query(name: str) -> str:
    head, body = BODIES[name]
    grouped = " GROUP BY ?o" if name == "counted" else ""
    return f"{head} {WINDOW} WHERE {{ WINDOW <urn:w> {{ {body} }} }}{grouped}"


@pytest.mark.parametrize("name", BODIES)
@given(TRIPLES)
@examples(8, 400)
def test_live_is_right(name, triples):
    stream = [(1000, list(triples))]
    answers = list(streamgauge.watch(query(name), stream))
    assert answers
    verdict = streamgauge.verify(query(name), stream, answers=answers, advance_to="windows", explain=False)
    assert verdict.judgement is Judgement.RIGHT, verdict.windows
