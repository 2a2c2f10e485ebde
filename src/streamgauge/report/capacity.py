"""Capacities of engines: the figure of each, delay and correctness over the load; as a page, tables, JSON."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from rich.console import RenderableType
from rich.markup import escape

from streamgauge.formats.run import write_json
from streamgauge.report import charts
from streamgauge.report import write as write_page
from streamgauge.report.charts import ChartAxis, ChartDrawing, RuleLine
from streamgauge.report.measures import Measure, texts
from streamgauge.report.numbers import duration, number, percent
from streamgauge.report.plots import SHARE, Figure, figure
from streamgauge.report.sections import PageSection, PageStyle, PageTable, TableLine, render, rich_table
from streamgauge.report.series import Bin, Judged
from streamgauge.suites.experiments.capacity import Bound, Capacity, Limit, LoadProbe
from streamgauge.suites.experiments.capacity import CapacityAxis as Varied
from streamgauge.suites.experiments.load_search import Harder

WORDS = {True: "carried", False: "not carried", None: ""}
FORMAT = "streamgauge capacity"
"""The format of a capacity as JSON, version 1."""

LEAST_MS = 0.1
"""The start of a delay's logarithmic axis, ms: the resolution of the harness's clock."""


@dataclass(frozen=True)
class Carried:
    """The capacities on one axis, with their limits and the precision of the values.

    ``folder`` is the page's, to which links to the probes are relative; without it there are no links.
    """

    title: str
    axis: Varied
    limit: Limit
    precision: float
    found: Sequence[Capacity]
    folder: Path | None = None


def label(one: Capacity) -> str:
    """The engine and its semantics, as a label."""
    return f"{one.engine} as {one.semantics}"


def figure_of(carried: Carried, one: Capacity) -> str:
    """The capacity of an engine as a sentence.

    ``stations at most 40`` if 42 are too many for the engine; ``stations at least 40, the limit was not reached`` if
    nothing that the engine did bounds the figure; ``no figure`` if the probes contradict each other.
    """
    best = one.carried
    if one.absent:
        return one.absent
    if best is None:
        return f"It carries no {carried.axis.name} that was tried."
    if one.doubt:
        return (
            f"no figure: {carried.axis.name} {carried.axis.written(best.value)} was carried, {best.rate:,.0f} triples/s"
        )
    # On an axis where smaller is harder, what is carried bounds the figure from the other side.
    greater = carried.axis.harder is Harder.GREATER
    # Where smaller is harder, as a window's size: 40 is carried and 20 is not, so the figure is at least 40; with an
    # unreached limit it is at most 40.
    word = "at most" if greater == one.reached else "at least"
    unit = f" {carried.axis.unit}" if carried.axis.unit else ""
    open_end = "" if one.reached else ", the limit was not reached"
    return f"{carried.axis.name} {word} {carried.axis.written(best.value)}{unit}{open_end}: {best.rate:,.0f} triples/s"


def bound_of(carried: Carried, one: Capacity) -> str:
    """The bound of an engine as a sentence; empty if the engine is absent."""
    if one.absent:
        return ""
    if one.beyond is None or one.beyond.bound is None:
        return "The search ended before anything bound it: raise its end (--to)."
    at, bound, reason = carried.axis.written(one.beyond.value), one.beyond.bound, one.beyond.reason
    if one.doubt:
        remedy = (
            "" if bound is Bound.SHORT else " Repeat it on a machine that does nothing else, for longer (--lasting)."
        )
        return f"{carried.axis.name.capitalize()} {at} failed by {bound}: {one.doubt}.{remedy}"
    if not one.reached:
        return f"The search ended at {at} by {bound}, which says nothing of the engine: {reason}."
    return f"At {at} bound by {bound}: {reason}."


def rule(carried: Carried) -> str:
    """The rule by which a value is carried."""
    return (
        "A value is carried when every window is right, 99% of the answers of each window come at most "
        f"{duration(carried.limit.delay)} after they were due, and the harness hands 99% of the elements over at most "
        f"{duration(carried.limit.feeder)} late, for at least {duration(carried.limit.lasting)}. The limit is found to "
        f"within {percent(carried.precision)}."
    )


def page(carried: Carried) -> str:
    """One self-contained HTML file."""
    labels = [label(one) for one in carried.found]
    look = PageStyle("Streamgauge capacity", carried.title, _headline(carried), WORDS, labels)
    cards = [
        (index, labels[index], _outcome(one), figure_of(carried, one), bound_of(carried, one))
        for index, one in enumerate(carried.found)
    ]
    tables = tuple(_table(carried, one) for one in carried.found if one.probes)
    sections = (
        PageSection("curves", "Over the load", (rule(carried),), (), tuple(_figures(carried))),
        PageSection("probes", "Every probe", (), tables),
    )
    return render("cards.html.j2", look, sections, cards=cards)


def write(carried: Carried, path: Path) -> None:
    """Write the page (UTF-8), replacing an existing file; OSError."""
    path.write_text(page(carried), encoding="utf-8")


def write_probes(capacities: Sequence[Capacity], read: Callable[[Path], Judged], tell: Callable[[str], object]) -> None:
    """Write a page for every value that was tried, over all engines, unless an up-to-date one exists.

    ``read`` returns the run and the verdict of a folder; OSError.
    """
    pages: dict[Path, list[Path]] = {}
    for probe in (probe for one in capacities for probe in one.probes if probe.folders):
        # Engines tried at one value share its folder, and so its page.
        pages.setdefault(page_of(probe), []).extend(probe.folders)
    for path, folders in pages.items():
        # ``check`` writes a verdict again, which makes the page outdated.
        judged = max((folder / "verdict.json").stat().st_mtime_ns for folder in folders)
        if not path.is_file() or path.stat().st_mtime_ns < judged:
            tell(f"drawing the page of {path.parent.name}")
            write_page([read(folder) for folder in folders], path, title=path.parent.name)


def shown(carried: Carried) -> Iterator[RenderableType]:
    """The capacities for the terminal."""
    yield escape(rule(carried))
    for one in carried.found:
        if one.probes:
            yield rich_table(_table(carried, one), "")
    for one in carried.found:
        sentence = figure_of(carried, one).removesuffix(".")
        yield f"[bold]{escape(label(one))}[/bold]: {escape(sentence)}. {escape(bound_of(carried, one))}".rstrip()


def write_json_of(carried: Carried, path: Path) -> None:
    """Write the capacities as JSON next to the page; RunError."""
    write_json(path, json_of(carried))


def json_of(carried: Carried) -> dict[str, Any]:
    """The capacities as JSON values."""
    engines = [
        {
            "engine": one.engine,
            "semantics": one.semantics,
            "capacity": None if one.doubt else one.passed,
            "carried": one.passed,
            "doubt": one.doubt or None,
            "triples_per_second": one.carried.rate if one.carried else None,
            "failed": one.failed,
            "bound": one.beyond.bound if one.beyond else None,
            "limit_reached": one.reached,
            "absent": one.absent or None,
            "probes": [_probe_json(probe) for probe in one.probes],
        }
        for one in carried.found
    ]
    axis = {"name": carried.axis.name, "unit": carried.axis.unit, "harder": carried.axis.harder.value}
    return {
        "format": FORMAT,
        "version": 1,
        "title": carried.title,
        "axis": axis,
        "limit": asdict(carried.limit),
        "precision": carried.precision,
        "engines": engines,
    }


def _probe_json(probe: LoadProbe) -> dict[str, Any]:
    return {**asdict(probe), "folders": [str(folder) for folder in probe.folders], "carried": probe.carried}


def _headline(carried: Carried) -> str:
    best = [
        f"{label(one)}: no figure"
        if one.doubt
        else f"{label(one)} carries {'' if one.reached else 'at least '}{one.carried.rate:,.0f} triples/s"
        for one in carried.found
        if one.carried
    ]
    return "; ".join(best) + "." if best else "No engine carries a value that was tried."


def _outcome(one: Capacity) -> bool | None:
    """Whether the run found a capacity; ``None`` if the search did not reach the engine's limit."""
    if one.carried is not None:
        return True if one.reached else None
    return False if one.reached or one.absent else None


