"""WebSockets of clients (RFC 6455): bounded in bytes and frames both ways, and left when they are invalid."""

from typing import Any, Final

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from streamgauge.servers.http.fanout import CONNECTION, PUSH
from streamgauge.servers.http.untaken import UntakenWatch

PARSED: Final = 4 * 2**10
"""Bytes that are parsed at once: of a read of 256 KB, 40,000 frames without content would wait as 17 MB of messages."""

FRAGMENTS: Final = 1_000
"""Frames of a message; without content they would not count towards its size."""

_INVALID: Final = 1007
_POLICY: Final = 1008
_ABNORMAL: Final = 1006
_BAD_HANDSHAKE: Final = b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


class PushingWebSocketProtocol(WebSocketsSansIOProtocol):
    """A WebSocket to which whole frames can be written.

    No frame is parsed before the application accepts the connection, nor while a message waits for it; none is read
    while the client takes nothing of what is sent, pongs included.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._unparsed = bytearray()

    def connection_made(self, transport: Any) -> None:
        """Take a connection over."""
        super().connection_made(transport)
        self._untaken = UntakenWatch(self.loop, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection has ended."""
        self._untaken.stop()
        self._unparsed.clear()
        super().connection_lost(exc)
        # A server without requests never collects garbage with cycles: these are broken, and part of a message or the
        # 60 KiB of a compression are kept by nobody.
        self.conn.parser.close()
        self.frames, self.conn.events, self.conn.extensions, self.conn.parser_exc = [], [], [], None
        if self.handshake_initiated:
            self.scope = {**self.scope, "extensions": None}  # type: ignore[typeddict-item]

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

    def data_received(self, data: bytes) -> None:
        """The request for a WebSocket comes first and whole, frames after it."""
        if self.handshake_initiated:
            self._unparsed += data
            self._parse()
            return
        super().data_received(data)
        if not self.handshake_initiated:
            self.transport.write(_BAD_HANDSHAKE)
            self.transport.close()

    async def send(self, message: Any) -> None:
        """Send; frames are parsed once the connection is accepted."""
        await super().send(message)
        if message["type"] == "websocket.accept":
            self._parse()

    async def receive(self) -> Any:
        """The next message; more are parsed when none waits."""
        message = await super().receive()
        if not self.read_paused:
            self._parse()
        return message

    def handle_cont(self, event: Any) -> None:
        """One more frame of a message."""
        if len(self.frames) < FRAGMENTS:
            super().handle_cont(event)
        else:
            self._fail(_POLICY, f"a message has at most {FRAGMENTS} frames")

    def send_receive_event_to_app(self) -> None:
        """Hand over a message that is complete; text that is not UTF-8 ends the connection."""
        if self.curr_msg_data_type == "text":
            try:
                b"".join(self.frames).decode()
            except UnicodeDecodeError:
                self._fail(_INVALID, "text is UTF-8")
                return
        super().send_receive_event_to_app()

    def handle_parser_exception(self) -> None:
        """Leave a client whose frames are invalid."""
        if self.conn.close_sent is None:
            self.queue.put_nowait({"type": "websocket.disconnect", "code": _ABNORMAL, "reason": ""})
            self.transport.abort()
        else:
            super().handle_parser_exception()

    def pause_writing(self) -> None:
        """Bytes wait for the client: read nothing that may add to them, and see that it takes some."""
        super().pause_writing()
        self._untaken.start()
        self._regulate()

    def resume_writing(self) -> None:
        """The client has taken the bytes that waited."""
        super().resume_writing()
        self._untaken.stop()
        self._parse()

    def _parse(self) -> None:
        while self._unparsed and self._ready() and not self.transport.is_closing():
            piece = bytes(self._unparsed[:PARSED])
            del self._unparsed[:PARSED]
            super().data_received(piece)
        self._regulate()

    def _ready(self) -> bool:
        """Whether the application can take a message, and the client an answer."""
        return self.handshake_complete and not self.read_paused and self.writable.is_set()

    def _regulate(self) -> None:
        """Read only what is parsed at once."""
        if self.transport.is_closing():
            return
        if self._ready() or self.close_sent:
            self.transport.resume_reading()
        else:
            self.transport.pause_reading()

    def _fail(self, code: int, reason: str) -> None:
        self.conn.fail(code, reason)
        self.handle_parser_exception()
