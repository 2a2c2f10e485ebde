"""A chart of answers as they come: lines over time as SVG, drawn by the server, in the colours of the page."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, floor, isfinite, log10
from typing import Final

from markupsafe import Markup, escape

from streamgauge.model.mistake import MistakeError
from streamgauge.model.phrases import counted
from streamgauge.workbench.rooms.live.rows import NumberedAnswer, columns, number
from streamgauge.workbench.terms import shown_term, shown_time

ROWS: Final = "rows"
"""The choice that counts rows, beside the names of columns (which are written ?name)."""

LINES: Final = 6
_LOOKED_AT: Final = 50
_FEW: Final = 40
"""Points of a line that are marked by circles."""


@dataclass(frozen=True, slots=True)
class LiveLine:
    """A line: its name, its points (x, y) in the order of x."""

    name: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class LiveChart:
    """The lines of a chart; x is the instant (ms) if ``timed``, else the answer's number.

    ``left_out`` is the number of lines not drawn.
    """

    shown: str
    by: str | None
    timed: bool
    lines: tuple[LiveLine, ...]
    left_out: int = 0
    threshold: float | None = None

    @property
    def beyond(self) -> list[tuple[float, float]]:
        """The points (x, y) that are at or above the threshold, in the order of x."""
        if self.threshold is None:
            return []
        points = (point for line in self.lines for point in line.points)
        return sorted(point for point in points if point[1] >= self.threshold)

    @property
    def sentence(self) -> str:
        """How many points are at or above the threshold, and when the last one was; empty without a threshold."""
        if self.threshold is None:
            return ""
        count, beyond = sum(len(line.points) for line in self.lines), self.beyond
        last = f", the last at {self.place(beyond[-1][0])}" if beyond else ""
        return f"{len(beyond):,} of {counted(count, 'value')} at or above {self.threshold:g}{last}."

    def place(self, x: float) -> str:
        """An x in words."""
        return shown_time(int(x)) if self.timed else f"answer {x:,.0f}"


SPANS: Final[Mapping[str, int]] = {"1 minute": 60_000, "10 minutes": 600_000, "1 hour": 3_600_000, "1 day": 86_400_000}
"""The time ranges that a chart can show, by their names (ms), counted back from the newest answer."""


class ChartError(MistakeError, ValueError):
    """A choice of a chart that cannot be read; the sentence says which."""


@dataclass(frozen=True, slots=True)
class ChartChoice:
    """A chart's column, the column that parts its lines, a threshold, a named time range; each may be empty."""

    shown: str = ""
    by: str = ""
    threshold: float | None = None
    span: str = ""

    @classmethod
    def of(cls, fields: Mapping[str, str]) -> "ChartChoice":
        """The choice of an address; ChartError."""
        text, span = fields.get("threshold", "").strip(), fields.get("span", "")
        try:
            threshold = float(text) if text else None
        except ValueError:
            raise ChartError(f"the threshold is {text:.40}: expected a number") from None
        if threshold is not None and not isfinite(threshold):
            raise ChartError(f"the threshold is {text:.40}: expected a finite number")
        if span and span not in SPANS:
            raise ChartError(f"the time range is {span:.40}: expected {', '.join(SPANS)}, or none for all")
        return cls(fields.get("show", ""), fields.get("by", ""), threshold, span)

    def within(self, answers: Sequence[NumberedAnswer]) -> Sequence[NumberedAnswer]:
        """The answers of the time range, back from the newest; those without an instant only where all are shown."""
        if not self.span:
            return answers
        instants = [answer.line.instant for answer in answers if answer.line.instant is not None]
        # Back from the newest answer rather than from now: streams may be of years ago.
        first = max(instants, default=0) - SPANS[self.span]
        return [answer for answer in answers if answer.line.instant is not None and answer.line.instant >= first]


def chosen_chart(answers: Sequence[NumberedAnswer], choice: ChartChoice) -> LiveChart:
    """The chart of a choice."""
    return replace(chart(choice.within(answers), choice.shown, choice.by), threshold=choice.threshold)


def numeric_columns(answers: Sequence[NumberedAnswer]) -> list[str]:
    """The numeric columns of the newest answers."""
    newest, names = answers[-_LOOKED_AT:], columns(answers)
    return [
        name for place, name in enumerate(names) if any(number(row[place]) is not None for row in _rows(newest, names))
    ]


