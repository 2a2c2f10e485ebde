"""Plots of window borders: as bars over stream time, and the expected ones against those that fit best."""

from collections.abc import Iterator, Sequence

from streamgauge.model.phrases import counted
from streamgauge.model.verdict import WindowVerdict
from streamgauge.report import charts
from streamgauge.report.cards import shifted
from streamgauge.report.charts import ChartDrawing, ChartSize
from streamgauge.report.numbers import interval, percent
from streamgauge.report.plots import FULL, PHONE, RIGHT, STREAM_TIME, Figure, Plot, figure
from streamgauge.report.series import Series, state, tooltip

STRIP, LANES, ROWS = 40, 16, 24


def border_strips(drawing: ChartDrawing, series: Sequence[Series]) -> Iterator[Figure]:
    """Window borders as bars, one strip per series."""
    for one in series:
        _, verdict = one.runs[0]
        placed = [window for window in verdict.windows if window.start is not None and window.end is not None]
        if placed:
            yield _strip(drawing, one, placed)


def _strip(drawing: ChartDrawing, one: Series, placed: list[WindowVerdict]) -> Figure:
    odd = next((place for place, window in enumerate(placed) if state(window) != "right"), 0)
    begin = max(0, min(odd - 5, len(placed) - STRIP))
    shown = placed[begin : begin + STRIP]
    if max(bar.lane for bar in _bars(one, shown)) >= LANES:
        shown = shown[:LANES]
    text = f"Window borders: {one.label}"
    note = "✓ right, ✗ wrong rows, ? missed, + surplus."
    if len(shown) < len(placed):
        which = "around the first that is not right, else the first ones"
        note += f" {len(shown)} of {counted(len(placed), one.unit)}: {which}."

    def chart(size: ChartSize) -> charts.Spec:
        bars = _bars(one, shown if size.width > 600 else shown[:16])
        height = 16 * (1 + max(bar.lane for bar in bars))
        return charts.borders(bars, STREAM_TIME, size._replace(height=height))

    return figure(drawing, text, chart, note=note, sizes=(FULL, PHONE))


def _bars(one: Series, windows: Sequence[WindowVerdict]) -> list[charts.Bar]:
    """Bars in as few lanes as keep them apart."""
    ends: list[int] = []
    bars = []
    for window in windows:
        start, end = window.start or 0, window.end or 0
        lane = next((lane for lane, last in enumerate(ends) if last <= start), len(ends))
        ends[lane : lane + 1] = [max(end, start + 1)]
        bars.append(charts.Bar(start / 1000, end / 1000, lane, state(window), tooltip(one, one.runs[0], window)))
    return bars


def reconstructed(drawing: ChartDrawing, series: Sequence[Series]) -> Iterator[Figure]:
    """Expected borders against those that fit best, for the first graciously judged run of each series."""
    for one in series:
        for _, verdict in one.runs:
            placed = [window for window in verdict.windows if window.start is not None and window.end is not None]
            if any(window.borders is not None for window in placed):
                yield _against(drawing, one, placed)
                break


def _against(drawing: ChartDrawing, one: Series, placed: list[WindowVerdict]) -> Figure:
    odd = next((place for place, window in enumerate(placed) if shifted(window)), 0)
    begin = max(0, min(odd - 2, len(placed) - ROWS))
    shown = placed[begin : begin + ROWS]
    moved = [window for window in placed if shifted(window)]
    text = f"Borders that fit best: {one.label}"
    note = (
        f"Outline: expected borders; filled: those under which the answer fits best (✓ exactly, ✗ not, ? missed). "
        f"{len(moved):,} of {counted(len(placed), one.unit)} moved{_directions(moved)}."
    )
    if len(shown) < len(placed):
        note += f" {len(shown)} are drawn, from around the first that moved."

    def chart(size: ChartSize) -> charts.Spec:
        bars = [_fit(one, window) for window in (shown if size.width > 600 else shown[:12])]
        return charts.reconstructed(bars, STREAM_TIME, size._replace(height=18 * len(bars)))

    return figure(drawing, text, chart, note=note, sizes=(FULL, PHONE))


def _directions(moved: Sequence[WindowVerdict]) -> str:
    """The directions in which starts and ends moved, in words."""
    ways = []
    for name, place in (("start", 0), ("end", 1)):
        shifts = [_shift(window, place) for window in moved]
        left, right = sum(shift < 0 for shift in shifts), sum(shift > 0 for shift in shifts)
        ways += [f"{name} left in {left:,}"] * bool(left) + [f"{name} right in {right:,}"] * bool(right)
    return f": {', '.join(ways)}" if ways else ""


def _shift(window: WindowVerdict, place: int) -> int:
    found, stated = window.borders or (0, 0), (window.start or 0, window.end or 0)
    return found[place] - stated[place]


def _fit(one: Series, window: WindowVerdict) -> charts.FittedBorders:
    start, end = window.start or 0, window.end or 0
    borders = one.header.semantics.borders
    where = interval(start, end, borders)
    if window.borders is None or window.fitted is None:
        tip = f"{one.label}, {one.unit} {window.index:,} {where}, {state(window)}"
        return charts.FittedBorders(start / 1000, end / 1000, None, None, "missed", tip)
    precision, recall = window.fitted
    tip = (
        f"{one.label}, {one.unit} {window.index:,}: expected {where}, fits best {interval(*window.borders, borders)} "
        f"with precision {percent(precision)}, recall {percent(recall)}"
    )
    word = "right" if window.fitted == (1.0, 1.0) else "wrong"
    found = tuple(border / 1000 for border in window.borders)
    return charts.FittedBorders(start / 1000, end / 1000, found[0], found[1], word, tip)


PLOTS = (Plot(RIGHT, 50, border_strips), Plot(RIGHT, 60, reconstructed))
