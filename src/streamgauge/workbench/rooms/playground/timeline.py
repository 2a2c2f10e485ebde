"""The playground's timeline: its elements, windows and reports as shapes in lanes."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from streamgauge.model.element import StreamElement
from streamgauge.model.phrases import counted
from streamgauge.report.lanes import (
    BAR,
    FEW_ROWS,
    HEAD,
    HEADING,
    MOST_WINDOWS,
    REPORT_LEVELS,
    SMALLEST,
    TALL,
    THIN,
    Lane,
    LaneTimeline,
    Shape,
    TimeScale,
    binned,
    box_rows,
    crowded,
    levels,
    stacked,
)
from streamgauge.report.numbers import scope_borders
from streamgauge.semantics.arrivals import Arrival
from streamgauge.workbench.rooms.playground.comparison import SIGNS, ReportChange, interval
from streamgauge.workbench.rooms.playground.evaluation import Candidate, PlaygroundEvaluation
from streamgauge.workbench.rooms.playground.result import PlaygroundResult

DOT: Final = 5
MOST_LEVELS: Final = 7


def timeline(result: PlaygroundResult) -> LaneTimeline:
    """The timeline of a result, as wide as its state says; of the times that its state shows, if it says some."""
    sides = [("A", result.a)] + ([("B", result.b)] if result.b is not None else [])
    whole = _span(result, [side for _, side in sides if side is not None])
    first, last = result.state.view or whole
    scale = TimeScale(first, last, result.state.width, whole)
    lanes = [_elements(result, scale, HEAD)]
    shown = None
    for label, side in sides:
        if side is None:
            continue
        now = _scopes(side)
        # The windows of B are drawn only where they are others than A's.
        if now != shown:
            lanes.append(_windows(result, label, side, scale, _below(lanes)))
        shown = now if shown is None else shown
        lanes.append(_reports(result, label, side, scale, _below(lanes)))
    overview = tuple(element.time for element in result.stream.elements)
    return LaneTimeline(scale, _below(lanes), tuple(lanes), overview)


def _below(lanes: Sequence[Lane]) -> float:
    return lanes[-1].top + lanes[-1].height


def _span(result: PlaygroundResult, sides: Sequence[PlaygroundEvaluation]) -> tuple[int, int]:
    """The first and the last time (ms) of anything that is drawn."""
    times = [element.time for element in result.stream.elements]
    starts = [view.start for side in sides for candidate in side.candidates for view in candidate.due.views]
    # t0 far behind the stream's end would leave the elements a few pixels.
    first = min([*times, *starts, *(side.t0 for side in sides if side.t0 <= result.horizon)], default=0)
    return first, max([*times, result.horizon, first + 1], default=1)


def _elements(result: PlaygroundResult, scale: TimeScale, top: float) -> Lane:
    """A dot for each element, those of one time above one another; bins of elements that have no room."""
    shown = [element for element in result.stream.elements if scale.shows(element.time, element.time)]
    stream = sorted(shown, key=lambda element: (element.time, element.sequence))
    heading = f"Stream: {counted(len(result.stream.elements), 'element')}"
    if crowded(len(stream), scale, 2 * DOT + 1, MOST_LEVELS):
        shapes, height = binned("bin elements", "element", [element.time for element in stream], scale, top), TALL
        return Lane("elements", f"{heading}, zoom in to see each", top, HEADING + height + 10, tuple(shapes))
    at = levels([scale.x(element.time) for element in stream], 2 * DOT + 1, MOST_LEVELS)
    late = set(result.a.late if result.a else ())
    dots = [
        _dot(result, element, element.sequence in late, scale, top, level)
        for element, level in zip(stream, at, strict=True)
    ]
    height = (max(at, default=0) + 1) * (2 * DOT + 2)
    return Lane("elements", heading, top, HEADING + height + 10, tuple(dots))


def _dot(
    result: PlaygroundResult, element: StreamElement, late: bool, scale: TimeScale, top: float, level: int
) -> Shape:
    text = " ".join(" ".join(map(result.names.shown, triple)) + "." for triple in element.added[:4])
    more = f" and {len(element.added) - 4:,} more triples" if len(element.added) > 4 else ""
    title = f"{'late element' if late else 'element'} at {element.time:,} ms: {text}{more}"
    y = top + HEADING + DOT + level * (2 * DOT + 2)
    return Shape("late" if late else "element", scale.x(element.time), y, DOT, DOT, title, number=element.sequence)


Scope: TypeAlias = tuple[int, int, int, int, int]
"""A window: the number of its clause, start and end (ms), first and last time in it."""


def _scopes(side: PlaygroundEvaluation) -> tuple[Scope, ...]:
    """The distinct windows of an evaluation."""
    seen = dict.fromkeys(
        (number, view.start, view.end, view.first, view.last)
        for candidate in side.candidates
        for number, view in enumerate(candidate.due.views)
        if view.end > view.start or view.last >= view.first
    )
    return tuple(seen)


def _named(number: int, start: int, end: int) -> str:
    """The name of a window, which its reports have too."""
    return f"{number}:{start}:{end}"


class _Members:
    """The elements of contents, by their numbers in the stream."""

    def __init__(self, stream: Sequence[StreamElement]) -> None:
        self._by_triples: dict[tuple[int, int], list[int]] = {}
        for element in stream:
            self._by_triples.setdefault((element.time, id(element.added)), []).append(element.sequence)
        self._by_triple = {(element.time, triple): element.sequence for element in stream for triple in element.added}
        # Without repeated triples the sizes add up, which spares a set of all triples for each window.
        self._repeats = len(self._by_triple) < sum(len(element.added) for element in stream)

    def of(self, inside: Sequence[Arrival]) -> tuple[int, ...]:
        """The numbers of the elements that a content has triples of, ascending."""
        numbers: set[int] = set()
        for element in inside:
            # Mostly an arrival is a whole element, and has the very tuple of its triples.
            if (whole := self._by_triples.get((element.time, id(element.triples)))) is not None:
                numbers.update(whole)
            else:  # a triple arrives alone
                numbers.update(self._by_triple.get((element.time, triple), -1) for triple in element.triples)
        return tuple(sorted(numbers - {-1}))

    def triples(self, inside: Sequence[Arrival]) -> int:
        """How many different triples a content has, those of different times apart."""
        if self._repeats:
            return len({(element.time, triple) for element in inside for triple in element.triples})
        return sum(len(element.triples) for element in inside)


def _windows(result: PlaygroundResult, label: str, side: PlaygroundEvaluation, scale: TimeScale, top: float) -> Lane:
    """A bar for each window, overlapping ones below one another."""
    every = sorted({scope[:3] for scope in _scopes(side)})
    scopes = [scope for scope in every if scale.shows(scope[1], scope[2])]
    heading = f"Windows of {label}, with their triples"
    if len(scopes) > MOST_WINDOWS:
        message = f"{counted(len(scopes), 'window')} of {label}: zoom in to see each"
        return Lane(f"windows-{label}", message, top, HEADING + 10)
    # A window may be in several reports; its bar shows the content of the last one.
    last = {
        (number, view.start, view.end): inside
        for candidate in side.candidates
        for number, (view, inside) in enumerate(zip(candidate.due.views, candidate.contents, strict=True))
    }
    rows, count = stacked([scope[1:] for scope in scopes])
    height = BAR if count <= FEW_ROWS else THIN
    several = len(side.query.windows) > 1
    borders, members = scope_borders(side.query, side.semantics), _Members(result.stream.elements)
    shapes = []
    for (number, start, end), row in zip(scopes, rows, strict=True):
        inside = last.get((number, start, end), ())
        triples = members.triples(inside)
        name = f" {number + 1}" if several else ""
        title = f"{label}: window{name} {interval(start, end, borders)} ms holds {counted(triples, 'triple')}"
        x, y = scale.x(start), top + HEADING + row * (height + 4)
        width = max(2.0, round(scale.x(end) - x, 1))
        # A number of up to four digits has room in 26 px.
        text = str(triples) if width > 26 and height == BAR else ""
        bar = Shape(f"window w{number % 4}", x, y, width, height, title, text, members=members.of(inside))
        shapes.append(replace(bar, borders=borders[0] + borders[-1], scopes=(_named(number, start, end),)))
    return Lane(f"windows-{label}", heading, top, HEADING + max(1, count) * (height + 4) + 10, tuple(shapes))


def _reports(result: PlaygroundResult, label: str, side: PlaygroundEvaluation, scale: TimeScale, top: float) -> Lane:
    """A box for each report with its number of rows, its difference above; a small ring where nothing is sent."""
    pairs = [(getattr(pair, label.lower()), pair.change) for pair in result.pairs]
    changes = {id(own): change for own, change in pairs if own is not None}
    heading = f"{counted(len(side.reports), 'report')} of {label}, with their rows"
    shown = [candidate for candidate in side.candidates if scale.shows(candidate.due.instant, candidate.due.instant)]
    name = f"reports-{label}"
    if crowded(len(shown), scale, SMALLEST + 1, REPORT_LEVELS):
        shapes = tuple(
            _report_bins([candidate for candidate in shown if candidate.rows is not None], changes, scale, top)
        )
        return Lane(name, f"{heading}: zoom in to see each", top, HEADING + TALL + 14, shapes)
    places = [scale.x(candidate.due.instant) for candidate in shown]
    sent = [x for x, candidate in zip(places, shown, strict=True) if candidate.rows is not None]
    boxes = box_rows(places, sent)
    shapes = tuple(
        _report(
            label,
            candidate,
            changes.get(id(candidate), ReportChange.SAME),
            x,
            top + boxes.top(level),
            boxes.size,
            n,
        )
        for n, (candidate, x, level) in enumerate(zip(shown, places, boxes.levels, strict=True))
    )
    return Lane(name, heading, top, boxes.height, shapes)


def _report_bins(
    reports: Sequence[Candidate], changes: dict[int, ReportChange], scale: TimeScale, top: float
) -> Iterator[Shape]:
    """Bins of reports; those with a difference stand out."""

    def words(begin: int, end: int) -> tuple[str, str]:
        count = Counter(changes.get(id(report), ReportChange.SAME) for report in reports[begin:end])
        differing = end - begin - count[ReportChange.SAME]
        return (" differing", f", {differing:,} with a difference") if differing else ("", "")

    return binned("bin reports", "report", [report.due.instant for report in reports], scale, top, words)


def _report(
    label: str, candidate: Candidate, change: ReportChange, x: float, y: float, size: float, number: int
) -> Shape:
    instant = candidate.due.instant
    scopes = tuple(_named(number, view.start, view.end) for number, view in enumerate(candidate.due.views))
    if candidate.rows is None:
        title = f"{label}: no report at {instant:,} ms: {candidate.outcome}"
        return Shape("silent", x, y + size / 2, 3, 3, title, number=number)
    rows = len(candidate.rows)
    labels = {
        ReportChange.SAME: "",
        ReportChange.APPEARS: ", which A does not have",
        ReportChange.VANISHES: ", which B does not have",
        ReportChange.CHANGES: f", other rows than {'B' if label == 'A' else 'A'} has",
    }[change]
    title = f"{label}: report at {instant:,} ms, {counted(rows, 'row')}{labels}"
    kind = f"report {change}{' empty' if not rows else ''}"
    text = str(rows) if size >= 13 and rows < 100 else ""
    sign = "" if change is ReportChange.SAME else SIGNS[change]
    return Shape(kind, x, y, size, size, title, text, sign, f"#report-{instant}", number, scopes=scopes)
