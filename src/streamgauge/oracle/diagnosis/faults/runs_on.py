"""The engine goes on reporting after the horizon."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from streamgauge.model.verdict import Part
from streamgauge.oracle.diagnosis.models import Case, Fault, Seen

MAX_SLIDES = 10
"""Slides after the horizon up to which the engine may go on."""


def proposals(seen: Seen) -> Iterator[Fault]:
    """Horizons that are later by one to ``MAX_SLIDES`` slides."""
    slides = [window.window.slide for window in seen.case.query.windows if window.window.kind != "count"]
    for more in range(1, MAX_SLIDES + 1) if slides else ():
        by = more * slides[0]
        part = Part(
            f"goes on for {by} ms", f"The engine goes on reporting for {by:,} ms after the stream's time ended."
        )
        yield Fault(part, partial(_further, by=by))


def _further(case: Case, by: int) -> Case:
    return replace(case, advanced_to=case.advanced_to + by)
