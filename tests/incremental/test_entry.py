"""Queries whose patterns enter in turns: their answers are those from scratch, whatever changed between two turns."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.incremental.budget import TooMuchError
from streamgauge.incremental.drivers.landmark import Landmark, StandingQuery
from streamgauge.incremental.facts import graphs
from streamgauge.incremental.rewrite import UnsupportedError
from tests.examples import examples
from tests.incremental.test_budget import form, iri

PATTERNS = (
    "?a :p ?b",
    "?a :p ?b . ?a :q ?c",
    "?a :p ?b . ?b :p ?c . ?c :q ?d",
    "?a :p ?a",
    "?a :p :x1 . ?a :q ?b",
    ":x1 :p ?b . ?b ?r ?c",
    "?a a :C . ?a :p ?b",
    "?a ?r ?b",
    "?a a ?k . ?a :p ?b",
    "?a :p ?b . ?c :q ?d",
    "{ ?a :p ?b } UNION { ?a :q ?b }",
    "?a :p ?b OPTIONAL { ?b :q ?c }",
    "?a :p+ ?b",
    "?a :p ?b MINUS { ?a :q ?c }",
)
FORMS = (*map(form, PATTERNS),)
KIND = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
NODES = [iri(f"x{n}") for n in range(5)]
FACT = st.one_of(
    st.tuples(st.sampled_from(NODES), st.sampled_from([iri("p"), iri("q")]), st.sampled_from(NODES)),
    st.tuples(st.sampled_from(NODES), st.just(KIND), st.just(iri("C"))),
)
CHANGE = st.tuples(st.sets(FACT, max_size=3), st.sets(FACT, max_size=3))


def answer(standing):
    return {row: count for row, count in standing.kept.solutions().items() if count}


def begun_in_turns(driver, asked, changes):
    """The query, begun with one of the changes after each turn; how many turns there were."""
    standing, left, turns = StandingQuery(asked, driver), list(changes), 0
    for _ in driver.enter(standing):
        turns += 1
        if left:
            list(driver.change(*left.pop()))
    for change in left[:2]:
        list(driver.change(*change))
    standing.settle()
    for change in left[2:]:
        list(driver.change(*change))
    driver.begin(standing)
    return standing, turns


@pytest.mark.slow
@examples(40, prove=2000)
@given(st.sampled_from(FORMS), st.sets(FACT, max_size=20), st.lists(CHANGE, max_size=8), st.integers(1, 12))
def test_changes_between_turns_count_once(asked, there, changes, turn):
    driver, before = Landmark(), graphs.TURN
    graphs.TURN = turn
    try:
        driver.load(there)
        standing, _ = begun_in_turns(driver, asked, changes)
        assert answer(standing) == answer(driver.ask(asked))
        list(driver.change([(iri("x0"), iri("p"), iri("x1"))], [(iri("x1"), iri("p"), iri("x2"))]))
        assert answer(standing) == answer(driver.ask(asked))
    finally:
        graphs.TURN = before


def people(count):
    return [(iri(f"s{n}"), iri("p"), iri(f"o{n % 7}")) for n in range(count)]


def test_no_turn_looks_at_much(monkeypatch):
    monkeypatch.setattr(graphs, "TURN", 100)
    driver = Landmark()
    driver.load(people(5000))
    _, turns = begun_in_turns(driver, form("?a :p ?b"), ())
    assert turns >= 5000 / (2 * 100)


def test_a_count_enters_in_turns_too(monkeypatch):
    monkeypatch.setattr(graphs, "TURN", 100)
    driver = Landmark()
    driver.load(people(1000))
    asked = form("{ SELECT (COUNT(*) AS ?n) { ?a :p ?b } }")
    standing, turns = begun_in_turns(driver, asked, [([(iri("new"), iri("p"), iri("o"))], ())])
    assert turns > 1
    assert list(answer(standing)) == [('"1001"^^<http://www.w3.org/2001/XMLSchema#integer>',)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "pattern", ["?a :p ?b . ?c :p ?d . ?e :p ?f", "{ ?a :p ?b } { ?c :p ?d FILTER(STRLEN(STR(?d)) > 0) } { ?e :p ?f }"]
)
def test_a_product_is_refused_before_it_is_made(pattern):
    """4,000,000 rows would be made of two parts, 8,000,000,000 of three; about none are."""
    driver = Landmark()
    driver.limit(1_000_000, 1_000_000)
    driver.load(people(2000))
    standing = StandingQuery(form(pattern), driver)

    def settled():
        for _ in driver.enter(standing):
            pass
        standing.settle()

    with pytest.raises(TooMuchError, match="reads more than 1000000"):
        settled()
    rows = sum(entry.waiting for entry in standing.entries) + len(standing.kept.solutions())
    standing.end()
    assert rows < 130_000
    assert not driver.closure.facts.property_of(iri("p")).enter


def test_a_query_that_is_let_go_between_turns_leaves_no_reader(monkeypatch):
    monkeypatch.setattr(graphs, "TURN", 10)
    driver = Landmark()
    driver.load(people(100))
    standing = StandingQuery(form("?a :p ?b"), driver)
    next(driver.enter(standing))
    standing.end()
    assert not driver.closure.facts.property_of(iri("p")).enter


def test_a_pattern_of_too_many_conditions_is_refused_by_a_sentence():
    conditions = " && ".join(f"?b != {n}" for n in range(120))
    with pytest.raises(UnsupportedError, match="put some of them into a group"):
        Landmark().ask(form(f"?a :p ?b FILTER({conditions})"))


def test_a_query_of_many_groups_is_refused():
    pattern = " UNION ".join(f"{{ ?a :p{n} ?b }}" for n in range(65))
    with pytest.raises(TooMuchError, match="more than 64 groups of triple patterns"):
        Landmark().ask(form(pattern))


@pytest.mark.slow
@pytest.mark.parametrize(
    "pattern",
    [
        f"?a :p ?b FILTER(?b IN ({', '.join(f':n{n}' for n in range(800))}))",
        "?a :p ?b " + " ".join(f"BIND(STRLEN(STR(?b)) + {n} AS ?c{n})" for n in range(40)),
    ],
)
def test_large_expressions_count_for_each_row(pattern):
    driver = Landmark()
    driver.limit(25_000, 1000)
    driver.load(people(2000))
    with pytest.raises(TooMuchError):
        driver.ask(form(pattern))
