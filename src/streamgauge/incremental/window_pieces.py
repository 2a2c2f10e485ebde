"""Pieces of a window: arrivals that leave together, parted by predicate, without the triples that no pattern asks for.

Where windows close and answers follow from what patterns find, a triple that matches no predicate of the query counts
only as something that is held. Arrivals are therefore put together while a window fills: no element is kept as it came,
and the triples of each predicate, which a look would collect, are there already.

A worked example: a query asks for ``:p``, windows are of 10 s every 5 s from t0 = 0 on, and (a :p b) arrives at 4 s,
(a :q c) at 6 s, (d :p e) at 7 s. A window begins at 5 s, so the first arrival leaves before the others: it is a piece
by itself. The others are one piece, with (d :p e) alone.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import chain, islice
from typing import TypeAlias

from streamgauge.incremental.crossovers import PIECES
from streamgauge.model.query import Window
from streamgauge.model.terms import Term, Triple


class PartedTriples(Sequence[Triple]):
    """Triples of some predicates, by predicate, which leave together; ``came``: how many arrived, of all predicates."""

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
"""Times (ms), and what arrived together: triples, a piece, or a part of a batch by numbers of terms."""


def size_of(arrivals: Arrivals) -> int:
    """How many triples arrived."""
    return sum(content.came if isinstance(content, PartedTriples) else len(content) for _, content in arrivals)


Gather: TypeAlias = Callable[[Collection[Term], Callable[[int], int]], None]
"""Has a content put together its latest arrivals that leave together, as a piece of these predicates.

The function gives the time (ms) of the last window's begin at a time.
"""


class WindowBegins:
    """The times (ms) from which on windows that close hold what arrives: one for each slide.

    ``right_closed``: what comes at the time of a border is before it; ``partial_head``: windows close from the first
    slide on.
    """

    def __init__(self, window: Window, *, right_closed: bool, partial_head: bool) -> None:
        self._slide = window.slide
        self._offset = int(right_closed) - (window.size if partial_head else 0)

    def last(self, time: int, t0: int) -> int:
        """The last of these times that is not after ``time``, windows beginning at ``t0``."""
        return time - (time - t0 - self._offset) % self._slide

    def following(self, time: int, t0: int) -> int:
        """The next of these times, or before it the next one at which a piece of a window is made."""
        return min(self.last(time, t0) + self._slide, time + max(self._slide // PIECES, 1))
