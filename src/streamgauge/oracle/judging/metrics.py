"""Precision, recall and delay: one definition for every report policy (docs/semantics.md, Scores)."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import accumulate
from math import ceil

from streamgauge.model.answer import Answer
from streamgauge.model.element import StreamElement
from streamgauge.model.report import DueReport, ExpectedReport
from streamgauge.model.run import Run
from streamgauge.model.semantics import Borders, Report, Semantics, Tick
from streamgauge.model.terms import Row
from streamgauge.model.verdict import WindowVerdict
from streamgauge.oracle.worlds.membership import Overlap
from streamgauge.semantics.arrivals import by_triple

ADVANCE = -1
"""The sequence number of fed records that are an ``advance`` rather than an element."""

DueTime = Callable[[ExpectedReport], int | None]
"""The monotonic ns at which a report became due, ``None`` if the run does not show it."""


def due_time(run: Run) -> DueTime:
    """The monotonic ns at which each report of this run was due.

    In paced runs start + (instant - begin) / factor counts; otherwise the end of handing over the element or
    the advance that made the report due.
    """
    header = run.header
    if header.factor is not None:
        factor, started, begin = header.factor, header.started, header.begin
        return lambda report: started + round((report.due.instant - begin) * 1e6 / factor)
    return _handed(run)


def _handed(run: Run) -> DueTime:
    """Due times of an unpaced run: the end of handing over the first record that made the report due."""
    windows, semantics = run.header.query.windows, run.header.semantics
    here, later = _shown(run, 0), _shown(run, 1)
    arrived = _arrived(run, by_triple(windows, semantics.tick))
    at_time = [place for place, window in enumerate(windows) if window.window.kind != "count"]

    def due(report: ExpectedReport) -> int | None:
        record = trigger(report.due, semantics, at_time)
        shows = later if record is Trigger.LATER else here
        # Sorted, because the latest time known to have passed never decreases.
        place = bisect_left(shows, report.due.instant)
        if record is Trigger.ARRIVAL:
            # Both have to be true: time has come to the instant, and so many arrivals were handed over.
            place = max(place, bisect_left(arrived, report.due.seen))
        return run.fed[place].handed if place < len(run.fed) else None

    return due


class Trigger(Enum):
    """The record that makes a report due: an arrival, the first one at its instant, or the first one after it."""

    ARRIVAL = "arrival"
    SAME = "same instant"
    LATER = "later"


def trigger(due_report: DueReport, semantics: Semantics, at_time: Sequence[int]) -> Trigger:
    """The trigger of a report; ``at_time`` are the positions of the time-based windows, whose closes wait for time."""
    if Report.EXPIRATION in semantics.report:
        # An expiring fact ends before [initial, final)'s final, so anything at that instant may still come; under
        # (initial, final] it is shown once more at its end.
        return Trigger.LATER if semantics.borders is Borders.CLOSED_OPEN else Trigger.SAME
    clocked = bool(semantics.report & {Report.WINDOW_CLOSE, Report.PERIODIC}) or semantics.tick is Tick.TIME
    if Report.WINDOW_CLOSE in semantics.report and len(at_time) < len(due_report.views):
        clocked = any(due_report.views[place].end == due_report.instant for place in at_time)
        if not clocked:
            return Trigger.ARRIVAL
    if clocked:
        return Trigger.SAME if semantics.borders is Borders.CLOSED_OPEN else Trigger.LATER
    return Trigger.ARRIVAL if semantics.tick in {Tick.TUPLE, Tick.ELEMENT} else Trigger.LATER


def _shown(run: Run, behind: int) -> list[int]:
    """For each record, the latest instant (ms) known to have passed.

    An element proves only ``behind`` ms before its own. More elements of the same time may follow an element, while an
    advance to t says that none will.
    """
    times = (fed.time if fed.sequence == ADVANCE else fed.time - behind for fed in run.fed)
    return list(accumulate(times, max))


def _arrived(run: Run, triples: bool) -> list[int]:
    """For each record, the number of triples (else of elements) handed over so far."""
    return list(accumulate(0 if fed.sequence == ADVANCE else fed.size if triples else 1 for fed in run.fed))


def feeder_lateness(run: Run) -> tuple[float, float]:
    """(mean, max) of the feeder's own lateness in ms: handed over minus planned."""
    late = [(fed.handed - fed.planned) / 1e6 for fed in run.fed if fed.sequence != ADVANCE]
    return (sum(late) / len(late), max(late)) if late else (0.0, 0.0)


def last_answer(run: Run) -> float | None:
    """The arrival of the last answer in ms after the stream's start (YABench, table 2); ``None`` without answers."""
    if not run.answers:
        return None
    return (max(answer.received for answer in run.answers) - run.header.started) / 1e6


MS_NS = 1_000_000
"""Nanoseconds of a millisecond."""


def by_arrival(run: Run, elements: Sequence[StreamElement]) -> tuple[Run, tuple[StreamElement, ...]]:
    """The run and its handed-over elements under arrival time: ms since the feed started."""
    times = arrival_times(run)
    arrived = tuple(replace(element, time=times[element.sequence]) for element in elements if element.sequence in times)
    last = max((fed.handed for fed in run.fed), default=run.header.started)
    return replace(run, header=replace(run.header, advanced_to=_rounded(run)(last), begin=0, factor=1.0)), arrived


