"""A watch: a query kept current over Linked Data that changes, by polls or by the events of servers.

Sources whose servers send their changes are listened to, and polled only while listening does not work. The changes
since a version are then known without a request, so that a poll costs none.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from random import Random
from typing import Final, Protocol, TypeGuard

from streamgauge.model.algebra import QueryForm
from streamgauge.model.answer import Answer
from streamgauge.model.phrases import offered
from streamgauge.servers.fragments import Quad, QuadPattern
from streamgauge.servers.fragments.client import (
    Binding,
    FetchedChange,
    FetchedQuads,
    LinkedDataError,
    LinkedDataSource,
    UnavailableError,
    read_patch_lines,
)
from streamgauge.servers.fragments.client.caching_client import CacheUse, CachingHttpClient
from streamgauge.servers.fragments.client.sources import gather_all, open_source
from streamgauge.servers.fragments.client.transport import ClientLimits, guarded_client
from streamgauge.servers.fragments.labels import Style
from streamgauge.servers.fragments.live_queries import Caching, LivePlan, LiveQuery, PollResult, live_query
from streamgauge.servers.fragments.live_queries.incremental import SETTLED, ChangingSource, IncrementalPlan
from streamgauge.servers.fragments.live_queries.poll_loop import (
    FIRST_WAIT,
    LONGEST_WAIT,
    PATIENCE,
    AnswerContent,
    Event,
    Listening,
    Polling,
    PollLoop,
    PollTiming,
    Tell,
)
from streamgauge.servers.fragments.live_queries.streamer import StreamerPlan
from streamgauge.sources.backoff import Backoff
from streamgauge.sources.sse.events import ServerEvent

RENEWED: Final = 600.0
"""Seconds after which a server's clock is looked at again: by then two clocks may be 120 ms further apart."""

PRECISE: Final = 150.0
"""The uncertainty of a server's clock (ms) up to which one exchange is enough."""

EXCHANGES: Final = 5
"""The most exchanges, one after the other, to know a server's clock as precisely."""

BETWEEN: Final = 0.31
"""Seconds between them: Dates show it more precisely where they fall into different parts of a second."""

MAX_CHANGED_QUADS: Final = 100_000
"""Changed quads that are remembered until a poll takes them; beyond that what changed is asked for."""


class PushingSource(ChangingSource, Protocol):
    """A source that says what changes as it does, where it has ``changes``."""

    @property
    def changes(self) -> str | None:
        """The template of addresses of what changed."""
        ...

    def listen(self, last: str | None) -> AbstractAsyncContextManager[AsyncIterator[ServerEvent]]:
        """The events from now on, or since the last one; LinkedDataError when there are none."""
        ...


class HeardChanges:
    """The changes from each version to the next, as events told them."""

    def __init__(self, version: str | None) -> None:
        self._versions = [version]
        self._steps: list[tuple[tuple[Quad, ...], tuple[Quad, ...]]] = []
        self._size = 0

    def add(self, version: str, added: tuple[Quad, ...], removed: tuple[Quad, ...]) -> None:
        """The next version."""
        self._size += len(added) + len(removed)
        if self._size > MAX_CHANGED_QUADS:
            self.restart(version)
        else:
            self._versions.append(version)
            self._steps.append((added, removed))

    def restart(self, version: str) -> None:
        """Begin anew at a version: the changes that led to it are not known."""
        self._versions, self._steps, self._size = [version], [], 0

    def since(self, version: str) -> tuple[frozenset[Quad], frozenset[Quad], str] | None:
        """The quads added and removed since a version, and the last version; ``None`` where they are not known.

        Changes before that version are forgotten.
        """
        if version not in self._versions:
            return None
        at = self._versions.index(version)
        self._versions, self._steps = self._versions[at:], self._steps[at:]
        self._size = sum(len(quads) for step in self._steps for quads in step)
        came, went = frozenset[Quad](), frozenset[Quad]()
        for added, removed in self._steps:
            came, went = came.difference(removed).union(added), went.union(removed)
        return came, went, self._versions[-1] or version


