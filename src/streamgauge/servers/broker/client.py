"""Clients of a broker over HTTP, synchronous and asynchronous, with the operations written once.

``Client`` and ``AsyncClient`` differ in how a request is sent and in the loop of ``subscribe``. The rest of a
subscription is in ``ResumedSubscription`` (position and duplicates) and ``reconnection`` (retries).
"""

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from types import TracebackType
from typing import Any, Final, Generic, TypeAlias, TypeVar, cast
from urllib.parse import quote

import httpx
import msgspec

from streamgauge.formats.results import read_rows
from streamgauge.model.mistake import obstacle
from streamgauge.model.terms import Row
from streamgauge.outgoing.clients import (
    AsyncHttpClient,
    ExchangeLimits,
    HttpClient,
    OversizedError,
    async_client,
    client,
)
from streamgauge.servers.broker import LARGEST_MESSAGE
from streamgauge.servers.broker.reconnection import BUSY, PATIENCE_S, AwayError, BrokerError, Reconnection, Tell, log
from streamgauge.servers.http.headers import retry_after
from streamgauge.sources.backoff import Backoff
from streamgauge.sources.sse.events import EventParser

TURTLE: Final = "text/turtle"
SILENCE_S: Final = 45.0
"""Seconds of silence after which a connection counts as broken; a broker sends something every 15 s."""

_OPTION: Final = "`largest` of the client, --max-message of a command"

Read = TypeVar("Read")
Published = TypeVar("Published")
Done = TypeVar("Done")
Answered = TypeVar("Answered")
Listed = TypeVar("Listed")
Described = TypeVar("Described")
Awaited: TypeAlias = Coroutine[Any, Any, Read]

_PASSING: Final = (httpx.TransportError, httpx.InvalidURL, AwayError)
"""Errors of a request that got no response."""


@dataclass(frozen=True, slots=True)
class Told:
    """A notification: rows added and removed, over ``columns``; ``key`` is the same if it is delivered again.

    ``publications`` are the numbers of its causes, ``at`` its creation time (ms since 1970). For an ASK the column is
    ``ask``, and ``boolean`` is the current truth; for a CONSTRUCT rows are triples.
    """

    channel: str
    number: int
    key: str
    publications: tuple[int, ...]
    at: int
    columns: tuple[str, ...]
    added: tuple[Row, ...]
    removed: tuple[Row, ...]
    boolean: bool | None = None


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """The number of a publication that took effect; ``repeated`` if its key was known, so that nothing was done."""

    number: int
    repeated: bool


@dataclass(frozen=True, slots=True)
class Standing:
    """The current answer of a channel, with the number of the last notification that it includes."""

    number: int
    columns: tuple[str, ...]
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class ChannelStatus:
    """A channel: its query and form, its last notification's number, named subscribers, and open connections."""

    name: str
    query: str
    form: str
    columns: tuple[str, ...]
    notification: int
    subscribers: int
    connections: int


@dataclass(frozen=True, slots=True)
class KeptBytes:
    """Bytes stored for absent subscribers of a token's channels, their ``limit``, and why new names are ``refused``."""

    bytes: int
    limit: int
    refused: str


@dataclass(frozen=True, slots=True)
class BrokerCall:
    """A request; ``path`` is relative to the broker's address."""

    method: str
    path: str
    content: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    params: Mapping[str, str] = field(default_factory=dict)


