"""Gates: which joins a changed fact can matter to, told before any of them begins.

Each triple pattern of a shape has a trigger, which is behind the gate of the class or property of its facts. A trigger
has one condition that every solution with a new fact meets: a term of the pattern is the fact's; or another pattern
says that an end of the fact has a term as a value, is in a class, or has a value at all. Triggers with conditions of
one kind are found by one look-up: among a thousand patterns a fact costs as much as there are different look-ups.

A worked example: ``?x :takes ?c . ?x :memberOf :d1``, ``?x :takes ?c . ?x :memberOf :d2`` and ``?x :takes :c7``. The
fact ``:s :takes :c1`` comes. The gate of ``:takes`` has the third trigger under the object ``:c7``, which is not that
of the fact. It has the other two in a table of the values that a subject has of ``:memberOf``, under ``:d1`` and
``:d2``. ``:s`` is a member of ``:d2``: so the second trigger alone is called.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from streamgauge.compute.standing.facts import Class, Facts, Property, Several
from streamgauge.compute.standing.joins import kind_of, parameters
from streamgauge.model.algebra import Node, TriplePattern, Var
from streamgauge.model.terms import Term

Triggers: TypeAlias = "dict[Trigger, int]"
"""Triggers, and for how many rows of constants each is there."""

_SUBJECT: Final = 0
_OBJECT: Final = 1
_LOOPED: Final = 8
"""Terms of a table that are gone through where the property has no index from objects yet."""


@dataclass(frozen=True, slots=True)
class Condition:
    """What an end of the fact (0: its subject, 1: its object) has to meet.

    Of ``kind`` it is a member, or has a value: ``forward`` it is the subject of that. ``key`` is the number of the
    constant that is its value, or without a ``kind`` the end itself; ``None`` where any value does.
    """

    end: int
    kind: Class | Property | None = None
    forward: bool = True
    key: int | None = None

    @property
    def size(self) -> int:
        """About how many terms meet it."""
        if self.kind is None or self.key is not None:
            return 0
        if isinstance(self.kind, Class):
            return len(self.kind.members)
        return len(self.kind.out if self.forward or self.kind.into is None else self.kind.into)


class Trigger:
    """A pattern of a shape: ``enter`` and ``leave`` are called with a fact, and compiled when they first are.

    ``open`` and ``close`` say with which constants the shape is asked for. A fact comes once, whatever it matches.
    """

    __slots__ = ("_at", "_compiled", "_condition", "_kind", "enter", "leave")

    def __init__(
        self,
        facts: Facts,
        patterns: Sequence[TriplePattern],
        keys: Sequence[str],
        at: int,
        compiled: Callable[[int, int], Callable[..., None]],
    ) -> None:
        self._at, self._compiled = at, compiled
        self._kind: Class | Property | Facts = kind_of(facts, patterns[at]) or facts
        self._condition = condition(facts, patterns, keys, at)
        self.enter: Callable[..., None] = self._first_enter
        self.leave: Callable[..., None] = self._first_leave

    def open(self, constants: Sequence[Term]) -> None:
        """The shape is asked for with these constants."""
        gate_of(self._kind).add(self, self._condition, self._term(constants))

    def close(self, constants: Sequence[Term]) -> None:
        """It is not any more."""
        gate_of(self._kind).discard(self, self._condition, self._term(constants))

    def compile(self) -> None:
        """Compile now; JoinError."""
        self.enter, self.leave = self._compiled(self._at, 1), self._compiled(self._at, -1)

    def compile_again(self) -> None:
        """What was compiled is out of date."""
        self.enter, self.leave = self._first_enter, self._first_leave

    def _term(self, constants: Sequence[Term]) -> Term | None:
        key = None if self._condition is None else self._condition.key
        return None if key is None else constants[key]

    def _first_enter(self, *fact: Term) -> None:
        self.enter = self._compiled(self._at, 1)
        self.enter(*fact)

    def _first_leave(self, *fact: Term) -> None:
        self.leave = self._compiled(self._at, -1)
        self.leave(*fact)


def condition(facts: Facts, patterns: Sequence[TriplePattern], keys: Sequence[str], at: int) -> Condition | None:
    """The condition of a pattern that the fewest facts meet, as far as can be seen; ``None`` where there is none."""
    pattern = patterns[at]
    ends = _ends(pattern)
    found = [Condition(end, key=keys.index(name)) for end, name in ends.items() if name in keys]
    if found:
        return found[0]
    for number, other in enumerate(patterns):
        if number != at:
            found += _conditions(facts, other, keys, ends, kind_of(facts, pattern))
    return min(found, key=lambda each: each.size, default=None)


def _conditions(
    facts: Facts,
    other: TriplePattern,
    keys: Sequence[str],
    ends: Mapping[int, str],
    own: Class | Property | None,
) -> list[Condition]:
    """What another pattern says of the ends of a fact."""
    kind, found = kind_of(facts, other), list[Condition]()
    if kind is None:
        return found
    subject, value = _name(other.subject), _name(other.object)
    for end, name in ends.items():
        if subject == name and isinstance(kind, Class):
            found.append(Condition(end, kind))
        elif subject == name and value != name and (value in keys or kind is not own or end != _SUBJECT):
            found.append(Condition(end, kind, True, keys.index(value) if value in keys else None))
        elif value == name and subject != name and (subject in keys or kind is not own or end != _OBJECT):
            found.append(Condition(end, kind, False, keys.index(subject) if subject in keys else None))
    return found


def _ends(pattern: TriplePattern) -> dict[int, str]:
    """The variables at the subject and, where a trigger is given it, at the object of a pattern."""
    nodes = {_SUBJECT: pattern.subject} | ({_OBJECT: pattern.object} if "o" in parameters(pattern) else {})
    return {end: node.name for end, node in nodes.items() if isinstance(node, Var)}


def _name(node: Node) -> str:
    return node.name if isinstance(node, Var) else ""


Table: TypeAlias = dict[Term, Triggers]


@dataclass
class _End:
    """The conditions on one end of a fact, by what has to be looked up."""

    terms: Table = field(default_factory=dict)
    values: dict[tuple[Property, bool], Table] = field(default_factory=dict)
    there: dict[tuple[Class | Property, bool], Triggers] = field(default_factory=dict)

    def table(self, asked: Condition) -> Table:
        """Triggers by the term that the condition names."""
        if asked.kind is None:
            return self.terms
        assert isinstance(asked.kind, Property)
        return self.values.setdefault((asked.kind, asked.forward), {})

    def discard(self, trigger: "Trigger", asked: Condition, term: Term | None) -> None:
        """A trigger is there for one row of constants less."""
        if term is None:
            assert asked.kind is not None
            _discard(self.there, (asked.kind, asked.forward), trigger)
            return
        _discard(self.table(asked), term, trigger)
        if isinstance(asked.kind, Property) and not self.table(asked):
            del self.values[asked.kind, asked.forward]

    def looks(self) -> "_Looks":
        """What a fact is looked up in."""
        there = [(_index(kind, forward), triggers) for (kind, forward), triggers in self.there.items()]
        return _Looks(self.terms, there, [(*each, table) for each, table in self.values.items()])


@dataclass(frozen=True, slots=True)
class _Looks:
    """The conditions on one end of a fact, laid out to be gone through."""

    terms: Table
    there: Sequence[tuple[Mapping[Term, object], Triggers]]
    values: Sequence[tuple[Property, bool, Table]]

    def find(self, term: Term, found: Triggers) -> None:
        """Add the triggers whose condition a term meets."""
        if self.terms and (triggers := self.terms.get(term)):
            found.update(triggers)
        for index, triggers in self.there:
            if term in index:
                found.update(triggers)
        for kind, forward, table in self.values:
            if not forward and kind.into is None and len(table) <= _LOOPED:
                for each, triggers in table.items():
                    if term in kind.out.get(each, ()):
                        found.update(triggers)
                continue
            values = (kind.out if forward else kind.backward()).get(term)
            if values:
                _find(values, table, found)


def _find(values: Several, table: Table, found: Triggers) -> None:
    """Add the triggers under any of the values; the shorter of both is gone through."""
    if len(values) <= len(table):
        for value in values:
            if triggers := table.get(value):
                found.update(triggers)
        return
    for value, triggers in table.items():
        if value in values:
            found.update(triggers)


def _index(kind: Class | Property, forward: bool) -> Mapping[Term, object]:
    if isinstance(kind, Class):
        return kind.members
    return kind.out if forward else kind.backward()


class Gate:
    """The triggers of the facts of a class, a property, or of all."""

    def __init__(self, kind: Class | Property | Facts) -> None:
        self._kind = kind
        self._always: Triggers = {}
        self._ends = (_End(), _End())
        self._looks: tuple[_Looks, ...] | None = ()
        self._size = 0
        self._enter, self._leave = _CALLS[type(kind) if isinstance(kind, Class | Property) else Facts](self)

    def add(self, trigger: Trigger, asked: Condition | None, term: Term | None) -> None:
        """A trigger is there, for one more row of constants, under its condition, which may be about a term."""
        self._size += 1
        if self._size == 1:
            self._kind.enter.append(self._enter)
            self._kind.leave.append(self._leave)
        if asked is None:
            triggers = self._always
        elif term is None:
            assert asked.kind is not None
            triggers = self._ends[asked.end].there.setdefault((asked.kind, asked.forward), {})
        else:
            triggers = self._ends[asked.end].table(asked).setdefault(term, {})
        triggers[trigger] = triggers.get(trigger, 0) + 1
        self._looks = None

    def discard(self, trigger: Trigger, asked: Condition | None, term: Term | None) -> None:
        """It is there for one less."""
        self._size -= 1
        if not self._size:
            self._kind.enter.remove(self._enter)
            self._kind.leave.remove(self._leave)
        if asked is None:
            _discard({0: self._always}, 0, trigger)
        else:
            self._ends[asked.end].discard(trigger, asked, term)
        self._looks = None

    def matching(self, subject: Term, end: Term | None = None) -> Triggers:
        """The triggers to which a fact can matter; not to be changed."""
        if self._looks is None:
            self._looks = tuple(each.looks() for each in self._ends)
        found = self._always.copy()
        looks = self._looks
        if looks:
            looks[0].find(subject, found)
            if end is not None:
                looks[1].find(end, found)
        return found


def _discard(table: dict[Any, Triggers], key: object, trigger: Trigger) -> None:
    triggers = table[key]
    triggers[trigger] -= 1
    if not triggers[trigger]:
        del triggers[trigger]
        if not triggers:
            del table[key]


_Pair: TypeAlias = tuple[Callable[..., None], Callable[..., None]]


def _of_members(gate: Gate) -> _Pair:
    def enter(member: Term) -> None:
        for each in gate.matching(member):
            each.enter(member)

    def leave(member: Term) -> None:
        for each in gate.matching(member):
            each.leave(member)

    return enter, leave


def _of_pairs(gate: Gate) -> _Pair:
    def enter(subject: Term, end: Term) -> None:
        for each in gate.matching(subject, end):
            each.enter(subject, end)

    def leave(subject: Term, end: Term) -> None:
        for each in gate.matching(subject, end):
            each.leave(subject, end)

    return enter, leave


def _of_triples(gate: Gate) -> _Pair:
    def enter(subject: Term, predicate: Term, end: Term) -> None:
        for each in gate.matching(subject, end):
            each.enter(subject, predicate, end)

    def leave(subject: Term, predicate: Term, end: Term) -> None:
        for each in gate.matching(subject, end):
            each.leave(subject, predicate, end)

    return enter, leave


_CALLS: Final[Mapping[type, Callable[[Gate], _Pair]]] = {Class: _of_members, Property: _of_pairs, Facts: _of_triples}


def gate_of(kind: Class | Property | Facts) -> Gate:
    """The gate of a class's, a property's or all facts."""
    if kind.gate is None:
        kind.gate = Gate(kind)
    gate: Gate = kind.gate
    return gate
