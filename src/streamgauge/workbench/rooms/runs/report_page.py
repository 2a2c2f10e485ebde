"""The report's page about runs as the workbench shows it: a plot is drawn when it is seen, and given as files.

Drawing is most of the cost of the page (0.03 s of CPU a plot, and 0.35 s once in a process), so the page comes without
drawings, and its script asks for each that comes into view. Their data are kept with the page.
"""

import json
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from threading import Lock
from typing import Final, TypeVar
from urllib.parse import quote

from markupsafe import Markup

from streamgauge.model.run import Run
from streamgauge.model.verdict import Verdict
from streamgauge.report import charts, vega
from streamgauge.report.charts import ChartDrawing
from streamgauge.report.document import Section, ServedPage, document, sections
from streamgauge.report.exports import FigureLink, Links, table
from streamgauge.report.figures import on_white, standing_alone
from streamgauge.report.latex import pgfplots_picture
from streamgauge.report.plots import plots
from streamgauge.report.series import series_of
from streamgauge.report.tables import csv_table, latex_tables
from streamgauge.servers.http.deadlines import DEADLINES
from streamgauge.workbench.rooms.runs.folder import BenchError, Stamp, inside, stamp
from streamgauge.workbench.rooms.runs.run_page import GROWTH, SECONDS, judged

Made = TypeVar("Made")

TOGETHER: Final = 40
"""Runs on one page of the report."""

KEPT: Final = 16
"""Pages of reports that are kept until their runs change."""

SAVED_POLICY: Final = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
"""The saved page runs no script and loads nothing: what its own head says, as a header."""

REPORT_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""The report's page runs the script that asks for drawings, and speaks with this server only."""

SHARP: Final = 3.0
"""Pixels of a PNG for each px of the plot."""

_SPACE: Final = 46
"""Height (px) of an axis with its title, for the room of a drawing that is not there yet."""

KINDS: Final = {
    "svg": "image/svg+xml",
    "png": "image/png",
    "pdf": "application/pdf",
    "csv": "text/csv; charset=utf-8",
    "tex": "application/x-tex",
}
"""The media type of each kind of file that plots and tables are given as."""

DRAWN: Final = ("svg", "png", "pdf")
"""The kinds of files of a plot that Vega draws."""

TABLES: Final[Mapping[str, Callable[[Sequence[tuple[Run, Verdict]], str], str]]] = {
    "runs.csv": lambda runs, _title: csv_table(runs),
    "runs.tex": latex_tables,
}
"""The files of the table of runs."""


@dataclass(frozen=True, slots=True)
class WantedReport:
    """A requested report: the places of its runs, its title, its address, and the address of its subject."""

    places: tuple[str, ...]
    title: str
    address: str
    back: str

    def part(self, name: str, value: str) -> str:
        """The address of a part of the report: a drawing, a file, the saved page."""
        return f"{self.address}{'&' if '?' in self.address else '?'}{name}={quote(value)}"


class LaterDrawing(ChartDrawing):
    """Reserves space for drawings, keeps their data as JSON, and draws each one on demand."""

    def __init__(self, wanted: WantedReport) -> None:
        super().__init__()
        self._wanted, self._next = wanted, count()
        self._waiting: dict[int, tuple[str, str, str]] = {}
        self._made: dict[int, str] = {}
        self._lock = Lock()

    def svg(self, chart: charts.Spec, label: str, variant: str) -> str:
        """The room of a drawing, with the address of the drawing; what draws it, where none can be."""
        # Without the library there is a sentence in place of each drawing, at once.
        if vega.undrawn():
            return super().svg(chart, label, variant)
        place = next(self._next)
        self._waiting[place] = json.dumps(chart), label, variant
        markup = Markup(
            '<div class="plot {} later" data-drawing="{}" style="aspect-ratio:{}/{}" role="img" aria-label="{}"></div>'
        )
        height = chart["height"] + _SPACE
        return str(markup.format(variant, self._wanted.part("drawing", str(place)), chart["width"], height, label))

    def drawn(self, place: int) -> str:
        """A drawing as an SVG element; LookupError for one that the page does not have."""
        with self._lock:
            if place not in self._made:
                text, label, variant = self._waiting[place]
                self._made[place] = super().svg(json.loads(text), label, variant)
            return self._made[place].encode(errors="backslashreplace").decode()


@dataclass(frozen=True)
class KeptPage:
    """A page with what draws its plots; ``files`` are its charts with their legends, as JSON, by their names."""

    stamps: Sequence[Stamp]
    text: str
    drawing: LaterDrawing
    files: Mapping[str, str]


