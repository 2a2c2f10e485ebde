"""Connections only to addresses that the rules allow.

The rules are checked for the very address of the connection, which prevents DNS rebinding.
"""

import asyncio
import socket
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeAlias

import httpx

from streamgauge.model.mistake import obstacle
from streamgauge.outgoing.addresses import is_private

PRIVATE: Final = "streamgauge.private"
"""The request extension that permits a host with an address that is not public."""

PORTS: Final = {"http": 80, "https": 443}
"""Default ports of the schemes."""

MAX_ORIGINS = 64
"""Maximum number of origins with open connections; the least recently used is closed first."""

Origin: TypeAlias = tuple[str, str, int]
"""Scheme, host, port."""

Resolve: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]
"""The IP addresses of a host."""


def resolved(host: str, port: int) -> list[str]:
    """The IP addresses of a host by this machine's resolver; OSError, UnicodeError."""
    return [str(sockaddr[0]) for *_, sockaddr in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]


async def resolve(host: str, port: int) -> list[str]:
    """The IP addresses of a host, resolved in a thread so that the event loop is not blocked."""
    infos = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(sockaddr[0]) for *_, sockaddr in infos]


class Guarded(httpx.AsyncBaseTransport):
    """Resolves a host, refuses addresses that are not public unless permitted, and connects to a checked address.

    ``refuse`` returns the error for an address and a sentence; ``takes_private`` permits any address to a request.
    """

    def __init__(
        self,
        refuse: Callable[[str, str], Exception],
        resolving: Resolve = resolve,
        takes_private: Callable[[httpx.Request], bool] = lambda request: request.extensions.get(PRIVATE) is True,
        transport: Callable[[], httpx.AsyncBaseTransport] = httpx.AsyncHTTPTransport,
    ) -> None:
        self._refuse, self._resolve, self._transport = refuse, resolving, transport
        self._takes_private = takes_private
        self._transports: OrderedDict[Origin, httpx.AsyncBaseTransport] = OrderedDict()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send to the address that was checked, with the host name of the request."""
        url = request.url
        addresses = await self._addresses(url, self._takes_private(request))
        transport = await self._of(origin(url))
        # The URL gets the address, so TLS has to be told the name for which the certificate is checked.
        request.extensions = {**request.extensions, "sni_hostname": url.host}
        try:
            return await _first(transport, request, addresses)
        finally:
            # Also after an error: whoever reports it or retries must see the name.
            request.url = url

    async def aclose(self) -> None:
        """Close the connections of all origins."""
        while self._transports:
            await self._transports.popitem()[1].aclose()

    async def _addresses(self, url: httpx.URL, private: bool) -> Sequence[str]:
        try:
            addresses = await self._resolve(url.host, origin(url)[2])
        except (OSError, UnicodeError) as error:
            raise httpx.ConnectError(f"{url.host} is not found: {obstacle(error)}") from error
        if not addresses:
            raise httpx.ConnectError(f"{url.host} has no address")
        # One private address among public ones is refused as well: which one is used is decided by chance.
        hidden = [address for address in addresses if is_private(address)]
        if hidden and not private:
            raise self._refuse(str(url), f"{url.host} is at {hidden[0]}, which is not public: allow the host by name")
        return addresses

    async def _of(self, key: Origin) -> httpx.AsyncBaseTransport:
        """Connections of an origin, so that a connection is never used under another name."""
        # Taken out and inserted again, an origin moves to the end of the dict: the first is the least recently used.
        transport = self._transports.pop(key, None) or self._transport()
        self._transports[key] = transport
        if len(self._transports) > MAX_ORIGINS:
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
        # Only where nothing was sent yet: any other failure may come after the request had its effect.
        except (httpx.ConnectError, httpx.ConnectTimeout):
            continue
    request.url = name.copy_with(host=addresses[-1])
    return await transport.handle_async_request(request)


def origin(url: httpx.URL) -> Origin:
    """The scheme, host and port of an address."""
    return url.scheme, url.host, url.port or PORTS[url.scheme]
