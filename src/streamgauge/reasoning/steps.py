"""Steps from one fact to others: hierarchies of classes and properties, inverses, domains and ranges, all at once.

Transitive properties are derived edge by edge. The rule p(x, y), p(y, z) -> p(x, z) derives the pair from one end of a
chain of n to the other n - 1 times, once for each place at which the chain can be parted, so that a chain costs
n ** 3 / 6. Where the second pair has to be an edge, a pair that something other than this rule brings, it is derived
once for each edge that it can end with:

    p(x, y), base(y, z) -> chain(x, z)

``base`` is a hidden property: a pair of p that is explicit, that a step brings, or that another rule derives, is one of
it. ``chain`` brings pairs of p and all that p brings, but no edges of p (of another transitive property, it does).
Both rules have the same closure: p is the transitive closure of its edges (Bancilhon and Ramakrishnan, SIGMOD 1986).

A worked example: a p b. b p c. c p d. The quadratic rule derives a p d twice, from a p b, b p d and from a p c, c p d;
here it is derived once, from a p c and the edge c p d.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from streamgauge.incremental.facts.facts import HIDDEN, Class, Facts, Property
from streamgauge.model.algebra import TriplePattern, Var
from streamgauge.model.terms import RDF_TYPE, Term
from streamgauge.reasoning.rules import SAME, Rule, is_class


def base_of(name: Term) -> Term:
    """The hidden property of a transitive property's edges."""
    return f"{HIDDEN}edge {name}"


def chain_of(name: Term) -> Term:
    """The name of what the rule derives, of which no pairs are kept."""
    return f"{HIDDEN}chain {name}"


def transitive(rule: Rule) -> Term | None:
    """The property that a rule makes transitive; ``None`` for other rules, and for owl:sameAs."""
    name = rule.head.predicate
    if not isinstance(name, str) or name in (RDF_TYPE, SAME) or rule.tests or len(rule.body) != 2:
        return None
    start, end = rule.head.subject, rule.head.object
    for one, two in (rule.body, rule.body[::-1]):
        middle = one.object
        if (
            one == TriplePattern(start, name, middle)
            and two == TriplePattern(middle, name, end)
            and not isinstance(middle, str)
            and len({start, middle, end}) == 3
            and not (isinstance(start, str) or isinstance(end, str))
        ):
            return name
    return None


def edge_by_edge(rule: Rule, name: Term) -> tuple[TriplePattern, TriplePattern]:
    """The body of the rule that takes the place of one that is ``transitive``."""
    one, two = rule.body if rule.body[0].subject == rule.head.subject else rule.body[::-1]
    return one, TriplePattern(two.subject, base_of(name), two.object)


Brought = tuple[str, Term]
"""Of a fact: ``same`` or ``turned`` and a property, ``subject`` or ``object`` and a class that it is a member of."""


@dataclass(frozen=True, slots=True, eq=False)
class PropertyLinks:
    """A property, and what each of its pairs brings: pairs of others, turned ones, classes of its subject and object.

    ``lone`` is true when nothing is brought and nothing brings it; ``literal`` is what a pair with a literal brings,
    which is the subject of nothing on the way.
    """

    property: Property
    same: tuple[Property, ...]
    turned: tuple[Property, ...]
    of_subject: tuple[Class, ...]
    of_object: tuple[Class, ...]
    lone: bool
    literal: "PropertyLinks | None" = None


