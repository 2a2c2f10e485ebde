"""Serving an application: sockets, limits of connections and descriptors, orderly shutdown."""

import asyncio
import errno
import gc
import resource
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from logging import getLogger
from pathlib import Path
from threading import Thread, current_thread, main_thread
from types import FrameType
from typing import Any, Final

import uvicorn
from starlette.types import ASGIApp

from streamgauge.model.mistake import MistakeError, obstacle
from streamgauge.servers.http.connections import PatientHttpProtocol
from streamgauge.servers.http.freed_memory import FreedMemory
from streamgauge.servers.http.limits import load_parsers
from streamgauge.servers.http.metrics import PAUSES
from streamgauge.servers.http.notify import ServiceManager
from streamgauge.servers.http.request_log import RequestLog
from streamgauge.servers.http.websocket import PushingWebSocketProtocol

SWITCH_S = 0.0005
"""CPython's switch interval: how long an evaluating thread keeps the interpreter lock from the event loop. The default
is 5 ms, which every request would wait for."""

BACKLOG = 2048
"""Length of the queue of connections to accept."""

GRACE_S = 3
"""How long open connections may take to end, so that a server ends within 5 s in all."""

UNREAD_GRACE: Final = 0.8
"""The share of the grace after which connections are cut off whose clients have not read what was sent."""


_OPTIONS: Final = {errno.EADDRINUSE: " with --port (0 for a free one)", errno.EADDRNOTAVAIL: " with --host"}
"""The option that remedies an error of binding."""


class PortError(MistakeError, OSError):
    """An address or port that cannot be bound; the sentence says why, and which option changes it."""


def listening(host: str, port: int) -> list[socket.socket]:
    """Sockets bound to every address of a host at one port (a free one for 0); PortError.

    ``::`` means every address of this machine, IPv4 included, whatever the system's default for IPV6_V6ONLY
    (RFC 3493, 5.3).
    """
    opened: list[socket.socket] = []
    try:
        # A name such as localhost has several addresses; binding the first alone leaves ::1 or 127.0.0.1 unserved.
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        # Without duplicates, which /etc/hosts may cause and which would fail with EADDRINUSE against ourselves.
        for family, address in dict.fromkeys((address_info[0], address_info[4]) for address_info in addresses):
            # All families share the port that the system chose for the first, else one URL would not reach all of them.
            place = (str(address[0]), opened[0].getsockname()[1] if opened else port)
            both = family == socket.AF_INET6 and address[0] == "::" and socket.has_dualstack_ipv6()
            opened.append(socket.create_server(place, family=family, backlog=BACKLOG, dualstack_ipv6=both))
    except OSError as error:
        # All or none: with half of the addresses a client's luck would decide whether it reaches the server.
        for sock in opened:
            sock.close()
        option = _OPTIONS.get(error.errno or 0, "")
        raise PortError(f"cannot listen at {host}:{port}: {obstacle(error)}{option}") from error
    return opened


SPARE_DESCRIPTORS: Final = 256
"""Descriptors reserved for files and sockets other than client connections."""

SAY_EVERY_S: Final = 10.0
"""Minimum interval between two log lines about missing descriptors."""

DESCRIPTOR_TICKS: Final = 10
"""Ticks of uvicorn, ten a second, between two counts of open descriptors."""

_NO_DESCRIPTORS: Final = (errno.EMFILE, errno.ENFILE)
_OPEN_FILES: Final = Path("/proc/self/fd")

_LOG: Final = getLogger("uvicorn.error")


def provide_descriptors(connections: int) -> int:
    """Raise this process's limit of open files for ``connections``; returns how many of them fit."""
    wanted = connections + SPARE_DESCRIPTORS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return connections if soft == resource.RLIM_INFINITY else max(1, min(connections, soft - SPARE_DESCRIPTORS))


GIVE_BACK_TICKS: Final = 30
"""Ticks of uvicorn, ten a second, between two attempts to give memory back."""


