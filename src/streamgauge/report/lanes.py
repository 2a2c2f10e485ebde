"""The timeline of pages: lanes of elements, windows and reports as shapes with places in pixels, and their SVG.

Playground, run page and diagnosis provide the lanes' contents; ``workbench/static/timeline.js`` zooms, walks and
selects. Shapes are not written by a template, as a timeline may have a thousand. If a page's script shows the texts of
shapes, there are no ``title`` elements, which would be half of the SVG.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from typing import Final, TypeAlias

from markupsafe import Markup, escape

from streamgauge.model.phrases import counted

MARGIN: Final = 16
HEADING: Final = 22
HEAD: Final = 34.0
"""Pixels above the first lane: the grid's times."""
MINIMAP: Final = 30
BAR: Final = 13
THIN: Final = 7
"""Pixels of a window's bar in few rows and in many."""
FEW_ROWS: Final = 10
MOST_ROWS: Final = 26
MOST_WINDOWS: Final = 500
"""Maximum number of windows in a lane."""
BOX: Final = 17
SMALLEST: Final = 6.0
"""Maximum and minimum size of a report's box, pixels."""
REPORT_LEVELS: Final = 5
TALL: Final = 28
"""Pixels of the highest bin."""
STEPS: Final = (1, 2, 5)
BIN: Final = 4
"""Width of a bin (pixels), which replaces shapes that are too close together."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A shape of a lane: its ``kind`` determines its form, ``title`` describes it, ``href`` is its link.

    ``x``, ``y``, ``width`` and ``height`` in pixels; ``text`` is inside, ``sign`` above. ``number`` is that of the
    element in the stream, or of the report; ``members`` are the numbers of the elements in it. ``scopes`` are the
    windows that it is, or is about; ``span`` are the first and last time (ms) of a bin.
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
    scopes: tuple[str, ...] = ()
    span: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Lane:
    """A lane with its heading at ``top``; shapes have their own places."""

    name: str
    heading: str
    top: float
    height: float
    shapes: tuple[Shape, ...] = ()


@dataclass(frozen=True, slots=True)
class GridLine:
    """A line of the grid with its label."""

    x: float
    text: str
    anchor: str = "middle"


class TimeScale:
    """Maps times (ms) to places (pixels) in a drawing of ``width``; ``whole`` are the times of the whole run."""

    def __init__(self, first: int, last: int, width: int, whole: tuple[int, int] | None = None) -> None:
        # A single instant would have no scale: the span is a divisor.
        self.first, self.last, self.width = first, max(last, first + 1), width
        self.left, self.right = MARGIN, width - MARGIN
        self.whole = whole or (self.first, self.last)

    def x(self, time: int) -> float:
        """The place of a time, rounded to a tenth of a pixel."""
        # A window may begin long before the view: its bar is cut at the edge.
        inside = min(max(time, self.first), self.last)
        share = (inside - self.first) / (self.last - self.first)
        return round(self.left + share * (self.right - self.left), 1)

    def shows(self, first: int, last: int) -> bool:
        """Whether an interval of time is in view."""
        return first <= self.last and last >= self.first

    @property
    def zoomed(self) -> bool:
        """Whether only a part of the run is in view."""
        return (self.first, self.last) != self.whole


@dataclass(frozen=True, slots=True)
class LaneTimeline:
    """A timeline: scale, height and lanes; ``overview`` are the times (ms) marked in the minimap."""

    scale: TimeScale
    height: float
    lanes: tuple[Lane, ...] = field(default=())
    overview: tuple[int, ...] = ()

    @property
    def ticks(self) -> tuple[GridLine, ...]:
        """Lines at round times, about one per 90 pixels."""
        return tuple(_ticks(self.scale))


def _ticks(scale: TimeScale) -> Iterator[GridLine]:
    most = max(2, (scale.right - scale.left) // 90)
    # The first round step that is wide enough; 10**23 ms is longer than any time of a stream.
    step = next(
        s * 10**power for power in range(24) for s in STEPS if (scale.last - scale.first) / (s * 10**power) <= most
    )
    # The first multiple of the step in view.
    first = -(-scale.first // step) * step
    for time in range(first, scale.last + 1, step):
        x = scale.x(time)
        anchor = "start" if x < MARGIN + 20 else "end" if x > scale.right - 20 else "middle"
        yield GridLine(x, clock(time, step), anchor)


def clock(time: int, step: int = 1) -> str:
    """A time in ms, or in s if the grid's step is whole seconds."""
    return f"{time // 1000:,} s" if step >= 1000 and time % 1000 == 0 else f"{time:,} ms"


def levels(places: Sequence[float], apart: float, most: int) -> list[int]:
    """A level for each place, so that places on a level do not overlap; the last level takes the rest."""
    ends: list[float] = []
    levels_: list[int] = []
    for x in places:
        # The lowest level that is free at x. Example: places 0, 5 and 12 that take 10 each are on the levels 0, 1 and
        # 0.
        level = next((at for at, end in enumerate(ends) if end <= x), None)
        if level is None:
            level = min(len(ends), most - 1)
            if level == len(ends):
                ends.append(0.0)
        ends[level] = x + apart
        levels_.append(level)
    return levels_


