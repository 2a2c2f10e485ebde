"""Program: many clients of a query service in one process; each registers its query and takes its answers as events.

Told ``address``, ``wishes`` (the JSON that registers a query, for each client), ``first``, ``witnesses`` (clients whose
rows are said). Says ``ready`` when all are registered; for each answer ``client``, ``instant`` (ms of the stream),
``received`` (ms since 1970), ``rows`` (a digest), ``size`` and ``bytes`` so far; for a witness also ``answer``.
"""

import asyncio
import json
import sys
import threading
import time
from dataclasses import dataclass
from typing import Any

import httpx

from streamgauge.suites.crowds.programs import say, task
from streamgauge.suites.crowds.rows import digest

REGISTER_S = 300.0
"""An engine that is a process of its own takes its time to start."""


@dataclass(slots=True)
class Subscriber:
    """One client: says each answer of its query; it comes back where it was let go because it took them too slowly."""

    client: httpx.AsyncClient
    address: str
    number: int
    witness: bool
    heard: int = 0
    last: int = 0
    over: bool = False

    async def take(self) -> None:
        """All answers, until the query ends."""
        while not self.over:
            begun = self.last
            where = f"{self.address}/answers"
            async with self.client.stream("GET", where, params={"after": begun}, timeout=None) as response:
                async for line in response.aiter_lines():
                    self._hear(line)
            self.over = self.over or self.last == begun

    def _hear(self, line: str) -> None:
        self.heard += len(line) + 1
        if line.startswith("id: "):
            self.last = int(line[4:])
        if not line.startswith("data: "):
            return
        answer = json.loads(line[6:])
        if "vars" in answer:
            self._say(answer)
        elif "missed" in answer:
            say(client=self.number, failed="answers were kept no more when the client came for them")
        elif "too slow" not in line:
            self.over = True
            say(client=self.number, failed=line[6:])

    def _say(self, answer: dict[str, Any]) -> None:
        rows = [tuple(row) for row in answer["add"]]
        now = time.time_ns() // 1_000_000
        said = {"client": self.number, "instant": answer.get("instant"), "received": now, "rows": digest(rows)}
        say(**said, size=len(rows), bytes=self.heard, **({"answer": answer} if self.witness else {}))


async def _subscribe_all(told: dict[str, Any]) -> None:
    loop, over = asyncio.get_running_loop(), asyncio.Event()

    def wait() -> None:
        sys.stdin.read()
        loop.call_soon_threadsafe(over.set)

    threading.Thread(target=wait, daemon=True).start()
    address, taking = told["address"].rstrip("/"), []
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    async with httpx.AsyncClient(limits=limits, timeout=REGISTER_S) as client:
        for number, wish in enumerate(told["wishes"], told["first"]):
            response = await client.post(f"{address}/queries", json=wish)
            if response.status_code != 201:
                raise RuntimeError(f"client {number}: {response.status_code} {response.text[:500]}")
            at = address + response.headers["location"]
            taking.append(asyncio.create_task(Subscriber(client, at, number, number in told["witnesses"]).take()))
        await asyncio.sleep(0.5)
        say(ready=len(taking))
        await over.wait()
        for each in taking:
            each.cancel()
        await asyncio.gather(*taking, return_exceptions=True)


if __name__ == "__main__":
    asyncio.run(_subscribe_all(task()))
