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


Event: TypeAlias = Failed | Fresh
Tell: TypeAlias = Callable[[Event], None]
