"""A client of server-sent events that resumes after the last processed event (``Last-Event-ID``)."""

import socket
import ssl
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from random import Random
from threading import Event
from time import monotonic, time

import httpx

from streamgauge.formats.lines import Input
from streamgauge.formats.streams import FormatError
from streamgauge.model.mistake import obstacle
from streamgauge.outgoing.clients import ExchangeLimits, OversizedError, client
from streamgauge.outgoing.failures import TRANSIENT
from streamgauge.outgoing.guarded import PORTS
from streamgauge.sources.backoff import Backoff
from streamgauge.sources.contract import Address, Position, SourceError
from streamgauge.sources.decoders import MessageOptions, Messages, RefusalReport
from streamgauge.sources.sse.events import END, MISSED, EventParser, ServerEvent

_FIRST = 5.0
"""Timeout (s) of the first connection."""


@dataclass(frozen=True, slots=True)
class SseSourceOptions(MessageOptions):
    """``last`` is the id after which to begin, ``token`` a bearer token, ``query`` the query string for the server.

    ``idle`` (ms) without a byte is a lost connection; ``patience`` (ms) is how long the server may be unavailable.
    """

    last: str | None = None
    token: str | None = None
    query: str = ""
    idle: int = 60_000
    ca: str | None = None
    patience: int = 600_000


