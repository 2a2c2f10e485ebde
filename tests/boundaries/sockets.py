"""Every listening socket: commands that listen, the sockets that they really have, and one set of guards for each."""

import ast
import base64
import re
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import psutil

from streamgauge import servers

SRC = Path(servers.__file__).parents[1]
TOKEN = "sixteen-letters-or-more"
MEBI = 2**20
GROWTH = 64 * MEBI
"""How much a server may grow under any client."""

LISTENS = {
    "Serving",
    "open_sink",
    "create_server",
    "start_server",
    "start_unix_server",
    "bind",
    "serve_forever",
    "run_app",
}
CONNECTS = {"create_connection", "open_connection", "urlopen", "HTTPConnection", "HTTPSConnection"}


def called(tree: ast.AST) -> Iterator[str]:
    """The last name of everything that a module calls."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


@cache
def calls(text: str) -> frozenset[str]:
    """What a module calls; each is asked whether it listens and whether it connects."""
    return frozenset(called(ast.parse(text)))


def listens(text: str) -> bool:
    """Whether a module may listen: it calls one of ``LISTENS`` (``bind`` of a socket)."""
    return not LISTENS.isdisjoint(calls(text) - ({"bind"} if "import socket" not in text else set()))


def connects(text: str) -> bool:
    """Whether a module may connect by itself: it calls one of ``CONNECTS``, or makes a client of a library."""
    clients = {"AsyncHTTPTransport", "HTTPTransport", "Producer", "Consumer", "AdminClient"}
    return '"paho.mqtt.client"' in text or not (CONNECTS | clients).isdisjoint(calls(text))


@dataclass(frozen=True)
class Boundary:
    """A command that listens. ``open`` are paths that need no token, ``writes`` takes bodies."""

    words: Callable[[Path], list[str]]
    writes: str = ""
    reads: str = "/health"
    public: bool = False
    """Whether anybody may read, under any name: what is read is published."""
    stays: bool = True
    """Whether it stays when its terminal is closed, as servers do."""
    messages: tuple[str, ...] = ()
    """Paths of WebSockets."""
    streams: tuple[str, ...] = ()
    """Paths of server-sent events."""
    graphs: str = ""
    """What takes graphs, where that is not ``writes``."""
    large: str = ""
    """What is answered at length, once ``prepare`` has been called with the port."""
    prepare: Callable[[int], object] = lambda _port: None


def _tokens(folder: Path) -> list[str]:
    file = folder / "tokens"
    file.write_text(f"{TOKEN}\n")
    file.chmod(0o600)
    return ["--port", "0", "--token-file", str(file)]


def _facts(folder: Path) -> str:
    file = folder / "trains.nq"
    file.write_text("<urn:a> <urn:b> <urn:c> .\n")
    return str(file)


def _query(folder: Path) -> list[str]:
    (folder / "f.rq").write_text(
        "SELECT * FROM NAMED WINDOW <urn:w> ON <urn:s> [RANGE PT1S STEP PT1S] WHERE { WINDOW <urn:w> { ?a ?p ?s } }"
    )
    (folder / "feed.jsonl").touch()
    sink = f"sse+http://127.0.0.1:0/x?token={TOKEN}"
    return [
        "query",
        str(folder / "f.rq"),
        "--stream",
        f"urn:s={folder / 'feed.jsonl'}?follow=1&form=jsonl",
        "--to",
        sink,
        "--json",
    ]


TRIPLES = "".join(f"<urn:s{n}> <urn:p> <urn:o{n}> .\n" for n in range(5000))
EVERY = "SELECT * FROM NAMED WINDOW <urn:w> ON <urn:s> [RANGE PT1S STEP PT1S] WHERE { WINDOW <urn:w> { ?s ?p ?o } }"


def send(port: int, method: str, path: str, body: str, kind: str) -> None:
    """A request that is to succeed."""
    head = request(method, path, HERE, SHOWN, f"Content-Type: {kind}", f"Content-Length: {len(body)}",
                   "Connection: close")  # fmt: skip
    answer = ask(port, head, body.encode())
    assert 200 <= status(answer) < 300, answer


def _channel(port: int) -> None:
    """A channel of 5,000 rows."""
    send(port, "PUT", "/channels/all", "SELECT * { ?s ?p ?o }", "application/sparql-query")
    send(port, "POST", "/publish", TRIPLES, "text/turtle")


def _live_query(port: int) -> None:
    """A query with an answer of 5,000 rows."""
    send(port, "POST", "/queries", EVERY, "application/sparql-query")
    for instant in (0, 5000):
        send(port, "POST", f"/streams/urn:s?t={instant}", TRIPLES, "text/turtle")


BOUNDARIES = {
    "broker": Boundary(
        lambda folder: ["broker", "serve", *_tokens(folder)],
        "/publish",
        messages=("/subscribe", "/channels/all/notifications"),
        streams=("/channels/all/notifications", "/channels/all/notifications?subscriber=me"),
        large="/channels/all/rows",
        prepare=_channel,
    ),
    "engine": Boundary(
        lambda folder: ["engine", "serve", "live", *_tokens(folder)],
        "/queries",
        messages=("/queries/q1/answers",),
        streams=("/queries/q1/answers",),
        graphs="/streams/urn:s?t=5000",
        large="/queries/q1/answers?after=0",
        prepare=_live_query,
    ),
    "fragments": Boundary(
        lambda folder: ["fragments", "serve", _facts(folder), *_tokens(folder)],
        "/trains",
        public=True,
        large="/trains",
        streams=("/trains",),
        prepare=lambda port: send(port, "POST", "/trains?for=600s", TRIPLES, "text/turtle"),
    ),
    "workbench": Boundary(lambda folder: ["ui", str(folder), *_tokens(folder)], "/live/new", large="/playground/"),
    "event sink": Boundary(_query, reads="/x", stays=False, streams=("/x",)),
}


@dataclass
class Running:
    """A started boundary: its process, the ports that it listens at, the text that it printed so far."""

    boundary: Boundary
    process: psutil.Process
    ports: list[int]
    log: Path
    resident: int = field(default=0)

    @property
    def text(self) -> str:
        return self.log.read_text(errors="replace")

    def family(self) -> list[psutil.Process]:
        """The process and all that it started."""
        return [self.process, *self.process.children(recursive=True)]

    def begin(self) -> None:
        """What it has now is what growth begins from."""
        self.resident = sum(process.memory_info().rss for process in self.family())

    def grown(self) -> int:
        """Bytes that it has more than when it was ready."""
        return sum(process.memory_info().rss for process in self.family()) - self.resident


def _ports(process: psutil.Process) -> list[int]:
    results = set()
    for item in (process, *process.children(recursive=True)):
        with suppress(psutil.Error):
            results |= {c.laddr.port for c in item.net_connections("inet") if c.status == psutil.CONN_LISTEN}
    return sorted(results)


@contextmanager
def started(boundary: Boundary, folder: Path) -> Iterator[Running]:
    """Start a command until it listens; ended by SIGTERM."""
    log = folder / "log"
    with log.open("wb") as file:
        command = [sys.executable, "-m", "streamgauge", *boundary.words(folder)]
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=file, stderr=file)
    try:
        process, until = psutil.Process(child.pid), time.monotonic() + 120
        while not (ports := _ports(process)):
            assert child.poll() is None, log.read_text()
            assert time.monotonic() < until, log.read_text()
            time.sleep(0.05)
        for port in ports:
            ask(port, b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
        running = Running(boundary, process, ports, log)
        running.begin()
        yield running
    finally:
        child.terminate()
        try:
            child.wait(30)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait(30)


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), 15)


def ask(port: int, *pieces: bytes) -> bytes:
    """What is answered, until the connection ends or nothing comes."""
    with connect(port) as connection:
        with suppress(OSError):
            for piece in pieces:
                connection.sendall(piece)
        answer = b""
        with suppress(OSError):
            while part := connection.recv(65_536):
                answer += part
                if b"text/event-stream" in answer:
                    break
        return answer


def status(answer: bytes) -> int:
    """The status of an answer; 0 without one."""
    match = re.match(rb"HTTP/1\.1 (\d{3}) ", answer)
    return int(match[1]) if match else 0


def request(method: str, path: str, *headers: str) -> bytes:
    """The head of a request."""
    return "\r\n".join([f"{method} {path} HTTP/1.1", *headers, "", ""]).encode()


def _get(path: str, *headers: str) -> bytes:
    return request("GET", path, *headers, "Connection: close")


SHOWN = f"Authorization: Bearer {TOKEN}"
HERE = "Host: 127.0.0.1"


def flood(port: int, begin: bytes, piece: bytes, seconds: float = 2.0) -> int:
    """Bytes that a server takes of what has no end."""
    taken, until = 0, time.monotonic() + seconds
    with connect(port) as connection, suppress(OSError):
        connection.sendall(begin)
        while time.monotonic() < until:
            connection.sendall(piece)
            taken += len(piece)
    return taken


def long_head(port: int, boundary: Boundary) -> str:
    """One read with a head of 100 KB."""
    head = b"".join(b"x-%d: %s\r\n" % (n, b"y" * 80) for n in range(1100))
    code = status(ask(port, b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n" + head + b"\r\n"))
    return "" if code == 431 else f"a head of 100 KB is answered {code}"


def endless_fields(port: int, boundary: Boundary) -> str:
    """Trailers, a field of the head, an extension of a chunk without an end."""
    post = f"POST {boundary.writes or '/'} HTTP/1.1\r\n{HERE}\r\nTransfer-Encoding: chunked\r\n".encode()
    floods = {
        "trailers": (post + b"\r\n0\r\n", b"a:b\r\n" * 2000),
        "a trailer": (post + b"\r\n0\r\nX: ", b"x" * 20_000),
        "a chunk": (post + b"\r\n1;x=", b"x" * 20_000),
        "a head": (post, b"a:b\r\n" * 2000),
    }
    taken = {kind: flood(port, *pieces) for kind, pieces in floods.items()}
    return "; ".join(f"{kind}: {size} bytes were taken" for kind, size in taken.items() if size > 16 * MEBI)


def half_heads(port: int, boundary: Boundary) -> str:
    """Connections without a head, more than the event sink has places."""
    halves = [connect(port) for _ in range(150)]
    try:
        for half in halves:
            half.sendall(b"GET / HTTP/1.1\r\n")
        code = status(ask(port, _get(boundary.reads, HERE, SHOWN)))
        return "" if code == 200 else f"beside half heads another client gets {code}"
    finally:
        for half in halves:
            half.close()


def two_hosts(port: int, boundary: Boundary) -> str:
    code = status(ask(port, _get(boundary.reads, HERE, "Host: b.example", SHOWN)))
    return "" if code == 400 else f"two hosts are answered {code}"


def foreign_page(port: int, boundary: Boundary) -> str:
    """Pages of other origins change nothing, and read what is public only."""
    evil = "Origin: http://evil.example"
    post = request("POST", boundary.writes or "/", HERE, evil, "Content-Length: 0", "Connection: close")
    codes = [status(ask(port, post))]
    if not boundary.public:
        codes.append(status(ask(port, _get(boundary.reads, HERE, evil, SHOWN))))
    return "" if all(code in (401, 403, 405) for code in codes) else f"a foreign page gets {codes}"


def nobody(port: int, boundary: Boundary) -> str:
    """Without a token, or with another, nothing is read that is not public, and nothing is changed."""
    wrong = "Authorization: Bearer another-of-sixteen-letters"
    requests = []
    for header in ([], [wrong]):
        if boundary.writes:
            lines = [
                f"POST {boundary.writes} HTTP/1.1",
                HERE,
                *header,
                "Content-Length: 0",
                "Connection: close",
                "",
                "",
            ]
            requests.append("\r\n".join(lines).encode())
        if not boundary.public:
            requests += [_get(path, HERE, *header) for path in ("/metrics", "/x", "/queries", "/channels", "/runs/")]
    codes = [status(ask(port, request)) for request in requests]
    return "" if set(codes) == {401} else f"without a token: {codes}"


def aborted_upload(port: int, boundary: Boundary) -> str:
    lines = [f"POST {boundary.writes or '/'} HTTP/1.1", HERE, SHOWN]
    head = "\r\n".join([*lines, "Content-Type: text/turtle", "Content-Length: 100", "", "abc"])
    for _ in range(3):
        with connect(port) as connection:
            connection.sendall(head.encode())
    return ""


def another_coding(port: int, boundary: Boundary) -> str:
    if not boundary.writes:
        return ""
    lines = [f"POST {boundary.writes} HTTP/1.1", HERE, SHOWN, "Content-Encoding: rot13", "Content-Type: text/turtle"]
    code = status(ask(port, "\r\n".join([*lines, "Content-Length: 3", "Connection: close", "", "abc"]).encode()))
    return "" if code in (400, 415) else f"another content coding is answered {code}"


def invalid_frames(port: int, boundary: Boundary) -> str:
    """Frames that are invalid, and pings whose answers nobody takes."""
    key = base64.b64encode(bytes(16)).decode()
    upgrade = [
        HERE,
        SHOWN,
        "Upgrade: websocket",
        "Connection: Upgrade",
        "Sec-WebSocket-Version: 13",
        f"Sec-WebSocket-Key: {key}",
    ]
    for path in ("/sepa/subscribe", "/subscribe", "/queries/q1/answers", boundary.reads):
        with connect(port) as connection, suppress(OSError):
            connection.sendall("\r\n".join([f"GET {path} HTTP/1.1", *upgrade, "", ""]).encode())
            if status(connection.recv(4096)) == 101:
                connection.sendall(b"\x81\xff" + struct.pack("!Q", 2**40) + bytes(4))
                connection.recv(4096)
    return ""


Check = Callable[[int, Boundary], str]

CONFORMANCE: tuple[Check, ...] = (
    long_head, endless_fields, half_heads, two_hosts, foreign_page, nobody, aborted_upload, another_coding,
    invalid_frames,
)  # fmt: skip
"""What each listening socket is held to; each gives what it found wrong, empty for nothing."""


def violations(port: int, boundary: Boundary, checks: Sequence[Check] = CONFORMANCE) -> list[str]:
    """What is wrong with a socket."""
    return [f"{check.__name__}: {wrong}" for check in checks if (wrong := check(port, boundary))]
