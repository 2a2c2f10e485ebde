"""Small hostile requests to each server, and how long another client, who asks for little, waits meanwhile.

python -m benchmarks.hostile [--server broker fragments queries] [--kind WORD ...] [--seconds 20]

Each server is a process of its own. The other client sends one small request every 20 ms, over connections that are
kept: to the broker a publication of one triple, to the fragments server the page of one subject and a write of one
fact by turns, to the query service one element. A delay is from when a request is due to its answer. A hostile request
has 64 KB or less; while it is answered, and 0.3 s longer (what it leaves behind meets the next small requests), the
delays count as its kind's. A kind that is still not answered after ``--seconds`` is left. `idle` is the other client
alone, before the kinds and after them.
"""

import argparse
import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Final
from urllib.parse import quote

import psutil
from websockets.asyncio.client import connect

from benchmarks.hostile_kinds import (
    KINDS,
    LARGEST,
    PEOPLE,
    PREFIX,
    SELECT,
    UPDATE,
    Attack,
    AttackKind,
    window,
)
from benchmarks.results import ResultTable

PERIOD_S: Final = 0.02
AFTER_S: Final = 0.3
IDLE_S: Final = 5.0
TOKEN: Final = "a-token-of-the-benchmark"
PROGRAM: Final = [sys.executable, "-c", "from streamgauge.cli.main import main; main()"]


@dataclass
class Delays:
    """Delays of the other client, s."""

    all: list[float] = field(default_factory=list)
    reads: list[float] = field(default_factory=list)
    failed: int = 0
    why: str = ""

    def worst(self) -> float:
        """The longest, ms."""
        return 1000 * max(self.all, default=float("nan"))

    def share(self, share: float) -> float:
        """A percentile, ms."""
        order = sorted(self.all)
        return 1000 * order[int(share * (len(order) - 1))] if order else float("nan")


class Http:
    """One connection that is kept, and made anew when the server ended it."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def send(self, ask: Attack) -> tuple[int, bytes]:
        """The status and the body of the answer."""
        if self._streams is None or self._streams[0].at_eof():
            self._streams = await asyncio.open_connection("127.0.0.1", self._port, limit=2**20)
        reader, writer = self._streams
        body = ask.body.encode()
        head = f"{ask.method} {ask.path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {ask.kind}\r\n"
        head += f"Authorization: Bearer {TOKEN}\r\nContent-Length: {len(body)}\r\n\r\n"
        try:
            writer.write(head.encode() + body)
            said = await reader.readuntil(b"\r\n\r\n")
            length = re.search(rb"(?i)content-length: (\d+)", said)
            found = await reader.readexactly(int(length[1])) if length is not None else b""
        except BaseException:
            writer.close()
            self._streams = None
            raise
        return int(said.split(b" ", 2)[1]), found


async def sepa(port: int, text: str) -> tuple[int, bytes]:
    """One message to SEPA's address, and the first answer."""
    async with connect(f"ws://127.0.0.1:{port}/subscribe", max_size=None, additional_headers=AUTHORIZED) as socket:
        await socket.send(text)
        said = await socket.recv()
        data = said.encode() if isinstance(said, str) else said
        return (400 if b"error_description" in data[:2000] else 200), data


AUTHORIZED: Final = {"Authorization": f"Bearer {TOKEN}"}


def small(server: str, number: int) -> Attack:
    """The request of the other client."""
    if server == "broker":
        return Attack("POST", "/publish", f'<urn:t:v{number}> <urn:t:name> "v{number}" .')
    if server == "queries":
        return Attack(
            "POST",
            "/streams/urn:s?t=now",
            f"<urn:t:v{number % 300}> <urn:t:{('name', 'age', 'knows')[number % 3]}> <urn:t:v{number % 7}> .",
        )
    if number % 2:
        return Attack("GET", f"/people?subject={quote(f'urn:t:s{number % PEOPLE}')}")
    return Attack("POST", "/people?for=60s", f"<urn:t:v{number % 50}> <urn:t:seen> {number} .")


