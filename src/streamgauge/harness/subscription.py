"""Many subscriptions in one thread: an event loop that receives what comes, and wakes whoever waits for it."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Final

_END_S: Final = 10.0


class SubscriberLoop:
    """A thread with an event loop for subscriptions by name; ``received`` is notified by ``wake``.

    A subscription that fails makes ``check`` and ``wait`` raise ``error``, a kind of exception, with a sentence.
    """

    def __init__(self, error: Callable[[str], Exception]) -> None:
        self._error = error
        self._loop = asyncio.new_event_loop()
        self._tasks: dict[str, list[asyncio.Task[None]]] = {}
        self._thread = threading.Thread(target=self._loop.run_forever, name="subscriptions", daemon=True)
        self._thread.start()
        self._failure: str | None = None
        self.received = threading.Condition()

    def listen(self, name: str, subscription: Coroutine[Any, Any, None]) -> None:
        """Run a subscription of a channel, until the channel is left."""

        async def begin() -> None:
            task = asyncio.ensure_future(subscription)
            task.add_done_callback(lambda done: self._ended(name, done))
            self._tasks.setdefault(name, []).append(task)

        asyncio.run_coroutine_threadsafe(begin(), self._loop).result()

    def leave(self, name: str) -> None:
        """End the subscriptions of a channel."""
        self.do(self._left(self._tasks.pop(name, [])))

    def do(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine in the loop, and wait for its result."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def wake(self) -> None:
        """A message was received."""
        with self.received:
            self.received.notify_all()

    def check(self) -> None:
        """Raise the error of a subscription that has failed."""
        if self._failure is not None:
            raise self._error(self._failure)

    def wait(self, until: Callable[[], bool], seconds: float, what: Callable[[], str]) -> None:
        """Wait for messages until ``until`` holds; an error says ``what`` has not come within so many seconds."""
        with self.received:
            if not self.received.wait_for(lambda: self._failure is not None or until(), seconds):
                raise self._error(f"{what()} within {seconds:g} s")
        self.check()

    def close(self) -> None:
        """End all subscriptions and the thread."""
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
