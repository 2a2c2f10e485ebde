"""Delivery of notifications: events and WebSocket messages on connections, and webhooks."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from random import Random
from threading import Lock
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias
from urllib.parse import quote

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import HTTPConnection, Request
from starlette.websockets import WebSocket

from streamgauge.formats.results import results
from streamgauge.incremental.row_joins import TRUE
from streamgauge.model.logs import without_secrets
from streamgauge.model.mistake import MistakeError
from streamgauge.servers.broker.broker import Broker
from streamgauge.servers.broker.channels import Channel, FormKind, Subscribed, UnknownChannelError
from streamgauge.servers.broker.contract import Notification
from streamgauge.servers.broker.limits import LimitError, check_name
from streamgauge.servers.broker.registry import HOOK_NAME, OPERATOR
from streamgauge.servers.http import events
from streamgauge.servers.http.fanout import CONNECTION, PUSH, Fanouts, Member, as_events, chunk, converse, frames
from streamgauge.servers.sealed.soundness import JournalError
from streamgauge.sources.backoff import Backoff

if TYPE_CHECKING:
    import httpx

    from streamgauge.outgoing.clients import AsyncHttpClient


_KEPT: Final = 512
_LARGEST: Final = 64 * 2**10
"""Bytes of rows above which a notification's text is not cached."""


def key_of(notification: Notification) -> str:
    """The key of a notification, unique and the same for every delivery.

    The time distinguishes it from a notification of a deleted channel with the same name and number.
    """
    return f"{quote(notification.channel, safe='')}/{notification.number}/{notification.at}"


def notification_json(
    notification: Notification, variables: tuple[str, ...], kind: FormKind = "SELECT"
) -> dict[str, object]:
    """The JSON of a notification; for an ASK with its current truth."""
    truth = {"boolean": notification.added == ((TRUE,),)} if kind == "ASK" else {}
    return truth | {
        "channel": notification.channel,
        "number": notification.number,
        "key": key_of(notification),
        "publications": list(notification.causes),
        "at": notification.at,
        "added": results(variables, notification.added),
        "removed": results(variables, notification.removed),
    }


class NotificationTexts:
    """Notifications as lines of JSON, with a cache of the latest: all subscribers share one text. Thread-safe."""

    def __init__(self) -> None:
        self._texts: OrderedDict[tuple[str, int, int], bytes] = OrderedDict()
        self._lock = Lock()

    def text(self, channel: Channel, notification: Notification) -> bytes:
        """One line of JSON."""
        key = channel.name, notification.number, notification.at
        text = self._texts.get(key)
        # Two threads may both encode a text that is new; that costs less than a lock around every lookup.
        if text is None:
            text = msgspec.json.encode(notification_json(notification, channel.variables, channel.log.kind))
            # 512 texts of 64 KB are 32 MB; without the bound they could be 3 GB.
            if notification.size <= _LARGEST:
                self._keep(key, text)
        return text

    def _keep(self, key: tuple[str, int, int], text: bytes) -> None:
        with self._lock:
            self._texts[key] = text
            if len(self._texts) > _KEPT:
                self._texts.popitem(last=False)


_Begun: TypeAlias = tuple[Subscribed, events.Signal]
"""A subscription, and the signal of its connection."""


