"""Joins over standing facts: generated functions for inserted and deleted facts of each pattern, and for the start.

A solution that uses a fact in several patterns is counted at the first one only: pattern i joins with patterns j < i on
facts other than the new one. A ``Finish`` receives the solutions; once the variables of its ``keys`` are bound, it may
end the search because no subscription has these values.

A worked example: the rows of ``?x :in ?g . ?x :name ?n`` for takers with a constant at ``?g``, when the fact ``a
:name "A"`` is inserted, in the locals ``s`` and ``o``. The generated function is::

    def run(s, o):
        takers = None
        x0 = u2.get(s, ())                 the groups of a, by the index of :in from subjects
        u3[0] -= len(x0)                   the budget: facts that are read
        if u3[0] < 0 and u4(takers): return
        for v0o in x0:
            takers = u5.get(v0o)           the subscriptions to this group
            if takers:
                row = (s, o, )
                for found, owner in takers: ...
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Final

from streamgauge.incremental.conditions import PARTS, size_of, test, variables_of
from streamgauge.incremental.facts.facts import Class, Facts, Property
from streamgauge.incremental.ir import (
    POSITIONS,
    Do,
    JoinCondition,
    Locals,
    Module,
    Nodes,
    PatternJoin,
    Probe,
    Scan,
    Test,
)
from streamgauge.model.algebra import Expression, Node, TriplePattern, Var, nodes_of
from streamgauge.model.terms import RDF_TYPE, Term


class Finish:
    """Hooks that emit code around the joins and for solutions; by default they do nothing."""

    @property
    def keys(self) -> tuple[str, ...]:
        """Variables whose values are constants of the subscriptions."""
        return ()

    def headed(self, module: Module, parameters_: Sequence[str]) -> dict[str, str]:
        """Begin the function of a changed fact; returns the locals of ``keys`` that are bound already."""
        module.function("run", parameters_)
        return {}

    def begun(self, module: Module) -> None:
        """Begin the body of the function that finds all existing solutions."""

    def bound(self, module: Module, where: Locals) -> None:
        """All ``keys`` are bound; may open blocks."""

    def looked(self, module: Module, count: str) -> None:
        """Charge ``count`` facts; may end the function."""

    def found(self, module: Module, where: Locals, sign: int) -> None:
        """Emit a solution that was added (1) or removed (-1)."""

    def parted(self, module: Module) -> None:
        """One value of the anchor is done, which counts as one fact; may end the function."""

    def ended(self, module: Module) -> None:
        """All existing solutions have been found."""


@dataclass(frozen=True, slots=True)
class Anchor:
    """A variable by whose values the solutions are partitioned.

    ``begin`` takes an iterator of values, which it consumes as far as it gets, and the ``keys``; ``values`` returns all
    candidates, each once, for values of ``keys``.
    """

    name: str
    values: Callable[..., Iterable[Term]]
    begin: Callable[..., None]


def follow(facts: Facts, patterns: Sequence[TriplePattern], finish: Finish) -> None:
    """Have the finish take the solutions that come and go with facts from now on."""
    joins = fact_joins(facts, patterns)
    for at, pattern in enumerate(patterns):
        kind = kind_of(facts, pattern) or facts
        kind.enter.append(joins.trigger(at, 1, finish))
        kind.leave.append(joins.trigger(at, -1, finish))


def fact_joins(
    facts: Facts, patterns: Sequence[TriplePattern], conditions: Sequence[Expression] = (), keys: Sequence[str] = ()
) -> "FactJoins":
    """The joins of patterns with constant or variable predicates, under conditions on solutions.

    Searches for all solutions begin with values of the ``keys``.
    """
    tests = [(variables_of(condition), size_of(condition) // PARTS, condition) for condition in conditions]
    waiting = tuple(JoinCondition(names, test(condition, names), weight) for names, weight, condition in tests)
    return FactJoins(facts, tuple(patterns), waiting, tuple(keys))


_DEEP: Final = 80
_SAMPLE: Final = 32
"""Number of subjects sampled to estimate the objects per subject."""
_GUESS: Final = 4.0
"""Assumed subjects per object while there is no index from objects."""


@dataclass(frozen=True)
class FactJoins:
    """A basic graph pattern, whose functions are compiled on demand.

    JoinError if the pattern is too large.
    """

    facts: Facts
    patterns: tuple[TriplePattern, ...]
    conditions: tuple[JoinCondition, ...]
    keys: tuple[str, ...]

    @property
    def is_deep(self) -> bool:
        """Whether a function may exceed CPython's nesting limit: four blocks per pattern, and the conditions."""
        return 4 * len(self.patterns) + len(self.conditions) > _DEEP

    def binds(self, at: int, names: Sequence[str]) -> bool:
        """Whether a fact that matches pattern ``at`` binds all these variables."""
        return variables_in(self.patterns[at]).issuperset(names)

    def trigger(self, at: int, sign: int, finish: Finish) -> Callable[..., None]:
        """The function of a fact that matches pattern ``at``: finds added (``sign`` 1) or removed (-1) solutions."""
        pattern, module = self.patterns[at], Module()
        where = finish.headed(module, parameters(pattern))
        _admit(module, pattern, where)
        steps = self._order([index for index in range(len(self.patterns)) if index != at], set(where))
        self._join(module, where, finish).join(steps, at)
        finish.found(module, where, sign)
        run: Callable[..., None] = module.built()[0]
        return run

    def begin(self, finish: Finish, anchor: str | None = None) -> Callable[..., None]:
        """The function that finds all solutions for values of the keys, optionally by values of an ``anchor``."""
        module, where = Module(), {name: f"k{number}" for number, name in enumerate(self.keys)}
        module.function("begin", [*(() if anchor is None else ("waiting",)), *where.values()])
        finish.begun(module)
        with module.branch():
            if anchor is not None:
                where[anchor] = "a"
                module.add(Scan("a", "waiting"))
            with module.branch():
                self._join(module, where, finish).join(self._search if anchor is None else self._all(set(where)))
                finish.found(module, where, 1)
            if anchor is not None:
                finish.parted(module)
        finish.ended(module)
        begin: Callable[..., None] = module.built()[0]
        return begin

    def _join(self, module: Module, where: dict[str, str], finish: Finish) -> "_FactJoin":
        nodes = tuple(map(nodes_of, self.patterns))
        return _FactJoin(module, nodes, where, list(self.conditions), self.facts, self.patterns, finish)

    def anchor(self, finish: Finish) -> Anchor | None:
        """The anchor: the first variable that the joins would bind, subjects before objects; ``None`` if none is open.

        Each value that ``begin`` consumes counts as a fact.
        """
        keys = self.keys
        for at in self._search:
            pattern = self.patterns[at]
            nodes = pattern.subject, pattern.object, pattern.predicate
            free = [node for node in nodes if isinstance(node, Var) and node.name not in keys]
            if free:
                name = free[0].name
                return Anchor(name, self._values(pattern, name, keys), self.begin(finish, name))
        return None

    def _values(self, pattern: TriplePattern, name: str, keys: Sequence[str]) -> Callable[..., Iterable[Term]]:
        """A superset of the values of an open variable in a pattern, for values of the keys.

        An object is chosen only if the subject is not open.
        """
        kind, facts = kind_of(self.facts, pattern), self.facts
        places = [keys.index(n.name) if isinstance(n, Var) and n.name in keys else None for n in nodes_of(pattern)]
        is_subject = pattern.subject == Var(name)
        if isinstance(kind, Class):
            return lambda *_given: kind.members
        if isinstance(kind, Property) and is_subject:
            end = places[2]
            return lambda *arguments: kind.out if end is None else kind.backward().get(arguments[end], ())
        if is_subject and places[2] is None:
            return lambda *_given: facts.subjects()
        position = [node == Var(name) for node in nodes_of(pattern)].index(True)

        def values(*term: Term) -> Iterable[Term]:
            known = [None if place is None else term[place] for place in places]
            fixed = pattern.predicate if isinstance(pattern.predicate, str) else known[1]
            return dict.fromkeys(triple[position] for triple in facts.match(known[0], fixed, known[2]))

        return values

    def scanned(self) -> Class | Property | None:
        """The class or property that a search for all solutions scans; ``None`` if it looks up a key first."""
        first = self.patterns[self._search[0]]
        return None if variables_in(first).intersection(self.keys) else kind_of(self.facts, first)

    def looked_up(self, constants: Sequence[Term]) -> int:
        """The number of facts of the first pattern for values of the keys, if it looks one up."""
        pattern, known = self.patterns[self._search[0]], dict(zip(self.keys, constants, strict=True))
        kind = kind_of(self.facts, pattern)
        if not isinstance(kind, Property):
            return 0
        subject, _, end = (known.get(node.name) if isinstance(node, Var) else None for node in nodes_of(pattern))
        if subject is not None:
            return len(kind.out.get(subject, ()))
        return 0 if end is None else len(kind.backward().get(end, ()))

    @cached_property
    def _objects(self) -> dict[Property, float]:
        """Estimated objects per subject of each property, as of the first use."""
        return {}

    @cached_property
    def _search(self) -> list[int]:
        """The join order of a search for all solutions."""
        return self._all(set(self.keys))

    def _all(self, bound: set[str]) -> list[int]:
        return self._order(list(range(len(self.patterns))), bound)

    def _order(self, left: list[int], bound: set[str]) -> list[int]:
        """The join order: most-bound patterns first; among the first, the one with the fewest facts."""
        order, bound = [], set(bound)
        while left:
            chosen = max(left, key=lambda at: self._rank(self.patterns[at], bound)) if len(left) > 1 else left[0]
            left.remove(chosen)
            order.append(chosen)
            bound |= variables_in(self.patterns[chosen])
        return order

    def _rank(self, pattern: TriplePattern, bound: set[str]) -> tuple[int, int, float, int, int]:
        open_ = [node for node in nodes_of(pattern) if isinstance(node, Var) and node.name not in bound]
        known = sum(isinstance(node, str) or node.name in bound for node in (pattern.subject, pattern.object))
        joins = sum(isinstance(node, Var) and node.name in bound for node in nodes_of(pattern))
        state = 2 if not open_ else 1 if joins else 0
        # The greatest tuple wins: no open variable at all, then a pattern with a bound one, then few open variables,
        # few facts to expect, many known ends, and a small class or property.
        several = self._several(pattern, open_) if state == 1 else 0.0
        return state, -len(open_), -several, known, -self._size(pattern)

    def _several(self, pattern: TriplePattern, open_: Sequence[Var]) -> float:
        """Estimated facts of a property per bound end."""
        kind = kind_of(self.facts, pattern)
        if not isinstance(kind, Property) or len(open_) != 1:
            return 0.0
        if open_[0] == pattern.subject:
            if kind.into is None:  # it is made where it is needed: each costs every fact that comes
                return _GUESS
            return max(1.0, len(kind.out) / (len(kind.into) or 1))
        estimate = self._objects.get(kind)
        if estimate is None:
            # The first subjects of the dict are as good as any sample, and cost no pass over all of them.
            some = min(_SAMPLE, len(kind.out))
            estimate = self._objects[kind] = sum(map(len, islice(kind.out.values(), some))) / some if some else 1.0
        return estimate

    def _size(self, pattern: TriplePattern) -> int:
        if pattern.predicate == RDF_TYPE and isinstance(pattern.object, str):
            return len(self.facts.class_of(pattern.object).members)
        if isinstance(pattern.predicate, str) and pattern.predicate != RDF_TYPE:
            return len(self.facts.property_of(pattern.predicate).out)
        # A pattern of any predicate reads all facts, so it comes last.
        return 1 << 40


