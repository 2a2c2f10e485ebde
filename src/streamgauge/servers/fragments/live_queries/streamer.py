"""The plan ``streamer``: the streaming loop as published (Taelman et al., ESWC 2016, section 6), for any query.

The rewriter splits a query. Triple patterns and groups of the bottom join whose facts are all static form the static
part, everything else the dynamic one, GRAPH included. Operators above the join (OPTIONAL, MINUS, BIND, aggregates) are
applied to the joined rows; their own patterns are read with the dynamic part, as are groups with patterns of both
kinds. Each poll evaluates the dynamic query, the time filter keeps the rows that hold at the server's Date, and each
row instantiates the static query, which the result manager answers from its cache or fetches.
"""

from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from typing import Final, TypeAlias

from streamgauge.incremental import Bag
from streamgauge.incremental.drivers.content import border
from streamgauge.incremental.operators import add_all
from streamgauge.incremental.rewrite import Normaliser, leaf, operands
from streamgauge.model import algebra as al
from streamgauge.model.fact import Fact
from streamgauge.model.terms import Row, Term, Triple
from streamgauge.query.traversal import below_filters, bound, every_pattern, reads_patterns, with_pattern
from streamgauge.servers.fragments import SizedCache
from streamgauge.servers.fragments.annotations import triple_nodes
from streamgauge.servers.fragments.client import LinkedDataSource
from streamgauge.servers.fragments.client.caching_client import CachingHttpClient
from streamgauge.servers.fragments.client.sources import askable, gather_all, matching_terms
from streamgauge.servers.fragments.flights import Flights
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
from streamgauge.servers.fragments.live_queries.fact_forms import fact_graphs
from streamgauge.servers.fragments.live_queries.incremental import (
    FactReader,
    LocalEvaluator,
    NamedTriples,
    asks_graphs,
    joined_bags,
    named_graphs,
    rows_of,
)


def materialised_needs(static: al.Pattern, row: Mapping[al.Var, Term]) -> tuple[PatternNeed, ...]:
    """The facts that a static part needs for a row: patterns with the row's values where that loses no solutions."""
    return tuple(_filled(need, row) for need in pattern_needs(static, row))


def _filled(wanted: PatternNeed, row: Mapping[al.Var, Term]) -> PatternNeed:
    values = {
        variable: row[variable]
        for variable, suppliers in wanted.suppliers.items()
        # Other terms stay variables: a blank node has no name outside its document, and a server may take 1 and 01 for
        # one value.
        if OUTER in suppliers and askable(row[variable])
    }

    def term(node: al.Node) -> al.Node:
        return values.get(node, node) if isinstance(node, al.Var) else node

    triple = wanted.pattern
    predicate = term(triple.predicate) if isinstance(triple.predicate, al.Var | str) else triple.predicate
    pattern = replace(triple, subject=term(triple.subject), predicate=predicate, object=term(triple.object))
    left = {variable: suppliers for variable, suppliers in wanted.suppliers.items() if variable not in values}
    return PatternNeed(pattern, left)


MAX_STATIC_ANSWERS: Final = 10_000
"""Static answers in the cache, which evicts the least recently used ones."""


@dataclass(frozen=True, slots=True)
class StaticAnswer:
    """The rows of a static answer, and until when (own clock, ms) they may be used."""

    bag: Bag
    until: int
    size: int = 1
    """Its share of the cache, which is limited by the number of answers."""


AnswerLookup: TypeAlias = Callable[[Row], Coroutine[None, None, StaticAnswer]]
"""Fetches the answer for a key."""


class StaticAnswers:
    """A cache of at most ``limit`` static answers, by the values of the variables shared with the dynamic part."""

    def __init__(self, find: AnswerLookup, clock: Callable[[], int], limit: int = MAX_STATIC_ANSWERS) -> None:
        self._find, self._clock = find, clock
        self.hits = self.misses = 0
        self._kept = SizedCache[Row, StaticAnswer](limit, share=1)
        self._flights = Flights[Row, StaticAnswer]()

    def __len__(self) -> int:
        return len(self._kept)

    async def of(self, key: Row) -> Bag:
        """The answer for a key; concurrent calls share one fetch."""
        answer = self._kept.get(key)
        if answer is None or self._clock() >= answer.until:
            self.misses += 1
            answer = await self._flights.join(key, lambda: self._find(key))
            self._kept.put(key, answer)
        else:
            self.hits += 1
        return answer.bag


IsStatic: TypeAlias = Callable[[al.TriplePattern], bool]


@dataclass(frozen=True, slots=True)
class QuerySplit:
    """The parts of a pattern; ``around`` wraps another pattern in the operators above their join.

    ``static`` is ``None`` if everything is dynamic.
    """

    dynamic: al.Pattern
    static: al.Pattern | None
    around: Callable[[al.Pattern], al.Pattern]

    @property
    def shared(self) -> tuple[al.Var, ...]:
        """The variables in both parts, on which a static answer depends."""
        if self.static is None:
            return ()
        return tuple(var for var in al.pattern_variables(self.static) if var in al.pattern_variables(self.dynamic))


