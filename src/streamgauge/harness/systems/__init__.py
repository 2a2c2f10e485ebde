"""Systems under test: their contract, engines in this process, and a thread for asynchronous subscriptions.

| system | task | query | element | answer |
|---|---|---|---|---|
| ``EngineSystem`` | semantics | a continuous query | a stream element | an answer |
| ``systems.pipe.PipeProgram`` | a task of the pipe | its text | lines of the pipe | a line, when it came |
| ``suites.sepbm.adapters`` | a configuration | a channel | a publication or deletion | a notification |
| ``suites.crowds.systems`` | a workload's data | a scenario's | an update | a line of a client |

A suite plans trials; the harness starts the system, subscribes, feeds, advances time, settles and closes.
"""

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeVar

from streamgauge.engines import evaluator
from streamgauge.model.answer import Answer
from streamgauge.model.element import StreamElement
from streamgauge.model.engine import Emit, Engine, Session
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.semantics import Semantics
from streamgauge.semantics.refusal import RefusedError

Clock = Callable[[], int]
"""Monotonic time, ns."""

Task = TypeVar("Task", contravariant=True)
Query = TypeVar("Query", contravariant=True)
Element = TypeVar("Element", contravariant=True)
Received = TypeVar("Received", covariant=True)


@dataclass(frozen=True, slots=True)
class RunLimits:
    """Limits of a system: wall time of the whole run (s) and size of its output (bytes)."""

    seconds: float = 600.0
    output: int = 1 << 30


class SystemUnderTest(Protocol[Task, Query, Element, Received]):
    """A system that is started with a task, fed with elements, and observed by subscribers; called from any thread.

    Failures are raised as errors with a sentence. ``evaluator`` names the part of this package that computes the
    answers (``changes``, ``definition``), so that it does not judge itself; ``None`` for other systems.
    """

    @property
    def evaluator(self) -> str | None:
        """The name of the evaluator of this package that computes the answers."""

    @property
    def processes(self) -> Sequence[int]:
        """The root processes of the system, for measuring its resources; this process if the system runs in it."""

    def start(self, task: Task) -> None:
        """Begin the task; returns when the system is ready for its first element."""

    def subscribe(self, query: Query, receive: Callable[[Received], None]) -> None:
        """Call ``receive`` for each answer to a query, in order, from any thread.

        The first subscription registers it.
        """

    def unsubscribe(self, query: Query) -> None:
        """End all subscriptions of a query, and remove the query."""

    def feed(self, element: Element) -> int | None:
        """Hand over an element (adds, removes); returns when acknowledged, with the system's number for it if any."""

    def advance(self, time: int) -> None:
        """Advance application time to ``time`` (ms); at the task's end the system also sends deferred answers."""

    def settle(self) -> None:
        """Return when every answer caused by acknowledged elements has been received, except deferred ones."""

    def close(self) -> None:
        """End the system with all its processes."""


class EngineSystem:
    """Sessions of an engine in this process, started with the first element; answers come in the feeding thread."""

    def __init__(self, engine: Engine) -> None:
        self.processes: Sequence[int] = (os.getpid(),)
        self.evaluator = evaluator(engine)
        self._engine = engine
        self._queries: list[tuple[ContinuousQuery, Semantics, Emit]] = []
        self._sessions: list[Session] | None = None

    def start(self, semantics: Semantics) -> None:
        """Set the semantics of the queries to come."""
        self._semantics = semantics

    def subscribe(self, query: ContinuousQuery, receive: Emit) -> None:
        """Register a query; RefusedError if the engine does not support it, or the stream has begun."""
        if self._sessions is not None:
            raise RefusedError("queries must be registered before the stream begins")
        if reason := self._engine.refuse(query, self._semantics):
            raise RefusedError(reason)
        self._queries.append((query, self._semantics, receive))

    def unsubscribe(self, query: ContinuousQuery) -> None:
        """Remove a query that has not been started; a started one continues until the end of the stream."""
        self._queries = [entry for entry in self._queries if entry[0] is not query]

    def feed(self, element: StreamElement) -> None:
        """Push an element to all sessions."""
        for query in self._begun():
            query.push(element)

    def advance(self, time: int) -> None:
        """Advance all sessions to a time, ms."""
        for query in self._begun():
            query.advance(time)

    def settle(self) -> None:
        """Start the sessions; answers come while elements are pushed, so there is nothing to wait for."""
        self._begun()

    def close(self) -> None:
        """Close all sessions of the engine."""
        for session in self._sessions or ():
            session.close()

    def _begun(self) -> list[Session]:
        if self._sessions is None:
            # Engines that take several queries in one session share work among them.
            together: Callable[..., Session] | None = getattr(self._engine, "start_all", None)
            if together is not None and self._queries:
                self._sessions = [together(self._queries)]
            else:
                self._sessions = [self._engine.start(*query) for query in self._queries]
        return self._sessions


