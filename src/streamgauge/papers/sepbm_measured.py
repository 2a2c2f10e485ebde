"""What the reproduction of SEP-BM has done: configurations, runs, analyses and verdicts, each kept in its folder."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from streamgauge import workloads
from streamgauge.formats.making import made_folder
from streamgauge.formats.run import read_json, write_json
from streamgauge.formats.streams import read_triples
from streamgauge.papers import sepbm_plan as plan
from streamgauge.reasoning import read_rules
from streamgauge.suites.sepbm import runner
from streamgauge.suites.sepbm.analysis import NotificationScore, score
from streamgauge.suites.sepbm.configuration import ABOUT, Stored, read
from streamgauge.suites.sepbm.generator import ConfigurationRequest, generate, small
from streamgauge.suites.sepbm.generator import university as world
from streamgauge.suites.sepbm.recordings import JudgedRecording, JudgingMeans, judge, outcome
from streamgauge.suites.sepbm.selection import SelectionRule
from streamgauge.workloads import university

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Tell = Callable[[str, float], None]
_COUNTS: Final = "counts.json"
_FORMAT: Final = "streamgauge sepbm counts"
COUNTED: Final = (2, 10)
"""Universities whose statements the paper counts."""

CLOSED: Final = 10
"""Universities whose closure it counts."""


@dataclass(frozen=True)
class Measured:
    """Outcomes by the name of their run, why others have none, and statements by universities."""

    outcomes: Mapping[str, JudgedRecording]
    lacking: Mapping[str, str] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)

    def together(self, strategy: str) -> JudgedRecording | None:
        """All channels at once."""
        return self.outcomes.get(f"together/{strategy}")

    def alone(self, strategy: str) -> dict[str, NotificationScore]:
        """Each channel by itself, by its name; without those that were not run."""
        found = {query: self.outcomes.get(f"alone/{strategy}/{query}") for query in plan.QUERIES}
        return {query: score(each.analysis) for query, each in found.items() if each is not None}


def measure(
    extent: plan.Extent, folder: Path, ontology: Path | None, spark: "Callable[[], SparkSession]", tell: Tell
) -> Measured:
    """Do what is not kept; after an interruption the same call goes on."""
    axioms = ontology or university.ONTOLOGY
    home = folder / extent.name
    counts = _counts(folder, axioms, spark, tell) if "counts" in extent.parts else {}
    wanted = [each for runs in plan.runs(extent, folder).values() for each in runs]
    for made in dict.fromkeys(each.configuration for each in wanted):
        _configured(made, extent, axioms, spark, tell)
    lacking = runner.done(wanted, home, tell)
    judging = JudgingMeans(spark, lambda what, at, of: tell(what, at / of))
    outcomes = {}
    for each in wanted:
        if each.name in lacking or each.name in outcomes:
            continue
        stored = read(each.configuration)
        if extent.judged and each.name.startswith(("together/", "systems/")):
            _judged(home / each.name, stored, judging)
        tell(f"analysing {each.name}", 1.0)
        outcomes[each.name] = outcome(home / each.name, stored, judging)
    return Measured(outcomes, lacking, counts)


def _judged(folder: Path, stored: Stored, judging: JudgingMeans) -> None:
    if not outcome(folder, stored, judging).verdicts:
        judge(folder, stored, judging, again=False)


def _configured(
    folder: Path, extent: plan.Extent, axioms: Path, spark: "Callable[[], SparkSession]", tell: Tell
) -> None:
    """Make a configuration unless it is there; its folder's name says how many channels it has."""
    if (folder / ABOUT).exists():
        return
    tell(f"making {folder.name}", 0.0)
    channels = int(folder.name.removeprefix("channels-")) if folder.name.startswith("channels-") else 0
    asked = ConfigurationRequest(extent.publications, rule=SelectionRule(extent.rule), channels=channels)
    session = None if small(extent.universities) else spark()
    made = world(session, read_triples(axioms), extent.universities)
    made_folder(folder.parent)
    generate(made, asked, folder, lambda what: tell(f"{folder.name}: {what}", 0.0))


def _counts(folder: Path, axioms: Path, spark: "Callable[[], SparkSession]", tell: Tell) -> dict[str, int]:
    """Statements of the Extended Data Set, and of its closure with owl:Thing types, each size counted once."""
    file = folder / _COUNTS
    counts: dict[str, int] = read_json(file, _FORMAT, 1)["counts"] if file.exists() else {}
    for universities in COUNTED:
        if f"{universities}" not in counts:
            tell(f"counting the statements of {universities} universities", 0.0)
            counts |= _counted(universities, axioms, spark())
            write_json(file, {"format": _FORMAT, "version": 1, "counts": counts})
    return counts


def _counted(universities: int, axioms: Path, spark: "SparkSession") -> dict[str, int]:
    from streamgauge.spark.entailment import entailed

    module = workloads.load("university")
    table = module.generate(spark, 0, universities=universities, extended="own")
    facts = table.selectExpr("subject", "predicate", "object", "0 lo", "0 hi").distinct().persist()
    try:
        found = {f"{universities}": facts.count()}
        if universities == CLOSED:
            rules = read_rules(read_triples(axioms), "full")
            found[f"{universities} closed"] = entailed(spark, facts, rules).count()
        return found
    finally:
        facts.unpersist()


def mean_rate(scores: Mapping[str, NotificationScore], channels: Sequence[str]) -> float | None:
    """The mean publication throughput of some channels, publications a second."""
    rates = [scores[name].throughput.rate for name in channels if name in scores]
    return sum(rates) / len(rates) if rates else None


def mean_times(scores: Mapping[str, NotificationScore]) -> dict[str, float]:
    """The mean notification time (ms) of each channel that was told something."""
    return {name: times.mean for name, each in scores.items() if (times := each.made or each.received) is not None}
