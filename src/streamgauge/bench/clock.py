"""When a report became due on the wall clock, read from what the feeder recorded."""

from bisect import bisect_left
from collections.abc import Callable

from streamgauge.model.report import ExpectedReport
from streamgauge.model.run import Run
from streamgauge.model.semantics import Borders, Report, Tick

ADVANCE = -1
"""The sequence number of a fed record that is an ``advance``, not an element."""


def due_time(run: Run) -> Callable[[ExpectedReport], int | None]:
    """The monotonic ns at which each report of this run was due.

    In paced runs start + (instant - begin) / factor counts; otherwise the end of handing over the element or
    the advance that made the report due.
    """
    header = run.header
    if header.factor is not None:
        factor, started, begin = header.factor, header.started, header.begin
        return lambda report: started + round((report.due.instant - begin) * 1e6 / factor)
    return _handed(run)


def _handed(run: Run) -> Callable[[ExpectedReport], int | None]:
    """Due times as fast as possible: the first record that shows time has come far enough."""
    shows: list[int] = []
    greatest = -(2**62)
    before_ticks = _needs_later(run)
    for fed in run.fed:
        shown = fed.time if fed.sequence == ADVANCE or not before_ticks else fed.time - 1
        greatest = max(greatest, shown)
        shows.append(greatest)
    by_rank = _by_element(run)

    def due(report: ExpectedReport) -> int | None:
        if by_rank is not None:
            position = bisect_left(by_rank, report.due.seen)
        else:
            position = bisect_left(shows, report.due.instant)
        return run.fed[position].handed if position < len(run.fed) else None

    return due


def _needs_later(run: Run) -> bool:
    """Whether an element of the instant itself does not yet make the report due: one later, or an advance, does."""
    semantics = run.header.semantics
    closes = bool(semantics.report & {Report.WINDOW_CLOSE, Report.PERIODIC}) or semantics.tick is Tick.TIME
    return semantics.borders is not Borders.CLOSED_OPEN if closes else True


def _by_element(run: Run) -> list[int] | None:
    """Under element by element ticks, how many arrivals were handed over after each record; ``None`` otherwise."""
    semantics = run.header.semantics
    if semantics.report & {Report.WINDOW_CLOSE, Report.PERIODIC} or semantics.tick not in {Tick.TUPLE, Tick.ELEMENT}:
        return None
    counts: list[int] = []
    total = 0
    for fed in run.fed:
        total += 0 if fed.sequence == ADVANCE else (fed.size if semantics.tick is Tick.TUPLE else 1)
        counts.append(total)
    return counts


def feeder_lateness(run: Run) -> tuple[float, float]:
    """How late the feeder itself was, ms: (mean, max) of handed over less planned."""
    late = [(fed.handed - fed.planned) / 1e6 for fed in run.fed if fed.sequence != ADVANCE]
    return (sum(late) / len(late), max(late)) if late else (0.0, 0.0)


def last_answer(run: Run) -> float | None:
    """The arrival of the last answer after the stream's start, ms (YABench, table 2)."""
    if not run.answers:
        return None
    return (max(answer.received for answer in run.answers) - run.header.started) / 1e6
