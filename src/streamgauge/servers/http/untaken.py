"""Clients that do not read what is sent to them: bounds on time and on bytes in write buffers, for all protocols."""

import asyncio
from typing import Final
from weakref import WeakKeyDictionary

TAKE_S: Final = 20.0
"""How long a client may read nothing while bytes wait for it."""

UNTAKEN: Final = 24 * 2**20
"""Bytes in all write buffers above which ``STALLED_S`` applies; a single connection may have more."""

STALLED_S: Final = 1.0
"""How long a client may read nothing while more than ``UNTAKEN`` bytes wait."""


_EARLY_S: Final = 0.01
"""How much too early a timer of the event loop may fire."""


class UntakenWatch:
    """Aborts a connection whose client reads nothing for ``TAKE_S`` while bytes wait for it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, transport: asyncio.Transport) -> None:
        self._loop, self._transport = loop, transport
        self._timer: asyncio.TimerHandle | None = None
        self._waiting, self._since = 0, 0.0
        self._all = _WATCHES.get(loop) or _WATCHES.setdefault(loop, UntakenBytes())

    @property
    def size(self) -> int:
        """The bytes in the connection's write buffer."""
        return self._transport.get_write_buffer_size()

    def start(self) -> None:
        """Start watching: the write buffer is full."""
        self.stop()
        self._waiting, self._since = self.size, self._loop.time()
        self._timer = self._loop.call_later(TAKE_S, self._look)
        self._all.enter(self)

    def stop(self) -> None:
        """Stop watching: the write buffer has drained, or the connection has ended."""
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()
            self._all.leave(self)

    def stalled(self) -> float:
        """How long (s) the client has read nothing; 0.0 if it has read some since the last call."""
        # A smaller buffer is the only sign that the client reads: the transport reports nothing between full and
        # drained.
        if self.size < self._waiting:
            self._waiting, self._since = self.size, self._loop.time()
        return self._loop.time() - self._since

    def abort(self) -> None:
        """Abort the connection without waiting for the client."""
        self.stop()
        self._transport.abort()

    def _look(self) -> None:
        left = TAKE_S - self.stalled()
        if left > _EARLY_S:
            self._timer = self._loop.call_later(left, self._look)
        else:
            self.abort()


class UntakenBytes:
    """The bytes that wait for all clients of an event loop.

    Above ``UNTAKEN``, connections that have stalled for ``STALLED_S`` are aborted, the one watched longest first.
    """

    def __init__(self) -> None:
        self._waiting: dict[UntakenWatch, None] = {}
        self._timer: asyncio.TimerHandle | None = None

    def enter(self, watch: UntakenWatch) -> None:
        """Include a connection whose write buffer is full."""
        self._waiting[watch] = None
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(STALLED_S, self._look)

    def leave(self, watch: UntakenWatch) -> None:
        """Stop watching a connection."""
        self._waiting.pop(watch, None)

    def _look(self) -> None:
        total = sum(watch.size for watch in self._waiting)
        # The last one is spared: a single response may be larger than the bound.
        for watch in list(self._waiting) if total > UNTAKEN else ():
            if watch.stalled() >= STALLED_S and total > UNTAKEN and len(self._waiting) > 1:
                total -= watch.size
                watch.abort()
        self._timer = None
        if self._waiting:
            self._timer = asyncio.get_running_loop().call_later(STALLED_S, self._look)


_WATCHES: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, UntakenBytes]] = WeakKeyDictionary()