def _table(carried: Carried, one: Capacity) -> PageTable:
    columns = (carried.axis.title, *(measure.name for measure in MEASURES))
    return PageTable(label(one), columns, tuple(_line(carried, probe) for probe in one.probes))


MEASURES: Final[tuple[Measure[LoadProbe], ...]] = (
    Measure("triples/s", lambda probe: f"{probe.rate:,.0f}"),
    Measure("right", lambda probe: f"{probe.right:,} of {probe.windows:,}"),
    Measure("precision", lambda probe: probe.precision, percent),
    Measure("recall", lambda probe: probe.recall, percent),
    Measure("delay p50", lambda probe: probe.p50, duration),
    Measure("p99", lambda probe: probe.p99, duration),
    Measure("slowest window's p99", lambda probe: probe.slowest, duration),
    Measure("feeder p99", lambda probe: probe.feeder, duration),
    Measure("bound by", lambda probe: probe.bound or ""),
)


def _line(carried: Carried, probe: LoadProbe) -> TableLine:
    cells = (carried.axis.written(probe.value), *texts(MEASURES, probe))
    return TableLine(cells, probe.carried, (probe.reason,), _link(carried, probe))


def _link(carried: Carried, probe: LoadProbe) -> str:
    """The address of the probe's own page or of its runs' folder, relative to the page; empty without a run."""
    if carried.folder is None or not probe.folders:
        return ""
    own = page_of(probe)
    # Resolved on both sides: one may be given relative to the working directory or through a link.
    place = (own if own.is_file() else own.parent).resolve().relative_to(carried.folder.resolve())
    return quote(place.as_posix() + ("" if own.is_file() else "/"))


