"""HTTP clients with a deadline for each exchange and a bound of the bytes of each response.

Event streams have no end: the deadline applies to the response head, a read timeout to each read, and the bound to
each event. A compressed response that was not requested is refused, as a few KB may unpack to GB.
"""

import asyncio
import ssl
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from http.cookiejar import DefaultCookiePolicy
from typing import Any, Final, TypeAlias, cast

import httpcore
import httpx

from streamgauge.outgoing.addresses import is_private
from streamgauge.outgoing.guarded import Guarded, Resolve, resolve, resolved

_EVENTS: Final = "text/event-stream"
_IDENTITY: Final = ("", "identity")


@dataclass(frozen=True, slots=True)
class ExchangeLimits:
    """Bounds of a request and its response."""

    seconds: float = 60.0
    """Deadline from the beginning of a request to the last byte of its response."""
    received: int = 64 * 2**20
    """Maximum bytes of a response; for an event stream, of each event."""
    silence: float = 45.0
    """Read timeout (s) of event streams."""
    connections: int | None = 100
    """Maximum number of open connections; ``None`` for no bound."""
    option: str = ""
    """The user's option that raises ``received``, if any."""


USUAL: Final = ExchangeLimits()

HttpClient: TypeAlias = httpx.Client
AsyncHttpClient: TypeAlias = httpx.AsyncClient
"""The types that the functions below return, for annotations."""


CROWD_RECEIVED: Final = 2**30
"""Maximum bytes of a response to measuring clients."""


def crowd_limits(seconds: float) -> ExchangeLimits:
    """Limits of measuring clients: a connection for each of thousands of requests, all within ``seconds``."""
    return ExchangeLimits(seconds, received=CROWD_RECEIVED, silence=seconds, connections=None)


def guarded_client(
    refuse: Callable[[str, str], Exception],
    resolving: Resolve = resolve,
    limits: ExchangeLimits = USUAL,
    takes_private: Callable[[httpx.Request], bool] | None = None,
) -> httpx.AsyncClient:
    """A client for addresses named by others: public ones only, unless ``takes_private`` permits another.

    It uses no cookies, proxies or credentials of the environment.
    """
    guarded = Guarded(refuse, resolving) if takes_private is None else Guarded(refuse, resolving, takes_private)
    client = async_client(limits, guarded)
    # httpx keeps cookies unless the policy refuses all domains: one server could follow a client over many queries.
    client.cookies.jar.set_policy(DefaultCookiePolicy(allowed_domains=[]))
    return client


def async_client(
    limits: ExchangeLimits = USUAL, transport: httpx.AsyncBaseTransport | None = None
) -> httpx.AsyncClient:
    """A client for a server that the user names; by default without proxies of the environment."""
    inner = transport or httpx.AsyncHTTPTransport(limits=_pool(limits))
    return httpx.AsyncClient(
        transport=AsyncBoundedTransport(inner, limits),
        trust_env=False,
        timeout=_timeout(limits),
        headers={"Accept-Encoding": "identity"},
    )


def application_client(app: Any) -> httpx.AsyncClient:
    """A client of an application in this process."""
    return httpx.AsyncClient(transport=httpx.ASGITransport(app))


def client(
    limits: ExchangeLimits = USUAL,
    *,
    base_url: str = "",
    auth: tuple[str, str] | None = None,
    verify: ssl.SSLContext | bool = True,
    private: Collection[tuple[str, int]] | None = None,
    follow_redirects: bool = False,
) -> httpx.Client:
    """A blocking client for a server that the user names.

    With ``private`` (hosts and ports), other hosts may only have public addresses; without it any address is allowed.
    """
    return httpx.Client(
        transport=BoundedTransport(limits, verify, private),
        base_url=base_url,
        auth=auth,
        trust_env=False,
        timeout=_timeout(limits),
        headers={"Accept-Encoding": "identity"},
        follow_redirects=follow_redirects,
    )


def _pool(limits: ExchangeLimits) -> httpx.Limits:
    return httpx.Limits(max_connections=limits.connections, max_keepalive_connections=limits.connections)


def _timeout(limits: ExchangeLimits) -> httpx.Timeout:
    # httpx's timeouts are per operation, so they are only a second bound; the deadline of the whole is in the
    # transport.
    return httpx.Timeout(limits.seconds, read=max(limits.seconds, limits.silence))


