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
"""Maximum rows of a report in a reply, which always has their number."""
MOST_TOLD: Final = 20_000
"""Maximum rows of all reports of one semantics in a reply, beyond the first few of each."""
LISTED_ROWS: Final = 12
LISTED_REPORTS: Final = 40
LISTED_TOGETHER: Final = 120
"""Rows of one side that are listed for all reports together, but for the first few of each."""


def answer_json(result: PlaygroundResult, *, brief: bool = False) -> dict[str, Any]:
    """A result as JSON values: times in ms, terms in the simple notation if it can express them.

    The ``brief`` one has the times of the elements in place of elements, contents, rows and differences.
    """
    document = {
        "dialect": result.dialect,
        "link": link(result.state),
        "horizon": result.horizon,
        "errors": [
            {"where": trouble.where, "sentence": trouble.sentence, "line": trouble.line, "column": trouble.column}
            for trouble in result.troubles
        ],
        "query": _query(result),
        "places": result.stream.places,
        "simple": _simple(result),
        "fields": _sentences(result),
        "summary": summary(result.pairs) if result.b is not None else "",
    }
    more = {"times": [element.time for element in result.stream.elements]} if brief else _details(result)
    return {**document, **more}


def _details(result: PlaygroundResult) -> dict[str, Any]:
    """The elements with their triples, and both evaluations."""
    elements = [
        {
            "number": element.sequence,
            "stream": element.stream,
            "time": element.time,
            "until": element.until,
            "triples": [[result.names.shown(term) for term in triple] for triple in element.added],
        }
        for element in result.stream.elements
    ]
    differences = [_pair(pair) for pair in result.pairs if pair.change is not ReportChange.SAME]
    return {
        "differences": differences,
        "elements": elements,
        "a": _evaluation(result.a, result.names),
        "b": _evaluation(result.b, result.names),
    }


def _query(result: PlaygroundResult) -> dict[str, Any] | None:
    if result.query is None:
        return None
    windows = [
        {
            "stream": window.stream,
            "name": window.name,
            **{n: getattr(window.window, n) for n in ("kind", "size", "slide")},
        }
        for window in result.query.windows
    ]
    return {"windows": windows, "r2s": result.query.r2s and str(result.query.r2s), "notes": list(result.query.notes)}


def _simple(result: PlaygroundResult) -> str | None:
    """The stream's text in the simple notation, where the state has another and it can be said."""
    if result.state.syntax == SIMPLE or not result.stream.elements:
        return None
    text, syntax = write_text(result.stream.elements, result.names)
    return text if syntax == SIMPLE else None


def _evaluation(side: PlaygroundEvaluation | None, names: Names) -> dict[str, Any] | None:
    if side is None:
        return None
    # The rows that all reports may have together are shared out: with 20,000 for 1,000 reports, each has 20.
    limit = max(5, min(MOST_ROWS, MOST_TOLD // max(1, len(side.candidates))))
    return {
        "name": side.declared.name,
        "semantics": fields_of(side.declared),
        "t0": side.t0,
        "variables": list(side.variables),
        "late": list(side.late),
        "candidates": [_candidate(candidate, side, names, limit) for candidate in side.candidates],
    }


def _candidate(candidate: Candidate, side: PlaygroundEvaluation, names: Names, limit: int) -> dict[str, Any]:
    views = [
        {
            "start": view.start,
            "end": view.end,
            "scope": interval(view.start, view.end, scope_borders(side.query, side.semantics)),
            "triples": len({triple for arrival in inside for triple in arrival.triples}),
        }
        for view, inside in zip(candidate.due.views, candidate.contents, strict=True)
    ]
    document: dict[str, Any] = {"instant": candidate.due.instant, "outcome": str(candidate.outcome), "windows": views}
    if candidate.rows is not None:
        document["count"] = len(candidate.rows)
        document["rows"] = [[names.shown(term) for term in row] for row in candidate.rows[:limit]]
    return document


def _sentences(result: PlaygroundResult) -> list[str]:
    if result.a is None or result.b is None:
        return []
    return list(sentences(result.a.declared, result.b.declared))


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
    """The rows of a report for a cell of the page; ``mark`` marks those of one side only."""

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


def listed(result: PlaygroundResult) -> tuple[list[ListedReport], int]:
    """The reports for the page's table, and the number of omitted ones; of many, those that differ are kept."""
    pairs: Sequence[ReportPair] = result.pairs
    if result.b is None and result.a is not None:
        pairs = [ReportPair(report.due.instant, ReportChange.SAME, report, None) for report in result.a.reports]
    kept = pairs
    if len(pairs) > LISTED_REPORTS:
        # False sorts before True, so pairs that differ come first. The second sort puts those kept back into order of
        # time.
        places = sorted(range(len(pairs)), key=lambda at: (pairs[at].change is ReportChange.SAME, at))
        kept = [pairs[at] for at in sorted(places[:LISTED_REPORTS])]
    return list(_lines(kept, result)), len(pairs) - len(kept)


def _lines(pairs: Sequence[ReportPair], result: PlaygroundResult) -> Iterator[ListedReport]:
    before, limit = None, max(3, min(LISTED_ROWS, LISTED_TOGETHER // max(1, len(pairs))))
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
            _rows(pair.a, pair.b, result.a, result.names, limit),
            _rows(pair.b, pair.a, result.b, result.names, limit),
        )


def _rows(
    own: Candidate | None, other: Candidate | None, side: PlaygroundEvaluation | None, names: Names, limit: int
) -> ListedRows | None:
    if own is None or own.rows is None or side is None:
        return None
    missing = Counter(() if other is None else other.rows or ())
    rows: list[tuple[Row, str]] = []
    for row in own.rows:
        mark = ""
        if other is not None:
            mark = "" if missing[row] else "only"
            # Rows are a bag: of two equal rows here and one there, one is marked.
            missing[row] -= 1 if missing[row] else 0
        rows.append((row, mark))
    # Rows that only this side has come first, as the list is cut.
    rows.sort(key=lambda row: not row[1])
    lines = tuple((" ".join(map(names.shown, row)), mark) for row, mark in rows[:limit])
    borders = scope_borders(side.query, side.semantics)
    scope = ", ".join(interval(view.start, view.end, borders) for view in own.due.views)
    return ListedRows(lines, max(0, len(rows) - limit), scope)


def page_values(result: PlaygroundResult, *, scripted: bool = False) -> Mapping[str, Any]:
    """The variables of the page's part that is drawn; a ``scripted`` page shows the words of shapes itself."""
    lines, more = listed(result)
    # Reversed, so that of several mistakes in one part the first is the one that stays.
    sentences = {trouble.where: trouble.sentence for trouble in reversed(result.troubles)}
    if wrong := next((trouble for trouble in result.troubles if trouble.where == "query"), None):
        sentences["query"] = f"Line {wrong.line}, column {wrong.column}: {wrong.sentence}"
    return {
        "found": result,
        "picture": _picture(result, titles=not scripted) if result.a is not None else "",
        "listed": lines,
        "more_reports": more,
        "troubles": result.troubles,
        "said": sentences,
        "summary": summary(result.pairs) if result.b is not None and result.a is not None else "",
        "sentences": _sentences(result),
        "link": "" if scripted else link(result.state),
        "downloads": True,
    }


def _picture(result: PlaygroundResult, *, titles: bool) -> str:
    picture = timeline(result)
    scale = picture.scale
    label = f"Elements, windows and reports on a timeline from {scale.first} to {scale.last} ms"
    return svg(picture, label, titles=titles)
