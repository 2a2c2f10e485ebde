"""The page of runs: verdict, plots, and tables of runs, of judged reports with their wrong rows, and of conditions."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from enum import Enum
from pathlib import Path
from typing import Any, TypeAlias

from streamgauge.engines import load, names, sharding_of
from streamgauge.model.phrases import counted
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.run import RunHeader
from streamgauge.model.semantics import Semantics
from streamgauge.report import cards
from streamgauge.report.cards import pace
from streamgauge.report.charts import ChartDrawing
from streamgauge.report.exports import PAGE, FigureLink, Links, inside
from streamgauge.report.figures import export
from streamgauge.report.measures import OF_RUN, texts
from streamgauge.report.numbers import NOTHING, moment, seconds
from streamgauge.report.plots import COST, LATE, LOAD, RIGHT, STEADY, Figure, plots
from streamgauge.report.sections import html
from streamgauge.report.series import Judged, Series, series_of
from streamgauge.report.swatches import swatch
from streamgauge.report.tables import MEAN_HEADINGS, mean_lines
from streamgauge.report.windows import cut, named, window_measures, window_tables
from streamgauge.report.zoomable import zoomable


@dataclass(frozen=True)
class Summary:
    """A run in the summary table; ``group`` is the heading of the repetitions of a seed."""

    label: str
    index: int
    judgement: str
    cells: tuple[str, ...]
    failure: str | None
    group: str = ""


def summary(series: Sequence[Series]) -> list[Summary]:
    """A line per run, with its repetition's number if there are several, grouped by repeated seeds."""
    return [
        replace(_summary(one, one.runs[place]), group=f"{one.label}, seed {seed}" if seed else "")
        for one in series
        for seed, place in one.by_seed
    ]


def _summary(one: Series, judged: Judged) -> Summary:
    run, verdict = judged
    cells = texts(OF_RUN, verdict)
    return Summary(named(one, run.header), one.index, verdict.judgement.value, cells, run.header.failure)


_TIMES = frozenset({"t0", "period", "time_unit", "lateness"})


@dataclass(frozen=True)
class RunConditions:
    """The conditions of one series at the end of the page; each table is lines of cells."""

    label: str
    run: tuple[tuple[str, str], ...]
    workload: tuple[tuple[str, str], ...]
    query: str
    dialect: str
    semantics: tuple[tuple[str, str, str], ...]
    versions: tuple[tuple[str, str], ...]
    machine: tuple[tuple[str, str], ...]


def conditions(series: Sequence[Series]) -> list[RunConditions]:
    """An entry per series; if repetitions differ, all values are listed."""
    return [_conditions(one) for one in series]


def _conditions(one: Series) -> RunConditions:
    headers = [run.header for run, _ in one.runs]
    return RunConditions(
        one.label,
        _run(one),
        _merged([header.workload for header in headers]),
        one.header.query_text,
        one.header.dialect,
        _semantics(one.header.semantics),
        _merged([header.versions for header in headers]),
        _merged([header.machine for header in headers]),
    )


def _run(one: Series) -> tuple[tuple[str, str], ...]:
    header = one.header
    fed = sum(len(run.fed) for run, _ in one.runs)
    answers = sum(len(run.answers) for run, _ in one.runs)
    return (
        ("Engine", header.engine),
        ("Query", header.query.name or "unnamed"),
        ("Windows", _windows(header.query)),
        ("Background data", counted(len(header.query.static), "triple")),
        ("Repetitions", f"{len(one.runs):,}"),
        ("Pace", pace(header.factor)),
        ("Stream advanced to", _joined(moment(run.header.advanced_to) for run, _ in one.runs)),
        ("Fed", counted(fed, "element")),
        ("Received", counted(answers, "answer")),
        *((("Processes", text),) if (text := processes(header)) else ()),
    )


def processes(header: RunHeader) -> str:
    """How one of Streamgauge's engines distributed the query over processes; empty if it ran in one."""
    shards = header.options.get("shards")
    if not isinstance(shards, int) or header.engine not in names():
        return ""
    return sharding_of(load(header.engine), [(header.query, header.semantics)], shards)


def _windows(query: ContinuousQuery) -> str:
    return "; ".join(
        f"{seconds(one.window.size)} s, every {seconds(one.window.slide)} s, on {one.stream}" for one in query.windows
    )


