"""Timelines as SVG: a stream, and for each report that may be due its scopes, contents and what is sent.

A picture stacks scenes. Each scene has its stream on an axis of time and, for each report that may be due, a line per
window: the scope as a bar with its borders, the elements in it, a triangle at the instant, and as text the content,
what is sent and, with a verdict, the differences.
"""

import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from itertools import accumulate
from math import ceil
from typing import Final, Protocol

from streamgauge.model.controls import visible
from streamgauge.model.element import StreamElement
from streamgauge.model.phrases import counted, date_text
from streamgauge.model.query import ContinuousQuery, StreamWindow
from streamgauge.model.report import DueReport, View
from streamgauge.model.semantics import Counting, Report, Semantics
from streamgauge.model.terms import Row, Term, by_parts
from streamgauge.model.verdict import WindowVerdict
from streamgauge.report.colours import AXIS, GRID, INK, MUTED, PAPER, SERIES, STATE
from streamgauge.report.numbers import duration, seconds
from streamgauge.report.series import state
from streamgauge.semantics.arrivals import Arrival, Head, admit, arrivals, origins
from streamgauge.semantics.definition import due_reports, expected, operator
from streamgauge.semantics.due import candidates

WIDTH, LEFT, RIGHT, HOLDS, SENDS = 960, 70, 500, 530, 790
LINE, MORE = 22, 16
"""Line height in pixels, and that within a text."""
LETTERS = {HOLDS: 35, SENDS: 24, 0: 135}
"""Maximum characters of a line that starts at this column."""
LABELLED: Final = 24
"""Maximum number of triples written for a stream and a content; beyond it, their number is."""
LABEL: Final = 60
"""Maximum characters of such a label."""
FOLDED: Final = 6
"""Maximum lines of a content, or of sent rows."""
LARGE_MS: Final = 1000
"""Span (ms) from which times are in s, or times of the day, at round steps."""
ROUND: Final = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21_600, 43_200, 86_400)
"""Steps of such an axis, s; below a second, a tenth or a hundredth of the first three."""

STYLE = (
    ".paper{fill:var(--paper)}text{font:13px system-ui,sans-serif;fill:var(--ink)}.name{font-weight:600}"
    ".muted{fill:var(--muted)}"
    ".middle{text-anchor:middle}.end{text-anchor:end}line,path{fill:none;stroke:var(--axis)}.grid{stroke:var(--grid)}"
    ".scope{stroke:var(--scope);stroke-width:2}.held{fill:var(--scope)}.instant{stroke:none;fill:var(--instant)}"
    ".element{fill:var(--ink)}.lasts{stroke:var(--ink);stroke-width:3}"
)
EDGE: Final = 12
"""Margin left and right, pixels."""
PAPER_MARK: Final = f'<rect class="paper" x="{-EDGE}" width="100%" height="100%"/>'
COLOURS = {
    "paper": PAPER,
    "ink": INK,
    "muted": MUTED,
    "axis": AXIS,
    "grid": GRID,
    "scope": SERIES[0],
    "instant": SERIES[1],
}


class TimelineScene(Protocol):
    """A query under its semantics on a stream, up to ``advance`` (ms); a conformance case is one."""

    @property
    def name(self) -> str:
        """The heading of the timeline."""

    @property
    def query(self) -> ContinuousQuery:
        """The query, which has windows."""

    @property
    def semantics(self) -> Semantics:
        """The operational semantics to draw."""

    @property
    def stream(self) -> Sequence[StreamElement]:
        """The elements, at least one."""

    @property
    def advance(self) -> int:
        """The time to which the stream advances, ms."""


@dataclass(frozen=True)
class JudgedReports:
    """A verdict's judgements of the reports of a scene, by instant and scope (ms)."""

    windows: Mapping[tuple[int | None, int | None, int | None], WindowVerdict]

    @classmethod
    def of(cls, windows: Iterable[WindowVerdict]) -> "JudgedReports":
        """The windows of a verdict."""
        return cls({(window.instant, window.start, window.end): window for window in windows})

    def otherwise(self, due_report: DueReport) -> list[str]:
        """The missing and surplus rows of a report, as lines of text; empty if it is right."""
        window = self.windows.get((due_report.instant, due_report.start, due_report.end))
        if window is None or window.right:
            return []
        missing, surplus = ([_row(row) for row in rows] for rows in (window.missing, window.surplus))
        differences = [f"missing: {', '.join(missing)}"] if missing else []
        differences += [f"surplus: {', '.join(surplus)}"] if surplus else []
        return _folded("; ".join(differences) if window.report is not None and differences else state(window), SENDS)


