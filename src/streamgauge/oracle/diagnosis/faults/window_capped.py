"""A window keeps at most n elements or n triples, the newest or the oldest ones; or a full window drops arrivals."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from streamgauge.model.element import StreamElement
from streamgauge.model.phrases import counted
from streamgauge.model.verdict import Part
from streamgauge.oracle.diagnosis.models import Case, Fault, Seen, Stream
from streamgauge.semantics.arrivals import Arrival

MAX_CAPS = 30
"""Caps that are tried in each way, from 1 on."""


def proposals(seen: Seen) -> Iterator[Fault]:
    """Every cap below the largest content, smallest first; caps in triples only if elements differ in size."""
    longest = max((window.window.size for window in seen.case.query.windows if window.window.kind == "time"), default=0)
    if not longest:
        return
    elements = seen.case.stream.elements
    uneven = len({len(element.added) for element in elements}) > 1
    for unit, times in (
        ("element", [element.time for element in elements]),
        ("triple", [element.time for element in elements for _ in element.added]),
    ):
        times.sort()
        largest = max((bisect_right(times, time + longest) - bisect_left(times, time) for time in times), default=0)
        # A cap that no content reaches changes nothing.
        caps = range(1, min(largest, MAX_CAPS + 1))
        for cap in caps if unit == "element" or uneven else ():
            for which in ("newest", "oldest"):
                rule = partial(_capped, cap=cap, newest=which == "newest", single=unit == "triple")
                sentence = f"A window holds at most {counted(cap, unit)}: the {which} of those in its range."
                part = Part(f"window capped at the {which} {counted(cap, unit)}", sentence)
                yield Fault(part, partial(Case.holding, rule=rule), fine=True, family="content")
        for cap in caps if unit == "element" else ():
            sentence = f"While a window holds {counted(cap, 'element')}, new elements are dropped for good."
            part = Part(f"full at {counted(cap, 'element')}", sentence)
            stream = _admitted(seen.case.stream, longest, cap)
            yield Fault(part, partial(Case.on, stream=stream), fine=True, family="stream")


def _capped(
    inside: Sequence[Arrival], element: Callable[[Arrival], int], cap: int, newest: bool, single: bool
) -> Iterable[Arrival]:
    if not single:
        numbers = list(dict.fromkeys(map(element, inside)))
        kept = set(numbers[-cap:] if newest else numbers[:cap])
        return (arrival for arrival in inside if element(arrival) in kept)
    return _triples(inside, cap, newest)


def _triples(inside: Sequence[Arrival], cap: int, newest: bool) -> Iterable[Arrival]:
    """The newest or oldest ``cap`` triples, in order of arrival."""
    left, kept = cap, []
    for arrival in reversed(inside) if newest else inside:
        if left > 0:
            part = arrival.triples[-left:] if newest else arrival.triples[:left]
            kept.append(arrival if len(part) == len(arrival.triples) else replace(arrival, triples=part))
            left -= len(part)
    return reversed(kept) if newest else kept


def _admitted(stream: Stream, size: int, cap: int) -> Stream:
    """The stream without the elements that arrive while ``cap`` kept ones are within the last ``size`` ms."""
    kept: list[StreamElement] = []
    for element in sorted(stream.elements, key=lambda element: element.sequence):
        if sum(other.time > element.time - size for other in kept[-cap:]) < cap:
            kept.append(element)
    return Stream(kept)