class FactSteps:
    """The rules with one triple in their body, closed under each other.

    Pairs of ``transitive`` properties bring edges too, as ``chains`` says.
    """

    def __init__(
        self, rules: Iterable[Rule], heads: Iterable[TriplePattern], facts: Facts, transitive: Iterable[Term] = ()
    ) -> None:
        self._facts = facts
        self._chains = {chain_of(name): name for name in transitive}
        self._next: dict[Brought, set[Brought]] = {}
        for rule in rules:
            for start, end in _step(rule):
                self._next.setdefault(start, set()).add(end)
        listed = list(heads)
        self._open = any(isinstance(head.predicate, Var) for head in listed)
        derived = {_of(head) for head in listed if isinstance(head.predicate, str)}
        self._brought = {each for ends in self._next.values() for each in ends} | derived
        self._links: dict[Term, PropertyLinks] = {}
        self._above: dict[Term, tuple[Class, ...]] = {}

    def link(self, name: Term) -> PropertyLinks:
        """The facts that the pairs of a property, or of a chain, bring."""
        found = self._links.get(name)
        if found is None:
            literal = self._link(name, ("same", "subject"), None)
            found = self._links[name] = self._link(name, tuple(_TURN), literal)
        return found

    def above(self, name: Term) -> tuple[Class, ...]:
        """The classes that members of a class are in, itself first."""
        found = self._above.get(name)
        if found is None:
            reached = [term for kind, term in self._reach(("subject", name)) if kind == "subject" and term != name]
            found = self._above[name] = tuple(map(self._facts.class_of, (name, *sorted(reached))))
        return found

    def _link(self, name: Term, kinds: tuple[str, ...], literal: PropertyLinks | None) -> PropertyLinks:
        chained = self._chains.get(name)
        start = ("same", name if chained is None else chained)
        brought_by = self._reach(start, kinds)
        edges = {(kind, base_of(term)) for kind, term in brought_by if self._has_edges(kind, term, chained)}
        reached = sorted((brought_by - ({start} if chained is None else set())) | edges)

        def properties(kind: str) -> tuple[Property, ...]:
            return tuple(self._facts.property_of(term) for one, term in reached if one == kind)

        def classes(kind: str) -> tuple[Class, ...]:
            return tuple(self._facts.class_of(term) for one, term in reached if one == kind)

        lone = not (reached or self._open or self._brought & {start, ("turned", name)})
        own, brought = self._facts.property_of(name), (properties("same"), properties("turned"))
        return PropertyLinks(own, *brought, classes("subject"), classes("object"), lone, literal)

    def _has_edges(self, kind: str, term: Term, chained: Term | None) -> bool:
        """Whether a pair that is brought is an edge: one of a transitive property, unless its own chain brings it."""
        return kind in ("same", "turned") and term != chained and chain_of(term) in self._chains

    def _reach(self, start: Brought, kinds: Iterable[str] = ("subject",)) -> set[Brought]:
        """All that follows by steps, on the way through these kinds only."""
        reached, waiting = {start}, [start]
        while waiting:
            for there in self._from(waiting.pop()):
                if there not in reached and there[0] in kinds:
                    reached.add(there)
                    waiting.append(there)
        return reached

    def _from(self, brought: Brought) -> Iterable[Brought]:
        """One step on, with subject and object exchanged where the pair is turned."""
        kind, term = brought
        if kind in ("turned", "object"):
            stem = "same" if kind == "turned" else "subject"
            return [(_TURN[each], name) for each, name in self._next.get((stem, term), ())]
        return self._next.get(brought, ())


_TURN = {"same": "turned", "turned": "same", "subject": "object", "object": "subject"}


def _step(rule: Rule) -> Iterable[tuple[Brought, Brought]]:
    """A rule as a step: from a pair to a pair or to the class of one of its ends, or from a class to a class."""
    (body,), head = rule.body, rule.head
    if is_class(body):
        yield ("subject", _name(body.object)), ("subject", _name(head.object))
    elif is_class(head):
        yield (
            ("same", _name(body.predicate)),
            ("subject" if head.subject == body.subject else "object", _name(head.object)),
        )
    else:
        yield (
            ("same", _name(body.predicate)),
            ("same" if head.subject == body.subject else "turned", _name(head.predicate)),
        )


def _of(head: TriplePattern) -> Brought:
    return ("subject", _name(head.object)) if head.predicate == RDF_TYPE else ("same", _name(head.predicate))


def _name(node: object) -> Term:
    if not isinstance(node, str):
        raise TypeError("a rule names its properties and classes")
    return node
