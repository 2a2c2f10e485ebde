"""RSP-QL and C-SPARQL: any of them in, any of them out, one query."""

import re
from dataclasses import replace

import pytest

from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.semantics import R2S
from streamgauge.query import QueryError, detect, dialect_names, parse, parse_sparql, print_query

CSPARQL = """PREFIX : <http://e/>
REGISTER QUERY hot AS
SELECT ?sensor (AVG(?value) AS ?average)
FROM STREAM <http://e/s> [RANGE 5s STEP 1s]
WHERE { ?o :by ?sensor ; :result [ :value ?value ] . FILTER(?value > 50.0) }
GROUP BY ?sensor
"""
RSPQL = """REGISTER RSTREAM <hot> AS
PREFIX : <http://e/>
SELECT ?sensor (AVG(?value) AS ?average)
FROM NAMED WINDOW :w ON :s [RANGE PT5S STEP PT1S]
WHERE { WINDOW :w { ?o :by ?sensor . ?o :result _:r . _:r :value ?value } FILTER(?value > 50.0) }
GROUP BY ?sensor
"""


def test_two_texts_of_one_query_are_equal() -> None:
    one, two = parse(CSPARQL), parse(RSPQL)
    assert one == replace(two, r2s=None)
    assert two.r2s is R2S.RSTREAM
    assert one.windows == (StreamWindow("http://e/s", Window(5000, 1000)),)
    assert one.name == "hot"
    assert one.sparql == two.sparql
    assert parse_sparql(one.sparql) == one.form


def test_the_dialect_is_told_by_the_clause_or_by_name() -> None:
    assert dialect_names() == ("cqels", "csparql", "rspql", "sparqlstream")
    assert (detect(CSPARQL), detect(RSPQL)) == ("csparql", "rspql")
    assert parse(CSPARQL, "csparql") == parse(CSPARQL)
    with pytest.raises(QueryError, match=re.escape("an RSP-QL query needs a window: add FROM NAMED WINDOW")):
        parse("SELECT ?s { ?s ?p ?o }", "rspql")
    with pytest.raises(QueryError, match="a C-SPARQL query needs a stream: add FROM STREAM"):
        parse("SELECT ?s { ?s ?p ?o }", "csparql")
    with pytest.raises(ValueError, match="unknown dialect sql: use one of cqels, csparql, rspql, sparqlstream"):
        parse(CSPARQL, "sql")
    with pytest.raises(QueryError, match=r"a CQELS query needs a stream: add WHERE \{ STREAM <stream>"):
        parse("SELECT ?s { ?s ?p ?o }", "cqels")
    with pytest.raises(QueryError, match="a SPARQLstream query needs a stream: add FROM NAMED STREAM <stream>"):
        parse("SELECT ?s { ?s ?p ?o }", "sparqlstream")
    with pytest.raises(QueryError, match=r"this query has no stream: add a stream clause \(cqels: WHERE { STREAM"):
        parse("SELECT ?s { ?s ?p ?o }")


@pytest.mark.parametrize("operator", [None, R2S.RSTREAM, R2S.ISTREAM, R2S.DSTREAM])
@pytest.mark.parametrize("name", [None, "hot", "http://e/hot"])
def test_rspql_says_every_operator(operator: R2S | None, name: str | None) -> None:
    for head in ("SELECT ?s", "CONSTRUCT { ?s ?p ?o }", "ASK"):
        form = parse_sparql(f"{head} WHERE {{ ?s ?p ?o }}")
        query = ContinuousQuery(form, (StreamWindow("http://e/s", Window(5000, 500)),), operator, name=name)
        assert parse(print_query(query, "rspql")) == query


@pytest.mark.parametrize("dialect", dialect_names())
def test_no_dialect_says_that_rows_come_and_go_in_one_answer(dialect: str) -> None:
    query = ContinuousQuery(parse_sparql("SELECT ?s { ?s ?p ?o }"), (StreamWindow("http://e/s", Window(5000, 500)),))
    with pytest.raises(ValueError, match="no dialect has the operator Istream and Dstream: leave it out"):
        print_query(replace(query, r2s=R2S.CHANGES), dialect)


