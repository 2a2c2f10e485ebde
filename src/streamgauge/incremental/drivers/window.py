"""The window driver: elements enter and leave the incremental evaluator according to a Semantics value.

Queries with the same windows, semantics and static data share one driver; others have separate ones.
"""

from collections import deque
from collections.abc import Callable, Hashable, Sequence
from heapq import heappop, heappush
from itertools import count, islice
from typing import TYPE_CHECKING, TypeAlias

from streamgauge.incremental.drivers.admission import Admission, disorder
from streamgauge.incremental.drivers.frames import (
    NEVER,
    CountFrame,
    Frame,
    TimeFrame,
    clocks,
    closing,
    evaluators,
    frames,
    report_instant,
)
from streamgauge.incremental.drivers.relation_to_stream import RelationToStream, SharedReports
from streamgauge.model.element import StreamElement
from streamgauge.model.engine import Emit
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.semantics import Borders, Origin, Report, Semantics, Tick
from streamgauge.model.terms import Triple
from streamgauge.semantics.growth import sent_at_once
from streamgauge.semantics.jumps import MAX_INSTANTS, is_quiet, refuse_jump

if TYPE_CHECKING:
    from streamgauge.formats.batches import ElementBatch
    from streamgauge.incremental.column_joins import ColumnJoins
    from streamgauge.incremental.drivers.ticks import TickColumns
    from streamgauge.incremental.term_ids import IdTriples


_EARLY = -(2**62)

Arrive: TypeAlias = Callable[[int, Sequence[Triple], int | None], None]
"""Receives triples with their time (ms) and end (ms)."""

Arrived: TypeAlias = tuple[int, tuple[Frame, ...], Sequence[Triple], int | None]
"""Time (ms), the windows of the stream, triples, end (ms)."""


