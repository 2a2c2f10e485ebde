"""A sink that serves its messages as server-sent events, from its own thread, and buffers the newest ones."""

import asyncio
import socket
from collections import deque
from dataclasses import dataclass
from itertools import islice
from random import Random
from threading import Condition, Event, Lock, Thread

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from streamgauge.model.mistake import obstacle
from streamgauge.servers.http.access import Guard, TokenError, check_tokens
from streamgauge.servers.http.health import HealthRoutes
from streamgauge.servers.http.replies import problem
from streamgauge.servers.http.server import PortError, Serving, listening
from streamgauge.sources.contract import Address, Delivery, SourceError, read_options
from streamgauge.sources.decoders import shorter
from streamgauge.sources.sse.events import END, MISSED, write_event

_BATCH = 64 * 1024
"""Bytes per write to one client; a single larger event is written whole."""


@dataclass(frozen=True, slots=True)
class SseOptions:
    """Options of a sink: ``buffer`` events and ``memory`` bytes are kept, for at most ``clients`` with the ``token``.

    ``limit`` is the size of a message (bytes), ``wait`` how long to wait for slow clients before events are dropped,
    ``stall`` how long a client may read nothing before it is disconnected (ms).
    """

    buffer: int = 10_000
    memory: int = 64 * 2**20
    limit: int = 2**20
    clients: int = 100
    token: str | None = None
    wait: int = 5000
    stall: int = 30_000


@dataclass(slots=True)
class BufferedEvent:
    """A buffered event, and whether any client received it."""

    text: bytes
    delivered: bool = False


class EventBuffer:
    """The newest events, numbered from 1; ``run`` prefixes their ids, so that a restart changes them. Thread-safe."""

    def __init__(self, options: SseOptions, run: str) -> None:
        self._options = options
        self._run = run
        self._changed = Condition()
        self._kept: deque[BufferedEvent] = deque()
        self._bytes = 0
        self._first = 1
        self._clients = 0
        self._taken = 0
        self._lost = 0
        self._why: str | None = None
        self.over = False

    def put(self, message: bytes) -> None:
        """Append a message; waits for clients that are behind, then drops the oldest events."""
        with self._changed:
            self._taken += 1
            text = write_event(message, f"{self._run}.{self._first + len(self._kept)}")
            if len(message) > self._options.limit:
                self._fail(f"{len(message)} bytes are more than the limit, {self._options.limit}")
                return
            # Nobody waits where no client is connected: the newest events are kept for those that come later.
            self._changed.wait_for(lambda: self._room(len(text)) or not self._clients, self._options.wait / 1000)
            while self._kept and self._full(len(text)):
                self._drop()
            self._kept.append(BufferedEvent(text))
            self._bytes += len(text)

    def place(self, last: str | None) -> int:
        """The number after which a client starts.

        ``last`` is its Last-Event-ID: without one it gets only new events, with one of another run all buffered ones.
        """
        with self._changed:
            end = self._first + len(self._kept) - 1
            if last is None:
                return end
            run, _, number = last.rpartition(".")
            # `number[:18]` bounds the work for a number of many digits, which a client could send. A number beyond the
            # end would otherwise skip events that are yet to come.
            return min(int(number[:18]), end) if run == self._run and number.isdecimal() else self._first - 1

    def after(self, place: int) -> tuple[int, bytes, int]:
        """(number of dropped events after ``place``, text of the next events, their last number)."""
        with self._changed:
            # A worked example: events 1 to 40 were dropped, the buffer starts at 41, and a client has received up to
            # 35. It missed 5, its next event is 41, the first of the buffer, and after three more its place is 43.
            missed = max(0, self._first - 1 - place)
            chunks, size = list[bytes](), 0
            for kept in islice(self._kept, place + missed + 1 - self._first, None):
                if chunks and size + len(kept.text) > _BATCH:
                    break
                chunks.append(kept.text)
                size += len(kept.text)
            return missed, b"".join(chunks), place + missed + len(chunks)

    def delivered(self, place: int, behind: int) -> None:
        """Mark the events after ``place`` up to ``behind`` as received by a client."""
        with self._changed:
            # The buffer may have dropped some of them while they were being sent.
            for kept in islice(self._kept, max(0, place + 1 - self._first), max(0, behind + 1 - self._first)):
                kept.delivered = True
            self._changed.notify_all()

    def enter(self) -> bool:
        """Register a client; false if there are too many."""
        with self._changed:
            if self._clients >= self._options.clients:
                return False
            self._clients += 1
            return True

    def leave(self) -> None:
        """Unregister a client, and wake waiting writers."""
        with self._changed:
            self._clients -= 1
            self._changed.notify_all()

    def drain(self, patience: float | None = None) -> Delivery:
        """Wait until all events were received, if any client is connected; nothing may be put afterwards."""
        with self._changed:
            self._changed.wait_for(
                lambda: not self._clients or all(kept.delivered for kept in self._kept),
                shorter(self._options.wait / 1000, patience),
            )
            for kept in self._kept:
                self._let_go(kept)
            self.over = True
            return Delivery(self._taken - self._lost, self._lost, self._why)

    def _room(self, size: int) -> bool:
        # An event that some client has received may be dropped, although slower clients then miss it: one slow client
        # must not delay all others.
        return not self._full(size) or self._kept[0].delivered

    def _full(self, size: int) -> bool:
        return len(self._kept) >= self._options.buffer or self._bytes + size > self._options.memory

    def _drop(self) -> None:
        kept = self._kept.popleft()
        self._first += 1
        self._bytes -= len(kept.text)
        self._let_go(kept)

    def _let_go(self, kept: BufferedEvent) -> None:
        if not kept.delivered:
            self._fail("no client took it while it was kept")

    def _fail(self, why: str) -> None:
        self._lost += 1
        self._why = self._why or why


