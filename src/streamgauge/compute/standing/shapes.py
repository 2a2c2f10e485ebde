"""Basic graph patterns with the same shape: alike but for variables' names and the constants at subjects and objects.

All queries with patterns of a shape share its joins; what is found goes to those that ask with its constants.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from streamgauge.compute.changes.bags import Bag
from streamgauge.compute.changes.plans import Asked
from streamgauge.compute.effort import Effort
from streamgauge.compute.standing.facts import Facts
from streamgauge.compute.standing.joins import Joined, Local, Text, joined, tell, untell
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


@dataclass(frozen=True, slots=True, eq=False)
class Taker(Generic[Owner]):
    """Where the solutions for some constants go; ``owner`` is touched when the first one comes."""

    found: Bag
    owner: Owner


class Bounds(Protocol[Told]):
    """How much is looked at for one turn, a change of the facts, and who is told of it."""

    @property
    def most(self) -> int:
        """How many facts."""
        ...

    @property
    def turn(self) -> int:
        """The number of the turn."""
        ...

    def touch(self, owner: Told) -> None:
        """Something was found."""
        ...

    def fail(self, owner: Told) -> None:
        """More would have to be looked at than may be: what was found is not all."""
        ...


class Running(Generic[Owner]):
    """A shape over facts: its takers by their constants. In a turn it looks at ``bounds.most`` facts, at most twice."""

    def __init__(self, shape: Shape, facts: Facts, bounds: Bounds[Owner]) -> None:
        self.shape = shape
        self._facts, self._bounds = facts, bounds
        self._left, self._turn, self._asking = [0], -1, 0
        self._takers: dict[object, list[tuple[Bag, Owner]]] = {}
        finish = _Routed(shape, self._takers, self._left, bounds.touch, self._over)
        self._joined: Joined = joined(facts, shape.patterns, shape.conditions, finish)
        for reader in self._joined.readers:
            tell(facts, reader)

    def enter(self, taker: Taker[Owner], constants: Sequence[Term], effort: Effort) -> None:
        """A taker asks with these constants; it has all solutions there are at once, or has failed."""
        self._left[0], self._turn = effort.left, self._bounds.turn
        self._asking += 1
        key = _key(constants)
        before, self._takers[key] = self._takers.get(key, []), [(taker.found, taker.owner)]
        self._joined.begin(*constants)
        self._takers[key] = [*before, *self._takers[key]]
        effort.left, self._left[0], self._turn = max(0, self._left[0]), 0, -1

    def _over(self, takers: list[tuple[Bag, Owner]] | None) -> bool:
        """All that may be looked at was; whether that was in this turn, which ends it for those who ask for it."""
        if self._turn != self._bounds.turn:
            self._left[0], self._turn = self._bounds.most, self._bounds.turn
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
