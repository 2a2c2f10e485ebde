"""Generated joins over standing facts: one function a triple pattern, for a fact that comes or goes, and one to begin.

A solution that uses a fact in several places is found at the first of them only: pattern i joins with patterns j < i on
facts other than the new one. What is found is handed to ``Finish``; where the variables of its ``keys`` are bound, it
may say that nobody wants the rest.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from types import CodeType
from typing import Any, Final, Protocol

from streamgauge.compute.changes.conditions import PARTS, size_of, test, variables_of
from streamgauge.compute.standing.facts import Class, Facts, Property
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

    def begun(self, text: Text) -> None:
        """A function begins."""
        ...

    def bound(self, text: Text, where: Local) -> None:
        """All of ``keys`` are known; may open blocks."""
        ...

    def looked(self, text: Text, count: str) -> None:
        """So many facts are about to be looked at; may end the function."""
        ...

    def found(self, text: Text, where: Local, sign: str) -> None:
        """A solution came (``+``) or went (``-``)."""
        ...


@dataclass(frozen=True, slots=True)
class Reader:
    """What is to be told of facts that match a pattern."""

    pattern: TriplePattern
    enter: Callable[..., None]
    leave: Callable[..., None]


@dataclass(frozen=True, slots=True)
class Anchor:
    """A variable by whose values the solutions are parted; ``begin`` finds those with one value, given ``keys`` too.

    ``values`` gives all values that it may have, for values of ``keys``.
    """

    name: str
    values: Callable[..., Iterable[Term]]
    begin: Callable[..., None]


@dataclass(frozen=True, slots=True)
class Joined:
    """The functions of a basic graph pattern: its readers, and ``begin``, which finds what there is, given ``keys``.

    ``anchor`` makes what finds the same in parts; ``None`` where no variable is open.
    """

    readers: tuple[Reader, ...]
    begin: Callable[..., None]
    anchor: Callable[[], Anchor | None]


def joined(facts: Facts, patterns: Sequence[TriplePattern], conditions: Sequence[Expression], finish: Finish) -> Joined:
    """Compile the joins of patterns whose predicates are constants or variables, under conditions on solutions."""
    text = Text()
    plan = _Plan(facts, tuple(patterns), tuple((each, test(each, variables_of(each))) for each in conditions), finish)
    for at in range(len(patterns)):
        for name, sign in (("enter", "+"), ("leave", "-")):
            plan.triggered(text, at, f"{name}{at}", sign)
    plan.begun(text)
    made = _made(text)
    readers = tuple(Reader(each, made[f"enter{at}"], made[f"leave{at}"]) for at, each in enumerate(patterns))
    return Joined(readers, made["begin"], plan.anchor)


@lru_cache(maxsize=256)
def _code(source: str) -> CodeType:
    """A module's code, compiled once: shapes alike in several graphs have the same text."""
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


_POSITIONS: Final = ("s", "p", "o")


