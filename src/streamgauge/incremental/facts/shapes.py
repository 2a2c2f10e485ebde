"""Basic graph patterns with the same shape: alike but for variables' names and the constants at subjects and objects.

All queries with patterns of a shape share its joins; what is found goes to those that ask with its constants. Joins of
a changed fact begin with the constants that are asked with while those are few, and come to them when they are many.
Functions are compiled when they are first needed, and facts come to them through gates (``gates``).
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, Generic, Protocol, TypeAlias, TypeVar

from streamgauge.incremental.bags import Bag
from streamgauge.incremental.facts.facts import Facts
from streamgauge.incremental.facts.gates import Trigger
from streamgauge.incremental.facts.joins import Anchor, Local, Text, planned
from streamgauge.incremental.plans import Asked
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


class Takers(list[tuple[Bag, Owner]]):
    """Who asks with the same constants; ``left`` is how many facts may be looked at for them in ``turn``."""

    __slots__ = ("left", "turn")

    def __init__(self, takers: Sequence[tuple[Bag, Owner]] = ()) -> None:
        super().__init__(takers)
        self.left, self.turn = 0, -1


Asking: TypeAlias = dict[object, Takers[Owner]]

FEW: Final = 4
"""Constants, or rows of them, with which joins of a changed fact begin, one after the other."""


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
        self._bounds = bounds
        self._left, self._turn, self._asking = [0, 0], -1, 0
        self._finding_for: list[Bag] = [{}]
        self._shares: Counter[int] = Counter()
        self._takers: Asking[Owner] = {}
        self._few = True
        self._plan = planned(facts, shape.patterns, shape.conditions)
        self._late = _Late(shape, self._takers, self._left, bounds.touch, self._over)
        self._all = _All(shape, self._finding_for, self._left)
        self._triggers = [
            Trigger(facts, shape.patterns, shape.keys, at, self._compiled) for at in range(len(shape.patterns))
        ]
        self._begin = self._plan.begin(self._all)
        if self._plan.is_deep:
            for each in self._triggers:
                each.compile()

    def _compiled(self, at: int, sign: int) -> Callable[..., None]:
        """What finds the solutions that come or go with a fact."""
        if not self._few or self._plan.binds(at, self.shape.keys):
            return self._plan.trigger(at, sign, self._late)
        return self._plan.trigger(at, sign, _Early(self.shape, self._takers, self._bounds.touch, self._exceeded))

    def enter(self, taker: Taker[Owner], constants: Sequence[Term]) -> None:
        """A taker asks with these constants: changes of its solutions come from now on."""
        self._asking += 1
        key = _key(constants)
        takers = self._takers.get(key)
        if takers is None:
            takers = self._takers[key] = Takers()
            for each in self._triggers:
                each.open(constants)
            if self._few and len(self._takers) > FEW:
                self._few = False
                for each in self._triggers:
                    each.compile_again()
        takers.append((taker.found, taker.owner))
        self._shares[self._bounds.share(taker.owner)] += 1

    def find(self, taker: Taker[Owner], constants: Sequence[Term], most: int) -> int:
        """All solutions there are for these constants.

        How many facts of ``most`` may still be looked at; where that is negative the solutions are not all.
        """
        return self._found(taker, most, 0, lambda: self._begin(*constants))

    def find_parts(
        self, taker: Taker[Owner], constants: Sequence[Term], most: int, stop: int, waiting: dict[Term, None]
    ) -> int:
        """As ``find``, for values of the anchor that wait: they are taken until ``stop`` facts were looked at."""
        anchor = self.anchor
        if anchor is None:
            raise ValueError("no variable is open: find everything at once")
        return self._found(taker, most, most - stop, lambda: anchor.begin(waiting, *constants))

    def _found(self, taker: Taker[Owner], most: int, floor: int, begin: Callable[[], None]) -> int:
        self._left[:], self._finding_for[0] = (most, floor), taker.found
        try:
            begin()
        finally:
            left, self._left[0], self._turn, self._finding_for[0] = self._left[0], 0, -1, {}
        if taker.found:
            self._bounds.touch(taker.owner)
        return left

    @cached_property
    def anchor(self) -> Anchor | None:
        """What parts the solutions, compiled when it is first needed."""
        return self._plan.anchor(self._all)

    def _over(self, takers: Takers[Owner] | None) -> bool:
        """All that may be looked at was; whether that was in this turn, which ends it for those who ask for it."""
        if self._turn != self._bounds.turn:
            self._left[0], self._turn = self._bounds.most // min(self._shares), self._bounds.turn
            return False
        for each in self._takers.values() if takers is None else [takers]:
            self._fail(each)
        if takers is not None:
            self._left[0] = self._bounds.most
        return True

    def _exceeded(self, takers: Takers[Owner]) -> bool:
        """The same where the joins began with the constants of these takers."""
        if takers.turn != self._bounds.turn:
            takers.turn = self._bounds.turn
            takers.left = self._bounds.most // min(self._bounds.share(owner) for _, owner in takers)
            return False
        self._fail(takers)
        return True

    def _fail(self, takers: Takers[Owner]) -> None:
        for _, owner in takers:
            self._bounds.fail(owner)
        takers.clear()

    def leave(self, taker: Taker[Owner], constants: Sequence[Term]) -> bool:
        """A taker asks no more; whether nobody does."""
        key = _key(constants)
        takers = self._takers.get(key)
        if takers is not None:
            takers[:] = [each for each in takers if each[0] is not taker.found]
            if not takers:
                del self._takers[key]
                for each in self._triggers:
                    each.close(constants)
        self._asking -= 1
        share = self._bounds.share(taker.owner)
        self._shares[share] -= 1
        if not self._shares[share]:
            del self._shares[share]
        return not self._asking


def _key(constants: Sequence[Term]) -> object:
    return constants[0] if len(constants) == 1 else tuple(constants)


def _names(shape: Shape, where: Local) -> str:
    """The key of the takers, of locals."""
    names = [where[name] for name in shape.keys]
    return names[0] if len(names) == 1 else f"({', '.join(names)})"


def _count(text: Text, shape: Shape, where: Local, sign: int, touch: Callable[[Owner], None]) -> None:
    """Count the row for every taker."""
    text.add(f"row = ({''.join(where[name] + ', ' for name in shape.output)})")
    text.open("for found, owner in takers:")
    text.add(f"if not found: {text.use(touch)}(owner)")
    text.add(f"n = found.get(row, 0) + {text.use(sign)}")
    text.add("if n: found[row] = n")
    text.add("else: del found[row]")


@dataclass(frozen=True)
class _Late(Generic[Owner]):
    """Solutions go to those that ask with their constants; where nobody does, the rest is not joined."""

    shape: Shape
    takers: Asking[Owner]
    left: list[int]
    touch: Callable[[Owner], None]
    over: Callable[[Takers[Owner] | None], bool]

    @property
    def keys(self) -> tuple[str, ...]:
        return self.shape.keys

    def headed(self, text: Text, given: Sequence[str]) -> dict[str, str]:
        """Nobody is known yet who asks."""
        text.open(f"def run({', '.join(given)}):")
        text.add("takers = None")
        return {}

    def looked(self, text: Text, count: str) -> None:
        """Stop where it is too much."""
        left = text.use(self.left)
        text.add(f"{left}[0] -= {count}")
        text.add(f"if {left}[0] < 0 and {text.use(self.over)}(takers): return")

    def bound(self, text: Text, where: Local) -> None:
        """Go on where somebody asks."""
        text.add(f"takers = {text.use(self.takers)}.get({_names(self.shape, where)})")
        text.open("if takers:")

    def found(self, text: Text, where: Local, sign: int) -> None:
        """Count the row for every taker."""
        _count(text, self.shape, where, sign, self.touch)


@dataclass(frozen=True)
class _All:
    """All solutions for some constants go to one bag, the first of ``bags`` while they are looked for."""

    shape: Shape
    bags: list[Bag]
    left: list[int]

    @property
    def keys(self) -> tuple[str, ...]:
        return self.shape.keys

    def begun(self, text: Text) -> None:
        """The bag is the same to the end."""
        text.add(f"found, (left, floor) = {text.use(self.bags)}[0], {text.use(self.left)}")
        text.add("get = found.get")

    def looked(self, text: Text, count: str) -> None:
        """Stop where it is too much."""
        text.add(f"left -= {count}")
        text.add(f"if left < 0: {text.use(self.left)}[0] = left; return")

    def ended(self, text: Text) -> None:
        """Say how much may still be looked at."""
        text.add(f"{text.use(self.left)}[0] = left")

    def bound(self, text: Text, where: Local) -> None:
        """Who asks is known from the beginning."""

    def parted(self, text: Text) -> None:
        """Stop where enough was looked at."""
        text.add(f"if left < floor: {text.use(self.left)}[0] = left; return")

    def found(self, text: Text, where: Local, sign: int) -> None:  # noqa: ARG002
        """A row that has all variables is found once, any other as often as it has solutions."""
        row = f"({''.join(where[name] + ', ' for name in self.shape.output)})"
        if self._has_all:
            text.add(f"found[{row}] = 1")
            return
        text.add(f"row = {row}")
        text.add("found[row] = get(row, 0) + 1")

    @property
    def _has_all(self) -> bool:
        """Whether a row tells the solution: the others are constants."""
        nodes = {node for each in self.shape.patterns for node in (each.subject, each.predicate, each.object)}
        return {node.name for node in nodes if isinstance(node, Var)} <= {*self.shape.output, *self.shape.keys}


@dataclass(frozen=True)
class _Early(Generic[Owner]):
    """The joins begin with the constants of those that ask, one after the other."""

    shape: Shape
    takers: Asking[Owner]
    touch: Callable[[Owner], None]
    over: Callable[[Takers[Owner]], bool]

    @property
    def keys(self) -> tuple[str, ...]:
        return self.shape.keys

    def headed(self, text: Text, given: Sequence[str]) -> dict[str, str]:
        """A function that goes through the constants, and one for each of them."""
        where = {name: f"k{number}" for number, name in enumerate(self.shape.keys)}
        known, fact = [*where.values(), *given], ", ".join(given)
        text.open(f"def run({fact}):")
        text.open(f"for {_names(self.shape, where) if where else '_'}, takers in {text.use(self.takers)}.items():")
        text.add(f"join(takers, {', '.join(known)})")
        text.depth = 0
        text.open(f"def join(takers, {', '.join(known)}):")
        return where

    def looked(self, text: Text, count: str) -> None:
        """Stop where it is too much."""
        text.add(f"takers.left -= {count}")
        text.add(f"if takers.left < 0 and {text.use(self.over)}(takers): return")

    def bound(self, text: Text, where: Local) -> None:  # noqa: ARG002
        """Go on where somebody asks."""
        text.open("if takers:")

    def found(self, text: Text, where: Local, sign: int) -> None:
        """Count the row for every taker."""
        _count(text, self.shape, where, sign, self.touch)
