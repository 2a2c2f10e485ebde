"""SEP-BM measured: its configurations, planned runs, and verdicts, each stored in its folder."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from streamgauge import workloads
from streamgauge.formats.files import made_folder
from streamgauge.formats.run import read_json, write_json
from streamgauge.formats.streams import read_triples
from streamgauge.papers.reproduction import Tell
from streamgauge.reasoning import read_rules
from streamgauge.suites.sepbm import ABOUT, Configuration, read, runner
from streamgauge.suites.sepbm.analysis import NotificationScore, score
from streamgauge.suites.sepbm.generator import ConfigurationRequest, generate, small
from streamgauge.suites.sepbm.generator import university as world
from streamgauge.suites.sepbm.recordings import JudgedRecording, JudgingMeans, judge, outcome
from streamgauge.suites.sepbm.runner import RunPlan, SeriesRun
from streamgauge.suites.sepbm.selection import SelectionRule
from streamgauge.workloads import university

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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
NAIVE: Final = "reevaluate"


@dataclass(frozen=True, slots=True)
class SepbmExtent:
    """The extent of a reproduction: size of the data, length of the sequence, rule of publication, parts.

    ``judged``: also judge the channels of the runs on all queries by the common oracle.
    """

    universities: int = 1
    publications: int = 300
    rule: str = "first"
    strategies: tuple[str, ...] = STRATEGIES
    parts: tuple[str, ...] = PARTS
    judged: bool = True

    @property
    def name(self) -> str:
        """The name of the folder of this extent's configurations and runs."""
        return f"lubm-{self.universities}-{self.publications}-{self.rule}"

    def configuration(self, folder: Path, channels: int = 0) -> Path:
        """The folder of the configuration with this number of channels, 0 for the queries."""
        return folder / self.name / (f"channels-{channels}" if channels else "queries")


def runs(extent: SepbmExtent, folder: Path) -> dict[str, list[SeriesRun]]:
    """The runs of each selected part; one channel is the first query alone."""
    queries = extent.configuration(folder)

    def run(
        name: str, strategy: str, plan: RunPlan | None = None, configuration: Path = queries, system: str = BROKER
    ) -> SeriesRun:
        return SeriesRun(name, configuration, system, {"strategy": strategy} if strategy else {}, plan or RunPlan())

    plans = {
        "together": [run(f"together/{strategy}", strategy) for strategy in extent.strategies],
        "alone": [
            run(f"alone/{strategy}/{query}", strategy, RunPlan(channels=(query,)))
            for strategy in extent.strategies
            for query in QUERIES
        ],
        "publishers": [
            run(f"publishers/{strategy}-{count}", strategy, RunPlan(publishers=count))
            for strategy in (EXACT, NAIVE)
            if strategy in extent.strategies
            for count in PUBLISHERS
        ],
        "channels": [
            run("channels/1", EXACT, RunPlan(channels=QUERIES[:1])),
            *(
                run(f"channels/{channels}", EXACT, configuration=extent.configuration(folder, channels))
                for channels in CHANNELS[1:]
            ),
        ],
        "systems": [
            # The same run as of the part together, under its name there, so that it is made once.
            run(f"together/{EXACT}", EXACT)
            if system == BROKER and EXACT in extent.strategies
            else run(f"systems/{title}", "", system=system)
            for title, system in SYSTEMS.items()
        ],
    }
    return {part: wanted for part, wanted in plans.items() if part in extent.parts}


_COUNTS: Final = "counts.json"
_FORMAT: Final = "streamgauge sepbm counts"
COUNTED: Final = (2, 10)
"""Numbers of universities whose statements the paper counts."""

CLOSED: Final = 10
"""Numbers of universities whose closure the paper counts."""


