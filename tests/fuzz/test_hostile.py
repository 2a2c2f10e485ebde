"""No text that a server takes kills it, fails in it, holds it up or fills its memory: every one is taken or refused."""

import http.client
import json
import math
import socket
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from urllib.parse import quote, urlencode

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from tests.contention import CONTENDED
from tests.fuzz.hostile import Hostile
from tests.fuzz.hosts import TOKEN, Host, host

pytestmark = pytest.mark.server

SUITE = {"broker": 400, "queries": 500, "fragments": 350, "workbench": 150, "event sink": 150}
"""Inputs in the suite."""

PAGES = ("workbench",)
"""Servers that say what they refuse on pages too."""

PROVEN, SEEDS = 25_000, range(100, 104)
"""Inputs of each proof of a server, and their seeds: 100,000 inputs in all."""

MEMORY = 768 * 2**20
"""Bytes that a server may hold at most, whatever it is sent."""

STALL_S = 0.1
"""How long ``/health`` may take on an idle machine: CPU seconds of the server's process, in which it does not wait.

The event loop waits because this process computes, on the loop or in another thread that does not let go of it.
"""

TRIES = 3
"""How often an input is sent again beside which ``/health`` waited too long: it is slow where it is so each time."""

WAITING = 20
"""Connections whose heads wait for an answer."""

BLOCKED_S = 10.0
"""How long it may take by the clock, on a machine that does much else: what waits without computing shows here."""

Request = tuple[str, str, str, str | bytes]
"""Method, path, media type, body."""


def to_broker(drawn: Hostile) -> Request:
    kind = drawn.draw.randrange(10)
    if kind < 2:
        return "PUT", "/channels/made", "application/sparql-query", drawn.query()
    if kind < 4:
        return "POST", "/update", "application/sparql-update", drawn.update()
    if kind < 5:
        return drawn.draw.choice(("PUT", "DELETE")), "/channels/made", "text/plain", ""
    media, body = drawn.graph()
    return "POST", drawn.draw.choice(("/publish", "/delete", "/delete")), media, body


def to_queries(drawn: Hostile) -> Request:
    kind = drawn.draw.randrange(10)
    if kind < 2:
        return "POST", "/queries", "application/sparql-query", drawn.continuous()
    if kind < 3:
        body = {"query": drawn.continuous()[:2_000], "static": drawn.graph()[1], "semantics": drawn.value(2)}
        return "POST", "/queries", "application/json", json.dumps(body)
    if kind < 5:
        return "POST", "/queries", "application/json", drawn.json()
    if kind < 6:
        return "PUT", "/static/a", "text/turtle", drawn.graph()[1]
    if kind < 7:
        return "POST", "/streams", "application/json", drawn.json()
    if kind < 8:
        return "POST", "/streams/urn:s", "application/x-ndjson", element(drawn)
    media, body = drawn.graph()
    media = drawn.draw.choice((media, "application/trig", "application/n-quads", "application/x-jelly-rdf"))
    form = drawn.draw.choice(("", "", "&form=messages", "&form=turtle", "&form=gtfs-realtime", "&form=yabench"))
    return "POST", f"/streams/urn:s?t=now{form}", media, body


def element(drawn: Hostile) -> str:
    """A JSON line whose triples are N-Triples, or what is not far from them."""
    given = {"t": drawn.draw.choice((1, 2**70, -1, "now")), "n": 1, "stream": "urn:s", "add": drawn.graph()[1]}
    return drawn.mostly(json.dumps(given)) if drawn.draw.random() < 0.7 else drawn.json()


def to_fragments(drawn: Hostile) -> Request:
    kind = drawn.draw.randrange(10)
    if kind < 2:
        return "PATCH", "/data", "application/sparql-update", drawn.update()
    if kind < 4:
        operations = [{drawn.draw.choice(("add", "by")): drawn.graph()[1][:20_000]}, drawn.value(2)]
        return "PATCH", "/data", "application/json", drawn.json() if kind == 2 else json.dumps(operations)
    if kind < 7:
        name = drawn.draw.choice(("subject", "object", "values", "predicate", "page", "graph"))
        value = drawn.draw.choice(
            (drawn.term(), drawn.repeated(("", "<<( <urn:a> <urn:b> ", "1", " )>>", "")), drawn.json())
        )
        return "GET", f"/data?{name}={quote(value.encode(errors='replace')[:15_000])}", "", ""
    media, body = drawn.graph()
    return (
        drawn.draw.choice(("POST", "PUT", "DELETE")),
        "/data?subject=urn:t:s"[: drawn.draw.choice((5, 40))],
        media,
        body,
    )


