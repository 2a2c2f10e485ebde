"""The plan ``incremental``: an incremental evaluator follows facts as they are read, end or change.

Both plans share the reader of facts (``FactReader``), the evaluation over a set of facts (``LocalEvaluator``), and the
handling of the data's own named graphs.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from typing import Final, Protocol, TypeAlias, TypeGuard

from streamgauge.incremental import Bag, SnapshotContents, Snapshots
from streamgauge.incremental.drivers.content import Holding, WindowContent, border
from streamgauge.incremental.evaluator import KeptAnswer
from streamgauge.incremental.operators import add
from streamgauge.incremental.plan import unheard
from streamgauge.incremental.window_joins import WindowJoins
from streamgauge.model import algebra as al
from streamgauge.model.algebra import Var
from streamgauge.model.fact import Fact
from streamgauge.model.terms import Row, Term, Triple
from streamgauge.query.traversal import every_pattern
from streamgauge.servers.fragments import Quad
from streamgauge.servers.fragments.client import (
    FetchedChange,
    FetchedQuads,
    LinkedDataError,
    LinkedDataSource,
    UnavailableError,
)
from streamgauge.servers.fragments.client.caching_client import CacheUse, CachingHttpClient
from streamgauge.servers.fragments.client.sources import gather_all, read_order
from streamgauge.servers.fragments.labels import Style
from streamgauge.servers.fragments.live_queries import (
    OUTER,
    Caching,
    LiveQuery,
    OrderedAnswer,
    PatternNeed,
    PollResult,
    first_of,
    pattern_needs,
)
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
from streamgauge.sparql.algebra import Partners

READINGS: Final = 8
"""Attempts at reading a source whose responses straddle a change."""

SETTLED: Final = 300_000
"""How long (ms) facts without an end are assumed to hold if their source does not publish its changes."""

SMALL: Final = 400
"""Quads per pattern of a query up to which a data set is fetched whole, which costs fewer requests."""


PatternRows: TypeAlias = frozenset[tuple[Term, ...]]
"""The triples of a pattern's facts, or its quads in named graphs."""

BUSY_CHANGE: Final = 1_000
"""Changed quads above which a source is read by pages, if most of them do not concern the query."""


class ChangingSource(LinkedDataSource, Protocol):
    """A source that publishes its changes."""

    async def changed(self, since: str) -> FetchedChange | None:
        """The changes since a version; ``None`` if the source no longer has them."""


@dataclass(frozen=True, slots=True)
class _Settled:
    """A pattern whose facts have no end: its fragments, when (own clock, ms) and for which values they were fetched."""

    fragments: Mapping[FragmentKey, HeldFragment]
    rows: PatternRows
    since: int
    values: KnownValues


@dataclass(frozen=True, slots=True)
class _FactsAndGraphs:
    """The facts that quads represent, and the quads in the data's own named graphs."""

    facts: tuple[Fact, ...]
    named: tuple[Quad, ...]


