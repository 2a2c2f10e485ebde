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
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Final
from urllib.parse import quote

import psutil
from websockets.asyncio.client import connect

LARGEST: Final = 64 * 2**10
PERIOD_S: Final = 0.02
AFTER_S: Final = 0.3
IDLE_S: Final = 5.0
TOKEN: Final = "a-token-of-the-benchmark"
PEOPLE: Final = 2_000
PROGRAM: Final = [sys.executable, "-c", "from streamgauge.cli.main import main; main()"]
PREFIX: Final = "PREFIX : <urn:t:> "
SELECT, TURTLE, UPDATE = "application/sparql-query", "text/turtle", "application/sparql-update"


@dataclass(frozen=True)
class Ask:
    """A request; the kind of body ``websocket`` is a message to SEPA's address."""

    method: str
    path: str
    body: str = ""
    kind: str = TURTLE


@dataclass(frozen=True)
class Kind:
    """A hostile kind: requests that prepare it, the one that is measured, those that clear up after it."""

    server: str
    name: str
    ask: Ask
    before: tuple[Ask, ...] = ()
    after: tuple[Ask, ...] = ()


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

    async def send(self, ask: Ask) -> tuple[int, bytes]:
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


def select(pattern: str, what: str = "*", tail: str = "") -> str:
    """A SELECT query."""
    return f"{PREFIX}SELECT {what} {{ {pattern} }} {tail}"


def window(pattern: str, what: str = "*", size: str = "RANGE PT10S STEP PT0.1S") -> str:
    """A query over a window of the other client's stream."""
    named = f"FROM NAMED WINDOW <urn:w> ON <urn:s> [{size}]"
    return f"{PREFIX}SELECT {what} {named} WHERE {{ WINDOW <urn:w> {{ {pattern} }} }}"


def within(parts: Iterator[str], room: int = LARGEST - 1000) -> list[str]:
    """As many parts as there is room for."""
    found: list[str] = []
    for each in parts:
        room -= len(each) + 1
        if room < 0:
            break
        found.append(each)
    return found


def pattern_kinds() -> dict[str, str]:
    """Patterns that cost much, over people with :name, :age and :knows."""
    doubling = " ".join(f"BIND(CONCAT(?t{n}, ?t{n}) AS ?t{n + 1})" for n in range(20)).replace("?t0", "?n")
    regexes = ", ".join(within((f'REGEX(?n, "(x|y{n}.z){{2}}")' for n in count()), 60_000))
    return {
        "cross product of three": "?a :name ?b . ?c :name ?d . ?e :name ?f",
        "cross product of six free patterns": " . ".join(f"?s{n} ?p{n} ?o{n}" for n in range(6)),
        "cross product under a filter": "?a :age ?b . ?c :age ?d . ?e :age ?f FILTER(?b + ?d > ?f && ?f > ?b)",
        "cross product of groups": "{ ?a :name ?b } { ?c :name ?d FILTER(STRLEN(?d) > 0) } { ?e :age ?f }",
        "OPTIONAL on loose variables": "?a :name ?b " + " ".join(f"OPTIONAL {{ ?x{n} :age ?y{n} }}" for n in range(6)),
        "MINUS on a loose variable": "{ ?a :name ?b OPTIONAL { ?a :q ?c } } MINUS { ?d :age ?e OPTIONAL { ?d :q ?c } }",
        "NOT EXISTS of a product": "?a :name ?b . ?c :age ?d FILTER NOT EXISTS { ?e :knows ?a . ?f :knows ?c }",
        "200 UNIONs of products": " UNION ".join(f"{{ ?a :name ?b{n} . ?c{n} :age ?d }}" for n in range(200)),
        "a path from everywhere": "?a :knows+ ?b",
        "a path of any length there and back": "?a (:knows|^:knows)* ?b",
        "paths of paths": "?a ((:knows/:knows)*/(:knows|:name)*)* ?b",
        "REGEX with nested counts": '?a :name ?n FILTER REGEX(?n, "((((a{1,50}){1,50}){1,50}){1,50}){1,50}b")',
        "REGEX with a back-reference": '?a :name ?n FILTER REGEX(?n, "^(a*)*\\\\1b(a*)*$")',
        "REGEX of many states": '?a :name ?n FILTER REGEX(?n, "((a?){30}){30}((n?){30}){30}b")',
        "1,900 REGEXes": f"?a :name ?n FILTER(true IN ({regexes}))",
        "REPLACE that grows": '?a :name ?n BIND(REPLACE(?n, ".", "$0$0$0$0$0$0$0$0") AS ?m) FILTER(STRLEN(?m) > 3)',
        "CONCAT that doubles": f"?a :name ?n {doubling} FILTER(STRLEN(?t20) > 3)",
        "VALUES products": " ".join(f"VALUES ?v{n} {{ {' '.join(map(str, range(1200)))} }}" for n in range(4)),
        "IN with 7,000 terms": f"?a :age ?n FILTER(?n + 1 IN ({', '.join(map(str, range(100000, 107000)))}))",
        "500 BINDs": "?a :age ?n " + " ".join(f"BIND(?n * {n} + ?n / 7 AS ?b{n})" for n in range(500)),
        "a subquery of a product": "{ SELECT DISTINCT ?b ?d { ?a :name ?b . ?c :name ?d } } ?e :name ?f",
    }


