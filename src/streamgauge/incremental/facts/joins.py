"""Generated joins over standing facts: functions for a fact that comes or goes, one a triple pattern, and to begin.

A solution that uses a fact in several places is found at the first of them only: pattern i joins with patterns j < i on
facts other than the new one. What is found is handed to ``Finish``; where the variables of its ``keys`` are bound, it
may say that nobody wants the rest.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from types import CodeType
from typing import Any, Final, Protocol

from streamgauge.incremental.conditions import PARTS, size_of, test, variables_of
from streamgauge.incremental.facts.facts import Class, Facts, Property
from streamgauge.model.algebra import Expression, Node, TriplePattern, Var
from streamgauge.model.terms import RDF_TYPE, Term

Local = Mapping[str, str]
"""Which local of the generated function holds a variable."""


@dataclass
class Text:
    """Lines of Python under construction, and the objects that they use by name."""

    names: dict[str, Any] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    depth: int = 0
    known: dict[int, str] = field(default_factory=dict)

    def add(self, line: str) -> None:
        """A line at the present depth."""
        self.lines.append("    " * self.depth + line)

    def open(self, line: str) -> None:
        """A line that begins a block."""
        self.add(line)
        self.depth += 1

    def use(self, thing: object) -> str:
        """The name of an object."""
        name = self.known.get(id(thing))
        if name is None:
            name = self.known[id(thing)] = f"u{len(self.known)}"
            self.names[name] = thing
        return name

    def term(self, node: Node, where: Local) -> str:
        """What a term of a pattern is in the text."""
        return where[node.name] if isinstance(node, Var) else self.use(node)


class JoinError(ValueError):
    """A basic graph pattern that is too large to be compiled."""


class Finish(Protocol):
    """What is done with solutions."""

    @property
    def keys(self) -> tuple[str, ...]:
        """Variables whose values are known to begin with."""
        ...

    def bound(self, text: Text, where: Local) -> None:
        """All of ``keys`` are known; may open blocks."""
        ...

    def looked(self, text: Text, count: str) -> None:
        """So many facts are about to be looked at; may end the function."""
        ...

    def found(self, text: Text, where: Local, sign: int) -> None:
        """A solution came (1) or went (-1)."""
        ...


class Head(Finish, Protocol):
    """A finish of what changes with a fact."""

    def headed(self, text: Text, given: Sequence[str]) -> dict[str, str]:
        """A function ``run`` begins that is given a fact; the locals that hold ``keys`` that are known already."""
        ...


class Open(Finish, Protocol):
    """A finish of all solutions that there are, which may stop between two values of an anchor."""

    def begun(self, text: Text) -> None:
        """A function begins."""
        ...

    def parted(self, text: Text) -> None:
        """All solutions with one value are found; may end the function."""
        ...

    def ended(self, text: Text) -> None:
        """All solutions are found."""
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
class Reader:
    """What is told of facts that match a pattern."""

    pattern: TriplePattern
    enter: Callable[..., None]
    leave: Callable[..., None]


def readers(facts: Facts, patterns: Sequence[TriplePattern], finish: Head) -> Iterator[Reader]:
    """What is told of facts that match any of the patterns, and finds the solutions that come and go with them."""
    plan = planned(facts, patterns, ())
    for at, pattern in enumerate(patterns):
        yield Reader(pattern, *(plan.trigger(at, sign, finish) for sign in (1, -1)))


def planned(facts: Facts, patterns: Sequence[TriplePattern], conditions: Sequence[Expression]) -> "Plan":
    """The joins of patterns whose predicates are constants or variables, under conditions on solutions."""
    return Plan(facts, tuple(patterns), tuple((each, test(each, variables_of(each))) for each in conditions))


@lru_cache(maxsize=2048)
def _code(source: str) -> CodeType:
    """A module's code, compiled once: what it is about has numbers for names, so joins alike have the same text."""
    return compile(source, "<joins>", "exec")


