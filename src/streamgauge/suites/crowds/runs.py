"""Runs of scenarios: CPU of servers and clients while a crowd is served; answers are judged, outcomes stored."""

import json
import os
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import httpx
import msgspec

from streamgauge import workloads
from streamgauge.formats.seals import SealError, check_beside, seal, seal_beside, unseal
from streamgauge.harness import RunStore, made_once
from streamgauge.harness.process import ProgramError
from streamgauge.harness.resources import ResourceSampler
from streamgauge.suites.crowds.scenario import CrowdOutcome, Findings, ReceivedAnswer, Scenario
from streamgauge.suites.crowds.systems import CrowdData, Line, system_of
from streamgauge.suites.crowds.updates import wall_ms
from streamgauge.workloads.plan import Maker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EVERY_S: Final = 1.0


@dataclass(frozen=True)
class ScenarioRunner:
    """Runs scenarios without a stored outcome; ``folder`` has outcomes and data."""

    folder: Path
    spark: "Callable[[], SparkSession]"

    def outcome(self, scenario: Scenario) -> CrowdOutcome:
        """The outcome of a scenario, stored or from a run now; ProgramError if the run fails."""
        if (kept := self.store.finished(scenario.name)) is not None:
            return kept
        result = run(scenario, self.data(scenario), self.folder)
        return self.store.add(scenario.name, lambda place: _write(place, result)) or result

    def kept(self, scenario: Scenario) -> bool:
        """Whether the outcome is stored."""
        return self.store.place(scenario.name).exists()

    @property
    def store(self) -> RunStore[CrowdOutcome]:
        """The stored outcomes, a file each."""
        return RunStore(self.folder, _read, ".json")

    def data(self, scenario: Scenario) -> CrowdData:
        """The scenario's data, generated if they do not exist."""
        parameters: dict[str, Any] = scenario.parameters
        # All parameters that the data depend on are in the folder's name, so other parameters never find these data.
        label = "-".join(f"{name}={value}" for name, value in sorted(parameters.items())).replace("/", "_")
        folder = self.folder / "data" / f"{label}-beside={scenario.beside}-{scenario.seed}"
        made_once(folder, lambda place: self._make(scenario, CrowdData(place / "stream", place / "static.nt")))
        check_beside(folder)
        return CrowdData(folder / "stream", folder / "static.nt")

    def _make(self, scenario: Scenario, data: CrowdData) -> None:
        parameters: dict[str, Any] = scenario.parameters
        trains = workloads.load("trains")
        tables = Maker(self.spark)
        tables.write_stream(trains, scenario.seed, parameters, data.stream)
        # The stations beside have static departures only, so the stream does not have them.
        stations = int(parameters.get("stations", 1)) + scenario.beside
        tables.write_static(trains, scenario.seed, {**parameters, "stations": stations}, data.static)
        seal_beside(data.static.parent)


def _write(file: Path, outcome: CrowdOutcome) -> None:
    file.write_text(json.dumps(seal(msgspec.to_builtins(outcome))), "utf-8")


def _read(file: Path) -> CrowdOutcome | None:
    if not file.exists():
        return None
    try:
        return msgspec.convert(unseal(json.loads(file.read_text("utf-8")), file), CrowdOutcome)
    except (json.JSONDecodeError, UnicodeDecodeError, msgspec.ValidationError) as error:
        raise SealError(file) from error


def run(scenario: Scenario, data: CrowdData, folder: Path) -> CrowdOutcome:
    """Serve the scenario's crowd for its seconds and measure both sides; ProgramError if a process fails.

    If whole answers are recorded, each witness's run is stored in ``folder/runs/NAME/client-N``.
    """
    # Before the crowd starts, so that it shows what else the machine is doing.
    load, lines = os.getloadavg()[0], list[Line]()
    try:
        with system_of(scenario, folder) as system:
            system.start(data)
            publisher = system.begin(lines.append)
            sides = {"server": system.processes, "clients": [program.pid for program in system.crowd]}
            with ResourceSampler(sides, EVERY_S) as sampler:
                # Two clocks: updates and answers state wall time, and the duration is measured by the monotonic clock,
                # which nobody sets.
                began, before, start = wall_ms(), system.counts(), time.monotonic()
                system.settle()
                # A fragments server has started it in ``begin``, since its clients need the first update.
                if not publisher.ident:
                    publisher.start()
                time.sleep(scenario.seconds)
                # At the end of the measured time, before clients leave and the publisher ends.
                after, lasted = system.counts(), time.monotonic() - start
            publisher.end()
            system.unsubscribe(scenario.query)
            publisher.check(scenario.name)
            findings = system.judged(publisher, lines)
    except (httpx.HTTPError, OSError, subprocess.SubprocessError) as error:
        raise ProgramError(f"{scenario.name}: {type(error).__name__}: {error}") from error
    for client, judged in findings.runs.items():
        judged.keep(folder / "runs" / scenario.name / f"client-{client}")
    failed = Counter(str(line["failed"]) for line in lines if "failed" in line)
    cpu = {
        side: tuple(((sample.at - sampler.began) / 1e9, sample.cpu_percent) for sample in samples)
        for side, samples in sampler.samples.items()
    }
    return CrowdOutcome(
        scenario=scenario,
        server=cpu["server"],
        clients=cpu["clients"],
        server_cpu=sampler.total["server"],
        clients_cpu=sampler.total["clients"],
        lasted=lasted,
        began=began,
        updates=tuple(findings.updates),
        answers=_answers(lines, began + round(lasted * 1000), findings),
        failures=tuple(f"{count} times: {why}" for why, count in failed.items()),
        load=load,
        verdict=findings.verdict,
        details={**system.about, **{name: count - before[name] for name, count in after.items()}},
    )


def _answers(lines: Sequence[Line], over: int, findings: Findings) -> tuple[ReceivedAnswer, ...]:
    """The answers received until ``over`` (ms since 1970), the end of the measurement, each judged."""
    return tuple(
        ReceivedAnswer(
            line["client"], line["instant"], line["received"], line["size"], line.get("took", 0),
            line.get("requests", 0), line["bytes"], findings.right(line), findings.late(line),
        )
        for line in lines if "rows" in line and line["received"] <= over
    )  # fmt: skip
