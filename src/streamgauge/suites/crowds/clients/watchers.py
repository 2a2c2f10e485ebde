"""Program: query streamers of fragments, each with its own connections and cache.

The task has ``address``, ``queries`` (a SPARQL text per client), ``first`` (the number of the first), ``plan``,
``cache``, ``method``, ``label``, ``template``, ``spread`` (s, over which they start), ``period`` (ms, or null) and
``jitter`` (share of the time between two polls). A line for each answer, with ``took`` (ms, of the poll) and
``requests`` so far; for a failure a line with ``failed``.
"""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

from streamgauge.servers.fragments.client.caching_client import CachingHttpClient
from streamgauge.servers.fragments.client.transport import guarded_client
from streamgauge.servers.fragments.labels import Label, Style
from streamgauge.servers.fragments.live_queries import Caching
from streamgauge.servers.fragments.live_queries.poll_loop import AnswerContent, Event, Failed, Fresh, PollTiming
from streamgauge.servers.fragments.live_queries.watch import WatchTerms, follow, wall_clock
from streamgauge.suites.crowds.clients import run_clients, say, say_answer


@dataclass(slots=True)
class Watcher:
    """A client, which writes a line for each of its answers."""

    number: int
    task: dict[str, Any]
    begun: int = field(default_factory=wall_clock)
    took: int = 0

    async def watch(self, query: str, after: float) -> None:
        """Watch a query until the process ends."""
        await asyncio.sleep(after)
        web = CachingHttpClient(guarded_client(), wall_clock, asyncio.sleep)
        timing = PollTiming(period=self.task["period"], share=self.task["jitter"])
        style = Style(self.task["method"], Label(self.task["label"]), template=self.task["template"])
        self.begun = wall_clock()
        how = {"plan": self.task["plan"], "style": style, "timing": timing, "sends": AnswerContent.WHOLE}
        terms = WatchTerms(caching=Caching(self.task["cache"]), tell=self.tell, **how)
        async for answer in follow(query, [self.task["address"]], terms, web):
            counters = web.counters
            heard = counters.sent + counters.received
            say_answer(self.number, answer.instant, answer.added, heard, took=self.took, requests=counters.requests)

    def tell(self, event: Event) -> None:
        """Handle an event of the query, such as the end of a poll."""
        match event:
            case Failed():
                say(client=self.number, failed=event.why)
                self.begun = wall_clock() + round(event.again * 1000)
            case Fresh():
                self.took = wall_clock() - self.begun
                self.begun = max(event.next, wall_clock())


async def begin(task: dict[str, Any], _stack: AsyncExitStack) -> AsyncIterator[Coroutine[Any, Any, None]]:
    """Start each client at its place in the interval over which they are spread."""
    step = task["spread"] / max(1, len(task["queries"]))
    for number, query in enumerate(task["queries"]):
        yield Watcher(task["first"] + number, task).watch(query, number * step)


if __name__ == "__main__":
    run_clients(begin)
