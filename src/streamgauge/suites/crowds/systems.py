"""Systems under test of the crowds: a server and the programs of its clients, by one contract (``harness.systems``).

``start`` begins the server, ``subscribe`` the programs of its clients, ``settle`` waits until all clients are ready,
``feed`` sends an update; ``processes`` are the server's, ``crowd`` the programs of clients.
"""

import re
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Self, TypeAlias

import httpx

from streamgauge.formats.pipe import StaticFile
from streamgauge.formats.stream import elements
from streamgauge.harness.process import ChildProcess, JsonProgram, ProgramError, ServerProcess, ServiceError
from streamgauge.harness.systems import SystemUnderTest
from streamgauge.model.element import StreamElement
from streamgauge.model.terms import Triple
from streamgauge.suites.crowds.scenario import (
    BROKER,
    PLANS,
    SERVICES,
    Right,
    Scenario,
    ServerHistory,
    continuous,
    registration,
    service_verdict,
    witnesses,
)
from streamgauge.suites.crowds.updates import (
    PATIENCE_S,
    Publisher,
    UpdateRequest,
    replaced,
    streamed,
    updates,
    wall_ms,
)

CLIENTS: Final = "streamgauge.suites.crowds.clients"
READY_S: Final = 600.0
LEAD_S: Final = 1.0
LOOK_S: Final = 0.5
EACH: Final = 100
"""Clients of one process: asyncio tasks with connections and a cache of their own."""

LARGE: Final = 1000
"""Stations of static data beyond which the data set is kept on disk."""

Line = Mapping[str, Any]


@dataclass(frozen=True)
class CrowdData:
    """A workload made once: its stream table and static data as files."""

    stream: Path
    static: Path

    @property
    def elements(self) -> list[StreamElement]:
        """The stream's elements."""
        return list(elements(self.stream))

    @property
    def triples(self) -> list[Triple]:
        """The static triples."""
        return list(StaticFile(self.static))


@dataclass(frozen=True, slots=True)
class Findings:
    """The judgement of a crowd's answers: whether a line is right, how late it is (ms), and the verdict in words.

    ``updates`` are the times (ms since 1970) at which the server had each update.
    """

    updates: Sequence[int]
    right: Right
    late: Callable[[Line], int | None] = lambda _line: None
    verdict: str = ""


class CrowdSystem:
    """A server with its crowd of clients; ``SystemUnderTest[CrowdData, UpdateRequest, Line]`` by its subclasses."""

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
        """The server's process."""
        return (self.server.pid,)

    def subscribe(self, query: str, receive: Callable[[Line], object]) -> None:  # noqa: ARG002 (the scenario has them)
        """Start the programs of all clients, each with its query of the scenario."""
        queries = [self.query(client) for client in range(self.scenario.clients)]
        for first in range(0, len(queries), EACH):
            given = {**self.task(), "queries": queries[first : first + EACH], "first": first}
            self.crowd.append(self._stack.enter_context(JsonProgram(f"{CLIENTS}.{self.program}", given, receive)))

    def unsubscribe(self, query: str) -> None:  # noqa: ARG002
        """End the programs of all clients; ProgramError when one failed."""
        for program in self.crowd:
            program.end()

    def query(self, client: int) -> Any:
        """The query of a client, as its program takes it."""
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
        """Nothing is put off: the wall clock is the time of servers."""

    def close(self) -> None:
        """End the clients, then the server."""
        self._stack.close()

    def counts(self) -> Mapping[str, int]:
        """No counters."""
        return {}

    def _serve(self, server: ServerProcess) -> None:
        try:
            self.server = self._stack.enter_context(server)
        except ServiceError as error:
            raise ProgramError(str(error)) from error
        self.address = server.address
        self._http = self._stack.enter_context(httpx.Client(base_url=self.address, timeout=PATIENCE_S))

    def _post(self, request: UpdateRequest) -> httpx.Response:
        response = self._http.post(request.path, content=request.content, headers={"Content-Type": request.kind})
        if not response.is_success:
            raise ProgramError(f"update at {request.time} ms: {response.status_code} {response.text[:300]}")
        return response

    def _begins(self, first: int) -> int:
        """The stream's time 0, ms since 1970, so that the update at ``first`` (ms) is due in a second."""
        return wall_ms() + round(LEAD_S * 1000) - first


