"""The state that survives a crash: facts, channels, subscribers, and notifications not acknowledged yet."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from streamgauge.model.mistake import MistakeError
from streamgauge.model.terms import Triple
from streamgauge.servers.broker.contract import AnswerEntry, Publication
from streamgauge.servers.http.access import OPEN
from streamgauge.servers.http.retries import RetryKey


class JournalError(MistakeError, RuntimeError):
    """A file that is no journal, is damaged, or cannot be written; the sentence says why."""


class NotWrittenError(JournalError):
    """The disk did not take a change: nothing of the change is there, and later ones may be taken."""


class Opened(NamedTuple):
    """A channel: its notifications are the entries of ``log`` after number ``start``; ``owner`` created it."""

    name: str
    query: str
    log: int
    start: int
    owner: str = OPEN


class UnacknowledgedEntry(NamedTuple):
    """An entry of a log that some subscriber has not acknowledged."""

    log: int
    number: int
    entry: AnswerEntry


@dataclass(frozen=True, slots=True)
class Subscriber:
    """A subscriber of a channel, the number of the last notification that was acknowledged, whose the name is."""

    channel: str
    name: str
    acknowledged: int
    owner: str = OPEN


@dataclass(frozen=True, slots=True)
class Accepted:
    """Publications with the keys that their publishers gave them, and the entries of logs that they caused.

    ``lasts`` are the numbers of logs' last entries, ``ended`` logs that end, with the channels that ask for them;
    ``acknowledged`` and, by log, the number up to which entries need not be kept any more come along: to lose them does
    no harm. The keys of the ``forgotten`` publications need not be kept any more either.
    """

    publications: Sequence[tuple[Publication, RetryKey | None]] = ()
    entries: Sequence[UnacknowledgedEntry] = ()
    lasts: Mapping[int, int] = field(default_factory=dict)
    acknowledged: Sequence[Subscriber] = ()
    settled: Mapping[int, int] = field(default_factory=dict)
    ended: Mapping[int, Sequence[str]] = field(default_factory=dict)
    forgotten: Sequence[int] = ()


class Journal(Protocol):
    """Durable when a method that changes something returns; NotWrittenError when it cannot be, and nothing changed."""

    def facts(self) -> Iterator[Triple]:
        """The explicit facts."""
        ...

    def holding(self, triples: Iterable[Triple]) -> set[Triple]:
        """Those of some triples that are explicit facts."""
        ...

    def channels(self) -> list[Opened]:
        """All of them, in the order of their creation."""
        ...

    def subscribers(self) -> list[Subscriber]:
        """All of them."""
        ...

    def entries(self) -> Iterator[UnacknowledgedEntry]:
        """Those that are kept, in the order of their numbers in each log."""
        ...

    def numbers(self) -> tuple[int, dict[int, int]]:
        """The number of the last publication, and of the last entry of each log."""
        ...

    def keys(self) -> list[tuple[RetryKey, int]]:
        """The keys of publications and their numbers, the newest last."""
        ...

    def load(self, triples: Iterable[Triple]) -> None:
        """Many explicit facts at once."""
        ...

    def accept(self, accepted: Accepted) -> None:
        """Publications and entries, all or nothing, with one synchronisation of the disk."""
        ...

    def create(self, channel: Opened) -> None:
        """A channel; its log is there from now on."""
        ...

    def drop(self, channel: str, log: int | None) -> None:
        """A channel and its subscribers are gone, with them a log that is nobody's any more."""
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

    def holding(self, triples: Iterable[Triple]) -> set[Triple]:  # noqa: ARG002
        """None."""
        return set()

    def channels(self) -> list[Opened]:
        """None."""
        return []

    def subscribers(self) -> list[Subscriber]:
        """None."""
        return []

    def entries(self) -> Iterator[UnacknowledgedEntry]:
        """None."""
        return iter(())

    def numbers(self) -> tuple[int, dict[int, int]]:
        """From the beginning."""
        return 0, {}

    def keys(self) -> list[tuple[RetryKey, int]]:
        """None."""
        return []

    def load(self, triples: Iterable[Triple]) -> None:
        """Forgotten."""

    def accept(self, accepted: Accepted) -> None:
        """Forgotten."""

    def create(self, channel: Opened) -> None:
        """Forgotten."""

    def drop(self, channel: str, log: int | None) -> None:
        """Forgotten."""

    def subscribe(self, subscriber: Subscriber) -> None:
        """Forgotten."""

    def unsubscribe(self, channel: str, name: str) -> None:
        """Forgotten."""

    def close(self) -> None:
        """Nothing is open."""
