"""Which reports may be due, and what each one's windows hold (SECRET: report, tick; CSRBench, section 3).

``candidates(arrivals, windows, semantics, t0, advanced_to)`` needs no triples: ``order.admit`` and ``order.arrivals``
make the arrivals from elements' heads. A candidate becomes due when its content satisfies the content-dependent
strategies (``definition.py``).
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from heapq import merge
from itertools import groupby

from streamgauge.model.query import StreamWindow
from streamgauge.model.report import DueReport
from streamgauge.model.semantics import Due, Report, Semantics, Tick
from streamgauge.semantics.order import Arrivals
from streamgauge.semantics.refusal import RefusedError
from streamgauge.semantics.scope import RunInstant, Scopes, clock_moment, expired_moment, scopes

MOST_INSTANTS = 5_000_000
"""How many instants of a clock one run may have before it is refused."""


def candidates(
    arrived: Arrivals, windows: Sequence[StreamWindow], semantics: Semantics, t0: int, advanced_to: int
) -> tuple[DueReport, ...]:
    """The instants at which a report may be due up to ``advanced_to`` (ms), in order; views in the windows' order."""
    return tuple(candidates_in_order(arrived, windows, semantics, t0, advanced_to))


def candidates_in_order(
    arrived: Arrivals, windows: Sequence[StreamWindow], semantics: Semantics, t0: int, advanced_to: int
) -> Iterator[DueReport]:
    """``candidates`` one by one, each found when it is asked for.

    With window close they are the closes of all windows, each shown as of its latest close; otherwise the periods or
    the ticks, and each window as it is then. Raises RefusedError when a clock would have more than MOST_INSTANTS.
    """
    refuse_clock(windows, semantics, t0, advanced_to)
    held = [scopes(window, arrived, semantics, t0) for window in windows]
    if Report.WINDOW_CLOSE in semantics.report:
        closes = _distinct(merge(*(_closes(each, arrived, semantics, advanced_to) for each in held)))
        return (
            DueReport(at.instant, tuple(each.closed(at) for each in held))
            for at in closes
            if _in_period(at.instant, semantics, t0)
        )
    return (
        DueReport(at.instant, tuple(each.opened(at) for each in held))
        for at in _ticks(arrived, semantics, t0, advanced_to)
        if at.instant >= t0 and (semantics.partial_head or any(each.whole(at) for each in held))
    )


def refuse_clock(windows: Sequence[StreamWindow], semantics: Semantics, t0: int, advanced_to: int) -> None:
    """Raise RefusedError when a clock that starts at t0 (ms) has too many instants up to ``advanced_to``."""
    if Report.WINDOW_CLOSE in semantics.report:
        steps = [each.window.slide for each in windows if each.window.kind != "count"]
    elif semantics.period is not None or semantics.tick is Tick.TIME:
        steps = [semantics.period or semantics.time_unit]
    else:
        return
    for step in steps:
        instants = (advanced_to - t0) // step
        if instants > MOST_INSTANTS:
            raise RefusedError(
                f"from t0 = {t0} ms to {advanced_to} ms in steps of {step} ms there are {instants:,} instants, more "
                f"than {MOST_INSTANTS:,}: start nearer to the stream (another t0, or times from its start) or take a "
                "larger step"
            )


def _closes(each: Scopes, arrived: Arrivals, semantics: Semantics, advanced_to: int) -> Iterator[RunInstant]:
    """One window's closes; of those that one arrival makes due only the last where the semantics says so."""
    found = each.closes(advanced_to)
    if semantics.due is Due.ALL:
        return found
    groups = groupby(found, key=lambda at: _trigger(at, arrived))
    return (list(group)[-1] for _, group in groups)


def _trigger(at: RunInstant, arrived: Arrivals) -> int:
    """The rank of the arrival that makes a close due: itself for a triple, else the first that is past it."""
    return bisect_left(arrived.times, at.last + 1) if at.clocked else at.seen - 1


def _in_period(instant: int, semantics: Semantics, t0: int) -> bool:
    return semantics.period is None or (instant > t0 and (instant - t0) % semantics.period == 0)


def _ticks(arrived: Arrivals, semantics: Semantics, t0: int, advanced_to: int) -> Iterator[RunInstant]:
    """The ends of what is held, the periods, the time units, or when arrivals are looked at."""
    if Report.EXPIRATION in semantics.report:
        return _expirations(arrived, semantics, t0, advanced_to)
    if semantics.period is not None:
        return _clock(range(t0 + semantics.period, advanced_to + 1, semantics.period), arrived, semantics)
    if semantics.tick is Tick.TIME:
        return _clock(range(t0 + semantics.time_unit, advanced_to + 1, semantics.time_unit), arrived, semantics)
    return (
        RunInstant(time, seen, False, time)
        for time, seen in zip(arrived.times, _together(arrived, semantics.tick), strict=True)
        if seen and time <= advanced_to
    )


def _expirations(arrived: Arrivals, semantics: Semantics, t0: int, advanced_to: int) -> Iterator[RunInstant]:
    """t0, then always when the first of what is held ends, or a period later when nothing of it ends."""
    assert semantics.period is not None
    instant = t0
    while instant <= advanced_to:
        at = expired_moment(instant, arrived, semantics)
        yield at
        held = zip(arrived.times[: at.seen], arrived.ends[: at.seen], strict=True)
        ends = [end for time, end in held if end is not None and time >= t0 and end > instant]
        instant = min(ends, default=instant + semantics.period)


def _clock(instants: Iterable[int], arrived: Arrivals, semantics: Semantics) -> Iterator[RunInstant]:
    return (clock_moment(instant, arrived, semantics) for instant in instants)


def _together(arrived: Arrivals, tick: Tick) -> list[int]:
    """Per arrival how many are seen when its tick comes, 0 for all but the last of those that one tick brings."""
    if tick is Tick.TUPLE:
        return list(range(1, len(arrived.times) + 1))
    keys = arrived.times if tick is Tick.BATCH else arrived.sequences
    return [
        rank if rank == len(keys) or keys[rank] != key else 0  # the next arrival, counted from 0, has this rank
        for rank, key in enumerate(keys, 1)
    ]


def _distinct(moments: Iterable[RunInstant]) -> Iterator[RunInstant]:
    return (moment for moment, _ in groupby(moments))
