"""The intermediate form of generated joins, and the emitter that turns it into Python.

A function is a list of operations. ``Scan``, ``Probe`` and ``Test`` open a block that contains all later operations of
the list; ``Nested`` is a list whose blocks end with it; ``Cases`` has a list per case. ``Do`` is a statement, ``Emit``
counts a solution. Joins of windows (``window_joins``), joins over standing facts (``facts/joins``) and rules
(``reasoning.closure``) are built as such lists.

A worked example: the pattern ``?s :p ?o . ?o :q ?v`` when a triple of ``:p`` enters, with its terms in s, p and o::

    Probe("r1_s", "o", "v0o")            for v0o in r1_s.get(o, ()):
    Test("f0(o, v0o)")                       if f0(o, v0o):
    Do("row = (s, v0o, )")                       row = (s, v0o, )
    Emit("found", "+ 1")                         n = found.get(row, 0) + 1
                                                 if n: found[row] = n
                                                 else: del found[row]

Generated text is registered in ``linecache``, so that tracebacks and ``inspect.getsource`` show it.
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
"""Maps variables to locals of the generated function."""

POSITIONS: Final = ("s", "p", "o")
"""The locals with the terms of the triple that is passed to a function."""

SHOWN: Final = 1024
"""Maximum generated texts in ``linecache``; older ones are dropped."""


PIECE: Final = 1_000
"""Maximum lines compiled at once: about 15 ms, during which no other thread runs."""

Nodes: TypeAlias = tuple[Node, Node, Node]
"""A triple pattern: subject, predicate, object."""

_WORD: Final = re.compile(r"\w+")


class JoinError(ValueError):
    """Joins that CPython does not compile: more than 20 nested loops or 100 indents, or too many."""


@dataclass(slots=True)
class Scan:
    """A loop over all members of a collection."""

    targets: str
    source: str


@dataclass(slots=True)
class Probe:
    """A look-up of a key in an index: a loop over its values, or without ``targets`` a test of membership."""

    index: str
    key: str
    targets: str = ""


@dataclass(slots=True)
class Test:
    """A condition on the operations that follow."""

    __test__ = False

    condition: str


@dataclass(slots=True)
class Do:
    """A statement that is generated as it stands."""

    line: str


@dataclass(slots=True)
class Emit:
    """Count the local ``row`` in a bag: ``count`` is ``+ 1``, ``- 1`` or ``+ NAME``."""

    bag: str
    count: str


@dataclass(slots=True)
class Nested:
    """Operations whose blocks end with the list."""

    operations: "Operations"


@dataclass(slots=True)
class Cases:
    """The operations of the first case that holds."""

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
    """Functions under construction, and the objects that they use, by name.

    Operations are added to the function that was begun last.
    """

    names: dict[str, Any] = field(default_factory=dict)
    functions: list[Function] = field(default_factory=list)
    operations: Operations = field(default_factory=list)
    _known: dict[object, str] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=count)

    def function(self, name: str, parameters: Sequence[str]) -> None:
        """Begin a function; later operations go into its body."""
        self.functions.append(Function(name, parameters))
        self.operations = self.functions[-1].operations

    def add(self, *operations: Operation) -> None:
        """Append operations to the function."""
        self.operations.extend(operations)

    @contextmanager
    def collected(self) -> Iterator[Operations]:
        """Collect the operations that are added in the block in a separate list."""
        outer, self.operations = self.operations, []
        yield self.operations
        self.operations = outer

    @contextmanager
    def branch(self) -> Iterator[None]:
        """Add the operations of the block as a nested branch."""
        with self.collected() as inner:
            yield
        if inner:
            self.add(Nested(inner))

    @contextmanager
    def part(self, argument: str) -> Iterator[None]:
        """Add the operations of the block as a function of these locals, and call it."""
        name = f"part{next(self._numbers)}"
        with self.collected() as inner:
            yield
        if inner:
            # After the entry function, ahead of the parts that it contains: ``built`` compiles from the end, so a part
            # is known to what calls it.
            self.functions.insert(1, Function(name, [argument], inner))
            self.add(Do(f"{name}({argument})"))

    def use(self, thing: object) -> str:
        """The name of an object: ``c0`` ... for terms, ``u0`` ... for others; equal terms share a name."""
        is_term = isinstance(thing, str)
        # By identity: tests and bags are equal by content or not hashable, but each is its own name.
        key = thing if is_term else id(thing)
        name = self._known.get(key)
        if name is None:
            name = self._known[key] = f"{'c' if is_term else 'u'}{len(self._known)}"
            self.names[name] = thing
        return name

    def term(self, node: Node, where: Locals) -> str:
        """The expression for a node of a pattern: its local, or the name of the constant."""
        return where[node.name] if isinstance(node, Var) else self.use(node)

    def built(self) -> tuple[Any, ...]:
        """Compile the functions; JoinError.

        Beyond ``PIECE`` lines they are compiled one by one, last first, because functions call those after them.
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
    """A condition on a solution: its variables, its test (or its name), and its cost in facts."""

    variables: tuple[str, ...]
    test: object
    weight: int = 0


