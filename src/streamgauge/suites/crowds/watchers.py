"""Program: many query streamers in one process, each with connections and a cache of its own.

Told ``address``, ``queries`` (a SPARQL text for each client), ``first`` (the number of the first one), ``plan``,
``cache``, ``method``, ``label``, ``template``, ``spread`` (s, over which they start), ``period`` (ms, or null) and
``jitter`` (share of the time between two polls). Says for each answer ``client``, ``instant`` and ``received`` (ms
since 1970), ``rows`` (a digest), ``size``, ``took`` (ms, of the poll), ``requests`` and ``bytes`` so far; for a failure
what ``failed``.
"""

import asyncio
import sys
import threading
from dataclasses import dataclass, field
from typing import Any

from streamgauge.servers.fragments.fetching.guarded import guarded_client
from streamgauge.servers.fragments.fetching.web import Web
from streamgauge.servers.fragments.streaming.events import Event, Failed, Fresh
from streamgauge.servers.fragments.streaming.following import Sends
from streamgauge.servers.fragments.streaming.streamer import Caching
from streamgauge.servers.fragments.streaming.timing import Timing
from streamgauge.servers.fragments.streaming.watching import Terms, follow, wall_clock
from streamgauge.servers.fragments.style import Label, Style
from streamgauge.suites.crowds.programs import say, task
from streamgauge.suites.crowds.rows import digest


@dataclass(slots=True)
class Watcher:
    """One client: says each of its answers."""

    number: int
    told: dict[str, Any]
    begun: int = field(default_factory=wall_clock)
    took: int = 0

    async def watch(self, query: str, after: float) -> None:
        """Watch a query until the process ends."""
        await asyncio.sleep(after)
        web = Web(guarded_client(), wall_clock, asyncio.sleep)
        timing = Timing(period=self.told["period"], share=self.told["jitter"])
        style = Style(self.told["method"], Label(self.told["label"]), template=self.told["template"])
        self.begun = wall_clock()
        how = {"plan": self.told["plan"], "style": style, "timing": timing, "sends": Sends.WHOLE}
        terms = Terms(caching=Caching(self.told["cache"]), tell=self.tell, **how)
        async for answer in follow(query, [self.told["address"]], terms, web):
            counters = web.counters
            say(
                client=self.number,
                instant=answer.instant,
                received=wall_clock(),
                rows=digest(answer.added),
                size=len(answer.added),
                took=self.took,
                requests=counters.requests,
                bytes=counters.sent + counters.received,
            )

    def tell(self, event: Event) -> None:
        """A poll has ended."""
        match event:
            case Failed():
                say(client=self.number, failed=event.why)
                self.begun = wall_clock() + round(event.again * 1000)
            case Fresh():
                self.took = wall_clock() - self.begun
                self.begun = max(event.next, wall_clock())


async def _watch_all(told: dict[str, Any]) -> None:
    loop, over = asyncio.get_running_loop(), asyncio.Event()

    def wait() -> None:
        sys.stdin.read()
        loop.call_soon_threadsafe(over.set)

    threading.Thread(target=wait, daemon=True).start()
    step = told["spread"] / max(1, len(told["queries"]))
    watching = [
        asyncio.create_task(Watcher(told["first"] + number, told).watch(query, number * step))
        for number, query in enumerate(told["queries"])
    ]
    say(ready=len(watching))
    await over.wait()
    for each in watching:
        each.cancel()
    await asyncio.gather(*watching, return_exceptions=True)


if __name__ == "__main__":
    asyncio.run(_watch_all(task()))
