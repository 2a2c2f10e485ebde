"""The client of all requests: responses are cached, concurrent equal requests coalesced, failures retried.

It is a private cache (HTTP Caching, RFC 9111) and estimates the clock of each server from its responses.
"""

import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import count
from random import Random
from typing import Final, TypeAlias

from streamgauge.outgoing.clients import AsyncHttpClient
from streamgauge.outgoing.failures import TRANSIENT
from streamgauge.outgoing.guarded import origin
from streamgauge.servers.fragments import VERSION, SizedCache
from streamgauge.servers.fragments.client import (
    Lifetime,
    LinkedDataError,
    Response,
    ShownTime,
    StatusError,
    UnavailableError,
    lifetime,
    shown_time,
)
from streamgauge.servers.fragments.client.transport import (
    AddressRules,
    ClientCounters,
    ClientLimits,
    HttpAnswer,
    HttpRequest,
    HttpSender,
    address_rules,
    web_address,
)
from streamgauge.servers.fragments.flights import Flights
from streamgauge.servers.http.headers import SECOND, http_date
from streamgauge.sources.sse.events import EventParser, ServerEvent

DRIFT: Final = 200e-6
"""Maximum drift between two clocks, 100 ppm each."""

SET_BACK: Final = 2 * SECOND
"""By how much (ms) a server's clock has to fall behind every expectation to count as set back."""


