"""SEP-BM's page: the paper's figures and claims next to ours, and sections beyond the paper."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Final

from streamgauge.model.phrases import counted
from streamgauge.papers.reproduction import ComparedClaim, Reproduction, Tell, claims_table, paper, said_once
from streamgauge.report.charts import ChartDrawing
from streamgauge.report.numbers import NOTHING, number, rate
from streamgauge.report.plots import Figure
from streamgauge.report.sections import PageSection, PageTable, TableLine
from streamgauge.report.sepbm import (
    COLUMNS,
    NOTE,
    NOTIFICATION,
    THROUGHPUT,
    as_json,
    fine,
    line,
    mean_times,
    overall,
    plotted,
    score_json,
    times_of,
)
from streamgauge.suites.sepbm.analysis import SLOW, NotificationScore, score
from streamgauge.suites.sepbm.recordings import JudgedRecording

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


from streamgauge.papers.sepbm.measure import (
    CLOSED,
    EXACT,
    NAIVE,
    PUBLISHERS,
    SYSTEMS,
    SepbmExtent,
    SepbmOutcomes,
    measure,
    runs,
)

PAPER: Final = paper("sepbm")
CLAIMS: Final = PAPER.claims


def slow_rate(scores: Mapping[str, NotificationScore]) -> float | None:
    """The mean publication throughput of the slow channels, publications a second."""
    rates = [scores[name].throughput.rate for name in SLOW if name in scores]
    return sum(rates) / len(rates) if rates else None


def averages(measured: SepbmOutcomes) -> dict[str, float]:
    """The average notification time (ms) by strategy, over all notifications of all channels at once."""
    means = {}
    for name, outcome_ in measured.outcomes.items():
        part, _, strategy = name.partition("/")
        times = score(outcome_.analysis)
        # Systems that do not report when they notified are measured at their subscribers.
        delays = times.notified or times.received
        if part == "together" and delays is not None:
            means[strategy] = delays.mean
    return means


def average_lines(measured: SepbmOutcomes) -> Iterator[TableLine]:
    """Average notification times; only their order is compared, as machines differ."""
    ours, published = averages(measured), PAPER.value("average_ms")
    for strategy in (*published, *(name for name in ours if name not in published)):
        theirs = published.get(strategy)
        factor = ours[NAIVE] / ours[strategy] if NAIVE in ours and ours.get(strategy) else None
        faster = None if theirs is None else published[NAIVE] / theirs
        yield TableLine((
            strategy,
            NOTHING if theirs is None else fine(theirs), fine(ours[strategy]) if strategy in ours else NOTHING,
            NOTHING if faster is None else f"×{number(faster)}", NOTHING if factor is None else f"×{number(factor)}",
        ))  # fmt: skip


def throughput_lines(measured: SepbmOutcomes) -> Iterator[TableLine]:
    """The average throughput of the ten slow channels, each alone, relative to the naive strategy."""
    naive = slow_rate(measured.alone(NAIVE))
    published = PAPER.value("factor")
    for strategy in (NAIVE, *published, "incremental"):
        ours = slow_rate(measured.alone(strategy))
        factor = ours / naive if ours and naive else None
        theirs = published.get(strategy)
        yield TableLine((
            strategy, NOTHING if theirs is None else f"×{number(theirs)}",
            NOTHING if factor is None else f"×{number(factor)}",
            NOTHING if ours is None else f"{rate(ours)} a second",
        ))  # fmt: skip


def count_claims(counts: Mapping[str, int]) -> Iterator[ComparedClaim]:
    """The claims on the number of statements of the Extended Data Set."""
    for claim, key in (("statements_2", "2"), ("statements_10", "10"), ("closed_10", f"{CLOSED} closed")):
        yield CLAIMS[claim].beside(counts.get(key), f"{counts[key]:,}" if key in counts else NOTHING)


def claims(measured: SepbmOutcomes) -> Iterator[ComparedClaim]:
    """The paper's claims next to ours; claims without a measurement are left out."""
    ours = averages(measured)
    if {NAIVE, "stringrs", "graphss"} <= ours.keys():
        strategies = (NAIVE, "stringrs", "graphss")
        text = " > ".join(sorted(strategies, key=lambda name: -ours[name]))
        yield CLAIMS["averages"].beside([ours[name] for name in strategies], text)
    naive = measured.alone(NAIVE)
    # With the slow channels alone there is nothing that they could be slower than.
    if len(naive) > len(SLOW):
        yield from _slow(times_of(naive))
        yield _fast_beside_slow(naive)
    yield from _not_guessed(measured)
    yield from _grows(measured)


