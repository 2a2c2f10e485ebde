"""Jumps in time: a gap between two elements of a live stream in which thousands of windows close.

A jump that would make too many reports due is refused before any is computed; usually a clock or a unit is wrong.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from streamgauge.model.query import StreamWindow
from streamgauge.model.semantics import Report, Semantics, Tick
from streamgauge.semantics.refusal import RefusedError

MAX_INSTANTS: Final = 5_000_000
"""Instants of a clock that one run, or one jump, may have."""

_MILLISECONDS: Final = 10**11
"""Numbers from here on look like milliseconds since 1970: as ms they are after March 1973, as s after 5138."""


class TimeJumpError(RefusedError):
    """Time jumps too far ahead; the message says how many reports would be due in between."""

    def __init__(self, before: int, after: int, instants: int, limit: int) -> None:
        super().__init__(
            f"time jumps from {before:,} to {after:,} ms: {instants:,} reports would be due in between, more than "
            f"{limit:,}; {_advice(before, after)}"
        )


def _advice(before: int, after: int) -> str:
    if before < _MILLISECONDS <= after:
        first = (
            f"the units look mixed: {after} is in milliseconds since 1970, {before} is not (seconds, or another "
            "start): use one unit and one start for all elements"
        )
    else:
        first = "check the time of this element, take a larger slide"
    return f"{first}, or ask again: a query begins with the first element that comes"


def is_quiet(semantics: Semantics) -> bool:
    """Whether instants with an empty or unchanged content have no report."""
    return Report.NON_EMPTY in semantics.report or Report.CONTENT_CHANGE in semantics.report


def clock_steps(windows: Sequence[StreamWindow], semantics: Semantics) -> list[int]:
    """The steps (ms) of the clocks that make reports due: slides, a period, or the time unit."""
    if Report.WINDOW_CLOSE in semantics.report:
        return [window.window.slide for window in windows if window.window.kind != "count"]
    timed = semantics.period is not None or semantics.tick is Tick.TIME
    return [semantics.period or semantics.time_unit] if timed else []


def refuse_jumps(
    windows: Sequence[StreamWindow], semantics: Semantics, now: int | None, times: Iterable[int], limit: int
) -> None:
    """As ``refuse_jump``, for times (ms) that come one after the other, from ``now`` on: the farthest jump counts."""
    before, after = 0, 0
    for time in times:
        if now is not None and time - now > after - before:
            before, after = now, time
        # Late elements go back without moving time, so they begin no jump.
        now = time if now is None else max(now, time)
    refuse_jump(windows, semantics, before, after, limit)


def refuse_jump(windows: Sequence[StreamWindow], semantics: Semantics, before: int, after: int, limit: int) -> None:
    """Raise TimeJumpError if more than ``limit`` reports are due between ``before`` and ``after`` (ms)."""
    # Evaluators skip the silent instants of a gap, so these cost nothing.
    if is_quiet(semantics):
        return
    instants = sum(max(0, after - before) // step for step in clock_steps(windows, semantics))
    if instants > limit:
        raise TimeJumpError(before, after, instants, limit)
