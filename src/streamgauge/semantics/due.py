"""Candidate reports and the views of their windows (SECRET: scope, report, tick; CSRBench, section 3).

``candidates`` needs no triples. A candidate is due if its content satisfies the strategies about content
(``definition.due_reports``).
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import merge
from itertools import groupby
from typing import TypeAlias

from streamgauge.model.query import StreamWindow, Window, WindowKind
from streamgauge.model.report import DueReport, View
from streamgauge.model.semantics import Borders, Due, Report, Scope, Semantics, Tick
from streamgauge.semantics.arrivals import Arrivals, first_close
from streamgauge.semantics.jumps import MAX_INSTANTS, clock_steps
from streamgauge.semantics.refusal import RefusedError


@dataclass(frozen=True, slots=True, order=True)
class RunInstant:
    """An instant of a run (ms), the number of arrivals seen by then, and whether it is an instant of a clock.

    ``last`` (ms) is the latest time of its content: at an instant c of a clock [o, c) ends at c - 1. Instants sort by
    time and then by arrivals, so at c the close of [o, c) precedes those of count-based windows.
    """

    instant: int
    seen: int
    clocked: bool
    last: int


def clock_moment(instant: int, arrived: Arrivals, semantics: Semantics) -> RunInstant:
    """The run instant of a clock's instant (ms)."""
    last = instant - 1 if semantics.borders is Borders.CLOSED_OPEN else instant
    return RunInstant(instant, bisect_right(arrived.times, last), True, last)


def expired_moment(instant: int, arrived: Arrivals, semantics: Semantics) -> RunInstant:
    """The run instant of an expiration (ms), with facts valid in [initial, final) or (initial, final]."""
    last = instant if semantics.borders is Borders.CLOSED_OPEN else instant - 1
    return RunInstant(instant, bisect_right(arrived.times, last), True, last)


def never(t0: int) -> View:
    """The empty view of a window that has not closed, or has no triple yet."""
    return View(t0, t0, t0, t0 - 1, 0)


