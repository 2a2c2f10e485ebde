"""IRIs that are relative to no BASE: resolved against the default base in every dialect, with a note."""

import pytest

from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.query import QueryError, parse, parse_sparql
from streamgauge.query.prologue import DEFAULT_BASE
from streamgauge.semantics.evaluate import Snapshot

TEXTS = {
    "rspql": "SELECT ?s FROM NAMED WINDOW <w1> ON <s1> [RANGE PT5S STEP PT5S] { WINDOW <w1> { ?s <p> ?o } }",
    "csparql": "REGISTER QUERY q AS SELECT ?s FROM STREAM <s1> [RANGE 5s STEP 5s] { ?s <p> ?o }",
    "cqels": "SELECT ?s { STREAM <s1> [RANGE 5s SLIDE 5s] { ?s <p> ?o } }",
    "sparqlstream": "SELECT ?s FROM NAMED STREAM <s1> [NOW - 5 S SLIDE 5 S] { ?s <p> ?o }",
}


@pytest.mark.parametrize("dialect", TEXTS)
def test_relative_iris_are_resolved_with_a_note(dialect: str) -> None:
    query = parse(TEXTS[dialect], dialect)
    assert query.windows == (StreamWindow(f"{DEFAULT_BASE}s1", Window(5000, 5000)),)
    assert query.form == parse_sparql(f"SELECT ?s {{ ?s <{DEFAULT_BASE}p> ?o }}")
    (note,) = query.notes
    assert note.startswith("no BASE: ")
    assert "<s1>" in note
    assert "<p>" in note
    assert DEFAULT_BASE in note


@pytest.mark.parametrize("dialect", TEXTS)
def test_a_base_of_the_text_needs_no_note(dialect: str) -> None:
    query = parse(f"BASE <http://own.org/> {TEXTS[dialect]}", dialect)
    assert query.windows[0].stream == "http://own.org/s1"
    assert query.notes == ()


@pytest.mark.parametrize("dialect", TEXTS)
def test_a_relative_prefix_counts(dialect: str) -> None:
    text = TEXTS[dialect].replace("<s1>", "<http://e/s>").replace("<w1>", "<http://e/w>").replace("<p>", ":p")
    query = parse(f"PREFIX : <#> {text}", dialect)
    assert query.form == parse_sparql(f"SELECT ?s {{ ?s <{DEFAULT_BASE}#p> ?o }}")
    assert query.notes == (f"no BASE: <#> taken as relative to <{DEFAULT_BASE}>",)


@pytest.mark.parametrize("dialect", TEXTS)
def test_absolute_iris_leave_no_note(dialect: str) -> None:
    text = TEXTS[dialect].replace("<s1>", "<urn:s>").replace("<w1>", "<urn:w>").replace("<p>", "<urn:p>")
    assert parse(text, dialect).notes == ()


def test_several_windows_by_relative_names() -> None:
    query = parse(
        "SELECT ?s FROM NAMED WINDOW <w1> ON <s1> [RANGE PT5S STEP PT5S] FROM NAMED WINDOW <w2> ON <s2> "
        "[RANGE PT5S STEP PT5S] { WINDOW <w1> { ?s <p> ?o } WINDOW <w2> { ?s <q> ?o } }"
    )
    assert [(window.name, window.stream) for window in query.windows] == [
        (f"{DEFAULT_BASE}w1", f"{DEFAULT_BASE}s1"),
        (f"{DEFAULT_BASE}w2", f"{DEFAULT_BASE}s2"),
    ]


def test_the_name_of_the_query_stays_as_it_is_written() -> None:
    query = parse(f"REGISTER RSTREAM <out> AS {TEXTS['rspql']}")
    assert query.name == "out"
    assert "<out>" not in query.notes[0]


def test_plain_sparql_is_still_refused_without_a_base() -> None:
    with pytest.raises(QueryError, match="relative and the query has no BASE"):
        parse_sparql("SELECT ?s { ?s <p> ?o }")


def test_notes_do_not_make_queries_different() -> None:
    one = parse(TEXTS["csparql"], "csparql")
    other = parse(f"BASE <{DEFAULT_BASE}> {TEXTS['csparql']}", "csparql")
    assert isinstance(one, ContinuousQuery)
    assert one == other


@pytest.mark.parametrize("dialect", TEXTS)
@pytest.mark.parametrize("broken", ["1:2", ":a:"])
def test_a_reference_that_is_no_iri_is_refused_at_its_place(dialect: str, broken: str) -> None:
    text = TEXTS[dialect].replace("<s1>", f"<{broken}>")
    with pytest.raises(QueryError, match=f"line 1, column {text.index(broken)}: <{broken}> is not an IRI"):
        parse(text, dialect)


def test_a_text_that_is_no_iri_is_an_error_of_its_row() -> None:
    form = parse_sparql('BASE <http://own.org/> SELECT (IRI("1:2") AS ?x) {}')
    assert Snapshot(ContinuousQuery(form, ())).rows(()) == ((None,),)
