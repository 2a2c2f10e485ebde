"""The page of the TPF Query Streamer's experiment: figures 2 to 4 and the hypotheses, next to the paper's."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, median
from typing import TYPE_CHECKING, Final

from streamgauge.engines import EngineError, command, load
from streamgauge.formats.files import made_folder
from streamgauge.papers.reproduction import Reproduction, Tell, claims_table
from streamgauge.papers.tpf.measure import (
    CACHES,
    FACTS,
    FOREIGN,
    HERD,
    LABELS,
    METHODS,
    NAMES,
    PAPER,
    PUSHED,
    CarriedClients,
    TpfExtent,
    TpfOutcomes,
    annotated,
    annotations,
    capacity_table,
    carried,
    claims,
    crossing,
    herd,
    iterations,
    kept,
    mean_later,
    measure,
    per_client,
    proxied,
    scaled,
    scaling,
    stale,
    static_patterns,
    with_static,
)
from streamgauge.report import charts
from streamgauge.report.charts import ChartAxis, ChartDrawing
from streamgauge.report.numbers import NOTHING, duration, number, percent
from streamgauge.report.plots import FULL, PHONE, Figure, figure
from streamgauge.report.sections import PageSection, PageTable, TableLine
from streamgauge.report.series import Point, bins
from streamgauge.suites.crowds.runs import ScenarioRunner
from streamgauge.suites.crowds.scenario import CrowdOutcome, Scenario
from streamgauge.suites.crowds.systems.fragments import nginx

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WIDE = (FULL._replace(height=230), PHONE)
CLIENTS = ChartAxis("clients")
CPU = ChartAxis("CPU, % of a core", ",~r", None, "symlog")
TIME = ChartAxis("time since the clients began, s")
ITERATION = ChartAxis("iteration")
TOOK = ChartAxis("time of the iteration, ms")
MOST_BINS = 80

Curves = Mapping[int, tuple[str, Sequence[tuple[float, float]]]]
"""Series number -> (label, values)."""

SERIES: Final = (*NAMES.values(), *METHODS)
"""Series of the plots."""


@dataclass(frozen=True)
class TpfRequest:
    """A request: extent, folder of outcomes, parts; ``done`` shows stored outcomes without measuring."""

    extent: TpfExtent
    runs: Path
    parts: tuple[str, ...]
    done: bool = False


def reproduce(wanted: TpfRequest, spark: "Callable[[], SparkSession]", tell: Tell) -> Reproduction:
    """The experiment, of which missing parts are measured now; absent engines have a sentence."""
    absent = _absent()
    systems = tuple(system for system in NAMES if system not in absent)
    scenarios = list(_scenarios(wanted, systems))
    doing = ScenarioRunner(wanted.runs, spark)
    made_folder(wanted.runs)
    measured = kept(scenarios, doing) if wanted.done else measure(scenarios, doing, tell)
    sizes = FACTS[wanted.extent] if "capacity" in wanted.parts and not wanted.done else ()
    capacities = [carried(wanted.extent, facts, doing, tell) for facts in sizes]
    return reproduction(wanted.extent, measured, absent, capacities)


def _absent() -> dict[str, str]:
    """Engines that are not installed, with the sentence of each."""
    reasons = {}
    for name in FOREIGN:
        try:
            command(load(name))
        except EngineError as error:
            reasons[name] = str(error)
    return reasons


def _scenarios(wanted: TpfRequest, systems: tuple[str, ...]) -> Iterator[Scenario]:
    extent = wanted.extent
    if "scaling" in wanted.parts:
        yield from scaling(extent, systems)
    if "annotations" in wanted.parts:
        yield from annotations(extent)
    if "static" in wanted.parts:
        yield from static_patterns(extent)
    if "proxy" in wanted.parts and nginx() is not None:
        yield from proxied(extent)
    if "herd" in wanted.parts:
        yield from herd(extent)


def reproduction(
    extent: TpfExtent, measured: TpfOutcomes, absent: dict[str, str], capacities: Sequence[CarriedClients] = ()
) -> Reproduction:
    """The content of the page."""
    drawing = ChartDrawing()
    sections = (
        _claims(extent, measured),
        *_scaling(drawing, extent, measured),
        _annotations(drawing, extent, measured),
        _static(extent, measured),
        _spread(extent, measured, capacities),
        _lacking(measured, absent),
    )
    data = {
        "paper": PAPER.source,
        "absent": absent,
        "outcomes": [_summary(outcome) for outcome in measured.outcomes.values()],
    }
    return PAPER.reproduction("The TPF Query Streamer's experiment", sections, data, SERIES)


def _summary(outcome: CrowdOutcome) -> dict[str, object]:
    judged = [answer.right for answer in outcome.answers if answer.right is not None]
    late = stale(outcome)
    return {
        "scenario": asdict(outcome.scenario),
        "server_percent": outcome.server_percent,
        "client_percent": outcome.client_percent,
        "answers": len(outcome.answers),
        "judged": len(judged),
        "right": sum(judged),
        "stale_ms": [median(late), max(late)] if late else None,
        "load": outcome.load,
        "verdict": outcome.verdict,
        "failures": list(outcome.failures),
    }


def _claims(extent: TpfExtent, measured: TpfOutcomes) -> PageSection:
    return PAPER.section("claims", (claims_table("", claims(extent, measured)),))


def _scaling(drawing: ChartDrawing, extent: TpfExtent, measured: TpfOutcomes) -> Iterator[PageSection]:
    """Figures 2 and 3, for identical and for distinct queries."""
    for distinct, clients in ((False, extent.clients), (True, extent.distinct)):
        outcomes_ = {
            system: [
                outcome
                for count in clients
                if (outcome := measured.of(scaled(extent, system, count, distinct=distinct))) is not None
            ]
            for system in NAMES
        }
        if not any(outcomes_.values()):
            continue
        word = "distinct" if distinct else "identical"
        table = PAPER.table("scaling", (_line(outcome) for outcomes in outcomes_.values() for outcome in outcomes))
        figures = _figures(drawing, outcomes_, word)
        yield PAPER.section(f"scaling-{word}", (table,), figures, _crossings(outcomes_))


def _line(outcome: CrowdOutcome) -> TableLine:
    judged = [answer.right for answer in outcome.answers if answer.right is not None]
    late = stale(outcome)
    first, answer = (NOTHING, NOTHING) if outcome.scenario.system in PUSHED else _requests(outcome)
    right = percent(sum(judged) / len(judged)) if judged else NOTHING
    return TableLine((
        NAMES[outcome.scenario.system], f"{outcome.scenario.clients}", f"{outcome.server_percent:.2f}",
        f"{outcome.client_percent:.3f}", f"{len(outcome.answers):,}",
        f"{right}; {outcome.verdict}" if outcome.verdict else right,
        duration(median(late)) if late else NOTHING, duration(max(late)) if late else NOTHING, first, answer,
        f"{outcome.load:.1f}",
    ))  # fmt: skip


def _requests(outcome: CrowdOutcome) -> tuple[str, str]:
    """A client's requests and kB until its first answer, and per later poll."""
    cost = per_client(outcome)
    if cost is None:
        return NOTHING, NOTHING
    return f"{cost[0]:.0f}, {cost[1] / 1000:.1f}", f"{cost[2]:.1f}, {cost[3] / 1000:.1f}"


