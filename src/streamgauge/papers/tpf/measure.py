"""The TPF Query Streamer's experiment: scenarios in full and quick, outcomes, capacity, claims."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, product
from statistics import fmean, linear_regression, median
from typing import Final

from streamgauge.harness.process import ProgramError
from streamgauge.papers.reproduction import ComparedClaim, Tell, paper
from streamgauge.report.numbers import NOTHING, duration
from streamgauge.report.sections import PageTable, TableLine
from streamgauge.suites.crowds.runs import ScenarioRunner
from streamgauge.suites.crowds.scenario import BROKER, SERVICES, CrowdOutcome, Scenario, freshness
from streamgauge.suites.crowds.scenario import PAPER as WORKLOAD
from streamgauge.suites.experiments.load_search import Bracket, SearchRange, search
from streamgauge.workloads.trains import PROPERTIES

CACHES: Final = {
    "streamer": "with cache",
    "streamer-no-cache": "without cache",
    "streamer-prototype-off": "the prototype's off",
}
"""The variants of the paper's plan."""

METHODS: Final = ("graphs", "singleton", "implicit")
"""The three systems of the paper."""

LABELS: Final = ("interval", "expiration")

FRAGMENTS: Final = ("incremental", "streamer", "streamer-no-cache", "streamer-prototype-off", "polling")
WINDOWED: Final = tuple(SERVICES)
PUSHED: Final = (*WINDOWED, BROKER)
"""Systems that push their answers instead of being polled."""

FOREIGN: Final = ("csparql", "cqels")
HERD: Final = 1000
POLL_MS: Final = 1000
"""Polling interval of clients that ignore the end of facts, ms."""


@dataclass(frozen=True, slots=True)
class TpfExtent:
    """The extent of a measurement: clients, seconds of each, of each annotation, its update (s); foreign processes.

    ``processes`` bounds distinct queries of engines that are programs, as each is a process. ``each``: additional
    seconds per client, as all have to start. ``systems`` take part in figures 2 and 3, ``parts`` run by default.
    """

    clients: tuple[int, ...]
    distinct: tuple[int, ...]
    seconds: int
    iterating: int
    update: str
    processes: int
    each: float
    systems: tuple[str, ...]
    parts: tuple[str, ...]


PARTS: Final = ("scaling", "annotations", "static", "proxy", "herd", "capacity")
"""The parts of the experiment, which may be run one by one."""

FULL: Final = TpfExtent(
    tuple(range(10, 201, 10)), (10, 50, 100, 150, 200), 60, 75, "10s", 50, 0.3, (*FRAGMENTS, *PUSHED), PARTS
)
QUICK: Final = TpfExtent(
    (10, 50, 200), (10, 50, 200), 32, 25, "4s", 10, 0.3,
    ("incremental", "streamer", "live-csparql", *FOREIGN, BROKER), ("scaling", "annotations", "static"),
)  # fmt: skip


def scaling(extent: TpfExtent, systems: tuple[str, ...]) -> Iterator[Scenario]:
    """Figures 2 and 3: both sides' cost by the number of clients, with identical and distinct queries."""
    there = [system for system in extent.systems if system in systems]
    for clients, system in product(extent.clients, there):
        yield scaled(extent, system, clients, distinct=False)
    for clients, system in product(extent.distinct, there):
        if system not in FOREIGN or clients <= extent.processes:
            yield scaled(extent, system, clients, distinct=True)


def scaled(extent: TpfExtent, system: str, clients: int, *, distinct: bool) -> Scenario:
    """A system with this number of clients, which start one after the other during a third of the time.

    Engines with windows get all five properties with each update, as the paper's baselines did.
    """
    seconds = extent.seconds + round(extent.each * clients)
    usual = Scenario(system, clients, distinct, seconds, spread=seconds / 3)
    if system == "polling":
        return replace(usual, renewal="plain", period=POLL_MS)
    if system in SERVICES:
        return replace(usual, workload=(*usual.workload, ("dynamic", ",".join(PROPERTIES))))
    return usual


def annotations(extent: TpfExtent) -> Iterator[Scenario]:
    """Figure 4: one client, by annotation method, label and cache, renewed as in the prototype."""
    for method, label, system in product(METHODS, LABELS, CACHES):
        yield annotated(extent, method, label, system, "published")
    for label in LABELS:
        yield annotated(extent, "graphs", label, "incremental", "kept")


