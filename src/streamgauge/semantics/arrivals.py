"""Arrivals: the order in which elements count, which are late, where t0 is, and which triples a window holds.

Admission, ranks and t0 need only the heads of elements, so due reports are known without their triples.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from streamgauge.model.element import StreamElement
from streamgauge.model.query import StreamWindow
from streamgauge.model.report import View
from streamgauge.model.semantics import Borders, Counting, Origin, Report, Semantics, Tick
from streamgauge.model.terms import Triple
from streamgauge.semantics.refusal import OutOfOrderError

_NEVER = -(2**62)


@dataclass(frozen=True, slots=True)
class Head:
    """An element without its triples: how many there are is ``size``; ``time`` and ``until`` in ms."""

    stream: str
    time: int
    sequence: int
    size: int
    until: int | None = None

    @classmethod
    def of(cls, element: StreamElement) -> "Head":
        """The head of an element."""
        return cls(element.stream, element.time, element.sequence, len(element.added), element.until)


AnyStamped = TypeVar("AnyStamped", StreamElement, Head)
"""An element or its head: an item with a place in application time and in system time."""


@dataclass(frozen=True, slots=True)
class Arrivals:
    """The arrivals by rank in (application time, sequence, position): times, streams, sequence numbers, ends (ms).

    A rank stands for a triple under a tuple-driven tick and beside a count-based window, else for an element.
    """

    times: tuple[int, ...]
    streams: tuple[str, ...]
    sequences: tuple[int, ...]
    ends: tuple[int | None, ...] = ()


def origins(semantics: Semantics, windows: Sequence[StreamWindow], first: int | None) -> tuple[int, ...]:
    """The candidates for t0 in ms, ascending (CSRBench, section 6.1); ``first`` is the first element's time.

    With several windows the search goes as far as the longest of those that are measured in time. Where t0 is the first
    element's and none comes, it never is.
    """
    if semantics.origin is Origin.FIRST:
        return (-_NEVER if first is None else first - first % semantics.time_unit,)
    if semantics.origin is Origin.SEARCH:
        longest = max((window.window.size for window in windows if window.window.kind != "count"), default=0)
        return tuple(range(semantics.t0, semantics.t0 + longest + 1, semantics.time_unit))
    return (semantics.t0,)


def by_triple(windows: Sequence[StreamWindow], tick: Tick) -> bool:
    """Whether arrivals are single triples."""
    return tick is Tick.TUPLE or any(window.window.kind == "count" for window in windows)


def admit(
    elements: Iterable[AnyStamped], semantics: Semantics, windows: Sequence[StreamWindow], t0: int
) -> tuple[list[AnyStamped], list[AnyStamped]]:
    """The elements of the query's streams that count, by application time, and the late ones.

    OutOfOrderError for disorder without a lateness bound. With one the watermark is the greatest time seen less the
    bound; late is what falls below a report that the watermark has already made due, whatever window made it so.
    """
    admitted: list[AnyStamped] = []
    late: list[AnyStamped] = []
    streams = {window.stream for window in windows}
    greatest: int | None = None
    border = frontier(semantics, windows, t0)
    for element in sorted(elements, key=lambda element: element.sequence):
        if element.stream not in streams:
            continue
        if greatest is not None and element.time < greatest:
            if semantics.lateness is None:
                raise OutOfOrderError(
                    f"element {element.sequence} of {element.stream} goes back from {greatest} to {element.time} ms: "
                    "sort the stream or declare a lateness bound"
                )
            if element.time < border(greatest - semantics.lateness):
                late.append(element)
                continue
        greatest = element.time if greatest is None else max(greatest, element.time)
        admitted.append(element)
    return sorted(admitted, key=lambda element: (element.time, element.sequence)), late


def arrivals(admitted: Sequence[Head], windows: Sequence[StreamWindow], tick: Tick) -> Arrivals:
    """Admitted elements, in order of application time, as arrivals."""
    single = by_triple(windows, tick)
    ranked = [head for head in admitted for _ in range(head.size if single else 1)]
    return Arrivals(
        tuple(head.time for head in ranked),
        tuple(head.stream for head in ranked),
        tuple(head.sequence for head in ranked),
        tuple(head.until for head in ranked),
    )


def frontier(semantics: Semantics, windows: Sequence[StreamWindow], t0: int) -> Callable[[int], int]:
    """The time (ms) below which nothing may come any more, as a function of the watermark."""
    closed = 0 if semantics.borders is Borders.CLOSED_OPEN else 1
    if Report.WINDOW_CLOSE in semantics.report:
        if any(window.window.kind == "count" for window in windows):
            return lambda watermark: watermark
        steps = [(t0 + first_close(window, semantics), window.window.slide) for window in windows]
    elif Report.PERIODIC in semantics.report and semantics.period is not None:
        steps = [(t0 + semantics.period, semantics.period)]
    else:
        return lambda watermark: watermark
    return lambda watermark: max(_last(first, step, watermark - closed) for first, step in steps) + closed


def first_close(seen: StreamWindow, semantics: Semantics) -> int:
    """How far after t0 a window first closes: ms, or triples for a count-based one."""
    return seen.window.slide if semantics.partial_head else seen.window.size


def _last(first: int, step: int, limit: int) -> int:
    """The last of first, first + step, ... that is at most ``limit``; a time before everything when none is."""
    return first + (limit - first) // step * step if limit >= first else _NEVER


@dataclass(frozen=True, slots=True)
class Arrival:
    """The arrival of one rank: an element's triples, or one of them, on a stream at a time, until it ends (ms)."""

    stream: str
    time: int
    until: int | None
    triples: tuple[Triple, ...]


