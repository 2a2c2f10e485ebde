"""Acknowledgements of a subscriber on its WebSocket: notifications that need not come again."""

import asyncio
from typing import Any

from starlette.websockets import WebSocket

from streamgauge.formats.bounds import read_json
from streamgauge.servers.broker.channels import Subscribed


async def acknowledged(websocket: WebSocket, subscribed: Subscribed) -> None:
    """Take ``{"acknowledge": number}`` until the client leaves, or says something else."""
    while (message := await websocket.receive())["type"] != "websocket.disconnect":
        number = _number(message.get("text") or "")
        if number is None:
            await websocket.close(1008, 'only {"acknowledge": NUMBER} is understood here')
            return
        await asyncio.to_thread(subscribed.acknowledge, number)


def _number(text: str) -> int | None:
    try:
        said: Any = read_json(text)
    except ValueError:
        return None
    number = said.get("acknowledge") if isinstance(said, dict) and len(said) == 1 else None
    return number if isinstance(number, int) and not isinstance(number, bool) and number >= 0 else None
