"""Our broker over HTTP, in another process or at a URL; subscribers use events or WebSockets."""

import json
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from time import monotonic, sleep
from typing import Final, TypeVar
from urllib.parse import quote

import httpx

from streamgauge.broker import AsyncClient, BrokerError, Client, Told
from streamgauge.harness.process import ServerProcess, ServiceError
from streamgauge.harness.systems import SubscriberLoop
from streamgauge.model.mistake import obstacle
from streamgauge.model.terms import Triple
from streamgauge.outgoing.clients import CROWD_RECEIVED, async_client, client, crowd_limits
from streamgauge.outgoing.sockets import websocket
from streamgauge.servers.broker.client import bearing, read_told
from streamgauge.servers.broker.contract import Publication
from streamgauge.servers.broker.publications import IDLE_S
from streamgauge.suites.sepbm import (
    BASE,
    ONTOLOGY,
    Configuration,
    Receive,
    ReceivedNotification,
    SepbmChannel,
    SepbmSystem,
    UnusableSystemError,
    triples_text,
)
from streamgauge.suites.sepbm.adapters import Clock, in_parts, new_journal

ABOUT: Final = "our broker over HTTP, in a process of its own or at a URL"
OPTIONS: Final = {
    "strategy": "how notifications are computed: incremental (default), reevaluate, stringrs or graphss",
    "journal": "a folder for a journal, which makes publications durable; without it nothing is",
    "transport": "how subscribers are notified: events (default) or websocket",
    "url": "a running broker with the ontology, without facts and channels, for exclusive use",
    "token": "a bearer token for it",
}

Answered = TypeVar("Answered")

_HEURISTICS: Final = ("stringrs", "graphss")
_LOOK_S: Final = 0.01
_KIND: Final = "application/n-triples"
_PART: Final = 20_000
"""Triples of one publication of the base load."""

_PATIENCE_S: Final = 60.0


def start(options: Mapping[str, str], clock: Clock) -> SepbmSystem:
    """A broker that is started at loading, or a running one (``url``); UnusableSystemError for wrong options."""
    transport = options.get("transport", "events")
    if transport not in ("events", "websocket"):
        raise UnusableSystemError(f"unknown transport {transport}: there are events and websocket")
    for option in ("strategy", "journal"):
        if "url" in options and option in options:
            raise UnusableSystemError(f"{option} is set at the start of a broker, so it cannot be used with url")
    if "token" in options and "url" not in options:
        raise UnusableSystemError("token needs url: a broker that is started here has no token")
    return BrokerOverHttp(options, transport, clock)