class Connections:
    """Subscribers with a connection; those of one channel that have caught up share a fan-out."""

    def __init__(self, broker: Broker, texts: NotificationTexts) -> None:
        self._broker, self._texts = broker, texts
        self._fanouts = Fanouts[tuple[Channel, str], Notification]()

    async def begin(self, connection: HTTPConnection, name: str, owner: str, after: str | None) -> _Begun:
        """Subscribe a connection to a channel, after the last notification that it received."""
        signal, last = events.Signal(), events.last_event(after)
        return await run_in_threadpool(self._subscribe, connection, name, owner, signal, last), signal

    def event_stream(self, request: Request, begun: _Begun) -> events.Events:
        """Notifications as server-sent events."""
        subscribed, signal = begun
        line = partial(self._texts.text, subscribed.channel)
        # A HEAD gets no body, so nothing may write to its connection.
        member = self._member(request, subscribed, signal) if request.method == "GET" else None
        return events.Events(as_events(subscribed, line, signal, member), subscribed.close)

    async def messages(self, websocket: WebSocket, begun: _Begun) -> None:
        """Accept a WebSocket and send notifications as messages."""
        subscribed, signal = begun
        await websocket.accept()
        hear = partial(_acknowledged, websocket, subscribed)
        member = self._member(websocket, subscribed, signal)
        line = partial(self._texts.text, subscribed.channel)
        await converse(websocket, subscribed, lambda notification: line(notification).decode(), signal, hear, member)

    def _subscribe(
        self, connection: HTTPConnection, name: str, owner: str, signal: events.Signal, after: int | None
    ) -> Subscribed:
        """Subscribe by the query parameter ``subscriber``, if present; resuming ``after`` a number acknowledges it."""
        subscriber = connection.query_params.get("subscriber")
        if subscriber is None:
            return self._broker.listen(name, signal.set, after, owner)
        check_name(subscriber, "a subscriber")
        # In a thread (`begin`): the broker's lock may be held by a publication that is being evaluated.
        subscribed = self._broker.subscribe(name, subscriber, signal.set, after, owner)
        if after is not None:
            # A client that resumes after a number has received everything up to it, even if its acknowledgement was
            # lost.
            subscribed.acknowledge(after)
        return subscribed

    def _member(
        self, connection: HTTPConnection, subscribed: Subscribed, signal: events.Signal
    ) -> Member[Notification] | None:
        """The subscriber as a member of a fan-out; ``None`` if the server does not expose the connection."""
        written = (connection.scope.get("extensions") or {}).get(PUSH, {}).get(CONNECTION)
        if written is None:
            return None
        channel, kind = subscribed.channel, connection.scope["type"]
        encode = partial(self._frames if kind == "websocket" else self._chunk, channel)
        within = partial(
            self._fanouts.within, (channel, kind), channel.share, encode, lambda notification: notification.size
        )
        return Member(subscribed, written, signal, within)

    def _chunk(self, channel: Channel, notifications: Sequence[Notification]) -> bytes:
        return chunk(
            b"".join(
                events.event(self._texts.text(channel, notification), notification.number)
                for notification in notifications
            )
        )

    def _frames(self, channel: Channel, notifications: Sequence[Notification]) -> bytes:
        return frames(self._texts.text(channel, notification) for notification in notifications)


class _Acknowledgement(msgspec.Struct, forbid_unknown_fields=True):
    """A client's message that acknowledges notifications."""

    acknowledge: Annotated[int, msgspec.Meta(ge=0)]


async def _acknowledged(websocket: WebSocket, subscribed: Subscribed) -> None:
    """Process acknowledgements until the client disconnects or sends anything else."""
    while (message := await websocket.receive())["type"] != "websocket.disconnect":
        try:
            acknowledgement = msgspec.json.decode(message.get("text") or "", type=_Acknowledgement)
        except msgspec.MsgspecError:
            await websocket.close(1008, 'only {"acknowledge": NUMBER} is understood here')
            return
        # It takes the broker's lock, for which the event loop must not wait.
        await asyncio.to_thread(subscribed.acknowledge, acknowledgement.acknowledge)


PATIENCE_S: Final = 10.0
"""Time for a webhook to respond."""

MAX_RESPONSE: Final = 64 * 2**10
"""Bytes of a response that are read and discarded, so that its connection can be reused."""

DRAIN_S: Final = 1.0
"""Time for discarding a response."""

CHANNEL_INTERVAL_S: Final = 1.0
"""Interval between attempts to subscribe to a channel that does not exist yet."""

MAX_BACKOFF_S: Final = 60.0
"""The longest delay between attempts."""


class WebhookError(MistakeError, ValueError):
    """An invalid webhook; the sentence says what to write."""


@dataclass(frozen=True, slots=True)
class Webhook:
    """A channel whose notifications are posted to a URL; ``private`` if its host may have a private address."""

    channel: str
    url: str
    private: bool = False

    @property
    def subscriber(self) -> str:
        """The subscriber name under which its progress is stored."""
        return f"{HOOK_NAME}{sha256(self.url.encode()).hexdigest()[:32]}"


def read_hook(text: str, allowed: Collection[str] = ()) -> Webhook:
    """Parse ``CHANNEL=URL``; WebhookError also for a private host that is not ``allowed`` by name."""
    channel, equals, address = text.partition("=")
    if not channel or not equals or not address.startswith(("http://", "https://")):
        raise WebhookError(f"{text!r}: a webhook is CHANNEL=URL, with http or https")
    import httpx

    from streamgauge.outgoing.addresses import names_private

    try:
        url = httpx.URL(address)
    except httpx.InvalidURL as error:
        raise WebhookError(f"{text!r}: a webhook is CHANNEL=URL, with http or https: {error}") from error
    # `httpx` has lowered the host of the URL already.
    private = url.host in {host.lower() for host in allowed}
    if names_private(url.host) and not private:
        raise WebhookError(f"{address}: {url.host} is not a public host: --webhook-host {url.host} allows it")
    return Webhook(channel, address, private)


