"""Clients that take nothing of what is sent to them, whatever protocol they speak."""

import asyncio
from typing import Final

TAKE_S: Final = 20.0
"""How long a client may take nothing of what is sent to it."""


class UntakenWatch:
    """Aborts a connection whose client takes nothing for ``TAKE_S`` while bytes wait for it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, transport: asyncio.Transport) -> None:
        self._loop, self._transport = loop, transport
        self._timer: asyncio.TimerHandle | None = None
        self._waiting = 0

    def start(self) -> None:
        """Bytes wait for the client from now on."""
        self.stop()
        self._waiting = self._transport.get_write_buffer_size()
        self._timer = self._loop.call_later(TAKE_S, self._look)

    def stop(self) -> None:
        """The client has taken the bytes that waited, or is gone."""
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()

    def _look(self) -> None:
        if self._transport.get_write_buffer_size() < self._waiting:
            self.start()
        else:
            self._transport.abort()