def arrival_times(run: Run) -> dict[int, int]:
    """Sequence numbers to times of hand-over, in ms since the feed started."""
    rounded = _rounded(run)
    return {fed.sequence: rounded(fed.handed) for fed in run.fed if fed.sequence != ADVANCE}


def _rounded(run: Run) -> Callable[[int], int]:
    """Rounds a clock reading (ns) to whole ms, without moving it across a border.

    Worked example: 4.2 ms and a window that ends at 4. Under [o, c) it becomes 4, which is outside as 4.2 is. Under
    (o, c] the floor 4 would be inside, so it becomes 5.
    """
    started, borders = run.header.started, run.header.semantics.borders
    if borders is Borders.CLOSED_OPEN:
        return lambda handed: (handed - started) // MS_NS
    # Rounded up: -(-4.2 // 1) is 5.
    return lambda handed: -((started - handed) // MS_NS)


@dataclass(frozen=True, slots=True)
class Unit:
    """A due report with its answer; ``report`` is ``None`` for a surplus answer, ``answer`` for a missed report.

    ``position`` is the answer's place in the run. ``doubtful`` are the rows by which a legal answer differs from the
    evaluator's own; ``unknown`` says why it cannot be decided whether differing rows are wrong.
    """

    report: ExpectedReport | None
    answer: Answer | None
    position: int | None
    both: Overlap
    doubtful: tuple[Row, ...] = ()
    unknown: str = ""


def ratio(part: int, whole: int, other: int) -> float:
    """``part / whole``; if ``whole`` is 0, then 1 if ``other`` is 0 too, else 0."""
    if whole:
        return part / whole
    return 0.0 if other else 1.0


def percentile(values: Sequence[float], share: int) -> float | None:
    """The smallest value that at least ``share`` (1 to 100) percent of the values do not exceed.

    ``None`` without values.
    """
    # The nearest rank: of 10 values the median is the 5th and the 99th percentile the 10th; nothing is interpolated.
    return sorted(values)[ceil(len(values) * share / 100) - 1] if values else None


def judge(
    index: int, unit: Unit, due_time: DueTime, witnesses: int, sizes: tuple[int, int] | None = None
) -> WindowVerdict:
    """The score of one unit, with at most ``witnesses`` missing and surplus rows.

    Missed and surplus reports score 0. ``sizes`` are the numbers of expected and of received rows where the unit does
    not have the rows.
    """
    report, answer, both = unit.report, unit.answer, unit.both
    expected, actual = sizes or (len(report.rows) if report else 0, len(answer.added) if answer else 0)
    silent = report is None or answer is None
    start, end, instant = _scope(report, answer)
    return WindowVerdict(
        index=index,
        start=start,
        end=end,
        instant=instant,
        report=unit.position,
        precision=0.0 if silent else ratio(both.common, actual, expected),
        recall=0.0 if silent else ratio(both.common, expected, actual),
        true_positives=both.common,
        expected=expected,
        actual=actual,
        content=report.content if report else 0,
        delay=_delay(report, answer, due_time),
        missing=tuple(both.missing[:witnesses]),
        surplus=tuple(both.surplus[:witnesses]),
        due=report is not None,
        undecided=len(unit.doubtful),
        doubtful=tuple(unit.doubtful[:witnesses]),
    )


def _scope(report: ExpectedReport | None, answer: Answer | None) -> tuple[int | None, int | None, int | None]:
    if report:
        return report.due.start, report.due.end, report.due.instant
    assert answer is not None  # a unit has one of both
    return *(answer.scope or (None, None)), answer.instant


def _delay(report: ExpectedReport | None, answer: Answer | None, due_time: DueTime) -> float | None:
    """Received minus due in ms; ``None`` for a missed or surplus report, and if the due time is unknown."""
    if report is None or answer is None:
        return None
    due = due_time(report)
    return None if due is None else (answer.received - due) / 1e6


@dataclass(slots=True)
class Totals:
    """The sums over window verdicts, as they are added one by one; ``max_delay`` in ms."""

    positives: int = 0
    actual: int = 0
    expected: int = 0
    wrong: int = 0
    missed: int = 0
    surplus: int = 0
    late: int = 0
    undecided: int = 0
    max_delay: float | None = None
    _missed_empty: int = 0
    _surplus_empty: int = 0

    def add(self, window: WindowVerdict) -> None:
        """Add the counts of a window."""
        self.positives += window.true_positives
        self.actual += window.actual
        self.expected += window.expected
        self.wrong += not window.right
        self.missed += window.report is None
        self.surplus += not window.due
        self.late += window.late
        self.undecided += window.undecided
        if window.delay is not None and (self.max_delay is None or window.delay > self.max_delay):
            self.max_delay = window.delay
        if not window.expected and not window.actual and not window.recall:
            self._missed_empty += window.report is None
            self._surplus_empty += window.report is not None

    @property
    def scores(self) -> tuple[float, float]:
        """Micro-averaged precision and recall; (1, 1) if nothing was due and nothing was answered.

        A missed or surplus report without rows counts as one row, so that a run with one is never 1/1.
        """
        actual, expected = self.actual + self._surplus_empty, self.expected + self._missed_empty
        return ratio(self.positives, actual, expected), ratio(self.positives, expected, actual)


def totals(verdicts: Iterable[WindowVerdict]) -> tuple[float, float]:
    """Micro-averaged precision and recall of window verdicts (``Totals.scores``)."""
    sums = Totals()
    for window in verdicts:
        sums.add(window)
    return sums.scores