@dataclass(slots=True)
class ListenedSource:
    """A source with what its events have told; while there are none it is the source itself."""

    source: PushingSource
    web: CachingHttpClient
    tell: Tell
    news: asyncio.Event
    backoff: Backoff
    _heard: HeardChanges | None = None
    _last: str | None = None

    @property
    def address(self) -> str:
        """The source's start address."""
        return self.source.address

    @property
    def changes(self) -> str | None:
        """The source's template of addresses of changes."""
        return self.source.changes

    async def count(self, pattern: QuadPattern) -> int:
        """The count that the source states."""
        return await self.source.count(pattern)

    async def fetch(self, pattern: QuadPattern, seeds: Sequence[Binding] = ()) -> FetchedQuads:
        """The quads that the source serves."""
        return await self.source.fetch(pattern, seeds)

    async def changed(self, since: str) -> FetchedChange | None:
        """The changes since a version by the events heard; fetched where those do not tell, or a round revalidates."""
        known = None if self._heard is None or self.web.asks() else self._heard.since(since)
        if known is None:
            return await self.source.changed(since)
        added, removed, version = known
        return FetchedChange(tuple(added), tuple(removed), self.web.time(self.address), None, version)

    @property
    def told(self) -> bool:
        """Whether events tell what changes just now."""
        return self._heard is not None

    async def run(self) -> None:
        """Listen for ever, again after a while when it breaks; ends where there are no events."""
        while True:
            try:
                await self._listen()
                why = f"{self.address}: ended its events"
            except UnavailableError as error:
                why = str(error)
            except LinkedDataError as error:
                self.tell(Polling(str(error), None))
                return
            finally:
                self._heard = None
                self.news.set()
            again = self.backoff.next()
            self.tell(Polling(why, again))
            await self.web.sleep(again)

    async def keep_time(self) -> None:
        """Look at the server's clock for ever: at first until it is known precisely, then as clocks drift."""
        for _ in range(EXCHANGES):
            await self._exchange(BETWEEN, PRECISE)
        while True:
            await self._exchange(RENEWED, 0)

    async def _exchange(self, seconds: float, enough: float) -> None:
        """After some seconds, ask for something short, unless the uncertainty (ms) is small enough."""
        await self.web.sleep(seconds)
        clock = self.web.server_clock(self.address)
        if self._last is None or self._heard is None or clock.uncertainty(self.web.clock()) <= enough:
            return
        with suppress(LinkedDataError), self.web.round(CacheUse.REVALIDATE):
            await self.source.changed(self._last)
        self.news.set()

    async def _listen(self) -> None:
        async with self.source.listen(self._last) as events:
            self._heard = HeardChanges(self._last)
            self.tell(Listening(self.address))
            async for event in events:
                self.backoff.reset()
                self._take(event, self._heard)
                self.news.set()

    def _take(self, event: ServerEvent, heard: HeardChanges) -> None:
        if event.id is None or (event.name == "change" and event.id == self._last):
            raise UnavailableError(self.address, "sends an event without a new version")
        if event.name == "change" and event.data is not None:
            try:
                heard.add(event.id, *read_patch_lines(self.address, event.data, self.web.limits.quads))
            except LinkedDataError as error:
                self._last = None
                raise UnavailableError(self.address, f"sends an event that is none: {error}") from error
        elif event.id != self._last:
            heard.restart(event.id)
        self._last = event.id


