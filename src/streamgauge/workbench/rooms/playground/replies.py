"""The playground's results as JSON and as a part of a page, the shapes of its timeline as SVG.

Shapes are written here and not by a template, since a timeline may have a thousand. A page whose script shows the words
of a shape has no ``title`` elements beside them, which are half of its SVG.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from markupsafe import Markup, escape

from streamgauge.model.terms import Row
from streamgauge.report.numbers import scope_borders
from streamgauge.workbench.rooms.playground.comparison import (
    SIGNS,
    ReportChange,
    ReportPair,
    interval,
    sentences,
    summary,
)
from streamgauge.workbench.rooms.playground.evaluation import Candidate, PlaygroundEvaluation
from streamgauge.workbench.rooms.playground.fields import fields_of
from streamgauge.workbench.rooms.playground.result import PlaygroundResult
from streamgauge.workbench.rooms.playground.state import link
from streamgauge.workbench.rooms.playground.stream_text import SIMPLE, Names, write_text
from streamgauge.workbench.rooms.playground.timeline import Lane, Shape, timeline

MOST_ROWS: Final = 200
"""Rows of a report that are told; how many there are is told always."""
MOST_TOLD: Final = 20_000
"""Rows of all reports of one semantics that are told, but for the first few of each."""
LISTED_ROWS: Final = 12
LISTED_REPORTS: Final = 40
LISTED_TOGETHER: Final = 120
"""Rows of one side that are listed for all reports together, but for the first few of each."""


def answer_json(found: PlaygroundResult, *, brief: bool = False) -> dict[str, Any]:
    """A result as JSON values: times in ms, terms in the simple notation where it can say them.

    The ``brief`` one leaves out triples, contents, rows and differences.
    """
    told = {
        "dialect": found.dialect,
        "link": link(found.state),
        "horizon": found.horizon,
        "errors": [
            {"where": each.where, "sentence": each.sentence, "line": each.line, "column": each.column}
            for each in found.troubles
        ],
        "query": _query(found),
        "elements": [{"number": each.sequence, "time": each.time} for each in found.stream.elements],
        "places": [list(place) for place in found.stream.places],
        "simple": _simple(found),
        "fields": _sentences(found),
        "summary": summary(found.pairs) if found.b is not None else "",
    }
    return told if brief else {**told, **_details(found)}


def _details(found: PlaygroundResult) -> dict[str, Any]:
    """The elements with their triples, and both evaluations."""
    elements = [
        {
            "number": each.sequence,
            "stream": each.stream,
            "time": each.time,
            "until": each.until,
            "triples": [[found.names.shown(term) for term in triple] for triple in each.added],
        }
        for each in found.stream.elements
    ]
    differences = [_pair(each) for each in found.pairs if each.change is not ReportChange.SAME]
    return {
        "differences": differences,
        "elements": elements,
        "a": _evaluation(found.a, found.names),
        "b": _evaluation(found.b, found.names),
    }


def _query(found: PlaygroundResult) -> dict[str, Any] | None:
    if found.query is None:
        return None
    windows = [
        {"stream": each.stream, "name": each.name, **{n: getattr(each.window, n) for n in ("kind", "size", "slide")}}
        for each in found.query.windows
    ]
    return {"windows": windows, "r2s": found.query.r2s and str(found.query.r2s), "notes": list(found.query.notes)}


def _simple(found: PlaygroundResult) -> str | None:
    """The stream's text in the simple notation, where the state has another and it can be said."""
    if found.state.syntax == SIMPLE or not found.stream.elements:
        return None
    text, syntax = write_text(found.stream.elements, found.names)
    return text if syntax == SIMPLE else None