def annotated(extent: TpfExtent, method: str, label: str, system: str, renewal: str) -> Scenario:
    """One client of a data set with this annotation."""
    workload = {**WORKLOAD, "update": extent.update, "per_hour": 25, "speedup": 60}
    return Scenario(
        system, 1, False, extent.iterating, method, label, renewal, jitter=0.0, spread=0.0,
        workload=tuple(workload.items()),
    )  # fmt: skip


def static_patterns(extent: TpfExtent) -> Iterator[Scenario]:
    """Hypothesis 3: 0 to 4 of the five patterns static, with and without the cache; five would not poll again."""
    for number, system in product(range(len(PROPERTIES)), CACHES):
        yield with_static(extent, number, system)


def with_static(extent: TpfExtent, number: int, system: str) -> Scenario:
    """One client whose query has this number of static patterns; the board is a prototype's, 25 departures."""
    dynamic = ",".join(PROPERTIES[: len(PROPERTIES) - number])
    workload = {**WORKLOAD, "update": extent.update, "per_hour": 25, "dynamic": dynamic}
    return Scenario(
        system, 1, False, extent.iterating, jitter=0.0, spread=0.0, workload=tuple(workload.items())
    )  # fmt: skip


def herd(extent: TpfExtent) -> tuple[Scenario, ...]:
    """A thousand clients with one expiration per minute, with and without jitter; they start in the first 80 s.

    A client's start and a poll cost its process about 40 and 8 ms of CPU, which would dominate on a small machine if
    they started faster.
    """
    workload = tuple({**WORKLOAD, "update": "60s"}.items())
    seconds = max(200, 3 * extent.seconds)
    return tuple(
        Scenario("incremental", HERD, seconds=seconds, spread=80.0, jitter=jitter, workload=workload)
        for jitter in (0.1, 0.0)
    )


def proxied(extent: TpfExtent) -> Iterator[Scenario]:
    """A cache in front: one client, 200 with one query, 200 with distinct ones."""
    for clients, distinct in ((1, False), (200, False), (200, True)):
        yield replace(scaled(extent, "incremental", clients, distinct=distinct), proxy=True)


PAPER: Final = paper("tpf")
CLAIMS: Final = PAPER.claims
NAMES: Final = {
    "incremental": "fragments, incremental",
    "streamer": "fragments, streamer",
    "streamer-no-cache": "streamer, no cache",
    "streamer-prototype-off": "streamer, cache off as the prototype",
    "polling": "polling each second",
    "live-csparql": "live as C-SPARQL",
    "live-cqels": "live as CQELS",
    "csparql": "C-SPARQL",
    "cqels": "CQELS",
    "broker": "the broker",
}
"""Names of systems on the page."""


@dataclass(frozen=True)
class TpfOutcomes:
    """Outcomes of scenarios, and reasons for missing ones."""

    outcomes: Mapping[Scenario, CrowdOutcome]
    lacking: Mapping[Scenario, str] = field(default_factory=dict)

    def of(self, scenario: Scenario) -> CrowdOutcome | None:
        """The outcome of a scenario, ``None`` where there is none."""
        return self.outcomes.get(scenario)


def measure(scenarios: Iterable[Scenario], doing: ScenarioRunner, tell: Tell) -> TpfOutcomes:
    """Run the scenarios that are not stored, and note why others cannot run."""
    todo = list(dict.fromkeys(scenarios))
    outcomes: dict[Scenario, CrowdOutcome] = {}
    lacking: dict[Scenario, str] = {}
    for place, scenario in enumerate(todo):
        # With 10 s for the start and the end of each.
        left = sum(scenario.seconds + 10 for scenario in todo[place:] if not doing.kept(scenario)) / 60
        tell(f"{scenario.system}, {scenario.clients} clients, at most {left:.0f} min left", place / len(todo))
        try:
            outcomes[scenario] = doing.outcome(scenario)
        except ProgramError as error:
            lacking[scenario] = str(error)
    return TpfOutcomes(outcomes, lacking)


