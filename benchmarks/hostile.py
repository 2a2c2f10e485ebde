"""Small hostile requests to each server, and how long another client, who asks for little, waits meanwhile.

python -m benchmarks.hostile [--server broker fragments queries] [--kind WORD ...] [--seconds 20]

Each server is a process of its own. The other client sends one small request every 20 ms, over connections that are
kept: to the broker a publication of one triple, to the fragments server the page of one subject and a write of one
fact by turns, to the query service one element. A delay is from when a request is due to its answer, or the CPU time
of the server meanwhile where that is less: other work of the machine does not count. A hostile request has 64 KB or
less; while it is answered, and 0.3 s longer (what it leaves behind meets the next small requests), the delays count as
its kind's. A kind that is still not answered after ``--seconds`` is left. `idle` is the other client alone, before the
kinds and after them. The kinds are in hostile.toml; ``--kind`` chooses those with one of these words in their names.
"""

import asyncio
import json
import os
import re
import sys
import tempfile
import time
import tomllib
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from jinja2 import Environment, StrictUndefined
from websockets.asyncio.client import connect

from benchmarks.measure import HttpPool, KeptConnection, OneOf, options, resident
from benchmarks.results import HOME, ResultTable
from streamgauge.harness.process import ChildProcess

PERIOD_S: Final = 0.02
AFTER_S: Final = 0.3
IDLE_S: Final = 5.0
TOKEN: Final = "a-token-of-the-benchmark"
PROGRAM: Final = [sys.executable, "-c", "from streamgauge.cli.main import main; main()"]


AUTHORIZED: Final = {"Authorization": f"Bearer {TOKEN}"}
LARGEST: Final = 64 * 2**10
PEOPLE: Final = 2_000
NOW: Final = time.time_ns() // 1_000_000
WARM: Final = (
    "PREFIX : <urn:t:> SELECT * FROM NAMED WINDOW <urn:w> ON <urn:s> [RANGE PT10S STEP PT0.1S] "
    "WHERE { WINDOW <urn:w> { ?a ?b ?c FILTER REGEX(?c, 'a+b*') } }"
)
SERVERS: Final = ("broker", "fragments", "queries")
TYPES: Final = {
    "select": "application/sparql-query", "turtle": "text/turtle", "update": "application/sparql-update",
    "json": "application/json", "jsonl": "application/x-ndjson", "jsonld": "application/ld+json",
    "rdfxml": "application/rdf+xml", "trig": "application/trig", "ntriples": "application/n-triples",
}  # fmt: skip


@dataclass(frozen=True)
class Attack:
    """A request; a body of type ``websocket`` is a message to SEPA's address."""

    method: str
    path: str
    kind: str = "turtle"
    body: str = ""


@dataclass(frozen=True)
class AttackKind:
    """A hostile kind: requests that prepare it, the one that is measured, those that clear up after it."""

    server: str
    name: str
    ask: Attack
    before: tuple[Attack, ...] = ()
    after: tuple[Attack, ...] = ()


def times(number: int, text: str, joint: str = " ") -> str:
    """The text so many times."""
    return joint.join(text.format(n=n, m=n + 1) for n in range(number))


def room(text: str, joint: str, size: int = LARGEST - 1000, first: int = 0) -> str:
    """The text as often as there is room in so many characters."""
    parts: list[str] = []
    for n in count(first):
        part = text.format(n=n, t=NOW + n)
        size -= len(part) + 1
        if size < 0:
            return joint.join(parts)
        parts.append(part)
    return ""


def kinds(server: str) -> Iterator[AttackKind]:
    """The kinds of a server, as hostile.toml has them."""
    data = tomllib.loads((HOME / "hostile.toml").read_text(encoding="utf-8"))
    environment = Environment(undefined=StrictUndefined, keep_trailing_newline=True)
    environment.globals.update(times=times, room=room, now=NOW)
    environment.filters["quote"] = quote
    listed, lists = data.pop("kind"), dict[str, dict[str, str | list[str]]]()
    for name, texts in data.items():
        environment.globals[name] = lists[name] = {key: rendered(environment, text) for key, text in texts.items()}
    for entry in listed:
        if entry["server"] == server:
            for it in lists.get(entry.get("each", ""), ("",)):
                yield _kind(entry, environment, it)


def rendered(templates: Environment, text: str | list[str]) -> str | list[str]:
    """A text, or each of several, filled in."""
    return (
        templates.from_string(text).render()
        if isinstance(text, str)
        else [templates.from_string(template).render() for template in text]
    )


def _kind(entry: Mapping[str, Any], templates: Environment, it: str) -> AttackKind:
    name = templates.from_string(entry["name"]).render(it=it)

    def attacks(part: str, number: int = 1) -> tuple[Attack, ...]:
        lists = [[entry["ask"]], entry.get(part, [])][part != "ask"]
        return tuple(
            Attack(*(templates.from_string(text).render(it=it, name=name, n=n) for text in words))
            for n in range(number)
            for words in lists
        )

    return AttackKind(entry["server"], name, attacks("ask")[0], attacks("before", entry.get("before_each", 1)),
                      attacks("after"))  # fmt: skip