@dataclass(slots=True)
class Push:
    """Listens to sources; ``tell`` hears of it."""

    web: CachingHttpClient
    tell: Tell
    random: Random
    _news: asyncio.Event = field(default_factory=asyncio.Event)
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)
    _over: list[LinkedDataSource] = field(default_factory=list)

    def hears(self) -> bool:
        """Whether events of all sources tell what changes just now, so that polls cost no requests."""
        return bool(self._over) and all(getattr(source, "told", False) for source in self._over)

    def over(self, sources: Sequence[LinkedDataSource]) -> list[LinkedDataSource]:
        """The sources, those listened to that offer it; whoever was listened to before no longer is."""
        self._leave()
        self._over = [self._listened(source) if _offers(source) else self._polled(source) for source in sources]
        return self._over

    async def rest(self, seconds: float) -> None:
        """Wait so long, or until something is heard."""
        waits: tuple[Awaitable[object], ...] = (self.web.sleep(seconds), self._news.wait())
        tasks = [asyncio.ensure_future(wait) for wait in waits]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        self._news.clear()

    async def aclose(self) -> None:
        """Listen no more."""
        tasks = self._leave()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _listened(self, source: PushingSource) -> ListenedSource:
        backoff = Backoff(self.random, FIRST_WAIT, LONGEST_WAIT)
        listened = ListenedSource(source, self.web, self.tell, self._news, backoff)
        self._tasks += [asyncio.create_task(coroutine) for coroutine in (listened.run(), listened.keep_time())]
        return listened

    def _polled(self, source: LinkedDataSource) -> LinkedDataSource:
        self.tell(Polling(f"{source.address}: offers no events", None))
        return source

    def _leave(self) -> list[asyncio.Task[None]]:
        left, self._tasks = self._tasks, []
        for task in left:
            task.cancel()
        return left


def _offers(source: LinkedDataSource) -> TypeGuard[PushingSource]:
    return getattr(source, "changes", None) is not None and hasattr(source, "listen")


def wall_clock() -> int:
    """Now, ms since 1970."""
    return time.time_ns() // 1_000_000


def steady_clock() -> Callable[[], int]:
    """A clock in ms since 1970 that nobody sets: the wall's time when it was made, and what has passed since."""
    ticking = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    begun = time.time_ns() - time.clock_gettime_ns(ticking)
    return lambda: (begun + time.clock_gettime_ns(ticking)) // 1_000_000


def _quiet(_event: Event) -> None:
    """A listener that does nothing."""


class ChangeDelivery(Enum):
    """How what changes is heard of."""

    POLLS = "when facts end"
    PUSH = "as it happens, by a server's events; by polls where there are none"


@dataclass(frozen=True, slots=True)
class WatchTerms:
    """How a query is watched; times in ms.

    ``style`` is how the sources write times beside facts. Facts without an end are taken to hold for ``settled`` where
    their source does not say for how long. ``tell`` hears of polls and failures. With ``hears`` PUSH sources that say
    what changes as it does are listened to. Polls may fail for ``patience``, ``None`` for ever.
    """

    plan: str = "incremental"
    caching: Caching = Caching.ON
    style: Style = field(default_factory=Style)
    timing: PollTiming = field(default_factory=PollTiming)
    sends: AnswerContent = AnswerContent.CHANGES
    settled: int = SETTLED
    tell: Tell = _quiet
    random: Random = field(default_factory=Random)
    hears: ChangeDelivery = ChangeDelivery.POLLS
    patience: int | None = PATIENCE


PLANS: Final[dict[str, type[IncrementalPlan | StreamerPlan]]] = {
    "incremental": IncrementalPlan,
    "streamer": StreamerPlan,
}
"""The plans by name."""


class UnknownPlanError(ValueError):
    """A plan that is not here; the sentence lists those that are."""


class UnpushedPlanError(ValueError):
    """A plan that polls, with push; the sentence says which does not."""


@dataclass(slots=True)
class UncachedPlan:
    """A plan without caches: what a poll fetched is forgotten before the next."""

    plan: LivePlan
    web: CachingHttpClient

    async def poll(self) -> PollResult:
        """The answer now, all of it fetched anew."""
        self.web.cache.clear()
        return await self.plan.poll()


