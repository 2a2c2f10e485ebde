"""The query streamer in simulated time: requests, bytes and CPU of cycles and of joins, and replays that are judged.

python -m benchmarks.streamer [--parts cycles shared joins replays] [--cycles 5] [--methods graphs ...] ...

A server and a client in one process, without sockets. `cycles`: both plans, with and without caches, on the train
query: 75 departures, 1% of whose facts change at each update of 10 s; beside it the prototype on the iRail replay,
25-45 departures (facts: QueryStreamer.js eswc2016, run on this machine). `shared`: a cache that twelve queries share.
`joins`: a basic graph pattern by our plans and by the nested loop of ldf-client 2.0.5 (``rows``, a request for each
row: 306 requests for the train query, measured; facts also have Comunica 4.5 at 231 and 5.4.1 at 6, 382 for one station
of 16,667). `replays`, done only where ``--log`` names a file: every method, label, plan, cache setting and seed, all
answers judged; a line of the log for each that is done; what is in the log is not done again, so that the same command
goes on, and ``--kept`` only shows what it has.
"""

import argparse
import asyncio
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

from tests.servers.fragments.client.fakes import trains
from tests.servers.fragments.client.test_servers import HOST
from tests.servers.fragments.client.test_servers import Served as ServedTrains
from tests.servers.fragments.live_queries import simulated
from tests.servers.fragments.live_queries.boards import Boards, T
from tests.servers.fragments.live_queries.simulated import BASE, Served, Wire, clock, run
from tests.servers.fragments.live_queries.test_replay import PLANS as REPLAYED
from tests.servers.fragments.live_queries.test_replay import replayed

from benchmarks.measure import OneOf, own_cost, run_parts
from benchmarks.results import ResultTable
from streamgauge.model.algebra import Var
from streamgauge.model.fact import Fact
from streamgauge.servers.fragments import QuadPattern
from streamgauge.servers.fragments.annotations import methods
from streamgauge.servers.fragments.client import Binding
from streamgauge.servers.fragments.client.caching_client import CachingHttpClient, ResponseCache
from streamgauge.servers.fragments.client.sources import match_bindings, open_source, solve
from streamgauge.servers.fragments.client.sources.fragments import FragmentsSource
from streamgauge.servers.fragments.labels import Label, Style
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
    cycles_: list[Cycle] = []
    before, cpu, polled = (0, 0), time.process_time(), clock()
    answers = watch(
        QUERY, [f"{BASE}/trains"], plan=plan, cache=cache, whole=True, random=random, web=web, style=served.style
    )
    async for answer in answers:
        assert len(answer.added) == size
        now = web.counters.requests, web.counters.received + web.counters.sent
        unseen = [at for at in served.changed if at > polled]
        ms = (time.process_time() - cpu) * 1000
        stale = (clock() - unseen[0]) / 1000 if unseen and cycles_ else 0.0
        cycles_.append(Cycle(now[0] - before[0], now[1] - before[1], ms, stale))
        if len(cycles_) > cycles:
            break
        before, cpu, polled = now, time.process_time(), clock()
    await answers.aclose()
    feeding.cancel()
    return cycles_


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


def served_delays(served: Served, names: list[str]) -> list[Fact]:
    """The delays that the server holds of some departures."""
    return [
        fact
        for fact in served.history[served.dataset.version.decode()]
        if fact.triple[0] in names and "delay" in fact.triple[1]
    ]


def cycles(arguments: argparse.Namespace) -> None:
    first = ("first: requests", "kB", "CPU ms")
    later = ("cycle: requests", "kB", "CPU ms", "stale s")
    with ResultTable("streamer", ("method", "plan", "cache", *first, *later, "prototype's requests")) as table:
        for method in arguments.methods:
            for plan, cache in PLANS:
                begun, *rest = simulated.run(measured(method, plan, cache, arguments.cycles))
                table.add(
                    *(method, plan, cache),
                    *(begun.requests, f"{begun.received / 1000:.1f}", f"{begun.cpu:.0f}"),
                    _span([cycle.requests for cycle in rest], ""),
                    _span([cycle.received / 1000 for cycle in rest], ".1f"),
                    _span([cycle.cpu for cycle in rest], ".0f"),
                    _span([cycle.stale for cycle in rest], ".1f"),
                    PROTOTYPE.get((method, plan, cache), ""),
                )


def shared(arguments: argparse.Namespace) -> None:
    columns = ("plan", "shared cache, kB at most", "requests of 12 queries", "reused", "kB held")
    with ResultTable("streamer_shared", columns) as table:
        for plan in ("incremental", "streamer"):
            for capacity in (0, 100_000, 1_000_000, 64 * 2**20):
                requests, rate, size = simulated.run(sharing(plan, capacity, arguments.cycles))
                table.add(plan, f"{capacity / 1000:.0f}", requests, f"{rate:.0%}", f"{size / 1000:.0f}")


def _span(values: Sequence[float], form: str) -> str:
    low, high = format(min(values), form), format(max(values), form)
    return low if low == high else f"{low}-{high}"


