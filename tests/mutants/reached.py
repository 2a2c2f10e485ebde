"""Which tests reach which lines of the sources, and how long each takes: measured once, and again where code changes.

A function that has only moved keeps its tests. Those that reached one that has another text now, or is gone, are
measured again.
"""

import ast
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from hashlib import sha256
from itertools import accumulate
from pathlib import Path
from time import process_time
from typing import Any, TypeAlias

import pytest
from _pytest.runner import runtestprotocol
from coverage import Coverage

from tests.mutants.replaced import runs_at_import

LONGEST = 3.0
"""Seconds of CPU beyond which a test is not run for mutants."""

LARGEST = 1_000_000
"""Bytes beyond which a file of the tests is told by its size alone."""

Functions: TypeAlias = dict[str, tuple[int, int, str]]
"""The functions of a module and methods of its classes: first and last line, and a print of the text."""


@dataclass(slots=True)
class Reached:
    """``seconds`` (of CPU) by test, and for every file and line the tests that run it.

    ``failed`` are tests that fail without any mutant, ``prints`` are those of the tests' files, ``functions`` those of
    the sources by file.
    """

    seconds: dict[str, float] = field(default_factory=dict)
    lines: dict[str, dict[int, list[str]]] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)
    prints: dict[str, str] = field(default_factory=dict)
    functions: "dict[str, Functions]" = field(default_factory=dict)

    def fresh(self, prints: Mapping[str, str]) -> "Reached":
        """Without the tests whose files have changed, and those that failed; a file without a print is taken as is."""
        now = {**self.prints, **prints}
        same = {test for test in self.seconds if self.prints.get(file := file_of(test)) == now.get(file)}
        return replace(self.only(same - set(self.failed)), prints=now)

    def moved(self, sources: Mapping[str, str]) -> "Reached":
        """For other sources: the lines of a function where it is now, without the tests that reached a changed one."""
        now = {file: functions_of(source) for file, source in sources.items()}
        changed: set[str] = set()
        lines: dict[str, dict[int, list[str]]] = {}
        for file, tests_by_line in self.lines.items():
            before, after = self.functions.get(file, {}), now.get(file, {})
            for line, tests in tests_by_line.items():
                name = next((name for name, (first, last, _) in before.items() if first <= line <= last), None)
                if name is not None and (name not in after or after[name][2] != before[name][2]):
                    changed.update(tests)
                else:
                    shift = 0 if name is None else after[name][0] - before[name][0]
                    lines.setdefault(file, {})[line + shift] = tests
        return replace(replace(self, lines=lines, functions=now).only(self.seconds.keys() - changed), failed=[])

    def only(self, kept_tests: Set[str]) -> "Reached":
        """What some of the tests reach."""
        lines = {
            file: {line: [test for test in tests if test in kept_tests] for line, tests in line.items()}
            for file, line in self.lines.items()
        }
        seconds = {test: second for test, second in self.seconds.items() if test in kept_tests}
        return replace(self, seconds=seconds, lines=lines, failed=[])

    def add(self, other: "Reached") -> None:
        """What was measured beside."""
        self.seconds |= other.seconds
        self.failed += other.failed
        for file, lines in other.lines.items():
            mine = self.lines.setdefault(file, {})
            for line, tests in lines.items():
                mine[line] = [*mine.get(line, ()), *tests]

    def of(self, file: str, lines: Iterable[int]) -> list[str]:
        """The tests that run one of these lines of a file: the file's own first, then the fastest first."""
        known, own = self.lines.get(file, {}), f"/test_{Path(file).stem}"
        results = {test for line in lines for test in known.get(line, ()) if self.seconds[test] <= LONGEST}
        return sorted(results, key=lambda test: (own not in test.partition("::")[0], self.seconds[test], test))

    def tests(self, file: str, source: str, line: int) -> list[str]:
        """The tests for a mutant at a line: those that run its statement, else its function.

        What runs when the module is imported every test of the file runs.
        """
        statement, function, name = spans(source, line)
        if name is None or name in runs_at_import(source):
            own = [test for test in self.seconds if f"/test_{Path(file).stem}" in file_of(test)]
            return list(dict.fromkeys((*own, *self.of(file, self.lines.get(file, {})))))
        return self.of(file, statement) or self.of(file, function)

    def within(self, tests: Sequence[str], most: float) -> list[str]:
        """The first of these that take at most so many seconds in all."""
        so_far = accumulate(self.seconds[test] for test in tests)
        return [test for test, seconds in zip(tests, so_far, strict=True) if seconds <= most]

    def keep(self, path: Path) -> None:
        """Write it down, the tests of a line by their numbers."""
        path.parent.mkdir(parents=True, exist_ok=True)
        numbers = {test: number for number, test in enumerate(self.seconds)}
        lines = {
            file: {line: [numbers[test] for test in tests] for line, tests in line.items()}
            for file, line in self.lines.items()
        }
        path.write_text(json.dumps({**asdict(self), "lines": lines}), "utf-8")


