"""Background work of a fragments server: feeding data sets from streams, and removing facts that have ended."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from queue import Empty, Full, Queue
from threading import Event, Thread
from typing import Final, TypeAlias

from starlette.types import ASGIApp, Receive, Scope, Send

from streamgauge.formats.lines import Input
from streamgauge.formats.streams import one_by_one
from streamgauge.model.element import StreamElement
from streamgauge.model.fact import Fact
from streamgauge.model.phrases import counted
from streamgauge.model.terms import Term, Triple
from streamgauge.servers.fragments.labels import Label, LabelError
from streamgauge.servers.fragments.pages.dataset import DataSet
from streamgauge.servers.fragments.store import DamagedStoreError, FullError
from streamgauge.servers.fragments.writes import FactDraft
from streamgauge.servers.fragments.writes.queue import sweep_beside
from streamgauge.servers.http.heads import PromptAnswer
from streamgauge.sources import Source, SourceError

Sleep: TypeAlias = Callable[[float], Awaitable[None]]
Say: TypeAlias = Callable[[str], None]

MAX_WAITING_ELEMENTS: Final = 4_096
"""Elements that may wait to be applied; then the source is paused."""

MAX_BATCH: Final = 512
"""Waiting elements that are applied as one change."""

MAX_REASONS: Final = 10
"""Refused elements whose errors are reported."""

_WAIT_S: Final = 0.05


@dataclass(slots=True)
class FeedCounts:
    """Counters of a feed: elements applied, facts written, elements refused.

    ``over`` are facts that had ended before they arrived, which an expiration label does not keep.
    """

    elements: int = 0
    facts: int = 0
    over: int = 0
    refused: int = 0
    reasons: list[str] = field(default_factory=list)

    def refuse(self, element: StreamElement, why: Exception) -> None:
        """Count an element that could not be applied."""
        self.refused += 1
        if len(self.reasons) < MAX_REASONS:
            self.reasons.append(f"element {element.sequence} of {element.time} ms: {why}"[:300])

    def __str__(self) -> str:
        come = f"{counted(self.elements, 'element')}, {counted(self.facts, 'fact')}"
        text = f"{come}, {self.over} already ended, {self.refused} refused"
        return text + "".join(f"\n  {reason}" for reason in self.reasons)


@dataclass(frozen=True, slots=True)
class FeedPace:
    """Replaying a recorded stream: its first element comes now, ``factor`` times as fast as it was recorded.

    All times are shifted and scaled alike, ends included. A feed without a pace applies elements immediately, with
    their recorded times.
    """

    factor: float

    def moved(self, time: int, first: int, begin: int) -> int:
        """The clock time (ms) of a recorded time, if the first element's ``first`` is replayed at ``begin``."""
        return begin + round((time - first) / self.factor)


@dataclass(frozen=True, slots=True)
class DataSetFeed:
    """A source for a data set; facts without an end hold for ``lasting`` ms, or indefinitely."""

    dataset: DataSet
    source: Source
    pace: FeedPace | None = None
    lasting: int | None = None


