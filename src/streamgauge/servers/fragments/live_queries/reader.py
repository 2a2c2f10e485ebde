"""A reader of the facts that a query needs, from its sources, again and again, with few requests."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, Protocol, TypeAlias, TypeGuard

from streamgauge.incremental.drivers.fetched import border
from streamgauge.model.algebra import Var
from streamgauge.model.fact import Fact
from streamgauge.model.terms import Term
from streamgauge.servers.fragments import Quad
from streamgauge.servers.fragments.client.caching_client import CacheUse
from streamgauge.servers.fragments.client.contract import (
    FetchedChange,
    FetchedQuads,
    LinkedDataSource,
    UnavailableError,
)
from streamgauge.servers.fragments.client.joins import gather_all, read_order
from streamgauge.servers.fragments.labels import Style
from streamgauge.servers.fragments.live_queries.fact_forms import (
    ALL,
    FactForm,
    FactGraphs,
    FragmentKey,
    HeldFragment,
    KnownValues,
    SourceFacts,
    SourceReading,
    fact_form,
    facts_of,
    named_of,
    parts_of,
    predicates_of,
    quads_of,
    terms_at,
    versions,
)
from streamgauge.servers.fragments.live_queries.pattern_needs import OUTER, PatternNeed

READINGS: Final = 8
"""How often a source is read again whose answers straddle a change."""

SETTLED: Final = 300_000
"""How long (ms) facts that say no end are taken to hold where their source does not say what changes."""

SMALL: Final = 400
"""Quads for each pattern of a query: a data set with fewer is not counted pattern by pattern, but read at once."""


PatternRows: TypeAlias = frozenset[tuple[Term, ...]]
"""The triples of facts, or quads of named graphs."""

MUCH: Final = 1_000
"""Changed quads of which most are nobody's beyond which a source is read page by page instead."""


class RenewalMode(StrEnum):
    """How what was read is brought up to date."""

    CHANGES = "changes"  # by what the source says has changed since; by pages where it does not say
    PAGES = "pages"  # page by page


class PollRounds(Protocol):
    """Where sources send their requests (``client.caching_client.CachingHttpClient``)."""

    @property
    def clock(self) -> Callable[[], int]:
        """The own clock, ms."""
        ...

    def round(self, use: CacheUse = CacheUse.CACHED) -> AbstractContextManager[None]:
        """A round: its responses are used again within it; with REVALIDATE no others are."""
        ...

    def time(self, address: str) -> int:
        """The time of an address's server now (ms), by the estimate."""
        ...

    def due(self, address: str, time: int, told: bool) -> int:
        """The own time (ms) at which a time of an address's server is due, whose changes are ``told`` or polled."""
        ...

    def sets(self, address: str) -> int:
        """How often the clock of an address's server was found to have been set back."""
        ...


class ChangingSource(LinkedDataSource, Protocol):
    """A source that says what changed."""

    async def changed(self, since: str) -> FetchedChange | None:
        """The changes since a version; ``None`` where they are not known."""
        ...


@dataclass(frozen=True, slots=True)
class _Settled:
    """A pattern whose facts say no end: what was fetched, when (own clock, ms), beside which values."""

    fragments: Mapping[FragmentKey, HeldFragment]
    rows: PatternRows
    since: int
    values: KnownValues


@dataclass(frozen=True, slots=True)
class _FactsAndGraphs:
    """The facts that quads say, and the quads in the data's own named graphs."""

    facts: tuple[Fact, ...]
    named: tuple[Quad, ...]