class Reports:
    """A cache of report pages, each valid until a file of its runs changes. Thread-safe."""

    def __init__(self, root: Path) -> None:
        self._root, self._lock = root, Lock()
        self._kept: OrderedDict[tuple[str, ...], KeptPage] = OrderedDict()

    def page(self, wanted: WantedReport) -> str:
        """The report of judged runs as a page; MistakeError if one cannot be read or is too large."""
        return self._page(wanted).text

    def drawing(self, wanted: WantedReport, number: str) -> str:
        """A drawing of the page as an SVG element; MistakeError."""
        page = self._page(wanted)
        try:
            return page.drawing.drawn(int(number))
        except (LookupError, ValueError):
            raise BenchError(f"{number!r:.40} is not a drawing of the report on {wanted.title}") from None

    def file(self, wanted: WantedReport, name: str) -> bytes:
        """A plot as ``NAME.svg`` (PNG, PDF, LaTeX), its numbers as ``NAME.csv``, or the table of runs; MistakeError."""
        if name in TABLES:
            return self._made(wanted.places, lambda runs: TABLES[name](runs, wanted.title).encode())
        page = self._page(wanted)
        plot, _, kind = name.rpartition(".")
        if plot not in page.files or kind not in _kinds(chart := json.loads(page.files[plot])):
            raise BenchError(f"{name!r:.100} is not a file of the report on {wanted.title}")
        if kind == "csv":
            return self._numbers(wanted, plot)
        if kind == "tex":
            return str(pgfplots_picture(chart)).encode(errors="backslashreplace")
        if reason := vega.undrawn():
            raise BenchError(f"{name} is not drawn: {reason}")
        if kind == "svg":
            return vega.svg(chart).encode(errors="backslashreplace")
        return vega.pdf(chart) if kind == "pdf" else vega.png(on_white(chart), SHARP)

    def saved(self, wanted: WantedReport) -> str:
        """The page as one file, with all of its drawings; MistakeError."""
        return self._made(wanted.places, lambda runs: document(runs, wanted.title))

    def _numbers(self, wanted: WantedReport, plot: str) -> bytes:
        """All numbers of a plot as CSV, read anew from the runs."""

        def read(runs: Sequence[tuple[Run, Verdict]]) -> bytes:
            # The kept page does not keep its runs, which all numbers are read from.
            sections_ = sections(series_of(runs), ChartDrawing(drawn=False))
            numbers = (figure.numbers for _, _, figures in sections_ for figure in figures)
            wanted = next(number for number in numbers if number is not None and number.name == plot)
            return table([wanted.columns, *wanted.every()]).encode(errors="backslashreplace")

        return self._made(wanted.places, read)

    def _made(self, places: tuple[str, ...], make: Callable[[Sequence[tuple[Run, Verdict]]], Made]) -> Made:
        """The page or drawing that ``make`` returns for the judged runs at these places; MistakeError."""
        if len(places) > TOGETHER:
            raise BenchError(f"these are {len(places):,} runs: streamgauge report makes a page of more than {TOGETHER}")
        plots()  # imports, which may not be stopped in their midst
        vega.load()
        with DEADLINES.within(SECONDS, GROWTH):
            return make([judged(self._root, place) for place in places])

    def _page(self, wanted: WantedReport) -> KeptPage:
        with self._lock:
            # Under the lock: a browser asks for many drawings at once, and each would make the page anew.
            now = [stamp(inside(self._root, place)) for place in wanted.places]
            kept = self._kept.get(wanted.places)
            # A run that was judged again has other stamps, and its page is made anew.
            if kept is None or kept.stamps != now:
                kept = self._kept[wanted.places] = self._new(wanted, now)
                if len(self._kept) > KEPT:
                    # The first in the order is the one that was not asked for the longest.
                    self._kept.popitem(last=False)
            self._kept.move_to_end(wanted.places)
            return kept

    def _new(self, wanted: WantedReport, stamps: Sequence[Stamp]) -> KeptPage:
        drawing, files = LaterDrawing(wanted), dict[str, str]()

        def links(sections_: Sequence[Section], labels: Sequence[str]) -> Links:
            figures = {
                figure.numbers.name: figure
                for _, _, some in sections_
                for figure in some
                if figure.numbers and figure.chart
            }
            shown = {name: standing_alone(figure, labels) for name, figure in figures.items()}
            files.update((name, json.dumps(chart)) for name, chart in shown.items())
            return {name: _links(wanted, name, chart) for name, chart in shown.items()}

        tables = [_link(wanted, name) for name in TABLES]
        page = ServedPage(drawing, links, "/runs/static/report.js", wanted.back, wanted.part("saved", "1"), tables)
        text = self._made(wanted.places, lambda runs: document(runs, wanted.title, page))
        return KeptPage(stamps, text, drawing, files)


def _kinds(chart: charts.Spec) -> tuple[str, ...]:
    """The kinds of files that a plot is given as."""
    return (*DRAWN, "csv", *(() if pgfplots_picture(chart) is None else ("tex",)))


def _links(wanted: WantedReport, name: str, chart: charts.Spec) -> list[FigureLink]:
    kinds = [kind for kind in _kinds(chart) if kind not in DRAWN or not vega.undrawn()]
    return [_link(wanted, f"{name}.{kind}") for kind in kinds]


def _link(wanted: WantedReport, file: str) -> FigureLink:
    kind = file.rpartition(".")[2]
    return FigureLink({"tex": "LaTeX"}.get(kind, kind.upper()), wanted.part("file", file), file)
