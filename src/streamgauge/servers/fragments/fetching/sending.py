"""One request: its redirects, its body within limits, and further attempts when there is no answer."""

import asyncio
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Final

import httpx

from streamgauge.model.obstacles import obstacle
from streamgauge.servers.fragments.fetching.contract import (
    HopelessError,
    SourceError,
    UnavailableError,
    UnknownHostError,
)
from streamgauge.servers.fragments.fetching.limits import Limits
from streamgauge.servers.fragments.fetching.reach import Reach
from streamgauge.servers.http.dates import retry_after
from streamgauge.servers.http.failures import TRANSIENT, permanent_failure, unknown_host
from streamgauge.servers.http.guarded import PRIVATE, Origin, origin

PASSING: Final = TRANSIENT

_REDIRECTS: Final = frozenset((301, 302, 303, 307, 308))
_BACK_OFF_S = 0.5


@dataclass(slots=True)
class Counters:
    """What one client has cost and saved; bytes are bodies as sent and header lines, both ways apart."""

    requests: int = 0
    sent: int = 0
    received: int = 0
    unpacked: int = 0
    retries: int = 0
    hits: int = 0
    not_modified: int = 0
    coalesced: int = 0


@dataclass(frozen=True, slots=True)
class Asked:
    """A request."""

    address: str
    reach: Reach
    headers: Mapping[str, str]
    content: bytes | None = None
    """What is posted; without it the request is a GET."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A response: ``address`` is where redirects led, ``asked`` and ``came`` when (ms of the own clock)."""

    address: str
    status: int
    headers: httpx.Headers
    body: bytes
    asked: int
    came: int


class BrokenError(Exception):
    """A response that ended before its end."""


@dataclass(slots=True)
class Sender:
    """Sends requests through a client; ``clock`` in ms, ``sleep`` in seconds, both the caller's time."""

    client: httpx.AsyncClient
    clock: Callable[[], int]
    sleep: Callable[[float], Awaitable[None]]
    limits: Limits
    random: Random
    counters: Counters
    _gates: dict[Origin, asyncio.Semaphore] = field(default_factory=dict)
    _users: dict[Origin, int] = field(default_factory=dict)

    async def send(self, asked: Asked) -> Answer:
        """The answer; UnavailableError when there is none after all attempts, SourceError for one beyond limits.

        With ``limits.put_off`` a server that asks to wait for longer than ``limits.patience`` is not asked again.
        HopelessError and UnknownHostError at once.
        """
        wait: float | None = None
        for attempt in range(self.limits.attempts):
            answer, fault, wait = await self._attempt(asked)
            if answer is not None:
                return answer
            if self.limits.put_off and wait is not None and wait > self.limits.patience:
                raise UnavailableError(asked.address, fault, wait)
            if attempt + 1 < self.limits.attempts:
                self.counters.retries += 1
                await self.sleep(self._delay(attempt, wait))
        raise UnavailableError(asked.address, f"{fault}, after {self.limits.attempts} attempts", wait)

    async def _attempt(self, asked: Asked) -> tuple[Answer | None, str, float | None]:
        """The answer, or what was wrong and the seconds that the server asks to wait."""
        try:
            async with asyncio.timeout(self.limits.seconds):
                answer = await self._follow(asked)
        except TimeoutError:
            return None, f"no answer within {self.limits.seconds:g} s", None
        except (httpx.HTTPError, httpx.StreamError, BrokenError, OSError) as error:
            _refuse_hopeless(asked.address, error)
            return None, f"no answer: {obstacle(error)}", None
        if answer.status in PASSING:
            return None, f"answers {answer.status}", retry_after(answer.headers, self.clock())
        return answer, "", None

    def _delay(self, attempt: int, wait: float | None) -> float:
        """Seconds: what the server asks for, else twice as much each time; jitter in both."""
        if wait is None:
            return float(_BACK_OFF_S * 2**attempt * (0.5 + self.random.random()))
        return float(min(wait, self.limits.patience) + _BACK_OFF_S * self.random.random())

    async def _follow(self, asked: Asked) -> Answer:
        address, seen = asked.address, {asked.address}
        while True:
            answer = await self._one(asked, address)
            location = answer.headers.get("location")
            if answer.status not in _REDIRECTS or location is None:
                return answer
            address = asked.reach.redirect(address, location)
            if address in seen or len(seen) > self.limits.redirects:
                raise SourceError(asked.address, f"redirects in a circle or more than {self.limits.redirects} times")
            seen.add(address)

    @asynccontextmanager
    async def flowing(self, asked: Asked) -> AsyncIterator[tuple[httpx.Response, AsyncIterator[bytes]]]:
        """A response that goes on, and its bytes as they come; UnavailableError when it breaks or is silent.

        It is asked for once, follows no redirects and is not counted among the requests that are under way at once.
        """
        request = self._request(asked, asked.reach.check(asked.address))
        request.extensions["timeout"]["read"] = self.limits.silence
        self._count(request)
        try:
            async with asyncio.timeout(self.limits.seconds):
                response = await self.client.send(request, stream=True, follow_redirects=False)
        except (TimeoutError, httpx.HTTPError, OSError) as error:
            _refuse_hopeless(asked.address, error)
            raise UnavailableError(asked.address, f"no answer: {obstacle(error)}") from error
        try:
            self.counters.received += _head(response)
            yield response, self._chunks(asked.address, response)
        finally:
            await response.aclose()

    async def _chunks(self, address: str, response: httpx.Response) -> AsyncIterator[bytes]:
        chunks = response.aiter_raw()
        while True:
            try:
                async with asyncio.timeout(self.limits.silence):
                    chunk = await anext(chunks, None)
            except TimeoutError as error:
                raise UnavailableError(address, f"was silent for {self.limits.silence:g} s") from error
            except (httpx.HTTPError, httpx.StreamError, OSError) as error:
                raise UnavailableError(address, f"broke: {obstacle(error)}") from error
            if chunk is None:
                return
            self.counters.received += len(chunk)
            yield chunk

    def _request(self, asked: Asked, url: httpx.URL) -> httpx.Request:
        return self.client.build_request(
            "GET" if asked.content is None else "POST",
            url,
            headers=asked.headers,
            content=asked.content,
            extensions={PRIVATE: asked.reach.takes_private(url)},
            timeout=self.limits.seconds,
        )

    async def _one(self, asked: Asked, address: str) -> Answer:
        url = asked.reach.check(address)
        request = self._request(asked, url)
        async with self._gate(origin(url)):
            begun = self.clock()
            self._count(request)
            response = await self.client.send(request, stream=True, follow_redirects=False)
            try:
                self.counters.received += _head(response)
                body = await self._body(address, response)
            finally:
                await response.aclose()
        return Answer(address, response.status_code, response.headers, body, begun, self.clock())

    @asynccontextmanager
    async def _gate(self, key: Origin) -> AsyncIterator[None]:
        """Waits until fewer than ``at_once`` requests to the origin are under way."""
        gate = self._gates.setdefault(key, asyncio.Semaphore(self.limits.at_once))
        self._users[key] = self._users.get(key, 0) + 1
        try:
            async with gate:
                yield
        finally:
            self._users[key] -= 1
            if not self._users[key]:
                del self._users[key], self._gates[key]

    def _count(self, request: httpx.Request) -> None:
        self.counters.requests += 1
        self.counters.sent += len(request.url.raw_path) + 15 + _lines(request.headers) + len(request.content)

    async def _body(self, address: str, response: httpx.Response) -> bytes:
        unpacking = _unpacking(address, response.headers.get("content-encoding", "identity"))
        parts, received, unpacked = [], 0, 0
        async for chunk in response.aiter_raw():
            received += len(chunk)
            self.counters.received += len(chunk)
            if received > self.limits.received:
                raise SourceError(address, f"sends more than {self.limits.received} bytes: raise the limit `received`")
            part = unpacking.decompress(chunk, self.limits.unpacked + 1 - unpacked)
            unpacked += len(part)
            if unpacked > self.limits.unpacked:
                raise SourceError(
                    address, f"unpacks to more than {self.limits.unpacked} bytes: raise the limit `unpacked`"
                )
            parts.append(part)
        _check_whole(response, received, unpacking)
        self.counters.unpacked += unpacked
        return b"".join(parts)


