"""Watches: iterators of answers that read elements as answers are requested; also for ``async for``."""

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import inf
from threading import Lock
from types import TracebackType
from typing import TYPE_CHECKING, ClassVar, Final, Generic, Literal, TypeAlias, TypeVar

from streamgauge.formats.lines import Advance, Input
from streamgauge.model.answer import Answer, AnswerTable
from streamgauge.model.element import StreamElement
from streamgauge.model.mistake import plain_mistakes
from streamgauge.model.terms import Term
from streamgauge.semantics.beginning import all_closed, awaited
from streamgauge.servers.queries.sessions import EngineSession
from streamgauge.watching.arrivals import MergedStreams, Place
from streamgauge.watching.inputs import StreamFeed, Understood

if TYPE_CHECKING:
    from streamgauge.formats.batches import ElementBatch, Taken

Emitted = TypeVar("Emitted")

End: TypeAlias = Literal["windows", "stream"] | int
"""How far time advances after the streams' end: until all non-empty windows have closed, not at all, or to ms."""


def wall_clock() -> int:
    """The current time in ms since 1970."""
    return time.time_ns() // 1_000_000


@dataclass(frozen=True, slots=True)
class Passing:
    """How time passes: at the ``end`` of the streams, and by a ``wall`` clock (ms) while no element arrives."""

    end: End = "windows"
    wall: Callable[[], int] | None = None


LOOKED_AT: Final = 1000
"""Elements whose predicates are collected, for a hint when a query never has rows."""


class Watch(Generic[Emitted]):
    """Answers as they come, to iterate over once; to be closed, or used with ``with``, when left before the end.

    ``asked`` are the queries with their semantics; ``elements`` counts what has come, ``late`` what came too late to
    count, ``uncounted`` what lies before t0, ``answers`` what was given; ``predicates`` are those of the first
    ``LOOKED_AT`` elements. ``sharding`` says how queries are spread over processes, where that was asked for.
    """

    durable: ClassVar[bool] = False
    """Whether it keeps its state in a folder."""

    def __init__(
        self,
        queries: Sequence[Understood],
        asking: EngineSession,
        ready: deque[Emitted],
        items: "Iterable[Taken | None]",
        passing: Passing,
        feeds: Sequence[StreamFeed],
        leave: Callable[[], None],
        sharding: str = "",
    ) -> None:
        self.sharding = sharding
        self.asked, self._asking, self._ready, self._items = queries, asking, ready, iter(items)
        self._passing, self._feeds, self._leave = passing, feeds, leave
        self._last: int | None = None
        self._latest_advance: int | None = None
        self._over = False
        self._failed: Exception | None = None
        self._first: float = inf  # the least t0 (ms), infinite before it is known
        self.elements = self.answers = self.uncounted = 0
        self.predicates: set[Term] = set()

    @property
    def late(self) -> int:
        """The number of elements dropped as late."""
        return self._asking.late

    @property
    def horizon(self) -> int | None:
        """The current time (ms) by elements, advances and ``end``; ``None`` before the first."""
        return max((time for time in (self._last, self._latest_advance) if time is not None), default=None)

    @property
    def awaited(self) -> str:
        """When the first window will close, as a sentence; empty after that."""
        horizon = self.horizon
        if horizon is None or self.answers:
            return ""
        # The engine has begun no query before the first element, hence not strict.
        begun = zip(self.asked, self._asking.begun, strict=False)
        return next((awaited(one.query.windows, *begun_query, horizon) for one, begun_query in begun), "")

    @property
    def refused(self) -> tuple[str, ...]:
        """Why sources skipped invalid input (``bad=skip``): sentences for the first ten of each source."""
        return tuple(reason for feed in self._feeds if feed.source is not None for reason in feed.source.reasons)

    def __iter__(self) -> Iterator[Emitted]:
        return self

    @plain_mistakes
    def __next__(self) -> Emitted:
        """The next answer, waited for."""
        while not self._ready:
            if self._over:
                raise StopIteration
            self._step()
        self.answers += 1
        return self._ready.popleft()

    @plain_mistakes
    def gather(self, limit: int | None = None) -> list[Emitted]:
        """All available answers, at least one and at most ``limit``; empty at the end."""
        while not self._ready and not self._over:
            self._step()
        count = len(self._ready) if limit is None else min(limit, len(self._ready))
        gathered = [self._ready.popleft() for _ in range(count)]
        self.answers += len(gathered)
        return gathered

    def settle(self) -> None:
        """Confirm the returned answers, so that a durable watch does not return them again."""

    def table(self: "Watch[Answer]") -> AnswerTable:
        """The rows of all remaining answers as one table: ``table().to_pandas()``."""
        return AnswerTable(self)

    def close(self) -> None:
        """End the watch with its sources and its engine."""
        if not self._over:
            self._over = True
            self._ready.clear()
            # Closing may happen within the engine's own call or a source's generator, which refuse to be closed while
            # they run.
            with suppress(ValueError, RuntimeError):
                self._finish()

    def __enter__(self) -> "Watch[Emitted]":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def __del__(self) -> None:
        # The constructor may have failed before there was anything to close.
        if hasattr(self, "_over"):
            self.close()

    def _step(self) -> None:
        """Process one item; an error ends the watch."""
        try:
            if not self._take():
                self._end()
                self._over = True
                self._finish()
        except BaseException:
            self.close()
            raise

    def _take(self) -> bool:
        """Process the next item of the sources, if any; returns whether more may follow."""
        if self._failed is not None:
            raise self._failed
        try:
            item = next(self._items)
        except StopIteration:
            return False
        if item is None:
            if self._passing.wall is not None:
                self._pass_time(self._passing.wall)
        else:
            self._try(item)
        return True

    def _try(self, item: "Taken") -> None:
        """Process an item; an error is raised once the answers before it are given."""
        try:
            self._enter(item)
        except Exception as error:
            if not self._ready:
                raise
            self._failed = error

    def _pass_time(self, clock: Callable[[], int]) -> None:
        """Advance time by a wall clock (ms), minus the lateness that elements are allowed."""
        margin = max(query.semantics.lateness or 0 for query in self.asked)
        # An element of the current ms may still come.
        self._advance(clock() - margin - 1)

    def _enter(self, item: "Taken") -> None:
        """Process an element, an advance, or elements in columns."""
        if isinstance(item, Advance):
            self._advance(item.time)
            return
        if isinstance(item, StreamElement):
            self._enter_element(item)
        else:
            self._enter_batch(item)

    def _enter_element(self, item: StreamElement) -> None:
        if self.elements < LOOKED_AT:
            self.predicates.update(predicate for _, predicate, _ in item.added)
        self.elements += 1
        if self._last is None or item.time > self._last:
            self._last = item.time
        self._asking.push(item)
        # Only now is t0 known: the first element may have set it.
        if item.time < self._first:
            self._first = min((t0 for _, t0 in self._asking.begun), default=inf)
            self.uncounted += item.time < self._first

    def _enter_batch(self, batch: "ElementBatch") -> None:
        # Only a batch that needs a look at each element is taken apart; all others stay columns.
        if self.elements < LOOKED_AT or int(batch.times.min()) < self._first:
            for element in batch.elements():
                self._enter_element(element)
            return
        self.elements += len(batch)
        latest = int(batch.times.max())
        self._last = latest if self._last is None else max(self._last, latest)
        self._asking.take(batch)

    def _end(self) -> None:
        end = self._passing.end
        if end == "windows" and self._last is not None:
            # All queries share one time, so the longest window decides.
            self._advance(max(all_closed(one.query.windows, self._last) for one in self.asked))
        elif isinstance(end, int):
            self._advance(end)
        elif self._last is not None:
            self._advance(self._last)

    def _advance(self, time: int) -> None:
        self._latest_advance = time if self._latest_advance is None else max(self._latest_advance, time)
        self._asking.advance(time)

    def _finish(self) -> None:
        try:
            self._leave()
        finally:
            self._asking.close()


