"""Answers beside integers of more than 18 digits: those that no implementation may give, and the doubtful ones."""

import pytest

from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.report import DueReport
from streamgauge.oracle.worlds.legality import ReportLegality
from streamgauge.query import parse_sparql
from streamgauge.semantics.arrivals import Arrival
from streamgauge.semantics.profiles import RSPQL
from tests.notation import STREAM, rows, triples

BIG, SQUARE = 2**63, 2**32
HEAD = "PREFIX : <urn:> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> "


def excluded(text: str, content: str, said: str) -> bool:
    query = ContinuousQuery(parse_sparql(HEAD + text), (StreamWindow(STREAM, Window(5, 5)),))
    held = triples(content.replace("BIG", str(BIG)).replace("SQUARE", str(SQUARE)))
    contents = ((Arrival(STREAM, 0, None, held),),)
    opinion = ReportLegality(lambda _: contents, query, RSPQL).of(DueReport(0, ()), rows(said))
    return not opinion.legal and not opinion.unknown


ABOVE = "SELECT ?s { ?s :p ?v FILTER(?v > 5) }"
OVER = "a p BIG. b p 6. c p 5"
SQUARED = "SELECT ?s (?v * ?v AS ?n) { ?s :p ?v }"
TOLD: list[tuple[str, str, str, str]] = [
    # query, content, answers that may be given, answers that may not; "|" between answers
    (ABOVE, OVER, "a ; b|b", "a ; b ; c|a|c|a ; b ; b"),
    (ABOVE.replace("> 5", ">= 5"), OVER, "a ; b ; c|b ; c", "b|a ; c"),
    (ABOVE.replace("> 5", f"< {BIG}"), "a p 1. b p BIG. c p x", "a ; b|a|b", "c|a ; c"),
    (ABOVE.replace("> 5", f"!= {BIG}"), "a p 1. b p BIG. c p x", "a ; c|c|b ; c", "a|"),
    (ABOVE.replace("> 5", "= 6"), OVER, "b|a ; b", "a|c|b ; c"),
    (ABOVE.replace("> 5", "!= 6"), OVER, "a ; c|c", "a|b ; c"),
    (ABOVE.replace("?v > 5", "?v IN (5, 7)"), OVER, "c|a ; c", "a|b ; c"),
    (ABOVE.replace("?v > 5", "!(?v > 5)"), OVER, "c|a ; c", "a|b ; c"),
    (ABOVE.replace("?v > 5", "?v > 5 && ?s != :b"), OVER, "a|", "b|c"),
    (ABOVE.replace("?v > 5", "?v > 5 || ?s = :c"), OVER, "b ; c|a ; b ; c", "a ; b"),
    (ABOVE.replace("?v > 5", "-?v < -5"), OVER, "a ; b|b", "a ; b ; c|a"),
    (ABOVE.replace("?v > 5", "?v - 1 > 4"), OVER, "a ; b|b", "a ; b ; c|a"),
    (ABOVE.replace("?v > 5", "STRLEN(STR(?v)) > 5"), OVER, "a", "|b"),
    (ABOVE.replace("?v > 5", "isLITERAL(?v) && BOUND(?v) && ?v > 5"), OVER, "a ; b|b", "c"),
    ("SELECT DISTINCT ?s { ?s :p ?v ; :q ?k FILTER(?v > 5) }", "a p BIG. a q 1. a q 2. b p 6. b q 1",
        "a ; b|b", "a|b ; b"),
    ("SELECT ?s { ?s :p ?v OPTIONAL { ?s :q ?k } FILTER(?v > 5) }", OVER, "a ; b|b", "c|a"),
    ("SELECT ?s { { ?s :p ?v FILTER(?v > 5) } OPTIONAL { ?s :q ?k } }", OVER, "a ; b|b", "c|a"),
    ("SELECT ?s { { ?s :p ?v FILTER(?v > 5) } UNION { ?s :q ?v } }", f"{OVER}. d q BIG", "a ; b ; d|b ; d", "a ; b|b"),
    ("SELECT ?s { ?s :p ?v MINUS { ?s :p ?v FILTER(?v > 5) } }", OVER, "c|a ; c", "a|b ; c"),
    ("SELECT ?s { ?s :p ?v FILTER EXISTS { ?s :p ?k FILTER(?k > 5) } }", OVER, "a ; b|b", "a|b ; c"),
    ("SELECT ?s { ?s :p ?v FILTER NOT EXISTS { ?s :p ?k FILTER(?k > 5) } }", OVER, "c|a ; c", "a|b ; c"),
    # computed integers: the value, modulo 2^n, or an error
    (SQUARED, "a p SQUARE. b p 3", f"a {2 * BIG} ; b 9|a 0 ; b 9|a - ; b 9", "a 5 ; b 9|a - ; b -|b 9|a - ; a - ; b 9"),
    (SQUARED.replace("* ?v", "+ ?v"), "a p BIG", f"a {2 * BIG}|a 0|a -", f"a {BIG}|"),
    (SQUARED.replace("* ?v", "- 1"), "a p BIG", f"a {BIG - 1}|a -1|a -", "a 1"),
    (SQUARED.replace("?v * ?v", "-?v"), "a p BIG", f"a -{BIG}|a -", f"a {BIG}|a 5"),
    (SQUARED.replace("?v * ?v", "?v * ?v * 0 + 1"), "a p SQUARE", "a 1|a -", "a 0"),
    # rows that are told apart by computed integers only
    ("SELECT (?v * ?v AS ?n) { ?s :p ?v }", "a p SQUARE. b p 3", "9 ; -|- ; 9|0 ; 9", "9 ; 9|- ; -|5 ; 9|9"),
    ("SELECT (?v * 2 AS ?n) { ?s :p ?v }", f"a p {BIG}. b p {BIG + 1}",
        f"- ; {2 * BIG}|{2 * BIG} ; -|- ; {2 * BIG + 2}|{2 * BIG + 2} ; -|- ; -|2 ; 0", "1 ; -|2 ; 2|- ; - ; -"),
    ("SELECT ?s ?m { ?s :p ?v BIND(?v * ?v AS ?n) BIND(?n + 1 AS ?m) FILTER(?n > 5) }", "a p SQUARE. b p 3. c p 2",
        f"a {2 * BIG + 1} ; b 10|b 10|a 1 ; b 10", "a 1|a 2 ; b 10|b 10 ; c 5"),
    ("SELECT ?s (SUM(?v) AS ?n) { ?s :p ?v } GROUP BY ?s", "a p BIG. a p 1. b p 1. b p 2",
        f"a {BIG + 1} ; b 3|a {1 - BIG} ; b 3|a - ; b 3", f"a {BIG} ; b 3|a - ; b 4|b 3|a - ; b -"),
    ("SELECT (SUM(?v) AS ?n) { ?s :p ?v }", "a p 999999999999999999. b p 1", f"{10**18}|-", "0|5|"),
    ("SELECT ?s { ?s :p ?v } GROUP BY ?s HAVING(SUM(?v) > 5)", OVER, "a ; b|b", "a|b ; c"),
    ("SELECT ?s (COUNT(?v) AS ?n) { ?s :p ?v } GROUP BY ?s", OVER, "a 1 ; b 1 ; c 1", "a 1 ; b 1|a - ; b 1 ; c 1"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "content", "possible", "impossible"), TOLD)
def test_answers_beside_integers_of_19_digits(text: str, content: str, possible: str, impossible: str) -> None:
    for part in possible.split("|"):
        assert not excluded(text, content, part), part
    for part in impossible.split("|"):
        assert excluded(text, content, part), part


@pytest.mark.parametrize(
    "condition",
    [
        "BOUND(?k)",
        "sameTerm(?s, :d)",
        "isIRI(?v)",
        "isBLANK(?s)",
        "isLITERAL(?s)",
        "DATATYPE(?v) = xsd:string",
        "LANG(?v) = 'en'",
        "LANGMATCHES(LANG(?v), 'en')",
        "STR(?v) = 'x'",
        "STRLEN(STR(?v)) < 1",
        "CONTAINS(STR(?v), 'x')",
        "STRSTARTS(STR(?v), 'x')",
        "STRENDS(STR(?v), 'x')",
        "REGEX(STR(?v), 'x')",
    ],
)
def test_functions_that_read_no_value_of_a_number(condition: str) -> None:
    text = ABOVE.replace("?v > 5", f"?v > 5 || {condition}")
    assert excluded(text, OVER, "b ; c")
    assert not excluded(text, OVER, "b")
