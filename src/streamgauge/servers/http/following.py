"""A subscriber's connection: what is numbered, as server-sent events or as messages of a WebSocket."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Final, Protocol, TypeVar

from starlette.websockets import WebSocket, WebSocketDisconnect

from streamgauge.servers.http import events
from streamgauge.servers.http.answers import End
from streamgauge.servers.http.fanout import Member

CODES = {"over": 1000, "error": 1011}
"""How a WebSocket is closed (RFC 6455, 7.4.1)."""

PIECE: Final = 64 * 2**10
"""Bytes of events above which no more are sent at once."""


class Countable(Protocol):
    """What is sent: a client that comes back names the number of the last that it got."""

    @property
    def number(self) -> int:
        """From 1."""
        ...


Sent = TypeVar("Sent", bound=Countable)
Kept = TypeVar("Kept", bound=Countable, covariant=True)


class Place(Protocol[Kept]):
    """A place in what is sent."""

    @property
    def over(self) -> End | None:
        """Why no more will come."""
        ...

    @property
    def missed(self) -> int:
        """How many after its place are not kept any more."""
        ...

    def take(self) -> Sequence[Kept]:
        """What has come since the last take, in order."""
        ...

    def close(self) -> None:
        """Leave."""
        ...


async def as_events(
    place: Place[Sent], line: Callable[[Sent], bytes], signal: events.Signal, member: Member[Sent] | None = None
) -> AsyncIterator[bytes]:
    """Events until no more will come, or the subscriber is too slow; then an event that says why.

    While there is nothing to send, a ``member`` is written to by its fan-out.
    """
    try:
        if missed := place.missed:
            yield events.event(json.dumps({"missed": missed}).encode(), kind="missed")
        while True:
            over = place.over
            for piece in _together(events.event(line(each), each.number) for each in place.take()):
                yield piece
            if over:
                yield events.event(json.dumps({over.kind: over.why}).encode(), kind=over.kind)
                return
            inside = member is not None and member.join()
            while not await signal.wait(events.BEAT_S):
                if member is None or member.was_silent() or not inside:
                    yield events.BEAT
                if not inside:
                    break
            if member is not None:
                member.leave()
    finally:
        _closed(place, member)


def _closed(place: Place[Sent], member: Member[Sent] | None) -> None:
    if member is not None:
        member.leave()
    place.close()


def _together(said: Iterable[bytes]) -> Iterator[bytes]:
    """What is to be said at once, in few pieces: sending one costs more than making it."""
    waiting: list[bytes] = []
    size = 0
    for each in said:
        waiting.append(each)
        size += len(each)
        if size >= PIECE:
            yield b"".join(waiting)
            waiting.clear()
            size = 0
    if waiting:
        yield b"".join(waiting)


async def converse(
    websocket: WebSocket,
    place: Place[Sent],
    text: Callable[[Sent], str],
    signal: events.Signal,
    hear: Callable[[], Awaitable[None]],
    member: Member[Sent] | None = None,
) -> None:
    """Messages until either side ends; ``hear`` listens to the client and ends when it is to be left.

    While there is nothing to send, a ``member`` is written to by its fan-out.
    """
    hearing = asyncio.create_task(_heard(hear, signal))
    try:
        if missed := place.missed:
            await events.in_time(websocket.send_json({"missed": missed}))
        while not hearing.done():
            over = place.over
            for each in place.take():
                await events.in_time(websocket.send_text(text(each)))
            if over:
                await websocket.close(CODES[over.kind], over.why[:120])
                break
            inside = member is not None and member.join()
            while not await signal.wait(events.BEAT_S) and inside:
                pass
            if member is not None:
                member.leave()
    except (WebSocketDisconnect, RuntimeError, TimeoutError):
        return
    finally:
        _closed(place, member)
        hearing.cancel()


async def _heard(hear: Callable[[], Awaitable[None]], signal: events.Signal) -> None:
    try:
        await hear()
    finally:
        signal.set()


async def nothing(websocket: WebSocket) -> None:
    """Hear a client whose words are not looked at, until it leaves."""
    while (await websocket.receive())["type"] != "websocket.disconnect":
        pass
