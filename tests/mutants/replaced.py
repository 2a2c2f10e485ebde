"""A mutant's code in the place of a module's that is imported already: the functions themselves get other code.

So every name that a function was imported by, and every decorator around it, sees the mutant. What is not inside of a
function (constants, class bodies, defaults) was computed at import; then ``NotInFunctionsError`` asks for a new import.
"""

import ast
import gc
from collections.abc import Iterable, Iterator
from types import CodeType, FunctionType


class NotInFunctionsError(Exception):
    """A change that shows when the module is imported."""


def functions(sources: str) -> list[FunctionType]:
    """The live functions whose code is in files under a folder."""
    return [
        object_
        for object_ in gc.get_objects()
        if type(object_) is FunctionType and object_.__code__.co_filename.startswith(sources)
    ]


def runs_at_import(source: str) -> set[str]:
    """The names that a module calls while it is imported: what these do is done when the tests begin."""
    result, waiting = set[str](), list(ast.iter_child_nodes(ast.parse(source)))
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            result.add(node.func.id)
        if not isinstance(node, ast.FunctionDef | ast.Lambda):
            waiting += ast.iter_child_nodes(node)
    return result


def replace(before: str, after: str, file: str, live: Iterable[FunctionType]) -> int:
    """Put the changed code of a module's file into its functions among those that live: how many there were."""
    changed = list(_changed(compile(before, file, "exec"), compile(after, file, "exec"), outside=True))
    live = [item for item in live if item.__code__.co_filename == file]
    count = 0
    for old, new in changed:
        for function in live:
            if function.__code__ == old:
                _put(function, new)
                count += 1
    if not count:
        raise NotInFunctionsError("no live function has the code that changes")
    return count


def _put(function: FunctionType, code: CodeType) -> None:
    try:
        function.__code__ = code
    except ValueError as error:  # another number of free variables
        raise NotInFunctionsError(str(error)) from error


def _changed(old: CodeType, new: CodeType, outside: bool) -> Iterator[tuple[CodeType, CodeType]]:
    """The codes of functions that differ, those inside of others too; ``outside`` is that of a module or a class."""
    inner = [const for const in old.co_consts if isinstance(const, CodeType)]
    other = [const for const in new.co_consts if isinstance(const, CodeType)]
    own = _own(old) != _own(new)
    if outside and (own or len(inner) != len(other)):
        raise NotInFunctionsError(f"{old.co_qualname} computes something else when it is imported")
    below = [
        pair
        for one, two in zip(inner, other, strict=False)
        for pair in _changed(one, two, outside and one.co_flags & 2 == 0)
    ]
    yield from below
    if not outside and (own or below):
        yield old, new


def _own(code: CodeType) -> tuple[object, ...]:
    """What a code does, without the codes inside and without where its lines are."""
    constants = tuple((type(const), None if isinstance(const, CodeType) else repr(const)) for const in code.co_consts)
    names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
    return code.co_code, constants, names, code.co_argcount, code.co_kwonlyargcount, code.co_exceptiontable
