"""Server-sent events (HTML standard, 9.2): answers pushed over one long response."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable

from starlette.responses import StreamingResponse
from starlette.types import Message, Send

MEDIA_TYPE = "text/event-stream"
BEAT_S = 15.0
"""How often a silent response shows that it is alive."""

SEND_S = 20.0
"""How long a client may take to accept what is sent, before it is left."""

BEAT = b": alive\n\n"


class EventError(ValueError):
    """A number of an event that is none."""


def event(data: bytes, number: int | str | None = None, kind: str = "") -> bytes:
    """One event; ``data`` is lines, ``number`` what a client that comes back names as the last that it got."""
    named = b"" if number is None else b"id: %s\n" % str(number).encode()
    head = (b"event: %s\n" % kind.encode() if kind else b"") + named
    return b"%sdata: %s\n\n" % (head, data.replace(b"\n", b"\ndata: "))


def last_event(given: str | None) -> int | None:
    """The number of the last event that a client got; ``None`` when it names none. EventError for what is none."""
    if given is None or given == "":
        return None
    if not given.isascii() or not given.isdigit():
        raise EventError(f"Last-Event-ID is {given!r:.40}: expected the number of an event")
    return int(given)


class Events(StreamingResponse):
    """The response that sends events as they come; it ends when the client takes none for ``SEND_S``."""

    def __init__(self, events: AsyncIterator[bytes]) -> None:
        super().__init__(events, media_type=MEDIA_TYPE, headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})

    async def stream_response(self, send: Send) -> None:
        """Send each event in time."""

        async def timely(message: Message) -> None:
            await in_time(send(message))

        try:
            await super().stream_response(timely)
        except TimeoutError:
            await self._leave()

    async def _leave(self) -> None:
        if isinstance(self.body_iterator, AsyncGenerator):
            await self.body_iterator.aclose()


async def in_time(sending: Awaitable[None]) -> None:
    """Send, or TimeoutError when the client does not take it within ``SEND_S``."""
    async with asyncio.timeout(SEND_S):
        await sending


class Signal:
    """Wakes a coroutine from any thread."""

    def __init__(self) -> None:
        self._loop, self._event = asyncio.get_running_loop(), asyncio.Event()

    def set(self) -> None:
        """Wake; nothing when its event loop has ended."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._event.set)

    async def wait(self, timeout: float) -> bool:
        """Whether it was woken within ``timeout`` seconds."""
        try:
            await asyncio.wait_for(self._event.wait(), timeout)
        except TimeoutError:
            return False
        self._event.clear()
        return True