_BEAT = 10.0
"""Seconds of silence after which a comment shows that the connection lives."""
_GRACE = 1
"""Seconds for clients to receive the final event."""
_SPARE = 20
"""Connections beyond ``clients``, to refuse further clients with a reason."""
_HEAD = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-store"), (b"x-accel-buffering", b"no")]


def open_event_sink(address: Address) -> "SseSink":
    """Serve events at an address; SourceError if the port is taken, or the address is public and has no token."""
    if address.scheme != "sse+http":
        raise SourceError(f"{address.text}: events are served over http only: put a proxy with TLS before it")
    return SseSink(address, read_options(SseOptions, address), Random())


class SseSink:
    """Serves each message as an event to every client, at ``url``."""

    def __init__(self, address: Address, options: SseOptions, random: Random) -> None:
        self._address = address
        self._buffer = EventBuffer(options, f"{random.getrandbits(48):x}")
        self._feed = EventResponses(self._buffer, options)
        self._lock = Lock()
        self._result: Delivery | None = None
        tokens = () if options.token is None else (options.token,)
        try:
            check_tokens(address.host, tokens)
            sockets = listening(address.host, 80 if address.port is None else address.port)
        except TokenError as error:
            raise SourceError(f"{address.text}: {error}") from error
        except PortError as error:
            raise SourceError(f"{address.text}: cannot listen there: {obstacle(error.__cause__ or error)}") from error
        path = address.path or "/"
        host = f"[{address.host}]" if ":" in address.host else address.host
        self.url = f"http://{host}:{sockets[0].getsockname()[1]}{path}"
        healthy = HealthRoutes()
        routes = [Route(path, self._feed, methods=["GET"])]  # first: a sink may have any path
        routes += [Route("/health", healthy.health), Route("/ready", healthy.ready)]
        free = {"/health", "/ready"} - {path}
        app = Starlette(routes=routes, middleware=[Middleware(Guard, tokens=tokens, free=free)])
        settings = {"lifespan": "off", "ws": "none", "timeout_graceful_shutdown": _GRACE}
        self._server = Serving(
            app, address.host, 0, lambda: None, connections=options.clients + _SPARE, settings=settings
        )
        self._running = Event()
        self._thread = Thread(target=self._run, args=(sockets,), name="sse", daemon=True)
        self._thread.start()
        self._running.wait()

    def send(self, message: bytes, key: str | None = None) -> None:  # noqa: ARG002
        """Send one message, which must be UTF-8 text; ``key`` is ignored, since events have none."""
        if self._result is not None:
            raise SourceError(f"{self._address.text}: the sink is closed")
        try:
            message.decode()
        except UnicodeDecodeError as error:
            raise SourceError(f"{self._address.text}: server-sent events are UTF-8 text: {error}") from error
        self._buffer.put(message)
        self._loop.call_soon_threadsafe(self._feed.ring)

    def close(self, patience: float | None = None) -> Delivery:
        """Wait for clients that are behind, send all of them the end, and stop; all that within ``patience`` (s)."""
        with self._lock:
            if self._result is None:
                self._result = self._buffer.drain(None if patience is None else max(0.0, patience - _GRACE))
                self._loop.call_soon_threadsafe(self._feed.ring)
                self._server.should_exit = True
                self._thread.join()
            return self._result

    def _run(self, sockets: list[socket.socket]) -> None:
        """Serve on the loop of all servers (uvloop), whose small objects keep less memory than asyncio's own."""
        with asyncio.Runner(loop_factory=self._server.config.get_loop_factory()) as runner:
            runner.run(self._serve(sockets))

    async def _serve(self, sockets: list[socket.socket]) -> None:
        self._loop = asyncio.get_running_loop()
        self._running.set()
        await self._server.serve(sockets=sockets)