class FactReader:
    """Reads the facts of triple patterns; every ``read`` requests what is no longer fresh.

    With ``by_changes``, fragments are updated by the changes that a source publishes, if it does. Otherwise they are
    read by pages, and a pattern whose facts have no end is requested again only after ``settled`` ms, or when the
    patterns that it joins with have new values. With FactGraphs in place of a style, all facts are static.
    """

    def __init__(
        self,
        sources: Sequence[LinkedDataSource],
        style: Style | FactGraphs,
        wanted: Sequence[PatternNeed],
        web: CachingHttpClient,
        settled: int = SETTLED,
        by_changes: bool = False,
    ) -> None:
        self._sources, self._wanted, self._web = sources, wanted, web
        self._settled_for, self._by_changes = settled, by_changes
        self._style = style
        self._forms = [fact_form(pattern, style) for pattern in wanted]
        self._names = any(pattern.graph is not None for pattern in wanted)
        self._settled: dict[tuple[int, int], _Settled] = {}
        self._order: list[int] = []
        self._followed: list[dict[FragmentKey, HeldFragment]] = [{} for _ in sources]
        self._seen: list[frozenset[object]] = [frozenset() for _ in sources]
        self._left: set[str] = set()
        self._shown: dict[int, tuple[int, int]] = {}
        self._parsed: dict[frozenset[frozenset[Quad]], _FactsAndGraphs] = {}

    async def read(self, known_values: KnownValues | None = None) -> list[SourceFacts]:
        """The facts by source, each of one version; ``known_values`` are values known from outside.

        LinkedDataError if a source cannot be read, or changes faster than it can be read.
        """
        use, settled = CacheUse.CACHED, dict(self._settled)
        for _ in range(READINGS):
            with self._web.round(use):
                parts = await gather_all(self._begun(at, use) for at in range(len(self._sources)))
                # What the cache has may be older than what was lost, so everything is revalidated.
                if use is CacheUse.CACHED and any(part.lost for part in parts):
                    use = CacheUse.REVALIDATE
                    continue
                reads = await self._read(parts, known_values or {})
            torn = [part.source.address for at, part in enumerate(parts) if self._torn(at, part)]
            # Facts that have ended may have been renewed since the cached response: then the server is asked as well.
            old = use is CacheUse.CACHED and any(self._ended(at, read) for at, read in enumerate(reads))
            self._seen = [frozenset(map(_stamp, parts_of(fragments.values()))) for fragments in self._followed]
            if not torn and not old:
                return reads
            # What this attempt took for settled is of a torn reading.
            use, self._settled = CacheUse.REVALIDATE, dict(settled)
        raise UnavailableError(torn[0], f"changes faster than it can be read {READINGS} times")

    async def _begun(self, number: int, use: CacheUse) -> SourceReading:
        """Begin a reading with the known fragments updated to one version, or without any if that is impossible."""
        source, followed = self._sources[number], self._followed[number]
        if not self._follows(source):
            return SourceReading(source)
        known = versions(parts_of(followed.values()))
        # With fragments of several versions there is no single version from which all of them could be moved on.
        changed = await source.changed(next(iter(known))) if len(known) == 1 else None
        if changed is not None:
            if _busy_elsewhere(changed, followed.values()):
                self._left.add(source.address)
            return SourceReading(source, {key: fragment.moved(changed) for key, fragment in followed.items()})
        part = SourceReading(source, lost=len(known) == 1)
        if part.lost and use is CacheUse.CACHED:
            return part
        # A query about named subjects needs a handful of quads, for which even a small data set is too large.
        by_subject = any(isinstance(pattern.pattern.subject, str) for pattern in self._wanted)
        if not by_subject and await source.count(ALL) <= SMALL * len(self._forms):
            await part.take_all(predicates_of(self._forms))
        return part

    def _follows(self, source: LinkedDataSource) -> TypeGuard[ChangingSource]:
        """Whether a source is read by its changes, and they are not mostly irrelevant to the query."""
        offers = self._by_changes and getattr(source, "changes", None) is not None
        return offers and source.address not in self._left

    def _torn(self, at: int, part: SourceReading) -> bool:
        """Whether the responses of a source are of several versions."""
        read = parts_of(self._followed[at].values()) if self._follows(part.source) else part.came
        return len(versions(read)) > 1

    def _ended(self, at: int, read: SourceFacts) -> bool:
        """Whether facts of a source have ended although all its responses came from the cache."""
        ends = border(read.facts, read.at)
        now = self._web.time(self._sources[at].address)
        came = frozenset(map(_stamp, parts_of(self._followed[at].values()))) - self._seen[at]
        return ends is not None and ends <= now and not came

    async def _read(self, parts: Sequence[SourceReading], known_values: KnownValues) -> list[SourceFacts]:
        rows_by_pattern: dict[int, PatternRows] = {}
        used: list[dict[FragmentKey, HeldFragment]] = [{} for _ in parts]
        for number in await self._sequence(parts):
            values = self._values(number, known_values, rows_by_pattern)
            known = await gather_all(self._known(number, at, part, values) for at, part in enumerate(parts))
            rows_by_pattern[number] = PatternRows().union(*(part.rows for part in known))
            for own, fragment in zip(used, known, strict=True):
                own.update(fragment.fragments)
        self._followed = [
            {key: part.fragments.get(key, fragment) for key, fragment in own.items()}
            for own, part in zip(used, parts, strict=True)
        ]
        reads = [self._onward(at, self._whole(fragments)) for at, fragments in enumerate(self._followed)]
        # Only what is in use: the cache is keyed by whole sets of quads, and would keep every state of the data set.
        self._parsed = {key: self._parsed[key] for key in map(_quads, self._followed) if key in self._parsed}
        # A source without any timed fact may begin to have some; its patterns are asked again each time.
        without = {at for at, read in enumerate(reads) if all(fact.static for fact in read.facts)}
        self._settled = {place: settled for place, settled in self._settled.items() if place[1] not in without}
        return reads

    async def _sequence(self, parts: Sequence[SourceReading]) -> list[int]:
        """The order in which patterns are read: those that may have changed come first."""
        if not self._order:
            several = any(pattern.suppliers for pattern in self._wanted)
            asks = several and any(not part.fragments for part in parts)
            counts = await gather_all(_count(parts, form) for form in self._forms) if asks else [0] * len(self._wanted)
            takes = [frozenset[int]().union(*pattern.suppliers.values()) for pattern in self._wanted]
            self._order = read_order(counts, takes, [(number,) for number in range(len(takes))], (OUTER,))
        settled = {number for number, _ in self._settled}
        # `sorted` is stable: within both groups the cheapest still comes first.
        return sorted(self._order, key=settled.__contains__)

    def _values(
        self, number: int, known_values: KnownValues, rows_by_pattern: Mapping[int, PatternRows]
    ) -> KnownValues:
        """The values that a pattern's variables may have.

        The intersection over its suppliers, each of which has all.
        """
        values: dict[Var, frozenset[Term]] = {}
        for variable, suppliers in self._wanted[number].suppliers.items():
            sets = [
                terms_at(self._wanted[supplier].nodes, variable, rows_by_pattern[supplier])
                for supplier in suppliers
                if supplier in rows_by_pattern
            ]
            if OUTER in suppliers and variable in known_values:
                sets.append(known_values[variable])
            if sets:
                values[variable] = frozenset.intersection(*sets)
        return values

    async def _known(self, number: int, at: int, part: SourceReading, values: KnownValues) -> _Settled:
        """A pattern's facts in a source: kept ones if they are still valid, else fetched."""
        kept = None if self._follows(part.source) else self._kept(number, at, values)
        if kept is not None:
            return kept
        fragments = await part.cover(self._forms[number], values)
        facts = self._of(fragments)
        rows: PatternRows = frozenset(fact.triple for fact in facts.facts)
        if self._wanted[number].graph is not None:
            rows = frozenset(facts.named)
        known = _Settled(fragments, rows, self._web.clock(), values)
        self._settled.pop((number, at), None)
        # An empty pattern is asked again each time: that it has facts would otherwise show only after ``settled``.
        if rows and all(fact.static for fact in facts.facts) and not self._follows(part.source):
            self._settled[number, at] = known
        return known

    def _kept(self, number: int, at: int, values: KnownValues) -> _Settled | None:
        """The kept facts of a settled pattern, if they are not too old and cover the values."""
        kept = self._settled.get((number, at))
        if kept is None or self._web.clock() >= kept.since + self._settled_for:
            return None
        nodes = self._wanted[number].nodes
        known = all(
            # The values that were asked for, and those that were found: for the latter all facts are known as well.
            terms <= kept.values.get(variable, frozenset()) | terms_at(nodes, variable, kept.rows)
            for variable, terms in values.items()
        )
        return kept if known else None

    def _whole(self, fragments: Mapping[FragmentKey, HeldFragment]) -> SourceFacts:
        parts = list(parts_of(fragments.values()))
        ends = [part.until for part in parts if part.until is not None]
        at = max((part.at for part in parts), default=0)
        facts = self._of(fragments)
        return SourceFacts(facts.facts, at, min(ends, default=None), facts.named)

    def _onward(self, number: int, read: SourceFacts) -> SourceFacts:
        """The facts of a source at a time that never goes back, unless the source's clock was set back."""
        sets = self._web.sets(self._sources[number].address)
        before, at = self._shown.get(number, (sets, read.at))
        # Responses of several caches show several times; a fact that has ended must not hold again.
        now = read.at if before != sets else max(read.at, at)
        self._shown[number] = sets, now
        return replace(read, at=now)

    def _of(self, fragments: Mapping[FragmentKey, HeldFragment]) -> _FactsAndGraphs:
        """The facts and named quads of fragments, cached while the fragments do not change."""
        key = _quads(fragments)
        if key not in self._parsed:
            quads = quads_of(fragments.values())
            named = named_of(quads, self._style) if self._names else ()
            self._parsed[key] = _FactsAndGraphs(tuple(facts_of(quads, self._style)), tuple(named))
        return self._parsed[key]


