"""Which configurations and runs the reproduction of SEP-BM is made of."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from streamgauge.suites.sepbm.runner import RunPlan, SeriesRun

PARTS: Final = ("counts", "together", "alone", "publishers", "channels", "systems")
STRATEGIES: Final = ("reevaluate", "stringrs", "graphss", "incremental")
PUBLISHERS: Final = (1, 10, 100)
CHANNELS: Final = (1, 100, 10_000)
BROKER: Final = "broker_inprocess"
SYSTEMS: Final = {
    "our broker, incremental": BROKER,
    "a polled SPARQL store": "polled",
    "an RSP engine": "rsp",
    "all queries again by columns": "columns",
}
QUERIES: Final = tuple(f"q{number:02d}" for number in range(1, 21))
EXACT: Final = "incremental"


@dataclass(frozen=True, slots=True)
class Extent:
    """How much is done: the size of the data, the sequence's length, which resources are published, which parts.

    ``judged``: the channels of the runs on all queries are judged by the common oracle too.
    """

    universities: int = 1
    publications: int = 300
    rule: str = "first"
    strategies: tuple[str, ...] = STRATEGIES
    parts: tuple[str, ...] = PARTS
    judged: bool = True

    @property
    def name(self) -> str:
        """Of the folder in which this extent's configurations and runs are."""
        return f"lubm-{self.universities}-{self.publications}-{self.rule}"

    def configuration(self, folder: Path, channels: int = 0) -> Path:
        """The folder of the configuration with so many channels, 0 for the queries."""
        return folder / self.name / (f"channels-{channels}" if channels else "queries")


def together(extent: Extent, folder: Path) -> Iterator[SeriesRun]:
    """All channels at once, by strategy."""
    for strategy in extent.strategies:
        yield SeriesRun(f"together/{strategy}", extent.configuration(folder), BROKER, {"strategy": strategy})


def alone(extent: Extent, folder: Path, strategy: str) -> Iterator[SeriesRun]:
    """Each channel by itself under a strategy."""
    for query in QUERIES:
        options = {"strategy": strategy}
        yield SeriesRun(
            f"alone/{strategy}/{query}", extent.configuration(folder), BROKER, options, RunPlan(channels=(query,))
        )


def publishers(extent: Extent, folder: Path) -> Iterator[SeriesRun]:
    """So many publish at once, to the exact strategy and to the one that evaluates again."""
    for strategy in (name for name in (EXACT, "reevaluate") if name in extent.strategies):
        for count in PUBLISHERS:
            plan = RunPlan(publishers=count)
            options = {"strategy": strategy}
            yield SeriesRun(f"publishers/{strategy}-{count}", extent.configuration(folder), BROKER, options, plan)


def channels(extent: Extent, folder: Path) -> Iterator[SeriesRun]:
    """So many channels, like the queries with other constants; one is the first query alone."""
    for count in CHANNELS:
        plan = RunPlan(channels=QUERIES[:1]) if count == 1 else RunPlan()
        made = extent.configuration(folder, 0 if count == 1 else count)
        yield SeriesRun(f"channels/{count}", made, BROKER, {"strategy": EXACT}, plan)


def systems(extent: Extent, folder: Path) -> Iterator[SeriesRun]:
    """The same changes for systems of other kinds."""
    for title, system in SYSTEMS.items():
        if system != BROKER or EXACT not in extent.strategies:
            yield SeriesRun(f"systems/{title}", extent.configuration(folder), system)
        else:
            yield SeriesRun(f"together/{EXACT}", extent.configuration(folder), system, {"strategy": EXACT})


def runs(extent: Extent, folder: Path) -> dict[str, list[SeriesRun]]:
    """The runs of each part that is done."""
    found = {
        "together": list(together(extent, folder)),
        "alone": [each for strategy in extent.strategies for each in alone(extent, folder, strategy)],
        "publishers": list(publishers(extent, folder)),
        "channels": list(channels(extent, folder)),
        "systems": list(systems(extent, folder)),
    }
    return {part: wanted for part, wanted in found.items() if part in extent.parts}
