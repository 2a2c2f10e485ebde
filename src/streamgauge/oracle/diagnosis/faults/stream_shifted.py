"""The engine shifts the stream's times by a constant, or truncates them."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from streamgauge.model.verdict import Part
from streamgauge.oracle.diagnosis.models import Case, Fault, Seen, Stream

UNITS = (10, 100, 1000)
"""Units to which times are truncated (ms)."""


def proposals(seen: Seen) -> Iterator[Fault]:
    """Shifts by a time unit and by a slide either way, and truncated times."""
    case = seen.case
    slides = {window.window.slide for window in case.query.windows if window.window.kind != "count"}
    for step in sorted({case.semantics.time_unit, *slides}):
        for shift, how in ((-step, "earlier"), (step, "later")):
            sentence = f"The engine takes every element to be {step:,} ms {how} than it is."
            part = Part(f"times shifted by {shift} ms", sentence)
            yield Fault(part, partial(Case.on, stream=_shifted(case.stream, shift)), family="stream")
    for unit in UNITS:
        stream = Stream(replace(element, time=element.time - element.time % unit) for element in case.stream.elements)
        if stream.times != case.stream.times:
            part = Part(f"times cut to {unit} ms", f"The engine keeps times to {unit:,} ms only.")
            yield Fault(part, partial(Case.on, stream=stream), family="stream")


def _shifted(stream: Stream, shift: int) -> Stream:
    return Stream(replace(element, time=element.time + shift) for element in stream.elements)