def prepared(server: str, folder: Path) -> list[str]:
    """The words of the server's command, with its data in a folder."""
    rows = [f'<urn:t:s{n}> <urn:t:name> "name{n % 97}{"a" * (n % 40)}" .' for n in range(PEOPLE)]
    rows += [
        f'<urn:t:s{n}> <urn:t:age> "{n % 90}"^^<http://www.w3.org/2001/XMLSchema#integer> .' for n in range(PEOPLE)
    ]
    rows += [f"<urn:t:s{n}> <urn:t:knows> <urn:t:s{n * k % PEOPLE}> ." for n in range(PEOPLE) for k in (3, 7, 11)]
    (folder / "people.nt").write_text("\n".join(rows))
    (folder / "few.nt").write_text("\n".join([*rows[:7], *rows[PEOPLE : PEOPLE + 7]]))
    (folder / "tokens").write_text(f"{TOKEN}\n")
    owl = "@prefix owl: <http://www.w3.org/2002/07/owl#> . <urn:t:partOf> a owl:TransitiveProperty ."
    (folder / "axioms.ttl").write_text(owl)
    words = ["--port", "0", "--token-file", str(folder / "tokens")]
    if server == "broker":
        words += ["--journal", str(folder / "journal"), "--ontology", str(folder / "axioms.ttl")]
        return ["broker", "serve", str(folder / "people.nt"), *words]
    if server == "fragments":
        return ["fragments", "serve", str(folder / "people.nt"), str(folder / "few.nt"), *words]
    return ["engine", "serve", "live", *words]


class Server:
    """A server in a process of its own; ``port`` once it is started."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self._words = name, prepared(name, folder)
        self.log = folder / "log"
        self._process: subprocess.Popen[bytes] | None = None
        self.port = 0

    def start(self) -> None:
        """Begin, and wait until it serves."""
        with self.log.open("w") as log:
            self._process = subprocess.Popen([*PROGRAM, *self._words], stderr=log)
        while (found := re.search(r":(\d+)/\n", self.log.read_text())) is None:
            if self.ended:
                raise SystemExit(f"the {self.name} server did not begin: {self.log.read_text()}")
            time.sleep(0.05)
        self.port = int(found[1])

    def stop(self) -> None:
        """End."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    @property
    def ended(self) -> bool:
        """Whether it is there no more."""
        return self._process is None or self._process.poll() is not None

    @property
    def errors(self) -> int:
        """The number of tracebacks in the server's log."""
        return self.log.read_text().count("Traceback")

    @property
    def memory(self) -> int:
        """MB of its process."""
        return 0 if self._process is None or self.ended else psutil.Process(self._process.pid).memory_info().rss >> 20


class Other:
    """The other client."""

    def __init__(self, server: Server) -> None:
        self._server, self._numbers = server, count()
        self._connections = [Http(server.port) for _ in range(8)]

    async def run(self, delays: Delays, until: Callable[[], bool]) -> None:
        """A small request every ``PERIOD_S``, over eight connections in turn, until that is enough."""
        async with asyncio.TaskGroup() as group:
            at = time.perf_counter()
            while not until():
                number = next(self._numbers)
                group.create_task(self._one(delays, number, at))
                at += PERIOD_S
                await asyncio.sleep(max(0.0, at - time.perf_counter()))

    async def _one(self, delays: Delays, number: int, due: float) -> None:
        ask = small(self._server.name, number)
        connection = Http(self._server.port) if not self._connections else self._connections.pop()
        try:
            status, said = await connection.send(ask)
        except (OSError, asyncio.IncompleteReadError):
            delays.failed += 1
            return
        if status >= 400:
            delays.failed += 1
            delays.why = said[:300].decode(errors="replace")
        delays.all.append(time.perf_counter() - due)
        if ask.method == "GET":
            delays.reads.append(delays.all[-1])
        self._connections.append(connection)


@dataclass(frozen=True)
class HostileDelay:
    """The outcome of a kind; ``status`` 0 where nothing was answered in time."""

    kind: AttackKind
    status: int
    took: float
    delays: Delays
    memory: int
    said: str


async def measured(server: Server, kind: AttackKind, patience: float) -> HostileDelay:
    """Fire a kind beside the other client."""
    http, delays, other = Http(server.port), Delays(), Other(server)
    for ask in kind.before:
        await http.send(ask)
    before, over = server.memory, asyncio.Event()
    beside = asyncio.create_task(other.run(delays, over.is_set))
    await asyncio.sleep(0.2)
    delays.all.clear()
    delays.reads.clear()
    began, status, said = time.perf_counter(), 0, b""
    answer: Awaitable[tuple[int, bytes]] = (
        sepa(server.port, kind.ask.body) if kind.ask.kind == "websocket" else http.send(kind.ask)
    )
    with suppress(TimeoutError, OSError, asyncio.IncompleteReadError):
        status, said = await asyncio.wait_for(answer, patience)
    took = time.perf_counter() - began
    await asyncio.sleep(AFTER_S)
    over.set()
    await beside
    memory = server.memory - before
    with suppress(OSError, asyncio.IncompleteReadError):
        for ask in (*kind.after, *left_behind(kind, said)):
            await Http(server.port).send(ask)
    return HostileDelay(kind, status, took, delays, memory, said[:200].decode(errors="replace"))


