"""Requests, bytes and CPU time of a basic graph pattern over fragments: our plans, and a request for each row.

A server and a client in one process, without sockets. ``rows`` is the nested loop of ldf-client 2.0.5 (306 requests for
the train query, measured; facts also have Comunica 4.5 at 231 and 5.4.1 at 6, 382 for one station of 16,667).
"""

import argparse
import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tests.servers.fragments.client.fakes import trains
from tests.servers.fragments.client.test_servers import HOST, Served

from benchmarks.results import ResultTable
from streamgauge.model.algebra import Var
from streamgauge.servers.fragments import QuadPattern
from streamgauge.servers.fragments.client import Binding
from streamgauge.servers.fragments.client.caching_client import CachingHttpClient
from streamgauge.servers.fragments.client.sources import match_bindings, open_source, solve
from streamgauge.servers.fragments.client.sources.fragments import FragmentsSource

ID = Var("id")
NAMES = ("delay", "headSign", "routeLabel", "platform", "departureTime")
TRAIN = [QuadPattern(ID, f"<urn:{name}>", Var(name)) for name in NAMES]
STATION = [QuadPattern(ID, "<urn:station>", "<urn:here>"), *TRAIN]
PLANS = ("bindings", "no bindings", "rows")


@dataclass(frozen=True, slots=True)
class PlanCost:
    """The cost of one question; bytes received on the wire, CPU ms of server and client together."""

    rows: int
    requests: int
    received: int
    cpu: float


async def row_by_row(patterns: Sequence[QuadPattern], source: FragmentsSource) -> list[Binding]:
    """The nested loop: the least pattern, then for each row a request for each further pattern."""
    counts = {pattern: await source.count(pattern) for pattern in patterns}
    rows: list[Binding] = [{}]
    for pattern in sorted(patterns, key=lambda pattern: counts[pattern]):
        found = []
        for row in rows:
            narrow = pattern.bound(row)
            quads = (await source.fetch(narrow)).quads
            found += [{**row, **each} for each in match_bindings(narrow, quads)]
        rows = found
    return rows


async def asked(plan: str, patterns: Sequence[QuadPattern], web: CachingHttpClient) -> int:
    """The number of rows that a plan finds."""
    with web.round():
        source = await open_source(f"{HOST}/d", web)
        assert isinstance(source, FragmentsSource)
        if plan == "rows":
            return len(await row_by_row(patterns, source))
        chosen = source if plan == "bindings" else replace(source, asking=replace(source.asking, binding=None))
        return len((await solve(patterns, [chosen], web)).rows)


def cost(plan: str, patterns: Sequence[QuadPattern], departures: int) -> PlanCost:
    """The cost of a plan on so many departures, of which 75 are of the station."""
    here = [(f"<urn:d{n}>", "<urn:station>", "<urn:here>", "") for n in range(0, departures, departures // 75)][:75]
    web = Served([*trains(departures), *here]).web()
    began = time.process_time()
    rows = asyncio.run(asked(plan, patterns, web))
    spent = (time.process_time() - began) * 1000
    return PlanCost(rows, web.counters.requests, web.counters.received, spent)


def main() -> None:
    """Print a table of both questions by plan."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--departures", type=int, default=16_667, help="of which 75 are of one station")
    many = parser.parse_args().departures
    with ResultTable("joins", ("question", "plan", "rows", "requests", "kB received", "CPU ms, both sides")) as table:
        for name, patterns, departures in (("train, 75", TRAIN, 75), (f"one station of {many}", STATION, many)):
            for plan in PLANS:
                found = cost(plan, patterns, departures)
                kilobytes = f"{found.received / 1000:.1f}"
                table.add(name, plan, found.rows, found.requests, kilobytes, f"{found.cpu:.0f}")


if __name__ == "__main__":
    main()