class FragmentsSystem(CrowdSystem):
    """A fragments server whose data set is renewed, and clients that poll it; maybe with a cache between them."""

    program = "watchers"

    def start(self, task: CrowdData) -> None:
        """Begin the server with the static data, and the cache."""
        scenario, self._data = self.scenario, task
        self._port, outer = free_port(), free_port()
        self.address = f"http://127.0.0.1:{outer if scenario.proxy else self._port}/trains"
        self._template = f"{self.address}{{?subject,predicate,object,graph}}"
        given: dict[str, Any] = {
            "stream": str(task.stream), "static": str(task.static), "method": scenario.method, "label": scenario.label,
            "renewal": scenario.renewal, "slack": scenario.slack, "port": self._port, "template": self._template,
            "store": str(self.folder / "stores" / scenario.name) if scenario.beside > LARGE else None,
        }  # fmt: skip
        self.server = self._renewed = JsonProgram("streamgauge.suites.crowds.fragments_server", given)
        self._stack.enter_context(self._renewed)
        self.about = {"quads": self._renewed.wait_for("address", READY_S)["quads"]}
        if scenario.proxy:
            cache = (self.folder / "proxy" / str(outer)).resolve()
            self._stack.enter_context(caching_proxy(f"http://127.0.0.1:{self._port}", outer, cache))

    def task(self) -> dict[str, Any]:
        """The terms of the query streamers."""
        scenario = self.scenario
        plan, caching = PLANS[scenario.system]
        return {
            "address": self.address, "plan": plan, "cache": caching, "method": scenario.method,
            "label": scenario.label, "template": self._template, "spread": scenario.spread,
            "period": scenario.period, "jitter": scenario.jitter,
        }  # fmt: skip

    def begin(self, receive: Callable[[Line], object]) -> Publisher:
        """Clients start once the first update is applied; that they start is measured."""
        due = [UpdateRequest(each.time, "", b"", "") for each in updates(self._data.elements, self.scenario.slack)]
        self._begun, applied = self._begins(0), threading.Event()

        def feed(request: UpdateRequest) -> None:
            self.feed(request)
            applied.set()

        publisher = Publisher(feed, due, self._begun)
        publisher.start()
        while not applied.wait(LOOK_S):
            if not publisher.is_alive():
                publisher.check(self.scenario.name)
        self.subscribe(self.scenario.query, receive)
        return publisher

    def feed(self, element: UpdateRequest) -> None:
        """Have the server apply an update; returns when it has."""
        self._renewed.tell(begins=self._begun, apply=element.time)
        self._renewed.wait_for("applied")

    def counts(self) -> Mapping[str, int]:
        """Requests and bytes of bodies that the server has served, by its metrics."""
        text = httpx.get(f"http://127.0.0.1:{self._port}/metrics", timeout=PATIENCE_S).text
        totals = {"requests": 0, "bytes": 0}
        for word in totals:
            found = re.findall(rf"^streamgauge_fragments_{word}_total(?:{{.*}})? (\S+)$", text, re.MULTILINE)
            totals[word] = sum(int(float(value)) for value in found)
        return totals

    def judged(self, publisher: Publisher, lines: Sequence[Line]) -> Findings:  # noqa: ARG002 (lines judge themselves)
        """By the facts that the server held."""
        applied = [(line["at"], line["applied"]) for line in self._renewed.said if "applied" in line]
        judge = ServerHistory(self.scenario, self._data.elements, self._data.triples, applied)
        return Findings([at for at, _ in applied], judge.right)


class EngineService(CrowdSystem):
    """An engine behind ``engine serve``, and subscribers of its answers."""

    program = "subscribers"

    def start(self, task: CrowdData) -> None:
        """Begin the query service."""
        self._stream = [replace(element, until=None) for element in task.elements]
        most = f"{self.scenario.clients + 10}"
        engine = SERVICES[self.scenario.system].engine
        self._serve(ServerProcess("engine", "serve", engine, "--max-queries", most, "--max-subscribers", most))

    def query(self, client: int) -> dict[str, Any]:
        """The registration of a client's query."""
        return registration(self.scenario, client)

    def task(self) -> dict[str, Any]:
        """Where, and which clients are judged row by row."""
        return {**super().task(), "witnesses": witnesses(self.scenario)}

    def begin(self, receive: Callable[[Line], object]) -> Publisher:
        """Engines start with the first update, which is sent before measuring begins."""
        first, *others = streamed(self._stream)
        self.subscribe(self.scenario.query, receive)
        self.settle()
        self.feed(first)
        self._await_taken(first.content.count(b"\n") - 1)
        return Publisher(self.feed, others, self._begins(others[0].time))

    def feed(self, element: UpdateRequest) -> None:
        """Publish the elements of an update; returns when they are acknowledged."""
        self._post(element)

    def _await_taken(self, many: int) -> None:
        """Wait until every engine has taken in so many elements: some are programs that take seconds to start."""
        for _ in range(round(READY_S / LOOK_S)):
            queries = self._http.get("/queries").json()["queries"]
            if failed := next((each["fault"] for each in queries if each["fault"]), None):
                raise ProgramError(f"an engine failed: {failed}")
            if all(each["elements"] >= many for each in queries):
                return
            time.sleep(LOOK_S)
        raise ProgramError(f"engines have not taken in the first update within {READY_S:.0f} s")

    def judged(self, publisher: Publisher, lines: Sequence[Line]) -> Findings:
        """By the common oracle, for the witnesses."""
        verdict, right = service_verdict(self.scenario, self._stream, lines, publisher.begins)
        return Findings([each.acknowledged for each in publisher.taken], right, verdict=verdict)


