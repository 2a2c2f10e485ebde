"""Folders of runs for the workbench: judged runs as files, and a client of the application over them."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from streamgauge.formats.run import write_run, write_verdict
from streamgauge.model.run import Run
from streamgauge.model.verdict import Verdict
from streamgauge.workbench.application import application
from streamgauge.workbench.rooms import Bench
from tests.unsealed import unsealed

HTML = {"accept": "text/html"}

EXPERIMENT = """name = "heat"
seeds = [1, 2]
[workload]
name = "weather"
stations = 2
interval = "1s"
duration = "30s"
[query]
name = "select"
parameters = { WSIZE = "2s", WSLIDE = "1s", TEMP = 1.0 }
[[engine]]
name = "live"
semantics = ["csparql", "cqels"]
[feed]
pace = "real time"
"""


def keep(folder: Path, judged: tuple[Run, Verdict], verdict: bool = True) -> Path:
    """A judged run, or one that is only recorded, as a folder."""
    write_run(folder, judged[0])
    if verdict:
        write_verdict(folder, judged[1])
    return folder


def change(file: Path, **header: object) -> None:
    """Other fields of a run's header."""
    data = unsealed(file)
    data["header"].update(header)
    file.write_text(json.dumps(data))


class Client:
    """Requests to an application in this process, without a socket."""

    def __init__(self, app, runner: asyncio.Runner, raising: bool) -> None:
        self._app, self._runner, self._raising = app, runner, raising

    def get(self, address: str) -> httpx.Response:
        return self._runner.run(self._send("GET", address))

    def post(self, address: str, **data: str) -> httpx.Response:
        return self._runner.run(self._send("POST", address, data))

    async def _send(self, method: str, address: str, data: dict[str, str] | None = None) -> httpx.Response:
        # An error of the program is raised again after its page, for the server's log.
        transport = httpx.ASGITransport(self._app, raise_app_exceptions=self._raising)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", headers=HTML) as client:
            return await client.request(method, address, data=data)


@contextmanager
def bench(folder: Path, raising: bool = True) -> Iterator[Client]:
    """A client of the workbench over a folder."""
    app = application(Bench(folder))
    with asyncio.Runner() as runner:
        lifespan = app.router.lifespan_context(app)
        runner.run(lifespan.__aenter__())
        try:
            yield Client(app, runner, raising)
        finally:
            runner.run(lifespan.__aexit__(None, None, None))