def chart(answers: Sequence[NumberedAnswer], shown: str = "", by: str = "") -> LiveChart:
    """The chart of a column (``?name``), or of the count of rows; by default the first numeric column.

    ``by`` is the column whose values are lines of their own; without it the first column that is not a number, where it
    has at most six values. Several rows of one answer in one line count by their mean.
    """
    names, numeric = columns(answers), numeric_columns(answers)
    timed = bool(answers) and all(answer.line.instant is not None for answer in answers)
    column = shown.removeprefix("?")
    if shown == ROWS or not numeric or (shown and column not in names):
        return LiveChart(ROWS, None, timed, _counted(answers, timed))
    column = column or numeric[0]
    parting = by.removeprefix("?") if by.removeprefix("?") in names else _parting(answers, names, column, numeric)
    lines, left_out = _measured(
        answers, timed, names.index(column), None if parting is None else names.index(parting), names
    )
    return LiveChart(f"?{column}", None if parting is None else f"?{parting}", timed, lines, left_out)


def _rows(answers: Iterable[NumberedAnswer], names: Sequence[str]) -> Iterator[list[str | None]]:
    return (row for answer in answers for row in answer.line.add if len(row) == len(names))


def _parting(
    answers: Sequence[NumberedAnswer], names: Sequence[str], column: str, numeric: Sequence[str]
) -> str | None:
    """The column whose values part the lines."""
    for place, name in enumerate(names):
        if name != column and name not in numeric:
            values = {row[place] for row in _rows(answers[-_LOOKED_AT:], names)}
            if 0 < len(values) <= LINES:
                return name
    return None


def _counted(answers: Sequence[NumberedAnswer], timed: bool) -> tuple[LiveLine, ...]:
    came = tuple((_at(answer, timed), float(len(answer.line.add))) for answer in answers)
    gone = tuple((_at(answer, timed), float(len(answer.line.remove or ()))) for answer in answers)
    lines = [LiveLine("rows", came)]
    return tuple([*lines, LiveLine("rows taken back", gone)] if any(y for _, y in gone) else lines)


def _measured(
    answers: Sequence[NumberedAnswer], timed: bool, column: int, parting: int | None, names: Sequence[str]
) -> tuple[tuple[LiveLine, ...], int]:
    """The lines with most points, and how many others there are."""
    points: dict[str, list[tuple[float, float]]] = {}
    for answer in answers:
        values: dict[str, list[float]] = {}
        for row in _rows((answer,), names):
            if (value := number(row[column])) is not None:
                values.setdefault("" if parting is None else shown_term(row[parting]), []).append(value)
        for name, numbers in values.items():
            points.setdefault(name, []).append((_at(answer, timed), sum(numbers) / len(numbers)))
    # More lines cannot be told apart by colour.
    common = [name for name, _ in Counter({name: len(point) for name, point in points.items()}).most_common(LINES)]
    return tuple(LiveLine(name or names[column], tuple(points[name])) for name in sorted(common)), len(points) - len(
        common
    )


def _at(answer: NumberedAnswer, timed: bool) -> float:
    return float(answer.line.instant or 0) if timed else float(answer.number)


@dataclass(frozen=True, slots=True)
class ChartFrame:
    """The size and ranges of a drawing, in px."""

    width: int
    height: int
    x: tuple[float, float]
    y: tuple[float, float]

    LEFT = 58
    RIGHT = 12
    TOP = 10
    BOTTOM = 34

    def across(self, value: float) -> float:
        """The place of an x."""
        low, high = self.x
        return self.LEFT + (self.width - self.LEFT - self.RIGHT) * (
            # A single point is drawn in the middle.
            0.5 if high == low else (value - low) / (high - low)
        )

    def up(self, value: float) -> float:
        """The place of a y."""
        low, high = self.y
        return self.height - self.BOTTOM - (self.height - self.TOP - self.BOTTOM) * (value - low) / (high - low)


def drawing(live_chart: LiveChart, width: int, height: int, kind: str) -> Markup:
    """The chart as an SVG element of the class ``kind``; nothing without points."""
    points = [point for line in live_chart.lines for point in line.points]
    if not points:
        return Markup("")
    heights = [y for _, y in points] + ([] if live_chart.threshold is None else [live_chart.threshold])
    ticks = nice_ticks(min(0.0, *heights), max(heights))
    frame = ChartFrame(width, height, (min(x for x, _ in points), max(x for x, _ in points)), (ticks[0], ticks[-1]))
    lines = "1 line" if len(live_chart.lines) == 1 else f"{len(live_chart.lines)} lines"
    label = f"{live_chart.shown} over time: {lines}, {len(points)} points"
    inner = Markup("").join(
        (
            *_grid(frame, ticks),
            *_below(frame, live_chart),
            *(_line(frame, n, line) for n, line in enumerate(live_chart.lines)),
            _threshold(frame, live_chart),
        )
    )
    return Markup('<svg class="plot {}" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>').format(
        kind, width, height, label, inner
    )


