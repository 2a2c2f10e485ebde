"""``translate``: one query, four dialects, and sentences for what they cannot say."""

import functools
import json
from pathlib import Path

import pytest

from streamgauge.query import dialect_names, parse

QUERIES = Path(__file__).resolve().parents[2] / "src" / "streamgauge" / "workloads"
SELECT = QUERIES / "weather" / "queries" / "select.rq"


@pytest.fixture
def translate(command):
    return functools.partial(command, "translate")


@pytest.mark.parametrize("dialect", dialect_names())
def test_every_dialect(translate, dialect):
    code, out, err = translate(QUERIES / "csrbench" / "queries" / "q7.rq", "--to", dialect)
    assert (code, err) == (0, "")
    original = parse((QUERIES / "csrbench" / "queries" / "q7.rq").read_text())
    assert (parse(out, dialect).form, parse(out).windows) == (original.form, original.windows)
    assert out.endswith("}\n")


def test_parameters_and_json(translate):
    words = (SELECT, "--to", "cqels", "-D", "WSIZE=5s", "-D", "WSLIDE=1s", "-D", "TEMP=50", "--json")
    code, out, _ = translate(*words)
    assert code == 0
    said = json.loads(out)
    assert (said["from"], said["to"]) == ("rspql", "cqels")
    assert "STREAM <http://ex.org/streams/test> [RANGE 5s SLIDE 1s] {" in said["query"]


def test_standard_input(translate):
    text = "SELECT ?s { STREAM <a:b> [NOW] { ?s ?p ?o } }"
    code, out, _ = translate("-", "--to", "sparqlstream", stdin=text)
    assert (code, out) == (0, "SELECT ?s\nFROM NAMED STREAM <a:b> [NOW]\nWHERE {\n  ?s ?p ?o .\n}\n")


@pytest.mark.parametrize(
    ("text", "words", "says"),
    [
        ("SELECT ?s {\n STREAM <a:b> [NOW { } }", ("--to", "rspql"), "streamgauge: -, line 2, column 15: the window"),
        ("SELECT ?s { STREAM <a:b> [ALL] { ?s ?p ?o } }", ("--to", "csparql"), "-: C-SPARQL has no landmark window"),
        ("SELECT ?s { ?s ?p ?o }", ("--to", "csparql"), "this query has no stream"),
        ("SELECT ?s { ?s ?p ?o }", ("--to", "csparql", "--from", "cqels"), "a CQELS query needs a stream"),
        ("SELECT ?s { STREAM <a:b> [RANGE ${W}] { } }", ("--to", "rspql"), "the parameter W has no value"),
        ("SELECT ?s { STREAM <a:b> [NOW] { } }", ("--to", "rspql", "-D", "W=1"), "the query has no parameter W"),
        ("SELECT ?s { STREAM <a:b> [NOW] { } }", ("--to", "sql"), "cqels, csparql, rspql, sparqlstream"),
        ("SELECT ?s { STREAM <a:b> [NOW] { } }", ("--to", "rspql", "-D", "W"), "NAME=VALUE"),
        ("{ ?s ?p ?o } SEQ { ?a ?b ?c }", ("--to", "rspql"), "line 1, column 14: SEQ is EP-SPARQL's"),
    ],
)  # fmt: skip
def test_refused(translate, text, words, says):
    code, out, err = translate("-", *words, stdin=text)
    assert (code, out) == (2, "")
    assert says in " ".join(err.replace("│", " ").split())


def test_a_file_that_is_not_there(translate):
    code, _, err = translate("/nowhere/query.rq", "--to", "rspql")
    assert code == 2
    assert "/nowhere/query.rq: cannot be read" in err