def _quads(fragments: Mapping[FragmentKey, HeldFragment]) -> frozenset[frozenset[Quad]]:
    """A cache key for fragments: their quads."""
    return frozenset(fragment.quads for fragment in fragments.values())


async def _count(parts: Sequence[SourceReading], fact_form: FactForm) -> int:
    return sum(await gather_all(part.source.count(fact_form.entry) for part in parts))


def _busy_elsewhere(changed: FetchedChange, fragments: Iterable[HeldFragment]) -> bool:
    """Whether a large change has less than a tenth of its quads in the fragments."""
    quads = [*changed.added, *changed.removed]
    if len(quads) <= BUSY_CHANGE:
        return False
    own = frozenset(quad for fragment in fragments for quad in fragment.having(quads))
    return sum(quad in own for quad in quads) * 10 < len(quads)


def _stamp(fetched: FetchedQuads) -> object:
    """A value that differs between responses."""
    return fetched.at, fetched.until, fetched.validator, fetched.version


NamedTriples: TypeAlias = Mapping[Term, Collection[Triple]]
"""Triples by the name of their graph."""

NO_NAMED_GRAPHS: Final[NamedTriples] = {}
"""An empty mapping of named graphs."""


class LocalEvaluator:
    """Evaluates a query form over successive sets of triples and named graphs."""

    def __init__(self, form: al.QueryForm) -> None:
        self._form = form
        self._see(())

    def answer(self, triples: Collection[Triple], named: NamedTriples = NO_NAMED_GRAPHS) -> Bag:
        """The answer of the query form over these triples and named graphs."""
        if tuple(named) != self._names:
            self._see(tuple(named))
        for name, graph in self._graphs.items():
            # Everything enters at time 0 and is cropped afterwards: a set of facts has no arrivals, and the joins
            # start from nothing at each answer.
            graph.enter(0, tuple(triples if name is None else named[name]), None)
        self._contents.look()
        try:
            return dict(self._snapshots.answer())
        finally:
            self._contents.release()
            for graph in self._graphs.values():
                graph.crop(0)

    def _see(self, names: tuple[Term, ...]) -> None:
        self._names, self._contents = names, SnapshotContents()
        self._snapshots = Snapshots(self._form, self._contents, names=names)
        self._graphs = {name: WindowContent(unheard, unheard) for name in (None, *names)}
        for name, graph in self._graphs.items():
            self._contents.bind(name, graph)


