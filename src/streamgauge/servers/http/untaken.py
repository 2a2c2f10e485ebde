"""Clients that take nothing of what is sent to them, whatever protocol they speak."""

import asyncio
from typing import Final
from weakref import WeakKeyDictionary

TAKE_S: Final = 20.0
"""How long a client may take nothing of what is sent to it."""

UNTAKEN: Final = 24 * 2**20
"""Bytes that may wait for the clients of all connections before ``STALLED_S`` counts; for one alone as many as it is
sent."""

STALLED_S: Final = 1.0
"""How long a client may take nothing while so many bytes wait."""


_EARLY_S: Final = 0.01
"""How much earlier than due a timer may come."""


class UntakenWatch:
    """Aborts a connection whose client takes nothing for ``TAKE_S`` while bytes wait for it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, transport: asyncio.Transport) -> None:
        self._loop, self._transport = loop, transport
        self._timer: asyncio.TimerHandle | None = None
        self._waiting, self._since = 0, 0.0
        self._all = _WATCHES.get(loop) or _WATCHES.setdefault(loop, UntakenBytes())

    @property
    def size(self) -> int:
        """The bytes that wait."""
        return self._transport.get_write_buffer_size()

    def start(self) -> None:
        """Bytes wait for the client from now on."""
        self.stop()
        self._waiting, self._since = self.size, self._loop.time()
        self._timer = self._loop.call_later(TAKE_S, self._look)
        self._all.enter(self)

    def stop(self) -> None:
        """The client has taken the bytes that waited, or is gone."""
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()
            self._all.leave(self)

    def stalled(self) -> float:
        """For how long (s) the client has taken nothing; 0.0 where it took some since this was asked last."""
        if self.size < self._waiting:
            self._waiting, self._since = self.size, self._loop.time()
        return self._loop.time() - self._since

    def abort(self) -> None:
        """Leave the client."""
        self.stop()
        self._transport.abort()

    def _look(self) -> None:
        left = TAKE_S - self.stalled()
        if left > _EARLY_S:
            self._timer = self._loop.call_later(left, self._look)
        else:
            self.abort()


class UntakenBytes:
    """The bytes that wait for all clients of a loop.

    Beyond ``UNTAKEN`` those who took nothing for ``STALLED_S`` are left, who waits longest first.
    """

    def __init__(self) -> None:
        self._waiting: dict[UntakenWatch, None] = {}
        self._timer: asyncio.TimerHandle | None = None

    def enter(self, watch: UntakenWatch) -> None:
        """Bytes wait for one more client."""
        self._waiting[watch] = None
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(STALLED_S, self._look)

    def leave(self, watch: UntakenWatch) -> None:
        """Bytes wait for it no more."""
        self._waiting.pop(watch, None)

    def _look(self) -> None:
        total = sum(watch.size for watch in self._waiting)
        for watch in list(self._waiting) if total > UNTAKEN else ():
            if watch.stalled() >= STALLED_S and total > UNTAKEN and len(self._waiting) > 1:
                total -= watch.size
                watch.abort()
        self._timer = None
        if self._waiting:
            self._timer = asyncio.get_running_loop().call_later(STALLED_S, self._look)


_WATCHES: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, UntakenBytes]] = WeakKeyDictionary()