def kept(path: Path) -> Reached:
    """What was written down; nothing where there is no such file."""
    if not path.is_file():
        return Reached()
    result = told(json.loads(path.read_text("utf-8")))
    tests = list(result.seconds)
    for lines in result.lines.values():
        lines.update({line: [tests[int(number)] for number in numbers] for line, numbers in lines.items()})
    return result


def told(said: Any) -> Reached:
    """What was measured, from JSON."""
    lines = {file: {int(line): tests for line, tests in item.items()} for file, item in said["lines"].items()}
    functions = {file: {name: tuple(at) for name, at in item.items()} for file, item in said["functions"].items()}
    return Reached(said["seconds"], lines, said["failed"], said["prints"], functions)


def functions_of(source: str) -> Functions:
    """The functions of a module's source, with those of its classes."""
    lines = source.splitlines()

    def below(nodes: Iterable[ast.AST], prefix: str) -> Iterator[tuple[str, tuple[int, int, str]]]:
        for node in nodes:
            if isinstance(node, ast.ClassDef):
                yield from below(node.body, f"{prefix}{node.name}.")
            elif isinstance(node, ast.FunctionDef):
                first = min((item.lineno for item in node.decorator_list), default=node.lineno)
                last = node.end_lineno or node.lineno
                text = "\n".join(lines[first - 1 : last])
                yield f"{prefix}{node.name}", (first, last, sha256(text.encode()).hexdigest()[:16])

    return dict(below(ast.parse(source).body, ""))


def spans(source: str, line: int) -> tuple[range, range, str | None]:
    """The lines of the innermost statement at a line, without statements inside, and of its function, with its name.

    The name is that of the outermost function or method, ``None`` outside of any.
    """
    statement = function = range(line, line + 1)
    name: str | None = None
    least = len(source)
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.stmt):
            continue
        whole = range(node.lineno, (node.end_lineno or node.lineno) + 1)
        if line in whole and isinstance(node, ast.FunctionDef):
            function, name = range(node.body[0].lineno, whole.stop), name or node.name
        inner = [item.lineno for item in ast.walk(node) if isinstance(item, ast.stmt) and item.lineno > node.lineno]
        own = range(node.lineno, min((whole.stop, *inner)))
        if line in own and len(own) <= least:
            statement, least = own, len(own)
    return statement, function, name


def measured(items: Sequence[pytest.Item], sources: Path, files: Iterable[str], say: Callable[[], None]) -> Reached:
    """Run the tests as they are, one after another."""
    reached = Reached()
    cover = Coverage(data_file=None, config_file=False, include=[str(sources / file) for file in files])
    cover.set_option("run:disable_warnings", ["no-data-collected"])  # some tests reach none of these files
    cover.start()
    for item, following in zip(items, [*items[1:], None], strict=True):
        say()
        cover.switch_context(item.nodeid)
        begun = process_time()
        reports = runtestprotocol(item, log=False, nextitem=following)
        reached.seconds[item.nodeid] = round(process_time() - begun, 4)
        if any(report.failed for report in reports):
            reached.failed.append(item.nodeid)
    cover.stop()
    data = cover.get_data()
    for path in data.measured_files():
        reached.lines[Path(path).relative_to(sources).as_posix()] = by_line(data.contexts_by_lineno(path))
    return reached


def file_of(test: str) -> str:
    """A test's file."""
    return test.partition("::")[0]


def print_of(folders: Sequence[Path]) -> str:
    """A number for the code under some folders without the tests' own files: another one when any of it changes."""
    paths = [path for folder in folders for path in folder.rglob("*.py") if not path.name.startswith("test_")]
    return _print([path for path in paths if "mutants" not in path.parts[-2:]])


def prints_of(tests: Iterable[str]) -> dict[str, str]:
    """The same for the file of each test with the data beside it."""
    files = sorted({file_of(test) for test in tests})
    return {file: _print([Path(file), *_data(str(Path(file).parent))]) for file in files}


@lru_cache(maxsize=100)
def _data(folder: str) -> tuple[Path, ...]:
    return tuple(path for path in Path(folder).rglob("*") if path.is_file() and path.suffix not in (".py", ".pyc"))


def _print(paths: Iterable[Path]) -> str:
    said = sha256()
    for path in sorted(paths):
        size = path.stat().st_size
        said.update(f"{path.name} {size} ".encode() + (path.read_bytes() if size <= LARGEST else b""))
    return said.hexdigest()[:16]


def by_line(contexts: Mapping[int, Sequence[str]]) -> dict[int, list[str]]:
    """Lines with the tests that run them, without what runs at import."""
    return {line: sorted({*tests} - {""}) for line, tests in contexts.items() if any(tests)}
