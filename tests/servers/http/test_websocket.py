"""A WebSocket that has ended keeps no memory of its compression or messages, however long its garbage stays."""

import asyncio
import gc
import weakref
from unittest.mock import MagicMock

from uvicorn.server import ServerState

from streamgauge.servers.http.server import Serving
from streamgauge.servers.http.websocket import PushingWebSocketProtocol
from tests.boundaries.growth import frame
from tests.boundaries.sockets import HERE, request

KEY = "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA=="
COMPRESSED = "Sec-WebSocket-Extensions: permessage-deflate"
UPGRADE = request(
    "GET", "/", HERE, "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13", KEY, COMPRESSED
)


async def accepting(scope, receive, send):
    await receive()
    await send({"type": "websocket.accept"})
    await asyncio.Event().wait()


async def ended():
    """A protocol that lost its client in the midst of a message, and a reference to its compression."""
    config = Serving(accepting, "127.0.0.1", 0, lambda: None).config
    config.load()
    transport = MagicMock(asyncio.Transport)
    transport.is_closing.return_value = False
    protocol = PushingWebSocketProtocol(config, ServerState(), {})
    protocol.connection_made(transport)
    protocol.data_received(UPGRADE)
    await asyncio.sleep(0.01)
    protocol.data_received(frame(1, b"x" * 100, final=False))
    assert len(protocol.frames) == 1
    compression = weakref.ref(protocol.conn.extensions[0])
    protocol.connection_lost(None)
    return protocol, compression


def test_a_websocket_that_has_ended_keeps_no_compression_and_no_message():
    gc.disable()
    try:
        protocol, compression = asyncio.run(ended())
        assert (compression(), protocol.frames) == (None, [])
    finally:
        gc.enable()