class ResumedSubscription:
    """A subscription across connections: it knows where to resume, and drops duplicates."""

    def __init__(
        self,
        channel: str,
        subscriber: str | None,
        after: int | None,
        again: Reconnection,
        largest: int = LARGEST_MESSAGE,
    ) -> None:
        self.last, self.missed, self.again = after, 0, again
        self._channel, self._params = channel, {} if subscriber is None else {"subscriber": subscriber}
        self._parser, self._largest = EventParser(largest, None), largest
        self._connected = False

    def call(self) -> BrokerCall:
        """The request that starts the subscription, or resumes it after the last notification."""
        # New for each connection: the half event with which the last one broke off comes again as a whole.
        self._parser = EventParser(self._largest, None)
        since = {} if self.last is None else {"Last-Event-ID": str(self.last)}
        headers = {"Accept": "text/event-stream", **since}
        return BrokerCall("GET", f"{_path(self._channel)}/notifications", headers=headers, params=self._params)

    def ended(self, response: httpx.Response) -> bool:
        """Whether a channel that existed has been deleted; BrokerError for a permanent refusal."""
        # On the first connection a 404 is a mistake in the name; later it means that the channel was deleted.
        if response.status_code == 404 and self._connected:
            return True
        # A busy broker is asked again; the caller waits as its Retry-After says.
        if response.status_code not in BUSY:
            _check(response)
        # Kept over reconnections: this is what tells a deleted channel from a misspelt one.
        self._connected = self._connected or response.is_success
        return False

    def heard(self, chunk: bytes) -> Iterator[Told]:
        """The notifications that this chunk of the response completes."""
        self.again.heard()
        for event in self._parser.feed(chunk):
            if event.data is None:
                raise BrokerError(f"a notification of more than {self._largest} bytes: raise {_OPTION}")
            with _understanding(repr(event.data[:200])):
                # Other events, such as `over`, carry no notification; the response ends after them.
                self.missed += int(msgspec.json.decode(event.data)["missed"]) if event.name == "missed" else 0
                notification = read_told(event.data) if event.name == "message" else None
            # The broker resumes after what was acknowledged, which may be before the last one received.
            if notification is not None and (self.last is None or notification.number > self.last):
                self.last = notification.number
                yield notification


def read_told(text: bytes | str) -> Told:
    """Parse a notification; ValueError, KeyError, TypeError if it is invalid."""
    members = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    columns, added = read_rows(members.pop("added"))
    _, removed = read_rows(members.pop("removed"))
    document = {name: msgspec.json.decode(member) for name, member in members.items()}
    number, at, causes, truth = (
        document["number"],
        document["at"],
        tuple(document["publications"]),
        document.get("boolean"),
    )
    return Told(document["channel"], number, document["key"], causes, at, columns, tuple(added), tuple(removed), truth)


def bearing(token: str | None) -> dict[str, str]:
    """The Authorization header of a token, if there is one."""
    return {} if token is None else {"Authorization": f"Bearer {token}"}


def _path(channel: str, subscriber: str | None = None) -> str:
    path = f"/channels/{quote(channel, safe='')}"
    return path if subscriber is None else f"{path}/subscribers/{quote(subscriber, safe='')}"


def _check(response: httpx.Response) -> None:
    """BrokerError for a response that is not a success, with the broker's sentence; the body must have been read."""
    if response.is_success:
        return
    try:
        sentence = response.json()["error"]
    # A proxy in between answers with a page of its own.
    except (ValueError, KeyError, TypeError):
        sentence = f"{response.request.url} answers {response.status_code}"
    raise BrokerError(str(sentence), response.status_code, retry_after(response.headers, int(1000 * time.time())))


def _check_acknowledged(response: httpx.Response) -> None:
    """BrokerError for a permanent refusal.

    Temporary ones do not matter, as a later acknowledgement includes this one.
    """
    if response.status_code not in BUSY and response.status_code != 404:
        _check(response)


@contextmanager
def _understanding(address: str | httpx.URL) -> Iterator[None]:
    """BrokerError for a response that a broker would not send."""
    try:
        yield
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise BrokerError(f"{str(address)[:200]} does not answer as a broker does: is the address right?") from error


def _acknowledged(response: httpx.Response) -> Acknowledged:
    _check(response)
    document = response.json()
    return Acknowledged(document["publication"], document["repeated"])


def _standing(response: httpx.Response) -> Standing:
    _check(response)
    columns, rows_ = read_rows(response.content)
    return Standing(int(response.headers["Notification"]), columns, tuple(rows_))


def _kept(response: httpx.Response) -> KeptBytes:
    _check(response)
    kept = response.json()["kept"]
    return KeptBytes(int(kept["bytes"]), int(kept["limit"]), str(kept["refused"]))


def _names(response: httpx.Response) -> tuple[str, ...]:
    _check(response)
    return tuple(map(str, response.json()["channels"]))


def _channel_status(response: httpx.Response) -> ChannelStatus:
    _check(response)
    document = response.json()
    name, query, form = (str(document[part]) for part in ("channel", "query", "form"))
    counts = (int(document[part]) for part in ("notification", "subscribers", "connections"))
    return ChannelStatus(name, query, form, tuple(map(str, document["variables"])), *counts)


