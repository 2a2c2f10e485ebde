"""Which patterns read which window: STREAM blocks, windows in WHERE, static data, R2S keywords, names."""

import re

import pytest

from streamgauge.model import algebra as al
from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.semantics import CQL, R2S
from streamgauge.query import QueryError, parse, parse_sparql, print_query

P = "PREFIX : <http://e/> "
NOW, TEN = Window(1, 1), Window(10_000, 5000)


def where(query: ContinuousQuery) -> al.Pattern:
    """The pattern under the projection."""
    assert isinstance(query.form.pattern, al.Project)
    return query.form.pattern.pattern


def group(text: str) -> al.Pattern:
    """The pattern of a plain SPARQL group."""
    form = parse_sparql(f"{P}SELECT ?s {{ {text} }}")
    assert isinstance(form.pattern, al.Project)
    return form.pattern.pattern


CQELS = P + "SELECT ?s { "
ONE = "urn:streamgauge:window:1"
TWO = "urn:streamgauge:window:2"


@pytest.mark.parametrize(
    ("body", "windows", "pattern"),
    [
        (
            "STREAM :s [RANGE 10s SLIDE 5s] { ?s :p ?o } FILTER(?o > 1)",
            [("s", TEN, None)],
            "?s :p ?o FILTER(?o > 1)",
        ),
        ("STREAM :s [NOW] { ?s :p ?o } STREAM :s [NOW] { ?o :q ?x }", [("s", NOW, None)], "{ ?s :p ?o } { ?o :q ?x }"),
        (
            "STREAM :s [NOW] { ?s :p ?o } STREAM :t [NOW] { ?o :q ?x }",
            [("s", NOW, ONE), ("t", NOW, TWO)],
            f"GRAPH <{ONE}> {{ ?s :p ?o }} GRAPH <{TWO}> {{ ?o :q ?x }}",
        ),
        (
            "STREAM :s [NOW] { ?s :p ?o } OPTIONAL { STREAM :s [RANGE 10s SLIDE 5s] { ?o :q ?x } }",
            [("s", NOW, ONE), ("s", TEN, TWO)],
            f"GRAPH <{ONE}> {{ ?s :p ?o }} OPTIONAL {{ GRAPH <{TWO}> {{ ?o :q ?x }} }}",
        ),
        ("?s :r ?z STREAM :s [NOW] { ?s :p ?o }", [("s", NOW, ONE)], f"?s :r ?z GRAPH <{ONE}> {{ ?s :p ?o }}"),
        (
            "GRAPH :g { ?s :r ?z } STREAM :s [NOW] { ?s :p ?o }",
            [("s", NOW, ONE)],
            f"{{ ?s :r ?z }} GRAPH <{ONE}> {{ ?s :p ?o }}",
        ),
        (
            "STREAM :s [NOW] { ?s :p ?o } FILTER NOT EXISTS { STREAM :s [NOW] { ?o :p ?x } }",
            [("s", NOW, None)],
            "?s :p ?o FILTER NOT EXISTS { { ?o :p ?x } }",
        ),
        (
            "STREAM :s [NOW] { ?s :p ?o } FILTER NOT EXISTS { ?o :p ?x }",
            [("s", NOW, ONE)],
            f"GRAPH <{ONE}> {{ ?s :p ?o }} FILTER NOT EXISTS {{ ?o :p ?x }}",
        ),
        ("STREAM :s [NOW] { ?s :p ?o } VALUES ?o { 1 2 } BIND(1 AS ?x)", [("s", NOW, None)],
         "{ ?s :p ?o } VALUES ?o { 1 2 } BIND(1 AS ?x)"),
    ],
)  # fmt: skip
def test_cqels_blocks(body: str, windows: list[tuple[str, Window, str | None]], pattern: str) -> None:
    query = parse(CQELS + body + " }")
    assert query.windows == tuple(StreamWindow(f"http://e/{stream}", window, name) for stream, window, name in windows)
    assert where(query) == group(pattern)
    assert parse(print_query(query, "cqels")) == query


RSPQL = P + "SELECT ?s FROM NAMED WINDOW :w ON :s [NOW] "


@pytest.mark.parametrize(
    ("body", "named", "pattern"),
    [
        ("WINDOW :w { ?s :p ?o } FILTER(?o > 1)", False, "?s :p ?o FILTER(?o > 1)"),
        ("WINDOW :w { ?s :p ?o } ?s :q ?x", True, "GRAPH :w { ?s :p ?o } ?s :q ?x"),
        ("GRAPH :w { ?s :p ?o } WINDOW :w { ?o :p ?x }", False, "{ ?s :p ?o } { ?o :p ?x }"),
        ("GRAPH ?g { ?s :p ?o }", True, "GRAPH ?g { ?s :p ?o }"),
        ("WINDOW :w { ?s :p ?o } FILTER EXISTS { ?s :q ?x }", True, "GRAPH :w { ?s :p ?o } FILTER EXISTS { ?s :q ?x }"),
        ("WINDOW :w { ?s :p ?o } { SELECT ?s { } }", False, "{ ?s :p ?o } { SELECT ?s { } }"),
    ],
)
def test_rspql_one_window(body: str, named: bool, pattern: str) -> None:
    query = parse(f"{RSPQL} {{ {body} }}")
    assert query.windows == (StreamWindow("http://e/s", NOW, "http://e/w" if named else None),)
    assert where(query) == group(pattern)
    assert parse(print_query(query, "rspql")) == query


