"""Rules as data: Horn clauses over triple patterns, with tests of literals."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from streamgauge.incremental.facts.facts import HIDDEN
from streamgauge.model.algebra import Node, TriplePattern, Var
from streamgauge.model.mistake import MistakeError
from streamgauge.model.terms import RDF_TYPE, Term, Triple, is_iri, is_literal
from streamgauge.reasoning import literals

SAME: Final[Term] = "<http://www.w3.org/2002/07/owl#sameAs>"
VIOLATES: Final[Term] = "<urn:streamgauge:violates>"
"""The property from a resource to a literal: the OWL 2 RL rule with conclusion ``false`` and the axiom it violates."""


class OntologyError(MistakeError, ValueError):
    """An axiom outside the supported rules; the sentence names it."""


@dataclass(frozen=True, slots=True)
class LiteralTest:
    """A condition on the terms that variables stand for: ``kind`` is a function of ``literals``, by its name."""

    kind: str
    nodes: tuple[Node, Node]

    @property
    def holds(self) -> Callable[[Term, Term], bool]:
        """The function of the two terms."""
        found: Callable[[Term, Term], bool] = getattr(literals, self.kind)
        return found


@dataclass(frozen=True, slots=True)
class Rule:
    """Where all of ``body`` and ``tests`` holds, ``head`` does; ``axiom`` says which axiom the rule is from.

    A rule without a body states a fact. Predicates, and classes of rdf:type, may be variables (rules of equality).
    """

    head: TriplePattern
    body: tuple[TriplePattern, ...]
    axiom: str = ""
    tests: tuple[LiteralTest, ...] = ()

    @property
    def is_step(self) -> bool:
        """Whether one fact brings the head and nothing is looked up or compared: a step of a hierarchy."""
        if len(self.body) != 1 or self.tests or self.head.predicate == SAME:
            return False
        (body,), head = self.body, self.head
        ends = _ends(body)
        if ends is None or (given := _ends(head)) is None or not set(given) <= set(ends):
            return False
        return is_class(head) or len(given) == 2


@dataclass(frozen=True, slots=True)
class LeftOut:
    """An axiom that gives no rule here, and why."""

    axiom: str
    reason: str

    def __str__(self) -> str:
        return f"{self.axiom}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of an ontology.

    ``silent`` are axioms from which no rule of OWL 2 RL derives a triple, ``left_out`` those outside the rules (only of
    an ontology that was read leniently) and those that only derive owl:sameAs (unless equality was asked for),
    ``imports`` the ontologies that the ontology names and that were not read.
    """

    rules: tuple[Rule, ...] = ()
    silent: tuple[str, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    imports: tuple[Term, ...] = ()

    @property
    def constrains(self) -> bool:
        """Whether facts can violate an axiom."""
        return any(rule.head.predicate == VIOLATES for rule in self.rules)


def unnamed(number: int) -> Term:
    """The name of a class of the ontology that has none; no IRI of data is equal to it."""
    return f"{HIDDEN}class{number}>"


def is_unnamed(term: Term) -> bool:
    """Whether the term is a name that ``unnamed`` gave: its members are no facts of the closure."""
    return term.startswith(HIDDEN)


def is_class(pattern: TriplePattern) -> bool:
    """Whether a pattern is of the members of one class."""
    return pattern.predicate == RDF_TYPE and isinstance(pattern.object, str)


def instance(pattern: TriplePattern, bound: Mapping[Node, Term]) -> Triple | None:
    """The triple of a head for these bindings; ``None`` for what is no triple of RDF, and for x owl:sameAs x."""
    subject, predicate, end = (bound.get(node, node) for node in _nodes(pattern))
    if not (isinstance(subject, str) and isinstance(predicate, str) and isinstance(end, str)) or is_literal(subject):
        return None
    if not is_iri(predicate) or (predicate == SAME and subject == end):
        return None
    return subject, predicate, end


def bindings(pattern: TriplePattern, triple: Triple, bound: Mapping[Node, Term]) -> dict[Node, Term] | None:
    """The bindings under which a pattern is this triple, beside those given; ``None`` when there are none."""
    found = dict(bound)
    for node, term in zip(_nodes(pattern), triple, strict=True):
        if found.setdefault(node, term) != term if isinstance(node, Var) else node != term:
            return None
    return found


def passes(rule: Rule, bound: Mapping[Node, Term]) -> bool:
    """Whether a rule's tests hold of these bindings."""
    return all(each.holds(*(str(bound.get(node, node)) for node in each.nodes)) for each in rule.tests)


def predicate_of(pattern: TriplePattern) -> Node:
    """The predicate of a rule's pattern; ValueError for a property path."""
    if not isinstance(pattern.predicate, Var | str):
        raise ValueError("a rule has no property paths")
    return pattern.predicate


def _ends(pattern: TriplePattern) -> tuple[Var, ...] | None:
    """The variables of a pattern of one class or property, different ones; ``None`` for any other pattern."""
    if is_class(pattern):
        return (pattern.subject,) if isinstance(pattern.subject, Var) else None
    one, two = pattern.subject, pattern.object
    named = isinstance(pattern.predicate, str) and pattern.predicate != RDF_TYPE
    return (one, two) if named and isinstance(one, Var) and isinstance(two, Var) and one != two else None


def _nodes(pattern: TriplePattern) -> Iterator[Node]:
    yield from (pattern.subject, predicate_of(pattern), pattern.object)
