"""Which rules an ontology gives, and which axioms are refused."""

import pytest

from streamgauge.compute.reasoning import OntologyError, read_rules
from tests.compute.reasoning.ontology import triples


@pytest.mark.parametrize(
    ("turtle", "named"),
    [
        (":p a owl:FunctionalProperty .", "FunctionalProperty"),
        (":A owl:disjointWith :B .", "disjointWith"),
        (":A rdfs:subClassOf [ owl:unionOf ( :B :C ) ] .", "unionOf"),
        (":A owl:equivalentClass [ owl:onProperty :p ; owl:allValuesFrom :C ] .", "allValuesFrom"),
        (":A rdfs:subClassOf [ owl:complementOf :B ] .", "complementOf"),
        (":A owl:equivalentClass [ owl:onProperty :p ; owl:hasValue :x ] .", "hasValue"),
        (":p owl:propertyChainAxiom ( :q :r ) .", "propertyChainAxiom"),
        ("owl:Thing rdfs:subClassOf :A .", "everything"),
        (":x :p :y .", "<urn:t:x> <urn:t:p> <urn:t:y>"),
        (":p owl:inverseOf [ owl:inverseOf :q ] .", "unnamed property"),
        (":p rdfs:subPropertyOf rdf:type .", "about rdf:type itself"),
        ("rdf:type rdfs:domain :A .", "about rdf:type itself"),
    ],
)
def test_an_axiom_outside_the_supported_rules_is_refused_by_name(turtle, named):
    with pytest.raises(OntologyError, match=named):
        read_rules(triples(turtle))


def test_a_list_that_runs_in_a_circle_is_refused():
    turtle = ":A owl:intersectionOf _:l . _:l <http://www.w3.org/1999/02/22-rdf-syntax-ns#first> :B ;"
    with pytest.raises(OntologyError, match="circle"):
        read_rules(triples(turtle + " <http://www.w3.org/1999/02/22-rdf-syntax-ns#rest> _:l ."))


def test_notes_and_kinds_give_no_rules():
    turtle = ':A a owl:Class ; rdfs:label "a" ; <urn:by> "somebody" . :p a owl:DatatypeProperty ; rdfs:range '
    assert read_rules(triples(turtle + "<http://www.w3.org/2001/XMLSchema#string> .")).rules == ()


def test_axioms_from_which_only_existence_follows_are_listed():
    rules = read_rules(triples(":A rdfs:subClassOf [ owl:onProperty :p ; owl:someValuesFrom :B ] ."))
    assert rules.rules == ()
    assert len(rules.silent) == 1
    assert "<urn:t:A>" in rules.silent[0]