def _slow(times: Mapping[str, float]) -> Iterator[ComparedClaim]:
    """The ten slow channels: slower than all others, and six of them the slowest."""
    slow = {name: time for name, time in times.items() if name in SLOW}
    others = {name: time for name, time in times.items() if name not in SLOW}
    if not slow or not others:
        return
    message = (
        f"{fine(min(slow.values()))} to {fine(max(slow.values()))}; the others {fine(max(others.values()))} at most"
    )
    published = " to ".join(map(fine, PAPER.value("slow_ms")))
    yield CLAIMS["slow_channels"].beside([min(slow.values()), max(others.values())], message, published=published)
    theirs = PAPER.value("slowest")
    # The slowest ones by time, then in order of their names, as the paper lists them.
    ranked = sorted(sorted(times, key=lambda name: -times[name])[: len(theirs)])
    come, gone = (", ".join(sorted(one)) for one in (set(ranked) - set(theirs), set(theirs) - set(ranked)))
    yield CLAIMS["slowest"].beside(ranked, ", ".join(ranked), come=come, gone=gone)


def _fast_beside_slow(scores: Mapping[str, NotificationScore]) -> ComparedClaim:
    """Channels with short notification times have a high throughput (section 4.1)."""
    times = times_of(scores)
    fast = [scores[name].throughput.rate for name in times if name not in SLOW]
    slow = [scores[name].throughput.rate for name in times if name in SLOW]
    if not fast or not slow:
        return CLAIMS["throughput_of_fast"].beside([0, 0])
    text = f"{rate(fmean(fast))} and {rate(fmean(slow))} a second"
    return CLAIMS["throughput_of_fast"].beside([fmean(fast), fmean(slow)], text)


def _not_guessed(measured: SepbmOutcomes) -> Iterator[ComparedClaim]:
    channel = PAPER.value("not_guessed")
    string, graph = (times_of(measured.alone(name)).get(channel) for name in ("stringrs", "graphss"))
    if string is not None and graph is not None:
        texts = {"string": fine(string), "graph": fine(graph)}
        yield CLAIMS["not_guessed"].beside([string, graph], f"{texts['string']} and {texts['graph']}", **texts)


def _grows(measured: SepbmOutcomes) -> Iterator[ComparedClaim]:
    """Heuristics raise the throughput of the slow channels, GraphSS more than StringRS."""
    naive, string, graph = (slow_rate(measured.alone(name)) for name in (NAIVE, "stringrs", "graphss"))
    if naive and string and graph:
        text = f"×{number(string / naive)} and ×{number(graph / naive)}"
        yield CLAIMS["throughput_grows"].beside([naive, string, graph], text)


def differences(measured: SepbmOutcomes) -> Iterator[str]:
    """A paragraph on each published value that differs here, with the reason."""
    ours, published = averages(measured), PAPER.value("average_ms")
    if NAIVE in ours:
        times = number(published[NAIVE] / ours[NAIVE])
        yield CLAIMS["average_reevaluate"].why.format(
            ours=fine(ours[NAIVE]), published=fine(published[NAIVE]), times=times
        )
    for strategy in ("stringrs", "graphss"):
        if NAIVE in ours and strategy in ours:
            yield from _factor(
                "average_heuristic", strategy, ours[NAIVE] / ours[strategy], published[NAIVE] / published[strategy]
            )
    naive = slow_rate(measured.alone(NAIVE))
    for strategy, factor in PAPER.value("factor").items():
        rate = slow_rate(measured.alone(strategy))
        if naive and rate:
            yield from _factor("throughput_heuristic", strategy, rate / naive, factor)
    naive_times = times_of(measured.alone(NAIVE))
    if len(naive_times) > len(SLOW):
        yield from (claim.why for claim in _slow(naive_times) if claim.why)
    yield from (claim.why for claim in _not_guessed(measured) if claim.why)
    if "2" in measured.counts:
        yield CLAIMS["statements_differ"].why.format(ours=f"{measured.counts['2']:,}")


def _factor(claim: str, strategy: str, ours: float, theirs: float) -> Iterator[str]:
    compared = CLAIMS[claim].beside(ours / theirs, number(ours), strategy=strategy, published=number(theirs))
    if compared.why:
        yield compared.why


@dataclass(frozen=True, slots=True)
class SepbmRequest:
    """A request: the extent, the folder of runs, and the ontology's file (default: the workload's own)."""

    extent: SepbmExtent
    runs: Path
    ontology: Path | None = None


def reproduce(wanted: SepbmRequest, spark: "Callable[[], SparkSession]", tell: Tell) -> Reproduction:
    """Run the experiments that are not stored, and compare them with the paper's figures."""
    return document(wanted.extent, measure(wanted.extent, wanted.runs, wanted.ontology, spark, tell))