def picture(title: str, scenes: Sequence[TimelineScene]) -> str:
    """The SVG of scenes, one below the other."""
    panels: list[TimelinePanel] = []
    top = 8
    for scene in scenes:
        panels.append(TimelinePanel(scene, top))
        top = panels[-1].bottom + 26
    return drawn(title, panels, top)


def drawn(title: str, panels: Sequence["TimelinePanel"], height: int) -> str:
    """The SVG of panels, with colours of both themes on its own background, as its page may have another theme."""
    colours = {**COLOURS, **({"wrong": STATE["wrong"]} if any(panel.judged for panel in panels) else {})}
    themes = ("".join(f"--{name}:{shade[theme]};" for name, shade in colours.items()) for theme in (0, 1))
    light, dark = (f":root{{{theme}}}" for theme in themes)
    rules = STYLE + (".wrong{fill:var(--wrong)}" if "wrong" in colours else "")
    sheet = f"<style>{light}@media(prefers-color-scheme:dark){{{dark}}}{rules}</style>"
    width = WIDTH + 2 * EDGE
    box = f'viewBox="{-EDGE} 0 {width} {height}" width="{width}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {box} role="img">'
    marks = [mark for panel in panels for mark in panel.marks()]
    return visible("\n".join((head, f"<title>{escape(title)}</title>", sheet, PAPER_MARK, *marks, "</svg>")) + "\n")


