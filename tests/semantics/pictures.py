"""Pictures of the semantics, drawn from conformance cases: ``python -m tests.semantics.pictures`` writes them.

A picture stacks cases. Each case has its stream on an axis of time and, for each report that may be due, a line for
each window: the scope as a bar with its borders, the elements that it holds, a triangle at the instant, and in words
the content and what is sent.
"""

import re
import textwrap
from collections.abc import Iterator, Sequence
from html import escape
from itertools import accumulate
from math import ceil
from pathlib import Path

from streamgauge.model.element import StreamElement
from streamgauge.model.query import StreamWindow
from streamgauge.model.report import DueReport, View
from streamgauge.model.semantics import Counting, Report
from streamgauge.model.terms import Row, Term
from streamgauge.report.charts import AXIS, GRID, INK, MUTED, SERIES
from streamgauge.semantics.arrivals import Arrival, Head, admit, arrivals, origins
from streamgauge.semantics.definition import due_reports, expected, operator
from streamgauge.semantics.due import candidates
from streamgauge.suites.conformance.cases import ConformanceCase, load

FOLDER = Path(__file__).parents[2] / "docs" / "pictures"
PICTURES = {
    "scope": (
        "sliding windows overlap",
        "sliding windows with (o, c]",
        "sliding windows with [o, c]",
        "a pure RANGE slides with every instant",
    ),
    "content": (
        "an element that has ended is not held",
        "a repeated triple stays as long as its last copy",
        "a content that is a bag",
        "a landmark window holds everything from t0 on",
        "a sliding count-based window",
    ),
    "report": (
        "window close and content change",
        "window close, content change and non-empty content",
        "periodic",
        "content change and non-empty content, answer empty",
    ),
    "tick": (
        "content change, tuple by tuple within an element",
        "content change, element by element",
        "content change reports on arrivals and on evictions, once per time",
        "time-driven: an eviction is noticed at the next tick",
    ),
    "r2s": ("tumbling windows are half-open", "Istream over sliding windows", "Dstream over sliding windows"),
}
WIDTH, LEFT, RIGHT, HOLDS, SENDS = 960, 70, 500, 530, 790
LINE, MORE = 22, 16
"""Pixels from a line to the next, and to one more line of the same text."""
LETTERS = {HOLDS: 35, SENDS: 24, 0: 135}
"""How many letters a line has at most that starts there."""

STYLE = (
    "text{font:13px system-ui,sans-serif;fill:var(--ink)}.name{font-weight:600}.muted{fill:var(--muted)}"
    ".middle{text-anchor:middle}.end{text-anchor:end}line,path{fill:none;stroke:var(--axis)}.grid{stroke:var(--grid)}"
    ".scope{stroke:var(--scope);stroke-width:2}.held{fill:var(--scope)}.instant{stroke:none;fill:var(--instant)}"
    ".element{fill:var(--ink)}.lasts{stroke:var(--ink);stroke-width:3}"
)
COLOURS = {"ink": INK, "muted": MUTED, "axis": AXIS, "grid": GRID, "scope": SERIES[0], "instant": SERIES[1]}


def picture(names: Sequence[str]) -> str:
    """The SVG of some cases, by their names."""
    cases = {case.name: case for case in load()}
    marks: list[str] = []
    top = 8
    for name in names:
        panel = Panel(cases[name], top)
        marks += panel.marks()
        top = panel.bottom + 26
    themes = ("".join(f"--{name}:{shade[theme]};" for name, shade in COLOURS.items()) for theme in (0, 1))
    light, dark = (f":root{{{each}}}" for each in themes)
    style = f"<style>{light}@media(prefers-color-scheme:dark){{{dark}}}{STYLE}</style>"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {top}" width="{WIDTH}" role="img">'
    return "\n".join((head, f"<title>{escape('; '.join(names))}</title>", style, *marks, "</svg>")) + "\n"


