"""The closure of the facts of several states at once, with a bit mask of states for each fact.

Bit k of a fact's mask is set if the fact holds in state k. A derived fact holds in the states in which all of a rule's
body holds, for any of its derivations: the mask of one derivation is the AND of the body's masks, that of the fact is
the OR of its derivations'. So the closure of each state is that of its own facts.

A worked example with three states and the axioms ``A subClassOf B`` and ``p domain B``: ``x a A`` holds in the states
0 and 1 (mask 0b011), ``x p y`` in 1 and 2 (0b110). So ``x a B`` has the mask 0b011 | 0b110 = 0b111.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TypeAlias

from streamgauge.model.algebra import Node, TriplePattern
from streamgauge.model.terms import RDF_TYPE, Term, Triple
from streamgauge.reasoning.rules import Rule, Rules, bindings, instance, is_unnamed, passes, predicate_of

Masks: TypeAlias = Mapping[Triple, int]
"""For each fact the bit mask of the states in which it holds."""

_Kind: TypeAlias = tuple[Term | None, Term | None]
"""A property, with the class where it is rdf:type; ``None`` for a variable."""

_Key: TypeAlias = tuple[str, Term | None, Term]
_ANY: Final[_Kind] = (None, None)


def closure_of_states(rules: Rules, facts: Masks, states: int) -> dict[Triple, int]:
    """The closure: each fact with the mask of the states, from 0 to ``states`` - 1, in which it holds."""
    closure = _Closure(rules.rules)
    for fact, mask in facts.items():
        closure.add_states(fact, mask)
    for rule in rules.rules:
        if not rule.body:
            # A fact of the ontology holds in all states.
            closure.derive(rule, [], {}, (1 << states) - 1)
    closure.follow()
    # Hidden classes occur as objects of rdf:type only.
    return {fact: mask for fact, mask in closure.masks.items() if not is_unnamed(fact[2])}


class _Closure:
    """Semi-naive evaluation; ``_waiting`` has for each fact the states that are not propagated yet."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.masks: dict[Triple, int] = {}
        self._waiting: dict[Triple, int] = {}
        self._about: dict[_Kind, list[tuple[Rule, int]]] = {}
        # Only facts that a rule joins are indexed; those of rules with one pattern are never looked up.
        self._joined = set[_Kind]()
        self._ends: dict[_Key, list[Triple]] = defaultdict(list)
        for rule in rules:
            for at, pattern in enumerate(rule.body):
                self._about.setdefault(_kind(pattern), []).append((rule, at))
                if len(rule.body) > 1:
                    self._joined.add(_kind(pattern))

    def add_states(self, fact: Triple, mask: int) -> None:
        """Add states to a fact; only new states are propagated."""
        before = self.masks.get(fact, 0)
        # Termination: a derivation that adds no state is not followed.
        new = mask & ~before
        if not new:
            return
        self.masks[fact] = before | new
        self._waiting[fact] = self._waiting.get(fact, 0) | new
        # Indexed once: the mask is looked up when the fact is read.
        if not before:
            self._index(fact)

    def follow(self) -> None:
        """Apply the rules to new states until the fixpoint."""
        while self._waiting:
            # In any order: masks only grow, so the fixpoint is the same.
            fact, mask = self._waiting.popitem()
            for rule, at in [entry for kind in _kinds(fact) for entry in self._about.get(kind, ())]:
                bound = bindings(rule.body[at], fact, {})
                if bound is not None:
                    self.derive(rule, [other for n, other in enumerate(rule.body) if n != at], bound, mask)

    def derive(self, rule: Rule, rest: list[TriplePattern], bound: Mapping[Node, Term], mask: int) -> None:
        """Join the rest of a rule's body and derive its head in the states in which all of the body holds."""
        if not rest:
            head = instance(rule.head, bound)
            if head is not None and passes(rule, bound):
                self.add_states(head, mask)
            return
        # The most selective pattern first, as its bindings restrict all others.
        pattern, facts = min(
            ((candidate, self._matching(candidate, bound)) for candidate in rest), key=lambda pair: len(pair[1])
        )
        others = [candidate for candidate in rest if candidate is not pattern]
        # A copy: deriving the head may append to the same index.
        for fact in tuple(facts):
            more = bindings(pattern, fact, bound)
            states = mask & self.masks[fact]
            if more is not None and states:
                # The mask shrinks along the join, so that branches whose facts never hold together end early.
                self.derive(rule, others, more, states)

    def _index(self, fact: Triple) -> None:
        """Index a fact by subject and object, if a rule joins such facts."""
        if self._joined.isdisjoint(_kinds(fact)):
            return
        subject, predicate, end = fact
        for property_ in (predicate, None) if _ANY in self._joined else (predicate,):
            for key in (("subject", property_, subject), ("object", property_, end), ("all", property_, "")):
                self._ends[key].append(fact)

    def _matching(self, pattern: TriplePattern, bound: Mapping[Node, Term]) -> list[Triple]:
        """Candidate facts for a pattern, from the smallest index entry that applies."""
        return min((self._ends.get(key, []) for key in _keys(pattern, bound)), key=len)


def _keys(pattern: TriplePattern, bound: Mapping[Node, Term]) -> Iterator[_Key]:
    property_ = _known(predicate_of(pattern), bound)
    for place, node in (("subject", pattern.subject), ("object", pattern.object)):
        term = _known(node, bound)
        if term is not None:
            yield place, property_, term
    yield "all", property_, ""


def _known(node: Node, bound: Mapping[Node, Term]) -> Term | None:
    return node if isinstance(node, str) else bound.get(node)


def _kind(pattern: TriplePattern) -> _Kind:
    predicate, end = predicate_of(pattern), pattern.object
    if not isinstance(predicate, str):
        return _ANY
    return predicate, end if predicate == RDF_TYPE and isinstance(end, str) else None


def _kinds(fact: Triple) -> tuple[_Kind, ...]:
    """The kinds of patterns that a fact may match."""
    _, predicate, end = fact
    own: _Kind = (predicate, None)
    return ((predicate, end), own, _ANY) if predicate == RDF_TYPE else (own, _ANY)
