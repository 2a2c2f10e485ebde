"""The servers that users have added, and requests to them: only http and https, only allowed hosts, bounded replies."""

import time
from asyncio import sleep, to_thread
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from typing import Final, Literal, TypeAlias, cast

import httpx
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from streamgauge.model.mistake import MistakeError
from streamgauge.outgoing.addresses import names_private
from streamgauge.outgoing.clients import AsyncHttpClient, ExchangeLimits, guarded_client
from streamgauge.servers.broker.client import SILENCE_S, AsyncClient
from streamgauge.servers.fragments.client import LinkedDataError
from streamgauge.servers.fragments.client.caching_client import CachingHttpClient, ResponseCache
from streamgauge.servers.fragments.client.transport import ClientLimits, web_address
from streamgauge.servers.fragments.labels import Style
from streamgauge.workbench.addresses import HostRefusedError, Lookup, check_addresses, check_host, lookup
from streamgauge.workbench.pages import page, read_form

MAX_SERVERS: Final = 30
"""Maximum number of servers."""

ANSWER: Final = 8 * 2**20
"""Bytes of an answer, or of one event."""

FORM: Final = 2 * 2**20
"""Bytes of a form."""

LIMITS: Final = ClientLimits(
    received=4 * 2**20,
    unpacked=16 * 2**20,
    seconds=10.0,
    attempts=2,
    patience=2.0,
    pages=40,
    event=4 * 2**20,
    quads=20_000,
    rows=20_000,
)
"""Bounds of what a fragments server may cost."""

_EXCHANGE: Final = ExchangeLimits(received=ANSWER, silence=SILENCE_S)

Kind = Literal["broker", "fragments"]


class ServerAddressError(MistakeError, ValueError):
    """An address that is refused, or a server too many; the message has the reason."""


@dataclass
class NamedServer:
    """A server by its address; ``key`` is its name in paths, ``token`` what a broker is shown."""

    key: str
    kind: Kind
    address: str
    token: str | None
    find: Lookup = lookup
    styles: dict[str, Style | None] = field(default_factory=dict)
    """How facts have times in a data set, as was found."""

    @cached_property
    def http(self) -> AsyncHttpClient:
        """The connections to this server, with the rules of the workbench; to be used in one event loop."""
        return guarded_client(_refused, self._resolve, _EXCHANGE, takes_private=_names_private)

    @cached_property
    def broker(self) -> AsyncClient:
        """The client of a broker."""
        return AsyncClient(self.address, self.token, self.http, largest=ANSWER)

    @cached_property
    def web(self) -> CachingHttpClient:
        """The client of a fragments server."""
        clock = lambda: time.time_ns() // 1_000_000  # noqa: E731
        return CachingHttpClient(self.http, clock, sleep, LIMITS, ResponseCache(8 * 2**20))

    async def _resolve(self, host: str, _port: int) -> Sequence[str]:
        """The addresses of a host, all of which are allowed."""
        # At each connection, not only when the server was named: the name may lead elsewhere by then.
        addresses = await to_thread(self.find, host)
        check_addresses(host, addresses)
        return addresses

    async def close(self) -> None:
        """Close the connections to the server."""
        # A cached property is in the dict only once it was read: a server that was never asked has no connections.
        if "http" in self.__dict__:
            await self.http.aclose()


