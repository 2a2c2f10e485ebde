"""An ontology as rules: RDFS and the part of OWL RL in which LUBM's univ-bench is written; more is refused by axiom."""

from collections.abc import Iterable, Iterator
from typing import Final, Literal, TypeAlias

from streamgauge.compute.reasoning.expressions import OWL, RDF, RDFS, THING, Classes, Graph, OntologyError, X
from streamgauge.compute.reasoning.rules import Rule, Rules, is_class
from streamgauge.model.algebra import TriplePattern, Var
from streamgauge.model.terms import RDF_TYPE, XSD, Term, Triple

Extent: TypeAlias = Literal["named", "full"]
"""Memberships of named classes, or also of owl:Thing and of the ontology's unnamed classes (OWL RL, Horst)."""

Y: Final = Var("y")
_KINDS: Final = {
    *(f"<{RDFS}{name}>" for name in ("Class", "Datatype")),
    *(f"<{RDF}{name}>" for name in ("Property", "List")),
    *(f"<{OWL}{name}>" for name in ("Class", "Restriction", "Ontology", "ObjectProperty", "DatatypeProperty")),
    *(f"<{OWL}{name}>" for name in ("AnnotationProperty", "NamedIndividual")),
}
_PARTS: Final = {
    *(f"<{OWL}{name}>" for name in ("onProperty", "someValuesFrom", "allValuesFrom")),
    *(f"<{RDF}{name}>" for name in ("first", "rest")),
}
_NOTES: Final = {
    *(f"<{RDFS}{name}>" for name in ("label", "comment", "seeAlso", "isDefinedBy")),
    *(f"<{OWL}{name}>" for name in ("versionInfo", "versionIRI", "priorVersion", "backwardCompatibleWith")),
}
_VOCABULARY: Final = (f"<{OWL}", f"<{RDF}", f"<{RDFS}")


def read_rules(ontology: Iterable[Triple], closure: Extent = "named") -> Rules:
    """The rules of an ontology's triples; OntologyError names the first axiom that is outside the supported ones.

    Supported are subClassOf, subPropertyOf, equivalentClass and -Property, inverseOf, domain, range, transitive and
    symmetric properties, and classes that are intersections, unions or existential restrictions.
    """
    triples = sorted(set(ontology))
    reader = _Reader(triples)
    rules = dict.fromkeys(_about_terms(rule) for triple in triples for rule in reader.axiom(triple))
    if closure == "full":
        rules |= dict.fromkeys(reader.unnamed())
        rules |= dict.fromkeys(_things([*rules]))
    kept = [rule for rule in rules if rule.head not in rule.body]
    return Rules(tuple(kept), tuple(reader.silent))


