"""The fragments server: requests beside @ldf/server, many quads served from disk, and a cycle of updates.

python -m benchmarks.fragments [--parts requests loading disk updates] [--seconds 4] [--connections 1 10 50] ...

`requests`: CPU per request, of the whole process tree, beside @ldf/server. Three data sets in the paper's model: 500
quads, 100,000 triples without graphs, 100,000 quads in 10,001 graphs. Asked are the first page of one predicate, and
one predicate of one departure: departures that nobody asked for (first), then 1,000 of them again and again (again), as
TriG, N-Quads and HTML. Both servers run one after the other on the same files, loopback, keep-alive; p50 as the client
saw it, on the same machine. Without ``npm install @ldf/server@3.3.0`` in FOLDER/server (STREAMGAUGE_LDF_HOME unless
given) its rows are left out.

`loading`: ``--loaded`` quads from a file into a new store, each in a process of its own: CPU from its start to its end,
its largest resident memory. N-Quads are without graphs, or with graphs that say when their facts end.

`disk`: ``--quads`` in a store below ``--folder``, made when it is not there (its memory and CPU are printed). A server
on it is asked by one predicate, by one departure and predicate drawn among all, and for a page drawn among all.
Memory after each load: resident, and what of it is not a page of a file, so that the machine cannot take it back.

`updates`: each cycle renews the delay and the platform of every departure for 12 s more, 1% of the facts with another
value (the paper's experiment: 200 dynamic facts every 10 s beside 300 static ones). Replaced: in place. Anew: all old
facts removed and all new ones added under new names, as the prototype's server did. Quads changed in the last cycle;
CPU ms of this process, the least of the cycles, memory store. Bytes are of bodies as br: all pages of the fragments
that the forms of both patterns ask for, labels included, and the patches of those since the version before. Events:
CPU ms from a change until every one of ``--listeners`` has it, without sockets.
"""

import argparse
import asyncio
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import cycle, islice, repeat
from pathlib import Path
from urllib.parse import quote

import httpx
from starlette.types import Message

from benchmarks.fragments_goals import summary
from benchmarks.measure import KeptConnection, awaited, cpu, free_port, own_cost, port_of, resident, run_parts
from benchmarks.results import ResultTable
from streamgauge.harness.process import ChildProcess, ServerProcess
from streamgauge.harness.resources import reaped
from streamgauge.model.algebra import TriplePattern, Var
from streamgauge.model.fact import Fact
from streamgauge.servers.fragments.annotations import method, methods
from streamgauge.servers.fragments.labels import Label, Style
from streamgauge.servers.fragments.pages.dataset import DataSet
from streamgauge.servers.fragments.pages.http import FragmentsApp, application
from streamgauge.servers.fragments.store.indexed import MemoryStore
from streamgauge.servers.fragments.writes import FactDraft, WriteResult, add

TRAIN = "http://example.org/train#"
STAMP = "http://www.w3.org/2001/XMLSchema#dateTime"
STATIC = ("hasDeparture", "departureTime", "headSign", "routeLabel")
KINDS = ("application/trig", "application/n-quads", "text/html")
AGAIN = 1000
"""Departures that are asked for again and again."""
SETS = {"small": (75, 50), "bigt": (16_667, 0), "big": (15_000, 10_000)}
"""Departures, and graphs that their dynamic facts are in (0: none)."""


@dataclass(frozen=True, slots=True)
class RequestCost:
    """The cost of one load: ms CPU per request, ms p50, requests, MB of the server's processes after it."""

    cpu: float
    p50: float
    requests: int
    memory: float


@dataclass(frozen=True, slots=True)
class RequestLoad:
    """The requests for a data set: kind, media type, number of connections."""

    name: str
    what: str
    kind: str
    connections: int


def lines(departures: int, graphs: int) -> Iterator[str]:
    for number in range(departures):
        subject = f"<http://example.org/departure/{number}>"
        for name in STATIC:
            yield f'{subject} <{TRAIN}{name}> "{name} {number}" .\n'
        graph = f" <http://example.org/graphs#{number % graphs}>" if graphs else ""
        yield f'{subject} <{TRAIN}delay> "{number % 7} min"{graph} .\n'
        yield f'{subject} <{TRAIN}platform> "{number % 14}"{graph} .\n'
    for number in range(graphs):
        yield (
            f"<http://example.org/graphs#{number}> <http://example.org/temporal#expiration> "
            f'"2099-01-01T00:00:{number % 60:02}Z"^^<{STAMP}> .\n'
        )