@dataclass
class PatternJoin(ABC):
    """Builds nested loops over triple patterns.

    ``where`` maps bound variables to locals, ``waiting`` are the conditions to be tested.
    """

    module: Module
    patterns: Sequence[Nodes]
    where: dict[str, str]
    waiting: list[JoinCondition]

    def join(self, order: Iterable[int], new: int | None = None, locals_: Sequence[str | None] = (None,) * 3) -> None:
        """Emit the loops over patterns in an order, optionally for a triple that matches pattern ``new``.

        If an earlier pattern than ``new`` matches the same triple, the solution is counted there and skipped here.
        ``locals_`` are the locals of the triple, ``None`` for those in ``where``.
        """
        self.test()
        for number, at in enumerate(order):
            self.look_up(number, at)
            # Worked example: {?a :p ?b . ?b :p ?a} when (x p x) enters matches both patterns by itself. Started from
            # pattern 0 it gives the solution once; started from pattern 1 it would give it again, unless a match of
            # pattern 0 by the same triple is skipped.
            if new is not None and at < new:
                self._skip_same(self.patterns[at], self.patterns[new], locals_)
            self.test()

    @abstractmethod
    def look_up(self, number: int, at: int) -> None:
        """Open the blocks of pattern ``at``, the ``number``-th to be joined; its variables become locals."""

    def looked(self, count: str) -> None:  # noqa: B027 - joins of windows do not count
        """Charge ``count`` facts; may end the function."""

    def test(self) -> None:
        """Emit the tests of the conditions whose variables are bound."""
        for test in [test for test in self.waiting if all(name in self.where for name in test.variables)]:
            self.waiting.remove(test)
            if test.weight:
                self.looked(str(test.weight))
            name = test.test if isinstance(test.test, str) else self.module.use(test.test)
            self.module.add(Test(f"{name}({', '.join(self.where[variable] for variable in test.variables)})"))

    def _skip_same(self, earlier: Nodes, own: Nodes, locals_: Sequence[str | None]) -> None:
        """Skip the new triple."""
        same: list[str] = []
        for node, other, local in zip(earlier, own, locals_, strict=True):
            if isinstance(node, str) and isinstance(other, str):
                # Two different constants at one position: the patterns can never match the same triple.
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
    """Compile functions inside ``build``, whose parameters are the names that they use; JoinError."""
    message = f"    return ({', '.join([function.name for function in functions])},)\n"
    space: dict[str, Any] = {}
    exec(_compiled("\n".join([f"def build({', '.join(names)}):", *lines, message])), space)
    built: tuple[Any, ...] = space["build"](**names)
    return built


def text_of(function: Any) -> str:
    """The generated text of a function and its parts, as far as ``linecache`` still has it."""
    called = [cell.cell_contents for cell in function.__closure__ or ()]
    parts = [function for function in called if getattr(function, "__name__", "").startswith("part")]
    return "\n".join(["".join(linecache.getlines(function.__code__.co_filename)), *map(text_of, parts)])


def tuple_of(parts: Sequence[str]) -> str:
    """A single expression unchanged, several as a tuple."""
    return parts[0] if len(parts) == 1 else f"({', '.join(parts)})"


def row_of(names: Sequence[str], where: Locals) -> Do:
    """Assign the values of variables to the local ``row``."""
    return Do(f"row = ({''.join(where[name] + ', ' for name in names)})")


def _write(lines: list[str], operations: Operations, indent: str) -> None:
    """Append the lines of operations, indenting each block."""
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
    """Compile a module and register its text for tracebacks; JoinError."""
    # The code may be cached while its text was dropped from linecache.
    code = _code(text)
    if code.co_filename not in linecache.cache:
        _show(code.co_filename, text)
    return code


@lru_cache(maxsize=2048)
def _code(text: str) -> CodeType:
    """The code of a module, cached: alike joins have the same text, because names are numbered."""
    # Named by content, so that equal functions share an entry in linecache and tracebacks are the same in every run.
    name = f"<joins {blake2b(text.encode(), digest_size=6).hexdigest()}>"
    try:
        return compile(text, name, "exec")
    # CPython raises any of the three for code that is nested too deeply.
    except (SyntaxError, MemoryError, RecursionError) as error:
        raise JoinError(str(error)) from error


_names: Final = deque[str]()


def _show(name: str, text: str) -> None:
    """Register the lines of a module for tracebacks."""
    while len(_names) >= SHOWN:
        linecache.cache.pop(_names.popleft(), None)
    _names.append(name)
    linecache.cache[name] = len(text), None, text.splitlines(keepends=True), name