def _refuse_hopeless(address: str, error: BaseException) -> None:
    """HopelessError for what no further attempt mends, UnknownHostError for a name that is nowhere."""
    if why := permanent_failure(error):
        raise HopelessError(address, why) from error
    if unknown_host(error):
        raise UnknownHostError(address, f"no answer: {error}") from error


class _Plain:
    """A body that is not compressed."""

    eof = True

    def decompress(self, data: bytes, limit: int) -> bytes:
        """As many of the bytes as the limit allows."""
        return data[:limit]


class _Gzip:
    """A gzip body, unpacked no further than allowed."""

    def __init__(self) -> None:
        self._inner = zlib.decompressobj(zlib.MAX_WBITS | 16)

    @property
    def eof(self) -> bool:
        """Whether its end was seen."""
        return self._inner.eof

    def decompress(self, data: bytes, limit: int) -> bytes:
        """What the bytes unpack to, at most ``limit``; BrokenError for what is no gzip."""
        try:
            return self._inner.decompress(data, limit)
        except zlib.error as error:
            raise BrokenError(f"the body is no gzip: {error}") from error


def _unpacking(address: str, encoding: str) -> _Plain | _Gzip:
    match encoding.strip().lower():
        case "identity" | "":
            return _Plain()
        case "gzip" | "x-gzip":
            return _Gzip()
        case other:
            raise SourceError(address, f"is encoded as {other!r:.40}, which was not asked for: only gzip is read")


def _check_whole(response: httpx.Response, received: int, unpacking: _Plain | _Gzip) -> None:
    """BrokenError when the body is shorter than its Content-Length, or its gzip stream has no end."""
    length = response.headers.get("content-length", "")
    if length.isascii() and length.isdigit() and int(length[:18]) != received and response.status_code != 304:
        raise BrokenError(f"{received} of {length[:18]} bytes came")
    if received and not unpacking.eof:
        raise BrokenError(f"the gzip body ends after {received} bytes without its end")


def _head(response: httpx.Response) -> int:
    return 17 + _lines(response.headers)


def _lines(headers: httpx.Headers) -> int:
    return 2 + sum(len(name) + len(value) + 4 for name, value in headers.raw)
