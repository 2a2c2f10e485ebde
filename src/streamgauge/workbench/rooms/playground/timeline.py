"""The timeline as shapes with places in pixels: lanes of elements, windows and reports; a template writes the SVG."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from streamgauge.model.phrases import counted
from streamgauge.model.terms import Triple
from streamgauge.report.numbers import scope_borders
from streamgauge.workbench.rooms.playground.comparison import SIGNS, ReportChange, interval
from streamgauge.workbench.rooms.playground.evaluation import Candidate, PlaygroundEvaluation
from streamgauge.workbench.rooms.playground.result import PlaygroundResult

MARGIN: Final = 16
HEADING: Final = 22
DOT: Final = 5
MOST_LEVELS: Final = 7
MOST_ROWS: Final = 26
BAR: Final = 13
BOX: Final = 17


@dataclass(frozen=True, slots=True)
class Shape:
    """A shape of a lane: its ``kind`` says how it is drawn, ``title`` what it is in words, ``href`` where it leads.

    ``x``, ``y``, ``width`` and ``height`` in pixels; ``text`` is written in it, ``sign`` above it. ``number`` is the
    element's number in the stream, or that of the report; ``members`` are the numbers of the elements that are in it.
    """

    kind: str
    x: float
    y: float
    width: float
    height: float
    title: str
    text: str = ""
    sign: str = ""
    href: str = ""
    number: int = -1
    members: tuple[int, ...] = ()
    borders: str = "[)"


@dataclass(frozen=True, slots=True)
class Lane:
    """A lane with its heading: ``top`` is the heading's place, shapes have places of their own."""

    name: str
    heading: str
    top: float
    height: float
    shapes: tuple[Shape, ...] = ()


@dataclass(frozen=True, slots=True)
class GridLine:
    """A line of the grid with its time in words."""

    x: float
    text: str
    anchor: str = "middle"


@dataclass(frozen=True, slots=True)
class ReportTimeline:
    """The timeline: ``first`` and ``last`` (ms) stand at ``left`` and ``right`` (pixels)."""

    width: int
    height: float
    first: int
    last: int
    left: int
    right: int
    ticks: tuple[GridLine, ...]
    lanes: tuple[Lane, ...] = field(default=())


class _Scale:
    """Times (ms) as places (pixels)."""

    def __init__(self, first: int, last: int, width: int) -> None:
        self.first, self.last = first, max(last, first + 1)
        self.left, self.right = MARGIN, width - MARGIN

    def x(self, time: int) -> float:
        """The place of a time, rounded to a tenth."""
        inside = min(max(time, self.first), self.last)
        share = (inside - self.first) / (self.last - self.first)
        return round(self.left + share * (self.right - self.left), 1)


def timeline(found: PlaygroundResult) -> ReportTimeline:
    """The timeline of a result as wide as its state says."""
    sides = [("A", found.a)] + ([("B", found.b)] if found.b is not None else [])
    scale = _Scale(*_span(found, [side for _, side in sides if side is not None]), found.state.width)
    lanes: list[Lane] = []
    top = 34.0
    top = _add(lanes, _elements(found, scale, top), top)
    shown = None
    for label, side in sides:
        if side is None:
            continue
        now = _scopes(side)
        if now != shown:
            top = _add(lanes, _windows(found, label, side, scale, top), top)
        shown = now if shown is None else shown
        top = _add(lanes, _reports(found, label, side, scale, top), top)
    ticks = tuple(_ticks(scale))
    return ReportTimeline(found.state.width, top, scale.first, scale.last, scale.left, scale.right, ticks, tuple(lanes))


def _add(lanes: list[Lane], lane: Lane, top: float) -> float:
    lanes.append(lane)
    return top + lane.height