ID = Var("id")
NAMES = ("delay", "headSign", "routeLabel", "platform", "departureTime")
TRAIN = [QuadPattern(ID, f"<urn:{name}>", Var(name)) for name in NAMES]
STATION = [QuadPattern(ID, "<urn:station>", "<urn:here>"), *TRAIN]
JOIN_PLANS = ("bindings", "no bindings", "rows")


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
            found += [{**row, **binding} for binding in match_bindings(narrow, quads)]
        rows = found
    return rows


async def asked(plan: str, patterns: Sequence[QuadPattern], web: CachingHttpClient) -> int:
    """The number of rows that a plan finds."""
    with web.round():
        source = await open_source(f"{HOST}/d", web)
        assert isinstance(source, FragmentsSource)
        if plan == "rows":
            return len(await row_by_row(patterns, source))
        chosen = source if plan == "bindings" else replace(source, addresses=replace(source.addresses, binding=None))
        return len((await solve(patterns, [chosen], web)).rows)


def cost(plan: str, patterns: Sequence[QuadPattern], departures: int) -> PlanCost:
    """The cost of a plan on so many departures, of which 75 are of the station."""
    here = [(f"<urn:d{n}>", "<urn:station>", "<urn:here>", "") for n in range(0, departures, departures // 75)][:75]
    web = ServedTrains([*trains(departures), *here]).web()
    with own_cost() as spent:
        rows = asyncio.run(asked(plan, patterns, web))
    return PlanCost(rows, web.counters.requests, web.counters.received, 1000 * spent.cpu)


def joins(arguments: argparse.Namespace) -> None:
    many = arguments.departures
    with ResultTable("joins", ("question", "plan", "rows", "requests", "kB received", "CPU ms, both sides")) as table:
        for name, patterns, departures in (("train, 75", TRAIN, 75), (f"one station of {many}", STATION, many)):
            for plan in JOIN_PLANS:
                cost_ = cost(plan, patterns, departures)
                kilobytes = f"{cost_.received / 1000:.1f}"
                table.add(name, plan, cost_.rows, cost_.requests, kilobytes, f"{cost_.cpu:.0f}")


SETTINGS = (*REPLAYED, ("streamer", "prototype"))
WHAT = ("minutes", "seed", "method", "label", "plan", "cache")


def wanted(minutes: int, seeds: int, labels: Sequence[str]) -> Iterator[dict[str, Any]]:
    """All replays, those of a seed together."""
    for seed, name, label, (plan, cache) in product(range(seeds), methods(), map(Label, labels), SETTINGS):
        yield dict(zip(WHAT, (minutes, seed, name, label.value, plan, cache), strict=True))


def done(wish: Mapping[str, Any]) -> dict[str, Any]:
    """One replay: its answers, those that differ from the definition, polls that failed, CPU of both sides (s)."""
    style = Style(wish["method"], Label(wish["label"]))
    with own_cost() as spent:
        answers, wrong, failed = run(replayed(style, wish["plan"], wish["cache"], wish["seed"], wish["minutes"]))
    outcome = {"answers": answers, "wrong": list(map(repr, wrong)), "failed": len(failed), "cpu": round(spent.cpu, 2)}
    return {**wish, **outcome}


def kept(log: Path) -> list[dict[str, Any]]:
    """The replays in the log."""
    lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
    return [json.loads(line) for line in lines if line.endswith("}")]


def replays(arguments: argparse.Namespace) -> None:
    """Do what is not in the log, then print what is."""
    if arguments.log is None:
        return
    todo = list(wanted(arguments.minutes, arguments.seeds, arguments.labels))
    there = {tuple(record[name] for name in WHAT) for record in kept(arguments.log)}
    for place, wish in enumerate(todo if not arguments.kept else ()):
        if tuple(wish[name] for name in WHAT) in there:
            continue
        outcome = done(wish)
        with arguments.log.open("a", encoding="utf-8") as file:
            file.write(json.dumps(outcome) + "\n")
        print(f"{place + 1} of {len(todo)}: {outcome}", flush=True)
    outcomes = kept(arguments.log)
    columns = ("plan", "cache", "label", "replays", "answers", "wrong", "failed polls", "CPU s each")
    with ResultTable("replays", columns) as table:
        for (plan, cache), label in product(SETTINGS, Label):
            rows = [
                record
                for record in outcomes
                if (record["plan"], record["cache"], record["label"]) == (plan, cache, label.value)
            ]
            if rows:
                wrong, answers, failed = (
                    sum(counts)
                    for counts in zip(*((len(r["wrong"]), r["answers"], r["failed"]) for r in rows), strict=True)
                )
                cpu = sum(row["cpu"] for row in rows) / len(rows)
                table.add(plan, cache, label.value, len(rows), answers, wrong, failed, f"{cpu:.1f}")
    print(f"{len(outcomes)} of {len(todo)} replays")


if __name__ == "__main__":
    run_parts(
        __doc__,
        {"cycles": cycles, "shared": shared, "joins": joins, "replays": replays},
        cycles=5,
        methods=OneOf(methods()),
        departures=16_667,
        log=Path,
        minutes=30,
        seeds=20,
        labels=OneOf(list(Label)),
        kept=False,
    )
