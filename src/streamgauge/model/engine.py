"""Engines: the contract of whatever answers continuous queries (DESIGN, section 5)."""

from collections.abc import Callable
from typing import Protocol, TypeAlias

from streamgauge.model.answer import Answer
from streamgauge.model.element import StreamElement
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.semantics import Semantics

Emit: TypeAlias = Callable[[Answer], None]
"""The function that an engine calls with every report, from a thread of its own if it has its own process."""


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