@dataclass
class Delays:
    """Delays of the other client, s."""

    all: list[float] = field(default_factory=list)
    reads: list[float] = field(default_factory=list)
    failed: int = 0
    why: str = ""

    def worst(self) -> float:
        """The longest delay of an ordinary request, ms."""
        return 1000 * max(self.all, default=float("nan"))

    def share(self, share: float) -> float:
        """The delay that this share of ordinary requests stays below, ms."""
        order = sorted(self.all)
        return 1000 * order[int(share * (len(order) - 1))] if order else float("nan")


async def fire(http: KeptConnection | HttpPool, ask: Attack) -> tuple[int, bytes]:
    """The status and the body of the answer."""
    return await http.send(ask.method, ask.path, ask.body.encode(), TYPES[ask.kind])


async def sepa(port: int, text: str) -> tuple[int, bytes]:
    """One message to SEPA's address, and the first answer."""
    async with connect(f"ws://127.0.0.1:{port}/subscribe", max_size=None, additional_headers=AUTHORIZED) as socket:
        await socket.send(text)
        reply = await socket.recv()
        data = reply.encode() if isinstance(reply, str) else reply
        return (400 if b"error_description" in data[:2000] else 200), data


def small(server: str, number: int) -> Attack:
    """The request of the other client."""
    if server == "broker":
        return Attack("POST", "/publish", body=f'<urn:t:v{number}> <urn:t:name> "v{number}" .')
    if server == "queries":
        name = ("name", "age", "knows")[number % 3]
        fact = f"<urn:t:v{number % 300}> <urn:t:{name}> <urn:t:v{number % 7}> ."
        return Attack("POST", "/streams/urn:s?t=now", body=fact)
    if number % 2:
        return Attack("GET", f"/people?subject={quote(f'urn:t:s{number % PEOPLE}')}")
    return Attack("POST", "/people?for=60s", body=f"<urn:t:v{number % 50}> <urn:t:seen> {number} .")


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
    (folder / "tokens").chmod(0o600)
    owl = "@prefix owl: <http://www.w3.org/2002/07/owl#> . <urn:t:partOf> a owl:TransitiveProperty ."
    (folder / "axioms.ttl").write_text(owl)
    words = ["--port", "0", "--token-file", str(folder / "tokens")]
    if server == "broker":
        words += ["--journal", str(folder / "journal"), "--ontology", str(folder / "axioms.ttl")]
        return ["broker", "serve", str(folder / "people.nt"), *words]
    if server == "fragments":
        return ["fragments", "serve", str(folder / "people.nt"), str(folder / "few.nt"), *words]
    return ["engine", "serve", "live", *words]


