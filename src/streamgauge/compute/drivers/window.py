"""A time-based window in front of the incremental evaluator: elements in, answers out, under any Semantics value.

Elements enter as soon as every report that must not see them is out; what no later report can see leaves after one.
"""

import heapq
from collections.abc import Iterable

from streamgauge.compute.changes import Evaluator
from streamgauge.compute.drivers.content import Content, Presence
from streamgauge.compute.drivers.scopes import Candidate, Scopes
from streamgauge.compute.drivers.streaming import Emit, Streamer
from streamgauge.model.element import StreamElement
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.semantics import Due, Origin, Report, Semantics, Tick
from streamgauge.model.terms import Triple


class WindowDriver:
    """Answers a query over one window; ``push`` and ``advance`` emit what they make due, ``close`` emits nothing.

    ``late`` counts elements that the lateness bound excluded. Raises UnsupportedError for a query that the
    evaluator refuses, ValueError for time that goes back without a bound.
    """

    def __init__(self, query: ContinuousQuery, semantics: Semantics, emit: Emit) -> None:
        self.late = 0
        self._begun = False
        self._query, self._semantics = query, semantics
        evaluator = Evaluator(query.form, query.static, semantics.empty_aggregate)
        self._streamer = Streamer(evaluator, query.form, query.r2s or semantics.r2s, semantics, emit)
        self._presence = Presence(semantics.changes) if Report.CONTENT_CHANGE in semantics.report else None
        self._content = _content(evaluator, self._presence)
        self._non_empty = Report.NON_EMPTY in semantics.report
        self._tick = semantics.tick
        self._now: int | None = None
        self._open_batch: int | None = None
        self._waiting: list[tuple[int, int, StreamElement]] = []
        self._greatest: int | None = None
        if semantics.origin is not Origin.FIRST:
            self._begin(semantics.t0)

    def _begin(self, t0: int) -> None:
        self._scopes = Scopes(self._query.window, self._semantics, t0)
        self._clocked = self._scopes.clocked
        self._next = self._scopes.begin
        self._lag = 0 if self._scopes.half_open else 1
        self._begun = True

    def push(self, element: StreamElement) -> None:
        """Take in an element, after emitting the reports that it makes due."""
        if element.removed or element.until is not None:
            raise ValueError(
                f"element {element.sequence} of {element.stream} removes triples or ends early: "
                "a time-based window takes added triples only"
            )
        if not self._begun:
            self._begin(element.time - element.time % self._semantics.time_unit)
        if self._semantics.lateness is None:
            self._take(element)
        else:
            self._order(element, self._semantics.lateness)

    def advance(self, time: int) -> None:
        """Emit every report up to ``time`` (ms): nothing earlier will come."""
        if not self._begun:
            return
        self._release(time)
        self._complete(time + 1)
        self._run_clock(time)
        if self._now is None or time > self._now:
            self._now = time

    def close(self) -> None:
        """End the input; nothing further is due."""
        self._waiting.clear()

    def _order(self, element: StreamElement, bound: int) -> None:
        """Hold elements back until the watermark, the greatest time less the bound, has reached them."""
        if self._is_late(element, bound):
            self.late += 1
            return
        heapq.heappush(self._waiting, (element.time, element.sequence, element))
        self._greatest = element.time if self._greatest is None else max(self._greatest, element.time)
        watermark = self._greatest - bound
        self._release(watermark)
        self._move(watermark)

    def _is_late(self, element: StreamElement, bound: int) -> bool:
        if self._greatest is None or element.time >= self._greatest:
            return False
        if self._clocked and self._semantics.report & {Report.WINDOW_CLOSE, Report.PERIODIC}:
            reported = self._next - self._scopes.step
            return self._next > self._scopes.begin and element.time < reported + self._lag
        return element.time < self._greatest - bound

    def _release(self, time: int) -> None:
        waiting = self._waiting
        while waiting and waiting[0][0] <= time:
            self._take(heapq.heappop(waiting)[2])

    def _take(self, element: StreamElement) -> None:
        time = element.time
        if time != self._now:
            self._move(time)
            if self._now is not None and time < self._now and self._semantics.lateness is None:
                raise ValueError(
                    f"element {element.sequence} of {element.stream} goes back from {self._now} to {time} ms: "
                    "sort the stream or declare a lateness bound"
                )
            self._now = time
        if self._clocked:
            self._content.add(time, element.added)
        else:
            self._enter_ticking(time, element)

    def _enter_ticking(self, time: int, element: StreamElement) -> None:
        if self._tick is Tick.TUPLE:
            for triple in element.added:
                self._content.add(time, (triple,))
                self._look(self._scopes.element(time))
            return
        self._content.add(time, element.added)
        if self._tick is Tick.BATCH:
            self._open_batch = time
        else:
            self._look(self._scopes.element(time))

    def _move(self, time: int) -> None:
        """Emit what an element of ``time`` must not be seen by."""
        self._complete(time)
        self._run_clock(time - self._lag)

    def _complete(self, before: int) -> None:
        """Look at a batch whose time is over."""
        if self._open_batch is not None and self._open_batch < before:
            batch, self._open_batch = self._open_batch, None
            self._look(self._scopes.element(batch))

    def _run_clock(self, limit: int) -> None:
        """Look at the clock's instants up to ``limit``."""
        if not self._clocked or self._next > limit:
            return
        scopes = self._scopes
        if self._semantics.due is Due.LAST and Report.WINDOW_CLOSE in self._semantics.report:
            self._next += (limit - self._next) // scopes.step * scopes.step
        while self._next <= limit:
            instant = self._next
            self._next += scopes.step
            self._look(scopes.clock(instant))
            self._skip(limit)
        self._content.drop_before(scopes.clock(self._next).first)

    def _skip(self, limit: int) -> None:
        """Pass over instants at which nothing can be due."""
        left = range(self._next, limit + 1, self._scopes.step)
        if not left:
            return
        oldest = self._content.oldest
        unchanged = self._presence is not None and not self._presence.differs
        if oldest is None and (self._non_empty or unchanged):
            if self._presence is not None:
                self._presence.settle()
            self._next = left.start + len(left) * left.step
        elif oldest is not None and unchanged:
            self._next = self._scopes.first_without(oldest, left)

    def _look(self, candidate: Candidate) -> None:
        """Report at a candidate if its content makes it due."""
        if not self._scopes.counts(candidate.instant):
            return
        self._content.drop_before(candidate.first)
        changed = self._presence is None or self._presence.settle()
        if changed and not (self._non_empty and self._content.oldest is None):
            self._streamer.report(candidate)


def _content(evaluator: Evaluator, presence: Presence | None) -> Content:
    if presence is None:
        return Content(evaluator.enter, evaluator.leave)
    presence_enter, presence_leave = presence.enter, presence.leave

    def enter(graph: Iterable[Triple]) -> None:
        presence_enter(graph)
        evaluator.enter(graph)

    def leave(graph: Iterable[Triple]) -> None:
        presence_leave(graph)
        evaluator.leave(graph)

    return Content(enter, leave)