def page_of(probe: LoadProbe) -> Path:
    """The file of the page of a probe's runs, next to their folders."""
    return probe.folders[0].parent / "report.html"


def _figures(carried: Carried) -> Iterator[Figure]:
    drawing = ChartDrawing()
    drawn = [(index, one) for index, one in enumerate(carried.found) if any(probe.windows for probe in one.probes)]
    if not drawn:
        return
    series = tuple(index for index, _ in drawn)
    limits = [rule for index, one in drawn for rule in _limits(carried, index, one)]
    # Stepwise lower, as the texts of neighbouring limits would overlap.
    limits = [rule._replace(below=0.1 + 0.08 * place) for place, rule in enumerate(limits)]
    late = [line for index, one in drawn for line in _delays(carried, index, one)]
    if any(line.bins for line in late):
        bound = duration(carried.limit.delay)
        text = f"Delay over {carried.axis.name}: bounded by {bound}"
        axis = ChartAxis("delay", scale="log", unit="ms")
        rules = [*limits, RuleLine("y", carried.limit.delay, f"bound {bound}")]
        note = f"Solid: median; dashed: 99th percentile. {_LIMITS}"
        yield _figure(drawing, carried, (text, note), (late, axis, series), rules)
    right = [charts.ChartLine(index, False, _bins(carried, one, _share, percent)) for index, one in drawn]
    text = f"Share of right windows over {carried.axis.name}"
    axis = SHARE._replace(title="right windows, %")
    lower = [rule._replace(below=rule.below + 0.3) for rule in limits]
    yield _figure(drawing, carried, (text, _LIMITS), (right, axis, series), lower)


_LIMITS = "An upright line marks the easiest value that is not carried or, where all are, the hardest one tried."


def _limits(carried: Carried, index: int, one: Capacity) -> Iterator[RuleLine]:
    """An engine's limit on the axis, or the end of a search that found none."""
    if one.beyond is not None and one.reached:
        text = f"not carried at {carried.axis.written(one.beyond.value)}: {one.beyond.bound}"
        yield RuleLine("x", one.beyond.value, text, index, before=_before(carried, one.beyond.value))
    elif one.carried is not None:
        text = (
            f"carried at {carried.axis.written(one.carried.value)}, {'no figure' if one.doubt else 'limit not reached'}"
        )
        yield RuleLine("x", one.carried.value, text, index, before=_before(carried, one.carried.value))


def _before(carried: Carried, value: float) -> bool:
    """Whether a value is in the left half of the logarithmic axis."""
    tried = [probe.value for one in carried.found for probe in one.probes if probe.windows]
    # The middle of a logarithmic axis is the geometric mean of its ends.
    return value * value < min(tried) * max(tried)


def _figure(
    drawing: ChartDrawing,
    carried: Carried,
    words: tuple[str, str],
    content: tuple[Sequence[charts.ChartLine], ChartAxis, tuple[int, ...]],
    rules: Sequence[RuleLine],
) -> Figure:
    (text, note), (lines, y, series) = words, content
    x = ChartAxis(carried.axis.title, scale="log")
    return figure(drawing, text, lambda size: charts.lines(lines, x, y, size, rules), series, note)


def _delays(carried: Carried, index: int, one: Capacity) -> Iterator[charts.ChartLine]:
    yield charts.ChartLine(index, False, _bins(carried, one, lambda probe: probe.p50, duration))
    yield charts.ChartLine(index, True, _bins(carried, one, lambda probe: probe.p99, duration))


def _share(probe: LoadProbe) -> float | None:
    return probe.right / probe.windows if probe.windows else None


def _bins(carried: Carried, one: Capacity, value: Any, show: Any) -> list[Bin]:
    """A bin per probe with its tooltip; values too small for a logarithmic axis are placed at its end."""
    bins = []
    for probe in one.probes:
        height = value(probe)
        if height is None:
            continue
        tip = f"{label(one)}, {carried.axis.title} {carried.axis.written(probe.value)} ({number(probe.rate)} triples/s)"
        least = height if value is _share else max(LEAST_MS, height)
        bins.append(Bin(probe.value, least, least, least, 1, f"{tip}: {show(height)}"))
    return bins
