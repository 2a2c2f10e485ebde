"""Many channels alike and different over facts that come and go: each answer is that from scratch, few joins begin."""

from itertools import islice
from random import Random

import pytest

from streamgauge.incremental.drivers.landmark import Landmark
from streamgauge.incremental.facts import gates, shapes
from streamgauge.incremental.facts.joins import FactJoins
from streamgauge.model.terms import RDF_TYPE
from streamgauge.query import parse_sparql
from streamgauge.sparql.algebra import answer
from streamgauge.sparql.bgp import Dataset, IndexedGraph

THINGS = [f"<urn:{n}>" for n in range(6)]
PROPERTIES = ["<urn:p>", "<urn:q>", "<urn:r>"]
CLASSES = ["<urn:A>", "<urn:B>"]
TEMPLATES = (
    "?x P C",
    "?x P ?y . ?y Q C",
    "?x P ?y . C Q ?y",
    "C P ?y . ?y Q ?z",
    "?x P ?y . ?x Q C . ?x a K",
    "?x P ?y . ?x Q ?z . ?x P C",
    "?x P ?x . C Q ?x",
    "?x P ?y . ?y a K",
    "?x P ?y . ?z Q ?y . ?z R C",
    "?x ?p C . ?x P ?y",
    "?x P C . ?x Q C2 FILTER( ?x != C )",
    "?x P C OPTIONAL { ?x Q ?y }",
    "?x P C OPTIONAL { ?x Q ?y FILTER( ?y != C ) } OPTIONAL { ?y R ?z }",
    "?x P C MINUS { ?x Q ?y . ?y R ?z }",
    "?x P C . ?x R ?w MINUS { ?x Q ?y FILTER( ?w != C2 ) }",
    "?x P C . ?x R ?w OPTIONAL { { ?x Q ?y FILTER( ?w != C2 ) } }",
    "?x R ?w . ?w P C . ?x Q ?z MINUS { ?x P ?y }",
    "?x R ?w . ?w P C . ?x Q ?z FILTER NOT EXISTS { ?x P ?y FILTER( ?y != ?z ) }",
    "?x P C FILTER NOT EXISTS { ?x Q ?y }",
    "?x P C . ?y Q C FILTER EXISTS { ?x R ?y . ?y Q ?z }",
    "{ ?x P C } UNION { ?x Q C2 . ?x a K }",
    "{ SELECT ?x (COUNT(*) AS ?n) { ?x P ?y . ?x Q ?z . ?z R ?w . ?x P C } GROUP BY ?x }",
    "{ SELECT ?y (COUNT(?x) AS ?n) (MAX(?x) AS ?m) { ?x P ?y . ?x Q C } GROUP BY ?y }",
)
WORDS = {"P": PROPERTIES, "Q": PROPERTIES, "R": PROPERTIES, "C": THINGS, "C2": THINGS, "K": CLASSES}


def queries(random):
    while True:
        words = random.choice(TEMPLATES).split(" ")
        yield parse_sparql(f"SELECT * {{ {' '.join(random.choice(WORDS[w]) if w in WORDS else w for w in words)} }}")


def facts(random, number):
    for _ in range(number):
        subject = random.choice(THINGS)
        if random.random() < 0.25:
            yield subject, RDF_TYPE, random.choice(CLASSES)
        else:
            yield subject, random.choice(PROPERTIES), random.choice((*THINGS, '"text"'))