def _threshold(frame: ChartFrame, live_chart: LiveChart) -> Markup:
    if live_chart.threshold is None:
        return Markup("")
    y = f"{frame.up(live_chart.threshold):.1f}"
    marks = Markup("").join(
        Markup('<circle cx="{}" cy="{}" r="5"/>').format(f"{frame.across(x):.1f}", f"{frame.up(value):.1f}")
        for x, value in thinned(live_chart.beyond, lambda point: int(frame.across(point[0])))
    )
    return Markup('<g class="threshold"><line x1="{}" x2="{}" y1="{}" y2="{}"/>{}</g>').format(
        frame.LEFT, frame.width - frame.RIGHT, y, y, marks
    )


def nice_ticks(low: float, high: float) -> list[float]:
    """About four round values that span a range, at least two."""
    span = (high - low) or abs(high) or 1.0
    # Example: from 0 to 10 the step begins at 1. With the factors 1 and 2 there would be 10 and 5 steps, with 5 there
    # are 2: the ticks are 0, 5 and 10.
    step = 10 ** floor(log10(span / 4))
    step *= next(factor for factor in (1, 2, 5, 10) if span / (step * factor) <= 4.5)
    first, last = floor(low / step), max(ceil(high / step), floor(low / step) + 1)
    # Rounded to 12 digits: 3 * 0.1 is 0.30000000000000004.
    return [float(f"{index * step:.12g}") for index in range(first, last + 1)]


def _grid(frame: ChartFrame, ticks: Sequence[float]) -> Iterator[Markup]:
    for value in ticks:
        y = f"{frame.up(value):.1f}"
        yield Markup('<line class="grid" x1="{}" x2="{}" y1="{}" y2="{}"/>').format(
            frame.LEFT, frame.width - frame.RIGHT, y, y
        )
        yield Markup('<text class="tick" x="{}" y="{}" text-anchor="end" dy=".32em">{}</text>').format(
            frame.LEFT - 8, y, f"{value:,.6g}"
        )


def _below(frame: ChartFrame, live_chart: LiveChart) -> Iterator[Markup]:
    low, high = frame.x
    ends = [(low, "start"), (high, "end")] if high > low else [(low, "middle")]
    for at, anchor in ends:
        yield Markup('<text class="tick" x="{}" y="{}" text-anchor="{}">{}</text>').format(
            f"{frame.across(at):.1f}", frame.height - 12, anchor, live_chart.place(at)
        )


def _line(frame: ChartFrame, place: int, line: LiveLine) -> Markup:
    shown = thinned(line.points, lambda point: int(frame.across(point[0])))
    path = "M" + "L".join(f"{frame.across(x):.1f},{frame.up(y):.1f}" for x, y in shown)
    marks = Markup("").join(
        Markup('<circle cx="{}" cy="{}" r="3"/>').format(f"{frame.across(x):.1f}", f"{frame.up(y):.1f}")
        for x, y in (shown if len(shown) <= _FEW else shown[-1:])
    )
    return Markup('<g class="series s{}"><title>{}</title><path d="{}"/>{}</g>').format(
        place, line.name, Markup(escape(path)), marks
    )


def thinned(
    points: Sequence[tuple[float, float]], column: Callable[[tuple[float, float]], int]
) -> list[tuple[float, float]]:
    """The points that can be told apart: of each column of pixels the first, the lowest, the highest and the last."""
    kept: list[tuple[float, float]] = []
    group: list[tuple[float, float]] = []
    for point in points:
        if group and column(point) != column(group[-1]):
            kept += _extremes(group)
            group = []
        group.append(point)
    return kept + _extremes(group)


def _extremes(group: list[tuple[float, float]]) -> list[tuple[float, float]]:
    if len(group) <= 4:
        return group
    # A set, since the first point may be the lowest as well; the order of time comes back by sorting.
    kept = {0, len(group) - 1, *(group.index(pick(group, key=lambda point: point[1])) for pick in (min, max))}
    return [group[place] for place in sorted(kept)]