class BrokerOverHttp:
    """The operations by the broker's own clients, one for all publishers and one for all subscribers."""

    def __init__(self, options: Mapping[str, str], transport: str, clock: Clock) -> None:
        self._options, self._clock = options, clock
        self._hearing = self._by_events if transport == "events" else self._by_websocket
        self._service: ServerProcess | None = None
        self._url, self._token = options.get("url", "").rstrip("/"), options.get("token")
        self._http = client(crowd_limits(_PATIENCE_S))
        self._streams = async_client(crowd_limits(_PATIENCE_S))
        self._subscriptions = SubscriberLoop(UnusableSystemError)
        self._numbers: dict[str, list[int]] = {}
        """By channel, the number of the last notification of each subscriber; ``_received`` sums the minima."""
        self._subscribers = self._received = 0
        by_strategy = "changes" if options.get("strategy", "incremental") == "incremental" else "definition"
        self.evaluator = None if self._url else by_strategy

    @property
    def processes(self) -> Sequence[int]:
        """The process id of the server, if this process started it."""
        return () if self._service is None else (self._service.pid,)

    def start(self, configuration: Configuration) -> None:
        """Start the broker with ontology and base load, or publish the base load to a running one."""
        if self._url:
            self._publish_base(configuration)
            return
        words = [
            "broker",
            "serve",
            str(configuration.folder / BASE),
            "--ontology",
            str(configuration.folder / ONTOLOGY),
        ]
        if "strategy" in self._options:
            words += ["--strategy", self._options["strategy"]]
        if "journal" in self._options:
            words += ["--journal", str(new_journal(self._options["journal"]))]
        # Limits that no benchmark reaches: the broker is measured, not its protection.
        limits = {"channels": 1_000_000, "connections": 1_000_000, "subscribers": 1_000_000, "lag": 1_000_000}
        for name, limit in limits.items():
            words += [f"--max-{name}", str(limit)]
        try:
            self._service = ServerProcess(*words)
            self._url = self._service.wait()
        except ServiceError as error:
            raise UnusableSystemError(str(error)) from error

    def _publish_base(self, configuration: Configuration) -> None:
        if self._metric("channels"):
            raise UnusableSystemError(f"{self._url}: it already has channels: use a broker that nobody else uses")
        for part in in_parts(configuration.base(), _PART):
            self._publish(part)

    def subscribe(self, channel: SepbmChannel, hear: Receive) -> None:
        """Connect a subscriber, and wait until it is connected."""
        name = channel.name
        if name not in self._numbers:
            self._ask(lambda client: client.create_channel(name, channel.query))
            self._numbers[name] = []
        numbers = self._numbers[name]
        self._received -= min(numbers, default=0)
        # The new subscriber has received nothing yet, so the number that all of the channel's have received drops to 0.
        place = len(numbers)
        numbers.append(0)
        self._subscriptions.listen(name, self._heard(name, place, hear))
        self._subscribers += 1
        wanted = self._subscribers
        until = monotonic() + _PATIENCE_S
        while self._metric("connections") < wanted:
            self._subscriptions.check()
            if monotonic() > until:
                raise UnusableSystemError(f"channel {name}: no subscriber was connected within {_PATIENCE_S:g} s")
            sleep(_LOOK_S)

    def unsubscribe(self, channel: SepbmChannel) -> None:
        """Delete the channel with its subscribers."""
        self._subscriptions.leave(channel.name)
        numbers = self._numbers.pop(channel.name)
        self._subscribers -= len(numbers)
        self._received -= min(numbers, default=0)
        self._ask(lambda client: client.delete_channel(channel.name))

    async def _heard(self, name: str, place: int, hear: Receive) -> None:
        numbers, clock = self._numbers[name], self._clock
        async for notification in self._hearing(name):
            hear(
                ReceivedNotification(name, notification.publications, notification.added, notification.removed, clock())
            )
            before, numbers[place] = min(numbers), notification.number
            self._received += min(numbers) - before
            self._subscriptions.wake()

    async def _by_events(self, name: str) -> AsyncIterator[Told]:
        subscriber = AsyncClient(self._url, self._token, self._streams, largest=CROWD_RECEIVED)
        # After 0: notifications that are sent before the stream is open are not lost.
        async for notification in subscriber.subscribe(name, after=0):
            yield notification

    async def _by_websocket(self, name: str) -> AsyncIterator[Told]:
        at = f"ws{self._url.removeprefix('http')}/channels/{quote(name, safe='')}/notifications?after=0"
        async with websocket(at, bearing(self._token)) as connection:
            async for text in connection:
                if "number" in json.loads(text):
                    yield read_told(text)

    def feed(self, publication: Publication) -> int:
        """Publish or delete; with a journal, publications are acknowledged once they are durable."""
        if publication.removed:
            return int(self._ask(lambda client: client.delete(triples_text(publication.removed), _KIND)).number)
        return self._publish(publication.added)

    def _publish(self, graph: Sequence[Triple]) -> int:
        return int(self._ask(lambda client: client.publish(triples_text(graph), _KIND)).number)

    def settle(self) -> None:
        """Wait until subscribers have received as many notifications as the broker counts."""
        wanted = self._metric("notifications")
        self._subscriptions.wait(
            lambda: self._received >= wanted,
            _PATIENCE_S,
            lambda: f"received {self._received} of {wanted} notifications",
        )

    def advance(self, time: int) -> None:  # noqa: ARG002 (a broker has a clock of its own)
        """Let heuristics run deferred evaluations, which they do when idle; a publication waits for their end."""
        if self._options.get("strategy") in _HEURISTICS:
            sleep(4 * IDLE_S)
            self._publish(())

    def close(self) -> None:
        """Disconnect the subscribers, and end the server if this process started it."""
        for name in list(self._numbers):
            self._subscriptions.leave(name)
        self._subscriptions.do(self._streams.aclose())
        self._subscriptions.close()
        self._http.close()
        if self._service is not None:
            self._service.end()

    def _ask(self, operation: Callable[[Client], Answered]) -> Answered:
        self._subscriptions.check()
        try:
            return operation(Client(self._url, self._token, self._http, largest=CROWD_RECEIVED))
        except BrokerError as error:
            words = "" if self._service is None else self._service.last_words()
            raise UnusableSystemError(f"{error}{words}") from error

    def _metric(self, name: str) -> int:
        """One of the broker's metrics."""
        try:
            response = self._http.get(f"{self._url}/metrics", headers=bearing(self._token))
        except httpx.TransportError as error:
            raise UnusableSystemError(
                f"{self._url}: {obstacle(error).partition(':')[0]}: is a broker there?"
            ) from error
        value = re.search(rf"^streamgauge_broker_{name} (\S+)$", response.text, re.MULTILINE)
        if not response.is_success or value is None:
            raise UnusableSystemError(
                f"{self._url}/metrics answers {response.status_code} without {name}: use Streamgauge's broker"
            )
        return int(float(value[1]))
