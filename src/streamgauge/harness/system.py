"""The contract of every system under test, and the bounds on a run of one.

| system | task | element | answer |
|---|---|---|---|
| ``systems.pipe.PipeProgram`` | a query with semantics | lines of the pipe | a line, when it came |
| ``systems.engine.EngineSystem`` | queries by name, with semantics | a stream element | an answer |
| ``suites.sepbm.adapters`` | a configuration with its channels | a publication or deletion | a notification |
| ``suites.crowds.systems`` | data and how many clients | an update | a line of a client |

A suite makes trials, the harness starts the system, subscribes, feeds, lets time advance, settles and closes; whatever
the system is.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

Clock = Callable[[], int]
"""Monotonic time, ns."""

Task = TypeVar("Task", contravariant=True)
Element = TypeVar("Element", contravariant=True)
Received = TypeVar("Received", covariant=True)


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on a system: wall time of the whole run (s) and what it may write (bytes)."""

    seconds: float = 600.0
    output: int = 1 << 30


class SystemUnderTest(Protocol[Task, Element, Received]):
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

    def subscribe(self, query: str, receive: Callable[[Received], object]) -> None:
        """Call ``receive`` for each answer to a query of the task, from any thread, in the query's order."""
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