def to_workbench(drawn: Hostile) -> Request:
    kind = drawn.draw.randrange(10)
    if kind < 3:
        return (
            "POST",
            f"/playground/{drawn.draw.choice(('evaluate', 'evaluate?brief', 'diagnose'))}",
            JSON,
            played(drawn),
        )
    if kind < 4:
        return "POST", f"/playground/{drawn.draw.choice(('generate', 'profile'))}", JSON, drawn.json()
    if kind < 5:
        return (
            "POST",
            "/playground/",
            FORM,
            form(query=drawn.continuous(), stream=drawn.graph()[1][:2_000], do=drawn.term()),
        )
    if kind < 6:
        return "POST", "/live/new", FORM, form(query=drawn.continuous(), sources=drawn.draw.choice(SOURCES))
    if kind < 7:
        typed = drawn.draw.choice((element(drawn), drawn.graph()[1]))
        named = drawn.draw.choice(("jsonl", "turtle", "jsonld", "csv", "", "none"))
        return (
            "POST",
            "/live/streams/publish",
            FORM,
            form(stream="urn:s", elements=typed, form=named, time=drawn.number()),
        )
    if kind < 8:
        address = drawn.draw.choice(ADDRESSES)
        return "POST", "/servers/", FORM, form(kind=drawn.draw.choice(("broker", "fragments", "x")), address=address)
    path = drawn.draw.choice(PLACES)
    odd = drawn.draw.choice((drawn.term(), "../../etc/passwd", drawn.json()[:5_000], "\0", "a" * drawn.some(9_000)))
    return "GET", path.replace("%s", quote(odd.encode(errors="replace"))), "", ""


PLACES = (
    "/playground/?s=%s",
    "/playground/?run=%s",
    "/runs/run/%s",
    "/runs/report/%s",
    "/runs/compare?a=%s&b=%s",
    "/runs/watch/run/%s",
    "/live/queries/%s",
    "/servers/broker/%s/",
    "/%s",
)
"""Paths of the workbench, with something odd in them."""

PLAYED = "SELECT * FROM NAMED WINDOW <urn:w> ON <urn:s> [RANGE PT5S STEP PT2S] WHERE { WINDOW <urn:w> { ?s ?p ?o } }"
JSON, FORM = "application/json", "application/x-www-form-urlencoded"
SOURCES = (
    "",
    "",
    "urn:s=no-such-file",
    "sse+http://127.0.0.1:9/x",
    "../../etc/passwd",
    "urn:s=-",
    "kafka://",
    "x" * 5_000,
)
ADDRESSES = (
    "http://169.254.169.254/",
    "http://2130706433/",
    "ftp://a",
    "http://[::1",
    "//",
    "x" * 3_000,
    "http://a:b@c/",
)


def form(**fields: str) -> str:
    """The fields as a form sends them."""
    return urlencode({name: text.encode(errors="replace") for name, text in fields.items()})[:60_000]


def played(drawn: Hostile) -> str:
    """A state of the playground, or other JSON."""
    stream = " | ".join(f"{t}: a p {drawn.some(50)}." for t in range(drawn.some(50)))
    query = drawn.draw.choice((PLAYED, PLAYED, drawn.mostly(PLAYED), drawn.continuous()[:5_000]))
    static = drawn.draw.choice(("", "", drawn.graph()[1][:2_000]))
    semantics = drawn.draw.choice(({}, {}, {"profile": "cqels"}, drawn.value(2)))
    advance = drawn.draw.choice((None, None, 0, 10, 2**70, -1, "x"))
    state = {"query": query, "stream": drawn.mostly(stream), "static": static, "a": semantics, "advance": advance}
    return json.dumps(state) if drawn.draw.random() < 0.8 else drawn.json()


