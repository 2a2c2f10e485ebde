"""The windows and reports of judged runs as lanes of a timeline, for the page of a run and for two runs compared."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final
from urllib.parse import urlencode

from markupsafe import Markup

from streamgauge.model.phrases import counted
from streamgauge.model.run import RunHeader
from streamgauge.model.verdict import Verdict, WindowVerdict
from streamgauge.report.lanes import (
    BAR,
    BOX,
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
    crowded,
    levels,
    stacked,
    svg,
)
from streamgauge.report.numbers import interval, scope_borders
from streamgauge.report.series import rows_of, state, unit_of

SIGNS: Final = {"wrong": "✗", "missed": "?", "surplus": "+", "late": "◷"}
WIDTHS: Final = (280, 8_000)
"""Pixels of a drawing, at least and at most."""
WIDTH: Final = 1_350


@dataclass(frozen=True, slots=True)
class DrawnRun:
    """A judged run to be drawn: its ``label`` (empty for one alone), its place in the folder, header and verdict."""

    label: str
    place: str
    header: RunHeader
    verdict: Verdict

    def see_why(self, window: WindowVerdict) -> str:
        """The address at which the playground opens a report; none for one without an instant."""
        if window.instant is None:
            return ""
        return f"/playground/?{urlencode({'run': self.place, 'window': window.index})}"


@dataclass(frozen=True, slots=True)
class WantedView:
    """The times (ms) that a page shows of its timeline, all for ``None``, and how wide it is (pixels)."""

    times: tuple[int, int] | None = None
    width: int = WIDTH

    @classmethod
    def of(cls, view: str, width: str) -> "WantedView":
        """Read ``FIRST,LAST`` and a width from an address; what is none of them is left out."""
        first, _, last = view.partition(",")
        times = (int(first), int(last)) if _whole(first) and _whole(last) and int(first) < int(last) else None
        low, high = WIDTHS
        return cls(times, min(max(int(width), low), high) if _whole(width) else WIDTH)


EVERYTHING: Final = WantedView()


def _whole(text: str) -> bool:
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdigit() and len(digits) < 16


def drawn(runs: Sequence[DrawnRun], wanted: WantedView) -> Markup:
    """The timeline of judged runs as SVG; nothing where no report has an instant."""
    times = [at for run in runs for window in run.verdict.windows for at in _times(window)]
    if not times:
        return Markup("")
    whole = min(times), max(max(times), min(times) + 1)
    first, last = wanted.times or whole
    scale = TimeScale(first, last, wanted.width, whole)
    lanes: list[Lane] = []
    top = HEAD
    for run in runs:
        for make in (_windows, _reports):
            lanes.append(make(run, scale, top))
            top += lanes[-1].height
    return svg(LaneTimeline(scale, top, tuple(lanes), tuple(times)), "Windows and reports over time", titles=False)


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
    """A bar for each window in the colour of its state."""
    of = f" of {run.label}" if run.label else ""
    timed = [window for window in run.verdict.windows if window.start is not None and window.end is not None]
    shown = [window for window in timed if scale.shows(window.start or 0, window.end or 0)]
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
    """A box for each report with how many rows came; one that is not right leads to the playground."""
    of = f" of {run.label}" if run.label else ""
    timed = [window for window in run.verdict.windows if window.instant is not None]
    shown = sorted(
        (window for window in timed if scale.shows(*[window.instant or 0] * 2)), key=lambda window: window.instant or 0
    )
    heading = f"{counted(len(run.verdict.windows), 'report')}{of}, with the rows that came"
    if crowded(len(shown), scale, SMALLEST + 1, REPORT_LEVELS):

        def words(begin: int, end: int) -> tuple[str, str]:
            wrong = sum(state(window) not in ("right", "late") for window in shown[begin:end])
            return (" differing", f", {wrong:,} not right") if wrong else ("", "")

        shapes = binned("bin reports", "report", [window.instant or 0 for window in shown], scale, top, words)
        return Lane("reports", f"{heading}: zoom in to see each", top, HEADING + TALL + 14, tuple(shapes))
    places = [scale.x(window.instant or 0) for window in shown]
    gap = min((b - a for a, b in pairwise(places) if b > a), default=BOX + 2.0)
    size = min(float(BOX), max(SMALLEST, gap - 1))
    at = levels(places, size + 1, REPORT_LEVELS)
    boxes = [
        _report(run, window, x, top + HEADING + 14 + level * (size + 14), size)
        for window, x, level in zip(shown, places, at, strict=True)
    ]
    height = HEADING + 14 + (max(at, default=0) + 1) * (size + 14) + 4
    return Lane("reports", heading, top, height, tuple(boxes))


def _report(run: DrawnRun, window: WindowVerdict, x: float, y: float, size: float) -> Shape:
    word = state(window)
    text = str(window.actual) if size >= 13 and window.actual < 100 else ""
    wrong = word in ("wrong", "missed", "surplus")
    href = run.see_why(window) if wrong else "#windows-h"
    title = _words(run, window) + (": see why" if wrong else "")
    return Shape(f"report {word}", x, y, size, size, title, text, SIGNS.get(word, ""), href, scopes=_named(window))
