"""The playground's results as JSON and as a part of a page."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from streamgauge.model.terms import Row
from streamgauge.report.lanes import svg
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
from streamgauge.workbench.rooms.playground.timeline import timeline

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
        "picture": _picture(found, titles=not scripted) if found.a is not None else "",
        "listed": lines,
        "more_reports": more,
        "troubles": found.troubles,
        "said": said,
        "summary": summary(found.pairs) if found.b is not None and found.a is not None else "",
        "sentences": _sentences(found),
        "link": "" if scripted else link(found.state),
    }


def _picture(found: PlaygroundResult, *, titles: bool) -> str:
    picture = timeline(found)
    scale = picture.scale
    label = f"Elements, windows and reports on a timeline from {scale.first} to {scale.last} ms"
    return svg(picture, label, titles=titles)