class EventResponses:
    """Streams the events of a buffer to clients over HTTP."""

    def __init__(self, buffer: EventBuffer, options: SseOptions) -> None:
        self._buffer = buffer
        self._options = options
        self._bells: set[asyncio.Event] = set()

    def ring(self) -> None:
        """Wake all clients' responses; in the server's thread."""
        for bell in self._bells:
            bell.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one client until it disconnects or the sink is closed."""
        if scope["method"] == "HEAD":
            await Response(headers={name.decode(): value.decode() for name, value in _HEAD})(scope, receive, send)
            return
        if not self._buffer.enter():
            await problem(503, "too many clients: come again later", {"Retry-After": "5"})(scope, receive, send)
            return
        bell = asyncio.Event()
        self._bells.add(bell)
        # Rings the bell too: a client that leaves while nothing is sent would otherwise count until the next event.
        gone = asyncio.create_task(_until_gone(receive, bell))
        try:
            place = self._buffer.place(Request(scope).headers.get("last-event-id"))
            await send({"type": "http.response.start", "status": 200, "headers": _HEAD})
            await self._give(place, bell, gone, send)
        except (TimeoutError, OSError):
            return  # the client stalled or disconnected
        finally:
            gone.cancel()
            self._bells.discard(bell)
            self._buffer.leave()

    async def _give(self, place: int, bell: asyncio.Event, gone: "asyncio.Task[None]", send: Send) -> None:
        while not gone.done():
            # Before the buffer is read: an event that arrives after that rings again and is not overlooked.
            bell.clear()
            missed, text, behind = self._buffer.after(place)
            if missed:
                text = write_event(str(missed).encode(), name=MISSED) + text
            if text:
                await self._send(text, send)
                self._buffer.delivered(place, behind)
                place = behind
            elif self._buffer.over:
                await self._send(write_event(b"end", name=END), send)
                await send({"type": "http.response.body", "body": b"", "more_body": False})
                return
            else:
                await self._rest(bell, send)

    async def _rest(self, bell: asyncio.Event, send: Send) -> None:
        """Wait for the next event; after ``_BEAT`` of silence send a comment."""
        try:
            await asyncio.wait_for(bell.wait(), _BEAT)
        except TimeoutError:
            await self._send(b": \n\n", send)

    async def _send(self, text: bytes, send: Send) -> None:
        message = {"type": "http.response.body", "body": text, "more_body": True}
        await asyncio.wait_for(send(message), self._options.stall / 1000)


async def _until_gone(receive: Receive, bell: asyncio.Event) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    bell.set()
