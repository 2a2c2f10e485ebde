"""Programs of clients, one kind per file; each runs many clients in one process (``python -m``).

A program receives its task as a line of JSON and writes lines of JSON until its input ends. Every answer is a line
with ``client``, ``instant``, ``received`` (ms since 1970), ``rows`` (a digest), ``size`` and ``bytes`` so far.
"""

import asyncio
import json
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Iterable
from contextlib import AsyncExitStack
from hashlib import sha1
from typing import Any, TypeAlias

from streamgauge.model.terms import Row
from streamgauge.outgoing.clients import AsyncHttpClient, async_client, crowd_limits

Begin: TypeAlias = Callable[[dict[str, Any], AsyncExitStack], AsyncIterator[Coroutine[Any, Any, None]]]
"""(task, stack) -> a coroutine per client once it is registered; the stack closes shared resources."""


def task() -> dict[str, Any]:
    """The task of this process."""
    read: dict[str, Any] = json.loads(sys.stdin.readline())
    return read


def say(**fields: object) -> None:
    """Write a line of JSON to standard output."""
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()


def say_answer(client: int, instant: int | None, rows: Collection[Row], heard: int, **more: object) -> None:
    """Write the line of an answer received now; ``heard`` are the client's bytes so far."""
    received = time.time_ns() // 1_000_000
    say(client=client, instant=instant, received=received, rows=digest(rows), size=len(rows), bytes=heard, **more)


def digest(rows: Iterable[Row]) -> str:
    """A digest that is equal for equal bags of rows, so that thousands of answers need not be stored."""
    lines = sorted("\t".join(term or "-" for term in row) for row in rows)
    return sha1("\n".join(lines).encode(), usedforsecurity=False).hexdigest()[:16]


async def unbounded(stack: AsyncExitStack, timeout: float) -> AsyncHttpClient:
    """An HTTP client for thousands of concurrent subscriptions; ``timeout`` in s."""
    return await stack.enter_async_context(async_client(crowd_limits(timeout)))


def run_clients(begin: Begin, settle: float = 0.0) -> None:
    """Run the clients of this process's task until its input ends; ``ready`` is written after ``settle`` s."""
    asyncio.run(_run(begin, settle))


async def _run(begin: Begin, settle: float) -> None:
    task_document, loop, over = task(), asyncio.get_running_loop(), asyncio.Event()

    def wait() -> None:
        sys.stdin.read()
        loop.call_soon_threadsafe(over.set)

    threading.Thread(target=wait, daemon=True).start()
    async with AsyncExitStack() as stack:
        clients = [asyncio.create_task(client) async for client in begin(task_document, stack)]
        await asyncio.sleep(settle)
        say(ready=len(clients))
        await over.wait()
        for client in clients:
            client.cancel()
        for outcome in await asyncio.gather(*clients, return_exceptions=True):
            if isinstance(outcome, Exception):  # all others were cancelled, or their query ended
                say(failed=f"{type(outcome).__name__}: {outcome}")
