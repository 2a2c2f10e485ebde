"""Work that concurrent callers share: the first starts it, and the others wait for its result."""

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


@dataclass(slots=True)
class _Flight(Generic[Value]):
    task: asyncio.Task[Value]
    waiting: int = 0


class Flights(Generic[Key, Value]):
    """Running tasks by key, each cancelled when its last waiter has gone."""

    def __init__(self) -> None:
        self._flights: dict[Key, _Flight[Value]] = {}

    def __contains__(self, key: Key) -> bool:
        return key in self._flights

    async def join(self, key: Key, work: Callable[[], Coroutine[Any, Any, Value]]) -> Value:
        """The result of the work of this key, which is started unless it is under way."""
        flight = self._flights.get(key)
        if flight is None:
            flight = self._flights[key] = _Flight(asyncio.create_task(work()))
            flight.task.add_done_callback(_retrieve)
        flight.waiting += 1
        try:
            # A caller that is cancelled must not cancel the work that others wait for.
            return await asyncio.shield(flight.task)
        finally:
            flight.waiting -= 1
            if not flight.waiting:
                # Another flight may have begun under the key since this one was done.
                if self._flights.get(key) is flight:
                    del self._flights[key]
                # Without effect on work that is done.
                flight.task.cancel()

    async def aclose(self) -> None:
        """Cancel all requests, and wait for them."""
        tasks = [flight.task for flight in self._flights.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _retrieve(task: asyncio.Task[Value]) -> None:
    """Mark a task's exception as retrieved: asyncio would log one that was never awaited."""
    if not task.cancelled():
        task.exception()
