"""Axioms to draw ontologies from, in Turtle; together they make hierarchies and rules that run in circles."""

import pyoxigraph as ox

from streamgauge.formats.canonical import Canonical
from streamgauge.model.terms import Triple

PREFIXES = """@prefix : <urn:t:> . @prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
"""
AXIOMS = (
    ":A rdfs:subClassOf :B .",
    ":B rdfs:subClassOf :C .",
    ":C rdfs:subClassOf :A .",
    ":B owl:equivalentClass :D .",
    ":p rdfs:subPropertyOf :q .",
    ":q rdfs:subPropertyOf :p .",
    ":p owl:equivalentProperty :r .",
    ":q owl:inverseOf :r .",
    ":p owl:inverseOf :p .",
    ":p a owl:TransitiveProperty .",
    ":q a owl:TransitiveProperty .",
    ":q a owl:SymmetricProperty .",
    ":r a owl:SymmetricProperty .",
    ":p rdfs:domain :A .",
    ":q rdfs:range :B .",
    ":r rdfs:domain [ owl:intersectionOf ( :A :C ) ] .",
    ":D owl:intersectionOf ( :A [ owl:onProperty :p ; owl:someValuesFrom :B ] ) .",
    ":A owl:equivalentClass [ owl:intersectionOf ( :C :D ) ] .",
    ":C owl:unionOf ( :A :D ) .",
    ":B owl:equivalentClass [ owl:onProperty :q ; owl:someValuesFrom owl:Thing ] .",
    ":A rdfs:subClassOf [ owl:onProperty :r ; owl:allValuesFrom :D ] .",
    ":D rdfs:subClassOf [ owl:onProperty :p ; owl:someValuesFrom :A ] .",
    "[ owl:onProperty :p ; owl:someValuesFrom [ owl:onProperty :q ; owl:someValuesFrom :C ] ] rdfs:subClassOf :B .",
)
LARGER = (
    *AXIOMS,
    ":A rdfs:subClassOf [ owl:onProperty :p ; owl:hasValue :u ] .",
    ":B owl:equivalentClass [ owl:onProperty :q ; owl:hasValue :v ] .",
    ":C owl:oneOf ( :u :v ) .",
    "[ owl:oneOf ( :w ) ] rdfs:subClassOf [ owl:onProperty :p ; owl:hasValue :x ] .",
    ":p owl:propertyChainAxiom ( :q :r ) .",
    ":r owl:propertyChainAxiom ( :p [ owl:inverseOf :q ] :p ) .",
    ":q rdfs:subPropertyOf [ owl:inverseOf :r ] .",
    ":A rdfs:subClassOf [ owl:onProperty [ owl:inverseOf :p ] ; owl:allValuesFrom :B ] .",
    ":A rdfs:subClassOf _:r . _:r owl:onProperty :p ; owl:someValuesFrom :B ; rdfs:subClassOf :C .",
    "_:s owl:intersectionOf ( :B :C ) . :q rdfs:domain _:s . _:s rdfs:subClassOf :D .",
    "_:t owl:onProperty :q ; owl:someValuesFrom _:t ; rdfs:subClassOf :A . :C rdfs:subClassOf _:t .",
    ":p a owl:FunctionalProperty .",
    ":q a owl:InverseFunctionalProperty .",
    ":r a owl:IrreflexiveProperty .",
    ":p a owl:AsymmetricProperty .",
    ":A owl:disjointWith :D .",
    "[] a owl:AllDisjointClasses ; owl:members ( :B :C [ owl:onProperty :r ; owl:someValuesFrom :A ] ) .",
    ":p owl:propertyDisjointWith :q .",
    ":D rdfs:subClassOf [ owl:complementOf :C ] .",
    ":B rdfs:subClassOf [ owl:onProperty :p ; owl:maxCardinality 1 ] .",
    ":C rdfs:subClassOf [ owl:onProperty :q ; owl:maxQualifiedCardinality 1 ; owl:onClass :A ] .",
    ":D rdfs:subClassOf [ owl:onProperty :r ; owl:maxQualifiedCardinality 0 ; owl:onClass :B ] .",
    ":D owl:hasKey ( :p :q ) .",
    ":u owl:differentFrom :v .",
    "[] a owl:AllDifferent ; owl:distinctMembers ( :u :w :x ) .",
    "[] owl:sourceIndividual :u ; owl:assertionProperty :p ; owl:targetIndividual :v .",
    ":A rdfs:subClassOf owl:Nothing .",
    ":p rdfs:range xsd:integer .",
    "[ owl:onProperty :p ; owl:someValuesFrom xsd:integer ] rdfs:subClassOf :D .",
    ":u a :A .",
    ":q a owl:ObjectProperty . :v :q :w .",
)
"""Those, and at least one axiom for each further construct of OWL 2 RL."""


def triples(turtle: str) -> list[Triple]:
    """The triples of a text with the prefixes."""
    return list(Canonical().triples(ox.parse(PREFIXES + turtle, format=ox.RdfFormat.TURTLE)))
