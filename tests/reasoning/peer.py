"""The closure by another implementation of OWL 2 RL, the library owlrl, and facts to compare it on.

Where owlrl 7 is not as the tables of OWL 2 Profiles (4.3), it is not asked: prp-key leaves the last property of a key
out of the comparison, eq-diff2, eq-diff3 and prp-adp leave out the last member of a list, dt-eq and dt-diff are not
done. owl:cardinality is in no rule: here "exactly one" is read as "at most one", so owlrl is given that.
"""

from random import Random

import pyoxigraph as ox
import pytest

from streamgauge.formats.canonical import Canonical
from streamgauge.model.terms import RDF_TYPE
from streamgauge.reasoning.rules import SAME, VIOLATES

OWL, RDFS = "http://www.w3.org/2002/07/owl#", "http://www.w3.org/2000/01/rdf-schema#"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
THINGS = [f"<urn:i:{n}>" for n in range(5)]
LITERALS = ['"a"', '"b"', '"2020-01-01T00:00:00+00:00"^^<http://www.w3.org/2001/XMLSchema#dateTime>']
NOT_SAID = (f"<{OWL}Thing>", f"<{OWL}NamedIndividual>")
REFLEXIVE = (SAME, *(f"<{RDFS}sub{name}Of>" for name in ("Class", "Property")))
REFLEXIVE += tuple(f"<{OWL}equivalent{name}>" for name in ("Class", "Property"))
"""Said by owlrl of everything, of classes and of properties (eq-ref, scm-cls, scm-op)."""

NOTES = ("#label>", "#comment>", "#seeAlso>", "#isDefinedBy>")


def read(file):
    """The triples of an RDF file; graph names are left out."""
    quads = ox.parse(path=str(file))
    return sorted(set(Canonical().triples(ox.Triple(quad.subject, quad.predicate, quad.object) for quad in quads)))


class Peer:
    """owlrl with an ontology."""

    def __init__(self, ontology):
        self._owlrl = pytest.importorskip("owlrl", reason="owlrl is not installed: pip install '.[dev]' to run this")
        self._text = "".join(f"{' '.join(map(_exact, triple))} .\n" for triple in ontology if _matters(triple))

    def closure(self, facts):
        """What follows of individuals: memberships of named classes, pairs of properties."""
        import rdflib

        graph = rdflib.Graph()
        graph.parse(data=self._text + "".join(f"{' '.join(fact)} .\n" for fact in facts), format="nt")
        semantics = self._owlrl.OWLRL_Semantics
        closure = self._owlrl.DeductiveClosure(
            semantics, rdfs_closure=False, axiomatic_triples=False, datatype_axioms=False
        )
        closure.expand(graph)
        return individuals(tuple(term.n3() for term in triple) for triple in graph)


def _matters(triple):
    """Whether a triple is not an annotation; owlrl takes its time for each."""
    subject, predicate, _ = triple
    if subject in THINGS:
        return True
    return predicate.startswith((f"<{OWL}", f"<{RDFS}", f"<{RDF}")) and not predicate.endswith(NOTES)


def _exact(term):
    return f"<{OWL}maxCardinality>" if term == f"<{OWL}cardinality>" else term


def individuals(triples):
    """The triples about individuals, without what is said of everything or of classes that have no name."""
    return {
        (subject, predicate, end)
        for subject, predicate, end in triples
        if subject in THINGS
        and predicate not in (VIOLATES, "<http://www.daml.org/2002/03/agents/agent-ont#error>")
        and not (predicate in REFLEXIVE and subject == end)
        and not (predicate == RDF_TYPE and (end.startswith("_:") or end in NOT_SAID))
    }


def drawn(ontology, draw: Random, most=None):
    """A function that draws facts with the ontology's classes and properties, or ``most`` of each."""
    kinds: dict[str, set[str]] = {}
    for subject, predicate, end in ontology:
        if predicate == RDF_TYPE and subject.startswith("<"):
            kinds.setdefault(subject, set()).add(end.rpartition("#")[2][:-1])
    classes = sorted(name for name, kind in kinds.items() if "Class" in kind)
    pairs = sorted(
        name
        for name, kind in kinds.items()
        if any(line.endswith("Property") for line in kind) and "AnnotationProperty" not in kind
    )
    if most is not None:
        classes, pairs = (draw.sample(names, min(most, len(names))) for names in (classes, pairs))

    def fact():
        subject = draw.choice(THINGS)
        if draw.random() < 0.35:
            return subject, RDF_TYPE, draw.choice(classes)
        on = draw.choice(pairs)
        if "DatatypeProperty" not in kinds[on]:
            return subject, on, draw.choice(THINGS)
        return subject, on, LITERALS[0] if "FunctionalProperty" in kinds[on] else draw.choice(LITERALS)

    return fact
