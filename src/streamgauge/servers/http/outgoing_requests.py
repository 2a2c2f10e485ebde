"""Outgoing requests: connections only to addresses that the rules allow, and failures that a later try may mend.

The rules are held against the address that is connected to, so that DNS cannot rebind a name (OWASP, server-side
request forgery).
"""

import asyncio
import socket
import ssl
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Sequence
from http.cookiejar import DefaultCookiePolicy
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Final, TypeAlias

import httpx

from streamgauge.model.mistake import obstacle

TRANSIENT: Final = frozenset((408, 425, 429, 500, 502, 503, 504))
"""Statuses after which the same request may succeed later."""

_ABSENT: Final = frozenset(
    code for name in ("EAI_NONAME", "EAI_NODATA") if (code := getattr(socket, name, None)) is not None
)
_NO_TLS: Final = frozenset(
    (
        "WRONG_VERSION_NUMBER",
        "HTTP_REQUEST",
        "UNSUPPORTED_PROTOCOL",
        "NO_PROTOCOLS_AVAILABLE",
        "TLSV1_ALERT_PROTOCOL_VERSION",
        "RECORD_LAYER_FAILURE",
    )
)
"""Why TLS cannot begin with what is not a server of it (``ssl.SSLError.reason``)."""


def permanent_failure(error: BaseException) -> str:
    """Why no later try succeeds, a sentence; empty where one may. Certificates, TLS, schemes and addresses count."""
    for each in _causes(error):
        if isinstance(each, ssl.SSLCertVerificationError):
            return f"its certificate is not trusted: {each.verify_message or each}"
        if isinstance(each, ssl.SSLError) and each.reason in _NO_TLS:
            return f"no TLS is spoken there: {each.reason.replace('_', ' ').lower()}"
        if isinstance(each, httpx.UnsupportedProtocol | httpx.InvalidURL):
            return f"no web address: {each}"
    return ""


def unknown_host(error: BaseException) -> bool:
    """Whether the host's name is known nowhere: a mistake in an address, unless the name was known before."""
    return any(isinstance(each, socket.gaierror) and each.errno in _ABSENT for each in _causes(error))


def permanent_status(status: int) -> bool:
    """Whether the same request gets the same refusal later (RFC 9110, 15): 3xx, 4xx and 501, 505 but for TRANSIENT."""
    return status not in TRANSIENT and (300 <= status < 500 or status in (501, 505))


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error and what led to it."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        each = waiting.pop()
        if each is not None and id(each) not in seen:
            seen.add(id(each))
            waiting += [each.__cause__, each.__context__]
            yield each


_NAT64 = ip_network("64:ff9b::/96")


def names_private(host: str) -> bool:
    """Whether a host is an address that is not public, or this machine by name."""
    name = host.rstrip(".").lower()
    return name == "localhost" or name.endswith(".localhost") or is_private(name)


def is_private(host: str) -> bool:
    """Whether text is an IP address that is not of the public Internet, also one wrapped in another."""
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return any(not each.is_global or each.is_multicast for each in _unwrapped(address))


def _unwrapped(address: IPv4Address | IPv6Address) -> list[IPv4Address | IPv6Address]:
    """The address, or the IPv4 address in it (mapped, 6to4, Teredo, NAT64)."""
    if isinstance(address, IPv4Address):
        return [address]
    if address.ipv4_mapped is not None:
        return [address.ipv4_mapped]
    if address in _NAT64:
        return [IPv4Address(int(address) & 0xFFFFFFFF)]
    return [address, *(each for each in (address.sixtofour, *(address.teredo or ())) if each is not None)]


PRIVATE: Final = "streamgauge.private"
"""The request extension that says whether a host may have an address that is not public."""

PORTS: Final = {"http": 80, "https": 443}
"""Where a scheme is served unless an address says otherwise."""

CONNECTED = 64
"""Origins that connections are kept to."""

Origin: TypeAlias = tuple[str, str, int]
"""Scheme, host, port."""

Resolve: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]
"""The IP addresses of a host."""


async def resolve(host: str, port: int) -> list[str]:
    """The IP addresses of a host, as this machine finds them."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(sockaddr[0]) for *_, sockaddr in found]


class Guarded(httpx.AsyncBaseTransport):
    """Resolves a host, refuses it when an address is not public and need not be, connects to what was resolved.

    ``refuse`` makes the error of an address and a sentence.
    """

    def __init__(
        self,
        refuse: Callable[[str, str], Exception],
        resolving: Resolve = resolve,
        transport: Callable[[], httpx.AsyncBaseTransport] = httpx.AsyncHTTPTransport,
    ) -> None:
        self._refuse, self._resolve, self._transport = refuse, resolving, transport
        self._transports: OrderedDict[Origin, httpx.AsyncBaseTransport] = OrderedDict()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send to the address that was looked at, under the name that was asked for."""
        url = request.url
        addresses = await self._addresses(url, request.extensions.get(PRIVATE) is True)
        transport = await self._of(origin(url))
        request.extensions = {**request.extensions, "sni_hostname": url.host}
        try:
            return await _first(transport, request, addresses)
        finally:
            request.url = url

    async def aclose(self) -> None:
        """Close all connections."""
        while self._transports:
            await self._transports.popitem()[1].aclose()

    async def _addresses(self, url: httpx.URL, private: bool) -> Sequence[str]:
        try:
            found = await self._resolve(url.host, origin(url)[2])
        except (OSError, UnicodeError) as error:
            raise httpx.ConnectError(f"{url.host} is not found: {obstacle(error)}") from error
        if not found:
            raise httpx.ConnectError(f"{url.host} has no address")
        hidden = [address for address in found if is_private(address)]
        if hidden and not private:
            raise self._refuse(str(url), f"{url.host} is at {hidden[0]}, no public address: allow it by name to ask it")
        return found

    async def _of(self, key: Origin) -> httpx.AsyncBaseTransport:
        """Connections of an origin, so that a connection is never used under another name."""
        transport = self._transports.pop(key, None) or self._transport()
        self._transports[key] = transport
        if len(self._transports) > CONNECTED:
            await self._transports.popitem(last=False)[1].aclose()
        return transport


async def _first(
    transport: httpx.AsyncBaseTransport, request: httpx.Request, addresses: Sequence[str]
) -> httpx.Response:
    """The response of the first address that takes a connection."""
    name = request.url
    for address in addresses[:-1]:
        request.url = name.copy_with(host=address)
        try:
            return await transport.handle_async_request(request)
        except (httpx.ConnectError, httpx.ConnectTimeout):
            continue
    request.url = name.copy_with(host=addresses[-1])
    return await transport.handle_async_request(request)


def guarded_client(refuse: Callable[[str, str], Exception], resolving: Resolve = resolve) -> httpx.AsyncClient:
    """A client whose connections keep the rules; without cookies, proxies or credentials of the environment."""
    client = httpx.AsyncClient(transport=Guarded(refuse, resolving), trust_env=False)
    client.cookies.jar.set_policy(DefaultCookiePolicy(allowed_domains=[]))
    return client


def origin(url: httpx.URL) -> Origin:
    """The scheme, host and port of an address."""
    return url.scheme, url.host, url.port or PORTS[url.scheme]