@dataclass(frozen=True)
class _Plan:
    """A basic graph pattern about to be compiled."""

    facts: Facts
    patterns: tuple[TriplePattern, ...]
    conditions: tuple[tuple[Expression, Callable[..., bool]], ...]
    finish: Finish

    def triggered(self, text: Text, at: int, name: str, sign: str) -> None:
        """The function for facts that match pattern ``at``; what it is given is ``parameters`` of it."""
        pattern = self.patterns[at]
        text.open(f"def {name}({', '.join(parameters(pattern))}):")
        self.finish.begun(text)
        where: dict[str, str] = {}
        _admit(text, pattern, where)
        steps = self._order([each for each in range(len(self.patterns)) if each != at], set(where))
        self._joins(text, where, steps, sign, at)
        text.depth = 0

    def begun(self, text: Text) -> None:
        """The function that finds all solutions for values of the keys."""
        keys = self.finish.keys
        where = {name: f"k{number}" for number, name in enumerate(keys)}
        self._begin(text, where)

    def _begin(self, text: Text, where: dict[str, str]) -> None:
        bound = set(where)
        text.open(f"def begin({', '.join(where.values())}):")
        self.finish.begun(text)
        self._joins(text, where, self._order(list(range(len(self.patterns))), bound), "+", None)
        text.depth = 0

    def anchor(self) -> Anchor | None:
        """Parts by the first variable that the joins would bind: by a subject before an object."""
        keys = self.finish.keys
        for at in self._order(list(range(len(self.patterns))), set(keys)):
            pattern = self.patterns[at]
            nodes = pattern.subject, pattern.object, pattern.predicate
            free = [node for node in nodes if isinstance(node, Var) and node.name not in keys]
            if free:
                name, text = free[0].name, Text()
                self._begin(text, {name: "a", **{key: f"k{number}" for number, key in enumerate(keys)}})
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

    def _joins(self, text: Text, where: dict[str, str], steps: Iterable[int], sign: str, trigger: int | None) -> None:
        waiting = list(self.conditions)
        told = self._look(text, where, waiting, False)
        for number, at in enumerate(steps):
            self._step(text, self.patterns[at], number, where)
            if trigger is not None and at < trigger:
                _another(text, self.patterns[at], self.patterns[trigger], where)
            told = self._look(text, where, waiting, told)
        self.finish.found(text, where, sign)

    def _look(
        self, text: Text, where: Local, waiting: list[tuple[Expression, Callable[..., bool]]], told: bool
    ) -> bool:
        """Test what can be tested now; whether the keys are known."""
        known = told or all(name in where for name in self.finish.keys)
        if known and not told:
            self.finish.bound(text, where)
        for condition, tested in list(waiting):
            names = variables_of(condition)
            if all(name in where for name in names):
                waiting.remove((condition, tested))
                if weight := size_of(condition) // PARTS:
                    self.finish.looked(text, str(weight))
                text.open(f"if {text.use(tested)}({', '.join(where[name] for name in names)}):")
        return known

    def _order(self, left: list[int], bound: set[str]) -> list[int]:
        """Most-bound patterns first; among those that begin, the one with the fewest facts."""
        order, bound = [], set(bound)
        while left:
            chosen = max(left, key=lambda at: self._rank(self.patterns[at], bound))
            left.remove(chosen)
            order.append(chosen)
            bound |= _variables(self.patterns[chosen])
        return order

    def _rank(self, pattern: TriplePattern, bound: set[str]) -> tuple[int, int, int, int]:
        open_ = [node for node in _nodes(pattern) if isinstance(node, Var) and node.name not in bound]
        known = sum(isinstance(node, str) or node.name in bound for node in (pattern.subject, pattern.object))
        joins = sum(isinstance(node, Var) and node.name in bound for node in _nodes(pattern))
        state = 2 if not open_ else 1 if joins else 0
        return state, -len(open_), known, -self._size(pattern)

    def _size(self, pattern: TriplePattern) -> int:
        if pattern.predicate == RDF_TYPE and isinstance(pattern.object, str):
            return len(self.facts.class_of(pattern.object).members)
        if isinstance(pattern.predicate, str) and pattern.predicate != RDF_TYPE:
            return len(self.facts.property_of(pattern.predicate).out)
        return 1 << 40

    def _step(self, text: Text, pattern: TriplePattern, number: int, where: dict[str, str]) -> None:
        """Look the pattern up by what is bound; its other variables become locals."""
        kind = kind_of(self.facts, pattern)
        if isinstance(kind, Class):
            self._member(text, kind, pattern, number, where)
        elif isinstance(kind, Property):
            self._pair(text, kind, pattern, number, where)
        else:
            self._any(text, pattern, number, where)

    def _member(self, text: Text, kind: Class, pattern: TriplePattern, number: int, where: dict[str, str]) -> None:
        members = text.use(kind.members)
        if _open(pattern.subject, where):
            local = _fresh(pattern.subject, f"v{number}s", where)
            self.finish.looked(text, f"len({members})")
            text.open(f"for {local} in {members}:")
        else:
            text.open(f"if {text.term(pattern.subject, where)} in {members}:")

    def _pair(self, text: Text, kind: Property, pattern: TriplePattern, number: int, where: dict[str, str]) -> None:
        out = text.use(kind.out)
        free = [_open(pattern.subject, where), _open(pattern.object, where)]
        if free == [False, False]:
            one, two = text.term(pattern.subject, where), text.term(pattern.object, where)
            text.open(f"if {two} in {out}.get({one}, ()):")
        elif free == [False, True]:
            text.add(f"x{number} = {out}.get({text.term(pattern.subject, where)}, ())")
            self.finish.looked(text, f"len(x{number})")
            text.open(f"for {_fresh(pattern.object, f'v{number}o', where)} in x{number}:")
        elif free == [True, False]:
            into, two = text.use(kind.backward()), text.term(pattern.object, where)
            text.add(f"x{number} = {into}.get({two}, ())")
            self.finish.looked(text, f"len(x{number})")
            text.open(f"for {_fresh(pattern.subject, f'v{number}s', where)} in x{number}:")
        else:
            same = pattern.subject == pattern.object
            one = _fresh(pattern.subject, f"v{number}s", where)
            self.finish.looked(text, f"len({out})")
            text.open(f"for {one}, x{number} in {out}.items():")
            self.finish.looked(text, f"len(x{number})")
            text.open(
                f"if {one} in x{number}:"
                if same
                else f"for {_fresh(pattern.object, f'v{number}o', where)} in x{number}:"
            )

    def _any(self, text: Text, pattern: TriplePattern, number: int, where: dict[str, str]) -> None:
        nodes = _nodes(pattern)
        given = ["None" if _open(node, where) else text.term(node, where) for node in nodes]
        locals_ = [f"v{number}{position}" for position in _POSITIONS]
        self.finish.looked(text, f"len({text.use(self.facts.classes)}) + len({text.use(self.facts.properties)})")
        text.open(f"for {', '.join(locals_)} in {text.use(self.facts.match)}({', '.join(given)}):")
        self.finish.looked(text, "1")
        for node, local in zip(nodes, locals_, strict=True):
            if isinstance(node, Var) and where.setdefault(node.name, local) in set(locals_) - {local}:
                text.open(f"if {where[node.name]} == {local}:")


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


def untell(facts: Facts, reader: Reader) -> None:
    """Let a reader be told no more."""
    kind = kind_of(facts, reader.pattern) or facts
    kind.enter.remove(reader.enter)
    kind.leave.remove(reader.leave)
