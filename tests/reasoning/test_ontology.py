"""Which rules an ontology gives, and which axioms are refused."""

import pytest

from streamgauge.model.terms import RDF_TYPE
from streamgauge.reasoning import VIOLATES, Closure, OntologyError, read_rules
from tests.reasoning.ontology import triples


@pytest.mark.parametrize(
    ("turtle", "named"),
    [
        (":p a owl:ReflexiveProperty .", "ReflexiveProperty"),
        (":A owl:disjointUnionOf ( :B :C ) .", "disjointUnionOf"),
        (":A rdfs:subClassOf [ owl:unionOf ( :B :C ) ] .", "unionOf"),
        (":A owl:equivalentClass [ owl:onProperty :p ; owl:allValuesFrom :C ] .", "allValuesFrom"),
        ("[ owl:complementOf :B ] rdfs:subClassOf :A .", "complementOf"),
        (":A owl:equivalentClass [ owl:complementOf :B ] .", "complementOf"),
        (":A rdfs:subClassOf [ owl:onProperty :p ; owl:hasSelf true ] .", "hasSelf"),
        (":A rdfs:subClassOf [ owl:onProperty :p ; owl:maxCardinality 2 ] .", "maxCardinality 2"),
        ("[ owl:onProperty :p ; owl:minCardinality 1 ] rdfs:subClassOf :A .", "minCardinality"),
        ("[ owl:onProperties ( :p :q ) ; owl:someValuesFrom :B ] rdfs:subClassOf :A .", "onProperty"),
        ("[ owl:onProperty :p ; owl:someValuesFrom [ owl:oneOf ( 1 2 ) ] ] rdfs:subClassOf :A .", "oneOf"),
        (
            ":d a rdfs:Datatype ; owl:equivalentClass [ owl:onDatatype xsd:int ; owl:withRestrictions () ] .",
            "onDatatype",
        ),
        ("owl:Thing rdfs:subClassOf :A .", "every resource"),
        (":x :p :y .", "<urn:t:x> <urn:t:p> <urn:t:y>"),
        (":p owl:inverseOf [ rdfs:label 'q' ] .", "unnamed property"),
        (":p owl:inverseOf _:a . _:a owl:inverseOf _:b . _:b owl:inverseOf _:a .", "unnamed property"),
        (":p rdfs:subPropertyOf rdf:type .", "about rdf:type itself"),
        ("rdf:type rdfs:domain :A .", "about rdf:type itself"),
        (":p a owl:MagicProperty .", "owl:MagicProperty"),
        (":p owl:magic :q .", "owl:magic"),
        (":A rdfs:subClassOf [ owl:magic :B ] .", "no known constructor"),
    ],
)
def test_an_axiom_outside_the_supported_rules_is_refused_by_name(turtle, named):
    with pytest.raises(OntologyError, match=named) as refused:
        read_rules(triples(turtle))
    assert "`--ontology-lenient`" in str(refused.value)
    rules = read_rules(triples(f"{turtle} :B rdfs:subClassOf :C ."), lenient=True)
    assert any(named in str(item) for item in rules.left_out)
    assert any(rule.axiom == "<urn:t:B> rdfs:subClassOf <urn:t:C>" for rule in rules.rules)


@pytest.mark.parametrize(
    ("turtle", "left", "rules"),
    [
        (":A owl:equivalentClass [ owl:unionOf ( :B :C ) ] .", "<urn:t:A> as its subclass", ["B -> A", "C -> A"]),
        (":A rdfs:subClassOf [ owl:intersectionOf ( :B [ owl:unionOf ( :C :D ) ] ) ] .", "owl:unionOf", ["A -> B"]),
        ("[ owl:unionOf ( :A [ owl:complementOf :B ] ) ] rdfs:subClassOf :C .", "owl:complementOf", ["A -> C"]),
        ("[ owl:intersectionOf ( :A [ owl:complementOf :B ] ) ] rdfs:subClassOf :C .", "owl:complementOf", []),
        (
            ":A rdfs:subClassOf _:u . _:u owl:unionOf ( :B :C ) ; rdfs:subClassOf :D .",
            "owl:unionOf",
            ["A -> D", "B -> D", "C -> D"],
        ),
    ],
)  # fmt: skip
def test_a_lenient_reader_keeps_the_parts_of_an_axiom_that_follow_from_it(turtle, left, rules):
    result = read_rules(triples(turtle), lenient=True)
    assert [left in str(item) for item in result.left_out] == [True]
    kept = Closure(result)
    for name in "ABCD":
        kept.change([(f"<urn:t:{name.lower()}>", RDF_TYPE, f"<urn:t:{name}>")], ())
    derived = [
        f"{s[7].upper()} -> {o[7]}" for s, _, o in kept.facts.match(None, RDF_TYPE, None) if s[7].upper() != o[7]
    ]
    assert sorted(derived) == rules


