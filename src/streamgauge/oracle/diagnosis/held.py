"""The contents of a run's windows, one object each, with the part that can matter to the query."""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from itertools import accumulate

from streamgauge.model.element import StreamElement
from streamgauge.model.query import StreamWindow
from streamgauge.model.report import View
from streamgauge.model.semantics import Counting, Semantics
from streamgauge.model.terms import Triple
from streamgauge.oracle.diagnosis.models import ContentRule
from streamgauge.semantics.content import Arrival, arrived_triples, content
from streamgauge.semantics.order import Arrivals, Head, arrivals


class HeldContent:
    """The content of one window."""

    def __init__(self, inside: Sequence[Arrival], mattering: tuple[Arrival, ...]) -> None:
        self.inside, self.mattering = inside, mattering

    @cached_property
    def bag(self) -> Counter[Triple]:
        """The triples with how often each is there."""
        return Counter(triple for arrival in self.inside for triple in arrival.triples)

    def adds(self, before: "HeldContent | None", counting: Counting) -> bool:
        """Whether it holds something that ``before`` did not."""
        if before is None:
            return bool(self.inside)
        if before is self:
            return False
        if counting is Counting.SET:
            return not self.bag.keys() <= before.bag.keys()
        return bool(self.bag - before.bag)


class Arrived:
    """A stream's arrivals by rank, and the contents that views of it have had."""

    def __init__(
        self,
        admitted: Sequence[StreamElement],
        windows: Sequence[StreamWindow],
        semantics: Semantics,
        mattering: frozenset[Triple] | None,
    ) -> None:
        """``mattering`` are the triples that can matter to the query, ``None`` for all."""
        self.heads: Arrivals = arrivals([Head.of(element) for element in admitted], windows, semantics.tick)
        self._arrived = arrived_triples(admitted, windows, semantics)
        self._times = [arrival.time for arrival in self._arrived]
        self._mattering = mattering
        self._kept = [self._reduced(arrival) for arrival in self._arrived]
        self._reduced_only = [kept for kept in self._kept if kept is not None]
        self._places = [0, *accumulate(int(kept is not None) for kept in self._kept)]
        self._plain = len({e.stream for e in admitted}) <= 1 and all(e.until is None for e in admitted)
        self._views: dict[tuple[str, int, int, int, int], HeldContent] = {}
        self._known: dict[tuple[int, int], HeldContent] = {}
        self._ruled: dict[tuple[int, int], tuple[HeldContent, ContentRule, HeldContent]] = {}

    def held(self, stream: str, view: View) -> HeldContent:
        """The content of a window over a stream in this view."""
        key = (stream, view.first, view.last, view.seen, view.after)
        if key not in self._views:
            self._views[key] = self._range(view) if self._plain else self._picked(stream, view)
        return self._views[key]

    def ruled(self, held: HeldContent, rule: ContentRule) -> HeldContent:
        """The content that a rule leaves of a content."""
        key = (id(held), id(rule))
        if key not in self._ruled:
            inside = tuple(rule(held.inside, self._element))
            reduced = (self._reduced(arrival) for arrival in inside)
            left = HeldContent(inside, tuple(arrival for arrival in reduced if arrival is not None))
            self._ruled[key] = (held, rule, left)  # both stay alive, so that no other object gets their identity
        return self._ruled[key][2]

    @cached_property
    def _numbers(self) -> dict[int, int]:
        """Elements' sequence numbers by the identity of their arrivals."""
        return {id(arrival): number for arrival, number in zip(self._arrived, self.heads.sequences, strict=True)}

    def _element(self, arrival: Arrival) -> int:
        return self._numbers[id(arrival)]

    def _range(self, view: View) -> HeldContent:
        """One stream without own validities: a stretch of ranks."""
        low = max(view.after, bisect_left(self._times, view.first))
        high = max(low, min(view.seen, bisect_right(self._times, view.last)))
        if low == high:
            low = high = 0
        if (low, high) not in self._known:
            mattering = self._reduced_only[self._places[low] : self._places[high]]
            self._known[low, high] = HeldContent(self._arrived[low:high], tuple(mattering))
        return self._known[low, high]

    def _picked(self, stream: str, view: View) -> HeldContent:
        inside = content(self._arrived, self._times, stream, view)
        reduced = (self._reduced(arrival) for arrival in inside)
        return HeldContent(inside, tuple(arrival for arrival in reduced if arrival is not None))

    def _reduced(self, arrival: Arrival) -> Arrival | None:
        """The arrival with what of it can matter."""
        if self._mattering is None:
            return arrival
        kept = tuple(triple for triple in arrival.triples if triple in self._mattering)
        if len(kept) == len(arrival.triples):
            return arrival if kept else None
        return replace(arrival, triples=kept) if kept else None
