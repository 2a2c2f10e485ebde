"""Answers that no implementation may give, whatever integers it supports, and those of which nobody can tell."""

from dataclasses import replace

import pytest

from streamgauge.formats.notation import term
from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.semantics import Counting, Semantics
from streamgauge.oracle.judging.choices import allows, beyond, integer, is_beyond, is_limited
from streamgauge.oracle.judging.intervals import OpenError
from streamgauge.oracle.judging.latitude import Latitude
from streamgauge.oracle.judging.undecided import LimitedIntegers
from streamgauge.query import parse_sparql
from streamgauge.semantics.arrivals import Arrival
from streamgauge.semantics.profiles import RSPQL
from tests.notation import STREAM, rows, triples

BIG, SQUARE = 2**63, 2**32
HEAD = "PREFIX : <urn:> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> "


def excluded(text: str, content: str, said: str, semantics: Semantics = RSPQL) -> bool:
    query = ContinuousQuery(parse_sparql(HEAD + text), (StreamWindow(STREAM, Window(5, 5)),))
    held = triples(content.replace("BIG", str(BIG)).replace("SQUARE", str(SQUARE)))
    return LimitedIntegers(query, semantics).exclude(((Arrival(STREAM, 0, None, held),),), rows(said))


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
    for said in possible.split("|"):
        assert not excluded(text, content, said), said
    for said in impossible.split("|"):
        assert excluded(text, content, said), said


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


@pytest.mark.parametrize(
    ("text", "content"),
    [
        # operations on such integers whose outcomes are not stated
        ("SELECT (AVG(?v) AS ?n) { ?s :p ?v }", OVER),
        ("SELECT (MIN(?v) AS ?n) { ?s :p ?v }", OVER),
        ("SELECT (MAX(?v) AS ?n) { ?s :p ?v }", OVER),
        ("SELECT (MAX(?v * ?v) AS ?n) { ?s :p ?v }", OVER),
        ("SELECT (?v / 2 AS ?n) { ?s :p ?v }", OVER),
        ("SELECT (?v + 0.5 AS ?n) { ?s :p ?v }", OVER),
        ("SELECT (SUM(?v) AS ?n) { ?s :p ?v }", f"{OVER}. d p 1.5"),
        ("SELECT (ABS(?v) AS ?n) { ?s :p ?v }", OVER),
        ("SELECT (xsd:double(?v) AS ?n) { ?s :p ?v }", OVER),
        ("SELECT (COALESCE(?v + 1, 0) AS ?n) { ?s :p ?v }", OVER),
        ("SELECT (IF(?v > 5, 1, 0) AS ?n) { ?s :p ?v }", OVER),
        ("SELECT ((?v > 5) AS ?n) { ?s :p ?v }", OVER),
        ("SELECT (STR(?v * ?v) AS ?n) { ?s :p ?v }", OVER),
        ("SELECT ?s { ?s :p ?v FILTER(?v) }", OVER),
        ("SELECT ?s { ?s :p ?v FILTER(!?v) }", OVER),
        ("SELECT ?s { ?s :p ?v FILTER(?s = :a || ?v) }", OVER),
        ("SELECT ?s { ?s :p ?v FILTER(?s = :a && ?v) }", OVER),
        # integers that are joined, grouped, counted or made distinct
        ("SELECT ?s { ?s :p ?v BIND(?v * ?v AS ?w) ?s :p ?w }", OVER),
        ("SELECT ?s { ?s :p ?v { SELECT ?s { ?s :p ?k } } }", OVER),
        ("SELECT ?s { ?s :p ?v { SELECT ?s { ?s :p ?k } LIMIT 1 } }", OVER),
        ("SELECT (COUNT(*) AS ?n) { ?s :p ?v } GROUP BY (?v * ?v)", OVER),
        ("SELECT (COUNT(DISTINCT ?v * ?v) AS ?n) { ?s :p ?v }", OVER),
        ("SELECT DISTINCT (?v * ?v AS ?n) { ?s :p ?v }", OVER),
        ("SELECT ?s { ?s :p ?v FILTER(?v > 5) } LIMIT 1", OVER),
        # a doubtful comparison that changes other rows
        ("SELECT (COUNT(*) AS ?n) { ?s :p ?v FILTER(?v > 5) }", OVER),
        ("SELECT ?s ?k { ?s :p ?v OPTIONAL { ?s :p ?k FILTER(?v > 5) } }", OVER),
        ("SELECT ?s ?k { ?s :p ?v FILTER(?v > 5) OPTIONAL { ?s :p ?k FILTER(?k > 5) } }", OVER),
        ("SELECT ?s ?k { ?s :p ?v OPTIONAL { { ?s :p ?k FILTER(?k > 5) } UNION { ?s :q ?k } } }", OVER),
        ("ASK { ?s :p ?v FILTER(?v > 5) }", OVER),
        # blank nodes are compared by isomorphism
        ("SELECT ?s { ?s :p ?v FILTER(?v > 5) }", "_:x p BIG"),
    ],
)
def test_nothing_is_excluded_where_nobody_can_tell(text: str, content: str) -> None:
    assert not any(excluded(text, content, said) for said in ("", "nothing", "nothing nothing"))


