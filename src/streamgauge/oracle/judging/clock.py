"""When a report became due on the wall clock, read from what the feeder recorded."""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from enum import Enum
from itertools import accumulate

from streamgauge.model.report import DueReport, ExpectedReport
from streamgauge.model.run import Run
from streamgauge.model.semantics import Borders, Report, Semantics, Tick
from streamgauge.semantics.order import by_triple

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
    """Due times as fast as possible: the first record by which time and arrivals have come far enough."""
    windows, semantics = run.header.query.windows, run.header.semantics
    here, later = _shown(run, 0), _shown(run, 1)
    arrived = _arrived(run, by_triple(windows, semantics.tick))
    at_time = [place for place, each in enumerate(windows) if each.window.kind != "count"]

    def due(report: ExpectedReport) -> int | None:
        trigger = _trigger(report.due, semantics, at_time)
        shows = later if trigger is Trigger.LATER else here
        place = bisect_left(shows, report.due.instant)
        if trigger is Trigger.ARRIVAL:
            place = max(place, bisect_left(arrived, report.due.seen))
        return run.fed[place].handed if place < len(run.fed) else None

    return due


class Trigger(Enum):
    """The cause of a due report: an arrival, an element or advance of its instant, or one that is later."""

    ARRIVAL = "arrival"
    SAME = "same instant"
    LATER = "later"


def _trigger(due: DueReport, semantics: Semantics, at_time: Sequence[int]) -> Trigger:
    """``at_time`` are the places of the windows that are measured in time, whose closes wait for the clock."""
    if Report.EXPIRATION in semantics.report:
        return Trigger.LATER if semantics.borders is Borders.CLOSED_OPEN else Trigger.SAME
    clocked = bool(semantics.report & {Report.WINDOW_CLOSE, Report.PERIODIC}) or semantics.tick is Tick.TIME
    if Report.WINDOW_CLOSE in semantics.report and len(at_time) < len(due.views):
        clocked = any(due.views[place].end == due.instant for place in at_time)
        if not clocked:
            return Trigger.ARRIVAL
    if clocked:
        return Trigger.SAME if semantics.borders is Borders.CLOSED_OPEN else Trigger.LATER
    return Trigger.ARRIVAL if semantics.tick in {Tick.TUPLE, Tick.ELEMENT} else Trigger.LATER


def _shown(run: Run, behind: int) -> list[int]:
    """After each record, up to which instant (ms) time has come; an element shows it only ``behind`` its own time."""
    times = (fed.time if fed.sequence == ADVANCE else fed.time - behind for fed in run.fed)
    return list(accumulate(times, max))


def _arrived(run: Run, triples: bool) -> list[int]:
    """After each record, how many triples (or elements) were handed over."""
    return list(accumulate(0 if fed.sequence == ADVANCE else fed.size if triples else 1 for fed in run.fed))


def feeder_lateness(run: Run) -> tuple[float, float]:
    """How late the feeder itself was, ms: (mean, max) of handed over less planned."""
    late = [(fed.handed - fed.planned) / 1e6 for fed in run.fed if fed.sequence != ADVANCE]
    return (sum(late) / len(late), max(late)) if late else (0.0, 0.0)


def last_answer(run: Run) -> float | None:
    """The arrival of the last answer after the stream's start, ms (YABench, table 2)."""
    if not run.answers:
        return None
    return (max(answer.received for answer in run.answers) - run.header.started) / 1e6
