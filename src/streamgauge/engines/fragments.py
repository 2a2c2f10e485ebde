"""A fragments server and its live query client in one process, as an engine that polls when the next fact ends."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from streamgauge.engines import Emit, starter
from streamgauge.incremental import Bag
from streamgauge.incremental.drivers.admission import Admission
from streamgauge.incremental.operators import difference
from streamgauge.model.answer import Answer
from streamgauge.model.element import StreamElement
from streamgauge.model.fact import Fact
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.semantics import R2S, Semantics
from streamgauge.outgoing.clients import application_client
from streamgauge.query import QueryError
from streamgauge.semantics.beginning import is_sent
from streamgauge.semantics.profiles import FRAGMENTS
from streamgauge.semantics.refusal import meaningless
from streamgauge.semantics.static_data import with_matched_static
from streamgauge.servers.fragments import writes
from streamgauge.servers.fragments.client.caching_client import CacheUse, CachingHttpClient
from streamgauge.servers.fragments.labels import LAST, Label, Style
from streamgauge.servers.fragments.live_queries import RefusedQueryError, live_query
from streamgauge.servers.fragments.live_queries.watch import WatchTerms, prepared
from streamgauge.servers.fragments.pages.dataset import DataSet
from streamgauge.servers.fragments.pages.http import application
from streamgauge.servers.fragments.store.indexed import MemoryStore

EVALUATOR = "changes"
PROFILES = ("fragments",)

STYLE: Final = Style(label=Label.INTERVAL)
"""Interval labels: copies of a triple may have different ends."""

SCALE: Final = 1000
"""A stream's ms is a second of simulated time, because HTTP dates have whole seconds."""

LATEST: Final = LAST // SCALE
"""The latest time of a stream (ms): HTTP dates end with the year 9999."""

_FREE = ("name", "period", "t0", "since", "tick", "r2s", "r2s_able", "partial_head", "scope", "static_data")
_CHOSEN: Final[dict[str, Any]] = {name: getattr(FRAGMENTS, name) for name in _FREE}
"""Fields of the semantics that may differ from FRAGMENTS: queries may set them, or they do not affect polls."""

_NAME, _STATIC = "facts", "static"
_ADDRESS = "http://streamgauge.test/"


def refuse(query: ContinuousQuery, semantics: Semantics) -> str | None:
    """The reason why the query cannot be answered under the semantics; ``None`` if it can."""
    if semantics.report != FRAGMENTS.report or replace(semantics, **_CHOSEN) != FRAGMENTS:
        return f"the query streamer has its own semantics: use {', '.join(PROFILES)} instead of {semantics.name}"
    if reason := meaningless(query, semantics):
        return reason
    if (r2s := query.r2s or semantics.r2s) not in _SENT:
        return f"{r2s} in one answer: the query streamer sends one bag, so use {' or '.join(_SENT)}"
    if any(window.name is not None for window in query.windows):
        return "a named window beside other patterns: fragments have one graph, so write every pattern inside WINDOW"
    try:
        live_query(query.form)
    except (RefusedQueryError, QueryError) as error:
        return str(error)
    return None


class FragmentsSession:
    """A data set, its server and a client in simulated time; times are ms of the stream."""

    def __init__(self, query: ContinuousQuery, semantics: Semantics, emit: Emit) -> None:
        assert semantics.period is not None
        query = with_matched_static(query, semantics)
        self._query, self._emit, self._period = query, emit, semantics.period
        self._semantics = semantics
        self._sends = _SENT[query.r2s or semantics.r2s]
        self._admission = Admission([window.stream for window in query.windows])
        self._live_query = live_query(query.form)
        self._now = self._next = semantics.t0
        self._begins = semantics.t0
        self._shown: Bag = {}
        self._dataset = DataSet(_NAME, MemoryStore(), STYLE, self._clock)
        # A data set of its own: next to a static copy, which holds for ever, a fact of the stream would lose its end.
        static = DataSet(_STATIC, MemoryStore(), STYLE, self._clock)
        writes.add(static, [Fact(triple) for triple in query.static])
        datasets = [self._dataset, *([static] if query.static else [])]
        client = application_client(application(datasets))
        self._web = CachingHttpClient(client, self._clock, _at_once, same_clock=True)
        self._loop = asyncio.new_event_loop()
        self._plan = self._loop.run_until_complete(
            prepared(
                self._live_query,
                [_ADDRESS + dataset.name for dataset in datasets],
                WatchTerms(style=STYLE, settled=0),
                self._web,
            )
        )

    def push(self, element: StreamElement) -> None:
        """Add the facts of an element, after all polls before it."""
        if not self._admission.takes(element, self._now):
            return
        if not -LATEST < element.time < LATEST:
            raise ValueError(
                f"element {element.sequence} is at {element.time} ms, too far from 0: count times from its start"
            )
        # Not yet the poll at this time: elements that share it may follow.
        self._poll_before(element.time)
        self._now = element.time
        if element.time < self._begins:
            return
        final = None if element.until is None else element.until * SCALE
        writes.add(self._dataset, [Fact(triple, element.time * SCALE, final) for triple in element.added])

    def advance(self, time: int) -> None:
        """Do all polls up to and including ``time``."""
        self._poll_before(time + 1)
        self._now = max(self._now, time)

    def close(self) -> None:
        """Close the client and its event loop."""
        self._loop.run_until_complete(self._web.aclose())
        self._loop.close()
        # Last, as it raises for a stream that the query does not read.
        self._admission.close()

    def _clock(self) -> int:
        return self._now * SCALE

    def _poll_before(self, time: int) -> None:
        while self._next < time:
            self._now = self._next
            # No background task removes expired facts in simulated time.
            writes.sweep(self._dataset, self._clock())
            self._next = self._loop.run_until_complete(self._poll())

    async def _poll(self) -> int:
        """Emit the current answer, with cached responses revalidated, and return the time of the next poll."""
        with self._web.round(CacheUse.REVALIDATE):
            polled = await self._plan.poll()
        before, self._shown = self._shown, polled.bag
        rows = self._sends(polled.bag, before)
        added = tuple(row for row, times in rows.items() for _ in range(times))
        if is_sent(self._now, self._semantics):
            query, span = self._live_query, (self._begins, self._now)
            self._emit(Answer(query.columns, added, (), query.kind, self._now, span))
        if polled.due is None or polled.due >= LAST:
            return self._now + self._period
        # Later than now, else a fact that ends within this ms would be polled for ever.
        return max(self._now + 1, polled.due // SCALE)


def _istream(now: Bag, before: Bag) -> Bag:
    return {row: times for row, times in difference(now, before).items() if times > 0}


_SENT: Final[dict[R2S, Callable[[Bag, Bag], Bag]]] = {
    R2S.RSTREAM: lambda now, _before: now,
    R2S.ISTREAM: _istream,
    R2S.DSTREAM: lambda now, before: _istream(before, now),
}


async def _at_once(_seconds: float) -> None:
    """The client's sleep in simulated time, which does not wait."""


start = starter(refuse, FragmentsSession)
