"""Gates: find the joins that a changed fact can affect, before any of them begins.

Each triple pattern of a shape has a trigger behind the gate of its class or property. A trigger has one condition that
every solution with a new fact satisfies: a term of the fact is a constant of the pattern; or, by another pattern, an
end of the fact has some term as a value, is in some class, or has any value. Triggers with the same kind of condition
are found by one look-up: with a thousand patterns, a fact costs only as many look-ups as there are kinds.

A worked example: ``?x :takes ?c . ?x :memberOf :d1``, ``?x :takes ?c . ?x :memberOf :d2`` and ``?x :takes :c7``. The
fact ``:s :takes :c1`` is inserted. The gate of ``:takes`` has the third trigger under the object ``:c7``, which is not
the fact's. It has the other two in a table of values of ``:memberOf``, under ``:d1`` and ``:d2``. ``:s`` is a member
of ``:d2``, so only the second trigger is called.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any, Final, TypeAlias

from streamgauge.incremental.facts.facts import Class, Facts, Property, Terms
from streamgauge.incremental.facts.joins import kind_of, parameters
from streamgauge.incremental.ir import Do, Module, Nested, Scan, Test
from streamgauge.model.algebra import Node, TriplePattern, Var
from streamgauge.model.terms import Term

Triggers: TypeAlias = "dict[JoinTrigger, int]"
"""Triggers, with the number of rows of constants that need each."""

_SUBJECT: Final = 0
_OBJECT: Final = 1
DIRECT: Final = 12
"""Maximum triggers of a gate that are called directly: their joins begin with a look-up anyway."""
_LOOPED: Final = 8
"""Maximum terms of a table that are scanned while the property has no index from objects."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on an end of a fact (0: its subject, 1: its object).

    The end is a member of ``kind``, or has a value of it (``forward``: as its subject). ``key`` is the number of the
    constant that is the value, or without a ``kind`` the end itself; ``None`` for any value.
    """

    end: int
    kind: Class | Property | None = None
    forward: bool = True
    key: int | None = None

    @property
    def size(self) -> int:
        """The estimated number of terms that satisfy it."""
        if self.kind is None or self.key is not None:
            return 0
        if isinstance(self.kind, Class):
            return len(self.kind.members)
        return len(self.kind.out if self.forward or self.kind.into is None else self.kind.into)


class JoinTrigger:
    """A pattern of a shape: ``enter`` and ``leave`` are called with a fact, and compiled on first use.

    ``open`` and ``close`` register the constants of takers. A fact is passed once, however many conditions it meets.
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
        self.enter: Callable[..., None] = partial(self._first, 1)
        self.leave: Callable[..., None] = partial(self._first, -1)

    def open(self, constants: Sequence[Term]) -> None:
        """Register constants of takers."""
        gate_of(self._kind).add(self, self._condition, self._term(constants))

    def close(self, constants: Sequence[Term]) -> None:
        """Remove constants of takers."""
        gate_of(self._kind).discard(self, self._condition, self._term(constants))

    def compile(self) -> None:
        """Compile at once instead of at the first fact; JoinError."""
        self.enter, self.leave = self._compiled(self._at, 1), self._compiled(self._at, -1)
        gate_of(self._kind).change()

    def compile_again(self) -> None:
        """Discard the compiled functions."""
        self.enter, self.leave = partial(self._first, 1), partial(self._first, -1)
        gate_of(self._kind).change()

    def _term(self, constants: Sequence[Term]) -> Term | None:
        key = None if self._condition is None else self._condition.key
        return None if key is None else constants[key]

    def _first(self, sign: int, *fact: Term) -> None:
        call = self._compiled(self._at, sign)
        if sign > 0:
            self.enter = call
        else:
            self.leave = call
        gate_of(self._kind).change()
        call(*fact)


def condition(facts: Facts, patterns: Sequence[TriplePattern], keys: Sequence[str], at: int) -> Condition | None:
    """The most selective condition of a pattern by estimate; ``None`` if it has none."""
    pattern = patterns[at]
    ends = _ends(pattern)
    conditions = [Condition(end, key=keys.index(name)) for end, name in ends.items() if name in keys]
    # A constant of the pattern itself is decided by the fact alone, without looking at other facts.
    if conditions:
        return conditions[0]
    for number, other in enumerate(patterns):
        if number != at:
            conditions += _conditions(facts, other, keys, ends, kind_of(facts, pattern))
    return min(conditions, key=lambda condition: condition.size, default=None)


