"""HTTP/1.1 connections of clients, bounded in bytes and time: those that send or take nothing are closed."""

import asyncio
import socket
from collections.abc import Callable, Mapping
from enum import IntEnum, auto
from functools import partial
from typing import Any, Final

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from streamgauge.servers.http.fanout import CONNECTION, PUSH
from streamgauge.servers.http.heads import (
    HEAD,
    HEADS,
    PLAIN_PATH,
    PLAIN_TARGET,
    BadHead,
    HeadBytes,
    LongHeadError,
    PromptAnswer,
    PromptPost,
    encoded_target,
    head_fault,
)
from streamgauge.servers.http.replies import header_lines
from streamgauge.servers.http.untaken import UntakenWatch

HEAD_PATIENCE_S: Final = 30.0
"""Time for a request's head to arrive, also for the first one of a connection."""

LINGER_S: Final = 5.0
"""How long the rest of a request that was already answered is read: closing at once would reset the connection, and
the client would never read the reply (RFC 9112, 9.6)."""

_LONG_WAY: Final = frozenset((b"transfer-encoding", b"expect", b"upgrade"))
"""Fields of requests that always take the application, not the ``prompt``."""

PROMPT_BODY: Final = 2**15
"""Maximum bytes of a body that ``prompt_post`` answers (``benchmarks.service --parts posts``)."""

AWAITED_BODY: Final = 4 * 2**10
"""Maximum bytes of such a body that may come after its head, as most clients send it; they count nowhere meanwhile."""

BODY_PATIENCE_S: Final = 0.5
"""How long it may take to come; then the request takes the application, which bounds its time."""

_READS: Final = frozenset(("GET", "HEAD"))
"""Methods whose bodies have no meaning (RFC 9110, 9.3)."""

_EARLY_S: Final = 0.01
"""How much too early a timer of the event loop may fire."""

_REPLY: Final = b"HTTP/1.1 %s\r\ncontent-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n%s"


PIPELINED: Final = 64
"""Pipelined requests of one connection that may wait for the current one: each takes some KB."""


class PipelineError(Exception):
    """More requests than ``PIPELINED`` wait, which stops the parser."""


class ConnectionPhase(IntEnum):
    """Phases of a connection that have a time limit."""

    HEAD = auto()
    """Waiting for a request's head."""
    LINGERING = auto()
    """Reading the rest of a request that was answered."""
    BODY = auto()
    """Waiting for a small body."""


