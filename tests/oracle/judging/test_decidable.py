"""Contents of which intervals tell everything: there the rows that are near a bound are looked at alone."""

from collections import Counter
from dataclasses import replace

import pytest

from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.report import DueReport
from streamgauge.model.terms import XSD
from streamgauge.model.verdict import Judgement
from streamgauge.oracle.expected.reports import definition
from streamgauge.oracle.judging.bounds import DecidableContents, Narrowed
from streamgauge.oracle.judging.oracle import JudgingRules, check
from streamgauge.query import parse_sparql
from streamgauge.semantics.arrivals import Arrival, Contents
from streamgauge.semantics.evaluate import Snapshot
from streamgauge.semantics.profiles import RSPQL
from tests.notation import STREAM, stream, triples
from tests.oracle.runs import right_run

DUE = DueReport(5, ())


def asked(text: str) -> ContinuousQuery:
    return ContinuousQuery(parse_sparql(text), (StreamWindow(STREAM, Window(5, 5)),))


def held(text: str) -> Contents:
    return ((Arrival(STREAM, 0, None, triples(text)),),)


PAIR = "SELECT ?s { ?s <urn:p> ?v ; <urn:q> ?w "
INCLUDED = [
    ("a difference", PAIR + "FILTER(?v - ?w > 60.0) }", "a p 1.5f. a q 2.", True),
    ("strings beside", PAIR + "FILTER(?v - ?w > 60.0) }", 'a p "x". a q b.', True),
    ("a number of 50 bits", PAIR + "FILTER(?v - ?w > 60.0) }", "a p 1125899906842623. a q 2.", False),
    ("49 bits", PAIR + "FILTER(?v - ?w > 60.0) }", "a p 562949953421311. a q 2.", True),
    ("a product", PAIR + "FILTER(?v * ?w > 60.0) }", "a p 33554431. a q 33554431e0.", True),
    ("a product of 26 bits each", PAIR + "FILTER(?v * ?w > 60.0) }", "a p 33554432. a q 1.", False),
    ("a double beside", PAIR + "FILTER(?v * ?w * 1e0 > 60.0) }", "a p 33554432. a q 1.", False),
    ("a division", PAIR + "FILTER(?v / ?w > 60.0) }", "a p 1. a q 2.", False),
    ("19 digits after the point", PAIR + "FILTER(?v - ?w > 1) }", "a p 0.1234567890123456789. a q 2.", False),
    ("a constant", PAIR + "FILTER(?v - ?w > 1e300) }", "a p 1. a q 2.", False),
    ("a sum", "SELECT ?s { ?s <urn:p> ?v } GROUP BY ?s HAVING(SUM(?v) > 1)", "a p 1048575. a p 0.1f.", True),
    ("a large sum", "SELECT ?s { ?s <urn:p> ?v } GROUP BY ?s HAVING(SUM(?v) > 1)", "a p 1048576.", False),
    ("a computed mean", "SELECT (AVG(?v) AS ?m) (COUNT(*) AS ?n) { ?s <urn:p> ?v }", "a p 1.", True),
    ("a product in a mean", "SELECT (AVG(?v * ?v) AS ?m) { ?s <urn:p> ?v }", "a p 1024.", False),
    ("the least", "SELECT (MIN(?v) AS ?m) { ?s <urn:p> ?v }", "a p 1.", True),
    ("the least of computed ones", "SELECT (MIN(?v + 1) AS ?m) { ?s <urn:p> ?v }", "a p 1.", False),
    ("a sample", "SELECT (SAMPLE(?v) AS ?m) { ?s <urn:p> ?v }", "a p 1.", False),
    ("a computed key", "SELECT ?k { ?s <urn:p> ?v } GROUP BY (?v + 1 AS ?k)", "a p 1.", False),
    ("a computed order", PAIR + "} ORDER BY (?v + ?w)", "a p 1. a q 2.", False),
    ("a truth value", PAIR + "BIND(?v + ?w > 1 AS ?b) }", "a p 1. a q 2.", False),
    ("ASK", "ASK { ?s <urn:p> ?v FILTER(?v + 1 > 1) }", "a p 1.", False),
    ("LIMIT within", PAIR + "{ SELECT ?s { ?s <urn:r> ?x } LIMIT 1 } FILTER(?v - ?w > 1) }", "a p 1.", False),
    ("a time", "SELECT ?s { ?s <urn:p> ?v FILTER(timestamp(?s, <urn:p>, ?v) - 1 > 5) }", "a p 1.", False),
]


