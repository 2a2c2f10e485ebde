"""Rules as data: Horn clauses over triple patterns whose predicates, and classes, are constants."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from streamgauge.model.algebra import Node, TriplePattern, Var
from streamgauge.model.terms import RDF_TYPE, Term, Triple, is_literal


@dataclass(frozen=True, slots=True)
class Rule:
    """Where all of ``body`` holds, ``head`` does; ``axiom`` says which axiom it is from."""

    head: TriplePattern
    body: tuple[TriplePattern, ...]
    axiom: str = ""

    @property
    def recursive(self) -> bool:
        """Whether it joins; a rule with one triple in its body is a step of a hierarchy."""
        return len(self.body) > 1


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of an ontology; ``silent`` are its axioms from which no rule derives a triple."""

    rules: tuple[Rule, ...] = ()
    silent: tuple[str, ...] = ()


def is_class(pattern: TriplePattern) -> bool:
    """Whether a pattern is of the members of one class."""
    return pattern.predicate == RDF_TYPE and isinstance(pattern.object, str)


def instance(pattern: TriplePattern, bound: Mapping[Node, Term]) -> Triple | None:
    """The triple of a head for these bindings; ``None`` where it would have a literal for a subject."""
    subject, predicate, end = (bound.get(node, node) for node in _nodes(pattern))
    if not (isinstance(subject, str) and isinstance(predicate, str) and isinstance(end, str)) or is_literal(subject):
        return None
    return subject, predicate, end


def bindings(pattern: TriplePattern, triple: Triple, bound: Mapping[Node, Term]) -> dict[Node, Term] | None:
    """The bindings under which a pattern is this triple, beside those given; ``None`` when there are none."""
    found = dict(bound)
    for node, term in zip(_nodes(pattern), triple, strict=True):
        if found.setdefault(node, term) != term if isinstance(node, Var) else node != term:
            return None
    return found


def _nodes(pattern: TriplePattern) -> Iterator[Node]:
    if not isinstance(pattern.predicate, Var | str):
        raise ValueError("a rule has no property paths")
    yield from (pattern.subject, pattern.predicate, pattern.object)
