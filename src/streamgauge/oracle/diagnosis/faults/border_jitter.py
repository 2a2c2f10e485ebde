"""Window borders jitter: each may move by at most one time unit, and elements on it land on the other side.

Windows that share a border share its jitter. Claimed only when fewer borders moved than half of the reports.
"""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import replace
from itertools import product

from streamgauge.model.phrases import counted
from streamgauge.model.report import DueReport
from streamgauge.model.semantics import R2S, Report
from streamgauge.model.verdict import Part
from streamgauge.oracle.diagnosis.models import Carry, Case, ModelReport, Rows, Seen, Simulation, Sway, Swaying
from streamgauge.semantics.definition import operator, streamed


def proposals(seen: Seen) -> Iterator[Sway]:
    """One sway, for a query over one time-based window; borders move by up to a time unit."""
    windows = seen.case.query.windows
    if len(windows) == 1 and windows[0].window.kind == "time":
        yield Sway(_swaying, _describe)


def _describe(moved: int, reports: int) -> Part:
    sentence = (
        f"Borders jitter by up to one time unit: {counted(moved, 'border')} moved, over {counted(reports, 'report')}; "
        "elements there land in the neighbouring window."
    )
    return Part(f"border jitter at {counted(moved, 'border')}", sentence)


def _swaying(simulator: Simulation, case: Case) -> Swaying | None:
    """The reports that are possible with moved borders; ``None`` for semantics whose reports follow no close."""
    strategies = case.semantics.report
    if not strategies <= {Report.WINDOW_CLOSE, Report.NON_EMPTY} or case.gate or case.report_rules:
        return None
    return _Jitter(simulator, case).swaying()


class _Jitter:
    def __init__(self, simulator: Simulation, case: Case) -> None:
        self.simulator, self.case = simulator, case
        self.window = case.query.windows[0].window
        self.shared = self.window.size == self.window.slide
        self.due = simulator.candidates(case)
        self.rows_at = simulator.rows_at(case)
        self.r2s = operator(case.query, case.semantics)

    def swaying(self) -> Swaying:
        reports = tuple(ModelReport(due.instant, self.rows_at(due) or (), due) for due in self.due)
        return Swaying(reports, self.emissions, (0, ()), self._choices())

    def _choices(self) -> int:
        """The number of single moves of a border past an element, over all reports."""
        # Less one each: not to move is not a choice that a description would have to name.
        ends = sum(len(self._moves(due.views[0].last + 1)) - 1 for due in self.due)
        # Tumbling windows share their borders: only the first one has a start of its own.
        starts = sum(len(self._moves(due.views[0].first)) - 1 for due in self.due[: 1 if self.shared else None])
        return starts + ends

    def emissions(self, i: int, carry: Carry) -> Iterator[tuple[int, Carry, ModelReport | None]]:
        """The possible values of report ``i``: each move of its end, and of its start if it is not the end before.

        Carries (move of the shared border, answer before), because Istream and Dstream depend on the answer before.
        """
        assert isinstance(carry, tuple)
        begun, before = carry
        due = self.due[i]
        starts = (begun,) if self.shared and i else self._moves(due.views[0].first)
        for start, end in product(starts, self._moves(due.views[0].last + 1)):
            # A shared border was paid for at the report before, whose end it is.
            cost = (end != 0) + (start != 0 and not (self.shared and i))
            report, now = self._report(due, start, end, before)
            yield cost, (end if self.shared else 0, now), report

    def _moves(self, border: int) -> tuple[int, ...]:
        """The moves of a border (ms) that change its window: 0, and just past each element within one time unit."""
        unit, times = self.case.semantics.time_unit, self.case.stream.times
        # Only these moves change a content; between two elements all are equal.
        near = times[bisect_left(times, border - unit) : bisect_left(times, border + unit)]
        # Worked example: a border at 10 and elements at 9 and 10. Moved to 9, by -1, the window no longer has the
        # element at 9; moved to 11, by 1, it has the one at 10 as well.
        return tuple(dict.fromkeys((0, *(time - border + (time >= border) for time in near))))

    def _report(self, due_report: DueReport, start: int, end: int, before: Rows) -> tuple[ModelReport | None, Rows]:
        view = due_report.views[0]
        last = view.last + end
        seen = self.simulator.seen(self.case, last) if end else view.seen
        moved = replace(
            due_report, views=(replace(view, first=max(self.case.t0, view.first + start), last=last, seen=seen),)
        )
        rows = self.rows_at(moved)
        if rows is None:
            return None, before
        # Under Rstream the answer before does not matter: without it more states are equal.
        now = rows if self.r2s is not R2S.RSTREAM else ()
        sent = list(
            streamed(
                ((due_report, before), (due_report, rows)),
                self.r2s,
                replace(self.case.semantics, notify_empty=True, since=None),
            )
        )
        report = ModelReport(due_report.instant, sent[-1][1], moved)
        return (report if report.rows or self.case.semantics.notify_empty else None), now