@dataclass(frozen=True, slots=True)
class BoxRows:
    """The rows of a lane's boxes: their ``size`` (pixels), and the level of each box."""

    size: float
    levels: Sequence[int]

    def top(self, level: int) -> float:
        """The top of a box of a level within its lane (pixels), with space for a sign above."""
        return HEADING + 14 + level * (self.size + 14)

    @property
    def height(self) -> float:
        """The height of the lane (pixels)."""
        return self.top(max(self.levels, default=0) + 1) + 4


def box_rows(places: Sequence[float], apart: Sequence[float]) -> BoxRows:
    """Rows for boxes at ascending places, as large as the distances ``apart`` permit."""
    gap = min((b - a for a, b in pairwise(apart) if b > a), default=BOX + 2.0)
    size = min(float(BOX), max(SMALLEST, gap - 1))
    return BoxRows(size, levels(places, size + 1, REPORT_LEVELS))


def bins(times: Sequence[int], scale: TimeScale) -> list[tuple[int, int]]:
    """Places of ascending times that share a bin: the first and the one after the last of each.

    Example: at 4 pixels a bin, times at the pixels 16, 17 and 31 are in the bins (0, 2) and (2, 3).
    """
    groups = groupby(range(len(times)), key=lambda place: int(scale.x(times[place])) // BIN)
    members = [[*group] for _, group in groups]
    return [(group[0], group[-1] + 1) for group in members]


Words: TypeAlias = Callable[[int, int], tuple[str, str]]
"""(first place, place after the last) -> additions to a bin's kind and title."""


def binned(
    kind: str,
    name: str,
    times: Sequence[int],
    scale: TimeScale,
    top: float,
    words: Words = lambda _begin, _end: ("", ""),
) -> Iterator[Shape]:
    """A bar for each bin of ascending times, with the count as height."""
    groups = bins(times, scale)
    most = max((end - begin for begin, end in groups), default=1)
    for begin, end in groups:
        first, last, count = times[begin], times[end - 1], end - begin
        more, clause = words(begin, end)
        # A single element among thousands still has 4 pixels.
        height = round(4 + (TALL - 4) * count / most, 1)
        x, width = scale.x(first), max(3.0, round(scale.x(last) - scale.x(first), 1))
        span = f"from {first:,} to {last:,} ms" if last > first else f"at {first:,} ms"
        title = f"{counted(count, name)} {span}{clause}"
        yield Shape(kind + more, x - 1, top + HEADING + TALL - height, width, height, title, span=(first, last))


def stacked(spans: Sequence[tuple[int, int]]) -> tuple[list[int], int]:
    """A row for each interval (ms) so that rows have no overlaps, except the last; and the number of rows."""
    ends: list[int] = []
    rows: list[int] = []
    for start, end in spans:
        row = next((at for at, last in enumerate(ends) if last <= start), len(ends))
        if row == len(ends) and row < MOST_ROWS:
            ends.append(end)
        row = min(row, MOST_ROWS - 1)
        ends[row] = max(ends[row], end)
        rows.append(row)
    return rows, len(ends)


def crowded(count: int, scale: TimeScale, size: float, most: int) -> bool:
    """Whether ``count`` shapes of a size (pixels) do not fit on ``most`` levels."""
    return count > most * (scale.right - scale.left) / size


def ranges(members: Sequence[int]) -> str:
    """Ascending numbers as ranges: ``0-3 7``."""
    return " ".join(str(a) if a == b else f"{a}-{b}" for a, b in _runs(members))


def _runs(members: Sequence[int]) -> Iterator[tuple[int, int]]:
    start = last = None
    for member in members:
        if last is not None and member != last + 1:
            yield start or 0, last
            start = member
        start, last = member if start is None else start, member
    if last is not None:
        yield start or 0, last


def svg(picture: LaneTimeline, label: str, *, titles: bool, stretches: bool = False) -> Markup:
    """The timeline as an SVG element with ``label`` as accessible name; without ``titles`` a script shows texts.

    One that ``stretches`` is zoomed by its width alone, without a script; its lanes' names are in ``names``. A script
    moves any other, before whose lanes the names stay in their place.
    """
    scale = picture.scale
    height = picture.height + (MINIMAP if scale.zoomed else 0)
    times = {"first": scale.first, "last": scale.last, "left": scale.left, "right": scale.right}
    data = " ".join(f'data-{name}="{value}"' for name, value in times.items())
    whole = f'data-from="{scale.whole[0]}" data-to="{scale.whole[1]}"'
    size = f'width="{scale.width}" height="{height}" viewBox="0 0 {scale.width} {height}"'
    lanes = "\n".join(_lane(lane, scale.left, titles) for lane in picture.lanes)
    way = 'class="stretched" preserveAspectRatio="none" ' if stretches else ""
    head = f'<svg {way}{size} role="group" aria-label="{escape(label)}" {data} {whole}>'
    drawn = Markup(f"{head}{_grid(picture)}{lanes}{_minimap(picture) if scale.zoomed else ''}</svg>")
    return drawn if stretches else Markup(f'<div class="moved">{names(picture)}{drawn}</div>')


def names(picture: LaneTimeline) -> Markup:
    """The lanes' names as an element that stays in view while the timeline is scrolled."""
    lines = (f'<span style="top:{lane.top + 2:g}px">{escape(lane.heading)}</span>' for lane in picture.lanes)
    return Markup(f'<div class="names" aria-hidden="true">{"".join(lines)}</div>')


def _grid(picture: LaneTimeline) -> str:
    lines = "".join(
        f'<line x1="{tick.x}" x2="{tick.x}" y1="20" y2="{picture.height}"/>'
        f'<text x="{tick.x}" y="14" text-anchor="{tick.anchor}">{tick.text}</text>'
        for tick in picture.ticks
    )
    return f'<g class="grid" aria-hidden="true">{lines}</g>'


def _lane(lane: Lane, left: int, titles: bool) -> str:
    heading = f'<text class="heading" x="{left}" y="{lane.top + 14}">{escape(lane.heading)}</text>'
    return f'<g class="lane {lane.name}">{heading}\n{marks(lane, titles=titles)}</g>'


def _minimap(picture: LaneTimeline) -> str:
    """All times in a strip below the lanes, with the part in view."""
    scale, top = picture.scale, picture.height + 6
    all_of_it = TimeScale(*scale.whole, scale.width)
    places = sorted({round(all_of_it.x(time)) for time in picture.overview})
    strokes = "".join(f"M{x} {top + 4}v12" for x in places)
    left, right = all_of_it.x(scale.first), all_of_it.x(scale.last)
    return (
        f'<g class="minimap" aria-hidden="true"><rect class="whole" x="{scale.left}" y="{top}" '
        f'width="{scale.right - scale.left}" height="20"/><path d="{strokes}"/>'
        f'<rect class="view" x="{left}" y="{top}" width="{max(3.0, round(right - left, 1))}" height="20"/></g>'
    )


def marks(lane: Lane, *, titles: bool) -> Markup:
    """The shapes of a lane; the first can be reached by the tab key."""
    return Markup("\n".join(_mark(shape, 0 if at == 0 else -1, titles) for at, shape in enumerate(lane.shapes)))


def _mark(shape: Shape, tab: int, titles: bool) -> str:
    words = escape(shape.title)
    # One stop of the tab key per lane; the arrow keys go to the others.
    message = f'tabindex="{tab}" aria-label="{words}"'
    title = f"<title>{words}</title>" if titles else ""
    if shape.kind in ("element", "late", "silent"):
        number = f' data-number="{shape.number}"' if shape.kind != "silent" else ""
        place = f'cx="{shape.x}" cy="{shape.y}" r="{shape.height}"'
        return f'<circle class="{shape.kind}" {place} role="img" {message}{number}>{title}</circle>'
    if shape.span is not None:
        place = f'x="{shape.x}" y="{shape.y}" width="{shape.width}" height="{shape.height}"'
        ends = f'data-first="{shape.span[0]}" data-last="{shape.span[1]}"'
        return f'<rect class="{shape.kind}" {place} role="img" {message} {ends}>{title}</rect>'
    scopes = f' data-scopes="{escape(" ".join(shape.scopes))}"' if shape.scopes else ""
    if shape.kind.startswith("window"):
        members = f'data-members="{ranges(shape.members)}"{scopes}'
        return f'<g class="{shape.kind}" role="img" {message} {members}>{title}{_window(shape)}</g>'
    inner = f"{scopes}>{title}{_report(shape)}"
    if not shape.href:
        return f'<g class="{shape.kind}" role="img" {message}{inner}</g>'
    return f'<a class="{shape.kind}" href="{escape(shape.href)}" {message}{inner}</a>'


def _window(shape: Shape) -> str:
    x, y, width, height = shape.x, shape.y, shape.width, shape.height
    left, right = round(x + 4, 1), round(x + width - 4, 1)
    begin = f"h-4v{height}h4" if shape.borders[0] == "[" else f"q-6 {height / 2} 0 {height}"
    end = f"h4v{height}h-4" if shape.borders[1] == "]" else f"q6 {height / 2} 0 {height}"
    text = f'<text x="{round(x + width / 2, 1)}" y="{y + height - 2.5}">{escape(shape.text)}</text>'
    return (
        f'<rect x="{x}" y="{y}" width="{width}" height="{height}"/>'
        f'<path d="M{left} {y}{begin}"/><path d="M{right} {y}{end}"/>{text if shape.text else ""}'
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
"""The outline of a report by its difference."""
