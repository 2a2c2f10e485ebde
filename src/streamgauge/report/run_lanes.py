"""The windows and reports of judged runs as lanes of a timeline, for the report, run pages and comparisons."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from streamgauge.model.phrases import counted
from streamgauge.model.run import RunHeader
from streamgauge.model.verdict import Verdict, WindowVerdict
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
    stacked,
)
from streamgauge.report.numbers import interval, scope_borders
from streamgauge.report.series import rows_of, state, unit_of

SIGNS: Final = {"wrong": "✗", "missed": "?", "surplus": "+", "late": "◷"}
WIDTHS: Final = (280, 8_000)
"""Minimum and maximum width of a drawing, pixels."""
WIDTH: Final = 1_350


@dataclass(frozen=True, slots=True)
class DrawnRun:
    """A judged run in a timeline: its ``label`` (empty if it is the only one), header and verdict.

    ``address`` is the link of a report, empty for none; ``purpose`` says in its tooltip what the link shows.
    """

    label: str
    header: RunHeader
    verdict: Verdict
    address: Callable[[WindowVerdict], str]
    purpose: str = ""


@dataclass(frozen=True, slots=True)
class TimelineView:
    """The section of a timeline that a page shows: ``times`` (ms), ``None`` for all, and ``width`` (pixels)."""

    times: tuple[int, int] | None = None
    width: int = WIDTH

    @classmethod
    def of(cls, view: str, width: str) -> "TimelineView":
        """Read ``FIRST,LAST`` and a width from an address; invalid values are ignored."""
        first, _, last = view.partition(",")
        times = (int(first), int(last)) if _whole(first) and _whole(last) and int(first) < int(last) else None
        low, high = WIDTHS
        return cls(times, min(max(int(width), low), high) if _whole(width) else WIDTH)


EVERYTHING: Final = TimelineView()


def _whole(text: str) -> bool:
    digits = text.removeprefix("-")
    # So many digits are beyond all times of streams, and few enough for ``int`` to read quickly.
    return digits.isascii() and digits.isdigit() and len(digits) < 16


LABEL: Final = "Windows and reports over time"
"""The accessible name of the timeline."""


def run_timeline(runs: Sequence[DrawnRun], view: TimelineView) -> LaneTimeline | None:
    """The timeline of judged runs; ``None`` if no report has an instant."""
    times = [at for run in runs for window in run.verdict.windows for at in _times(window)]
    if not times:
        return None
    whole = min(times), max(max(times), min(times) + 1)
    first, last = view.times or whole
    scale = TimeScale(first, last, view.width, whole)
    lanes: list[Lane] = []
    top = HEAD
    for run in runs:
        for make in (_windows, _reports):
            lanes.append(make(run, scale, top))
            top += lanes[-1].height
    return LaneTimeline(scale, top, tuple(lanes), tuple(times))


def _times(window: WindowVerdict) -> Iterator[int]:
    return (at for at in (window.start, window.end, window.instant) if at is not None)


def _named(window: WindowVerdict) -> tuple[str, ...]:
    return () if window.start is None else (f"0:{window.start}:{window.end}",)


def _words(run: DrawnRun, window: WindowVerdict) -> str:
    borders = scope_borders(run.header.query, run.header.semantics)
    name = f"{run.label}: " if run.label else ""
    scope = "" if window.start is None else f" {interval(window.start, window.end, borders)}"
    return f"{name}{unit_of(run.header.semantics)} {window.index:,}{scope}, {state(window)}: {rows_of(window)}"


def _windows(run: DrawnRun, scale: TimeScale, top: float) -> Lane:
    """A bar per window with the colour of its state."""
    of = f" of {run.label}" if run.label else ""
    timed = [window for window in run.verdict.windows if window.start is not None and window.end is not None]
    shown = [window for window in timed if scale.shows(window.start or 0, window.end or 0)]
    # More bars than pixels would only colour the lane, and slow the browser.
    if len(shown) > MOST_WINDOWS:
        return Lane("windows", f"{counted(len(shown), 'window')}{of}: zoom in to see each", top, HEADING + 10)
    shown.sort(key=lambda window: (window.start or 0, window.end or 0))
    rows, count = stacked([(window.start or 0, window.end or 0) for window in shown])
    height = BAR if count <= FEW_ROWS else THIN
    borders = scope_borders(run.header.query, run.header.semantics)
    bars = [
        Shape(
            f"window {state(window)}", scale.x(window.start or 0), top + HEADING + row * (height + 4),
            max(2.0, round(scale.x(window.end or 0) - scale.x(window.start or 0), 1)), height, _words(run, window),
            borders=borders[0] + borders[-1], scopes=_named(window),
        )
        for window, row in zip(shown, rows, strict=True)
    ]  # fmt: skip
    return Lane("windows", f"Windows{of}", top, HEADING + max(1, count) * (height + 4) + 10, tuple(bars))


def _reports(run: DrawnRun, scale: TimeScale, top: float) -> Lane:
    """A box per report with the number of received rows; one that is not right is a link."""
    of = f" of {run.label}" if run.label else ""
    timed = [window for window in run.verdict.windows if window.instant is not None]
    shown = sorted(
        (window for window in timed if scale.shows(*[window.instant or 0] * 2)), key=lambda window: window.instant or 0
    )
    heading = f"{counted(len(run.verdict.windows), 'report')}{of}, with rows received"
    if crowded(len(shown), scale, SMALLEST + 1, REPORT_LEVELS):

        def words(begin: int, end: int) -> tuple[str, str]:
            wrong = sum(state(window) not in ("right", "late") for window in shown[begin:end])
            return (" differing", f", {wrong:,} not right") if wrong else ("", "")

        bars = tuple(binned("bin reports", "report", [window.instant or 0 for window in shown], scale, top, words))
        return Lane("reports", f"{heading}: zoom in to see each", top, HEADING + TALL + 14, bars)
    places = [scale.x(window.instant or 0) for window in shown]
    boxes = box_rows(places, places)
    shapes = tuple(
        _report(run, window, x, top + boxes.top(level), boxes.size)
        for window, x, level in zip(shown, places, boxes.levels, strict=True)
    )
    return Lane("reports", heading, top, boxes.height, shapes)


def _report(run: DrawnRun, window: WindowVerdict, x: float, y: float, size: float) -> Shape:
    word = state(window)
    text = str(window.actual) if size >= 13 and window.actual < 100 else ""
    wrong, href = word in ("wrong", "missed", "surplus"), run.address(window)
    title = _words(run, window) + (run.purpose if wrong and href else "")
    return Shape(f"report {word}", x, y, size, size, title, text, SIGNS.get(word, ""), href, scopes=_named(window))