def _made(text: Text) -> dict[str, Any]:
    """The functions of a text. JoinError where CPython has no room for so many loops and tests in each other."""
    body = "\n".join("    " + line for line in text.lines)
    space: dict[str, Any] = {}
    try:
        exec(_code(f"def build({', '.join(text.names)}):\n{body}\n    return locals()\n"), space)
    except (SyntaxError, MemoryError, RecursionError) as error:
        raise JoinError("a group of that many triple patterns and conditions: put some of them into a group") from error
    made: dict[str, Any] = space["build"](**text.names)
    return made


_DEEP: Final = 80
_GUESS: Final = 4.0
"""Subjects of an object, as long as nobody has counted objects."""
_POSITIONS: Final = ("s", "p", "o")


@dataclass(frozen=True)
class Plan:
    """A basic graph pattern, each of whose functions is compiled when it is asked for.

    JoinError where a pattern is too large for that.
    """

    facts: Facts
    patterns: tuple[TriplePattern, ...]
    conditions: tuple[tuple[Expression, Callable[..., bool]], ...]

    @property
    def is_deep(self) -> bool:
        """Whether a function may have more blocks in each other than CPython compiles: four a pattern, and the rest."""
        return 4 * len(self.patterns) + len(self.conditions) > _DEEP

    def binds(self, at: int, names: Sequence[str]) -> bool:
        """Whether a fact that matches pattern ``at`` gives all these variables their values."""
        return _variables(self.patterns[at]).issuperset(names)

    def trigger(self, at: int, sign: int, finish: Head) -> Callable[..., None]:
        """Given a fact that matches pattern ``at`` (``parameters``): finds what comes (``sign`` 1) or goes (-1)."""
        pattern, text = self.patterns[at], Text()
        given = parameters(pattern)
        where = finish.headed(text, given)
        _admit(text, pattern, where)
        steps = self._order([each for each in range(len(self.patterns)) if each != at], set(where))
        self._joins(text, where, steps, sign, at, finish)
        run: Callable[..., None] = _made(text)["run"]
        return run

    def begin(self, finish: Open) -> Callable[..., None]:
        """Finds all solutions for values of the keys."""
        text, where = Text(), {name: f"k{number}" for number, name in enumerate(finish.keys)}
        text.open(f"def begin({', '.join(where.values())}):")
        finish.begun(text)
        self._all(text, where, finish)
        text.depth = 1
        finish.ended(text)
        begin: Callable[..., None] = _made(text)["begin"]
        return begin

    def _all(self, text: Text, where: dict[str, str], finish: Finish) -> None:
        self._joins(text, where, self._order(list(range(len(self.patterns))), set(where)), 1, None, finish)

    def anchor(self, finish: Open) -> Anchor | None:
        """Parts by the first variable that the joins would bind: by a subject before an object; ``None``: none is open.

        ``begin`` takes values out of the dict that it is given.
        """
        keys = finish.keys
        for at in self._order(list(range(len(self.patterns))), set(keys)):
            pattern = self.patterns[at]
            nodes = pattern.subject, pattern.object, pattern.predicate
            free = [node for node in nodes if isinstance(node, Var) and node.name not in keys]
            if free:
                name, text = free[0].name, Text()
                where = {key: f"k{number}" for number, key in enumerate(keys)}
                text.open(f"def begin({', '.join(('waiting', *where.values()))}):")
                finish.begun(text)
                text.open("while waiting:")
                text.add("a, _ = waiting.popitem()")
                finish.looked(text, "1")
                self._all(text, {name: "a", **where}, finish)
                text.depth = 2
                finish.parted(text)
                text.depth = 1
                finish.ended(text)
                return Anchor(name, self._values(pattern, name, keys), _made(text)["begin"])
        return None

    def _values(self, pattern: TriplePattern, name: str, keys: Sequence[str]) -> Callable[..., Iterable[Term]]:
        """All values that an open variable may have in a pattern, and maybe others, for values of the keys.

        An object is open only where the subject is none.
        """
        kind, facts = kind_of(self.facts, pattern), self.facts
        places = [keys.index(n.name) if isinstance(n, Var) and n.name in keys else None for n in _nodes(pattern)]
        is_subject = pattern.subject == Var(name)
        if isinstance(kind, Class):
            return lambda *_given: kind.members
        if isinstance(kind, Property) and is_subject:
            end = places[2]
            return lambda *given: kind.out if end is None else kind.backward().get(given[end], ())
        if is_subject and places[2] is None:
            return lambda *_given: facts.subjects()
        position = [node == Var(name) for node in _nodes(pattern)].index(True)

        def values(*given: Term) -> Iterable[Term]:
            known = [None if place is None else given[place] for place in places]
            fixed = pattern.predicate if isinstance(pattern.predicate, str) else known[1]
            return dict.fromkeys(triple[position] for triple in facts.match(known[0], fixed, known[2]))

        return values

    def _joins(
        self,
        text: Text,
        where: dict[str, str],
        steps: Iterable[int],
        sign: int,
        trigger: int | None,
        finish: Finish,
    ) -> None:
        waiting = list(self.conditions)
        told = _look(text, where, waiting, False, finish)
        for number, at in enumerate(steps):
            self._step(text, self.patterns[at], number, where, finish)
            if trigger is not None and at < trigger:
                _another(text, self.patterns[at], self.patterns[trigger], where)
            told = _look(text, where, waiting, told, finish)
        finish.found(text, where, sign)

    def _order(self, left: list[int], bound: set[str]) -> list[int]:
        """Most-bound patterns first; among those that begin, the one with the fewest facts."""
        order, bound = [], set(bound)
        while left:
            chosen = max(left, key=lambda at: self._rank(self.patterns[at], bound))
            left.remove(chosen)
            order.append(chosen)
            bound |= _variables(self.patterns[chosen])
        return order

    def _rank(self, pattern: TriplePattern, bound: set[str]) -> tuple[int, int, float, int, int]:
        open_ = [node for node in _nodes(pattern) if isinstance(node, Var) and node.name not in bound]
        known = sum(isinstance(node, str) or node.name in bound for node in (pattern.subject, pattern.object))
        joins = sum(isinstance(node, Var) and node.name in bound for node in _nodes(pattern))
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

    def _step(self, text: Text, pattern: TriplePattern, number: int, where: dict[str, str], finish: Finish) -> None:
        """Look the pattern up by what is bound; its other variables become locals."""
        kind = kind_of(self.facts, pattern)
        if isinstance(kind, Class):
            _member(text, kind, pattern, number, where, finish)
        elif isinstance(kind, Property):
            _pair(text, kind, pattern, number, where, finish)
        else:
            self._any(text, pattern, number, where, finish)

    def _any(self, text: Text, pattern: TriplePattern, number: int, where: dict[str, str], finish: Finish) -> None:
        nodes = _nodes(pattern)
        given = ["None" if _open(node, where) else text.term(node, where) for node in nodes]
        locals_ = [f"v{number}{position}" for position in _POSITIONS]
        finish.looked(text, f"len({text.use(self.facts.classes)}) + len({text.use(self.facts.properties)})")
        text.open(f"for {', '.join(locals_)} in {text.use(self.facts.match)}({', '.join(given)}):")
        finish.looked(text, "1")
        for node, local in zip(nodes, locals_, strict=True):
            if isinstance(node, Var) and where.setdefault(node.name, local) in set(locals_) - {local}:
                text.open(f"if {where[node.name]} == {local}:")


