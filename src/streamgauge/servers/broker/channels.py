"""Channels, and the logs of changes, which channels with the same query share so that each change is stored once."""

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

import msgspec

from streamgauge.model.algebra import Ask, Construct, QueryForm
from streamgauge.servers.broker.contract import AnswerEntry, Notification
from streamgauge.servers.http.access import OPEN
from streamgauge.servers.http.events import Answers, AnswerSubscription, End

FormKind: TypeAlias = Literal["SELECT", "ASK", "CONSTRUCT"]
"""The query forms of channels (SPARQL 1.1, 16)."""

_KINDS: Final[dict[type, FormKind]] = {Ask: "ASK", Construct: "CONSTRUCT"}


class UnknownChannelError(KeyError):
    """A channel that does not exist."""

    def __str__(self) -> str:
        return f"there is no channel {self.args[0]}"


class UnknownSubscriberError(KeyError):
    """A channel without a subscriber of that name."""

    def __str__(self) -> str:
        return f"there is no subscriber {self.args[0]} on this channel"


class ExistingChannelError(ValueError):
    """A channel name that is taken."""


class ForeignNameError(PermissionError):
    """A subscriber's name that belongs to another identity."""


@dataclass(eq=False, slots=True)
class Log:
    """The changes of a query's answer for all its ``channels``; those in ``named`` have named subscribers.

    A log counts its entries from the first channel's creation; later channels subtract their ``start`` to begin at 1.
    Entry 12 of the log is notification 12 of the first channel, and 3 of one with start 9.
    """

    number: int
    form: QueryForm
    variables: tuple[str, ...]
    entries: Answers[AnswerEntry]
    owner: str = OPEN
    channels: dict[str, "Channel"] = field(default_factory=dict)
    named: dict[str, "Channel"] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name under which the strategy has the query."""
        return str(self.number)

    @property
    def kind(self) -> FormKind:
        """The form of the query."""
        return _KINDS.get(type(self.form), "SELECT")

    @property
    def settled(self) -> int:
        """The number up to which every subscriber by name has acknowledged."""
        return min((log.start + log.settled for log in self.named.values()), default=self.entries.number)


@dataclass(eq=False, slots=True)
class Channel:
    """A named query; its notifications are the entries of a log after number ``start``.

    ``acknowledged`` has the last acknowledged number by subscriber name, ``owners`` the identities that own these
    names. ``connected`` are open subscriptions, ``shared`` the positions of fan-outs. ``owner`` created the channel.
    """

    name: str
    query: str
    log: Log
    start: int
    owner: str = OPEN
    owners: dict[str, str] = field(default_factory=dict)
    acknowledged: dict[str, int] = field(default_factory=dict)
    connected: set["Subscribed"] = field(default_factory=set)
    shared: set["Subscribed"] = field(default_factory=set)

    @property
    def number(self) -> int:
        """The number of the last notification."""
        return self.log.entries.number - self.start

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables of rows; ``ask`` for an ASK, ``subject``, ``predicate`` and ``object`` for a CONSTRUCT."""
        return self.log.variables

    @property
    def settled(self) -> int:
        """The number up to which every subscriber by name has acknowledged."""
        return min(self.acknowledged.values(), default=self.number)

    def names(self, owner: str) -> int:
        """The number of subscriber names on this channel owned by an identity; all for ``OPEN``."""
        return len(self.owners) if owner == OPEN else sum(name == owner for name in self.owners.values())

    def connections(self, owner: str) -> int:
        """The number of an identity's connections to this channel; all for ``OPEN``."""
        return len(self.connected) if owner == OPEN else sum(connection.owner == owner for connection in self.connected)

    def follow(
        self,
        name: str,
        after: int | None,
        wake: Callable[[], None],
        acknowledge: "Callable[[Subscribed, int], None]",
        owner: str = OPEN,
    ) -> "Subscribed":
        """Subscribe to notifications after a number; ``None`` for new ones only.

        An unknown number starts at the oldest one stored.
        """
        entries = self.log.entries
        if after is not None:
            # A client counts from its channel's start; the log may have older entries, which belong to channels created
            # before.
            after = self.start + after if 0 <= after <= self.number else max(self.start, entries.oldest - 1)
        subscribed = Subscribed(name, self, entries.subscribe(after, wake), acknowledge, owner)
        self.connected.add(subscribed)
        return subscribed

    def share(self, wake: Callable[[], None]) -> "Subscribed":
        """A position at the next notification for a fan-out, which does not count as a connection."""
        subscribed = Subscribed("", self, self.log.entries.subscribe(None, wake), lambda _by, _number: None)
        self.shared.add(subscribed)
        return subscribed

    def end(self, end: End) -> None:
        """End all subscriptions of the channel."""
        # A copy of both sets: a subscriber that is woken may close, which changes them.
        for subscription in (*self.shared, *self.connected):
            subscription.end(end)


class Subscribed:
    """One subscriber's place in a channel: ``take`` returns new notifications, ``acknowledge`` confirms them.

    ``over`` says why it has ended: the channel ended, or the subscriber fell too far behind (it may resume).
    """

    def __init__(
        self,
        name: str,
        channel: Channel,
        inner: AnswerSubscription[AnswerEntry],
        acknowledge: "Callable[[Subscribed, int], None]",
        owner: str = OPEN,
    ) -> None:
        self.name, self.channel, self.owner = name, channel, owner
        self._inner, self._acknowledge = inner, acknowledge
        # Until the channel ends: entries that the log gains later belong to other channels of the same query.
        self._last = sys.maxsize

    @property
    def over(self) -> End | None:
        """The reason why the subscription ended; ``None`` while it is open."""
        return self._inner.over

    @property
    def missed(self) -> int:
        """The number of discarded notifications after its place."""
        return self._inner.missed

    @property
    def place(self) -> int:
        """The log's number of the last notification taken."""
        return self._inner.place

    def before(self, sent: Notification) -> int:
        """The place just before a notification."""
        return self.channel.start + sent.number - 1

    def pause(self) -> None:
        """Stop wake-ups, except for the end, until ``resume``."""
        self._inner.pause()

    def resume(self, place: int) -> None:
        """Continue after ``place``, with wake-ups."""
        self._inner.resume(place)

    def take(self) -> list[Notification]:
        """The notifications since the last take, in order."""
        name, start, last = self.channel.name, self.channel.start, self._last
        taken = ((entry.number - start, entry.line) for entry in self._inner.take() if entry.number <= last)
        return [Notification(name, number, *msgspec.structs.astuple(entry)) for number, entry in taken]

    def acknowledge(self, number: int) -> None:
        """Acknowledge notifications up to a number."""
        self._acknowledge(self, number)

    def end(self, end: End) -> None:
        """End this subscription for the reason ``end``; the log continues for other channels."""
        # What came before the end is still taken.
        self._last = self.channel.log.entries.number
        self._inner.over = self._inner.over or end
        # The log goes on for other channels and does not wake this subscriber by itself.
        self._inner.wake()

    def close(self) -> None:
        """End the subscription; a later one by the same name resumes after what was acknowledged."""
        self._inner.close()
        self.channel.connected.discard(self)
        self.channel.shared.discard(self)
