"""Precision, recall and delay: one definition for every report policy (SEMANTICS, scores)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil

from streamgauge.model.answer import Answer
from streamgauge.model.report import ExpectedReport
from streamgauge.model.terms import Row
from streamgauge.model.verdict import WindowVerdict
from streamgauge.oracle.judging.compare import Overlap

DueTime = Callable[[ExpectedReport], int | None]
"""The monotonic ns at which a report became due, ``None`` when the run does not tell."""


@dataclass(frozen=True, slots=True)
class Unit:
    """One due report beside the answer that speaks of it; either is ``None`` for a surplus or a missed one.

    ``doubtful`` are the rows about which either answer is right: they count for neither side. ``unknown`` says why
    nobody can tell whether rows that differ are wrong.
    """

    report: ExpectedReport | None
    answer: Answer | None
    position: int | None
    both: Overlap
    doubtful: tuple[Row, ...] = ()
    unknown: str = ""


def ratio(part: int, whole: int, other: int) -> float:
    """``part / whole``; for a whole of 0 it is 0, unless the other side is empty too: then 1."""
    if whole:
        return part / whole
    return 0.0 if other else 1.0


def percentile(values: Sequence[float], share: int) -> float | None:
    """The smallest value that ``share`` percent of the values do not exceed; ``None`` of none."""
    return sorted(values)[ceil(len(values) * share / 100) - 1] if values else None


def judge(index: int, unit: Unit, due_time: DueTime, witnesses: int) -> WindowVerdict:
    """One unit scored; at most ``witnesses`` missing and surplus rows are kept. Missed and surplus ones score 0."""
    report, answer, both = unit.report, unit.answer, unit.both
    expected = len(report.rows) if report else 0
    actual = len(answer.added) - both.undecided if answer else 0
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
    if answer and answer.scope:
        return answer.scope[0], answer.scope[1], answer.instant
    return None, None, answer.instant if answer else None


def _delay(report: ExpectedReport | None, answer: Answer | None, due_time: DueTime) -> float | None:
    """Received less due, ms; ``None`` for a missed or surplus report and where the run has no clock."""
    if report is None or answer is None:
        return None
    due = due_time(report)
    return None if due is None else (answer.received - due) / 1e6


def totals(verdicts: Sequence[WindowVerdict]) -> tuple[float, float]:
    """Micro-averaged precision and recall of a run; (1, 1) when nothing was due and nothing said.

    A missed or surplus report without rows weighs one row, so that a run with one is never 1/1.
    """
    found = sum(window.true_positives for window in verdicts)
    actual = sum(window.actual for window in verdicts)
    wanted = sum(window.expected for window in verdicts)
    hollow = [window for window in verdicts if not window.expected and not window.actual and not window.recall]
    missed = sum(window.report is None for window in hollow)
    surplus = len(hollow) - missed
    return ratio(found, actual + surplus, wanted + missed), ratio(found, wanted + missed, actual + surplus)