class Panel:
    """One case below ``top``, in pixels."""

    def __init__(self, case: ConformanceCase, top: int) -> None:
        self.case, self.top = case, top
        query, semantics = case.query, case.semantics
        t0 = origins(semantics, query.windows, case.stream[0].time)[0]
        admitted, _late = admit(case.stream, semantics, query.windows, t0)
        heads = [Head.of(element) for element in admitted]
        ranked = arrivals(heads, query.windows, semantics.tick)
        self.candidates = candidates(ranked, query.windows, semantics, t0, case.advance)
        self.due = dict(due_reports(admitted, query, semantics, case.advance, t0))
        self.sent = {each.due: each.rows for each in expected(case.stream, query, semantics, case.advance, t0)}
        self.first, self.last = min(t0, 0), max(case.advance, *(each.time for each in case.stream))
        self.labels = list(self._labels())
        levels = max(level for _, level, _ in self.labels) + 1
        self.stream = top + 2 * LINE + MORE * (len(self._settings()) - 1) + 14 * levels
        tops = accumulate((self._height(due) for due in self.candidates), initial=self.stream + 36)
        *self.tops, below = tops
        self.bottom = below - 16

    def marks(self) -> Iterator[str]:
        """The marks from the case's name to its last report."""
        yield _text(0, self.top + 14, self.case.name[0].upper() + self.case.name[1:], "name")
        for place, line in enumerate(self._settings()):
            yield _text(0, self.top + 32 + MORE * place, line, "muted")
        yield _text(HOLDS, self.stream, "content", "muted")
        yield _text(SENDS, self.stream, "sent", "muted")
        yield from self._axis()
        for element in self.case.stream:
            yield from self._element(element)
        for x, level, text in self.labels:
            yield _text(x, self.stream - 9 - 14 * level, text, "middle")
        for due, y in zip(self.candidates, self.tops, strict=True):
            yield from self._report(due, y)

    def _settings(self) -> list[str]:
        case, semantics = self.case, self.case.semantics
        said = [self._window(each) for each in case.query.windows]
        said += [str(semantics.borders), " and ".join(sorted(semantics.report))]
        if Report.WINDOW_CLOSE not in semantics.report:
            said.append(f"{semantics.tick} tick" if semantics.period is None else f"every {semantics.period}")
        said += [f"content is a {semantics.content}", str(operator(case.query, semantics))]
        return _lines("; ".join(said), 0)

    def _window(self, seen: StreamWindow) -> str:
        window = seen.window
        size = f"RANGE {window.size}, SLIDE {window.slide}"
        kind = {"time": size, "landmark": f"landmark, SLIDE {window.slide}", "count": f"{size} triples"}[window.kind]
        name = self._name(seen)
        return f"{name}: {kind}" if name else kind

    def _name(self, seen: StreamWindow) -> str:
        """The name of one of several windows: its own, or the stream's."""
        if len(self.case.query.windows) == 1:
            return ""
        return _named(seen.name or seen.stream)

    def _told(self, due: DueReport) -> list[str]:
        """What the windows hold at a report, in lines, each window's from its own line on."""
        counting, told = self.case.semantics.content, list[str]()
        for place, seen in enumerate(self.case.query.windows):
            name, content = self._name(seen), _content(self.due[due][place], counting)
            told += _lines(f"{name}: {content}" if name else content, HOLDS)
        return told

    def _height(self, due: DueReport) -> int:
        if due not in self.due:
            return LINE
        sent = _lines(_rows(self.sent[due]), SENDS) if due in self.sent else [""]
        bars = LINE * (len(due.views) - 1)
        return LINE + max(bars, MORE * (max(len(self._told(due)), len(sent)) - 1))

    def _x(self, time: float) -> float:
        return round(LEFT + (time - self.first) * (RIGHT - LEFT) / (self.last - self.first), 1)

    def _axis(self) -> Iterator[str]:
        yield _text(0, self.stream, "stream")
        numbered = ceil((self.last - self.first) / 20)
        for time in range(self.first, self.last + 1, numbered):
            x = self._x(time)
            yield f'<line class="grid" x1="{x}" y1="{self.stream + 21}" x2="{x}" y2="{self.bottom - 2}"/>'
            yield _text(x, self.stream + 16, str(time), "muted middle")
        yield f'<line x1="{LEFT}" y1="{self.stream}" x2="{RIGHT}" y2="{self.stream}"/>'

    def _element(self, element: StreamElement) -> Iterator[str]:
        x, y = self._x(element.time), self.stream
        if element.until is not None:
            end = self._x(element.until)
            yield f'<path class="lasts" d="M{x} {y}H{end}m-3 -5q6 5 0 10"/>'
        yield f'<circle class="element" cx="{x}" cy="{y}" r="4"/>'

    def _labels(self) -> Iterator[tuple[float, int, str]]:
        """The triples of the stream: where each stands, on which level so that none covers another, and its text."""
        several = len({seen.stream for seen in self.case.query.windows}) > 1
        ends: list[float] = []
        for element in sorted(self.case.stream, key=_place):
            origin = f"{_named(element.stream)}: " if several else ""
            for triple in element.added:
                text = origin + " ".join(map(_short, triple))
                half = 3.5 * len(text)
                x = min(max(self._x(element.time), 48 + half), HOLDS - 8 - half)
                level = next((at for at, end in enumerate(ends) if end < x - half), len(ends))
                ends[level : level + 1] = [x + half + 4]
                yield x, level, text

    def _report(self, due: DueReport, y: int) -> Iterator[str]:
        instant = self._x(due.instant)
        yield _text(LEFT - 14, y + 4, f"at {due.instant}", "end" if due in self.due else "end muted")
        if due not in self.due:
            yield _text(HOLDS, y + 4, "not due", "muted")
            return
        for place, (view, inside) in enumerate(zip(due.views, self.due[due], strict=True)):
            if view.first <= view.last:
                yield f'<path class="scope" d="{self._bar(view, y + LINE * place)}"/>'
            for time in dict.fromkeys(arrival.time for arrival in inside):
                yield f'<circle class="held" cx="{self._x(time)}" cy="{y + LINE * place}" r="4"/>'
        yield f'<path class="instant" d="M{instant} {y - 2}l-4 -8h8z"/>'
        sent = _lines(_rows(self.sent[due]), SENDS) if due in self.sent else ["nothing"]
        for x, lines in ((HOLDS, self._told(due)), (SENDS, sent)):
            for place, line in enumerate(lines):
                yield _text(x, y + 4 + MORE * place, line)

    def _bar(self, view: View, y: int) -> str:
        """A line with a bracket where the border is in the scope, with a round one where it is not."""
        start, end = self._x(view.start), self._x(view.end)
        left = "m4 -6h-4v12h4" if view.first <= view.start else "m4 -6q-8 6 0 12"
        right = "m-4 -6h4v12h-4" if view.last >= view.end else "m-4 -6q8 6 0 12"
        return f"M{start} {y}H{end}M{start} {y}{left}M{end} {y}{right}"


