"""The contracts of a broker's exchangeable parts, strategies and journals, and the values that they exchange.

A strategy receives changes of facts and returns the rows that enter and leave each answer. A journal stores everything
that survives a crash: facts, channels, subscribers, and unacknowledged notifications.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import chain
from typing import Final, NamedTuple, Protocol, TypeAlias

import msgspec

from streamgauge.model.algebra import QueryForm
from streamgauge.model.terms import Row, Term, Triple
from streamgauge.servers.http.access import OPEN
from streamgauge.servers.http.retries import RetryKey

Turn: TypeAlias = Callable[[], AbstractContextManager[object]]
"""Returns a context manager that surrounds one piece of work."""


class Publication(NamedTuple):
    """A publish, a delete, or both (an update), numbered from 1 in the order in which they take effect.

    Facts of named graphs are triples as ``model.fact.in_graph`` writes them.
    """

    number: int
    added: tuple[Triple, ...] = ()
    removed: tuple[Triple, ...] = ()


class AnswerChange(NamedTuple):
    """Rows added to and removed from an answer; one or more of the publications ``causes`` are the reason."""

    name: str
    causes: tuple[int, ...]
    added: tuple[Row, ...]
    removed: tuple[Row, ...] = ()

    @property
    def size(self) -> int:
        """Approximate bytes of the rows."""
        # 64 for the object itself, so that a change without terms (an ASK) does not count as nothing; `None` are
        # unbound variables.
        return 64 + sum(map(len, filter(None, chain(*self.added, *self.removed))))


class Failures(NamedTuple):
    """Evaluations refused for their cost, with the reasons as sentences.

    ``refused`` are publications, by number, that had no effect; ``ended`` are queries that the strategy has dropped.
    """

    refused: Mapping[int, str]
    ended: Mapping[str, str]


NO_FAILURES: Final = Failures({}, {})


class HeldSizes(NamedTuple):
    """Approximate sizes of a strategy: distinct terms of facts, bytes of facts, bytes of answers."""

    terms: int
    facts: int
    answers: int


class AnswerEntry(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """The common part of a change's notifications in all channels of an answer; fields as in Notification.

    Without ``gc``: many are kept, and none is part of a reference cycle.
    """

    causes: tuple[int, ...]
    added: tuple[Row, ...]
    removed: tuple[Row, ...]
    at: int
    size: int


class Notification(NamedTuple):
    """A notification: a set difference, numbered from 1 in its channel.

    Use channel and number to detect duplicates; ``at`` is its creation time (ms), ``size`` its approximate size in
    bytes.
    """

    channel: str
    number: int
    causes: tuple[int, ...]
    added: tuple[Row, ...]
    removed: tuple[Row, ...]
    at: int
    size: int


class Strategy(Protocol):
    """Finds the changes of answers. Facts are a set, answers are sets of rows. Used by one thread at a time.

    A query that several channels have is registered once. ``complete``: nothing is deferred, all
    effects of a publication are found before ``publish`` ends. ``graphs``: facts may be in named graphs, which
    ``facts`` returns if the subject asks for them. ``derives``: rules may derive facts. The defaults limit, refuse,
    prepare and defer nothing.
    """

    complete: bool = True
    graphs: bool = False
    derives: bool = False

    def limit(self, effort: int, derived: int, change: int | None = None, changes: int | None = None) -> None:  # noqa: ARG002
        """Set the limits of visits (``Limits``); strategies that cannot stop an evaluation ignore them.

        ``effort`` is for a new query, ``change`` (default ``effort``) for an answer and one publication, ``changes``
        (default unlimited) for all answers and one publication; ``derived`` limits derivations per publication.
        """
        return

    def failures(self) -> Failures:
        """Return the refusals since the last call."""
        return NO_FAILURES

    def load(self, triples: Iterable[Triple]) -> None:
        """Load facts, before there are queries."""

    def prepare(self, form: QueryForm, turn: Turn, alone: Turn) -> object:  # noqa: ARG002
        """Evaluate a query that is about to be created, without the lock under which all other methods are called.

        Work that needs the lock is done in short pieces within ``turn()``, other work within ``alone()``. The result is
        passed to ``create`` or ``abandon``; ``None`` if ``create`` does everything. Raises as ``create``.
        """
        return None

    def abandon(self, prepared: object) -> None:  # noqa: ARG002
        """Discard a prepared query."""
        return

    def create(self, name: str, form: QueryForm, prepared: object = None) -> tuple[str, ...]:
        """Register a query; its current answer is the initial state. Returns the variables of its rows.

        ValueError for unsupported queries, with the reason as a sentence; TooMuchError if it costs too much.
        """

    def drop(self, name: str) -> None:
        """Remove a query and its answer."""

    def held(self) -> HeldSizes:
        """The sizes of facts and answers; from any thread."""

    def rows(self, name: str) -> Iterable[Row]:
        """The rows of an answer, as far as they have been evaluated."""

    def size(self, name: str) -> int:
        """An upper bound of the rows of an answer, without visiting them."""

    def publish(self, publications: Sequence[Publication], now: float) -> Iterator[AnswerChange]:
        """Apply publications in order, and yield changes of answers as they are found; ``now`` is in seconds."""

    def evaluate(self, now: float) -> Iterator[AnswerChange]:  # noqa: ARG002
        """Run deferred evaluations; ``now`` is in seconds."""
        return iter(())

    @property
    def explicit(self) -> int:
        """The number of explicit facts."""

    def facts(
        self, subject: Term | None = None, predicate: Term | None = None, end: Term | None = None
    ) -> Iterator[Triple]:
        """The explicit and derived facts that match these terms, where ``None`` matches any term."""


class Opened(NamedTuple):
    """A channel in the journal: its notifications are the entries of ``log`` after number ``start``."""

    name: str
    query: str
    log: int
    start: int
    owner: str = OPEN


class UnacknowledgedEntry(NamedTuple):
    """An entry of a log that some subscriber has not yet acknowledged."""

    log: int
    number: int
    entry: AnswerEntry


@dataclass(frozen=True, slots=True)
class Subscriber:
    """A subscriber of a channel, the last notification that it acknowledged, and the owner of its name."""

    channel: str
    name: str
    acknowledged: int
    owner: str = OPEN


@dataclass(frozen=True, slots=True)
class Accepted:
    """One transaction of the journal: publications with their keys, and the log entries that they caused.

    ``lasts`` are the new last numbers of logs, ``ended`` the logs that end, with their channels. ``acknowledged`` and
    ``settled`` (by log, the number up to which entries may be deleted) are written along with it, since losing them
    only repeats notifications. The keys of the ``forgotten`` publications are deleted.
    """

    publications: Sequence[tuple[Publication, RetryKey | None]] = ()
    entries: Sequence[UnacknowledgedEntry] = ()
    lasts: Mapping[int, int] = field(default_factory=dict)
    acknowledged: Sequence[Subscriber] = ()
    settled: Mapping[int, int] = field(default_factory=dict)
    ended: Mapping[int, Sequence[str]] = field(default_factory=dict)
    forgotten: Sequence[int] = ()


class Journal:
    """A journal that stores nothing; a durable one overrides every method.

    A durable journal's changes are on disk when a method returns; NotWrittenError if that fails, and then nothing has
    changed.
    """

    def facts(self) -> Iterator[Triple]:
        """The stored explicit facts."""
        return iter(())

    def holding(self, triples: Iterable[Triple]) -> set[Triple]:  # noqa: ARG002
        """Those of the triples that are stored explicit facts."""
        return set()

    def channels(self) -> list[Opened]:
        """All channels, in the order of their creation."""
        return []

    def subscribers(self) -> list[Subscriber]:
        """All subscribers of all channels."""
        return []

    def entries(self) -> Iterator[UnacknowledgedEntry]:
        """The stored entries, in the order of their numbers within each log."""
        return iter(())

    def numbers(self) -> tuple[int, dict[int, int]]:
        """The number of the last publication, and of the last entry of each log."""
        return 0, {}

    def keys(self) -> list[tuple[RetryKey, int]]:
        """The keys of publications with their numbers, the newest last."""
        return []

    def load(self, triples: Iterable[Triple]) -> None:
        """Store many explicit facts."""

    def accept(self, accepted: Accepted) -> None:
        """Store publications and entries atomically, with one sync of the disk."""

    def create(self, channel: Opened, subscribers: Sequence[Subscriber] = ()) -> None:
        """Store a channel with its first subscribers, and its log if that is new."""

    def drop(self, channel: str, log: int | None) -> None:
        """Delete a channel with its subscribers, and ``log`` if no channel uses it any more."""

    def subscribe(self, subscriber: Subscriber) -> None:
        """Store a subscriber and the owner of its name."""

    def unsubscribe(self, channel: str, name: str) -> None:
        """Delete a subscriber with its name's owner."""

    def close(self) -> None:
        """Close the journal; it can no longer be used."""
