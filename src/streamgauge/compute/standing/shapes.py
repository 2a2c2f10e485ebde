"""Basic graph patterns with the same shape: alike but for variables' names and the constants at subjects and objects.

All queries with patterns of a shape share its joins; what is found goes to those that ask with its constants.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Generic, Protocol, TypeVar

from streamgauge.compute.changes.bags import Bag
from streamgauge.compute.changes.plans import Asked
from streamgauge.compute.standing.facts import Facts
from streamgauge.compute.standing.joins import Anchor, Joined, Local, Text, joined, tell, untell
from streamgauge.model.algebra import Call, Expression, Node, TriplePattern, Var
from streamgauge.model.terms import RDF_TYPE, Term

Owner = TypeVar("Owner")
Told = TypeVar("Told", contravariant=True)


@dataclass(frozen=True, slots=True)
class Shape:
    """Patterns over variables ``v0``, ``v1`` ... and, for constants, ``c0``, ``c1`` ...; rows are over ``output``."""

    patterns: tuple[TriplePattern, ...]
    conditions: tuple[Expression, ...]
    output: tuple[str, ...]
    keys: tuple[str, ...]


@dataclass
class _Naming:
    """The new names of variables and constants, in order of first appearance."""

    variables: dict[str, str] = field(default_factory=dict)
    constants: dict[Term, str] = field(default_factory=dict)

    def node(self, node: Node) -> Var:
        if isinstance(node, Var):
            return Var(self.variables.setdefault(node.name, f"v{len(self.variables)}"))
        return Var(self.constants.setdefault(node, f"c{len(self.constants)}"))

    def pattern(self, pattern: TriplePattern) -> TriplePattern:
        """A predicate and a class stay: they say which facts are of concern at all."""
        predicate = pattern.predicate
        if not isinstance(predicate, Var | str):
            raise TypeError("a property path is not a triple pattern: normalise the query first")
        named = predicate == RDF_TYPE and isinstance(pattern.object, str)
        subject = self.node(pattern.subject)
        kept = self.node(predicate) if isinstance(predicate, Var) else predicate
        return TriplePattern(subject, kept, pattern.object if named else self.node(pattern.object))

    def condition(self, condition: Expression) -> Expression:
        if isinstance(condition, Var):
            return Var(self.variables[condition.name])
        if isinstance(condition, Call):
            return Call(condition.operator, tuple(map(self.condition, condition.arguments)))
        return condition


def shape(asked: Asked) -> tuple[Shape, tuple[Term, ...]]:
    """The shape of what is asked, and the constants with which it is."""
    naming = _Naming()
    patterns = tuple(map(naming.pattern, asked.bgp.patterns))
    conditions = tuple(map(naming.condition, asked.conditions))
    output = tuple(naming.variables[name] for name in asked.output)
    return Shape(patterns, conditions, output, tuple(naming.constants.values())), tuple(naming.constants)


def original(asked: Asked, name: str) -> str:
    """What a variable of the shape is called in the pattern."""
    naming = _Naming()
    for each in asked.bgp.patterns:
        naming.pattern(each)
    return next(own for own, made in naming.variables.items() if made == name)


@dataclass(frozen=True, slots=True, eq=False)
class Taker(Generic[Owner]):
    """Where the solutions for some constants go; ``owner`` is touched when the first one comes."""

    found: Bag
    owner: Owner


class Bounds(Protocol[Told]):
    """How much is looked at for one turn, a change of the facts, and who is told of it."""

    @property
    def most(self) -> int:
        """How many facts, because of this change."""
        ...

    @property
    def turn(self) -> int:
        """The number of the turn."""
        ...

    def share(self, owner: Told) -> int:
        """Of how many patterns it asks for the solutions."""
        ...

    def touch(self, owner: Told) -> None:
        """Something was found."""
        ...

    def fail(self, owner: Told) -> None:
        """More would have to be looked at than may be: what was found is not all."""
        ...


class Running(Generic[Owner]):
    """A shape over facts: its takers by their constants. In a turn it looks at ``bounds.most`` facts, at most twice.

    A query of several patterns parts that among them; where others ask for the shape too, the one with fewest counts.
    """

    def __init__(self, shape: Shape, facts: Facts, bounds: Bounds[Owner]) -> None:
        self.shape = shape
        self._facts, self._bounds = facts, bounds
        self._left, self._turn, self._asking, self._finding = [0], -1, 0, False
        self._shares: Counter[int] = Counter()
        self._takers: dict[object, list[tuple[Bag, Owner]]] = {}
        finish = _Routed(shape, self._takers, self._left, bounds.touch, self._over)
        self._joined: Joined = joined(facts, shape.patterns, shape.conditions, finish)
        for reader in self._joined.readers:
            tell(facts, reader)

    def enter(self, taker: Taker[Owner], constants: Sequence[Term]) -> None:
        """A taker asks with these constants: changes of its solutions come from now on."""
        self._asking += 1
        self._takers.setdefault(_key(constants), []).append((taker.found, taker.owner))
        self._shares[self._bounds.share(taker.owner)] += 1

    def find(self, taker: Taker[Owner], constants: Sequence[Term], most: int, value: Term | None = None) -> int:
        """All solutions there are for these constants, those with a value of the anchor where one is given.

        How many facts of ``most`` may still be looked at; where that is negative the solutions are not all.
        """
        key = _key(constants)
        before, self._takers[key] = self._takers.get(key), [(taker.found, taker.owner)]
        self._left[0], self._finding = most, True
        try:
            if value is None:
                self._joined.begin(*constants)
            elif self.anchor is not None:
                self.anchor.begin(value, *constants)
        finally:
            left, self._left[0], self._turn, self._finding = self._left[0], 0, -1, False
            if before is None:
                del self._takers[key]
            else:
                self._takers[key] = before
        return left

    @cached_property
    def anchor(self) -> Anchor | None:
        """What parts the solutions, compiled when it is first needed."""
        return self._joined.anchor()

    def _over(self, takers: list[tuple[Bag, Owner]] | None) -> bool:
        """All that may be looked at was; whether that was in this turn, which ends it for those who ask for it."""
        if self._finding:
            return True
        if self._turn != self._bounds.turn:
            self._left[0], self._turn = self._bounds.most // min(self._shares), self._bounds.turn
            return False
        for each in self._takers.values() if takers is None else [takers]:
            for _, owner in each:
                self._bounds.fail(owner)
            each.clear()
        if takers is not None:
            self._left[0] = self._bounds.most
        return True

    def leave(self, taker: Taker[Owner], constants: Sequence[Term]) -> bool:
        """A taker asks no more; whether nobody does."""
        key = _key(constants)
        left = [each for each in self._takers.get(key, ()) if each[0] is not taker.found]
        if left:
            self._takers[key] = left
        else:
            self._takers.pop(key, None)
        self._asking -= 1
        share = self._bounds.share(taker.owner)
        self._shares[share] -= 1
        if not self._shares[share]:
            del self._shares[share]
        return not self._asking

    def stop(self) -> None:
        """Facts are told no more."""
        for reader in self._joined.readers:
            untell(self._facts, reader)


def _key(constants: Sequence[Term]) -> object:
    return constants[0] if len(constants) == 1 else tuple(constants)


@dataclass(frozen=True)
class _Routed(Generic[Owner]):
    """Solutions go to those that ask with their constants; where nobody does, the rest is not joined."""

    shape: Shape
    takers: dict[object, list[tuple[Bag, Owner]]]
    left: list[int]
    touch: Callable[[Owner], None]
    over: Callable[[list[tuple[Bag, Owner]] | None], bool]

    @property
    def keys(self) -> tuple[str, ...]:
        return self.shape.keys

    def begun(self, text: Text) -> None:
        """Nobody is known yet who asks."""
        text.add("takers = None")

    def looked(self, text: Text, count: str) -> None:
        """Stop where it is too much."""
        left = text.use(self.left)
        text.add(f"{left}[0] -= {count}")
        text.add(f"if {left}[0] < 0 and {text.use(self.over)}(takers): return")

    def bound(self, text: Text, where: Local) -> None:
        """Go on where somebody asks."""
        names = [where[name] for name in self.shape.keys]
        key = names[0] if len(names) == 1 else f"({', '.join(names)})"
        text.add(f"takers = {text.use(self.takers)}.get({key})")
        text.open("if takers:")

    def found(self, text: Text, where: Local, sign: str) -> None:
        """Count the row for every taker."""
        text.add(f"row = ({''.join(where[name] + ', ' for name in self.shape.output)})")
        text.open("for found, owner in takers:")
        text.add(f"if not found: {text.use(self.touch)}(owner)")
        text.add(f"n = found.get(row, 0) {sign} 1")
        text.add("if n: found[row] = n")
        text.add("else: del found[row]")
