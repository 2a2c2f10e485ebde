"""Arrivals: the order of elements, late ones, candidates for t0, and the contents of windows.

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
    """An element without its triples, of which ``size`` is the number; ``time`` and ``until`` in ms."""

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
"""An element or its head: ``time`` is its application time, ``sequence`` its system time."""


@dataclass(frozen=True, slots=True)
class Arrivals:
    """The arrivals ordered by (application time, sequence, position): times (ms), streams, sequence numbers, ends (ms).

    A *rank* is an index into these. An arrival is a triple under tuple-driven ticks and if any window is count-based,
    otherwise an element.
    """

    times: Sequence[int]
    streams: Sequence[str]
    sequences: Sequence[int]
    ends: Sequence[int | None] = ()


def origins(semantics: Semantics, windows: Sequence[StreamWindow], first: int | None) -> tuple[int, ...]:
    """The candidates for t0 in ms, ascending (CSRBench, section 6.1); ``first`` is the first element's time.

    With several windows the search covers the longest time-based one. If t0 is the first element's time and there is
    no element, t0 is later than every report.
    """
    if semantics.origin is Origin.FIRST:
        return (-_NEVER if first is None else first - first % semantics.time_unit,)
    if semantics.origin is Origin.SEARCH:
        longest = max((window.window.size for window in windows if window.window.kind != "count"), default=0)
        return tuple(range(semantics.t0, semantics.t0 + longest + 1, semantics.time_unit))
    return (semantics.t0,)


def by_triple(windows: Sequence[StreamWindow], tick: Tick) -> bool:
    """Whether an arrival is a single triple rather than an element."""
    return tick is Tick.TUPLE or any(window.window.kind == "count" for window in windows)


def admit(
    elements: Iterable[AnyStamped], semantics: Semantics, windows: Sequence[StreamWindow], t0: int
) -> tuple[list[AnyStamped], list[AnyStamped]]:
    """The elements of the query's streams ordered by application time, without the late ones, and the late ones.

    The watermark is the greatest time so far minus the lateness bound; an element is late if it is below a report that
    the watermark has made due, by any window. Raises OutOfOrderError for disorder without a bound.
    """
    admitted: list[AnyStamped] = []
    late: list[AnyStamped] = []
    streams = {window.stream for window in windows}
    greatest: int | None = None
    border = frontier(semantics, windows, t0)
    # In system time: what is late depends on the order in which elements came, not on their own times.
    for element in sorted(elements, key=lambda element: element.sequence):
        if element.stream not in streams:
            continue
        if greatest is not None and element.time < greatest:
            if semantics.lateness is None:
                raise OutOfOrderError(
                    f"element {element.sequence} of {element.stream} goes back from {greatest} to {element.time} ms: "
                    "sort the stream or declare a lateness bound"
                )
            # An element behind the greatest time but above the border changes no report that was due before it came.
            if element.time < border(greatest - semantics.lateness):
                late.append(element)
                continue
        greatest = element.time if greatest is None else max(greatest, element.time)
        admitted.append(element)
    return sorted(admitted, key=lambda element: (element.time, element.sequence)), late


def arrivals(admitted: Sequence[Head], windows: Sequence[StreamWindow], tick: Tick) -> Arrivals:
    """The arrivals of admitted elements, which are in order of application time."""
    # Ranks count triples for all windows alike, so that the views of a time-based and a count-based window can be
    # compared.
    single = by_triple(windows, tick)
    ranked = [head for head in admitted for _ in range(head.size if single else 1)]
    return Arrivals(
        tuple(head.time for head in ranked),
        tuple(head.stream for head in ranked),
        tuple(head.sequence for head in ranked),
        tuple(head.until for head in ranked),
    )


def frontier(semantics: Semantics, windows: Sequence[StreamWindow], t0: int) -> Callable[[int], int]:
    """A function from the watermark (ms) to the time below which elements are late."""
    # A closed right border contains elements at the close itself: the report is due once the watermark has passed it,
    # and then elements at that time are late as well.
    closed = 0 if semantics.borders is Borders.CLOSED_OPEN else 1
    if Report.WINDOW_CLOSE in semantics.report:
        # A close of a count-based window moves with every triple below it, so no earlier triple may still come.
        if any(window.window.kind == "count" for window in windows):
            return lambda watermark: watermark
        steps = [(t0 + first_close(window, semantics), window.window.slide) for window in windows]
    elif Report.PERIODIC in semantics.report and semantics.period is not None:
        steps = [(t0 + semantics.period, semantics.period)]
    else:
        # Ticks have no grid of closes, so every element may make a report due: all below the watermark is late.
        return lambda watermark: watermark
    return lambda watermark: max(_last(first, step, watermark - closed) for first, step in steps) + closed


def first_close(seen: StreamWindow, semantics: Semantics) -> int:
    """The distance of a window's first close from t0: in ms, or in triples for a count-based one."""
    return seen.window.slide if semantics.partial_head else seen.window.size


def _last(first: int, step: int, limit: int) -> int:
    """The last of first, first + step, ... that is at most ``limit``; ``_NEVER`` if none is."""
    return first + (limit - first) // step * step if limit >= first else _NEVER


@dataclass(frozen=True, slots=True)
class Arrival:
    """One arrival.

    The triples of an element, or one of them, valid in [time, until) ms unless ``until`` is ``None``.
    """

    stream: str
    time: int
    until: int | None
    triples: tuple[Triple, ...]


Contents: TypeAlias = tuple[tuple[Arrival, ...], ...]
"""The content of each window of the query, in the order of the windows."""


def arrived_triples(
    admitted: Iterable[StreamElement], windows: Sequence[StreamWindow], semantics: Semantics
) -> list[Arrival]:
    """The arrivals with their triples, in the order of ``Arrivals``."""
    if by_triple(windows, semantics.tick):
        return [
            Arrival(element.stream, element.time, element.until, (triple,))
            for element in admitted
            for triple in element.added
        ]
    return [Arrival(element.stream, element.time, element.until, element.added) for element in admitted]


def content(arrived: Sequence[Arrival], times: Sequence[int], stream: str, view: View) -> tuple[Arrival, ...]:
    """A window's content: the arrivals of its stream in the view that have not ended (``model.report.View``).

    ``times`` are the arrivals' times (ms), ascending.
    """
    # Ranks cut the sequence before times do: elements at one time may be seen in different reports.
    inside = arrived[max(view.after, bisect_left(times, view.first)) : view.seen]
    return tuple(
        arrival
        for arrival in inside
        if arrival.stream == stream
        and arrival.time <= view.last
        and (arrival.until is None or arrival.until > view.last)
    )


def triples(contents: Contents, counting: Counting = Counting.SET) -> Counter[tuple[int, Triple]]:
    """The pairs (window, triple) of the contents, each once if content is a set."""
    bag = Counter(
        (window, triple) for window, inside in enumerate(contents) for arrival in inside for triple in arrival.triples
    )
    return Counter(bag.keys()) if counting is Counting.SET else bag


def size(contents: Contents, counting: Counting = Counting.SET) -> int:
    """The number of triples of the contents, each counted once per window if content is a set."""
    if counting is not Counting.SET:
        return sum(len(arrival.triples) for inside in contents for arrival in inside)
    return sum(len(set().union(*(arrival.triples for arrival in inside))) for inside in contents)


def latest(inside: Iterable[Arrival]) -> dict[Triple, int]:
    """The latest application time (ms) of each triple."""
    times: dict[Triple, int] = {}
    for arrival in inside:
        for triple in arrival.triples:
            times[triple] = max(arrival.time, times.get(triple, arrival.time))
    return times