class _Operations(ABC, Generic[Published, Done, Answered, Listed, Described]):
    """The operations of both clients, whose results are values, or awaitables of these.

    BrokerError if the broker refuses, AwayError if it does not respond.
    """

    def __init__(self, url: str, token: str | None, largest: int) -> None:
        self._url, self._headers, self._largest = url.rstrip("/"), bearing(token), largest

    def _limits(self) -> ExchangeLimits:
        return ExchangeLimits(PATIENCE_S, received=self._largest, silence=SILENCE_S, option=_OPTION)

    @abstractmethod
    def _send(self, call: BrokerCall, read: Callable[[httpx.Response], Read]) -> Any:
        """Send a request and read its response."""

    def _change(self, operation: str, graph: str | bytes, kind: str, key: str | None) -> Published:
        headers = {"Content-Type": kind, **({} if key is None else {"Idempotency-Key": key})}
        content = graph.encode() if isinstance(graph, str) else graph
        return cast(Published, self._send(BrokerCall("POST", f"/{operation}", content, headers), _acknowledged))

    def _do(self, call: BrokerCall, check: Callable[[httpx.Response], None] = _check) -> Done:
        return cast(Done, self._send(call, check))

    def publish(self, graph: str | bytes, kind: str = TURTLE, key: str | None = None) -> Published:
        """Insert the facts of a graph, or of named graphs. With a ``key`` the request may safely be repeated."""
        return self._change("publish", graph, kind, key)

    def delete(self, graph: str | bytes, kind: str = TURTLE, key: str | None = None) -> Published:
        """Delete the facts of a graph, or of named graphs."""
        return self._change("delete", graph, kind, key)

    def update(self, update: str, key: str | None = None) -> Published:
        """Apply a SPARQL Update as one publication."""
        return self._change("update", update, "application/sparql-update", key)

    def create_channel(self, channel: str, query: str) -> Done:
        """Create a channel for a query: SELECT, ASK or CONSTRUCT."""
        kind = {"Content-Type": "application/sparql-query"}
        return self._do(BrokerCall("PUT", _path(channel), query.encode(), kind))

    def delete_channel(self, channel: str) -> Done:
        """Delete a channel; its subscriptions end."""
        return self._do(BrokerCall("DELETE", _path(channel)))

    def rows(self, channel: str) -> Answered:
        """The current answer of a channel."""
        return cast(Answered, self._send(BrokerCall("GET", f"{_path(channel)}/rows"), _standing))

    def channels(self, after: str = "") -> Listed:
        """The sorted names of channels that the token may subscribe to: the first thousand after ``after``."""
        return cast(Listed, self._send(BrokerCall("GET", "/channels", params={"after": after}), _names))

    def channel(self, channel: str) -> Described:
        """A channel's query and counts."""
        return cast(Described, self._send(BrokerCall("GET", _path(channel)), _channel_status))

    def unsubscribe(self, channel: str, subscriber: str) -> Done:
        """Delete a named subscriber; nothing is stored for it any more."""
        return self._do(BrokerCall("DELETE", _path(channel, subscriber)))

    def _acknowledge(self, notification: Told, subscriber: str) -> Done:
        """Acknowledge all notifications up to this one; if the broker is busy, a later acknowledgement will do."""
        call = BrokerCall(
            "PUT", _path(notification.channel, subscriber), params={"acknowledged": str(notification.number)}
        )
        return self._do(call, _check_acknowledged)

    def _arguments(self, call: BrokerCall) -> dict[str, Any]:
        """The arguments for ``request`` and ``stream`` of httpx."""
        return {
            "method": call.method,
            "url": self._url + call.path,
            "content": call.content,
            "headers": {**self._headers, **call.headers},
            "params": call.params,
        }

    def _resumed(
        self, channel: str, subscriber: str | None, after: int | None, random: Random | None, again: tuple[float, Tell]
    ) -> ResumedSubscription:
        place = Reconnection(self._url, Backoff(random or Random()), *again)
        return ResumedSubscription(channel, subscriber, after, place, self._largest)

    def _away(self, error: Exception) -> BrokerError:
        """The error for a request without a response, or with too large a one."""
        url = self._url
        if isinstance(error, OversizedError):
            return BrokerError(f"{url}: {error}")
        if isinstance(error, httpx.InvalidURL | httpx.UnsupportedProtocol):
            return AwayError(f"{url}: not a web address: write http://{url.removeprefix('//')}, or https://...")
        return AwayError(f"{url}: {obstacle(error).partition(':')[0]}: is a broker there?")


