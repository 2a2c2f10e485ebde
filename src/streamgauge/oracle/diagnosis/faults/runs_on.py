"""The engine goes on after the stream's end, or stops before it."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from streamgauge.model.verdict import Part
from streamgauge.oracle.diagnosis.models import Case, Fault, Seen

MAX_RUNS_ON = 10


def proposals(seen: Seen) -> Iterator[Fault]:
    """Up to ten slides more."""
    slides = [window.window.slide for window in seen.case.query.windows if window.window.kind != "count"]
    for more in range(1, MAX_RUNS_ON + 1) if slides else ():
        by = more * slides[0]
        part = Part(
            f"goes on for {by} ms", f"The engine goes on reporting for {by:,} ms after the stream's time ended."
        )
        yield Fault(part, "end", partial(_further, by=by))


def _further(case: Case, by: int) -> Case:
    return replace(case, advanced_to=case.advanced_to + by)
