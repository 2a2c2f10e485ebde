"""The page of runs: verdict, plots, and tables of runs, judged reports, rows that make one wrong, and conditions."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from enum import Enum
from itertools import compress

from markupsafe import Markup

from streamgauge.model.phrases import counted
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.run import RunHeader
from streamgauge.model.semantics import Semantics
from streamgauge.model.terms import XSD, Row, Term
from streamgauge.model.verdict import Judgement, WindowVerdict
from streamgauge.report import cards, charts
from streamgauge.report.cards import fitted, pace
from streamgauge.report.charts import ChartDrawing
from streamgauge.report.numbers import NOTHING, duration, interval, moment, percent, seconds
from streamgauge.report.plots import COST, LATE, RIGHT, STEADY, Figure, plots
from streamgauge.report.sections import html
from streamgauge.report.series import Judged, Series, delay_of, median_delay, series_of, state

LISTED = 1500  # judged reports in all tables together
WITNESSES = 20  # missing rows, and as many surplus rows, of one report
CELLS = 8000  # of missing and surplus rows, in all tables together
LETTERS = 200  # of one term

_PREFIX = re.compile(r"PREFIX\s+([\w.-]*):\s*<([^>\s]+)>", re.IGNORECASE)


@dataclass(frozen=True)
class Summary:
    """One run in the summary table."""

    label: str
    index: int
    judgement: str
    cells: tuple[str, ...]
    failure: str | None


SUMMARY_HEADINGS = (
    "Precision",
    "Recall",
    "Reports",
    "Missed",
    "Surplus",
    "Late",
    "Median delay",
    "Longest delay",
    "Last answer after start",
)


def summary(series: Sequence[Series]) -> list[Summary]:
    """One line per run, repetitions numbered where there are several."""
    return [_summary(one, judged) for one in series for judged in one.runs]


def named(one: Series, header: RunHeader) -> str:
    """The name of a run: its series, and its repetition when there are several."""
    again = one.repetition(header)
    return f"{one.label}, {again}" if again else one.label


def _summary(one: Series, judged: Judged) -> Summary:
    run, verdict = judged
    judged_at_all = bool(verdict.windows) or verdict.judgement is not Judgement.UNKNOWN
    cells = (
        percent(verdict.precision if judged_at_all else None),
        percent(verdict.recall if judged_at_all else None),
        f"{len(verdict.windows):,}",
        f"{verdict.missed:,}",
        f"{verdict.surplus:,}",
        f"{verdict.late:,}",
        duration(median_delay(verdict.windows)),
        duration(verdict.max_delay),
        duration(verdict.last_answer),
    )
    return Summary(named(one, run.header), one.index, verdict.judgement.value, cells, run.header.failure)


@dataclass(frozen=True)
class WitnessRows:
    """Rows of one side of a wrong report, shortened; ``rest`` counts those not shown."""

    side: str
    rows: tuple[tuple[str, ...], ...]
    rest: int
    total: int


@dataclass(frozen=True)
class ReportLine:
    """One judged report in its table."""

    state: str
    cells: tuple[str, ...]
    heading: str
    witnesses: tuple[WitnessRows, ...]

    @property
    def told(self) -> str:
        """Counts of missing and surplus rows, in words."""
        counts = ", ".join(f"{side.total:,} {side.side}" for side in self.witnesses)
        return f"{counts} {'row' if sum(side.total for side in self.witnesses) == 1 else 'rows'}"


@dataclass(frozen=True)
class WindowTable:
    """The judged reports of one run, at most so many; ``note`` says which."""

    name: str
    summary: str
    note: str
    variables: tuple[str, ...]
    lines: tuple[ReportLine, ...]


WINDOW_HEADINGS = (
    "Borders",
    "Due at",
    "Precision",
    "Recall",
    "Expected",
    "Received",
    "Triples in window",
    "Delay",
    "Undecided",
    "Fits best",
)


def window_headings(series: Sequence[Series]) -> tuple[str, ...]:
    """The columns of every window table: the last two only where a run has something in them."""
    return tuple(heading for heading, shown in zip(WINDOW_HEADINGS, _shown(series), strict=True) if shown)


def _shown(series: Sequence[Series]) -> tuple[bool, ...]:
    windows = [window for one in series for _, verdict in one.runs for window in verdict.windows]
    doubts = any(window.undecided for window in windows)
    borders = any(window.borders is not None for window in windows)
    return (*(True,) * (len(WINDOW_HEADINGS) - 2), doubts, borders)


def window_tables(series: Sequence[Series]) -> list[WindowTable]:
    """A table per run that has judged reports; long runs show those that are not right first."""
    runs = [(one, judged) for one in series for judged in one.runs if judged[1].windows]
    limit = max(10, min(200, LISTED // max(1, len(runs))))
    wrong = sum(min(limit, sum(state(window) != "right" for window in judged[1].windows)) for _, judged in runs)
    shown = _shown(series)
    tables = [_table(one, judged, limit, wrong) for one, judged in runs]
    return [replace(table, lines=tuple(_in_columns(line, shown) for line in table.lines)) for table in tables]


def _in_columns(line: ReportLine, shown: Sequence[bool]) -> ReportLine:
    return replace(line, cells=tuple(compress(line.cells, shown)))


def _table(one: Series, judged: Judged, limit: int, wrong: int) -> WindowTable:
    run, verdict = judged
    bad = [window for window in verdict.windows if state(window) != "right"]
    good = [window for window in verdict.windows if state(window) == "right"]
    chosen = sorted([*bad[:limit], *good[: max(0, limit - len(bad))]], key=lambda window: window.index)
    rows = max(1, min(WITNESSES, CELLS // max(1, wrong * len(verdict.variables))))
    short = shortener(run.header.query_text)
    note = ""
    if len(chosen) < len(verdict.windows):
        note = (
            f"{len(chosen):,} of {counted(len(verdict.windows), one.unit)} listed: "
            f"{min(limit, len(bad)):,} of the {len(bad):,} that are not right or late, then the earliest of the others."
        )
    name = named(one, run.header)
    late = sum(state(window) == "late" for window in bad)
    words = [f"{len(bad) - late:,} not right"] * (len(bad) > late) + [f"{late:,} late"] * bool(late)
    text = ", ".join([counted(len(verdict.windows), one.unit), *(words or ["all right"])])
    lines = tuple(_line(window, run.header, one.unit, rows, short) for window in chosen)
    return WindowTable(name, text, note, verdict.variables, lines)


def _line(window: WindowVerdict, header: RunHeader, unit: str, rows: int, short: Callable[[Term], str]) -> ReportLine:
    cells = (
        interval(window.start, window.end, header.semantics.borders),
        NOTHING if window.instant is None else moment(window.instant),
        percent(window.precision),
        percent(window.recall),
        f"{window.expected:,}",
        f"{window.actual:,}",
        f"{window.content:,}",
        delay_of(window),
        f"{window.undecided:,}",
        fitted(window, header.semantics.borders),
    )
    missing = _witness("missing", window.missing, window.expected - window.true_positives, rows, short)
    surplus = _witness("surplus", window.surplus, window.actual - window.true_positives, rows, short)
    doubtful = _witness("undecided", window.doubtful, window.undecided, rows, short)
    sides = tuple(side for side in (missing, surplus, doubtful) if side.total > 0)
    return ReportLine(state(window), cells, f"{unit} {window.index:,}", sides)


def _witness(side: str, found: Sequence[Row], total: int, limit: int, short: Callable[[Term], str]) -> WitnessRows:
    total = max(total, len(found))
    shown = tuple(tuple(NOTHING if term is None else short(term) for term in row) for row in found[:limit])
    return WitnessRows(side, shown, total - len(shown), total)


def shortener(query_text: str) -> Callable[[Term], str]:
    """A function that writes terms with the prefixes that the query declares, cut where they are very long."""
    prefixes = sorted(_PREFIX.findall(query_text), key=lambda found: -len(found[1]))
    known = [(name + ":", iri) for name, iri in prefixes] + [("xsd:", XSD)]

    def short(term: Term) -> str:
        head, tail = ("", term) if term.startswith("<") else _split(term)
        for name, iri in known:
            if tail.startswith("<" + iri) and re.fullmatch(r"[\w.-]*", tail[len(iri) + 1 : -1]):
                tail = name + tail[len(iri) + 1 : -1]
                break
        return cut(head + tail)

    return short


def _split(term: Term) -> tuple[str, str]:
    at = term.rfind("^^<")
    return (term[: at + 2], term[at + 2 :]) if at > 0 and term.endswith(">") else (term, "")


def cut(text: str) -> str:
    """The text, or its beginning with the count of what is left out."""
    return text if len(text) <= LETTERS else f"{text[:LETTERS]}… ({len(text) - LETTERS:,} more characters)"


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
    """One entry per series; where repetitions differ, all values are named."""
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
    )


def _windows(query: ContinuousQuery) -> str:
    return "; ".join(
        f"{seconds(one.window.size)} s, every {seconds(one.window.slide)} s, on {one.stream}" for one in query.windows
    )


def _joined(values: Iterable[object]) -> str:
    return ", ".join(dict.fromkeys(map(str, values)))


def _merged(mappings: Sequence[Mapping[str, object]]) -> tuple[tuple[str, str], ...]:
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


def document(runs: Sequence[Judged], title: str) -> str:
    """The whole page as text; everything that an engine or a workload said is escaped."""
    if not runs:
        raise ValueError("there is no run to report: give at least one run with its verdict")
    series = series_of(runs)
    return html(
        "page.html.j2",
        title=title,
        headline=cards.headline(series),
        cards=cards.cards(series),
        summary=summary(series),
        summary_headings=SUMMARY_HEADINGS,
        sections=sections(series),
        windows=window_tables(series),
        window_headings=window_headings(series),
        conditions=conditions(series),
        labels=[one.label for one in series],
        swatches=[swatch(one.index) for one in series],
    )


def sections(series: Sequence[Series]) -> list[tuple[str, str, list[Figure]]]:
    """The plots under their headings, each with its anchor; headings without any plot are left out."""
    drawing, found = ChartDrawing(), dict[str, list[Figure]]()
    for plot in plots():
        found.setdefault(plot.section, []).extend(plot.figures(drawing, series))
    return [(anchor(name), name, figures) for name, figures in found.items() if figures]


_ANCHORS = {RIGHT: "correctness", LATE: "delay", COST: "resources", STEADY: "repetitions"}


def anchor(section: str) -> str:
    """The anchor of a section of plots."""
    return _ANCHORS.get(section, section.lower().replace(" ", "-"))


_SWATCHES = {
    "circle": "M12 4a4 4 0 1 0 .01 0z",
    "square": "M8.5 4.5h7v7h-7z",
    "triangle-up": "M12 3.5l4.5 8h-9z",
    "diamond": "M12 3l5 5-5 5-5-5z",
    "triangle-down": "M12 12.5l4.5-8h-9z",
    "cross": "M10.5 3.5h3v3h3v3h-3v3h-3v-3h-3v-3h3z",
    "triangle-right": "M8 3.5v9l8-4.5z",
}


def swatch(index: int) -> Markup:
    """The legend's sign of a series: its line with its point."""
    colour, shape = index % len(charts.SERIES), _SWATCHES[charts.series_shape(index)]
    return Markup(
        '<svg class="swatch" viewBox="0 0 24 16" aria-hidden="true" style="color:var(--series-{})">'
        '<path d="M0 8h24" stroke="currentColor" stroke-width="2"/><path d="{}" fill="currentColor"/></svg>'
    ).format(colour, shape)
