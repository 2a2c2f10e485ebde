"""What the scenarios of the experiment gave, by scenario, and figures that are made of them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import fmean, linear_regression, median

from streamgauge.harness.process import ProgramError
from streamgauge.suites.crowds.judgement import freshness
from streamgauge.suites.crowds.runs import ScenarioRunner
from streamgauge.suites.crowds.scenario import CrowdOutcome, Scenario


@dataclass(frozen=True)
class Measured:
    """Outcomes of scenarios, and why others have none."""

    outcomes: Mapping[Scenario, CrowdOutcome]
    lacking: Mapping[Scenario, str] = field(default_factory=dict)

    def of(self, scenario: Scenario) -> CrowdOutcome | None:
        """What a scenario gave."""
        return self.outcomes.get(scenario)


def measure(scenarios: Iterable[Scenario], doing: ScenarioRunner, tell: Callable[[str, float], None]) -> Measured:
    """Do the scenarios that are not kept; one that cannot be done says why."""
    todo = list(dict.fromkeys(scenarios))
    outcomes: dict[Scenario, CrowdOutcome] = {}
    lacking: dict[Scenario, str] = {}
    for place, scenario in enumerate(todo):
        left = sum(each.seconds + 10 for each in todo[place:] if not doing.kept(each)) / 60
        tell(f"{scenario.system}, {scenario.clients} clients, at most {left:.0f} min left", place / len(todo))
        try:
            outcomes[scenario] = doing.outcome(scenario)
        except ProgramError as error:
            lacking[scenario] = str(error)
    return Measured(outcomes, lacking)


def kept(scenarios: Iterable[Scenario], doing: ScenarioRunner) -> Measured:
    """Only what is kept already."""
    todo = list(dict.fromkeys(scenarios))
    return Measured(
        {each: doing.outcome(each) for each in todo if doing.kept(each)},
        {each: "not measured yet" for each in todo if not doing.kept(each)},
    )


def stale(outcome: CrowdOutcome) -> list[int]:
    """How long (ms) after each update each client had an answer that was asked for after it.

    Where answers name the change that they tell of (a broker's), how long after it.
    """
    late = [each.late for each in outcome.answers if each.late is not None]
    if late:
        return late
    answers = [(each.client, each.received, each.took) for each in outcome.answers]
    return freshness(answers, outcome.updates)


def iterations(outcome: CrowdOutcome) -> list[int]:
    """How long (ms) each poll of the first client took; the first one's start is part of it."""
    return [each.took for each in outcome.answers if each.client == 0]


def later(outcome: CrowdOutcome) -> list[int]:
    """The same without the first poll."""
    return iterations(outcome)[1:]


def mean_later(outcome: CrowdOutcome | None) -> float | None:
    """How long (ms) a poll took after the first, on average."""
    return fmean(found) if outcome is not None and (found := later(outcome)) else None


def growth(outcome: CrowdOutcome) -> float | None:
    """How much longer an iteration takes than the one before it, as a share of their mean; ``None`` for too few."""
    found = later(outcome)
    if len(found) < 3:
        return None
    return linear_regression(range(len(found)), found).slope / max(1.0, fmean(found))


def per_client(outcome: CrowdOutcome) -> tuple[float, float, float, float] | None:
    """Of the median client: requests and bytes until its first answer, and of each later poll."""
    firsts: list[tuple[int, int]] = []
    steps: list[tuple[float, float]] = []
    for client in {each.client for each in outcome.answers}:
        own = [(each.requests, each.bytes) for each in outcome.answers if each.client == client]
        firsts.append(own[0])
        if len(own) > 1:
            polls = len(own) - 1
            steps.append(((own[-1][0] - own[0][0]) / polls, (own[-1][1] - own[0][1]) / polls))
    if not firsts or not steps:
        return None
    return (*_medians(firsts), *_medians(steps))


def _medians(pairs: Sequence[tuple[float, float]]) -> tuple[float, float]:
    return median(first for first, _ in pairs), median(second for _, second in pairs)


def crossing(one: Sequence[tuple[int, float]], other: Sequence[tuple[int, float]]) -> float | None:
    """The number of clients at which the curves first cross, either way, between measured points; or ``None``."""
    both = sorted(set(dict(one)) & set(dict(other)))
    gaps = [(clients, dict(one)[clients] - dict(other)[clients]) for clients in both]
    for (before, low), (after, high) in pairwise(gaps):
        if min(low, high) <= 0 < max(low, high):
            return before + (after - before) * -low / (high - low)
    return None