class HostileServer:
    """A server in a process of its own; ``port`` once it is started."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self._words = name, prepared(name, folder)
        self._process: ChildProcess | None = None
        self.port = 0

    def start(self) -> None:
        """Begin, and wait until it serves."""
        self._process = ChildProcess([*PROGRAM, *self._words], piped=False, session=True)
        while (match := re.search(r":(\d+)/\n", self._process.first_words())) is None:
            if self.ended:
                raise SystemExit(f"the {self.name} server did not begin: {self._process.last_words()}")
            time.sleep(0.05)
        self.port = int(match[1])

    def stop(self) -> None:
        """Kill the process of the server."""
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
        return 0 if self._process is None else self._process.first_words(self._process.written()).count("Traceback")

    def cpu(self) -> float:
        """CPU seconds of its process: Linux has a clock for each (clock_getcpuclockid(3)); 0 once it has ended."""
        if self._process is None or self.ended:
            return 0.0
        return time.clock_gettime((~self._process.pid << 3) | 2)

    @property
    def memory(self) -> int:
        """MB of its process."""
        return 0 if self._process is None or self.ended else int(resident(self._process.pid))


class Other:
    """A client whose ordinary requests are timed while the hostile ones run."""

    def __init__(self, server: HostileServer) -> None:
        self._server, self._numbers = server, count()
        self._http = HttpPool(server.port, 1000, **AUTHORIZED)

    async def run(self, delays: Delays, until: Callable[[], bool]) -> None:
        """A small request every ``PERIOD_S``, until that is enough."""
        async with asyncio.TaskGroup() as group:
            at = time.perf_counter()
            while not until():
                number = next(self._numbers)
                group.create_task(self._one(delays, number, at))
                at += PERIOD_S
                await asyncio.sleep(max(0.0, at - time.perf_counter()))

    async def _one(self, delays: Delays, number: int, due: float) -> None:
        ask, computed = small(self._server.name, number), self._server.cpu()
        try:
            status, body = await fire(self._http, ask)
        except (OSError, asyncio.IncompleteReadError):
            delays.failed += 1
            return
        if status >= 400:
            delays.failed += 1
            delays.why = body[:300].decode(errors="replace")
        delays.all.append(min(time.perf_counter() - due, max(0.0, self._server.cpu() - computed)))
        if ask.method == "GET":
            delays.reads.append(delays.all[-1])


@dataclass(frozen=True)
class HostileDelay:
    """The outcome of a kind; ``status`` 0 where nothing was answered in time."""

    kind: AttackKind
    status: int
    took: float
    delays: Delays
    memory: int
    said: str


async def measured(server: HostileServer, kind: AttackKind, patience: float) -> HostileDelay:
    """Fire a kind beside the other client."""
    http, delays, other = KeptConnection(server.port, **AUTHORIZED), Delays(), Other(server)
    for ask in kind.before:
        await fire(http, ask)
    before, over = server.memory, asyncio.Event()
    beside = asyncio.create_task(other.run(delays, over.is_set))
    await asyncio.sleep(0.2)
    delays.all.clear()
    delays.reads.clear()
    began, status, body = time.perf_counter(), 0, b""
    answer: Awaitable[tuple[int, bytes]] = (
        sepa(server.port, kind.ask.body) if kind.ask.kind == "websocket" else fire(http, kind.ask)
    )
    with suppress(TimeoutError, OSError, asyncio.IncompleteReadError):
        status, body = await asyncio.wait_for(answer, patience)
    took = time.perf_counter() - began
    await asyncio.sleep(AFTER_S)
    over.set()
    await beside
    memory = server.memory - before
    with suppress(OSError, asyncio.IncompleteReadError):
        for ask in (*kind.after, *left_behind(kind, body)):
            await fire(KeptConnection(server.port, **AUTHORIZED), ask)
    return HostileDelay(kind, status, took, delays, memory, body[:200].decode(errors="replace"))


def left_behind(kind: AttackKind, body: bytes) -> Sequence[Attack]:
    """The requests that end a query that was registered."""
    if kind.server != "queries" or b'"id"' not in body[:200]:
        return ()
    return (Attack("DELETE", f"/queries/{json.loads(body)['id']}"),)


async def idle(server: HostileServer) -> Delays:
    """The other client alone."""
    delays, end = Delays(), time.perf_counter() + IDLE_S
    await Other(server).run(delays, lambda: time.perf_counter() > end)
    return delays


async def warm(server: HostileServer) -> None:
    """Small requests of each kind, so that all is loaded that is loaded when it is first needed."""
    http = KeptConnection(server.port, **AUTHORIZED)
    if server.name == "queries":
        await fire(http, Attack("POST", "/queries", "select", WARM))
    else:
        path = "/update" if server.name == "broker" else "/few"
        method = "POST" if server.name == "broker" else "PATCH"
        await fire(http, Attack(method, path, "update", "PREFIX : <urn:t:> DELETE WHERE { :none :none ?x }"))
    await idle(server)


def shown(delays: Delays) -> str:
    """Figures of the other client alone."""
    return f"p50 {delays.share(0.5):.1f}, p99 {delays.share(0.99):.1f}, worst {delays.worst():.1f} ms"


COLUMNS: Final = (
    "kind", "bytes", "status", "its own time, s", "worst delay of the other client, ms", "of its reads", "failed",
    "MB more",
)  # fmt: skip


def _measured(server: HostileServer, kind: AttackKind, patience: float, table: ResultTable) -> HostileDelay:
    """One kind of request; a server that it ended is started again."""
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
    delays: list[HostileDelay] = []
    with tempfile.TemporaryDirectory() as folder:
        server = HostileServer(name, Path(folder))
        server.start()
        try:
            asyncio.run(warm(server))
            print(f"\n{name}, idle before: {shown(asyncio.run(idle(server)))}; load {os.getloadavg()[0]:.1f}\n")
            with ResultTable(f"hostile_{name}", COLUMNS) as table:
                chosen = (kind for kind in kinds(name) if not words or any(word in kind.name for word in words))
                delays.extend(_measured(server, kind, patience, table) for kind in chosen)
            print(f"\n{name}: {server.errors} tracebacks in its log")
            print(f"\n{name}, idle after: {shown(asyncio.run(idle(server)))}; load {os.getloadavg()[0]:.1f}")
        finally:
            server.stop()
    return delays


def main() -> None:
    """Time every kind on the chosen servers and print the worst."""
    arguments = options(__doc__, server=OneOf(SERVERS), kind=("",), seconds=20.0)
    delays = [delay for name in arguments.server for delay in measure(name, arguments.kind, arguments.seconds)]
    if delays:
        worst = max(delays, key=lambda delay: delay.delays.worst())
        over = sum(delay.delays.worst() > 100 for delay in delays)
        print(
            f"\n{len(delays)} kinds; worst {worst.delays.worst():.1f} ms ({worst.kind.server}, {worst.kind.name}); "
            f"{over} above 100 ms"
        )


if __name__ == "__main__":
    main()
