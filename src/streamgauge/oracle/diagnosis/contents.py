"""The contents of a simulated engine's windows: ranges of a stream's arrivals, shared by the cases that have them."""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import accumulate
from typing import TypeAlias

from streamgauge.model.element import StreamElement
from streamgauge.model.query import StreamWindow
from streamgauge.model.report import View
from streamgauge.model.semantics import Counting, Semantics
from streamgauge.model.terms import Triple
from streamgauge.oracle.diagnosis.models import ContentRule
from streamgauge.semantics.arrivals import Arrival, Arrivals, Head, arrivals, arrived_triples, by_triple, content


class HeldContent:
    """The content of one window.

    All arrivals (``inside``), and these reduced to ``relevant`` triples (``mattering``). Arrivals of one element may be
    joined into one; ``ranks`` are the first and the end of those that it is made of, if they follow each other.
    """

    def __init__(
        self, inside: Sequence[Arrival], mattering: tuple[Arrival, ...], ranks: tuple[int, int] | None = None
    ) -> None:
        self.inside, self.mattering, self.ranks = inside, mattering, ranks
        self.number: int | None = None
        """The number that the simulator gave it and contents with the same relevant triples."""

    @cached_property
    def bag(self) -> Counter[Triple]:
        """The triples with their multiplicity."""
        return Counter(triple for arrival in self.inside for triple in arrival.triples)

    def adds(self, before: "HeldContent | None", counting: Counting) -> bool:
        """Whether it contains a triple, or a copy of one, that ``before`` did not."""
        if before is None:
            return bool(self.inside)
        if before is self:
            return False
        if counting is Counting.SET:
            return not self.bag.keys() <= before.bag.keys()
        # Counter's minus keeps positive counts only, the copies that this content has more.
        return bool(self.bag - before.bag)


class Arrived:
    """A stream's arrivals by rank, with a cache of the contents of views.

    Where each triple is an arrival, contents of a single stream are made of elements, of which only the first and the
    last may be cut: dozens of faults have a stream of their own, and an object for each of 200,000 triples took 24 MiB.
    """

    def __init__(
        self,
        admitted: Sequence[StreamElement],
        windows: Sequence[StreamWindow],
        semantics: Semantics,
        mattering: frozenset[Triple] | None,
    ) -> None:
        """``mattering`` are the relevant triples, ``None`` for all."""
        single = by_triple(windows, semantics.tick)
        self.heads: Arrivals = arrivals([Head.of(element) for element in admitted], windows, semantics.tick)
        self._each = partial(arrived_triples, admitted, windows, semantics)
        self._mattering = mattering
        # Where triples arrive, an element without any has no rank.
        ranked = [item for item in admitted if item.added] if single else admitted
        self._elements = [Arrival(item.stream, item.time, item.until, item.added) for item in ranked]
        self._starts = [0, *accumulate(len(item.added) if single else 1 for item in ranked)]
        kept = [self._reduced(arrival) for arrival in self._elements]
        self._reduced_only = [arrival for arrival in kept if arrival is not None]
        self._places = [0, *accumulate(int(arrival is not None) for arrival in kept)]
        # Then a content is a range of ranks, and equal ranges share an object, by whose identity answers are cached.
        self._plain = len({e.stream for e in admitted}) <= 1 and all(e.until is None for e in admitted)
        self._views: dict[tuple[str, int, int, int, int], HeldContent] = {}
        self._known: dict[tuple[int, int], HeldContent] = {}
        self._ruled: dict[tuple[int, int], tuple[HeldContent, ContentRule, HeldContent]] = {}

    @cached_property
    def _arrived(self) -> list[Arrival]:
        """All arrivals, by rank."""
        return self._each()

    def held(self, stream: str, view: View) -> HeldContent:
        """The content of a window over a stream in this view."""
        key = (stream, view.first, view.last, view.seen, view.after)
        if key not in self._views:
            self._views[key] = self._range(view) if self._plain else self._picked(stream, view)
        return self._views[key]

    def ruled(self, held_content: HeldContent, rule: ContentRule) -> HeldContent:
        """The part of a content that a rule keeps."""
        key = (id(held_content), id(rule))
        if key not in self._ruled:
            ranks = held_content.ranks
            each = held_content.inside if ranks is None else self._arrived[slice(*ranks)]
            left = self._content(tuple(rule(each, self._element)))
            # Content and rule are stored too, or their identities could be those of later objects.
            self._ruled[key] = (held_content, rule, left)
        return self._ruled[key][2]

    @cached_property
    def _numbers(self) -> dict[int, int]:
        """Elements' sequence numbers by the identity of their arrivals."""
        return {id(arrival): number for arrival, number in zip(self._arrived, self.heads.sequences, strict=True)}

    def _element(self, arrival: Arrival) -> int:
        return self._numbers[id(arrival)]

    def _range(self, view: View) -> HeldContent:
        """The content of a single stream without ends of validity: a range of ranks, equal for many views."""
        times = self.heads.times
        # Ranks are cut by time on both sides, and by system time: ``after`` and ``seen`` are ranks already.
        low = max(view.after, bisect_left(times, view.first))
        high = max(low, min(view.seen, bisect_right(times, view.last)))
        # All empty contents are one object.
        if low == high:
            low = high = 0
        if (low, high) not in self._known:
            self._known[low, high] = self._ranked(low, high)
        return self._known[low, high]

    def _ranked(self, low: int, high: int) -> HeldContent:
        """The content from one rank to another (exclusive): whole elements, and what a cut leaves of the others.

        Worked example: elements of 3, 3 and 3 triples start at ranks 0, 3 and 6. Ranks 2 to 6 are one triple of the
        first element, the whole second, and nothing of the third.
        """
        first, last = bisect_left(self._starts, low), bisect_right(self._starts, high) - 1
        if first > last:  # both cuts are in one element
            return self._content((self._cut(last, low, high),), (low, high))
        head = (self._cut(first - 1, low, high),) if low < self._starts[first] else ()
        tail = (self._cut(last, low, high),) if self._starts[last] < high else ()
        mattering = self._reduced_only[self._places[first] : self._places[last]]
        return HeldContent(
            (*head, *self._elements[first:last], *tail),
            (*self._all_reduced(head), *mattering, *self._all_reduced(tail)),
            (low, high),
        )

    def _cut(self, place: int, low: int, high: int) -> Arrival:
        """The triples of an element between two ranks, of which at least one is within it."""
        start, element = self._starts[place], self._elements[place]
        return replace(element, triples=element.triples[max(0, low - start) : high - start])

    def _content(self, inside: tuple[Arrival, ...], ranks: tuple[int, int] | None = None) -> HeldContent:
        return HeldContent(inside, self._all_reduced(inside), ranks)

    def _all_reduced(self, inside: Iterable[Arrival]) -> tuple[Arrival, ...]:
        return tuple(arrival for arrival in map(self._reduced, inside) if arrival is not None)

    def _picked(self, stream: str, view: View) -> HeldContent:
        return self._content(content(self._arrived, self.heads.times, stream, view))

    def _reduced(self, arrival: Arrival) -> Arrival | None:
        """The arrival reduced to its relevant triples; ``None`` if it has none."""
        if self._mattering is None:
            return arrival
        kept = tuple(triple for triple in arrival.triples if triple in self._mattering)
        if len(kept) == len(arrival.triples):
            return arrival if kept else None
        return replace(arrival, triples=kept) if kept else None


Contents: TypeAlias = tuple[HeldContent, ...]
