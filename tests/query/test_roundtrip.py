"""parse(print(q)) = q, for every query of the repository, the recorded ones and drawn ones, in every dialect."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given

from streamgauge.model.query import ContinuousQuery
from streamgauge.query import dialect_names, fill, parameters, parse, parse_sparql, print_query
from streamgauge.query.printer import sparql
from tests.examples import examples
from tests.query.drawn import can_say, continuous, kept
from tests.query.test_recorded import CONTINUOUS, text

SOURCES = Path(__file__).resolve().parents[2] / "src"
FILES = {f"{path.parent.parent.name}/{path.stem}": path for path in sorted(SOURCES.rglob("queries/*.rq"))}
STANDING = {name for name in FILES if name.startswith("university/")}
"""Those that stand on a knowledge base, not on streams."""

VALUES = {"WSIZE": "10s", "WSLIDE": "5s"}


def comes_back(query: ContinuousQuery, dialect: str) -> None:
    printed = print_query(query, dialect)
    again = parse(printed)
    assert again == kept(query, dialect)
    assert parse_sparql(again.sparql) == again.form
    assert print_query(again, dialect) == printed


def test_the_repository_has_its_queries() -> None:
    assert len(FILES) >= 14


@pytest.mark.parametrize(
    ("name", "dialect", "words"),
    [
        ("csrbench/q6t", "cqels", r"CQELS has no timestamp\(\)"),
        ("csrbench/q6t", "sparqlstream", r"SPARQLstream has no timestamp\(\)"),
        ("csrbench/q6m", "csparql", "C-SPARQL has no named windows"),
        ("csrbench/q6m", "sparqlstream", "no named windows"),
    ],
)
def test_what_a_dialect_cannot_say_is_named(name: str, dialect: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        print_query(parse(FILES[name].read_text(encoding="utf-8")), dialect)


@pytest.mark.parametrize("name", sorted(STANDING))
def test_a_query_without_streams(name: str) -> None:
    form = parse_sparql(FILES[name].read_text(encoding="utf-8"))
    assert parse_sparql(sparql(form)) == form


@pytest.mark.slow
@pytest.mark.parametrize("dialect", dialect_names())
@pytest.mark.parametrize("name", sorted(FILES.keys() - STANDING))
def test_a_query_of_the_repository(name: str, dialect: str) -> None:
    template = FILES[name].read_text(encoding="utf-8")
    query = parse(fill(template, {key: VALUES.get(key, "50") for key in parameters(template)}))
    one_said_or_refused(query, dialect)


@pytest.mark.slow
@pytest.mark.parametrize("name", CONTINUOUS)
def test_a_recorded_query(name: str) -> None:
    query = parse(text(name))
    for dialect in dialect_names():
        comes_back(query, dialect)


def said_or_refused(query: ContinuousQuery) -> None:
    for dialect in dialect_names():
        one_said_or_refused(query, dialect)


def one_said_or_refused(query: ContinuousQuery, dialect: str) -> None:
    if can_say(query, dialect):
        comes_back(query, dialect)
    else:
        with pytest.raises(ValueError, match=r"RSP-QL|CQELS|C-SPARQL|SPARQLstream"):
            print_query(query, dialect)


@pytest.mark.slow
@examples(25, prove=1500)
@given(continuous())
def test_a_drawn_query(query: ContinuousQuery) -> None:
    said_or_refused(query)


@pytest.mark.parametrize("dialect", dialect_names())
def test_values_after_an_aggregate_are_in_no_window(dialect: str) -> None:
    head = "SELECT ?s (SUM(?v) AS ?t) FROM NAMED WINDOW <urn:w> ON <urn:s> [NOW]"
    where = "WHERE { WINDOW <urn:w> { ?s <urn:v> ?v } }"
    query = parse(f"{head} {where} GROUP BY ?s VALUES (?s ?z) {{ (<urn:a> UNDEF) (<urn:b> 1) }}")
    comes_back(replace(query, windows=tuple(replace(window, name=None) for window in query.windows)), dialect)
