"""The most clients that a fragments server keeps fresh, by the size of its data set."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from streamgauge.papers.result import Line, Table
from streamgauge.papers.tpf_measured import stale
from streamgauge.papers.tpf_plan import FULL, QUICK, Extent, scaled
from streamgauge.report.numbers import NOTHING, duration
from streamgauge.suites.crowds.runs import ScenarioRunner
from streamgauge.suites.crowds.scenario import CrowdOutcome, Scenario
from streamgauge.suites.experiments.capacity_search import Bracket, SearchRange, search

FACTS: Final = {FULL: (1_000, 10_000, 100_000, 1_000_000, 10_000_000), QUICK: (1_000, 10_000)}
PER_STATION: Final = 412
"""Static triples of a station whose board has 100 departures."""

FRESH_MS: Final = 5_000
"""How stale 99 of 100 answers may be; facts end half a second after their update, polls are spread by 1 s."""

REACH: Final = SearchRange(start=25, least=1, most=3_200, whole=True, precision=0.25)


@dataclass(frozen=True, slots=True)
class Carried:
    """So many facts, and the most clients that were kept fresh; how stale the answers were at each number tried."""

    facts: int
    found: Bracket
    tried: tuple[tuple[int, float | None], ...]


def carried(extent: Extent, facts: int, doing: ScenarioRunner, tell: Callable[[str, float], None]) -> Carried:
    """Search the most clients, each with another query; what is kept is not measured again."""
    tried: dict[int, float | None] = {}

    def passes(clients: float) -> bool:
        tell(f"{facts:,} facts, {clients:.0f} clients", 1.0)
        tried[int(clients)] = late = staleness(doing.outcome(sized(extent, facts, int(clients))))
        return late is not None and late <= FRESH_MS

    return Carried(facts, search(passes, REACH), tuple(sorted(tried.items())))


def sized(extent: Extent, facts: int, clients: int) -> Scenario:
    """Clients of a data set with about so many facts, of which one station's board changes."""
    usual = scaled(extent, "incremental", clients, distinct=True)
    return Scenario(
        usual.system, clients, distinct=True, seconds=usual.seconds, spread=usual.spread,
        beside=max(0, round(facts / PER_STATION) - 1),
    )  # fmt: skip


def staleness(outcome: CrowdOutcome) -> float | None:
    """The 99th of a hundred, ms; ``None`` when some client had no answer."""
    late = sorted(stale(outcome))
    answered = len({each.client for each in outcome.answers})
    return float(late[int(0.99 * (len(late) - 1))]) if late and answered == outcome.scenario.clients else None


def table(found: list[Carried]) -> Table:
    """A line for each size."""
    lines = []
    for each in found:
        passed = NOTHING if each.found.passed is None else f"{each.found.passed:.0f}"
        failed = NOTHING if each.found.failed is None else f"{each.found.failed:.0f}"
        tried = ", ".join(f"{clients}: {duration(late)}" for clients, late in each.tried)
        lines.append(Line((f"{each.facts:,}", passed, failed, tried)))
    note = f"Fresh: 99 of 100 answers are at most {duration(FRESH_MS)} behind; clients run on the same machine."
    return Table("Most clients that are kept fresh", ("facts", "fresh", "not", "99th staleness"), tuple(lines), note)
