"""The intermediate form of generated joins, and the one emitter that makes Python of it.

A function is a list of operations. ``Scan``, ``Probe`` and ``Test`` open a block that holds every later operation of
the list; a ``Nested`` is a list of its own, after which the depth is as before; a ``Cases`` has a list for each case.
``Do`` is a statement, ``Emit`` counts a solution. Joins of windows (``window_joins``), joins over standing facts
(``facts/joins``) and rules (``reasoning.closure``) are written as such lists.

A worked example: the pattern ``?s :p ?o . ?o :q ?v`` when a triple of ``:p`` enters, with its terms in s, p and o::

    Probe("r1_s", "o", "v0o")            for v0o in r1_s.get(o, ()):
    Test("f0(o, v0o)")                       if f0(o, v0o):
    Do("row = (s, v0o, )")                       row = (s, v0o, )
    Emit("found", "+ 1")                         n = found.get(row, 0) + 1
                                                 if n: found[row] = n
                                                 else: del found[row]

Generated text stands in ``linecache``: tracebacks show its lines, and ``inspect.getsource`` gives a function's text.
"""

import linecache
import re
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from itertools import count
from types import CodeType
from typing import Any, Final, TypeAlias

from streamgauge.model.algebra import Node, Var

Locals: TypeAlias = Mapping[str, str]
"""The local of the generated function that holds each variable."""

POSITIONS: Final = ("s", "p", "o")
"""The locals that hold the terms of the triple that a function is called with."""

SHOWN: Final = 1024
"""Generated texts that tracebacks can show; older ones are dropped."""


PIECE: Final = 1_000
"""Lines that CPython compiles at once, in about 15 ms, while no other thread runs."""

Nodes: TypeAlias = tuple[Node, Node, Node]
"""A triple pattern: subject, predicate, object."""

_WORD: Final = re.compile(r"\w+")


class JoinError(ValueError):
    """Joins that CPython does not compile: 20 loops or 100 indents in each other, or too many."""


@dataclass(slots=True)
class Scan:
    """A loop over all members of a collection."""

    targets: str
    source: str


@dataclass(slots=True)
class Probe:
    """A look-up of a key in an index: a loop over its values, or without ``targets`` whether it is there."""

    index: str
    key: str
    targets: str = ""


@dataclass(slots=True)
class Test:
    """A condition on what follows."""

    __test__ = False

    condition: str


@dataclass(slots=True)
class Do:
    """A statement; its own lines may be indented."""

    line: str


@dataclass(slots=True)
class Emit:
    """The local ``row`` is counted in a bag: ``count`` is ``+ 1``, ``- 1`` or ``+ NAME``."""

    bag: str
    count: str


@dataclass(slots=True)
class Nested:
    """Operations whose blocks end with them."""

    operations: "Operations"


@dataclass(slots=True)
class Cases:
    """The operations of the first case whose condition holds."""

    cases: "Sequence[tuple[str, Operations]]"


Operation: TypeAlias = Scan | Probe | Test | Do | Emit | Nested | Cases
Operations: TypeAlias = list[Operation]


@dataclass(slots=True)
class Function:
    """A function of the generated module."""

    name: str
    parameters: Sequence[str]
    operations: Operations = field(default_factory=list)


