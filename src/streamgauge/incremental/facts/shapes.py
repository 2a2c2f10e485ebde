"""Basic graph patterns of one shape: they differ only in variable names and in constants at subjects and objects.

All queries with patterns of a shape share its joins; a solution goes to the queries with its constants. Joins of a
changed fact begin with the constants of the queries while these are few, and end with them when they are many.
Functions are compiled on demand, and facts reach them through gates (``gates``).
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Protocol, TypeAlias

from streamgauge.incremental.budget import ChangeBudget
from streamgauge.incremental.facts.facts import Class, Facts, Property
from streamgauge.incremental.facts.gates import JoinTrigger
from streamgauge.incremental.facts.joins import Anchor, Finish, fact_joins
from streamgauge.incremental.ir import (
    Do,
    Emit,
    JoinError,
    Locals,
    Module,
    Probe,
    Scan,
    Test,
    row_of,
    tuple_of,
)
from streamgauge.incremental.operators import Bag
from streamgauge.incremental.pattern_shapes import PatternShape, shape
from streamgauge.incremental.plan import BgpRequest
from streamgauge.incremental.rewrite import UnsupportedError
from streamgauge.model.algebra import Var
from streamgauge.model.terms import Term


class PatternOwner(Protocol):
    """A query, or a part of one, that subscribes to the solutions of patterns."""

    @property
    def share(self) -> int:
        """The number of patterns among which the budget is divided."""

    @property
    def touch(self) -> Callable[[], None]:
        """Called with the first solution."""

    def fail(self) -> None:
        """The budget is spent: the solutions are incomplete."""


@dataclass(frozen=True, slots=True, eq=False)
class Taker:
    """The receiver of the solutions for some constants; ``owner`` is touched with the first one."""

    found: Bag
    owner: PatternOwner


class Takers(list[tuple[Bag, PatternOwner]]):
    """The takers with the same constants; ``left`` facts may still be read for them in ``turn``.

    ``granted`` is the number granted so far.
    """

    __slots__ = ("granted", "left", "turn")

    def __init__(self, takers: Sequence[tuple[Bag, PatternOwner]] = ()) -> None:
        super().__init__(takers)
        self.left, self.turn, self.granted = 0, -1, 0


Asking: TypeAlias = dict[object, Takers]

TOO_LARGE: Final = "a group of that many triple patterns and conditions: put some of them into a group"
"""The refusal of a pattern whose joins CPython does not compile."""

SHORT: Final = 5
"""Number of patterns that CPython always compiles: each has at most two loops."""

FEW: Final = 4
"""Maximum rows of constants for which joins of a changed fact begin with each of them."""


class ShapePool:
    """The patterns over the facts of one graph, by shape."""

    def __init__(self, facts: Facts, budget: ChangeBudget) -> None:
        self.shapes: dict[PatternShape, ShapeJoins] = {}
        self._facts, self._budget = facts, budget

    def joins(self, bgp_request: BgpRequest) -> "tuple[ShapeJoins, tuple[Term, ...]]":
        """The joins of a request's shape, and its constants; UnsupportedError."""
        # A worked example: `?x :p :a . ?x :q ?y` and `?s :p :b . ?s :q ?t` have one shape, with the constants :a and
        # :b.
        kind, constants = shape(bgp_request)
        joins = self.shapes.get(kind)
        if joins is None:
            try:
                joins = self.shapes[kind] = ShapeJoins(kind, self._facts, self._budget)
            except JoinError as error:
                raise UnsupportedError(TOO_LARGE) from error
        return joins, constants

    def leave(self, joins: "ShapeJoins", taker: Taker, constants: tuple[Term, ...]) -> None:
        """Remove a taker, and a shape without takers."""
        if joins.leave(taker, constants):
            del self.shapes[joins.shape]


