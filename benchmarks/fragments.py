"""The fragments server beside @ldf/server: CPU per request, of the whole process tree.

python -m benchmarks.fragments [--seconds 4] [--connections 1 50] [--ldf FOLDER]

Three data sets in the paper's model: 500 quads, 100,000 triples without graphs, 100,000 quads in 10,001 graphs. Asked
are the first page of one predicate, and one predicate of one departure: each departure once (first), then 1,000 of them
again (again), as TriG and N-Quads; each load for some seconds. Both servers run one after the other on the same files,
loopback, keep-alive. CPU ms: user and system time of all the server's processes over the requests answered; p50 as the
client saw it, which runs on the same machine. In FOLDER/server ``npm install @ldf/server@3.3.0`` was done (FOLDER is
STREAMGAUGE_LDF_HOME unless given); its rows are left out without it.
"""

import argparse
import asyncio
import json
import os
import socket
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

import psutil

from benchmarks.measure import cpu, free_port, resident
from benchmarks.results import ResultTable

TRAIN = "http://example.org/train#"
STAMP = "http://www.w3.org/2001/XMLSchema#dateTime"
STATIC = ("hasDeparture", "departureTime", "headSign", "routeLabel")
KINDS = ("application/trig", "application/n-quads")
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


def write(folder: Path) -> None:
    """The files of all data sets."""
    for name, (departures, graphs) in SETS.items():
        limit = 100_000 if name == "bigt" else None
        (folder / f"{name}.nq").write_text("".join(islice(lines(departures, graphs), limit)))


@contextmanager
def running(command: Sequence[str], port: int) -> Iterator[psutil.Process]:
    """A server, once it answers."""
    with tempfile.TemporaryFile() as log:
        started = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        try:
            _wait(started, port)
            yield psutil.Process(started.pid)
        finally:
            for process in (*psutil.Process(started.pid).children(recursive=True), psutil.Process(started.pid)):
                process.terminate()
            started.wait(20)


def _wait(started: subprocess.Popen[bytes], port: int) -> None:
    until = time.monotonic() + 180
    while time.monotonic() < until and started.poll() is None:
        with socket.socket() as trying:
            if trying.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    raise SystemExit(f"the server does not answer on port {port}: {' '.join(map(str, started.args))}")


def ours(folder: Path, port: int) -> list[str]:
    files = [str(folder / f"{name}.nq") for name in SETS]
    return [sys.executable, "-m", "streamgauge.cli.main", "fragments", "serve", *files, "--port", str(port)]


def theirs(home: Path, folder: Path, port: int) -> list[str]:
    """@ldf/server with one worker and no log."""
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
    return ["node", str(home / "node_modules/@ldf/server/bin/ldf-server"), str(folder / "config.json"), str(port), "1"]


def addresses(name: str) -> Iterator[str]:
    """One predicate of each departure."""
    predicate = quote(f"{TRAIN}delay", safe="")
    for number in range(SETS[name][0]):
        subject = quote(f"http://example.org/departure/{number}", safe="")
        yield f"/{name}?subject={subject}&predicate={predicate}"


def measure(server: psutil.Process, port: int, asked: Iterator[str], load: RequestLoad, seconds: float) -> RequestCost:
    """Ask for addresses while there are any and time is left, each connection one after the other."""
    before = cpu(server, ended=False)
    times = asyncio.run(answers(port, asked, load, time.perf_counter() + seconds))
    spent = cpu(server, ended=False) - before
    return RequestCost(spent / len(times) * 1e3, statistics.median(times) * 1e3, len(times), resident(server))


async def answers(port: int, asked: Iterator[str], load: RequestLoad, until: float) -> list[float]:
    """Seconds of each answer."""
    parts = await asyncio.gather(*(_ask(port, asked, load.kind, until) for _ in range(load.connections)))
    return [each for part in parts for each in part]


async def _ask(port: int, asked: Iterator[str], kind: str, until: float) -> list[float]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    times: list[float] = []
    while (began := time.perf_counter()) < until and (address := next(asked, None)) is not None:
        writer.write(f"GET {address} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAccept: {kind}\r\n\r\n".encode())
        await _answer(reader)
        times.append(time.perf_counter() - began)
    writer.close()
    await writer.wait_closed()
    return times


async def _answer(reader: asyncio.StreamReader) -> None:
    head = await reader.readuntil(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 200"):
        raise SystemExit(f"not answered: {head[:200]!r}")
    fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:] if b": " in line)
    if b"content-length" in fields:
        await reader.readexactly(int(fields[b"content-length"]))
        return
    while size := int(await reader.readline(), 16):
        await reader.readexactly(size + 2)
    await reader.readline()


def loads(connections: Sequence[int]) -> list[RequestLoad]:
    """All loads, in the order in which they are done."""
    kinds = ("p", "s+p, first", "s+p, again")
    return [
        RequestLoad(name, what, kind, number)
        for name in SETS
        for kind in KINDS
        for number in connections
        for what in kinds
        if not (what == "s+p, first" and (SETS[name][0] < 1000 or number != connections[0]))
    ]


def asked_by(load: RequestLoad) -> Iterator[str]:
    """The addresses of a load."""
    if load.what == "p":
        return repeat(f"/{load.name}?predicate={quote(TRAIN + 'delay', safe='')}")
    return addresses(load.name) if load.what == "s+p, first" else cycle(islice(addresses(load.name), 1000))


def measured(command: Sequence[str], port: int, given: argparse.Namespace) -> dict[RequestLoad, RequestCost]:
    """Every load on one server."""
    with running(command, port) as server:
        found = {}
        for load in loads(given.connections):
            if load.what != "s+p, first":
                measure(server, port, islice(asked_by(load), 1000), load, given.seconds / 4)
            found[load] = measure(server, port, asked_by(load), load, given.seconds)
            print(f"  {load}: {found[load]}", file=sys.stderr, flush=True)
        return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--connections", type=int, nargs="+", default=[1, 50])
    parser.add_argument("--ldf", type=Path, default=os.environ.get("STREAMGAUGE_LDF_HOME"))
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        write(folder)
        port = free_port()
        here = measured(ours(folder, port), port, given)
        there = {}
        home = Path(given.ldf or "nowhere") / "server"
        if (home / "node_modules/@ldf/server").is_dir():
            port = free_port()
            there = measured(theirs(home, folder, port), port, given)
        else:
            print("@ldf/server is not here (see the beginning of this file): its rows are left out")
    print(f"load average {os.getloadavg()[0]:.1f}\n")
    table(here, there)


def table(here: dict[RequestLoad, RequestCost], there: dict[RequestLoad, RequestCost]) -> None:
    columns = ("data, request", "Accept", "connections", "ours, CPU ms", "p50 ms", "@ldf/server, CPU ms", "p50 ms",
               "ratio of CPU")  # fmt: skip
    with ResultTable("fragments", columns) as rows:
        for load, own in here.items():
            other = there.get(load)
            beside = ("",) * 3
            if other is not None:
                beside = (f"{other.cpu:.3f}", f"{other.p50:.2f}", f"{other.cpu / own.cpu:.1f}x")
            kind = load.kind.partition("/")[2]
            rows.add(f"{load.name}, {load.what}", kind, load.connections, f"{own.cpu:.3f}", f"{own.p50:.2f}", *beside)
    for name, rows in (("ours", here), ("@ldf/server", there)):
        if rows:
            print(f"\n{name}: at most {max(each.memory for each in rows.values()):.0f} MB resident")


if __name__ == "__main__":
    main()
