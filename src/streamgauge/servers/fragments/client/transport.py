"""Requests of one client: permitted addresses, limits on costs, redirects and retries.

Requests go to http and https only, without credentials in addresses, and never from https to http (OWASP, server-side
request forgery). Private addresses are requested only at the origin of a start address that is itself private, or at
hosts that are allowed by name. Redirects may lead to other public origins, links only to the origins of the start
address and of its redirect.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from io import BytesIO
from random import Random
from typing import Final

import httpx

from streamgauge.formats.codings import CodingError, UnpackedSizeError, unpack
from streamgauge.model.mistake import obstacle
from streamgauge.outgoing import clients
from streamgauge.outgoing.addresses import names_private
from streamgauge.outgoing.clients import AsyncHttpClient
from streamgauge.outgoing.failures import TRANSIENT, permanent_failure, unknown_host
from streamgauge.outgoing.guarded import PORTS, PRIVATE, Origin, origin
from streamgauge.servers.fragments.client import HopelessError, LinkedDataError, UnavailableError, UnknownHostError
from streamgauge.servers.http.headers import retry_after


@dataclass(frozen=True, slots=True)
class ClientLimits:
    """Limits on what a source may cost; an error names the limit that was exceeded."""

    received: int = 32 * 2**20
    """Bytes of a body on the wire."""
    unpacked: int = 32 * 2**20
    """Bytes of a body after decompression."""
    redirects: int = 5
    seconds: float = 30.0
    """Time for one attempt at a request, including redirects and body."""
    attempts: int = 4
    """Attempts at one request if there is no response, or one that asks to retry."""
    patience: float = 60.0
    """The longest wait (s) before a further attempt, whatever Retry-After says."""
    put_off: bool = False
    """Whether to give up when Retry-After exceeds ``patience``, because the caller schedules the next attempt."""
    at_once: int = 6
    """Concurrent requests to one origin."""
    address: int = 6_000
    """Characters of a generated address, since servers limit request lines."""
    pages: int = 10_000
    """Pages of one fragment, or nodes of one feed."""
    event: int = 4 * 2**20
    """Bytes of one event; the change of a larger one is requested instead."""
    silence: float = 45.0
    """Seconds without a byte after which an event stream counts as broken: thrice the 15 s between signs of life."""
    quads: int = 5_000_000
    """Quads of one fragment or file."""
    rows: int = 1_000_000
    """Rows of every step of a join."""
    readings: int = 4
    """Repeated readings of a fragment that changes while its pages are read."""


class RefusedAddressError(LinkedDataError):
    """An address that the rules do not permit."""


@dataclass(frozen=True, slots=True)
class AddressRules:
    """The rules of one source: permitted ``origins`` of links, ``private`` origins, and hosts ``allowed`` by name."""

    origins: frozenset[Origin]
    private: frozenset[Origin]
    allowed: frozenset[str]

    def check(self, address: str) -> httpx.URL:
        """The address as a URL, if it may be requested; RefusedAddressError."""
        url = web_address(address)
        if names_private(url.host) and not self.takes_private(url):
            raise RefusedAddressError(address, f"{url.host} is not a public host: allow it by name")
        return url

    def takes_private(self, url: httpx.URL) -> bool:
        """Whether the host may resolve to a private address."""
        return url.host in self.allowed or origin(url) in self.private

    def redirect(self, base: str, location: str) -> str:
        """The target of a redirect; RefusedAddressError."""
        target = resolved_address(base, location)
        if base.startswith("https:") and target.startswith("http:"):
            raise RefusedAddressError(base, f"redirects from https to {target:.300}")
        # Each hop by itself: a public server may redirect to a private address.
        self.check(target)
        return target

    def link(self, base: str, target: str) -> str:
        """The target of a link in a document; RefusedAddressError for an origin that is not permitted."""
        address = resolved_address(base, target)
        url = self.check(address)
        # Links come from documents, which whoever writes the data controls; a redirect comes from the server that was
        # asked.
        if origin(url) not in self.origins and url.host not in self.allowed:
            raise RefusedAddressError(base, f"links to another origin, {address:.300}: allow {url.host} to follow it")
        return address

    def moved(self, address: str) -> "AddressRules":
        """The rules with links also permitted to the origin of ``address``, to which the start was redirected."""
        return replace(self, origins=self.origins | {origin(web_address(address))})


def address_rules(start: str, allowed: Collection[str] = ()) -> AddressRules:
    """The rules of a source with this start address; RefusedAddressError if it is not a web address."""
    url = web_address(start)
    own = frozenset((origin(url),))
    return AddressRules(
        own, own if names_private(url.host) else frozenset(), frozenset(host.lower() for host in allowed)
    )


@lru_cache(maxsize=2000)
def web_address(address: str) -> httpx.URL:
    """An address as a URL; RefusedAddressError if it is not http or https, or contains credentials."""
    try:
        url = httpx.URL(address)
    except (httpx.InvalidURL, ValueError, TypeError) as error:
        raise RefusedAddressError(address, f"not a web address: {error}") from error
    if url.scheme not in PORTS or not url.host or (url.port or 1) not in range(1, 2**16):
        raise RefusedAddressError(
            address, "not a web address: it begins with http:// or https:// and names a host, its port is below 65536"
        )
    # The message names the host alone: it may end up in a log.
    if url.userinfo:
        raise RefusedAddressError(f"{url.scheme}://{url.host}", "addresses with credentials are refused: omit them")
    return url


@lru_cache(maxsize=2000)
def resolved_address(base: str, target: str) -> str:
    """A reference resolved against an address, without its fragment; RefusedAddressError."""
    try:
        return str(httpx.URL(base).join(target).copy_with(fragment=None))
    except (httpx.InvalidURL, ValueError) as error:
        raise RefusedAddressError(base, f"leads to {target!r:.300}, which is not a web address: {error}") from error


_OUTER: Final = clients.ExchangeLimits(seconds=3600.0, received=4 * 2**30, silence=3600.0)
"""Outer limits of the HTTP client, wider than any ``ClientLimits``, which ``HttpSender`` enforces per request."""


def guarded_client() -> AsyncHttpClient:
    """A client that refuses private addresses with a RefusedAddressError; without cookies, proxies or credentials."""
    return clients.guarded_client(RefusedAddressError, limits=_OUTER)


_REDIRECTS: Final = frozenset((301, 302, 303, 307, 308))
_BACK_OFF_S = 0.5


@dataclass(slots=True)
class ClientCounters:
    """Counters of one client; ``sent`` and ``received`` are bytes of header lines and of bodies on the wire."""

    requests: int = 0
    sent: int = 0
    received: int = 0
    unpacked: int = 0
    retries: int = 0
    hits: int = 0
    not_modified: int = 0
    coalesced: int = 0


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request with the rules that its redirects must follow."""

    address: str
    reach: AddressRules
    headers: Mapping[str, str]
    content: bytes | None = None
    """The body of a POST; without a body the request is a GET."""


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """A response; ``address`` is the one after redirects, ``sent`` and ``came`` are times of our clock (ms)."""

    address: str
    status: int
    headers: httpx.Headers
    body: bytes
    sent: int
    came: int