Contents: TypeAlias = tuple[tuple[Arrival, ...], ...]
"""The content of each window of the query, in the order of the windows."""


def arrived_triples(
    admitted: Iterable[StreamElement], windows: Sequence[StreamWindow], semantics: Semantics
) -> list[Arrival]:
    """The arrivals by rank (``order.Arrivals``)."""
    if by_triple(windows, semantics.tick):
        return [
            Arrival(element.stream, element.time, element.until, (triple,))
            for element in admitted
            for triple in element.added
        ]
    return [Arrival(element.stream, element.time, element.until, element.added) for element in admitted]


def content(arrived: Sequence[Arrival], times: Sequence[int], stream: str, view: View) -> tuple[Arrival, ...]:
    """A window's content: the arrivals of its stream in scope that were seen and have not ended.

    ``times`` are the arrivals' times (ms), ascending.
    """
    inside = arrived[max(view.after, bisect_left(times, view.first)) : view.seen]
    return tuple(
        arrival
        for arrival in inside
        if arrival.stream == stream
        and arrival.time <= view.last
        and (arrival.until is None or arrival.until > view.last)
    )


def triples(contents: Contents, counting: Counting = Counting.SET) -> Counter[tuple[int, Triple]]:
    """The pairs (window, triple) that the windows hold, each once when content is a set."""
    bag = Counter(
        (window, triple) for window, inside in enumerate(contents) for arrival in inside for triple in arrival.triples
    )
    return Counter(bag.keys()) if counting is Counting.SET else bag


def size(contents: Contents, counting: Counting = Counting.SET) -> int:
    """How many triples the windows hold together, each once in a window when content is a set."""
    if counting is not Counting.SET:
        return sum(len(arrival.triples) for inside in contents for arrival in inside)
    return sum(len(set().union(*(arrival.triples for arrival in inside))) for inside in contents)


def latest(inside: Iterable[Arrival]) -> dict[Triple, int]:
    """The application time (ms) at which each triple of some arrivals came last."""
    times: dict[Triple, int] = {}
    for arrival in inside:
        for triple in arrival.triples:
            times[triple] = max(arrival.time, times.get(triple, arrival.time))
    return times