def left_behind(kind: AttackKind, said: bytes) -> Sequence[Attack]:
    """The requests that end a query that was registered."""
    if kind.server != "queries" or b'"id"' not in said[:200]:
        return ()
    return (Attack("DELETE", f"/queries/{json.loads(said)['id']}"),)


async def idle(server: Server) -> Delays:
    """The other client alone."""
    delays, end = Delays(), time.perf_counter() + IDLE_S
    await Other(server).run(delays, lambda: time.perf_counter() > end)
    return delays


async def warm(server: Server) -> None:
    """Small requests of each kind, so that all is loaded that is loaded when it is first needed."""
    http = Http(server.port)
    if server.name == "queries":
        await http.send(Attack("POST", "/queries", window("?a ?b ?c FILTER REGEX(?c, 'a+b*')"), SELECT))
    else:
        path = "/update" if server.name == "broker" else "/few"
        method = "POST" if server.name == "broker" else "PATCH"
        await http.send(Attack(method, path, PREFIX + "DELETE WHERE { :none :none ?x }", UPDATE))
    await idle(server)


def shown(delays: Delays) -> str:
    """Figures of the other client alone."""
    return f"p50 {delays.share(0.5):.1f}, p99 {delays.share(0.99):.1f}, worst {delays.worst():.1f} ms"


COLUMNS: Final = (
    "kind", "bytes", "status", "its own time, s", "worst delay of the other client, ms", "of its reads", "failed",
    "MB more",
)  # fmt: skip


def _kind(server: Server, kind: AttackKind, patience: float, table: ResultTable) -> HostileDelay:
    """One kind of request; a server that it ended is started again."""
    assert len(kind.ask.body) <= LARGEST, kind.name
    got = asyncio.run(measured(server, kind, patience))
    status: object = got.status or "none"
    if server.ended:
        status = "the server ended"
        server.start()
    table.add(
        kind.name, len(kind.ask.body), status, f"{got.took:.2f}", f"{got.delays.worst():.1f}",
        f"{1000 * max(got.delays.reads):.1f}" if got.delays.reads else "",
        f"{got.delays.failed} {got.delays.why}".strip(" 0"), got.memory,
    )  # fmt: skip
    return got


def measure(name: str, words: Sequence[str], patience: float) -> list[HostileDelay]:
    """All kinds of a server, printed as they are measured."""
    found: list[HostileDelay] = []
    with tempfile.TemporaryDirectory() as folder:
        server = Server(name, Path(folder))
        server.start()
        try:
            asyncio.run(warm(server))
            print(f"\n{name}, idle before: {shown(asyncio.run(idle(server)))}; load {os.getloadavg()[0]:.1f}\n")
            with ResultTable(f"hostile_{name}", COLUMNS) as table:
                chosen = (kind for kind in KINDS[name]() if not words or any(word in kind.name for word in words))
                found.extend(_kind(server, kind, patience, table) for kind in chosen)
            print(f"\n{name}: {server.errors} tracebacks in its log")
            print(f"\n{name}, idle after: {shown(asyncio.run(idle(server)))}; load {os.getloadavg()[0]:.1f}")
        finally:
            server.stop()
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", nargs="+", choices=list(KINDS), default=list(KINDS))
    parser.add_argument("--kind", nargs="*", default=[], help="only kinds with one of these words in their names")
    parser.add_argument("--seconds", type=float, default=20)
    asked = parser.parse_args()
    found = [each for name in asked.server for each in measure(name, asked.kind, asked.seconds)]
    if found:
        worst = max(found, key=lambda each: each.delays.worst())
        over = sum(each.delays.worst() > 100 for each in found)
        print(
            f"\n{len(found)} kinds; worst {worst.delays.worst():.1f} ms ({worst.kind.server}, {worst.kind.name}); "
            f"{over} above 100 ms"
        )


if __name__ == "__main__":
    main()
