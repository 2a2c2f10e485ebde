"""Requests, bytes and time per cycle of the query streamer: both plans, with and without caches, on the train query.

A server and a client in one process, in simulated time; 75 departures, 1% of whose facts change at each update of 10 s.
Beside it the prototype on the iRail replay, 25-45 departures (facts: QueryStreamer.js eswc2016, run on this machine).
"""

import argparse
import asyncio
import time
from random import Random

from rich.console import Console
from rich.table import Table
from tests.services.fragments.streaming import simulated
from tests.services.fragments.streaming.boards import Boards, T
from tests.services.fragments.streaming.simulated import BASE, Served, Wire, clock

from streamgauge.services.fragments.annotations import methods
from streamgauge.services.fragments.streaming.watching import watch
from streamgauge.services.fragments.style import Style

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
UPDATE = 10_000


async def measured(method: str, plan: str, cache: str, cycles: int, size: int = 75) -> list[tuple[int, int, float]]:
    """Requests, bytes on the wire both ways, and CPU time (ms, both sides) of each cycle."""
    random = Random(1)
    served = Served(Style(method))
    boards = Boards(random, size)
    boards.begin(served)
    wire = Wire(served.app, random)
    web = simulated.web(wire)
    feeding = asyncio.create_task(_fed(boards, served))
    found = []
    before, cpu = (0, 0), time.process_time()
    answers = watch(
        QUERY, [f"{BASE}/trains"], plan=plan, cache=cache, whole=True, random=random, web=web, style=served.style
    )
    async for answer in answers:
        assert len(answer.added) == size
        counts = web.counters
        now = counts.requests, counts.received + counts.sent
        found.append((now[0] - before[0], now[1] - before[1], (time.process_time() - cpu) * 1000))
        if len(found) > cycles:
            break
        before, cpu = now, time.process_time()
    await answers.aclose()
    feeding.cancel()
    return found


async def _fed(boards: Boards, served: Served) -> None:
    """Every 10 s everything is renewed for 12 s, 1% of it with another value."""
    while True:
        await asyncio.sleep(UPDATE / 1000)
        names = boards.random.sample(list(boards.board), max(1, len(boards.board) * 2 // 100))
        for name in names:
            boards.board[name]["delay"] += 60
        gone = [fact.triple for fact in served_delays(served, names)]
        served.add(boards.dynamic(clock(), UPDATE + 2_000))
        served.remove(gone)


def served_delays(served: Served, names: list[str]) -> list:
    """The delays that the server holds of some departures."""
    return [
        fact
        for fact in served.history[served.dataset.version.decode()]
        if fact.triple[0] in names and "delay" in fact.triple[1]
    ]


def main() -> None:
    """Print the table."""
    reading = argparse.ArgumentParser(description=__doc__)
    reading.add_argument("--cycles", type=int, default=5)
    reading.add_argument("--method", action="append", choices=methods())
    given = reading.parse_args()
    table = Table(
        "method", "plan", "cache", "first: requests", "kB", "ms", "cycle: requests", "kB", "ms", "prototype's requests"
    )
    for method in given.method or methods():
        for plan, cache in (
            ("incremental", "on"),
            ("incremental", "off"),
            ("streamer", "on"),
            ("streamer", "off"),
            ("streamer", "prototype"),
        ):
            first, *later = simulated.run(measured(method, plan, cache, given.cycles))
            requests, kilobytes, ms = ([cycle[at] for cycle in later] for at in range(3))
            table.add_row(
                method,
                plan,
                cache,
                str(first[0]),
                f"{first[1] / 1000:.1f}",
                f"{first[2]:.0f}",
                _span(requests, ""),
                _span([each / 1000 for each in kilobytes], ".1f"),
                _span(ms, ".0f"),
                PROTOTYPE.get((method, plan, cache), ""),
            )
    Console(width=150).print(table)


def _span(values: list[float], form: str) -> str:
    low, high = format(min(values), form), format(max(values), form)
    return low if low == high else f"{low}-{high}"


if __name__ == "__main__":
    main()
