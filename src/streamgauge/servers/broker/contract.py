"""The contracts of a broker's exchangeable parts, a strategy and a journal, and the values that they are given.

A strategy is told how facts change and gives the rows that enter and leave each answer. A journal holds what survives a
crash: facts, channels, subscribers, and notifications that are not acknowledged yet.
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
"""Begins a piece of work."""


class Publication(NamedTuple):
    """A publish or a delete (or both at once, as an update), numbered from 1 in the order in which they take effect.

    Facts of named graphs are triples as ``model.named_facts`` writes them.
    """

    number: int
    added: tuple[Triple, ...] = ()
    removed: tuple[Triple, ...] = ()


class AnswerChange(NamedTuple):
    """Rows of an answer that came and went; ``causes`` are the publications of which one or more did it."""

    name: str
    causes: tuple[int, ...]
    added: tuple[Row, ...]
    removed: tuple[Row, ...] = ()

    @property
    def size(self) -> int:
        """About how many bytes the rows take."""
        return 64 + sum(map(len, filter(None, chain(*self.added, *self.removed))))


class Failures(NamedTuple):
    """Evaluations refused for their cost, each with the sentence that says so.

    ``refused`` are publications, by number, that had no effect; ``ended`` are queries that are not answered any more.
    """

    refused: Mapping[int, str]
    ended: Mapping[str, str]


NO_FAILURES: Final = Failures({}, {})


class HeldSizes(NamedTuple):
    """About how much a strategy keeps: different terms of facts, bytes of the tables of facts and of answers."""

    terms: int
    facts: int
    answers: int


class AnswerEntry(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """The common part of a change's notifications in all channels of the answer; fields as in Notification.

    Many are kept, and none is in a cycle: the collector of garbage does not look at them.
    """

    causes: tuple[int, ...]
    added: tuple[Row, ...]
    removed: tuple[Row, ...]
    at: int
    size: int


class Notification(NamedTuple):
    """A notification: a set difference, numbered from 1 in its channel.

    Channel and number together tell whether it was received before; ``at`` is when it was made (ms), ``size`` about how
    many bytes it takes.
    """

    channel: str
    number: int
    causes: tuple[int, ...]
    added: tuple[Row, ...]
    removed: tuple[Row, ...]
    at: int
    size: int


class Strategy(Protocol):
    """How changes of answers are found. Facts are a set, answers are sets of rows. One thread at a time.

    Each query is asked once by a name, however many channels ask it.
    ``complete`` is true when nothing is put off: what a publication causes is found before ``publish`` ends.
    ``graphs`` is true when facts may be in named graphs, which ``facts`` then gives where a subject asks for them;
    ``derives`` when rules may derive facts from others.
    A strategy that inherits bounds nothing, refuses nothing, prepares nothing and puts nothing off.
    """

    complete: bool = True
    graphs: bool = False
    derives: bool = False

    def limit(self, effort: int, derived: int, change: int | None = None, changes: int | None = None) -> None:  # noqa: ARG002
        """How much may be looked at for an answer, how much a publication may derive; only for what can be stopped.

        ``change`` is how much may be looked at for an answer because of one publication, ``effort`` without it;
        ``changes`` how much for all answers, without a bound where it is not given.
        """
        return

    def failures(self) -> Failures:
        """The part of the last publications that was refused."""
        return NO_FAILURES

    def load(self, triples: Iterable[Triple]) -> None:
        """Many facts are there, before anything is asked."""

    def prepare(self, form: QueryForm, turn: Turn, alone: Turn) -> object:  # noqa: ARG002
        """Find the answer of a query that may be asked next, without the lock that all else here is done under.

        Work that needs the lock is done in short pieces within ``turn()``, all other work within ``alone()``.
        ``create`` takes what is given, ``abandon`` lets go of it; ``None`` where ``create`` does all. Raises as
        ``create`` does.
        """
        return None

    def abandon(self, prepared: object) -> None:  # noqa: ARG002
        """Forget a prepared query."""
        return

    def create(self, name: str, form: QueryForm, prepared: object = None) -> tuple[str, ...]:
        """A query is asked from now on, with the answer as it is, of which nobody is told; the variables of its rows.

        ValueError is a sentence that says what of the query is not done, TooMuchError that it costs too much.
        """

    def drop(self, name: str) -> None:
        """It is asked no more."""

    def held(self) -> HeldSizes:
        """How much is kept; from any thread."""

    def rows(self, name: str) -> Iterable[Row]:
        """The rows of an answer, as far as they have been found."""

    def size(self, name: str) -> int:
        """About how many rows an answer has, not fewer; known without looking at them."""

    def publish(self, publications: Sequence[Publication], now: float) -> Iterator[AnswerChange]:
        """Publications take effect in their order; what is found, as soon as it is. ``now`` is in seconds."""

    def evaluate(self, now: float) -> Iterator[AnswerChange]:  # noqa: ARG002
        """Do the work that was put off."""
        return iter(())

    @property
    def explicit(self) -> int:
        """How many facts were published and not deleted."""

    def facts(
        self, subject: Term | None = None, predicate: Term | None = None, end: Term | None = None
    ) -> Iterator[Triple]:
        """The closure: facts, explicit and derived, with these terms where one is given."""


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


class Journal:
    """A journal that keeps nothing; a durable one overrides every method.

    There what a method changes is durable when the method returns; NotWrittenError when it cannot be, and then nothing
    is changed.
    """

    def facts(self) -> Iterator[Triple]:
        """The explicit facts."""
        return iter(())

    def holding(self, triples: Iterable[Triple]) -> set[Triple]:  # noqa: ARG002
        """The triples among these that are explicit facts."""
        return set()

    def channels(self) -> list[Opened]:
        """All of them, in the order of their creation."""
        return []

    def subscribers(self) -> list[Subscriber]:
        """All of them."""
        return []

    def entries(self) -> Iterator[UnacknowledgedEntry]:
        """The entries that are kept, in the order of their numbers in each log."""
        return iter(())

    def numbers(self) -> tuple[int, dict[int, int]]:
        """The number of the last publication, and of the last entry of each log."""
        return 0, {}

    def keys(self) -> list[tuple[RetryKey, int]]:
        """The keys of publications and their numbers, the newest last."""
        return []

    def load(self, triples: Iterable[Triple]) -> None:
        """Many explicit facts at once."""

    def accept(self, accepted: Accepted) -> None:
        """Publications and entries, all or nothing, with one synchronisation of the disk."""

    def create(self, channel: Opened, subscribers: Sequence[Subscriber] = ()) -> None:
        """A channel with its first subscribers; its log is there from now on."""

    def drop(self, channel: str, log: int | None) -> None:
        """A channel and its subscribers are gone, with them a log that is nobody's any more."""

    def subscribe(self, subscriber: Subscriber) -> None:
        """A subscriber comes, and the name is its owner's."""

    def unsubscribe(self, channel: str, name: str) -> None:
        """A subscriber goes."""

    def close(self) -> None:
        """Nothing is written any more."""
