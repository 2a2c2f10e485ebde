"""Queries as people and papers write them: what has a meaning is read, the rest is refused with the remedy."""

import pytest

from streamgauge.model.query import StreamWindow, Window
from streamgauge.query import QueryError, detect, parse, parse_sparql

P = "PREFIX : <http://e/> "
W = P + "SELECT ?s FROM NAMED WINDOW :w ON :s "
RSPQL = P + "SELECT ?s FROM NAMED WINDOW :w ON :s [RANGE 10s STEP 5s] "
CQELS = P + "SELECT ?s FROM NAMED :g WHERE { STREAM :s [RANGE 10s] { ?s :p ?o } "


@pytest.mark.parametrize(
    "head", ["FROM STREAM :s [RANGE 10s STEP 5s] AS :win", "FROM NAMED STREAM :s [RANGE 10s STEP 5s] AS :win"]
)
def test_a_window_named_behind_its_brackets_is_rspql(head: str) -> None:
    text = f"{P}SELECT ?s {head} WHERE {{ WINDOW :win {{ ?s :p ?o }} ?s :q ?x }}"
    assert detect(text) == "rspql"
    query = parse(text)
    assert query.windows == (StreamWindow("http://e/s", Window(10_000, 5_000), "http://e/win"),)
    named = f"{P}SELECT ?s FROM NAMED WINDOW :win ON :s [RANGE 10s STEP 5s] {{ WINDOW :win {{ ?s :p ?o }} ?s :q ?x }}"
    assert query == parse(named)


@pytest.mark.parametrize("count", ["TRIPLES", "ROWS", "TUPLES", "ELEMENTS"])
def test_counts(count: str) -> None:
    text = f"{P}SELECT ?s FROM NAMED WINDOW :w ON :s [{count} 7] {{ WINDOW :w {{ ?s :p ?o }} }}"
    assert parse(text).window == Window(7, 7, "count")


def test_static_data_of_a_named_graph() -> None:
    inside = parse(CQELS + "GRAPH :g { ?s :q ?x } }")
    assert inside == parse(CQELS.replace("NAMED ", "") + "?s :q ?x }")
    assert inside.background == ("http://e/g",)
    other = parse(f"{RSPQL}FROM NAMED :g {{ WINDOW :w {{ ?s :p ?o }} GRAPH :g {{ ?s :q ?x }} }}")
    assert other.form == parse(f"{RSPQL}{{ WINDOW :w {{ ?s :p ?o }} {{ ?s :q ?x }} }}").form
    assert other.background == ("http://e/g",)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (W + "[RANGE 10 STEP 2] { WINDOW :w { ?s ?p ?o } }",
            "RANGE 10 has no unit: write 10s for seconds, 10ms for milliseconds"),
        (P + "SELECT ?s FROM NAMED WINDOW :w ON ?s [RANGE 10s] { WINDOW :w { ?s ?p ?o } }",
            "ON [?]s: a window is over one stream; name it"),
        (P + "SELECT ?s FROM NAMED WINDOW :w ON STREAM ?s [RANGE 10s] { WINDOW :w { ?s ?p ?o } }", "over one stream"),
        (P + "SELECT ?s FROM STREAM :s [RANGE 1s] AS :w FROM STREAM :t [RANGE 1s] { WINDOW :w { ?s ?p ?o } }",
            "the AS is missing here"),
        (RSPQL + "{ WINDOW :w { GRAPH ?g { ?s ?p ?o } } }", "GRAPH inside WINDOW: a window is a single graph"),
        (RSPQL + "{ WINDOW :w { ?s ?p ?o { GRAPH :w { ?s ?p ?o } } } }", "GRAPH inside WINDOW"),
        (CQELS + "?s :q ?x }", "no pattern uses that graph"),
        (P + "SELECT ?s FROM NAMED :g FROM NAMED :h { STREAM :s [NOW] { ?s ?p ?o } GRAPH :g { ?s ?p ?o } }",
            "static data is one graph"),
    ],
)  # fmt: skip
def test_the_rest_is_refused_with_the_remedy(text: str, says: str) -> None:
    with pytest.raises(QueryError, match=says):
        parse(text)


