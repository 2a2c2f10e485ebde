"""The engine's clock drifts: it runs faster or slower than the stream's times, or each window closes a little later.

Two clocks are meant. One runs at another rate: ``t`` ms after t0 it shows ``(1 + rate) t``, so that the borders of
windows, as the stream sees them, are ``t0 + (border - t0) / (1 + rate)``. The second moves the closes only: the k-th
window is declared, but for both borders being ``k * delay`` ms later (earlier, if negative).

Rates between two neighbouring moments at which an element crosses a border give the same answers, so that one rate
of each such stretch is tried, after the round ones. Example: with t0 = 0 and windows [0, 10), [10, 20) an element
at 9 crosses the border at 10 at the rate 10/9 - 1.
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

FASTEST = Fraction(1, 4)
ROUND = tuple(sign * Fraction(n, 100) for n in (1, 2, 5, 10, 15, 20) for sign in (1, -1))
MAX_RATES = 150
"""How many rates of each clock are tried beside the round ones, the slowest drifts."""
SEEN = 2**62
"""A rank past every arrival: borders in time alone decide."""


def proposals(seen: Seen) -> Iterator[Fault]:
    """Faults for one time-based window that reports when it closes."""
    windows = seen.case.query.windows
    if len(windows) != 1 or windows[0].window.kind != "time" or Report.WINDOW_CLOSE not in seen.case.semantics.report:
        return
    window = windows[0].window
    first = _first(seen.case)
    running = _rates(seen, partial(_running, window=window))
    behind = _rates(seen, partial(_falling_behind, window=window, first=first))
    yield from _faults(seen.case, ROUND, ROUND)
    yield from _faults(seen.case, running, behind)


def _faults(case: Case, running: Iterable[Fraction], behind: Iterable[Fraction]) -> Iterator[Fault]:
    """Drifts that come to a millisecond at least by the end of the recording."""
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
    """A drift until the stream's time ends on the drifting clock; and one over as many windows as are declared."""
    yield Fault(part, "clock", partial(_drifting, scoping=scoping, end=end), fine=True)
    first, slide = case.t0 + _first(case), case.query.windows[0].window.slide
    if (end(case) - first) // slide == (case.advanced_to - first) // slide:
        return
    as_declared = Part(f"{part.name}, windows as many as declared", part.sentence)
    yield Fault(as_declared, "clock", partial(_drifting, scoping=scoping, end=None), fine=True)


def _first(case: Case) -> int:
    """The first close, ms after t0."""
    return first_close(case.query.windows[0], case.semantics)


def _rates(seen: Seen, crossings: Callable[[int], Iterator[Fraction]]) -> list[Fraction]:
    """One rate within each stretch between crossings, and the crossings; no round rates."""
    t0 = seen.case.t0
    offsets = [time - t0 for time in seen.case.stream.times if time > t0]
    rates = {rate for offset in offsets for rate in crossings(offset) if abs(rate) <= FASTEST}
    ordered = sorted({*rates, -FASTEST, Fraction(0), FASTEST})
    between = [(low + high) / 2 for low, high in pairwise(ordered)]
    return sorted({*rates, *between} - {Fraction(0), *ROUND}, key=abs)[:MAX_RATES]


def _running(offset: int, window: Window) -> Iterator[Fraction]:
    """The rates at which a time (ms after t0) is at a border of the clock that runs at another rate."""
    for border in _near(offset, window):
        yield Fraction(border, offset) - 1


def _falling_behind(offset: int, window: Window, first: int) -> Iterator[Fraction]:
    """The rates at which a time is at a border of a window whose close is moved."""
    for border in _near(offset, window):
        for since in (border - first, border - first + window.size):
            if since > 0 and since % window.slide == 0:
                yield Fraction(offset - border, since)


def _near(offset: int, window: Window) -> range:
    """The borders (ms after t0) that a drift can bring to a time."""
    step = gcd(window.size, window.slide)
    low = int(offset * (1 - FASTEST)) // step * step
    return range(low, int(offset * (1 + FASTEST)) + step, step)


def _drifting(case: Case, scoping: Scoping, end: Callable[[Case], int] | None) -> Case:
    """The case with borders moved, up to the declared close (ms) that is the last on the drifting clock."""
    until = case.advanced_to if end is None or case.advanced_to <= case.t0 else end(case)
    return replace(case, scopings=(*case.scopings, scoping), advanced_to=until)


def _shown(case: Case, rate: Fraction) -> int:
    """The last of all possible borders up to the time that a clock of this rate shows at the end."""
    window = case.query.windows[0].window
    step = gcd(window.size, window.slide)
    return case.t0 + floor((case.advanced_to - case.t0) * (1 + rate) / step) * step


def _last(case: Case, rate: Fraction) -> int:
    """The last close that comes before the end although every window is later than the one before."""
    first, slide = _first(case), case.query.windows[0].window.slide
    return case.t0 + first + floor((case.advanced_to - case.t0 - first) / (slide * (1 + rate))) * slide


def _at_rate(case: Case, due_report: DueReport, rate: Fraction) -> DueReport:
    def moved(view: View) -> View:
        first, last = ((border - case.t0) / (1 + rate) for border in (view.first, view.last + 1))
        return _between(case, view, case.t0 + ceil(first), case.t0 + ceil(last) - 1)

    return replace(due_report, views=tuple(map(moved, due_report.views)))


def _delayed(case: Case, due_report: DueReport, rate: Fraction) -> DueReport:
    delay = rate * (due_report.instant - case.t0 - _first(case))

    def moved(view: View) -> View:
        start = view.first if view.first == case.t0 else ceil(view.first + delay)
        return _between(case, view, start, ceil(view.last + 1 + delay) - 1)

    return replace(due_report, views=tuple(map(moved, due_report.views)))


def _between(case: Case, view: View, first: int, last: int) -> View:
    return replace(view, first=max(case.t0, first), last=last, seen=SEEN)
