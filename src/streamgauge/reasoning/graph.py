"""An ontology's triples by subject and predicate: lists, property expressions, and axioms as text."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from streamgauge.model.algebra import Node, TriplePattern
from streamgauge.model.terms import RDF_TYPE, XSD, Term, Triple, is_iri
from streamgauge.reasoning.rules import RDF, RDFS, OntologyError

OWL: Final = "http://www.w3.org/2002/07/owl#"
THING: Final[Term] = f"<{OWL}Thing>"
NOTHING: Final[Term] = f"<{OWL}Nothing>"
INVERSE: Final[Term] = f"<{OWL}inverseOf>"
VOCABULARY: Final = (f"<{OWL}", f"<{RDF}", f"<{RDFS}")
_PREFIXES: Final = ((OWL, "owl:"), (RDFS, "rdfs:"), (RDF, "rdf:"), (XSD, "xsd:"))
_MAX_DEPTH: Final = 4


@dataclass(frozen=True)
class OntologyGraph:
    """An ontology's triples by subject and predicate."""

    objects: Mapping[tuple[Term, Term], Sequence[Term]]
    predicates: Mapping[Term, Sequence[Term]]
    """The distinct predicates of each subject."""

    @classmethod
    def of(cls, triples: Iterable[Triple]) -> "OntologyGraph":
        """Index triples by subject and predicate."""
        values: dict[tuple[Term, Term], list[Term]] = {}
        predicates: dict[Term, list[Term]] = {}
        for subject, predicate, end in triples:
            if (subject, predicate) not in values:
                predicates.setdefault(subject, []).append(predicate)
            values.setdefault((subject, predicate), []).append(end)
        return cls(values, predicates)

    def values(self, subject: Term, predicate: Term) -> Sequence[Term]:
        """The objects of a subject and a predicate."""
        return self.objects.get((subject, predicate), ())

    def has_type(self, subject: Term, *names: str) -> bool:
        """Whether a subject has one of these types of OWL's or RDF's vocabulary, given by their local names."""
        names_of_types = (
            term.rpartition("#")[2][:-1] for term in self.values(subject, RDF_TYPE) if term.startswith(VOCABULARY)
        )
        return any(name in names for name in names_of_types)

    def one(self, subject: Term, predicate: Term) -> Term:
        """The only object of a subject and a predicate; OntologyError if there is none or more than one."""
        values = self.values(subject, predicate)
        if len(values) != 1:
            raise OntologyError(
                f"{subject} has {len(values)} values of {short(predicate)}; an expression has exactly one"
            )
        return values[0]

    def items(self, start: Term) -> Iterator[Term]:
        """The members of an RDF list."""
        visited = set[Term]()
        while start != f"<{RDF}nil>":
            if start in visited:
                raise OntologyError(f"the list {start} is cyclic")
            visited.add(start)
            yield self.one(start, f"<{RDF}first>")
            start = self.one(start, f"<{RDF}rest>")

    def members(self, subject: Term, predicate: Term) -> list[Term]:
        """The members of the only list that a subject has for a predicate."""
        return list(self.items(self.one(subject, predicate)))

    def pair(self, expression: Term, subject: Node, end: Node) -> TriplePattern:
        """The pattern of a property expression: a property, or the inverse of one, between two terms."""
        visited, turned = set[Term](), False
        # Inverses may be nested, as in ``inverseOf [ inverseOf p ]``; each turns the pair once more.
        while not is_iri(expression):
            if expression in visited or not self.values(expression, INVERSE):
                raise OntologyError(f"the unnamed property {expression} is not an inverse of a property: name it")
            visited.add(expression)
            expression, turned = self.one(expression, INVERSE), not turned
        return TriplePattern(end, expression, subject) if turned else TriplePattern(subject, expression, end)

    def text(self, *terms: Term) -> str:
        """Terms as users read them: expressions in brackets, IRIs of the vocabularies with a prefix."""
        return " ".join(self._text(term, 0) for term in terms)

    def _text(self, term: Term, depth: int) -> str:
        if not term.startswith("_:") or term not in self.predicates or depth == _MAX_DEPTH:
            return short(term)
        if self.values(term, f"<{RDF}first>"):
            return self._listed(term, depth)
        predicates = [predicate for predicate in self.predicates[term] if predicate != RDF_TYPE]
        parts = [
            f"{short(predicate)} {self._text(self.values(term, predicate)[0], depth + 1)}" for predicate in predicates
        ]
        return f"[ {' ; '.join(parts)} ]"

    def _listed(self, start: Term, depth: int) -> str:
        try:
            return f"( {' '.join(self._text(item, depth + 1) for item in self.items(start))} )"
        except OntologyError:
            return start


def short(term: Term) -> str:
    """A term with a prefix, if it is from the RDF, RDFS, OWL or XML Schema vocabulary."""
    for namespace, prefix in _PREFIXES:
        if term.startswith(f"<{namespace}"):
            return prefix + term[len(namespace) + 1 : -1]
    return term
