"""The instants at which a window may report, one after the other, and where its content starts at each."""

from dataclasses import dataclass

from streamgauge.model.query import Window
from streamgauge.model.semantics import Borders, Report, Scope, Semantics, Tick


@dataclass(frozen=True, slots=True)
class Look:
    """One look at the window: the instant and the scope that are named (ms), the first and last time it holds."""

    instant: int
    start: int
    end: int
    first: int
    last: int


class Looks:
    """Where a window's content starts, by its borders and by how its scope moves."""

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
        return Look(instant, max(start, self._t0), instant, max(start + self._skip, self._t0), last)

    def clock(self, instant: int) -> Look:
        """The open scope at an instant of the clock: a half-open one speaks of what came before."""
        return self._open(instant, instant - 1 if self._half_open else instant)

    def tick(self, time: int) -> Look:
        """The open scope when what is at ``time`` has entered."""
        return self._open(time, time)

    def _open(self, instant: int, last: int) -> Look:
        if self._range:
            first = max(last - self._back, self._t0)
            return Look(instant, max(first - self._skip, self._t0), instant, first, last)
        reach = last + 1 if self._half_open else last
        late = reach - self._t0 - self._size
        start = self._t0 + (-(-late // self._slide) * self._slide if late > 0 else 0)
        return Look(instant, start, instant, start + self._skip, last)


class Ticking:
    """The instants of the clock: every close, every period, or every time unit; ``None`` for element-driven ticks."""

    def __init__(self, window: Window, semantics: Semantics, t0: int) -> None:
        self.closes = Report.WINDOW_CLOSE in semantics.report
        self._period = semantics.period
        self._t0 = t0
        self._from = t0 if semantics.partial_head else t0 + window.size
        if self.closes:
            self.step = window.slide
            self.next = t0 + (window.slide if semantics.partial_head else window.size)
        else:
            self.step = semantics.period or semantics.time_unit
            self.next = t0 + self.step
        self._first = self.next

    @property
    def passed(self) -> int | None:
        """The last instant that was given or left out, ``None`` before the first."""
        return self.next - self.step if self.next > self._first else None

    def up_to(self, limit: int) -> list[int]:
        """The instants up to ``limit`` that were not given before, in order."""
        found = []
        while self.next <= limit:
            if self._counts(self.next):
                found.append(self.next)
            self.next += self.step
        return found

    def skip_to(self, limit: int) -> None:
        """Leave out the instants up to ``limit``."""
        if self.next <= limit:
            self.next += (limit - self.next) // self.step * self.step + self.step

    def _counts(self, instant: int) -> bool:
        if self.closes:
            return self._period is None or (instant > self._t0 and (instant - self._t0) % self._period == 0)
        return instant >= self._from


def clocked(semantics: Semantics) -> bool:
    """Whether instants of the clock drive the reports, not the elements."""
    return bool(semantics.report & {Report.WINDOW_CLOSE, Report.PERIODIC}) or semantics.tick is Tick.TIME