def write(folder: Path) -> list[str]:
    """The files of all data sets."""
    for name, (departures, graphs) in SETS.items():
        limit = 100_000 if name == "bigt" else None
        (folder / f"{name}.nq").write_text("".join(islice(lines(departures, graphs), limit)))
    return [str(folder / f"{name}.nq") for name in SETS]


@contextmanager
def theirs(home: Path, folder: Path) -> Iterator[tuple[int, int]]:
    """@ldf/server with one worker and no log: its process and port."""
    package = "https://linkedsoftwaredependencies.org/bundles/npm/@ldf"
    config = {
        "@context": [
            f"{package}/{name}/^3.0.0/components/context.jsonld" for name in ("server", "preset-qpf", "datasource-n3")
        ],
        "@id": "urn:ldf-server:my",
        "import": "preset-qpf:config-defaults.json",
        "title": "benchmark",
        "datasources": [
            {
                "@id": f"urn:ldf:{name}",
                "@type": "NQuadsDatasource",
                "datasourceTitle": name,
                "datasourcePath": name,
                "file": str(folder / f"{name}.nq"),
            }
            for name in SETS
        ],
    }
    (folder / "config.json").write_text(json.dumps(config))
    port, program = free_port(), str(home / "node_modules/@ldf/server/bin/ldf-server")
    command = ["node", program, str(folder / "config.json"), str(port), "1"]
    with ChildProcess(command, piped=False, session=True) as process:
        awaited(port)
        yield process.pid, port


@contextmanager
def ours(*words: str) -> Iterator[tuple[int, int]]:
    """The fragments server: its process and port."""
    with ServerProcess("fragments", "serve", *words) as server:
        yield server.pid, port_of(server.address)


def addresses(name: str) -> Iterator[str]:
    """One predicate of each departure."""
    predicate = quote(f"{TRAIN}delay", safe="")
    for number in range(SETS[name][0]):
        subject = quote(f"http://example.org/departure/{number}", safe="")
        yield f"/{name}?subject={subject}&predicate={predicate}"


def measure(pid: int, port: int, addresses: Iterator[str], load: RequestLoad, seconds: float) -> RequestCost:
    """Ask for addresses while there are any and time is left, each connection one after the other."""
    before = cpu(pid, ended=False)
    times = asyncio.run(answers(port, addresses, load, time.perf_counter() + seconds))
    spent = cpu(pid, ended=False) - before
    return RequestCost(spent / len(times) * 1e3, statistics.median(times) * 1e3, len(times), resident(pid))


async def answers(port: int, addresses: Iterator[str], load: RequestLoad, until: float) -> list[float]:
    """Seconds of each answer."""
    parts = await asyncio.gather(*(_ask(port, addresses, load.kind, until) for _ in range(load.connections)))
    return [seconds_ for part in parts for seconds_ in part]


async def _ask(port: int, addresses: Iterator[str], kind: str, until: float) -> list[float]:
    connection, times = KeptConnection(port, Accept=kind), list[float]()
    while (began := time.perf_counter()) < until and (address := next(addresses, None)) is not None:
        status, body = await connection.send("GET", address)
        if status != 200:
            raise SystemExit(f"not answered: {status} {body[:200]!r}")
        times.append(time.perf_counter() - began)
    connection.close()
    return times


def loads(connections: Sequence[int]) -> list[RequestLoad]:
    """All loads, in the order in which they are done."""
    kinds = ("p", "s+p, first", "s+p, again")
    return [
        RequestLoad(name, what, kind, number)
        for name in SETS
        for kind in KINDS
        for number in connections
        for what in kinds
        if not (what == "s+p, first" and SETS[name][0] < 1000)
    ]


def asked_by(load: RequestLoad, connections: Sequence[int]) -> Iterator[str]:
    """The addresses of a load; of those that are asked for once no other load has one."""
    if load.what == "p":
        return repeat(f"/{load.name}?predicate={quote(TRAIN + 'delay', safe='')}")
    if load.what == "s+p, again":
        return cycle(islice(addresses(load.name), AGAIN))
    parts = len(KINDS) * len(connections)
    part = KINDS.index(load.kind) * len(connections) + connections.index(load.connections)
    return islice(addresses(load.name), AGAIN + part, None, parts)


