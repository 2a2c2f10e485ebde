"""Engines under test, one module or folder each; other packages add engines by an entry point.

An engine is a module with ``refuse`` and ``start`` (docs/adding-an-engine.md). It may also declare ``EVALUATOR``, the
component of this package that computes its answers (and must not judge them); ``PROFILES``, its semantics; ``DIALECT``,
the dialect that it reads; ``command()``, its program on the pipe; ``OPTIONS``, the keywords of its ``start`` that an
experiment may set, with their meaning.
"""

from collections.abc import Callable, Sequence
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from pkgutil import iter_modules
from typing import TypeAlias, cast

from streamgauge.formats.jvm import JvmError, jars, java_command
from streamgauge.formats.pipe import PipedSession, Task
from streamgauge.model.announced import entry_points
from streamgauge.model.engine import Emit, Engine, Session
from streamgauge.model.mistake import MistakeError
from streamgauge.model.phrases import offered, spelled
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.semantics import Semantics
from streamgauge.query import print_query
from streamgauge.query.instants import uses_now
from streamgauge.query.text import tokens
from streamgauge.query.versions import LATER_FUNCTIONS, LATER_SIGNS
from streamgauge.semantics.static_data import as_printed, with_matched_static

__all__ = [
    "Emit",
    "Engine",
    "EngineError",
    "EngineUnavailableError",
    "Session",
    "command",
    "dialect",
    "evaluator",
    "folder",
    "java_program",
    "load",
    "named",
    "names",
    "on_the_pipe",
    "option_names",
    "profiles",
    "sharding_of",
    "starter",
    "unprintable",
]

GROUP = "streamgauge.engines"


Refuse: TypeAlias = Callable[[ContinuousQuery, Semantics], str | None]
Start: TypeAlias = Callable[[ContinuousQuery, Semantics, Emit], Session]


class EngineError(MistakeError, ValueError):
    """An unknown engine; the sentence lists the known ones."""


class EngineUnavailableError(EngineError):
    """An engine that needs software which is not installed; the sentence says how to get it."""


def names() -> tuple[str, ...]:
    """The names of all engines, sorted."""
    return tuple(sorted(_modules()))


def named(name: str) -> str:
    """The spelling of an engine's name given in any case; EngineError."""
    if (name_ := spelled(name, names())) is None:
        raise EngineError(f"unknown engine {name!r}: {offered(name, names())}")
    return name_


def load(name: str) -> Engine:
    """The engine of a name, in any case; EngineError."""
    return cast(Engine, import_module(_modules()[named(name)]))


def evaluator(engine: Engine) -> str | None:
    """The component of this package that computes its answers; ``None`` for foreign engines."""
    return getattr(engine, "EVALUATOR", None)


def profiles(engine: Engine) -> tuple[str, ...] | None:
    """The names of its semantics; ``None`` if it decides by ``refuse`` alone."""
    return getattr(engine, "PROFILES", None)


def dialect(engine: Engine) -> str | None:
    """The dialect in which it reads queries; ``None`` for any supported one."""
    return getattr(engine, "DIALECT", None)


def command(engine: Engine) -> Sequence[str] | None:
    """The engine's program on the pipe, ``None`` for one in Python; EngineUnavailableError names missing software."""
    own = getattr(engine, "command", None)
    return None if own is None else cast(Sequence[str], own())


def option_names(engine: Engine) -> tuple[str, ...]:
    """The names of the options that an engine's ``start`` takes besides query, semantics and ``emit``."""
    return tuple(getattr(engine, "OPTIONS", ()))


def sharding_of(engine: Engine, queries: Sequence[tuple[ContinuousQuery, Semantics]], shards: int) -> str:
    """How an engine would distribute queries over ``shards`` processes, as a sentence; empty if it cannot."""
    sharding = getattr(engine, "sharding", None)
    return "" if sharding is None else cast(str, sharding(queries, shards))


def starter(refuse: Refuse, begin: Start) -> Start:
    """The ``start`` of an engine: ``begin``, but ValueError for a query that ``refuse`` refuses."""

    def start(query: ContinuousQuery, semantics: Semantics, emit: Emit) -> Session:
        if reason := refuse(query, semantics):
            raise ValueError(reason)
        return begin(query, semantics, emit)

    return start


def on_the_pipe(refuse: Refuse, command: Callable[[], Sequence[str]], dialect: str) -> Start:
    """The ``start`` of an engine that is a program on the pipe, in a new process."""

    def begin(query: ContinuousQuery, semantics: Semantics, emit: Emit) -> Session:
        query = with_matched_static(query, semantics)
        own = as_printed(query, semantics, dialect)
        return PipedSession(command(), Task(print_query(query, dialect), dialect, own, query.static), emit)

    return starter(refuse, begin)


def java_program(name: str, home: str, how: str, program: Path) -> Callable[[], list[str]]:
    """The ``command`` of an engine on the JVM: our Java program with the engine's jars, which the user provides.

    ``home`` is the environment variable that names their folder, ``how`` says how to get them.
    """

    def command() -> list[str]:
        """The engine's program on the pipe; EngineUnavailableError says how to get the jars, or a JDK."""
        try:
            return java_command(jars(home, how, name), (program,), f"streamgauge.{name}.{program.stem}")
        except JvmError as error:
            raise EngineUnavailableError(str(error)) from error

    return command


def unprintable(query: ContinuousQuery, dialect: str) -> str | None:
    """Why a query cannot be printed in a dialect, ``None`` if it can."""
    try:
        print_query(query, dialect)
    except ValueError as error:
        return str(error)
    return None


def beyond_sparql_11(query: ContinuousQuery, dialect: str) -> str | None:
    """Why a foreign engine for SPARQL 1.1 cannot answer a query: NOW(), or SPARQL 1.2; ``None`` if it can."""
    if uses_now(query.form):
        return "NOW() is the machine's clock in this engine, not the instant of a report: use `live`"
    if reason := unprintable(query, dialect):
        return reason
    text = print_query(query, dialect)
    for token, after in pairwise([*tokens(text), None]):
        assert token is not None
        # Names such as TRIPLE may also be those of variables or prefixes; only before a parenthesis are they functions.
        called = token.text.upper() in LATER_FUNCTIONS and after is not None and after.text == "("
        if called or token.text in LATER_SIGNS or (token.kind == "language" and "--" in token.text):
            return f"{token.text} is SPARQL 1.2, but this engine reads SPARQL 1.1: use `live`"
    return None


def folder(engine: Engine) -> Path | None:
    """The folder of an engine that has one, ``None`` for a single module."""
    paths = getattr(engine, "__path__", None)
    return Path(paths[0]) if paths else None


def _modules() -> dict[str, str]:
    """Name -> module: the modules and folders next to this file, and entry points."""
    own = {module.name: f"{__name__}.{module.name}" for module in iter_modules(__path__)}
    # Entry points last, so that another package may replace an engine of this one.
    return own | {point.name: point.value for point in entry_points(group=GROUP)}
