"""Joins over standing facts: a generated function for each triple pattern and fact that comes or goes, one to begin.

A solution that uses a fact in several places is counted at the first of them only: pattern i joins with patterns j < i
on facts other than the new one. A ``Finish`` takes the solutions; where the variables of its ``keys`` are bound, it may
end the search, as nobody subscribes with these values.

A worked example: the rows of ``?x :in ?g . ?x :name ?n`` for takers with a constant at ``?g``, when the fact ``a :name
"A"`` comes, in the locals ``s`` and ``o``. The generated function is::

    def run(s, o):
        takers = None
        x0 = u2.get(s, ())                 the groups of a, by the index of :in from subjects
        u3[0] -= len(x0)                   the budget: facts that are looked at
        if u3[0] < 0 and u4(takers): return
        for v0o in x0:
            takers = u5.get(v0o)           those that asked for this group
            if takers:
                row = (s, o, )
                for found, owner in takers: ...
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

from streamgauge.incremental.conditions import PARTS, size_of, test, variables_of
from streamgauge.incremental.facts.facts import Class, Facts, Property
from streamgauge.incremental.ir import POSITIONS, Do, Locals, Module, Probe, Scan, Test
from streamgauge.incremental.plan import nodes_of
from streamgauge.model.algebra import Expression, Node, TriplePattern, Var
from streamgauge.model.terms import RDF_TYPE, Term


class Finish(Protocol):
    """The operations that take solutions."""

    @property
    def keys(self) -> tuple[str, ...]:
        """Variables whose values are known to begin with."""
        ...

    def bound(self, module: Module, where: Locals) -> None:
        """All of ``keys`` are known; may open blocks."""
        ...

    def looked(self, module: Module, count: str) -> None:
        """So many facts are about to be looked at; may end the function."""
        ...

    def found(self, module: Module, where: Locals, sign: int) -> None:
        """Count a solution that came (1) or went (-1)."""
        ...


class ChangeFinish(Finish, Protocol):
    """A finish of the solutions that change with a fact."""

    def headed(self, module: Module, given: Sequence[str]) -> dict[str, str]:
        """Begin a function ``run`` that is given a fact; the locals that hold ``keys`` that are known already."""
        ...


class SearchFinish(Finish, Protocol):
    """A finish of all existing solutions, which may stop between two values of an anchor."""

    def begun(self, module: Module) -> None:
        """Begin the body of the function."""
        ...

    def ended(self, module: Module) -> None:
        """All solutions are found."""
        ...

    def parted(self, module: Module) -> None:
        """All solutions with one value are found; may end the function."""
        ...


@dataclass(frozen=True, slots=True)
class Anchor:
    """A variable by whose values the solutions are parted.

    ``begin`` is given values, of which it takes those that it gets to, and ``keys``; ``values`` gives all values that
    there may be, for values of ``keys``.
    """

    name: str
    values: Callable[..., Iterable[Term]]
    begin: Callable[..., None]


@dataclass(frozen=True, slots=True)
class FactListener:
    """Functions that are told of facts that match a pattern."""

    pattern: TriplePattern
    enter: Callable[..., None]
    leave: Callable[..., None]


def readers(facts: Facts, patterns: Sequence[TriplePattern], finish: ChangeFinish) -> Iterator[FactListener]:
    """One reader for each pattern: together they find the solutions that come and go with facts."""
    joins = fact_joins(facts, patterns, ())
    for at, pattern in enumerate(patterns):
        yield FactListener(pattern, *(joins.trigger(at, sign, finish) for sign in (1, -1)))


def fact_joins(facts: Facts, patterns: Sequence[TriplePattern], conditions: Sequence[Expression]) -> "FactJoins":
    """The joins of patterns whose predicates are constants or variables, under conditions on solutions."""
    return FactJoins(facts, tuple(patterns), tuple((each, test(each, variables_of(each))) for each in conditions))


_DEEP: Final = 80
_GUESS: Final = 4.0
"""Subjects of an object, as long as nobody has counted objects."""

_Condition: TypeAlias = tuple[Expression, Callable[..., bool]]


def _drained(waiting: dict[Term, None]) -> Iterator[Term]:
    """The keys of a dict, each taken out as it is given."""
    while waiting:
        yield waiting.popitem()[0]


@dataclass(frozen=True)
class FactJoins:
    """A basic graph pattern, each of whose functions is compiled when it is requested.

    JoinError where a pattern is too large for that.
    """

    facts: Facts
    patterns: tuple[TriplePattern, ...]
    conditions: tuple[_Condition, ...]

    @property
    def is_deep(self) -> bool:
        """Whether a function may have more blocks in each other than CPython compiles: four a pattern, and the rest."""
        return 4 * len(self.patterns) + len(self.conditions) > _DEEP

    def binds(self, at: int, names: Sequence[str]) -> bool:
        """Whether a fact that matches pattern ``at`` gives all these variables their values."""
        return variables_in(self.patterns[at]).issuperset(names)

    def trigger(self, at: int, sign: int, finish: ChangeFinish) -> Callable[..., None]:
        """Given a fact that matches pattern ``at`` (``parameters``): finds what comes (``sign`` 1) or goes (-1)."""
        pattern, module = self.patterns[at], Module()
        where = finish.headed(module, parameters(pattern))
        _admit(module, pattern, where)
        steps = self._order([each for each in range(len(self.patterns)) if each != at], set(where))
        self._joins(module, where, steps, sign, at, finish)
        run: Callable[..., None] = module.built()[0]
        return run

    def begin(self, finish: SearchFinish) -> Callable[..., None]:
        """Finds all solutions for values of the keys."""
        module, where = Module(), _key_locals(finish.keys)
        module.function("begin", list(where.values()))
        finish.begun(module)
        with module.branch():
            self._all(module, where, finish)
        finish.ended(module)
        begin: Callable[..., None] = module.built()[0]
        return begin

    def _all(self, module: Module, where: dict[str, str], finish: Finish) -> None:
        self._joins(module, where, self._order(list(range(len(self.patterns))), set(where)), 1, None, finish)

    def anchor(self, finish: SearchFinish) -> Anchor | None:
        """Parts by the first variable that the joins would bind: by a subject before an object; ``None``: none is open.

        ``begin`` takes values out of the dict that it is given.
        """
        keys = finish.keys
        for at in self._order(list(range(len(self.patterns))), set(keys)):
            pattern = self.patterns[at]
            nodes = pattern.subject, pattern.object, pattern.predicate
            free = [node for node in nodes if isinstance(node, Var) and node.name not in keys]
            if free:
                name = free[0].name
                return Anchor(name, self._values(pattern, name, keys), self._begin_parts(name, finish))
        return None

    def _begin_parts(self, name: str, finish: SearchFinish) -> Callable[..., None]:
        """Finds the solutions with the values of a variable that wait, value by value."""
        module, where = Module(), _key_locals(finish.keys)
        module.function("begin", ["waiting", *where.values()])
        finish.begun(module)
        with module.branch():
            module.add(Scan("a", f"{module.use(_drained)}(waiting)"))
            finish.looked(module, "1")
            with module.branch():
                self._all(module, {name: "a", **where}, finish)
            finish.parted(module)
        finish.ended(module)
        begin: Callable[..., None] = module.built()[0]
        return begin

    def _values(self, pattern: TriplePattern, name: str, keys: Sequence[str]) -> Callable[..., Iterable[Term]]:
        """All values that an open variable may have in a pattern, and maybe others, for values of the keys.

        An object is open only where the subject is none.
        """
        kind, facts = kind_of(self.facts, pattern), self.facts
        places = [keys.index(n.name) if isinstance(n, Var) and n.name in keys else None for n in nodes_of(pattern)]
        is_subject = pattern.subject == Var(name)
        if isinstance(kind, Class):
            return lambda *_given: kind.members
        if isinstance(kind, Property) and is_subject:
            end = places[2]
            return lambda *given: kind.out if end is None else kind.backward().get(given[end], ())
        if is_subject and places[2] is None:
            return lambda *_given: facts.subjects()
        position = [node == Var(name) for node in nodes_of(pattern)].index(True)

        def values(*given: Term) -> Iterable[Term]:
            known = [None if place is None else given[place] for place in places]
            fixed = pattern.predicate if isinstance(pattern.predicate, str) else known[1]
            return dict.fromkeys(triple[position] for triple in facts.match(known[0], fixed, known[2]))

        return values

    def _joins(
        self,
        module: Module,
        where: dict[str, str],
        steps: Iterable[int],
        sign: int,
        trigger: int | None,
        finish: Finish,
    ) -> None:
        waiting = list(self.conditions)
        told = _test(module, where, waiting, False, finish)
        for number, at in enumerate(steps):
            self._step(module, self.patterns[at], number, where, finish)
            if trigger is not None and at < trigger:
                earlier, own = nodes_of(self.patterns[at]), nodes_of(self.patterns[trigger])
                module.skip_same(earlier, own, where, (None, None, None))
            told = _test(module, where, waiting, told, finish)
        finish.found(module, where, sign)

    def _order(self, left: list[int], bound: set[str]) -> list[int]:
        """Most-bound patterns first; among those that begin, the one with the fewest facts."""
        order, bound = [], set(bound)
        while left:
            chosen = max(left, key=lambda at: self._rank(self.patterns[at], bound))
            left.remove(chosen)
            order.append(chosen)
            bound |= variables_in(self.patterns[chosen])
        return order

    def _rank(self, pattern: TriplePattern, bound: set[str]) -> tuple[int, int, float, int, int]:
        open_ = [node for node in nodes_of(pattern) if isinstance(node, Var) and node.name not in bound]
        known = sum(isinstance(node, str) or node.name in bound for node in (pattern.subject, pattern.object))
        joins = sum(isinstance(node, Var) and node.name in bound for node in nodes_of(pattern))
        state = 2 if not open_ else 1 if joins else 0
        several = self._several(pattern, open_) if state == 1 else 0.0
        return state, -len(open_), -several, known, -self._size(pattern)

    def _several(self, pattern: TriplePattern, open_: Sequence[Var]) -> float:
        """About how many facts there are where one end is bound: of a property, as many for each subject or object."""
        kind = kind_of(self.facts, pattern)
        if not isinstance(kind, Property) or len(open_) != 1:
            return 0.0
        if kind.into is None:  # it is made where it is needed: each costs every fact that comes
            return _GUESS if open_[0] == pattern.subject else 1.0
        subjects, objects = len(kind.out) or 1, len(kind.into) or 1
        return max(1.0, subjects / objects if open_[0] == pattern.subject else objects / subjects)

    def _size(self, pattern: TriplePattern) -> int:
        if pattern.predicate == RDF_TYPE and isinstance(pattern.object, str):
            return len(self.facts.class_of(pattern.object).members)
        if isinstance(pattern.predicate, str) and pattern.predicate != RDF_TYPE:
            return len(self.facts.property_of(pattern.predicate).out)
        return 1 << 40

    def _step(self, module: Module, pattern: TriplePattern, number: int, where: dict[str, str], finish: Finish) -> None:
        """Look the pattern up by what is bound; its other variables become locals."""
        kind = kind_of(self.facts, pattern)
        if isinstance(kind, Class):
            _member(module, kind, pattern, number, where, finish)
        elif isinstance(kind, Property):
            _pair(module, kind, pattern, number, where, finish)
        else:
            self._any(module, pattern, number, where, finish)

    def _any(self, module: Module, pattern: TriplePattern, number: int, where: dict[str, str], finish: Finish) -> None:
        """A pattern over several classes or properties."""
        nodes, use = nodes_of(pattern), module.use
        given = ["None" if _is_open(node, where) else module.term(node, where) for node in nodes]
        locals_ = [f"v{number}{position}" for position in POSITIONS]
        finish.looked(module, f"len({use(self.facts.classes)}) + len({use(self.facts.properties)})")
        module.add(Scan(", ".join(locals_), f"{use(self.facts.match)}({', '.join(given)})"))
        finish.looked(module, "1")
        for node, local in zip(nodes, locals_, strict=True):
            if isinstance(node, Var) and where.setdefault(node.name, local) in set(locals_) - {local}:
                module.add(Test(f"{where[node.name]} == {local}"))


def _key_locals(keys: Sequence[str]) -> dict[str, str]:
    return {name: f"k{number}" for number, name in enumerate(keys)}


def _test(module: Module, where: Locals, waiting: list[_Condition], told: bool, finish: Finish) -> bool:
    """Test the conditions whose variables are bound; whether the keys are known."""
    known = told or all(name in where for name in finish.keys)
    if known and not told:
        finish.bound(module, where)
    for condition, tested in list(waiting):
        names = variables_of(condition)
        if all(name in where for name in names):
            waiting.remove((condition, tested))
            if weight := size_of(condition) // PARTS:
                finish.looked(module, str(weight))
            module.add(Test(f"{module.use(tested)}({', '.join(where[name] for name in names)})"))
    return known


def kind_of(facts: Facts, pattern: TriplePattern) -> Class | Property | None:
    """The class or property that keeps a pattern's facts; ``None`` when there are several."""
    if pattern.predicate == RDF_TYPE:
        return facts.class_of(pattern.object) if isinstance(pattern.object, str) else None
    return facts.property_of(pattern.predicate) if isinstance(pattern.predicate, str) else None


