"""A watch for ``async for``: the engine works in a thread beside the event loop."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, Sequence
from threading import Lock
from types import TracebackType
from typing import Generic

from streamgauge.formats.lines import Input
from streamgauge.watching.arrivals import MergedStreams, Place
from streamgauge.watching.watch import Said, Watch


class AsyncWatch(Generic[Said]):
    """Answers as they come, for ``async for``; to be closed, or used with ``async with``, when left before the end."""

    def __init__(
        self, watch: Watch[Said], arrivals: MergedStreams, pumps: Sequence[tuple[Place, AsyncIterable[Input]]]
    ) -> None:
        self._watch, self._arrivals, self._pumps = watch, arrivals, pumps
        self._tasks: list[asyncio.Task[None]] = []
        self._working = Lock()
        self._answers = self._run()

    @property
    def late(self) -> int:
        """How many elements have come too late to count."""
        return self._watch.late

    @property
    def elements(self) -> int:
        """How many elements have come."""
        return self._watch.elements

    def __aiter__(self) -> "AsyncWatch[Said]":
        return self

    async def __anext__(self) -> Said:
        """The next answer, waited for; when that is cancelled the watch ends."""
        return await anext(self._answers)

    async def aclose(self) -> None:
        """Stop: no more answers; sources and engine end."""
        await self._answers.aclose()
        await self._shut()

    async def __aenter__(self) -> "AsyncWatch[Said]":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.aclose()

    async def _run(self) -> AsyncGenerator[Said, None]:
        self._tasks = [asyncio.create_task(self._pump(place, items)) for place, items in self._pumps]
        try:
            while answers := await asyncio.to_thread(self._gather):
                for answer in answers:
                    yield answer
        finally:
            await self._shut()

    async def _shut(self) -> None:
        self._arrivals.stop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.to_thread(self._close)

    def _gather(self) -> list[Said]:
        with self._working:
            return self._watch.gather()

    def _close(self) -> None:
        with self._working:
            self._watch.close()

    async def _pump(self, place: Place, items: AsyncIterable[Input]) -> None:
        """Hand over what an asynchronous source brings; waiting for room leaves the event loop free."""
        try:
            async for item in items:
                if not self._arrivals.offer(place, item) and not await asyncio.to_thread(
                    self._arrivals.put, place, item
                ):
                    return
            self._arrivals.end(place)
        except Exception as error:
            self._arrivals.end(place, error)