def _crossings(outcomes_by_system: dict[str, list[CrowdOutcome]]) -> Iterator[str]:
    """The number of clients from which the fragments server costs less than ``live`` and the broker."""
    curve = {
        system: [(outcome.scenario.clients, outcome.server_percent) for outcome in outcomes]
        for system, outcomes in outcomes_by_system.items()
    }
    for system in ("live-csparql", "live-cqels", "broker"):
        both = [clients for clients, _ in curve[system] if clients in dict(curve["incremental"])]
        if not both:
            continue
        at = crossing(curve[system], curve["incremental"])
        ratios = {clients: dict(curve[system])[clients] / dict(curve["incremental"])[clients] for clients in both}
        text = ", ".join(f"{ratio:.2f} times at {clients}" for clients, ratio in ratios.items())
        where = (
            f"they cross at about {at:.0f} clients" if at is not None else "they do not cross where both were measured"
        )
        yield f"{NAMES[system]} costs the server {text} clients what fragments cost it: {where}."


def _figures(drawing: ChartDrawing, outcomes_by_system: dict[str, list[CrowdOutcome]], word: str) -> Iterator[Figure]:
    numbers = {system: place for place, system in enumerate(NAMES)}
    sides: tuple[tuple[str, Callable[[CrowdOutcome], float]], ...] = (
        ("2a, server", lambda outcome: outcome.server_percent),
        ("2b, one client", lambda outcome: outcome.client_percent),
    )
    for name, value in sides:
        curves = {
            numbers[system]: (NAMES[system], [(outcome.scenario.clients, value(outcome)) for outcome in outcomes])
            for system, outcomes in outcomes_by_system.items()
        }
        title = f"Figure {name}: mean CPU, {word} queries"
        yield from curve_figures(drawing, title, curves, (CLIENTS, CPU), _percent)
    largest = max(
        (outcome.scenario.clients for outcomes in outcomes_by_system.values() for outcome in outcomes), default=0
    )
    for name, side in (("3a, server", "server"), ("3b, all clients", "clients")):
        curves = {
            numbers[system]: (NAMES[system], getattr(outcomes[-1], side))
            for system, outcomes in outcomes_by_system.items()
            # Only systems that were measured with as many clients: a curve of fewer would seem cheaper.
            if outcomes and outcomes[-1].scenario.clients == largest
        }
        title = f"Figure {name}: CPU by the second, {largest} clients"
        yield from curve_figures(drawing, title, curves, (TIME, CPU), _percent)


