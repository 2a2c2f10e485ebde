"""SEPA's subscription protocol over a WebSocket (vaimee/SEPA): ad-hoc queries whose changes are sent.

A client sends ``{"subscribe": {"sparql", "alias"}}`` and ``{"unsubscribe": {"spuid"}}``, and gets ``{"notification":
{"spuid", "alias", "sequence", "addedResults", "removedResults"}}``, of which the first has the whole answer.
"""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from threading import Lock
from typing import Any, Final
from uuid import uuid4

from starlette.concurrency import run_in_threadpool
from starlette.websockets import WebSocket, WebSocketDisconnect

from streamgauge.formats.bounds import read_json
from streamgauge.formats.results import pieces
from streamgauge.model.mistake import MistakeError
from streamgauge.model.terms import Row
from streamgauge.servers.broker.broker import Broker
from streamgauge.servers.broker.channels import Subscribed, UnknownChannelError
from streamgauge.servers.broker.limits import LimitError
from streamgauge.servers.http import events
from streamgauge.servers.http.access import OPEN
from streamgauge.servers.http.fanout import close_reason
from streamgauge.servers.http.limits import Gate

PREFIX: Final = "sepa:"
"""The prefix of channels that exist while a client is subscribed to their query here."""

MAX_SUBSCRIPTIONS: Final = 100
"""Subscriptions of one connection."""

_WAITING: Final = 16
_FEW: Final = 200
"""Rows up to which a message is serialised in the event loop: handing it to a thread costs more."""
GRAPH_PARAMETERS: Final = {
    "default-graph-uri": "write GRAPH <...> { ... } in the query",
    "named-graph-uri": "write GRAPH <...> { ... } in the query",
    "using-graph-uri": "write USING <...> or WITH <...> in the update",
    "using-named-graph-uri": "write GRAPH <...> { ... } in the update",
}
"""Parameters for graphs (SPARQL 1.1 Protocol, 2.1.4 and 2.2.3; SEPA), with the equivalent in the query's text."""


class MessageError(MistakeError, ValueError):
    """An invalid message; the sentence says what is expected."""


class SharedChannels:
    """One channel per query, shared by all its subscribers. Thread-safe."""

    def __init__(self, broker: Broker) -> None:
        self._broker, self._lock = broker, Lock()
        self._users: dict[str, int] = {}

    def clear(self) -> None:
        """Delete channels that remain after a crash."""
        for channel in self._broker.channels():
            if channel.name.startswith(PREFIX):
                self._broker.delete_channel(channel.name)

    def begin(self, query: str, wake: Callable[[], None], owner: str = OPEN) -> tuple[Subscribed, list[Row]]:
        """Subscribe an identity to a query: the subscription, and the current answer that it starts from."""
        name = name_of(query)
        with self._lock:
            # Under the lock, or two clients with the same query would both create the channel, and the second would be
            # refused.
            if name not in self._users:
                self._broker.create_channel(name, query, owner=owner)
                self._users[name] = 0
            self._users[name] += 1
        try:
            number, rows = self._broker.rows(name)
            if len(rows) > self._broker.limits.answer:
                raise LimitError(
                    f"the answer has {len(rows)} rows, {self._broker.limits.answer} at most: create a channel for it"
                )
            # From the number that the rows include: notifications sent meanwhile are neither lost nor repeated.
            return self._broker.listen(name, wake, number, owner), rows
        except Exception:
            self._left(name)
            raise

    def end(self, subscribed: Subscribed) -> None:
        """End a subscription; the last one of a query deletes its channel."""
        subscribed.close()
        self._left(subscribed.channel.name)

    def _left(self, name: str) -> None:
        with self._lock:
            self._users[name] -= 1
            if not self._users[name]:
                del self._users[name]
                # The channel may have been deleted by its name.
                with suppress(UnknownChannelError):
                    self._broker.delete_channel(name)


def refuse_graph_parameters(parameters: Mapping[str, Any]) -> None:
    """MessageError for a graph parameter, which would otherwise be ignored silently."""
    for name, advice in GRAPH_PARAMETERS.items():
        if parameters.get(name):
            raise MessageError(f"{name} is not supported: {advice}")


def name_of(query: str) -> str:
    """The channel name of a query: the prefix and a hash."""
    return PREFIX + sha256(query.encode()).hexdigest()[:32]


@dataclass
class _Subscription:
    """One subscription: the client's alias, and the number of notifications sent."""

    alias: str | None
    subscribed: Subscribed
    sequence: int = 0


