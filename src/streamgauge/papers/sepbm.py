"""SEP-BM again: the paper's figures beside ours, and beyond it publishers, channels and systems of other kinds."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from streamgauge.papers import sepbm_plan as plan
from streamgauge.papers.result import Reproduction, Section, Table
from streamgauge.papers.sepbm_claims import average_lines, claims, count_lines, differences, throughput_lines
from streamgauge.papers.sepbm_measured import Measured, mean_times, measure
from streamgauge.papers.sepbm_published import SOURCE
from streamgauge.report.plots import Figure
from streamgauge.report.sepbm import COLUMNS, NOTE, as_json, fine, line, overall, plotted, score_json
from streamgauge.report.sepbm import mean_times as times_of
from streamgauge.report.svg import Drawing
from streamgauge.suites.sepbm.analysis import score
from streamgauge.suites.sepbm.recordings import JudgedRecording

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is reproduced, where it is kept, and the ontology's file (the workload's own unless given)."""

    extent: plan.Extent
    runs: Path
    ontology: Path | None = None


def reproduce(wanted: Wanted, spark: "Callable[[], SparkSession]", tell: Callable[[str, float], None]) -> Reproduction:
    """Do what is not kept, and put it beside the paper's figures."""
    return document(wanted.extent, measure(wanted.extent, wanted.runs, wanted.ontology, spark, tell))


def document(extent: plan.Extent, measured: Measured) -> Reproduction:
    """The page."""
    drawing = Drawing()
    sections = [
        *_published(measured),
        *_figures(drawing, extent, measured),
        *_beyond(drawing, extent, measured),
    ]
    if measured.lacking:
        said = tuple(f"{name}: {why}" for name, why in measured.lacking.items())
        sections.append(Section("lacking", "What could not be run", said))
    data = {
        "paper": SOURCE,
        "extent": asdict(extent),
        "counts": dict(measured.counts),
        "runs": {name: as_json(name, outcome) for name, outcome in measured.outcomes.items() if "alone" not in name},
        "alone": {
            strategy: {name: score_json(each) for name, each in measured.alone(strategy).items()}
            for strategy in extent.strategies
        },
        "lacking": dict(measured.lacking),
    }
    title = f"SEP-BM with {extent.universities} universities, {extent.publications} publications, rule {extent.rule}"
    return Reproduction(title, SOURCE, tuple(sections), data, extent.strategies)


def _published(measured: Measured) -> Iterator[Section]:
    tables = [
        Table("Average notification time", ("strategy", "published", "ours", "published, against reevaluate", "ours"),
              tuple(average_lines(measured)), "All channels at once, over all notifications; times are not compared."),
        Table("Throughput of the ten slow channels", ("strategy", "published", "ours", "publications"),
              tuple(throughput_lines(measured)), "Each channel alone; the mean of their rates against reevaluate's."),
        Table("Claims", ("claim", "published", "ours"), tuple(claims(measured))),
        Table("Statements", ("data", "published", "ours"), tuple(count_lines(measured.counts))),
    ]  # fmt: skip
    yield Section("published", "The paper's figures", (), tuple(table for table in tables if table.lines))
    yield Section("differences", "What differs, and why", tuple(differences(measured)))


def _figures(drawing: Drawing, extent: plan.Extent, measured: Measured) -> Iterator[Section]:
    """Figures 4 to 7 by channel, each alone, and all at once."""
    alone = {strategy: measured.alone(strategy) for strategy in extent.strategies}
    if any(alone.values()):
        times = {place: mean_times(scores) for place, scores in enumerate(alone.values())}
        rates = {
            place: {name: each.throughput.rate for name, each in scores.items()}
            for place, scores in enumerate(alone.values())
        }
        figures = [
            *plotted(drawing, "Figures 4 and 6: notification time by channel", times, "mean, ms", fine),
            *plotted(drawing, "Figures 5 and 7: throughput by channel", rates, "publications a second"),
        ]
        tables = tuple(
            Table(strategy, COLUMNS, tuple(line(name, each) for name, each in scores.items()))
            for strategy, scores in alone.items()
            if scores
        )
        yield Section("alone", "Each channel alone", (NOTE,), tables, tuple(figures))
    found = {name: outcome for name in extent.strategies if (outcome := measured.together(name)) is not None}
    if found:
        series = {extent.strategies.index(name): times_of(outcome) for name, outcome in found.items()}
        plot = plotted(drawing, "Notification time by channel, all at once", series, "mean, ms", fine)
        yield Section("together", "All channels at once", (NOTE,), _beside(found), tuple(plot))


def _beyond(drawing: Drawing, extent: plan.Extent, measured: Measured) -> Iterator[Section]:
    """What the paper does not have."""
    for part, heading, said in (
        ("publishers", "Several publishers at once", "Each waits for completion of its own publications."),
        ("channels", "Many channels", "Like the queries, with other constants of the data."),
        ("systems", "Our broker beside a polled store, an RSP engine and columns", "The same changes for all."),
    ):
        found = _outcomes(extent, measured, part)
        if found:
            plots = tuple(_by_publishers(drawing, extent, measured)) if part == "publishers" else ()
            yield Section(part, heading, (said, NOTE), _beside(found), plots)


def _beside(outcomes: Mapping[str, JudgedRecording]) -> tuple[Table, ...]:
    """Tables of runs, whose verdicts are no values that were published."""
    return tuple(
        replace(table, lines=tuple(replace(each, agrees=None) for each in table.lines)) for table in overall(outcomes)
    )


def _outcomes(extent: plan.Extent, measured: Measured, part: str) -> Mapping[str, JudgedRecording]:
    wanted = plan.runs(extent, Path()).get(part, [])
    titles = {f"together/{plan.EXACT}": next(iter(plan.SYSTEMS))}
    return {
        titles.get(each.name, each.name.partition("/")[2]): measured.outcomes[each.name]
        for each in wanted
        if each.name in measured.outcomes
    }


def _by_publishers(drawing: Drawing, extent: plan.Extent, measured: Measured) -> Iterator[Figure]:
    """Throughput against the number of publishers, by strategy."""
    found: dict[int, dict[str, float]] = {}
    for strategy in (plan.EXACT, "reevaluate"):
        outcomes = {count: measured.outcomes.get(f"publishers/{strategy}-{count}") for count in plan.PUBLISHERS}
        rates = {f"{count}": score(each.analysis).throughput.rate for count, each in outcomes.items() if each}
        if rates:
            found[extent.strategies.index(strategy)] = rates
    yield from plotted(drawing, "Throughput by publishers", found, "publications a second")
