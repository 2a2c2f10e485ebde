"""The contents of a query's windows: the arrivals in scope, and the triples that they bring."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from streamgauge.model.element import StreamElement
from streamgauge.model.query import StreamWindow
from streamgauge.model.report import View
from streamgauge.model.semantics import Counting, Semantics
from streamgauge.model.terms import Triple
from streamgauge.semantics.order import by_triple


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
        return [Arrival(each.stream, each.time, each.until, (triple,)) for each in admitted for triple in each.added]
    return [Arrival(each.stream, each.time, each.until, each.added) for each in admitted]


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
    held = Counter(
        (window, triple) for window, inside in enumerate(contents) for arrival in inside for triple in arrival.triples
    )
    return held if counting is Counting.BAG else Counter(held.keys())


def latest(inside: Iterable[Arrival]) -> dict[Triple, int]:
    """When each triple of some arrivals came last, ms of application time."""
    times: dict[Triple, int] = {}
    for arrival in inside:
        for triple in arrival.triples:
            times[triple] = max(arrival.time, times.get(triple, arrival.time))
    return times
