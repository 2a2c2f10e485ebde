"""Which reports may be due, and what each one's scope is (SECRET: scope, report, tick; CSRBench, section 3).

A candidate becomes due when its content satisfies the content-dependent strategies (``definition.py``).
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from streamgauge.model.query import Window
from streamgauge.model.report import DueReport, View
from streamgauge.model.semantics import Borders, Due, Report, Scope, Semantics, Tick
from streamgauge.semantics.refusal import RefusedError

MOST_INSTANTS = 5_000_000
"""How many instants of the clock one run may have before it is refused."""


def candidates(
    times: Sequence[int], window: Window, semantics: Semantics, t0: int, advanced_to: int
) -> tuple[DueReport, ...]:
    """The instants at which a report may be due, in order.

    ``times`` are the arrivals' application times (ms, ascending), ``advanced_to`` how far time came. With window
    close or periodic in the conjunction those instants are the candidates; otherwise the ticks are. Raises
    RefusedError when the clock would have more than MOST_INSTANTS.
    """
    refuse_clock(window, semantics, t0, advanced_to)
    if Report.WINDOW_CLOSE in semantics.report:
        found = _closing(times, window, semantics, t0, advanced_to)
        if semantics.period is None:
            return found
        period = semantics.period
        return tuple(due for due in found if due.instant > t0 and (due.instant - t0) % period == 0)
    if semantics.period is not None:
        instants: Iterable[int] = range(t0 + semantics.period, advanced_to + 1, semantics.period)
        return tuple(_timed(times, window, semantics, t0, instants))
    return tuple(_ticking(times, window, semantics, t0, advanced_to))


def refuse_clock(window: Window, semantics: Semantics, t0: int, advanced_to: int) -> None:
    """Raise RefusedError when a clock that starts at t0 (ms) has too many instants up to ``advanced_to``."""
    if Report.WINDOW_CLOSE in semantics.report:
        step = window.slide
    elif semantics.period is not None or semantics.tick is Tick.TIME:
        step = semantics.period or semantics.time_unit
    else:
        return
    instants = (advanced_to - t0) // step
    if instants > MOST_INSTANTS:
        raise RefusedError(
            f"from t0 = {t0} ms to {advanced_to} ms in steps of {step} ms there are {instants:,} instants, more than "
            f"{MOST_INSTANTS:,}: start nearer to the stream (another t0, or times from its start) or take a larger step"
        )


def _closing(
    times: Sequence[int], window: Window, semantics: Semantics, t0: int, advanced_to: int
) -> tuple[DueReport, ...]:
    first = t0 + (window.slide if semantics.partial_head else window.size)
    found = [_closed(times, window, semantics, t0, close) for close in range(first, advanced_to + 1, window.slide)]
    if semantics.due is Due.ALL:
        return tuple(found)
    trigger = bisect_left if semantics.borders is Borders.CLOSED_OPEN else bisect_right
    groups = groupby(found, key=lambda due: trigger(times, due.instant))
    return tuple(list(group)[-1] for _, group in groups)


def _closed(times: Sequence[int], window: Window, semantics: Semantics, t0: int, close: int) -> DueReport:
    """The report of the window that closes at ``close``; a partial head window starts at t0."""
    last = close - 1 if semantics.borders is Borders.CLOSED_OPEN else close
    start = close - window.size
    first = start + 1 if semantics.borders is Borders.OPEN_CLOSED else start
    return DueReport(close, (View(max(start, t0), close, max(first, t0), last, bisect_right(times, last)),))


def _ticking(
    times: Sequence[int], window: Window, semantics: Semantics, t0: int, advanced_to: int
) -> Iterator[DueReport]:
    if semantics.tick is Tick.TIME:
        instants = range(t0 + semantics.time_unit, advanced_to + 1, semantics.time_unit)
        yield from _timed(times, window, semantics, t0, instants)
        return
    seen_by = {time: rank for rank, time in enumerate(times, 1)} if semantics.tick is Tick.BATCH else None
    steps = seen_by.items() if seen_by is not None else ((time, rank) for rank, time in enumerate(times, 1))
    for time, seen in steps:
        if _reports(window, semantics, t0, time) and time <= advanced_to:
            start, first = content_from(window, semantics, t0, time)
            yield DueReport(time, (View(start, time, first, time, seen),))


def _timed(
    times: Sequence[int], window: Window, semantics: Semantics, t0: int, instants: Iterable[int]
) -> Iterator[DueReport]:
    """Reports at instants of the clock: half-open scopes speak of what came before the instant."""
    for instant in instants:
        if _reports(window, semantics, t0, instant):
            last = instant - 1 if semantics.borders is Borders.CLOSED_OPEN else instant
            start, first = content_from(window, semantics, t0, last)
            yield DueReport(instant, (View(start, instant, first, last, bisect_right(times, last)),))


def _reports(window: Window, semantics: Semantics, t0: int, instant: int) -> bool:
    """Whether a report that follows no close may be due at all: not before t0, nor before the first full window."""
    return instant >= (t0 if semantics.partial_head else t0 + window.size)


def content_from(window: Window, semantics: Semantics, t0: int, instant: int) -> tuple[int, int]:
    """The scope's start at an instant, and the first time (ms, inclusive) that its content holds.

    By slides it is the start of the earliest window that can still receive an element of the instant (t0 + k beta
    for the smallest k >= 0); as a pure RANGE it is omega back.
    """
    open_start = 1 if semantics.borders is Borders.OPEN_CLOSED else 0
    if semantics.scope is Scope.RANGE:
        back = window.size if semantics.borders is Borders.CLOSED else window.size - 1
        first = max(instant - back, t0)
        return max(first - open_start, t0), first
    start = active_start(window, t0, instant + (1 if semantics.borders is Borders.CLOSED_OPEN else 0))
    return start, start + open_start


def active_start(window: Window, t0: int, instant: int) -> int:
    """The start of the active window: of those open at the instant (t <= c), the earliest (CSRBench, figure 4)."""
    slides = max(0, -((t0 + window.size - instant) // window.slide))
    return t0 + slides * window.slide


def active_window(window: Window, t0: int, instant: int) -> tuple[int, int]:
    """SECRET's scope at an instant: the borders [o, c) of the active window, ms."""
    start = active_start(window, t0, instant)
    return start, start + window.size