@dataclass
class Module:
    """Functions under construction, and the objects that they use by name.

    Operations go to the function that was begun last.
    """

    names: dict[str, Any] = field(default_factory=dict)
    functions: list[Function] = field(default_factory=list)
    operations: Operations = field(default_factory=list)
    _known: dict[object, str] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=count)

    def function(self, name: str, parameters: Sequence[str]) -> None:
        """Begin a function."""
        self.functions.append(Function(name, parameters))
        self.operations = self.functions[-1].operations

    def add(self, *operations: Operation) -> None:
        """Operations at the end of the function."""
        self.operations.extend(operations)

    @contextmanager
    def collected(self) -> Iterator[Operations]:
        """Operations that are added meanwhile go to a list of their own."""
        outer, self.operations = self.operations, []
        yield self.operations
        self.operations = outer

    @contextmanager
    def branch(self) -> Iterator[None]:
        """Operations that are added meanwhile are a branch."""
        with self.collected() as inner:
            yield
        if inner:
            self.add(Nested(inner))

    @contextmanager
    def part(self, argument: str) -> Iterator[None]:
        """Operations that are added meanwhile are a function of these locals."""
        name = f"part{next(self._numbers)}"
        with self.collected() as inner:
            yield
        if inner:
            self.functions.insert(1, Function(name, [argument], inner))
            self.add(Do(f"{name}({argument})"))

    def use(self, thing: object) -> str:
        """The name of an object: ``c0`` ... for a term, ``u0`` ... for anything else, equal terms under one name."""
        is_term = isinstance(thing, str)
        key = thing if is_term else id(thing)
        name = self._known.get(key)
        if name is None:
            name = self._known[key] = f"{'c' if is_term else 'u'}{len(self._known)}"
            self.names[name] = thing
        return name

    def term(self, node: Node, where: Locals) -> str:
        """The text for a node of a pattern: its local, or the name of the constant."""
        return where[node.name] if isinstance(node, Var) else self.use(node)

    def built(self) -> tuple[Any, ...]:
        """The functions; JoinError.

        Beyond ``PIECE`` lines they are compiled one by one, the last first, as functions call those after them.
        """
        texts = [_function(function) for function in self.functions]
        if sum(map(len, texts)) <= PIECE:
            return _made([line for text in texts for line in text], self.functions, self.names)
        namespace: dict[str, Any] = {}
        for function, text in zip(reversed(self.functions), reversed(texts), strict=True):
            # Only names that the text mentions become parameters: a function with thousands of them compiles slowly.
            words = set(_WORD.findall("\n".join(text)))
            names = {name: thing for name, thing in (self.names | namespace).items() if name in words}
            (namespace[function.name],) = _made(text, [function], names)
        return tuple([namespace[function.name] for function in self.functions])


@dataclass(frozen=True, slots=True)
class JoinCondition:
    """A condition on a solution: its variables, its test or the name of that, and for how many facts it counts."""

    variables: tuple[str, ...]
    test: object
    weight: int = 0


@dataclass
class PatternJoin(ABC):
    """Nested loops over triple patterns, under construction.

    ``where`` has the local of each variable that is known, ``waiting`` the conditions that are not tested yet.
    """

    module: Module
    patterns: Sequence[Nodes]
    where: dict[str, str]
    waiting: list[JoinCondition]

    def join(self, order: Iterable[int], new: int | None = None, locals_: Sequence[str | None] = (None,) * 3) -> None:
        """The loops over patterns in an order, for a triple that matches pattern ``new`` if there is one.

        Where an earlier pattern than ``new`` matches that triple too, the solution is counted there and passed over.
        ``given`` are the locals of the triple, ``None`` where ``where`` has them.
        """
        self.test()
        for number, at in enumerate(order):
            self.look_up(number, at)
            if new is not None and at < new:
                self._skip_same(self.patterns[at], self.patterns[new], locals_)
            self.test()

    @abstractmethod
    def look_up(self, number: int, at: int) -> None:
        """Open the blocks of pattern ``at``, which is joined as ``number``; its variables become locals."""

    def looked(self, count: str) -> None:  # noqa: B027 - joins of windows do not count
        """So many facts are about to be looked at; may end the function."""

    def test(self) -> None:
        """Test the conditions whose variables are known."""
        for test in [test for test in self.waiting if all(name in self.where for name in test.variables)]:
            self.waiting.remove(test)
            if test.weight:
                self.looked(str(test.weight))
            name = test.test if isinstance(test.test, str) else self.module.use(test.test)
            self.module.add(Test(f"{name}({', '.join(self.where[variable] for variable in test.variables)})"))

    def _skip_same(self, earlier: Nodes, own: Nodes, locals_: Sequence[str | None]) -> None:
        """Pass over the new triple."""
        same: list[str] = []
        for node, other, local in zip(earlier, own, locals_, strict=True):
            if isinstance(node, str) and isinstance(other, str):
                if node != other:
                    return
                continue
            left, right = self.module.term(node, self.where), local or self.module.term(other, self.where)
            if left != right:
                same.append(f"{left} == {right}")
        self.module.add(Test(f"not ({' and '.join(same)})" if same else "False"))


