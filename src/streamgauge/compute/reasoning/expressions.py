"""Class expressions of OWL, as conditions (left of a subclass axiom) and as conclusions (right of it)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count, product
from typing import Final, TypeAlias

from streamgauge.compute.reasoning.rules import Rule
from streamgauge.model.algebra import Node, TriplePattern, Var
from streamgauge.model.terms import RDF_TYPE, Term, Triple

OWL: Final = "http://www.w3.org/2002/07/owl#"
RDF: Final = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RDFS: Final = "http://www.w3.org/2000/01/rdf-schema#"
THING: Final[Term] = f"<{OWL}Thing>"
X: Final = Var("x")
Body: TypeAlias = tuple[TriplePattern, ...]
_SOME, _ONLY, _BOTH, _EITHER, _ON = (
    f"<{OWL}{name}>" for name in ("someValuesFrom", "allValuesFrom", "intersectionOf", "unionOf", "onProperty")
)
_FORMS: Final = (_BOTH, _EITHER, _SOME, _ONLY)


class OntologyError(ValueError):
    """An axiom outside the supported rules; the sentence names it."""


@dataclass(frozen=True)
class Graph:
    """An ontology's triples by subject and predicate."""

    found: Mapping[tuple[Term, Term], Sequence[Term]]

    @classmethod
    def of(cls, triples: Iterable[Triple]) -> "Graph":
        """The graph of these triples."""
        found: dict[tuple[Term, Term], list[Term]] = {}
        for subject, predicate, end in triples:
            found.setdefault((subject, predicate), []).append(end)
        return cls(found)

    def values(self, subject: Term, predicate: Term) -> Sequence[Term]:
        """The objects of a subject and a predicate."""
        return self.found.get((subject, predicate), ())

    def one(self, subject: Term, predicate: Term) -> Term:
        """The only object; OntologyError when there is none or are several."""
        values = self.values(subject, predicate)
        if len(values) != 1:
            raise OntologyError(f"{subject} has {len(values)} values of {predicate}: an expression has one")
        return values[0]

    def items(self, start: Term) -> Iterator[Term]:
        """The members of an RDF list."""
        seen = set[Term]()
        while start != f"<{RDF}nil>":
            if start in seen:
                raise OntologyError(f"the list {start} runs in a circle")
            seen.add(start)
            yield self.one(start, f"<{RDF}first>")
            start = self.one(start, f"<{RDF}rest>")


@dataclass
class Classes:
    """Reads class expressions of a graph; fresh variables are numbered."""

    graph: Graph
    _fresh: Iterator[int] = field(default_factory=count)

    def forms(self, node: Term) -> list[Term]:
        """By which constructors a node is described; a named class may have some beside its name."""
        return [form for form in _FORMS if self.graph.values(node, form)]

    def conditions(self, node: Term, at: Node = X) -> list[Body]:
        """The bodies, any of which makes ``at`` a member of what a node is: its name, or its expression."""
        if node == THING:
            return [()]
        if node.startswith("<"):
            return [(TriplePattern(at, RDF_TYPE, node),)]
        return self.described(node, at)

    def described(self, node: Term, at: Node = X) -> list[Body]:
        """The same of the expression beside a node."""
        match self.forms(node):
            case [form] if form == _BOTH:
                parts = [self.conditions(member, at) for member in self._members(node, form)]
                return [sum(choice, ()) for choice in product(*parts)]
            case [form] if form == _EITHER:
                return [body for member in self._members(node, form) for body in self.conditions(member, at)]
            case [form] if form == _SOME:
                there = Var(f"y{next(self._fresh)}")
                link = TriplePattern(at, self.graph.one(node, _ON), there)
                return [(link, *rest) for rest in self.conditions(self.graph.one(node, form), there)]
            case _:
                raise OntologyError(self._unsupported(node, "a condition"))

    def conclusions(self, node: Term, body: Body, axiom: str, at: Node = X) -> list[Rule]:
        """The rules by which a body makes ``at`` a member of what a node is; none where only existence follows."""
        if node == THING:
            return []
        if node.startswith("<"):
            return [Rule(TriplePattern(at, RDF_TYPE, node), body, axiom)]
        match self.forms(node):
            case [form] if form == _BOTH:
                return [
                    rule for member in self._members(node, form) for rule in self.conclusions(member, body, axiom, at)
                ]
            case [form] if form == _SOME:
                return []
            case [form] if form == _ONLY:
                there = Var(f"y{next(self._fresh)}")
                longer = (*body, TriplePattern(at, self.graph.one(node, _ON), there))
                return self.conclusions(self.graph.one(node, form), longer, axiom, there)
            case _:
                raise OntologyError(self._unsupported(node, "a conclusion"))

    def _members(self, node: Term, form: Term) -> list[Term]:
        return list(self.graph.items(self.graph.one(node, form)))

    def _unsupported(self, node: Term, place: str) -> str:
        said = sorted(predicate for subject, predicate in self.graph.found if subject == node)
        kind = " and ".join(each for each in said if each.startswith(f"<{OWL}")) or "nothing"
        return (
            f"the class expression {node} with {kind} as {place}: "
            "intersectionOf, unionOf, someValuesFrom (and allValuesFrom in a conclusion) are supported"
        )
