"""Server-sent events (HTML standard, 9.2): answers pushed over one long response."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from typing import Final, Protocol
from weakref import WeakKeyDictionary, ref

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
        super().__init__(
            events, media_type=MEDIA_TYPE, headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        )

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


class Rung(Protocol):
    """What a bell is rung for."""

    def pass_on(self) -> None:
        """Do it, in the event loop's thread."""
        ...


class LoopCall:
    """Calls something in the event loop, once for all that set it before; from any thread."""

    def __init__(self, call: Callable[[], None]) -> None:
        self._call, self._bell = call, _bell(asyncio.get_running_loop())
        self._raised = False

    def set(self) -> None:
        """Call soon; nothing when the event loop has ended."""
        if not self._raised:
            self._raised = True
            self._bell.ring(self)

    def pass_on(self) -> None:
        """Call."""
        self._raised = False
        self._call()


class Signal:
    """Wakes a coroutine from any thread."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._bell = _bell(self._loop)
        self._raised = False
        self._waiter: asyncio.Future[None] | None = None

    def set(self) -> None:
        """Wake; nothing when its event loop has ended."""
        if not self._raised:
            self._raised = True
            self._bell.ring(self)

    async def wait(self, timeout: float) -> bool:
        """Whether it was woken within ``timeout`` seconds."""
        if not self._raised:
            self._waiter = self._loop.create_future()
            timer = self._loop.call_later(timeout, _release, self._waiter)
            try:
                await self._waiter
            finally:
                timer.cancel()
        woken, self._raised = self._raised, False
        return woken

    def pass_on(self) -> None:
        """Wake who waits, unless it has seen already why; in the event loop's thread."""
        if self._raised and self._waiter is not None:
            _release(self._waiter)


def _release(waiter: "asyncio.Future[None]") -> None:
    if not waiter.done():
        waiter.set_result(None)


class _Bell:
    """Passes signals on in their event loop: one call for all that come together, in turns that let others in."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = ref(loop)
        self._rung: deque[Rung] = deque()
        self._called = False

    def ring(self, signal: Rung) -> None:
        """A signal is to be passed on; from any thread."""
        self._rung.append(signal)
        loop = self._loop()
        if not self._called and loop is not None and not loop.is_closed():
            self._called = True
            loop.call_soon_threadsafe(self._pass_on)

    def _pass_on(self) -> None:
        self._called = False
        for _ in range(min(len(self._rung), _TURN)):
            self._rung.popleft().pass_on()
        loop = self._loop()
        if self._rung and not self._called and loop is not None:
            self._called = True
            loop.call_soon(self._pass_on)


def _bell(loop: asyncio.AbstractEventLoop) -> _Bell:
    return _BELLS.get(loop) or _BELLS.setdefault(loop, _Bell(loop))


_BELLS: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, _Bell]] = WeakKeyDictionary()
_TURN: Final = 64
"""How many are woken before others have their turn: thousands of subscribers do not make a publisher wait."""
