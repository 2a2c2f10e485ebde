"""Which triples of an ontology are annotations: notes for people, from which nothing follows."""

from collections.abc import Iterable
from typing import Final

from streamgauge.model.terms import RDF_TYPE, Term, Triple, is_blank
from streamgauge.reasoning.graph import OWL, VOCABULARY, Graph
from streamgauge.reasoning.literals import RDFS
from streamgauge.reasoning.rules import SAME

_NOTES: Final = {
    *(f"<{RDFS}{name}>" for name in ("label", "comment", "seeAlso", "isDefinedBy")),
    *(f"<{OWL}{name}>" for name in ("versionInfo", "versionIRI", "priorVersion", "backwardCompatibleWith")),
    *(f"<{OWL}{name}>" for name in ("incompatibleWith", "deprecated")),
    *(f"<{OWL}{name}>" for name in ("annotatedSource", "annotatedProperty", "annotatedTarget")),
}
_NOTED: Final = (f"<{RDFS}seeAlso>", f"<{RDFS}isDefinedBy>")
_TERMS: Final = (
    "Class", "Datatype", "Property", "Ontology", "ObjectProperty", "DatatypeProperty", "AnnotationProperty",
    "OntologyProperty", "FunctionalProperty", "InverseFunctionalProperty", "TransitiveProperty", "SymmetricProperty",
    "IrreflexiveProperty", "AsymmetricProperty", "ReflexiveProperty", "Restriction", "Axiom", "Annotation",
    "AllDifferent", "AllDisjointClasses", "AllDisjointProperties", "NegativePropertyAssertion", "DeprecatedClass",
    "DeprecatedProperty", "DataRange",
)  # fmt: skip


def is_annotation(graph: Graph, subject: Term, predicate: Term) -> bool:
    """Whether a triple with these terms is an annotation (OWL 2 Structural Specification, 10).

    It is one by its predicate, or because it says something about a class, a property or the ontology; about an
    individual, because the ontology does not declare the predicate.
    """
    if predicate in _NOTES or graph.has_type(predicate, "AnnotationProperty", "OntologyProperty"):
        return True
    if predicate.startswith(VOCABULARY):
        return False
    if graph.has_type(subject, *_TERMS):
        return True
    return bool(graph.values(subject, RDF_TYPE)) and not graph.values(predicate, RDF_TYPE)


def noted_nodes(graph: Graph, triples: Iterable[Triple]) -> set[Term]:
    """The blank nodes that only annotations lead to: their triples are annotations too."""
    leads: dict[Term, list[tuple[Term, Term]]] = {}
    for subject, predicate, end in triples:
        if is_blank(end):
            leads.setdefault(end, []).append((subject, predicate))
    noted, size = set[Term](), -1
    while size != len(noted):
        size = len(noted)
        noted |= {
            node
            for node, ways in leads.items()
            if all(subject in noted or _is_note(graph, subject, predicate) for subject, predicate in ways)
        }
    return noted


def _is_note(graph: Graph, subject: Term, predicate: Term) -> bool:
    return predicate in (*_NOTED, *_NOTES) or (predicate != SAME and is_annotation(graph, subject, predicate))
