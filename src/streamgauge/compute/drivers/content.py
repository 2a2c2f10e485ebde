"""A window's content as it moves: what expires leaves the evaluator, then what arrived enters."""

from collections import deque

from streamgauge.compute.changes.evaluator import Evaluator
from streamgauge.model.semantics import Changes, Report, Semantics
from streamgauge.model.terms import Triple


class Content:
    """The triples of the scope, held by time; says at each move whether the strategies about content want a report."""

    def __init__(self, evaluator: Evaluator, semantics: Semantics) -> None:
        self._enter, self._leave = evaluator.enter, evaluator.leave
        self._live: deque[tuple[int, tuple[Triple, ...]]] = deque()
        self._waiting: deque[tuple[int, tuple[Triple, ...]]] = deque()
        self._non_empty = Report.NON_EMPTY in semantics.report
        self._counts: dict[Triple, int] | None = {} if Report.CONTENT_CHANGE in semantics.report else None
        self._evictions = semantics.changes is Changes.BOTH

    @property
    def idle(self) -> bool:
        """Nothing is held and nothing waits, and an empty content is no reason to report."""
        quiet = self._non_empty or self._counts is not None
        return quiet and not self._live and not self._waiting

    def wait(self, time: int, triples: tuple[Triple, ...]) -> None:
        """Triples that the next move may let in; times (ms) never go back."""
        if triples:
            self._waiting.append((time, triples))

    def move(self, first: int, last: int) -> bool:
        """Hold what is from ``first`` to ``last`` (ms, inclusive); True when the content-dependent strategies agree."""
        gone = self._expired(self._live, first)
        self._expired(self._waiting, first)
        come: list[Triple] = []
        waiting, live = self._waiting, self._live
        while waiting and waiting[0][0] <= last:
            arrival = waiting.popleft()
            live.append(arrival)
            come += arrival[1]
        if gone:
            self._leave(gone)
        if come:
            self._enter(come)
        if self._counts is not None and not self._changed(self._counts, come, gone):
            return False
        return bool(live) or not self._non_empty

    @staticmethod
    def _expired(held: deque[tuple[int, tuple[Triple, ...]]], first: int) -> list[Triple]:
        gone: list[Triple] = []
        while held and held[0][0] < first:
            gone += held.popleft()[1]
        return gone

    def _changed(self, counts: dict[Triple, int], come: list[Triple], gone: list[Triple]) -> bool:
        """Whether the set of triples differs from that before: what comes and goes in one move is no change."""
        fresh: set[Triple] = set()
        for triple in come:
            copies = counts.get(triple, 0)
            counts[triple] = copies + 1
            if not copies:
                fresh.add(triple)
        left = False
        for triple in gone:
            copies = counts[triple] - 1
            if copies:
                counts[triple] = copies
                continue
            del counts[triple]
            if triple in fresh:
                fresh.discard(triple)
            else:
                left = True
        return bool(fresh) or (left and self._evictions)
