"""Pieces of a window: arrivals that leave together, partitioned by predicate, without triples that match no pattern.

If windows close and answers only depend on matches of patterns, a triple without a predicate of the query only counts
as content. Arrivals are therefore merged while a window fills: elements are not stored, and the partition by
predicate, which a look needs, exists already.

A worked example: a query asks for ``:p``, windows are of 10 s every 5 s from t0 = 0 on, and (a :p b) arrives at 4 s,
(a :q c) at 6 s, (d :p e) at 7 s. A window begins at 5 s, so the first arrival leaves before the others and is a piece
of its own. The others are one piece, which only contains (d :p e).
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import chain, islice
from typing import TypeAlias

from streamgauge.incremental.crossovers import PIECES
from streamgauge.model.query import Window
from streamgauge.model.terms import Term, Triple


class PartedTriples(Sequence[Triple]):
    """Triples of some predicates that leave together; ``came`` is the number of arrivals of all predicates."""

    __slots__ = ("came", "parts")

    def __init__(self, predicates: Collection[Term], arrivals: Collection[Sequence[Triple]]) -> None:
        self.came = sum(map(len, arrivals))
        self.parts: dict[Term, list[Triple]] = {predicate: [] for predicate in predicates}
        put_of = {predicate: part.append for predicate, part in self.parts.items()}.get
        for triples in arrivals:
            for triple in triples:
                put = put_of(triple[1])
                if put is not None:
                    put(triple)

    def __len__(self) -> int:
        return sum(map(len, self.parts.values()))

    def __iter__(self) -> Iterator[Triple]:
        return chain.from_iterable(self.parts.values())

    def __getitem__(self, at: object) -> Triple:  # type: ignore[override]
        assert isinstance(at, int)
        return next(islice(self, at % len(self), None))


Arrivals: TypeAlias = Sequence[tuple[int, Sequence[Triple]]]
"""Times (ms), and what arrived together: triples, a piece, or a part of a batch as term ids."""


def size_of(arrivals: Arrivals) -> int:
    """The number of triples that arrived."""
    return sum(content.came if isinstance(content, PartedTriples) else len(content) for _, content in arrivals)


Gather: TypeAlias = Callable[[Collection[Term], Callable[[int], int]], None]
"""Makes a content merge its latest arrivals that leave together into a piece of these predicates.

The function returns the latest beginning (ms) of a window at a time.
"""


class WindowBegins:
    """The beginnings (ms) of closing windows, one per slide.

    ``right_closed``: arrivals at a border belong to the window before it; ``partial_head``: windows close from the
    first slide on.
    """

    def __init__(self, window: Window, *, right_closed: bool, partial_head: bool) -> None:
        self._slide = window.slide
        # Under (o, c] an arrival at a border belongs to the window that ends there, so for whole milliseconds each
        # window begins one later. With partial heads, windows that began before t0 close too.
        self._offset = int(right_closed) - (window.size if partial_head else 0)

    def last(self, time: int, t0: int) -> int:
        """The last beginning up to ``time``, with windows from ``t0`` on."""
        # A worked example: size 10 s, slide 5 s, t0 = 0. The last beginnings at 4 s and 7.3 s are 0 and 5 s. Under (o,
        # c] they are 1 and 5,001 ms, and an arrival at 5 s still belongs to the first.
        return time - (time - t0 - self._offset) % self._slide

    def following(self, time: int, t0: int) -> int:
        """The next beginning, or an earlier time at which a piece is due."""
        # More often than windows begin, so that a long slide does not keep all elements of it unpartitioned.
        return min(self.last(time, t0) + self._slide, time + max(self._slide // PIECES, 1))
