"""A watch: a query kept current over changing Linked Data, by polls or by events of servers.

A source whose server sends its changes is subscribed to, and polled only while the subscription is broken. The changes
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
"""Seconds after which a server's clock is measured again: by then two clocks may have drifted by 120 ms."""

PRECISE: Final = 150.0
"""The uncertainty of a server's clock (ms) that is good enough."""

EXCHANGES: Final = 5
"""Maximum number of initial exchanges to reach that precision."""

BETWEEN: Final = 0.31
"""Seconds between them, not a divisor of a second: Dates in different parts of a second narrow the estimate."""

MAX_CHANGED_QUADS: Final = 100_000
"""Changed quads that are stored until the next poll; if there are more, the changes are requested."""


class PushingSource(ChangingSource, Protocol):
    """A source that sends its changes as events, if it has a template of ``changes``."""

    @property
    def changes(self) -> str | None:
        """The template of addresses of changes."""

    def listen(self, last: str | None) -> AbstractAsyncContextManager[AsyncIterator[ServerEvent]]:
        """The events from now on, or since the last one; LinkedDataError if there are none."""


class HeardChanges:
    """The changes between consecutive versions, from events."""

    def __init__(self, version: str | None) -> None:
        self._versions = [version]
        self._steps: list[tuple[tuple[Quad, ...], tuple[Quad, ...]]] = []
        self._size = 0

    def add(self, version: str, added: tuple[Quad, ...], removed: tuple[Quad, ...]) -> None:
        """Append the change to the next version."""
        self._size += len(added) + len(removed)
        if self._size > MAX_CHANGED_QUADS:
            self.restart(version)
        else:
            self._versions.append(version)
            self._steps.append((added, removed))

    def restart(self, version: str) -> None:
        """Start again at a version; the changes that led to it are unknown."""
        self._versions, self._steps, self._size = [version], [], 0

    def since(self, version: str) -> tuple[frozenset[Quad], frozenset[Quad], str] | None:
        """The quads added and removed since a version, and the last version; ``None`` if unknown.

        Changes before that version are discarded. A quad that was removed and added again is in both sets.
        """
        # The events do not reach back so far; the caller asks the server.
        if version not in self._versions:
            return None
        at = self._versions.index(version)
        self._versions, self._steps = self._versions[at:], self._steps[at:]
        self._size = sum(len(quads) for step in self._steps for quads in step)
        came, went = frozenset[Quad](), frozenset[Quad]()
        for added, removed in self._steps:
            # `went` keeps what was added again: the receiver removes first.
            came, went = came.difference(removed).union(added), went.union(removed)
        return came, went, self._versions[-1] or version


@dataclass(slots=True)
class ListenedSource:
    """A source whose changes come from its events; while it is not connected it behaves like the source itself."""

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
        """The source's count of matching quads."""
        return await self.source.count(pattern)

    async def fetch(self, pattern: QuadPattern, seeds: Sequence[Binding] = ()) -> FetchedQuads:
        """The matching quads of the source."""
        return await self.source.fetch(pattern, seeds)

    async def changed(self, since: str) -> FetchedChange | None:
        """The changes since a version from events.

        Fetched if those do not reach back so far, or the round revalidates.
        """
        # A round that revalidates distrusts all that was read before, events included.
        known = None if self._heard is None or self.web.revalidates() else self._heard.since(since)
        if known is None:
            return await self.source.changed(since)
        added, removed, version = known
        return FetchedChange(tuple(added), tuple(removed), self.web.time(self.address), None, version)

    @property
    def pushes(self) -> bool:
        """Whether it is connected, so that events report every change."""
        return self._heard is not None

    async def run(self) -> None:
        """Listen until cancelled, and reconnect after failures; returns only if the source has no events."""
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
                # The next poll has to notice that events are missing, and asks the server again.
                self._heard = None
                self.news.set()
            again = self.backoff.next()
            self.tell(Polling(why, again))
            await self.web.sleep(again)

    async def keep_time(self) -> None:
        """Keep measuring the server's clock: first until it is known precisely, then often enough for its drift."""
        for _ in range(EXCHANGES):
            await self._exchange(BETWEEN, PRECISE)
        while True:
            await self._exchange(RENEWED, 0)

    async def _exchange(self, seconds: float, enough: float) -> None:
        """After ``seconds``, request the changes, a short response, unless the clock is known to ``enough`` ms."""
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
                # Not on connection: a server that accepts and closes at once would be asked without a pause.
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
                # Not asked again with this version: the server would repeat the event.
                self._last = None
                raise UnavailableError(self.address, f"sends an invalid event: {error}") from error
        # Another kind of event with a new id: the data set is at that version, by changes that were not sent.
        elif event.id != self._last:
            heard.restart(event.id)
        self._last = event.id


