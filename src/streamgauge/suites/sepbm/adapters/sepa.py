"""A SEPA broker (vaimee/SEPA): SPARQL Updates over HTTP, subscriptions as JSON messages over WebSockets.

It has no channels: a channel is a query of its subscribers. It reports neither the update that caused a notification
nor their completion, so notifications count as complete after a quiet period.
"""

import json
import threading
from collections.abc import Mapping, Sequence
from time import monotonic, sleep
from typing import Any, Final

from websockets.asyncio.client import ClientConnection
from websockets.exceptions import WebSocketException

from streamgauge.formats.results import ResultsError, rows
from streamgauge.harness.systems import SubscriberLoop
from streamgauge.model.terms import Row, Triple
from streamgauge.outgoing.clients import client, crowd_limits
from streamgauge.outgoing.sockets import websocket
from streamgauge.servers.broker.client import bearing
from streamgauge.servers.broker.contract import Publication
from streamgauge.suites.sepbm import (
    Configuration,
    Receive,
    ReceivedNotification,
    SepbmChannel,
    SepbmSystem,
    UnusableSystemError,
)
from streamgauge.suites.sepbm.adapters import Clock, data_update, in_parts, post

ABOUT: Final = "a SEPA broker: SPARQL Update over HTTP, SEPA's subscriptions over WebSockets"
OPTIONS: Final = {
    "update": "the URL of its SPARQL Update, such as http://localhost:8000/update",
    "subscribe": "the URL of its subscriptions, such as ws://localhost:9000/subscribe",
    "quiet": "the time without a notification (ms) after which all count as received (default: 200)",
    "token": "a bearer token for both",
    "base": "publish (default) publishes the base load; loaded: it is there already",
}

_PATIENCE_S: Final = 60.0

_GET_ONE: Final = (
    "run one: SEPA is at github.com/vaimee/SEPA, and `streamgauge broker serve` has its messages at /subscribe"
)


def start(options: Mapping[str, str], clock: Clock) -> SepbmSystem:
    """A running SEPA broker; UnusableSystemError without its addresses."""
    for name in ("update", "subscribe"):
        if name not in options:
            raise UnusableSystemError(f"system sepa: say {name}, {OPTIONS[name]}; {_GET_ONE}")
    quiet, base = options.get("quiet", "200"), options.get("base", "publish")
    if not quiet.isascii() or not quiet.isdigit():
        raise UnusableSystemError(f"system sepa: quiet is {quiet!r}: expected milliseconds, an integer")
    if base not in ("publish", "loaded"):
        raise UnusableSystemError(f"system sepa: base is {base!r}: expected publish or loaded")
    return SepaSystem(options, int(quiet) / 1000, base == "publish", clock)


class SepaSystem:
    """The operations by SEPA's protocol, with a connection for each subscriber."""

    def __init__(self, options: Mapping[str, str], quiet: float, publishes: bool, clock: Clock) -> None:
        self.processes: Sequence[int] = ()
        self.evaluator: str | None = None
        self._update, self._subscribe = options["update"], options["subscribe"]
        self._headers = bearing(options.get("token"))
        self._quiet, self._publishes, self._clock = quiet, publishes, clock
        self._http = client(crowd_limits(_PATIENCE_S))
        self._subscriptions = SubscriberLoop(UnusableSystemError)
        self._last = monotonic()

    def start(self, configuration: Configuration) -> None:
        """Publish the base load unless it is there; the ontology has to be configured in the broker."""
        for part in in_parts(configuration.base() if self._publishes else ()):
            self._send("INSERT", part)

    def subscribe(self, channel: SepbmChannel, hear: Receive) -> None:
        """Wait for SEPA's first message, the current answer, which is not a notification."""
        name, there = channel.name, threading.Event()
        self._subscriptions.listen(name, self._heard(channel, hear, there))
        until = monotonic() + _PATIENCE_S
        while not there.wait(0.05):
            self._subscriptions.check()
            if monotonic() > until:
                raise UnusableSystemError(f"{self._subscribe}: no answer for channel {name} within {_PATIENCE_S:g} s")

    async def _heard(self, channel: SepbmChannel, hear: Receive, there: threading.Event) -> None:
        wish: dict[str, Any] = {"sparql": channel.query, "alias": channel.name}
        if self._headers:
            wish["authorization"] = self._headers["Authorization"]
        try:
            async with websocket(self._subscribe, self._headers) as connection:
                await connection.send(json.dumps({"subscribe": wish}))
                await self._follow(connection, channel, hear, there)
        except (OSError, WebSocketException) as error:
            raise UnusableSystemError(f"{self._subscribe}: {error or type(error).__name__}; {_GET_ONE}") from error

    async def _follow(
        self, connection: ClientConnection, channel: SepbmChannel, hear: Receive, there: threading.Event
    ) -> None:
        variables = channel.variables
        async for text in connection:
            received = self._clock()
            added, removed = read_notification(text, variables)
            # The first message is the current answer, which changed nothing.
            if there.is_set() and (added or removed):
                hear(ReceivedNotification(channel.name, (), added, removed, received))
            there.set()
            self._last = monotonic()
            self._subscriptions.wake()

    def unsubscribe(self, channel: SepbmChannel) -> None:
        """End the connections of a channel."""
        self._subscriptions.leave(channel.name)

    def feed(self, publication: Publication) -> None:
        """Publish or delete; acknowledged when the update is."""
        if publication.removed:
            self._send("DELETE", publication.removed)
        else:
            self._send("INSERT", publication.added)

    def _send(self, operation: str, graph: Sequence[Triple]) -> None:
        self._subscriptions.check()
        headers = {**self._headers, "Content-Type": "application/sparql-update"}
        post(self._http, self._update, data_update(operation, graph), headers, f"; {_GET_ONE}")
        self._last = monotonic()

    def settle(self) -> None:
        """Wait until no notification has arrived for a while."""
        # The protocol does not say when all notifications of an update have been sent.
        while (left := self._last + self._quiet - monotonic()) > 0:
            self._subscriptions.check()
            sleep(left)

    def advance(self, time: int) -> None:
        """Do nothing: no evaluation is deferred."""

    def close(self) -> None:
        """Close subscriptions and connections."""
        self._subscriptions.close()
        self._http.close()


def read_notification(text: str | bytes, variables: tuple[str, ...]) -> tuple[tuple[Row, ...], tuple[Row, ...]]:
    """The added and removed rows of a message over a channel's variables; UnusableSystemError for anything else."""
    document: Any = None
    try:
        document = json.loads(text)
        notification = document["notification"]
        return _ordered(notification["addedResults"], variables), _ordered(notification["removedResults"], variables)
    except (ValueError, KeyError, TypeError) as error:
        words = document.get("error_description") if isinstance(document, dict) else None
        raise UnusableSystemError(words or f"no notification of SEPA's: {text!r:.200}") from error


def _ordered(document: object, variables: tuple[str, ...]) -> tuple[Row, ...]:
    """Rows with their columns in the order of the variables; missing ones are unbound. ResultsError."""
    if not document:
        return ()
    names, rows_ = rows(document)
    if unknown := set(names) - set(variables):
        raise ResultsError(f"it has variables that the query does not select: {', '.join(sorted(unknown))}")
    places = [names.index(name) if name in names else None for name in variables]
    return tuple(tuple(None if place is None else row[place] for place in places) for row in rows_)
