"""Axioms to draw ontologies from, in Turtle; together they make hierarchies and rules that run in circles."""

import pyoxigraph as ox

from streamgauge.model.terms import Triple
from streamgauge.wire.canonical import Canonical

PREFIXES = """@prefix : <urn:t:> . @prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
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


def triples(turtle: str) -> list[Triple]:
    """The triples of a text with the prefixes."""
    return list(Canonical().triples(ox.parse(PREFIXES + turtle, format=ox.RdfFormat.TURTLE)))