@dataclass
class _FactJoin(PatternJoin):
    """Builds joins with facts; ``finish`` charges facts, and may end a search once its keys are bound."""

    facts: Facts
    of: tuple[TriplePattern, ...]
    finish: Finish
    told: bool = False

    def looked(self, count: str) -> None:
        """Generate the charge for ``count`` facts."""
        self.finish.looked(self.module, count)

    def test(self) -> None:
        """Bind the keys once they are known, then test the conditions."""
        if not self.told and all(name in self.where for name in self.finish.keys):
            # ``bound`` may end the search because no subscription wants these values, which has to be tested once:
            # deeper in the nested loops the keys stay the same.
            self.told = True
            self.finish.bound(self.module, self.where)
        super().test()

    def look_up(self, number: int, at: int) -> None:
        """Look up the pattern by its bound nodes."""
        kind = kind_of(self.facts, self.of[at])
        if isinstance(kind, Class):
            self._member(kind, self.patterns[at][0], number)
        elif isinstance(kind, Property):
            self._pair(kind, self.patterns[at], number)
        else:
            self._any(self.patterns[at], number)

    def _member(self, kind: Class, subject: Node, number: int) -> None:
        members = self.module.use(kind.members)
        if self._is_open(subject):
            self._scan(subject, f"v{number}s", members)
        else:
            self.module.add(Probe(members, self.module.term(subject, self.where)))

    def _pair(self, kind: Property, nodes: Nodes, number: int) -> None:
        """A pattern of one property: by both ends, by one end, or all pairs."""
        (subject, _, end), module, values = nodes, self.module, f"x{number}"
        out = module.use(kind.out)
        match self._is_open(subject), self._is_open(end):
            case False, False:
                one, two = module.term(subject, self.where), module.term(end, self.where)
                module.add(Test(f"{two} in {out}.get({one}, ())"))
            case False, True:
                module.add(Do(f"{values} = {out}.get({module.term(subject, self.where)}, ())"))
                self._scan(end, f"v{number}o", values)
            case True, False:
                into = module.use(kind.backward())
                module.add(Do(f"{values} = {into}.get({module.term(end, self.where)}, ())"))
                self._scan(subject, f"v{number}s", values)
            case _:
                one = self._bind(subject, f"v{number}s")
                # The budget is charged before the loop, not in it: one subtraction for all facts that it is going to
                # read.
                self.looked(f"len({out})")
                module.add(Scan(f"{one}, {values}", f"{out}.items()"))
                # ``?x :p ?x``: both ends are the same variable, so that membership is tested rather than a second loop
                # opened.
                if subject == end:
                    self.looked(f"len({values})")
                    module.add(Probe(values, one))
                else:
                    self._scan(end, f"v{number}o", values)

    def _any(self, nodes: Nodes, number: int) -> None:
        """A pattern over several classes or properties."""
        use = self.module.use
        arguments = ["None" if self._is_open(node) else self.module.term(node, self.where) for node in nodes]
        locals_ = [f"v{number}{position}" for position in POSITIONS]
        self.looked(f"len({use(self.facts.classes)}) + len({use(self.facts.properties)})")
        self.module.add(Scan(", ".join(locals_), f"{use(self.facts.match)}({', '.join(arguments)})"))
        self.looked("1")
        for node, local in zip(nodes, locals_, strict=True):
            if isinstance(node, Var) and self.where.setdefault(node.name, local) in set(locals_) - {local}:
                self.module.add(Test(f"{self.where[node.name]} == {local}"))

    def _scan(self, node: Node, local: str, values: str) -> None:
        self.looked(f"len({values})")
        self.module.add(Scan(self._bind(node, local), values))

    def _bind(self, node: Node, local: str) -> str:
        if isinstance(node, Var):
            self.where[node.name] = local
        return local

    def _is_open(self, node: Node) -> bool:
        return isinstance(node, Var) and node.name not in self.where