def _evaluation(side: PlaygroundEvaluation | None, names: Names) -> dict[str, Any] | None:
    if side is None:
        return None
    most = max(5, min(MOST_ROWS, MOST_TOLD // max(1, len(side.candidates))))
    return {
        "name": side.declared.name,
        "semantics": fields_of(side.declared),
        "t0": side.t0,
        "variables": list(side.variables),
        "late": list(side.late),
        "candidates": [_candidate(each, side, names, most) for each in side.candidates],
    }


def _candidate(each: Candidate, side: PlaygroundEvaluation, names: Names, most: int) -> dict[str, Any]:
    views = [
        {
            "start": view.start,
            "end": view.end,
            "scope": interval(view.start, view.end, scope_borders(side.query, side.semantics)),
            "triples": len({triple for arrival in inside for triple in arrival.triples}),
        }
        for view, inside in zip(each.due.views, each.contents, strict=True)
    ]
    told: dict[str, Any] = {"instant": each.due.instant, "outcome": str(each.outcome), "windows": views}
    if each.rows is not None:
        told["count"] = len(each.rows)
        told["rows"] = [[names.shown(term) for term in row] for row in each.rows[:most]]
    return told


def _sentences(found: PlaygroundResult) -> list[str]:
    if found.a is None or found.b is None:
        return []
    return list(sentences(found.a.declared, found.b.declared))


def _pair(pair: ReportPair) -> dict[str, Any]:
    return {
        "instant": pair.instant,
        "change": str(pair.change),
        "why": pair.why,
        "field": pair.field,
        "a": None if pair.a is None else len(pair.a.rows or ()),
        "b": None if pair.b is None else len(pair.b.rows or ()),
    }


@dataclass(frozen=True, slots=True)
class ListedRows:
    """Rows of a report as a cell of the page has them; ``mark`` tells those that only one side has."""

    rows: tuple[tuple[str, str], ...]
    more: int
    scope: str


@dataclass(frozen=True, slots=True)
class ListedReport:
    """A line of the page's table of reports; ``anchor`` is its place, empty after the first of an instant."""

    instant: int
    anchor: str
    change: str
    sign: str
    why: str
    field: str
    a: ListedRows | None
    b: ListedRows | None


def listed(found: PlaygroundResult) -> tuple[list[ListedReport], int]:
    """The reports for the page's table, and how many are left out; of many those that differ are kept."""
    pairs: Sequence[ReportPair] = found.pairs
    if found.b is None and found.a is not None:
        pairs = [ReportPair(each.due.instant, ReportChange.SAME, each, None) for each in found.a.reports]
    kept = pairs
    if len(pairs) > LISTED_REPORTS:
        places = sorted(range(len(pairs)), key=lambda at: (pairs[at].change is ReportChange.SAME, at))
        kept = [pairs[at] for at in sorted(places[:LISTED_REPORTS])]
    return list(_lines(kept, found)), len(pairs) - len(kept)


def _lines(pairs: Sequence[ReportPair], found: PlaygroundResult) -> Iterator[ListedReport]:
    before, most = None, max(3, min(LISTED_ROWS, LISTED_TOGETHER // max(1, len(pairs))))
    for pair in pairs:
        anchor = "" if pair.instant == before else f"report-{pair.instant}"
        before = pair.instant
        yield ListedReport(
            pair.instant,
            anchor,
            "" if pair.change is ReportChange.SAME else str(pair.change),
            SIGNS[pair.change],
            pair.why,
            pair.field,
            _rows(pair.a, pair.b, found.a, found.names, most),
            _rows(pair.b, pair.a, found.b, found.names, most),
        )


def _rows(
    own: Candidate | None, other: Candidate | None, side: PlaygroundEvaluation | None, names: Names, most: int
) -> ListedRows | None:
    if own is None or own.rows is None or side is None:
        return None
    missing = Counter(() if other is None else other.rows or ())
    rows: list[tuple[Row, str]] = []
    for row in own.rows:
        mark = ""
        if other is not None:
            mark = "" if missing[row] else "only"
            missing[row] -= 1 if missing[row] else 0
        rows.append((row, mark))
    rows.sort(key=lambda each: not each[1])
    told = tuple((" ".join(map(names.shown, row)), mark) for row, mark in rows[:most])
    borders = scope_borders(side.query, side.semantics)
    scope = ", ".join(interval(view.start, view.end, borders) for view in own.due.views)
    return ListedRows(told, max(0, len(rows) - most), scope)


def page_values(found: PlaygroundResult, *, scripted: bool = False) -> Mapping[str, Any]:
    """The variables of the page's part that is drawn; a ``scripted`` page shows the words of shapes itself."""
    lines, more = listed(found)
    said = {each.where: each.sentence for each in reversed(found.troubles)}
    if wrong := next((each for each in found.troubles if each.where == "query"), None):
        said["query"] = f"Line {wrong.line}, column {wrong.column}: {wrong.sentence}"
    return {
        "found": found,
        "marks": marks,
        "titles": not scripted,
        "picture": timeline(found) if found.a is not None else None,
        "listed": lines,
        "more_reports": more,
        "troubles": found.troubles,
        "said": said,
        "summary": summary(found.pairs) if found.b is not None and found.a is not None else "",
        "sentences": _sentences(found),
        "link": link(found.state),
    }


def marks(lane: Lane, *, titles: bool) -> Markup:
    """The shapes of a lane; the first one can be reached by the tab key."""
    return Markup("\n".join(_mark(shape, 0 if at == 0 else -1, titles) for at, shape in enumerate(lane.shapes)))


def ranges(members: Sequence[int]) -> str:
    """Ascending numbers as ranges: ``0-3 7``."""
    return " ".join(str(a) if a == b else f"{a}-{b}" for a, b in _runs(members))


def _runs(members: Sequence[int]) -> Iterator[tuple[int, int]]:
    start = last = None
    for each in members:
        if last is not None and each != last + 1:
            yield start or 0, last
            start = each
        start, last = each if start is None else start, each
    if last is not None:
        yield start or 0, last


def _mark(shape: Shape, tab: int, titles: bool) -> str:
    words = escape(shape.title)
    said = f'tabindex="{tab}" aria-label="{words}"'
    title = f"<title>{words}</title>" if titles else ""
    if shape.kind in ("element", "late", "silent"):
        number = f' data-number="{shape.number}"' if shape.kind != "silent" else ""
        place = f'cx="{shape.x}" cy="{shape.y}" r="{shape.height}"'
        return f'<circle class="{shape.kind}" {place} role="img" {said}{number}>{title}</circle>'
    if shape.kind.startswith("window"):
        members = f'data-members="{ranges(shape.members)}"'
        return f'<g class="{shape.kind}" role="img" {said} {members}>{title}{_window(shape)}</g>'
    return f'<a class="{shape.kind}" href="{escape(shape.href)}" {said}>{title}{_report(shape)}</a>'


def _window(shape: Shape) -> str:
    x, y, width, height = shape.x, shape.y, shape.width, shape.height
    left, right = round(x + 4, 1), round(x + width - 4, 1)
    begin = f"h-4v{height}h4" if shape.borders[0] == "[" else f"q-6 {height / 2} 0 {height}"
    end = f"h4v{height}h-4" if shape.borders[1] == "]" else f"q6 {height / 2} 0 {height}"
    text = f'<text x="{round(x + width / 2, 1)}" y="{y + height - 2.5}">{escape(shape.text)}</text>'
    return (
        f'<rect x="{x}" y="{y}" width="{width}" height="{height}"/>'
        f'<path d="M{left} {y}{begin}M{right} {y}{end}"/>{text if shape.text else ""}'
    )


def _report(shape: Shape) -> str:
    half = shape.height / 2
    draw = next((draw for word, draw in _SIGNS.items() if word in shape.kind), _box)
    text = f'<text x="{shape.x}" y="{shape.y + half + 4}">{escape(shape.text)}</text>' if shape.text else ""
    sign = f'<text class="difference" x="{shape.x}" y="{shape.y - 5}">{escape(shape.sign)}</text>' if shape.sign else ""
    return draw(shape, half) + text + sign


def _diamond(shape: Shape, half: float) -> str:
    across, down = half + 3, half + 2
    return f'<path d="M{shape.x} {shape.y - 2}l{across} {down}l-{across} {down}l-{across} -{down}z"/>'


def _triangle(shape: Shape, half: float) -> str:
    return f'<path d="M{shape.x} {shape.y - 4}l{half + 3} {shape.height + 5}h-{shape.height + 6}z"/>'


def _circle(shape: Shape, half: float) -> str:
    return f'<circle cx="{shape.x}" cy="{shape.y + half}" r="{half + 1}"/>'


def _box(shape: Shape, half: float) -> str:
    size = f'width="{shape.height}" height="{shape.height}"'
    return f'<rect x="{round(shape.x - half, 1)}" y="{shape.y}" {size} rx="2"/>'


_SIGNS: Final[Mapping[str, Callable[[Shape, float], str]]] = {
    "changes": _diamond,
    "appears": _triangle,
    "vanishes": _circle,
}
"""The outline of a report by how it differs."""
