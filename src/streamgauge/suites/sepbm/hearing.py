"""Many subscriptions in one thread: an event loop that hears whatever comes, and how far each has come."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Final

from streamgauge.suites.sepbm.contract import UnusableSystemError

_END_S: Final = 10.0


class Ears:
    """A thread with an event loop; ``listen`` begins to hear, ``heard`` is woken by what is heard.

    A subscription that fails makes ``check`` and ``wait`` raise UnusableSystemError.
    """

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._tasks: dict[str, list[asyncio.Task[None]]] = {}
        self._thread = threading.Thread(target=self._loop.run_forever, name="sepbm-ears", daemon=True)
        self._thread.start()
        self._failure: str | None = None
        self.heard = threading.Condition()

    def listen(self, name: str, hearing: Coroutine[Any, Any, None]) -> None:
        """Hear for a channel, until it is left."""

        async def begin() -> None:
            task = asyncio.ensure_future(hearing)
            task.add_done_callback(lambda done: self._ended(name, done))
            self._tasks.setdefault(name, []).append(task)

        asyncio.run_coroutine_threadsafe(begin(), self._loop).result()

    def leave(self, name: str) -> None:
        """Hear no more of a channel."""
        self.do(self._left(self._tasks.pop(name, [])))

    def do(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Do something in the loop, and wait for it."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def wake(self) -> None:
        """Something was heard."""
        with self.heard:
            self.heard.notify_all()

    def check(self) -> None:
        """UnusableSystemError when a subscription has failed."""
        if self._failure is not None:
            raise UnusableSystemError(self._failure)

    def wait(self, until: Callable[[], bool], seconds: float, what: Callable[[], str]) -> None:
        """Wait for what is heard; UnusableSystemError says ``what`` has not come within so long."""
        with self.heard:
            if not self.heard.wait_for(lambda: self._failure is not None or until(), seconds):
                raise UnusableSystemError(f"{what()} within {seconds:g} s")
        self.check()

    def close(self) -> None:
        """Hear no more."""
        tasks = [task for found in self._tasks.values() for task in found]
        self._tasks.clear()
        if self._thread.is_alive():
            asyncio.run_coroutine_threadsafe(self._left(tasks), self._loop).result(_END_S)
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(_END_S)
        if not self._thread.is_alive():
            self._loop.close()

    async def _left(self, tasks: list[asyncio.Task[None]]) -> None:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _ended(self, name: str, task: asyncio.Task[None]) -> None:
        if task.cancelled() or name not in self._tasks:
            return
        error = task.exception()
        why = "it ended" if error is None else str(error) or type(error).__name__
        self._failure = self._failure or f"the subscription of channel {name} ended: {why}"
        self.wake()
