"""Server-sent events (HTML standard, 9.2): answers pushed over one long response."""

import asyncio
from collections.abc import AsyncIterator

from starlette.responses import StreamingResponse

MEDIA_TYPE = "text/event-stream"
BEAT_S = 15.0
"""How often a silent response shows that it is alive."""

BEAT = b": alive\n\n"


class EventError(ValueError):
    """A number of an event that is none."""


def event(data: bytes, number: int | None = None, kind: str = "") -> bytes:
    """One event; ``data`` is a line, ``number`` what a client that comes back names as the last that it got."""
    head = (b"event: %s\n" % kind.encode() if kind else b"") + (b"id: %d\n" % number if number is not None else b"")
    return b"%sdata: %s\n\n" % (head, data)


def last_event(given: str | None) -> int | None:
    """The number of the last event that a client got; ``None`` when it names none. EventError for what is none."""
    if given is None or given == "":
        return None
    if not given.isascii() or not given.isdigit():
        raise EventError(f"Last-Event-ID is {given!r:.40}: expected the number of an event")
    return int(given)


def response(events: AsyncIterator[bytes]) -> StreamingResponse:
    """The response that sends events as they come."""
    return StreamingResponse(events, media_type=MEDIA_TYPE, headers={"Cache-Control": "no-store"})


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
