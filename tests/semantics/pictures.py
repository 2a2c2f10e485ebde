"""Pictures of the semantics, drawn from conformance cases: ``python -m tests.semantics.pictures`` writes them.

A picture stacks cases. Each case has its stream on an axis of time and a line for each report that may be due: the
scope as a bar with its borders, the elements that it holds, a triangle at the instant, and in words the content and
what is sent.
"""

from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from streamgauge.model.element import StreamElement
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
LINE = 22
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
        labels = max(sum(len(each.added) for each in case.stream if each.time == one.time) for one in case.stream)
        self.stream = top + 2 * LINE + 14 * labels
        self.bottom = self.stream + 20 + LINE * len(self.candidates)

    def marks(self) -> Iterator[str]:
        """The marks from the case's name to its last report."""
        yield _text(0, self.top + 14, self.case.name[0].upper() + self.case.name[1:], "name")
        yield _text(0, self.top + 32, self._settings(), "muted")
        yield _text(HOLDS, self.stream, "content", "muted")
        yield _text(SENDS, self.stream, "sent", "muted")
        yield from self._axis()
        for element in self.case.stream:
            yield from self._element(element)
        for place, due in enumerate(self.candidates):
            yield from self._report(due, self.stream + 36 + LINE * place)

    def _settings(self) -> str:
        case, semantics = self.case, self.case.semantics
        window = case.query.window
        size = f"RANGE {window.size}, SLIDE {window.slide}"
        kind = {"time": size, "landmark": f"landmark, SLIDE {window.slide}", "count": f"{size} triples"}[window.kind]
        said = [kind, str(semantics.borders), " and ".join(sorted(semantics.report))]
        if Report.WINDOW_CLOSE not in semantics.report:
            said.append(f"{semantics.tick} tick" if semantics.period is None else f"every {semantics.period}")
        return "; ".join((*said, f"content is a {semantics.content}", str(operator(case.query, semantics))))

    def _x(self, time: float) -> float:
        return round(LEFT + (time - self.first) * (RIGHT - LEFT) / (self.last - self.first), 1)

    def _axis(self) -> Iterator[str]:
        yield _text(0, self.stream, "stream")
        for time in range(self.first, self.last + 1):
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
        before = sum(len(each.added) for each in self.case.stream if (each.time, each.sequence) < _place(element))
        before -= sum(len(each.added) for each in self.case.stream if each.time < element.time)
        for place, triple in enumerate(element.added, before):
            yield _text(x, y - 9 - 14 * place, " ".join(map(_short, triple)), "middle")

    def _report(self, due: DueReport, y: int) -> Iterator[str]:
        view, instant = due.views[0], self._x(due.instant)
        yield _text(LEFT - 14, y + 4, f"at {due.instant}", "end" if due in self.due else "end muted")
        if due not in self.due:
            yield _text(HOLDS, y + 4, "not due", "muted")
            return
        inside = self.due[due][0]
        yield f'<path class="scope" d="{self._bar(view, y)}"/>'
        for time in dict.fromkeys(arrival.time for arrival in inside):
            yield f'<circle class="held" cx="{self._x(time)}" cy="{y}" r="4"/>'
        yield f'<path class="instant" d="M{instant} {y - 2}l-4 -8h8z"/>'
        yield _text(HOLDS, y + 4, _content(inside, self.case.semantics.content))
        yield _text(SENDS, y + 4, _rows(self.sent[due]) if due in self.sent else "nothing")

    def _bar(self, view: View, y: int) -> str:
        """A line with a bracket where the border is in the scope, with a round one where it is not."""
        start, end = self._x(view.start), self._x(view.end)
        left = "m4 -6h-4v12h4" if view.first <= view.start else "m4 -6q-8 6 0 12"
        right = "m-4 -6h4v12h-4" if view.last >= view.end else "m-4 -6q8 6 0 12"
        return f"M{start} {y}H{end}M{start} {y}{left}M{end} {y}{right}"


def _place(element: StreamElement) -> tuple[int, int]:
    return element.time, element.sequence


def _text(x: float, y: float, text: str, kind: str = "") -> str:
    named = f' class="{kind}"' if kind else ""
    return f'<text{named} x="{x}" y="{y}">{escape(text)}</text>'


def _short(term: Term | None) -> str:
    """A term as the cases write it."""
    if term is None:
        return "-"
    return term.removeprefix("<urn:").removesuffix(">") if term.startswith("<") else term[1 : term.rindex('"')]


def _content(inside: Sequence[Arrival], counting: Counting) -> str:
    held = [" ".join(map(_short, triple)) for arrival in inside for triple in arrival.triples]
    return f"{{{', '.join(held if counting is Counting.BAG else dict.fromkeys(held))}}}"


def _rows(rows: Sequence[Row]) -> str:
    return ", ".join(sorted(" ".join(map(_short, row)) for row in rows)) or "an empty answer"


def main() -> None:
    """Write every picture."""
    for name, cases in PICTURES.items():
        (FOLDER / f"{name}.svg").write_text(picture(cases), "utf-8")


if __name__ == "__main__":
    main()
