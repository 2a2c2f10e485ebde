"""What is measured: which system serves how many clients, with which data and queries; and what comes of it."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from hashlib import sha1
from typing import Any, Final

PAPER: Final[Mapping[str, object]] = {"per_hour": 100, "ahead": "1h", "update": "10s"}
"""300 static and 200 dynamic triples that the train query reads, renewed every 10 s (section 7)."""

LEAD_MS: Final = 20_000
"""Of stream beyond what is measured, as starting takes its time."""


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
        """Of the workload."""
        return {**dict(self.workload), "duration": self.seconds * 1000 + LEAD_MS}


@dataclass(frozen=True, slots=True)
class Served:
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
class Outcome:
    """What was measured: CPU per second (s since the clients began, % of a core) and in all (s) of both sides' trees.

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
    answers: tuple[Served, ...]
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


def to_json(outcome: Outcome) -> dict[str, Any]:
    """As JSON."""
    return asdict(outcome)


def from_json(data: Mapping[str, Any]) -> Outcome:
    """What ``to_json`` wrote; TypeError or KeyError for something else."""
    scenario = dict(data["scenario"])
    scenario["workload"] = tuple((name, value) for name, value in scenario["workload"])
    fields = dict(data)
    fields["scenario"] = Scenario(**scenario)
    fields["answers"] = tuple(Served(**each) for each in data["answers"])
    for name in ("server", "clients"):
        fields[name] = tuple((at, percent) for at, percent in data[name])
    for name in ("updates", "failures"):
        fields[name] = tuple(data[name])
    return Outcome(**fields)