@pytest.mark.parametrize(("text", "content", "included"), [case[1:] for case in INCLUDED], ids=[c[0] for c in INCLUDED])
def test_contents_of_which_everything_is_told(text: str, content: str, included: bool) -> None:
    decidable = DecidableContents(asked(text))
    assert [decidable.include(held(content)) for _ in range(2)] == [included, included]


@pytest.mark.parametrize(("number", "included"), [("1.5e0", True), ("1e300", False), ("NaN", False), ("INF", False)])
def test_static_data_is_looked_at(number: str, included: bool) -> None:
    static = (("<urn:a>", "<urn:q>", f'"{number}"^^<{XSD}double>'),)
    query = asked(PAIR + "FILTER(?v - ?w > 60.0) }").with_static(static)
    assert DecidableContents(query).include(held("a p 1.")) is included


NARROWED = [
    (PAIR + "FILTER(?v - ?w > 1) }", "a"),
    ("SELECT DISTINCT ?s ?v { ?s <urn:p> ?v ; <urn:q> ?w FILTER(?v - ?w > 1) } ORDER BY ?s", "a 4"),
    ("SELECT ?s (AVG(?v) AS ?m) { ?s <urn:p> ?v } GROUP BY ?s HAVING(AVG(?v) > 1)", "a"),
    ("SELECT (AVG(?v) AS ?m) ?s { ?s <urn:p> ?v } GROUP BY ?s ?x HAVING(AVG(?v) > 1)", "a"),
]


@pytest.mark.parametrize(("text", "key"), NARROWED)
def test_rows_are_asked_for_by_their_keys(text: str, key: str) -> None:
    query, content = asked(text), held("a p 4. a p 2. a q 1. b p 5. b q 1. c p 7. c q 9.")
    narrowed = Narrowed(query)
    every = Snapshot(query).rows(content)
    wanted = Counter(row for row in every if narrowed.key(row) == narrowed.key(every[0]))
    few = narrowed.to({narrowed.key(every[0])})
    assert few is not None
    assert narrowed.possible
    assert len(every) > wanted.total() > 0
    assert Counter(Snapshot(few).rows(content)) == wanted


@pytest.mark.parametrize(
    "text",
    [
        "SELECT (AVG(?v) AS ?m) { ?s <urn:p> ?v } GROUP BY ?s HAVING(AVG(?v) > 1)",
        "SELECT (AVG(?v) AS ?m) { ?s <urn:p> ?v }",
        "SELECT ?s { { ?s <urn:p> ?v } UNION { ?s <urn:q> ?v } FILTER(?v - 1 > 1) }",
        "SELECT ?s { ?s <urn:p> ?v MINUS { ?s <urn:q> ?w FILTER(?w - 1 > 1) } }",
        "SELECT ?v { ?s <urn:p> ?v OPTIONAL { ?s <urn:q> ?w FILTER(?w - 1 > 1) } }",
        "SELECT ?x { ?s <urn:p> ?v BIND(?s AS ?x) FILTER(?v - 1 > 1) }",
        "SELECT ?s { ?s <urn:p> ?v } GROUP BY (?v AS ?s) HAVING(COUNT(*) - 1 > 1)",
        "ASK { ?s <urn:p> ?v FILTER(?v - 1 > 1) }",
    ],
)
def test_other_queries_are_asked_whole(text: str) -> None:
    assert not Narrowed(asked(text)).possible


def test_blank_nodes_are_no_keys() -> None:
    assert Narrowed(asked(PAIR + "FILTER(?v - ?w > 1) }")).to({("_:b",)}) is None


@pytest.mark.parametrize("reports_it", [True, False])
def test_rows_with_blank_nodes_are_undecided_too(reports_it: bool) -> None:
    text, sparql = "1: _:b p 61.1f. _:b q 1.1f. c p 99f. c q 1f.", PAIR + "FILTER(?v - ?w > 60.0) }"
    run = right_run(RSPQL, text=text, sparql=sparql, advance=5)
    rows = [row for row in run.answers[0].added if row[0] == "<urn:c>"] + [("_:x",)] * reports_it
    verdict = check(
        replace(run, answers=(replace(run.answers[0], added=tuple(rows)),)), definition(stream(text)), 0, JudgingRules()
    )
    assert (verdict.judgement, verdict.undecided) == (Judgement.RIGHT, 1)
