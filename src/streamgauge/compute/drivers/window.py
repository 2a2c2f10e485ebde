"""The window driver: elements enter and leave the incremental evaluator as a Semantics value says, reports go out."""

from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush

from streamgauge.compute.changes.evaluator import Evaluator
from streamgauge.compute.drivers.content import Content
from streamgauge.compute.drivers.instants import Look, Looks, Ticking, clocked
from streamgauge.compute.drivers.streaming import Streaming
from streamgauge.model.answer import Answer
from streamgauge.model.element import StreamElement
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.semantics import Borders, Due, Origin, Report, Semantics, Tick
from streamgauge.model.terms import Triple
from streamgauge.semantics.refusal import OutOfOrderError


class WindowDriver:
    """Drives one query over one time-based window; ``late`` counts elements that came too late to count.

    Times are ms. Reports are due as SEMANTICS says: under window close (or periodic, or time-driven ticks) when time
    passes an instant, else at the ticks of the elements themselves.
    """

    def __init__(self, query: ContinuousQuery, semantics: Semantics, emit: Callable[[Answer], None]) -> None:
        self._window, self._semantics = query.window, semantics
        evaluator = Evaluator(query.form, query.static, semantics.empty_aggregate)
        self._content = Content(evaluator, semantics)
        self._streaming = Streaming(query.form, evaluator, query.r2s or semantics.r2s, semantics, emit)
        self._half_open = semantics.borders is Borders.CLOSED_OPEN
        self._clocked = clocked(semantics)
        self._single = semantics.tick in {Tick.TUPLE, Tick.ELEMENT}
        self._early = None if semantics.partial_head else query.window.size
        self._t0: int | None = semantics.t0 if semantics.origin is not Origin.FIRST else None
        self._greatest = -(2**62)
        self._held: list[tuple[int, int, tuple[Triple, ...]]] = []
        self._batch: deque[tuple[int, tuple[Triple, ...]]] = deque()
        self.late = 0
        if self._t0 is not None:
            self._begin(self._t0)

    def _begin(self, t0: int) -> None:
        self._t0 = t0
        self._looks = Looks(self._window, self._semantics, t0)
        self._ticking = Ticking(self._window, self._semantics, t0)
        self._frontier = -(2**62)

    def push(self, element: StreamElement) -> None:
        """An element has come: what its time makes due is reported first."""
        time = element.time
        if self._t0 is None:
            self._begin(time - time % self._semantics.time_unit)
        bound = self._semantics.lateness
        if time < self._greatest:
            if bound is None:
                raise OutOfOrderError(
                    f"element {element.sequence} goes back from {self._greatest} to {time} ms: "
                    "sort the stream or declare a lateness bound"
                )
            if time < self._too_late(self._greatest - bound):
                self.late += 1
                return
        else:
            self._greatest = time
        if bound is None:
            self._come_to(time)
            self._enter(time, element.added)
            return
        heappush(self._held, (time, element.sequence, element.added))
        watermark = self._greatest - bound
        if not self._clocked:
            self._release(watermark)
        self._come_to(watermark)

    def advance(self, time: int) -> None:
        """Nothing earlier than ``time`` will come, and what is at it has come: reports up to it are due."""
        if self._t0 is None:
            return
        self._greatest = max(self._greatest, time)
        if self._clocked:
            self._report_up_to(time)
            return
        self._release(time + 1)
        self._finish_batch(time)

    def close(self) -> None:
        """No more input; nothing further is due."""
        self._batch.clear()
        self._held.clear()

    def _release(self, watermark: int) -> None:
        """Let in what the lateness bound held back and is earlier than the watermark, in order of time."""
        while self._held and self._held[0][0] < watermark:
            time, _, triples = heappop(self._held)
            self._finish_batch(time - 1)
            self._enter(time, triples)

    def _too_late(self, watermark: int) -> int:
        """The time below which an element is late: a report that is due already, or the watermark at ticks."""
        if self._semantics.report & {Report.WINDOW_CLOSE, Report.PERIODIC}:
            return self._frontier
        return watermark

    def _come_to(self, time: int) -> None:
        """Time has come to ``time``, whose own elements are still to enter."""
        self._finish_batch(time - 1)
        if self._clocked and self._ticking.next <= time:
            self._report_up_to(time if self._half_open else time - 1)

    def _enter(self, time: int, triples: tuple[Triple, ...]) -> None:
        t0 = self._t0
        if t0 is None or time < t0:
            return
        if self._clocked:
            self._content.enter(time, triples)
        elif self._semantics.tick is Tick.TUPLE:
            for triple in triples:
                self._tick(time, [(time, (triple,))])
        elif self._single:
            self._tick(time, [(time, triples)])
        else:
            self._batch.append((time, triples))

    def _finish_batch(self, until: int) -> None:
        """Batch-driven: everything at one time is one tick, once nothing more can come at it."""
        batch = self._batch
        while batch and batch[0][0] <= until:
            time = batch[0][0]
            together = []
            while batch and batch[0][0] == time:
                together.append(batch.popleft())
            self._tick(time, together)

    def _tick(self, time: int, arrivals: list[tuple[int, tuple[Triple, ...]]]) -> None:
        look = self._looks.tick(time)
        self._content.drop(look.first)
        if time >= look.first:
            for at, triples in arrivals:
                self._content.enter(at, triples)
        assert self._t0 is not None
        if self._early is None or time >= self._t0 + self._early:
            self._look(look)

    def _report_up_to(self, limit: int) -> None:
        """Report the instants of the clock up to ``limit``; only the last of them where the semantics says so."""
        if self._content.idle and not (self._held and self._held[0][0] <= limit):
            self._ticking.skip_to(limit)
        instants = self._ticking.up_to(limit)
        if (passed := self._ticking.passed) is not None:
            self._frontier = passed if self._half_open else passed + 1
        if self._semantics.due is Due.LAST:
            instants = instants[-1:]
        look = self._looks.close if self._ticking.closes else self._looks.clock
        for instant in instants:
            at = look(instant)
            self._release(at.last + 1)
            self._content.drop(at.first)
            self._look(at)
        if instants:
            self._content.drop(look(self._ticking.next).first)

    def _look(self, look: Look) -> None:
        if self._content.due():
            self._streaming.report(look)