def _function(function: Function) -> list[str]:
    """The lines of a function."""
    lines = [f"    def {function.name}({', '.join(function.parameters)}):"]
    _write(lines, function.operations, "        ")
    return lines


def _made(lines: Sequence[str], functions: Sequence[Function], names: Mapping[str, Any]) -> tuple[Any, ...]:
    """The functions of a module whose function ``build`` is given the names and gives the functions; JoinError."""
    message = f"    return ({', '.join([function.name for function in functions])},)\n"
    space: dict[str, Any] = {}
    exec(_compiled("\n".join([f"def build({', '.join(names)}):", *lines, message])), space)
    built: tuple[Any, ...] = space["build"](**names)
    return built


def text_of(function: Any) -> str:
    """The generated modules of a function and of its parts, without those that ``linecache`` has dropped."""
    called = [cell.cell_contents for cell in function.__closure__ or ()]
    parts = [function for function in called if getattr(function, "__name__", "").startswith("part")]
    return "\n".join(["".join(linecache.getlines(function.__code__.co_filename)), *map(text_of, parts)])


def tuple_of(parts: Sequence[str]) -> str:
    """One expression as it is, several as a tuple."""
    return parts[0] if len(parts) == 1 else f"({', '.join(parts)})"


def row_of(names: Sequence[str], where: Locals) -> Do:
    """The local ``row`` with the values of variables."""
    return Do(f"row = ({''.join(where[name] + ', ' for name in names)})")


def _write(lines: list[str], operations: Operations, indent: str) -> None:
    """The lines of operations, each block one level deeper."""
    for operation in operations:
        match operation:
            case Do(line):
                lines.append(indent + line)
                continue
            case Emit(bag, count):
                lines.append(f"{indent}n = {bag}.get(row, 0) {count}")
                lines.append(f"{indent}if n: {bag}[row] = n")
                lines.append(f"{indent}else: del {bag}[row]")
                continue
            case Nested(inner):
                _write(lines, inner, indent)
                continue
            case Cases(cases):
                for number, (condition, inner) in enumerate(cases):
                    lines.append(f"{indent}{'elif' if number else 'if'} {condition}:")
                    _write(lines, inner, indent + "    ")
                continue
            case Test(condition):
                lines.append(f"{indent}if {condition}:")
            case Scan(targets, source):
                lines.append(f"{indent}for {targets} in {source}:")
            case Probe(index, key, targets):
                message = f"for {targets} in {index}.get({key}, ())" if targets else f"if {key} in {index}"
                lines.append(f"{indent}{message}:")
        indent += "    "


def _compiled(text: str) -> CodeType:
    """The code of a module, whose lines tracebacks show; JoinError."""
    code = _code(text)
    if code.co_filename not in linecache.cache:
        _show(code.co_filename, text)
    return code


@lru_cache(maxsize=2048)
def _code(text: str) -> CodeType:
    """The code of a module, compiled once: joins alike have the same text, as objects have numbers for names."""
    name = f"<joins {blake2b(text.encode(), digest_size=6).hexdigest()}>"
    try:
        return compile(text, name, "exec")
    except (SyntaxError, MemoryError, RecursionError) as error:
        raise JoinError(str(error)) from error


_names: Final = deque[str]()


def _show(name: str, text: str) -> None:
    """Keep the lines of a module for tracebacks."""
    while len(_names) >= SHOWN:
        linecache.cache.pop(_names.popleft(), None)
    _names.append(name)
    linecache.cache[name] = len(text), None, text.splitlines(keepends=True), name
