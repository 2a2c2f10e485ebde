"""The broker through sockets: publications at a fixed rate and who is told, and one change for many subscribers.

python -m benchmarks.broker_http [--parts rate fanout] [--rate 500] [--seconds 8] [--configuration FOLDER] ...

`rate`: to a broker in a process of its own, with a journal. Without a configuration there is one channel (a join of two
patterns), of whose answer each publication (two triples) is a new row. With one, which `streamgauge sepbm generate`
writes, its base load and ontology are served, its channels are there, and its publications come in turn, are deleted in
turn, and come again. `acknowledged` is from the due time of a request to its answer, which comes when it is durable;
`told` from the same to the first notification of it at a channel's first subscriber, by server-sent events, ms. The
client keeps 32 connections. ``--listeners`` subscribers of each channel take all, and count. `cpu` is the broker's
process's, ms a publication.

`fanout`: each of ``--systems`` is a process of its own; another holds all ``--subscribers``, which read and count; this
one publishes ``--messages``, eight changes at a time where they are acknowledged. The broker serves a channel by
server-sent events and by WebSocket, without a journal; each publication is two triples, so that there is a row more.
`raw` is a Starlette application that sends a text of the same length to every WebSocket; `mqtt` is mosquitto with
quality 0 and the same text. Deliveries a second are from the first publication to the last delivery at the last
subscriber, the best of the repetitions; CPU is of the server, a delivery. Clients are on the same cores as the server.
"""

import argparse
import asyncio
import json
import multiprocessing as mp
import os
import selectors
import shutil
import socket
import subprocess
import tempfile
import time
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count, cycle
from math import inf
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final, TypeAlias

from benchmarks.measure import HttpPool, KeptConnection, OneOf, awaited, cpu, free_port, port_of, run_parts, times_text
from benchmarks.results import ResultTable
from streamgauge.harness.process import ServerProcess
from streamgauge.servers.broker.contract import Notification
from streamgauge.servers.broker.delivery import notification_json
from streamgauge.suites.sepbm import BASE, ONTOLOGY, Configuration, read

Publication: TypeAlias = tuple[str, bytes]
"""A path and a graph."""

QUERY = "SELECT * { ?x a <urn:P> ; <urn:n> ?n }"
CONNECTIONS: Final = 32
WARM: Final = 50