class _Reader:
    """Axioms of one ontology, one by one."""

    def __init__(self, triples: list[Triple]) -> None:
        self._graph = Graph.of(triples)
        self._classes = Classes(self._graph)
        self._terms = {subject for subject, predicate, _ in triples if predicate == RDF_TYPE}
        self.silent: list[str] = []

    def axiom(self, triple: Triple) -> list[Rule]:
        """The rules of a triple of the ontology."""
        subject, predicate, end = triple
        name = " ".join(triple)
        match predicate.removeprefix(f"<{OWL}").removeprefix(f"<{RDFS}").removesuffix(">"):
            case "subClassOf":
                return self._subclass(subject, end, name)
            case "equivalentClass":
                return self._subclass(subject, end, name) + self._subclass(end, subject, name)
            case "intersectionOf" | "unionOf" | "someValuesFrom" if subject.startswith("<"):
                return self._defined(subject, name)
            case "intersectionOf" | "unionOf":
                return []
            case "subPropertyOf" | "equivalentProperty" | "inverseOf" as kind:
                return list(_properties(kind, subject, end, name))
            case "domain":
                return self._classes.conclusions(end, (TriplePattern(X, subject, Y),), name)
            case "range":
                return self._range(subject, end, name)
            case _:
                return self._other(triple)

    def unnamed(self) -> Iterator[Rule]:
        """What makes things members of the ontology's unnamed classes."""
        for (node, predicate), ends in self._graph.found.items():
            if node.startswith("_:") and self._classes.forms(node) and predicate == RDF_TYPE:
                for body in self._classes.described(node):
                    yield Rule(TriplePattern(X, RDF_TYPE, node), body, f"members of {node}")
            if predicate in (f"<{RDFS}subClassOf>", f"<{OWL}equivalentClass>"):
                for end in ends:
                    if end.startswith("_:"):
                        yield Rule(TriplePattern(X, RDF_TYPE, end), (TriplePattern(X, RDF_TYPE, node),), "its name")

    def _subclass(self, lower: Term, upper: Term, name: str) -> list[Rule]:
        bodies = self._classes.conditions(lower)
        if () in bodies:
            raise OntologyError(f"the axiom {name} is about everything: name the classes that it is about")
        rules = [rule for body in bodies for rule in self._classes.conclusions(upper, body, name)]
        if not rules and upper != THING:
            self.silent.append(name)
        return rules

    def _defined(self, node: Term, name: str) -> list[Rule]:
        """A named class and the expression beside it are equivalent."""
        rules = [Rule(TriplePattern(X, RDF_TYPE, node), body, name) for body in self._classes.described(node)]
        inside = (TriplePattern(X, RDF_TYPE, node),)
        parts = self._graph.values(node, f"<{OWL}intersectionOf>")
        for part in (item for start in parts for item in self._graph.items(start)):
            rules += self._classes.conclusions(part, inside, name)
        return rules

    def _range(self, subject: Term, end: Term, name: str) -> list[Rule]:
        if end.startswith(f"<{XSD}") or end == f"<{RDFS}Literal>":
            return []
        return self._classes.conclusions(end, (TriplePattern(Y, subject, X),), name)

    def _other(self, triple: Triple) -> list[Rule]:
        subject, predicate, end = triple
        if predicate in _PARTS or predicate in _NOTES or (predicate == RDF_TYPE and end in _KINDS):
            return []
        if predicate == RDF_TYPE and end == f"<{OWL}TransitiveProperty>":
            body = (TriplePattern(X, subject, Y), TriplePattern(Y, subject, Var("z")))
            return [Rule(TriplePattern(X, subject, Var("z")), body, " ".join(triple))]
        if predicate == RDF_TYPE and end == f"<{OWL}SymmetricProperty>":
            return [Rule(TriplePattern(Y, subject, X), (TriplePattern(X, subject, Y),), " ".join(triple))]
        if subject in self._terms and not predicate.startswith(_VOCABULARY):
            return []
        raise OntologyError(f"the axiom {' '.join(triple)} is outside the supported rules: leave it out or state it so")


def _about_terms(rule: Rule) -> Rule:
    """The rule, which names the classes that it is about: rdf:type is no property of an ontology."""
    for pattern in (rule.head, *rule.body):
        if pattern.predicate == RDF_TYPE and not is_class(pattern):
            raise OntologyError(
                f"the axiom {rule.axiom} is about rdf:type itself: state it of classes, or leave it out"
            )
    return rule


def _properties(kind: str, one: Term, two: Term, name: str) -> Iterator[Rule]:
    """Hierarchies of properties, forward and back."""
    turned = kind == "inverseOf"
    if not (one.startswith("<") and two.startswith("<")):
        raise OntologyError(f"the axiom {name} has an unnamed property: name it")
    there = TriplePattern(Y, two, X) if turned else TriplePattern(X, two, Y)
    yield Rule(there, (TriplePattern(X, one, Y),), name)
    if kind != "subPropertyOf":
        back = TriplePattern(Y, one, X) if turned else TriplePattern(X, one, Y)
        yield Rule(back, (TriplePattern(X, two, Y),), name)


def _things(rules: list[Rule]) -> Iterator[Rule]:
    """Every member of a class of the ontology is an owl:Thing."""
    patterns = [pattern for rule in rules for pattern in (rule.head, *rule.body)]
    for term in dict.fromkeys(pattern.object for pattern in patterns if pattern.predicate == RDF_TYPE):
        if term != THING:
            head = TriplePattern(X, RDF_TYPE, THING)
            yield Rule(head, (TriplePattern(X, RDF_TYPE, term),), "every member of a class is an owl:Thing")
