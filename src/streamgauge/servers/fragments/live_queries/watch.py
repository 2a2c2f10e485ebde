"""A watch: a query kept current over Linked Data that changes; ``watch`` gives its answers as they come."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import partial
from random import Random
from typing import Final, TypeAlias

from streamgauge.model.algebra import QueryForm
from streamgauge.model.answer import Answer
from streamgauge.model.phrases import offered
from streamgauge.servers.fragments.client.caching_client import CachingHttpClient
from streamgauge.servers.fragments.client.contract import LinkedDataSource
from streamgauge.servers.fragments.client.joins import gather_all
from streamgauge.servers.fragments.client.sources import open_source
from streamgauge.servers.fragments.client.transport import ClientLimits, guarded_client
from streamgauge.servers.fragments.live_queries.incremental import IncrementalPlan
from streamgauge.servers.fragments.live_queries.poll_loop import (
    PATIENCE,
    AnswerContent,
    Event,
    LivePlan,
    PollLoop,
    PollResult,
    PollTiming,
    Tell,
    never,
)
from streamgauge.servers.fragments.live_queries.push import Push
from streamgauge.servers.fragments.live_queries.query import LiveQuery, live_query
from streamgauge.servers.fragments.live_queries.reader import SETTLED, RenewalMode
from streamgauge.servers.fragments.live_queries.streamer import Caching, StreamerPlan
from streamgauge.servers.fragments.style import Style


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


Planner: TypeAlias = Callable[[LiveQuery, Sequence[LinkedDataSource], WatchTerms, CachingHttpClient], LivePlan]


def _incremental(
    asked: LiveQuery, sources: Sequence[LinkedDataSource], terms: WatchTerms, web: CachingHttpClient
) -> LivePlan:
    renewal = RenewalMode.CHANGES if terms.caching is Caching.ON else RenewalMode.PAGES
    return IncrementalPlan(asked, sources, terms.style, web, terms.settled, renewal)


def _streamer(
    asked: LiveQuery, sources: Sequence[LinkedDataSource], terms: WatchTerms, web: CachingHttpClient
) -> LivePlan:
    return StreamerPlan(asked, sources, terms.style, web, terms.settled, terms.caching)


PLANS: Final[dict[str, Planner]] = {"incremental": _incremental, "streamer": _streamer}
"""By name."""


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
    asked: LiveQuery, addresses: Sequence[str], terms: WatchTerms, web: CachingHttpClient | None
) -> AsyncGenerator[Answer, None]:
    own = web or CachingHttpClient(guarded_client(), steady_clock(), asyncio.sleep, ClientLimits(put_off=True))
    push = Push(own, terms.tell, terms.random) if terms.hears is ChangeDelivery.PUSH else None
    prepare = partial(prepared, asked, addresses, terms, own, push)
    rest, told = (own.sleep, never) if push is None else (push.rest, push.hears)
    how = terms.timing, terms.sends, terms.tell, terms.random, terms.patience, told
    loop = PollLoop(asked, prepare, own.round, own.clock, own.sleep, rest, *how)
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
    asked: LiveQuery, addresses: Sequence[str], terms: WatchTerms, web: CachingHttpClient, push: Push | None = None
) -> LivePlan:
    """The plan of a query, its sources opened, and listened to with ``push``; SourceError when one cannot be."""
    sources = await gather_all(open_source(address, web) for address in addresses)
    if push is not None:
        sources = push.over(sources)
    if terms.caching is Caching.ON:
        return PLANS[terms.plan](asked, sources, terms, web)
    return UncachedPlan(PLANS[terms.plan](asked, sources, replace(terms, settled=0), web), web)


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
    row (``None``: for ever): then, or when it cannot, a SourceError ends the answers.
    A ``web`` may be shared by several watches, and stays open.
    """
    sends = AnswerContent.WHOLE if whole else AnswerContent.CHANGES
    timing = PollTiming(at_most_every=at_most_every, period=period)
    hears = ChangeDelivery.PUSH if push else ChangeDelivery.POLLS
    terms = WatchTerms(
        plan, Caching(cache), style or Style(), timing, sends, settled, tell, random or Random(), hears, patience
    )
    return follow(query, addresses, terms, web)
