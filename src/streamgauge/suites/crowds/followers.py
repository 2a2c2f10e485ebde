"""Program: many subscribers of a broker's channels in one process, each with its answer kept by notifications.

Told ``address``, ``queries`` (a SPARQL text for each client) and ``first``. Says ``ready`` when all have their channel
and its answer as it is; for each notification ``client``, ``instant`` (the broker's time of it) and ``received`` (ms
since 1970), ``rows`` (a digest of the answer that the client has now), ``size``, ``bytes`` so far, and the
``publications`` that caused it.
"""

import asyncio
import json
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha1
from typing import Any

import httpx

from streamgauge.broker import AsyncClient, BrokerError
from streamgauge.model.terms import Row
from streamgauge.suites.crowds.programs import say, task
from streamgauge.suites.crowds.rows import digest

TIMEOUT_S = 300.0


@dataclass(slots=True)
class Follower:
    """One client: a channel that all who ask the same share, and the answer as notifications make it."""

    client: AsyncClient
    number: int
    query: str
    rows: set[Row] = field(default_factory=set)
    heard: int = 0
    after: int = 0

    @property
    def channel(self) -> str:
        """A name for the query."""
        return sha1(self.query.encode(), usedforsecurity=False).hexdigest()

    async def begin(self) -> None:
        """Have the channel, and its answer."""
        try:
            await self.client.create_channel(self.channel, self.query)
        except BrokerError as error:
            if error.status != httpx.codes.CONFLICT:
                raise
        standing = await self.client.rows(self.channel)
        self.rows, self.after = set(standing.rows), standing.number

    async def follow(self) -> None:
        """Say each notification, until the channel ends."""
        async for told in self.client.subscribe(self.channel, after=self.after):
            self.rows.difference_update(told.removed)
            self.rows.update(told.added)
            self.heard += len(json.dumps([told.added, told.removed]))
            self._say(told.at, told.publications)

    def _say(self, instant: int, publications: Sequence[int]) -> None:
        said = {"instant": instant, "received": time.time_ns() // 1_000_000, "publications": list(publications)}
        say(client=self.number, **said, rows=digest(self.rows), size=len(self.rows), bytes=self.heard)


async def _follow_all(told: dict[str, Any]) -> None:
    loop, over = asyncio.get_running_loop(), asyncio.Event()

    def wait() -> None:
        sys.stdin.read()
        loop.call_soon_threadsafe(over.set)

    threading.Thread(target=wait, daemon=True).start()
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    async with httpx.AsyncClient(limits=limits, timeout=TIMEOUT_S) as http:
        client = AsyncClient(told["address"], http=http)
        all_of_them = [Follower(client, number, query) for number, query in enumerate(told["queries"], told["first"])]
        for each in all_of_them:
            await each.begin()
        following = [asyncio.create_task(each.follow()) for each in all_of_them]
        await asyncio.sleep(0.5)
        say(ready=len(following))
        await over.wait()
        for task_ in following:
            task_.cancel()
        await asyncio.gather(*following, return_exceptions=True)


if __name__ == "__main__":
    asyncio.run(_follow_all(task()))