class Listener:
    """A subscriber of a channel: how many notifications it got, and when each publication was told."""

    def __init__(self, channel: str, reads: bool) -> None:
        self.channel, self.count, self._reads = channel, 0, reads
        self.told: dict[int, float] = {}

    async def run(self, port: int, ready: asyncio.Semaphore) -> None:
        """Take notifications, in the order of their numbers without a gap; ``count`` is -1 after one."""
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**24)
        writer.write(f"GET /channels/{self.channel}/notifications HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        await reader.readuntil(b"\r\n\r\n")
        ready.release()
        while line := await reader.readline():
            if line.startswith(b"id: "):
                self.count = int(line[4:]) if int(line[4:]) == self.count + 1 else -1
            elif line.startswith(b"data: {") and self._reads:
                self.told |= dict.fromkeys(json.loads(line[6:])["publications"], time.perf_counter())


def rows() -> Iterator[Publication]:
    """Each a new row."""
    for n in count():
        yield "/publish", _row(n)


def in_turn(configuration: Configuration) -> Iterator[Publication]:
    """The sequence's publications, published and deleted by turns."""
    graphs = [
        "".join(f"{' '.join(triple)} .\n" for triple in publication.added).encode()
        for publication in configuration.sequence()
    ]
    for path in cycle(("/publish", "/delete")):
        yield from ((path, graph) for graph in graphs if graph)


async def measure(
    server: ServerProcess,
    channels: Mapping[str, str],
    publications: Iterator[Publication],
    arguments: argparse.Namespace,
) -> tuple[str, ...]:
    """A row of figures, ms."""
    port = port_of(server.address)
    http = HttpPool(port, CONNECTIONS)
    for name, query in channels.items():
        await http.send("PUT", f"/channels/{name}", query.encode(), "application/sparql-query")
    listeners = [Listener(name, reads=n == 0) for name in channels for n in range(arguments.listeners)]
    listening = await begun(listeners, port)
    due: dict[int, float] = {}
    taken: dict[int, float] = {}

    async def publish(at: float) -> None:
        _, reply = await http.send("POST", *next(publications), "text/turtle")
        number = json.loads(reply)["publication"]
        due[number], taken[number] = at, time.perf_counter() - at

    for _ in range(WARM):
        await publish(time.perf_counter())
    due.clear()
    taken.clear()
    planned, spent, start = int(arguments.rate * arguments.seconds), cpu(server.pid), time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for n in range(planned):
            at = start + n / arguments.rate
            await asyncio.sleep(max(0.0, at - time.perf_counter()))
            group.create_task(publish(at))
    took = time.perf_counter() - start
    last = {}
    for name in channels:
        last[name] = int(json.loads((await http.send("GET", f"/channels/{name}"))[1])["notification"])
    while any(0 <= listener.count < last[listener.channel] for listener in listeners):
        await asyncio.sleep(0.05)
    await asyncio.sleep(0.5)
    each_cpu = 1000 * (cpu(server.pid) - spent) / planned
    for task in listening:
        task.cancel()
    once = sum(listener.count == last[listener.channel] for listener in listeners)
    first = [min(listener.told.get(number, inf) for listener in listeners) for number in due]
    late = [came - at for came, at in zip(first, due.values(), strict=True) if came < inf]
    times = (times_text([1000 * second for second in seconds]) for seconds in (list(taken.values()), late))
    return (
        f"{planned / took:.0f}/s",
        *times,
        f"{once} of {len(listeners)}",
        f"{each_cpu:.2f}",
        f"{os.getloadavg()[0]:.1f}",
    )


async def begun(listeners: Sequence[Listener], port: int) -> list[asyncio.Task[None]]:
    """All listeners, when they are subscribed."""
    ready = asyncio.Semaphore(0)
    listening = [asyncio.create_task(listener.run(port, ready)) for listener in listeners]
    for _ in listeners:
        await ready.acquire()
    return listening


def rate(arguments: argparse.Namespace) -> None:
    channels, publications, words = {"c": QUERY}, rows(), list[str]()
    if arguments.configuration is not None:
        stored = read(arguments.configuration)
        channels, publications = {channel.name: channel.query for channel in stored.channels}, in_turn(stored)
        words = [str(stored.folder / BASE), "--ontology", str(stored.folder / ONTOLOGY)]
    words += ["--max-subscribers", str(10**6), "--max-connections", str(10**6)]
    columns = ("rate", "acknowledged", "told", "subscribers that got all once", "cpu", "load")
    with (
        tempfile.TemporaryDirectory() as folder,
        ResultTable("broker_http", columns) as table,
        ServerProcess("broker", "serve", *words, "--journal", f"{folder}/journal") as server,
    ):
        table.add(*asyncio.run(measure(server, channels, publications, arguments)))


MARK: Final = b'"publications":'
"""Once in each text that is delivered."""
TEXT: Final = json.dumps(
    notification_json(Notification("c", 1, (1,), (("<urn:s1000>", '"1000"'),), (), 1_800_000_000_000, 90), ("x", "n")),
    separators=(",", ":"),
).encode()  # fmt: skip
UNDER_WAY: Final = 8


def websocket_head(path: str) -> bytes:
    """The request that opens a WebSocket (RFC 6455, 4.1)."""
    key = b64encode(bytes(16)).decode()
    return (
        f"GET {path} HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n\r\n"
    ).encode()


def packet(kind: int, body: bytes) -> bytes:
    """An MQTT 3.1.1 control packet."""
    size, left = bytearray(), len(body)
    while True:
        left, low = divmod(left, 128)
        size.append(low | (128 if left else 0))
        if not left:
            return bytes([kind]) + bytes(size) + body


def text_field(text: str) -> bytes:
    """A string of MQTT."""
    return len(text).to_bytes(2, "big") + text.encode()


def mqtt_connect(name: str) -> bytes:
    """CONNECT, with a clean session."""
    return packet(0x10, text_field("MQTT") + b"\x04\x02\x00\x00" + text_field(name))


@dataclass(frozen=True, slots=True)
class Greeting:
    """The bytes that a subscriber sends first, and the end of the answer after which it is subscribed."""

    says: tuple[tuple[bytes, bytes], ...]


EVENTS: Final = Greeting(((b"GET /channels/c/notifications HTTP/1.1\r\nHost: localhost\r\n\r\n", b"\r\n\r\n"),))
TALKS: Final = Greeting(((websocket_head("/channels/c/notifications"), b"\r\n\r\n"),))
RAW: Final = Greeting(((websocket_head("/"), b"\r\n\r\n"),))
MQTT: Final = Greeting(((b"", b""), (packet(0x82, b"\x00\x01" + text_field("c") + b"\x00"), b"\x90\x03\x00\x01\x00")))


def opened(port: int, greeting: Greeting, name: str) -> socket.socket:
    """A connection that is subscribed."""
    sock = socket.create_connection(("127.0.0.1", port))
    for message, ends in greeting.says:
        sock.sendall(message or mqtt_connect(name))
        got = b""
        while not got.endswith(ends or b"\x20\x02\x00\x00"):
            got += sock.recv(1)
    sock.setblocking(False)
    return sock


def counting(port: int, greeting: Greeting, subscribers: int, pipe: Connection) -> None:
    """A process: subscribe, then count what each gets; for each number of messages that is asked, when all have it."""
    chosen = selectors.DefaultSelector()
    got = [0] * subscribers
    tails = [b""] * subscribers
    sockets = [opened(port, greeting, f"s{n}") for n in range(subscribers)]
    for n, sock in enumerate(sockets):
        chosen.register(sock, selectors.EVENT_READ, n)
    pipe.send("subscribed")
    while messages := pipe.recv():
        target = [received + messages for received in got]
        missing = set(range(subscribers))
        while missing:
            for key, _ in chosen.select():
                n = key.data
                data = tails[n] + sockets[n].recv(2**18)
                got[n] += data.count(MARK)
                tails[n] = data[-len(MARK) + 1 :]
                if got[n] >= target[n]:
                    missing.discard(n)
        pipe.send((time.monotonic(), got == target))


@dataclass(frozen=True, slots=True)
class SystemUnderLoad:
    """A running system: where, its process, its greeting, and what publishes so many messages."""

    port: int
    pid: int
    greeting: Greeting
    publish: Callable[[int, int], None]


async def _posted(port: int, path: str, bodies: Sequence[bytes], kind: str, method: str = "POST") -> None:
    """Post all, some at a time, each when the one before on its connection is answered."""
    left = iter(bodies)

    async def one() -> None:
        connection = KeptConnection(port)
        for body in left:
            await connection.send(method, path, body, kind)
        connection.close()

    await asyncio.gather(*(one() for _ in range(UNDER_WAY)))


def posting(port: int, path: str, body: Callable[[int], bytes], kind: str) -> Callable[[int, int], None]:
    """Publishes messages by POST."""
    return lambda first, many: asyncio.run(_posted(port, path, [body(first + n) for n in range(many)], kind))


@contextmanager
def broker(greeting: Greeting) -> Iterator[SystemUnderLoad]:
    """The broker with a channel."""
    with ServerProcess("broker", "serve") as server:
        port = port_of(server.address)
        asyncio.run(_posted(port, "/channels/c", [QUERY.encode()], "application/sparql-query", "PUT"))
        yield SystemUnderLoad(port, server.pid, greeting, posting(port, "/publish", _row, "text/turtle"))


def _row(number: int) -> bytes:
    return f'<urn:s{number}> a <urn:P> ; <urn:n> "{number}" .'.encode()


def raw_server(port: int) -> None:
    """A process: a fan-out as anybody would write it with Starlette."""
    import uvicorn
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route, WebSocketRoute
    from starlette.websockets import WebSocket

    there = set[WebSocket]()

    async def follow(websocket: WebSocket) -> None:
        await websocket.accept()
        there.add(websocket)
        await websocket.receive()

    async def publish(request: Request) -> Response:
        text = (await request.body()).decode()
        for websocket in list(there):
            await websocket.send_text(text)
        return Response(b"{}")

    routes = [WebSocketRoute("/", follow), Route("/publish", publish, methods=["POST"])]
    uvicorn.run(Starlette(routes=routes), port=port, log_level="error", ws_per_message_deflate=False)


@contextmanager
def raw() -> Iterator[SystemUnderLoad]:
    """A raw WebSocket fan-out."""
    port = free_port()
    running = mp.get_context("spawn").Process(target=raw_server, args=(port,), daemon=True)
    running.start()
    awaited(port)
    yield SystemUnderLoad(port, running.pid or 0, RAW, posting(port, "/publish", lambda _: TEXT, "text/plain"))
    running.terminate()


def mqtt_published(port: int) -> Callable[[int, int], None]:
    """Publishes by MQTT with quality 0."""
    sock = socket.create_connection(("127.0.0.1", port))
    sock.sendall(mqtt_connect("publisher"))
    sock.recv(4)
    message = packet(0x30, text_field("c") + TEXT)

    def publish(_first: int, many: int) -> None:
        for _ in range(many):
            sock.sendall(message)

    return publish


@contextmanager
def mosquitto() -> Iterator[SystemUnderLoad]:
    """MQTT, with room for all that waits for a subscriber."""
    port, program = free_port(), shutil.which("mosquitto", path="/usr/sbin:/usr/bin:/usr/local/sbin:/opt/homebrew/sbin")
    if program is None:
        raise SystemExit("mosquitto is not installed: leave mqtt out of --systems")
    with tempfile.TemporaryDirectory() as folder:
        lines = f"listener {port} 127.0.0.1\nallow_anonymous true\nmax_queued_messages 0\nmax_queued_bytes 0\n"
        (Path(folder) / "conf").write_text(lines, encoding="utf-8")
        with subprocess.Popen([program, "-c", f"{folder}/conf"], stderr=subprocess.DEVNULL) as running:
            try:
                awaited(port)
                yield SystemUnderLoad(port, running.pid, MQTT, mqtt_published(port))
            finally:
                running.terminate()


SYSTEMS: Final = {"events": lambda: broker(EVENTS), "websocket": lambda: broker(TALKS), "raw": raw, "mqtt": mosquitto}


def delivered(name: str, arguments: argparse.Namespace) -> tuple[str, str, str]:
    """System, deliveries a second, and CPU of the server a delivery."""
    here, there = mp.Pipe()
    with SYSTEMS[name]() as served:
        clients = mp.get_context("spawn").Process(
            target=counting, args=(served.port, served.greeting, arguments.subscribers, there), daemon=True
        )
        clients.start()
        here.recv()
        best, spent, first = 0.0, 0.0, 1000
        for many in (arguments.messages // 10, *[arguments.messages] * arguments.repeat):
            here.send(many)
            before, began = cpu(served.pid), time.monotonic()
            served.publish(first, many)
            ended, once = here.recv()
            first += many
            rate = many * arguments.subscribers / (ended - began)
            if not once:
                raise SystemExit(f"{name}: a subscriber got a message more than once")
            if many == arguments.messages and rate > best:
                best, spent = rate, (cpu(served.pid) - before) / many / arguments.subscribers
        here.send(0)
        clients.join()
    return name, f"{best:,.0f}", f"{1e6 * spent:.1f} us"


def fanout(arguments: argparse.Namespace) -> None:
    print(f"{arguments.subscribers} subscribers, {arguments.messages} messages of {len(TEXT)} bytes")
    with ResultTable("broker_fanout", ("system", "deliveries a second", "server's CPU a delivery")) as table:
        for name in arguments.systems:
            table.add(*delivered(name, arguments))


if __name__ == "__main__":
    run_parts(
        __doc__,
        {"rate": rate, "fanout": fanout},
        rate=500.0,
        seconds=8.0,
        listeners=1,
        configuration=Path,
        subscribers=200,
        messages=500,
        repeat=2,
        systems=OneOf(SYSTEMS),
    )