def broker_kinds() -> Iterator[Kind]:
    """Hostile to the broker: channels, publications, updates, rows, SEPA."""
    channel, gone = "/channels/hostile", (Ask("DELETE", "/channels/hostile"),)

    def created(name: str, query: str) -> Kind:
        path = f"/channels/{quote(name)}"
        return Kind("broker", name, Ask("PUT", path, query, SELECT), (), (Ask("DELETE", path),))

    for name, pattern in pattern_kinds().items():
        yield created(f"channel: {name}", select(pattern))
    yield created("channel: COUNT of a product", select("?a :name ?b . ?c :name ?d", "(COUNT(*) AS ?n)"))
    yield created("channel: GROUP_CONCAT of all", select("?a :name ?b", "(GROUP_CONCAT(?b) AS ?n)"))
    yield created("channel: MIN of texts", select("?a ?p ?b", "(MIN(STR(?b)) AS ?n)"))
    yield created("channel: all triples", select("?a ?p ?b"))
    yield created(
        "channel: ORDER BY of a product", select("?a :name ?b . ?c :name ?d", "*", "ORDER BY ?b ?d LIMIT 1000000")
    )
    for name, query in (("a product", select("?a :name ?b . ?c :name ?d . ?e :name ?f")), ("all", select("?a ?p ?b"))):
        text = json.dumps({"subscribe": {"sparql": query, "alias": "x"}})
        yield Kind("broker", f"SEPA: {name}", Ask("", "", text, "websocket"))
    yield Kind(
        "broker", "rows of all", Ask("GET", f"{channel}/rows"), (Ask("PUT", channel, select("?a ?p ?b"), SELECT),), gone
    )
    free = " . ".join(f"?s{n} ?p{n} ?o{n}" for n in range(6))
    wide = " . ".join(f"?a :made{n} ?b" for n in range(2500))
    for name, text in (
        ("six free patterns", f"INSERT {{ ?s0 :x ?o5 }} WHERE {{ {free} }}"),
        ("a wide template", f"INSERT {{ {wide} }} WHERE {{ ?a :name ?b }}"),
        ("all names go", "DELETE WHERE { ?a :none ?b . ?c :name ?d . ?e ?f ?g }"),
        ("data of 64 KB", f"INSERT DATA {{ {' '.join(within(f':u{n} :p {n} .' for n in count()))} }}"),
    ):
        yield Kind("broker", f"update: {name}", Ask("POST", "/update", PREFIX + text, UPDATE))
    for name, text in graphs().items():
        yield Kind("broker", f"publication: {name}", Ask("POST", "/publish", text), (), (Ask("POST", "/delete", text),))
    chain = "".join(f":x{n} :partOf :x{n + 1} . " for n in range(2000))
    yield Kind("broker", "publication: a transitive chain", Ask("POST", "/publish", f"@prefix : <urn:t:>.{chain}"))


def graphs() -> dict[str, str]:
    """Turtle of 64 KB."""
    return {
        "10,000 triples": f"@prefix : <urn:t:>. :big :q {','.join(within(map(str, count(100000))))} .",
        "1,500 prefixes": "".join(within(f"@prefix p{n}: <urn:{n}:>. p{n}:a p{n}:b p{n}:c." for n in count())),
        "one literal": f"@prefix : <urn:t:>. :long :name '{'a' * 60_000}' .",
        "a deep list": f"@prefix : <urn:t:>. :l :is ({' '.join(within(map(str, count())))}) .",
    }