class TimeScopes:
    """A time-based window: [o, c) with c = t0 + omega + k beta, borders as the semantics says."""

    def __init__(self, seen: StreamWindow, arrived: Arrivals, semantics: Semantics, t0: int) -> None:
        self.window, self.arrived, self.semantics, self.t0 = seen.window, arrived, semantics, t0
        self.first = t0 + first_close(seen, semantics)

    def closes(self, advanced_to: int) -> Iterator[RunInstant]:
        """The closes: every slide, from the first full window on, or from the first slide with partial heads."""
        for close in range(self.first, advanced_to + 1, self.window.slide):
            yield clock_moment(close, self.arrived, self.semantics)

    def closed(self, at: RunInstant) -> View:
        """The view of the latest close; a partial head window starts at t0."""
        # At an arrival's instant c (a close of a count-based window), more elements at c may follow, so a time-based
        # window that closes at c and contains them has not closed yet.
        limit = at.instant if at.clocked or self.semantics.borders is Borders.CLOSED_OPEN else at.instant - 1
        if limit < self.first:
            return never(self.t0)
        return self._ending(self.first + (limit - self.first) // self.window.slide * self.window.slide)

    def opened(self, at: RunInstant) -> View:
        """The view of the active window, or of the pure RANGE."""
        start, first = content_from(self.window, self.semantics, self.t0, at.last)
        return View(start, at.instant, first, at.last, at.seen)

    def whole(self, at: RunInstant) -> bool:
        """Whether a full window has passed: from t0 + omega on."""
        return at.instant >= self.t0 + self.window.size

    def _ending(self, close: int) -> View:
        at = clock_moment(close, self.arrived, self.semantics)
        # With partial heads the first windows would begin before t0; their content does not.
        start = close - self.window.size
        first = start + 1 if self.semantics.borders is Borders.OPEN_CLOSED else start
        return View(max(start, self.t0), close, max(first, self.t0), at.last, at.seen)


class LandmarkScopes(TimeScopes):
    """A landmark window: from t0, whatever the left border, closing every slide; never partial."""

    def opened(self, at: RunInstant) -> View:
        """The view from t0 on."""
        return View(self.t0, at.instant, self.t0, at.last, at.seen)

    def whole(self, at: RunInstant) -> bool:
        """Whether t0 has passed: a landmark window is always full."""
        return at.instant >= self.t0

    def _ending(self, close: int) -> View:
        return self.opened(clock_moment(close, self.arrived, self.semantics))


class CountScopes:
    """A count-based window: the last omega triples of its stream since t0; it closes after every beta-th triple."""

    def __init__(self, seen: StreamWindow, arrived: Arrivals, semantics: Semantics, t0: int) -> None:
        self.window, self.arrived, self.t0 = seen.window, arrived, t0
        self.half_open = semantics.borders is Borders.CLOSED_OPEN
        self.first = first_close(seen, semantics)
        self.ranks = [
            rank
            for rank, (time, stream) in enumerate(zip(arrived.times, arrived.streams, strict=True))
            if stream == seen.stream and time >= t0
        ]

    def closes(self, advanced_to: int) -> Iterator[RunInstant]:
        """The closes: every beta-th triple, from the omega-th on, or from the beta-th with partial heads."""
        # Ranks are of all streams; ``self.ranks`` are those of this window's stream, by which it counts.
        for rank in self.ranks[self.first - 1 :: self.window.slide]:
            time = self.arrived.times[rank]
            if time <= advanced_to:
                yield RunInstant(time, rank + 1, False, time)

    def closed(self, at: RunInstant) -> View:
        """The view of the last omega triples at the latest close."""
        seen = self._seen(at)
        if seen < self.first:
            return never(self.t0)
        number = self.first + (seen - self.first) // self.window.slide * self.window.slide
        return self._upto(number, self.arrived.times[self.ranks[number - 1]])

    def opened(self, at: RunInstant) -> View:
        """The view of the last omega triples seen."""
        seen = self._seen(at)
        return self._upto(seen, at.last) if seen else never(self.t0)

    def whole(self, at: RunInstant) -> bool:
        """Whether the omega-th triple was seen."""
        return self._seen(at) >= self.window.size

    def _seen(self, at: RunInstant) -> int:
        # Triples of this stream among the arrivals seen.
        return bisect_left(self.ranks, at.seen)

    def _upto(self, number: int, last: int) -> View:
        """The view of the last omega of the first ``number`` triples, as far as they are valid at ``last`` (ms)."""
        # The scope ends after its newest triple, in the borders that the semantics has, so that it contains the triple.
        newest, oldest = self.ranks[number - 1], self.ranks[max(0, number - self.window.size)]
        start, end = self.arrived.times[oldest], self.arrived.times[newest]
        return View(start, end + 1 if self.half_open else end, start, last, newest + 1, oldest)


Scopes: TypeAlias = TimeScopes | CountScopes
"""The scopes of one window of a query.

``closes`` are its closes, ``closed`` its view at the latest close, ``opened`` that at any instant, ``whole`` whether
the first full window has passed: before it only engines with partial heads report.
"""

_SCOPES: dict[WindowKind, type[Scopes]] = {"time": TimeScopes, "landmark": LandmarkScopes, "count": CountScopes}


def content_from(window: Window, semantics: Semantics, t0: int, instant: int) -> tuple[int, int]:
    """The scope's start at an instant, and the first time (ms, inclusive) of its content.

    By slides, the start of the earliest window that can still receive an element at the instant (t0 + k beta for the
    smallest k >= 0); for a pure RANGE, omega back. Neither is before t0.
    """
    open_start = 1 if semantics.borders is Borders.OPEN_CLOSED else 0
    if semantics.scope is Scope.RANGE:
        back = window.size if semantics.borders is Borders.CLOSED else window.size - 1
        first = max(instant - back, t0)
        return max(first - open_start, t0), first
    start = active_start(window, t0, instant + (1 if semantics.borders is Borders.CLOSED_OPEN else 0))
    return start, start + open_start


def active_start(window: Window, t0: int, instant: int) -> int:
    """The start of the active window: the earliest one open at the instant, t <= c (CSRBench, figure 4).

    Worked example: size 3, slide 2, t0 = 1, instant 6: [1, 4) is over, so k = ceil((6 - 1 - 3) / 2) = 1, and the
    window is [3, 6).
    """
    slides = max(0, -((t0 + window.size - instant) // window.slide))
    return t0 + slides * window.slide


def candidates(
    arrived: Arrivals, windows: Sequence[StreamWindow], semantics: Semantics, t0: int, advanced_to: int
) -> tuple[DueReport, ...]:
    """The candidate reports up to ``advanced_to`` (ms), ascending; views are in the order of the windows."""
    return tuple(candidates_in_order(arrived, windows, semantics, t0, advanced_to))


def candidates_in_order(
    arrived: Arrivals, windows: Sequence[StreamWindow], semantics: Semantics, t0: int, advanced_to: int
) -> Iterator[DueReport]:
    """``candidates`` as a lazy iterator.

    Under window close they are the closes of all windows, each window shown at its latest close; otherwise the periods
    or ticks, with each window as it is then. Raises RefusedError if a clock would have more than MAX_INSTANTS.
    """
    # Before the first instant is computed: a t0 of 1970 with times of today has billions of them.
    refuse_clock(windows, semantics, t0, advanced_to)
    scopes = [_SCOPES[window.window.kind](window, arrived, semantics, t0) for window in windows]
    if Report.WINDOW_CLOSE in semantics.report:
        # Windows that close at the same instant are one report.
        closes = groupby(merge(*(_closes(scope, arrived, semantics, advanced_to) for scope in scopes)))
        return (
            DueReport(at.instant, tuple(scope.closed(at) for scope in scopes))
            for at, _ in closes
            if _in_period(at.instant, semantics, t0)
        )
    return (
        DueReport(at.instant, tuple(scope.opened(at) for scope in scopes))
        for at in _ticks(arrived, semantics, t0, advanced_to)
        # One full window suffices: beside it the others are shown as far as they are filled.
        if at.instant >= t0 and (semantics.partial_head or any(scope.whole(at) for scope in scopes))
    )


def refuse_clock(windows: Sequence[StreamWindow], semantics: Semantics, t0: int, advanced_to: int) -> None:
    """Raise RefusedError if a clock from t0 (ms) has more than MAX_INSTANTS up to ``advanced_to`` (ms)."""
    for step in clock_steps(windows, semantics):
        instants = (advanced_to - t0) // step
        if instants > MAX_INSTANTS:
            raise RefusedError(
                f"from t0 = {t0} ms to {advanced_to} ms in steps of {step} ms there are {instants:,} instants, more "
                f"than {MAX_INSTANTS:,}: start nearer to the stream (another t0, or times from its start) or take a "
                "larger step"
            )


def _closes(scopes: Scopes, arrived: Arrivals, semantics: Semantics, advanced_to: int) -> Iterator[RunInstant]:
    """One window's closes; under ``Due.LAST`` only the last of those that one arrival makes due."""
    instants = scopes.closes(advanced_to)
    if semantics.due is Due.ALL:
        return instants
    groups = groupby(instants, key=lambda at: _trigger(at, arrived))
    return (list(group)[-1] for _, group in groups)


def _trigger(at: RunInstant, arrived: Arrivals) -> int:
    """The rank of the arrival that makes a close due: the triple itself, else the first arrival after the content."""
    return bisect_left(arrived.times, at.last + 1) if at.clocked else at.seen - 1


def _in_period(instant: int, semantics: Semantics, t0: int) -> bool:
    return semantics.period is None or (instant > t0 and (instant - t0) % semantics.period == 0)


def _ticks(arrived: Arrivals, semantics: Semantics, t0: int, advanced_to: int) -> Iterator[RunInstant]:
    """The instants without window close: expirations, periods, time units, or ticks of arrivals."""
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
    """t0, then the earliest end of a valid fact after each instant, or a period later if none ends."""
    # Semantics refuses expiration without a period.
    assert semantics.period is not None
    instant = t0
    while instant <= advanced_to:
        at = expired_moment(instant, arrived, semantics)
        yield at
        lifetimes = zip(arrived.times[: at.seen], arrived.ends[: at.seen], strict=True)
        # Of the facts seen at the instant only: a client learns of later ones at its next evaluation.
        ends = [end for time, end in lifetimes if end is not None and time >= t0 and end > instant]
        instant = min(ends, default=instant + semantics.period)


def _clock(instants: Iterable[int], arrived: Arrivals, semantics: Semantics) -> Iterator[RunInstant]:
    return (clock_moment(instant, arrived, semantics) for instant in instants)


def _together(arrived: Arrivals, tick: Tick) -> list[int]:
    """For each arrival the number of arrivals seen at its tick; 0 for all but the last arrival of a tick."""
    if tick is Tick.TUPLE:
        return list(range(1, len(arrived.times) + 1))
    keys = arrived.times if tick is Tick.BATCH else arrived.sequences
    return [
        rank if rank == len(keys) or keys[rank] != key else 0  # the next arrival, counted from 0, has this rank
        for rank, key in enumerate(keys, 1)
    ]