def test_an_exists_in_having_reads_the_window() -> None:
    text = "{ WINDOW :w { ?s :p ?o } } GROUP BY ?s HAVING (EXISTS { WINDOW :w { ?s :q ?x } })"
    query = parse(f"{RSPQL} {text}")
    assert query.windows == (StreamWindow("http://e/s", NOW),)
    for dialect in ("rspql", "cqels", "csparql", "sparqlstream"):
        again = parse(print_query(query, dialect))
        assert (again.form, again.windows) == (query.form, query.windows)


def test_sparqlstream_keywords() -> None:
    for operator in CQL:
        text = f"{P}SELECT {operator.value.upper()} DISTINCT ?s FROM NAMED STREAM :s [NOW] {{ ?s :p ?o }}"
        query = parse(text)
        assert query.r2s is operator
        assert parse(print_query(query, "sparqlstream")) == query
    query = parse(f"{P}SELECT ?s FROM NAMED STREAM :s [NOW] FROM STREAM :t [NOW - 5 S] {{ ?s :p ?o }}", "sparqlstream")
    assert [item.stream for item in query.windows] == ["http://e/s", "http://e/t"]
    assert query.r2s is None


def test_csparql_streams_are_one_graph() -> None:
    one = "FROM STREAM :s [RANGE 5s STEP 1s]"
    query = parse(
        f"{P}REGISTER STREAM o COMPUTED EVERY 1s AS CONSTRUCT {{ ?s :is [] }} {one} {{ ?s :p ?o }}", "csparql"
    )
    assert print_query(query, "csparql").startswith("REGISTER STREAM o AS\nCONSTRUCT { ?s <http://e/is> _:b0 . }")
    both = parse(f"{P}SELECT ?s {one} FROM NAMED STREAM :t [RANGE TRIPLES 7] {{ ?s :p ?o }}", "csparql")
    assert both.windows == (
        StreamWindow("http://e/s", Window(5000, 1000)),
        StreamWindow("http://e/t", Window(7, 7, "count")),
    )


TIMED = "FILTER(f:timestamp(?s, :p, ?o) > timestamp(?x))"


def test_timestamp_is_said_by_rspql_and_csparql() -> None:
    text = f"""PREFIX f: <http://larkc.eu/csparql/sparql/jena/ext#> {P}REGISTER QUERY q AS
    SELECT ?s FROM STREAM :s [RANGE 5s STEP 1s] {{ ?s :p ?o ; :q ?x {TIMED} }}"""
    query = parse(text)
    for dialect in ("rspql", "csparql"):
        assert "<http://larkc.eu/csparql/sparql/jena/ext#timestamp>(?x)" in print_query(query, dialect)
        assert parse(print_query(query, dialect)) == query
    for dialect, name in (("cqels", "CQELS"), ("sparqlstream", "SPARQLstream")):
        with pytest.raises(ValueError, match=re.escape(f"{name} has no timestamp(): print the query as rspql")):
            print_query(query, dialect)


