"""The engine's clock drifts: it runs at another rate than the stream's times, or each window is a little later.

A clock at another rate shows ``(1 + rate) t`` at ``t`` ms after t0, so in the stream's time borders are at
``t0 + (border - t0) / (1 + rate)``. A clock that falls behind moves both borders of the k-th window by ``k * delay`` ms
(to earlier times, if negative).

Answers change only at rates at which an element crosses a border, so one rate between each two such crossings is tried,
after the round rates. Worked example: with t0 = 0 and windows [0, 10), [10, 20) an element at 9 crosses the border at
10 at the rate 10/9 - 1.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import pairwise
from math import ceil, floor, gcd

from streamgauge.model.query import Window
from streamgauge.model.report import DueReport, View
from streamgauge.model.semantics import Report
from streamgauge.model.verdict import Part
from streamgauge.oracle.diagnosis.models import Case, Fault, Scoping, Seen
from streamgauge.semantics.arrivals import first_close

MAX_RATE = Fraction(1, 4)
"""The greatest drift that is tried, in ms per ms."""
ROUND = tuple(sign * Fraction(n, 100) for n in (1, 2, 5, 10, 15, 20) for sign in (1, -1))
MAX_RATES = 150
"""Rates of each clock that are tried beside the round ones; the smallest ones."""
SEEN = 2**62
"""A ``View.seen`` beyond every rank: only the borders in time decide."""


def proposals(seen: Seen) -> Iterator[Fault]:
    """Drifts of both clocks, for a query over one time-based window that reports when it closes."""
    windows = seen.case.query.windows
    if len(windows) != 1 or windows[0].window.kind != "time" or Report.WINDOW_CLOSE not in seen.case.semantics.report:
        return
    window = windows[0].window
    first = _first(seen.case)
    running = _rates(seen, partial(_running, window=window))
    behind = _rates(seen, partial(_falling_behind, window=window, first=first))
    # Round rates first: of rates with equal answers they are the more likely ones, and the search is bounded.
    yield from _faults(seen.case, ROUND, ROUND)
    yield from _faults(seen.case, running, behind)


def _faults(case: Case, running: Iterable[Fraction], behind: Iterable[Fraction]) -> Iterator[Fault]:
    """Faults for the drifts that reach at least a millisecond by the end of the recording."""
    span, slide = case.advanced_to - case.t0, case.query.windows[0].window.slide
    for rate in (rate for rate in running if abs(rate) * span >= 1):
        text = f"{abs(float(rate)):.2%} {'fast' if rate > 0 else 'slow'}"
        part = Part(f"clock {text}", f"The engine's clock runs {text} from t0 on.")
        yield from _both(case, part, partial(_at_rate, rate=rate), partial(_shown, rate=rate))
    for rate in (rate for rate in behind if abs(rate) * span >= 1):
        delay = float(rate * slide)
        text = f"{abs(delay):g} ms {'late' if delay > 0 else 'early'}"
        sentence = f"Every window starts and closes {text}, counted from the window before it."
        part = Part(f"each window {text}", sentence)
        yield from _both(case, part, partial(_delayed, rate=rate), partial(_last, rate=rate))


def _both(case: Case, part: Part, scoping: Scoping, end: Callable[[Case], int]) -> Iterator[Fault]:
    """A drift up to the horizon on the drifting clock, and one over as many windows as declared if that differs."""
    yield Fault(part, partial(_drifting, scoping=scoping, end=end), fine=True)
    first, slide = case.t0 + _first(case), case.query.windows[0].window.slide
    if (end(case) - first) // slide == (case.advanced_to - first) // slide:
        return
    as_declared = Part(f"{part.name}, windows as many as declared", part.sentence)
    yield Fault(as_declared, partial(_drifting, scoping=scoping, end=None), fine=True)


def _first(case: Case) -> int:
    """The first close, ms after t0."""
    return first_close(case.query.windows[0], case.semantics)


def _rates(seen: Seen, crossings: Callable[[int], Iterator[Fraction]]) -> list[Fraction]:
    """The rates at crossings, and one between each two of them, without round rates; the smallest first."""
    t0 = seen.case.t0
    offsets = [time - t0 for time in seen.case.stream.times if time > t0]
    rates = {rate for offset in offsets for rate in crossings(offset) if abs(rate) <= MAX_RATE}
    ordered = sorted({*rates, -MAX_RATE, Fraction(0), MAX_RATE})
    # Fractions, as a border that is hit exactly decides about the element on it.
    between = [(low + high) / 2 for low, high in pairwise(ordered)]
    return sorted({*rates, *between} - {Fraction(0), *ROUND}, key=abs)[:MAX_RATES]


def _running(offset: int, window: Window) -> Iterator[Fraction]:
    """The rates at which a time (ms after t0) is at a border of the clock at another rate."""
    for border in _near(offset, window):
        yield Fraction(border, offset) - 1


def _falling_behind(offset: int, window: Window, first: int) -> Iterator[Fraction]:
    """The rates at which a time (ms after t0) is at a border of the clock that falls behind."""
    for border in _near(offset, window):
        for since in (border - first, border - first + window.size):
            if since > 0 and since % window.slide == 0:
                yield Fraction(offset - border, since)


def _near(offset: int, window: Window) -> range:
    """The borders (ms after t0) that a drift can bring to a time."""
    step = gcd(window.size, window.slide)
    low = int(offset * (1 - MAX_RATE)) // step * step
    return range(low, int(offset * (1 + MAX_RATE)) + step, step)


def _drifting(case: Case, scoping: Scoping, end: Callable[[Case], int] | None) -> Case:
    """The case with moved borders, up to the last declared close (ms) that the drifting clock reaches."""
    until = case.advanced_to if end is None or case.advanced_to <= case.t0 else end(case)
    return replace(case, scopings=(*case.scopings, scoping), advanced_to=until)


def _shown(case: Case, rate: Fraction) -> int:
    """The last possible border (ms) up to the time that a clock of this rate shows at the horizon."""
    window = case.query.windows[0].window
    step = gcd(window.size, window.slide)
    return case.t0 + floor((case.advanced_to - case.t0) * (1 + rate) / step) * step


def _last(case: Case, rate: Fraction) -> int:
    """The last declared close (ms) that is before the horizon with each window later than the one before."""
    first, slide = _first(case), case.query.windows[0].window.slide
    return case.t0 + first + floor((case.advanced_to - case.t0 - first) / (slide * (1 + rate))) * slide


def _at_rate(case: Case, due_report: DueReport, rate: Fraction) -> DueReport:
    def moved(view: View) -> View:
        # Worked example: at 10% fast the border at 11,000 ms is reached when the stream's time is 10,000 ms.
        first, last = ((border - case.t0) / (1 + rate) for border in (view.first, view.last + 1))
        # Rounded up: an element at a whole ms is before a border between two ms exactly if it is before the next whole
        # one.
        return _between(case, view, case.t0 + ceil(first), case.t0 + ceil(last) - 1)

    return replace(due_report, views=tuple(map(moved, due_report.views)))


def _delayed(case: Case, due_report: DueReport, rate: Fraction) -> DueReport:
    delay = rate * (due_report.instant - case.t0 - _first(case))

    def moved(view: View) -> View:
        # A partial head starts where the engine does, whatever its clock shows.
        start = view.first if view.first == case.t0 else ceil(view.first + delay)
        return _between(case, view, start, ceil(view.last + 1 + delay) - 1)

    return replace(due_report, views=tuple(map(moved, due_report.views)))


def _between(case: Case, view: View, first: int, last: int) -> View:
    return replace(view, first=max(case.t0, first), last=last, seen=SEEN)
