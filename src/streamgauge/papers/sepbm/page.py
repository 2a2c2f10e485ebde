"""SEP-BM again: the paper's figures beside ours, and beyond it publishers, channels and systems of other kinds."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from streamgauge.papers.reproduction import Reproduction, Tell, claims_table
from streamgauge.papers.sepbm.measure import (
    EXACT,
    PAPER,
    PUBLISHERS,
    SYSTEMS,
    SepbmExtent,
    SepbmOutcomes,
    average_lines,
    claims,
    count_claims,
    differences,
    mean_times,
    measure,
    runs,
    throughput_lines,
)
from streamgauge.report.charts import ChartDrawing
from streamgauge.report.plots import Figure
from streamgauge.report.sections import PageSection, PageTable
from streamgauge.report.sepbm import COLUMNS, NOTE, as_json, fine, line, overall, plotted, score_json
from streamgauge.report.sepbm import mean_times as times_of
from streamgauge.suites.sepbm.analysis import score
from streamgauge.suites.sepbm.recordings import JudgedRecording

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class SepbmRequest:
    """A request: the extent, the folder of runs, and the ontology's file (the workload's own unless given)."""

    extent: SepbmExtent
    runs: Path
    ontology: Path | None = None


def reproduce(wanted: SepbmRequest, spark: "Callable[[], SparkSession]", tell: Tell) -> Reproduction:
    """Do what is not kept, and put it beside the paper's figures."""
    return document(wanted.extent, measure(wanted.extent, wanted.runs, wanted.ontology, spark, tell))


def document(extent: SepbmExtent, measured: SepbmOutcomes) -> Reproduction:
    """The page."""
    drawing = ChartDrawing()
    sections = [*_published(measured), *_figures(drawing, extent, measured), *_beyond(drawing, extent, measured)]
    if measured.lacking:
        said = tuple(f"{name}: {why}" for name, why in measured.lacking.items())
        sections.append(PageSection("lacking", "What could not be run", said))
    data = {
        "paper": PAPER.source,
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
    return PAPER.reproduction(title, sections, data, extent.strategies)


def _published(measured: SepbmOutcomes) -> Iterator[PageSection]:
    tables = [
        PageTable(
            "Average notification time",
            ("strategy", "published", "ours", "published, against reevaluate", "ours"),
            tuple(average_lines(measured)),
            "All channels at once, over all notifications; times are not compared.",
        ),
        PageTable(
            "Throughput of the ten slow channels",
            ("strategy", "published", "ours", "publications"),
            tuple(throughput_lines(measured)),
            "Each channel alone; the mean of their rates against reevaluate's.",
        ),
        claims_table("Claims", claims(measured)),
        claims_table("Statements", count_claims(measured.counts)),
    ]
    yield PageSection("published", "The paper's figures", (), tuple(table for table in tables if table.lines))
    yield PageSection("differences", "What differs, and why", tuple(differences(measured)))


def _figures(drawing: ChartDrawing, extent: SepbmExtent, measured: SepbmOutcomes) -> Iterator[PageSection]:
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
            PageTable(strategy, COLUMNS, tuple(line(name, each) for name, each in scores.items()))
            for strategy, scores in alone.items()
            if scores
        )
        yield PageSection("alone", "Each channel alone", (NOTE,), tables, tuple(figures))
    found = {name: outcome for name in extent.strategies if (outcome := measured.together(name)) is not None}
    if found:
        series = {extent.strategies.index(name): times_of(outcome) for name, outcome in found.items()}
        plot = plotted(drawing, "Notification time by channel, all at once", series, "mean, ms", fine)
        yield PageSection("together", "All channels at once", (NOTE,), _beside(found), tuple(plot))


def _beyond(drawing: ChartDrawing, extent: SepbmExtent, measured: SepbmOutcomes) -> Iterator[PageSection]:
    """Sections beyond the paper: publishers, channels, systems."""
    for part, heading, said in (
        ("publishers", "Several publishers at once", "Each waits for completion of its own publications."),
        ("channels", "Many channels", "Like the queries, with other constants of the data."),
        ("systems", "Our broker beside a polled store, an RSP engine and columns", "The same changes for all."),
    ):
        found = _outcomes(extent, measured, part)
        if found:
            plots = tuple(_by_publishers(drawing, extent, measured)) if part == "publishers" else ()
            yield PageSection(part, heading, (said, NOTE), _beside(found), plots)


def _beside(outcomes: Mapping[str, JudgedRecording]) -> tuple[PageTable, ...]:
    """Tables of runs, whose verdicts are no values that were published."""
    return tuple(
        replace(table, lines=tuple(replace(each, agrees=None) for each in table.lines)) for table in overall(outcomes)
    )


def _outcomes(extent: SepbmExtent, measured: SepbmOutcomes, part: str) -> Mapping[str, JudgedRecording]:
    wanted = runs(extent, Path()).get(part, [])
    titles = {f"together/{EXACT}": next(iter(SYSTEMS))}
    return {
        titles.get(each.name, each.name.partition("/")[2]): measured.outcomes[each.name]
        for each in wanted
        if each.name in measured.outcomes
    }


def _by_publishers(drawing: ChartDrawing, extent: SepbmExtent, measured: SepbmOutcomes) -> Iterator[Figure]:
    """Throughput against the number of publishers, by strategy."""
    found: dict[int, dict[str, float]] = {}
    for strategy in (EXACT, "reevaluate"):
        outcomes = {count: measured.outcomes.get(f"publishers/{strategy}-{count}") for count in PUBLISHERS}
        rates = {f"{count}": score(each.analysis).throughput.rate for count, each in outcomes.items() if each}
        if rates:
            found[extent.strategies.index(strategy)] = rates
    yield from plotted(drawing, "Throughput by publishers", found, "publications a second")