class FactReader:
    """Reads the facts of triple patterns; each ``read`` asks anew for what is no longer fresh.

    Where a source does not say what changed, but when some facts end, a pattern whose facts say no end is asked for
    again after ``settled`` ms, or when those that it joins with have values that were not there. Without a style facts
    have no times, and are those of the graphs that it says.
    """

    def __init__(
        self,
        sources: Sequence[LinkedDataSource],
        style: Style | FactGraphs,
        wanted: Sequence[PatternNeed],
        web: PollRounds,
        settled: int = SETTLED,
        renewal: RenewalMode = RenewalMode.PAGES,
    ) -> None:
        self._sources, self._wanted, self._web = sources, wanted, web
        self._settled_for, self._renewal = settled, renewal
        self._style = style
        self._asking = [fact_form(each, style) for each in wanted]
        self._names = any(each.graph is not None for each in wanted)
        self._settled: dict[tuple[int, int], _Settled] = {}
        self._order: list[int] = []
        self._followed: list[dict[FragmentKey, HeldFragment]] = [{} for _ in sources]
        self._seen: list[frozenset[object]] = [frozenset() for _ in sources]
        self._left: set[str] = set()
        self._shown: dict[int, tuple[int, int]] = {}
        self._told: dict[frozenset[frozenset[Quad]], _FactsAndGraphs] = {}

    async def read(self, given: KnownValues | None = None) -> list[SourceFacts]:
        """The facts by source, each as it was at one version; ``given`` are the values that come from outside.

        SourceError when a source cannot be read, or changes faster than it can be.
        """
        use, settled = CacheUse.CACHED, dict(self._settled)
        for _ in range(READINGS):
            with self._web.round(use):
                parts = await gather_all(self._begun(at, use) for at in range(len(self._sources)))
                if use is CacheUse.CACHED and any(part.lost for part in parts):
                    use = CacheUse.REVALIDATE
                    continue
                reads = await self._read(parts, given or {})
            torn = [part.source.address for at, part in enumerate(parts) if self._torn(at, part)]
            old = use is CacheUse.CACHED and any(self._ended(at, read) for at, read in enumerate(reads))
            self._seen = [frozenset(map(_stamp, parts_of(each.values()))) for each in self._followed]
            if not torn and not old:
                return reads
            use, self._settled = CacheUse.REVALIDATE, dict(settled)
        raise UnavailableError(torn[0], f"changes faster than it can be read {READINGS} times")

    async def _begun(self, number: int, use: CacheUse) -> SourceReading:
        """A source with what is known of it, brought to one version; with nothing where that can't be."""
        source, held = self._sources[number], self._followed[number]
        if not self._follows(source):
            return SourceReading(source)
        known = versions(parts_of(held.values()))
        changed = await source.changed(next(iter(known))) if len(known) == 1 else None
        if changed is not None:
            if _busy_elsewhere(changed, held.values()):
                self._left.add(source.address)
            return SourceReading(source, {key: each.moved(changed) for key, each in held.items()})
        part = SourceReading(source, lost=len(known) == 1)
        if part.lost and use is CacheUse.CACHED:
            return part
        by_subject = any(isinstance(each.pattern.subject, str) for each in self._wanted)
        if not by_subject and await source.count(ALL) <= SMALL * len(self._asking):
            await part.take_all(predicates_of(self._asking))
        return part

    def _follows(self, source: LinkedDataSource) -> TypeGuard[ChangingSource]:
        """Whether a source is read by what changed, of which not too much has nothing to do with the query."""
        offers = self._renewal is RenewalMode.CHANGES and getattr(source, "changes", None) is not None
        return offers and source.address not in self._left

    def _torn(self, at: int, part: SourceReading) -> bool:
        """Whether what was read of a source is of several versions."""
        read = parts_of(self._followed[at].values()) if self._follows(part.source) else part.came
        return len(versions(read)) > 1

    def _ended(self, at: int, read: SourceFacts) -> bool:
        """Whether facts of a source have ended that were taken from a cache."""
        ends = border(read.facts, read.at)
        now = self._web.time(self._sources[at].address)
        came = frozenset(map(_stamp, parts_of(self._followed[at].values()))) - self._seen[at]
        return ends is not None and ends <= now and not came

    async def _read(self, parts: Sequence[SourceReading], given: KnownValues) -> list[SourceFacts]:
        found: dict[int, PatternRows] = {}
        used: list[dict[FragmentKey, HeldFragment]] = [{} for _ in parts]
        for number in await self._sequence(parts):
            values = self._values(number, given, found)
            known = await gather_all(self._known(number, at, part, values) for at, part in enumerate(parts))
            found[number] = PatternRows().union(*(each.rows for each in known))
            for own, each in zip(used, known, strict=True):
                own.update(each.fragments)
        self._followed = [
            {key: part.fragments.get(key, each) for key, each in own.items()}
            for own, part in zip(used, parts, strict=True)
        ]
        reads = [self._onward(at, self._whole(each)) for at, each in enumerate(self._followed)]
        self._told = {key: self._told[key] for key in map(_quads, self._followed) if key in self._told}
        without = {at for at, read in enumerate(reads) if all(fact.static for fact in read.facts)}
        self._settled = {place: each for place, each in self._settled.items() if place[1] not in without}
        return reads

    async def _sequence(self, parts: Sequence[SourceReading]) -> list[int]:
        """The patterns in the order in which they are read: what may have changed first."""
        if not self._order:
            several = any(each.suppliers for each in self._wanted)
            asks = several and any(not part.fragments for part in parts)
            counts = await gather_all(_count(parts, each) for each in self._asking) if asks else [0] * len(self._wanted)
            takes = [frozenset[int]().union(*each.suppliers.values()) for each in self._wanted]
            self._order = read_order(counts, takes, [(number,) for number in range(len(takes))], (OUTER,))
        settled = {number for number, _ in self._settled}
        return sorted(self._order, key=settled.__contains__)

    def _values(self, number: int, given: KnownValues, found: Mapping[int, PatternRows]) -> KnownValues:
        """The values that a pattern's variables may have: any supplier's rows have all values that matter."""
        values: dict[Var, frozenset[Term]] = {}
        for variable, suppliers in self._wanted[number].suppliers.items():
            sets = [terms_at(self._wanted[each].nodes, variable, found[each]) for each in suppliers if each in found]
            if OUTER in suppliers and variable in given:
                sets.append(given[variable])
            if sets:
                values[variable] = frozenset.intersection(*sets)
        return values

    async def _known(self, number: int, at: int, part: SourceReading, values: KnownValues) -> _Settled:
        """A pattern's facts in a source: what can still be taken, else fetched."""
        kept = None if self._follows(part.source) else self._kept(number, at, values)
        if kept is not None:
            return kept
        fragments = await part.cover(self._asking[number], values)
        said = self._of(fragments)
        rows: PatternRows = frozenset(fact.triple for fact in said.facts)
        if self._wanted[number].graph is not None:
            rows = frozenset(said.named)
        known = _Settled(fragments, rows, self._web.clock(), values)
        self._settled.pop((number, at), None)
        if rows and all(fact.static for fact in said.facts) and not self._follows(part.source):
            self._settled[number, at] = known
        return known

    def _kept(self, number: int, at: int, values: KnownValues) -> _Settled | None:
        """The kept rows of a settled pattern, when they can still be taken."""
        kept = self._settled.get((number, at))
        if kept is None or self._web.clock() >= kept.since + self._settled_for:
            return None
        nodes = self._wanted[number].nodes
        known = all(
            terms <= kept.values.get(variable, frozenset()) | terms_at(nodes, variable, kept.rows)
            for variable, terms in values.items()
        )
        return kept if known else None

    def _whole(self, fragments: Mapping[FragmentKey, HeldFragment]) -> SourceFacts:
        parts = list(parts_of(fragments.values()))
        ends = [each.until for each in parts if each.until is not None]
        at = max((each.at for each in parts), default=0)
        said = self._of(fragments)
        return SourceFacts(said.facts, at, min(ends, default=None), said.named)

    def _onward(self, number: int, read: SourceFacts) -> SourceFacts:
        """The facts of a source, at no earlier time than before, unless the source's clock was set back."""
        sets = self._web.sets(self._sources[number].address)
        before, at = self._shown.get(number, (sets, read.at))
        now = read.at if before != sets else max(read.at, at)
        self._shown[number] = sets, now
        return replace(read, at=now)

    def _of(self, fragments: Mapping[FragmentKey, HeldFragment]) -> _FactsAndGraphs:
        """The facts and named quads of fragments, read once while the fragments stay as they are."""
        key = _quads(fragments)
        if key not in self._told:
            quads = quads_of(fragments.values())
            named = named_of(quads, self._style) if self._names else ()
            self._told[key] = _FactsAndGraphs(tuple(facts_of(quads, self._style)), tuple(named))
        return self._told[key]


def _quads(fragments: Mapping[FragmentKey, HeldFragment]) -> frozenset[frozenset[Quad]]:
    """The quads of fragments, as a key."""
    return frozenset(each.quads for each in fragments.values())


async def _count(parts: Sequence[SourceReading], asked: FactForm) -> int:
    return sum(await gather_all(part.source.count(asked.entry) for part in parts))


def _busy_elsewhere(changed: FetchedChange, held: Iterable[HeldFragment]) -> bool:
    """Whether much changed of which few quads are of what is held."""
    quads = [*changed.added, *changed.removed]
    if len(quads) <= MUCH:
        return False
    own = frozenset(quad for each in held for quad in each.having(quads))
    return sum(quad in own for quad in quads) * 10 < len(quads)


def _stamp(fetched: FetchedQuads) -> object:
    """A stamp that tells a response from one before it."""
    return fetched.at, fetched.until, fetched.validator, fetched.version