class WindowDriver:
    """Drives queries with the same windows and static data; ``late`` counts late elements.

    Times are ms. Reports are due as in docs/semantics.md: under window close (or periodic, or time-driven ticks) when
    time passes an instant, at a count-based window's triples, else at the ticks of the elements themselves. Elements of
    other streams are skipped.
    """

    def __init__(self, queries: Sequence[tuple[ContinuousQuery, Emit]], semantics: Semantics) -> None:
        self._queries, self._semantics = [query for query, _ in queries], semantics
        self._pool, answers = evaluators(self._queries, semantics)
        streamings = [
            RelationToStream(query.form, answer, query.r2s or semantics.r2s, semantics, emit)
            for (query, emit), answer in zip(queries, answers, strict=True)
        ]
        self._reports = SharedReports(streamings, self._pool)
        self.operator_trees = [streaming.operator_tree for streaming in streamings]
        query = self._queries[0]
        self._at_once = all(sent_at_once(query, semantics) for query in self._queries)
        self._tick_kind = Tick.ELEMENT if self._at_once and semantics.tick is Tick.BATCH else semantics.tick
        self._half_open = semantics.borders is Borders.CLOSED_OPEN
        self._closing = closing(semantics)
        self._counting = any(window.window.kind == "count" for window in query.windows)
        self._non_empty = Report.NON_EMPTY in semantics.report
        self._quiet = is_quiet(semantics)
        whole = all(streaming.stateless for streaming in streamings)
        self._sent_from = _EARLY if semantics.since is None or not whole else semantics.since
        self._nothing, self._silent = 0, False  # looks at nothing since the last one at something; nothing was sent
        self._of: dict[str, tuple[Frame, ...]] = {window.stream: () for window in query.windows}
        self._enters: dict[str, tuple[Arrive, ...]] = {}
        self._direct: dict[str, Arrive] = {}
        self._due, self._cut = _EARLY, NEVER
        self._begun, self._t0, self._greatest = False, 0, _EARLY
        self._held: list[tuple[int, int, int, StreamElement]] = []
        self._arrivals = count()  # parts elements of one time and number, as two streams may have
        self._batch: deque[Arrived] = deque()
        self._admission, self._heard, self._looked, self.late = Admission(self._of), False, False, 0
        if semantics.origin is not Origin.FIRST:
            self._begin(semantics.t0)

    def _begin(self, t0: int) -> None:
        query, semantics = self._queries[0], self._semantics
        self._begun, self._t0 = True, t0
        self._frames = frames(self._queries, semantics, self._pool, t0)
        self._now = report_instant(self._queries, self._pool)
        pairs = list(zip(query.windows, self._frames, strict=True))
        self._of = {stream: tuple(frame for window, frame in pairs if window.stream == stream) for stream in self._of}
        self._clocks = clocks(query, self._frames, semantics, t0)
        if self._clocks is not None and not (self._closing and self._counting):
            self._enters = {stream: tuple(frame.arrive for frame in frames) for stream, frames in self._of.items()}
        self._alone = len(self._frames) == 1 or not self._closing
        self._telling = not self._counting and all(frame.content.telling for frame in self._frames)
        self._ticked = self._frontier = _EARLY
        self._cut = self._next_cut(t0)

    def push(self, element: StreamElement) -> None:
        """Process an element; reports that its time makes due come first."""
        enter = self._direct.get(element.stream)
        if enter is not None and self._greatest <= element.time < self._due:
            self._greatest = element.time
            enter(element.time, element.added, element.until)
            return
        if (not self._heard or element.stream not in self._of) and not self._admits(element):
            return
        time, bound = element.time, self._semantics.lateness
        if time < self._greatest:
            if bound is None:
                raise disorder(element, self._greatest)
            if time < self._too_late(self._greatest - bound):
                self.late += 1
                return
        else:
            self._greatest = time
        if bound is None:
            self._come_to(time)
            self._take(element)
            self._take_directly(element)
            return
        heappush(self._held, (time, element.sequence, next(self._arrivals), element))
        self._come_with_watermark(self._greatest - bound)

    def _take_directly(self, element: StreamElement) -> None:
        """Pass elements of a stream directly to its only window while no report is due between them."""
        enters = self._enters.get(element.stream, ())
        if len(enters) == 1 and self._clocks is not None and element.time >= self._t0:
            self._direct[element.stream] = enters[0]
            self._due = min(self._clocks.next, self._cut)

    def push_batch(self, batch: "ElementBatch") -> None:
        """Process elements in order, in columns if changes are joined that way."""
        times = batch.times
        rising = times[0] >= self._greatest and bool((times[1:] >= times[:-1]).all())
        if not rising or self.bounded:
            for element in batch.elements():
                self.push(element)
            return
        if not self._admits(StreamElement(batch.stream, int(times[0]), int(batch.sequences[0]), ())):
            return
        if self._clocks is None:
            self._push_ticks(batch)
            return
        enters = self._enters.get(batch.stream)
        numbered = self._pool.numbered(batch) if enters else None
        if enters and numbered is not None:
            self._enter_batch(batch, numbered, enters)
            return
        for element in batch.elements():
            self.push(element)

    def _enter_batch(self, batch: "ElementBatch", triples: "IdTriples", enters: tuple[Arrive, ...]) -> None:
        """Let elements enter together while no report is due between them."""
        times, clocks = batch.times, self._clocks
        assert clocks is not None
        at = int(times.searchsorted(self._t0))
        while at < len(times):
            self._come_to(int(times[at]))
            until = max(at + 1, int(times.searchsorted(clocks.next + (not self._half_open))))
            piece = triples.part(int(batch.borders[at]), int(batch.borders[until]))
            for enter in enters:
                enter(int(times[at]), piece, None)
            at = until
        self._greatest = int(times[-1])

    def _push_ticks(self, batch: "ElementBatch") -> None:
        """Process a batch of elements that drive reports: in columns after the first look, if it is large enough."""
        at = 0
        for element in batch.elements() if not self._looked else ():
            self.push(element)
            at += 1
            if self._looked:
                break
        first = max(at, int(batch.times.searchsorted(self._t0)))
        if first == len(batch.times):
            return
        size = int(batch.borders[-1] - batch.borders[first])
        if self._looked and (self._pool.in_columns or self._pool.enter_columns(size)):
            self._take_ticks(batch, first)
            return
        for element in islice(batch.elements(), at, None):
            self.push(element)

    def _take_ticks(self, batch: "ElementBatch", first: int) -> None:
        """Process the elements of a batch from ``first`` on as ticks in columns; batch-driven, the last time waits."""
        from streamgauge.incremental.drivers.ticks import by_ticks

        times, borders, frames = batch.times, batch.borders, self._of[batch.stream]
        numbered, end = self._pool.numbered(batch), len(times)
        assert numbered is not None
        self._greatest = int(times[-1])

        def wait(begin: int, end: int) -> None:
            """Queue elements of one time."""
            self._batch.append((int(times[begin]), frames, numbered.part(int(borders[begin]), int(borders[end])), None))

        if self._tick_kind is Tick.BATCH:
            self._finish_batch(int(times[first]) - 1)
            begin, end = first, int(times.searchsorted(times[-1]))
            if self._batch and begin < end:
                first = int(times.searchsorted(times[begin], "right"))
                wait(begin, first)
                self._finish_batch(int(times[begin]))
        if first < end:
            triples = numbered.part(int(borders[first]), int(borders[end]))
            self._tick_in_columns(by_ticks(triples, self._tick_kind, times[first:end], borders[first : end + 1]))
        if end < len(times):
            wait(max(first, end), len(times))

    def _tick_in_columns(self, ticks: "TickColumns") -> None:
        """Process ticks in columns, or one by one if the pool has left columns, or does so now."""
        frame, frames = self._frames[0], self._frames
        assert isinstance(frame, TimeFrame)
        if not len(ticks.instants):
            return
        if ticks.joined(self._pool.in_columns, frame, self._reports.streamings, self._non_empty, self._look_at_tick):
            self._ticked = int(ticks.instants[-1])
            return
        for time, triples in ticks.one_by_one():
            if self._tick_kind is Tick.BATCH:
                self._tick(time, [(time, frames, triples, None)])
            else:
                self._tick_with(time, frames, triples, None)

    def _look_at_tick(self, instant: int) -> None:
        """Report a tick in columns."""
        frame = self._frames[0]
        assert isinstance(frame, TimeFrame)
        frame.look = frame.looks.tick(instant)
        if self._counts(instant):
            self._report(instant, frame.scope)

    def _admits(self, element: StreamElement) -> bool:
        """Whether an element belongs to the query's streams; the first one begins the windows."""
        if not self._admission.takes(element):
            return False
        self._heard = True
        if not self._begun:
            self._begin(element.time - element.time % self._semantics.time_unit)
        return True

    def advance(self, time: int) -> None:
        """Advance time: all elements up to ``time`` have arrived, so reports up to it are due."""
        if not self._begun:
            return
        self._greatest = max(self._greatest, time)
        if self._clocks is not None:
            self._report_up_to(time)
        self._release(time + 1)
        self._finish_batch(time)

    @property
    def reporting(self) -> Emit | None:
        """The receiver of the answer that is being evaluated."""
        return self._reports.reporting

    @property
    def stage(self) -> Hashable:
        """The query, or the pattern, that is being evaluated."""
        return self._pool.joining, self._reports.reporting

    @property
    def bounded(self) -> bool:
        """Whether elements may be out of order within a bound."""
        return self._semantics.lateness is not None

    def close(self) -> None:
        """End the input; StreamNameError if there were elements, but none of the query's streams."""
        self._batch.clear()
        self._held.clear()
        self._admission.close()

    def _come_with_watermark(self, watermark: int) -> None:
        """Advance the watermark; only looks at instants of a clock wait for further elements at that time."""
        if self._clocks is None:
            self._release(watermark)
        self._come_to(watermark)
        if self._closing and self._counting:
            self._release(watermark)

    def _release(self, watermark: int) -> None:
        """Let in what the lateness bound held back and is earlier than the watermark, in order of time."""
        while self._held and self._held[0][0] < watermark:
            time, _, _, element = heappop(self._held)
            self._finish_batch(time - 1)
            self._take(element)

    def _too_late(self, watermark: int) -> int:
        """The time below which an element is late: a report that is due already, or the watermark at ticks."""
        if Report.PERIODIC in self._semantics.report and not self._closing:
            return self._frontier
        return self._frontier if self._closing and not self._counting else watermark

    def _come_to(self, time: int) -> None:
        """Time has come to ``time``, whose own elements are still to enter."""
        if self._batch:
            self._finish_batch(time - 1)
        if self._cut <= time:
            self._cut = self._next_cut(time)
        if self._clocks is not None and self._clocks.next <= time:
            self._report_up_to(time if self._half_open else time - 1)

    def _next_cut(self, time: int) -> int:
        """Begin a new pane at a time (ms), if the evaluator joins panes; the time of the next one."""
        following = self._pool.cut(time, self._t0)
        return NEVER if following is None else following

    def _take(self, element: StreamElement) -> None:
        time, triples, until = element.time, element.added, element.until
        if time < self._t0:
            return
        if enters := self._enters.get(element.stream):
            for enter in enters:
                enter(time, triples, until)
        elif self._clocks is None:
            self._tick_with(time, self._of[element.stream], triples, until)
        else:
            self._count(time, self._of[element.stream], triples, until)

    def _tick_with(self, time: int, frames: tuple[Frame, ...], triples: tuple[Triple, ...], until: int | None) -> None:
        """Process an element that drives reports; if triples are the ticks, an empty element is none."""
        if self._counting and not triples:
            return
        pool = self._pool.in_columns
        if pool is not None:
            if until is not None:
                pool.leave_columns()
            elif self._tick_kind is not Tick.BATCH:
                self._tick_alone(time, [triples], pool)
                return
        match self._semantics.tick:
            case Tick.TUPLE if self._telling:
                self._follow(time, frames, triples, until)
            case Tick.TUPLE:
                for triple in triples:
                    self._tick(time, [(time, frames, (triple,), until)])
            case Tick.ELEMENT:
                self._tick(time, [(time, frames, triples, until)])
            case _ if self._at_once:
                self._grow(time, frames, triples, until)
            case _:
                self._batch.append((time, frames, triples, until))

    def _tick_alone(self, time: int, arrived: Sequence[Sequence[Triple]], pool: "ColumnJoins") -> None:
        """Process one element, or what waited at one time, in columns."""
        from streamgauge.incremental.drivers.ticks import of_element

        self._tick_in_columns(of_element(pool.together(time, arrived), self._tick_kind, time))

    def _grow(self, time: int, frames: tuple[Frame, ...], triples: tuple[Triple, ...], until: int | None) -> None:
        """Batch-driven, if rows are only added within one time: they are sent with each element."""
        if time != self._ticked:
            self._ticked = time
            self._tick(time, [(time, frames, triples, until)])
            return
        for frame in frames:
            if frame.takes(time):
                frame.arrive(time, triples, until)
        if self._pool.moved and self._counts(time):
            self._look(time)

    def _follow(self, time: int, frames: tuple[Frame, ...], triples: tuple[Triple, ...], until: int | None) -> None:
        """Tick with each triple; at a time already evaluated, only triples that match a pattern need a look."""
        if triples and time != self._ticked:
            self._ticked = time
            self._tick(time, [(time, frames, triples[:1], until)])
            triples = triples[1:]
        takers = [frame.content.enter_each(time, triples, until) for frame in frames if frame.takes(time)]
        pool, counts = self._pool, self._counts(time)
        for _ in zip(*takers, strict=True):
            if counts and pool.moved:
                self._look(time)

    def _count(self, time: int, frames: tuple[Frame, ...], triples: tuple[Triple, ...], until: int | None) -> None:
        """Process an element whose triples may close count-based windows."""
        counting = [frame for frame in frames if isinstance(frame, CountFrame)]
        for frame in frames:
            if not isinstance(frame, CountFrame):
                frame.arrive(time, triples, until)
        for triple in triples:
            for frame in counting:
                frame.arrive(time, (triple,), until)
            ready = [frame for frame in counting if frame.closes]
            for frame in ready:
                frame.close(time)
            if ready and self._counts(time):
                self._look(time)

    def _finish_batch(self, until: int) -> None:
        """Batch-driven: all elements of one time are one tick, once the time is complete."""
        batch = self._batch
        while batch and batch[0][0] <= until:
            time = batch[0][0]
            together = []
            while batch and batch[0][0] == time:
                together.append(batch.popleft())
            self._tick(time, together)

    def _tick(self, time: int, arrived: list[Arrived]) -> None:
        pool = self._pool.in_columns
        if pool is not None:
            if all(until is None for _, _, _, until in arrived):
                self._tick_alone(time, [triples for _, _, triples, _ in arrived], pool)
                return
            pool.leave_columns()
        for frame in self._frames:
            frame.tick(time)
        for _, takers, triples, until in arrived:
            for frame in takers:
                if frame.takes(time):
                    frame.arrive(time, triples, until)
        if self._counts(time):
            self._look(time)

    def _report_up_to(self, limit: int) -> None:
        """Report at the instants of the clocks up to ``limit``."""
        ticking = self._clocks
        assert ticking is not None
        jump = ticking.next, limit
        for instant, moves, last in ticking.up_to(limit, lambda: self._still(*jump)):
            self._release(instant if self._half_open else instant + 1)
            for move in moves:
                move(instant)
            if last and self._counts(instant):
                self._look(instant)
        if (passed := ticking.passed) is not None:
            self._frontier = passed if self._half_open else passed + 1
        if self._alone:
            for frame in self._frames:
                frame.forget_before(ticking.next)

    def _still(self, first: int, limit: int) -> bool:
        """Whether contents and queues are empty up to ``limit`` (ms) and nothing is sent for that; TimeJumpError."""
        if (self._held and self._held[0][0] <= limit) or not all(frame.content.still for frame in self._frames):
            return False
        if self._nothing > 1 and not self._silent:
            refuse_jump(self._queries[0].windows, self._semantics, first, limit, MAX_INSTANTS)
        return self._quiet or self._silent

    def _counts(self, instant: int) -> bool:
        """Whether a look at an instant may report."""
        semantics, t0 = self._semantics, self._t0
        if self._closing:
            return semantics.period is None or (instant > t0 and (instant - t0) % semantics.period == 0)
        return instant >= t0 and (semantics.partial_head or any(frame.whole(instant) for frame in self._frames))

    def _look(self, instant: int) -> None:
        """Report, unless a strategy about content forbids it; changes count from here on."""
        changed = True in [frame.content.settle() for frame in self._frames]
        holding = True in [frame.content.held for frame in self._frames]
        if not changed or (self._non_empty and not holding):
            return
        if holding and instant < self._sent_from:
            self._nothing, self._silent = 0, False
            return
        scopes = [frame.scope for frame in self._frames]
        self._report(instant, (min(scopes)[0], max([end for _, end in scopes])))
        self._looked = True
        self._nothing = 0 if holding else self._nothing + 1
        self._silent = not holding and self._now is None and self._reports.silent

    def _report(self, instant: int, scope: tuple[int, int]) -> None:
        if self._now is not None:
            self._now.move(instant)
        self._pool.look()
        self._reports.report(instant, scope)
        self._pool.release()
