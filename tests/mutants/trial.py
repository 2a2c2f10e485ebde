"""One mutant tried in a process of its own: a copy of this one, in which everything is imported and collected.

The tests that reach the mutant run there, the fastest first, until one fails. A test that takes many times what it
takes without the mutant has run into an endless loop; so has one that waits for long.
"""

import json
import os
import resource
import signal
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from select import select
from types import CodeType

import pytest
from _pytest.runner import runtestprotocol
from hypothesis import Phase, settings

from tests.mutants.mutant import Mutant
from tests.mutants.replaced import NotInFunctionsError, functions, replace, runs_at_import

TIMES = 10
"""A test may take so many times the CPU that it takes without a mutant,"""
MORE = 5.0
"""and so many seconds more."""
WAITED = 300.0
"""Seconds without a word after which a mutant is taken to wait for ever."""
MEMORY = 3 << 30
"""Bytes that a mutant may take beyond what it begins with."""

_TOO_LONG = (signal.SIGPROF, signal.SIGKILL)


@dataclass(frozen=True, slots=True)
class Tried:
    """How a mutant ended: ``caught`` by a test, ``timed out`` in one, or ``survived``; after how many tests."""

    ended: str
    by: str = ""
    ran: int = 0


Say = Callable[[], None]
"""A copy's sign that it goes on."""


def forked(work: Callable[[Say], object], silence: float = WAITED) -> object:
    """What some work gives in a copy of this process; ``Died`` where the copy ended without a word."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        _alone(work, writing)
    os.close(writing)
    said = bytearray()
    while select([reading], [], [], silence)[0]:
        more = os.read(reading, 1 << 16)
        if not more:
            break
        said += more
    else:
        os.kill(child, signal.SIGKILL)
    os.close(reading)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    if code:
        return Died(-code)
    given: object = json.loads(said)
    if isinstance(given, dict) and "broken" in given:
        raise RuntimeError(str(given["broken"]))
    return given


@dataclass(frozen=True, slots=True)
class Died:
    """A copy was ended by a signal."""

    signal: int


def _alone(work: Callable[[Say], object], writing: int) -> None:
    """The copy's life: it writes what the work gives and ends without any clean-up."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    try:
        given = work(lambda: _write(writing, b" "))
    except BaseException:
        given = {"broken": traceback.format_exc()}
    _write(writing, json.dumps(given).encode())
    os._exit(0)


def _write(file: int, text: bytes) -> None:
    while text:
        text = text[os.write(file, text) :]


class Trials:
    """Mutants tried with one session's tests."""

    def __init__(
        self, sources: Path, items: Sequence[pytest.Item], seconds: Mapping[str, float], options: Sequence[str]
    ) -> None:
        self._sources, self._seconds, self._options = sources, seconds, options
        self._live = functions(str(sources))
        self._items = {item.nodeid: item for item in items}

    def attempt(self, mutant: Mutant, before: str, tests: Sequence[str]) -> Tried:
        """Try one mutant of a file that was ``before``."""
        if not tests:
            return Tried("survived")
        said = forked(lambda say: self._hot(mutant, before, tests, say))
        if said == "cold":
            said = forked(lambda say: self._cold(mutant, tests, say))
        if isinstance(said, Died):
            return Tried("timed out" if said.signal in _TOO_LONG else "caught", f"signal {said.signal}")
        return Tried(*said)  # type: ignore[misc]

    def _hot(self, mutant: Mutant, before: str, tests: Sequence[str], say: Say) -> object:
        _bound_memory()
        if mutant.function.partition(".")[0] in runs_at_import(before):
            return "cold"
        try:
            replace(before, mutant.source, str(self._sources / mutant.file), self._live)
        except NotInFunctionsError:
            return "cold"
        items = [self._items[test] for test in tests]
        for ran, (item, following) in enumerate(zip(items, [*items[1:], None], strict=True), 1):
            say()
            self._bound_time(item.nodeid)
            try:
                failed = fails(item, following)
            except MemoryError:
                failed = True
            if failed:
                return "caught", item.nodeid, ran
        return "survived", "", len(items)

    def _cold(self, mutant: Mutant, tests: Sequence[str], say: Say) -> object:
        """As ``_hot``, with everything imported and collected anew."""
        _bound_memory()
        for name in [name for name in sys.modules if name.partition(".")[0] in ("streamgauge", "tests")]:
            if not name.startswith("tests.mutants"):
                del sys.modules[name]
        sys.meta_path.insert(0, _Mutated(mutant, self._sources))

        def begin(test: str) -> None:
            say()
            self._bound_time(test)

        only = Only(tests, begin)
        code = pytest.main([*self._options, "-x", *only.files], plugins=[only, Steady()])
        return ("survived" if code == pytest.ExitCode.OK else "caught"), only.latest, only.ran

    def _bound_time(self, test: str) -> None:
        """End this process when the test takes too long."""
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_PROF, TIMES * self._seconds.get(test, 0.0) + MORE)


def fails(item: pytest.Item, following: pytest.Item | None = None) -> bool:
    """Run one test, and whether it fails."""
    return any(report.failed for report in runtestprotocol(item, log=False, nextitem=following))


def _bound_memory() -> None:
    """Memory that is written to; address space that is only reserved, as V8 does it, has no bound."""
    status = Path("/proc/self/status").read_text("ascii")
    held = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmData"))
    resource.setrlimit(resource.RLIMIT_DATA, (held * 1024 + MEMORY, resource.RLIM_INFINITY))


class Steady:
    """A pytest plugin: drawn tests draw the same every time, and what failed is not made smaller."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> None:
        """After conftest.py, before the tests are imported."""
        phases = (Phase.explicit, Phase.generate)
        settings.register_profile("mutants", settings.default, derandomize=True, database=None, phases=phases)
        settings.load_profile("mutants")


class Only:
    """A pytest plugin: these tests in this order, the first that fails, and a bound on the time of each."""

    def __init__(self, tests: Sequence[str], begin: Callable[[str], None]) -> None:
        self._order = {test: place for place, test in enumerate(tests)}
        self._begin = begin
        self.files = list(dict.fromkeys(test.partition("::")[0] for test in tests))
        self.latest, self.ran = "import", 0

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave out the others."""
        items[:] = sorted((item for item in items if item.nodeid in self._order), key=lambda x: self._order[x.nodeid])

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Begin to count."""
        self.ran += 1
        self.latest = item.nodeid
        self._begin(item.nodeid)


class _Mutated(SourceFileLoader):
    """Finds and loads one module of the sources with a mutant's code."""

    def __init__(self, mutant: Mutant, sources: Path) -> None:
        name = mutant.file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        super().__init__(name, str(sources / mutant.file))
        self._source = mutant.source

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        return spec_from_file_location(name, self.path, loader=self) if name == self.name else None

    def get_code(self, fullname: str) -> CodeType:
        return compile(self._source, self.path, "exec")
