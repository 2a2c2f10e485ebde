"""The playground's result as files: a page, the rows of A and B as CSV, the answers of one as JSON lines."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Final

from streamgauge.formats.lines import encode_answers
from streamgauge.incremental.drivers.relation_to_stream import answer_kind
from streamgauge.model.answer import Answer
from streamgauge.report.exports import table
from streamgauge.report.lanes import names, svg
from streamgauge.report.numbers import scope_borders
from streamgauge.report.zoomable import WIDTH, ZOOMS
from streamgauge.workbench.pages import fragment
from streamgauge.workbench.rooms.playground.comparison import ReportChange, interval
from streamgauge.workbench.rooms.playground.evaluation import Candidate, PlaygroundEvaluation
from streamgauge.workbench.rooms.playground.replies import page_values
from streamgauge.workbench.rooms.playground.result import PlaygroundResult
from streamgauge.workbench.rooms.playground.timeline import timeline
from streamgauge.workbench.terms import plain_term


def as_csv(result: PlaygroundResult) -> bytes:
    """A line for each row of each report, or one for a report without rows, which counts 0.

    The columns: A or B, the instant, the windows, the report's difference, its number of rows, the row's terms as
    in the CSV results of SPARQL 1.1.
    """
    # By identity: two reports of one instant may be equal, and differ in what became of them.
    changes = {id(report): pair.change for pair in result.pairs for report in (pair.a, pair.b) if report is not None}
    sides = [(name, side) for name, side in (("A", result.a), ("B", result.b)) if side is not None]
    variables = sides[0][1].variables if sides else ()
    lines: list[tuple[object, ...]] = [("semantics", "instant, ms", "windows, ms", "difference", "rows", *variables)]
    for name, side in sides:
        for report in side.reports:
            change = changes.get(id(report), ReportChange.SAME)
            head = (
                name,
                report.due.instant,
                _windows(report, side),
                "" if change is ReportChange.SAME else str(change),
            )
            rows = report.rows or ()
            # A report without rows still has a line, of empty cells, so that it is seen.
            cells = [tuple(map(plain_term, row)) for row in rows] or [("",) * len(variables)]
            lines += [(*head, len(rows), *row) for row in cells]
    return table(lines).encode(errors="backslashreplace")


def _windows(report: Candidate, side: PlaygroundEvaluation) -> str:
    borders = scope_borders(side.query, side.semantics)
    return " ".join(interval(view.start, view.end, borders) for view in report.due.views)


def as_lines(which: str, result: PlaygroundResult) -> bytes:
    """The answers of A or B as an engine writes them to the pipe."""
    side = result.a if which == "a" else result.b
    return b"" if side is None else encode_answers(_answers(side))


def _answers(side: PlaygroundEvaluation) -> Iterator[Answer]:
    kind = answer_kind(side.query.form)
    for report in side.reports:
        yield Answer(side.variables, report.rows or (), kind=kind, instant=report.due.instant)


def as_page(result: PlaygroundResult) -> bytes:
    """A page of the result that needs neither server nor script; its timeline is zoomed by the browser alone."""
    drawn = timeline(replace(result, state=replace(result.state, width=WIDTH, view=None)))
    picture = names(drawn) + svg(drawn, "Elements, windows and reports over time", titles=True, stretches=True)
    own = {"picture": picture, "downloads": False, "zooms": ZOOMS, "title": "Windows and reports of a query"}
    return fragment("playground-file.html.j2", **{**page_values(result), **own}).encode()


DOWNLOADS: Final[Mapping[str, tuple[Callable[[PlaygroundResult], bytes], str]]] = {
    "timeline.html": (as_page, "text/html; charset=utf-8"),
    "reports.csv": (as_csv, "text/csv; charset=utf-8"),
    "answers-a.jsonl": (partial(as_lines, "a"), "application/x-ndjson"),
    "answers-b.jsonl": (partial(as_lines, "b"), "application/x-ndjson"),
}
"""Files of a result by their names: the writer, and the media type."""