@dataclass(slots=True)
class ServerClock:
    """The clock of one server. All times in ms; our clock must not be set while this is used.

    A response shows a time of the server's clock that was read between the request and the response. So the offset (the
    server's time minus the own) lies between that time minus the own time of the response and that time minus the own
    time of the request. The intervals of several exchanges are intersected (Marzullo, *Maintaining the Time in a
    Distributed System*, 1984), each widened by what two clocks may have drifted since. The estimate is the middle of
    the interval: its error is at most half of the width.

    An exchange asked at 1,000 and answered at 1,040 shows 5,030: the offset is in [3,990, 4,030], the estimate is
    4,010 +- 20 ms. A second one shows that the offset is in [4,005, 4,045]: the estimate is 4,017.5 +- 12.5 ms.

    ``sets`` counts how often the server's clock was found to have been set back; in between ``time`` never goes back.
    """

    sets: int = 0
    _low: float = float("-inf")
    _high: float = float("inf")
    _at: int = 0
    _last: int | None = None

    def seen(self, shown: ShownTime, sent: int, came: int) -> None:
        """Record an exchange whose response showed a time; ``sent`` and ``came`` are by our clock, rounded down.

        An exchange that contradicts the earlier ones means that a clock was set, and replaces them.
        """
        low, high = float(shown.time - came - 1), float(shown.time + shown.resolution - sent)
        wider = self._drift(came)
        before_low, before_high = self._low - wider, self._high + wider
        if high < before_low - SET_BACK:
            self.sets += 1
        # After a set-back ``time`` has to follow the server, even though it goes back.
        if high < before_low - SET_BACK or not self.known:
            self._last = None
        if high < before_low or low > before_high:
            before_low, before_high = low, high
        self._low, self._high, self._at = max(before_low, low), min(before_high, high), came

    @property
    def known(self) -> bool:
        """Whether an exchange has been noted."""
        return self._low <= self._high < float("inf")

    @property
    def ahead(self) -> float:
        """The estimated offset: by how many ms the server's clock is ahead; 0 if unknown."""
        return (self._low + self._high) / 2 if self.known else 0.0

    def uncertainty(self, own: int) -> float:
        """The maximum error (ms) of the estimate at a time of our clock; infinite if unknown."""
        return (self._high - self._low) / 2 + self._drift(own)

    def time(self, own: int) -> int:
        """The estimated server time at a time of our clock; never earlier than the last result."""
        now = int(own + self.ahead)
        # The estimate may shrink when an exchange narrows it; facts that have ended must not hold again.
        self._last = now if self._last is None else max(now, self._last)
        return self._last

    def reached(self, time: int) -> int:
        """The estimated time of our clock at which the server's shows ``time``, rounded up."""
        return -int(-(time - self.ahead) // 1)

    def surely(self, time: int) -> int:
        """The time of our clock from which the server's certainly shows ``time`` or later, whatever its drift.

        Rounded up.
        """
        if not self.known:
            return time
        # The least offset is the latest own time: the true one can only be earlier.
        own = time - self._low
        return -int(-(own + self._drift(int(own))) // 1)

    def _drift(self, own: int) -> float:
        return DRIFT * max(0, own - self._at)


CacheKey: TypeAlias = tuple[str, str]
"""Address and Accept."""

_OVERHEAD = 500
_PARSED_FACTOR = 4
"""Approximate memory of what is parsed from a body, as a multiple of the body: quads are tuples of strings."""


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """A response in the cache; ``fresh`` is until when it may be used without a request (own clock, ms)."""

    response: Response
    condition: dict[str, str]
    """The header field of a conditional request."""
    fresh: float
    number: int
    """Its serial number among all responses."""

    @property
    def size(self) -> int:
        """Approximate bytes of memory."""
        return (1 + _PARSED_FACTOR) * len(self.response.body) + len(self.response.address) + _OVERHEAD

    def again(self, lifetime: Lifetime, version: str | None, fresh: float, number: int) -> "CacheEntry":
        """The entry after a 304, with the lifetime of that response."""
        response = replace(self.response, at=lifetime.at, until=lifetime.until, version=version)
        return replace(self, response=response, fresh=fresh, number=number)


ResponseCache: TypeAlias = SizedCache[CacheKey, CacheEntry]
"""Responses by address and Accept; sizes include what is parsed from bodies."""

EVENT_STREAM: Final = "text/event-stream"
"""The media type of server-sent events (HTML standard, 9.2)."""

RDF: Final = (
    "application/trig,application/n-quads;q=0.9,text/turtle;q=0.8,application/n-triples;q=0.7,"
    "application/ld+json;q=0.6,application/rdf+xml;q=0.5"
)
"""The Accept header: formats with graphs, which separate data from metadata, come first."""

_SENDABLE = re.compile(r"[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?")

_CLOCKS = 1000
"""Number of origins whose clocks are remembered."""

_NUMBERS = count(1)
"""Serial numbers of the responses of all clients, because caches may be shared."""


class CacheUse(Enum):
    """Where a response may be taken from."""

    CACHED = "the cache, if it is fresh or was fetched in this round"
    REVALIDATE = "the server, which may answer that nothing has changed"


@dataclass(frozen=True, slots=True)
class _Round:
    """A poll: the serial number at its start, and how earlier responses may be used."""

    begun: int
    use: CacheUse


_ROUND: ContextVar[_Round | None] = ContextVar("round", default=None)


@dataclass(slots=True)
class CachingHttpClient:
    """Requests through one client, for any number of queries in one event loop.

    ``clock`` returns ms since 1970 and is never adjusted, ``sleep`` waits seconds of it. ``allowed`` are hosts that may
    be requested whatever their address, and that links may lead to. The cache may be shared with other clients. With
    ``same_clock`` the servers run in this process and use the same clock.
    """

    client: AsyncHttpClient
    clock: Callable[[], int]
    sleep: Callable[[float], Awaitable[None]]
    limits: ClientLimits = field(default_factory=ClientLimits)
    cache: ResponseCache = field(default_factory=ResponseCache)
    allowed: Collection[str] = ()
    random: Random = field(default_factory=Random)
    counters: ClientCounters = field(default_factory=ClientCounters)
    same_clock: bool = False
    _sender: HttpSender = field(init=False)
    _flights: Flights[tuple[CacheKey, CacheUse], Response] = field(default_factory=Flights, init=False)
    _clocks: dict[str, ServerClock] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self._sender = HttpSender(self.client, self.clock, self.sleep, self.limits, self.random, self.counters)

    def reach(self, start: str) -> AddressRules:
        """The address rules of a source with this start address."""
        return address_rules(start, self.allowed)

    @contextmanager
    def round(self, use: CacheUse = CacheUse.CACHED) -> Iterator[None]:
        """A round: responses that arrive in it are reused until its end, fresh or not, so that a poll sees one state.

        With ``CacheUse.REVALIDATE`` earlier responses are revalidated. A nested round belongs to the outer one, unless
        it revalidates.
        """
        # A context variable and not a field: several queries poll through the same client at the same time, each in its
        # task.
        token = _ROUND.set(_Round(next(_NUMBERS), use)) if _ROUND.get() is None or use is CacheUse.REVALIDATE else None
        try:
            yield
        finally:
            if token is not None:
                _ROUND.reset(token)

    async def get(
        self, address: str, within: AddressRules, accept: str = RDF, use: CacheUse = CacheUse.CACHED
    ) -> Response:
        """The response of an address, from the cache if possible; LinkedDataError."""
        within.check(address)
        key = address, accept
        kept = self.cache.get(key)
        if use is CacheUse.CACHED and kept is not None and self._usable(kept):
            self.counters.hits += 1
            return kept.response
        # With `use` in the key: a poll that revalidates must not be satisfied by a request that began before it.
        self.counters.coalesced += (key, use) in self._flights
        return await self._flights.join((key, use), lambda: self._fetch(key, within, kept))

    def last(self, address: str) -> Response | None:
        """The last RDF of an address, however old: good enough for planning, not for answers."""
        kept = self.cache.get((address, RDF))
        return None if kept is None else kept.response

    async def post(self, address: str, within: AddressRules, content: bytes, headers: Mapping[str, str]) -> Response:
        """The response to a POST, which is not cached."""
        answer = await self._sender.send(HttpRequest(address, within, {"accept-encoding": "gzip", **headers}, content))
        return self._response(answer, self._lived(answer))

    @asynccontextmanager
    async def events(
        self, address: str, within: AddressRules, last: str | None
    ) -> AsyncIterator[AsyncIterator[ServerEvent]]:
        """The server-sent events of an address from now on, or since the ``last`` one, during the block.

        StatusError or LinkedDataError if it has no events, UnavailableError if they break off.
        """
        since = {} if last is None else {"last-event-id": last}
        headers = {"accept": EVENT_STREAM, "accept-encoding": "identity", "cache-control": "no-store", **since}
        async with self._sender.flowing(HttpRequest(address, within, headers)) as (response, chunks):
            kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
            if response.status_code in TRANSIENT:
                raise UnavailableError(address, f"answers {response.status_code}")
            if response.status_code != 200:
                raise StatusError(address, response.status_code, " to a request for events")
            if kind != EVENT_STREAM:
                raise LinkedDataError(address, f"is {kind or 'of no stated media type'!r:.80}, not a stream of events")
            yield _parsed(chunks, EventParser(self.limits.event, last))

    def revalidates(self) -> bool:
        """Whether the current round revalidates earlier responses."""
        round_ = _ROUND.get()
        return round_ is not None and round_.use is CacheUse.REVALIDATE

    def server_clock(self, address: str) -> ServerClock:
        """The estimated clock of an address's server."""
        host = "{}://{}:{}".format(*origin(web_address(address)))
        if host not in self._clocks:
            # An estimate is regained with the next response; forgetting all is simpler than finding the least useful.
            if len(self._clocks) >= _CLOCKS:
                self._clocks.clear()
            self._clocks[host] = ServerClock()
        return self._clocks[host]

    def time(self, address: str) -> int:
        """The estimated current time (ms) of an address's server; our own time if it is unknown."""
        return self.clock() if self.same_clock else self.server_clock(address).time(self.clock())

    def due(self, address: str, time: int, pushes: bool) -> int:
        """The time (ms, our clock) at which to poll for a time of an address's server.

        If the source ``pushes`` its changes, that is the estimate for this time. Otherwise it is when a response is
        certain to show the time in its Date, which has whole seconds.
        """
        shown = time if pushes else -(-time // SECOND) * SECOND
        if self.same_clock:
            return shown
        clock = self.server_clock(address)
        return clock.reached(shown) if pushes else clock.surely(shown)

    def sets(self, address: str) -> int:
        """How often the clock of an address's server has been set back."""
        return self.server_clock(address).sets

    def forget(self, address: str) -> None:
        """Drop the cached RDF of an address."""
        self.cache.drop((address, RDF))

    async def aclose(self) -> None:
        """Cancel requests under way and close the client."""
        await self._flights.aclose()
        await self.client.aclose()

    def _usable(self, kept: CacheEntry) -> bool:
        round_ = _ROUND.get()
        # By serial numbers and not by times: responses within one ms have an order too.
        if round_ is not None and kept.number > round_.begun:
            return True
        return self.clock() < kept.fresh and (round_ is None or round_.use is CacheUse.CACHED)

    async def _fetch(self, key: CacheKey, within: AddressRules, kept: CacheEntry | None) -> Response:
        address, accept = key
        condition = kept.condition if kept is not None else {}
        headers = {"accept": accept, "accept-encoding": "gzip", **condition}
        answer = await self._sender.send(HttpRequest(address, within, headers))
        lived = self._lived(answer)
        number, fresh = next(_NUMBERS), _fresh(lived, answer)
        # The entry at the time of the request: the cache may have evicted it meanwhile.
        if answer.status == 304 and kept is not None:
            self.counters.not_modified += 1
            return self._keep(key, kept.again(lived, answer.headers.get(VERSION), fresh, number), lived)
        return self._keep(key, CacheEntry(self._response(answer, lived), _condition(answer), fresh, number), lived)

    def _keep(self, key: CacheKey, kept: CacheEntry, lived: Lifetime) -> Response:
        if lived.kept:
            self.cache.put(key, kept)
        else:
            self.cache.drop(key)
        return kept.response

    def _lived(self, answer: HttpAnswer) -> Lifetime:
        clock, shown = self.server_clock(answer.address), shown_time(answer.headers)
        # A response from a shared cache shows an old time of the server.
        if shown is not None and "age" not in answer.headers:
            clock.seen(shown, answer.sent, answer.came)
        return lifetime(answer.headers, answer.came + int(clock.ahead))

    def _response(self, answer: HttpAnswer, lived: Lifetime) -> Response:
        if answer.status != 200:
            raise StatusError(answer.address, answer.status, _excerpt(answer))
        headers = answer.headers
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        validator = headers.get("etag") or headers.get("last-modified")
        changed, version = http_date(headers.get("last-modified")), headers.get(VERSION)
        return Response(answer.address, kind, answer.body, lived.at, lived.until, validator, changed, version)


async def _parsed(chunks: AsyncIterator[bytes], parser: EventParser) -> AsyncIterator[ServerEvent]:
    async for chunk in chunks:
        for event in parser.feed(chunk):
            yield event


def _fresh(lived: Lifetime, answer: HttpAnswer) -> float:
    """Until when (own clock, ms) a response may be used: its remaining lifetime, counted from when it was requested."""
    return float("-inf") if lived.until is None else answer.sent + lived.until - lived.now


def _condition(answer: HttpAnswer) -> dict[str, str]:
    """The condition of a revalidation (RFC 9110, 13.1): the first validator that can be sent back."""
    pairs = (("etag", "if-none-match"), ("last-modified", "if-modified-since"))
    headers = ((condition, answer.headers.get(name, "")) for name, condition in pairs)
    # A validator with control characters would end the header line, or be refused by httpx.
    return next(({condition: value} for condition, value in headers if _SENDABLE.fullmatch(value)), {})


def _excerpt(answer: HttpAnswer) -> str:
    """The sentence in an error's body, or the beginning of a body that is not one of our servers'."""
    try:
        text = str(json.loads(answer.body)["error"])[:300]
    except (ValueError, KeyError, TypeError, RecursionError):
        text = " ".join(answer.body[:300].decode(errors="replace").split())
    return f": {text}" if text and "<" not in text[:5] else ""
