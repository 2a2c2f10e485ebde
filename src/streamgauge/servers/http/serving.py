"""Serving an application until it is told to stop, and leaving in good order."""

import errno
import gc
import sys
from collections.abc import Callable, Mapping
from socket import AI_PASSIVE, SOCK_STREAM, create_server, getaddrinfo, socket
from threading import Thread
from types import FrameType
from typing import Any, Final

import uvicorn
from starlette.types import ASGIApp

from streamgauge.model.mistake import MistakeError
from streamgauge.model.obstacles import obstacle
from streamgauge.servers.http.collector import PAUSES
from streamgauge.servers.http.connections import Patient, Pushing
from streamgauge.servers.http.patterns import load_parsers

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


def listening(host: str, port: int) -> list[socket]:
    """Sockets at every address of a host, of one port (a free one for 0); PortError."""
    opened: list[socket] = []
    try:
        found = getaddrinfo(host, port, type=SOCK_STREAM, flags=AI_PASSIVE)
        for family, address in dict.fromkeys((each[0], each[4]) for each in found):
            place = (str(address[0]), opened[0].getsockname()[1] if opened else port)
            opened.append(create_server(place, family=family, backlog=BACKLOG))
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
                http=Patient,
                ws=Pushing,
                ws_max_size=2**16,
                **(settings or {}),
            )
        )
        self._leave, self._say, self._alone = leave, say, alone
        sys.setswitchinterval(SWITCH_S)

    async def startup(self, sockets: list[socket] | None = None) -> None:
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
