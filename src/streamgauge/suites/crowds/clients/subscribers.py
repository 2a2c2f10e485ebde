"""Program: clients of a query service, each of which registers its query and receives its answers as events.

The task has ``address``, ``queries`` (the JSON registration per client), ``first`` and ``witnesses`` (clients whose
rows are written). A line for each answer: ``instant`` is in ms of the stream; a witness's line has ``answer`` too.
"""

import json
from collections.abc import AsyncIterator, Coroutine
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import httpx

from streamgauge.outgoing.clients import AsyncHttpClient
from streamgauge.suites.crowds.clients import run_clients, say, say_answer, unbounded

REGISTER_S = 300.0
"""Timeout of a registration, s: an engine in another process is slow to start."""


@dataclass(slots=True)
class AnswerSubscriber:
    """A client that writes each answer of its query; disconnected for being too slow, it reconnects."""

    client: AsyncHttpClient
    address: str
    number: int
    witness: bool
    heard: int = 0
    last: str = "0"
    over: bool = False

    async def take(self) -> None:
        """Receive all answers until the query ends."""
        while not self.over:
            begun = self.last
            where, wanted = f"{self.address}/answers", {"Accept": "text/event-stream"}
            asking = self.client.stream("GET", where, params={"after": begun}, headers=wanted, timeout=None)
            async with asking as response:
                async for line in response.aiter_lines():
                    self._hear(line)
            self.over = self.over or self.last == begun

    def _hear(self, line: str) -> None:
        self.heard += len(line) + 1
        if line.startswith("id: "):
            self.last = line[4:]
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
        say_answer(self.number, answer.get("instant"), rows, self.heard, **({"answer": answer} if self.witness else {}))


async def begin(task: dict[str, Any], stack: AsyncExitStack) -> AsyncIterator[Coroutine[Any, Any, None]]:
    """Register each client's query."""
    address = task["address"].rstrip("/")
    client = await unbounded(stack, REGISTER_S)
    for number, query in enumerate(task["queries"], task["first"]):
        response = await client.post(f"{address}/queries", json=query)
        if response.status_code != httpx.codes.CREATED:
            raise RuntimeError(f"client {number}: {response.status_code} {response.text[:500]}")
        at = address + response.headers["location"]
        yield AnswerSubscriber(client, at, number, number in task["witnesses"]).take()


if __name__ == "__main__":
    run_clients(begin, settle=0.5)
