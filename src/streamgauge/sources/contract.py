"""The contract of a source and of a sink, whatever carries them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from streamgauge.formats.lines import Input
from streamgauge.model.mistake import MistakeError


class SourceError(MistakeError, ValueError):
    """A source or sink that cannot be opened, read or reached; the sentence names it and says what to do."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """The outcome of a sink's messages: how many were acknowledged, how many not, the first reason."""

    sent: int
    undelivered: int
    why: str | None = None


class Source(Protocol):
    """A stream of elements and advances; ``refused`` counts what was bad and passed over, ``reasons`` says of what."""

    @property
    def refused(self) -> int:
        """How many messages or lines were refused and passed over (``bad=skip``)."""

    @property
    def reasons(self) -> Sequence[str]:
        """Why, for the first ten."""

    def items(self) -> Iterator[Input]:
        """The elements and advances as they come; blocks, ends when the stream does or after ``close``. SourceError."""

    def close(self) -> None:
        """Stop, from any thread; closing twice is allowed."""


class Sink(Protocol):
    """Takes messages and delivers them at least once."""

    def send(self, message: bytes, key: str | None = None) -> None:
        """Hand over one message; waits while too many are under way."""

    def close(self) -> Delivery:
        """Deliver what is under way, stop, and say what became of it all; closing twice says the same."""


@runtime_checkable
class Settling(Protocol):
    """A sink that says what became of its messages while it is open."""

    def settle(self) -> Delivery:
        """Wait until nothing is under way, as long as the sink's patience; what became of all messages so far."""