class TimelinePanel:
    """A scene below ``top``, in pixels; ``t0`` (ms) is by default the semantics' own."""

    def __init__(
        self, scene: TimelineScene, top: int, t0: int | None = None, judged: JudgedReports | None = None
    ) -> None:
        self.scene, self.top, self.judged = scene, top, judged
        query, semantics = scene.query, scene.semantics
        origin = origins(semantics, query.windows, scene.stream[0].time)[0] if t0 is None else t0
        admitted, _late = admit(scene.stream, semantics, query.windows, origin)
        heads = [Head.of(element) for element in admitted]
        ranked = arrivals(heads, query.windows, semantics.tick)
        self.candidates = candidates(ranked, query.windows, semantics, origin, scene.advance)
        # The picture draws the definition's own values, and computes nothing by itself.
        self.due = dict(due_reports(admitted, query, semantics, scene.advance, origin))
        self.sent = {
            report.due: report.rows for report in expected(scene.stream, query, semantics, scene.advance, origin)
        }
        self.last = max(scene.advance, *(element.time for element in scene.stream))
        self.first = _first(origin, min(element.time for element in scene.stream), self.last)
        self.large = self.last - self.first >= LARGE_MS
        self.labels = list(self._labels())
        levels = max((level for _, level, _ in self.labels), default=0) + 1
        self.stream = top + 2 * LINE + MORE * (len(self._settings()) - 1) + 14 * levels
        tops = accumulate((self._height(candidate) for candidate in self.candidates), initial=self.stream + 36)
        *self.tops, below = tops
        self.bottom = below - 16

    def marks(self) -> Iterator[str]:
        """The marks from the scene's name to its last report."""
        yield _text(0, self.top + 14, self.scene.name[0].upper() + self.scene.name[1:], "name")
        for place, line in enumerate(self._settings()):
            yield _text(0, self.top + 32 + MORE * place, line, "muted")
        yield _text(HOLDS, self.stream, "content", "muted")
        yield _text(SENDS, self.stream, "sent" if self.judged is None else "expected", "muted")
        yield from self._axis()
        for element in self.scene.stream:
            yield from self._element(element)
        for x, level, text in self.labels:
            yield _text(x, self.stream - 9 - 14 * level, text, "middle")
        for candidate, y in zip(self.candidates, self.tops, strict=True):
            yield from self._report(candidate, y)

    def _settings(self) -> list[str]:
        scene, semantics = self.scene, self.scene.semantics
        settings = [self._window(window) for window in scene.query.windows]
        settings += [str(semantics.borders), " and ".join(sorted(semantics.report))]
        if Report.WINDOW_CLOSE not in semantics.report:
            settings.append(f"{semantics.tick} tick" if semantics.period is None else f"every {semantics.period}")
        updated = semantics.content is Counting.UPDATES
        settings.append("each element by itself" if updated else f"content is a {semantics.content}")
        settings += [str(operator(scene.query, semantics))]
        return _lines("; ".join(settings), 0)

    def _window(self, seen: StreamWindow) -> str:
        window = seen.window
        size, slide = (self._length(ms) if window.kind != "count" else f"{ms}" for ms in (window.size, window.slide))
        both = f"RANGE {size}, SLIDE {slide}"
        kind = {"time": both, "landmark": f"landmark, SLIDE {slide}", "count": f"{both} triples"}[window.kind]
        name = self._name(seen)
        return f"{name}: {kind}" if name else kind

    def _length(self, ms: int) -> str:
        return duration(ms) if self.large else str(ms)

    def _clock(self, time: int) -> str:
        """A time in the axis' format: in ms, in s, or as time of day (UTC)."""
        if not self.large:
            return str(time)
        if day := date_text(time):
            return day[11:].removesuffix("Z")
        return f"{seconds(time)} s"

    def _name(self, seen: StreamWindow) -> str:
        """The name of a window if there are several: its own, or the stream's."""
        if len(self.scene.query.windows) == 1:
            return ""
        return _named(seen.name or seen.stream)

    def _contents(self, due_report: DueReport) -> list[str]:
        """The contents of the windows at a report, in lines; each window begins a line."""
        counting, lines = self.scene.semantics.content, list[str]()
        for place, seen in enumerate(self.scene.query.windows):
            name, inside = self._name(seen), self.due[due_report][place]
            content = _content(inside, counting) if self.labels else _size(inside)
            lines += _folded(f"{name}: {content}" if name else content, HOLDS)
        return lines

    def _sent(self, due_report: DueReport) -> list[str]:
        return _folded(_rows(self.sent[due_report]), SENDS) if due_report in self.sent else ["nothing"]

    def _otherwise(self, due_report: DueReport) -> list[str]:
        return [] if self.judged is None else self.judged.otherwise(due_report)

    def _height(self, due_report: DueReport) -> int:
        if due_report not in self.due:
            return LINE
        bars = LINE * (len(due_report.views) - 1)
        lines = max(len(self._contents(due_report)), len(self._sent(due_report)) + len(self._otherwise(due_report)))
        return LINE + max(bars, MORE * (lines - 1))

    def _x(self, time: float) -> float:
        return round(LEFT + (time - self.first) * (RIGHT - LEFT) / (self.last - self.first), 1)

    @cached_property
    def _times(self) -> Iterable[int]:
        """The times at which the axis has a line."""
        span = self.last - self.first
        if not self.large:
            return range(self.first, self.last + 1, ceil(span / 20))
        steps = [100, 200, 500, *(1000 * size for size in ROUND)]
        # The shortest step with at most seven of them; beyond days, a multiple of a day.
        step = next((step for step in steps if span / step <= 7), steps[-1] * ceil(span / 7 / steps[-1]))
        return range(-(-self.first // step) * step, self.last + 1, step)

    def _axis(self) -> Iterator[str]:
        yield _text(0, self.stream, "stream")
        for time in self._times:
            x = self._x(time)
            yield f'<line class="grid" x1="{x}" y1="{self.stream + 21}" x2="{x}" y2="{self.bottom - 2}"/>'
            yield _text(x, self.stream + 16, self._clock(time), "muted middle")
        yield f'<line x1="{LEFT}" y1="{self.stream}" x2="{RIGHT}" y2="{self.stream}"/>'

    def _element(self, element: StreamElement) -> Iterator[str]:
        x, y = self._x(element.time), self.stream
        if element.until is not None:
            end = self._x(min(element.until, self.last))
            yield f'<path class="lasts" d="M{x} {y}H{end}m-3 -5q6 5 0 10"/>'
        yield f'<circle class="element" cx="{x}" cy="{y}" r="4"/>'

    def _labels(self) -> Iterator[tuple[float, int, str]]:
        """The labels of the stream's triples: place, level (so that none covers another) and text."""
        if sum(len(element.added) for element in self.scene.stream) > LABELLED:
            return
        several = len({seen.stream for seen in self.scene.query.windows}) > 1
        ends: list[float] = []
        for element in sorted(self.scene.stream, key=_place):
            origin = f"{_named(element.stream)}: " if several else ""
            for triple in element.added:
                text = _shortened(origin + " ".join(map(_short, triple)))
                # No font is known here: 7 pixels a letter is the estimate for the style's 13 px.
                half = 3.5 * len(text)
                x = min(max(self._x(element.time), 48 + half), HOLDS - 8 - half)
                level = next((at for at, end in enumerate(ends) if end < x - half), len(ends))
                # Replaces the level's end, or appends a new level.
                ends[level : level + 1] = [x + half + 4]
                yield x, level, text

    def _report(self, due_report: DueReport, y: int) -> Iterator[str]:
        instant = self._x(due_report.instant)
        label = self._clock(due_report.instant)
        at, place = (label, LEFT - 8) if self.large else (f"at {label}", LEFT - 14)
        yield _text(place, y + 4, at, "end" if due_report in self.due else "end muted")
        if due_report not in self.due:
            yield _text(HOLDS, y + 4, "not due", "muted")
            return
        for place, (view, inside) in enumerate(zip(due_report.views, self.due[due_report], strict=True)):
            if view.first <= view.last:
                yield f'<path class="scope" d="{self._bar(view, y + LINE * place)}"/>'
            # Elements of one time are one dot: more would be drawn over each other.
            for time in dict.fromkeys(arrival.time for arrival in inside):
                yield f'<circle class="held" cx="{self._x(time)}" cy="{y + LINE * place}" r="4"/>'
        yield f'<path class="instant" d="M{instant} {y - 2}l-4 -8h8z"/>'
        sent = self._sent(due_report)
        for x, lines in ((HOLDS, self._contents(due_report)), (SENDS, sent)):
            for place, line in enumerate(lines):
                yield _text(x, y + 4 + MORE * place, line)
        for place, line in enumerate(self._otherwise(due_report), len(sent)):
            yield _text(SENDS, y + 4 + MORE * place, line, "wrong")

    def _bar(self, view: View, y: int) -> str:
        """A line with a square bracket at a border inside the scope and a round one at a border outside."""
        # A border beyond the axis is not drawn: the bar then ends without a bracket.
        begun = max(view.start, self.first)
        start, end = self._x(begun), self._x(min(view.end, self.last))
        left = "m4 -6h-4v12h4" if view.first <= view.start else "m4 -6q-8 6 0 12"
        right = "m-4 -6h4v12h-4" if view.last >= view.end else "m-4 -6q8 6 0 12"
        opening = f"M{start} {y}{left}" if begun == view.start else ""
        closing = f"M{end} {y}{right}" if view.end <= self.last else ""
        return f"M{start} {y}H{end}{opening}{closing}"


def _first(t0: int, element: int, last: int) -> int:
    """The start of the axis: 0 if that is near, else t0 or the first element."""
    # An axis from 0 shows how windows are counted from there, unless most of it would be empty.
    begun = min(t0, element)
    return min(t0, 0) if begun <= max(last - begun, 1) else begun


def _shortened(text: str) -> str:
    return text if len(text) <= LABEL else f"{text[: LABEL - 1]}\N{HORIZONTAL ELLIPSIS}"


def _place(element: StreamElement) -> tuple[int, int]:
    return element.time, element.sequence


def _named(iri: str) -> str:
    """The last part of an IRI, which distinguishes the streams and windows of a query."""
    return re.split("[/#:]", iri)[-1]


def _lines(text: str, x: int) -> list[str]:
    """Wrap a text to the width at its column."""
    return [line.replace("\N{NO-BREAK SPACE}", " ") for line in textwrap.wrap(text, LETTERS[x])] or [""]


def _folded(text: str, x: int) -> list[str]:
    """The first lines of a wrapped text, and the number of the others."""
    lines = _lines(text, x)
    if len(lines) <= FOLDED:
        return lines
    return [*lines[: FOLDED - 1], f"\N{HORIZONTAL ELLIPSIS} {len(lines) - FOLDED + 1:,} more lines"]


def _text(x: float, y: float, text: str, kind: str = "") -> str:
    named = f' class="{kind}"' if kind else ""
    return f'<text{named} x="{x}" y="{y}">{escape(text)}</text>'


def _short(term: Term | None) -> str:
    """A term in short form: the last part of an IRI, the text of a literal."""
    return "-" if term is None else by_parts(term, _short_part)


def _short_part(term: Term) -> str:
    if term.startswith("<"):
        # An IRI that ends in a slash has no last part.
        return re.split("[/#]", term[1:-1].removeprefix("urn:"))[-1] or term[1:-1]
    return term if term.startswith("_:") else term[1 : term.rindex('"')]


def _content(inside: Sequence[Arrival], counting: Counting) -> str:
    # The wrapped line may break between triples, not within one; ``_lines`` restores the spaces.
    triples = ["\N{NO-BREAK SPACE}".join(map(_short, triple)) for arrival in inside for triple in arrival.triples]
    return f"{{{', '.join(dict.fromkeys(triples) if counting is Counting.SET else triples)}}}"


def _size(inside: Sequence[Arrival]) -> str:
    return counted(sum(len(arrival.triples) for arrival in inside), "triple")


def _row(row: Row) -> str:
    return " ".join(map(_short, row))


def _rows(rows: Sequence[Row]) -> str:
    return ", ".join(sorted(map(_row, rows))) or "an empty answer"
