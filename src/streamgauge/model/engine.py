"""The interface that engines implement (docs/adding-an-engine.md)."""

from collections.abc import Callable
from typing import Protocol, TypeAlias

from streamgauge.model.answer import Answer
from streamgauge.model.element import StreamElement
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.semantics import Semantics

Emit: TypeAlias = Callable[[Answer], None]
"""Callback of an engine for each report; an engine in a process of its own calls it from another thread."""


class Session(Protocol):
    """A registered query, from ``start`` until ``close``."""

    def push(self, element: StreamElement) -> None:
        """Hand over the next element."""

    def advance(self, time: int) -> None:
        """Hand over a watermark: no element before ``time`` (ms) will follow, so all reports up to it are due."""

    def close(self) -> None:
        """End the input; no further report is due."""


class Engine(Protocol):
    """The functions of a module that is an engine."""

    def refuse(self, query: ContinuousQuery, semantics: Semantics) -> str | None:
        """The reason why this engine cannot answer the query under the semantics, as a sentence; ``None`` if it can."""

    def start(self, query: ContinuousQuery, semantics: Semantics, emit: Emit) -> Session:
        """Register a query and begin to answer it; reports go to ``emit``."""