class NamedServers:
    """The servers that were named since the workbench began, at most thirty."""

    def __init__(self, find: Lookup = lookup) -> None:
        self._find, self._numbers = find, count(1)
        self._servers: dict[str, NamedServer] = {}

    def all(self) -> Sequence[NamedServer]:
        """All servers, in the order in which they were added."""
        return tuple(self._servers.values())

    def name(self, address: str, token: str = "", kind: str = "") -> NamedServer:
        """Add a server at an address, http or https; ServerAddressError or HostRefusedError if it is refused.

        Without a kind it counts as a broker until it is recognised.
        """
        if kind not in ("", "broker", "fragments"):
            raise ServerAddressError(f"{kind:.40} is not a kind of server: it is a broker or a fragments server")
        text = address.strip()
        try:
            url = web_address(text if "//" in text else f"http://{text}")
        except LinkedDataError as error:
            raise ServerAddressError(str(error)) from error
        # Before anything is sent: the workbench must not be a way to services that only this machine reaches.
        check_host(url.host, self._find)
        if len(self._servers) >= MAX_SERVERS:
            raise ServerAddressError(f"{MAX_SERVERS} servers are named already: forget one first")
        named_server = NamedServer(
            str(next(self._numbers)), cast(Kind, kind or "broker"), str(url), token.strip() or None, self._find
        )
        self._servers[named_server.key] = named_server
        return named_server

    def of(self, request: Request, kind: Kind) -> NamedServer:
        """The server of a request; 404 when there is none of that kind."""
        server = self._servers.get(request.path_params["key"])
        if server is None or server.kind != kind:
            raise HTTPException(404, f"no such {kind} is named here: name it again")
        return server

    async def forget(self, key: str) -> None:
        """Forget a server, its token and its connections."""
        server = self._servers.pop(key, None)
        if server is not None:
            await server.close()

    async def close(self) -> None:
        """Forget all servers and close their connections."""
        for key in list(self._servers):
            await self.forget(key)


Recognise: TypeAlias = Callable[[NamedServer], Awaitable[Kind]]
"""The kind of a server by its replies; ServerAddressError if it is neither."""


class ServerHandlers:
    """The list of servers: name one, forget one; ``recognise`` says the kind of one that is named without."""

    def __init__(self, recognise: Recognise) -> None:
        self.named, self._recognise = NamedServers(), recognise

    @property
    def routes(self) -> list[BaseRoute]:
        """The routes, below the room's name."""
        return [
            Route("/", self.all, methods=["GET"]),
            Route("/", self.name, methods=["POST"]),
            Route("/{key}/forget", self.forget, methods=["POST"]),
        ]

    async def all(self, request: Request) -> Response:
        """The servers, and the form to name one."""
        return page(request, "servers.html.j2", "Servers", servers=self.named.all(), given={}, error="")

    async def name(self, request: Request) -> Response:
        """Name a server, or the form again with the reason why not."""
        fields = await read_form(request, FORM)
        values_given = [fields.get(name, "") for name in ("address", "token", "kind")]
        try:
            server = await to_thread(self.named.name, *values_given)
            await self._find_kind(server, fields.get("kind", ""))
        except (ServerAddressError, HostRefusedError) as error:
            values = {"servers": self.named.all(), "given": fields, "error": str(error)}
            return page(request, "servers.html.j2", "Servers", 400, **values)
        return RedirectResponse(f"/servers/{server.kind}/{server.key}/", 303)

    async def _find_kind(self, server: NamedServer, chosen: str) -> None:
        """Give a server its kind; it is forgotten again if it has none, or another one than was chosen."""
        try:
            server.kind = await self._recognise(server)
        except ServerAddressError:
            if chosen:  # it may be down for now
                return
            await self.named.forget(server.key)
            raise
        if chosen and chosen != server.kind:
            await self.named.forget(server.key)
            names = {"broker": "a broker", "fragments": "a fragments server"}
            raise ServerAddressError(f"{server.address} is {names[server.kind]}, not {names[chosen]}: choose its kind")

    async def forget(self, request: Request) -> Response:
        """Forget a server and return to the list."""
        await self.named.forget(request.path_params["key"])
        return RedirectResponse("/servers/", 303)


def _names_private(request: httpx.Request) -> bool:
    """Whether a request is to a host that names a private address itself; any other must be public."""
    return names_private(request.url.host)


def _refused(address: str, sentence: str) -> HostRefusedError:
    return HostRefusedError(f"{address}: {sentence}")
