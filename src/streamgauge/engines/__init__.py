"""Engines that can be put under test, a module or folder each; others come by the entry point ``streamgauge.engines``.

A module (or any object) with ``refuse`` and ``start`` is an engine.
"""

from collections.abc import Callable
from importlib import import_module
from importlib.metadata import entry_points
from pkgutil import iter_modules
from typing import Protocol, TypeAlias, cast

from streamgauge.model.answer import Answer
from streamgauge.model.element import StreamElement
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.semantics import Semantics

GROUP = "streamgauge.engines"
"""The entry point group by which other packages add engines."""

Emit: TypeAlias = Callable[[Answer], None]


class Session(Protocol):
    """A running query."""

    def push(self, element: StreamElement) -> None:
        """Take in an element."""
        ...

    def advance(self, time: int) -> None:
        """Nothing earlier than ``time`` (ms) will come: report what is due up to here."""
        ...

    def close(self) -> None:
        """No more input comes and nothing further is due."""
        ...


class Engine(Protocol):
    """What can answer continuous queries."""

    def refuse(self, query: ContinuousQuery, semantics: Semantics) -> str | None:
        """The sentence why this engine cannot answer the query under the semantics, ``None`` when it can."""
        ...

    def start(self, query: ContinuousQuery, semantics: Semantics, emit: Emit) -> Session:
        """Register the query; answers go to ``emit``."""
        ...


class UnknownEngineError(ValueError):
    """No engine has this name; the message lists those that there are."""


def names() -> tuple[str, ...]:
    """The names of all engines, sorted: the modules of this package and the entry points of others."""
    return tuple(sorted({*_own(), *(point.name for point in entry_points(group=GROUP))}))


def load(name: str) -> Engine:
    """The engine of this name; UnknownEngineError lists the known ones."""
    if name in _own():
        return cast(Engine, import_module(f"{__name__}.{name}"))
    for point in entry_points(group=GROUP):
        if point.name == name:
            return cast(Engine, point.load())
    raise UnknownEngineError(f"no engine is called {name}: the engines are {', '.join(names())}")


def _own() -> tuple[str, ...]:
    return tuple(module.name for module in iter_modules(__path__) if not module.name.startswith("_"))
