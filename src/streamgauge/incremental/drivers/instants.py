"""The instants of a clock at which windows may report, and where a window's scope is at each."""

from typing import NamedTuple

from streamgauge.model.query import Window
from streamgauge.model.semantics import Borders, Report, Scope, Semantics, Tick

NEVER = 2**62
"""A time (ms) after everything."""


class Look(NamedTuple):
    """One look at a window: the scope that is named (ms), the first and last time it holds."""

    start: int
    end: int
    first: int
    last: int


class Looks:
    """Where a time-based window's content starts, by its borders and by how its scope moves."""

    def __init__(self, window: Window, semantics: Semantics, t0: int) -> None:
        self._size, self._slide, self._t0 = window.size, window.slide, t0
        self._range = semantics.scope is Scope.RANGE
        self._half_open = semantics.borders is Borders.CLOSED_OPEN
        self._skip = 1 if semantics.borders is Borders.OPEN_CLOSED else 0
        self._back = window.size if semantics.borders is Borders.CLOSED else window.size - 1

    def close(self, instant: int) -> Look:
        """The window that closes at an instant; what came before t0 is clipped."""
        start = instant - self._size
        last = instant - 1 if self._half_open else instant
        return Look(max(start, self._t0), instant, max(start + self._skip, self._t0), last)

    def clock(self, instant: int) -> Look:
        """The open scope at an instant of the clock: a half-open one speaks of what came before."""
        return self._open(instant, instant - 1 if self._half_open else instant)

    def tick(self, time: int) -> Look:
        """The open scope when what is at ``time`` has entered."""
        return self._open(time, time)

    def whole_from(self) -> int:
        """When the first full window has come, ms."""
        return self._t0 + self._size

    def _open(self, instant: int, last: int) -> Look:
        if self._range:
            first = max(last - self._back, self._t0)
            return Look(max(first - self._skip, self._t0), instant, first, last)
        reach = last + 1 if self._half_open else last
        late = reach - self._t0 - self._size
        start = self._t0 + (-(-late // self._slide) * self._slide if late > 0 else 0)
        return Look(start, instant, start + self._skip, last)


class LandmarkLooks(Looks):
    """A landmark window: everything from t0 on, whatever the left border."""

    def close(self, instant: int) -> Look:
        """What has come when it closes at an instant."""
        return self.clock(instant)

    def whole_from(self) -> int:
        """It is never partial."""
        return self._t0

    def _open(self, instant: int, last: int) -> Look:
        return Look(self._t0, instant, self._t0, last)


class Ticking:
    """Equally spaced instants, each given once."""

    def __init__(self, first: int, step: int) -> None:
        self.next, self._step, self._first = first, step, first

    @property
    def passed(self) -> int | None:
        """The last instant that was given or left out, ``None`` before the first."""
        return self.next - self._step if self.next > self._first else None

    def up_to(self, limit: int) -> range:
        """The instants up to ``limit`` (ms) that were not given before."""
        given = range(self.next, limit + 1, self._step)
        self.next += len(given) * self._step
        return given


def clock_of(semantics: Semantics, t0: int) -> Ticking | None:
    """The clock that drives reports when no close does: periods or time units; ``None`` for element-driven ticks."""
    if semantics.period is not None:
        return Ticking(t0 + semantics.period, semantics.period)
    return Ticking(t0 + semantics.time_unit, semantics.time_unit) if semantics.tick is Tick.TIME else None


def closes_of(window: Window, semantics: Semantics, t0: int) -> Ticking:
    """The closes of a time-based or landmark window."""
    return Ticking(t0 + (window.slide if semantics.partial_head else window.size), window.slide)


def closing(semantics: Semantics) -> bool:
    """Whether closes drive the reports."""
    return Report.WINDOW_CLOSE in semantics.report
