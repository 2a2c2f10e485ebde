"""Threads that import PySpark at once: one door into it, and nobody looks at a module that is half imported."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from streamgauge.spark.contexts import running_context

SRC = Path(__file__).parents[2] / "src" / "streamgauge"
LOOKING = {"spark/contexts.py"}
"""Files that use ``sys.modules``: the one that knows half-made modules."""

CONTEXT = "pyspark.core.context"


def looks(tree: ast.AST) -> bool:
    """Whether code uses ``sys.modules``, also by another name of it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr == "modules" and ast.unparse(node.value) in {"sys", "__sys"}:
            return True
        if isinstance(node, ast.ImportFrom) and node.module == "sys" and "modules" in {one.name for one in node.names}:
            return True
    return False


def entries(tree: ast.AST) -> Iterator[str]:
    """The first module of PySpark that each scope imports, type checkers' imports left out."""
    body = getattr(tree, "body", [])
    named: list[str] = []
    for node in body:
        if isinstance(node, ast.Import):
            named += [name.name for name in node.names]
        elif isinstance(node, ast.ImportFrom):
            named.append(node.module or "")
        elif not (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"):
            yield from entries(node)
    yield from [name for name in named if name.split(".")[0] == "pyspark"][:1]


def files(word: str) -> Iterator[tuple[str, ast.Module]]:
    """The files that have a word in them, parsed."""
    texts = ((str(file.relative_to(SRC)), file.read_text(encoding="utf-8")) for file in SRC.rglob("*.py"))
    return ((name, ast.parse(text)) for name, text in texts if word in text)


def test_one_file_looks_for_modules_that_are_imported_already():
    assert {name for name, tree in files("modules") if looks(tree)} == LOOKING


def test_every_entry_into_pyspark_is_the_same_module():
    """Of two threads that enter by ``pyspark`` and ``pyspark.sql`` at once, each imports half of what the other has."""
    ways = {name: set(entries(tree)) for name, tree in files("pyspark")}
    assert sum(map(bool, ways.values())) > 20
    assert {name: way for name, way in ways.items() if way - {"pyspark.sql"}} == {}


@pytest.mark.parametrize("code", ["import sys\nsys.modules.get('x')", "from sys import modules as known"])
def test_a_look_is_noticed(code):
    assert looks(ast.parse(code))


def half(monkeypatch: pytest.MonkeyPatch, *, initializing: bool, context: object) -> None:
    """Put a module of PySpark's context in place, complete or as another thread is importing it."""
    module = ModuleType(CONTEXT)
    module.__spec__ = ModuleSpec(CONTEXT, None)
    module.__spec__._initializing = initializing
    if not initializing:
        module.SparkContext = SimpleNamespace(_active_spark_context=context)
    monkeypatch.setitem(sys.modules, CONTEXT, module)


def test_a_module_that_is_being_imported_has_no_context(monkeypatch):
    half(monkeypatch, initializing=True, context=None)
    assert running_context() is None


def test_a_context_that_is_starting_is_not_there_yet(monkeypatch):
    half(monkeypatch, initializing=False, context=SimpleNamespace(_jsc=None))
    assert running_context() is None
    half(monkeypatch, initializing=False, context=SimpleNamespace())
    assert running_context() is None
    ready = SimpleNamespace(_jsc=object())
    half(monkeypatch, initializing=False, context=ready)
    assert running_context() is ready


def test_pyspark_is_not_imported_to_find_a_context(monkeypatch):
    monkeypatch.delitem(sys.modules, CONTEXT, raising=False)
    assert running_context() is None
    assert CONTEXT not in sys.modules


AT_ONCE = """import sys, threading, time
from importlib import import_module
failures = []
def enter(name):
    try: import_module(name)
    except BaseException as error: failures.append(error)
threads = [threading.Thread(target=enter, args=(name,)) for name in sys.argv[2:]]
for thread in threads:
    thread.start()
    time.sleep(float(sys.argv[1]))
for thread in threads: thread.join()
print(*failures, sep="\\n")
"""


@pytest.mark.slow
@pytest.mark.server
@pytest.mark.parametrize("gap", ["0", "0.05"])
def test_threads_enter_pyspark_by_two_of_our_modules_at_once(gap):
    names = ["streamgauge.spark.session", "streamgauge.oracle.expected.on_spark", "streamgauge.spark.exists"]
    done = subprocess.run([sys.executable, "-c", AT_ONCE, gap, *names], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
