"""Doing a scenario: servers and clients as processes, both sides' CPU by whole trees, every answer judged; kept."""

import json
import os
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import httpx

from streamgauge import workloads
from streamgauge.formats.making import keep_first, making, put
from streamgauge.formats.stream import elements
from streamgauge.model.element import StreamElement
from streamgauge.model.terms import Triple
from streamgauge.suites.crowds import judging
from streamgauge.suites.crowds.asking import BROKER, PLANS, SERVICES, continuous, wish
from streamgauge.suites.crowds.measuring import LEAD_S, PROGRAMS, READY_S, Measured, metered, parts
from streamgauge.suites.crowds.programs import Program, ProgramError
from streamgauge.suites.crowds.publishing import Publisher, replaced, start, streamed
from streamgauge.suites.crowds.renewing import updates
from streamgauge.suites.crowds.scenario import Outcome, Scenario, from_json, to_json
from streamgauge.suites.crowds.serving import broker_serve, caching_proxy, engine_serve, free_port
from streamgauge.workloads.tables import Maker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LARGE: Final = 1000
"""Stations of static data beyond which the data set is kept on disk."""


@dataclass(frozen=True)
class Data:
    """A workload made once: its stream table and static data as files."""

    stream: Path
    static: Path

    @property
    def elements(self) -> list[StreamElement]:
        """The stream's elements."""
        return list(elements(self.stream))

    @property
    def triples(self) -> list[Triple]:
        """What is static."""
        lines = self.static.read_text(encoding="utf-8").splitlines()
        found = (line.removesuffix(" .").split(" ", 2) for line in lines)
        return [(subject, predicate, item) for subject, predicate, item in found]


@dataclass(frozen=True)
class Doing:
    """What doing scenarios may use: the folder where outcomes are kept, and Spark."""

    folder: Path
    spark: "Callable[[], SparkSession]"

    def outcome(self, scenario: Scenario) -> Outcome:
        """What came of a scenario, done now unless it is kept; ProgramError when it could not be done."""
        kept = self._file(scenario)
        if kept.exists():
            return from_json(json.loads(kept.read_text(encoding="utf-8")))
        found = do(scenario, self.data(scenario), self.folder)
        with making(kept) as place:
            place.write_text(json.dumps(to_json(found)), encoding="utf-8")
            put(place, kept)
        return found

    def kept(self, scenario: Scenario) -> bool:
        """Whether it is kept."""
        return self._file(scenario).exists()

    def _file(self, scenario: Scenario) -> Path:
        return self.folder / f"{scenario.name}.json"

    def data(self, scenario: Scenario) -> Data:
        """The scenario's data, made when they are not there."""
        parameters: dict[str, Any] = scenario.parameters
        made = "-".join(f"{name}={value}" for name, value in sorted(parameters.items())).replace("/", "_")
        folder = self.folder / "data" / f"{made}-beside={scenario.beside}-{scenario.seed}"
        if not folder.exists():
            with making(folder) as place:
                self._make(scenario, Data(place / "stream", place / "static.nt"))
                keep_first(place, folder)
        return Data(folder / "stream", folder / "static.nt")

    def _make(self, scenario: Scenario, data: Data) -> None:
        parameters: dict[str, Any] = scenario.parameters
        trains = workloads.load("trains")
        tables = Maker(self.spark)
        tables.write_stream(trains, scenario.seed, parameters, data.stream)
        stations = int(parameters.get("stations", 1)) + scenario.beside
        tables.write_static(trains, scenario.seed, {**parameters, "stations": stations}, data.static)


def do(scenario: Scenario, data: Data, folder: Path) -> Outcome:
    """Measure a scenario."""
    load = os.getloadavg()[0]
    work = _fragments if scenario.system in PLANS else _broker if scenario.system == BROKER else _service
    try:
        found = work(scenario, data, folder)
    except (httpx.HTTPError, OSError, subprocess.SubprocessError) as error:
        raise ProgramError(f"{scenario.name}: {type(error).__name__}: {error}") from error
    return replace(found, load=load)