def _look(
    text: Text, where: Local, waiting: list[tuple[Expression, Callable[..., bool]]], told: bool, finish: Finish
) -> bool:
    """Test what can be tested now; whether the keys are known."""
    known = told or all(name in where for name in finish.keys)
    if known and not told:
        finish.bound(text, where)
    for condition, tested in list(waiting):
        names = variables_of(condition)
        if all(name in where for name in names):
            waiting.remove((condition, tested))
            if weight := size_of(condition) // PARTS:
                finish.looked(text, str(weight))
            text.open(f"if {text.use(tested)}({', '.join(where[name] for name in names)}):")
    return known


def kind_of(facts: Facts, pattern: TriplePattern) -> Class | Property | None:
    """What a pattern's facts are kept in; ``None`` when that is not one class or property."""
    if pattern.predicate == RDF_TYPE:
        return facts.class_of(pattern.object) if isinstance(pattern.object, str) else None
    return facts.property_of(pattern.predicate) if isinstance(pattern.predicate, str) else None


def parameters(pattern: TriplePattern) -> tuple[str, ...]:
    """What a reader of a pattern is given of a fact: of a class its member, of a property both ends, else all."""
    if not isinstance(pattern.predicate, str):
        return _POSITIONS
    if pattern.predicate != RDF_TYPE:
        return ("s", "o")
    return ("s",) if isinstance(pattern.object, str) else _POSITIONS