def fragments_kinds() -> Iterator[Kind]:
    """Hostile to the fragments server: updates, writes by patterns, uploads, pages that compare."""
    free = " . ".join(f"?s{n} ?p{n} ?o{n}" for n in range(6))
    wide = " . ".join(f"?a :made{n} ?b" for n in range(2500))
    for data in ("few", "people"):
        for name, text in (
            ("six free patterns", f"INSERT {{ ?s0 :x ?o5 }} WHERE {{ {free} }}"),
            ("a wide template", f"INSERT {{ {wide} }} WHERE {{ ?a :name ?b }}"),
            ("a product", "INSERT { ?a :near ?c } WHERE { ?a :age ?b . ?c :age ?d . ?e :age ?f }"),
        ):
            yield Kind("fragments", f"update of {data}: {name}", Ask("PATCH", f"/{data}", PREFIX + text, UPDATE))
    for name, text in graphs().items():
        yield Kind("fragments", f"upload: {name}", Ask("POST", "/people?for=60s", text))
    yield Kind(
        "fragments",
        "upload: facts that end together",
        Ask("POST", "/people?for=500ms", graphs()["10,000 triples"].replace("big", "brief")),
    )
    many = [{"replace": {"predicate": "urn:t:age"}, "by": ""} for _ in range(900)]
    yield Kind("fragments", "900 replacements", Ask("PATCH", "/people", json.dumps(many), "application/json"))
    data = " ; ".join(within((f"DELETE DATA {{ :s{n} :age {n} }}" for n in count()), 60_000))
    yield Kind("fragments", "1,600 operations", Ask("PATCH", "/people", PREFIX + data, UPDATE))
    yield Kind(
        "fragments", "all facts of a predicate", Ask("DELETE", f"/people?predicate={quote('urn:t:knows')}&at=now")
    )
    yield Kind("fragments", "a variable twice", Ask("GET", "/people?subject=?x&predicate=?p&object=?x"))
    rows = " ".join(f"(<urn:t:s{n}> UNDEF) (UNDEF <urn:t:s{n}>)" for n in range(32))
    values = quote(f"(?s ?o) {{ {rows} }}")
    yield Kind(
        "fragments", "bindings that overlap", Ask("GET", f"/people?subject=?s&predicate=?p&object=?o&values={values}")
    )
    yield Kind("fragments", "a page of 1,000", Ask("GET", "/people?limit=1000&page=5"))


def queries_kinds() -> Iterator[Kind]:
    """Hostile to the query service: registrations, whose work comes with the other client's elements, and feeding."""
    for name, pattern in pattern_kinds().items():
        yield Kind("queries", f"query: {name}", Ask("POST", "/queries", window(pattern), SELECT))
    tiny = window("?a ?b ?c", size="RANGE PT1H STEP PT0.001S")
    yield Kind("queries", "query: a window each ms", Ask("POST", "/queries", tiny, SELECT))
    elements = within(
        json.dumps({"stream": "urn:s", "time": NOW + n, "add": [[f"<urn:t:f{n}>", "<urn:t:name>", f'"{n}"']]})
        for n in count()
    )
    jsonl = "application/x-ndjson"
    yield Kind(
        "queries",
        "elements: 64 KB",
        Ask("POST", "/streams/urn:h", "\n".join(elements).replace("urn:s", "urn:h"), jsonl),
    )
    far = json.dumps({"stream": "urn:h", "time": NOW + 10**12, "add": [["<urn:a>", "<urn:p>", "<urn:b>"]]})
    every = tiny.replace("ON <urn:s>", "ON <urn:h>").replace("PT1H", "PT1S")
    yield Kind(
        "queries",
        "elements: a jump in time",
        Ask("POST", "/streams/urn:h", far, jsonl),
        (
            Ask("POST", "/queries", every, SELECT),
            Ask("POST", "/streams/urn:h", far.replace(str(NOW + 10**12), str(NOW)), jsonl),
        ),
    )
    yield Kind("queries", "static data: 10,000 triples", Ask("PUT", "/static/urn:d", graphs()["10,000 triples"]))