def test_graph_beside_window_names_the_window() -> None:
    assert parse(RSPQL + "{ WINDOW :w { ?s ?p ?o } GRAPH ?g { ?s ?p ?o } }").windows[0].name == "http://e/w"


def test_having_with_an_alias_is_noted() -> None:
    group = "{ WINDOW :w { ?s :p ?v } } GROUP BY ?s HAVING"
    head = f"{P}SELECT ?s (COUNT(?v) AS ?n) FROM NAMED WINDOW :w ON :s [RANGE 4s] "
    (note,) = parse(f"{head}{group} (?n >= 1)").notes
    assert note.startswith("HAVING uses ?n, which SELECT computes after it")
    assert parse(f"{head}{group} (COUNT(?v) >= 1)").notes == ()


@pytest.mark.parametrize(
    ("text", "column", "says"),
    [
        ("SELECT * { ?x <urn:p> ?v FILTER(?v<6&&?v>2) }", 35, "<6&&[?]v> is read as an IRI: write a space after <"),
        ("SELECT * { ?x <urn:p> <http://ex.org/a b> }", 23, "<http://ex.org/a b> is not an IRI: spaces"),
        ("SELECT * { ?x <urn:p> ?y FILTER(?y < <http://ex.org/a b>) }", 38, "<http://ex.org/a b> is not an IRI"),
        ("SELECT * { ?x <urn:p> ?y FLITER(?y < 3) }", 26, "not FLITER; did you mean FILTER"),
        ("SELECT * { ?x <urn:p> ?y FILTER(REGXE(?y, 'a')) }", 33, "REGXE is not a function of SPARQL; did you mean"),
        ("SELECT * { ?x <urn:p> 'open }", 23, "this string is not closed"),
        ("SELECT * { ?x <urn:p> 'a\\qb' }", 23, "an invalid escape"),
        ("SELECT * { ?x <urn:p> ?y . . }", 28, "expected here, not [.]"),
        ("SELECT * { ?x <urn:p> ?y ?z <urn:q> 1 }", 26, "a dot, a semicolon or a comma between triples is expected"),
        ("SELECT * { ?x <urn:p> ?y } LIMIT ?n", 34, "a whole number after LIMIT is expected here"),
        ("SELECT * { ?x <urn:p> ?y FILTER(1 < ?y < 3) }", 40, "comparisons cannot be chained"),
        ("SELECT * { ?x <urn:p> _:b OPTIONAL { _:b <urn:q> ?y } }", 38, "also occurs in another group of patterns"),
        ("SELECT ?x (?s / 2 AS ?m) { ?x <urn:p> ?s } GROUP BY ?x", 12, "[?]s in SELECT is unbound: add it to GROUP BY"),
        ("SELECT * { BIND(1 AS ?x) BIND(2 AS ?x) }", 36, "[?]x already has a value"),
        ("SELECT * { VALUES (?x ?y) { (1) } }", 29, "this row of VALUES has 1 terms for 2 variables"),
        ("SELECT * { ?x\u00a0<urn:p> 1 }", 14, "'.xa0' is not allowed here"),
    ],
)  # fmt: skip
def test_messages_point_at_the_place_and_the_cause(text: str, column: int, says: str) -> None:
    with pytest.raises(QueryError, match=says) as error:
        parse_sparql(text)
    assert (error.value.line, error.value.column) == (1, column)


def test_a_byte_order_mark_is_no_word() -> None:
    assert parse_sparql("\ufeffPREFIX : <urn:> SELECT * { ?s :p ?o }") == parse_sparql("SELECT * { ?s <urn:p> ?o }")
