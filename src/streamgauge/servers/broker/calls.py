"""Requests of a client and replies of a broker, without the connection."""

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote

import httpx

from streamgauge.formats.results import rows
from streamgauge.model.mistake import MistakeError
from streamgauge.model.obstacles import obstacle
from streamgauge.model.terms import Row
from streamgauge.servers.http.headers import retry_after
from streamgauge.servers.http.outgoing_requests import TRANSIENT
from streamgauge.sources.sse_events import EventParser

TURTLE: Final = "text/turtle"
UPDATE: Final = "application/sparql-update"
SILENCE_S: Final = 45.0
"""After how long without a sign of life a connection is taken for broken; a broker gives one every 15 s."""

BUSY: Final = TRANSIENT
"""Statuses of a broker, or of a proxy before it, that says to come again."""

_LARGEST: Final = 256 * 2**20


class BrokerError(MistakeError, RuntimeError):
    """A broker refused, or what it says is not understood; ``status`` is HTTP's, 0 without one.

    ``after`` is in how many seconds to come again, where the broker says so.
    """

    def __init__(self, sentence: str, status: int = 0, after: float | None = None) -> None:
        super().__init__(sentence)
        self.status, self.after = status, after


class AwayError(BrokerError):
    """Nobody answers."""


PASSING_ERRORS: Final = (httpx.TransportError, httpx.InvalidURL, AwayError)
"""How a request fails that got no answer."""


def away(url: str, error: Exception) -> AwayError:
    """Nobody answers there."""
    if isinstance(error, httpx.InvalidURL | httpx.UnsupportedProtocol):
        return AwayError(f"{url}: no web address: write http://{url.removeprefix('//')}, or https://...")
    return AwayError(f"{url}: {obstacle(error).partition(':')[0]}: is a broker there?")


@dataclass(frozen=True, slots=True)
class Told:
    """A notification: rows that came and left, over ``columns``; ``key`` is the same when it comes again.

    ``publications`` are the numbers of those that caused it, ``at`` when it was made (ms since 1970). Of an ASK rows
    are over ``ask``, and ``boolean`` says whether it is true now; of a CONSTRUCT they are triples.
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
    """A publication took effect: its number; ``repeated`` when its key was known and nothing was done."""

    number: int
    repeated: bool


@dataclass(frozen=True, slots=True)
class Standing:
    """The answer of a channel and the number of the last notification that is in it."""

    number: int
    columns: tuple[str, ...]
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class BrokerCall:
    """A request, below the broker's address."""

    method: str
    path: str
    content: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    params: Mapping[str, str] = field(default_factory=dict)


def change(operation: str, graph: str | bytes, kind: str, key: str | None) -> BrokerCall:
    """``publish`` or ``delete`` of a graph, ``update`` of a SPARQL Update."""
    headers = {"Content-Type": kind, **({} if key is None else {"Idempotency-Key": key})}
    return BrokerCall("POST", f"/{operation}", graph.encode() if isinstance(graph, str) else graph, headers)


def creation(channel: str, query: str) -> BrokerCall:
    """``createChannel``."""
    return BrokerCall("PUT", _path(channel), query.encode(), {"Content-Type": "application/sparql-query"})


def of_channel(method: str, channel: str, rest: str = "") -> BrokerCall:
    """Something about a channel."""
    return BrokerCall(method, _path(channel) + rest)


def of_subscriber(method: str, channel: str, subscriber: str, acknowledged: int | None = None) -> BrokerCall:
    """Something about a subscriber."""
    params = {} if acknowledged is None else {"acknowledged": str(acknowledged)}
    return BrokerCall(method, f"{_path(channel)}/subscribers/{quote(subscriber, safe='')}", params=params)


def _path(channel: str) -> str:
    return f"/channels/{quote(channel, safe='')}"


def bearing(token: str | None) -> dict[str, str]:
    """The headers of every request."""
    return {} if token is None else {"Authorization": f"Bearer {token}"}


def checked(response: httpx.Response) -> httpx.Response:
    """A response that has been read; BrokerError says what a broker refuses."""
    if response.is_success:
        return response
    try:
        sentence = response.json()["error"]
    except (ValueError, KeyError, TypeError):
        sentence = f"{response.request.url} answers {response.status_code}"
    raise BrokerError(str(sentence), response.status_code, retry_after(response.headers, int(1000 * time.time())))


def checked_later(response: httpx.Response) -> None:
    """BrokerError for what a broker refuses, but for what it will take later: a later acknowledgement says as much."""
    if response.status_code not in BUSY and response.status_code != 404:
        checked(response)


def acknowledged(response: httpx.Response) -> Acknowledged:
    """The acknowledgement of a publication."""
    said = checked(response).json()
    return Acknowledged(said["publication"], said["repeated"])


def standing(response: httpx.Response) -> Standing:
    """The answer of a channel."""
    columns, found = rows(checked(response).json())
    return Standing(int(response.headers["Notification"]), columns, tuple(found))


class Hearing:
    """A subscription across connections: what came twice is left out, and what is to be asked for next is known."""

    def __init__(self, channel: str, subscriber: str | None, after: int | None) -> None:
        self.channel, self.subscriber, self.last, self.missed = channel, subscriber, after, 0
        self._parser = self._begun()
        self._connected = False

    def call(self) -> BrokerCall:
        """Begin, or go on after the last one."""
        self._parser = self._begun()
        params = {} if self.subscriber is None else {"subscriber": self.subscriber}
        headers = {} if self.last is None else {"Last-Event-ID": str(self.last)}
        return BrokerCall("GET", f"{_path(self.channel)}/notifications", headers=headers, params=params)

    def _begun(self) -> EventParser:
        return EventParser(_LARGEST, None)

    def ended(self, response: httpx.Response) -> bool:
        """Whether the channel is there no more, after it was; BrokerError for a refusal that waiting does not mend."""
        if response.status_code == 404 and self._connected:
            return True
        if response.status_code not in BUSY:
            checked(response)
        self._connected = self._connected or response.is_success
        return False

    def heard(self, chunk: bytes) -> Iterator[Told]:
        """The notifications that are complete with this part of the response."""
        for event in self._parser.feed(chunk):
            if event.data is None:
                raise BrokerError(f"a notification of more than {_LARGEST} bytes")
            if event.name == "missed":
                self.missed += int(json.loads(event.data)["missed"])
            elif event.name == "message":
                told = read_told(json.loads(event.data))
                if self.last is None or told.number > self.last:
                    self.last = told.number
                    yield told


def read_told(said: Mapping[str, Any]) -> Told:
    """A notification from its JSON."""
    columns, added = rows(said["added"])
    _, removed = rows(said["removed"])
    causes = tuple(said["publications"])
    return Told(
        said["channel"],
        said["number"],
        said["key"],
        causes,
        said["at"],
        columns,
        tuple(added),
        tuple(removed),
        said.get("boolean"),
    )
