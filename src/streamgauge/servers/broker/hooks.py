"""Webhooks: notifications posted to those who cannot hold a connection, until they take them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from hashlib import sha256
from random import Random
from typing import TYPE_CHECKING, Final

from starlette.concurrency import run_in_threadpool

from streamgauge.model.mistake import MistakeError
from streamgauge.servers.broker.broker import Broker
from streamgauge.servers.broker.channels import Subscribed, UnknownChannelError
from streamgauge.servers.broker.limits import LimitError
from streamgauge.servers.broker.notification_json import Telling, key_of
from streamgauge.servers.broker.registry import HOOK_NAME, OPERATOR
from streamgauge.servers.broker.sqlite import JournalError
from streamgauge.servers.http import events
from streamgauge.servers.http.outgoing_requests import names_private
from streamgauge.sources.backoff import Backoff

if TYPE_CHECKING:
    import httpx

PATIENCE_S: Final = 10.0
"""How long a webhook may take to answer."""

LOOK_S: Final = 1.0
"""How often it is looked whether a channel is there."""

MOST_S: Final = 60.0
"""The longest time between tries."""


class HookError(MistakeError, ValueError):
    """A webhook that is none; the sentence says what to write."""


@dataclass(frozen=True, slots=True)
class Hook:
    """Where a channel's notifications are posted; ``private`` when its host may have an address that is not public."""

    channel: str
    url: str
    private: bool = False

    @property
    def subscriber(self) -> str:
        """The name by which what it has taken is remembered."""
        return f"{HOOK_NAME}{sha256(self.url.encode()).hexdigest()[:32]}"


def read_hook(text: str, allowed: Collection[str] = ()) -> Hook:
    """``CHANNEL=URL``; HookError also for a private address at a host that is not ``allowed`` by name."""
    channel, equals, address = text.partition("=")
    if not channel or not equals or not address.startswith(("http://", "https://")):
        raise HookError(f"{text!r}: a webhook is CHANNEL=URL, with http or https")
    import httpx

    try:
        url = httpx.URL(address)
    except httpx.InvalidURL as error:
        raise HookError(f"{text!r}: a webhook is CHANNEL=URL, with http or https: {error}") from error
    private = url.host in {host.lower() for host in allowed}
    if names_private(url.host) and not private:
        raise HookError(f"{address}: {url.host} is no public host: --webhook-host {url.host} allows it")
    return Hook(channel, address, private)


def refused(_address: str, sentence: str) -> httpx.ConnectError:
    """A host whose name leads to a private address: a try that failed."""
    import httpx

    return httpx.ConnectError(sentence)


def _guarded() -> httpx.AsyncClient:
    from streamgauge.servers.http.outgoing_requests import guarded_client

    return guarded_client(refused)


class Hooks:
    """Posts notifications in their order, each until 2xx is the answer; ``failures`` counts the other tries.

    ``Idempotency-Key`` is the key of the notification. Operators name webhooks, clients cannot.
    """

    def __init__(
        self,
        broker: Broker,
        telling: Telling,
        hooks: Sequence[Hook],
        client: Callable[[], httpx.AsyncClient] = _guarded,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        random: Random | None = None,
    ) -> None:
        self._broker, self._telling, self._hooks, self._client = broker, telling, hooks, client
        self._sleep, self._random = sleep, random or Random()
        self.failures = 0

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Deliver as long as this is entered."""
        async with AsyncExitStack() as stack:
            client = await stack.enter_async_context(self._client()) if self._hooks else None
            tasks = [asyncio.create_task(self._deliver(client, hook)) for hook in self._hooks if client is not None]
            try:
                yield
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    async def _deliver(self, client: httpx.AsyncClient, hook: Hook) -> None:
        signal = events.Signal()
        while True:
            try:
                subscribed = await run_in_threadpool(
                    self._broker.subscribe, hook.channel, hook.subscriber, signal.set, None, OPERATOR
                )
            except (UnknownChannelError, LimitError, JournalError):
                await self._sleep(LOOK_S)
                continue
            try:
                await self._follow(client, hook, subscribed, signal)
            finally:
                subscribed.close()
            await self._sleep(LOOK_S)

    async def _follow(
        self, client: httpx.AsyncClient, hook: Hook, subscribed: Subscribed, signal: events.Signal
    ) -> None:
        """Until the channel ends or the webhook is too far behind."""
        while True:
            over = subscribed.over
            for each in subscribed.take():
                text = self._telling.text(subscribed.channel, each)
                await self._post(client, hook, text, key_of(each))
                await run_in_threadpool(subscribed.acknowledge, each.number)
            if over or self._broker.fault:
                return
            await signal.wait(events.BEAT_S)

    async def _post(self, client: httpx.AsyncClient, hook: Hook, text: bytes, key: str) -> None:
        import httpx

        from streamgauge.servers.http.outgoing_requests import PRIVATE

        headers = {"Content-Type": "application/json", "Idempotency-Key": key}
        backoff = Backoff(self._random, most=MOST_S)
        while True:
            try:
                said = await client.post(
                    hook.url, content=text, headers=headers, timeout=PATIENCE_S, extensions={PRIVATE: hook.private}
                )
                if said.is_success:
                    return
            except httpx.HTTPError:
                pass
            self.failures += 1
            await self._sleep(backoff.next())
