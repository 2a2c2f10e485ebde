"""Answers name another instant than their window's close: its start, or one that is a constant later or earlier."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from math import gcd

from streamgauge.model.semantics import Origin, Report
from streamgauge.model.verdict import Part
from streamgauge.oracle.diagnosis.models import Case, Fault, Said, Seen
from streamgauge.semantics.arrivals import first_close


def proposals(seen: Seen) -> Iterator[Fault]:
    """The window's start, and constants that bring every named instant to a close; none where some name no instant."""
    case, windows = seen.case, seen.case.query.windows
    if len(windows) != 1 or windows[0].window.kind != "time" or Report.WINDOW_CLOSE not in case.semantics.report:
        return
    named = [instant for at in range(seen.recorded.count) if (instant := seen.recorded.instant(at)) is not None]
    if not named or len(named) < seen.recorded.count:
        return
    part = Part("answers named by the window's start", "Every answer names the start of its window, not its close.")
    yield Fault(part, "instant", partial(_naming, name=_start))
    for offset in _offsets(case, named):
        later = "after" if offset > 0 else "before"
        sentence = f"Every answer names an instant {abs(offset):,} ms {later} the close of its window."
        part = Part(f"instants {offset:+,} ms", sentence)
        yield Fault(part, "instant", partial(_naming, name=partial(_moved, offset=offset)))


def _offsets(case: Case, named: list[int]) -> list[int]:
    """The least constants, later and earlier, by which every instant misses a close; a slide where none does.

    Where t0 is searched, closes may be at any time unit: the offset is what is left of one.
    """
    window = case.query.windows[0].window
    step = window.slide
    if case.semantics.origin is Origin.SEARCH:
        step = gcd(step, case.semantics.time_unit)
    missed = {(instant - case.t0 - first_close(case.query.windows[0], case.semantics)) % step for instant in named}
    if len(missed) > 1:
        return []
    (rest,) = missed
    return [rest, rest - step] if rest else [window.slide, -window.slide]


def _naming(case: Case, name: Callable[[Said], int]) -> Case:
    """The case whose reports name other instants."""
    return replace(case, tellings=(*case.tellings, partial(_named, name=name)))


def _named(sayings: tuple[Said, ...], name: Callable[[Said], int]) -> tuple[Said, ...]:
    return tuple(replace(saying, instant=name(saying)) for saying in sayings)


def _start(saying: Said) -> int:
    return saying.due.views[0].start


def _moved(saying: Said, offset: int) -> int:
    return saying.instant + offset
