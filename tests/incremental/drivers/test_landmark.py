"""Answers over standing facts after any changes, with queries that come and go, are pyoxigraph's on the closure."""

import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.formats.canonical import Canonical
from streamgauge.incremental import UnsupportedError
from streamgauge.incremental.drivers.landmark import Landmark
from streamgauge.model.terms import RDF_TYPE
from streamgauge.query import parse_sparql
from streamgauge.query.printer import sparql
from streamgauge.reasoning import read_rules
from tests.reasoning.naive import closure
from tests.reasoning.ontology import triples

RULES = read_rules(
    triples(
        ":A rdfs:subClassOf :B . :p rdfs:subPropertyOf :q . :q owl:inverseOf :r . :p a owl:TransitiveProperty ."
        ":C owl:intersectionOf ( :B [ owl:onProperty :p ; owl:someValuesFrom :A ] ) ."
    )
)
QUERIES = [
    "?x a :B",
    "?x a :C . ?x :p ?y",
    "?x :p ?y . ?y :p ?z",
    "?x :p ?x",
    "?x :q :v",
    "?x :q :u . ?x a :B",
    ":u :r ?x . ?x :p ?y",
    ":w :r ?x . ?x :p ?y",
    "?x :p :u . :u :p ?x",
    "?x :p :v . :v :q ?x . ?x a :A",
    "?x ?p ?y",
    "?x ?p :u . ?x a ?c",
    "?x a ?c . ?y a ?c",
    "?p :p ?y . ?x ?p ?y",
    "?x :n ?n FILTER(?n > 1)",
    '?x :s ?n FILTER regex(?n, "^(a|b)")',
    "{ ?x a :A . ?x :n ?n } UNION { ?x a :B . ?x :n ?n }",
    "?x a :B OPTIONAL { ?x :p :v . ?x :n ?n }",
    "?x a :B FILTER NOT EXISTS { ?x :p :u }",
    "?x a :B MINUS { ?x :q ?y . ?y a :A }",
    "?x :p+ ?y",
    "?x (:p|^:q)/:n ?n",
    "VALUES ?x { :u :v } ?x :p ?y",
    "{ SELECT ?x (COUNT(*) AS ?n) { ?x :p ?y } GROUP BY ?x }",
    "{ SELECT DISTINCT ?y { ?x :p ?y } }",
]
THINGS = [f"<urn:t:{name}>" for name in "uvwx"]
INTEGER = "^^<http://www.w3.org/2001/XMLSchema#integer>"
FACTS = [
    *((one, f"<urn:t:{of}>", two) for one in THINGS for of in "pq" for two in THINGS),
    *((one, RDF_TYPE, f"<urn:t:{of}>") for one in THINGS for of in "ABC"),
    *((one, "<urn:t:n>", f'"{n}"{INTEGER}') for one in THINGS for n in (1, 2)),
    *((one, "<urn:t:s>", f'"{n}"') for one in THINGS for n in ("apple", "cherry", "<b>")),
    ("<urn:t:p>", "<urn:t:p>", "<urn:t:u>"),
]
drawn_facts = st.lists(st.sampled_from(FACTS), max_size=6)
asked = st.lists(st.sampled_from(QUERIES), max_size=4)
steps = st.lists(st.tuples(drawn_facts, drawn_facts, asked), min_size=1, max_size=6)


def form(pattern):
    return parse_sparql(f"PREFIX : <urn:t:> SELECT * {{ {pattern} }}")


def solutions(pattern, facts):
    store = ox.Store()
    store.extend(ox.parse("\n".join(f"{' '.join(fact)} ." for fact in facts), format=ox.RdfFormat.N_TRIPLES))
    asked = form(pattern)
    canonical = Canonical()
    return {
        tuple(None if solution[name] is None else canonical.term(solution[name]) for name in asked.variables)
        for solution in store.query(sparql(asked))
    }


@pytest.mark.slow
@given(steps)
def test_differences_are_those_of_answers_from_scratch(steps):
    driver = Landmark(RULES)
    explicit: set = set()
    standing: dict = {}
    for added, removed, wanted in steps:
        for gone in set(standing) - set(wanted):
            standing.pop(gone)[0].end()
        before = closure(RULES, explicit)
        for pattern in wanted:
            if pattern not in standing:
                result = driver.ask(form(pattern))
                standing[pattern] = result, solutions(pattern, before)
                assert set(result.kept.solutions()) == standing[pattern][1]
        changed = dict(driver.change(added, removed))
        explicit = (explicit - set(removed)) | set(added)
        after = closure(RULES, explicit)
        for pattern, (item, shown) in standing.items():
            now = solutions(pattern, after)
            result = changed.get(item)
            assert (set(result.added) if result else set()) == now - shown
            assert (set(result.removed) if result else set()) == shown - now
            standing[pattern] = item, now


def test_of_equal_queries_one_goes_on_when_the_other_ends():
    driver = Landmark()
    one, two = driver.ask(form("?x :p :u")), driver.ask(form("?x :p :u"))
    fact = ("<urn:t:v>", "<urn:t:p>", "<urn:t:u>")
    one.end()
    assert [item for item, _ in driver.change([fact], ())] == [two]
    two.end()
    assert list(driver.change((), [fact])) == []


def test_many_queries_of_one_shape_hear_of_their_own_only():
    driver = Landmark()
    standing = [driver.ask(form(f"?x :p :u{n} . ?x a :A")) for n in range(50)]
    list(driver.change([("<urn:t:v>", RDF_TYPE, "<urn:t:A>")], ()))
    changed = driver.change([("<urn:t:v>", "<urn:t:p>", "<urn:t:u7>")], ())
    assert [(item, result.added) for item, result in changed] == [(standing[7], (("<urn:t:v>",),))]


@pytest.mark.parametrize(
    "text", ["SELECT * { { SELECT * { ?s ?p ?o } LIMIT 3 } }", "SELECT * { ?s ?p ?o FILTER(RAND() < 1) }"]
)
def test_what_is_not_kept_is_refused_and_leaves_nothing_behind(text):
    driver = Landmark()
    with pytest.raises(UnsupportedError):
        driver.ask(parse_sparql(text))
    assert list(driver.change([FACTS[0]], ())) == []
