"""Server-sent events of a fragment: what changed in it, as it changes (HTML standard, 9.2).

A subscriber has no queue: it is woken, and what changed since it was sent something last comes from the store's log.
One that is slow gets several changes as one; one that takes nothing at all is left.
"""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from starlette.types import Receive, Scope, Send

from streamgauge.servers.fragments.quads import Match
from streamgauge.servers.fragments.serving.addresses import Addressing, HostError
from streamgauge.servers.fragments.serving.asked import AskedError
from streamgauge.servers.fragments.serving.changing import Since, changed, lines, number, read_since
from streamgauge.servers.fragments.serving.dataset import SWEEP, DataSet
from streamgauge.servers.fragments.serving.freshness import clock_headers
from streamgauge.servers.fragments.serving.replying import ANYONE, reply_with, told
from streamgauge.servers.fragments.serving.selection import matches_of
from streamgauge.servers.fragments.storing import Changes
from streamgauge.servers.http import events

WHAT: Final = ("changes", "version")
"""What events may carry: the lines of a patch, or only the version."""


@dataclass(eq=False, slots=True)
class Subscriber:
    """Somebody who listens to a fragment; ``sent`` is the store's version that was sent last, ``None`` if unknown."""

    since: Since
    signal: events.Signal
    sent: int | None


@dataclass(slots=True)
class Heard:
    """Those who listen to a data set, by the matches that their fragments are among."""

    by_match: dict[Match, set[Subscriber]] = field(default_factory=dict)

    def put(self, subscriber: Subscriber) -> None:
        """One more."""
        for match in subscriber.since.fragment.selection.matches:
            self.by_match.setdefault(match, set()).add(subscriber)

    def drop(self, subscriber: Subscriber) -> None:
        """One less."""
        for match in subscriber.since.fragment.selection.matches:
            self.by_match[match].discard(subscriber)
            if not self.by_match[match]:
                del self.by_match[match]

    def wake(self, changes: Changes) -> None:
        """Tell those whose fragments may have changed."""
        quads = (*changes.added, *changes.removed)
        touched = {match for quad in quads for match in matches_of(quad)} if len(quads) <= SWEEP else self.by_match
        for match in touched if self.by_match else ():
            for subscriber in self.by_match.get(match, ()):
                subscriber.signal.set()


class FragmentEvents:
    """Answers those who accept ``text/event-stream``; ``limit`` of them at once."""

    def __init__(self, addressing: Addressing, limit: int) -> None:
        self._addressing, self._limit = addressing, limit
        self._heard: dict[str, Heard] = {}
        self._subscribers: set[Subscriber] = set()
        self._leaving = False

    @property
    def subscribers(self) -> int:
        """How many listen."""
        return len(self._subscribers)

    def takes(self, method: str, _query: bytes, headers: Mapping[bytes, bytes]) -> bool:
        """Reading by those who accept events."""
        return method == "GET" and b"text/event-stream" in headers.get(b"accept", b"")

    def leave(self) -> None:
        """End all responses, from any thread."""
        self._leaving = True
        for subscriber in tuple(self._subscribers):
            subscriber.signal.set()

    async def __call__(self, dataset: DataSet, scope: Scope, receive: Receive, send: Send) -> None:
        """Send events until the client goes, or the server leaves."""
        headers = dict(scope["headers"])
        try:
            since = read_since(dataset, scope, headers, self._addressing)
            if since.what not in (None, *WHAT):
                raise AskedError(f"what: {since.what!r:.40} is none of {', '.join(WHAT)}")
        except (AskedError, HostError) as error:
            await reply_with(told(400, str(error)), "GET", send, *clock_headers(dataset.clock()))
            return
        if self.subscribers >= self._limit:
            sentence = f"{self._limit} listen already: come again later, or ask what changed with ?since="
            await reply_with(told(429, sentence, (b"retry-after", b"10")), "GET", send, *clock_headers(dataset.clock()))
            return
        last = headers.get(b"last-event-id", b"").decode("latin-1") or since.version
        response = events.Events(self._events(dataset, since, last))
        response.raw_headers += [*ANYONE, (b"vary", b"Accept"), *clock_headers(dataset.clock())]
        await response(scope, receive, send)

    async def _events(self, dataset: DataSet, since: Since, last: str | None) -> AsyncIterator[bytes]:
        sent = dataset.store.version if last is None else number(dataset, last)
        subscriber = Subscriber(since, events.Signal(), sent)
        self._enter(dataset, subscriber)
        try:
            if last is None:
                version = dataset.version.decode()
                yield events.event(version.encode(), version, "version")
            while not self._leaving:
                if told_ := _due(dataset, subscriber):
                    yield told_
                elif not await subscriber.signal.wait(events.BEAT_S):
                    yield events.BEAT
        finally:
            self._drop(dataset, subscriber)

    def _enter(self, dataset: DataSet, subscriber: Subscriber) -> None:
        if dataset.name not in self._heard:
            self._heard[dataset.name] = Heard()
            dataset.listen(self._heard[dataset.name].wake)
        self._heard[dataset.name].put(subscriber)
        self._subscribers.add(subscriber)

    def _drop(self, dataset: DataSet, subscriber: Subscriber) -> None:
        self._heard[dataset.name].drop(subscriber)
        self._subscribers.discard(subscriber)


def _due(dataset: DataSet, subscriber: Subscriber) -> bytes:
    """The event of what changed since the last; nothing when nothing did."""
    since, version = subscriber.since, dataset.version.decode()
    changes = changed(dataset, since.fragment.selection, subscriber.sent)
    subscriber.sent = dataset.store.version
    if changes is None:
        return events.event(version.encode(), version, "reset")
    if not changes.added and not changes.removed:
        return b""
    data = version if since.what == "version" else "\n".join(lines(changes, since.base))
    return events.event(data.encode(), version, "change")
