"""Comunica 5 with terms of every kind, and with variables that other patterns bind, in every position of a pattern.

A literal or a blank node as a subject, and a literal as a predicate, match nothing: an empty fragment with its
controls, no refusal. Rows are those of pyoxigraph.
"""

from collections.abc import Iterator
from itertools import product

import httpx
import pytest

from tests.servers.fragments.pages.clients.data import PREFIXES
from tests.servers.fragments.pages.clients.test_clients import ask, expected, file, ours

__all__ = ["file", "ours"]
pytestmark = pytest.mark.server

TERMS = {
    "an IRI": "x:d1",
    "an IRI of a property": "t:headSign",
    "a string": '"IC 1"',
    "a string with a language": '"H1"@en',
    "a number": "60",
    "a truth": "true",
    "a date": '"2026-01-01T00:00:00Z"^^xsd:dateTime',
    "a string to be escaped": r'"a \"b\" \\ é\n?&#%"',
}
POSITIONS = {"subject": "?t ?p ?o", "predicate": "?s ?t ?o", "object": "?s ?p ?t"}
SOURCES = {
    "IRIs": "x:d3 t:connects ?t",
    "strings": "x:d3 t:routeLabel ?t",
    "strings with languages": "x:d3 t:headSign ?t",
    "numbers": "x:d3 t:stops ?t",
    "dates": "x:d3 t:departureTime ?t",
    "properties": "x:d3 ?t ?any",
}


def queries() -> Iterator[tuple[str, str]]:
    """A name and a text for each term in each position, inline and bound by another pattern."""
    for (what, term), (position, pattern) in product(TERMS.items(), POSITIONS.items()):
        yield f"{what} by VALUES as {position}", f"SELECT * {{ VALUES ?t {{ {term} x:nothing }} {pattern} }}"
        if what.startswith("an IRI") or position == "object":
            yield f"{what} as {position}", f"SELECT * {{ {pattern.replace('?t', term)} }}"
    for (what, source), (position, pattern) in product(SOURCES.items(), POSITIONS.items()):
        yield f"{what} bound as {position}", f"SELECT * {{ {source} . {pattern} }}"
    for position, pattern in POSITIONS.items():
        yield f"bound by OPTIONAL as {position}", f"SELECT * {{ x:d4 t:stops ?t OPTIONAL {{ {pattern} }} }}"
        yield f"bound within EXISTS as {position}", f"SELECT * {{ x:d4 ?q ?t FILTER EXISTS {{ {pattern} }} }}"


QUERIES = dict(queries())


def test_there_are_sixty_queries_and_those_that_a_fact_can_match_have_rows() -> None:
    assert len(QUERIES) >= 60
    assert len([text for text in QUERIES.values() if expected(PREFIXES + text)]) >= 24


@pytest.mark.slow
def test_terms_in_every_position(ours: str) -> None:
    texts = [PREFIXES + text for text in QUERIES.values()]
    answers = ask("comunica5", f"{ours}/data", texts)
    wrong = [name for name, text, rows in zip(QUERIES, texts, answers, strict=True) if rows != expected(text)]
    assert wrong == []
    assert 'status="400"' not in httpx.get(f"{ours}/metrics").text
