"""The contract of every system under test, and the bounds on a run of one.

| system | task | query | element | answer |
|---|---|---|---|---|
| ``systems.pipe.PipeProgram`` | a task of the pipe | its text | lines of the pipe | a line, when it came |
| ``systems.engine.EngineSystem`` | semantics | a continuous query | a stream element | an answer |
| ``suites.sepbm.adapters`` | a configuration | a channel | a publication or deletion | a notification |
| ``suites.crowds.systems`` | a workload's data | a scenario's | an update | a line of a client |

A suite makes trials, the harness starts the system, subscribes, feeds, lets time advance, settles and closes; whatever
the system is.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

Clock = Callable[[], int]
"""Monotonic time, ns."""

Task = TypeVar("Task", contravariant=True)
Query = TypeVar("Query", contravariant=True)
Element = TypeVar("Element", contravariant=True)
Received = TypeVar("Received", covariant=True)


@dataclass(frozen=True, slots=True)
class RunLimits:
    """Bounds on a system: wall time of the whole run (s) and what it may write (bytes)."""

    seconds: float = 600.0
    output: int = 1 << 30


class SystemUnderTest(Protocol[Task, Query, Element, Received]):
    """A system that is started with a task, fed with elements and heard by subscribers; called from any thread.

    An operation that fails raises an error whose sentence says how. ``evaluator`` names what of this package computes
    the answers (``changes``, ``definition``), which may not judge them; ``None`` for a system that is not ours.
    """

    @property
    def evaluator(self) -> str | None:
        """The name of the evaluator of this package that computes the answers."""
        ...

    @property
    def processes(self) -> Sequence[int]:
        """The roots of the process trees whose resources are the system's; this process where it runs in it."""
        ...

    def start(self, task: Task) -> None:
        """Begin the task; returns when the system is ready for its first element."""
        ...

    def subscribe(self, query: Query, receive: Callable[[Received], None]) -> None:
        """Call ``receive`` for each answer to a query, from any thread, in order; a query begins with its first."""
        ...

    def unsubscribe(self, query: Query) -> None:
        """End all subscriptions of a query, and the query."""
        ...

    def feed(self, element: Element) -> int | None:
        """Hand over an element (adds, removes); returns when acknowledged, with the system's number for it if any."""
        ...

    def advance(self, time: int) -> None:
        """Application time has come to ``time`` (ms); at the task's end the system also sends what it put off."""
        ...

    def settle(self) -> None:
        """Return when every answer that the acknowledged elements cause has been received, except what is put off."""
        ...

    def close(self) -> None:
        """End the system and leave nothing running."""
        ...
