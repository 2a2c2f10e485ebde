"""The window has another size and another slide than the query asks for."""

from collections.abc import Iterator
from functools import partial
from itertools import pairwise, product
from math import gcd

from streamgauge.bench.diagnosis.faults.window_size import change, window_part
from streamgauge.bench.diagnosis.models import Fault, Seen
from streamgauge.model.query import Window
from streamgauge.model.semantics import Report, Scope
from streamgauge.model.verdict import Part

MOST = 80
"""How many windows are tried, those nearest to the declared one."""
COARSEST = 40
"""How many sizes a second's grid may give; otherwise the grid is the greatest common divisor of size and slide."""


def proposals(seen: Seen) -> Iterator[Fault]:
    """Sizes and slides on a grid, as far as the number and the instants of the recorded answers allow."""
    windows = [each.window for each in seen.case.query.windows if each.window.kind != "landmark"]
    if not windows:
        return
    window, step = windows[0], _step(seen)
    found = [other for other in _grid(window) if _possible(seen, other, step)] + _read(seen, window, step)
    nearest = sorted({*found} - {window}, key=lambda each: _apart(each, window))
    for other in nearest[:MOST]:
        yield Fault(_part(window, other), "window", partial(change, window=window, other=other), fine=True)


def _part(window: Window, other: Window) -> Part:
    """The part; another slide alone is the same as a start that moves with each answer, and it says so."""
    part, later = window_part(other), other.slide - window.slide
    if other.size != window.size or window.kind == "count":
        return part
    moved = f" Windows of the declared SLIDE whose start moves {abs(later):,} ms {'on' if later > 0 else 'back'} "
    return Part(part.name, part.sentence + moved + "with each answer are the same.")


def _grid(window: Window) -> Iterator[Window]:
    """Windows whose size and slide are multiples of a step, up to two slides longer than declared, or twice as long."""
    step = gcd(window.size, window.slide)
    if window.kind == "time" and step % 1000 == 0 and (window.size + 2 * window.slide) // 1000 <= COARSEST:
        step = 1000
    sizes = range(step, max(2 * window.size, window.size + 2 * window.slide) + 1, step)
    slides = range(step, max(3 * window.slide, 2 * window.size) + 1, step)
    if len(sizes) * len(slides) <= 4 * COARSEST**2:
        yield from (Window(size, slide, window.kind) for size, slide in product(sizes, slides))


def _read(seen: Seen, window: Window, step: int) -> list[Window]:
    """The slide that the recorded instants have, with the declared size and with one that is longer in proportion."""
    if window.kind != "time" or Report.WINDOW_CLOSE not in seen.case.semantics.report or step in (0, window.slide):
        return []
    sizes = {window.size, window.size * step // window.slide}
    return [Window(size, step, window.kind) for size in sorted(sizes) if size > 0]


def _step(seen: Seen) -> int:
    """The greatest common divisor of the differences between recorded instants (ms); 0 without them."""
    instants = (seen.recorded.instant(at) for at in range(seen.recorded.count))
    return gcd(*(after - before for before, after in pairwise(at for at in instants if at is not None)))


def _possible(seen: Seen, other: Window, step: int) -> bool:
    """Whether windows that close so often may have given the recorded answers, up to half of them lost or twice."""
    case, declared = seen.case, seen.case.query.windows[0].window
    if case.semantics.scope is Scope.RANGE and Report.WINDOW_CLOSE not in case.semantics.report:
        return other.slide == declared.slide  # a pure RANGE has no use for the slide
    if other.kind != "time" or Report.WINDOW_CLOSE not in case.semantics.report:
        return True
    if step % other.slide:
        return False
    first = other.slide if case.semantics.partial_head else other.size
    closes = max(0, (case.advanced_to - case.t0 - first) // other.slide + 1)
    if seen.recorded.by_row:
        return True
    suppressed = Report.NON_EMPTY in case.semantics.report or not case.semantics.notify_empty
    return closes >= seen.recorded.count // 2 and (suppressed or closes <= 2 * seen.recorded.count + 1)


def _apart(other: Window, window: Window) -> tuple[int, int, int]:
    return abs(other.size - window.size) + abs(other.slide - window.slide), other.size, other.slide
