"""A query kept current over Linked Data that changes: ``watch`` gives its answers as they come."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Final, TypeAlias

from streamgauge.model.algebra import QueryForm
from streamgauge.model.answer import Answer
from streamgauge.services.fragments.fetching.contract import Source
from streamgauge.services.fragments.fetching.guarded import guarded_client
from streamgauge.services.fragments.fetching.sources import open_source
from streamgauge.services.fragments.fetching.together import together
from streamgauge.services.fragments.fetching.web import Web
from streamgauge.services.fragments.streaming.asked import Asked, asked
from streamgauge.services.fragments.streaming.events import Event, Tell
from streamgauge.services.fragments.streaming.following import Following, Sends
from streamgauge.services.fragments.streaming.incremental import Incremental
from streamgauge.services.fragments.streaming.plan import Plan
from streamgauge.services.fragments.streaming.reading import SETTLED
from streamgauge.services.fragments.streaming.timing import Timing
from streamgauge.services.fragments.style import Style


def wall_clock() -> int:
    """Now, ms since 1970."""
    return time.time_ns() // 1_000_000


def _quiet(_event: Event) -> None:
    """Nobody listens."""


@dataclass(frozen=True, slots=True)
class Terms:
    """How a query is watched; times in ms.

    ``style`` is how the sources write times beside facts. Facts without an end are taken to hold for ``settled`` where
    their source does not say for how long. ``tell`` hears of polls and failures.
    """

    plan: str = "incremental"
    style: Style = field(default_factory=Style)
    timing: Timing = field(default_factory=Timing)
    sends: Sends = Sends.CHANGES
    settled: int = SETTLED
    tell: Tell = _quiet
    random: Random = field(default_factory=Random)


Planner: TypeAlias = Callable[[Asked, Sequence[Source], Terms, Web], Plan]


def _incremental(asked: Asked, sources: Sequence[Source], terms: Terms, web: Web) -> Plan:
    return Incremental(asked, sources, terms.style, web, terms.settled)


PLANS: Final[dict[str, Planner]] = {"incremental": _incremental}
"""By name."""


class UnknownPlanError(ValueError):
    """A plan that is not here; the sentence lists those that are."""


async def watch(
    query: str | QueryForm, addresses: Sequence[str], terms: Terms | None = None, web: Web | None = None
) -> AsyncGenerator[Answer, None]:
    """The answers of a query over the union of sources, for ever.

    QueryError or RefusedQueryError for a query that can't be asked, before anything is; what fails later is told and
    tried again. A ``web`` may be shared by queries, and stays open.
    """
    used = terms or Terms()
    understood = asked(query)
    if used.plan not in PLANS:
        raise UnknownPlanError(f"there is no plan {used.plan!r}: there are {', '.join(PLANS)}")
    own = web or Web(guarded_client(), wall_clock, asyncio.sleep)
    prepare = partial(_prepare, understood, tuple(addresses), used, own)
    loop = Following(understood, prepare, own.clock, own.sleep, used.timing, used.sends, used.tell, used.random)
    answers = loop.answers()
    try:
        async for answer in answers:
            yield answer
    finally:
        await answers.aclose()
        if web is None:
            await own.aclose()


async def _prepare(asked: Asked, addresses: Sequence[str], terms: Terms, web: Web) -> Plan:
    sources = await together(open_source(address, web) for address in addresses)
    return PLANS[terms.plan](asked, sources, terms, web)