def kept(scenarios: Iterable[Scenario], doing: ScenarioRunner) -> TpfOutcomes:
    """Read stored outcomes without running anything."""
    todo = list(dict.fromkeys(scenarios))
    return TpfOutcomes(
        {scenario: doing.outcome(scenario) for scenario in todo if doing.kept(scenario)},
        {scenario: "not measured yet" for scenario in todo if not doing.kept(scenario)},
    )


def stale(outcome: CrowdOutcome) -> list[int]:
    """Staleness (ms): from each update to each client's first answer that was requested after it.

    Answers that name their change (a broker's) are measured from that change.
    """
    late = [answer.late for answer in outcome.answers if answer.late is not None]
    if late:
        return late
    answers = [(answer.client, answer.received, answer.took) for answer in outcome.answers]
    return freshness(answers, outcome.updates)


def iterations(outcome: CrowdOutcome) -> list[int]:
    """Durations (ms) of the first client's polls; the first includes the client's start."""
    return [answer.took for answer in outcome.answers if answer.client == 0]


def later(outcome: CrowdOutcome) -> list[int]:
    """Durations (ms) of the first client's polls except the first."""
    return iterations(outcome)[1:]


def mean_later(outcome: CrowdOutcome | None) -> float | None:
    """The mean duration (ms) of the polls after the first."""
    return fmean(costs) if outcome is not None and (costs := later(outcome)) else None


def growth(outcome: CrowdOutcome) -> float | None:
    """The growth per iteration as a share of the mean; ``None`` for too few iterations."""
    costs = later(outcome)
    # Two points are always on a line.
    if len(costs) < 3:
        return None
    return linear_regression(range(len(costs)), costs).slope / max(1.0, fmean(costs))


def per_client(outcome: CrowdOutcome) -> tuple[float, float, float, float] | None:
    """Medians over clients: requests and bytes until the first answer, and those of each later poll."""
    firsts: list[tuple[int, int]] = []
    steps: list[tuple[float, float]] = []
    for client in {answer.client for answer in outcome.answers}:
        own = [(answer.requests, answer.bytes) for answer in outcome.answers if answer.client == client]
        firsts.append(own[0])
        if len(own) > 1:
            polls = len(own) - 1
            # Requests and bytes are counted up over the whole run: the difference of last and first, over the polls
            # between.
            steps.append(((own[-1][0] - own[0][0]) / polls, (own[-1][1] - own[0][1]) / polls))
    if not firsts or not steps:
        return None
    return (*_medians(firsts), *_medians(steps))


def _medians(pairs: Sequence[tuple[float, float]]) -> tuple[float, float]:
    return median(first for first, _ in pairs), median(second for _, second in pairs)


def crossing(one: Sequence[tuple[int, float]], other: Sequence[tuple[int, float]]) -> float | None:
    """The number of clients, interpolated, at which the curves first cross, either way; or ``None``."""
    both = sorted(set(dict(one)) & set(dict(other)))
    gaps = [(clients, dict(one)[clients] - dict(other)[clients]) for clients in both]
    for (before, low), (after, high) in pairwise(gaps):
        # Example: the gaps at 10 and 20 clients are -3 and 1. The sign changes between them, at 10 + 10 * 3 / (1 + 3)
        # = 17.5.
        if min(low, high) <= 0 < max(low, high):
            return before + (after - before) * -low / (high - low)
    return None


FACTS: Final = {FULL: (1_000, 10_000, 100_000, 1_000_000, 10_000_000), QUICK: (1_000, 10_000)}
PER_STATION: Final = 412
"""Static triples of a station whose board has 100 departures."""

FRESH_MS: Final = 5_000
"""Maximum staleness of 99% of the answers; facts end 0.5 s after their update, and polls spread over 1 s."""

REACH: Final = SearchRange(start=25, least=1, most=3_200, whole=True, precision=0.25)


@dataclass(frozen=True, slots=True)
class CarriedClients:
    """The most clients with fresh answers at a number of facts, and the staleness of each trial."""

    facts: int
    found: Bracket
    tried: tuple[tuple[int, float | None], ...]


