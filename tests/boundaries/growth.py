"""How much a server grows under clients that send or leave without an end, and what it has given back 10 s later.

`python -m tests.boundaries.growth [broker engine fragments workbench "event sink"]` prints a row for each load: the
most that the process and its children had above what they had when ready, in MiB.
"""

import base64
import gzip
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, TypeAlias

import psutil

from tests.boundaries.sockets import (
    BOUNDARIES,
    GROWTH,
    HERE,
    MEBI,
    SHOWN,
    Boundary,
    Running,
    ask,
    connect,
    flood,
    request,
    started,
)

AT_ONCE, SECONDS, REST_S = 20, 3.0, 10.0
"""Clients of a flood, how long each sends, and how long a server has to give its memory back."""
LEFT: Final = 8 * MEBI
"""Bytes that a server may have 10 s after the last flood beyond what it has after ordinary use."""
LAZY: Final = 200
"""Clients that take nothing."""
HALVES: Final = 400

Load: TypeAlias = Callable[[int, Boundary], None]
"""What clients do to a port; it ends by itself."""


def together(number: int, work: Callable[[], object]) -> None:
    """Do the same in so many threads."""
    threads = [threading.Thread(target=work, daemon=True) for _ in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(4 * SECONDS)


def _post(boundary: Boundary, *headers: str) -> bytes:
    lines = (f"POST {boundary.writes or '/'} HTTP/1.1", HERE, *headers, "Transfer-Encoding: chunked")
    return "".join(f"{line}\r\n" for line in lines).encode()


TURTLE: Final = "Content-Type: text/turtle"
CHUNK: Final = b"2710\r\n" + b"#" * 10_000 + b"\r\n"


def _flooding(begin: Callable[[Boundary], bytes], piece: bytes) -> Load:
    return lambda port, boundary: together(AT_ONCE, lambda: flood(port, begin(boundary), piece, SECONDS))


@contextmanager
def crowd(port: int, number: int, first: bytes) -> Iterator[list[socket.socket]]:
    """So many connections that have sent the same and read nothing."""
    open_ones = []
    try:
        for _ in range(number):
            with suppress(OSError):
                connection = connect(port)
                open_ones.append(connection)
                connection.settimeout(0.5)
                connection.sendall(first)
        yield open_ones
    finally:
        for connection in open_ones:
            connection.close()


def _crowding(number: int, first: Callable[[Boundary], bytes]) -> Load:
    def load(port: int, boundary: Boundary) -> None:
        with crowd(port, number, first(boundary)):
            time.sleep(SECONDS)

    return load


def _packed(port: int, boundary: Boundary) -> None:
    """Bodies of 60 KB that unpack to 60 MB."""
    body = gzip.compress(b"#" * 60 * MEBI)
    head = [f"POST {boundary.writes or '/'} HTTP/1.1", HERE, SHOWN, TURTLE, "Content-Encoding: gzip"]
    text = "\r\n".join([*head, f"Content-Length: {len(body)}", "Connection: close", "", ""]).encode()
    together(AT_ONCE, lambda: ask(port, text, body))


GRAPH: Final = "".join(f"<urn:subject:{n}> <urn:predicate> <urn:object:{n}> .\n" for n in range(40_000)).encode() + b"x"
"""A graph of 40,000 triples in 2 MB, refused for its last line: nothing of it is data."""


def _graph(port: int, boundary: Boundary) -> None:
    """A large graph."""
    lines = [HERE, SHOWN, TURTLE, f"Content-Length: {len(GRAPH)}", "Connection: close"]
    ask(port, request("POST", boundary.graphs or boundary.writes or "/", *lines), GRAPH)


def upgraded(port: int, path: str) -> socket.socket | None:
    """A WebSocket with compression, where the path has one."""
    key = base64.b64encode(bytes(16)).decode()
    lines = [f"GET {path} HTTP/1.1", HERE, SHOWN, "Upgrade: websocket", "Connection: Upgrade"]
    lines += ["Sec-WebSocket-Version: 13", f"Sec-WebSocket-Key: {key}", "Sec-WebSocket-Extensions: permessage-deflate"]
    connection = connect(port)
    with suppress(OSError):
        connection.sendall("\r\n".join([*lines, "", ""]).encode())
        if b" 101 " in connection.recv(4096)[:16]:
            return connection
    connection.close()
    return None


def frame(code: int, data: bytes, *, final: bool = True) -> bytes:
    """A masked frame of a client (RFC 6455, 5.2)."""
    size = struct.pack("!BB", code | 128 * final, 128 | len(data)) if len(data) < 126 else b""
    return (size or struct.pack("!BBH", code | 128 * final, 254, len(data))) + bytes(4) + data


FRAMES: Final = {
    "empty pieces": (frame(1, b"", final=False) + frame(0, b"", final=False) * 5000),
    "large pieces": (frame(1, b"x" * 60_000, final=False) + frame(0, b"x" * 60_000, final=False) * 3),
    "pings": frame(9, b"x" * 125) * 1000,
    "messages": frame(1, b"x" * 60_000) * 5,
}


def _framing(data: bytes) -> Load:
    def send(port: int, path: str) -> None:
        if (connection := upgraded(port, path)) is None:
            return
        until = time.monotonic() + SECONDS
        with connection, suppress(OSError):
            connection.settimeout(0.5)
            while time.monotonic() < until:
                connection.sendall(data)

    def load(port: int, boundary: Boundary) -> None:
        for path in boundary.messages:
            together(AT_ONCE, lambda path=path: send(port, path))

    return load


def _quiet_messages(port: int, boundary: Boundary) -> None:
    """WebSockets that do nothing."""
    for path in boundary.messages:
        opened = [upgraded(port, path) for _ in range(LAZY)]
        time.sleep(1)
        for connection in opened:
            if connection is not None:
                connection.close()


LOADS: Final[dict[str, Load]] = {
    "trailers": _flooding(lambda boundary: _post(boundary) + b"\r\n0\r\n", b"a:b\r\n" * 2000),
    "heads": _flooding(_post, b"a:b\r\n" * 2000),
    "bodies without a token": _flooding(lambda boundary: _post(boundary) + b"\r\n", CHUNK),
    "bodies": _flooding(lambda boundary: _post(boundary, SHOWN, TURTLE) + b"\r\n", CHUNK),
    "packed bodies": _packed,
    "large graphs": lambda port, boundary: together(AT_ONCE, lambda: _graph(port, boundary)),
    "parts of bodies": _crowding(LAZY, lambda boundary: _post(boundary, SHOWN, TURTLE) + b"\r\n" + CHUNK * 30),
    "half heads": _crowding(HALVES, lambda _: b"GET / HTTP/1.1\r\nx: " + b"y" * 60_000),
    "requests whose answers wait": _crowding(LAZY, lambda boundary: request("GET", boundary.reads, HERE, SHOWN) * 500),
    "large answers that wait": _crowding(
        LAZY, lambda boundary: request("GET", boundary.large or boundary.reads, HERE, SHOWN) * 3
    ),
    "quiet WebSockets": _quiet_messages,
    **{f"frames: {name}": _framing(data) for name, data in FRAMES.items()},
}


def use(port: int, boundary: Boundary) -> None:
    """Ordinary use of all that is flooded, one large graph too.

    What is imported, compiled or started when first needed is there then, and the pools of CPython's allocator that a
    large request leaves beside objects in use.
    """
    lines, graph = [HERE, SHOWN, TURTLE, "Connection: close"], b"<urn:a> <urn:p> <urn:o> ."
    packed = gzip.compress(graph)
    for path in {boundary.writes or "/", boundary.graphs or boundary.writes or "/"}:
        ask(port, request("POST", path, *lines, f"Content-Length: {len(graph)}"), graph)
        ask(port, request("POST", path, *lines, f"Content-Length: {len(packed)}", "Content-Encoding: gzip"), packed)
    _graph(port, boundary)
    for path in (boundary.reads, boundary.large or boundary.reads):
        together(AT_ONCE, lambda path=path: ask(port, request("GET", path, HERE, SHOWN, "Connection: close")))
    for path in boundary.messages:
        if (connection := upgraded(port, path)) is not None:
            with connection, suppress(OSError):
                connection.sendall(frame(1, b"{}") + frame(9, b""))
                connection.recv(4096)


class Peak:
    """The most that a server had above what it had when ready, seen every 20 ms."""

    def __init__(self, running: Running) -> None:
        self._running, self._ended, self.most = running, threading.Event(), 0
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        while not self._ended.wait(0.02):
            with suppress(psutil.Error):
                self.most = max(self.most, self._running.grown())

    def take(self) -> int:
        """The most since the last time."""
        most, self.most = self.most, 0
        return most

    def end(self) -> None:
        """Look no more."""
        self._ended.set()


def measured(name: str, folder: Path) -> dict[str, int]:
    """The most bytes of growth under each load, and ``left``: what is there 10 s after the last; both beyond use."""
    boundary = BOUNDARIES[name]
    with started(boundary, folder) as running:
        boundary.prepare(running.ports[0])
        use(running.ports[0], boundary)
        time.sleep(REST_S)
        running.begin()
        peak = Peak(running)
        growth = {}
        for kind, load in LOADS.items():
            load(running.ports[0], boundary)
            growth[kind] = peak.take()
            print(f"{name}, {kind}: {growth[kind] / MEBI:.0f} MiB", file=sys.stderr, flush=True)
        peak.end()
        time.sleep(REST_S)
        growth["left"] = running.grown()
        assert "Traceback" not in running.text, running.text
        assert running.process.is_running()
    return growth


def main(names: list[str]) -> int:
    """Measure; 1 where a server grew by more than it may."""
    wrong = 0
    for name in names or list(BOUNDARIES):
        with TemporaryDirectory() as folder:
            growth = measured(name, Path(folder))
        print(f"{name}, MiB: " + "; ".join(f"{kind} {size / MEBI:.0f}" for kind, size in growth.items()), flush=True)
        wrong += max(growth.values()) > GROWTH or growth["left"] > LEFT
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