def _admit(text: Text, pattern: TriplePattern, where: dict[str, str]) -> None:
    """Bind the pattern's variables to what was given; constants and repeated variables are compared."""
    given = parameters(pattern)
    for node, local in zip(_nodes(pattern), _POSITIONS, strict=True):
        if local not in given:
            continue
        if isinstance(node, Var) and node.name not in where:
            where[node.name] = local
        else:
            text.open(f"if {local} == {text.term(node, where)}:")


def _another(text: Text, pattern: TriplePattern, own: TriplePattern, where: Local) -> None:
    """Pass over the new fact itself where an earlier pattern matches it too."""
    same = []
    for node, other in zip(_nodes(pattern), _nodes(own), strict=True):
        if isinstance(node, str) and isinstance(other, str):
            if node != other:
                return
        elif (left := text.term(node, where)) != (right := text.term(other, where)):
            same.append(f"{left} == {right}")
    text.open(f"if not ({' and '.join(same)}):" if same else "if False:")


def _member(
    text: Text, kind: Class, pattern: TriplePattern, number: int, where: dict[str, str], finish: Finish
) -> None:
    members = text.use(kind.members)
    if _open(pattern.subject, where):
        local = _fresh(pattern.subject, f"v{number}s", where)
        finish.looked(text, f"len({members})")
        text.open(f"for {local} in {members}:")
    else:
        text.open(f"if {text.term(pattern.subject, where)} in {members}:")


def _pair(
    text: Text, kind: Property, pattern: TriplePattern, number: int, where: dict[str, str], finish: Finish
) -> None:
    out = text.use(kind.out)
    free = [_open(pattern.subject, where), _open(pattern.object, where)]
    if free == [False, False]:
        one, two = text.term(pattern.subject, where), text.term(pattern.object, where)
        text.open(f"if {two} in {out}.get({one}, ()):")
    elif free == [False, True]:
        text.add(f"x{number} = {out}.get({text.term(pattern.subject, where)}, ())")
        finish.looked(text, f"len(x{number})")
        text.open(f"for {_fresh(pattern.object, f'v{number}o', where)} in x{number}:")
    elif free == [True, False]:
        into, two = text.use(kind.backward()), text.term(pattern.object, where)
        text.add(f"x{number} = {into}.get({two}, ())")
        finish.looked(text, f"len(x{number})")
        text.open(f"for {_fresh(pattern.subject, f'v{number}s', where)} in x{number}:")
    else:
        same = pattern.subject == pattern.object
        one = _fresh(pattern.subject, f"v{number}s", where)
        finish.looked(text, f"len({out})")
        text.open(f"for {one}, x{number} in {out}.items():")
        finish.looked(text, f"len(x{number})")
        text.open(
            f"if {one} in x{number}:" if same else f"for {_fresh(pattern.object, f'v{number}o', where)} in x{number}:"
        )


def _fresh(node: Node, local: str, where: dict[str, str]) -> str:
    if isinstance(node, Var):
        where[node.name] = local
    return local


def _open(node: Node, where: Local) -> bool:
    return isinstance(node, Var) and node.name not in where


def _nodes(pattern: TriplePattern) -> tuple[Node, Node, Node]:
    if not isinstance(pattern.predicate, Var | str):
        raise TypeError("a property path is not a triple pattern: normalise the query first")
    return pattern.subject, pattern.predicate, pattern.object


def _variables(pattern: TriplePattern) -> set[str]:
    return {node.name for node in _nodes(pattern) if isinstance(node, Var)}


def tell(facts: Facts, reader: Reader) -> None:
    """Let a reader be told from now on."""
    kind = kind_of(facts, reader.pattern) or facts
    kind.enter.append(reader.enter)
    kind.leave.append(reader.leave)