@pytest.mark.parametrize("text", ["SELECT (?v + 0.5 AS ?n) { ?s :p ?v }", "SELECT (AVG(?v * ?v) AS ?n) { ?s :p ?v }"])
def test_the_reason_is_the_number(text: str) -> None:
    query = ContinuousQuery(parse_sparql(HEAD + text), (StreamWindow(STREAM, Window(5, 5)),))
    with pytest.raises(OpenError, match="a number of more than 18 digits, which implementations need not support"):
        Latitude(query, RSPQL, limited=True).possible(((Arrival(STREAM, 0, None, triples(f"a p {BIG}")),),))


def test_a_blank_node_that_is_sent_is_not_told_from_others() -> None:
    assert not excluded(ABOVE, OVER, "_:x ; c")


def test_answers_compared_as_sets() -> None:
    text = "SELECT ?k { ?s :p ?v ; :q ?k FILTER(?v > 5) }"
    content = "a p BIG. a q x. b p 6. b q y. c p 7. c q y. d p 5. d q z"
    sets = replace(RSPQL, answers=Counting.SET)
    assert not any(excluded(text, content, said, sets) for said in ("y", "x ; y", "y ; y"))
    assert all(excluded(text, content, said, sets) for said in ("x", "y ; z", ""))
    assert excluded(text, content, "y")
    squares = "SELECT (?v * ?v AS ?n) { ?s :p ?v }"
    assert not excluded(squares, f"a p {BIG}. b p {BIG + 1}", "1", sets), "two errors are one row"


def test_reports_of_many_rows() -> None:
    values = ". ".join(f"s{n} p {BIG + n}" for n in range(310))
    doubles = "SELECT (?v * 2 AS ?n) { ?s :p ?v }"
    errors = " ; ".join(["-"] * 300)
    assert not excluded(doubles, values, f"{errors} ; " + " ; ".join(["0"] * 10)), "too many for partners to be sought"
    few = ". ".join(f"s{n} p {BIG + n}" for n in range(40))
    assert not excluded(doubles, few, " ; ".join(["-"] * 40))
    assert excluded(doubles, few, " ; ".join(["-"] * 39 + ["1"]))
    same = ". ".join(f"s{n} p 7" for n in range(3000)) + ". t p BIG"
    assert not excluded("SELECT ?v { ?s :p ?v FILTER(?v > 5) }", same, " ; ".join(["7"] * 3000))
    assert excluded("SELECT ?v { ?s :p ?v FILTER(?v > 5) }", same, " ; ".join(["7"] * 2999))


def test_comparisons_that_are_certain_do_not_hide_other_rows() -> None:
    text = "SELECT ?s (SUM(?v) AS ?n) { ?s :p ?v FILTER(?s != :b) } GROUP BY ?s"
    assert excluded(text, OVER, "b 5")
    assert not excluded(text, OVER, f"a {BIG} ; c 5")
    text = "SELECT ?s ?k { ?s :p ?v OPTIONAL { ?s :q ?k FILTER(?s != :b) } FILTER(?v * ?v > 5) }"
    assert excluded(text, "b p 6", "b 5")


@pytest.mark.parametrize(
    ("value", "given", "is_allowed"),
    [
        (BIG, f"{BIG}", True),
        (BIG, f"{BIG}.0", True),
        (BIG, f"-{BIG}", True),
        (BIG, "0", True),
        (BIG, "-", True),
        (BIG, f"{BIG - 1}", False),
        (BIG, f"{BIG}.5", False),
        (BIG, "INFf", False),
        (BIG, "x", False),
        (BIG + 1, "1", True),
        (BIG - 1, "-1", True),
        (-BIG - 1, f"{BIG - 1}", True),
        (2**60 - 1, f"{2**60 - 1}", True),
        (2**60, f"-{2**60}", True),
        (2**60, "0", False),
        (2**61, "0", True),
        (2**127, f"-{2**127}", True),
        (2**128, f"{-(2**128)}", False),
    ],
)
def test_outcomes_of_an_integer_beyond(value: int, given: str, is_allowed: bool) -> None:
    assert allows(beyond(value), None if given == "-" else term(given)) is is_allowed


@pytest.mark.parametrize(
    ("kind", "has_to"),
    [
        *((kind, False) for kind in ("integer", "decimal", "positiveInteger", "nonNegativeInteger")),
        *((kind, True) for kind in ("long", "unsignedLong", "double", "float")),
    ],
)
def test_numbers_that_have_to_be_supported(kind: str, has_to: bool) -> None:
    literal = f'"{10**18}"^^<http://www.w3.org/2001/XMLSchema#{kind}>'
    assert is_limited(literal) is not has_to
    assert not is_limited(literal.replace(str(10**18), str(10**18 - 1)))


@pytest.mark.parametrize("kind", ["negativeInteger", "nonPositiveInteger"])
def test_negative_numbers_of_19_digits_need_not_be_supported(kind: str) -> None:
    assert is_limited(f'"-{10**18}"^^<http://www.w3.org/2001/XMLSchema#{kind}>')


def test_terms_of_integers_beyond() -> None:
    assert beyond(BIG) == f'"{BIG}"^^<urn:streamgauge:beyond>', "a namespace that no data has"
    assert [integer(each) for each in (beyond(-BIG), term("5"), term("5.5"), term("x"))] == [-BIG, 5, None, None]
    assert [is_beyond(each) for each in (beyond(BIG), term(str(BIG)), None)] == [True, False, False]
    terms = (beyond(5), term(str(BIG)), term(str(10**18)), term(str(10**18 - 1)), term("1e300"), term("x"))
    assert [is_limited(each) for each in terms] == [True, True, True, False, False, False]
