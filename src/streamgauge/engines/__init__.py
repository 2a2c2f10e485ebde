"""Engines that can be put under test, a module or folder each; another package adds one by an entry point.

An engine is a module with ``refuse`` and ``start`` (DESIGN, section 5), and ``EVALUATOR`` when one of ours
computes its answers, which then may not judge it.
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

Emit: TypeAlias = Callable[[Answer], None]
"""What an engine calls with every report."""


class EngineError(ValueError):
    """An engine that is not here; the sentence lists those that are."""


class Session(Protocol):
    """A query that is being answered."""

    def push(self, element: StreamElement) -> None:
        """An element has come."""

    def advance(self, time: int) -> None:
        """Nothing earlier than ``time`` (ms) will come: report what is due up to here."""

    def close(self) -> None:
        """No more input; nothing further is due."""


class Engine(Protocol):
    """A module with these two functions is an engine."""

    def refuse(self, query: ContinuousQuery, semantics: Semantics) -> str | None:
        """``None``, or the sentence why this engine cannot answer the query under the semantics."""

    def start(self, query: ContinuousQuery, semantics: Semantics, emit: Emit) -> Session:
        """Begin to answer."""


def names() -> tuple[str, ...]:
    """The names of all engines, sorted."""
    return tuple(sorted(_modules()))


def load(name: str) -> Engine:
    """The engine of that name; EngineError lists the names there are."""
    modules = _modules()
    if name not in modules:
        raise EngineError(f"there is no engine {name!r}: there is {', '.join(sorted(modules))}")
    return cast(Engine, import_module(modules[name]))


def _modules() -> dict[str, str]:
    """Name -> module: the modules and folders beside this file, and entry points."""
    own = {module.name: f"{__name__}.{module.name}" for module in iter_modules(__path__)}
    return own | {point.name: point.value for point in entry_points(group=GROUP)}
