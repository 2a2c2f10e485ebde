"""Work that is done by one at a time, so that many who ask for it at once take no threads from others."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class CrowdedError(RuntimeError):
    """Too many wait for the same already; the sentence says to come again."""


class Gate:
    """``through`` lets in ``room`` at a time, in the order in which they came; ``most`` wait."""

    def __init__(self, most: int, what: str, room: int = 1) -> None:
        self._most, self._what = most, what
        self._inside, self._waiting = asyncio.Semaphore(room), 0

    @asynccontextmanager
    async def through(self) -> AsyncIterator[None]:
        """Wait for one's turn; CrowdedError when too many do."""
        if self._waiting >= self._most:
            raise CrowdedError(f"{self._waiting} wait to {self._what} already: come again")
        self._waiting += 1
        try:
            await self._inside.acquire()
        finally:
            self._waiting -= 1
        try:
            yield
        finally:
            self._inside.release()