def test_several_windows_are_named_graphs() -> None:
    text = """PREFIX : <http://e/> REGISTER STREAM :out AS SELECT ISTREAM ?s
    FROM NAMED WINDOW :v ON STREAM :s [RANGE 1h STEP 500ms] FROM NAMED WINDOW :w ON :t [RANGE PT1M30.5S]
    { WINDOW :v { ?s ?p ?o } WINDOW :w { ?o ?p "GRAPH <http://e/w>" } }"""
    query = parse(text)
    assert query.windows == (
        StreamWindow("http://e/s", Window(3_600_000, 500), "http://e/v"),
        StreamWindow("http://e/t", Window(90_500, 90_500), "http://e/w"),
    )
    assert (query.r2s, query.name) == (R2S.ISTREAM, "http://e/out")
    assert re.findall(r"GRAPH <(\S+)> {", query.sparql) == ["http://e/v", "http://e/w"]
    assert parse(print_query(query, "rspql")) == query
    with pytest.raises(ValueError, match="C-SPARQL has no named windows"):
        print_query(replace(query, r2s=None), "csparql")


TWO = "SELECT ?s FROM STREAM <a:a> [RANGE 5s] FROM STREAM <a:b> [RANGE 5s] "


def test_two_unnamed_windows_get_names_in_rspql() -> None:
    query = parse(TWO + "{ ?s ?p ?o }")
    assert len(query.windows) == 2
    assert " ".join(print_query(query, "rspql").split()) == (
        "SELECT ?s FROM NAMED WINDOW <urn:streamgauge:window:1> ON <a:a> [RANGE PT5S STEP PT5S] "
        "FROM NAMED WINDOW <urn:streamgauge:window:2> ON <a:b> [RANGE PT5S STEP PT5S] "
        "WHERE { SELECT DISTINCT ?s ?p ?o WHERE { { GRAPH ?w1 { ?s ?p ?o . } } UNION { ?s ?p ?o . } } }"
    )
    assert replace(parse(print_query(query, "csparql")), name=None) == query


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("?s <a:p>+ ?o", "no repeated or negated path over several unnamed windows"),
        ("?s !<a:p> ?o", "no repeated or negated path over several unnamed windows"),
        ("?s ?p ?o FILTER(timestamp(?s, ?p, ?o) > 3)", "no timestamp() over several unnamed windows"),
        ("?s <a:p> [ <a:q> ?o ] { SELECT (COUNT(DISTINCT *) AS ?n) { ?s <a:p> [ <a:q> ?o ] } }", "COUNT"),
    ],
)
def test_what_a_merge_of_windows_cannot_say_in_rspql_is_named(pattern, why) -> None:
    with pytest.raises(ValueError, match=re.escape(why)):
        print_query(parse(f"{TWO}{{ {pattern} }}"), "rspql")


def test_csparql_streams_whole_answers_only() -> None:
    with pytest.raises(ValueError, match="cannot express Istream"):
        print_query(replace(parse(CSPARQL), r2s=R2S.ISTREAM), "csparql")


@pytest.mark.parametrize(
    ("clause", "window"),
    [
        ("[RANGE 5s]", Window(5000, 5000)),
        ("[RANGE 5s TUMBLING]", Window(5000, 5000)),
        ("[range 1m slide 1s]", Window(60_000, 1000)),
        ("[ RANGE 1d , STEP 1h ]", Window(86_400_000, 3_600_000)),
        ("[RANGE PT0.25S STEP P1DT1S]", Window(250, 86_401_000)),
    ],
)
def test_windows(clause: str, window: Window) -> None:
    text = f"SELECT ?s FROM STREAM <a:b> {clause} {{ ?s ?p ?o }}"
    assert parse(text).window == window


FROM = "SELECT ?s\nFROM STREAM <a:b> "
NAMED = "PREFIX : <a:>\nSELECT ?s\n"
W = NAMED + "FROM NAMED WINDOW :w ON :s "


