"""The window has another size and another slide than declared."""

from collections.abc import Iterator
from functools import partial
from itertools import pairwise, product
from math import gcd

from streamgauge.model.query import Window
from streamgauge.model.semantics import Report, Scope
from streamgauge.oracle.diagnosis.faults.window_size import change, others, window_part
from streamgauge.oracle.diagnosis.models import Fault, Seen

MAX_PAIRS = 120
"""Windows that are tried: first those that close as often as recorded, then those nearest to the declared one."""
MAX_SIZES = 40
"""Sizes of a grid; larger grids are not tried."""


def proposals(seen: Seen) -> Iterator[Fault]:
    """Sizes and slides on a grid that the number and the instants of the recorded answers allow."""
    windows = [window.window for window in seen.case.query.windows if window.window.kind != "landmark"]
    if not windows:
        return
    window, step = windows[0], _step(seen)
    sizes = [other for other in _grid(window) if _possible(seen, other, step)] + _read(seen, window, step)
    # ``window_size`` proposes these, with a shorter description.
    simpler = {window, *others(window, seen.case.semantics.time_unit)}
    nearest = sorted({*sizes} - simpler, key=lambda size: (not _as_many(seen, size), *_apart(size, window)))
    for other in nearest[:MAX_PAIRS]:
        part = window_part(window, other)
        yield Fault(part, partial(change, window=window, other=other), fine=True, family="window")


def _grid(window: Window) -> Iterator[Window]:
    """Windows whose size and slide are multiples of a step, at most two slides longer than declared or twice as long.

    Steps are the greatest common divisor of the declared size and slide, half of it, and a second.
    """
    largest = gcd(window.size, window.slide)
    for step in {largest, largest // 2 or 1, 1000 if largest % 1000 == 0 else largest}:
        sizes = range(step, max(2 * window.size, window.size + 2 * window.slide) + 1, step)
        slides = range(step, max(3 * window.slide, 2 * window.size) + 1, step)
        if len(sizes) <= MAX_SIZES:
            yield from (Window(size, slide, window.kind) for size, slide in product(sizes, slides))


def _read(seen: Seen, window: Window, step: int) -> list[Window]:
    """Windows with the slide of the recorded instants: of the declared size, and of one scaled in proportion."""
    if window.kind != "time" or Report.WINDOW_CLOSE not in seen.case.semantics.report or step in (0, window.slide):
        return []
    sizes = {window.size, window.size * step // window.slide}
    return [Window(size, step, window.kind) for size in sorted(sizes) if size > 0]


def _step(seen: Seen) -> int:
    """The greatest common divisor of the differences between recorded instants (ms); 0 without them."""
    instants = (seen.recorded.instant(at) for at in range(seen.recorded.count))
    return gcd(*(after - before for before, after in pairwise(at for at in instants if at is not None)))


def _possible(seen: Seen, other: Window, step: int) -> bool:
    """Whether the closes of a window allow the recorded answers, of which up to half may be lost or sent twice."""
    case, declared = seen.case, seen.case.query.windows[0].window
    if case.semantics.scope is Scope.RANGE and Report.WINDOW_CLOSE not in case.semantics.report:
        return other.slide == declared.slide  # a pure RANGE has no use for the slide
    if other.kind != "time" or Report.WINDOW_CLOSE not in case.semantics.report:
        return True
    # Closes are multiples of the slide, so the distances between recorded instants are, too.
    if step % other.slide:
        return False
    if seen.recorded.by_row:
        return True
    closes = _closes(seen, other)
    suppressed = Report.NON_EMPTY in case.semantics.report or not case.semantics.notify_empty
    return closes >= seen.recorded.count // 2 and (suppressed or closes <= 2 * seen.recorded.count + 1)


def _closes(seen: Seen, other: Window) -> int:
    """The number of closes of a window up to the horizon."""
    first = other.slide if seen.case.semantics.partial_head else other.size
    return max(0, (seen.case.advanced_to - seen.case.t0 - first) // other.slide + 1)


def _as_many(seen: Seen, other: Window) -> bool:
    """Whether the number of closes is that of the recorded answers."""
    return other.kind == "time" and _closes(seen, other) == seen.recorded.count


def _apart(other: Window, window: Window) -> tuple[int, int, int]:
    return abs(other.size - window.size) + abs(other.slide - window.slide), other.size, other.slide
