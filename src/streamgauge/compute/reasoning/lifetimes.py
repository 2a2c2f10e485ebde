"""The closure of facts that stand in some of several states: all states at once, a bit of a number each.

The states in which a fact stands are a mask: bit k says that it stands in state k. A derived fact stands where all of a
rule's body does, for any of its derivations, so a rule's instance is an AND of masks and several are an OR. What
follows in a state is what follows from the facts of that state, whatever comes and goes between states.

Three states, ``a`` is ``subClassOf`` ``b``: ``x a a`` in the states 0 and 1 (mask 0b011) and ``x p y`` in 1 and 2
(0b110), where ``p`` has the domain ``b``. So ``x a b`` has 0b011 | 0b110 = 0b111.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TypeAlias

from streamgauge.compute.reasoning.rules import Rule, Rules, bindings, instance
from streamgauge.model.algebra import Node, TriplePattern
from streamgauge.model.terms import RDF_TYPE, Term, Triple

Masks: TypeAlias = Mapping[Triple, int]
"""The facts, each with the states in which it stands."""

_Key: TypeAlias = tuple[str, Term, Term]
_NOTHING: Final[tuple[tuple[Rule, int], ...]] = ()


def standing_closure(rules: Rules, facts: Masks) -> dict[Triple, int]:
    """All facts that follow, each with the states in which it stands."""
    closure = _Closure(rules.rules)
    for fact, mask in facts.items():
        closure.stand(fact, mask)
    closure.follow()
    return closure.masks


class _Closure:
    """Facts with their states; those whose states are not followed yet wait."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.masks: dict[Triple, int] = {}
        self._waiting: dict[Triple, int] = {}
        self._about: dict[tuple[Term, Term | None], list[tuple[Rule, int]]] = {}
        self._joined = set[tuple[Term, Term | None]]()
        self._ends: dict[_Key, list[Triple]] = defaultdict(list)
        for rule in rules:
            for at, pattern in enumerate(rule.body):
                self._about.setdefault(_about(pattern), []).append((rule, at))
                if rule.recursive:
                    self._joined.add(_about(pattern))

    def stand(self, fact: Triple, mask: int) -> None:
        """A fact stands in more states; nothing is to follow from states that are known."""
        before = self.masks.get(fact, 0)
        new = mask & ~before
        if not new:
            return
        self.masks[fact] = before | new
        self._waiting[fact] = self._waiting.get(fact, 0) | new
        if not before:
            self._index(fact)

    def follow(self) -> None:
        """Apply the rules until nothing is new."""
        while self._waiting:
            fact, mask = self._waiting.popitem()
            for rule, at in self._about.get(_key(fact), _NOTHING):
                bound = bindings(rule.body[at], fact, {})
                if bound is not None:
                    self._derive(rule, [other for n, other in enumerate(rule.body) if n != at], bound, mask)

    def _derive(self, rule: Rule, rest: list[TriplePattern], bound: Mapping[Node, Term], mask: int) -> None:
        """The head of a rule where the rest of its body stands too, in the states of the mask."""
        if not rest:
            head = instance(rule.head, bound)
            if head is not None:
                self.stand(head, mask)
            return
        pattern, found = min(((each, self._matching(each, bound)) for each in rest), key=lambda pair: len(pair[1]))
        others = [each for each in rest if each is not pattern]
        for fact in tuple(found):
            more = bindings(pattern, fact, bound)
            states = mask & self.masks[fact]
            if more is not None and states:
                self._derive(rule, others, more, states)

    def _index(self, fact: Triple) -> None:
        """Make a fact known by its ends, if some rule joins such facts."""
        if _key(fact) in self._joined:
            subject, predicate, end = fact
            for key in (("subject", predicate, subject), ("object", predicate, end), ("all", predicate, "")):
                self._ends[key].append(fact)

    def _matching(self, pattern: TriplePattern, bound: Mapping[Node, Term]) -> list[Triple]:
        """The facts that may be a pattern's, by the end that has the fewest."""
        found = [self._ends.get(key, []) for key in _keys(pattern, bound)]
        return min(found, key=len)


def _keys(pattern: TriplePattern, bound: Mapping[Node, Term]) -> Iterator[_Key]:
    predicate = str(pattern.predicate)
    for place, node in (("subject", pattern.subject), ("object", pattern.object)):
        term = node if isinstance(node, str) else bound.get(node)
        if term is not None:
            yield place, predicate, term
    yield "all", predicate, ""


def _about(pattern: TriplePattern) -> tuple[Term, Term | None]:
    """The property that a pattern is about, with the class where it is rdf:type."""
    predicate = str(pattern.predicate)
    return predicate, str(pattern.object) if predicate == RDF_TYPE else None


def _key(fact: Triple) -> tuple[Term, Term | None]:
    return fact[1], fact[2] if fact[1] == RDF_TYPE else None
