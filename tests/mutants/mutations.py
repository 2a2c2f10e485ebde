"""Mutants of the oracle's source: one line changed in one way, by mutmut's operators over libcst's trees.

mutmut itself mutates undecorated functions only and starts pytest anew for each mutant, so its operators are used, and
the mutants are tried here. Left alone is what decides no verdict:

- annotations, type aliases, decorators and docstrings;
- texts for people, that is string literals with a space in them, also where one is a constant or an argument;
- assertions: ``assert`` statements and the ``strict`` of ``zip``;
- the arguments of ``isinstance``, and defaults that are calls or functions, of parameters and of fields.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

import libcst as cst
from libcst.metadata import CodeRange, MetadataWrapper, PositionProvider
from mutmut.mutation.mutators import mutation_operators

from tests.mutants.mutant import Mutant, lines_of

_PLAIN_DEFAULTS: Final = (cst.Name, cst.BaseNumber, cst.BaseString)


@dataclass(frozen=True, slots=True)
class Change:
    """A node of a file and what takes its place."""

    line: int
    function: str
    old: cst.CSTNode
    new: cst.CSTNode
    place: CodeRange | None


class MutableFile:
    """A source file with all of its possible changes, by line."""

    def __init__(self, name: str, source: str) -> None:
        self.name, self.source = name, source
        wrapper = MetadataWrapper(cst.parse_module(source))
        self._tree = wrapper.module
        self._starts = [0, *accumulate(map(len, source.splitlines(keepends=True)))]
        changes = _Changes()
        wrapper.visit(changes)
        self.lines: dict[int, list[Change]] = {}
        for change in changes.found:
            self.lines.setdefault(change.line, []).append(change)

    def mutant(self, change: Change) -> Mutant | None:
        """The file with this change; ``None`` where that is not Python, or nothing has changed."""
        source = self._spliced(change) or self._replaced(change)
        try:
            compile(source, self.name, "exec")
        except SyntaxError:
            return None
        before, after = lines_of(self.source, source, "-"), lines_of(self.source, source, "+")
        if before == after:
            return None
        return Mutant(self.name, change.line, change.function, before, after, source)

    def _spliced(self, change: Change) -> str | None:
        """The text with the node's own exchanged; ``None`` where the tree does not tell where that is."""
        if change.place is None:
            return None
        first, last = (self._starts[item.line - 1] + item.column for item in (change.place.start, change.place.end))
        if self.source[first:last] != self._tree.code_for_node(change.old):
            return None
        return self.source[:first] + self._tree.code_for_node(change.new) + self.source[last:]

    def _replaced(self, change: Change) -> str:
        tree = self._tree.deep_replace(change.old, change.new)
        assert isinstance(tree, cst.Module)
        return tree.code


class _Changes(cst.CSTVisitor):
    """All changes of a module, in the order of its text."""

    METADATA_DEPENDENCIES = (PositionProvider,)

    def __init__(self) -> None:
        super().__init__()
        self.found: list[Change] = []
        self._lines: list[int] = [1]
        self._names: list[str] = []

    def on_visit(self, node: cst.CSTNode) -> bool:
        place = self.get_metadata(PositionProvider, node, None)
        self._lines.append(self._lines[-1] if place is None else place.start.line)
        if isinstance(node, cst.FunctionDef | cst.ClassDef):
            self._names.append(node.name.value)
        if _is_left_alone(node):
            return False
        self.found += [
            Change(self._line(node, new), ".".join(self._names), node, new, place)
            for kind, operator in mutation_operators
            if isinstance(node, kind)
            for new in operator(node)
            if not _drops(node, new)
        ]
        return True

    def _line(self, old: cst.CSTNode, new: cst.CSTNode) -> int:
        """Where a change shows: its node's line, or that of the case that a ``match`` no longer has."""
        if not (isinstance(old, cst.Match) and isinstance(new, cst.Match)):
            return self._lines[-1]
        (gone,) = set(old.cases) - set(new.cases)
        return int(self.get_metadata(PositionProvider, gone.body.body[0]).start.line)

    def on_leave(self, original_node: cst.CSTNode) -> None:
        self._lines.pop()
        if isinstance(original_node, cst.FunctionDef | cst.ClassDef):
            self._names.pop()


def _is_left_alone(node: cst.CSTNode) -> bool:
    match node:
        case cst.Annotation() | cst.Decorator() | cst.Assert() | cst.Import() | cst.ImportFrom():
            return True
        case cst.BaseString():
            return _is_text(node)
        case cst.Call(func=cst.Name(value="isinstance")):
            return True
        case cst.Arg(keyword=cst.Name(value="strict")):
            return True
        case cst.Param(default=default) if default is not None:
            return not isinstance(default, _PLAIN_DEFAULTS)
        case cst.Assign(targets=(cst.AssignTarget(target=cst.Name(value=name)),)) if _is_type(name):
            return True
        case cst.Assign(value=cst.BaseString() as value) | cst.AnnAssign(value=cst.BaseString() as value):
            return _is_text(value)
        case cst.AnnAssign(value=cst.Lambda()):
            return True
        case cst.AnnAssign(annotation=cst.Annotation(annotation=cst.Name(value="TypeAlias"))):
            return True
        case _:
            return False


def _is_text(node: cst.BaseString) -> bool:
    """Whether a string literal is for people: it has letters and a space, or goes over several lines."""
    match node:
        case cst.ConcatenatedString(left=left, right=right):
            return _is_text(left) or _is_text(right)
        case cst.SimpleString():
            return node.quote in ('"""', "'''") or _is_prose(node.raw_value)
        case cst.FormattedString(parts=parts):
            return _is_prose("".join(part.value for part in parts if isinstance(part, cst.FormattedStringText)))
        case _:
            return True


def _is_prose(text: str) -> bool:
    return " " in text and any(letter.isalpha() for letter in text)


def _is_type(name: str) -> bool:
    """Whether a name is written as a type's: an alias."""
    plain = name.lstrip("_")
    return plain[:1].isupper() and not plain.isupper()


def _drops(old: cst.CSTNode, new: cst.CSTNode) -> bool:
    """Whether a call is mutated in its ``strict`` or in a text for people only."""
    return isinstance(old, cst.Call) and isinstance(new, cst.Call) and set(_kept(old)) != set(_kept(new))


def _kept(call: cst.Call) -> Iterator[cst.CSTNode]:
    """The arguments that are left alone."""
    for arg in call.args:
        is_strict = arg.keyword is not None and arg.keyword.value == "strict"
        if is_strict or (isinstance(arg.value, cst.BaseString) and _is_text(arg.value)):
            yield arg.value