class ShapeJoins:
    """A shape over facts, with its takers by constants. Per turn it reads at most ``budget.most`` facts, twice.

    A query divides this among its patterns; with several takers, the one with the fewest patterns counts.
    """

    def __init__(self, shape: PatternShape, facts: Facts, budget: ChangeBudget) -> None:
        self.shape = shape
        self._budget = budget
        # A list, because generated code changes it in place.
        self._left, self._turn, self._granted, self._asking = [0, 0], -1, 0, 0
        self._finding_for: list[Bag] = [{}]
        self._shares: Counter[int] = Counter()
        self._takers: Asking = {}
        self._few = True
        self._plan = fact_joins(facts, shape.patterns, shape.conditions, shape.keys)
        self._late = _Late(shape, self._takers, self._left, self._over)
        self._all = _All(shape, self._finding_for, self._left)
        self._triggers = [
            JoinTrigger(facts, shape.patterns, shape.keys, at, self._compiled) for at in range(len(shape.patterns))
        ]
        self._scanned = self._plan.scanned()
        # Larger shapes may not compile; the query has to be refused now and not by a later fact.
        if len(shape.patterns) > SHORT:
            self._begin  # noqa: B018 - JoinError now
        if self._plan.is_deep:
            for trigger in self._triggers:
                trigger.compile()

    @cached_property
    def _begin(self) -> Callable[..., None]:
        """The function that finds all solutions, compiled on demand; JoinError beyond ``SHORT`` patterns."""
        return self._plan.begin(self._all)

    def _compiled(self, at: int, sign: int) -> Callable[..., None]:
        """The function that finds the solutions that a fact adds or removes."""
        # If the fact binds all constants, the takers are one look-up away, however many there are.
        if not self._few or self._plan.binds(at, self.shape.keys):
            return self._plan.trigger(at, sign, self._late)
        return self._plan.trigger(at, sign, _Early(self.shape, self._takers, self._exceeded))

    def functions(self) -> tuple[Callable[..., None], ...]:
        """The generated functions: for all solutions, then for a new fact of each pattern."""
        return self._begin, *(self._compiled(at, 1) for at in range(len(self.shape.patterns)))

    def enter(self, taker: Taker, constants: Sequence[Term]) -> None:
        """Add a taker with these constants; it receives changes from now on."""
        self._asking += 1
        key = _key(constants)
        takers = self._takers.get(key)
        if takers is None:
            takers = self._takers[key] = Takers()
            self._budget.asking += 1
            for trigger in self._triggers:
                trigger.open(constants)
            # From here on it is cheaper to join from the fact and look up who asks than to go through all that ask.
            if self._few and len(self._takers) > FEW:
                self._few = False
                for trigger in self._triggers:
                    trigger.compile_again()
        takers.append((taker.found, taker.owner))
        self._shares[taker.owner.share] += 1

    def looks(self, constants: Sequence[Term]) -> int:
        """The estimated number of facts that ``find`` reads."""
        kind, patterns = self._scanned, len(self.shape.patterns)
        if isinstance(kind, Class):
            return len(kind.members) * patterns
        return self._plan.looked_up(constants) * patterns if kind is None else len(kind.out) * (1 + patterns)

    def find(self, taker: Taker, constants: Sequence[Term], limit: int) -> int:
        """Find all existing solutions for these constants.

        Returns the rest of ``limit``, in facts; if it is negative, the solutions are incomplete.
        """
        if isinstance(self._scanned, Property) and self.anchor is not None:  # its objects can be joined last
            return self.find_parts(taker, constants, limit, limit, iter(self.anchor.values(*constants)))
        return self._found(taker, limit, 0, lambda: self._begin(*constants))

    def find_parts(
        self, taker: Taker, constants: Sequence[Term], limit: int, stop: int, waiting: Iterator[Term]
    ) -> int:
        """``find`` by values of the anchor, which are consumed from ``waiting`` until ``stop`` facts have been read."""
        anchor = self.anchor
        if anchor is None:
            raise ValueError("no variable is open: find everything at once")
        return self._found(taker, limit, max(0, limit - stop), lambda: anchor.begin(waiting, *constants))

    def _found(self, taker: Taker, limit: int, floor: int, begin: Callable[[], None]) -> int:
        self._left[:], self._finding_for[0] = (limit, floor), taker.found
        try:
            begin()
        finally:
            # Also after an error: the next turn must not count on what this search was granted.
            left, self._left[0], self._turn, self._finding_for[0] = self._left[0], 0, -1, {}
        if taker.found:
            taker.owner.touch()
        return left

    @cached_property
    def anchor(self) -> Anchor | None:
        """The anchor that partitions the solutions, compiled on demand."""
        return self._plan.anchor(self._all)

    def _over(self, takers: Takers | None) -> bool:
        """Whether the grant is spent and no more is given; then the takers (or all of them) fail."""
        if self._more():
            return False
        for taker in self._takers.values() if takers is None else [takers]:
            self._fail(taker)
        self._left[0] = self._granted = 0
        return True

    def _more(self) -> bool:
        """Whether more facts are granted than were read."""
        budget = self._budget
        if self._turn != budget.turn:
            self._turn, self._granted = budget.turn, 0
        more = budget.grant(self._granted, -self._left[0], budget.most // min(self._shares))
        self._granted += more
        self._left[0] += more
        return more > 0

    def _exceeded(self, takers: Takers) -> bool:
        """``_over`` for joins that began with the constants of these takers."""
        budget = self._budget
        if takers.turn != budget.turn:
            takers.turn, takers.granted = budget.turn, 0
        share = min((owner.share for _, owner in takers), default=1)
        more = budget.grant(takers.granted, -takers.left, budget.most // share)
        if not more:
            self._fail(takers)
            return True
        takers.granted += more
        takers.left += more
        return False

    def _fail(self, takers: Takers) -> None:
        for _, owner in takers:
            owner.fail()
        # They receive nothing more. Their entry in the table stays until they leave.
        takers.clear()

    def leave(self, taker: Taker, constants: Sequence[Term]) -> bool:
        """Remove a taker; whether none is left."""
        key = _key(constants)
        takers = self._takers.get(key)
        if takers is not None:
            takers[:] = [entry for entry in takers if entry[0] is not taker.found]
            if not takers:
                del self._takers[key]
                self._budget.asking -= 1
                for trigger in self._triggers:
                    trigger.close(constants)
        self._asking -= 1
        share = taker.owner.share
        self._shares[share] -= 1
        if not self._shares[share]:
            del self._shares[share]
        return not self._asking


def _key(constants: Sequence[Term]) -> object:
    return constants[0] if len(constants) == 1 else tuple(constants)


@dataclass(frozen=True)
class _ShapeFinish(Finish):
    """Emits code that hands solutions of a shape to the takers with the same constants."""

    shape: PatternShape
    takers: Asking

    @property
    def keys(self) -> tuple[str, ...]:
        return self.shape.keys

    def key(self, where: Locals) -> str:
        """The key of takers, as an expression over locals."""
        return tuple_of([where[name] for name in self.keys]) if self.keys else "()"

    def found(self, module: Module, where: Locals, sign: int) -> None:
        """Count the row for each taker."""
        module.add(
            row_of(self.shape.output, where),
            Scan("found, owner", "takers"),
            Do("if not found: owner.touch()"),
            Emit("found", f"+ {module.use(sign)}"),
        )


@dataclass(frozen=True)
class _Late(_ShapeFinish):
    """Joins that bind the constants on the way, and stop if no taker has them."""

    left: list[int]
    over: Callable[[Takers | None], bool]

    def headed(self, module: Module, parameters_: Sequence[str]) -> dict[str, str]:
        """Begin without a taker."""
        super().headed(module, parameters_)
        module.add(Do("takers = None"))
        return {}

    def looked(self, module: Module, count: str) -> None:
        """Stop where it is too much."""
        left = module.use(self.left)
        module.add(Do(f"{left}[0] -= {count}"), Do(f"if {left}[0] < 0 and {module.use(self.over)}(takers): return"))

    def bound(self, module: Module, where: Locals) -> None:
        """Go on if there are takers, in a separate function, which may end without ending the search for others."""
        searched = any(
            isinstance(operation, Scan) or (isinstance(operation, Probe) and operation.targets)
            for operation in module.operations
        )
        module.add(Do(f"takers = {module.use(self.takers)}.get({self.key(where)})"), Test("takers"))
        if searched:
            parameters_ = ["takers", *dict.fromkeys(where.values())]
            module.add(Do(f"rest({', '.join(parameters_)})"))
            module.function("rest", parameters_)


@dataclass(frozen=True)
class _Early(_ShapeFinish):
    """Joins that begin with the constants of each taker."""

    over: Callable[[Takers], bool]

    def headed(self, module: Module, parameters_: Sequence[str]) -> dict[str, str]:
        """A function that loops over the constants, and one that is called for each of them."""
        where = {name: f"k{number}" for number, name in enumerate(self.keys)}
        known = [*where.values(), *parameters_]
        super().headed(module, parameters_)
        key = self.key(where) if where else "_"
        module.add(
            Scan(f"{key}, takers", f"{module.use(self.takers)}.items()"), Do(f"join({', '.join(('takers', *known))})")
        )
        module.function("join", ["takers", *known])
        return where

    def looked(self, module: Module, count: str) -> None:
        """Stop where it is too much."""
        module.add(Do(f"takers.left -= {count}"), Do(f"if takers.left < 0 and {module.use(self.over)}(takers): return"))

    def bound(self, module: Module, where: Locals) -> None:  # noqa: ARG002
        """Go on if there are takers."""
        module.add(Test("takers"))


@dataclass(frozen=True)
class _All(Finish):
    """Emits code that collects all solutions for some constants in the first of ``bags``."""

    shape: PatternShape
    bags: list[Bag]
    left: list[int]

    @property
    def keys(self) -> tuple[str, ...]:
        return self.shape.keys

    def begun(self, module: Module) -> None:
        """Load the bag and the budget into locals."""
        module.add(
            Do(f"found, (left, floor) = {module.use(self.bags)}[0], {module.use(self.left)}"), Do("get = found.get")
        )

    def looked(self, module: Module, count: str) -> None:
        """Stop where it is too much."""
        module.add(Do(f"left -= {count}"), Do(f"if left < 0: {module.use(self.left)}[0] = left; return"))

    def parted(self, module: Module) -> None:
        """Stop once ``stop`` facts have been read."""
        module.add(Do("left -= 1"), Do(f"if left < floor: {module.use(self.left)}[0] = left; return"))

    def ended(self, module: Module) -> None:
        """Store the rest of the budget."""
        module.add(Do(f"{module.use(self.left)}[0] = left"))

    def found(self, module: Module, where: Locals, sign: int) -> None:  # noqa: ARG002
        """Count the row; a row that has all variables except those replaced by counts occurs only once."""
        counted = _counted(module, {where[name] for name in self.shape.output})
        count, row = " * ".join(counted.values()) or "1", row_of(self.shape.output, where)
        # Then the row identifies the solution, so it is assigned instead of being looked up and counted.
        if {where[name] for name in self._loose} <= counted.keys():
            module.add(Do(f"found[{row.line.removeprefix('row = ')}] = {count}"))
        else:
            module.add(row, Do(f"found[row] = get(row, 0) + {count}"))

    @property
    def _loose(self) -> set[str]:
        """The variables that are not in rows."""
        nodes = {
            node for pattern in self.shape.patterns for node in (pattern.subject, pattern.predicate, pattern.object)
        }
        return {node.name for node in nodes if isinstance(node, Var)}.difference(self.shape.output, self.shape.keys)


def _counted(module: Module, used: set[str]) -> dict[str, str]:
    """Replace loops whose variables are not used any further by their lengths, which are returned by local."""
    # A worked example: for `SELECT ?x { ?x :p ?y . ?x :q ?z }` there are no loops over y and z: the row of x is
    # counted as often as the product of the numbers of both.
    counted, later = dict[str, str](), ""
    # Backwards, because whether a variable is used is known only from what follows its loop.
    for at, operation in reversed(list(enumerate(module.operations))):
        free = isinstance(operation, Scan) and operation.targets not in used and operation.targets not in later
        if isinstance(operation, Scan) and free and f"{operation.targets}{operation.source}".isidentifier():
            module.operations[at] = Test(operation.source)
            counted[operation.targets] = f"len({operation.source})"
        later += repr(operation)
    return counted
