"""Connections that are not requests of HTTP: WebSockets of clients, and whether anybody listens at a port."""

import socket
from collections.abc import Mapping
from typing import Any

from websockets.asyncio.client import connect

MESSAGE = 256 * 2**20
"""Maximum size (bytes) of a message from a server."""

OPEN_S = 30.0
"""Timeout (s) of the opening handshake of a WebSocket."""


def websocket(url: str, headers: Mapping[str, str], **options: Any) -> connect:
    """A WebSocket to a server that the user names, to be entered with ``async with``; no proxies."""
    return connect(url, additional_headers=headers, max_size=MESSAGE, open_timeout=OPEN_S, proxy=None, **options)


def check_reachable(host: str, port: int, seconds: float) -> None:
    """OSError if no server listens there or responds within ``seconds``."""
    socket.create_connection((host, port), seconds).close()
