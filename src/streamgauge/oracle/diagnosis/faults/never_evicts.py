"""Windows never evict, or evict one slide late."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from streamgauge.model.report import DueReport, View
from streamgauge.model.verdict import Part
from streamgauge.oracle.diagnosis.models import Case, Fault, Seen


def proposals(seen: Seen) -> Iterator[Fault]:
    """No eviction, and eviction one slide late."""
    never = Part("nothing evicted", "Nothing is ever evicted: answers are over everything since t0.")
    yield Fault(never, partial(Case.scoped, scoping=_back_to_t0))
    slides = [window.window.slide for window in seen.case.query.windows if window.window.kind == "time"]
    if slides:
        late = Part("eviction one slide late", "What leaves a window is evicted one slide late.")
        yield Fault(late, partial(Case.scoped, scoping=partial(_earlier, back=slides[0])))


def _back_to_t0(case: Case, due_report: DueReport) -> DueReport:
    return replace(due_report, views=tuple(_from(view, case.t0) for view in due_report.views))


def _earlier(case: Case, due_report: DueReport, back: int) -> DueReport:
    return replace(due_report, views=tuple(_from(view, max(case.t0, view.first - back)) for view in due_report.views))


def _from(view: View, first: int) -> View:
    # ``after=0`` as well: borders of system time must not leave out the arrivals that stay.
    return replace(view, start=min(view.start, first), first=min(first, view.first), after=0)