def _span(found: PlaygroundResult, sides: Sequence[PlaygroundEvaluation]) -> tuple[int, int]:
    """The first and the last time (ms) of anything that is drawn."""
    times = [element.time for element in found.stream.elements]
    starts = [view.start for side in sides for each in side.candidates for view in each.due.views]
    first = min([*times, *starts, *(side.t0 for side in sides if side.t0 <= found.horizon)], default=0)
    return first, max([*times, found.horizon], default=1)


_STEPS: Final = (1, 2, 5)


def _ticks(scale: _Scale) -> Iterable[GridLine]:
    """Lines at round times, about one for each 90 pixels."""
    most = max(2, (scale.right - scale.left) // 90)
    step = next(
        s * 10**power for power in range(24) for s in _STEPS if (scale.last - scale.first) / (s * 10**power) <= most
    )
    first = -(-scale.first // step) * step
    for time in range(first, scale.last + 1, step):
        x = scale.x(time)
        anchor = "start" if x < MARGIN + 20 else "end" if x > scale.right - 20 else "middle"
        yield GridLine(x, clock(time, step), anchor)


def clock(time: int, step: int = 1) -> str:
    """A time in ms, in s where the grid's step is whole seconds."""
    return f"{time // 1000:,} s" if step >= 1000 and time % 1000 == 0 else f"{time:,} ms"


def _levels(places: Sequence[float], apart: float, most: int) -> list[int]:
    """A level for each place, so that places of one level are apart; the last level takes what has no room."""
    ends: list[float] = []
    found: list[int] = []
    for x in places:
        level = next((at for at, end in enumerate(ends) if end <= x), None)
        if level is None:
            level = min(len(ends), most - 1)
            if level == len(ends):
                ends.append(0.0)
        ends[level] = x + apart
        found.append(level)
    return found


def _elements(found: PlaygroundResult, scale: _Scale, top: float) -> Lane:
    """A dot for each element, those of one time above one another."""
    stream = sorted(found.stream.elements, key=lambda each: (each.time, each.sequence))
    levels = _levels([scale.x(each.time) for each in stream], 2 * DOT + 1, MOST_LEVELS)
    late = set(found.a.late if found.a else ())
    base = top + HEADING + DOT
    shapes = []
    for each, level in zip(stream, levels, strict=True):
        said = " ".join(" ".join(map(found.names.shown, triple)) + "." for triple in each.added[:4])
        more = f" and {len(each.added) - 4:,} more triples" if len(each.added) > 4 else ""
        kind = "late" if each.sequence in late else "element"
        title = f"{'late element' if kind == 'late' else 'element'} at {each.time:,} ms: {said}{more}"
        y = base + level * (2 * DOT + 2)
        shapes.append(Shape(kind, scale.x(each.time), y, DOT, DOT, title, number=each.sequence))
    heading = f"Stream: {counted(len(stream), 'element')}"
    height = HEADING + (max(levels, default=0) + 1) * (2 * DOT + 2) + 10
    return Lane("elements", heading, top, height, tuple(shapes))


def _scopes(side: PlaygroundEvaluation) -> tuple[tuple[int, int, int, int, int], ...]:
    """The windows that an evaluation looks at, each once."""
    seen = dict.fromkeys(
        (number, view.start, view.end, view.first, view.last)
        for each in side.candidates
        for number, view in enumerate(each.due.views)
        if view.end > view.start or view.last >= view.first
    )
    return tuple(seen)


def _held(side: PlaygroundEvaluation) -> dict[tuple[int, int, int], set[tuple[int, Triple]]]:
    """The times and triples that each window held when it was looked at last."""
    last = {
        (number, view.start, view.end): inside
        for each in side.candidates
        for number, (view, inside) in enumerate(zip(each.due.views, each.contents, strict=True))
    }
    return {scope: {(a.time, t) for a in inside for t in a.triples} for scope, inside in last.items()}


def _windows(found: PlaygroundResult, label: str, side: PlaygroundEvaluation, scale: _Scale, top: float) -> Lane:
    """A bar for each window, overlapping ones below one another."""
    held = _held(side)
    scopes = sorted({scope[:3] for scope in _scopes(side)}, key=lambda each: (each[0], each[1], each[2]))
    numbers = {(each.time, triple): each.sequence for each in found.stream.elements for triple in each.added}
    ends: list[int] = []
    rows: list[int] = []
    for _, start, end in scopes:
        row = next((at for at, last in enumerate(ends) if last <= start), len(ends))
        if row == len(ends) and row < MOST_ROWS:
            ends.append(end)
        row = min(row, MOST_ROWS - 1)
        ends[row] = max(ends[row], end)
        rows.append(row)
    height = BAR if len(ends) <= 10 else 7
    several = len(side.query.windows) > 1
    scope = scope_borders(side.query, side.semantics)
    shapes = []
    for (number, start, end), row in zip(scopes, rows, strict=True):
        inside = held.get((number, start, end), set())
        members = tuple(sorted({numbers[each] for each in inside if each in numbers}))
        said = interval(start, end, scope)
        name = f" {number + 1}" if several else ""
        title = f"{label}: window{name} {said} ms holds {counted(len(inside), 'triple')}"
        x, y = scale.x(start), top + HEADING + row * (height + 4)
        width = max(2.0, round(scale.x(end) - x, 1))
        text = str(len(inside)) if width > 26 and height == BAR else ""
        borders = scope[0] + scope[-1]
        shapes.append(
            Shape(f"window w{number % 4}", x, y, width, height, title, text, members=members, borders=borders)
        )
    heading = f"Windows of {label}, with their triples"
    return Lane(f"windows-{label}", heading, top, HEADING + max(1, len(ends)) * (height + 4) + 10, tuple(shapes))


def _reports(found: PlaygroundResult, label: str, side: PlaygroundEvaluation, scale: _Scale, top: float) -> Lane:
    """A box for each report with its number of rows, its difference above; a small ring where nothing is sent."""
    changes = {id(getattr(pair, label.lower())): pair.change for pair in found.pairs if getattr(pair, label.lower())}
    places = [scale.x(each.due.instant) for each in side.candidates]
    sent = [x for x, each in zip(places, side.candidates, strict=True) if each.rows is not None]
    gap = min((b - a for a, b in pairwise(sent) if b > a), default=BOX + 2.0)
    size = min(float(BOX), max(6.0, gap - 1))
    levels = _levels(places, size + 1, 5)
    shapes = [
        _report(
            label, each, changes.get(id(each), ReportChange.SAME), x, top + HEADING + 14 + level * (size + 14), size, n
        )
        for n, (each, x, level) in enumerate(zip(side.candidates, places, levels, strict=True))
    ]
    reports = counted(len(sent), "report")
    heading = f"{reports} of {label}, with their rows"
    height = HEADING + 14 + (max(levels, default=0) + 1) * (size + 14) + 4
    return Lane(f"reports-{label}", heading, top, height, tuple(shapes))


def _report(label: str, each: Candidate, change: ReportChange, x: float, y: float, size: float, number: int) -> Shape:
    instant = each.due.instant
    if each.rows is None:
        title = f"{label}: no report at {instant:,} ms: {each.outcome}"
        return Shape("silent", x, y + size / 2, 3, 3, title, number=number)
    rows = len(each.rows)
    said = {
        ReportChange.SAME: "",
        ReportChange.APPEARS: ", which A does not have",
        ReportChange.VANISHES: ", which B does not have",
        ReportChange.CHANGES: f", other rows than {'B' if label == 'A' else 'A'} has",
    }[change]
    title = f"{label}: report at {instant:,} ms, {counted(rows, 'row')}{said}"
    kind = f"report {change}{' empty' if not rows else ''}"
    text = str(rows) if size >= 13 and rows < 100 else ""
    sign = "" if change is ReportChange.SAME else SIGNS[change]
    return Shape(kind, x, y, size, size, title, text, sign, f"#report-{instant}", number)