def _conditions(
    facts: Facts,
    other: TriplePattern,
    keys: Sequence[str],
    ends: Mapping[int, str],
    own: Class | Property | None,
) -> list[Condition]:
    """The conditions that another pattern imposes on the ends of a fact."""
    kind, conditions = kind_of(facts, other), list[Condition]()
    if kind is None:
        return conditions
    subject, value = _name(other.subject), _name(other.object)
    for end, name in ends.items():
        if subject == name and isinstance(kind, Class):
            conditions.append(Condition(end, kind))
        # The new fact itself would satisfy the condition if the other pattern is of the same property and end, unless
        # a constant has to be matched: then it says nothing.
        elif subject == name and value != name and (value in keys or kind is not own or end != _SUBJECT):
            conditions.append(Condition(end, kind, True, keys.index(value) if value in keys else None))
        elif value == name and subject != name and (subject in keys or kind is not own or end != _OBJECT):
            key = keys.index(subject) if subject in keys else None
            if key is not None or (
                isinstance(kind, Property) and kind.into is not None
            ):  # an index for a condition alone would not pay
                conditions.append(Condition(end, kind, False, key))
    return conditions


def _ends(pattern: TriplePattern) -> dict[int, str]:
    """The variables at the subject and, if passed to the trigger, at the object of a pattern."""
    nodes = {_SUBJECT: pattern.subject} | ({_OBJECT: pattern.object} if "o" in parameters(pattern) else {})
    return {end: node.name for end, node in nodes.items() if isinstance(node, Var)}


def _name(node: Node) -> str:
    return node.name if isinstance(node, Var) else ""


Table: TypeAlias = dict[Term, Triggers]


@dataclass
class _End:
    """The conditions on one end of a fact, by the look-up that they need."""

    terms: Table = field(default_factory=dict)
    values: dict[tuple[Property, bool], Table] = field(default_factory=dict)
    there: dict[tuple[Class | Property, bool], Triggers] = field(default_factory=dict)

    def table(self, condition: Condition) -> Table:
        """The triggers by the constant of their condition."""
        if condition.kind is None:
            return self.terms
        assert isinstance(condition.kind, Property)
        return self.values.setdefault((condition.kind, condition.forward), {})

    def discard(self, trigger: "JoinTrigger", condition: Condition, term: Term | None) -> None:
        """Remove a trigger for a row of constants."""
        if term is None:
            assert condition.kind is not None
            _discard(self.there, (condition.kind, condition.forward), trigger)
            return
        _discard(self.table(condition), term, trigger)
        if isinstance(condition.kind, Property) and not self.table(condition):
            del self.values[condition.kind, condition.forward]

    def triggers(self) -> Iterator["JoinTrigger"]:
        """Iterate over the triggers of all conditions."""
        for triggers in chain(
            self.terms.values(), self.there.values(), *(value.values() for value in self.values.values())
        ):
            yield from triggers

    def looks(self) -> "_Looks":
        """The tables to look up a fact in, in order."""
        there = [(_index(kind, forward), tuple(triggers)) for (kind, forward), triggers in self.there.items()]
        return self.terms, tuple(there), tuple((*key, table) for key, table in self.values.items())


_Looks: TypeAlias = tuple[
    Table,
    tuple[tuple[Mapping[Term, object], tuple["JoinTrigger", ...]], ...],
    tuple[tuple[Property, bool, Table], ...],
]
"""For one end of a fact: triggers by its term, by membership, and by its values."""


def _add(looks: _Looks, term: Term, triggers_found: list["JoinTrigger"]) -> None:
    """Add the triggers whose condition a term satisfies; each has one condition, possibly with several constants."""
    terms, there, values = looks
    if terms and term in terms:
        triggers_found += terms[term]
    for index, triggers in there:
        if term in index:
            triggers_found += triggers
    for kind, forward, table in values:
        if not forward and kind.into is None and len(table) <= _LOOPED:
            met = [triggers for key, triggers in table.items() if term in kind.out.get(key, ())]
        else:
            has = (kind.out if forward else kind.backward()).get(term)
            met = _met(has, table) if has else []
        if met:
            triggers_found += (
                met[0] if len(met) == 1 else dict.fromkeys(trigger for triggers in met for trigger in triggers)
            )


def _met(values: Terms, table: Table) -> list[Triggers]:
    """The triggers under any of the values; scans the shorter of both collections."""
    if len(values) <= len(table):
        return [table[value] for value in values if value in table]
    return [triggers for value, triggers in table.items() if value in values]


def _index(kind: Class | Property, forward: bool) -> Mapping[Term, object]:
    if isinstance(kind, Class):
        return kind.members
    return kind.out if forward else kind.backward()


_Pair: TypeAlias = tuple[Callable[..., None], Callable[..., None]]


