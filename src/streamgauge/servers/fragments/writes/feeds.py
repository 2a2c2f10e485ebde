"""Data sets filled from streams, and the sweep of facts that ended, while the server is up."""

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
"""Elements that wait to be applied; a source that brings more waits itself."""

TOGETHER: Final = 512
"""Elements that came at once and become one change, at most."""

REASONS: Final = 10
_WAIT_S: Final = 0.05


@dataclass(slots=True)
class FeedCounts:
    """The counts of a feed: elements applied, facts written by them, elements that could not be applied.

    ``over`` are facts that had ended before they came, which an expiration label does not keep.
    """

    elements: int = 0
    facts: int = 0
    over: int = 0
    refused: int = 0
    reasons: list[str] = field(default_factory=list)

    def refuse(self, element: StreamElement, why: Exception) -> None:
        """One element could not be applied."""
        self.refused += 1
        if len(self.reasons) < REASONS:
            self.reasons.append(f"element {element.sequence} of {element.time} ms: {why}"[:300])

    def __str__(self) -> str:
        come = f"{counted(self.elements, 'element')}, {counted(self.facts, 'fact')}"
        text = f"{come}, {self.over} that had ended, {self.refused} refused"
        return text + "".join(f"\n  {reason}" for reason in self.reasons)


@dataclass(frozen=True, slots=True)
class FeedPace:
    """How a recorded stream comes: ``factor`` of application time over the clock's; its first element comes now.

    Times are moved and scaled so that facts hold as long as they would; without a pace all is as it is said, at once.
    """

    factor: float

    def moved(self, time: int, first: int, begin: int) -> int:
        """When (ms of the clock) what was at a time is now, the first element being at ``begin``."""
        return begin + round((time - first) / self.factor)


@dataclass(frozen=True, slots=True)
class DataSetFeed:
    """A source for a data set; facts without an end hold for ``lasting`` ms where that is given."""

    dataset: DataSet
    source: Source
    pace: FeedPace | None = None
    lasting: int | None = None


class FeedRunner:
    """A feed under way: the source is read in a thread, what came is applied in the loop."""

    def __init__(self, feed: DataSetFeed, say: Say, sleep: Sleep = asyncio.sleep) -> None:
        self._feed, self._say, self._sleep = feed, say, sleep
        self._coming: Queue[Input | Exception | None] = Queue(MAX_WAITING_ELEMENTS)
        self._closing, self._ended = Event(), False
        self._begun: tuple[int, int] | None = None
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
        """Apply what comes until the source ends or ``close``; then say what became of it."""
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
            passed = f", {self._feed.source.refused} that could not be read" if self._feed.source.refused else ""
            self._say(f"the feed of /{name} {why}: {self.fed}{passed}")

    def close(self) -> None:
        """Stop, from any thread."""
        self._closing.set()
        self._feed.source.close()

    def _read(self) -> None:
        try:
            for item in self._feed.source.items():
                if not self._put(item):
                    return
        except (SourceError, OSError) as error:
            self._put(error)
        self._put(None)

    def _put(self, item: Input | Exception | None) -> bool:
        while not self._closing.is_set():
            try:
                self._coming.put(item, timeout=_WAIT_S)
            except Full:
                continue
            return True
        return False

    async def _next(self) -> list[Input | Exception] | None:
        """The waiting items, at least one; ``None`` at the end."""
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
            if len(items) >= TOGETHER:
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
            due = pace.moved(element.time, first, begin)
            while due > clock() and not self._closing.is_set():
                await self._sleep(min(1.0, (due - clock()) / 1000))
            until = None if element.until is None else pace.moved(element.until, first, begin)
            numbered = element.stream, due, element.sequence, element.added, element.removed, until
            async with self._feed.dataset.writers:
                self._write([StreamElement(*numbered)])

    def _write(self, elements: Sequence[StreamElement]) -> None:
        """Write elements as one change; one by one when one of them cannot be written."""
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
        """The triple with blank nodes that nothing else in the data set has."""
        subject, predicate, object_ = triple
        return self._named(subject), predicate, self._named(object_)

    def _named(self, term: Term) -> Term:
        return f"_:{self._blank}{term[2:]}" if term.startswith("_:") else term


_LOG = logging.getLogger(__name__)
TICK_S: Final = 0.2
"""How often what ended is looked for."""


@asynccontextmanager
async def background_tasks(
    datasets: Sequence[DataSet], feedings: Sequence[FeedRunner] = (), history: int | None = None
) -> AsyncIterator[None]:
    """Time passes while the block lasts; ``history`` is how long (ms) ended intervals stay, ``None`` for ever."""
    tasks = [asyncio.create_task(feeding.run()) for feeding in feedings]
    tasks.append(asyncio.create_task(_sweeping(datasets, history)))
    try:
        yield
    finally:
        for feeding in feedings:
            feeding.close()
        tasks[-1].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class BackgroundApp:
    """An application whose data sets live as long as it is up."""

    def __init__(
        self, app: ASGIApp, datasets: Sequence[DataSet], feedings: Sequence[FeedRunner], history: int | None
    ) -> None:
        self._app, self._datasets, self._feedings, self._history = app, datasets, feedings, history
        self.prompt: PromptAnswer | None = getattr(app, "prompt", None)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand on; begin and end with the process."""
        if scope["type"] != "lifespan":
            await self._app(scope, receive, send)
            return
        async with background_tasks(self._datasets, self._feedings, self._history):
            await self._app(scope, receive, send)


async def _sweeping(datasets: Sequence[DataSet], history: int | None) -> None:
    while True:
        for dataset in datasets:
            keep = 0 if dataset.style.label is Label.EXPIRATION else history
            if keep is not None:
                await _swept(dataset, keep)
        await asyncio.sleep(TICK_S)


async def _swept(dataset: DataSet, keep: int) -> None:
    """Forget what ended so long ago; what cannot be forgotten now is tried again."""
    try:
        await sweep_beside(dataset, dataset.clock() - keep)
    except (FullError, DamagedStoreError) as error:
        _LOG.error("/%s: what has ended cannot be taken out: %s", dataset.name, error)
