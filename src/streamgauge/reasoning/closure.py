"""The closure of facts under rules, maintained incrementally as explicit facts are added and removed.

Facts that follow from a single fact by steps are counted: such a fact is in the closure while its count is positive.
Derivations by joining rules are counted separately, because they may be cyclic: a deletion removes every fact that no
explicit fact supports by steps, and afterwards adds those that still have a derivation (DRed with counts: Hu, Motik,
Horrocks, AAAI 2018).

A worked example, with the step A -> B (subclass) and the rule p(x, y), B(y) -> B(x). Explicit are A(a), p(c, a) and
p(c, c). The state of A(a) is EXPLICIT + FIRM, that of B(a) is FIRM, as A(a) implies it. The rule derives B(c) from
p(c, a) and B(a), which gives B(c) the state SOFT, and again from p(c, c) and B(c): two derivations. Now A(a) is
deleted. B(a) loses its FIRM and is removed, and with it one derivation of B(c). No explicit fact implies B(c), so it is
removed too, in doubt, and with it the other derivation. B(c) was derived from itself only and stays removed. If p(c, d)
and B(d) were explicit as well, one derivation would remain, and B(c) would be added again.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from sys import intern
from typing import Final, TypeAlias

from streamgauge.incremental.budget import BOUNDLESS, TooMuchError
from streamgauge.incremental.facts.facts import Class, Facts, Property
from streamgauge.incremental.facts.joins import Finish, follow
from streamgauge.incremental.ir import Do, Locals, Module, Test
from streamgauge.model.algebra import TriplePattern, Var
from streamgauge.model.terms import RDF_TYPE, Term, Triple
from streamgauge.reasoning.rules import (
    SAME,
    FactSteps,
    PropertyLinks,
    Rule,
    Rules,
    chain_of,
    edge_by_edge,
    instance,
    is_class,
    passes,
    predicate_of,
    transitive,
)

# A state is one int with three fields: bit 0, whether the fact is explicit; bits 1 to 31, how many explicit facts imply
# it by steps (itself included); bits 32 and up, how many derived facts do. One addition changes a count.
EXPLICIT: Final = 1
FIRM: Final = 2
SOFT: Final = 1 << 32
_FIRMLY: Final = SOFT - FIRM
STATED: Final = EXPLICIT + FIRM
"""The state of an explicit fact that nothing else implies."""

LARGE: Final = 10_000
"""Size of a change, in explicit facts, up to which ``most`` alone bounds the derivations."""

PER_FACT: Final = 3
"""Additional derivations that are allowed for each fact of a change beyond ``LARGE``."""

NO_RULES: Final = Rules()
Base: TypeAlias = tuple[Class | Property, Term, Term]
"""A fact that joining rules derive: (property, subject, object), or (class, member, member)."""


class Closure:
    """Explicit facts and all facts that rules derive from them, in ``facts``.

    ``most`` is the maximum number of derivations by joining rules that one change may add or remove; a change of more
    than ``LARGE`` facts may have ``PER_FACT`` more for each fact beyond.
    """

    def __init__(self, rules: Rules = NO_RULES) -> None:
        self.facts = Facts()
        joins = [rule for rule in rules.rules if not rule.is_step]
        steps = [rule for rule in rules.rules if rule.is_step]
        # (``lone``).
        named = [name for rule in joins if (name := transitive(rule)) is not None]
        # The heads of joining rules count as derivable: pairs that rules may derive need states, so they are not
        # ``lone``.
        by_steps = FactSteps(steps, [rule.head for rule in joins], self.facts, named)
        self._links, self._above = by_steps.links, by_steps.above
        # Pairs of a chain are derivation counts only: the pairs that they imply are in the property itself (see rules).
        self._chains = {name: self.facts.property_of(chain_of(name)) for name in named}
        self._unstored = frozenset(self._chains.values())
        # The number of joining derivations of each fact; a fact at 0 has no entry, except during ``_restore``.
        self._derived: dict[Base, int] = {}
        # Filled by the generated code of ``follow`` as facts enter and leave: one entry is one derivation gained or
        # lost.
        self._events: list[Base] = []
        # During a deletion: facts whose derivations, if any are left, do not count at present.
        self._off: dict[Base, None] = {}
        # During a deletion: facts that have left, with the soft counts that may bring them back.
        self._doubtful: dict[Base, int] = {}
        self.explicit, self.most = 0, BOUNDLESS
        for rule in joins:
            self._run(rule)
        self._derive()

    def _run(self, rule: Rule) -> None:
        if not rule.body:
            self._state_always(rule)
            return
        target = None if isinstance(rule.head.predicate, Var) else self._named_by(rule.head)
        name, body = transitive(rule), rule.body
        if name is not None:
            target, body = self._chains[name], edge_by_edge(rule, name)
        follow(self.facts, body, _Derive(rule, target, self._base, self._events))

    def _state_always(self, rule: Rule) -> None:
        """Derive a fact of the ontology once, from no facts, so that no deletion removes it."""
        triple = instance(rule.head, {})
        if triple is not None and passes(rule, {}):
            self._events.append(self._base(*triple))

    def _named_by(self, head: TriplePattern) -> Class | Property:
        """The class or property that a rule's head names as a constant."""
        return self.facts.class_of(str(head.object)) if is_class(head) else self.facts.property_of(str(head.predicate))

    def _base(self, subject: Term, predicate: Term, end: Term) -> Base:
        """Convert a triple to the key of its derivation count."""
        if predicate == RDF_TYPE:
            return self.facts.class_of(end), subject, subject
        return self.facts.property_of(predicate), subject, end

    def change(self, added: Iterable[Triple], removed: Iterable[Triple]) -> tuple[list[Triple], list[Triple]]:
        """Remove and then add explicit facts; returns the facts that entered the closure and those that left it."""
        changes = _NetChanges()
        self.facts.enter.append(changes.enter)
        self.facts.leave.append(changes.leave)
        self.apply(added, removed)
        self.facts.enter.remove(changes.enter)
        self.facts.leave.remove(changes.leave)
        return list(changes.entered), list(changes.left)

    def apply(self, added: Iterable[Triple], removed: Iterable[Triple] = ()) -> None:
        """Remove and then add explicit facts; listeners of ``facts`` receive the changes.

        Adding an explicit fact again and removing an unknown one have no effect. TooMuchError when the change needs
        more derivations than ``most`` allows; the closure is then unchanged.
        """
        new = dict.fromkeys(added)
        # A fact that is removed and added again stays, without being undone and derived again.
        retracted = [triple for triple in dict.fromkeys(removed) if triple not in new and self.is_explicit(triple)]
        limit = self.most + PER_FACT * max(0, len(new) + len(retracted) - LARGE)
        if retracted:
            for triple in retracted:
                self._retract(triple)
            if not self._follow(limit):
                self._restore(retracted)
                raise TooMuchError(
                    f"this deletion would undo more than {limit} derivations of rules: delete in smaller parts,"
                    " the facts that were published last first"
                )
            self._rederive()
        asserted: list[Triple] = []
        try:
            self._add(new, asserted, limit)
        except TooMuchError:
            self._undo(asserted, retracted)
            raise

    def _restore(self, retracted: Iterable[Triple]) -> None:
        """Undo a deletion that was propagated in part, for facts that ``_follow`` has not reached yet.

        Their consequences are still in the closure. Such a fact keeps an entry with count 0, so that ``_derive`` only
        raises its count and does not add its consequences a second time.
        """
        events, derived, off = self._events, self._derived, self._off
        for base in events:
            derived[base] -= 1
            # Its consequences have been removed already, or are counted for the explicit fact: it needs no entry.
            if not derived[base] and (base in off or self._is_base_explicit(base)):
                del derived[base]
        events.clear()
        self._rederive(retracted)

    def _add(self, new: Iterable[Triple], asserted: list[Triple], limit: int) -> None:
        """Add explicit facts; those that were not explicit before are appended to ``asserted``."""
        for triple in new:
            before = self.explicit
            self._assert(triple)
            # ``_assert`` ignores facts that are explicit already, which ``_undo`` must not retract.
            if self.explicit != before:
                asserted.append(triple)
            if len(self._events) > limit:
                raise self._too_much(limit)
        if self._events:
            self._derive(limit)

    @staticmethod
    def _too_much(limit: int) -> TooMuchError:
        return TooMuchError(f"rules would derive more than {limit} facts from this change: publish it in smaller parts")

    def _undo(self, asserted: Iterable[Triple], retracted: Iterable[Triple]) -> None:
        """Undo a change that was applied in part; derivations still in the queue count, without their consequences."""
        for base in self._events:
            before = self._derived.get(base, 0)
            self._derived[base] = before + 1
            if not before and not self._is_base_explicit(base):
                self._off[base] = None
        self._events.clear()
        for triple in asserted:
            self._retract(triple)
        self._follow()
        self._rederive(retracted)

    def load(self, triples: Iterable[Triple]) -> None:
        """Add many explicit facts at once, without a bound."""
        for triple in triples:
            self._assert(triple)
        self._derive()

    def is_explicit(self, triple: Triple) -> bool:
        """Whether a fact is one of the explicit facts, which were added and not removed."""
        subject, predicate, end = triple
        if predicate == RDF_TYPE:
            known = self.facts.classes.get(end)
            return known is not None and bool(known.members.get(subject, 0) & EXPLICIT)
        of = self._links[predicate].property
        if end not in of.out.get(subject, ()):
            return False
        return not of.states or bool(of.states.get((subject, end), STATED) & EXPLICIT)

    def _state(self, of: Property, subject: Term, end: Term) -> int:
        return of.states.get((subject, end), STATED) if end in of.out.get(subject, ()) else 0

    def _assert(self, triple: Triple) -> None:
        subject, predicate, end = intern(triple[0]), triple[1], intern(triple[2])
        if predicate == RDF_TYPE:
            self._assert_member(self._above[end], subject)
            return
        link = self._links[predicate]
        of = link.property
        if not link.lone:
            self._assert_pair(link, of, subject, end)
        elif end not in of.out.get(subject, ()):
            self.facts.link(of, subject, end)
            self.explicit += 1

    def _assert_member(self, above: tuple[Class, ...], subject: Term) -> None:
        members = above[0].members
        if members.get(subject, 0) & EXPLICIT:
            return
        # Rules derive it already and so count it as SOFT; FIRM - SOFT turns that one into a firm count.
        by = FIRM - SOFT if self._derived and self._derived.get((above[0], subject, subject)) else FIRM
        for class_ in above:
            self._join(class_, subject, by)
        members[subject] += EXPLICIT
        self.explicit += 1

    def _assert_pair(self, link: PropertyLinks, of: Property, subject: Term, end: Term) -> None:
        # As in ``_assert_member``: its consequences were counted as SOFT, once, and become FIRM.
        by = FIRM - SOFT if self._derived and self._derived.get((of, subject, end)) else FIRM
        if end not in of.out.get(subject, ()):
            if by != FIRM:
                of.states[subject, end] = EXPLICIT + by
            self.facts.link(of, subject, end)
        elif of.states.get((subject, end), STATED) & EXPLICIT:
            return
        else:
            of.states[subject, end] += EXPLICIT + by
        self._spread(link, subject, end, by)
        self.explicit += 1

    def _retract(self, triple: Triple) -> None:
        """Remove an explicit fact; it stays in the closure if something else implies it."""
        self.explicit -= 1
        subject, predicate, end = triple
        if predicate == RDF_TYPE:
            above = self._above[end]
            above[0].members[subject] -= EXPLICIT
            # An explicit fact's counts do not include the consequences of rules' derivations; _rederive adds those that
            # remain.
            if self._derived:
                self._off[above[0], subject, subject] = None
            for class_ in above:
                self._withdraw(class_, subject, FIRM)
            return
        link = self._links[predicate]
        if link.lone:
            self.facts.unlink(link.property, subject, end)
            return
        if self._derived:
            self._off[link.property, subject, end] = None
        self._unlink(link.property, subject, end, STATED)
        self._unspread(link, subject, end, FIRM)

    def _spread(self, link: PropertyLinks, subject: Term, end: Term, by: int) -> None:
        """Add ``by`` to the counts of all facts that a pair implies by steps, without the pair itself."""
        if end[0] == '"' and link.literal is not None:
            link = link.literal
        for of in link.same:
            self._link(of, subject, end, by)
        for of in link.turned:
            self._link(of, end, subject, by)
        for class_ in link.of_subject:
            members = class_.members
            if subject in members:
                members[subject] += by
            else:
                self._join(class_, subject, by)
        for class_ in link.of_object:
            self._join(class_, end, by)

    def _unspread(self, link: PropertyLinks, subject: Term, end: Term, by: int) -> None:
        if end[0] == '"' and link.literal is not None:
            link = link.literal
        for of in link.same:
            self._unlink(of, subject, end, by)
        for of in link.turned:
            self._unlink(of, end, subject, by)
        for class_ in link.of_subject:
            self._withdraw(class_, subject, by)
        for class_ in link.of_object:
            self._withdraw(class_, end, by)

    def _join(self, of: Class, member: Term, by: int) -> None:
        """Add ``by`` to the count of a membership; the first count adds the membership."""
        if member in of.members:
            of.members[member] += by
        else:
            self.facts.join(of, member, by)

    def _withdraw(self, of: Class, member: Term, by: int) -> None:
        """Subtract ``by`` from the count of a membership; without a firm count it leaves and is in doubt."""
        state = of.members.get(member)
        # It has left already within this deletion; only its soft counts can still change.
        if state is None:
            self._doubtful[of, member, member] -= by
            return
        state -= by
        if state & _FIRMLY:
            of.members[member] = state
            return
        self.facts.part(of, member)
        # Only derived facts imply it, perhaps facts that rest on this one. Its soft counts are kept until all of the
        # deletion is propagated; _rederive adds it again if any is left.
        self._doubtful[of, member, member] = state

    def _link(self, of: Property, subject: Term, end: Term, by: int) -> None:
        """Add ``by`` to the state of a pair; the first count adds the pair."""
        if end in of.out.get(subject, ()):
            states, pair = of.states, (subject, end)
            states[pair] = states.get(pair, STATED) + by
            return
        # Pairs with the state STATED, most of all, have no entry: absence from ``states`` means STATED.
        if by != STATED:
            of.states[subject, end] = by
        self.facts.link(of, subject, end)

    def _unlink(self, of: Property, subject: Term, end: Term, by: int) -> None:
        state = self._state(of, subject, end)
        if not state:
            self._doubtful[of, subject, end] -= by
            return
        state -= by
        if state & _FIRMLY:
            of.states[subject, end] = state
            return
        self.facts.unlink(of, subject, end)
        of.states.pop((subject, end), None)
        self._doubtful[of, subject, end] = state

    def _derive(self, limit: int = BOUNDLESS) -> None:
        """Count the derivations in the queue and propagate new facts; TooMuchError beyond ``limit`` derivations.

        Facts with an entry of count 0, which an undone deletion leaves, have their consequences in the closure already.
        """
        events, derived, left = self._events, self._derived, limit
        while events:
            if len(events) > left:
                raise self._too_much(limit)
            left -= 1
            base = events.pop()
            before = derived.get(base)
            if before is not None:
                derived[base] = before + 1
                continue
            derived[base] = 1
            if not self._is_base_explicit(base):
                self._add_consequences(base)

    def _follow(self, limit: int = BOUNDLESS) -> bool:
        """Propagate lost derivations; false, with the rest still in the queue, beyond ``limit`` of them."""
        events, derived = self._events, self._derived
        while events:
            if len(events) > limit:
                return False
            limit -= 1
            base = events.pop()
            left = derived.pop(base) - 1
            if left:
                derived[base] = left
            # DRed: even with derivations left it is removed, as these may rest on the fact itself.
            if base not in self._off and not self._is_base_explicit(base):
                self._off[base] = None
                self._remove_consequences(base)
        return True

    def _rederive(self, stated: Iterable[Triple] = ()) -> None:
        """End a deletion: facts in doubt with a count or derivation return; ``stated`` are explicit again."""
        derived = self._derived
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
            self._add_consequences(base)
        # After the facts in doubt have returned, so that ``_assert`` finds their counts.
        for triple in stated:
            self._assert(triple)
        self._derive()

    def _is_base_explicit(self, base: Base) -> bool:
        of, subject, end = base
        if isinstance(of, Class):
            return bool(of.members.get(subject, 0) & EXPLICIT)
        return bool(self._state(of, subject, end) & EXPLICIT)

    def _add_consequences(self, base: Base) -> None:
        of, subject, end = base
        if isinstance(of, Class):
            for class_ in self._above[of.name]:
                self._join(class_, subject, SOFT)
        else:
            if of not in self._unstored:
                self._link(of, subject, end, SOFT)
            self._spread(self._links[of.name], subject, end, SOFT)

    def _remove_consequences(self, base: Base) -> None:
        of, subject, end = base
        if isinstance(of, Class):
            for class_ in self._above[of.name]:
                self._withdraw(class_, subject, SOFT)
        else:
            if of not in self._unstored:
                self._unlink(of, subject, end, SOFT)
            self._unspread(self._links[of.name], subject, end, SOFT)


