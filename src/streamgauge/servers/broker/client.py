"""A broker's client: the six operations over HTTP, for those who wait and for those who await."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AbstractContextManager
from random import Random
from types import TracebackType

import httpx

from streamgauge.servers.broker import calls
from streamgauge.servers.broker.calls import TURTLE, Acknowledged, BrokerCall, Hearing, Standing, Told
from streamgauge.servers.broker.reconnection import PATIENCE_S, Reconnection, Tell, log
from streamgauge.sources.backoff import Backoff

_TIMEOUT = httpx.Timeout(calls.SILENCE_S)


class Client:
    """Operations that wait; BrokerError when one is refused or nobody is there.

    ``http`` is used and left open where it is given. Used with ``with``, or to be closed.
    """

    def __init__(self, url: str, token: str | None = None, http: httpx.Client | None = None) -> None:
        self._url, self._headers = url.rstrip("/"), calls.bearing(token)
        self._http, self._own = http or httpx.Client(timeout=_TIMEOUT), http is None

    def publish(self, graph: str | bytes, kind: str = TURTLE, key: str | None = None) -> Acknowledged:
        """The facts of a graph, or of named graphs, are there from now on. With a ``key`` it may be sent again."""
        return calls.acknowledged(self._send(calls.change("publish", graph, kind, key)))

    def delete(self, graph: str | bytes, kind: str = TURTLE, key: str | None = None) -> Acknowledged:
        """They are there no more."""
        return calls.acknowledged(self._send(calls.change("delete", graph, kind, key)))

    def update(self, update: str, key: str | None = None) -> Acknowledged:
        """A SPARQL Update, as one publication."""
        return calls.acknowledged(self._send(calls.change("update", update, calls.UPDATE, key)))

    def create_channel(self, channel: str, query: str) -> None:
        """A channel on a query: SELECT, ASK or CONSTRUCT."""
        calls.checked(self._send(calls.creation(channel, query)))

    def delete_channel(self, channel: str) -> None:
        """A channel ends."""
        calls.checked(self._send(calls.of_channel("DELETE", channel)))

    def rows(self, channel: str) -> Standing:
        """The answer of a channel as it is."""
        return calls.standing(self._send(calls.of_channel("GET", channel, "/rows")))

    def unsubscribe(self, channel: str, subscriber: str) -> None:
        """A subscriber is forgotten."""
        calls.checked(self._send(calls.of_subscriber("DELETE", channel, subscriber)))

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
        """Notifications, each once, until the channel ends; a lost connection is made again, and ``tell`` told why.

        With the name of a ``subscriber`` what was taken is acknowledged, and who comes back by it goes on there.
        BrokerError for a refusal or a mistake (a status that waiting does not mend, a certificate, an address),
        AwayError when the broker was away for ``patience`` seconds.
        """
        hearing, again = Hearing(channel, subscriber, after), Reconnection(self._url, _backoff(random), patience, tell)
        while True:
            try:
                with self._streamed(hearing.call()) as response:
                    if not response.is_success:
                        response.read()
                    if hearing.ended(response):
                        return
                    for chunk in response.iter_bytes() if response.is_success else ():
                        again.heard()
                        for told in hearing.heard(chunk):
                            yield told
                            self._taken(channel, subscriber, told.number)
            except calls.PASSING_ERRORS as error:
                wait = again.after(error)
            else:
                wait = again.busy(response)
            sleep(wait)

    def _taken(self, channel: str, subscriber: str | None, number: int) -> None:
        if subscriber is not None:
            calls.checked_later(self._send(calls.of_subscriber("PUT", channel, subscriber, number)))

    def _send(self, call: BrokerCall) -> httpx.Response:
        headers = {**self._headers, **call.headers}
        try:
            return self._http.request(
                call.method, self._url + call.path, content=call.content, headers=headers, params=call.params
            )
        except calls.PASSING_ERRORS as error:
            raise calls.away(self._url, error) from error

    def _streamed(self, call: BrokerCall) -> AbstractContextManager[httpx.Response]:
        headers = {**self._headers, **call.headers}
        return self._http.stream(call.method, self._url + call.path, headers=headers, params=call.params)

    def close(self) -> None:
        """Leave."""
        if self._own:
            self._http.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


class AsyncClient:
    """The same, to be awaited; used with ``async with``, or to be closed."""

    def __init__(self, url: str, token: str | None = None, http: httpx.AsyncClient | None = None) -> None:
        self._url, self._headers = url.rstrip("/"), calls.bearing(token)
        self._http, self._own = http or httpx.AsyncClient(timeout=_TIMEOUT), http is None

    async def publish(self, graph: str | bytes, kind: str = TURTLE, key: str | None = None) -> Acknowledged:
        """The facts of a graph are there from now on."""
        return calls.acknowledged(await self._send(calls.change("publish", graph, kind, key)))

    async def delete(self, graph: str | bytes, kind: str = TURTLE, key: str | None = None) -> Acknowledged:
        """They are there no more."""
        return calls.acknowledged(await self._send(calls.change("delete", graph, kind, key)))

    async def update(self, update: str, key: str | None = None) -> Acknowledged:
        """A SPARQL Update, as one publication."""
        return calls.acknowledged(await self._send(calls.change("update", update, calls.UPDATE, key)))

    async def create_channel(self, channel: str, query: str) -> None:
        """A channel on a query: SELECT, ASK or CONSTRUCT."""
        calls.checked(await self._send(calls.creation(channel, query)))

    async def delete_channel(self, channel: str) -> None:
        """A channel ends."""
        calls.checked(await self._send(calls.of_channel("DELETE", channel)))

    async def rows(self, channel: str) -> Standing:
        """The answer of a channel as it is."""
        return calls.standing(await self._send(calls.of_channel("GET", channel, "/rows")))

    async def unsubscribe(self, channel: str, subscriber: str) -> None:
        """A subscriber is forgotten."""
        calls.checked(await self._send(calls.of_subscriber("DELETE", channel, subscriber)))

    async def subscribe(
        self,
        channel: str,
        subscriber: str | None = None,
        after: int | None = None,
        random: Random | None = None,
        patience: float = PATIENCE_S,
        tell: Tell = log,
    ) -> AsyncGenerator[Told, None]:
        """Notifications, each once, until the channel ends; a lost connection is made again, as ``Client`` does."""
        hearing, again = Hearing(channel, subscriber, after), Reconnection(self._url, _backoff(random), patience, tell)
        while True:
            try:
                call = hearing.call()
                headers = {**self._headers, **call.headers}
                async with self._http.stream(
                    call.method, self._url + call.path, headers=headers, params=call.params
                ) as response:
                    if not response.is_success:
                        await response.aread()
                    if hearing.ended(response):
                        return
                    if response.is_success:
                        async for chunk in response.aiter_bytes():
                            again.heard()
                            for told in hearing.heard(chunk):
                                yield told
                                await self._taken(channel, subscriber, told.number)
            except calls.PASSING_ERRORS as error:
                wait = again.after(error)
            else:
                wait = again.busy(response)
            await asyncio.sleep(wait)

    async def _taken(self, channel: str, subscriber: str | None, number: int) -> None:
        if subscriber is not None:
            calls.checked_later(await self._send(calls.of_subscriber("PUT", channel, subscriber, number)))

    async def _send(self, call: BrokerCall) -> httpx.Response:
        headers = {**self._headers, **call.headers}
        try:
            return await self._http.request(
                call.method, self._url + call.path, content=call.content, headers=headers, params=call.params
            )
        except calls.PASSING_ERRORS as error:
            raise calls.away(self._url, error) from error

    async def aclose(self) -> None:
        """Leave."""
        if self._own:
            await self._http.aclose()

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.aclose()


def _backoff(random: Random | None) -> Backoff:
    return Backoff(random or Random())