class CutResponseError(Exception):
    """A response that ended too early."""


@dataclass(slots=True)
class HttpSender:
    """Sends requests through a client; ``clock`` in ms, ``sleep`` in seconds, both the caller's time."""

    client: AsyncHttpClient
    clock: Callable[[], int]
    sleep: Callable[[float], Awaitable[None]]
    limits: ClientLimits
    random: Random
    counters: ClientCounters
    _gates: dict[Origin, asyncio.Semaphore] = field(default_factory=dict)
    _users: dict[Origin, int] = field(default_factory=dict)

    async def send(self, http_request: HttpRequest) -> HttpAnswer:
        """The response, after retries; UnavailableError if all attempts fail, LinkedDataError if a limit is exceeded.

        HopelessError and UnknownHostError are raised without retries, and with ``limits.put_off`` an UnavailableError
        if the server asks to wait for longer than ``limits.patience``.
        """
        wait: float | None = None
        for attempt in range(self.limits.attempts):
            answer, fault, wait = await self._attempt(http_request)
            if answer is not None:
                return answer
            # The caller has other work: a poll loop would rather be told than sleep here.
            if self.limits.put_off and wait is not None and wait > self.limits.patience:
                raise UnavailableError(http_request.address, fault, wait)
            if attempt + 1 < self.limits.attempts:
                self.counters.retries += 1
                await self.sleep(self._delay(attempt, wait))
        raise UnavailableError(http_request.address, f"{fault}, after {self.limits.attempts} attempts", wait)

    async def _attempt(self, http_request: HttpRequest) -> tuple[HttpAnswer | None, str, float | None]:
        """The response, or else the fault and the seconds that the server asks to wait."""
        try:
            async with asyncio.timeout(self.limits.seconds):
                answer = await self._follow(http_request)
        except TimeoutError:
            return None, f"no answer within {self.limits.seconds:g} s", None
        except (httpx.HTTPError, httpx.StreamError, CutResponseError, OSError) as error:
            _refuse_hopeless(http_request.address, error)
            return None, f"no answer: {obstacle(error)}", None
        if answer.status in TRANSIENT:
            return None, f"answers {answer.status}", retry_after(answer.headers, self.clock())
        return answer, "", None

    def _delay(self, attempt: int, wait: float | None) -> float:
        """The delay (s) before the next attempt: what the server asks for, else exponential; both with jitter."""
        if wait is None:
            return float(_BACK_OFF_S * 2**attempt * (0.5 + self.random.random()))
        # Jitter only adds: a client that comes before Retry-After is refused again.
        return float(min(wait, self.limits.patience) + _BACK_OFF_S * self.random.random())

    async def _follow(self, http_request: HttpRequest) -> HttpAnswer:
        address, seen = http_request.address, {http_request.address}
        while True:
            answer = await self._one(http_request, address)
            location = answer.headers.get("location")
            if answer.status not in _REDIRECTS or location is None:
                return answer
            address = http_request.reach.redirect(address, location)
            if address in seen or len(seen) > self.limits.redirects:
                raise LinkedDataError(
                    http_request.address, f"redirects in a circle or more than {self.limits.redirects} times"
                )
            seen.add(address)

    @asynccontextmanager
    async def flowing(self, http_request: HttpRequest) -> AsyncIterator[tuple[httpx.Response, AsyncIterator[bytes]]]:
        """An endless response, and its bytes as they arrive; UnavailableError if it breaks or falls silent.

        It is requested once, without redirects, and does not count towards ``limits.at_once``.
        """
        request = self._request(http_request, http_request.reach.check(http_request.address))
        # The other timeouts stay: connecting is bounded as for any request.
        request.extensions["timeout"]["read"] = self.limits.silence
        self._count(request)
        try:
            async with asyncio.timeout(self.limits.seconds):
                response = await self.client.send(request, stream=True, follow_redirects=False)
        except (TimeoutError, httpx.HTTPError, OSError) as error:
            _refuse_hopeless(http_request.address, error)
            raise UnavailableError(http_request.address, f"no answer: {obstacle(error)}") from error
        try:
            self.counters.received += _head(response)
            yield response, self._chunks(http_request.address, response)
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

    def _request(self, http_request: HttpRequest, url: httpx.URL) -> httpx.Request:
        return self.client.build_request(
            "GET" if http_request.content is None else "POST",
            url,
            headers=http_request.headers,
            content=http_request.content,
            extensions={PRIVATE: http_request.reach.takes_private(url)},
            timeout=self.limits.seconds,
        )

    async def _one(self, http_request: HttpRequest, address: str) -> HttpAnswer:
        url = http_request.reach.check(address)
        request = self._request(http_request, url)
        async with self._gate(origin(url)):
            begun = self.clock()
            self._count(request)
            response = await self.client.send(request, stream=True, follow_redirects=False)
            try:
                self.counters.received += _head(response)
                body = await self._body(address, response)
            finally:
                await response.aclose()
        return HttpAnswer(address, response.status_code, response.headers, body, begun, self.clock())

    @asynccontextmanager
    async def _gate(self, key: Origin) -> AsyncIterator[None]:
        """Wait until fewer than ``limits.at_once`` requests to the origin are under way."""
        gate = self._gates.setdefault(key, asyncio.Semaphore(self.limits.at_once))
        # Counted apart from the semaphore, so that origins that are never asked again do not stay in the table.
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
        packed = BytesIO()  # getvalue() shares its buffer, no copy is made
        async for chunk in response.aiter_raw():
            packed.write(chunk)
            self.counters.received += len(chunk)
            if packed.tell() > self.limits.received:
                raise LinkedDataError(
                    address, f"sends more than {self.limits.received} bytes: raise the limit `received`"
                )
        # Before unpacking: a gzip body that was cut is reported as cut, and not as damaged.
        _check_length(response, packed.tell())
        body = self._unpacked(address, response.headers.get("content-encoding", ""), packed.getvalue())
        self.counters.unpacked += len(body)
        return body

    def _unpacked(self, address: str, encoding: str, body: bytes) -> bytes:
        """A body unpacked by its Content-Encoding; CutResponseError for one that is not gzip, or not all of it."""
        if (coding := encoding.strip().lower()) not in _CODINGS:
            raise LinkedDataError(address, f"is encoded as {coding!r:.40}, which was not asked for: only gzip is read")
        try:
            return unpack(body, coding, self.limits.unpacked) if body else body
        except UnpackedSizeError as error:
            limit = self.limits.unpacked
            raise LinkedDataError(address, f"unpacks to more than {limit} bytes: raise the limit `unpacked`") from error
        # Taken for a cut response, since proxies cut bodies whose length is not stated; that may pass, so it is
        # retried.
        except CodingError as error:
            raise CutResponseError(f"the body {error}") from error


_CODINGS: Final = ("", "identity", "gzip", "x-gzip")
"""Content codings that a response may have."""


def _refuse_hopeless(address: str, error: BaseException) -> None:
    """HopelessError for permanent failures, UnknownHostError for a name that cannot be resolved."""
    if why := permanent_failure(error):
        raise HopelessError(address, why) from error
    if unknown_host(error):
        raise UnknownHostError(address, f"no answer: {error}") from error


def _check_length(response: httpx.Response, received: int) -> None:
    """CutResponseError if the body is shorter than its Content-Length."""
    length = response.headers.get("content-length", "")
    if length.isascii() and length.isdigit() and int(length[:18]) != received and response.status_code != 304:
        raise CutResponseError(f"{received} of {length[:18]} bytes came")


def _head(response: httpx.Response) -> int:
    return 17 + _lines(response.headers)


def _lines(headers: httpx.Headers) -> int:
    return 2 + sum(len(name) + len(value) + 4 for name, value in headers.raw)