@pytest.mark.parametrize(
    ("text", "place", "says"),
    [
        (CQELS + "STREAM ?x [NOW] { ?s ?p ?o } }", "?x [", "STREAM with a variable is not supported"),
        (CQELS + "STREAM :s { ?s ?p ?o } }", "{ ?s ?p", "a window like [RANGE 10s STEP 5s] is missing here"),
        (CQELS + "STREAM :s [NOW] ?s ?p ?o }", "?s ?p", "the { is missing here"),
        (CQELS + "STREAM :s [NOW] { GRAPH ?g { ?s ?p ?o } } }", "?g", "GRAPH with a variable is not supported"),
        (CQELS + "STREAM :s [NOW] {} GRAPH :g { ?s ?p ?o } GRAPH :h { ?s ?p ?o } }", "GRAPH :g", "static data is one"),
        (CQELS + "STREAM :s [NOW] {} GRAPH :g { ?s ?p ?o } ?s ?p ?o }", "GRAPH :g", "static data is one"),
        (CQELS + "STREAM :s [NOW] { ?s ?p ?o FILTER(timestamp(?o) > 1) } }", "timestamp", "CQELS has no timestamp()"),
        (P + "SELECT ISTREAM ?s { STREAM :s [NOW] { ?s ?p ?o } }", "ISTREAM", "CQELS has no R2S keyword"),
        ("REGISTER QUERY q AS SELECT ?s { STREAM <a:s> [NOW] { ?s ?p ?o } }", "REGISTER", "CQELS has no REGISTER"),
        (P + "SELECT ?s FROM NAMED :g { STREAM :s [NOW] { ?s ?p ?o } }", "FROM", "no pattern uses that graph"),
        (P + "SELECT ?s FROM STREAM :s [RANGE 5s] FROM NAMED :g { ?s ?p ?o }", "FROM NAMED :g", "as static data"),
        (P + "SELECT ?s FROM STREAM :s [RANGE 5s] { GRAPH :g { ?s ?p ?o } }", "GRAPH", "static data form one graph"),
        (P + "SELECT ISTREAM ?s FROM STREAM :s [RANGE 5s] { ?s ?p ?o }", "ISTREAM", "C-SPARQL has no R2S keyword"),
        (P + "SELECT ?s FROM NAMED STREAM :s { ?s ?p ?o }", "{ ?s", "is missing here"),
        (P + "SELECT ?s FROM NAMED STREAM :s [NOW] { STREAM :s [NOW] { ?s ?p ?o } }", "STREAM :s [NOW] { ?s", "WHERE"),
        (P + "SELECT ?s FROM NAMED STREAM :s [NOW] { GRAPH :s { ?s ?p ?o } }", "GRAPH", "GRAPH in WHERE"),
        (P + "ASK ISTREAM FROM NAMED STREAM :s [NOW] { ?s ?p ?o }", "ISTREAM", "ISTREAM after SELECT only"),
        ("REGISTER QUERY q AS SELECT ?s FROM NAMED STREAM <a:s> [NOW] { ?s ?p ?o }", "REGISTER", "has no REGISTER"),
        (P + "SELECT ?s FROM NAMED STREAM :s [NOW] { ?s ?p ?o FILTER(timestamp(?o) > 1) }", "timest", "no timestamp"),
        (RSPQL + "{ WINDOW :w { ?s ?p ?o } GRAPH :v { ?s ?p ?o } }", "GRAPH :v", "the window <http://e/v> is not"),
        (RSPQL + "{ WINDOW :w { ?s ?p ?o } { SELECT ISTREAM ?s { ?s ?p ?o } } }", None, "expected here, not ISTREAM"),
        (P + "SELECT ?s { { ?s :p ?o } SEQ { ?s :q ?x } }", "SEQ", "SEQ is EP-SPARQL's: sequences of events"),
        (P + "SELECT ?s { { ?s :p ?o } EQUALSOPTIONAL { ?s :q ?x } }", "EQUALSOPTIONAL", "is EP-SPARQL's"),
        (RSPQL + "{ WINDOW :w { { ?s :p ?o } OPTIONALSEQ { ?s :q ?x } } }", "OPTIONALSEQ", "is EP-SPARQL's"),
        (RSPQL + "{ WINDOW :w { ?s :p ?o FILTER(getDuration() > 1) } }", "getDuration", "getDuration is EP-SPARQL's"),
    ],
)  # fmt: skip
def test_refused(text: str, place: str | None, says: str) -> None:
    with pytest.raises(QueryError) as refused:
        parse(text)
    assert says in str(refused.value)
    assert refused.value.line == 1
    assert place is None or refused.value.column == text.index(place) + 1


ASK = parse_sparql("ASK { ?s ?p ?o }")
GRAPHS = parse_sparql("ASK { GRAPH <a:w> { ?s ?p ?o } ?s ?p ?o }")
ANY = parse_sparql("ASK { GRAPH ?g { ?s ?p ?o } }")
BOTH = parse_sparql("ASK { GRAPH <a:w> { ?s ?p ?o } GRAPH <a:v> { ?s ?p ?o } }")
W, V, U = (StreamWindow("a:s", TEN, name) for name in ("a:w", "a:v", None))


@pytest.mark.parametrize(
    ("query", "dialect", "says"),
    [
        (ContinuousQuery(GRAPHS, (W, U)), "rspql", "only some windows have names"),
        (ContinuousQuery(GRAPHS, (U,)), "rspql", "GRAPH <a:w> is not a window of the query"),
        (ContinuousQuery(ANY, (U,)), "csparql", "GRAPH ?g: the query has no named window"),
        (ContinuousQuery(ANY, (W,)), "cqels", "cannot express GRAPH ?variable"),
        (ContinuousQuery(GRAPHS, (W, V)), "rspql", "no pattern uses the window <a:v>: leave it out"),
        (ContinuousQuery(BOTH, (W, V)), "cqels", "<a:w> and <a:v> would be the same"),
        (ContinuousQuery(ASK, (U, StreamWindow("a:t", TEN))), "cqels", "cannot merge unnamed windows"),
        (ContinuousQuery(ASK, (U,), R2S.RSTREAM), "cqels", "CQELS streams new rows and cannot express Rstream"),
        (ContinuousQuery(ASK, (U,), R2S.DSTREAM), "cqels", "cannot express Dstream"),
        (ContinuousQuery(ASK, (U,), R2S.ISTREAM), "sparqlstream", "SPARQLstream has ISTREAM after SELECT only"),
        (ContinuousQuery(GRAPHS, (W,)), "sparqlstream", "SPARQLstream has no named windows"),
    ],
)  # fmt: skip
def test_not_said(query: ContinuousQuery, dialect: str, says: str) -> None:
    with pytest.raises(ValueError, match=re.escape(says)):
        print_query(query, dialect)
