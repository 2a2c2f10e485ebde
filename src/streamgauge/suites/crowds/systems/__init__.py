"""Systems under test of crowds, one kind per file with ``NAMES`` and ``start(scenario, folder)``.

A system is a server and the programs of its clients (``harness.systems``); a scenario names it. ``start`` starts the
server, ``subscribe`` the programs of its clients, ``settle`` waits until all clients are ready, ``feed`` sends an
update; ``processes`` are the server's, ``crowd`` the programs of clients.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any, Final, Self

import httpx

from streamgauge.formats.pipe import StaticFile
from streamgauge.formats.stream import elements
from streamgauge.harness.process import JsonProgram, ProgramError, ServerProcess, ServiceError
from streamgauge.harness.systems import SystemUnderTest
from streamgauge.model.element import StreamElement
from streamgauge.model.phrases import offered
from streamgauge.model.terms import Triple
from streamgauge.outgoing.clients import client, crowd_limits
from streamgauge.suites.crowds.scenario import Findings, Scenario, continuous
from streamgauge.suites.crowds.updates import PATIENCE_S, Publisher, UpdateRequest, wall_ms

CLIENTS: Final = "streamgauge.suites.crowds.clients"
READY_S: Final = 600.0
LEAD_S: Final = 1.0
LOOK_S: Final = 0.5
EACH: Final = 100
"""Number of clients per process: asyncio tasks with their own connections and cache."""

Line = Mapping[str, Any]


@dataclass(frozen=True)
class CrowdData:
    """A generated workload: its stream table and static data as files."""

    stream: Path
    static: Path

    @property
    def elements(self) -> list[StreamElement]:
        """All elements of the stream."""
        return list(elements(self.stream))

    @property
    def triples(self) -> list[Triple]:
        """All triples of the static data."""
        return list(StaticFile(self.static))


class CrowdSystem(SystemUnderTest[CrowdData, str, UpdateRequest, Line], ABC):
    """A server with its crowd of clients, the publisher of its data, and the judgement of the answers."""

    evaluator: str | None = None
    program: str
    server: ServerProcess | JsonProgram
    address: str

    def __init__(self, scenario: Scenario, folder: Path) -> None:
        self.scenario, self.folder = scenario, folder
        self.crowd: list[JsonProgram] = []
        self.about: dict[str, Any] = {}
        self._ready = False
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: Any) -> None:
        self._stack.__exit__(*failure)

    @property
    def processes(self) -> Sequence[int]:
        """The process id of the server."""
        return (self.server.pid,)

    def subscribe(self, query: str, receive: Callable[[Line], object]) -> None:  # noqa: ARG002 (the scenario has them)
        """Start the programs of all clients, each with its query of the scenario."""
        queries = [self.query(client) for client in range(self.scenario.clients)]
        for first in range(0, len(queries), EACH):
            task = {**self.task(), "queries": queries[first : first + EACH], "first": first}
            self.crowd.append(self._stack.enter_context(JsonProgram(f"{CLIENTS}.{self.program}", task, receive)))

    def unsubscribe(self, query: str) -> None:  # noqa: ARG002
        """End the programs of all clients; ProgramError if one failed."""
        for program in self.crowd:
            program.end()

    def query(self, client: int) -> Any:
        """The query of a client in its program's form."""
        return continuous(self.scenario, client)[0].sparql

    def task(self) -> dict[str, Any]:
        """The task of a program of clients, without the queries."""
        return {"address": self.address}

    def settle(self) -> None:
        """Wait until all clients are ready."""
        for program in () if self._ready else self.crowd:
            program.wait_for("ready", READY_S)
        self._ready = True

    def advance(self, time: int) -> None:
        """Do nothing: servers evaluate by the wall clock."""

    def close(self) -> None:
        """End the clients, then the server."""
        self._stack.close()

    @abstractmethod
    def begin(self, receive: Callable[[Line], object]) -> Publisher:
        """Start the clients and return the publisher of the remaining updates."""

    @abstractmethod
    def judged(self, publisher: Publisher, lines: Sequence[Line]) -> Findings:
        """The judgement of the lines that the clients wrote."""

    def counts(self) -> Mapping[str, int]:
        """Requests and bytes served, if the server counts them."""
        return {}

    def _serve(self, server: ServerProcess) -> None:
        try:
            self.server = self._stack.enter_context(server)
        except ServiceError as error:
            raise ProgramError(str(error)) from error
        self.address = server.address
        self._http = self._stack.enter_context(client(crowd_limits(PATIENCE_S), base_url=self.address))

    def _post(self, request: UpdateRequest) -> httpx.Response:
        response = self._http.post(request.path, content=request.content, headers={"Content-Type": request.kind})
        if not response.is_success:
            raise ProgramError(f"update at {request.time} ms: {response.status_code} {response.text[:300]}")
        return response

    def _begins(self, first: int) -> int:
        """The stream's time 0, ms since 1970, so that the update at ``first`` (ms) is due in a second."""
        return wall_ms() + round(LEAD_S * 1000) - first


@cache
def systems() -> Mapping[str, str]:
    """Names of systems -> their modules."""
    modules = sorted(module.name for module in iter_modules(__path__))
    return {name: module for module in modules for name in import_module(f"{__name__}.{module}").NAMES}


def system_of(scenario: Scenario, folder: Path) -> CrowdSystem:
    """The system of a scenario; ``folder`` is for stores and caches. ProgramError for an unknown name."""
    if scenario.system not in systems():
        raise ProgramError(f"there is no system {scenario.system}: {offered(scenario.system, systems())}")
    system: CrowdSystem = import_module(f"{__name__}.{systems()[scenario.system]}").start(scenario, folder)
    return system