def carried(extent: TpfExtent, facts: int, doing: ScenarioRunner, tell: Tell) -> CarriedClients:
    """Search the largest number of clients, each with another query; stored runs are reused."""
    tried: dict[int, float | None] = {}

    def passes(clients: float) -> bool:
        tell(f"{facts:,} facts, {clients:.0f} clients", 1.0)
        tried[int(clients)] = late = staleness(doing.outcome(sized(extent, facts, int(clients))))
        return late is not None and late <= FRESH_MS

    return CarriedClients(facts, search(passes, REACH), tuple(sorted(tried.items())))


def sized(extent: TpfExtent, facts: int, clients: int) -> Scenario:
    """Clients of a data set with about this number of facts, of which one station's board changes."""
    usual = scaled(extent, "incremental", clients, distinct=True)
    return Scenario(
        usual.system, clients, distinct=True, seconds=usual.seconds, spread=usual.spread,
        beside=max(0, round(facts / PER_STATION) - 1),
    )  # fmt: skip


def staleness(outcome: CrowdOutcome) -> float | None:
    """The 99th percentile of staleness, ms; ``None`` if some client had no answer."""
    late = sorted(stale(outcome))
    answered = len({answer.client for answer in outcome.answers})
    # Without an answer for each client the percentile would leave out just those that are worst off.
    return float(late[int(0.99 * (len(late) - 1))]) if late and answered == outcome.scenario.clients else None


def capacity_table(capacities: list[CarriedClients]) -> PageTable:
    """A line per size."""
    lines = []
    for capacity in capacities:
        passed = NOTHING if capacity.found.passed is None else f"{capacity.found.passed:.0f}"
        failed = NOTHING if capacity.found.failed is None else f"{capacity.found.failed:.0f}"
        tried = ", ".join(f"{clients}: {duration(late)}" for clients, late in capacity.tried)
        lines.append(TableLine((f"{capacity.facts:,}", passed, failed, tried)))
    note = f"Fresh: 99 of 100 answers are at most {duration(FRESH_MS)} behind; clients run on the same machine."
    return PageTable(
        "Most clients that are kept fresh", ("facts", "fresh", "not", "99th staleness"), tuple(lines), note
    )


WITHOUT = ("streamer-no-cache", "streamer-prototype-off")


def claims(extent: TpfExtent, measured: TpfOutcomes) -> Iterator[ComparedClaim]:
    """The paper's claims next to ours; a claim that was not measured has no value."""
    for distinct in (False, True):
        yield from _servers(extent, measured, distinct)
    yield _clients(extent, measured)
    yield _settling(extent, measured)
    for other in WITHOUT:
        yield _cache(extent, measured, other)
    for other in WITHOUT:
        yield _proportional(extent, measured, other)
    yield _order(extent, measured)
    yield from _growth(extent, measured)


def _at_most_clients(extent: TpfExtent, measured: TpfOutcomes, distinct: bool, *systems: str) -> list[CrowdOutcome]:
    """Outcomes of systems at the largest number of clients at which all of them answered.

    The cost of a system that does not answer is no evidence.
    """
    for clients in reversed(extent.distinct if distinct else extent.clients):
        outcomes = [measured.of(scaled(extent, system, clients, distinct=distinct)) for system in systems]
        if all(outcome is not None and outcome.answers for outcome in outcomes):
            return [outcome for outcome in outcomes if outcome is not None]
    return []


def _servers(extent: TpfExtent, measured: TpfOutcomes, distinct: bool) -> Iterator[ComparedClaim]:
    """The claims of hypothesis 1: the CPU use of the server."""
    queries = "distinct" if distinct else "identical"
    own = _at_most_clients(extent, measured, distinct, "incremental")
    if own:
        text = f"{own[0].server_percent:.2f}% at {own[0].scenario.clients} clients"
        yield CLAIMS["server"].beside(own[0].server_percent, text, queries=queries)
    for fragments in ("incremental", "streamer"):
        for other in FOREIGN:
            outcomes = _at_most_clients(extent, measured, distinct, fragments, other)
            if outcomes:
                times = outcomes[1].server_percent / max(1e-9, outcomes[0].server_percent)
                text = f"{times:.1f} times less at {outcomes[0].scenario.clients} clients"
                names = {"fragments": NAMES[fragments], "other": NAMES[other]}
                yield CLAIMS["less_than_windows"].beside(times, text, queries=queries, **names)