class FeedRunner:
    """Runs a feed: a thread reads the source, the event loop applies its elements."""

    def __init__(self, feed: DataSetFeed, say: Say, sleep: Sleep = asyncio.sleep) -> None:
        self._feed, self._say, self._sleep = feed, say, sleep
        self._coming: Queue[Input | Exception | None] = Queue(MAX_WAITING_ELEMENTS)
        self._closing, self._ended = Event(), False
        self._begun: tuple[int, int] | None = None
        # The version differs from that of any earlier feed that has written something, and with it the names of blank
        # nodes.
        self._blank = f"f{feed.dataset.store.version}x"
        self.fed = FeedCounts()
        self._lag: int | None = None
        self._fault = ""

    @property
    def name(self) -> str:
        """The name of the data set that is fed."""
        return self._feed.dataset.name

    def status(self) -> dict[str, object]:
        """Elements and facts so far, how far behind the clock the last one was (``lag``, ms), and the end."""
        refused = self.fed.refused + self._feed.source.refused
        status: dict[str, object] = {"elements": self.fed.elements, "facts": self.fed.facts, "refused": refused}
        status |= {"ended": self._closing.is_set()}
        status |= {"lag": self._lag} if self._lag is not None else {}
        return status | ({"fault": self._fault} if self._fault else {})

    async def run(self) -> None:
        """Apply elements until the source ends or ``close`` is called, then report the counters."""
        reader = Thread(target=self._read, name=f"streamgauge-feed-{self._feed.dataset.name}", daemon=True)
        reader.start()
        name, why = self._feed.dataset.name, "has ended"
        try:
            while (items := await self._next()) is not None:
                for error in (item for item in items if isinstance(item, Exception)):
                    self._fault, why = str(error), f"stopped: {error}"
                await self._apply([item for item in items if isinstance(item, StreamElement)])
        except Exception as error:
            self._fault = str(error) or type(error).__name__
            why = f"stopped: {self._fault}"
            raise
        finally:
            self.close()
            passed = f", {self._feed.source.refused} unreadable" if self._feed.source.refused else ""
            self._say(f"the feed of /{name} {why}: {self.fed}{passed}")

    def close(self) -> None:
        """Stop, from any thread."""
        self._closing.set()
        self._feed.source.close()

    def _read(self) -> None:
        try:
            for item in one_by_one(self._feed.source.items()):
                if not self._put(item):
                    return
        except (SourceError, OSError) as error:
            self._put(error)
        except Exception as error:
            _LOG.exception("/%s: the source of the feed failed", self.name)
            self._put(error)
        finally:
            # Whatever happened: without an end ``run`` would wait for items for ever.
            self._put(None)

    def _put(self, item: Input | Exception | None) -> bool:
        while not self._closing.is_set():
            try:
                # With a timeout, or ``close`` could not end a thread that waits for room.
                self._coming.put(item, timeout=_WAIT_S)
            except Full:
                continue
            return True
        return False

    async def _next(self) -> list[Input | Exception] | None:
        """The waiting items, at least one, ``MAX_BATCH`` at most; ``None`` at the end."""
        items: list[Input | Exception] = []
        while not self._closing.is_set() and not self._ended:
            try:
                item = self._coming.get_nowait()
            except Empty:
                if items:
                    return items
                await self._sleep(_WAIT_S)
                continue
            if item is None:
                self._ended = True
                break
            items.append(item)
            if len(items) >= MAX_BATCH:
                break
        return items or None

    async def _apply(self, elements: Sequence[StreamElement]) -> None:
        pace, clock = self._feed.pace, self._feed.dataset.clock
        if pace is None:
            async with self._feed.dataset.writers:
                self._write(elements)
            return
        for element in elements:
            first, begin = self._begun = self._begun or (element.time, clock())
            # From the first element and not from the last: rounding and late wake-ups would add up.
            due = pace.moved(element.time, first, begin)
            while due > clock() and not self._closing.is_set():
                # In steps, so that ``close`` ends the wait within a second.
                await self._sleep(min(1.0, (due - clock()) / 1000))
            until = None if element.until is None else pace.moved(element.until, first, begin)
            numbered = element.stream, due, element.sequence, element.added, element.removed, until
            async with self._feed.dataset.writers:
                self._write([StreamElement(*numbered)])

    def _write(self, elements: Sequence[StreamElement]) -> None:
        """Write elements as one change; if one of them is invalid, write them one by one to refuse only that one."""
        if not elements:
            return
        try:
            self._commit(elements)
        except (LabelError, ValueError) as error:
            if len(elements) == 1:
                self.fed.refuse(elements[0], error)
                return
            for element in elements:
                self._write([element])

    def _commit(self, elements: Iterable[StreamElement]) -> None:
        dataset, added, over = self._feed.dataset, 0, 0
        now, draft, index = dataset.clock(), FactDraft(dataset), 0
        for index, element in enumerate(elements, 1):  # noqa: B007
            for triple in element.removed:
                draft.end(self._local(triple), element.time)
            facts = [self._fact(triple, element) for triple in element.added]
            draft.add(facts)
            added += len(facts)
            over += sum(fact.final is not None and fact.final <= now for fact in facts)
        draft.commit()
        self.fed.elements += index
        self._lag = now - element.time if index else self._lag
        self.fed.facts += added
        self.fed.over += over if dataset.style.label is Label.EXPIRATION else 0

    def _fact(self, triple: Triple, element: StreamElement) -> Fact:
        if self._feed.dataset.style.label is Label.INSTANT:
            return Fact(self._local(triple), element.time, element.time + 1)
        lasting = self._feed.lasting
        until = element.time + lasting if element.until is None and lasting is not None else element.until
        return Fact(self._local(triple), element.time, until)

    def _local(self, triple: Triple) -> Triple:
        """The triple with blank nodes renamed, so that none collides with others of the data set."""
        subject, predicate, object_ = triple
        return self._named(subject), predicate, self._named(object_)

    def _named(self, term: Term) -> Term:
        return f"_:{self._blank}{term[2:]}" if term.startswith("_:") else term


_LOG = logging.getLogger(__name__)
TICK_S: Final = 0.2
"""Interval between sweeps of ended facts."""


@asynccontextmanager
async def background_tasks(
    datasets: Sequence[DataSet], feedings: Sequence[FeedRunner] = (), history: int | None = None
) -> AsyncIterator[None]:
    """Run feeds and sweeps during the block; ended intervals stay for ``history`` ms (``None``: always)."""
    tasks = [asyncio.create_task(feeding.run()) for feeding in feedings]
    tasks.append(asyncio.create_task(_sweeping(datasets, history)))
    try:
        yield
    finally:
        for feeding in feedings:
            feeding.close()
        # The sweeping; feeds end by themselves and report.
        tasks[-1].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class BackgroundApp:
    """An application that runs the background tasks of its data sets while it is up."""

    def __init__(
        self, app: ASGIApp, datasets: Sequence[DataSet], feedings: Sequence[FeedRunner], history: int | None
    ) -> None:
        self._app, self._datasets, self._feedings, self._history = app, datasets, feedings, history
        self.prompt: PromptAnswer | None = getattr(app, "prompt", None)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass requests on; the lifespan of the process starts and ends the tasks."""
        if scope["type"] != "lifespan":
            await self._app(scope, receive, send)
            return
        async with background_tasks(self._datasets, self._feedings, self._history):
            await self._app(scope, receive, send)


async def _sweeping(datasets: Sequence[DataSet], history: int | None) -> None:
    while True:
        for dataset in datasets:
            # An expiration says nothing about the past, so ended facts are of no use to anybody.
            keep = 0 if dataset.style.label is Label.EXPIRATION else history
            if keep is not None:
                await _swept(dataset, keep)
        await asyncio.sleep(TICK_S)


async def _swept(dataset: DataSet, keep: int) -> None:
    """Remove facts that ended more than ``keep`` ms ago; after an error the next sweep tries again."""
    try:
        await sweep_beside(dataset, dataset.clock() - keep)
    except (FullError, DamagedStoreError) as error:
        _LOG.error("/%s: ended facts cannot be removed: %s", dataset.name, error)