class _NetChanges:
    """The facts that entered the closure and those that left it, without those that did both."""

    def __init__(self) -> None:
        self.entered: dict[Triple, None] = {}
        self.left: dict[Triple, None] = {}

    def enter(self, *triple: Term) -> None:
        self._note(triple, self.entered, self.left)

    def leave(self, *triple: Term) -> None:
        self._note(triple, self.left, self.entered)

    def _note(self, triple: tuple[Term, ...], to: dict[Triple, None], other: dict[Triple, None]) -> None:
        subject, predicate, end = triple
        if (subject, predicate, end) in other:
            del other[subject, predicate, end]
        else:
            to[subject, predicate, end] = None


@dataclass(frozen=True)
class _Derive(Finish):
    """Appends the head of each solution of a rule to ``events``; ``target`` is ``None`` for a variable predicate.

    The closure bounds the number of derivations, not the number of facts that joins read.
    """

    rule: Rule
    target: Class | Property | None
    base: Callable[[Term, Term, Term], Base]
    events: list[Base]

    def found(self, module: Module, where: Locals, sign: int) -> None:  # noqa: ARG002
        """Generate code that appends the head, if it is a valid RDF triple."""
        head, term, use = self.rule.head, module.term, module.use
        for test in self.rule.tests:
            module.add(Test(f"{use(test.holds)}({', '.join(term(node, where) for node in test.nodes)})"))
        one = term(head.subject, where)
        module.add(Test(f"{one}[0] != '\"'"))
        two = one if isinstance(self.target, Class) else term(head.object, where)
        if head.predicate == SAME:
            module.add(Test(f"{one} != {two}"))
        if self.target is None:
            self._placed(module, where, one, two)
        else:
            module.add(Do(f"{use(self.events)}.append(({use(self.target)}, {one}, {two}))"))

    def _placed(self, module: Module, where: Locals, one: str, two: str) -> None:
        """Generate code that appends a head with a variable predicate."""
        predicate, same = module.term(predicate_of(self.rule.head), where), module.use(SAME)
        module.add(
            Test(f"{predicate}[0] == '<' and ({predicate} != {same} or {one} != {two})"),
            Do(f"{module.use(self.events)}.append({module.use(self.base)}({one}, {predicate}, {two}))"),
        )
