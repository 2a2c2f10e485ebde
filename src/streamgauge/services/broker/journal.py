"""What survives a crash: facts, channels, subscribers and the notifications that they have not acknowledged."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from streamgauge.model.terms import Triple
from streamgauge.services.broker.contract import Notification, Publication


@dataclass(frozen=True, slots=True)
class Subscriber:
    """Who is told of a channel, and the number of the last notification that was acknowledged."""

    channel: str
    name: str
    acknowledged: int


@dataclass(frozen=True, slots=True)
class Accepted:
    """Publications with the keys that their publishers gave them, and the notifications that they caused.

    ``lasts`` are the numbers of the last notifications of channels; ``acknowledged`` and, by channel, the number up to
    which notifications need not be kept any more come along: to lose them does no harm.
    """

    publications: Sequence[tuple[Publication, str | None]] = ()
    notifications: Sequence[Notification] = ()
    lasts: Mapping[str, int] = field(default_factory=dict)
    acknowledged: Sequence[Subscriber] = ()
    settled: Mapping[str, int] = field(default_factory=dict)


class Journal(Protocol):
    """Durable when a method that changes something returns."""

    def facts(self) -> Iterator[Triple]:
        """The explicit facts."""
        ...

    def channels(self) -> list[tuple[str, str]]:
        """Names and queries, in the order of their creation."""
        ...

    def subscribers(self) -> list[Subscriber]:
        """All of them."""
        ...

    def notifications(self) -> Iterator[Notification]:
        """Those that are kept, in the order of their numbers in each channel."""
        ...

    def numbers(self) -> tuple[int, dict[str, int]]:
        """The number of the last publication, and of the last notification of each channel."""
        ...

    def keys(self) -> list[tuple[str, int]]:
        """The keys of publications and their numbers, the newest last."""
        ...

    def load(self, triples: Iterable[Triple]) -> None:
        """Many explicit facts at once."""
        ...

    def accept(self, accepted: Accepted) -> None:
        """Publications and notifications, all or nothing, with one synchronisation of the disk."""
        ...

    def create(self, channel: str, query: str) -> None:
        """A channel."""
        ...

    def drop(self, channel: str) -> None:
        """A channel, its subscribers and its notifications are gone."""
        ...

    def subscribe(self, subscriber: Subscriber) -> None:
        """A subscriber comes."""
        ...

    def unsubscribe(self, channel: str, name: str) -> None:
        """A subscriber goes."""
        ...

    def close(self) -> None:
        """Nothing is written any more."""
        ...


class Forgetful:
    """A journal that keeps nothing: durability is off."""

    def facts(self) -> Iterator[Triple]:
        """None."""
        return iter(())

    def channels(self) -> list[tuple[str, str]]:
        """None."""
        return []

    def subscribers(self) -> list[Subscriber]:
        """None."""
        return []

    def notifications(self) -> Iterator[Notification]:
        """None."""
        return iter(())

    def numbers(self) -> tuple[int, dict[str, int]]:
        """From the beginning."""
        return 0, {}

    def keys(self) -> list[tuple[str, int]]:
        """None."""
        return []

    def load(self, triples: Iterable[Triple]) -> None:
        """Forgotten."""

    def accept(self, accepted: Accepted) -> None:
        """Forgotten."""

    def create(self, channel: str, query: str) -> None:
        """Forgotten."""

    def drop(self, channel: str) -> None:
        """Forgotten."""

    def subscribe(self, subscriber: Subscriber) -> None:
        """Forgotten."""

    def unsubscribe(self, channel: str, name: str) -> None:
        """Forgotten."""

    def close(self) -> None:
        """Nothing is open."""