@dataclass(slots=True)
class Push:
    """Subscribes to the events of sources; ``tell`` is notified of connections and failures."""

    web: CachingHttpClient
    tell: Tell
    random: Random
    _news: asyncio.Event = field(default_factory=asyncio.Event)
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)
    _over: list[LinkedDataSource] = field(default_factory=list)

    def hears(self) -> bool:
        """Whether all sources are connected, so that polls cost no requests."""
        return bool(self._over) and all(getattr(source, "pushes", False) for source in self._over)

    def over(self, sources: Sequence[LinkedDataSource]) -> list[LinkedDataSource]:
        """The sources, subscribed to where they offer events; earlier subscriptions end."""
        self._leave()
        self._over = [self._listened(source) if _offers(source) else self._polled(source) for source in sources]
        return self._over

    async def rest(self, seconds: float) -> None:
        """Wait for ``seconds``, or until an event arrives."""
        waits: tuple[Awaitable[object], ...] = (self.web.sleep(seconds), self._news.wait())
        tasks = [asyncio.ensure_future(wait) for wait in waits]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        # After the wait: an event that comes during the poll ends the next wait at once.
        self._news.clear()

    async def aclose(self) -> None:
        """End all subscriptions to events."""
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
    """The current time in ms since 1970."""
    return time.time_ns() // 1_000_000


def steady_clock() -> Callable[[], int]:
    """A clock in ms since 1970 that is never adjusted: the wall clock at its creation plus the time since."""
    ticking = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    # CLOCK_BOOTTIME goes on during suspend, where CLOCK_MONOTONIC stands still.
    begun = time.time_ns() - time.clock_gettime_ns(ticking)
    return lambda: (begun + time.clock_gettime_ns(ticking)) // 1_000_000


def _quiet(_event: Event) -> None:
    """A listener that does nothing."""


class ChangeDelivery(Enum):
    """How changes of sources are noticed."""

    POLLS = "by polls, when facts end"
    PUSH = "by a server's events, or by polls if it has none"


@dataclass(frozen=True, slots=True)
class WatchTerms:
    """How a query is watched; times in ms.

    ``style`` is how the sources annotate facts with times. Facts without an end are assumed to hold for ``settled`` if
    their source states no lifetime. ``tell`` is called for every poll and failure. With ``hears`` PUSH, we
    subscribe to sources that send their changes. Polling ends after failing for ``patience`` (``None``: never).
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
    """An unknown plan; the sentence lists the known ones."""


class UnpushedPlanError(ValueError):
    """Push for a plan that can only poll; the sentence says which plan supports it."""


@dataclass(slots=True)
class UncachedPlan:
    """A plan whose cache is cleared before every poll."""

    plan: LivePlan
    web: CachingHttpClient

    async def poll(self) -> PollResult:
        """The current answer, fetched from scratch."""
        self.web.cache.clear()
        return await self.plan.poll()


def follow(
    query: str | QueryForm, addresses: Sequence[str], terms: WatchTerms, web: CachingHttpClient | None = None
) -> AsyncGenerator[Answer, None]:
    """The answers of a query under these terms, as described at ``watch``."""
    understood = live_query(query)
    if terms.plan not in PLANS:
        raise UnknownPlanError(f"there is no plan {terms.plan!r}: {offered(terms.plan, PLANS)}")
    if terms.hears is ChangeDelivery.PUSH and (terms.plan != "incremental" or terms.caching is not Caching.ON):
        raise UnpushedPlanError("push: only the plan incremental with its cache uses events: leave one option out")
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
    """The plan of a query; its sources are opened, and subscribed to with ``push``. LinkedDataError."""
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
    """The endless answers of a SPARQL query over the union of the sources at these addresses; times in ms.

    The first answer has all rows, later ones the rows added and removed, or all rows again (``whole``). ``instant`` is
    the server's time. ``plan`` is incremental or streamer, ``cache`` on, off or prototype; ``push`` subscribes to
    servers that send their changes. QueryError, RefusedQueryError, UnknownPlanError and UnpushedPlanError are raised
    immediately. Later failures are passed to ``tell`` and retried while that may help, for ``patience`` at most
    (``None``: no limit); then a LinkedDataError ends the answers. A ``web`` may be shared by several watches, and stays
    open.
    """
    sends = AnswerContent.WHOLE if whole else AnswerContent.CHANGES
    timing = PollTiming(at_most_every=at_most_every, period=period)
    hears = ChangeDelivery.PUSH if push else ChangeDelivery.POLLS
    terms = WatchTerms(
        plan, Caching(cache), style or Style(), timing, sends, settled, tell, random or Random(), hears, patience
    )
    return follow(query, addresses, terms, web)
