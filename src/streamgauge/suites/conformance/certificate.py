"""A certificate: outcomes held against the listed deviations; the unlisted fails, what is no longer true is stale."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from streamgauge.suites.conformance.deviations import Deviation, shown
from streamgauge.suites.conformance.features import features
from streamgauge.suites.conformance.running import Kind, Outcome


class Standing(StrEnum):
    """How a task stands against the list."""

    PASSED = "passed"
    REFUSED = "refused"
    DEVIATING = "deviating as listed"
    FLAKY = "listed as flaky"
    FAILING = "failing"
    OTHERWISE = "deviating in another way"
    STALE = "stale"


BAD = frozenset({Standing.FAILING, Standing.OTHERWISE, Standing.STALE})


@dataclass(frozen=True)
class Stood:
    """One task: its outcome, how it stands, and the deviation that lists it; ``found`` explains it otherwise."""

    outcome: Outcome
    standing: Standing
    deviation: Deviation | None = None
    found: tuple[str, ...] = ()


@dataclass(frozen=True)
class Certificate:
    """All that can be said of an engine.

    ``unknown`` are listed tasks that there are not, ``bare`` the listed deviations without a reason.
    """

    engine: str
    stood: tuple[Stood, ...]
    unknown: tuple[str, ...] = ()
    bare: tuple[str, ...] = ()

    @property
    def good(self) -> bool:
        """Whether nothing fails and the list is true and complete."""
        return not self.unknown and not self.bare and not any(each.standing in BAD for each in self.stood)

    def counts(self) -> Counter[Standing]:
        """How many tasks stand how."""
        return Counter(each.standing for each in self.stood)

    def tally(self) -> Mapping[tuple[str, str], Counter[Standing]]:
        """By what the tasks ask for, (dimension, value), how many stand how."""
        found: dict[tuple[str, str], Counter[Standing]] = defaultdict(Counter)
        for each in self.stood:
            for feature in features(each.outcome.asked):
                found[feature][each.standing] += 1
        return found


def certificate(
    engine: str,
    outcomes: Iterable[Outcome],
    listed: Sequence[Deviation],
    every: bool,
    explain: Callable[[Outcome], Sequence[str]],
) -> Certificate:
    """Hold the outcomes against the list; ``every`` says that all tasks were tried, so that no listed one is absent.

    ``explain`` has the findings of a deviating task: one of them has to be listed with it, unless it is flaky.
    """
    by_task = {case: deviation for deviation in listed for case in deviation.cases}
    stood = tuple(_stood(outcome, by_task.get(outcome.name), explain) for outcome in outcomes)
    names = {each.outcome.name for each in stood}
    unknown = tuple(case for case in by_task if case not in names) if every else ()
    return Certificate(engine, stood, unknown, tuple(each.name for each in listed if not each.why))


def _stood(outcome: Outcome, deviation: Deviation | None, explain: Callable[[Outcome], Sequence[str]]) -> Stood:
    if deviation is None:
        standing = {Kind.PASSED: Standing.PASSED, Kind.REFUSED: Standing.REFUSED, Kind.WRONG: Standing.FAILING}
    elif deviation.flaky:
        standing = {Kind.PASSED: Standing.FLAKY, Kind.REFUSED: Standing.STALE, Kind.WRONG: Standing.FLAKY}
    elif outcome.kind is Kind.WRONG and not shown((deviation,), found := tuple(explain(outcome))):
        return Stood(outcome, Standing.OTHERWISE, deviation, found)
    else:
        standing = {Kind.PASSED: Standing.STALE, Kind.REFUSED: Standing.STALE, Kind.WRONG: Standing.DEVIATING}
    return Stood(outcome, standing[outcome.kind], deviation)
