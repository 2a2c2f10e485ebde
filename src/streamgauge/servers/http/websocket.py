"""WebSockets of clients (RFC 6455): bytes and frames are bounded both ways, and invalid frames end the connection."""

from typing import Any, Final

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from streamgauge.servers.http.fanout import CONNECTION, PUSH
from streamgauge.servers.http.untaken import UntakenWatch

PARSED_BYTES: Final = 4 * 2**10
"""Bytes parsed in one go: a read of 256 KB may be 40,000 empty frames, which would wait as 17 MB of messages."""

MAX_FRAGMENTS: Final = 1_000
"""Frames of a message; empty ones do not count towards its size."""

_INVALID: Final = 1007
_POLICY: Final = 1008
_ABNORMAL: Final = 1006
_BAD_HANDSHAKE: Final = b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


class PushingWebSocketProtocol(WebSocketsSansIOProtocol):
    """A WebSocket to which whole frames can be written.

    Frames are parsed only after the application has accepted the connection and while it has no message waiting.
    Nothing is read while the client does not take what is sent to it, pongs included: every ping would add to that.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._unparsed = bytearray()

    def connection_made(self, transport: Any) -> None:
        """Begin a connection, or take it over from HTTP after the upgrade."""
        super().connection_made(transport)
        self._untaken = UntakenWatch(self.loop, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """Release the memory of a connection that has ended."""
        self._untaken.stop()
        self._unparsed.clear()
        super().connection_lost(exc)
        # An idle server never collects cyclic garbage, so cycles are broken here: else part of a message, or the
        # 60 KiB of a compression context, would stay allocated.
        self.conn.parser.close()
        self.frames, self.conn.events, self.conn.extensions, self.conn.parser_exc = [], [], [], None
        if self.handshake_initiated:
            self.scope = {**self.scope, "extensions": None}  # type: ignore[typeddict-item]

    async def run_asgi(self) -> None:
        """Run the application, with this connection in its scope so that a fan-out can write frames."""
        self.scope["extensions"] = {**(self.scope["extensions"] or {}), PUSH: {CONNECTION: self}}
        await super().run_asgi()

    def write(self, data: bytes) -> bool:
        """Write whole server frames; false, with nothing written, if the buffer is full or either side is closing."""
        if not self.writable.is_set() or self.close_sent or self.disconnected or self.transport.is_closing():
            return False
        self.transport.write(data)
        return True

    def data_received(self, data: bytes) -> None:
        """Handle bytes of the client: first the whole request for a WebSocket, then frames."""
        if self.handshake_initiated:
            self._unparsed += data
            self._parse()
            return
        super().data_received(data)
        # The HTTP protocol hands over a complete head, so an incomplete one cannot be a valid upgrade.
        if not self.handshake_initiated:
            self.transport.write(_BAD_HANDSHAKE)
            self.transport.close()

    async def send(self, message: Any) -> None:
        """Send a message of the application; accepting the connection starts the parsing of frames."""
        await super().send(message)
        if message["type"] == "websocket.accept":
            self._parse()

    async def receive(self) -> Any:
        """The next message; when none is left waiting, more are parsed."""
        message = await super().receive()
        if not self.read_paused:
            self._parse()
        return message

    def handle_cont(self, event: Any) -> None:
        """Handle a continuation frame, at most ``MAX_FRAGMENTS`` in a message."""
        # Each frame is a bytes object in a list, whose overhead alone would be without bound for empty frames.
        if len(self.frames) < MAX_FRAGMENTS:
            super().handle_cont(event)
        else:
            self._fail(_POLICY, f"a message has at most {MAX_FRAGMENTS} frames")

    def send_receive_event_to_app(self) -> None:
        """Pass a complete message to the application; text that is not UTF-8 ends the connection (RFC 6455, 8.1)."""
        if self.curr_msg_data_type == "text":
            try:
                b"".join(self.frames).decode()
            except UnicodeDecodeError:
                self._fail(_INVALID, "text is UTF-8")
                return
        super().send_receive_event_to_app()

    def handle_parser_exception(self) -> None:
        """End a connection whose frames are invalid."""
        # uvicorn's handler asserts that the library has prepared a close frame, which it has not for every fault.
        if self.conn.close_sent is None:
            self.queue.put_nowait({"type": "websocket.disconnect", "code": _ABNORMAL, "reason": ""})
            self.transport.abort()
        else:
            super().handle_parser_exception()

    def pause_writing(self) -> None:
        """The write buffer is full: stop reading, since replies add to it, and watch that the client takes some."""
        super().pause_writing()
        self._untaken.start()
        self._regulate()

    def resume_writing(self) -> None:
        """The write buffer has drained: parse what waited."""
        super().resume_writing()
        self._untaken.stop()
        self._parse()

    def _parse(self) -> None:
        while self._unparsed and self._ready() and not self.transport.is_closing():
            piece = bytes(self._unparsed[:PARSED_BYTES])
            # Cheap on a bytearray, which moves its start; on bytes each piece would copy the rest.
            del self._unparsed[:PARSED_BYTES]
            super().data_received(piece)
        self._regulate()

    def _ready(self) -> bool:
        """Whether the application can take a message and the client a reply."""
        return self.handshake_complete and not self.read_paused and self.writable.is_set()

    def _regulate(self) -> None:
        """Read from the socket only while what is read can be parsed."""
        if self.transport.is_closing():
            return
        # After our close frame the client's is awaited (RFC 6455, 5.5.1), which has to be read.
        if self._ready() or self.close_sent:
            self.transport.resume_reading()
        else:
            self.transport.pause_reading()

    def _fail(self, code: int, reason: str) -> None:
        self.conn.fail(code, reason)
        self.handle_parser_exception()