def kind_of(facts: Facts, pattern: TriplePattern) -> Class | Property | None:
    """The class or property of a pattern's facts; ``None`` if there may be several."""
    if pattern.predicate == RDF_TYPE:
        return facts.class_of(pattern.object) if isinstance(pattern.object, str) else None
    return facts.property_of(pattern.predicate) if isinstance(pattern.predicate, str) else None


def parameters(pattern: TriplePattern) -> tuple[str, ...]:
    """The parameters of a listener: the member of a class, both ends of a property, or the whole triple."""
    if not isinstance(pattern.predicate, str):
        return POSITIONS
    if pattern.predicate != RDF_TYPE:
        return ("s", "o")
    return ("s",) if isinstance(pattern.object, str) else POSITIONS


def _admit(module: Module, pattern: TriplePattern, where: dict[str, str]) -> None:
    """Bind the pattern's variables to the parameters; constants and repeated variables are compared."""
    locals_ = parameters(pattern)
    for node, local in zip(nodes_of(pattern), POSITIONS, strict=True):
        if local not in locals_:
            continue
        if isinstance(node, Var) and node.name not in where:
            where[node.name] = local
        else:
            module.add(Test(f"{local} == {module.term(node, where)}"))


def variables_in(pattern: TriplePattern) -> set[str]:
    """The names of a pattern's variables."""
    return {node.name for node in nodes_of(pattern) if isinstance(node, Var)}