def to_sink(drawn: Hostile) -> Request:
    method = drawn.draw.choice(("HEAD", "POST", "PUT", "DELETE", "OPTIONS"))
    path = drawn.draw.choice(("/x", "/x?token=", "/", "/x/y", f"/x?{quote(drawn.json()[:3_000])}"))
    return method, path, drawn.draw.choice((JSON, "text/event-stream", "")), drawn.json()[: drawn.some(9_000)]


DRAWN = {
    "broker": to_broker,
    "queries": to_queries,
    "fragments": to_fragments,
    "workbench": to_workbench,
    "event sink": to_sink,
}


class Health:
    """Asks ``/health`` again and again on a connection of its own.

    ``slowest`` is the most CPU seconds of the server within one answer, or its wait by the clock where that was less;
    ``longest`` the longest wait by the clock, ``slow`` what was sent while an answer took ``stall``, as ``sent`` says.
    """

    def __init__(self, served: Host, sent: Callable[[], object] = str, stall: float = math.inf) -> None:
        self.slowest = self.longest = 0.0
        self.slow: list[object] = []
        self._served, self._sent, self._stall, self._ended = served, sent, stall, threading.Event()
        self._thread = threading.Thread(target=self._ask)

    def __enter__(self) -> "Health":
        self._thread.start()
        return self

    def __exit__(self, *what: object) -> None:
        self._ended.set()
        self._thread.join()

    def _ask(self) -> None:
        web = http.client.HTTPConnection("127.0.0.1", self._served.port, timeout=60)
        while not self._ended.wait(0.02):
            begun, computed, sent = time.perf_counter(), self._served.cpu(), self._sent()
            web.request("GET", "/health")
            assert web.getresponse().read() is not None
            waited, computed = time.perf_counter() - begun, self._served.cpu() - computed
            self.longest, delay = max(self.longest, waited), min(waited, computed)
            self.slowest = max(self.slowest, delay)
            if delay >= self._stall:
                self.slow += dict.fromkeys((sent, self._sent()))
        web.close()


class Sender:
    """Sends requests to a server; what it answers are statuses, and sentences where it refuses."""

    def __init__(self, kind: str, served: Host) -> None:
        self.statuses = Counter[int]()
        self.again: Callable[[], object] = str
        """Sends what was sent last once more."""
        self._kind, self._served, self._live = kind, served, 0
        self._web = http.client.HTTPConnection("127.0.0.1", served.port, timeout=60)
        self._heads = deque[tuple[socket.socket, bytes]]()

    def send(self, request: Request) -> None:
        method, path, media, body = request
        self.again = partial(self.send, request)
        coded = body if isinstance(body, bytes) else body.encode(errors="replace")
        status, said = self._said(method, path, {"Content-Type": media, "Authorization": f"Bearer {TOKEN}"}, coded)
        self.statuses[status] += 1
        assert status < 500, f"{method} {path} {media} {body[:300]!r}\n{said[:300]!r}\n{self._served.said()}"
        if status >= 400 and status not in (404, 405) and not (self._kind in PAGES and said.startswith(b"<!")):
            assert 10 < len(json.loads(said)["error"]) < 2_000, (method, path, media, body[:300], said)
        if status == 201 and self._kind == "queries" and path == "/queries":
            self._said("DELETE", f"/queries/{json.loads(said)['id']}", {}, b"")
        if status == 303 and path == "/live/new":
            self._live = next(name for name in range(self._live + 1, self._live + 1000) if self._ended(name))
        if status == 201 and self._kind == "broker":
            self._said("DELETE", "/channels/made", {}, b"")

    def _ended(self, name: int) -> bool:
        """Whether a live query of this number was there, and ended; numbers of refused ones are not used again."""
        return self._said("POST", f"/live/queries/q{name}/end", {}, b"")[0] == 303

    def _said(self, method: str, path: str, headers: dict[str, str], body: bytes) -> tuple[int, bytes]:
        try:
            self._web.request(method, path, body, headers)
            reply = self._web.getresponse()
            return reply.status, reply.read()
        except OSError as error:
            raise AssertionError((method, path, body[:500], self._served.said())) from error

    def head(self, head: bytes) -> None:
        """A request's head on a connection of its own, whose answer is read some heads later."""
        self.again = partial(self.head, head)
        plain = socket.create_connection(("127.0.0.1", self._served.port), 60)
        with suppress(OSError):
            plain.sendall(head)
        self._heads.append((plain, head))
        if len(self._heads) > WAITING:
            self._answered(*self._heads.popleft())

    def _answered(self, plain: socket.socket, head: bytes) -> None:
        """The answer to a head, which is right or says what is wrong; no answer at all is one too."""
        with plain, suppress(OSError):
            plain.setblocking(False)
            status = plain.recv(12).decode(errors="replace")[9:]
            assert not status.startswith("5"), (head[:500], status)

    def talk(self, path: str, said: str) -> None:
        """What a client says on a WebSocket of the broker; it is answered, or the connection ends with a reason."""
        self.again = partial(self.talk, path, said)
        with (
            connect(f"ws://127.0.0.1:{self._served.port}{path}", open_timeout=60) as talking,
            suppress(ConnectionClosed),
        ):
            talking.send(said.encode(errors="replace").decode()[:60_000])
            talking.send('{"acknowledge": 1}')
            if path == "/subscribe":
                assert json.loads(talking.recv(60))
        assert talking.close_code != 1011, talking.close_reason

    def close(self) -> None:
        self._web.close()
        while self._heads:
            self._answered(*self._heads.popleft())


