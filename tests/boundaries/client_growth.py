"""How much a client grows beside a server that sends without an end: `python -m tests.boundaries.client_growth`.

Each client is a process of its own for each server; a row is the most that it had above what it had before it asked, in
MiB.
"""

import asyncio
import gzip
import os
import socket
import subprocess
import sys
import threading
from collections import ChainMap
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import httpx

from streamgauge.model.mistake import MistakeError
from streamgauge.servers.broker import LARGEST_MESSAGE
from streamgauge.servers.broker.client import Client
from streamgauge.servers.broker.delivery import _drain, _guarded
from streamgauge.servers.broker.reconnection import BrokerError
from streamgauge.servers.fragments.client import LinkedDataError
from streamgauge.servers.fragments.client.caching_client import CachingHttpClient
from streamgauge.servers.fragments.client.transport import guarded_client
from streamgauge.servers.fragments.live_queries.watch import wall_clock
from streamgauge.sources import open_source
from streamgauge.workbench.rooms.servers.connections import NamedServer
from tests.boundaries.sockets import GROWTH, MEBI
from tests.outgoing.test_clients import EVENTS, OK, answering, piecewise

SECONDS: Final = 8.0
"""How long a client is watched."""

ROW: Final = b'{"s":{"type":"uri","value":"urn:a:subject"},"o":{"type":"literal","value":"of some length"}},'
BEGUN: Final = b'{"head":{"vars":["s","o"]},"results":{"bindings":['
WHOLE: Final = BEGUN + (ROW * (LARGEST_MESSAGE // len(ROW) - 10))[:-1] + b"]}}"
"""An answer of a broker as large as its clients take."""
TOLD: Final = (
    b'data: {"channel":"c","number":%d,"key":"k","publications":[1],"at":1,"removed":{"head":{"vars":[]},"results":'
    b'{"bindings":[]}},"added":%b}\n\n'
)
JSON: Final = OK + b"Notification: 1\r\nContent-Type: application/json\r\n"
BOMB: Final = gzip.compress(bytes(400 * MEBI), 1)
SERVERS: Final = {
    "endless body": piecewise([OK + b"Content-Type: text/turtle\r\n\r\n", *[b"#" * 65_000] * 10_000], 0),
    "endless event": piecewise([EVENTS, *[b"data: " + b"x" * 65_000] * 10_000], 0),
    "endless events": piecewise([EVENTS, *[b"data: {}\n\n" * 6_000] * 10_000], 0),
    "endless rows": piecewise([JSON + b"\r\n" + BEGUN, *[ROW * 650] * 10_000], 0),
    "endless triples": piecewise(
        [OK + b"Content-Type: text/turtle\r\n\r\n", *[b'<urn:s> <urn:p> "%b" .\n' % (b"x" * 50) * 900] * 10_000], 0
    ),
    "endless head": piecewise([OK, *[b"X: " + b"y" * 1000 + b"\r\n"] * 100_000], 0),
    "small chunks": piecewise(
        [OK + b"Content-Type: text/turtle\r\nTransfer-Encoding: chunked\r\n\r\n", *[b"1\r\n#\r\n" * 10_000] * 1_000], 0
    ),
    "packed body": piecewise([OK + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(BOMB) + BOMB], 0),
}  # fmt: skip


OF_SOME: Final = {
    "broker": {
        "whole rows": piecewise([JSON + b"Content-Length: %d\r\n\r\n" % len(WHOLE) + WHOLE], 0),
        "whole notifications": piecewise([EVENTS, *[TOLD % (number, WHOLE) for number in range(1, 4)]], 0),
    },
    "SSE source": {"whole messages": piecewise([EVENTS, *[b"data: " + WHOLE + b"\n\n"] * 3], 0)},
}
"""What clients with this in their names take to the end."""


async def _webhook(url: str) -> None:
    async with _guarded() as client, client.stream("POST", url, extensions={"streamgauge.private": True}) as response:
        await _drain(response)


async def _page(url: str) -> None:
    web = CachingHttpClient(guarded_client(), wall_clock, asyncio.sleep)
    await web.get(url, web.reach(url))


async def _shown_page(url: str) -> None:
    server = NamedServer("k", "fragments", url, None)  # type: ignore[arg-type]
    await server.web.get(url, server.web.reach(url))


async def _shown_rows(url: str) -> None:
    await NamedServer("k", "broker", url, None).broker.rows("c")  # type: ignore[arg-type]


async def _source(url: str) -> None:
    for _ in open_source(f"sse+{url}stream?patience=1000").items():
        pass


async def _rows(url: str) -> None:
    Client(url).rows("c")


async def _notifications(url: str) -> None:
    for _ in Client(url).subscribe("c", patience=0.1):
        pass


CLIENTS: Final[dict[str, Callable[[str], Any]]] = {
    "webhooks": _webhook,
    "workbench, fragments": _shown_page,
    "workbench, broker": _shown_rows,
    "SSE source": _source,
    "fragments client": _page,
    "broker client": _rows,
    "broker subscriber": _notifications,
}


def _peak() -> int:
    """The most bytes that this process had: ``ru_maxrss`` would be that of its parent where the parent had more."""
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


def _child(name: str, url: str) -> None:
    """Ask for as long as it takes, at most ``SECONDS``; prints the most growth (bytes)."""
    before = _peak()

    def asked() -> None:
        with suppress(httpx.HTTPError, BrokerError, LinkedDataError, MistakeError, OSError):
            asyncio.run(CLIENTS[name](url))

    asking = threading.Thread(target=asked, daemon=True)
    asking.start()
    asking.join(SECONDS)
    print(_peak() - before, flush=True)
    os._exit(0)


@contextmanager
def _asking(name: str, port: int) -> Iterator["subprocess.Popen[str]"]:
    words = [sys.executable, "-m", "tests.boundaries.client_growth", name, f"http://127.0.0.1:{port}/"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def growths(client: str) -> dict[str, int]:
    """The most bytes that a client grew beside each server."""
    further = [servers for part, servers in OF_SOME.items() if part in client]
    return {name: _growth(client, answer) for name, answer in ChainMap(*further, SERVERS).items()}


def _growth(client: str, answer: Callable[[socket.socket], None]) -> int:
    with answering(answer) as port, _asking(client, port) as process:
        said, _ = process.communicate(timeout=10 * SECONDS)
        return int(said)


def main(names: list[str]) -> int:
    """Measure; 1 where a client grew by more than it may."""
    wrong = 0
    for name in names or list(CLIENTS):
        result = growths(name)
        print(
            f"{name}, MiB: " + "; ".join(f"{server} {size / MEBI:.0f}" for server, size in result.items()), flush=True
        )
        wrong += max(result.values()) > GROWTH
    return min(wrong, 1)


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[2].startswith("http"):
        _child(*sys.argv[1:])
    else:
        sys.exit(main(sys.argv[1:]))