@dataclass(frozen=True)
class SepbmOutcomes:
    """Outcomes by run, reasons for missing ones, and numbers of statements by universities."""

    outcomes: Mapping[str, JudgedRecording]
    lacking: Mapping[str, str] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)

    def together(self, strategy: str) -> JudgedRecording | None:
        """The outcome of the run with all channels; ``None`` without one."""
        return self.outcomes.get(f"together/{strategy}")

    def alone(self, strategy: str) -> dict[str, NotificationScore]:
        """The outcome of each channel alone, by name; without those that were not run."""
        outcomes = {query: self.outcomes.get(f"alone/{strategy}/{query}") for query in QUERIES}
        return {query: score(outcome.analysis) for query, outcome in outcomes.items() if outcome is not None}


def measure(
    extent: SepbmExtent, folder: Path, ontology: Path | None, spark: "Callable[[], SparkSession]", tell: Tell
) -> SepbmOutcomes:
    """Run what is not stored; after an interruption the same call continues."""
    axioms = ontology or university.ONTOLOGY
    home = folder / extent.name
    counts = _counts(folder, axioms, spark, tell) if "counts" in extent.parts else {}
    wanted = [plan for part in runs(extent, folder).values() for plan in part]
    for configuration in dict.fromkeys(plan.configuration for plan in wanted):
        _configured(configuration, extent, axioms, spark, tell)
    lacking = runner.run_series(wanted, home, tell)
    judging = JudgingMeans(spark, lambda what, at, of: tell(what, at / of))
    outcomes = {}
    for plan in wanted:
        # One plan may belong to several parts.
        if plan.name in lacking or plan.name in outcomes:
            continue
        stored = read(plan.configuration)
        if extent.judged and plan.name.startswith(("together/", "systems/")):
            _judged(home / plan.name, stored, judging)
        tell(f"analysing {plan.name}", 1.0)
        outcomes[plan.name] = outcome(home / plan.name, stored, judging)
    return SepbmOutcomes(outcomes, lacking, counts)


def _judged(folder: Path, stored: Configuration, judging: JudgingMeans) -> None:
    if not outcome(folder, stored, judging).verdicts:
        judge(folder, stored, judging, again=False)


def _configured(
    folder: Path, extent: SepbmExtent, axioms: Path, spark: "Callable[[], SparkSession]", tell: Tell
) -> None:
    """Generate a configuration unless it exists; its folder's name states the number of channels."""
    if (folder / ABOUT).exists():
        return
    tell(f"making {folder.name}", 0.0)
    channels = int(folder.name.removeprefix("channels-")) if folder.name.startswith("channels-") else 0
    request = ConfigurationRequest(extent.publications, rule=SelectionRule(extent.rule), channels=channels)
    session = None if small(extent.universities) else spark()
    universe = world(session, read_triples(axioms), extent.universities)
    made_folder(folder.parent)
    generate(universe, request, folder, lambda what: tell(f"{folder.name}: {what}", 0.0))


def _counts(folder: Path, axioms: Path, spark: "Callable[[], SparkSession]", tell: Tell) -> dict[str, int]:
    """The numbers of statements of the Extended Data Set and its closure with owl:Thing types, stored by size."""
    file = folder / _COUNTS
    counts: dict[str, int] = read_json(file, _FORMAT, 1)["counts"] if file.exists() else {}
    for universities in COUNTED:
        if f"{universities}" not in counts:
            tell(f"counting the statements of {universities} universities", 0.0)
            # Stored after each size: the larger one takes much longer, and may be interrupted.
            counts |= _counted(universities, axioms, spark())
            write_json(file, {"format": _FORMAT, "version": 1, "counts": counts})
    return counts


def _counted(universities: int, axioms: Path, spark: "SparkSession") -> dict[str, int]:
    from streamgauge.spark.entailment import entailed

    module = workloads.load("university")
    table = module.generate(spark, 0, universities=universities, extended="own")
    facts = table.selectExpr("subject", "predicate", "object", "0 lo", "0 hi").distinct().persist()
    try:
        counts = {f"{universities}": facts.count()}
        if universities == CLOSED:
            rules = read_rules(read_triples(axioms), "full")
            counts[f"{universities} closed"] = entailed(spark, facts, rules).count()
        return counts
    finally:
        facts.unpersist()
