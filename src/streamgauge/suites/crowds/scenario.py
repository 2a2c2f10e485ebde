"""Scenarios: the system, the number of clients, data and queries; and the measures of a run."""

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from hashlib import sha1
from json import dumps
from typing import Any, Final, TypeAlias

from streamgauge import workloads
from streamgauge.formats.lines import decode_answer
from streamgauge.harness import JudgedRun
from streamgauge.model.answer import Answer
from streamgauge.model.element import StreamElement
from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.run import Fed, Run, RunHeader
from streamgauge.model.terms import Row, Triple
from streamgauge.model.verdict import Judgement, Verdict
from streamgauge.oracle.expected.reports import Valid, definition
from streamgauge.oracle.judging.oracle import JudgingRules, check
from streamgauge.query import fill, parse
from streamgauge.semantics.profiles import FRAGMENTS, profile
from streamgauge.servers.fragments.labels import Label
from streamgauge.suites.crowds.clients import digest
from streamgauge.suites.crowds.updates import FactRenewal, Update, updates

PAPER: Final[Mapping[str, object]] = {"per_hour": 100, "ahead": "1h", "update": "10s"}
"""300 static and 200 dynamic triples that the train query reads, renewed every 10 s (section 7)."""

LEAD_MS: Final = 20_000
"""Length of stream beyond the measured time, for the start of servers and clients."""

WINDOWS: Final = {"WSIZE": "1h", "WSLIDE": "10s"}
"""The windows of the paper's baselines: C-SPARQL [RANGE 1h STEP 10s], CQELS [RANGE 60m SLIDE 10s]."""

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
"""Fragments clients: the system's name, its plan and cache; polling has data without times."""

SERVICES: Final = {
    "live-csparql": ServedEngine("live", "csparql-0.9.7"),
    "live-cqels": ServedEngine("live", "cqels"),
    "csparql": ServedEngine("csparql", "csparql-0.9.7"),
    "cqels": ServedEngine("cqels", "cqels-1.x"),
}
"""Engines behind ``engine serve``."""

BROKER: Final = "broker"
"""The broker: a channel for each query, whose subscribers get the changes of its answer."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """A measurement. ``system`` is a name of ``systems``; ``seconds`` is its duration; ``slack`` in ms.

    ``distinct``: each client has another head sign and platform, otherwise all query the whole board. ``beside`` are
    additional stations with static departures only, so that the data set is larger than its changing part.
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
        """A file name that is unique to the scenario."""
        # Of all fields, most of which the readable part leaves out.
        more = sha1(repr(asdict(self)).encode(), usedforsecurity=False).hexdigest()[:8]
        label = "distinct" if self.distinct else self.query
        return f"{self.system}-{self.clients}-{label}-{self.method}-{self.label}-{more}"

    @property
    def parameters(self) -> dict[str, object]:
        """The parameters of the workload."""
        return {**dict(self.workload), "duration": self.seconds * 1000 + LEAD_MS}


