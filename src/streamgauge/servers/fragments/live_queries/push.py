"""Sources whose servers send their changes: they are listened to, and polled only while listening does not work.

The changes since a version are then known without a request, so that a poll costs none.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, field
from random import Random
from typing import Final, Protocol, TypeGuard

from streamgauge.servers.fragments.client.caching_client import CacheUse, CachingHttpClient
from streamgauge.servers.fragments.client.contract import (
    Binding,
    FetchedChange,
    FetchedQuads,
    LinkedDataSource,
    SourceError,
    UnavailableError,
)
from streamgauge.servers.fragments.client.documents import read_patch_lines
from streamgauge.servers.fragments.live_queries.poll_loop import Listening, Polling, Tell
from streamgauge.servers.fragments.live_queries.reader import ChangingSource
from streamgauge.servers.fragments.quads import Quad, QuadPattern
from streamgauge.sources.backoff import Backoff
from streamgauge.sources.sse.events import ServerEvent

FIRST_WAIT: Final = 1.0
LONGEST_WAIT: Final = 60.0
"""Seconds between attempts to listen, which double from the first to the longest."""

RENEWED: Final = 600.0
"""Seconds after which a server's clock is looked at again: by then two clocks may be 120 ms further apart."""

PRECISE: Final = 150.0
"""The uncertainty of a server's clock (ms) up to which one exchange is enough."""

EXCHANGES: Final = 5
"""The most exchanges, one after the other, to know a server's clock as precisely."""

BETWEEN: Final = 0.31
"""Seconds between them: Dates show it more precisely where they fall into different parts of a second."""

MOST: Final = 100_000
"""Changed quads that are remembered until a poll takes them; beyond that what changed is asked for."""


class PushingSource(ChangingSource, Protocol):
    """A source that says what changes as it does, where it has ``changes``."""

    @property
    def changes(self) -> str | None:
        """The template of addresses of what changed."""
        ...

    def listen(self, last: str | None) -> AbstractAsyncContextManager[AsyncIterator[ServerEvent]]:
        """The events from now on, or since the last one; SourceError when there are none."""
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
        if self._size > MOST:
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
            except SourceError as error:
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
        with suppress(SourceError), self.web.round(CacheUse.REVALIDATE):
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
            except SourceError as error:
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
        tasks = [asyncio.ensure_future(each) for each in waits]
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
        self._tasks += [asyncio.create_task(each) for each in (listened.run(), listened.keep_time())]
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
