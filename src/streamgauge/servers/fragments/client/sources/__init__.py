"""Sources of Linked Data: their kinds, one module each, and basic graph patterns over several sources.

A kind is a module with ``RANK``, the order in which kinds are tried, and ``recognise``, which decides by the first
response. The modules of this folder are discovered.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Collection, Coroutine, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Protocol, TypeVar, cast

from streamgauge.model.algebra import Node, Var
from streamgauge.model.terms import Term, is_blank, is_literal
from streamgauge.servers.fragments import ANYWHERE, DEFAULT, Quad, QuadPattern
from streamgauge.servers.fragments.client import (
    BgpSolutions,
    Binding,
    FetchedQuads,
    LinkedDataError,
    LinkedDataSource,
    Response,
    combined,
    rdf_syntax,
    read_quads,
)
from streamgauge.servers.fragments.client.caching_client import CachingHttpClient
from streamgauge.servers.fragments.client.transport import AddressRules, resolved_address
from streamgauge.sparql.algebra import Partners

TermTuple = TypeVar("TermTuple", bound=Sequence[Term])
"""A triple or a quad."""


def pattern_quads(pattern: QuadPattern, quads: Iterable[Quad]) -> list[Quad]:
    """The quads that match a pattern; a graph variable matches named graphs only, ANYWHERE all graphs."""
    if pattern.graph == ANYWHERE:
        return matching_terms(pattern.nodes[:3], quads)
    quads_ = matching_terms(pattern.nodes, quads)
    return [quad for quad in quads_ if quad[3] != DEFAULT] if isinstance(pattern.graph, Var) else quads_


def matching_terms(nodes: tuple[Node, ...], terms: Iterable[TermTuple]) -> list[TermTuple]:
    """The triples or quads that match nodes: equal constants, and equal terms where a variable is repeated."""
    constants, equal = _tests(nodes)
    kept = list(terms)
    for place, term in constants:
        kept = [row for row in kept if row[place] == term]
    for one, other in equal:
        kept = [row for row in kept if row[one] == row[other]]
    return kept


@lru_cache(10_000)
def _tests(nodes: tuple[Node, ...]) -> tuple[tuple[tuple[int, Term], ...], tuple[tuple[int, int], ...]]:
    """(place, constant) of constants, and pairs of places with the same variable."""
    constants = tuple((place, node) for place, node in enumerate(nodes) if not isinstance(node, Var))
    repeated = ((nodes.index(node), place) for place, node in enumerate(nodes) if isinstance(node, Var))
    return constants, tuple(pair for pair in repeated if pair[0] != pair[1])


def matching_quads(pattern: QuadPattern, quads: Iterable[Quad]) -> tuple[Quad, ...]:
    """The distinct quads that match, in order."""
    return tuple(dict.fromkeys(pattern_quads(pattern, quads)))


def match_bindings(pattern: QuadPattern, quads: Iterable[Quad]) -> list[Binding]:
    """The solution mappings of a pattern over quads."""
    places = [(variable, pattern.nodes.index(variable)) for variable in pattern.variables]
    return [{variable: quad[place] for variable, place in places} for quad in matching_quads(pattern, quads)]


def restrictions(pattern: QuadPattern, seeds: Sequence[Binding]) -> tuple[Binding, ...]:
    """The distinct projections of seeds to a pattern's variables; an empty one restricts nothing.

    Terms that a server may know by another text (``askable``) are left out.
    """
    places = pattern.variables
    # A seed that restricts nothing leaves an empty tuple, which callers take for "everything is needed".
    distinct = {tuple((place, seed[place]) for place in places if askable(seed.get(place))) for seed in seeds}
    # Sorted, so that the same seeds give the same addresses, which the cache knows.
    return tuple(dict(restriction) for restriction in sorted(distinct, key=str))


def askable(term: Term | None) -> bool:
    """Whether a term has only one text: not a blank node, a literal with a datatype (1 or 01), or a triple term."""
    if term is None or is_blank(term) or term.startswith("<<"):
        return False
    return not is_literal(term) or "^^" not in term[term.rfind('"') :]


def read_order(
    counts: Sequence[int],
    takes: Sequence[Collection[Hashable]],
    gives: Sequence[Collection[Hashable]],
    known: Collection[Hashable] = (),
) -> list[int]:
    """The order in which to read patterns, by index: greedy, cheapest first.

    Patterns without quads come first, because the answer is then empty; next those that earlier ones restrict; among
    these, fewer quads first. ``takes`` has what may restrict each pattern (variables, or other patterns), ``gives``
    what is known once it has been read, ``known`` what is known at the start.
    """
    left, known_items, order = list(range(len(counts))), set(known), list[int]()

    def cost(number: int) -> tuple[bool, bool, int]:
        return counts[number] > 0, bool(known_items) and known_items.isdisjoint(takes[number]), counts[number]

    while left:
        chosen = min(left, key=cost)
        left.remove(chosen)
        order.append(chosen)
        known_items.update(gives[chosen])
    return order


T = TypeVar("T")


async def gather_all(works: Iterable[Coroutine[None, None, T]]) -> list[T]:
    """The results in order; the first failure cancels the others and is raised."""
    tasks = [asyncio.create_task(work) for work in works]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        # Waited for, so that no request is still under way when the caller goes on.
        await asyncio.gather(*tasks, return_exceptions=True)


async def solve(
    patterns: Sequence[QuadPattern],
    sources: Sequence[LinkedDataSource],
    web: CachingHttpClient,
    seeds: Sequence[Binding] = (),
) -> BgpSolutions:
    """The solutions of the patterns over the union of the sources' quads, all in one round of the client.

    With seeds, the solutions that join with one of them, merged with it. LinkedDataError if a source fails or a join
    exceeds the limit of rows. ``read_order`` orders the patterns; a source decides by its page counts whether all quads
    or only those that join with the rows are requested.
    """
    with web.round():
        # One seed is simply a more specific pattern, which every interface can answer.
        if len(seeds) == 1:
            patterns = [pattern.bound(restrictions(pattern, seeds)[0]) for pattern in patterns]
        return await _BgpSolver(tuple(dict.fromkeys(patterns)), sources, web).solve(list(seeds) or [{}])


@dataclass(slots=True)
class _BgpSolver:
    """The evaluation of one basic graph pattern."""

    patterns: tuple[QuadPattern, ...]
    sources: Sequence[LinkedDataSource]
    web: CachingHttpClient
    fetched: list[list[FetchedQuads]] = field(default_factory=list)
    """By pattern, the result of each source."""

    async def solve(self, rows: list[Binding]) -> BgpSolutions:
        """Join the rows with all patterns."""
        variables = [pattern.variables for pattern in self.patterns]
        seeded = {variable for row in rows for variable in row}
        for number in read_order(await self._counts(), variables, variables, seeded):
            # After an empty join the rest need not be read at all.
            rows = await self._join(rows, self.patterns[number]) if rows else []
        parts = [part for parts in self.fetched for part in parts]
        return BgpSolutions(
            tuple(rows),
            min((part.at for part in parts), default=self.web.clock()),
            min((part.until for part in parts if part.until is not None), default=None),
            tuple(map(_version, zip(*self.fetched, strict=True))),
        )

    async def _counts(self) -> list[int]:
        """The total number of quads of all sources, by pattern."""
        pairs = [(pattern, source) for pattern in self.patterns for source in self.sources]
        # For fragments the count is on the first page, which the fetch afterwards takes from the cache.
        counts = await gather_all(source.count(pattern) for pattern, source in pairs)
        size = len(self.sources)
        return [sum(counts[begin : begin + size]) for begin in range(0, len(counts), size)]

    async def _join(self, rows: list[Binding], pattern: QuadPattern) -> list[Binding]:
        """The rows joined with a pattern."""
        seeds = rows if rows != [{}] else ()
        fetched = await gather_all(source.fetch(pattern, seeds) for source in self.sources)
        self.fetched.append(fetched)
        matched = match_bindings(pattern, (quad for part in fetched for quad in part.quads))
        distinct = {tuple(row.items()): row for row in matched}  # quads may differ in what the pattern does not bind
        return _joined(rows, list(distinct.values()), self.web.limits.rows)


def _version(parts: Sequence[FetchedQuads]) -> str | None:
    """The common version of all parts, ``None`` if there is none."""
    versions = {part.version for part in parts}
    return versions.pop() if len(versions) == 1 else None


def _joined(left: list[Binding], right: list[Binding], limit: int) -> list[Binding]:
    """The natural join; LinkedDataError for more than ``limit`` rows."""
    partners = Partners(right, right[0] if right else ())
    joined: list[Binding] = []
    for row in left:
        joined += ({**row, **other} for other in partners.compatible(row))
        # Within the loop: a product of two large patterns would fill the memory before the end of it.
        if len(joined) > limit:
            raise LinkedDataError(
                "join", f"has more than {limit} rows: connect its patterns, or raise the limit `rows`"
            )
    return joined


@dataclass(frozen=True, slots=True)
class WholeSource(ABC):
    """A source without a search: every pattern is matched against all of its quads."""

    address: str
    web: CachingHttpClient
    reach: AddressRules

    async def count(self, pattern: QuadPattern) -> int:
        """The exact number of matching quads."""
        return len((await self.fetch(pattern)).quads)

    @abstractmethod
    async def fetch(self, pattern: QuadPattern, seeds: Sequence[Binding] = ()) -> FetchedQuads:
        """Fetch a pattern, as LinkedDataSource.fetch defines."""


@dataclass(frozen=True, slots=True)
class DocumentSource(WholeSource):
    """An RDF document, the fallback: every pattern is matched against its one response."""

    async def fetch(self, pattern: QuadPattern, seeds: Sequence[Binding] = ()) -> FetchedQuads:  # noqa: ARG002
        """All matching quads of the document."""
        response = await self.web.get(self.address, self.reach)
        return combined(matching_quads(pattern, read_quads(response, self.web.limits.quads)), (response,))


@dataclass(frozen=True, slots=True)
class FirstResponse:
    """The start address, its response or the error, and the address rules of its source."""

    address: str
    response: Response | None
    refused: LinkedDataError | None
    web: CachingHttpClient
    reach: AddressRules

    @property
    def rdf(self) -> Response | None:
        """The response, if it is a document in RDF."""
        return None if self.response is None or rdf_syntax(self.response) is None else self.response


class SourceKind(Protocol):
    """The contract of every module in this folder."""

    RANK: int

    def recognise(self, first: FirstResponse) -> Awaitable[LinkedDataSource | None]:
        """The source if it is of this kind, else ``None``; LinkedDataError if it is but cannot be read."""


@cache
def kinds() -> tuple[SourceKind, ...]:
    """All kinds by rank."""
    modules = (import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__))
    return tuple(sorted((cast(SourceKind, module) for module in modules), key=lambda kind: kind.RANK))


async def open_source(address: str, web: CachingHttpClient) -> LinkedDataSource:
    """The source at an address, of the first kind that recognises it; LinkedDataError."""
    start = resolved_address(address, "")
    within = web.reach(start)
    try:
        response = await web.get(start, within)
        first = FirstResponse(start, response, None, web, within.moved(response.address))
    # Kept: an endpoint that refuses its bare address may still answer queries.
    except LinkedDataError as error:
        first = FirstResponse(start, None, error, web, within)
    for kind in kinds():
        source = await kind.recognise(first)
        if source is not None:
            return source
    if first.rdf is not None:
        # Parsed now, so that an invalid document fails when the source is opened, not at the first poll.
        read_quads(first.rdf, web.limits.quads)
        return DocumentSource(first.address, web, first.reach)
    raise first.refused or LinkedDataError(
        start,
        f"answers {first.response.kind if first.response else ''!r}, which is not an interface that is known:"
        " fragments, a TREE feed, a SPARQL endpoint or an RDF document",
    )