def measured(pid: int, port: int, arguments: argparse.Namespace) -> dict[RequestLoad, RequestCost]:
    """Every load on one server."""
    costs = {}
    for load in loads(arguments.connections):
        if load.what != "s+p, first":
            measure(pid, port, islice(asked_by(load, arguments.connections), AGAIN), load, arguments.seconds / 4)
        costs[load] = measure(pid, port, asked_by(load, arguments.connections), load, arguments.seconds)
        print(f"  {load}: {costs[load]}", file=sys.stderr, flush=True)
    return costs


def requests(arguments: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        folder, there = Path(scratch), dict[RequestLoad, RequestCost]()
        with ours(*write(folder)) as server:
            here = measured(*server, arguments)
        home = Path(arguments.ldf or os.environ.get("STREAMGAUGE_LDF_HOME", "nowhere")) / "server"
        if (home / "node_modules/@ldf/server").is_dir():
            with theirs(home, folder) as server:
                there = measured(*server, arguments)
        else:
            print("@ldf/server is not here (see the beginning of this file): its rows are left out")
    columns = ("data, request", "Accept", "connections", "ours, CPU ms", "p50 ms", "@ldf/server, CPU ms", "p50 ms",
               "ratio of CPU")  # fmt: skip
    with ResultTable("fragments", columns, summary=summary) as table:
        for load, own in here.items():
            other = there.get(load)
            beside = ("",) * 3
            if other is not None:
                beside = (f"{other.cpu:.3f}", f"{other.p50:.2f}", f"{other.cpu / own.cpu:.1f}x")
            kind = load.kind.partition("/")[2]
            table.add(f"{load.name}, {load.what}", kind, load.connections, f"{own.cpu:.3f}", f"{own.p50:.2f}", *beside)
    for name, rows in (("ours", here), ("@ldf/server", there)):
        if rows:
            print(f"\n{name}: at most {max(row.memory for row in rows.values()):.0f} MB resident")


PREDICATE = quote(f"{TRAIN}delay", safe="")
SIX = 6
"""Quads of a departure."""
LOADING = """
import sys
from pathlib import Path
from streamgauge.incremental.budget import gc_frozen
from streamgauge.servers.fragments.labels import Style
from streamgauge.servers.fragments.store.disk import DiskStore
from streamgauge.servers.fragments.store.indexed import MemoryStore
from streamgauge.servers.fragments.writes.files import load

store = DiskStore(Path(sys.argv[2])) if sys.argv[2:] else MemoryStore()
with gc_frozen():
    load(Path(sys.argv[1]), store, Style())
store.close()
print(next(line.split()[1] for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")))
"""


def fill(folder: Path, quads: int) -> None:
    """A file with so many quads, and a store with what is in it, which a process of its own makes."""
    file = folder / "data.nq"
    with file.open("w") as written:
        written.writelines(islice(lines(quads // SIX + 1, 0), quads))
    before, began = reaped(), time.perf_counter()
    words = [sys.executable, "-c", LOADING, str(file), str(folder / "store" / "data")]
    peak = int(subprocess.run(words, check=True, capture_output=True, text=True).stdout) * 1024 / 1e6
    print(
        f"loaded {quads:,} quads: {time.perf_counter() - began:,.0f} s, {reaped() - before:,.0f} s CPU, "
        f"at most {peak:,.0f} MB resident"
    )


def loading(arguments: argparse.Namespace) -> None:
    many: int = arguments.loaded
    files = {"N-Triples": ("data.nt", 0), "N-Quads": ("data.nq", 0), "N-Quads, ends": ("ends.nq", many // 60)}
    columns = (f"{many:,} quads", "store", "CPU s", "s", "MiB at most")
    with tempfile.TemporaryDirectory() as scratch, ResultTable("fragments_loading", columns) as table:
        for what, (name, graphs) in files.items():
            file = Path(scratch) / name
            with file.open("w") as written:
                written.writelines(islice(lines(many // SIX + 1, graphs), many - graphs))
                written.writelines(lines(0, graphs))
            for kind, folder in (("disk", [f"{file}.store"]), ("memory", [])):
                words = [sys.executable, "-c", LOADING, str(file), *folder]
                before, began = reaped(), time.perf_counter()
                peak = int(subprocess.run(words, check=True, capture_output=True, text=True).stdout) / 1024
                spent, took = reaped() - before, time.perf_counter() - began
                table.add(what, kind, f"{spent:.1f}", f"{took:.1f}", f"{peak:,.0f}")


def drawn(quads: int, seed: int) -> dict[str, Iterator[str]]:
    """The addresses of each load."""
    draw, departures = random.Random(seed), quads // SIX

    def lookups() -> Iterator[str]:
        while True:
            subject = quote(f"http://example.org/departure/{draw.randrange(departures)}", safe="")
            yield f"/data?subject={subject}&predicate={PREDICATE}"

    def pages() -> Iterator[str]:
        while True:
            yield f"/data?predicate={PREDICATE}&page={draw.randrange(1, departures // 100)}"

    return {"p": repeat(f"/data?predicate={PREDICATE}"), "s+p, drawn": lookups(), "p, page drawn": pages()}


def anonymous(pid: int) -> float:
    """MB of a process that are no pages of files."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("RssAnon:")[2].split()[0]) / 1e3


def disk(arguments: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        folder = arguments.folder or Path(scratch)
        (folder / "store").mkdir(parents=True, exist_ok=True)
        if not (folder / "store" / "data").is_dir():
            fill(folder, arguments.quads)
        began = time.perf_counter()
        columns = ("request", "requests", "CPU ms", "p50 ms", "MB resident", "MB of its own")
        with (
            ours(str(folder / "data.nq"), "--store", str(folder / "store")) as (pid, port),
            ResultTable("fragments_disk", columns) as table,
        ):
            print(f"serves after {time.perf_counter() - began:.1f} s, {anonymous(pid):,.0f} MB\n")
            for what, asked in drawn(arguments.quads, 0).items():
                load = RequestLoad("data", what, "application/trig", arguments.connections[-1])
                cost = measure(pid, port, asked, load, arguments.seconds)
                memory = (f"{cost.memory:,.0f}", f"{anonymous(pid):,.0f}")
                table.add(what, f"{cost.requests:,}", f"{cost.cpu:.3f}", f"{cost.p50:.1f}", *memory)


PERIOD, LASTING = 10_000, 12_000


class Trains:
    """A data set in which time passes by cycles."""

    def __init__(self, style: Style, departures: int) -> None:
        self.departures, self.now = departures, 1_000_000
        self.data = DataSet("trains", MemoryStore(), style, lambda: self.now)

    def cycle(self, number: int) -> WriteResult:
        """Everything holds on for a while; 1% of it is something else."""
        self.now += PERIOD
        draft = FactDraft(self.data)
        for name in ("delay", "platform"):
            draft.replace((None, f"<{TRAIN}{name}>", None), list(self.facts(name, number)))
        return draft.commit()

    def facts(self, name: str, number: int) -> Iterator[Fact]:
        """The facts of a cycle."""
        for place in range(self.departures):
            value = number if (place + number) % 100 == 0 else 0
            triple = f"<{TRAIN}departure-{place}>", f"<{TRAIN}{name}>", f'"{value}"'
            yield Fact(triple, self.now, self.now + LASTING)


def trains(style: Style, departures: int) -> Trains:
    """Static facts, and those of a first cycle."""
    trains = Trains(style, departures)
    named = [(f"<{TRAIN}departure-{n}>", f"<{TRAIN}{p}>", f'"{n}"') for n in range(departures) for p in "abc"]
    add(trains.data, [Fact(triple) for triple in named])
    trains.cycle(0)
    return trains


def anew(timetable: Trains, number: int) -> int:
    """Quads changed by a cycle that removes all and adds all again."""
    draft = FactDraft(timetable.data)
    for name in ("delay", "platform"):
        draft.remove((None, f"<{TRAIN}{name}>", None))
    gone = draft.commit()
    come = timetable.cycle(number)
    return len(gone.quads.removed) + len(come.quads.added)


def renewals(style: Style, cycles: int, departures: int) -> tuple[float, float, int, int]:
    """CPU ms and quads of a cycle, replaced and anew."""
    replaced, other = trains(style, departures), trains(style, departures)
    costs: tuple[list[float], list[float]] = [], []
    quads, fresh = 0, 0
    for number in range(1, cycles + 1):
        with own_cost() as kept:
            changed = replaced.cycle(number).quads
        with own_cost() as lost:
            fresh = anew(other, number)
        costs[0].append(kept.cpu)
        costs[1].append(lost.cpu)
        quads = len(changed.added) + len(changed.removed)
    return 1000 * min(costs[0]), 1000 * min(costs[1]), quads, fresh


async def sizes(style: Style, departures: int) -> tuple[int, int]:
    """Bytes of what a client of both patterns reads in a cycle: all pages of the fragments it needs, or patches."""
    timetable = trains(style, departures)
    since = timetable.data.version.decode()
    timetable.cycle(1)
    headers = {"Accept-Encoding": "br", "Accept": "application/trig"}
    transport = httpx.ASGITransport(app=application([timetable.data]))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost", headers=headers) as web:
        whole = patches = 0
        for query, pages in _fragments(timetable):
            for page in range(1, pages + 1):
                whole += await _size(web, {**query, "page": str(page)})
            patches += await _size(web, {**query, "since": since})
    return whole, patches


def _fragments(timetable: Trains) -> Iterator[tuple[dict[str, str], int]]:
    """Each fragment that the annotated forms ask for, and how many pages it has."""
    names = "subject", "predicate", "object", "graph"
    patterns = [TriplePattern(Var("s"), f"<{TRAIN}{name}>", Var("o")) for name in ("delay", "platform")]
    forms = [method(timetable.data.style.method).form(pattern, 0, timetable.data.style) for pattern in patterns]
    for match in dict.fromkeys(pattern.match for form in forms for pattern in form.patterns):
        query = {name: term[1:-1] for name, term in zip(names, match, strict=True) if term}
        yield query, -(-timetable.data.store.count(match) // timetable.data.page_size)


async def _size(web: httpx.AsyncClient, query: dict[str, str]) -> int:
    async with web.stream("GET", "/trains", params=query) as reply:
        reply.raise_for_status()
        return sum([len(part) async for part in reply.aiter_raw()])


async def listening(listeners: int, cycles: int, departures: int) -> float:
    """CPU ms of a cycle with so many listeners, until each has its event."""
    timetable = trains(Style(), departures)
    app, got = application([timetable.data]), asyncio.Semaphore(0)
    tasks = [asyncio.create_task(_listen(app, got)) for _ in range(listeners)]
    await _all(got, listeners)
    costs = []
    for number in range(1, cycles + 1):
        with own_cost() as spent:
            timetable.cycle(number)
            await _all(got, listeners)
        costs.append(spent.cpu)
    app.leave()
    await asyncio.gather(*tasks)
    return 1000 * min(costs)


async def _all(got: asyncio.Semaphore, number: int) -> None:
    for _ in range(number):
        await got.acquire()


async def _listen(app: FragmentsApp, got: asyncio.Semaphore) -> None:
    async def receive() -> Message:
        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: Message) -> None:
        if message.get("body"):
            got.release()

    headers = [(b"host", b"localhost"), (b"accept", b"text/event-stream")]
    query = f"predicate={TRAIN}delay".replace("#", "%23").encode()
    scope = {"type": "http", "method": "GET", "scheme": "http", "path": "/trains", "query_string": query}
    await app({**scope, "headers": headers, "asgi": {"spec_version": "2.4"}}, receive, send)


def updates(arguments: argparse.Namespace) -> None:
    columns = ("method, label", "quads changed: replaced", "anew", "CPU ms: replaced", "anew", "bytes: fragments",
               "patches")  # fmt: skip
    with ResultTable("fragments_writing", columns) as table:
        for name in methods():
            for label in (Label.EXPIRATION, Label.INTERVAL):
                style = Style(name, label)
                ours, theirs, quads, fresh = renewals(style, arguments.cycles, arguments.departures)
                whole, patches = asyncio.run(sizes(style, arguments.departures))
                cells = (quads, fresh, f"{ours:.1f}", f"{theirs:.1f}", f"{whole:,}", f"{patches:,}")
                table.add(f"{name}, {label}", *cells)
    for number in (0, arguments.listeners):
        cost = asyncio.run(listening(number, arguments.cycles, arguments.departures))
        print(f"a cycle with {number:,} listeners: {cost:.1f} ms CPU")


if __name__ == "__main__":
    run_parts(
        __doc__,
        {"requests": requests, "loading": loading, "disk": disk, "updates": updates},
        seconds=4.0,
        connections=(1, 10, 50),
        ldf=Path,
        folder=Path,
        quads=10_000_000,
        loaded=1_000_000,
        cycles=20,
        departures=100,
        listeners=1000,
    )
