"""Requests, bytes and time per cycle of the query streamer: both plans, with and without caches, on the train query.

A server and a client in one process, in simulated time; 75 departures, 1% of whose facts change at each update of 10 s.
Beside it the prototype on the iRail replay, 25-45 departures (facts: QueryStreamer.js eswc2016, run on this machine).
"""

import argparse
import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from tests.servers.fragments.live_queries import simulated
from tests.servers.fragments.live_queries.boards import Boards, T
from tests.servers.fragments.live_queries.simulated import BASE, Served, Wire, clock

from benchmarks.results import ResultTable
from streamgauge.servers.fragments.annotations import methods
from streamgauge.servers.fragments.client.caching_client import ResponseCache
from streamgauge.servers.fragments.labels import Style
from streamgauge.servers.fragments.live_queries.watch import watch

QUERY = f"""PREFIX t: <{T}>
SELECT ?delay ?platform ?head ?route ?time {{
  ?id t:delay ?delay; t:platform ?platform; t:headSign ?head; t:routeLabel ?route; t:departureTime ?time
}}"""
PROTOTYPE = {
    ("graphs", "streamer", "on"): "34-58",
    ("graphs", "streamer", "prototype"): "92-108",
    ("singleton", "streamer", "on"): "43-67",
    ("singleton", "streamer", "prototype"): "104-120",
    ("implicit", "streamer", "on"): "99-135",
    ("implicit", "streamer", "prototype"): "160-188",
}
PLANS = (
    ("incremental", "on"),
    ("incremental", "off"),
    ("streamer", "on"),
    ("streamer", "off"),
    ("streamer", "prototype"),
)
UPDATE = 10_000
LASTS = 12_000


@dataclass(frozen=True, slots=True)
class Cycle:
    """Requests, bytes both ways, CPU time of both sides (ms), and how old the oldest change was that it showed (s)."""

    requests: int
    received: int
    cpu: float
    stale: float


async def measured(method: str, plan: str, cache: str, cycles: int, size: int = 75) -> list[Cycle]:
    """The first answer of the train query, and what each cycle after it costs."""
    random = Random(1)
    served = Served(Style(method))
    boards = Boards(random, size)
    boards.begin(served, LASTS)
    web = simulated.web(Wire(served.app, random))
    feeding = asyncio.create_task(_fed(boards, served))
    found: list[Cycle] = []
    before, cpu, polled = (0, 0), time.process_time(), clock()
    answers = watch(
        QUERY, [f"{BASE}/trains"], plan=plan, cache=cache, whole=True, random=random, web=web, style=served.style
    )
    async for answer in answers:
        assert len(answer.added) == size
        now = web.counters.requests, web.counters.received + web.counters.sent
        unseen = [at for at in served.changed if at > polled]
        ms = (time.process_time() - cpu) * 1000
        stale = (clock() - unseen[0]) / 1000 if unseen and found else 0.0
        found.append(Cycle(now[0] - before[0], now[1] - before[1], ms, stale))
        if len(found) > cycles:
            break
        before, cpu, polled = now, time.process_time(), clock()
    await answers.aclose()
    feeding.cancel()
    return found


async def sharing(plan: str, capacity: int, cycles: int) -> tuple[int, float, int]:
    """Requests, hit rate and bytes of a cache that twelve queries share, by head sign and platform."""
    random = Random(1)
    served, boards = Served(Style()), Boards(random, 75)
    boards.begin(served, LASTS)
    web = simulated.web(Wire(served.app, random), cache=ResponseCache(capacity))
    feeding = asyncio.create_task(_fed(boards, served))

    async def one(head: str, platform: int) -> None:
        text = f"SELECT * {{ ?id <{T}headSign> '{head}'; <{T}platform> {platform}; <{T}delay> ?delay }}"
        answers = watch(text, [f"{BASE}/trains"], plan=plan, whole=True, random=random, web=web)
        for _ in range(cycles + 1):
            await anext(answers)
        await answers.aclose()

    await asyncio.gather(*(one(head, platform) for head in ("Gent", "Brugge", "Lille") for platform in range(1, 5)))
    feeding.cancel()
    counts = web.counters
    reused = counts.hits + counts.coalesced
    return counts.requests, reused / (reused + counts.requests), web.cache.size


async def _fed(boards: Boards, served: Served) -> None:
    """Every 10 s everything is renewed for 12 s, 1% of it with another value."""
    while True:
        await asyncio.sleep(UPDATE / 1000)
        names = boards.random.sample(list(boards.board), max(1, len(boards.board) * 2 // 100))
        for name in names:
            boards.board[name]["delay"] += 60
        gone = [fact.triple for fact in served_delays(served, names)]
        served.add(boards.dynamic(clock(), LASTS))
        served.remove(gone)


def served_delays(served: Served, names: list[str]) -> list:
    """The delays that the server holds of some departures."""
    return [
        fact
        for fact in served.history[served.dataset.version.decode()]
        if fact.triple[0] in names and "delay" in fact.triple[1]
    ]


def main() -> None:
    """Print the tables."""
    reading = argparse.ArgumentParser(description=__doc__)
    reading.add_argument("--cycles", type=int, default=5)
    reading.add_argument("--method", action="append", choices=methods())
    given = reading.parse_args()
    _costs(given.method or methods(), given.cycles)
    _shared(given.cycles)


def _costs(names: Sequence[str], cycles: int) -> None:
    first = ("first: requests", "kB", "CPU ms")
    later = ("cycle: requests", "kB", "CPU ms", "stale s")
    with ResultTable("streamer", ("method", "plan", "cache", *first, *later, "prototype's requests")) as table:
        for method in names:
            for plan, cache in PLANS:
                begun, *rest = simulated.run(measured(method, plan, cache, cycles))
                table.add(
                    *(method, plan, cache),
                    *(begun.requests, f"{begun.received / 1000:.1f}", f"{begun.cpu:.0f}"),
                    _span([each.requests for each in rest], ""),
                    _span([each.received / 1000 for each in rest], ".1f"),
                    _span([each.cpu for each in rest], ".0f"),
                    _span([each.stale for each in rest], ".1f"),
                    PROTOTYPE.get((method, plan, cache), ""),
                )


def _shared(cycles: int) -> None:
    columns = ("plan", "shared cache, kB at most", "requests of 12 queries", "reused", "kB held")
    with ResultTable("streamer_shared", columns) as table:
        for plan in ("incremental", "streamer"):
            for capacity in (0, 100_000, 1_000_000, 64 * 2**20):
                requests, rate, size = simulated.run(sharing(plan, capacity, cycles))
                table.add(plan, f"{capacity / 1000:.0f}", requests, f"{rate:.0%}", f"{size / 1000:.0f}")


def _span(values: Sequence[float], form: str) -> str:
    low, high = format(min(values), form), format(max(values), form)
    return low if low == high else f"{low}-{high}"


if __name__ == "__main__":
    main()
