"""Plots of window borders: bars over stream time, and expected borders compared with the best ones."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeAlias

from streamgauge.model.phrases import counted
from streamgauge.model.verdict import WindowVerdict
from streamgauge.report import charts
from streamgauge.report.cards import shifted
from streamgauge.report.charts import ChartDrawing, ChartSize
from streamgauge.report.figures import SHOWN, Cell, FigureNumbers, named
from streamgauge.report.numbers import NOTHING, interval, percent, scope_borders
from streamgauge.report.plots import FULL, PHONE, RIGHT, STREAM_TIME, Figure, Plot, figure
from streamgauge.report.series import Series, state, tooltip
from streamgauge.report.windows import anchors

STRIP, LANES, ROWS = 40, 16, 24


@dataclass(frozen=True)
class PlacedWindow:
    """A window over all repetitions: its worst report with run and place, and the number of wrong ones."""

    run: int
    place: int
    worst: WindowVerdict
    wrong: int

    @property
    def right(self) -> bool:
        """Whether it is right in every repetition."""
        return not self.wrong


_SEVERITY: Final = ("right", "late", "surplus", "missed", "wrong")


def border_strips(drawing: ChartDrawing, series: Sequence[Series]) -> Iterator[Figure]:
    """Window borders as bars, a strip per series; a window has the state of its worst repetition."""
    for one in series:
        if placed := _over_repetitions(one):
            yield _strip(drawing, one, placed, [anchors(series, one, number) for number in range(len(one.runs))])


def _over_repetitions(one: Series) -> list[PlacedWindow]:
    """The windows of all repetitions, in order of their borders."""
    by_window: dict[tuple[int, int, int], list[tuple[int, int, WindowVerdict]]] = {}
    for number, (_, verdict) in enumerate(one.runs):
        for place, window in enumerate(verdict.windows):
            if window.start is not None and window.end is not None:
                key = (window.end if window.instant is None else window.instant, window.start, window.end)
                by_window.setdefault(key, []).append((number, place, window))
    return [_worst(by_window[key]) for key in sorted(by_window)]


def _worst(windows: Sequence[tuple[int, int, WindowVerdict]]) -> PlacedWindow:
    number, place, worst = max(windows, key=lambda repetition: _SEVERITY.index(state(repetition[2])))
    return PlacedWindow(number, place, worst, len({at for at, _, window in windows if state(window) != "right"}))


Links: TypeAlias = Sequence[Mapping[int, str]]
"""For each repetition, the place of a listed report -> its anchor."""


def _strip(drawing: ChartDrawing, one: Series, placed: list[PlacedWindow], links: Links) -> Figure:
    # The strip shows the first window that is not right, with some before it for comparison.
    odd = next((place for place, bar in enumerate(placed) if not bar.right), 0)
    begin = max(0, min(odd - 5, len(placed) - STRIP))
    shown = placed[begin : begin + STRIP]
    if max(bar.lane for bar in _bars(one, shown, links)) >= LANES:
        shown = shown[:LANES]
    borders = scope_borders(one.header.query, one.header.semantics)
    several = f", the worst of {len(one.runs)} repetitions" if len(one.runs) > 1 else ""
    text = f"Window borders: {one.label}{several}"
    note = "✓ right, ◷ late, ✗ wrong rows, ? missed, + surplus. A bar that is not right leads to its rows."
    if len(shown) < len(placed):
        which = "the first ones" if placed[odd].right else "from around the first that is not right"
        note += f" {len(shown)} of {counted(len(placed), one.unit)} are drawn, {which}."

    def chart(size: ChartSize) -> charts.Spec:
        bars = _bars(one, shown if size.width > 600 else shown[:16], links)
        height = 16 * (1 + max(bar.lane for bar in bars))
        return charts.borders(bars, STREAM_TIME, size._replace(height=height))

    lines = tuple(
        (f"{one.unit} {bar.worst.index:,}", interval(bar.worst.start, bar.worst.end, borders), state(bar.worst))
        for bar in shown[:SHOWN]
    )
    remark = "" if len(lines) == len(placed) else f"{len(lines)} of {counted(len(placed), one.unit)}."
    columns = ("series", "repetition", "window", "start, s", "end, s", "state")
    numbers = FigureNumbers(
        named("borders", one.label), columns, partial(_every, one), (one.unit, "borders", "state"), lines, remark
    )
    return figure(drawing, text, chart, note=note, sizes=(FULL, PHONE), numbers=numbers)


def _every(one: Series) -> Iterator[tuple[Cell, ...]]:
    """A line per report: series, repetition, number, borders (s), state."""
    for run, verdict in one.runs:
        again = one.repetition(run.header)
        for window in verdict.windows:
            if window.start is not None and window.end is not None:
                yield one.label, again, window.index, window.start / 1000, window.end / 1000, state(window)


def _bars(one: Series, windows: Sequence[PlacedWindow], links: Links) -> list[charts.Bar]:
    """Bars in as few lanes as possible without overlaps."""
    ends: list[int] = []
    bars = []
    for bar in windows:
        window = bar.worst
        start, end = window.start or 0, window.end or 0
        # Greedy by start, which needs the fewest lanes for intervals.
        lane = next((lane for lane, last in enumerate(ends) if last <= start), len(ends))
        # Replaces the lane's end, or appends a new lane.
        ends[lane : lane + 1] = [max(end, start + 1)]
        tip = tooltip(one, one.runs[bar.run], window)
        if bar.wrong and len(one.runs) > 1:
            tip += f"; not right in {bar.wrong} of {len(one.runs)} repetitions"
        link = f"#{links[bar.run][bar.place]}" if not bar.right and bar.place in links[bar.run] else ""
        bars.append(charts.Bar(start / 1000, end / 1000, lane, state(window), tip, link))
    return bars


def reconstructed(drawing: ChartDrawing, series: Sequence[Series]) -> Iterator[Figure]:
    """Expected borders compared with the best ones, for the first graciously judged run of each series."""
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

    lines = tuple(_fit_line(one, window) for window in shown[:SHOWN])
    remark = "" if len(lines) == len(placed) else f"{len(lines)} of {counted(len(placed), one.unit)}."
    columns = ("series", "window", "start, s", "end, s", "best start, s", "best end, s", "precision", "recall")
    every = partial(_every_fit, one, placed)
    names = (one.unit, "expected", "fits best")
    numbers = FigureNumbers(named("best borders", one.label), columns, every, names, lines, remark)
    return figure(drawing, text, chart, note=note, sizes=(FULL, PHONE), numbers=numbers)


def _fit_line(one: Series, window: WindowVerdict) -> tuple[str, ...]:
    borders = scope_borders(one.header.query, one.header.semantics)
    best = NOTHING if window.borders is None else interval(*window.borders, borders)
    return f"{one.unit} {window.index:,}", interval(window.start, window.end, borders), best


def _every_fit(one: Series, placed: Sequence[WindowVerdict]) -> Iterator[tuple[Cell, ...]]:
    for window in placed:
        best, scores = window.borders or (None, None), window.fitted or (None, None)
        ends = [None if end is None else end / 1000 for end in (window.start, window.end, *best)]
        yield one.label, window.index, *ends, *scores


def _directions(moved: Sequence[WindowVerdict]) -> str:
    """The directions in which starts and ends moved, in words."""
    ways = []
    for name, place in (("start", 0), ("end", 1)):
        shifts = [_shift(window, place) for window in moved]
        left, right = sum(shift < 0 for shift in shifts), sum(shift > 0 for shift in shifts)
        ways += [f"{name} left in {left:,}"] * bool(left) + [f"{name} right in {right:,}"] * bool(right)
    return f": {', '.join(ways)}" if ways else ""


def _shift(window: WindowVerdict, place: int) -> int:
    borders, stated = window.borders or (0, 0), (window.start or 0, window.end or 0)
    return borders[place] - stated[place]


def _fit(one: Series, window: WindowVerdict) -> charts.FittedBorders:
    start, end = window.start or 0, window.end or 0
    borders = scope_borders(one.header.query, one.header.semantics)
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
    fitted = tuple(border / 1000 for border in window.borders)
    return charts.FittedBorders(start / 1000, end / 1000, fitted[0], fitted[1], word, tip)


PLOTS = (Plot(RIGHT, 50, border_strips), Plot(RIGHT, 60, reconstructed))