def _check_coding(request: httpx.Request, response: httpx.Response) -> None:
    """DecodingError for a compressed body unless the request asked for one, which its sender unpacks within bounds."""
    coding = response.headers.get("content-encoding", "").strip().lower()
    accepted = request.headers.get("accept-encoding", "").strip().lower()
    if coding not in _IDENTITY and accepted in _IDENTITY:
        raise httpx.DecodingError(
            f"the response is encoded as {coding:.40}, which the request does not accept", request=request
        )


def _is_endless(request: httpx.Request, response: httpx.Response) -> bool:
    """Whether a response is a requested event stream; any other response is bounded as a whole."""
    streaming = _EVENTS in request.headers.get("accept", "").lower()
    return streaming and response.headers.get("content-type", "").startswith(_EVENTS)


class OversizedError(httpx.ReadError):
    """A response of more than ``ExchangeLimits.received`` bytes; permanent, as a retry meets the same bound."""


class _Received:
    """Counts the bytes of a response, or of each event; OversizedError above the limit."""

    def __init__(self, limits: ExchangeLimits, *, events: bool) -> None:
        self._limits, self._events, self._size, self._end = limits, events, 0, b""

    def add(self, chunk: bytes) -> None:
        """Count the bytes of a chunk; OversizedError above the limit."""
        self._size += len(chunk)
        if self._events:
            self._restart(chunk)
        if self._size > self._limits.received:
            what = "an event" if self._events else "the response"
            remedy = self._limits.option and f": raise {self._limits.option}"
            raise OversizedError(f"{what} has more than {self._limits.received} bytes{remedy}")

    def _restart(self, chunk: bytes) -> None:
        """Count from the end of the last event that is complete: an empty line, whatever ends lines."""
        seen = (self._end + chunk).replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        ended = seen.rfind(b"\n\n")
        # Comments that keep a stream alive end with an empty line too, so silence with signs of life never adds up.
        if ended >= 0:
            self._size = len(seen) - ended - 2
        # An empty line may be cut by the border of two chunks; it has at most four bytes.
        self._end = chunk[-3:]


class AsyncBoundedTransport(httpx.AsyncBaseTransport):
    """A transport that enforces limits on the exchanges of another."""

    def __init__(self, inner: httpx.AsyncBaseTransport, limits: ExchangeLimits) -> None:
        self._inner, self._limits = inner, limits

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send; ReadTimeout, ReadError or DecodingError beyond a limit."""
        until = asyncio.get_running_loop().time() + self._limits.seconds
        try:
            async with asyncio.timeout_at(until):
                response = await self._inner.handle_async_request(request)
        except TimeoutError as error:
            raise _late(self._limits.seconds, request) from error
        stream = cast(httpx.AsyncByteStream, response.stream)
        try:
            _check_coding(request, response)
        except httpx.DecodingError:
            # An unread response would keep its connection out of the pool.
            await stream.aclose()
            raise
        events = _is_endless(request, response)
        response.stream = _AsyncBoundedStream(stream, self._limits, None if events else until)
        return response

    async def aclose(self) -> None:
        """Close the wrapped transport with its connections."""
        await self._inner.aclose()


def _late(seconds: float, request: httpx.Request | None = None) -> httpx.ReadTimeout:
    return httpx.ReadTimeout(f"no whole answer within {seconds:g} s", request=request)


class _AsyncBoundedStream(httpx.AsyncByteStream):
    """The bytes of a response, ``until`` a time of the loop; without one those of an event stream."""

    def __init__(self, stream: httpx.AsyncByteStream, limits: ExchangeLimits, until: float | None) -> None:
        self._stream, self._limits, self._until = stream, limits, until

    async def __aiter__(self) -> AsyncIterator[bytes]:
        received, loop = _Received(self._limits, events=self._until is None), asyncio.get_running_loop()
        chunks = aiter(self._stream)
        while True:
            until = loop.time() + self._limits.silence if self._until is None else self._until
            try:
                async with asyncio.timeout_at(until):
                    chunk = await anext(chunks, None)
            except TimeoutError as error:
                raise _late(self._limits.silence if self._until is None else self._limits.seconds) from error
            if chunk is None:
                return
            received.add(chunk)
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


_UNTIL: Final[ContextVar[float | None]] = ContextVar("until", default=None)
"""Deadline (s, monotonic) of the exchange in the current context."""


class BoundedTransport(httpx.HTTPTransport):
    """Connections of a blocking client with limits, also for response heads that trickle in."""

    def __init__(
        self, limits: ExchangeLimits, verify: ssl.SSLContext | bool, private: Collection[tuple[str, int]] | None
    ) -> None:
        super().__init__(verify=verify, trust_env=False, limits=_pool(limits))
        self._limits = limits
        self._pool._network_backend = _Backend(private)  # the pool is httpcore's; httpx passes no backend on

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send; ReadTimeout, ReadError or DecodingError beyond a limit."""
        until = time.monotonic() + self._limits.seconds
        # httpcore's backend has no access to the request, so the deadline is passed through the context.
        token = _UNTIL.set(until)
        try:
            response = super().handle_request(request)
        finally:
            _UNTIL.reset(token)
        stream = cast(httpx.SyncByteStream, response.stream)
        try:
            _check_coding(request, response)
        except httpx.DecodingError:
            stream.close()
            raise
        events = _is_endless(request, response)
        response.stream = _BoundedStream(stream, self._limits, None if events else until)
        return response