class Client(_Operations[Acknowledged, None, Standing, tuple[str, ...], ChannelStatus]):
    """A synchronous client, to be closed or used in ``with``. A passed ``http`` client is used and not closed.

    ``largest`` is the maximum size in bytes of a response or notification; BrokerError for a larger one.
    """

    def __init__(
        self, url: str, token: str | None = None, http: HttpClient | None = None, *, largest: int = LARGEST_MESSAGE
    ) -> None:
        super().__init__(url, token, largest)
        self._http, self._own = http or client(self._limits()), http is None

    def _send(self, call: BrokerCall, read: Callable[[httpx.Response], Read]) -> Read:
        """Send a request and read its response; BrokerError, AwayError."""
        try:
            response = self._http.request(**self._arguments(call))
        except _PASSING as error:
            raise self._away(error) from error
        with _understanding(response.request.url):
            return read(response)

    def kept(self) -> KeptBytes:
        """Bytes stored for absent subscribers of this token's channels."""
        return self._send(BrokerCall("GET", "/channels"), _kept)

    def subscribe(
        self,
        channel: str,
        subscriber: str | None = None,
        after: int | None = None,
        sleep: Callable[[float], None] = time.sleep,
        random: Random | None = None,
        patience: float = PATIENCE_S,
        tell: Tell = log,
    ) -> Generator[Told, None, None]:
        """Notifications without duplicates until the channel ends; reconnects, and calls ``tell`` with the reason.

        With the name of a ``subscriber``, consumed notifications are acknowledged, and a later subscription by that
        name resumes there. BrokerError for a permanent failure (refusal, certificate, address), AwayError if the broker
        does not respond for ``patience`` seconds.
        """
        place = self._resumed(channel, subscriber, after, random, (patience, tell))
        while True:
            try:
                with self._http.stream(**self._arguments(place.call())) as response:
                    if not response.is_success:
                        # In a stream the body is not read by itself, and the refusal's sentence is in it.
                        response.read()
                    if place.ended(response):
                        return
                    for chunk in response.iter_bytes() if response.is_success else ():
                        for notification in place.heard(chunk):
                            yield notification
                            if subscriber is not None:
                                self._acknowledge(notification, subscriber)
            except _PASSING as error:
                wait = place.again.after(error)
            else:
                wait = place.again.busy(response)
            sleep(wait)

    def close(self) -> None:
        """Close the HTTP client, unless it was passed in."""
        if self._own:
            self._http.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


class AsyncClient(
    _Operations[
        Awaited[Acknowledged], Awaited[None], Awaited[Standing], Awaited[tuple[str, ...]], Awaited[ChannelStatus]
    ]
):
    """The asynchronous counterpart of ``Client``, to be closed or used in ``async with``."""

    def __init__(
        self, url: str, token: str | None = None, http: AsyncHttpClient | None = None, *, largest: int = LARGEST_MESSAGE
    ) -> None:
        super().__init__(url, token, largest)
        self._http, self._own = http or async_client(self._limits()), http is None

    async def _send(self, call: BrokerCall, read: Callable[[httpx.Response], Read]) -> Read:
        """Send a request and read its response; BrokerError, AwayError."""
        try:
            response = await self._http.request(**self._arguments(call))
        except _PASSING as error:
            raise self._away(error) from error
        with _understanding(response.request.url):
            return read(response)

    async def kept(self) -> KeptBytes:
        """Bytes stored for absent subscribers of this token's channels, as ``Client.kept``."""
        return await self._send(BrokerCall("GET", "/channels"), _kept)

    async def subscribe(
        self,
        channel: str,
        subscriber: str | None = None,
        after: int | None = None,
        random: Random | None = None,
        patience: float = PATIENCE_S,
        tell: Tell = log,
    ) -> AsyncGenerator[Told, None]:
        """Notifications without duplicates until the channel ends, as ``Client.subscribe``."""
        place = self._resumed(channel, subscriber, after, random, (patience, tell))
        while True:
            try:
                async with self._http.stream(**self._arguments(place.call())) as response:
                    if not response.is_success:
                        await response.aread()
                    if place.ended(response):
                        return
                    if response.is_success:
                        async for chunk in response.aiter_bytes():
                            for notification in place.heard(chunk):
                                yield notification
                                if subscriber is not None:
                                    await self._acknowledge(notification, subscriber)
            except _PASSING as error:
                wait = place.again.after(error)
            else:
                wait = place.again.busy(response)
            await asyncio.sleep(wait)

    async def aclose(self) -> None:
        """Close the HTTP client, unless it was passed in."""
        if self._own:
            await self._http.aclose()

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.aclose()
