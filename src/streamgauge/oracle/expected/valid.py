"""The answer of a query over the facts that hold at an instant, by the definition: a scope like any other."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence

from streamgauge.model.element import StreamElement
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.report import View
from streamgauge.model.semantics import Semantics
from streamgauge.model.terms import Row
from streamgauge.semantics.content import arrived_triples, content
from streamgauge.semantics.evaluate import Snapshot


class Valid:
    """A query over landmark windows, answered at any instant; ``elements`` come in order of time (ms)."""

    def __init__(self, query: ContinuousQuery, semantics: Semantics, elements: Iterable[StreamElement]) -> None:
        self._query = query
        self._arrived = arrived_triples(elements, query.windows, semantics)
        self._times = [arrival.time for arrival in self._arrived]
        ends = (arrival.until for arrival in self._arrived if arrival.until is not None)
        self._borders = sorted({*self._times, *ends})
        self._snapshot = Snapshot(query, semantics.content, semantics.empty_aggregate)
        self._rows: dict[int, tuple[Row, ...]] = {}

    def at(self, instant: int) -> tuple[Row, ...]:
        """The bag of rows over what holds at an instant (ms)."""
        state = bisect_right(self._borders, instant)
        if state not in self._rows:
            self._rows[state] = self._answer(instant)
        return self._rows[state]

    def within(self, first: int, last: int) -> Sequence[tuple[Row, ...]]:
        """All that it was from one instant to another (ms), both included, in order."""
        inside = self._borders[bisect_right(self._borders, first) : bisect_right(self._borders, last)]
        return [self.at(instant) for instant in (first, *inside)]

    def _answer(self, instant: int) -> tuple[Row, ...]:
        seen = bisect_right(self._times, instant)
        view = View(0, instant, 0, instant, seen)
        held = tuple(content(self._arrived, self._times, window.stream, view) for window in self._query.windows)
        return self._snapshot.rows(held)