class Conversation:
    """One connection of the identity ``owner``; ``require`` raises if its token does not permit a channel.

    ``expected`` are the errors that are sent to the client. ``creation`` limits concurrent creations of channels.
    """

    def __init__(
        self,
        websocket: WebSocket,
        channels: SharedChannels,
        require: Callable[[str], None],
        expected: tuple[type[Exception], ...],
        creation: Gate,
        owner: str = OPEN,
    ) -> None:
        self._websocket, self._channels, self._require, self._owner = websocket, channels, require, owner
        self._creation = creation
        self._expected: tuple[type[Exception], ...] = (*expected, MessageError)
        self._signal = events.Signal()
        # Bounded: `put` waits, so that a client's messages stay in the socket while earlier ones are answered.
        self._received: asyncio.Queue[str] = asyncio.Queue(_WAITING)
        self._subscriptions: dict[str, _Subscription] = {}

    async def run(self) -> None:
        """Serve the connection until the client disconnects or is too slow."""
        hearing = asyncio.create_task(self._hear())
        try:
            # Sending and answering in one coroutine: frames of a WebSocket must not interleave, and a notification must
            # not overtake the first answer.
            while not hearing.done():
                while not self._received.empty():
                    await self._answer(self._received.get_nowait())
                if not await self._tell():
                    return
                await self._signal.wait(events.BEAT_S)
        except (WebSocketDisconnect, RuntimeError, TimeoutError):
            return
        finally:
            hearing.cancel()
            for subscription in self._subscriptions.values():
                await run_in_threadpool(self._channels.end, subscription.subscribed)

    async def _hear(self) -> None:
        try:
            while (message := await self._websocket.receive())["type"] != "websocket.disconnect":
                await self._received.put(message.get("text") or "")
                self._signal.set()
        finally:
            self._signal.set()

    async def _answer(self, text: str) -> None:
        try:
            what, parameters = _read(text)
            await (self._subscribe(parameters) if what == "subscribe" else self._unsubscribe(parameters))
        except self._expected as error:
            await self._send({"status_code": 400, "error": type(error).__name__, "error_description": str(error)})

    async def _subscribe(self, parameters: Mapping[str, Any]) -> None:
        query, alias = parameters.get("sparql"), parameters.get("alias")
        if not isinstance(query, str) or not isinstance(alias, str | None):
            raise MessageError('expected {"subscribe": {"sparql": "SELECT ...", "alias": "a name of yours"}}')
        refuse_graph_parameters(parameters)
        if len(self._subscriptions) >= MAX_SUBSCRIPTIONS:
            raise MessageError(f"this connection has {MAX_SUBSCRIPTIONS} subscriptions already: open another one")
        # The permission is for the channel that the query gets, whose name clients can compute and grants can name.
        self._require(name_of(query))
        async with self._creation.through():
            subscribed, rows = await run_in_threadpool(self._channels.begin, query, self._signal.set, self._owner)
        # Random, since it is all that a client shows to end a subscription.
        spuid = f"sepa://spuid/{uuid4()}"
        self._subscriptions[spuid] = _Subscription(alias, subscribed)
        await self._notify(spuid, rows, ())

    async def _unsubscribe(self, parameters: Mapping[str, Any]) -> None:
        spuid = parameters.get("spuid")
        subscription = self._subscriptions.pop(spuid, None) if isinstance(spuid, str) else None
        if subscription is None:
            raise MessageError("there is no subscription of that spuid on this connection")
        await run_in_threadpool(self._channels.end, subscription.subscribed)
        await self._send({"unsubscribed": {"spuid": spuid}})

    async def _tell(self) -> bool:
        """Send new notifications; returns false after closing the connection for a subscription that ended."""
        # Only this coroutine changes the dictionary, between two rounds.
        for spuid, subscription in self._subscriptions.items():
            # Read before take(), as in ``fanout.as_events``.
            over = subscription.subscribed.over
            for notification in subscription.subscribed.take():
                await self._notify(spuid, notification.added, notification.removed)
            if over:
                await self._websocket.close(1011 if over.kind == "failed" else 1000, close_reason(over.why))
                return False
        return True

    async def _notify(self, spuid: str, added: "list[Row] | tuple[Row, ...]", removed: tuple[Row, ...]) -> None:
        subscription = self._subscriptions[spuid]
        variables = subscription.subscribed.channel.variables
        document: dict[str, Any] = {"spuid": spuid, "sequence": subscription.sequence}
        if subscription.alias is not None:
            document["alias"] = subscription.alias
        subscription.sequence += 1
        if len(added) + len(removed) <= _FEW:
            text = _notification(document, variables, added, removed)
        else:
            text = await run_in_threadpool(_notification, document, variables, added, removed)
        await events.in_time(self._websocket.send_text(text))

    async def _send(self, message: Mapping[str, Any]) -> None:
        text = json.dumps(message, ensure_ascii=False, separators=(",", ":"))
        await events.in_time(self._websocket.send_text(text))


def _notification(
    document: Mapping[str, Any],
    variables: Sequence[str],
    added: "list[Row] | tuple[Row, ...]",
    removed: tuple[Row, ...],
) -> str:
    """The message, joined from pieces that each take little time, so that the interpreter lock is released often."""
    head = json.dumps(document, ensure_ascii=False, separators=(",", ":"))[:-1].encode()
    texts = [b'{"notification":', head]
    for name, rows in (("addedResults", added), ("removedResults", removed)):
        texts += [f',"{name}":'.encode(), *pieces(variables, rows)]
    return b"".join((*texts, b"}}")).decode()


def _read(text: str) -> tuple[str, Mapping[str, Any]]:
    try:
        document = read_json(text)
    except ValueError:
        document = None
    if isinstance(document, dict):
        for what in ("subscribe", "unsubscribe"):
            if isinstance(document.get(what), dict):
                return what, document[what]
    raise MessageError('expected JSON: {"subscribe": {...}} or {"unsubscribe": {...}}')