def unsplit(pattern: al.Pattern) -> QuerySplit:
    """The split of a pattern that is dynamic as a whole."""
    core, around = _core(Normaliser().pattern(pattern))
    return QuerySplit(core, None, around)


def split_query(pattern: al.Pattern, static: IsStatic) -> QuerySplit:
    """Split a pattern; ``static`` tells which of its triple patterns have only static facts."""
    core, around = _core(Normaliser().pattern(pattern))
    still, moving = _sorted(core, static)
    # With one part alone there is nothing to keep between polls.
    if not still or not moving:
        return QuerySplit(core, None, around)
    conditions = _conditions(around)
    # Filters above the join reduce the rows of the dynamic part, each of which costs a static answer.
    parts = (_filtered(reduce(al.Join, group), conditions) for group in (moving, still))
    return QuerySplit(next(parts), next(parts), around)


def _core(pattern: al.Pattern) -> tuple[al.Pattern, Callable[[al.Pattern], al.Pattern]]:
    """The join at the bottom of a pattern, and a function that wraps another pattern in the operators above it."""
    match pattern:
        case al.LeftJoin() | al.Minus():
            core, around = _core(pattern.left)
            return core, lambda inner: replace(pattern, left=around(inner))
        case al.BGP() | al.Join() | al.Union() | al.Values() | al.Graph():
            return pattern, lambda inner: inner
        case _:
            core, around = _core(pattern.pattern)
            return core, lambda inner: replace(pattern, pattern=around(inner))


def _sorted(core: al.Pattern, static: IsStatic) -> tuple[list[al.Pattern], list[al.Pattern]]:
    """The static and the dynamic operands of a join; the triple patterns of a block are separated."""
    still: list[al.Pattern] = []
    moving: list[al.Pattern] = []
    for part in operands(core):
        if asks_graphs(part):
            moving.append(part)
            continue
        leaf_ = leaf(part)
        if leaf_ is None or leaf_.repeated is not None:
            (still if _is_still(part, static) else moving).append(part)
            continue
        for kind, wanted in ((still, True), (moving, False)):
            patterns = tuple(pattern for pattern in leaf_.bgp.patterns if static(pattern) is wanted)
            kind += [al.BGP(patterns)] if patterns else []
    return still, moving


def _is_still(part: al.Pattern, static: IsStatic) -> bool:
    """Whether a group is static; VALUES belongs to the dynamic part, where it reduces the rows."""
    if isinstance(part, al.Values):
        return False
    return all(static(need.pattern) for need in pattern_needs(part))


def _conditions(around: Callable[[al.Pattern], al.Pattern]) -> list[al.Expression]:
    """The conditions of FILTERs directly above the join."""
    # A pattern that the query cannot contain, recognised by identity, marks the place of the join below the operators.
    mark = al.Values((), ())
    for pattern in every_pattern(around(mark)):
        if isinstance(pattern, al.Filter) and _is_above(pattern, mark):
            return [condition for condition in below_filters(pattern)[1] if not reads_patterns(condition)]
    return []


def _is_above(pattern: al.Pattern, mark: al.Pattern) -> bool:
    return below_filters(pattern)[0] is mark


def _filtered(part: al.Pattern, conditions: Collection[al.Expression]) -> al.Pattern:
    """The part with those conditions pushed down that only it decides; they are also evaluated above the join."""
    sure = bound(part)
    for condition in conditions:
        names = {variable.name for variable in al.expression_variables(condition)}
        # A condition over unbound variables may be true above the join and false below it.
        if names and names <= sure:
            part = al.Filter(condition, part)
    return part


@dataclass(slots=True)
class _Rewritten:
    """A query's parts with their evaluators; ``since`` is when (own clock, ms) they were last split."""

    split: QuerySplit
    since: int
    reader: FactReader
    dynamic: LocalEvaluator
    static: AnswerLookup | None
    results: StaticAnswers | None