def _place(element: StreamElement) -> tuple[int, int]:
    return element.time, element.sequence


def _named(iri: str) -> str:
    """The last part of an IRI, which tells the streams and windows of a case apart."""
    return re.split("[/#:]", iri)[-1]


def _lines(text: str, x: int) -> list[str]:
    """A text in lines that fit where it stands."""
    return [line.replace("\N{NO-BREAK SPACE}", " ") for line in textwrap.wrap(text, LETTERS[x])] or [""]


def _text(x: float, y: float, text: str, kind: str = "") -> str:
    named = f' class="{kind}"' if kind else ""
    return f'<text{named} x="{x}" y="{y}">{escape(text)}</text>'


def _short(term: Term | None) -> str:
    """A term as the cases write it."""
    if term is None:
        return "-"
    return term.removeprefix("<urn:").removesuffix(">") if term.startswith("<") else term[1 : term.rindex('"')]


def _content(inside: Sequence[Arrival], counting: Counting) -> str:
    held = ["\N{NO-BREAK SPACE}".join(map(_short, triple)) for arrival in inside for triple in arrival.triples]
    return f"{{{', '.join(held if counting is Counting.BAG else dict.fromkeys(held))}}}"


def _rows(rows: Sequence[Row]) -> str:
    return ", ".join(sorted(" ".join(map(_short, row)) for row in rows)) or "an empty answer"


def main() -> None:
    """Write every picture."""
    for name, cases in PICTURES.items():
        (FOLDER / f"{name}.svg").write_text(picture(cases), "utf-8")


if __name__ == "__main__":
    main()
