"""A query without its LIMIT, and the rows that the LIMIT keeps of its answer: one legal answer of the query."""

import pytest

from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.oracle.expected.cuts import uncut
from streamgauge.oracle.expected.reports import definition
from streamgauge.query import parse_sparql
from streamgauge.semantics.profiles import RSPQL
from tests.notation import STREAM, rows, stream

ELEMENTS = stream("0: a p 3. b p 1. c p 2. | 1: b p 3.")


def query(text: str) -> ContinuousQuery:
    return ContinuousQuery(parse_sparql("PREFIX : <urn:> " + text), (StreamWindow(STREAM, Window(5, 5)),))


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("SELECT ?s ?v { ?s :p ?v } ORDER BY ?v DESC(?s) LIMIT 3", "b 1 ; c 2 ; b 3"),
        ("SELECT ?s { ?s :p ?v } ORDER BY ?v ?s OFFSET 1", "c ; a ; b"),
        ("SELECT ?s { ?s :p ?v } ORDER BY DESC(?v) ?s OFFSET 1 LIMIT 2", "b ; c"),
        ("SELECT ?key0 { ?key0 :p ?v } ORDER BY (0 - ?v) ?key0 LIMIT 1", "a"),
        ("SELECT DISTINCT ?s { ?s :p ?v } ORDER BY DESC(?s) LIMIT 2", "c ; b"),
        ("SELECT REDUCED ?s { ?s :p ?v } ORDER BY ?v ?s LIMIT 1", "b"),
        ("SELECT ?s { ?s :p 2 } LIMIT 1", "c"),
    ],
)
def test_what_is_kept_of_all_rows_is_what_the_limit_keeps(text, kept):
    whole = uncut(query(text))
    assert whole is not None
    (report,) = definition(ELEMENTS)(whole.query, RSPQL, 5, 0)
    assert whole.query.form == parse_sparql(whole.query.sparql)
    assert whole.kept(report.rows) == tuple(rows(kept))


@pytest.mark.parametrize(
    "text",
    [
        "SELECT ?s { ?s :p ?v }",
        "ASK { ?s :p ?v }",
        "SELECT DISTINCT ?s { ?s :p ?v } ORDER BY ?v LIMIT 1",
    ],
)
def test_what_is_not_cut_or_not_afterwards_stays(text):
    assert uncut(query(text)) is None
