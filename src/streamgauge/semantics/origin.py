"""Where a query that is asked in the middle of time begins: t0 moved on to the first element, answers unchanged."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import lcm

from streamgauge.model.answer import Answer
from streamgauge.model.query import StreamWindow
from streamgauge.model.semantics import Borders, Origin, Report, Semantics, Tick

FAR = 10_000
"""Slides between t0 and the first element from which on a recorded stream is begun near its first element."""


@dataclass(frozen=True, slots=True)
class Beginning:
    """The semantics to begin with, and the time (ms) from which its reports speak of anything; ``None`` for all."""

    semantics: Semantics
    since: int | None = None

    def counts(self, answer: Answer) -> bool:
        """Whether an answer is not of the time before the first element."""
        return self.since is None or answer.instant is None or answer.instant >= self.since


def beginning(windows: Sequence[StreamWindow], semantics: Semantics, first: int) -> Beginning:
    """t0 moved on along the grid of all slides to before every window that holds ``first`` (ms), and the one before.

    The reports from then on are those of the semantics' own t0, without the empty ones before (a landmark window names
    the moved t0 as its start). An origin that is the first element stays as it is.
    """
    timed = [each.window for each in windows if each.window.kind != "count"]
    if semantics.origin is Origin.FIRST:
        return Beginning(semantics)
    step = lcm(semantics.time_unit, semantics.period or 1, *(window.slide for window in timed))
    earliest = first - (semantics.lateness or 0) - max((window.size + window.slide for window in timed), default=1)
    moved = semantics.t0 + (earliest - semantics.t0) // step * step
    if moved <= semantics.t0:
        return Beginning(semantics)
    speaks_of_before = len(timed) == len(windows) and _clocked(semantics)
    since = first - (semantics.lateness or 0) + (1 if speaks_of_before else 0)
    return Beginning(replace(semantics, t0=moved), since)


def near(windows: Sequence[StreamWindow], semantics: Semantics, first: int | None) -> Semantics:
    """The semantics with t0 moved on as in ``beginning`` where it is FAR slides before the first element (ms).

    A recorded stream of today is 1.7e12 ms after t0 = 0: nobody waits for the empty reports of 55 years.
    """
    if first is None:
        return semantics
    slides = [each.window.slide for each in windows if each.window.kind != "count"]
    step = min((*slides, *((semantics.period,) if semantics.period else ())), default=semantics.time_unit)
    return beginning(windows, semantics, first).semantics if first - semantics.t0 > FAR * step else semantics


def _clocked(semantics: Semantics) -> bool:
    """Whether instants of a clock report, not the elements themselves, and what is at an instant is still to come."""
    closes = Report.WINDOW_CLOSE in semantics.report
    clock = closes or semantics.period is not None or semantics.tick is Tick.TIME
    return clock and semantics.borders is Borders.CLOSED_OPEN