class _BoundedStream(httpx.SyncByteStream):
    """The bytes of a response, ``until`` a monotonic time; without one those of an event stream."""

    def __init__(self, stream: httpx.SyncByteStream, limits: ExchangeLimits, until: float | None) -> None:
        self._stream, self._limits, self._until = stream, limits, until

    def __iter__(self) -> Iterator[bytes]:
        received, chunks = _Received(self._limits, events=self._until is None), iter(self._stream)
        while True:
            # Set and reset around each read: a generator shares the context of its caller, which may have other
            # exchanges.
            token = _UNTIL.set(time.monotonic() + self._limits.silence if self._until is None else self._until)
            try:
                chunk = next(chunks, None)
            finally:
                _UNTIL.reset(token)
            if chunk is None:
                return
            received.add(chunk)
            yield chunk

    def close(self) -> None:
        self._stream.close()


class _Backend(httpcore.SyncBackend):
    """Sockets to allowed addresses, whose reads and writes end with the exchange."""

    def __init__(self, private: Collection[tuple[str, int]] | None) -> None:
        self._private = private

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        """Connect to the first address that takes it; ConnectError where one may not be connected to."""
        error: Exception | None = None
        # The addresses that were checked, not the name: a second resolution could give another one (DNS rebinding).
        for address in self._addresses(host, port):
            try:
                stream = super().connect_tcp(address, port, _left(timeout), local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as failure:
                # The next address may work where this one does not, such as IPv4 behind a broken IPv6.
                error = failure
            else:
                return _DeadlineStream(stream)
        raise error or httpcore.ConnectError(f"{host} has no address")

    def _addresses(self, host: str, port: int) -> list[str]:
        if self._private is None or (host, port) in self._private:
            # Named by the user, so the system may resolve and try its addresses as it likes.
            return [host]
        try:
            addresses = resolved(host, port)
        except (OSError, UnicodeError) as error:
            raise httpcore.ConnectError(f"{host} is not found: {error}") from error
        for address in addresses:
            if is_private(address):
                raise httpcore.ConnectError(f"{host} is at {address}, which is not public, and was not named by you")
        return addresses


def _left(timeout: float | None) -> float | None:
    """The seconds until the deadline, at most ``timeout``."""
    until = _UNTIL.get()
    if until is None:
        return timeout
    left = until - time.monotonic()
    # A socket's timeout of 0 would mean non-blocking, and a negative one an error.
    if left <= 0:
        raise httpcore.ReadTimeout("no whole answer in time")
    return left if timeout is None else min(left, timeout)


class _DeadlineStream(httpcore.NetworkStream):
    """A connection whose operations are bounded by the deadline of the exchange."""

    def __init__(self, inner: httpcore.NetworkStream) -> None:
        self._inner = inner

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._inner.read(max_bytes, _left(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._inner.write(buffer, _left(timeout))

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        return _DeadlineStream(self._inner.start_tls(ssl_context, server_hostname, _left(timeout)))

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)