def _percent(value: float) -> str:
    return f"{number(value)}%"


def _annotations(drawing: ChartDrawing, extent: TpfExtent, measured: TpfOutcomes) -> PageSection:
    """Figure 4: the time of each iteration by annotation method."""
    figures: list[Figure] = []
    lines: list[TableLine] = []
    for label in LABELS:
        for system, cache in CACHES.items():
            curves = {}
            for place, method in enumerate(METHODS, len(NAMES)):
                outcome = measured.of(annotated(extent, method, label, system, "published"))
                if outcome is not None and outcome.answers:
                    took = iterations(outcome)
                    curves[place] = (method, [(float(at), float(seconds)) for at, seconds in enumerate(took, 1)])
                    lines.append(_iterated(outcome, f"{method}, {label}", cache))
            title = f"Figure 4: {label} times, {cache}"
            figures += curve_figures(drawing, title, curves, (ITERATION, TOOK), duration)
        outcome = measured.of(annotated(extent, "graphs", label, "incremental", "kept"))
        if outcome is not None and outcome.answers:
            lines.append(_iterated(outcome, f"graphs, {label}", "plan incremental, facts renewed in place"))
    return PAPER.section("annotations", (PAPER.table("annotations", lines),), figures)


def _iterated(outcome: CrowdOutcome, name: str, cache: str) -> TableLine:
    took = iterations(outcome)
    return TableLine(
        (name, cache, f"{len(took)}", duration(took[0]), duration(mean_later(outcome)), *_requests(outcome))
    )


def _static(extent: TpfExtent, measured: TpfOutcomes) -> PageSection:
    """Hypothesis 3, by the number of static patterns."""
    lines = []
    for count in range(5):
        outcomes = [measured.of(with_static(extent, count, system)) for system in CACHES]
        times = [mean_later(outcome) for outcome in outcomes]
        # What the first system saves against each of the others: 20 ms in place of 80 ms are 75%.
        shares = [None if times[0] is None or not without else 1 - times[0] / without for without in times[1:]]
        costs = [None if outcome is None else per_client(outcome) for outcome in outcomes]
        requests = [NOTHING if cost is None else f"{cost[2]:.1f}" for cost in costs]
        cells = (f"{count} of 5", percent(count / 5), *map(duration, times), *map(_share, shares), ", ".join(requests))
        lines.append(TableLine(cells))
    return PAPER.section("static", (PAPER.table("static", lines),))