def rows_of(pattern: al.Pattern) -> al.Select:
    """The SELECT query for all solutions of a pattern."""
    variables = al.pattern_variables(pattern)
    return al.Select(al.Project(pattern, variables), tuple(var.name for var in variables))


def joined_bags(left: tuple[Row, Bag], right: tuple[Row, Bag]) -> Bag:
    """The join of two bags, each with its column names; columns of the left come first, then the right's others.

    Unbound cells (``None``) are compatible with every value.
    """
    (names, rows), (others, counts) = left, right
    columns = tuple(dict.fromkeys((*names, *others)))
    partners = Partners(_solutions(others, counts), [str(name) for name in others if name in names])
    result: Bag = {}
    for solution in _solutions(names, rows):
        for other in partners.compatible(solution):
            add(result, tuple((solution | other).get(str(name)) for name in columns), 1)
    return result


def _solutions(names: Row, bag: Bag) -> Iterator[dict[str, Term]]:
    """The rows of a bag as solutions, repeated by their multiplicity."""
    for row, count in bag.items():
        solution = {str(name): term for name, term in zip(names, row, strict=True) if term is not None}
        yield from repeat(solution, count)


MAX_GRAPHS: Final = 500
"""Named graphs that a query may be over: ``GRAPH ?g`` is evaluated in each."""