NOW: Final = time.time_ns() // 1_000_000
KINDS: Final[Mapping[str, Callable[[], Iterator[Kind]]]] = {
    "broker": broker_kinds,
    "fragments": fragments_kinds,
    "queries": queries_kinds,
}


def small(server: str, number: int) -> Ask:
    """What the other client asks for."""
    if server == "broker":
        return Ask("POST", "/publish", f'<urn:t:v{number}> <urn:t:name> "v{number}" .')
    if server == "queries":
        return Ask(
            "POST",
            "/streams/urn:s?t=now",
            f"<urn:t:v{number % 300}> <urn:t:{('name', 'age', 'knows')[number % 3]}> <urn:t:v{number % 7}> .",
        )
    if number % 2:
        return Ask("GET", f"/people?subject={quote(f'urn:t:s{number % PEOPLE}')}")
    return Ask("POST", "/people?for=60s", f"<urn:t:v{number % 50}> <urn:t:seen> {number} .")


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
        """How many tracebacks it has logged."""
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
class Measured:
    """What came of a kind; ``status`` 0 where nothing was answered in time."""

    kind: Kind
    status: int
    took: float
    delays: Delays
    memory: int
    said: str


async def measured(server: Server, kind: Kind, patience: float) -> Measured:
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
    return Measured(kind, status, took, delays, memory, said[:200].decode(errors="replace"))


def left_behind(kind: Kind, said: bytes) -> Sequence[Ask]:
    """What ends a query that was registered."""
    if kind.server != "queries" or b'"id"' not in said[:200]:
        return ()
    return (Ask("DELETE", f"/queries/{json.loads(said)['id']}"),)


async def idle(server: Server) -> Delays:
    """The other client alone."""
    delays, end = Delays(), time.perf_counter() + IDLE_S
    await Other(server).run(delays, lambda: time.perf_counter() > end)
    return delays


async def warm(server: Server) -> None:
    """What is loaded when it is first needed is there: a small one of each request, and the other client alone."""
    http = Http(server.port)
    if server.name == "queries":
        await http.send(Ask("POST", "/queries", window("?a ?b ?c FILTER REGEX(?c, 'a+b*')"), SELECT))
    else:
        path = "/update" if server.name == "broker" else "/few"
        method = "POST" if server.name == "broker" else "PATCH"
        await http.send(Ask(method, path, PREFIX + "DELETE WHERE { :none :none ?x }", UPDATE))
    await idle(server)


def line(cells: Sequence[object]) -> None:
    """A row of a table."""
    print(f"| {' | '.join(map(str, cells))} |", flush=True)


def shown(delays: Delays) -> str:
    """Figures of the other client alone."""
    return f"p50 {delays.share(0.5):.1f}, p99 {delays.share(0.99):.1f}, worst {delays.worst():.1f} ms"


def measure(name: str, words: Sequence[str], patience: float) -> list[Measured]:
    """All kinds of a server, printed as they are measured."""
    found: list[Measured] = []
    with tempfile.TemporaryDirectory() as folder:
        server = Server(name, Path(folder))
        server.start()
        try:
            asyncio.run(warm(server))
            print(f"\n{name}, idle before: {shown(asyncio.run(idle(server)))}; load {os.getloadavg()[0]:.1f}\n")
            line(
                [
                    "kind",
                    "bytes",
                    "status",
                    "its own time, s",
                    "worst delay of the other client, ms",
                    "of its reads",
                    "failed",
                    "MB more",
                ]
            )
            line(["---"] * 8)
            for kind in KINDS[name]():
                if words and not any(word in kind.name for word in words):
                    continue
                assert len(kind.ask.body) <= LARGEST, kind.name
                got = asyncio.run(measured(server, kind, patience))
                found.append(got)
                status: object = got.status or "none"
                if server.ended:
                    status = "the server ended"
                    server.start()
                line(
                    [
                        kind.name,
                        len(kind.ask.body),
                        status,
                        f"{got.took:.2f}",
                        f"{got.delays.worst():.1f}",
                        f"{1000 * max(got.delays.reads):.1f}" if got.delays.reads else "",
                        f"{got.delays.failed} {got.delays.why}".strip(" 0"),
                        got.memory,
                    ]
                )
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
