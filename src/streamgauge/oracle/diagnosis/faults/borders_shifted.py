"""The borders of windows are some ms off: all by the same amount, or each by its own (YABench's explanation).

The shifts are read from the answers as in gracious mode: the least ones under which each answer fits exactly. If every
window fits, two faults are proposed: the least shift that fits all windows, and a shift for each window, whose
description is as long as the choice among all borders.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from math import log2, prod

from streamgauge.model.report import DueReport
from streamgauge.model.semantics import R2S, Grain, Report
from streamgauge.model.verdict import Part
from streamgauge.oracle.diagnosis.models import Case, Fault, Seen
from streamgauge.oracle.judging.border_fits import Contents, fast_search
from streamgauge.oracle.judging.lifetimes import NotMonotoneError
from streamgauge.semantics.arrivals import Head, arrivals
from streamgauge.semantics.definition import operator
from streamgauge.semantics.due import candidates
from streamgauge.semantics.refusal import OutOfOrderError, RefusedError

SEEN = 2**62
"""A ``View.seen`` beyond every rank: only the borders in time decide."""


@dataclass(frozen=True, slots=True)
class Shift:
    """Ranges of a window's shifts of start and end (ms, inclusive) with equal answers, out of ``pairs`` candidates."""

    start: tuple[int, int]
    end: tuple[int, int]
    pairs: int

    @property
    def least(self) -> tuple[int, int]:
        """The smallest shift of the start, and of the end."""
        return _least(*self.start), _least(*self.end)


def _least(low: int, high: int) -> int:
    return 0 if low <= 0 <= high else min(low, high, key=abs)


def proposals(seen: Seen) -> Iterator[Fault]:
    """One shift for all windows, and a shift for each window; none if an answer fits under no borders."""
    shifts = _shifts(seen)
    least = [shift.least for shift in shifts.values()]
    moved = [shift for shift in least if any(shift)]
    if not moved:
        return
    # The intersection of all ranges: a single shift in it explains every window.
    low = max(border[0] for shift in shifts.values() for border in (shift.start, shift.end))
    high = min(border[1] for shift in shifts.values() for border in (shift.start, shift.end))
    if low <= high:
        same = _least(low, high)
        how = "late" if same > 0 else "early"
        part = Part(f"windows {abs(same):,} ms {how}", f"Every window starts and ends {abs(same):,} ms {how}.")
        # Half of the bits of a pair of borders, as one number moves both.
        choice = max(log2(shift.pairs) / 2 + 1 for shift in shifts.values())
        yield Fault(part, partial(_shifted, same=same), seen.case.t0, choice=choice)
    sentence = (
        f"The borders of {len(moved):,} of {len(shifts):,} windows are off, each by its own: starts by "
        f"{_range([start for start, _ in moved])} ms, ends by {_range([end for _, end in moved])} ms."
    )
    part = Part("borders of each window moved", sentence)
    # A bit for each window, whether it moved, and the choice among all borders for those that did.
    choice = len(shifts) + sum(log2(shift.pairs) for shift in shifts.values() if any(shift.least))
    yield Fault(part, partial(_each_shifted, shifts=shifts), seen.case.t0, choice=choice)


def _range(shifts: list[int]) -> str:
    return f"{min(shifts):,} to {max(shifts):,}"


def _shifts(seen: Seen) -> Mapping[int, Shift]:
    """The shift of each window by its instant (ms); empty if one fits nowhere, or answers cannot be paired."""
    case, windows, semantics = seen.case, seen.case.query.windows, seen.case.semantics
    if len(windows) != 1 or windows[0].window.kind != "time" or Report.WINDOW_CLOSE not in semantics.report:
        return {}
    if operator(case.query, semantics) is not R2S.RSTREAM or semantics.grain is not Grain.REPORT:
        return {}
    try:
        contents = Contents(case.query, semantics, case.stream.elements, case.t0)
        ranked = arrivals([Head.of(element) for element in contents.admitted], windows, semantics.tick)
        due = tuple(candidates(ranked, windows, semantics, case.t0, case.advanced_to))
        paired = _paired(seen, due)
        search = fast_search(case.query, semantics, contents, [report.views[0] for report in paired])
        if search is None:
            return {}
        shifts: dict[int, Shift] = {}
        for at, report in enumerate(paired):
            view = report.views[0]
            fit = search.fit(view, seen.recorded.rows(at), None)
            # One window that fits nowhere refutes the fault.
            if (fit.precision, fit.recall) != (1.0, 1.0):
                return {}
            pairs = prod(map(len, contents.candidates(view)))
            starts, ends = search.stretches.steady(contents.moved(view, fit.first, fit.last))
            start = starts[0] - view.first, starts[1] - view.first
            end = ends[0] - view.last, ends[1] - view.last
            shifts[report.instant] = Shift(start, end, pairs)
    except (RefusedError, OutOfOrderError, NotMonotoneError):
        return {}
    return shifts


def _paired(seen: Seen, due: tuple[DueReport, ...]) -> list[DueReport]:
    """The report of each answer: by its instant, or in order if as many are due; else empty."""
    named = [seen.recorded.instant(at) for at in range(seen.recorded.count)]
    at_instant = {report.instant: report for report in due}
    if named and all(instant in at_instant for instant in named):
        return [at_instant[instant] for instant in named if instant is not None]
    return list(due) if len(due) == len(named) and not any(instant is not None for instant in named) else []


def _shifted(case: Case, same: int) -> Case:
    return case.scoped(lambda _case, due: _between(due, same, same))


def _each_shifted(case: Case, shifts: Mapping[int, Shift]) -> Case:
    def scoping(_case: Case, due_report: DueReport) -> DueReport:
        shift = shifts.get(due_report.instant)
        return due_report if shift is None else _between(due_report, *shift.least)

    return case.scoped(scoping)


def _between(due_report: DueReport, start: int, end: int) -> DueReport:
    """The report with its window's borders moved by ``start`` and ``end`` (ms)."""
    view = due_report.views[0]
    # An end that moves later must also see arrivals that came after the close; ``seen`` would leave these out.
    moved = replace(view, first=view.first + start, last=view.last + end, seen=SEEN if end > 0 else view.seen)
    return replace(due_report, views=(moved,))
