"""Scenarios: which system serves how many clients, with which data and queries; and the measures of one."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from hashlib import sha1
from typing import Any, Final

from streamgauge import workloads
from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.terms import Triple
from streamgauge.query import fill, parse

PAPER: Final[Mapping[str, object]] = {"per_hour": 100, "ahead": "1h", "update": "10s"}
"""300 static and 200 dynamic triples that the train query reads, renewed every 10 s (section 7)."""

LEAD_MS: Final = 20_000
"""Of stream beyond what is measured, as starting takes its time."""

WINDOWS: Final = {"WSIZE": "1h", "WSLIDE": "10s"}
"""As the paper's baselines had them: C-SPARQL [RANGE 1h STEP 10s], CQELS [RANGE 60m SLIDE 10s]."""

TOWNS: Final = 18
PLATFORMS: Final = 14
SLIDE_MS: Final = 10_000


@dataclass(frozen=True, slots=True)
class ServedEngine:
    """An engine behind the query service, under a semantics."""

    engine: str
    semantics: str


PLANS: Final = {
    "incremental": ("incremental", "on"),
    "polling": ("incremental", "off"),
    "streamer": ("streamer", "on"),
    "streamer-no-cache": ("streamer", "off"),
    "streamer-prototype-off": ("streamer", "prototype"),
}
"""Fragments clients: the system's name, its plan and cache; polling has data without times, asked anew."""

SERVICES: Final = {
    "live-csparql": ServedEngine("live", "csparql-0.9.7"),
    "live-cqels": ServedEngine("live", "cqels"),
    "csparql": ServedEngine("csparql", "csparql-0.9.7"),
    "cqels": ServedEngine("cqels", "cqels-1.x"),
}
"""Engines behind ``engine serve``."""

BROKER: Final = "broker"
"""The broker: a channel for each query, whose subscribers get the changes of its answer."""

SYSTEMS: Final = (*PLANS, *SERVICES, BROKER)


@dataclass(frozen=True, slots=True)
class Scenario:
    """One measurement. ``system`` is a key of SYSTEMS; ``seconds`` it lasts; ``slack`` (ms) as fragments are renewed.

    ``distinct``: each client asks for another head sign and platform, else all ask for the whole board. ``beside`` are
    further stations whose departures are static data only, so that the data set is larger than what changes.
    """

    system: str
    clients: int
    distinct: bool = False
    seconds: int = 60
    method: str = "graphs"
    label: str = "expiration"
    renewal: str = "kept"
    slack: int = 500
    period: int | None = None
    jitter: float = 0.1
    spread: float = 10.0
    query: str = "train"
    seed: int = 1
    workload: tuple[tuple[str, object], ...] = tuple(PAPER.items())
    proxy: bool = False
    beside: int = 0

    @property
    def name(self) -> str:
        """A file name that no other scenario has."""
        more = sha1(repr(asdict(self)).encode(), usedforsecurity=False).hexdigest()[:8]
        asked = "distinct" if self.distinct else self.query
        return f"{self.system}-{self.clients}-{asked}-{self.method}-{self.label}-{more}"

    @property
    def parameters(self) -> dict[str, object]:
        """The parameters of the workload."""
        return {**dict(self.workload), "duration": self.seconds * 1000 + LEAD_MS}


@dataclass(frozen=True, slots=True)
class ReceivedAnswer:
    """An answer as a client got it: ``instant`` as it names it, ``received`` ms since 1970, ``took`` ms of its poll.

    ``right``: whether its rows are those of some instant while it was asked; ``None`` where it was not judged.
    ``late``: ms since the change that it tells of was sent, where it names that change.
    """

    client: int
    instant: int | None
    received: int
    size: int
    took: int
    requests: int
    bytes: int
    right: bool | None = None
    late: int | None = None


@dataclass(frozen=True, slots=True)
class CrowdOutcome:
    """The measures of a scenario: CPU per second (s from the clients' start, % of a core), in all (s), of both sides.

    ``began`` and ``updates`` (when the server had each) are ms since 1970; ``load`` is the machine's before.
    """

    scenario: Scenario
    server: tuple[tuple[float, float], ...]
    clients: tuple[tuple[float, float], ...]
    server_cpu: float
    clients_cpu: float
    lasted: float
    began: int
    updates: tuple[int, ...]
    answers: tuple[ReceivedAnswer, ...]
    failures: tuple[str, ...]
    load: float
    verdict: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def server_percent(self) -> float:
        """Mean CPU of the server's process tree, % of one core."""
        return 100 * self.server_cpu / self.lasted

    @property
    def client_percent(self) -> float:
        """Mean CPU of one client, % of one core."""
        return 100 * self.clients_cpu / self.lasted / self.scenario.clients


def to_json(outcome: CrowdOutcome) -> dict[str, Any]:
    """The outcome as JSON."""
    return asdict(outcome)


def from_json(data: Mapping[str, Any]) -> CrowdOutcome:
    """The outcome that ``to_json`` wrote; TypeError or KeyError for something else."""
    scenario = dict(data["scenario"])
    scenario["workload"] = tuple((name, value) for name, value in scenario["workload"])
    fields = dict(data)
    fields["scenario"] = Scenario(**scenario)
    fields["answers"] = tuple(ReceivedAnswer(**each) for each in data["answers"])
    for name in ("server", "clients"):
        fields[name] = tuple((at, percent) for at, percent in data[name])
    for name in ("updates", "failures"):
        fields[name] = tuple(data[name])
    return CrowdOutcome(**fields)


def continuous(scenario: Scenario, client: int) -> tuple[ContinuousQuery, str]:
    """A client's query with windows, and its text (RSP-QL)."""
    name = "head-sign" if scenario.distinct else scenario.query
    template = workloads.query_text(workloads.load("trains"), name)
    town, platform = client % TOWNS + 1, client // TOWNS % PLATFORMS + 1
    values = {**WINDOWS, "TOWN": town, "PLATFORM": platform}
    text = fill(template, {name: value for name, value in values.items() if f"${{{name}}}" in template})
    return _read(text), text


@lru_cache(maxsize=4096)
def _read(text: str) -> ContinuousQuery:
    return parse(text, "rspql")


def over_all(query: ContinuousQuery, static: Sequence[Triple]) -> ContinuousQuery:
    """The query over all facts that hold, as the fragments client answers it."""
    windows = tuple(StreamWindow(each.stream, Window(SLIDE_MS, SLIDE_MS, "landmark")) for each in query.windows)
    return ContinuousQuery(query.form, windows, None, static, sparql=query.sparql)


def registration(scenario: Scenario, client: int) -> dict[str, Any]:
    """The registration of a client's query at the service; all that the query reads comes by the stream."""
    service = SERVICES[scenario.system]
    text = continuous(scenario, client)[1]
    return {"query": text, "dialect": "rspql", "semantics": service.semantics}
