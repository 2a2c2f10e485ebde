"""Windows in brackets, in each dialect: what it has, what it has not, and durations."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.query import QueryError, parse, parse_sparql, print_query
from streamgauge.query.clauses import duration, short_duration, xsd_duration

HEADS = {
    "rspql": "SELECT ?s\nFROM NAMED WINDOW <a:w> ON <a:s> {} {{ WINDOW <a:w> {{ ?s ?p ?o }} }}",
    "csparql": "SELECT ?s\nFROM STREAM <a:s> {} {{ ?s ?p ?o }}",
    "cqels": "SELECT ?s {{\n STREAM <a:s> {} {{ ?s ?p ?o }} }}",
    "sparqlstream": "SELECT ?s\nFROM NAMED STREAM <a:s> {} {{ ?s ?p ?o }}",
}
S, M, H, D = 1000, 60_000, 3_600_000, 86_400_000


@pytest.mark.parametrize(
    ("dialect", "clause", "window"),
    [
        ("rspql", "[RANGE PT10S STEP PT5S]", Window(10 * S, 5 * S)),
        ("rspql", "[RANGE 10s SLIDE 500ms]", Window(10 * S, 500)),
        ("rspql", "[RANGE 10s TUMBLING]", Window(10 * S, 10 * S)),
        ("rspql", "[RANGE P1DT2H3M4.5S]", Window(D + 2 * H + 3 * M + 4500, D + 2 * H + 3 * M + 4500)),
        ("rspql", "[RANGE TRIPLES 10 STEP 2]", Window(10, 2, "count")),
        ("rspql", "[TRIPLES 10]", Window(10, 10, "count")),
        ("rspql", "[ELEMENTS 10 STEP 3]", Window(10, 3, "count")),
        ("rspql", "[NOW]", Window(1, 1)),
        ("rspql", "[ALL]", Window(1, 1, "landmark")),
        ("rspql", "[ALL STEP 5s]", Window(5 * S, 5 * S, "landmark")),
        ("csparql", "[RANGE 10s STEP 5s]", Window(10 * S, 5 * S)),
        ("csparql", "[RANGE 10 s STEP 5 m]", Window(10 * S, 5 * M)),
        ("csparql", "[range 1h tumbling]", Window(H, H)),
        ("csparql", "[RANGE TRIPLES 10]", Window(10, 10, "count")),
        ("cqels", "[RANGE 10s SLIDE 5s]", Window(10 * S, 5 * S)),
        ("cqels", "[RANGE 10s]", Window(10 * S, 1)),
        ("cqels", "[RANGE 1h 30m SLIDE 1d]", Window(90 * M, D)),
        ("cqels", "[TRIPLES 10]", Window(10, 1, "count")),
        ("cqels", "[now]", Window(1, 1)),
        ("cqels", "[ALL]", Window(1, 1, "landmark")),
        ("sparqlstream", "[NOW - 10 S SLIDE 5 S]", Window(10 * S, 5 * S)),
        ("sparqlstream", "[NOW- 10 S SLIDE 500 MS]", Window(10 * S, 500)),
        ("sparqlstream", "[NOW-10S SLIDE 1S]", Window(10 * S, S)),
        ("sparqlstream", "[now - 1 hours]", Window(H, 1)),
        ("sparqlstream", "[NOW - 2 MINUTES SLIDE 1 MIN]", Window(2 * M, M)),
        ("sparqlstream", "[NOW - 1 DAY SLIDE 1 HR]", Window(D, H)),
        ("sparqlstream", "[NOW - 5 S TO NOW - 0 S SLIDE 5 S]", Window(5 * S, 5 * S)),
        ("sparqlstream", "[FROM NOW - 5 SECONDS TO NOW STEP 1 SECOND]", Window(5 * S, S)),
        ("sparqlstream", "[NOW - 5 S TO NOW - 0]", Window(5 * S, 1)),
        ("sparqlstream", "[NOW]", Window(1, 1)),
    ],
)
def test_a_window(dialect: str, clause: str, window: Window) -> None:
    query = parse(HEADS[dialect].format(clause), dialect)
    assert query.windows == (StreamWindow("a:s", window),)
    assert parse(HEADS[dialect].format(clause)) == query


@pytest.mark.parametrize(
    ("dialect", "clause", "column", "says"),
    [
        ("rspql", "[TRIPLES ten]", 10, "TRIPLES ten is not a number of triples"),
        ("rspql", "[TRIPLES 0]", 10, "TRIPLES is 0: it must be at least 1"),
        ("rspql", "[RANGE TRIPLES 5 STEP 0]", 23, "STEP is 0: it must be at least 1"),
        ("rspql", "[RANGE 99999999999999999s]", 8, "it must be at most 10^15"),
        ("rspql", "[ALL STEP x]", 11, "STEP x is not a duration"),
        ("rspql", "[ALL 5s]", 2, "[ALL 5s] is not a window of RSP-QL; write [RANGE 10s STEP 5s]"),
        ("rspql", "[RANGE 5s 3s STEP]", 2, "is not a window of RSP-QL"),
        ("rspql", "[]", 2, "[] is not a window of RSP-QL"),
        ("rspql", "[RANGE]", 2, "[RANGE] is not a window"),
        ("csparql", "[NOW]", 2, "C-SPARQL has no NOW window"),
        ("csparql", "[ALL]", 2, "C-SPARQL has no ALL window"),
        ("csparql", "[TRIPLES 5]", 2, "C-SPARQL has no TRIPLES window"),
        ("csparql", "[RANGE TRIPLES 5 STEP 2]", 18, "C-SPARQL has no STEP after RANGE TRIPLES: leave it out"),
        ("cqels", "[RANGE TRIPLES 5]", 2, "CQELS has no RANGE TRIPLES window: write [RANGE 10s SLIDE 5s]"),
        ("cqels", "[TRIPLES 5 SLIDE 2]", 12, "CQELS has no SLIDE after TRIPLES"),
        ("cqels", "[ALL SLIDE 1s]", 2, "CQELS has no ALL STEP window"),
        ("cqels", "[RANGE 5s TUMBLING]", 2, "CQELS has no TUMBLING window"),
        ("cqels", "[RANGE 5ns]", 8, "RANGE 5ns is not a duration in whole ms"),
        ("sparqlstream", "[RANGE 5s]", 2, "[RANGE 5s] is not a window of SPARQLstream, whose windows are time-based"),
        ("sparqlstream", "[TRIPLES 5]", 2, "[TRIPLES 5] is not a window of SPARQLstream, whose windows are time-based"),
        ("sparqlstream", "[NOW - 5]", 8, "5 needs a unit: MS, S, MINUTES, HOURS or DAY"),
        ("sparqlstream", "[NOW - 5 WEEKS]", 8, "5 needs a unit"),
        ("sparqlstream", "[NOW - 5 MONTH]", 10, "MONTH has no fixed length"),
        ("sparqlstream", "[NOW - 0 S]", 8, "0 S is out of range"),
        ("sparqlstream", "[NOW - 9 S TO NOW - 4 S]", 21, "a window that ends before NOW is not supported"),
        ("sparqlstream", "[NOW - 9 S SLIDE 0 S]", 18, "0 S is out of range"),
    ],
)
def test_a_window_that_is_refused(dialect: str, clause: str, column: int, says: str) -> None:
    text = HEADS[dialect].format(clause)
    with pytest.raises(QueryError) as refused:
        parse(text, dialect)
    assert says in str(refused.value)
    assert refused.value.line == 2
    assert refused.value.column == text.splitlines()[1].index("[") + column


@pytest.mark.parametrize(
    ("dialect", "window", "written"),
    [
        ("rspql", Window(90 * M, 1), "[RANGE PT5400S STEP PT0.001S]"),
        ("rspql", Window(10, 2, "count"), "[RANGE TRIPLES 10 STEP 2]"),
        ("rspql", Window(5, 5, "landmark"), "[ALL STEP PT0.005S]"),
        ("rspql", Window(1, 1, "landmark"), "[ALL]"),
        ("csparql", Window(90 * M, 1), "[RANGE 90m STEP 1ms]"),
        ("csparql", Window(5, 5, "count"), "[RANGE TRIPLES 5]"),
        ("csparql", Window(5, 2, "count"), "C-SPARQL's [RANGE TRIPLES n] tumbles: it cannot express STEP 2"),
        ("csparql", Window(5, 5, "landmark"), "C-SPARQL has no landmark window ([ALL]): print the query as rspql"),
        ("cqels", Window(90 * M, 1), "[RANGE 90m]"),
        ("cqels", Window(1, 1), "[NOW]"),
        ("cqels", Window(1, 1, "landmark"), "[ALL]"),
        ("cqels", Window(5, 1, "count"), "[TRIPLES 5]"),
        ("cqels", Window(5, 5, "count"), "CQELS's [TRIPLES n] slides by 1: it cannot express SLIDE 5"),
        ("cqels", Window(5, 5, "landmark"), "CQELS has [ALL] without a SLIDE: it cannot express 5 ms"),
        ("sparqlstream", Window(90 * M, 1), "[NOW - 90 MINUTES]"),
        ("sparqlstream", Window(D, 1500), "[NOW - 1 DAY SLIDE 1500 MS]"),
        ("sparqlstream", Window(1, 1), "[NOW]"),
        ("sparqlstream", Window(5, 5, "count"), "SPARQLstream has no count-based windows ([TRIPLES n])"),
        ("sparqlstream", Window(5, 5, "landmark"), "SPARQLstream has no landmark windows ([ALL])"),
    ],
)  # fmt: skip
def test_a_window_is_written(dialect: str, window: Window, written: str) -> None:
    query = ContinuousQuery(parse_sparql("ASK { ?s ?p ?o }"), (StreamWindow("a:s", window),))
    if written.startswith("["):
        assert f"<a:s> {written}" in print_query(query, dialect)
    else:
        with pytest.raises(ValueError, match=re.escape(written)):
            print_query(query, dialect)


@given(st.integers(0, 10**12))
def test_durations_come_back(ms: int) -> None:
    assert duration(short_duration(ms)) == duration(xsd_duration(ms)) == ms


@pytest.mark.parametrize("text", ["", "P", "PT", "5", "5x", "s", "-5s", "PT5", "P1Y", "1.5s", "5S", "9" * 101 + "s"])
def test_no_duration(text: str) -> None:
    assert duration(text) is None