class SseSource(RefusalReport):
    """A subscription that reconnects when it breaks.

    An earlier process has read ``passed`` items after the last event; a place is an event id and the items since.
    """

    def __init__(
        self, address: Address, options: SseSourceOptions, messages: Messages, random: Random, passed: int = 0
    ) -> None:
        self.lost, self._passed, self._items = "", passed, 0
        self._address, self._options, self._messages = address, options, messages
        self._refusals = messages.refusals
        self._last = options.last
        self._backoff = Backoff(random)
        self._trouble = ""
        self._count = 0
        self._over = False
        self._closing = Event()
        self._resting = Event()
        self._resting.set()
        silence = options.idle / 1000
        limits = ExchangeLimits(_FIRST, received=2 * messages.limit, silence=silence, option="`limit`")
        trusted = True if options.ca is None else ssl.create_default_context(cafile=options.ca)
        login = None if address.user is None else (address.user, address.password or "")
        place = {(address.host, address.port or PORTS[address.scheme.removeprefix("sse+")])}
        self._client = client(limits, verify=trusted, auth=login, private=place, follow_redirects=True)
        # The first connection is not retried: a wrong URL must be reported at the start and not after ``patience``.
        self._response = self._connect()
        if self._response is None:
            self._client.close()
            raise SourceError(f"{address.text}: {self._trouble}")

    def items(self) -> Iterator[Input]:
        """The elements and advances of the events in order, until the server's end event."""
        while self._response is not None:
            # Parsing starts anew with each connection, but for the last id: an event cut by the lost one is sent again
            # in full.
            parser = EventParser(self._messages.limit, self._last)
            for event in self._events(self._response, parser):
                if event.name == END:
                    return
                for item in self._taken(event):
                    self._items += 1
                    if self._items > self._passed:
                        yield item
                # Several events may share an id, or have none: a place is the last id and the number of items since.
                if event.id != self._last:
                    self._last, self._items, self._passed = event.id, 0, 0
            self._response.close()
            self._response = self._again(parser)

    def close(self) -> None:
        """Stop, and interrupt a read that waits for an event."""
        self._closing.set()
        response = self._response
        # ``shutdown`` wakes a thread that blocks in ``recv``; closing the descriptor alone would not.
        if response is not None and "network_stream" in response.extensions:
            with suppress(OSError):
                response.extensions["network_stream"].get_extra_info("socket").shutdown(socket.SHUT_RDWR)
        # Another thread may still be inside httpx, whose responses cannot be closed while they are read.
        self._resting.wait(_FIRST)
        if response is not None:
            response.close()
        self._client.close()

    def hold(self, *, apart: bool = True) -> bool:  # noqa: ARG002
        """Do nothing, as event servers need no acknowledgement."""
        return False

    def place(self) -> tuple[str | None, int]:
        """The id of the last processed event, and the items since."""
        return self._last, self._items

    def position(self, place: tuple[str | None, int]) -> Position | None:
        """The place as JSON; ``None`` if the server's events have no ids."""
        last, items = place
        # Before the first item no id is needed: another process begins anew.
        return None if last is None and items else {"last": last, "items": items}

    def settle(self, place: object) -> None:
        """Do nothing, as event servers need no acknowledgement."""

    def _taken(self, event: ServerEvent) -> Iterator[Input]:
        self._count += 1
        place = f"{self._address.text}: event {event.id or self._count}"
        if event.data is None:
            self._messages.refuse(FormatError(f"{place}: longer than {self._messages.limit} bytes: raise the limit"))
        elif event.name == MISSED:
            missed = event.data.decode(errors="replace")
            self._messages.refuse(FormatError(f"{place}: {missed} events are missing: the server no longer has them"))
        else:
            yield from self._messages.items(event.data, place, int(time() * 1000))

    def _events(self, response: httpx.Response, parser: EventParser) -> Iterator[ServerEvent]:
        chunks = response.iter_bytes()
        while chunk := self._chunk(chunks):
            yield from parser.feed(chunk)

    def _chunk(self, chunks: Iterator[bytes]) -> bytes:
        """The next bytes, empty if the connection ended."""
        self._resting.clear()
        try:
            return b"" if self._closing.is_set() else next(chunks, b"")
        except OversizedError as error:  # reconnecting would receive it again
            raise SourceError(f"{self._address.text}: {error}") from error
        except httpx.TransportError as error:
            self._trouble = obstacle(error)
            return b""
        finally:
            self._resting.set()

    def _again(self, parser: EventParser) -> httpx.Response | None:
        """The next connection, ``None`` after closing or at the end; SourceError if the server stays unavailable."""
        since = monotonic()
        # Only events show that the server works: one that accepts connections and drops them is retried ever more
        # slowly.
        if parser.any:
            self._backoff.reset()
        # The server's reconnection time (``retry``) is a minimum; the backoff is added to it.
        self._closing.wait((parser.retry or 0) / 1000)
        while not self._closing.wait(self._backoff.next()) and not self._over:
            response = self._connect()
            if response is not None:
                return response
            if (monotonic() - since) * 1000 > self._options.patience:
                away = f"the server was unavailable for more than {self._options.patience} ms: {self._trouble}"
                raise SourceError(f"{self._address.text}: {away}")
        return None

    def _connect(self) -> httpx.Response | None:
        """A response with events, ``None`` after a transient failure; SourceError after a permanent one."""
        address = self._address
        port = "" if address.port is None else f":{address.port}"
        query = self._options.query and f"?{self._options.query}"
        url = f"{address.scheme.removeprefix('sse+')}://{address.host}{port}{address.path or '/'}{query}"
        try:
            request = self._client.build_request("GET", url, headers=self._headers())
            response = self._client.send(request, stream=True)
        except httpx.TransportError as error:
            self._trouble = obstacle(error)
            return None
        kind = response.headers.get("content-type", "none").partition(";")[0]
        if response.status_code == 200 and kind == "text/event-stream":
            return response
        response.close()
        self._trouble = f"the server responds with {response.status_code}, {kind}: expected text/event-stream"
        # 204 tells a client to stop reconnecting (WHATWG HTML, 9.2).
        self._over = response.status_code == 204
        if not self._over and response.status_code not in TRANSIENT:
            raise SourceError(f"{address.text}: {self._trouble}")
        return None

    def _headers(self) -> Mapping[str, str]:
        headers = {"accept": "text/event-stream", "cache-control": "no-store"}
        if self._last:
            headers["last-event-id"] = self._last
        if self._options.token is not None:
            headers["authorization"] = f"Bearer {self._options.token}"
        return headers
