"""An engine in this process under test: one session for all queries where the engine has such, else one each."""

import os
from collections.abc import Callable, Sequence

from streamgauge.engines import evaluator
from streamgauge.harness.system import SystemUnderTest
from streamgauge.model.answer import Answer
from streamgauge.model.element import StreamElement
from streamgauge.model.engine import Emit, Engine, Session
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.semantics import Semantics
from streamgauge.semantics.refusal import RefusedError


class EngineSystem:
    """Sessions of an engine, which begin once all queries are there; answers come in the thread that feeds."""

    def __init__(self, engine: Engine) -> None:
        self.processes: Sequence[int] = (os.getpid(),)
        self.evaluator = evaluator(engine)
        self._engine = engine
        self._queries: list[tuple[ContinuousQuery, Semantics, Emit]] = []
        self._sessions: list[Session] | None = None

    def start(self, semantics: Semantics) -> None:
        """Take queries under these semantics."""
        self._semantics = semantics

    def subscribe(self, query: ContinuousQuery, receive: Emit) -> None:
        """Register a query; RefusedError says why the engine does not take it, or that the stream has begun."""
        if self._sessions is not None:
            raise RefusedError("queries are asked before the stream begins")
        if reason := self._engine.refuse(query, self._semantics):
            raise RefusedError(reason)
        self._queries.append((query, self._semantics, receive))

    def unsubscribe(self, query: ContinuousQuery) -> None:
        """Forget a query that has not begun; one that has goes on with the stream."""
        self._queries = [each for each in self._queries if each[0] is not query]

    def feed(self, element: StreamElement) -> None:
        """Push an element to all sessions."""
        for each in self._begun():
            each.push(element)

    def advance(self, time: int) -> None:
        """Advance all sessions to a time, ms."""
        for each in self._begun():
            each.advance(time)

    def settle(self) -> None:
        """Begin the sessions; answers come while elements are pushed."""
        self._begun()

    def close(self) -> None:
        """End all sessions."""
        for each in self._sessions or ():
            each.close()

    def _begun(self) -> list[Session]:
        if self._sessions is None:
            together: Callable[..., Session] | None = getattr(self._engine, "start_all", None)
            if together is not None and self._queries:
                self._sessions = [together(self._queries)]
            else:
                self._sessions = [self._engine.start(*each) for each in self._queries]
        return self._sessions


_CONTRACT: type[SystemUnderTest[Semantics, ContinuousQuery, StreamElement, Answer]] = EngineSystem
