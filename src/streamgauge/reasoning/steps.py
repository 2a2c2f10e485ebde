"""What one fact brings: hierarchies of classes and properties, inverses, domains and ranges, all steps at once."""

from collections.abc import Iterable
from dataclasses import dataclass

from streamgauge.incremental.facts.facts import Class, Facts, Property
from streamgauge.model.algebra import TriplePattern, Var
from streamgauge.model.terms import RDF_TYPE, Term
from streamgauge.reasoning.chains import base_of, chain_of
from streamgauge.reasoning.rules import Rule, is_class

Brought = tuple[str, Term]
"""Of a fact: ``same`` or ``turned`` and a property, ``subject`` or ``object`` and a class that it is a member of."""


@dataclass(frozen=True, slots=True, eq=False)
class Link:
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
    literal: "Link | None" = None


class Steps:
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
        self._links: dict[Term, Link] = {}
        self._above: dict[Term, tuple[Class, ...]] = {}

    def link(self, name: Term) -> Link:
        """What the pairs of a property bring, or of a chain."""
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

    def _link(self, name: Term, kinds: tuple[str, ...], literal: Link | None) -> Link:
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
        return Link(own, *brought, classes("subject"), classes("object"), lone, literal)

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