def _joined(values: Iterable[object]) -> str:
    return ", ".join(dict.fromkeys(map(str, values)))


def _merged(mappings: Sequence[Mapping[str, object]]) -> tuple[tuple[str, str], ...]:
    # A worked example: two repetitions ran with Python 3.12 and 3.13 on one machine. The table has `python: 3.12,
    # 3.13`, and what is equal once.
    keys = dict.fromkeys(key for mapping in mappings for key in mapping)
    return tuple((key, cut(_joined(mapping[key] for mapping in mappings if key in mapping))) for key in keys)


def _semantics(semantics: Semantics) -> tuple[tuple[str, str, str], ...]:
    return tuple(
        (
            one.name.replace("_", " "),
            _value(one.name, getattr(semantics, one.name)),
            semantics.sources.get(one.name, NOTHING),
        )
        for one in fields(semantics)
        if one.name not in ("name", "sources")
    )


def _value(name: str, value: object) -> str:
    match value:
        case None:
            return NOTHING
        case bool():
            return "yes" if value else "no"
        case frozenset():
            return ", ".join(sorted(map(str, value)))
        case Enum():
            return str(value.value)
        case int() if name in _TIMES:
            return f"{value:,} ms"
    return str(value)


Section: TypeAlias = tuple[str, str, list[Figure]]
"""A section of plots: its anchor, its heading and its plots."""

Made: TypeAlias = Callable[[Sequence[Section], Sequence[str]], Links]
"""(sections of the page, names of its series) -> the links of plots to their files."""


@dataclass(frozen=True)
class ServedPage:
    """The parts of a page on a server: drawings, links of plots, script, and navigation.

    ``script`` is the address of the script that inserts drawings, ``back`` that of the run, ``saved`` that of the page
    as one file, ``tables`` the files of the table of runs.
    """

    drawing: ChartDrawing
    links: Made
    script: str
    back: str
    saved: str
    tables: Sequence[FigureLink] = ()


def document(runs: Sequence[Judged], title: str, served: ServedPage | None = None) -> str:
    """The whole page, self-contained unless it is ``served``.

    Everything from engines and workloads is escaped.
    """
    if not runs:
        raise ValueError("there is no run to report: give at least one run with its verdict")
    series = series_of(runs)
    labels = [one.label for one in series]
    sections_ = sections(series, served.drawing if served else None)
    parts = dict[str, Any](
        title=title,
        headline=cards.headline(series),
        cards=cards.cards(series),
        summary=summary(series),
        summary_measures=OF_RUN,
        means=list(mean_lines(series)),
        mean_headings=MEAN_HEADINGS,
        sections=sections_,
        windows=window_tables(series),
        window_measures=window_measures(series),
        conditions=conditions(series),
        labels=labels,
        swatches=[swatch(one.index) for one in series],
        served=served,
        timeline=zoomable(series),
    )
    if served is not None:
        return html("page.html.j2", links=served.links(sections_, labels), **parts)
    # Written twice: how many bytes are left for the figures' files is known only then.
    text = html("page.html.j2", links={}, **parts)
    figures = [figure for _, _, figures_ in sections_ for figure in figures_]
    links = inside(figures, labels, PAGE - len(text))
    return html("page.html.j2", links=links, **parts) if links else text


def write_figures(runs: Sequence[Judged], folder: Path) -> list[Path]:
    """Write every plot of the page into a folder, as ``figures.export`` does."""
    series = series_of(runs)
    drawn = (figure for plot in plots() for figure in plot.figures(ChartDrawing(drawn=False), series))
    return export(drawn, [one.label for one in series], folder)


def sections(series: Sequence[Series], drawing: ChartDrawing | None = None) -> list[Section]:
    """The plots by heading, each with its anchor; headings without plots are left out."""
    drawing, figures_by_section = drawing or ChartDrawing(), dict[str, list[Figure]]()
    for plot in plots():
        figures_by_section.setdefault(plot.section, []).extend(plot.figures(drawing, series))
    return [(anchor(name), name, figures) for name, figures in figures_by_section.items() if figures]


_ANCHORS = {LOAD: "load", RIGHT: "correctness", LATE: "delay", COST: "resources", STEADY: "repetitions"}


def anchor(section: str) -> str:
    """The anchor of a section of plots."""
    return _ANCHORS.get(section, section.lower().replace(" ", "-"))