def parameters(pattern: TriplePattern) -> tuple[str, ...]:
    """The parameters of a reader of a pattern: the member of a class, both ends of a property, or the whole triple."""
    if not isinstance(pattern.predicate, str):
        return POSITIONS
    if pattern.predicate != RDF_TYPE:
        return ("s", "o")
    return ("s",) if isinstance(pattern.object, str) else POSITIONS


def _admit(module: Module, pattern: TriplePattern, where: dict[str, str]) -> None:
    """Bind the pattern's variables to the parameters; constants and repeated variables are compared."""
    given = parameters(pattern)
    for node, local in zip(nodes_of(pattern), POSITIONS, strict=True):
        if local not in given:
            continue
        if isinstance(node, Var) and node.name not in where:
            where[node.name] = local
        else:
            module.add(Test(f"{local} == {module.term(node, where)}"))


def _member(
    module: Module, kind: Class, pattern: TriplePattern, number: int, where: dict[str, str], finish: Finish
) -> None:
    members = module.use(kind.members)
    if _is_open(pattern.subject, where):
        local = _bind(pattern.subject, f"v{number}s", where)
        finish.looked(module, f"len({members})")
        module.add(Scan(local, members))
    else:
        module.add(Probe(members, module.term(pattern.subject, where)))


def _pair(
    module: Module, kind: Property, pattern: TriplePattern, number: int, where: dict[str, str], finish: Finish
) -> None:
    """A pattern of one property: by both ends, by one of them, or all pairs."""
    out, values = module.use(kind.out), f"x{number}"
    match _is_open(pattern.subject, where), _is_open(pattern.object, where):
        case False, False:
            one, two = module.term(pattern.subject, where), module.term(pattern.object, where)
            module.add(Test(f"{two} in {out}.get({one}, ())"))
        case False, True:
            module.add(Do(f"{values} = {out}.get({module.term(pattern.subject, where)}, ())"))
            finish.looked(module, f"len({values})")
            module.add(Scan(_bind(pattern.object, f"v{number}o", where), values))
        case True, False:
            into, two = module.use(kind.backward()), module.term(pattern.object, where)
            module.add(Do(f"{values} = {into}.get({two}, ())"))
            finish.looked(module, f"len({values})")
            module.add(Scan(_bind(pattern.subject, f"v{number}s", where), values))
        case _:
            one = _bind(pattern.subject, f"v{number}s", where)
            finish.looked(module, f"len({out})")
            module.add(Scan(f"{one}, {values}", f"{out}.items()"))
            finish.looked(module, f"len({values})")
            if pattern.subject == pattern.object:
                module.add(Probe(values, one))
            else:
                module.add(Scan(_bind(pattern.object, f"v{number}o", where), values))


def _bind(node: Node, local: str, where: dict[str, str]) -> str:
    if isinstance(node, Var):
        where[node.name] = local
    return local


def _is_open(node: Node, where: Locals) -> bool:
    return isinstance(node, Var) and node.name not in where


def variables_in(pattern: TriplePattern) -> set[str]:
    """The names of a pattern's variables."""
    return {node.name for node in nodes_of(pattern) if isinstance(node, Var)}


def tell(facts: Facts, reader: FactListener) -> None:
    """Let a reader be told from now on."""
    kind = kind_of(facts, reader.pattern) or facts
    kind.enter.append(reader.enter)
    kind.leave.append(reader.leave)