class Serving(uvicorn.Server):
    """A server that calls ``leave`` as soon as it has to stop, so that endless responses end.

    ``say`` receives each address that is served, ``connections`` is their maximum number, ``settings`` are further
    settings of uvicorn. SIGHUP calls ``reload`` in a separate thread. A process that exists for this server
    ``alone`` notifies its service manager and, once it serves, loads parsers and freezes its objects.
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
        reload: Callable[[], None] = lambda: None,
    ) -> None:
        fitting = provide_descriptors(connections)
        if fitting + SPARE_DESCRIPTORS < connections:
            _LOG.warning("%d connections at most: the limit of open files (ulimit -Hn) is too low for more", fitting)
        own: dict[str, Any] = {
            "log_level": "warning",
            "log_config": None,  # records go where the command logs
            "access_log": False,
            "limit_concurrency": fitting,
            "timeout_graceful_shutdown": GRACE_S,
            "http": PatientHttpProtocol,
            "ws": PushingWebSocketProtocol,
            # Clients send acknowledgements and queries; the library's default is 16 MB per message.
            "ws_max_size": 2**16,
            "proxy_headers": False,  # uvicorn trusts X-Forwarded-* of local clients
        }
        super().__init__(uvicorn.Config(RequestLog(app), host, port, **(own | dict(settings or {}))))
        self._leave, self._say, self._alone, self._freed = leave, say, alone, FreedMemory()
        self._reload, self._manager = reload, ServiceManager()
        self._descriptors = DescriptorReports(time.monotonic)
        # For the whole process: CPython has no interval per thread.
        sys.setswitchinterval(SWITCH_S)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to serve, and report the addresses; PortError if one cannot be bound."""
        asyncio.get_running_loop().set_exception_handler(self._descriptors)
        await super().startup(sockets or listening(self.config.host, self.config.port))
        for server in self.servers:
            for bound in server.sockets:
                host, port = bound.getsockname()[:2]
                self._say(f"http://{f'[{host}]' if ':' in host else host}:{port}/")
        # Only a process of its own may be tuned: malloc, the collector and the manager belong to whoever embeds the
        # server.
        if self._alone:
            self._manager.tell("READY=1")
            self._freed.keep_little()
            PAUSES.begin()
            Thread(target=_prepare, name="streamgauge-prepare", daemon=True).start()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle signals while serving; SIGHUP, which ends a program unless it is handled, has it reload."""
        # Windows has no such signal, and Python sets handlers in the main thread alone.
        if not hasattr(signal, "SIGHUP") or current_thread() is not main_thread():
            with super().capture_signals():
                yield
            return
        before = signal.signal(signal.SIGHUP, self._hang_up)
        try:
            with super().capture_signals():
                yield
        finally:
            signal.signal(signal.SIGHUP, before)

    def _hang_up(self, _number: int, _frame: FrameType | None) -> None:
        # Not in the handler: the interrupted code may hold a lock that reloading needs.
        Thread(target=self._reloaded, name="streamgauge-reload", daemon=True).start()

    def _reloaded(self) -> None:
        try:
            self._reload()
        except (MistakeError, OSError) as error:
            _LOG.error("not reloaded, all stays as it was: %s", error)

    async def on_tick(self, counter: int) -> bool:
        """Periodically give memory back and check for free descriptors."""
        if self._alone and counter % DESCRIPTOR_TICKS == 0:
            self._descriptors.look()
            self._manager.beat()
        if counter % GIVE_BACK_TICKS == 0:
            # In a thread: ctypes releases the interpreter lock while malloc_trim visits the heaps.
            await asyncio.to_thread(self._freed.give_back)
        return await super().on_tick(counter)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop on a signal. ``leave`` gets a thread: the interrupted code may hold a lock that it needs."""
        self._manager.tell("STOPPING=1")
        Thread(target=self._leave, name="streamgauge-leave", daemon=True).start()
        # Last: a second SIGINT makes uvicorn exit by force, and by then `leave` has at least begun.
        super().handle_exit(sig, frame)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End connections in order, and those whose clients read nothing shortly before the grace is over.

        uvicorn would cancel their responses, and log a traceback for each.
        """
        grace = self.config.timeout_graceful_shutdown
        assert grace is not None
        cut = asyncio.get_running_loop().call_later(grace * UNREAD_GRACE, self._abort_unread)
        try:
            await super().shutdown(sockets)
        finally:
            cut.cancel()

    def _abort_unread(self) -> None:
        for connection in list(self.server_state.connections):
            if connection.transport.get_write_buffer_size():
                connection.transport.abort()

    def stop(self) -> None:
        """Stop, from any thread."""
        self._leave()
        self.should_exit = True


def _prepare() -> None:
    """Load what the first requests need, and freeze all objects, which spares full collections 30 ms each."""
    load_parsers()
    gc.collect()
    gc.freeze()


class DescriptorReports:
    """An event loop's exception handler that logs missing descriptors as one line, at most every ``SAY_EVERY_S``.

    uvloop drops a connection without a descriptor silently, so the descriptors also have to be counted (``look``).
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock, self._next = clock, 0.0

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Log an unhandled exception of a callback or task."""
        error = context.get("exception")
        # asyncio reports every accept that fails.
        if isinstance(error, OSError) and error.errno in _NO_DESCRIPTORS:
            self._say()
        else:
            loop.default_exception_handler(context)

    def look(self) -> None:
        """Log if all descriptors are in use."""
        try:
            # Listing the directory itself takes a descriptor, so EMFILE here is an answer and not a failure.
            used, soft = sum(1 for _ in _OPEN_FILES.iterdir()), resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        except OSError as error:
            used, soft = int(error.errno in _NO_DESCRIPTORS), 1
        if soft != resource.RLIM_INFINITY and used >= soft:
            self._say()

    def _say(self) -> None:
        if self._clock() >= self._next:
            self._next = self._clock() + SAY_EVERY_S
            _LOG.error("no more connections for now: all descriptors are in use (raise ulimit -n)")
