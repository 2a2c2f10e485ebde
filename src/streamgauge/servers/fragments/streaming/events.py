"""What a watch says of itself beside its answers."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Failed:
    """A poll failed: why, and in how many seconds it is tried again."""

    why: str
    again: float


@dataclass(frozen=True, slots=True)
class Fresh:
    """A poll succeeded: the server's time (ms) of the answer, when the next poll is (own clock, ms).

    ``late`` is how much later (ms) than due it began, by the own clock.
    """

    instant: int
    next: int
    late: int


@dataclass(frozen=True, slots=True)
class Listening:
    """What changes at an address is sent from now on: it is not polled."""

    address: str


@dataclass(frozen=True, slots=True)
class Polling:
    """An address is polled although events were asked for: why, and in how many seconds they are asked for again.

    ``again`` is ``None`` where it has none.
    """

    why: str
    again: float | None


Event: TypeAlias = Failed | Fresh | Listening | Polling
Tell: TypeAlias = Callable[[Event], None]
