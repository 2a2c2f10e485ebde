"""Window arithmetic for engines: at which instants something may be reported, and from when content counts (ms)."""

from bisect import bisect_left
from dataclasses import dataclass
from typing import NamedTuple

from streamgauge.model.query import Window
from streamgauge.model.semantics import Borders, Report, Scope, Semantics, Tick


class Candidate(NamedTuple):
    """An instant that may report: its scope starts at ``start``; content has ``first <= time <= last``."""

    instant: int
    start: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Scopes:
    """The scopes of one window from ``t0`` on."""

    window: Window
    semantics: Semantics
    t0: int

    @property
    def half_open(self) -> bool:
        """Whether a scope's end does not belong to it."""
        return self.semantics.borders is Borders.CLOSED_OPEN

    @property
    def clocked(self) -> bool:
        """Whether the candidates are instants of the clock, not elements."""
        on_clock = bool(self.semantics.report & {Report.WINDOW_CLOSE, Report.PERIODIC})
        return on_clock or self.semantics.tick is Tick.TIME

    @property
    def step(self) -> int:
        """The distance of the clock's instants."""
        if Report.WINDOW_CLOSE in self.semantics.report:
            return self.window.slide
        return self.semantics.period or self.semantics.time_unit

    @property
    def begin(self) -> int:
        """The clock's first instant."""
        if Report.WINDOW_CLOSE in self.semantics.report and not self.semantics.partial_head:
            return self.t0 + self.window.size
        return self.t0 + self.step

    def counts(self, instant: int) -> bool:
        """Whether this instant is a candidate: not before the first full window, and on the period if one is asked."""
        period = self.semantics.period
        on_period = period is None or (instant - self.t0) % period == 0
        return on_period and instant >= self.t0 + (0 if self.semantics.partial_head else self.window.size)

    def clock(self, instant: int) -> Candidate:
        """The candidate at an instant of the clock; half-open scopes speak of what came before it."""
        last = instant - 1 if self.half_open else instant
        if Report.WINDOW_CLOSE in self.semantics.report:
            start = instant - self.window.size
            return Candidate(instant, max(start, self.t0), max(start + self._excluded, self.t0), last)
        return self._looking_back(instant, last)

    def element(self, time: int) -> Candidate:
        """The candidate when something has come at ``time``."""
        return self._looking_back(time, time)

    def _looking_back(self, instant: int, last: int) -> Candidate:
        if self.semantics.scope is Scope.RANGE:
            first = max(last - self.window.size + (0 if self.semantics.borders is Borders.CLOSED else 1), self.t0)
            return Candidate(instant, max(first - self._excluded, self.t0), first, last)
        reach = last + 1 if self.half_open else last
        missing = reach - self.t0 - self.window.size
        start = self.t0 + max(0, -(-missing // self.window.slide)) * self.window.slide
        return Candidate(instant, start, start + self._excluded, last)

    @property
    def _excluded(self) -> int:
        return 1 if self.semantics.borders is Borders.OPEN_CLOSED else 0

    def first_without(self, time: int, instants: range) -> int:
        """The first of the clock's instants at which content of ``time`` has gone (the range's end when none)."""
        at = bisect_left(instants, True, key=lambda instant: self.clock(instant).first > time)
        return instants[at] if at < len(instants) else instants.start + len(instants) * instants.step