@pytest.mark.parametrize(
    ("text", "line", "column", "says"),
    [
        (FROM + "[RANGE 0s STEP 1s] { }", 2, 26, "RANGE is 0s: it must be at least 1ms"),
        (FROM + "[RANGE 5s STEP 0s] { }", 2, 34, "STEP is 0s: it must be at least 1ms"),
        (FROM + "[RANGE 5s SLIDE PT0S] { }", 2, 35, "SLIDE is PT0S: it must be at least 1ms"),
        (FROM + "[RANGE 5 STEP 1] { }", 2, 26, "RANGE 5 has no unit"),
        (FROM + "[RANGE PT0.0001S] { }", 2, 26, "is not a duration in whole ms"),
        (FROM + "[NOW] { }", 2, 20, "[NOW]: C-SPARQL has no NOW window: write [RANGE 10s STEP 5s]"),
        (FROM + "[RANGE 5s { }", 2, 19, "the window is not closed: add ]"),
        (FROM + "{ }", 2, 19, "a window like [RANGE 10s STEP 5s] is missing here"),
        ("SELECT ?s FROM STREAM [RANGE 5s] { }", 1, 23, "FROM STREAM needs an IRI here"),
        (FROM + "[RANGE 5s] FROM STREAM <a:b> [RANGE 5s] { }", 2, 30, "this window is declared twice"),
        (FROM + "[RANGE 5s]\nFROM NAMED <a:c> { }", 3, 1, "FROM is not supported"),
        (FROM + "[RANGE 5s]\n{ ?s ?p ?o FROM <a:c> }", 3, 12, "FROM must come before WHERE"),
        (FROM + "[RANGE 5s]\nWHERE { ?s a ex:C }", 3, 14, "the prefix ex: of ex:C is not declared"),
        ("REGISTER test AS " + FROM + "[RANGE 5s] { }", 1, 10, "REGISTER needs QUERY or STREAM here"),
        ("REGISTER QUERY AS " + FROM + "[RANGE 5s] { }", 1, 16, "REGISTER needs a name here"),
        ("REGISTER QUERY q " + FROM + "[RANGE 5s] { }", 1, 18, "the AS is missing here"),
        ("REGISTER QUERY q COMPUTED EVERY 1s AS " + FROM + "[RANGE 5s] { }", 1, 33, "COMPUTED EVERY other than"),
        (NAMED + "FROM NAMED WINDOW :w :s [RANGE 5s] { }", 3, 22, "the ON is missing here"),
        (W + "[RANGE 5s] { }", 3, 1, "no pattern uses the window <a:w>"),
        (W + "[RANGE 5s] {\n WINDOW :v { ?s ?p ?o } }", 4, 2, "the window <a:v> is not"),
        (W + "[RANGE 5s] {\n WINDOW ?w { ?s ?p ?o } }", 4, 9, "WINDOW with a variable"),
        (W + "[RANGE 5s] {\n WINDOW :w { ?s ?p } }", 4, None, "a literal is expected here, not }"),
        (W + "[RANGE 5s]\nFROM NAMED WINDOW :w ON :t [RANGE 5s] { }", 4, 1, "declared twice"),
        ("REGISTER ISTREAM <o> AS SELECT DSTREAM ?s FROM NAMED WINDOW <a:w> ON <a:s> [RANGE 5s] { }", 1, 32, "keep"),
        ("PREFIX : <a:>\nREGISTER QUERY q AS SELECT ?s\nFROM STREAM ex:s [RANGE 5s] { }", 3, 13, "the prefix ex:"),
    ],
)  # fmt: skip
def test_refused(text: str, line: int, column: int | None, says: str) -> None:
    with pytest.raises(QueryError) as refused:
        parse(text)
    error = refused.value
    assert says in str(error)
    assert error.line == line
    assert column is None or error.column == column
    assert str(error).splitlines()[1] == f"  {text.splitlines()[line - 1]}"