def spoken(drawn: Hostile) -> tuple[str, str]:
    """A path of the broker's WebSockets and a message."""
    path = drawn.draw.choice(("/subscribe", "/channels/students/notifications"))
    return path, drawn.draw.choice((drawn.json(), json.dumps({"subscribe": {"sparql": drawn.query(), "alias": "a"}})))


def stalls(served: Host, again: Callable[[], object], stall: float) -> float:
    """How long ``/health`` waits beside an input each time that it is sent: what the machine adds does not recur."""
    delays = []
    for _ in range(TRIES):
        with Health(served) as health:
            again()
            time.sleep(0.1)
        delays.append(health.slowest)
        if health.slowest < stall:
            break
    return min(delays)


def attack(kind: str, served: Host, seed: int, many: int, stall: float) -> Counter[int]:
    """Send so many inputs; the server keeps what this module says, ``/health`` within ``stall`` CPU seconds."""
    drawn, sender = Hostile(seed), Sender(kind, served)
    with Health(served, lambda: sender.again, stall) as health:
        for number in range(many):
            if number % 10 == 9:
                sender.head(drawn.head())
            elif number % 20 == 8 and kind == "broker":
                sender.talk(*spoken(drawn))
            else:
                sender.send(DRAWN[kind](drawn))
    slow = {again: stalls(served, again, stall) for again in health.slow}
    sender.close()
    again = f"{len(slow)} inputs sent again {max(slow.values(), default=0):.3f} s"
    waits = f"/health {health.slowest:.3f} s, by the clock {health.longest:.3f} s, {again}"
    message = f"{waits}, {served.memory() / 2**20:.0f} MiB"
    print(f"{kind}, seed {seed}: {dict(sender.statuses)}, {message}")
    assert served.process.poll() is None, served.said()
    assert not (fault := [again for again, delay in slow.items() if delay >= stall]), (message, str(fault)[:2_000])
    assert health.longest < BLOCKED_S, message
    assert served.memory() < MEMORY, message
    return sender.statuses


@pytest.mark.parametrize("kind", SUITE)
def test_hostile_texts(kind: str) -> None:
    with host(kind) as served:
        statuses = attack(kind, served, 1, SUITE[kind], CONTENDED * STALL_S)
    assert sum(count for status, count in statuses.items() if 400 <= status < 500) > SUITE[kind] // 8
    assert sum(count for status, count in statuses.items() if status < 400) > SUITE[kind] // 20


def test_a_loop_that_computes_is_noticed() -> None:
    """The check of ``/health`` fails for a server that computes for 0.6 s where it answers, on any machine."""
    with host("burning") as served:
        web = http.client.HTTPConnection("127.0.0.1", served.port, timeout=60)

        def burn() -> None:
            web.request("GET", "/burn")
            web.getresponse().read()

        assert stalls(served, burn, CONTENDED * STALL_S) > CONTENDED * STALL_S
        web.close()


@pytest.mark.prove
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", SUITE)
def test_many_hostile_texts(kind: str, seed: int) -> None:
    with host(kind) as served:
        statuses = attack(kind, served, seed, PROVEN, STALL_S)
    assert any(400 <= status < 500 for status in statuses)
