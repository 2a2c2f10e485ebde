"""System time and application time: what arrives, in which order it counts, and what is late."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from streamgauge.model.element import StreamElement
from streamgauge.model.query import Window
from streamgauge.model.semantics import Borders, Origin, Report, Semantics, Tick
from streamgauge.model.terms import Triple
from streamgauge.semantics.refusal import OutOfOrderError


@dataclass(frozen=True, slots=True)
class Arrival:
    """What one tick may add: some triples at one application time (ms); its position in the stream is its rank."""

    time: int
    triples: tuple[Triple, ...]


def origins(semantics: Semantics, window: Window, first: int | None) -> tuple[int, ...]:
    """The candidates for t0 in ms, ascending (CSRBench, section 6.1); ``first`` is the first element's time."""
    if semantics.origin is Origin.FIRST and first is not None:
        return (first - first % semantics.time_unit,)
    if semantics.origin is Origin.SEARCH:
        return tuple(range(semantics.t0, semantics.t0 + window.size + 1, semantics.time_unit))
    return (semantics.t0,)


def admit(
    elements: Iterable[StreamElement], semantics: Semantics, window: Window, t0: int
) -> tuple[list[StreamElement], list[StreamElement]]:
    """The elements that count, by application time, and the late ones; OutOfOrderError without a bound.

    With a lateness bound the watermark is the greatest time seen less the bound; late is what falls below a
    report that the watermark has already made due.
    """
    admitted: list[StreamElement] = []
    late: list[StreamElement] = []
    frontier = _frontier(semantics, window, t0)
    greatest: int | None = None
    for element in sorted(elements, key=lambda element: element.sequence):
        if greatest is not None and element.time < greatest:
            if semantics.lateness is None:
                raise OutOfOrderError(
                    f"element {element.sequence} of {element.stream} goes back from {greatest} to {element.time} ms: "
                    "sort the stream or declare a lateness bound"
                )
            if element.time < frontier(greatest - semantics.lateness):
                late.append(element)
                continue
        greatest = element.time if greatest is None else max(greatest, element.time)
        admitted.append(element)
    return sorted(admitted, key=lambda element: (element.time, element.sequence)), late


def _frontier(semantics: Semantics, window: Window, t0: int) -> Callable[[int], int]:
    """The time (ms) below which nothing may come any more, as a function of the watermark."""
    closed = 0 if semantics.borders is Borders.CLOSED_OPEN else 1
    if Report.WINDOW_CLOSE in semantics.report:
        first = window.slide if semantics.partial_head else window.size
        return lambda watermark: _last(t0 + first, window.slide, watermark - closed) + closed
    if semantics.period is not None:
        period = semantics.period
        return lambda watermark: _last(t0 + period, period, watermark - closed) + closed
    return lambda watermark: watermark


def _last(first: int, step: int, limit: int) -> int:
    """The last of first, first + step, ... that is at most ``limit``; a time before everything when none is."""
    return first + (limit - first) // step * step if limit >= first else -(2**62)


def arrivals(elements: Sequence[StreamElement], tick: Tick) -> tuple[Arrival, ...]:
    """Elements in order of application time as what enters at once: single triples under a tuple-driven tick."""
    if tick is Tick.TUPLE:
        return tuple(Arrival(element.time, (triple,)) for element in elements for triple in element.added)
    return tuple(Arrival(element.time, element.added) for element in elements)