class PatientHttpProtocol(HttpToolsProtocol):
    """HTTP/1.1 with limits on heads, idleness and pipelining; bodies have their own (``limits``).

    If the application has a ``prompt`` (a ``PromptAnswer``), it answers the first request of each read directly,
    without an asyncio task, provided that no request is under way on the connection and its write buffer is not full.
    A head that equals a known one except for its target is not even parsed. ``prompt_post`` does the same for small
    POSTs: their bodies are collected first.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._timers: dict[ConnectionPhase, asyncio.TimerHandle] = {}
        self._head_bytes = HeadBytes()
        self._fault, self._too_long, self._in_head = "", False, False
        self._prompt: PromptAnswer | None = getattr(self.app, "prompt", None)
        self._post: PromptPost | None = getattr(self.app, "prompt_post", None)
        # What came of the body of a POST that uvicorn does not know of yet.
        self._collected: bytes | None = None
        # `_begun`: a head is incomplete. `_prompted`: a request of this read was answered directly. `_over_already`:
        # the parser has yet to report the end of that request, which uvicorn must not see.
        self._begun = self._prompted = self._over_already = False
        # `_between`: the bytes of the next read begin a request, so they may be compared with known heads.
        self._between, self._requests_in_read = True, 0
        self._line_open = True
        self._read_headers: Mapping[bytes, bytes] = {}
        self._idle_since = 0.0
        # The cycle whose task runs. With pipelining it is not `cycle`, which uvicorn replaces as soon as the next head
        # is parsed.
        self._answering: Any = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for a request; TCP_USER_TIMEOUT ends the connection of a client that vanished without a FIN."""
        super().connection_made(transport)
        self._untaken = UntakenWatch(self.loop, transport)
        self._make_room()
        sock = transport.get_extra_info("socket")
        if (
            sock is not None
            # A service may also listen on a Unix socket, where setting an option of TCP fails.
            and sock.family in (socket.AF_INET, socket.AF_INET6)
            and hasattr(socket, "TCP_USER_TIMEOUT")
        ):
            # Milliseconds that sent bytes may stay unacknowledged; without it the kernel retries for about 15 minutes.
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(1000 * HEAD_PATIENCE_S))
        self._wait()

    @property
    def idle_since(self) -> float | None:
        """When (s of the loop) the connection became idle; ``None`` while a request is under way.

        An incomplete head does not count as a request, or clients could keep all connections by half heads.
        """
        under_way = self.cycle is not None and not self.cycle.response_complete
        return None if under_way or self.transport.is_closing() else self._idle_since

    def _make_room(self) -> None:
        """If this connection exceeds the limit, close the one that has been idle longest."""
        self._idle_since = self.loop.time()
        if self.limit_concurrency is None or len(self.connections) < self.limit_concurrency:
            return
        others = [
            connection
            for connection in self.connections
            if isinstance(connection, PatientHttpProtocol) and connection is not self
        ]
        # id() breaks ties: connections have no order.
        idle = [(since, id(other), other) for other in others if (since := other.idle_since) is not None]
        if idle:
            _, _, oldest = min(idle)
            oldest.give_way()

    def give_way(self) -> None:
        """Close, so that another connection has room."""
        # At once, not when the socket is closed: uvicorn refuses requests while this set is at the limit.
        self.connections.discard(self)
        self._refuse(b"503 Service Unavailable", b"too many connections: send the request at once")

    def connection_lost(self, exc: Exception | None) -> None:
        """Release timers, counted bytes and pipelined requests of a connection that has ended."""
        for phase in ConnectionPhase:
            self._done(phase)
        self._untaken.stop()
        self._head_bytes.begin()
        if self._answering is not None and not self._answering.response_complete:
            self._answering.disconnected = True  # uvicorn notifies only the last one of a pipeline
            self._answering.message_event.set()
        # Their cycles refer to this protocol, and uvicorn starts none of them once the connection has ended.
        self.pipeline.clear()
        super().connection_lost(exc)
        self._let_go()

    def _let_go(self) -> None:
        """Break all reference cycles and drop the request: an idle server never collects cyclic garbage."""
        self.headers, self.url, self._read_headers, self._collected = [], b"", {}, None
        self.scope = self.cycle = self._answering = self.parser = None  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        """Handle bytes of the client; a head that has become too long is refused."""
        between, self._requests_in_read = self._between, 0
        if between and self._prompt is not None and self._answered_again(data, self._prompt):
            return
        # Taken from uvicorn, which cancels and recreates this timer for every request; `_rest` lets the old one go on.
        idle, self.timeout_keep_alive_task = self.timeout_keep_alive_task, None
        self._prompted = False
        self._parse(self._encoded(data) if self._line_open else data)
        if self._collected is not None:
            self._await_body()
        if self._prompted and not self._begun and (self.cycle is None or self.cycle.response_complete):
            self._rest(idle)
            # Only a read that was exactly one request: its bytes can be compared with the next read as a whole.
            if between and self._between and self._requests_in_read == 1:
                HEADS.keep(data, self._read_headers)
        elif idle is not None:
            idle.cancel()
        if self._begun:
            self._wait()

    def on_message_begin(self) -> None:
        """A request begins, perhaps behind others of the same read."""
        super().on_message_begin()
        self._head_bytes.begin()
        self._in_head = True
        # In every scope: which requests will turn into subscriptions is known to the application alone.
        self.scope["extensions"] = {PUSH: {CONNECTION: self}}
        self._begun, self._between = True, False
        self._requests_in_read += 1

    def on_url(self, url: bytes) -> None:
        """A piece of the target."""
        self._count(self._head_bytes.add_target, url)
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header field. Trailers are dropped, so that they never pass for fields of the head (RFC 9110, 6.5.1)."""
        self._count(self._head_bytes.add_field, name, value)
        if self._in_head:
            super().on_header(name, value)

    def on_body(self, body: bytes) -> None:
        """A piece of a body; that of a GET or HEAD has no meaning and is dropped."""
        self._head_bytes.progress()
        if self._collected is not None:
            self._collected += body
        elif self.scope["method"] not in _READS:
            super().on_body(body)

    def write(self, data: bytes) -> bool:
        """Write chunks of a response that has begun.

        False, with nothing written, if the buffer is full or the client gone.
        """
        if self.flow.write_paused or self.transport.is_closing():
            return False
        self.transport.write(data)
        return True

    def on_headers_complete(self) -> None:
        """Start the request whose head is complete; an ambiguous head (request smuggling) is refused."""
        # Raising inside a callback of httptools stops it and becomes `send_400_response`; returning could not stop a
        # read of 64 KB of tiny requests.
        if len(self.pipeline) >= PIPELINED:
            raise PipelineError
        # Fields that come after this are trailers, see `on_header`.
        self._begun = self._in_head = False
        self._head_bytes.progress()
        self._done(ConnectionPhase.HEAD)
        self._fault = head_fault(self.parser.get_http_version(), self.url, self.headers)
        if not self._fault:
            if self._collects():
                self._collected = b""
            elif self._prompt is None or not self._answered(self._prompt):
                super().on_headers_complete()
            return
        # uvicorn reads self.app when it starts the task, so that the refusal is queued behind pipelined requests.
        app, self.app = self.app, BadHead(self._fault)
        try:
            super().on_headers_complete()
        finally:
            # Requests behind this one in the same read are judged by their own heads.
            self.app = app

    def handle_websocket_upgrade(self) -> None:
        """Hand the connection over to a WebSocket unless its head is refused."""
        if self._fault:
            # The sentence quotes bytes of the client inside a string of JSON that is put together by hand.
            self._refuse(b"400 Bad Request", self._fault.encode("latin-1", "replace").replace(b'"', b"'"))
        else:
            super().handle_websocket_upgrade()
            self._let_go()

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        self._answering = cycle
        super()._start_asgi_task(cycle, partial(_while_connected, app))

    def on_message_complete(self) -> None:
        """Record that the request is complete; uvicorn does not know of one that ``prompt`` has answered."""
        self._between = self._line_open = True
        self._head_bytes.progress()
        if self._over_already:
            self._over_already = False
            return
        # The rest of a request that was answered early has come, so the connection may be used again.
        self._done(ConnectionPhase.LINGERING)
        if self._collected is None or self._post is None or not self._posted(self._post, self._collected):
            self._hand_over()
            super().on_message_complete()

    def on_response_complete(self) -> None:
        """After a response: if part of its request is still to come, read it for ``LINGER_S`` at most."""
        self._idle_since = self.loop.time()
        if self.cycle.response_complete and self.cycle.more_body:
            # Aborted, not closed: closing waits until the write buffer is taken, and this client has been given its
            # time.
            self._limit(ConnectionPhase.LINGERING, LINGER_S, self.transport.abort)
        super().on_response_complete()

    def shutdown(self) -> None:
        """End once the request under way is answered; the application learns of one whose body is awaited."""
        self._hand_over()
        super().shutdown()

    def pause_writing(self) -> None:
        """The write buffer is full: watch that the client takes some."""
        super().pause_writing()
        self._untaken.start()

    def resume_writing(self) -> None:
        """The write buffer has drained."""
        self._untaken.stop()
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002
        """Refuse bytes that are not a request, or whose head stopped the parser by its length."""
        if self._too_long:
            self._refuse(
                b"431 Request Header Fields Too Large", b"a request has at most %d bytes beside its body" % HEAD
            )
        else:
            self._refuse(b"400 Bad Request", b"this is not a request of HTTP/1.1")

    def _encoded(self, data: bytes) -> bytes:
        """The bytes of a request with its request line percent-encoded: httptools rejects targets in raw UTF-8."""
        end = data.find(b"\n")
        # A request line may come in several reads; the percent-encoding then goes on in the next one.
        self._line_open = end < 0
        line = data if end < 0 else data[:end]
        return data if line.isascii() else encoded_target(line) + data[len(line) :]

    def _parse(self, data: bytes) -> None:
        super().data_received(data)
        # The parser is gone if these bytes ended the connection or upgraded it to a WebSocket.
        if self.parser is not None and not self.transport.is_closing():
            try:
                self._count(self._head_bytes.read, len(data))
            except LongHeadError:
                self.send_400_response("")

    def _count(self, add: Callable[..., None], *counted: Any) -> None:
        """Count bytes; a LongHeadError stops the parser, which then calls ``send_400_response``."""
        try:
            add(*counted)
        except LongHeadError:
            self._too_long = True
            raise

    def _answered_again(self, data: bytes, prompt: PromptAnswer) -> bool:
        """Answer a request directly if its head, except for its target, is known; whether that was done."""
        line = PLAIN_TARGET.match(data)
        headers = HEADS.headers(data[line.end() :]) if line else None
        # The known head is compared as a whole, so `data` ends with it: nothing of a body or of a next request can hide
        # behind.
        if line is None or headers is None or len(data) > HEAD or not self._free():
            return False
        if not self._answer(prompt, line[1], headers):
            return False
        # Almost always empty here: the deadline of a connection's first head is the only one that can be running.
        if self._timers:
            self._done(ConnectionPhase.HEAD)
        self._rest(self.timeout_keep_alive_task)
        return True

    def _answered(self, prompt: PromptAnswer) -> bool:
        """Answer the parsed request directly if it may be; whether that was done."""
        headers = self._direct(b"GET")
        # A request with a body is not complete yet: its bytes would be taken for the next request.
        if headers is None or headers.get(b"content-length", b"0") != b"0":
            return False
        self._prompted = self._over_already = self._answer(prompt, self.url, headers)
        self._read_headers = headers
        return self._prompted

    def _direct(self, method: bytes) -> Mapping[bytes, bytes] | None:
        """The fields of the parsed head if a request of this ``method`` with it may be answered directly."""
        parser = self.parser
        if self._prompted or parser.get_method() != method or not self._free():
            return None
        # A connection that is to end after the response is left to uvicorn, which knows how to close it.
        if parser.get_http_version() != "1.1" or not parser.should_keep_alive():
            return None
        # The last of repeated fields wins here; those on which decisions rest were refused before if they came twice
        # (`SINGLE`).
        headers = dict(self.headers)
        return headers if _LONG_WAY.isdisjoint(headers) else None

    def _collects(self) -> bool:
        """Whether the parsed head is that of a small POST, which may be answered directly once its body is there."""
        # Other targets are left to uvicorn while it still can refuse them: `_hand_over` is not called by the parser.
        if self._post is None or not PLAIN_PATH.fullmatch(self.url):
            return False
        headers = self._direct(b"POST")
        if headers is None or int(headers.get(b"content-length", b"0")) > PROMPT_BODY:
            return False
        self._read_headers = headers
        return True

    def _posted(self, post: PromptPost, body: bytes) -> bool:
        """Answer a POST directly; whether that was done."""
        reply = post(self.url, self._read_headers, body) if self._free() else None
        if reply is None:
            return False
        self._done(ConnectionPhase.BODY)
        self._collected, self._prompted = None, True
        self.server_state.total_requests += 1
        lines = header_lines((*self.server_state.default_headers, *reply.headers))
        length = b"content-length: %d\r\n\r\n" % len(reply.body)
        self.transport.write(b"".join((STATUS_LINE[reply.status], lines, length, reply.body)))
        return True

    def _await_body(self) -> None:
        """The rest of a collected body is still to come: wait for a short one for a short time."""
        if self.transport.is_closing() or ConnectionPhase.BODY in self._timers:
            return
        if int(self._read_headers[b"content-length"]) > AWAITED_BODY:
            self._hand_over()
        else:
            self._limit(ConnectionPhase.BODY, BODY_PATIENCE_S, self._hand_over)

    def _hand_over(self) -> None:
        """Let the application answer a POST whose body was collected so far, if there is one."""
        body, self._collected = self._collected, None
        if body is not None:
            self._done(ConnectionPhase.BODY)
            super().on_headers_complete()
            if body:
                super().on_body(body)

    def _free(self) -> bool:
        """Whether no request is under way, the write buffer has room, and the limit of connections is not reached."""
        under_way = self.cycle is not None and not self.cycle.response_complete
        if under_way or self.flow.write_paused or self.transport.is_closing():
            return False
        limit = self.limit_concurrency
        # The same test as uvicorn's before it answers 503: a direct answer must not get round the limit.
        return limit is None or (len(self.connections) < limit and len(self.tasks) < limit)

    def _answer(self, prompt: PromptAnswer, target: bytes, headers: Mapping[bytes, bytes]) -> bool:
        """Send the response of ``prompt``, if it has one for the request; whether it was sent."""
        response = prompt(self.scheme or "", target, headers)
        if response is None:
            return False
        # uvicorn counts in the code that is skipped here, and a limit of requests per process reads the count.
        self.server_state.total_requests += 1
        self.transport.write(response)
        return True

    def _rest(self, idle: asyncio.TimerHandle | None) -> None:
        """Become idle; a timer that is already running checks again when it fires, which costs less than a new one."""
        self._idle_since = self.loop.time()
        if idle is None:
            idle = self.loop.call_later(self.timeout_keep_alive, self.timeout_keep_alive_handler)
        self.timeout_keep_alive_task = idle

    def timeout_keep_alive_handler(self) -> None:
        """Close a connection that has been idle for too long."""
        left = self._idle_since + self.timeout_keep_alive - self.loop.time()
        # Without the tolerance a timer that fires a fraction of a millisecond early would be set again for that
        # fraction.
        if left > _EARLY_S:
            self.timeout_keep_alive_task = self.loop.call_later(left, self.timeout_keep_alive_handler)
        else:
            super().timeout_keep_alive_handler()

    def _limit(self, phase: ConnectionPhase, seconds: float, call: Callable[[], None]) -> None:
        self._timers[phase] = self.loop.call_later(seconds, call)

    def _done(self, phase: ConnectionPhase) -> None:
        if (timer := self._timers.pop(phase, None)) is not None:
            timer.cancel()

    def _wait(self) -> None:
        if ConnectionPhase.HEAD not in self._timers:
            self._limit(ConnectionPhase.HEAD, HEAD_PATIENCE_S, self._over)

    def _over(self) -> None:
        self._refuse(b"408 Request Timeout", b"no request came within %d s" % HEAD_PATIENCE_S)

    def _refuse(self, status: bytes, why: bytes) -> None:
        """Answer, unless another response has begun, and close."""
        self._done(ConnectionPhase.HEAD)
        if not self.transport.is_closing():
            # Bytes in the middle of another response would be read as part of its body.
            if self.cycle is None or self.cycle.response_complete or not self.cycle.response_started:
                body = b'{"error": "%s"}' % why
                self.transport.write(_REPLY % (status, len(body), body))
            self.transport.close()


async def _while_connected(app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    """Run an application; a client that disconnects during its request is not an error to log."""
    try:
        await app(scope, receive, send)
    # Starlette raises it where a body is read; nobody is left who could be answered.
    except ClientDisconnect:
        return