def _clients(extent: TpfExtent, measured: TpfOutcomes) -> ComparedClaim:
    """The claim of hypothesis 2: the CPU use of the client."""
    outcomes = _at_most_clients(extent, measured, False, "streamer", "csparql") or _at_most_clients(
        extent, measured, False, "incremental", "live-csparql"
    )
    if not outcomes:
        return CLAIMS["clients"].beside(None)
    fragments, windows = (outcome.client_percent for outcome in outcomes)
    message = f"{fragments:.2f}% against {windows:.3f}% of a core, a client, at {outcomes[0].scenario.clients}"
    return CLAIMS["clients"].beside([fragments, windows], message)


def _settling(extent: TpfExtent, measured: TpfOutcomes) -> ComparedClaim:
    """The claim on figure 2b: CPU use peaks at the start."""
    outcomes = _at_most_clients(extent, measured, False, "streamer") or _at_most_clients(
        extent, measured, False, "incremental"
    )
    if not outcomes:
        return CLAIMS["settling"].beside(None)
    percents = [percent for _, percent in outcomes[0].clients]
    ends = outcomes[0].scenario.spread
    # Half as long again as clients take to start, so that the start of the last ones is over.
    settled = fmean([percent for at, percent in outcomes[0].clients if at > 1.5 * ends] or percents[-1:])
    message = f"all {outcomes[0].scenario.clients}: {max(percents):.0f}% at most, {settled:.0f}% when all have started"
    return CLAIMS["settling"].beside(max(percents) / max(1e-9, settled), message)


def _cache(extent: TpfExtent, measured: TpfOutcomes, other: str) -> ComparedClaim:
    """The time saved by the cache, compared with the same plan without it, or with the prototype's alternative."""
    on, off = (
        mean_later(measured.of(annotated(extent, "graphs", "expiration", system, "published")))
        for system in ("streamer", other)
    )
    if on is None or not off:
        return CLAIMS["cache"].beside(None, other=NAMES[other])
    text = f"{_signed(1 - on / off)}: {duration(on)} against {duration(off)}"
    return CLAIMS["cache"].beside(1 - on / off, text, other=NAMES[other])


def _proportional(extent: TpfExtent, measured: TpfOutcomes, other: str) -> ComparedClaim:
    """Hypothesis 3, for 0 to 4 static patterns of five."""
    shares = []
    for count in range(5):
        on, off = (mean_later(measured.of(with_static(extent, count, system))) for system in ("streamer", other))
        if on is not None and off:
            shares.append((count, 1 - on / off))
    if len(shares) < 3:
        return CLAIMS["proportional"].beside(None, other=NAMES[other])
    text = ", ".join(f"{_signed(share)} at {count} of 5" for count, share in shares)
    return CLAIMS["proportional"].beside([abs(share - count / 5) for count, share in shares], text, other=NAMES[other])


def _signed(share: float) -> str:
    return f"{share:.0%}".replace("-", "\N{MINUS SIGN}")


def _order(extent: TpfExtent, measured: TpfOutcomes) -> ComparedClaim:
    durations = {
        method: mean_later(measured.of(annotated(extent, method, "expiration", "streamer", "published")))
        for method in METHODS
    }
    times = [value for value in durations.values() if value is not None]
    if len(times) < len(METHODS):
        return CLAIMS["order"].beside(None)
    return CLAIMS["order"].beside(
        times, ", ".join(f"{method} {duration(value)}" for method, value in durations.items())
    )


def _growth(extent: TpfExtent, measured: TpfOutcomes) -> Iterator[ComparedClaim]:
    """Figure 4: intervals grow, expirations do not; and iterations when the history is kept in place."""
    cases = (
        ("intervals_grow", "interval", "streamer-prototype-off", "published"),
        ("expirations_constant", "expiration", "streamer-prototype-off", "published"),
        ("intervals_kept", "interval", "incremental", "kept"),
    )
    for claim, label, system, renewal in cases:
        outcome = measured.of(annotated(extent, "graphs", label, system, renewal))
        rate = None if outcome is None else growth(outcome)
        if rate is not None:
            text = f"{rate:+.1%} from one to the next".replace("-", "\N{MINUS SIGN}")
            yield CLAIMS[claim].beside(rate, text, system=NAMES[system], renewal=renewal)