_CONTRACT: type[SystemUnderTest[Semantics, ContinuousQuery, StreamElement, Answer]] = EngineSystem


_END_S: Final = 10.0


class SubscriberLoop:
    """A thread with an event loop for subscriptions by channel name; ``wake`` notifies the condition ``received``.

    After a subscription has failed, ``check`` and ``wait`` raise ``error``, an exception class, with a sentence.
    """

    def __init__(self, error: Callable[[str], Exception]) -> None:
        self._error = error
        self._loop = asyncio.new_event_loop()
        self._tasks: dict[str, list[asyncio.Task[None]]] = {}
        self._thread = threading.Thread(target=self._loop.run_forever, name="subscriptions", daemon=True)
        self._thread.start()
        self._failure: str | None = None
        self.received = threading.Condition()

    def listen(self, name: str, subscription: Coroutine[Any, Any, None]) -> None:
        """Run a subscription of a channel until ``leave``."""

        async def begin() -> None:
            task = asyncio.ensure_future(subscription)
            task.add_done_callback(lambda done: self._ended(name, done))
            self._tasks.setdefault(name, []).append(task)

        # The loop runs in the other thread, so a task can only be created there.
        asyncio.run_coroutine_threadsafe(begin(), self._loop).result()

    def leave(self, name: str) -> None:
        """End the subscriptions of a channel."""
        self.do(self._left(self._tasks.pop(name, [])))

    def do(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine in the loop and wait for its result; from another thread."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def wake(self) -> None:
        """Record that a message was received."""
        with self.received:
            self.received.notify_all()

    def check(self) -> None:
        """Raise the error of a subscription that has failed."""
        if self._failure is not None:
            raise self._error(self._failure)

    def wait(self, until: Callable[[], bool], seconds: float, what: Callable[[], str]) -> None:
        """Wait for messages until ``until()`` is true; the error after ``seconds`` begins with ``what()``."""
        with self.received:
            if not self.received.wait_for(lambda: self._failure is not None or until(), seconds):
                raise self._error(f"{what()} within {seconds:g} s")
        self.check()

    def close(self) -> None:
        """End all subscriptions and the thread."""
        tasks = [task for group in self._tasks.values() for task in group]
        self._tasks.clear()
        if self._thread.is_alive():
            asyncio.run_coroutine_threadsafe(self._left(tasks), self._loop).result(_END_S)
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(_END_S)
        if not self._thread.is_alive():
            self._loop.close()

    async def _left(self, tasks: list[asyncio.Task[None]]) -> None:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _ended(self, name: str, task: asyncio.Task[None]) -> None:
        # Ended on purpose, by ``leave`` or ``close``.
        if task.cancelled() or name not in self._tasks:
            return
        error = task.exception()
        why = "it ended" if error is None else str(error) or type(error).__name__
        # The first failure counts: others mostly follow from it.
        self._failure = self._failure or f"the subscription of channel {name} ended: {why}"
        self.wake()