@dataclass(frozen=True, slots=True)
class ReceivedAnswer:
    """An answer as a client received it: ``instant`` as stated, ``received`` ms since 1970, ``took`` ms of its poll.

    ``right``: whether its rows are those of an instant during the poll; ``None`` if it was not judged. ``late``: ms
    since the change that the answer names was sent.
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
    """The measures of a scenario: CPU per second (s from the clients' start, % of a core) and in total (s).

    ``began`` and ``updates`` (applied by the server) are ms since 1970; ``load`` is the machine's load before.
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


def continuous(scenario: Scenario, client: int) -> tuple[ContinuousQuery, str]:
    """A client's query with windows, and its text (RSP-QL)."""
    name = "head-sign" if scenario.distinct else scenario.query
    template = workloads.query_text(workloads.load("trains"), name)
    # 18 towns and 14 platforms give 252 clients a query of their own.
    # The town changes with each client and the platform after 18: client 0 has town 1 at platform 1, client 18 town 1
    # at platform 2.
    town, platform = client % TOWNS + 1, client // TOWNS % PLATFORMS + 1
    values = {**WINDOWS, "TOWN": town, "PLATFORM": platform}
    text = fill(template, {name: value for name, value in values.items() if f"${{{name}}}" in template})
    return _read(text), text


@lru_cache(maxsize=4096)
def _read(text: str) -> ContinuousQuery:
    return parse(text, "rspql")


def over_all(query: ContinuousQuery, static: Sequence[Triple]) -> ContinuousQuery:
    """The query over all valid facts, as a fragments client answers it."""
    windows = tuple(StreamWindow(window.stream, Window(SLIDE_MS, SLIDE_MS, "landmark")) for window in query.windows)
    return ContinuousQuery(query.form, windows, None, static, sparql=query.sparql)


def registration(scenario: Scenario, client: int) -> dict[str, Any]:
    """The registration of a client's query at the service; all its data come from the stream."""
    service = SERVICES[scenario.system]
    text = continuous(scenario, client)[1]
    return {"query": text, "dialect": "rspql", "semantics": service.semantics}


WITNESSES: Final = 10
"""Maximum number of clients with distinct queries whose answers are judged."""

Right: TypeAlias = Callable[[Mapping[str, Any]], bool | None]
"""Whether an answer (a client's line) is right, ``None`` if unknown."""


class ServerHistory:
    """A server's facts over time: an answer is right if it fits an instant between its time and reception.

    A fragments server's Date has whole seconds, so an answer may be of any instant from that second until its
    reception. An update is valid from its application until that of the next. ``answer`` converts a bag of rows:
    ``set`` for a broker.
    """

    def __init__(
        self,
        scenario: Scenario,
        elements: Sequence[StreamElement],
        static: Sequence[Triple],
        applied: Sequence[tuple[int, int]],
        answer: Callable[[Iterable[Row]], Collection[Row]] = list,
    ) -> None:
        self._scenario, self._static, self._answer = scenario, tuple(static), answer
        by_time = {update.time: update for update in updates(elements, scenario.slack)}
        times = [(at, by_time[time]) for at, time in applied]
        adds = scenario.renewal == FactRenewal.PUBLISHED and scenario.label == Label.INTERVAL
        self._history = history(times, elements[0].stream, adds)
        self._valid: dict[str, Valid] = {}
        self._digests: dict[int, str] = {}

    def right(self, line: Mapping[str, Any]) -> bool | None:
        """Whether the rows of an answer are those of a possible instant."""
        query, text = continuous(self._scenario, line["client"])
        if text not in self._valid:
            self._valid[text] = Valid(over_all(query, self._static), FRAGMENTS, self._history)
        # A worked example: the Date of an answer is 12:00:03, it was received at 12:00:03.700, and an update was
        # applied at 12:00:03.200. The rows before the update and those after it are both right.
        answers = self._valid[text].within(line["instant"], line["received"])
        return any(self._digest(rows) == line["rows"] for rows in answers)

    def _digest(self, rows: tuple[Row, ...]) -> str:
        """The digest of rows, computed once. Rows are identified by ``id``, as ``Valid`` keeps them as long as this."""
        if id(rows) not in self._digests:
            self._digests[id(rows)] = digest(self._answer(rows))
        return self._digests[id(rows)]


def history(applied: Sequence[tuple[int, Update]], stream: str, adds: bool = False) -> list[StreamElement]:
    """The facts of a server: each update from its application (ms) until that of the next, or until its end.

    If the server only ``adds`` facts, each has its own end, so that consecutive updates overlap.
    """
    # The length of validity comes from the stream, its beginning from when the server has applied it.
    # A worked example: two updates, each valid for 10 s in the stream, are applied at 100 ms and 10,130 ms. A server
    # that only adds facts has the first until 10,100 ms, one that replaces them until 10,130 ms.
    ends = [at + update.until - update.time for at, update in applied]
    if not adds:
        ends[:-1] = [at for at, _ in applied[1:]]
    return [
        StreamElement(stream, at, number, update.triples, (), end)
        for number, ((at, update), end) in enumerate(zip(applied, ends, strict=True))
    ]


def witnesses(scenario: Scenario) -> list[int]:
    """The clients whose answers are judged: the first, and some more if queries are distinct."""
    return list(range(min(WITNESSES, scenario.clients) if scenario.distinct else 1))


@dataclass(frozen=True, slots=True)
class Findings:
    """The judgement of a crowd's answers: whether a line is right, its lateness (ms), and a verdict in words.

    ``updates`` are the times (ms since 1970) of updates at the server; ``runs`` those of witnesses by client, if whole
    answers were recorded.
    """

    updates: Sequence[int]
    right: Right
    late: Callable[[Mapping[str, Any]], int | None] = lambda _line: None
    verdict: str = ""
    runs: Mapping[int, JudgedRun] = field(default_factory=dict)


def service_findings(
    scenario: Scenario,
    elements: Sequence[StreamElement],
    lines: Sequence[Mapping[str, Any]],
    begins: int,
    updates: Sequence[int] = (),
) -> Findings:
    """The common judge's verdicts on the witnesses, and whether others had the same answer at each instant.

    The verdict is that of the first witness that is not right, else of the first with an answer. If queries are
    distinct, or answers have no instant, other clients' answers are not judged.
    """
    answer_lines = [line for line in lines if "answer" in line]
    if not answer_lines:
        return Findings(updates, lambda _line: None, verdict="no answer")
    advanced = max(line["received"] - begins for line in answer_lines)
    # Elements after the last answer had no chance to be answered.
    fed = [element for element in elements if element.time <= advanced]
    answers = {client: [line for line in answer_lines if line["client"] == client] for client in witnesses(scenario)}
    runs = {client: _judged(scenario, client, fed, own, begins) for client, own in answers.items()}
    verdicts = [run.verdict for run in runs.values()]
    wrong = [verdict for verdict in verdicts if verdict.judgement not in {Judgement.RIGHT, Judgement.LATE}]
    first = wrong[0] if wrong else next(runs[client].verdict for client, own in answers.items() if own)
    message = f" ({len(runs) - len(wrong)} of {len(runs)} queries are right)" if len(runs) > 1 else ""
    known: dict[int, set[str]] = {}
    for line in answer_lines:
        known.setdefault(line["instant"], set()).add(line["rows"])

    def same(line: Mapping[str, Any]) -> bool | None:
        return None if scenario.distinct or line["instant"] not in known else line["rows"] in known[line["instant"]]

    return Findings(updates, same, verdict=_word(first) + message, runs=runs)


def _word(verdict: Verdict) -> str:
    message = f"{verdict.judgement}, precision {verdict.precision:.3f}, recall {verdict.recall:.3f}"
    return f"{message} ({verdict.reason})" if verdict.reason else message


def _judged(
    scenario: Scenario, client: int, fed: Sequence[StreamElement], answers: Sequence[Mapping[str, Any]], begins: int
) -> JudgedRun:
    """The run of a client, judged on the elements that were fed."""
    service = SERVICES[scenario.system]
    query, text = continuous(scenario, client)
    header = RunHeader(
        service.engine, query, text, "rspql", profile(service.semantics), fed[-1].time, begins * 1_000_000, factor=1.0,
        evaluator="changes" if service.engine == "live" else None,
        workload={"name": "trains", "seed": scenario.seed, **scenario.parameters},
        options={"clients": scenario.clients, "client": client},
    )  # fmt: skip
    hands = []
    for element in fed:
        at = (begins + element.time) * 1_000_000
        hands.append(Fed(element.sequence, element.time, at, at, len(element.added)))
    run = Run(header, tuple(map(_answer, answers)), tuple(hands))
    return JudgedRun(run, fed, check(run, definition(fed), 0, JudgingRules()))


def _answer(line: Mapping[str, Any]) -> Answer:
    return replace(decode_answer(dumps(line["answer"])), received=line["received"] * 1_000_000)


def freshness(answers: Sequence[tuple[int, int, int]], applied: Sequence[int]) -> list[int]:
    """For each change and client, the time (ms) until an answer whose poll began after the change.

    ``answers`` are (client, received, took), ``applied`` the times of changes at the server; ms.
    """
    delays: list[int] = []
    by_client: dict[int, list[tuple[int, int]]] = {}
    for client, received, took in answers:
        by_client.setdefault(client, []).append((received - took, received))
    for polls in by_client.values():
        polls.sort()
        begun = [at for at, _ in polls]
        for change in applied:
            # The first poll that began after the change: an earlier one may have read the data before it.
            place = bisect_right(begun, change)
            # A change before the first poll is part of the client's first answer, however slow the system is.
            if change >= begun[0] and place < len(polls):
                delays.append(polls[place][1] - change)
    return delays