def asks_graphs(pattern: al.Pattern) -> bool:
    """Whether a pattern contains GRAPH."""
    return any(isinstance(inner, al.Graph) for inner in every_pattern(pattern))


def named_graphs(reads: Sequence[SourceFacts]) -> NamedTriples:
    """The merged named graphs of all sources, sorted by name; LinkedDataError if there are too many."""
    graphs: dict[Term, set[Triple]] = {}
    for quad in (quad for read in reads for quad in read.named):
        graphs.setdefault(quad[3], set()).add(quad[:3])
    if len(graphs) > MAX_GRAPHS:
        message = f"{len(graphs)} named graphs match"
        raise LinkedDataError("GRAPH", f"{message}: name the graph, or connect ?g; at most {MAX_GRAPHS} are allowed")
    return {name: frozenset(graphs[name]) for name in sorted(graphs)}


class FetchedGraphs:
    """Named graphs of sources, as triples that enter and leave a join pool."""

    def __init__(self, pool: WindowJoins, names: Iterable[Term]) -> None:
        self._holdings = {name: Holding(*pool.feeds(name)) for name in names}
        self._seen: dict[int, tuple[Quad, ...]] = {}

    def fetched(self, reads: Sequence[SourceFacts]) -> None:
        """Update the pool to the sources' current quads; their graphs must be among the known names."""
        for number, read in enumerate(reads):
            # The same tuple, since the reader caches it: comparing the quads would cost as much as the update.
            if self._seen.get(number) is read.named:
                continue
            self._seen[number] = read.named
            facts: dict[Term, list[Fact]] = {}
            for quad in read.named:
                facts.setdefault(quad[3], []).append(Fact(quad[:3]))
            for name, holding in self._holdings.items():
                holding.fetched(number, facts.get(name, ()), 0)


class _QueryEvaluation:
    """A query's evaluator for a fixed set of graph names, with the facts that currently hold."""

    def __init__(self, live_query: LiveQuery, names: tuple[Term, ...]) -> None:
        self.names = names
        pool = WindowJoins()
        self.kept = KeptAnswer(live_query.kept, pool.leaf, names=names)
        self.holding = Holding(*pool.feeds(None))
        self.graphs = FetchedGraphs(pool, names)


class IncrementalPlan:
    """Keeps a query current by a reader and an incremental evaluator, which is replaced if graph names change."""

    def __init__(
        self,
        live_query: LiveQuery,
        sources: Sequence[LinkedDataSource],
        style: Style,
        web: CachingHttpClient,
        settled: int,
        caching: Caching = Caching.ON,
    ) -> None:
        self._query, self._sources, self._web = live_query, sources, web
        by_changes = caching is Caching.ON
        self._reader = FactReader(sources, style, pattern_needs(live_query.kept.pattern), web, settled, by_changes)
        self._evaluating = _QueryEvaluation(live_query, ())
        self._ordered = None if live_query.order is None else OrderedAnswer(live_query, live_query.order)

    async def poll(self) -> PollResult:
        """Read the sources that are due, and pass inserted and deleted facts to the evaluator."""
        reads = await self._reader.read()
        names = tuple(named_graphs(reads))
        # The operators of ``GRAPH ?g`` are built for fixed names, one copy of its pattern each.
        if names != self._evaluating.names:
            self._evaluating = _QueryEvaluation(self._query, names)
        holding = self._evaluating.holding
        self._evaluating.graphs.fetched(reads)
        for number, read in enumerate(reads):
            holding.fetched(number, read.facts, read.at)
        bag = self._evaluating.kept.answer()
        return PollResult(
            dict(bag) if self._ordered is None else self._ordered.answer(bag),
            max((read.at for read in reads), default=0),
            first_of(self._sources, [holding.border(number) for number in range(len(reads))], self._web),
            first_of(self._sources, [read.until for read in reads], self._web),
            bool(reads) and not len(holding) and any(read.facts for read in reads),
        )
