"""Connections that are left when they bring no request, in time and of a bounded length, or take no answer."""

import asyncio
import socket
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from streamgauge.servers.http.fanout import CONNECTION, PUSH
from streamgauge.servers.http.heads import BadHead, head_fault

PATIENCE_S: Final = 30.0
"""How long a request's head may take to arrive, and how long a connection may stay without one."""

TAKE_S: Final = 20.0
"""How long a client may take nothing of what is sent to it."""

LINGER_S: Final = 5.0
"""How long what is left of a request that was answered already is taken, so that its client comes to read why."""

HEAD: Final = 64 * 2**10
"""Bytes that a request's head may have."""

_REPLY: Final = b"HTTP/1.1 %s\r\ncontent-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n%s"


class Patient(HttpToolsProtocol):
    """HTTP/1.1 with an end to patience; a body has limits of its own."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._timer: asyncio.TimerHandle | None = None
        self._stalled: asyncio.TimerHandle | None = None
        self._lingering: asyncio.TimerHandle | None = None
        self._head = self._untaken = 0
        self._fault = ""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for a request; what a client that is gone does not confirm ends the connection in time."""
        super().connection_made(transport)
        held = transport.get_extra_info("socket")
        if (
            held is not None
            and held.family in (socket.AF_INET, socket.AF_INET6)
            and hasattr(socket, "TCP_USER_TIMEOUT")
        ):
            held.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(1000 * PATIENCE_S))
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._wait_no_more()
        self._stalls_no_more()
        self._linger_no_more()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take more of a request; a head that has become too long is refused."""
        super().data_received(data)
        if self._timer is not None:
            self._head += len(data)
            if self._head > HEAD:
                self._refuse(
                    b"431 Request Header Fields Too Large", b"the head of a request has at most %d bytes" % HEAD
                )

    def on_message_begin(self) -> None:
        """A request begins."""
        super().on_message_begin()
        self.scope["extensions"] = {PUSH: {CONNECTION: self}}
        self._wait()

    def write(self, data: bytes) -> bool:
        """Write chunks of a response that has begun; false where the client takes no more for now, or is gone."""
        if self.flow.write_paused or self.transport.is_closing():
            return False
        self.transport.write(data)
        return True

    def on_headers_complete(self) -> None:
        """Its head is there; one that could be understood in two ways is refused."""
        self._wait_no_more()
        self._fault = head_fault(self.parser.get_http_version(), self.url, self.headers)
        if not self._fault:
            super().on_headers_complete()
            return
        app, self.app = self.app, BadHead(self._fault)
        try:
            super().on_headers_complete()
        finally:
            self.app = app

    def handle_websocket_upgrade(self) -> None:
        """Hand the connection on to a WebSocket, but for a head that is refused."""
        if self._fault:
            self._refuse(b"400 Bad Request", self._fault.encode("latin-1", "replace").replace(b'"', b"'"))
        else:
            super().handle_websocket_upgrade()

    def on_message_complete(self) -> None:
        """All of it is there."""
        self._linger_no_more()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """It is answered: where that was before all of it came, the connection ends soon."""
        if self.cycle.response_complete and self.cycle.more_body:
            self._lingering = self.loop.call_later(LINGER_S, self.transport.abort)
        super().on_response_complete()

    def pause_writing(self) -> None:
        """What is sent waits for the client: see that it takes some."""
        super().pause_writing()
        self._watch()

    def resume_writing(self) -> None:
        """It has taken what waited."""
        self._stalls_no_more()
        super().resume_writing()

    def _watch(self) -> None:
        self._untaken = self.transport.get_write_buffer_size()
        self._stalled = self.loop.call_later(TAKE_S, self._look)

    def _look(self) -> None:
        """Leave a client that has taken nothing since the last look."""
        self._stalls_no_more()
        if self.transport.get_write_buffer_size() < self._untaken:
            self._watch()
        else:
            self.transport.abort()

    def _stalls_no_more(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None

    def _linger_no_more(self) -> None:
        if self._lingering is not None:
            self._lingering.cancel()
            self._lingering = None

    def _wait(self) -> None:
        if self._timer is None:
            self._head = 0
            self._timer = self.loop.call_later(PATIENCE_S, self._over)

    def _wait_no_more(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _over(self) -> None:
        self._refuse(b"408 Request Timeout", b"no request came within %d s" % PATIENCE_S)

    def _refuse(self, status: bytes, why: bytes) -> None:
        self._wait_no_more()
        if not self.transport.is_closing():
            body = b'{"error": "%s"}' % why
            self.transport.write(_REPLY % (status, len(body), body))
            self.transport.close()


class Pushing(WebSocketsSansIOProtocol):
    """A WebSocket to which whole frames can be written."""

    async def run_asgi(self) -> None:
        """Run the application, which may write frames."""
        self.scope["extensions"] = {**(self.scope["extensions"] or {}), PUSH: {CONNECTION: self}}
        await super().run_asgi()

    def write(self, data: bytes) -> bool:
        """Write whole frames of a server; false where the client takes no more for now, or either side is leaving."""
        if not self.writable.is_set() or self.close_sent or self.disconnected or self.transport.is_closing():
            return False
        self.transport.write(data)
        return True
