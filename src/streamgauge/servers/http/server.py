"""Serving an application: clear heads of requests, patient connections, a server that leaves in good order.

Heads are refused that two servers, or two parts of one, could understand differently (RFC 9112, 3.2 and 6). Connections
are left that bring no request, in time and of a bounded length, or take no answer.
"""

import asyncio
import errno
import gc
import re
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum, auto
from threading import Thread
from types import FrameType
from typing import Any, Final, TypeAlias

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from streamgauge.model.mistake import MistakeError, obstacle
from streamgauge.servers.http.fanout import CONNECTION, PUSH
from streamgauge.servers.http.limits import load_parsers
from streamgauge.servers.http.metrics import PAUSES
from streamgauge.servers.http.replies import problem

SINGLE: Final = frozenset(
    (
        b"host",
        b"content-length",
        b"content-type",
        b"authorization",
        b"idempotency-key",
        b"origin",
        b"last-event-id",
        b"if-modified-since",
        b"if-unmodified-since",
        b"access-control-request-method",
    )
)
"""Fields of which a request has one (RFC 9110, 5.3), and on whose value something is decided here."""

_HOST = re.compile(rb"(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._~!$&'()*+,;=%-]+)(?::[0-9]*)?")
_ABSOLUTE = re.compile(rb"[A-Za-z][A-Za-z0-9+.-]*://([^/?#]*)")


def head_fault(version: str, target: bytes, headers: Sequence[tuple[bytes, bytes]]) -> str:
    """Why a request is refused before anything looks at it, a sentence; empty for one that is clear.

    ``version`` is HTTP's (``1.1``), ``target`` the request's as sent, names of ``headers`` are in lower case.
    """
    seen: set[bytes] = set()
    host: bytes | None = None
    for name, value in headers:
        if name in SINGLE:
            if name in seen:
                return f"the header {name.decode().title()} came more than once: send it once"
            seen.add(name)
            if name == b"host":
                host = value
        elif name == b"transfer-encoding" and any(other == b"content-length" for other, _ in headers):
            return "Content-Length and Transfer-Encoding came together: send one of them"
    if host is None:
        return "" if version == "1.0" else "the header Host is missing: HTTP/1.1 needs it"
    if not _HOST.fullmatch(host):
        return f"the header Host is {host[:80].decode('latin-1')!r}: expected a host, with its port where it has one"
    named = None if target.startswith(b"/") else _ABSOLUTE.match(target)
    if named is not None and named[1].lower() != host.lower():
        return "the request's target names another host than the header Host: send the same in both"
    return ""


class BadHead:
    """The application of a request that is refused for its head: 400, and the connection ends."""

    def __init__(self, sentence: str) -> None:
        self._sentence = sentence

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer."""
        await problem(400, self._sentence, {"Connection": "close"})(scope, receive, send)


HEAD_PATIENCE_S: Final = 30.0
"""How long a request's head may take to arrive, and how long a connection may stay without one."""

TAKE_S: Final = 20.0
"""How long a client may take nothing of what is sent to it."""

LINGER_S: Final = 5.0
"""How long what is left of a request that was answered already is taken, so that its client comes to read why."""

HEAD: Final = 64 * 2**10
"""Bytes that a request's head may have."""

_LONG_WAY: Final = frozenset((b"transfer-encoding", b"expect", b"upgrade"))
"""Fields of requests that are not answered at once."""

_EARLY_S: Final = 0.01
"""How much earlier than due a timer may come."""

_REPLY: Final = b"HTTP/1.1 %s\r\ncontent-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n%s"


class ConnectionPhase(IntEnum):
    """The parts of a connection that may last too long."""

    HEAD = auto()
    """A request's head is to come."""
    TAKING = auto()
    """The client is to take what is sent."""
    LINGERING = auto()
    """The rest of an answered request is to come."""


PromptAnswer: TypeAlias = Callable[[str, bytes, Mapping[bytes, bytes]], bytes | None]
"""(scheme, target, headers) of a GET without a body -> the whole response, or ``None`` where that takes the app.

It is ``None`` for a target that has other characters than RFC 3986 gives addresses.
"""

_REST: Final = b" HTTP/1.1\r\n"
_PLAIN_TARGET: Final = re.compile(rb"GET (/[!-~]*)")
"""The beginning of a request whose target has no byte that the parser could refuse or read otherwise."""
"""The end of a request line."""


