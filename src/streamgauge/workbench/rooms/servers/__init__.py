"""Servers: brokers and fragments servers that users have added, with their channels and facts.

``connections`` has the servers and the requests to them, ``fragments`` the pages of a fragments server. The pages of a
broker are here: channels with counts, publishing by a form, a channel's answer and its changes
(docs/workbench-live.md).
"""

import asyncio
import json
from asyncio import Semaphore, gather
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from threading import Event
from typing import Any, Final
from urllib.parse import quote

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from streamgauge.formats.syntaxes import REGISTERED, SENT
from streamgauge.servers.broker.client import AsyncClient, ChannelStatus, Standing, Told
from streamgauge.servers.broker.reconnection import BrokerError
from streamgauge.servers.fragments.client import LinkedDataError
from streamgauge.servers.http import events
from streamgauge.servers.http.replies import clipped
from streamgauge.workbench.addresses import HostRefusedError
from streamgauge.workbench.pages import page, read_form
from streamgauge.workbench.rooms import Bench, Room, SearchHit, has_all
from streamgauge.workbench.rooms.servers.connections import (
    FORM,
    Kind,
    NamedServer,
    NamedServers,
    ServerAddressError,
    ServerHandlers,
)
from streamgauge.workbench.rooms.servers.fragments import FragmentHandlers, data_sets
from streamgauge.workbench.terms import declared_prefixes, shown_cell, shown_time


def open_room(bench: Bench) -> Room:
    """The room of brokers and fragments servers."""
    about = "Brokers and fragments servers: channels and their answers as they change, publications, facts over time."
    servers = ServerHandlers(recognised)
    routes = [
        *servers.routes,
        *BrokerHandlers(servers.named, bench.leaving).routes,
        *FragmentHandlers(servers.named).routes,
    ]

    def search(words: Sequence[str]) -> list[SearchHit]:
        """The named servers whose address has all words."""
        return [
            SearchHit("Servers", one.address, f"/servers/{one.kind}/{one.key}/", one.kind)
            for one in servers.named.all()
            if has_all(words, one.address, one.kind)
        ]

    return Room("servers", "Servers", about, 4, routes, servers.named.close, search)


ROWS: Final = 200
"""Rows of an answer, and of a notification, that are shown."""

CHANNELS: Final = 50
"""Channels on a page."""

AT_ONCE: Final = 8
TURN_S: Final = 0.5
"""How often a feed looks whether the workbench is about to stop."""

FEEDS: Final = 50
"""Maximum pages that follow channels concurrently."""

PATIENCE_S: Final = 60.0
"""Seconds that a broker may be unreachable before its pages are ended."""

FORMATS: Final = {REGISTERED[form]: form.name for form in dict.fromkeys(SENT.values())}
"""The media types of publications."""

REFUSED: Final = (BrokerError, HostRefusedError, ValueError, KeyError, TypeError)
"""A broker's refusals, and replies of servers that are not brokers."""