def _fragments(scenario: Scenario, data: Data, folder: Path) -> Outcome:
    port, outer = free_port(), free_port()
    address = f"http://127.0.0.1:{outer if scenario.proxy else port}/trains"
    template = f"{address}{{?subject,predicate,object,graph}}"
    told: dict[str, Any] = {
        "stream": str(data.stream), "static": str(data.static), "method": scenario.method, "label": scenario.label,
        "renewal": scenario.renewal, "slack": scenario.slack, "port": port, "template": template,
        "store": str(folder / "stores" / scenario.name) if scenario.beside > LARGE else None,
    }  # fmt: skip
    with ExitStack() as stack:
        server = stack.enter_context(Program(f"{PROGRAMS}.fragments_server", told))
        quads = server.wait_for("address", READY_S)["quads"]
        if scenario.proxy:
            cache = (folder / "proxy" / str(outer)).resolve()
            stack.enter_context(caching_proxy(f"http://127.0.0.1:{port}", outer, cache))
        begins = time.time_ns() // 1_000_000 + round(LEAD_S * 1000)
        server.tell(begins=begins)
        server.wait_for("applied")
        asked = [continuous(scenario, client)[0].sparql for client in range(scenario.clients)]
        plan, caching = PLANS[scenario.system]
        task = {
            "address": address, "plan": plan, "cache": caching, "method": scenario.method, "label": scenario.label,
            "template": template, "spread": scenario.spread, "period": scenario.period, "jitter": scenario.jitter,
        }  # fmt: skip
        tasks = [{**task, "queries": part, "first": first} for first, part in parts(asked)]
        crowd = [stack.enter_context(Program(f"{PROGRAMS}.watchers", each)) for each in tasks]
        with metered(server.pid, crowd) as measured:
            before = _served(port)
            for program in crowd:
                program.wait_for("ready", READY_S)
            time.sleep(scenario.seconds)
            after = _served(port)
        for program in crowd:
            program.end()
    details = {"requests": after[0] - before[0], "bytes": after[1] - before[1], "quads": quads}
    applied = [(line["at"], line["applied"]) for line in server.said if "applied" in line]
    lines = [line for program in crowd for line in program.said]
    judge = judging.Held(scenario, data.elements, data.triples, applied)
    return replace(measured.outcome(scenario, [at for at, _ in applied], lines, judge.right), details=details)


def _served(port: int) -> tuple[int, int]:
    """Requests and bytes of bodies that the fragments server has served, by its metrics."""
    text = httpx.get(f"http://127.0.0.1:{port}/metrics", timeout=60).text
    totals = {"requests": 0, "bytes": 0}
    for line in text.splitlines():
        name, _, value = line.rpartition(" ")
        for word in totals:
            if name.partition("{")[0] == f"streamgauge_fragments_{word}_total":
                totals[word] += int(float(value))
    return totals["requests"], totals["bytes"]


def _published(publisher: Publisher, scenario: Scenario, server: int, crowd: list[Program]) -> Measured:
    """What a server (a process id) and its crowd cost while the updates are sent, all of which were taken."""
    with metered(server, crowd) as measured:
        publisher.start()
        time.sleep(scenario.seconds)
    publisher.end()
    for program in crowd:
        program.end()
    publisher.check(scenario.name)
    return measured


def _service(scenario: Scenario, data: Data, folder: Path) -> Outcome:
    """Engines start with the first update, which is sent before measuring begins."""
    del folder
    service = SERVICES[scenario.system]
    stream = [replace(element, until=None) for element in data.elements]
    wishes = [wish(scenario, client) for client in range(scenario.clients)]
    witnesses = judging.witnesses(scenario)
    with ExitStack() as stack:
        server = stack.enter_context(engine_serve(service.engine, scenario.clients))
        tasks = [
            {"address": server.address, "wishes": part, "first": first, "witnesses": witnesses}
            for first, part in parts(wishes)
        ]
        crowd = [stack.enter_context(Program(f"{PROGRAMS}.subscribers", each)) for each in tasks]
        for program in crowd:
            program.wait_for("ready", READY_S)
        first, *others = streamed(stream)
        start(server.address, first, READY_S)
        begins = time.time_ns() // 1_000_000 + round(LEAD_S * 1000) - others[0].time
        publisher = Publisher(server.address, others, begins)
        measured = _published(publisher, scenario, server.pid, crowd)
    lines = [line for program in crowd for line in program.said]
    verdict, right = judging.services(scenario, stream, lines, begins)
    return replace(
        measured.outcome(scenario, [each.answered for each in publisher.taken], lines, right), verdict=verdict
    )


def _broker(scenario: Scenario, data: Data, folder: Path) -> Outcome:
    """Static data are there when it starts; each update deletes what is over and publishes all that holds."""
    del folder
    asked = [continuous(scenario, client)[0].sparql for client in range(scenario.clients)]
    with ExitStack() as stack:
        server = stack.enter_context(broker_serve(data.static, scenario.clients))
        tasks = [{"address": server.address, "queries": part, "first": first} for first, part in parts(asked)]
        crowd = [stack.enter_context(Program(f"{PROGRAMS}.followers", each)) for each in tasks]
        for program in crowd:
            program.wait_for("ready", READY_S)
        begins = time.time_ns() // 1_000_000 + round(LEAD_S * 1000)
        publisher = Publisher(server.address, replaced(updates(data.elements, scenario.slack)), begins)
        measured = _published(publisher, scenario, server.pid, crowd)
    sent = {json.loads(each.said)["publication"]: each.sent for each in publisher.taken}

    def late(line: Mapping[str, Any]) -> int:
        return int(line["received"]) - sent[line["publications"][0]]

    applied = [(each.sent, each.time) for each in publisher.taken]
    judge = judging.Held(scenario, data.elements, data.triples, applied, set)
    lines = [line for program in crowd for line in program.said]
    return measured.outcome(scenario, list(sent.values()), lines, judge.right, late)
