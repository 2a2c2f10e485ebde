"""Facts by class and by property, with indexes built on demand, and the listeners of changes.

Listeners are notified of a new fact after it was added, and of a deleted one before it is removed; facts change one at
a time.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

from streamgauge.model.terms import RDF_TYPE, Term, Triple

Listener: TypeAlias = Callable[..., None]
Terms: TypeAlias = tuple[Term, ...] | set[Term]
HIDDEN: Final = "<:"
"""The prefix of hidden classes and properties, with which no IRI begins."""
_FEW: Final = 4
"""Maximum terms of a key that are kept as a tuple, which is smaller than a set."""


class Class:
    """The members of a class, with a number each; ``enter`` and ``leave`` are listeners, ``gate`` dispatches to joins.

    Memberships of a ``hidden`` class are not triples: only listeners of the class itself are notified.
    """

    __slots__ = ("enter", "gate", "hidden", "leave", "members", "name")

    def __init__(self, name: Term, hidden: bool = False) -> None:
        self.name, self.hidden = name, hidden
        self.members: dict[Term, int] = {}
        self.enter: list[Listener] = []
        self.leave: list[Listener] = []
        self.gate: Any = None


class Property:
    """The pairs of a property, from subjects to objects; ``enter`` and ``leave`` are listeners of (subject, object).

    ``states`` holds a number for pairs that need more than presence. Pairs of a ``hidden`` property are not triples:
    only listeners of the property itself are notified.
    """

    __slots__ = ("enter", "gate", "hidden", "into", "leave", "name", "out", "states")

    def __init__(self, name: Term, hidden: bool = False) -> None:
        self.name, self.hidden = name, hidden
        self.out: dict[Term, Terms] = {}
        self.into: dict[Term, Terms] | None = None
        self.states: dict[tuple[Term, Term], int] = {}
        self.enter: list[Listener] = []
        self.leave: list[Listener] = []
        self.gate: Any = None

    def has(self, subject: Term, end: Term) -> bool:
        """Whether a pair exists."""
        return end in self.out.get(subject, ())

    def add(self, subject: Term, end: Term) -> None:
        """Add a new pair without notification."""
        _add(self.out, subject, end)
        if self.into is not None:
            _add(self.into, end, subject)

    def remove(self, subject: Term, end: Term) -> None:
        """Remove an existing pair without notification."""
        _remove(self.out, subject, end)
        if self.into is not None:
            _remove(self.into, end, subject)

    def backward(self) -> dict[Term, Terms]:
        """The index from objects to subjects, built on demand and maintained."""
        # No index is built for queries that never look from objects to subjects; it would take as much memory again as
        # the facts.
        if self.into is None:
            self.into = {}
            for subject, ends in self.out.items():
                for end in ends:
                    _add(self.into, end, subject)
        return self.into

    def pairs(self) -> Iterator[tuple[Term, Term]]:
        """Iterate over all (subject, object) pairs."""
        return ((subject, end) for subject, ends in self.out.items() for end in ends)


class Facts:
    """Classes and properties by name; ``enter`` and ``leave`` are listeners of all triples."""

    def __init__(self) -> None:
        self.classes: dict[Term, Class] = {}
        self.hidden: dict[Term, Class] = {}
        self.hidden_properties: dict[Term, Property] = {}
        self.properties: dict[Term, Property] = {}
        self.enter: list[Listener] = []
        self.leave: list[Listener] = []
        self.gate: Any = None

    def class_of(self, name: Term) -> Class:
        """A class, created if it does not exist."""
        class_ = self.classes.get(name)
        if class_ is None:
            if name.startswith(HIDDEN):
                return self.hidden.setdefault(name, Class(name, hidden=True))
            class_ = self.classes[name] = Class(name)
        return class_

    def property_of(self, name: Term) -> Property:
        """A property other than rdf:type, created if it does not exist."""
        property_ = self.properties.get(name)
        if property_ is None:
            if name.startswith(HIDDEN):
                return self.hidden_properties.setdefault(name, Property(name, hidden=True))
            property_ = self.properties[name] = Property(name)
        return property_

    def link(self, of: Property, subject: Term, end: Term) -> None:
        """Add a new pair, then notify listeners."""
        of.add(subject, end)
        for listener in of.enter:
            listener(subject, end)
        if not of.hidden:
            for listener in self.enter:
                listener(subject, of.name, end)

    def unlink(self, of: Property, subject: Term, end: Term) -> None:
        """Notify listeners of a pair, then remove it."""
        for listener in of.leave:
            listener(subject, end)
        if not of.hidden:
            for listener in self.leave:
                listener(subject, of.name, end)
        of.remove(subject, end)

    def join(self, of: Class, member: Term, number: int) -> None:
        """Add a new member, then notify listeners."""
        of.members[member] = number
        for listener in of.enter:
            listener(member)
        if not of.hidden:
            for listener in self.enter:
                listener(member, RDF_TYPE, of.name)

    def part(self, of: Class, member: Term) -> None:
        """Notify listeners of a member, then remove it."""
        for listener in of.leave:
            listener(member)
        if not of.hidden:
            for listener in self.leave:
                listener(member, RDF_TYPE, of.name)
        del of.members[member]

    def subjects(self) -> dict[Term, None]:
        """All subjects of triples."""
        # A dict rather than a set, whose order would differ from run to run: texts are hashed with a random seed.
        subjects: dict[Term, None] = {}
        for property_ in self.properties.values():
            subjects.update(dict.fromkeys(property_.out))
        for class_ in self.classes.values():
            subjects.update(dict.fromkeys(class_.members))
        return subjects

    def __len__(self) -> int:
        pairs = sum(len(ends) for property_ in self.properties.values() for ends in property_.out.values())
        return pairs + sum(len(class_.members) for class_ in self.classes.values())

    def __contains__(self, triple: Triple) -> bool:
        return any(True for _ in self.match(*triple))

    def match(self, subject: Term | None, predicate: Term | None, end: Term | None) -> Iterator[Triple]:
        """The triples with these terms; ``None`` matches any."""
        if predicate is None or predicate == RDF_TYPE:
            yield from self._typed(subject, end)
        if predicate is None:
            for property_ in self.properties.values():
                yield from _pairs(property_, subject, end)
        elif predicate in self.properties:
            yield from _pairs(self.properties[predicate], subject, end)

    def _typed(self, subject: Term | None, end: Term | None) -> Iterator[Triple]:
        known = self.classes
        classes: Any = known.values() if end is None else (known[end],) if end in known else ()
        for class_ in classes:
            if subject is None:
                yield from ((member, RDF_TYPE, class_.name) for member in class_.members)
            elif subject in class_.members:
                yield subject, RDF_TYPE, class_.name


def _pairs(of: Property, subject: Term | None, end: Term | None) -> Iterator[Triple]:
    if subject is not None:
        ends = of.out.get(subject, ())
        yield from ((subject, of.name, other) for other in ends if end is None or other == end)
    elif end is not None:
        yield from ((other, of.name, end) for other in of.backward().get(end, ()))
    else:
        yield from ((one, of.name, two) for one, two in of.pairs())


def _add(index: dict[Term, Terms], key: Term, term: Term) -> None:
    before = index.get(key)
    if before is None:
        index[key] = (term,)
    elif before.__class__ is set:
        before.add(term)
    # Nearly all keys have one to four terms. A tuple of four takes 72 bytes, a set at least 216.
    elif len(before) < _FEW:
        index[key] = (*before, term)
    else:
        index[key] = {*before, term}


def _remove(index: dict[Term, Terms], key: Term, term: Term) -> None:
    before = index[key]
    if len(before) == 1:
        # Keys without terms are deleted: ``subjects`` counts on it.
        del index[key]
    elif before.__class__ is set:
        before.remove(term)
    else:
        index[key] = tuple([other for other in before if other != term])