def test_axioms_that_derive_equality_are_listed_unless_it_is_asked_for():
    axioms = triples(":p a owl:InverseFunctionalProperty . :A owl:hasKey ( :q ) .")
    assert [item.axiom.split()[1] for item in read_rules(axioms).left_out] == ["owl:hasKey", "rdf:type"]
    assert all("--same-as" in item.reason for item in read_rules(axioms).left_out)
    assert read_rules(axioms, same_as=True).left_out == ()


def test_imports_are_listed_and_annotations_ignored():
    turtle = """<urn:o> a owl:Ontology, :Vocabulary ; owl:imports <urn:o2>, <urn:o3> ;
        :creator [ a :Agent ; :name "a" ] .
        <urn:o3> a owl:Ontology . :A a owl:Class ; :source [ :page [ :number 1 ] ] ; rdfs:seeAlso [ :note "b" ] .
        :n a owl:AnnotationProperty . :x a :A ; :n :y ; :undeclared :z .
        [] a owl:Axiom ; owl:annotatedSource :A ; owl:annotatedProperty rdfs:label ; owl:annotatedTarget "A" ."""
    rules = read_rules(triples(turtle))
    assert rules.imports == ("<urn:o2>",)
    assert [(rule.head.subject, rule.head.object, rule.body) for rule in rules.rules] == [
        ("<urn:t:x>", "<urn:t:A>", ())
    ]


def test_members_of_shared_expressions_are_not_in_the_closure():
    axioms = triples(":A rdfs:subClassOf _:r . _:r owl:onProperty :p ; owl:hasValue :v ; rdfs:subClassOf :B .")
    named, full = Closure(read_rules(axioms)), Closure(read_rules(axioms, "full"))
    messages = []
    named.facts.enter.append(lambda *triple: messages.append(triple))
    for item in (named, full):
        item.change([("<urn:t:a>", RDF_TYPE, "<urn:t:A>")], ())
    shown = {("<urn:t:a>", RDF_TYPE, f"<urn:t:{name}>") for name in "AB"} | {("<urn:t:a>", "<urn:t:p>", "<urn:t:v>")}
    assert set(named.facts.match(None, None, None)) == set(messages) == shown
    assert len(named.facts) == len(shown)
    more = set(full.facts.match(None, None, None)) - shown
    assert sorted(term[:2] for _, _, term in more) == ["<h", "_:"]


def test_an_intersection_of_wide_unions_stays_small():
    unions = " ".join(f"[ owl:unionOf ( {' '.join(f':u{part}x{n}' for n in range(20))} ) ]" for part in range(4))
    rules = read_rules(triples(f":A owl:equivalentClass [ owl:intersectionOf ( {unions} ) ] ."), lenient=True)
    assert len(rules.rules) < 200
    kept = Closure(rules)
    kept.change([("<urn:t:x>", RDF_TYPE, f"<urn:t:u{part}x{part}>") for part in range(4)], ())
    assert ("<urn:t:x>", RDF_TYPE, "<urn:t:A>") in kept.facts


def test_a_list_that_runs_in_a_circle_is_refused():
    turtle = ":A owl:intersectionOf _:l . _:l <http://www.w3.org/1999/02/22-rdf-syntax-ns#first> :B ;"
    with pytest.raises(OntologyError, match="cyclic"):
        read_rules(triples(turtle + " <http://www.w3.org/1999/02/22-rdf-syntax-ns#rest> _:l ."))


def test_notes_and_kinds_give_no_rules():
    turtle = ':A a owl:Class ; rdfs:label "a" ; <urn:by> "somebody" . :p a owl:DatatypeProperty ; rdfs:range '
    rules = read_rules(triples(turtle + "<http://www.w3.org/2001/XMLSchema#string> .")).rules
    assert [rule.head.predicate for rule in rules] == [VIOLATES], "only of what is not a string"


def test_axioms_from_which_only_existence_follows_are_listed():
    rules = read_rules(triples(":A rdfs:subClassOf [ owl:onProperty :p ; owl:someValuesFrom :B ] ."))
    assert rules.rules == ()
    assert len(rules.silent) == 1
    assert "<urn:t:A>" in rules.silent[0]