class BrokerCrowd(CrowdSystem):
    """The broker, and subscribers that keep their answer by its notifications."""

    program = "followers"

    def start(self, task: CrowdData) -> None:
        """Begin the broker with the static data; each update deletes what is over and publishes all that holds."""
        self._data, most = task, f"{self.scenario.clients + 10}"
        limits = ("--max-channels", most, "--max-subscribers", most)
        connections = ("--max-connections", f"{2 * self.scenario.clients + 10}")
        self._serve(ServerProcess("broker", "serve", str(task.static), *limits, *connections))

    def begin(self, receive: Callable[[Line], object]) -> Publisher:
        """All clients are ready before the first update."""
        self.subscribe(self.scenario.query, receive)
        self.settle()
        return Publisher(self.feed, replaced(updates(self._data.elements, self.scenario.slack)), self._begins(0))

    def feed(self, element: UpdateRequest) -> int:
        """Send an update; its publication's number when it is acknowledged."""
        return int(self._post(element).json()["publication"])

    def judged(self, publisher: Publisher, lines: Sequence[Line]) -> Findings:  # noqa: ARG002 (lines judge themselves)
        """By the facts that the broker held; how late a notification is counts from the sending of its publication."""
        sent = {each.known_as: each.sent for each in publisher.taken}
        applied = [(each.sent, each.time) for each in publisher.taken]
        judge = ServerHistory(self.scenario, self._data.elements, self._data.triples, applied, set)

        def late(line: Line) -> int:
            return int(line["received"]) - sent[line["publications"][0]]

        return Findings(list(sent.values()), judge.right, late)


_Contract: TypeAlias = type[SystemUnderTest[CrowdData, str, UpdateRequest, Line]]
_CONTRACTS: tuple[_Contract, ...] = (FragmentsSystem, EngineService, BrokerCrowd)


def system_of(scenario: Scenario, folder: Path) -> FragmentsSystem | EngineService | BrokerCrowd:
    """The system of a scenario; ``folder`` is for stores and caches."""
    if scenario.system in PLANS:
        return FragmentsSystem(scenario, folder)
    return BrokerCrowd(scenario, folder) if scenario.system == BROKER else EngineService(scenario, folder)


def free_port() -> int:
    """A port of this machine that is free now."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return int(bound.getsockname()[1])


NGINX = """
worker_processes 1;
daemon off;
error_log stderr warn;
pid {folder}/nginx.pid;
events {{ worker_connections 2048; }}
http {{
  access_log off;
  map $http_accept_encoding $coding {{ default ""; ~br br; ~gzip gzip; }}
  proxy_cache_path {folder}/cache keys_zone=fragments:10m max_size=200m;
  {temporary}
  server {{
    listen 127.0.0.1:{port};
    location / {{
      proxy_pass {origin};
      proxy_http_version 1.1;
      proxy_set_header Host $http_host;
      proxy_set_header Connection "";
      proxy_set_header Accept-Encoding $coding;
      proxy_ignore_headers Vary;
      proxy_cache fragments;
      proxy_cache_key "$http_host$request_uri $http_accept $coding";
      proxy_cache_lock on;
    }}
  }}
}}
"""
_TEMPORARY = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")


def nginx() -> str | None:
    """The program, ``None`` where it is not installed."""
    return shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")


@contextmanager
def caching_proxy(origin: str, port: int, folder: Path) -> Iterator[None]:
    """A cache (nginx) that shares misses, before an origin (``http://host:port``); ProgramError without it."""
    program = nginx()
    if program is None:
        raise ProgramError("there is no nginx: install it, as Debian's package nginx-light")
    folder.mkdir(parents=True, exist_ok=True)
    temporary = "\n  ".join(f"{name}_temp_path {folder}/{name};" for name in _TEMPORARY)
    config = folder / "nginx.conf"
    config.write_text(NGINX.format(folder=folder, port=port, origin=origin, temporary=temporary), encoding="utf-8")
    with ChildProcess([program, "-c", str(config), "-p", str(folder)], piped=False, session=True) as process:
        try:
            yield
        finally:
            process.terminate()
            process.await_end()
