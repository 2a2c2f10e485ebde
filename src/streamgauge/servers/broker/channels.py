"""Channels, and the logs of what changed that those which ask the same share: a notification is made once for all."""

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
    """No channel of that name is there."""

    def __str__(self) -> str:
        return f"there is no channel {self.args[0]}"


class ExistingChannelError(ValueError):
    """A channel of that name is there already."""


class ForeignNameError(PermissionError):
    """A subscriber's name that belongs to another identity; the sentence says so."""


@dataclass(eq=False, slots=True)
class Log:
    """How the answer of a query changed, for all ``channels`` that ask it; ``named`` have subscribers by name."""

    number: int
    form: QueryForm
    variables: tuple[str, ...]
    entries: Answers[AnswerEntry]
    owner: str = OPEN
    channels: dict[str, "Channel"] = field(default_factory=dict)
    named: dict[str, "Channel"] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """By which the strategy knows the query."""
        return str(self.number)

    @property
    def kind(self) -> FormKind:
        """Which form the query has."""
        return _KINDS.get(type(self.form), "SELECT")

    @property
    def settled(self) -> int:
        """The number up to which every subscriber by name has acknowledged."""
        return min((log.start + log.settled for log in self.named.values()), default=self.entries.number)


@dataclass(eq=False, slots=True)
class Channel:
    """A query by name: its notifications are the entries of a log after number ``start``.

    ``acknowledged`` is the number of the last notification, by subscriber, ``owners`` the identity that each of these
    names belongs to; ``connected`` are those who take notifications now, ``shared`` places that several of them share.
    ``owner`` created the channel.
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
        """The rows' variables; ``ask`` for an ASK, ``subject``, ``predicate`` and ``object`` for a CONSTRUCT."""
        return self.log.variables

    @property
    def settled(self) -> int:
        """The number up to which every subscriber by name has acknowledged."""
        return min(self.acknowledged.values(), default=self.number)

    def names(self, owner: str) -> int:
        """How many names on this channel belong to an identity."""
        return len(self.owners) if owner == OPEN else sum(name == owner for name in self.owners.values())

    def connections(self, owner: str) -> int:
        """How many connections to this channel an identity has."""
        return len(self.connected) if owner == OPEN else sum(connection.owner == owner for connection in self.connected)

    def follow(
        self,
        name: str,
        after: int | None,
        wake: Callable[[], None],
        acknowledge: "Callable[[Subscribed, int], None]",
        owner: str = OPEN,
    ) -> "Subscribed":
        """Begin after a notification's number, ``None`` for new ones only; one that never was, with the oldest kept."""
        entries = self.log.entries
        if after is not None:
            after = self.start + after if 0 <= after <= self.number else max(self.start, entries.oldest - 1)
        subscribed = Subscribed(name, self, entries.subscribe(after, wake), acknowledge, owner)
        self.connected.add(subscribed)
        return subscribed

    def share(self, wake: Callable[[], None]) -> "Subscribed":
        """A place, at what comes next, for several who are connected: it counts as no connection itself."""
        subscribed = Subscribed("", self, self.log.entries.subscribe(None, wake), lambda _by, _number: None)
        self.shared.add(subscribed)
        return subscribed

    def end(self, end: End) -> None:
        """No more will come."""
        for subscription in (*self.shared, *self.connected):
            subscription.end(end)


class Subscribed:
    """One subscriber's place in a channel; ``take`` gives what has come, ``acknowledge`` says what need not come again.

    ``over`` says why no more will come: the channel ended, or the subscriber fell too far behind (it may resume).
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
        self._last = sys.maxsize

    @property
    def over(self) -> End | None:
        """Why no more will come."""
        return self._inner.over

    @property
    def missed(self) -> int:
        """How many notifications after its place are not kept any more."""
        return self._inner.missed

    @property
    def place(self) -> int:
        """The number in the log of the last that was taken."""
        return self._inner.place

    def before(self, sent: Notification) -> int:
        """The place just before a notification."""
        return self.channel.start + sent.number - 1

    def pause(self) -> None:
        """Be woken for the end alone, until ``resume``."""
        self._inner.pause()

    def resume(self, place: int) -> None:
        """Go on after a place."""
        self._inner.resume(place)

    def take(self) -> list[Notification]:
        """The items since the last take, in order."""
        name, start, last = self.channel.name, self.channel.start, self._last
        taken = ((entry.number - start, entry.line) for entry in self._inner.take() if entry.number <= last)
        return [Notification(name, number, *msgspec.structs.astuple(entry)) for number, entry in taken]

    def acknowledge(self, number: int) -> None:
        """Notifications up to a number need not come again."""
        self._acknowledge(self, number)

    def end(self, end: End) -> None:
        """No more will come, though the log go on."""
        self._last = self.channel.log.entries.number
        self._inner.over = self._inner.over or end
        self._inner.wake()

    def close(self) -> None:
        """Leave; a subscriber that comes back by the same name goes on after what it acknowledged."""
        self._inner.close()
        self.channel.connected.discard(self)
        self.channel.shared.discard(self)