@dataclass(slots=True)
class StreamerPlan:
    """A query over sources; which patterns are static is detected again after ``settled`` ms."""

    query: LiveQuery
    sources: Sequence[LinkedDataSource]
    style: Style
    web: CachingHttpClient
    settled: int
    caching: Caching = Caching.ON
    _parts: _Rewritten | None = field(default=None, init=False)
    _ordered: OrderedAnswer | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._ordered = None if self.query.order is None else OrderedAnswer(self.query, self.query.order)

    @property
    def results(self) -> StaticAnswers | None:
        """The result manager, if the query has a static part."""
        return None if self._parts is None else self._parts.results

    async def poll(self) -> PollResult:
        """One iteration of the streaming loop."""
        parts = await self._rewritten()
        reads = await parts.reader.read()
        holding = {fact.triple for read in reads for fact in read.facts if fact.holds(read.at)}
        bag = await self._around(parts, holding, named_graphs(reads))
        timed = any(not fact.static for read in reads for fact in read.facts)
        return PollResult(
            bag if self._ordered is None else self._ordered.answer(bag),
            max((read.at for read in reads), default=0),
            first_of(self.sources, [border(read.facts, read.at) for read in reads], self.web),
            first_of(self.sources, [read.until for read in reads], self.web),
            timed and not holding,
        )

    async def _around(self, parts: _Rewritten, holding: Collection[Triple], named: NamedTriples) -> Bag:
        """The answer: dynamic rows joined with their static answers, with the operators above the join applied."""
        names = tuple(map(_name, al.pattern_variables(parts.split.dynamic)))
        rows = parts.dynamic.answer(holding, named)
        if parts.split.static is not None:
            rows = await self._joined(parts, names, rows)
            names = tuple(dict.fromkeys((*names, *map(_name, al.pattern_variables(parts.split.static)))))
        # The joined rows take the join's place as inline data, so the operators above it need no evaluator of their
        # own.
        inline = al.Values(tuple(map(al.Var, names)), tuple(row for row, count in rows.items() for _ in range(count)))
        return LocalEvaluator(with_pattern(self.query.kept, parts.split.around(inline))).answer(holding, named)

    async def _joined(self, parts: _Rewritten, names: Row, rows: Bag) -> Bag:
        """The dynamic rows joined with the answers of their static queries; rows with equal shared values share one."""
        assert parts.split.static is not None
        at = [names.index(var.name) for var in parts.split.shared]
        by_key: dict[Row, Bag] = {}
        for row, count in rows.items():
            by_key.setdefault(tuple(row[place] for place in at), {})[row] = count
        static_rows = await gather_all(self._static(parts, key) for key in by_key)
        others = tuple(map(_name, al.pattern_variables(parts.split.static)))
        result: Bag = {}
        for own, static in zip(by_key.values(), static_rows, strict=True):
            add_all(result, joined_bags((names, own), (others, static)))
        return result

    async def _static(self, parts: _Rewritten, key: Row) -> Bag:
        if parts.results is not None:
            return await parts.results.of(key)
        assert parts.static is not None
        return (await parts.static(key)).bag

    async def _ask(self, parts: QuerySplit, local: LocalEvaluator, key: Row) -> StaticAnswer:
        """Fetch the answer of a static query for a key."""
        assert parts.static is not None
        bindings: dict[al.Var, Term] = {
            var: term for var, term in zip(parts.shared, key, strict=True) if term is not None
        }
        reader = FactReader(
            self.sources, fact_graphs(self.style), materialised_needs(parts.static, bindings), self.web, self.settled
        )
        reads = await reader.read({var: frozenset((term,)) for var, term in bindings.items()})
        triples = {fact.triple for read in reads for fact in read.facts}
        until = first_of(self.sources, [read.until for read in reads], self.web)
        now = self.web.clock()
        # Static facts have no end: they are read again after ``settled`` at the earliest.
        return StaticAnswer(local.answer(triples), max(until or 0, now + self.settled))

    async def _rewritten(self) -> _Rewritten:
        """The query's parts, split at the first poll and again after ``settled`` ms."""
        now = self.web.clock()
        if self._parts is None or now >= self._parts.since + self.settled:
            parts = await self._split()
            if self._parts is None or (parts.dynamic, parts.static) != (
                self._parts.split.dynamic,
                self._parts.split.static,
            ):
                # Only where the split differs: preparing drops the answers in the cache.
                self._parts = self._prepared(parts, now)
            self._parts.since = now
        return self._parts

    def _prepared(self, parts: QuerySplit, now: int) -> _Rewritten:
        reader = FactReader(self.sources, self.style, pattern_needs(parts.around(parts.dynamic)), self.web, 0)
        ask = None if parts.static is None else partial(self._ask, parts, LocalEvaluator(rows_of(parts.static)))
        results = StaticAnswers(ask, self.web.clock) if ask is not None and self.caching is Caching.ON else None
        return _Rewritten(parts, now, reader, LocalEvaluator(rows_of(parts.dynamic)), ask, results)

    async def _split(self) -> QuerySplit:
        """Detect static patterns: those with facts, none of which has a time."""
        pattern = self.query.kept.pattern
        if self.caching is Caching.PROTOTYPE:
            return unsplit(pattern)
        wanted = pattern_needs(pattern)
        reads = await FactReader(self.sources, self.style, wanted, self.web, self.settled).read()
        facts = [fact for read in reads for fact in read.facts]
        known = {pattern.pattern: _still(pattern.pattern, facts) for pattern in wanted if pattern.graph is None}
        return split_query(pattern, lambda triple: known.get(triple, False))


def _still(pattern: al.TriplePattern, facts: Sequence[Fact]) -> bool:
    triples = frozenset(matching_terms(triple_nodes(pattern), (fact.triple for fact in facts)))
    # Without any fact a pattern counts as dynamic: its first fact may have a time.
    return bool(triples) and all(fact.static for fact in facts if fact.triple in triples)


def _name(variable: al.Var) -> str:
    return variable.name
