"""One change for many subscribers: deliveries a second of the broker, of a raw WebSocket fan-out, and of MQTT.

python -m benchmarks.broker_fanout [--subscribers 200] [--messages 500] [--repeat 2] [--systems events,websocket,...]
Each system is a process of its own; another holds all subscribers, which read and count; this one publishes, eight
changes at a time where they are acknowledged. The broker serves a channel by server-sent events and by WebSocket,
without a journal; each publication is two triples, so that there is a row more. `raw` is a Starlette application that
sends a text of the same length to every WebSocket; `mqtt` is mosquitto with quality 0 and the same text. Deliveries a
second are from the first publication to the last delivery at the last subscriber, the best of the repetitions; CPU is
of the server, a delivery. Clients are on the same cores as the server.
"""

import argparse
import asyncio
import json
import multiprocessing as mp
import re
import selectors
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final

import psutil

from benchmarks.broker_http import PROGRAM, QUERY, port_of
from benchmarks.measure import free_port
from benchmarks.results import ResultTable
from streamgauge.servers.broker.contract import Notification
from streamgauge.servers.broker.representations import told

MARK: Final = b'"publications":'
"""Once in each text that is delivered."""
TEXT: Final = json.dumps(
    told(Notification("c", 1, (1,), (("<urn:s1000>", '"1000"'),), (), 1_800_000_000_000, 90), ("x", "n")),
    separators=(",", ":"),
).encode()
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
    made = socket.create_connection(("127.0.0.1", port))
    for said, ends in greeting.says:
        made.sendall(said or mqtt_connect(name))
        got = b""
        while not got.endswith(ends or b"\x20\x02\x00\x00"):
            got += made.recv(1)
    made.setblocking(False)
    return made


def count(port: int, greeting: Greeting, subscribers: int, pipe: Connection) -> None:
    """A process: subscribe, then count what each gets; for each number of messages that is asked, when all have it."""
    chosen = selectors.DefaultSelector()
    got = [0] * subscribers
    tails = [b""] * subscribers
    held = [opened(port, greeting, f"s{n}") for n in range(subscribers)]
    for n, each in enumerate(held):
        chosen.register(each, selectors.EVENT_READ, n)
    pipe.send("subscribed")
    while messages := pipe.recv():
        target = [each + messages for each in got]
        missing = set(range(subscribers))
        while missing:
            for key, _ in chosen.select():
                n = key.data
                data = tails[n] + held[n].recv(2**18)
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
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for body in left:
            head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\n"
            writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            said = await reader.readuntil(b"\r\n\r\n")
            length = re.search(rb"content-length: (\d+)", said)
            await reader.readexactly(int(length[1]) if length else 0)
        writer.close()

    await asyncio.gather(*(one() for _ in range(UNDER_WAY)))


def posting(port: int, path: str, body: Callable[[int], bytes], kind: str) -> Callable[[int, int], None]:
    """Publishes messages by POST."""
    return lambda first, many: asyncio.run(_posted(port, path, [body(first + n) for n in range(many)], kind))


@contextmanager
def broker(greeting: Greeting) -> Iterator[SystemUnderLoad]:
    """The broker with a channel."""
    words = [*PROGRAM, "broker", "serve", "--port", "0"]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as running:
        try:
            port = port_of(running)
            asyncio.run(_posted(port, "/channels/c", [QUERY.encode()], "application/sparql-query", "PUT"))
            row = posting(port, "/publish", lambda n: f'<urn:s{n}> a <urn:P> ; <urn:n> "{n}" .'.encode(), "text/turtle")
            yield SystemUnderLoad(port, running.pid, greeting, row)
        finally:
            running.terminate()


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
        for each in list(there):
            await each.send_text(text)
        return Response(b"{}")

    routes = [WebSocketRoute("/", follow), Route("/publish", publish, methods=["POST"])]
    uvicorn.run(Starlette(routes=routes), port=port, log_level="error", ws_per_message_deflate=False)


def awaited(port: int) -> None:
    """Wait until somebody listens at a port."""
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except ConnectionRefusedError:
            time.sleep(0.05)
        else:
            return


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
    made = socket.create_connection(("127.0.0.1", port))
    made.sendall(mqtt_connect("publisher"))
    made.recv(4)
    message = packet(0x30, text_field("c") + TEXT)
    return lambda _first, many: [made.sendall(message) for _ in range(many)] and None


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


SYSTEMS: Final = {
    "events": lambda: broker(EVENTS),
    "websocket": lambda: broker(TALKS),
    "raw": raw,
    "mqtt": mosquitto,
}


def measured(name: str, subscribers: int, messages: int, repeat: int) -> tuple[str, str, str]:
    """System, deliveries a second, and CPU of the server a delivery."""
    here, there = mp.Pipe()
    with SYSTEMS[name]() as served:
        clients = mp.get_context("spawn").Process(
            target=count, args=(served.port, served.greeting, subscribers, there), daemon=True
        )
        clients.start()
        here.recv()
        process, best, cpu = psutil.Process(served.pid), 0.0, 0.0
        first = 1000
        for many in (messages // 10, *[messages] * repeat):
            here.send(many)
            spent, began = sum(process.cpu_times()[:2]), time.monotonic()
            served.publish(first, many)
            ended, once = here.recv()
            first += many
            rate = many * subscribers / (ended - began)
            if not once:
                raise SystemExit(f"{name}: a subscriber got a message more than once")
            if many == messages and rate > best:
                best, cpu = rate, (sum(process.cpu_times()[:2]) - spent) / many / subscribers
        here.send(0)
        clients.join()
    return name, f"{best:,.0f}", f"{1e6 * cpu:.1f} us"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--subscribers", type=int, default=200)
    parser.add_argument("--messages", type=int, default=500)
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--systems", default=",".join(SYSTEMS))
    asked = parser.parse_args()
    print(f"{asked.subscribers} subscribers, {asked.messages} messages of {len(TEXT)} bytes, {sys.platform}")
    with ResultTable("broker_fanout", ("system", "deliveries a second", "server's CPU a delivery")) as table:
        for name in asked.systems.split(","):
            table.add(*measured(name, asked.subscribers, asked.messages, asked.repeat))


if __name__ == "__main__":
    main()
