"""Late elements are processed, or all elements out of order are dropped."""

from collections.abc import Iterator
from dataclasses import replace

from streamgauge.model.element import StreamElement
from streamgauge.model.verdict import Part
from streamgauge.oracle.diagnosis.models import Case, Fault, Seen, Stream


def proposals(seen: Seen) -> Iterator[Fault]:
    """Both faults, for semantics with a lateness bound."""
    if seen.case.semantics.lateness is None:
        return
    yield Fault(Part("late elements processed", "Elements that come too late are processed."), _all)
    dropped = Part("out of order dropped", "Every element that is out of order is dropped, late or not.")
    yield Fault(dropped, _ordered)


def _all(case: Case) -> Case:
    ordered = sorted(case.stream.elements, key=lambda element: (element.time, element.sequence))
    # Renumbered in the order of time, so that no element is late and none is out of order.
    stream = Stream(replace(element, sequence=at) for at, element in enumerate(ordered))
    return replace(case.under(lateness=None), stream=stream)


def _ordered(case: Case) -> Case:
    kept: list[StreamElement] = []
    for element in sorted(case.stream.elements, key=lambda element: element.sequence):
        if not kept or element.time >= kept[-1].time:
            kept.append(element)
    return replace(case.under(lateness=None), stream=Stream(kept))