def follow(
    query: str | QueryForm, addresses: Sequence[str], terms: WatchTerms, web: CachingHttpClient | None = None
) -> AsyncGenerator[Answer, None]:
    """The answers of a query under these terms; ``watch`` says the rest."""
    understood = live_query(query)
    if terms.plan not in PLANS:
        raise UnknownPlanError(f"there is no plan {terms.plan!r}: {offered(terms.plan, PLANS)}")
    if terms.hears is ChangeDelivery.PUSH and (terms.plan != "incremental" or terms.caching is not Caching.ON):
        raise UnpushedPlanError("push: only the plan incremental with its cache takes what servers send: leave one out")
    return _answers(understood, tuple(addresses), terms, web)


async def _answers(
    live_query: LiveQuery, addresses: Sequence[str], terms: WatchTerms, web: CachingHttpClient | None
) -> AsyncGenerator[Answer, None]:
    own = web or CachingHttpClient(guarded_client(), steady_clock(), asyncio.sleep, ClientLimits(put_off=True))
    push = Push(own, terms.tell, terms.random) if terms.hears is ChangeDelivery.PUSH else None
    prepare = partial(prepared, live_query, addresses, terms, own, push)
    rest, hears = (own.sleep, bool) if push is None else (push.rest, push.hears)
    how = terms.timing, terms.sends, terms.tell, terms.random, terms.patience, hears
    loop = PollLoop(live_query, prepare, own.round, own.clock, own.sleep, rest, *how)
    answers = loop.answers()
    try:
        async for answer in answers:
            yield answer
    finally:
        await answers.aclose()
        if push is not None:
            await push.aclose()
        if web is None:
            await own.aclose()


async def prepared(
    live_query: LiveQuery, addresses: Sequence[str], terms: WatchTerms, web: CachingHttpClient, push: Push | None = None
) -> LivePlan:
    """The plan of a query, its sources opened, and listened to with ``push``; LinkedDataError when one cannot be."""
    sources = await gather_all(open_source(address, web) for address in addresses)
    if push is not None:
        sources = push.over(sources)
    settled = terms.settled if terms.caching is Caching.ON else 0
    plan = PLANS[terms.plan](live_query, sources, terms.style, web, settled, terms.caching)
    return plan if terms.caching is Caching.ON else UncachedPlan(plan, web)


def watch(
    query: str | QueryForm,
    addresses: Sequence[str],
    *,
    plan: str = "incremental",
    cache: str = "on",
    push: bool = False,
    whole: bool = False,
    style: Style | None = None,
    at_most_every: int | None = None,
    period: int | None = None,
    settled: int = SETTLED,
    tell: Tell = _quiet,
    random: Random | None = None,
    web: CachingHttpClient | None = None,
    patience: int | None = PATIENCE,
) -> AsyncGenerator[Answer, None]:
    """The answers of a SPARQL query over the union of sources at these addresses, without an end; times in ms.

    The first answer has all rows, the others what came and what went, or all rows again (``whole``). ``instant`` is the
    server's time. ``plan`` is incremental or streamer, ``cache`` on, off or prototype; ``push`` listens to servers that
    say what changes. QueryError, RefusedQueryError, UnknownPlanError or UnpushedPlanError, at once, for what can't be
    asked; what fails later is told to ``tell``, and retried as long as it may succeed, for at most ``patience`` in a
    row (``None``: for ever): then, or when it cannot, a LinkedDataError ends the answers.
    A ``web`` may be shared by several watches, and stays open.
    """
    sends = AnswerContent.WHOLE if whole else AnswerContent.CHANGES
    timing = PollTiming(at_most_every=at_most_every, period=period)
    hears = ChangeDelivery.PUSH if push else ChangeDelivery.POLLS
    terms = WatchTerms(
        plan, Caching(cache), style or Style(), timing, sends, settled, tell, random or Random(), hears, patience
    )
    return follow(query, addresses, terms, web)