class TriggerGate:
    """The triggers of the facts of a class, of a property, or of all facts.

    If there are few, their functions become listeners themselves, from the first fact after a change of the triggers.
    """

    def __init__(self, kind: Class | Property | Facts) -> None:
        self._kind = kind
        self._always: Triggers = {}
        self._ends = (_End(), _End())
        self.laid: _Laid | None = None
        self._size = 0
        calls = _CALLS[type(kind) if isinstance(kind, Class | Property) else Facts]
        self._enter, self._leave = partial(calls[0], self), partial(calls[1], self)
        self._told: tuple[_Pair, ...] = ()

    def add(self, trigger: JoinTrigger, condition: Condition | None, term: Term | None) -> None:
        """Add a trigger for a row of constants, under its condition and the constant of that, if any."""
        self._size += 1
        if condition is None:
            triggers = self._always
        elif term is None:
            assert condition.kind is not None
            triggers = self._ends[condition.end].there.setdefault((condition.kind, condition.forward), {})
        else:
            triggers = self._ends[condition.end].table(condition).setdefault(term, {})
        triggers[trigger] = triggers.get(trigger, 0) + 1
        self.change()

    def discard(self, trigger: JoinTrigger, condition: Condition | None, term: Term | None) -> None:
        """Remove a trigger for a row of constants."""
        self._size -= 1
        if condition is None:
            _discard({0: self._always}, 0, trigger)
        else:
            self._ends[condition.end].discard(trigger, condition, term)
        self.change()

    def change(self) -> None:
        """Triggers changed or were compiled: lay them out again with the next fact."""
        self.laid = None
        # While the layout is outdated, the gate itself listens; the next fact lays it out.
        self._tell(((self._enter, self._leave),) if self._size else ())

    def _tell(self, pairs: tuple[_Pair, ...]) -> None:
        """Set the listeners. Lists are replaced, because one may be in iteration."""
        if pairs == self._told:
            return
        kind, enter, leave = self._kind, [one for one, _ in self._told], [two for _, two in self._told]
        # Others' listeners stay where they are, ahead of these.
        kind.enter = [*(listener for listener in kind.enter if listener not in enter), *(one for one, _ in pairs)]
        kind.leave = [*(listener for listener in kind.leave if listener not in leave), *(two for _, two in pairs)]
        self._told = pairs

    def lay_out(self) -> "_Laid":
        """Arrange the triggers: those called for every fact (all of them if few), and the tables of the others.

        ``None`` for an end without conditions.
        """
        # Few triggers are told of facts themselves: one call less for each fact than through the gate.
        if self._size <= DIRECT:
            whole = dict.fromkeys((*self._always, *(trigger for end in self._ends for trigger in end.triggers())))
            self.laid = tuple(whole), None, None
            self._tell(tuple((trigger.enter, trigger.leave) for trigger in whole))
            return self.laid
        looks = [end.looks() for end in self._ends]
        one, two = (look if any(look) else None for look in looks)
        self.laid = tuple(self._always), one, two
        return self.laid


def _found(one: _Looks | None, subject: Term, two: _Looks | None, end: Term | None) -> list[JoinTrigger]:
    """The triggers whose conditions a fact satisfies, each once."""
    triggers: list[JoinTrigger] = []
    if one is not None:
        _add(one, subject, triggers)
    if two is not None and end is not None:
        _add(two, end, triggers)
    return triggers


_Laid: TypeAlias = tuple[tuple[JoinTrigger, ...], _Looks | None, _Looks | None]


def _discard(table: dict[Any, Triggers], key: object, trigger: JoinTrigger) -> None:
    triggers = table[key]
    triggers[trigger] -= 1
    if not triggers[trigger]:
        del triggers[trigger]
        if not triggers:
            del table[key]


def _calls(*fact: str) -> _Pair:
    """Two generated functions of a gate and a fact: one calls ``enter`` of triggers, one ``leave``."""
    module, subject, end = Module({"found": _found}), fact[0], fact[-1] if len(fact) > 1 else "None"
    for name in ("enter", "leave"):
        call = Do(f"each.{name}({', '.join(fact)})")
        module.function(name, ["gate", *fact])
        module.add(Do("always, one, two = gate.laid or gate.lay_out()"), Nested([Scan("each", "always"), call]))
        module.add(Test("one is not None or two is not None"), Scan("each", f"found(one, {subject}, two, {end})"), call)
    enter, leave = module.built()
    return enter, leave


# Generated for each number of arguments, so that no fact is packed into a tuple on its way.
_CALLS: Final[Mapping[type, _Pair]] = {
    Class: _calls("member"),
    Property: _calls("subject", "end"),
    Facts: _calls("subject", "predicate", "end"),
}


def gate_of(kind: Class | Property | Facts) -> TriggerGate:
    """The gate of a class, of a property, or of all facts."""
    if kind.gate is None:
        kind.gate = TriggerGate(kind)
    gate: TriggerGate = kind.gate
    return gate
