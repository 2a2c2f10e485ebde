"""Answers name another instant than their window's close: its start, or one at a constant distance from the close."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from math import gcd

from streamgauge.model.semantics import Origin, Report
from streamgauge.model.verdict import Part
from streamgauge.oracle.diagnosis.models import Case, Fault, ModelReport, Seen
from streamgauge.semantics.arrivals import first_close


def proposals(seen: Seen) -> Iterator[Fault]:
    """The window's start, and constants that map every named instant to a close; none if an answer names none."""
    case, windows = seen.case, seen.case.query.windows
    if len(windows) != 1 or windows[0].window.kind != "time" or Report.WINDOW_CLOSE not in case.semantics.report:
        return
    named = [instant for at in range(seen.recorded.count) if (instant := seen.recorded.instant(at)) is not None]
    # Answers without instants fit any name.
    if not named or len(named) < seen.recorded.count:
        return
    part = Part("answers named by the window's start", "Every answer names the start of its window, not its close.")
    yield Fault(part, partial(_naming, name=_start))
    for offset in _offsets(case, named):
        later = "after" if offset > 0 else "before"
        sentence = f"Every answer names an instant {abs(offset):,} ms {later} the close of its window."
        part = Part(f"instants {offset:+,} ms", sentence)
        yield Fault(part, partial(_naming, name=partial(_moved, offset=offset)))


def _offsets(case: Case, named: list[int]) -> list[int]:
    """The smallest constants by which all instants miss a close, after it and before it; a slide if they miss by 0.

    If t0 is searched, closes may be at any multiple of the time unit, so offsets are modulo a time unit.
    """
    window = case.query.windows[0].window
    step = window.slide
    if case.semantics.origin is Origin.SEARCH:
        step = gcd(step, case.semantics.time_unit)
    # Worked example: closes at 10, 20 and 30 s and answers that name 13, 23 and 33 s. All miss by 3 s modulo the
    # slide, so they may be 3 s after their close, or 7 s before the next one.
    missed = {(instant - case.t0 - first_close(case.query.windows[0], case.semantics)) % step for instant in named}
    if len(missed) > 1:
        return []
    (rest,) = missed
    return [rest, rest - step] if rest else [window.slide, -window.slide]


def _naming(case: Case, name: Callable[[ModelReport], int]) -> Case:
    """The case whose reports name the instants that ``name`` gives."""
    return replace(case, report_rules=(*case.report_rules, partial(_named, name=name)))


def _named(reports: tuple[ModelReport, ...], name: Callable[[ModelReport], int]) -> tuple[ModelReport, ...]:
    return tuple(replace(report, instant=name(report)) for report in reports)


def _start(report: ModelReport) -> int:
    return report.due.views[0].start


def _moved(report: ModelReport, offset: int) -> int:
    return report.instant + offset