def filled(text):
    return f"SELECT * {{ {text} }}"


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "direct"), [(0, 0), (1, 0), (2, gates.DIRECT)])
def test_each_of_many_answers_is_that_from_scratch(seed, direct, monkeypatch):
    monkeypatch.setattr(gates, "DIRECT", direct)
    random, driver, there, asked = Random(seed), Landmark(), set(facts(Random(seed), 10)), {}
    driver.load(there)
    for step in range(15):
        for form in islice(queries(random), 6):
            asked[driver.ask(form)] = form
        for standing in random.sample(list(asked), 2):
            standing.end()
            del asked[standing]
        removed = {*random.sample(sorted(there), min(2, len(there)))}
        added = {*facts(random, 4)} - removed
        shown = {item: set(item.kept.solutions()) for item in asked}
        for item, change in driver.change(added, removed):
            assert not shown[item].intersection(change.added), step
            shown[item] = shown[item].difference(change.removed).union(change.added)
        there = there - removed | added
        dataset = Dataset(IndexedGraph(there))
        for item, form in asked.items():
            assert shown[item] == set(answer(form, dataset)) == set(item.kept.solutions()), (step, form)
    for item in asked:
        item.end()
    assert not [kind for kind in driver.closure.facts.properties.values() if kind.enter or kind.leave]
    assert not [kind for kind in driver.closure.facts.classes.values() if kind.enter or kind.leave]
    assert not driver.closure.facts.enter


@pytest.fixture
def compiled(monkeypatch):
    """The triggers that are compiled: each when it is first called. No gate has so few that all are called."""
    monkeypatch.setattr(gates, "DIRECT", 0)
    made, original = [], FactJoins.trigger

    def trigger(self, at, sign, finish):
        made.append((self.patterns[at], sign))
        return original(self, at, sign, finish)

    monkeypatch.setattr(FactJoins, "trigger", trigger)
    return made


P02, P04, P12 = "<urn:0> <urn:p> <urn:2>", "<urn:0> <urn:p> <urn:4>", "<urn:1> <urn:p> <urn:2>"


@pytest.mark.parametrize(
    ("query", "there", "passed_by", "matters"),
    [
        ("?x <urn:p> <urn:1>", [], "<urn:0> <urn:p> <urn:2>", "<urn:0> <urn:p> <urn:1>"),
        ("<urn:1> <urn:p> ?x", [], "<urn:0> <urn:p> <urn:1>", "<urn:1> <urn:p> <urn:0>"),
        ("<urn:1> ?p ?x", [], "<urn:0> <urn:p> <urn:1>", "<urn:1> <urn:p> <urn:0>"),
        ("?x <urn:p> ?y . ?x <urn:q> <urn:5>", ["<urn:0> <urn:q> <urn:4>", "<urn:1> <urn:q> <urn:5>"], P02, P12),
        ("?x <urn:p> ?y . <urn:5> <urn:q> ?y", ["<urn:5> <urn:q> <urn:4>"], P02, P04),
        ("?x <urn:p> ?y . ?y a <urn:A>", [f"<urn:4> {RDF_TYPE} <urn:A>"], P02, P04),
        ("?x <urn:p> ?y . ?x <urn:q> ?z", ["<urn:1> <urn:q> <urn:5>"], P02, P12),
    ],
)
def test_a_fact_begins_only_joins_to_which_it_can_matter(query, there, passed_by, matters, compiled):
    driver = Landmark()
    driver.load(tuple(fact.split()) for fact in there)
    driver.ask(parse_sparql(filled(query)))
    assert not list(driver.change([tuple(passed_by.split())], []))
    assert compiled == []
    assert len(list(driver.change([tuple(matters.split())], []))) == 1
    assert len(compiled) == 1


def test_joins_begin_with_constants_only_while_they_are_few(compiled):
    driver, made = Landmark(), []
    for n in range(3 * shapes.FEW):
        driver.change([(f"<urn:b{n}>", "<urn:q>", f"<urn:{n}>")], [])
        driver.ask(parse_sparql(filled(f"?x <urn:p> ?y . ?y <urn:q> <urn:{n}>")))
        ends = [f"<urn:b{other}>" for other in range(n + 1)]
        told = list(driver.change([(f"<urn:a{n}>", "<urn:p>", end) for end in ends], []))
        assert len(told) == n + 1
        made.append(len(compiled))
    assert made == [1] * shapes.FEW + [2] * 2 * shapes.FEW
