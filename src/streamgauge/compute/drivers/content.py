"""A window's content as it moves: what arrives enters the evaluator at once, what no later report can see leaves it."""

from collections import deque

from streamgauge.compute.changes.evaluator import Evaluator
from streamgauge.model.semantics import Changes, Report, Semantics
from streamgauge.model.terms import Triple


class Content:
    """The triples of the scope, held by time; says at each look whether the strategies about content want a report."""

    def __init__(self, evaluator: Evaluator, semantics: Semantics) -> None:
        self._enter, self._leave = evaluator.enter, evaluator.leave
        self._live: deque[tuple[int, tuple[Triple, ...]]] = deque()
        self._non_empty = Report.NON_EMPTY in semantics.report
        self._changes = _Changes(semantics.changes) if Report.CONTENT_CHANGE in semantics.report else None

    @property
    def idle(self) -> bool:
        """Nothing is held, and an empty content is no reason to report."""
        if self._live:
            return False
        return self._non_empty if self._changes is None else self._changes.none

    def enter(self, time: int, triples: tuple[Triple, ...]) -> None:
        """Triples of ``time`` (ms), which never goes back, enter."""
        if triples:
            self._live.append((time, triples))
            self._enter(triples)
            if self._changes is not None:
                self._changes.came(triples)

    def drop(self, first: int) -> None:
        """What is earlier than ``first`` (ms) leaves."""
        live = self._live
        if not live or live[0][0] >= first:
            return
        gone: list[Triple] = []
        while live and live[0][0] < first:
            gone += live.popleft()[1]
        self._leave(gone)
        if self._changes is not None:
            self._changes.went(gone)

    def due(self) -> bool:
        """Whether the strategies about content agree to a report; from now on changes are counted from here."""
        changed = self._changes is None or self._changes.settle()
        return changed and (bool(self._live) or not self._non_empty)


class _Changes:
    """How the set of triples differs from when it was last looked at; what comes and goes in between is no change."""

    def __init__(self, counted: Changes) -> None:
        self._evictions = counted is Changes.BOTH
        self._copies: dict[Triple, int] = {}
        self._fresh: set[Triple] = set()
        self._lost: set[Triple] = set()

    @property
    def none(self) -> bool:
        """Whether the set is as it was."""
        return not self._fresh and not self._lost

    def came(self, triples: tuple[Triple, ...]) -> None:
        """Count triples in."""
        copies, fresh, lost = self._copies, self._fresh, self._lost
        for triple in triples:
            had = copies.get(triple, 0)
            copies[triple] = had + 1
            if had:
                continue
            if triple in lost:
                lost.discard(triple)
            else:
                fresh.add(triple)

    def went(self, triples: list[Triple]) -> None:
        """Count triples out."""
        copies, fresh, lost = self._copies, self._fresh, self._lost
        for triple in triples:
            left = copies[triple] - 1
            if left:
                copies[triple] = left
                continue
            del copies[triple]
            if triple in fresh:
                fresh.discard(triple)
            else:
                lost.add(triple)

    def settle(self) -> bool:
        """Whether the set has changed in the way that counts."""
        changed = bool(self._fresh) or (self._evictions and bool(self._lost))
        self._fresh.clear()
        self._lost.clear()
        return changed