def _share(value: float | None) -> str:
    return NOTHING if value is None else f"{100 * value:.0f}%".replace("-", "\N{MINUS SIGN}")


def _spread(extent: TpfExtent, measured: TpfOutcomes, capacities: Sequence[CarriedClients]) -> PageSection:
    """The caching proxy, a thousand clients, and the capacity."""
    tables = [_proxy(proxied(extent), measured), _herd(herd(extent), measured)]
    return PAPER.section("shared", (*tables, *([capacity_table(list(capacities))] if capacities else [])))


def _proxy(scenarios: Iterable[Scenario], measured: TpfOutcomes) -> PageTable:
    lines = []
    for outcome in filter(None, map(measured.of, scenarios)):
        message = "distinct queries" if outcome.scenario.distinct else "one query"
        requests, size = outcome.details.get("requests", 0), outcome.details.get("bytes", 0)
        cells = (f"{outcome.scenario.clients} clients, {message}", f"{outcome.lasted:.0f} s", f"{requests:,}",
                 f"{size / 1000:,.0f}", f"{requests / outcome.lasted:.2f}", f"{outcome.server_cpu:.2f} s")  # fmt: skip
        lines.append(TableLine(cells))
    return PAPER.table("proxy", lines, note="" if nginx() else "nginx is not installed here: Debian's nginx-light.")


def _herd(scenarios: Iterable[Scenario], measured: TpfOutcomes) -> PageTable:
    lines = []
    for outcome in filter(None, map(measured.of, scenarios)):
        polls = sorted(answer.received - answer.took for answer in outcome.answers if answer.took)
        if not polls:
            continue
        # Windows of 100 ms that begin at a poll, at some 500 of the polls: of all of them it would take the square of
        # their number.
        busiest = max(
            sum(start <= poll < start + 100 for poll in polls) for start in polls[:: max(1, len(polls) // 500)]
        )
        took = sorted(answer.took for answer in outcome.answers)
        # Polls in 100 ms, over the whole time from the first to the last.
        rate = len(polls) / max(0.1, (polls[-1] - polls[0]) / 100)
        cells = (f"{outcome.scenario.jitter:.0%} jitter", f"{len(polls):,}", f"{busiest} ({rate:.1f} on average)",
                 duration(fmean(took)), duration(took[int(0.99 * (len(took) - 1))]),
                 f"{outcome.server_percent:.1f}%")  # fmt: skip
        lines.append(TableLine(cells))
    return PAPER.table("herd", lines, clients=HERD)


def _lacking(measured: TpfOutcomes, absent: dict[str, str]) -> PageSection:
    sentences = [f"{NAMES[name]} is absent: {sentence}" for name, sentence in absent.items()]
    sentences += [
        f"{NAMES[scenario.system]}, {scenario.clients} clients, "
        f"{'distinct' if scenario.distinct else scenario.query}, {scenario.method}, "
        f"{scenario.label}: {why}"
        for scenario, why in measured.lacking.items()
    ]
    failures = {
        f"{NAMES[scenario.system]}, {scenario.clients} clients: {failure[:300]}"
        for scenario, outcome in measured.outcomes.items()
        for failure in outcome.failures
    }
    return PAPER.section("lacking", sentences=(*sentences, *sorted(failures), *PAPER.value("differs")))


def curve_figures(
    drawing: ChartDrawing, title: str, curves: Curves, axes: tuple[ChartAxis, ChartAxis], show: Callable[[float], str]
) -> Iterator[Figure]:
    """A line chart with a line per series."""
    x, y = axes
    lines = [
        charts.ChartLine(
            series,
            False,
            bins([Point(at, value, f"{label}, {at:g}: {show(value)}") for at, value in values], MOST_BINS, show),
        )
        for series, (label, values) in curves.items()
        if values
    ]
    if lines:
        drawn = tuple(line.series for line in lines)
        yield figure(drawing, title, lambda size: charts.lines(lines, x, y, size), drawn, sizes=WIDE)
