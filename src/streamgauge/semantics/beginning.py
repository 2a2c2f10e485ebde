"""Where reports begin if no t0 is stated: one rule for engines, oracle and commands (docs/semantics.md, The beginning).

The t0 of a semantics is then only a point of the grid of its windows.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import lcm
from typing import Final

from streamgauge.model.query import StreamWindow
from streamgauge.model.run import Run
from streamgauge.model.semantics import Borders, Origin, Report, Semantics, Tick
from streamgauge.semantics.arrivals import first_close

FAR: Final = 10_000
"""Slides between t0 and the first element beyond which t0 is moved even if nothing is due in between."""

UNSTATED: Final = 0
"""The only t0 (ms) that also moves back: any other was chosen, and elements before it never count."""

_NEVER: Final = 2**62
_SILENT: Final = frozenset({Report.NON_EMPTY, Report.CONTENT_CHANGE})
"""Strategies under which windows before the first element are not due."""


def begun(
    windows: Sequence[StreamWindow], semantics: Semantics, first: int | None, answered: int | None = None
) -> Semantics:
    """The semantics with t0 near the ``first`` element (ms) and, if t0 alone does not suffice, ``since``.

    ``answered`` (ms) is the earliest instant of recorded answers: reports begin there if it is earlier, by at most FAR
    slides. ``Origin.FIRST`` is left unchanged.

    Worked example: size 10, slide 4, t0 = 0, the first element at 103. The windows from [96, 106) on contain it, so t0
    is 96, and the first report is at 106. With partial heads t0 is 88, the last point of the grid from which no window
    that contains the element is cut, and since is 104, because the reports at 92, 96 and 100 are about the time before.
    """
    if first is None or semantics.origin is Origin.FIRST:
        return semantics
    # Elements that are older than the first by the bound may still arrive.
    earliest = first - (semantics.lateness or 0)
    # A close at the first element's own time, [o, c), has content of before it only.
    since = earliest + (1 if _speaks_of_before(windows, semantics) else 0)
    far = _far(windows, semantics)
    if answered is not None and max(semantics.t0, since - far) <= answered < since:
        since, earliest = answered, min(earliest, answered)
    t0 = semantics.t0
    before = first < t0 == UNSTATED
    if before or first - t0 > far or _first_instant(windows, semantics) < since:
        latest = earliest if before else max(t0, _latest_start(windows, semantics, earliest, since))
        # By a multiple of all steps, every clock keeps its phase: t0 moves, and the instants of reports do not.
        step = lcm(semantics.time_unit, *_steps(windows, semantics))
        t0 += (latest - t0) // step * step
    moved = replace(semantics, t0=t0)
    if _first_instant(windows, moved) >= since:
        return moved
    return replace(moved, since=since if semantics.since is None else max(since, semantics.since))


def near(windows: Sequence[StreamWindow], semantics: Semantics, first: int | None) -> Semantics:
    """``begun``, but only if t0 is over FAR slides from the first element (ms).

    For a t0 that the user sees, so it is stated.
    """
    away = 0 if first is None else abs(first - semantics.t0)
    return begun(windows, semantics, first) if away > _far(windows, semantics) else semantics


def begun_run(run: Run, first: int | None) -> Run:
    """The run with reports that begin with its stream or answers.

    ``first`` is the first element's time (ms), if any.
    """
    header = run.header
    if first is None:
        first = after(header.advanced_to, header.semantics)
    answered = min((answer.instant for answer in run.answers if answer.instant is not None), default=None)
    semantics = begun(header.query.windows, header.semantics, first, answered)
    return replace(run, header=replace(header, semantics=semantics))


def after(horizon: int, semantics: Semantics) -> int:
    """A time (ms) of a first element with which no report is due up to the horizon, for a stream without elements."""
    return horizon + 1 + (semantics.lateness or 0)


def is_sent(instant: int, semantics: Semantics) -> bool:
    """Whether the report at an instant (ms) is sent, not only evaluated for later differences (``since``)."""
    return semantics.since is None or instant >= semantics.since


def awaited(windows: Sequence[StreamWindow], semantics: Semantics, t0: int, horizon: int) -> str:
    """A clause on the first window's close if it is after the ``horizon`` (ms), else an empty string."""
    if Report.WINDOW_CLOSE not in semantics.report:
        return ""
    since = t0 if semantics.since is None else semantics.since
    firsts = ((t0 + first_close(window, semantics), window.window.slide) for window in _timed(windows))
    # The first close of the grid at or after ``since``; the negated floor division rounds up.
    closes = [first + max(0, -((first - since) // slide)) * slide for first, slide in firsts]
    first = min(closes, default=horizon)
    return f"the first window closes at {first:,} ms" if first > horizon else ""


def all_closed(windows: Sequence[StreamWindow], last: int) -> int:
    """The time (ms) by which all windows that contain an element at ``last`` have closed."""
    return last + max((window.window.size for window in _timed(windows)), default=0)


def _far(windows: Sequence[StreamWindow], semantics: Semantics) -> int:
    """FAR slides, or FAR ticks of a time-driven clock, in ms."""
    # Then each time unit is an instant, whatever the slides are.
    ticks = semantics.tick is Tick.TIME and not semantics.report & {Report.WINDOW_CLOSE, Report.PERIODIC}
    steps = [] if ticks else _steps(windows, semantics)
    return FAR * min(steps, default=semantics.time_unit)


def _steps(windows: Sequence[StreamWindow], semantics: Semantics) -> list[int]:
    """The steps of the grid in ms, except the time unit."""
    slides = [window.window.slide for window in windows if window.window.kind != "count"]
    return slides if semantics.period is None else [*slides, semantics.period]


def _speaks_of_before(windows: Sequence[StreamWindow], semantics: Semantics) -> bool:
    """Whether the content of a report excludes elements at its instant."""
    if any(window.window.kind == "count" for window in windows):
        return False
    expires = Report.EXPIRATION in semantics.report
    return (semantics.borders is Borders.CLOSED_OPEN) is not expires


def _first_instant(windows: Sequence[StreamWindow], semantics: Semantics) -> int:
    """The first instant (ms) at which a report may be due without any element."""
    if semantics.report & _SILENT:
        return _NEVER
    if Report.EXPIRATION in semantics.report:
        return semantics.t0
    if Report.WINDOW_CLOSE in semantics.report:
        return semantics.t0 + min((first_close(window, semantics) for window in _timed(windows)), default=_NEVER)
    whole = min((window.window.size for window in _timed(windows)), default=0)
    return semantics.t0 + max(semantics.period or 0, 0 if semantics.partial_head else whole)


def _latest_start(windows: Sequence[StreamWindow], semantics: Semantics, earliest: int, since: int) -> int:
    """The latest start (ms) of the first window that leaves all reports from ``since`` on unchanged."""
    plain = Report.WINDOW_CLOSE in semantics.report and semantics.origin is Origin.FIXED and semantics.lateness is None
    if not plain or semantics.partial_head:
        # Partial heads and watermarks depend on windows before the first full one: a whole window and slide are kept.
        return earliest - max((window.window.size + window.window.slide for window in _timed(windows)), default=1)
    t0 = semantics.t0
    opened = (t0 - (t0 + size - since) // slide * slide for size, slide in _sizes(windows))
    return min((earliest, *opened))


def _sizes(windows: Sequence[StreamWindow]) -> Iterator[tuple[int, int]]:
    return ((window.window.size, window.window.slide) for window in _timed(windows))


def _timed(windows: Sequence[StreamWindow]) -> list[StreamWindow]:
    return [window for window in windows if window.window.kind != "count"]
