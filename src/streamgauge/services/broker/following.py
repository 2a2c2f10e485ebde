"""A subscriber's connection: notifications as server-sent events, or as messages of a WebSocket."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from starlette.websockets import WebSocket, WebSocketDisconnect

from streamgauge.services.broker.channels import Subscribed
from streamgauge.services.broker.telling import Telling
from streamgauge.services.web import events

CODES = {"over": 1000, "error": 1011}
"""How a WebSocket is closed (RFC 6455, 7.4.1)."""


async def as_events(subscribed: Subscribed, telling: Telling, signal: events.Signal) -> AsyncIterator[bytes]:
    """Notifications as events until the channel ends, or its subscriber is too slow; then an event that says why."""
    try:
        if missed := subscribed.missed:
            yield events.event(json.dumps({"missed": missed}).encode(), kind="missed")
        while True:
            over = subscribed.over
            for each in subscribed.take():
                yield events.event(telling.text(subscribed.channel, each), each.number)
            if over:
                yield events.event(json.dumps({over.kind: over.why}).encode(), kind=over.kind)
                return
            if not await signal.wait(events.BEAT_S):
                yield events.BEAT
    finally:
        subscribed.close()


async def converse(websocket: WebSocket, subscribed: Subscribed, telling: Telling, signal: events.Signal) -> None:
    """Send notifications until either side ends; ``{"acknowledge": number}`` from the client is taken."""
    hearing = asyncio.create_task(_hear(websocket, subscribed, signal))
    try:
        if missed := subscribed.missed:
            await events.in_time(websocket.send_json({"missed": missed}))
        while not hearing.done():
            over = subscribed.over
            for each in subscribed.take():
                await events.in_time(websocket.send_text(telling.text(subscribed.channel, each).decode()))
            if over:
                await websocket.close(CODES[over.kind], over.why[:120])
                break
            await signal.wait(events.BEAT_S)
    except (WebSocketDisconnect, RuntimeError, TimeoutError):
        return
    finally:
        subscribed.close()
        hearing.cancel()


async def _hear(websocket: WebSocket, subscribed: Subscribed, signal: events.Signal) -> None:
    """Ends when the client does, or says something else than an acknowledgement."""
    try:
        while True:
            message = await websocket.receive()
            if message["type"] == "websocket.disconnect":
                return
            number = _acknowledged(message.get("text") or "")
            if number is None:
                await websocket.close(1008, 'only {"acknowledge": NUMBER} is understood here')
                return
            await asyncio.to_thread(subscribed.acknowledge, number)
    finally:
        signal.set()


def _acknowledged(text: str) -> int | None:
    try:
        said: Any = json.loads(text)
    except (ValueError, RecursionError):
        return None
    number = said.get("acknowledge") if isinstance(said, dict) and len(said) == 1 else None
    return number if isinstance(number, int) and not isinstance(number, bool) and number >= 0 else None