def refused(_address: str, sentence: str) -> httpx.ConnectError:
    """The error for a host that resolves to a private address; it counts as a failed attempt."""
    import httpx

    return httpx.ConnectError(sentence)


def _guarded() -> AsyncHttpClient:
    from streamgauge.outgoing.clients import ExchangeLimits, guarded_client

    return guarded_client(refused, limits=ExchangeLimits(PATIENCE_S, MAX_RESPONSE))


class Webhooks:
    """Posts notifications in order, each until the response is 2xx; ``failures`` counts the other attempts.

    The header ``Idempotency-Key`` has the key of the notification. Only operators configure webhooks, clients cannot.
    A channel has its webhooks from its first notification on.
    """

    def __init__(
        self,
        broker: Broker,
        texts: NotificationTexts,
        hooks: Sequence[Webhook],
        client: Callable[[], AsyncHttpClient] = _guarded,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._broker, self._texts, self._hooks, self._client = broker, texts, hooks, client
        self._sleep, self._random = sleep, Random()
        self.failures = 0
        # Before the service accepts anything: the first notification must find its webhooks enrolled.
        for hook in hooks:
            broker.enrol_always(hook.channel, hook.subscriber, OPERATOR)

    def status(self) -> list[dict[str, Any]]:
        """Each webhook, without secrets of its address, and how many notifications it is behind."""
        return [
            {"channel": hook.channel, "url": without_secrets(hook.url), "behind": self._behind(hook)}
            for hook in self._hooks
        ]

    def _behind(self, hook: Webhook) -> int:
        with suppress(UnknownChannelError):
            # A channel that does not exist yet has nothing to deliver.
            channel = self._broker.channel(hook.channel)
            return channel.number - channel.acknowledged.get(hook.subscriber, channel.number)
        return 0

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Deliver during the block."""
        async with AsyncExitStack() as stack:
            client = await stack.enter_async_context(self._client()) if self._hooks else None
            tasks = [asyncio.create_task(self._deliver(client, hook)) for hook in self._hooks if client is not None]
            try:
                yield
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    async def _deliver(self, client: AsyncHttpClient, hook: Webhook) -> None:
        signal = events.Signal()
        while True:
            try:
                subscribed = await run_in_threadpool(
                    self._broker.subscribe, hook.channel, hook.subscriber, signal.set, None, OPERATOR
                )
            # A channel that does not exist yet, a budget that is reached, a disk that is full: all of them may pass.
            except (UnknownChannelError, LimitError, JournalError):
                await self._sleep(CHANNEL_INTERVAL_S)
                continue
            try:
                await self._follow(client, hook, subscribed, signal)
            finally:
                subscribed.close()
            await self._sleep(CHANNEL_INTERVAL_S)

    async def _follow(
        self, client: AsyncHttpClient, hook: Webhook, subscribed: Subscribed, signal: events.Signal
    ) -> None:
        """Deliver until the channel ends, the webhook is too far behind, or the broker has failed."""
        while True:
            # Read before take(): an end seen after it could hide notifications added in between.
            over = subscribed.over
            for notification in subscribed.take():
                text = self._texts.text(subscribed.channel, notification)
                await self._post(client, hook, text, key_of(notification))
                # Only after a 2xx: a broker that stops in between posts the notification again, with the same key.
                await run_in_threadpool(subscribed.acknowledge, notification.number)
            if over or self._broker.fault:
                return
            await signal.wait(events.BEAT_S)

    async def _post(self, client: AsyncHttpClient, hook: Webhook, text: bytes, key: str) -> None:
        import httpx

        from streamgauge.outgoing.guarded import PRIVATE

        headers = {"Content-Type": "application/json", "Idempotency-Key": key}
        request: dict[str, Any] = {"content": text, "headers": headers, "extensions": {PRIVATE: hook.private}}
        backoff = Backoff(self._random, most=MAX_BACKOFF_S)
        while True:
            try:
                async with asyncio.timeout(PATIENCE_S), client.stream("POST", hook.url, **request) as response:
                    if response.is_success:
                        # An unread body would keep the connection from being used for the next notification.
                        await _drain(response)
                        return
            except (httpx.HTTPError, TimeoutError):
                pass
            self.failures += 1
            await self._sleep(backoff.next())


async def _drain(response: httpx.Response) -> None:
    """Read and discard the body of a webhook's response; one that is long or slow is cut off."""
    import httpx

    size = 0
    with suppress(httpx.HTTPError, httpx.StreamError, TimeoutError):
        async with asyncio.timeout(DRAIN_S):
            async for chunk in response.aiter_raw():
                size += len(chunk)
                if size > MAX_RESPONSE:
                    return
