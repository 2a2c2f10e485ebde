"""YABench's experiments on real engines, as data: what is run, under which semantics, beside which published files."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from streamgauge.engines import load, profiles
from streamgauge.model.semantics import Report
from streamgauge.papers.yabench_published import EXPERIMENTS, LOADS, SIZE
from streamgauge.query import fill, parse
from streamgauge.semantics.profiles import profile
from streamgauge.suites.experiments.experiment import Experiment, ExperimentError
from streamgauge.workloads import load as load_workload
from streamgauge.workloads import query_text

SETTLE_MS = 2000
"""How long beyond a window's size time goes on after the stream's end, so that the last window closes (as YABench)."""

HURRICANE_MS = 33_000
STAND_IN = {"stations": 28, "duration": HURRICANE_MS, "humidity": True, "values": "normal"}
"""A stream like CSRBench's: 34 s, about 28 observations of temperature and as many of humidity a second."""
THEIR_STATION, OUR_STATION = "System_C1190", "System_A0"
"""The station that Q7 compares with, in CSRBench's data and in the stand-in."""

EXPERIMENT_3 = (1430236808, {"small": 50, "medium": 200, "big": 500})
"""Seed and stations of experiment 3, whose result files are not published."""


@dataclass(frozen=True)
class Trial:
    """One test: its name, the experiment's number (0 for CSRBench's queries), published load, workload and query.

    ``duration`` of the stream and size of its ``window`` in ms.
    """

    name: str
    number: int
    load: str | None
    seed: int
    workload: dict[str, Any]
    query: dict[str, Any]
    duration: int
    window: int
    gracious: bool = False
    once: bool = False


@dataclass(frozen=True)
class Side:
    """An engine under a semantics, and whose published files it is beside."""

    engine: str
    semantics: str
    published: str
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """Engine and semantics, the latter when it is not the engine's own."""
        return self.engine if self.engine == self.published else f"{self.engine} as {self.semantics}"


OPTIONS: dict[str, dict[str, Any]] = {"csparql": {"settle": 0}}
"""What an engine is told: time goes on until the last window has closed, so C-SPARQL need not wait after it."""

OWN = {
    "csparql": ("csparql-0.9.7-wall",),
    "cqels": ("cqels-1.x-yabench",),
    "live": ("yabench", "yabench-change"),
}
"""Under what an engine runs as YABench ran it, `live` under both of its oracle's semantics; others: their first."""


def sides(engine: str) -> tuple[Side, ...]:
    """How an engine takes part."""
    names = OWN.get(engine) or (profiles(load(engine)) or ("rspql",))[:1]
    return tuple(Side(engine, name, _beside(name), OPTIONS.get(engine, {})) for name in names)


def _beside(name: str) -> str:
    """C-SPARQL's files for who reports windows that close, CQELS's for who reports changes."""
    return "cqels" if Report.CONTENT_CHANGE in profile(name).report else "csparql"


def trials(hurricane: Path | None, only: Sequence[str]) -> tuple[Trial, ...]:
    """Every test, or those named (a name, or its part before the slash); ExperimentError lists the names there are."""
    found = (*_generated(), *_csrbench(hurricane))
    unknown = [name for name in only if not any(_named(test, name) for test in found)]
    if unknown:
        raise ExperimentError(f"--only {unknown[0]}: there is {', '.join(test.name for test in found)}")
    return tuple(test for test in found if not only or any(_named(test, name) for name in only))


def _named(test: Trial, name: str) -> bool:
    return name in (test.name, test.name.partition("/")[0])


def _generated() -> tuple[Trial, ...]:
    """Experiments 1 to 4, experiment 2 small with the paper's one station too."""
    first, second, fourth = EXPERIMENTS[1], EXPERIMENTS[2], EXPERIMENTS[4]
    seed, stations = EXPERIMENT_3
    made = [_weather(f"E1/{each}", 1, each, first.seed, first.stations[each], first.parameters) for each in LOADS]
    made.append(_weather("E2/small-1", 2, None, second.seed, 1, second.parameters))
    made += [_weather(f"E2/{each}", 2, each, second.seed, second.stations[each], second.parameters) for each in LOADS]
    made += [_weather(f"E3/{each}", 3, None, seed, stations[each], fourth.parameters) for each in LOADS]
    return (*made, _weather("E4", 4, "non-gracious", fourth.seed, 1, fourth.parameters, fourth.duration))


_QUERIES = {1: "select", 2: "average", 3: "variation", 4: "variation"}


def _weather(
    name: str, number: int, load: str | None, seed: int, stations: int, values: dict[str, str], duration: int = 30_000
) -> Trial:
    workload = {"name": "weather", "stations": stations, "duration": duration}
    query = {"name": _QUERIES[number], "parameters": {"WSIZE": "5s", "WSLIDE": "5s", **values}}
    return Trial(name, number, load, seed, workload, query, duration, SIZE, gracious=number == 4, once=number == 4)


def _csrbench(hurricane: Path | None) -> tuple[Trial, ...]:
    """Q1 to Q7 on CSRBench's stream, or on the stand-in where that is not there."""
    workload: dict[str, Any] = {"name": "weather", **STAND_IN}
    if hurricane is not None:
        workload = {"name": "csrbench", "data": str(hurricane)}
    texts = {f"Q{number}": _text(number, hurricane) for number in range(1, 8)}
    return tuple(
        Trial(name, 0, None, 1, workload, {"text": text}, HURRICANE_MS, parse(text).window.size)
        for name, text in texts.items()
    )


def _text(number: int, hurricane: Path | None) -> str:
    text = fill(query_text(load_workload("csrbench"), f"q{number}"), {})
    return text if hurricane is not None else text.replace(THEIR_STATION, OUR_STATION)


def experiment(test: Trial, side: Side, repetitions: int) -> Experiment:
    """The experiment file of a test: real time, one seed, as often as YABench did."""
    return Experiment.model_validate(
        {
            "name": test.name,
            "seeds": [test.seed],
            "repetitions": 1 if test.once else repetitions,
            "workload": test.workload,
            "query": test.query,
            "engine": [{"name": side.engine, "semantics": [side.semantics], "options": side.options}],
            "feed": {"pace": "real time", "advance_to": test.duration + test.window + SETTLE_MS},
        }
    )