def document(extent: SepbmExtent, measured: SepbmOutcomes) -> Reproduction:
    """The content of the page."""
    drawing = ChartDrawing()
    sections = [*_published(measured), *_figures(drawing, extent, measured), *_beyond(drawing, extent, measured)]
    if measured.lacking:
        sentences = tuple(f"{name}: {why}" for name, why in measured.lacking.items())
        sections.append(PAPER.section("lacking", sentences=sentences))
    data = {
        "paper": PAPER.source,
        "extent": asdict(extent),
        "counts": dict(measured.counts),
        "runs": {name: as_json(name, outcome) for name, outcome in measured.outcomes.items() if "alone" not in name},
        "alone": {
            strategy: {name: score_json(outcome) for name, outcome in measured.alone(strategy).items()}
            for strategy in extent.strategies
        },
        "lacking": dict(measured.lacking),
    }
    size = "1 university" if extent.universities == 1 else f"{extent.universities:,} universities"
    title = f"SEP-BM with {size}, {counted(extent.publications, 'publication')}, rule {extent.rule}"
    return PAPER.reproduction(title, said_once(sections), data, extent.strategies)


def _published(measured: SepbmOutcomes) -> Iterator[PageSection]:
    tables = [
        PAPER.table("averages", average_lines(measured)),
        PAPER.table("throughput", throughput_lines(measured)),
        claims_table("Claims", claims(measured)),
        claims_table("Statements", count_claims(measured.counts)),
    ]
    yield PAPER.section("published", (table for table in tables if table.lines))
    yield PAPER.section("differences", sentences=differences(measured))


def _figures(drawing: ChartDrawing, extent: SepbmExtent, measured: SepbmOutcomes) -> Iterator[PageSection]:
    """Figures 4 to 7 by channel, each alone, and all at once."""
    alone = {strategy: measured.alone(strategy) for strategy in extent.strategies}
    if any(alone.values()):
        names = tuple(dict.fromkeys(name for scores in alone.values() for name in scores))
        times = {place: times_of(scores) for place, scores in enumerate(alone.values())}
        rates = {
            place: {name: score.throughput.rate for name, score in scores.items()}
            for place, scores in enumerate(alone.values())
        }
        figures = [
            *plotted(drawing, "Figures 4 and 6: notification time by channel", times, NOTIFICATION, names, fine),
            *plotted(drawing, "Figures 5 and 7: throughput by channel", rates, THROUGHPUT, names),
        ]
        tables = tuple(
            PageTable(strategy, ("channel", *COLUMNS[1:]), tuple(line(name, score) for name, score in scores.items()))
            for strategy, scores in alone.items()
            if scores
        )
        yield PAPER.section("alone", tables, figures, (NOTE,))
    outcomes = {name: outcome for name in extent.strategies if (outcome := measured.together(name)) is not None}
    if outcomes:
        series = {extent.strategies.index(name): mean_times(outcome) for name, outcome in outcomes.items()}
        names = tuple(dict.fromkeys(name for outcome in outcomes.values() for name in outcome.recording.channels))
        title = "Notification time by channel, all at once"
        plot = plotted(drawing, title, series, NOTIFICATION, names, fine)
        yield PAPER.section("together", _beside(outcomes), plot, (NOTE,))


def _beyond(drawing: ChartDrawing, extent: SepbmExtent, measured: SepbmOutcomes) -> Iterator[PageSection]:
    """Sections beyond the paper: publishers, channels, systems."""
    for part in ("publishers", "channels", "systems"):
        outcomes = _outcomes(extent, measured, part)
        if outcomes:
            plots = _by_publishers(drawing, extent, measured) if part == "publishers" else ()
            yield PAPER.section(part, _beside(outcomes), plots, (NOTE,))


def _beside(outcomes: Mapping[str, JudgedRecording]) -> tuple[PageTable, ...]:
    """Tables of runs without agreement marks, as their verdicts are not published."""
    return tuple(
        replace(table, lines=tuple(replace(line, agrees=None) for line in table.lines)) for table in overall(outcomes)
    )


def _outcomes(extent: SepbmExtent, measured: SepbmOutcomes, part: str) -> Mapping[str, JudgedRecording]:
    wanted = runs(extent, Path()).get(part, [])
    titles = {f"together/{EXACT}": next(iter(SYSTEMS))}
    return {
        titles.get(plan.name, plan.name.partition("/")[2]): measured.outcomes[plan.name]
        for plan in wanted
        if plan.name in measured.outcomes
    }


def _by_publishers(drawing: ChartDrawing, extent: SepbmExtent, measured: SepbmOutcomes) -> Iterator[Figure]:
    """Throughput against the number of publishers, by strategy."""
    rates_by_strategy: dict[int, dict[str, float]] = {}
    for strategy in (EXACT, "reevaluate"):
        outcomes = {count: measured.outcomes.get(f"publishers/{strategy}-{count}") for count in PUBLISHERS}
        rates = {f"{count}": score(outcome.analysis).throughput.rate for count, outcome in outcomes.items() if outcome}
        if rates:
            rates_by_strategy[extent.strategies.index(strategy)] = rates
    yield from plotted(drawing, "Throughput by publishers", rates_by_strategy, THROUGHPUT, tuple(map(str, PUBLISHERS)))
