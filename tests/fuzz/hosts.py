"""A server of each kind as a process of its own: ``python -m tests.fuzz.hosts KIND``; its address is its first line."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import clock_gettime, process_time, sleep, time

TOKEN = "a-token-that-nobody-guesses"
FOLDER = os.environ.get("STREAMGAUGE_FUZZ_FOLDER")
"""Where a server has its files."""


@dataclass(frozen=True)
class Host:
    """A server that runs: its process, its port, and a file of what it says on standard error."""

    process: subprocess.Popen[str]
    port: int
    errors: Path

    def memory(self) -> int:
        """The most bytes of memory that it has held."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))

    def cpu(self) -> float:
        """CPU seconds of its process: Linux has a clock for each (clock_getcpuclockid(3))."""
        return clock_gettime((~self.process.pid << 3) | 2)

    def said(self) -> str:
        """The last that it said, of tracebacks and crashes."""
        sleep(0.5)
        lines = self.errors.read_text(errors="replace").splitlines()
        return "\n".join(line for line in lines if "Invalid HTTP request" not in line)[-3_000:]


@contextmanager
def host(kind: str) -> Iterator[Host]:
    """A server of a kind, stopped in the end."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as errors, tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-X", "faulthandler", "-m", "tests.fuzz.hosts", kind]
        named = {**os.environ, "STREAMGAUGE_FUZZ_FOLDER": folder}
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, env=named)
        assert process.stdout is not None
        try:
            port = int(process.stdout.readline().rstrip("/\n").rpartition(":")[2])
            yield Host(process, port, Path(errors.name))
        finally:
            process.terminate()
            process.wait(30)
            process.stdout.close()


def broker() -> tuple[object, Callable[[], None]]:
    """A broker with small budgets: what an accepted query costs is the matter of other tests."""
    from streamgauge.servers.broker.http import application
    from streamgauge.servers.broker.limits import Limits
    from tests.servers.broker.world import BASE, select
    from tests.servers.broker.world import broker as made

    core = made(limits=Limits(effort=20_000, rows=5_000, facts=20_000, channels=50, text=2**20, term=2**16))
    core.load(BASE)
    core.create_channel("students", select("?x a :Student"))
    return application(core), lambda: None


def queries() -> tuple[object, Callable[[], None]]:
    """A query service."""
    from streamgauge.engines import load
    from streamgauge.servers.queries.http import application
    from streamgauge.servers.queries.limits import QueryLimits
    from streamgauge.servers.queries.registry import Queries

    return application(Queries(load, ("live",), QueryLimits(queries=20))), lambda: None


def fragments() -> tuple[object, Callable[[], None]]:
    """A fragments server that is written to."""
    from streamgauge.servers.fragments.labels import Style
    from streamgauge.servers.fragments.pages.dataset import DataSet
    from streamgauge.servers.fragments.pages.http import application
    from streamgauge.servers.fragments.store.indexed import MemoryStore
    from streamgauge.servers.fragments.writes.http import WritesHandler
    from streamgauge.servers.http.headers import of_host

    data = DataSet("data", MemoryStore(), Style("graphs"), lambda: int(time() * 1000), 20)
    app = application([data], [WritesHandler([TOKEN], of_host, 2**20)])
    return app, app.leave


def workbench() -> tuple[object, Callable[[], None]]:
    """A workbench over an empty folder."""
    from streamgauge.workbench.application import application
    from streamgauge.workbench.rooms import Bench

    bench = Bench(Path(tempfile.mkdtemp(dir=FOLDER)))
    return application(bench), bench.leaving.set


def sink() -> tuple[object, Callable[[], None]]:
    """The application of an event sink, which has some events."""
    from streamgauge.servers.event_sink import open_event_sink
    from streamgauge.sources.contract import parse_address

    opened = open_event_sink(parse_address("sse+http://127.0.0.1:0/x?wait=0"))
    for number in range(20):
        opened.send(b"%d" % number)
    return opened._server.config.app, lambda: None


def burning() -> tuple[object, Callable[[], None]]:
    """A server that computes for 0.6 s on its event loop when it is asked to."""
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import PlainTextResponse
    from starlette.routing import Route

    async def burn(_request: Request) -> PlainTextResponse:
        end = process_time() + 0.6
        while process_time() < end:
            pass
        return PlainTextResponse("burned")

    async def health(_request: Request) -> PlainTextResponse:
        return PlainTextResponse("up")

    return Starlette(routes=[Route("/burn", burn), Route("/health", health)]), lambda: None


KINDS = {
    "broker": broker,
    "queries": queries,
    "fragments": fragments,
    "workbench": workbench,
    "event sink": sink,
    "burning": burning,
}


def main(kind: str) -> None:
    """Serve until a signal."""
    from streamgauge.servers.http.server import Serving

    app, leave = KINDS[kind]()
    Serving(app, "127.0.0.1", 0, leave, lambda address: print(address, flush=True), alone=True).run()


if __name__ == "__main__":
    main(sys.argv[1])
