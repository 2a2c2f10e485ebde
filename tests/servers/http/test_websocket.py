"""A WebSocket that has ended is freed with its compression and messages, without a collection of garbage."""

import asyncio
import gc
import logging
import weakref
from unittest.mock import MagicMock

import pytest
from uvicorn.server import ServerState

from streamgauge.servers.http.connections import PatientHttpProtocol
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


@pytest.fixture(autouse=True)
def _without_collection():
    gc.disable()
    yield
    gc.enable()


def transport():
    """A connection that keeps no protocol."""
    mock = MagicMock(asyncio.Transport)
    mock.is_closing.return_value = False
    mock.set_protocol = lambda protocol: setattr(mock, "protocol", protocol)
    return mock


async def ended(protocol):
    """References to a WebSocket that lost its client in the midst of a message, and to all that it consists of."""
    protocol.data_received(frame(1, b"x" * 100, final=False) + frame(0, b"y" * 100)[:50])
    assert len(protocol.frames) == 1
    parts = [protocol, protocol.conn, protocol.conn.extensions[0], protocol.conn.reader]
    protocol.connection_lost(None)
    for task in list(protocol.tasks):
        task.cancel()
        await asyncio.wait([task])
    return [weakref.ref(part) for part in parts]


async def opened():
    """A WebSocket of its own and one that an HTTP connection became, ended; references to them and that connection."""
    config = Serving(accepting, "127.0.0.1", 0, lambda: None).config
    config.load()
    direct = PushingWebSocketProtocol(config, ServerState(), {})
    direct.connection_made(transport())
    direct.data_received(UPGRADE)
    connection, http = transport(), PatientHttpProtocol(config, ServerState(), {})
    http.connection_made(connection)
    http.data_received(UPGRADE)
    await asyncio.sleep(0.01)
    references = [*await ended(direct), *await ended(connection.protocol), weakref.ref(http)]
    connection.reset_mock()
    del connection.protocol, http, direct
    return references


def test_nothing_of_a_websocket_that_has_ended_is_kept_without_a_collection_of_garbage(monkeypatch):
    monkeypatch.setattr(
        logging.getLogger("uvicorn.error"), "propagate", False
    )  # pytest keeps records with their frames
    assert [reference() for reference in asyncio.run(opened())] == [None] * 9
