"""The closure of facts under rules, kept exactly while facts come and go.

What one fact brings by steps is counted: a fact is there while something that stands brings it. What rules that join
derive is counted apart, as it may rest on itself: a deletion takes away whatever rests on no explicit fact any more,
and afterwards what is still derived comes back (DRed with counts: Hu, Motik, Horrocks, AAAI 2018).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from sys import intern
from typing import Final, TypeAlias

from streamgauge.compute.reasoning.rules import Rule, Rules, is_class
from streamgauge.compute.reasoning.steps import Link, Steps
from streamgauge.compute.standing.facts import Class, Facts, Property
from streamgauge.compute.standing.joins import Local, Text, joined, tell
from streamgauge.model.terms import RDF_TYPE, Term, Triple

EXPLICIT: Final = 1
FIRM: Final = 2
SOFT: Final = 1 << 32
_FIRMLY: Final = SOFT - FIRM
STATED: Final = EXPLICIT + FIRM
"""The state of a fact: whether it is explicit, how many explicit facts bring it, how many derived ones do."""

NO_RULES: Final = Rules()
Base: TypeAlias = tuple[Class | Property, Term, Term]
"""A fact that rules derive; the member of a class stands at both ends."""


class Closure:
    """Explicit facts, and what rules derive of them, in ``facts``."""

    def __init__(self, rules: Rules = NO_RULES, facts: Facts | None = None) -> None:
        self.facts = Facts() if facts is None else facts
        joins = [rule for rule in rules.rules if rule.recursive]
        steps = [rule for rule in rules.rules if not rule.recursive]
        self._steps = Steps(steps, [rule.head for rule in joins], self.facts)
        self._states: dict[Property, dict[tuple[Term, Term], int]] = {}
        self._derived: dict[Base, int] = {}
        self._events: list[Base] = []
        self._off: dict[Base, None] = {}
        self._doubtful: dict[Base, int] = {}
        self._came: dict[Triple, None] = {}
        self._went: dict[Triple, None] = {}
        self.explicit = 0
        for rule in joins:
            self._run(rule)

    def _run(self, rule: Rule) -> None:
        head = rule.head
        if is_class(head):
            target: Class | Property = self.facts.class_of(str(head.object))
        else:
            target = self.facts.property_of(str(head.predicate))
        for reader in joined(self.facts, rule.body, (), _Derive(rule, target, self._events)).readers:
            tell(self.facts, reader)

    def change(self, added: Iterable[Triple], removed: Iterable[Triple]) -> tuple[list[Triple], list[Triple]]:
        """Explicit facts go, then come; gives the facts of the closure that came and those that went.

        Adding one that is there, and removing one that is not, changes nothing.
        """
        new = dict.fromkeys(added)
        gone = [triple for triple in dict.fromkeys(removed) if triple not in new]
        if gone:
            for triple in gone:
                self._retract(triple)
            self._settle()
        for triple in new:
            self._assert(triple)
        self._derive()
        came, went = list(self._came), list(self._went)
        self._came.clear()
        self._went.clear()
        return came, went

    def load(self, triples: Iterable[Triple]) -> None:
        """Many explicit facts come; what follows is not listed."""
        for number, triple in enumerate(triples):
            self._assert(triple)
            if not number & 0xFFF:
                self._came.clear()
        self._derive()
        self._came.clear()

    def is_explicit(self, triple: Triple) -> bool:
        """Whether a fact was added and not removed since."""
        subject, predicate, end = triple
        if predicate == RDF_TYPE:
            known = self.facts.classes.get(end)
            return known is not None and bool(known.members.get(subject, 0) & EXPLICIT)
        return bool(self._state(self._steps.link(predicate).property, subject, end) & EXPLICIT)

    def _state(self, of: Property, subject: Term, end: Term) -> int:
        if end not in of.out.get(subject, ()):
            return 0
        states = self._states.get(of)
        return STATED if states is None else states.get((subject, end), STATED)

    def _assert(self, triple: Triple) -> None:
        subject, predicate, end = intern(triple[0]), triple[1], intern(triple[2])
        if predicate == RDF_TYPE:
            above = self._steps.above(end)
            members = above[0].members
            if members.get(subject, 0) & EXPLICIT:
                return
            soft = self._derived.get((above[0], subject, subject)) if self._derived else None
            for each in above:
                self._join(each, subject, FIRM - SOFT if soft else FIRM)
            members[subject] += EXPLICIT
        else:
            link = self._steps.link(predicate)
            if link.lone:
                of = link.property
                if end in of.out.get(subject, ()):
                    return
                self._appear(of, subject, end)
            else:
                if self._state(link.property, subject, end) & EXPLICIT:
                    return
                soft = self._derived.get((link.property, subject, end)) if self._derived else None
                self._link(link.property, subject, end, EXPLICIT + FIRM - SOFT if soft else STATED)
                self._spread(link, subject, end, FIRM - SOFT if soft else FIRM)
        self.explicit += 1

    def _retract(self, triple: Triple) -> None:
        if not self.is_explicit(triple):
            return
        self.explicit -= 1
        subject, predicate, end = triple
        if predicate == RDF_TYPE:
            above = self._steps.above(end)
            above[0].members[subject] -= EXPLICIT
            if self._derived:
                self._off[above[0], subject, subject] = None
            for each in above:
                self._withdraw(each, subject, FIRM)
            return
        link = self._steps.link(predicate)
        if link.lone:
            self._disappear(link.property, subject, end)
            return
        if self._derived:
            self._off[link.property, subject, end] = None
        self._unlink(link.property, subject, end, STATED)
        self._unspread(link, subject, end, FIRM)

    def _spread(self, link: Link, subject: Term, end: Term, by: int) -> None:
        """What a pair brings beside itself is brought once more."""
        if end[0] == '"' and link.literal is not None:
            link = link.literal
        for of in link.same:
            self._link(of, subject, end, by)
        for of in link.turned:
            self._link(of, end, subject, by)
        for each in link.of_subject:
            self._join(each, subject, by)
        for each in link.of_object:
            self._join(each, end, by)

    def _unspread(self, link: Link, subject: Term, end: Term, by: int) -> None:
        if end[0] == '"' and link.literal is not None:
            link = link.literal
        for of in link.same:
            self._unlink(of, subject, end, by)
        for of in link.turned:
            self._unlink(of, end, subject, by)
        for each in link.of_subject:
            self._withdraw(each, subject, by)
        for each in link.of_object:
            self._withdraw(each, end, by)

    def _join(self, of: Class, member: Term, by: int) -> None:
        """A membership is brought once more; it comes with the first time."""
        members = of.members
        state = members.get(member)
        if state is not None:
            members[member] = state + by
            return
        members[member] = by
        self._comes((member, RDF_TYPE, of.name))
        for told in of.enter:
            told(member)

    def _withdraw(self, of: Class, member: Term, by: int) -> None:
        """A membership is brought once less; it goes when no explicit fact brings it, and may come back later."""
        members = of.members
        state = members.get(member)
        if state is None:
            self._doubtful[of, member, member] -= by
            return
        state -= by
        if state & _FIRMLY:
            members[member] = state
            return
        for told in of.leave:
            told(member)
        self._goes((member, RDF_TYPE, of.name))
        del members[member]
        self._doubtful[of, member, member] = state

    def _link(self, of: Property, subject: Term, end: Term, by: int) -> None:
        """A pair is brought once more, or becomes explicit."""
        state = self._state(of, subject, end)
        self._keep(of, subject, end, state + by)
        if not state:
            self._appear(of, subject, end)

    def _unlink(self, of: Property, subject: Term, end: Term, by: int) -> None:
        state = self._state(of, subject, end)
        if not state:
            self._doubtful[of, subject, end] -= by
            return
        state -= by
        if state & _FIRMLY:
            self._keep(of, subject, end, state)
            return
        self._disappear(of, subject, end)
        self._keep(of, subject, end, STATED)
        self._doubtful[of, subject, end] = state

    def _keep(self, of: Property, subject: Term, end: Term, state: int) -> None:
        states = self._states.setdefault(of, {})
        if state == STATED:
            states.pop((subject, end), None)
        else:
            states[subject, end] = state

    def _appear(self, of: Property, subject: Term, end: Term) -> None:
        of.add(subject, end)
        self._comes((subject, of.name, end))
        for told in of.enter:
            told(subject, end)

    def _disappear(self, of: Property, subject: Term, end: Term) -> None:
        for told in of.leave:
            told(subject, end)
        self._goes((subject, of.name, end))
        of.remove(subject, end)

    def _comes(self, triple: Triple) -> None:
        """A fact is there now."""
        for told in self.facts.enter:
            told(*triple)
        if triple in self._went:
            del self._went[triple]
        else:
            self._came[triple] = None

    def _goes(self, triple: Triple) -> None:
        """A fact that is still there is about to go."""
        for told in self.facts.leave:
            told(*triple)
        if triple in self._came:
            del self._came[triple]
        else:
            self._went[triple] = None

    def _derive(self) -> None:
        """Take in what rules derived, until nothing new is."""
        events, derived = self._events, self._derived
        while events:
            base = events.pop()
            before = derived.get(base, 0)
            derived[base] = before + 1
            if not before and not self._stands(base):
                self._bring(base, SOFT)

    def _settle(self) -> None:
        """Follow what was lost to its end; then what is doubtful and still brought or derived comes back."""
        events, derived = self._events, self._derived
        while events:
            base = events.pop()
            left = derived.pop(base) - 1
            if left:
                derived[base] = left
            if base not in self._off and not self._stands(base):
                self._off[base] = None
                self._unbring(base, SOFT)
        doubtful, off = list(self._doubtful.items()), [base for base in self._off if derived.get(base)]
        self._doubtful.clear()
        self._off.clear()
        for (of, subject, end), state in doubtful:
            if not state:
                continue
            if isinstance(of, Class):
                self._join(of, subject, state)
            else:
                self._link(of, subject, end, state)
        for base in off:
            self._bring(base, SOFT)
        self._derive()

    def _stands(self, base: Base) -> bool:
        of, subject, end = base
        if isinstance(of, Class):
            return bool(of.members.get(subject, 0) & EXPLICIT)
        return bool(self._state(of, subject, end) & EXPLICIT)

    def _bring(self, base: Base, by: int) -> None:
        of, subject, end = base
        if isinstance(of, Class):
            for each in self._steps.above(of.name):
                self._join(each, subject, by)
        else:
            self._link(of, subject, end, by)
            self._spread(self._steps.link(of.name), subject, end, by)

    def _unbring(self, base: Base, by: int) -> None:
        of, subject, end = base
        if isinstance(of, Class):
            for each in self._steps.above(of.name):
                self._withdraw(each, subject, by)
        else:
            self._unlink(of, subject, end, by)
            self._unspread(self._steps.link(of.name), subject, end, by)


@dataclass(frozen=True)
class _Derive:
    """A rule's solutions are noted as facts derived, or lost."""

    rule: Rule
    target: Class | Property
    events: list[Base]
    keys: tuple[str, ...] = ()

    def bound(self, text: Text, where: Local) -> None:
        """Every solution counts."""

    def found(self, text: Text, where: Local, _sign: str) -> None:
        """Note the head."""
        head = self.rule.head
        one = text.term(head.subject, where)
        two = one if isinstance(self.target, Class) else text.term(head.object, where)
        text.open(f"if {one}[0] != '\"':")
        text.add(f"{text.use(self.events)}.append(({text.use(self.target)}, {one}, {two}))")
