"""The parts of a query that an engine with a fault evaluates apart, and the triples that may matter to it."""

import pytest

from streamgauge.model import algebra as al
from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.oracle.diagnosis.faulty import aggregates, matches_query, relevant, where
from streamgauge.query import parse_sparql
from tests.notation import STREAM, triples

PREFIX = "PREFIX : <urn:> "
PLAIN = "?s :p ?v"
FILTERED = "?s :p ?v FILTER(?v > 1)"
INNER = "{ SELECT ?s (COUNT(*) AS ?n) { ?s :p ?v } GROUP BY ?s } FILTER(?n > 1)"


def body(pattern: str) -> al.Pattern:
    """The pattern of an ASK, which nothing is around."""
    return parse_sparql(f"{PREFIX}ASK {{ {pattern} }}").pattern


def query(text: str, static: str = "") -> ContinuousQuery:
    form = parse_sparql(PREFIX + text)
    return ContinuousQuery(form, (StreamWindow(STREAM, Window(5, 5)),), None, frozenset(triples(static)))


@pytest.mark.parametrize(
    ("text", "pattern", "variables", "grouped"),
    [
        ("SELECT ?s { ?s :p ?v }", PLAIN, ["s", "v"], False),
        ("ASK { ?s :p ?v }", PLAIN, ["s", "v"], False),
        ("SELECT DISTINCT ?s (?v + 1 AS ?w) { ?s :p ?v } ORDER BY ?s LIMIT 1", PLAIN, ["s", "v"], False),
        ("SELECT REDUCED ?s { ?s :p ?v FILTER(?v > 1) }", FILTERED, ["s", "v"], False),
        ("SELECT (COUNT(*) AS ?n) { ?s :p ?v }", PLAIN, ["s", "v"], True),
        ("SELECT ?s { ?s :p ?v } GROUP BY ?s", PLAIN, ["s", "v"], True),
        ("SELECT ?s (AVG(?v) + 1 AS ?m) { ?s :p ?v } GROUP BY ?s HAVING(AVG(?v) > 1)", PLAIN, ["s", "v"], True),
        ("SELECT (SUM(?v) AS ?m) { ?s :p ?v FILTER(?v > 1) } HAVING(SUM(?v) > 1)", FILTERED, ["s", "v"], True),
        (f"SELECT ?s {{ {INNER} }}", INNER, ["s", "n"], True),
        ("SELECT ?s { ?s :p [ :q ?v ] }", "?s :p [ :q ?v ]", ["s", "v"], False),
    ],
)
def test_the_pattern_of_a_query_is_below_all_that_computes_its_answer(text, pattern, variables, grouped):
    asked = query(text)
    matches = matches_query(asked).form
    assert where(asked.form) == matches.pattern.pattern
    if "[" not in pattern:  # whose names are made for each query
        assert where(asked.form) == body(pattern)
    assert sorted(matches.variables) == sorted(variables)
    assert [variable.name for variable in matches.pattern.variables] == list(matches.variables)
    assert (matches_query(asked).windows, aggregates(asked.form)) == (asked.windows, grouped)


@pytest.mark.parametrize(
    ("pattern", "content", "static", "kept"),
    [
        ("?s :p ?v", "a p 1. b q 2", "", "a p 1"),
        ("?s :p ?v", "a p 1. a p 1. a p 2", "c p 3. c q 3", "a p 1. a p 2. c p 3"),
        # b has no q, whatever the window.
        ("?s :p ?v ; :q ?w", "a p 1. b p 2. a q 3. c q 4", "", "a p 1. a q 3"),
        ("?s :p ?v ; :q ?w", "a p 1. b p 2. c q 4", "a q 3", "a p 1. a q 3"),
        ("?s :p ?v . ?t :q ?w", "a p 1. b q 2. c r 3", "", "a p 1. b q 2"),
        ("?s :p ?v OPTIONAL { ?s :q ?w }", "a p 1. b q 2. c r 3", "", "a p 1. b q 2"),
        (":a :p ?v", "a p 1. b p 2", "", "a p 1"),
        ("?s :p 2", "a p 1. b p 2", "", "b p 2"),
        ("?s ?p ?v", "a p 1. b q 2", "c r 3", "a p 1. b q 2. c r 3"),
        ("?s :q ?v", "a p 1", "", ""),
    ],
)
def test_a_triple_may_matter_where_its_subject_has_all_that_is_asked_of_it(pattern, content, static, kept):
    asked = query(f"SELECT * {{ {pattern} }}", static)
    assert relevant(asked, triples(content)) == frozenset(triples(kept))


def test_every_triple_may_matter_to_a_path():
    assert relevant(query("SELECT ?s { ?s :p+ ?v }"), triples("a p 1. b q 2")) is None
    assert relevant(query("SELECT ?s { ?s ?p ?v . ?v :q/:r ?w }"), triples("a p 1")) is not None