class BrokerHandlers:
    """The handlers, one per route; ``leaving`` is set when the workbench stops."""

    def __init__(self, servers: NamedServers, leaving: Event) -> None:
        self._servers, self._leaving, self._feeds = servers, leaving, 0

    @property
    def routes(self) -> list[BaseRoute]:
        """The routes, below the room's name."""
        channel = "/broker/{key}/channels/{name}"
        return [
            Route("/broker/{key}/", self.channels, methods=["GET"]),
            Route("/broker/{key}/publish", self.publish, methods=["POST"]),
            Route("/broker/{key}/channels", self.create, methods=["POST"]),
            Route(f"{channel}/", self.channel, methods=["GET"]),
            Route(f"{channel}/events", self.events, methods=["GET"]),
            Route(f"{channel}/delete", self.delete, methods=["POST"]),
        ]

    async def channels(self, request: Request) -> Response:
        """The channels with their counts, the forms to publish and to make one."""
        return await self._page(request, self._servers.of(request, "broker"), {}, {}, 200)

    async def publish(self, request: Request) -> Response:
        """Publish or delete facts; on failure, show the form again with the reason."""
        server, fields = self._servers.of(request, "broker"), await read_form(request, FORM)
        kind = fields.get("format", "text/turtle")
        change = server.broker.delete if fields.get("change") == "delete" else server.broker.publish
        try:
            if kind not in FORMATS:
                raise BrokerError(f"{kind:.40} is not a format of publications")
            taken = await change(fields.get("graph", ""), kind)
        except REFUSED as error:
            return await self._page(request, server, fields, {"publish": told(error)}, 400)
        return RedirectResponse(f"/servers/broker/{server.key}/?published={taken.number}", 303)

    async def create(self, request: Request) -> Response:
        """Make a channel, or the form again with the reason why not."""
        server, fields = self._servers.of(request, "broker"), await read_form(request, FORM)
        name = fields.get("name", "").strip()
        try:
            await server.broker.create_channel(name, fields.get("query", ""))
        except REFUSED as error:
            return await self._page(request, server, fields, {"create": told(error)}, 400)
        return RedirectResponse(_channel(server, name), 303)

    async def channel(self, request: Request) -> Response:
        """A channel: its query, its current answer, and its changes as they arrive."""
        server = self._servers.of(request, "broker")
        name = request.path_params["name"]
        try:
            status = await server.broker.channel(name)
        except REFUSED as error:
            raise HTTPException(502, told(error)) from error
        # Shown without rows if the broker goes away between the two requests.
        standing, away = Standing(status.notification, status.columns, ()), ""
        try:
            standing = await server.broker.rows(name)
        except REFUSED as error:
            away = told(error)
        prefixes = tuple(declared_prefixes(status.query).items())
        rows = [[shown_cell(term, prefixes) for term in row] for row in standing.rows[:ROWS]]
        values: dict[str, Any] = {"standing": standing, "rows": rows, "away": away}
        return page(request, "servers_channel.html.j2", f"{name} · Servers", server=server, channel=status, **values)

    async def delete(self, request: Request) -> Response:
        """Delete a channel and return to its broker."""
        server = self._servers.of(request, "broker")
        try:
            await server.broker.delete_channel(request.path_params["name"])
        except REFUSED as error:
            raise HTTPException(502, told(error)) from error
        return RedirectResponse(f"/servers/broker/{server.key}/", 303)

    async def events(self, request: Request) -> Response:
        """The notifications of a channel as server-sent events."""
        server, name = self._servers.of(request, "broker"), request.path_params["name"]
        try:
            after = events.last_event(request.headers.get("last-event-id") or request.query_params.get("after"))
        except events.EventError as error:
            raise HTTPException(400, str(error)) from error
        if self._feeds >= FEEDS:
            raise HTTPException(429, f"{FEEDS} pages follow channels already: close one")
        return events.Events(self._counted(notification_feed(server.broker, name, after)))

    async def _counted(self, feed: AsyncGenerator[bytes, None]) -> AsyncIterator[bytes]:
        """The events of a feed, with heartbeats, until the workbench stops."""
        self._feeds += 1
        coming, silent = asyncio.ensure_future(anext(feed, None)), 0.0
        try:
            while not self._leaving.is_set():
                # Not ``wait_for``, which would cancel the feed at each timeout.
                await asyncio.wait((coming,), timeout=TURN_S)
                silent += TURN_S
                if coming.done():
                    if (event := coming.result()) is None:
                        return
                    coming, silent = asyncio.ensure_future(anext(feed, None)), 0.0
                    yield event
                elif silent >= events.BEAT_S:
                    silent = 0.0
                    yield events.BEAT
        finally:
            self._feeds -= 1
            coming.cancel()
            await asyncio.gather(coming, return_exceptions=True)
            await feed.aclose()

    async def _page(
        self, request: Request, server: NamedServer, fields: Mapping[str, str], errors: Mapping[str, str], status: int
    ) -> Response:
        after = request.query_params.get("after", "")
        channels: list[ChannelStatus] = []
        away, more, kept = "", False, None
        try:
            names = await server.broker.channels(after)
            channels = await _statuses(server.broker, names[:CHANNELS])
            more, kept = len(names) > CHANNELS, await server.broker.kept()
        except REFUSED as error:
            away = told(error)
        number = request.query_params.get("published", "")
        values: dict[str, Any] = {
            "server": server,
            "channels": channels,
            "more": channels[-1].name if more and channels else "",
            "away": away,
            "kept": kept,
            "published": number if number.isascii() and number.isdigit() and len(number) < 20 else "",
            "formats": FORMATS,
        }
        return page(request, "servers_broker.html.j2", "Broker", status, given=fields, errors=errors, **values)


async def _statuses(broker: AsyncClient, names: tuple[str, ...]) -> list[ChannelStatus]:
    """The channels with these names, without deleted ones."""
    # A page of fifty channels asks for eight at a time, rather than open fifty connections.
    gate = Semaphore(AT_ONCE)

    async def one(name: str) -> ChannelStatus | None:
        async with gate:
            try:
                return await broker.channel(name)
            except BrokerError as error:
                if error.status == 404:
                    return None
                raise

    return [status_ for status_ in await gather(*map(one, names)) if status_ is not None]


async def notification_feed(broker: AsyncClient, channel: str, after: int | None) -> AsyncGenerator[bytes, None]:
    """Events of a channel's notifications after a number: ``{"columns", "rows", "more"}``.

    ``over`` gives the reason for the end.
    """
    try:
        prefixes = tuple(declared_prefixes((await broker.channel(channel)).query).items())
        async with aclosing(broker.subscribe(channel, after=after, patience=PATIENCE_S)) as notifications:
            async for notification in notifications:
                yield events.event(encoded(notification, prefixes), notification.number)
        why = "the channel was deleted"
    except REFUSED as error:
        why = told(error)
    yield events.event(json.dumps({"why": why}).encode(), kind="over")


def encoded(told_: Told, prefixes: tuple[tuple[str, str], ...]) -> bytes:
    """A notification as JSON for the page: rows of number, time, sign, cells."""
    signed = [("+", row) for row in told_.added] + [("\N{MINUS SIGN}", row) for row in told_.removed]
    rows = [
        [told_.number, shown_time(told_.at), sign, [shown_cell(term, prefixes) for term in row]]
        for sign, row in signed[:ROWS]
    ]
    document = {"columns": told_.columns, "rows": rows, "more": max(0, len(signed) - ROWS)}
    return json.dumps(document).encode()


async def recognised(server: NamedServer) -> Kind:
    """The kind of a server: a broker lists its channels, a fragments server describes data sets."""
    try:
        await server.broker.channels()
    except REFUSED as error:
        # Kept for the sentence in the end: it may be a broker that is down.
        reason = error
    else:
        return "broker"
    try:
        await data_sets(server)
    except (LinkedDataError, HostRefusedError) as error:
        sentence = f"neither a broker nor a fragments server answers at {server.address}: {told(reason)}; {error}"
        raise ServerAddressError(clipped(sentence)) from error
    return "fragments"


def told(error: Exception) -> str:
    """A refusal in words; an answer that is none of a broker's is said to be that."""
    if isinstance(error, BrokerError | HostRefusedError):
        return clipped(str(error))
    return "what answers there does not answer as a broker does: is the address right?"


def _channel(server: NamedServer, name: str) -> str:
    return f"/servers/broker/{server.key}/channels/{quote(name, safe='')}/"