class KnownHeads:
    """Heads of requests that were read, without what is before ``_REST``, and their headers: clients repeat them.

    At most ``most`` of at most ``longest`` bytes.
    """

    def __init__(self, most: int = 500, longest: int = 2_000) -> None:
        self._headers: dict[bytes, Mapping[bytes, bytes]] = {}
        self._most, self._longest = most, longest

    def headers(self, rest: bytes) -> Mapping[bytes, bytes] | None:
        """The headers, by lower-case name, of a head that goes on like this; ``None`` when none was read."""
        return self._headers.get(rest)

    def keep(self, data: bytes, headers: Mapping[bytes, bytes]) -> None:
        """Remember the head of a GET that ``data`` are, no byte less or more, and that was answered at once."""
        end = data.find(b" ", len(b"GET "))
        rest = data[end:]
        if not (data.startswith(b"GET /") and rest.startswith(_REST) and rest.find(b"\r\n\r\n") == len(rest) - 4):
            return
        if len(rest) <= self._longest and b"if-none-match" not in headers:
            if len(self._headers) >= self._most:
                self._headers.clear()
            self._headers[rest] = headers


HEADS: Final = KnownHeads()
"""The heads that this process read."""


class PatientHttpProtocol(HttpToolsProtocol):
    """HTTP/1.1 with an end to patience; a body has limits of its own.

    An application with a ``prompt`` (a ``PromptAnswer``) has the first request of what arrives at once answered by it,
    without a task, where nothing is under way on the connection and its client takes what is sent. A head that is
    another's but for its target is not parsed again.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._timers: dict[ConnectionPhase, asyncio.TimerHandle] = {}
        self._head = self._untaken = 0
        self._fault = ""
        self._prompt: PromptAnswer | None = getattr(self.app, "prompt", None)
        self._begun = self._prompted = self._over_already = False
        self._between, self._asked = True, 0
        self._read_headers: Mapping[bytes, bytes] = {}
        self._idle_since = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for a request; what a client that is gone does not confirm ends the connection in time."""
        super().connection_made(transport)
        held = transport.get_extra_info("socket")
        if (
            held is not None
            and held.family in (socket.AF_INET, socket.AF_INET6)
            and hasattr(socket, "TCP_USER_TIMEOUT")
        ):
            held.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(1000 * HEAD_PATIENCE_S))
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        for phase in ConnectionPhase:
            self._done(phase)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take more of a request; a head that has become too long is refused."""
        between, self._asked = self._between, 0
        if between and self._prompt is not None and self._answered_again(data, self._prompt):
            return
        idle, self.timeout_keep_alive_task = self.timeout_keep_alive_task, None
        self._prompted = False
        super().data_received(data)
        if self._prompted and not self._begun and (self.cycle is None or self.cycle.response_complete):
            self._rest(idle)
            if between and self._between and self._asked == 1:
                HEADS.keep(data, self._read_headers)
        elif idle is not None:
            idle.cancel()
        if self._begun:
            self._wait()
        if ConnectionPhase.HEAD in self._timers:
            self._head += len(data)
            if self._head > HEAD:
                self._refuse(
                    b"431 Request Header Fields Too Large", b"the head of a request has at most %d bytes" % HEAD
                )

    def on_message_begin(self) -> None:
        """A request begins."""
        super().on_message_begin()
        self.scope["extensions"] = {PUSH: {CONNECTION: self}}
        self._begun, self._between = True, False
        self._asked += 1

    def write(self, data: bytes) -> bool:
        """Write chunks of a response that has begun; false where the client takes no more for now, or is gone."""
        if self.flow.write_paused or self.transport.is_closing():
            return False
        self.transport.write(data)
        return True

    def on_headers_complete(self) -> None:
        """The head of a request is complete; a head that could be understood in two ways is refused."""
        self._begun = False
        self._done(ConnectionPhase.HEAD)
        self._fault = head_fault(self.parser.get_http_version(), self.url, self.headers)
        if not self._fault:
            if self._prompt is None or not self._answered(self._prompt):
                super().on_headers_complete()
            return
        app, self.app = self.app, BadHead(self._fault)
        try:
            super().on_headers_complete()
        finally:
            self.app = app

    def handle_websocket_upgrade(self) -> None:
        """Hand the connection on to a WebSocket, but for a head that is refused."""
        if self._fault:
            self._refuse(b"400 Bad Request", self._fault.encode("latin-1", "replace").replace(b'"', b"'"))
        else:
            super().handle_websocket_upgrade()

    def on_message_complete(self) -> None:
        """The request is complete."""
        self._between = True
        if self._over_already:
            self._over_already = False
            return
        self._done(ConnectionPhase.LINGERING)
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """The request is answered: a connection whose request came only in part ends soon."""
        self._idle_since = self.loop.time()
        if self.cycle.response_complete and self.cycle.more_body:
            self._limit(ConnectionPhase.LINGERING, LINGER_S, self.transport.abort)
        super().on_response_complete()

    def pause_writing(self) -> None:
        """Bytes wait for the client: see that it takes some."""
        super().pause_writing()
        self._watch()

    def resume_writing(self) -> None:
        """The client has taken the bytes that waited."""
        self._done(ConnectionPhase.TAKING)
        super().resume_writing()

    def _answered_again(self, data: bytes, prompt: PromptAnswer) -> bool:
        """Whether the bytes are a request whose head, but for its target, is known, and it was answered at once."""
        line = _PLAIN_TARGET.match(data)
        headers = HEADS.headers(data[line.end() :]) if line else None
        if line is None or headers is None or len(data) > HEAD or not self._free():
            return False
        if not self._answer(prompt, line[1], headers):
            return False
        if self._timers:
            self._done(ConnectionPhase.HEAD)
        self._rest(self.timeout_keep_alive_task)
        return True

    def _answered(self, prompt: PromptAnswer) -> bool:
        """Whether the request was answered at once."""
        parser = self.parser
        if self._prompted or not self._free():
            return False
        if parser.get_method() != b"GET" or parser.get_http_version() != "1.1" or not parser.should_keep_alive():
            return False
        headers = dict(self.headers)
        if headers.get(b"content-length", b"0") != b"0" or not _LONG_WAY.isdisjoint(headers):
            return False
        self._prompted = self._over_already = self._answer(prompt, self.url, headers)
        self._read_headers = headers
        return self._prompted

    def _free(self) -> bool:
        """Whether nothing is under way, the client takes what is sent, and no more come than may."""
        under_way = self.cycle is not None and not self.cycle.response_complete
        if under_way or self.flow.write_paused or self.transport.is_closing():
            return False
        most = self.limit_concurrency
        return most is None or (len(self.connections) < most and len(self.tasks) < most)

    def _answer(self, prompt: PromptAnswer, target: bytes, headers: Mapping[bytes, bytes]) -> bool:
        """Whether a request is answered at once; then the answer is sent."""
        response = prompt(self.scheme or "", target, headers)
        if response is None:
            return False
        self.server_state.total_requests += 1
        self.transport.write(response)
        return True

    def _rest(self, idle: asyncio.TimerHandle | None) -> None:
        """The connection is idle from now on; a timer that runs already looks again when it is over."""
        self._idle_since = self.loop.time()
        if idle is None:
            idle = self.loop.call_later(self.timeout_keep_alive, self.timeout_keep_alive_handler)
        self.timeout_keep_alive_task = idle

    def timeout_keep_alive_handler(self) -> None:
        """Leave a connection that has been idle for too long."""
        left = self._idle_since + self.timeout_keep_alive - self.loop.time()
        if left > _EARLY_S:
            self.timeout_keep_alive_task = self.loop.call_later(left, self.timeout_keep_alive_handler)
        else:
            super().timeout_keep_alive_handler()

    def _limit(self, phase: ConnectionPhase, seconds: float, call: Callable[[], None]) -> None:
        self._timers[phase] = self.loop.call_later(seconds, call)

    def _done(self, phase: ConnectionPhase) -> None:
        if (timer := self._timers.pop(phase, None)) is not None:
            timer.cancel()

    def _watch(self) -> None:
        self._untaken = self.transport.get_write_buffer_size()
        self._limit(ConnectionPhase.TAKING, TAKE_S, self._look)

    def _look(self) -> None:
        """Leave a client that has taken nothing since the last look."""
        self._done(ConnectionPhase.TAKING)
        if self.transport.get_write_buffer_size() < self._untaken:
            self._watch()
        else:
            self.transport.abort()

    def _wait(self) -> None:
        if ConnectionPhase.HEAD not in self._timers:
            self._head = 0
            self._limit(ConnectionPhase.HEAD, HEAD_PATIENCE_S, self._over)

    def _over(self) -> None:
        self._refuse(b"408 Request Timeout", b"no request came within %d s" % HEAD_PATIENCE_S)

    def _refuse(self, status: bytes, why: bytes) -> None:
        self._done(ConnectionPhase.HEAD)
        if not self.transport.is_closing():
            body = b'{"error": "%s"}' % why
            self.transport.write(_REPLY % (status, len(body), body))
            self.transport.close()


class PushingWebSocketProtocol(WebSocketsSansIOProtocol):
    """A WebSocket to which whole frames can be written."""

    async def run_asgi(self) -> None:
        """Run the application, which may write frames."""
        self.scope["extensions"] = {**(self.scope["extensions"] or {}), PUSH: {CONNECTION: self}}
        await super().run_asgi()

    def write(self, data: bytes) -> bool:
        """Write whole frames of a server; false where the client takes no more for now, or either side is leaving."""
        if not self.writable.is_set() or self.close_sent or self.disconnected or self.transport.is_closing():
            return False
        self.transport.write(data)
        return True


SWITCH_S = 0.0005
"""How long a thread that evaluates keeps the interpreter from the one that answers requests: 5 ms unless said."""

BACKLOG = 2048
"""Connections that wait to be accepted."""

GRACE_S = 10
"""How long open connections may take to end."""


_OPTIONS: Final = {errno.EADDRINUSE: " with --port (0 for a free one)", errno.EADDRNOTAVAIL: " with --host"}
"""Which option of the servers names another one."""


class PortError(MistakeError, OSError):
    """An address or port at which this program cannot listen; the sentence says why, and which option names another."""


def listening(host: str, port: int) -> list[socket.socket]:
    """Sockets at every address of a host, of one port (a free one for 0); PortError."""
    opened: list[socket.socket] = []
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        for family, address in dict.fromkeys((each[0], each[4]) for each in found):
            place = (str(address[0]), opened[0].getsockname()[1] if opened else port)
            opened.append(socket.create_server(place, family=family, backlog=BACKLOG))
    except OSError as error:
        for each in opened:
            each.close()
        option = _OPTIONS.get(error.errno or 0, "")
        raise PortError(f"cannot listen at {host}:{port}: {obstacle(error)}{option}") from error
    return opened


class Serving(uvicorn.Server):
    """A server that calls ``leave`` as soon as it is told to stop, so that long responses end.

    ``say`` is told each address that is served, ``connections`` bounds how many there are at once, ``settings`` are
    more of uvicorn's. A process that is there for this server ``alone`` is prepared once it serves: parsers are loaded
    before somebody waits for them, and what is there then is out of the reach of CPython's collector.
    """

    def __init__(
        self,
        app: ASGIApp,
        host: str,
        port: int,
        leave: Callable[[], None],
        say: Callable[[str], None] = lambda _address: None,
        connections: int = 2000,
        settings: Mapping[str, Any] | None = None,
        *,
        alone: bool = False,
    ) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                host,
                port,
                log_level="warning",
                access_log=False,
                limit_concurrency=connections,
                timeout_graceful_shutdown=GRACE_S,
                http=PatientHttpProtocol,
                ws=PushingWebSocketProtocol,
                ws_max_size=2**16,
                **({"proxy_headers": False} | dict(settings or {})),  # else X-Forwarded-* of this machine are believed
            )
        )
        self._leave, self._say, self._alone = leave, say, alone
        sys.setswitchinterval(SWITCH_S)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to serve, and say where; PortError where nobody can listen."""
        await super().startup(sockets or listening(self.config.host, self.config.port))
        for server in self.servers:
            for bound in server.sockets:
                host, port = bound.getsockname()[:2]
                self._say(f"http://{f'[{host}]' if ':' in host else host}:{port}/")
        if self._alone:
            PAUSES.begin()
            Thread(target=_prepare, name="streamgauge-prepare", daemon=True).start()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """A signal says stop; whoever it interrupts may hold what leaving needs, so leaving has a thread of its own."""
        Thread(target=self._leave, name="streamgauge-leave", daemon=True).start()
        super().handle_exit(sig, frame)

    def stop(self) -> None:
        """Stop, from any thread."""
        self._leave()
        self.should_exit = True


def _prepare() -> None:
    """Load what the first requests need, and leave all that is there by now out of full collections (30 ms each)."""
    load_parsers()
    gc.collect()
    gc.freeze()