class AsyncWatch(Generic[Emitted]):
    """An asynchronous iterator of answers; close it, or use it in ``async with``, if it may be left before the end."""

    def __init__(
        self, watch: Watch[Emitted], arrivals: MergedStreams, pumps: Sequence[tuple[Place, AsyncIterable[Input]]]
    ) -> None:
        self._watch, self._arrivals, self._pumps = watch, arrivals, pumps
        self._tasks: list[asyncio.Task[None]] = []
        # `_close` may run while a cancelled `_gather` still works: a thread cannot be cancelled.
        self._working = Lock()
        self._answers = self._run()

    @property
    def late(self) -> int:
        """The number of elements dropped as late."""
        return self._watch.late

    @property
    def elements(self) -> int:
        """The number of elements read."""
        return self._watch.elements

    def __aiter__(self) -> "AsyncWatch[Emitted]":
        return self

    async def __anext__(self) -> Emitted:
        """The next answer; cancelling the wait ends the watch."""
        with plain_mistakes:
            return await anext(self._answers)

    async def aclose(self) -> None:
        """End the watch with its sources and its engine."""
        await self._answers.aclose()
        await self._shut()

    async def __aenter__(self) -> "AsyncWatch[Emitted]":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.aclose()

    async def _run(self) -> AsyncGenerator[Emitted, None]:
        self._tasks = [asyncio.create_task(self._pump(place, items)) for place, items in self._pumps]
        try:
            # Several answers per thread: handing one over costs more than most answers take.
            while answers := await asyncio.to_thread(self._gather):
                for answer in answers:
                    yield answer
        finally:
            await self._shut()

    async def _shut(self) -> None:
        # First, so that a `_gather` that waits for items returns and the lock becomes free.
        self._arrivals.stop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.to_thread(self._close)

    def _gather(self) -> list[Emitted]:
        with self._working:
            return self._watch.gather()

    def _close(self) -> None:
        with self._working:
            self._watch.close()

    async def _pump(self, place: Place, items: AsyncIterable[Input]) -> None:
        """Pass on the items of an asynchronous source; waiting for room happens in a thread."""
        try:
            async for item in items:
                if not self._arrivals.offer(place, item) and not await asyncio.to_thread(
                    self._arrivals.put, place, item
                ):
                    return
            self._arrivals.end(place)
        except Exception as error:
            self._arrivals.end(place, error)
