"""Program: subscribers of a broker's channels, each of which maintains its answer by notifications.

The task has ``address``, ``queries`` (a SPARQL text per client) and ``first``. A line for each notification:
``instant`` is the broker's time, ``rows`` the client's current answer, ``publications`` are the causes.
"""

import json
from collections.abc import AsyncIterator, Coroutine
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from hashlib import sha1
from typing import Any

import httpx

from streamgauge.broker import AsyncClient, BrokerError
from streamgauge.model.terms import Row
from streamgauge.outgoing.clients import CROWD_RECEIVED
from streamgauge.suites.crowds.clients import run_clients, say_answer, unbounded

TIMEOUT_S = 300.0


@dataclass(slots=True)
class Follower:
    """A client: a channel, shared by clients with the same query, and the answer as notifications change it."""

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
        """Create the channel and read its answer."""
        try:
            await self.client.create_channel(self.channel, self.query)
        except BrokerError as error:
            if error.status != httpx.codes.CONFLICT:
                raise
        standing = await self.client.rows(self.channel)
        self.rows, self.after = set(standing.rows), standing.number

    async def follow(self) -> None:
        """Write a line for each notification until the channel ends."""
        async for notification in self.client.subscribe(self.channel, after=self.after):
            self.rows.difference_update(notification.removed)
            self.rows.update(notification.added)
            self.heard += len(json.dumps([notification.added, notification.removed]))
            say_answer(
                self.number, notification.at, self.rows, self.heard, publications=list(notification.publications)
            )


async def begin(task: dict[str, Any], stack: AsyncExitStack) -> AsyncIterator[Coroutine[Any, Any, None]]:
    """Subscribe each client, starting from the current answer."""
    client = AsyncClient(task["address"], http=await unbounded(stack, TIMEOUT_S), largest=CROWD_RECEIVED)
    for number, query in enumerate(task["queries"], task["first"]):
        follower = Follower(client, number, query)
        await follower.begin()
        yield follower.follow()


if __name__ == "__main__":
    run_clients(begin, settle=0.5)
