"""Basic graph patterns over sources, by few requests: matching, the order of patterns, the join of their rows."""

import asyncio
from collections.abc import Collection, Coroutine, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeVar

from streamgauge.model.algebra import Node, Var
from streamgauge.model.terms import Term, is_blank, is_literal
from streamgauge.servers.fragments import ANYWHERE, DEFAULT, Quad, QuadPattern
from streamgauge.servers.fragments.client.caching_client import CachingHttpClient
from streamgauge.servers.fragments.client.contract import (
    BgpSolutions,
    Binding,
    FetchedQuads,
    LinkedDataSource,
    SourceError,
)


@dataclass(frozen=True, slots=True)
class _Places:
    """A pattern by its places: terms, the first of each variable, later ones with the first that they repeat."""

    terms: tuple[tuple[int, Term], ...]
    variables: tuple[tuple[Var, int], ...]
    repeated: tuple[tuple[int, int], ...]
    named: bool
    """Whether its graph is a variable, which stands for a named graph."""


@lru_cache(maxsize=1000)
def _places(pattern: QuadPattern) -> _Places:
    nodes = [(place, node) for place, node in enumerate(pattern.nodes) if node != ANYWHERE]
    first = {node: place for place, node in reversed(nodes) if isinstance(node, Var)}
    return _Places(
        tuple((place, node) for place, node in nodes if not isinstance(node, Var)),
        tuple((variable, first[variable]) for variable in pattern.variables),
        tuple((place, first[node]) for place, node in nodes if isinstance(node, Var) and first[node] != place),
        isinstance(pattern.graph, Var) and pattern.graph != ANYWHERE,
    )


def matching_quads(pattern: QuadPattern, quads: Iterable[Quad]) -> tuple[Quad, ...]:
    """The distinct quads that match, in order."""
    places = _places(pattern)
    return tuple(
        quad
        for quad in dict.fromkeys(quads)
        if all(quad[place] == term for place, term in places.terms)
        and all(quad[place] == quad[first] for place, first in places.repeated)
        and not (places.named and quad[3] == DEFAULT)
    )


def match_bindings(pattern: QuadPattern, quads: Iterable[Quad]) -> list[Binding]:
    """The solution mappings by which quads match."""
    variables = _places(pattern).variables
    return [{variable: quad[place] for variable, place in variables} for quad in matching_quads(pattern, quads)]


def with_terms(pattern: QuadPattern, seed: Binding) -> QuadPattern:
    """The pattern with the seed's terms in the places of its variables."""

    def term(node: Node) -> Node:
        return seed.get(node, node) if isinstance(node, Var) else node

    return QuadPattern(*map(term, pattern.nodes))


def restrictions(pattern: QuadPattern, seeds: Sequence[Binding]) -> tuple[Binding, ...]:
    """The distinct parts of seeds that narrow requests for a pattern; one that is empty narrows nothing.

    Terms that a server may not know by that text leave their places open.
    """
    places = pattern.variables
    distinct = {tuple((place, seed[place]) for place in places if _askable(seed.get(place))) for seed in seeds}
    return tuple(dict(each) for each in sorted(distinct, key=str))


def _askable(term: Term | None) -> bool:
    """Whether a server knows a term by its canonical text: no blank node, no number or time, which have several."""
    if term is None or is_blank(term):
        return False
    return not is_literal(term) or "^^" not in term[term.rfind('"') :]


def read_order(
    counts: Sequence[int],
    takes: Sequence[Collection[Hashable]],
    gives: Sequence[Collection[Hashable]],
    known: Collection[Hashable] = (),
) -> list[int]:
    """The numbers of patterns: those without quads first, as they end all, then what is restricted, each by counts.

    ``takes`` is what may restrict each (variables, or other patterns), ``gives`` what is there once it was read.
    """
    left, there, order = list(range(len(counts))), set(known), list[int]()

    def cost(number: int) -> tuple[bool, bool, int]:
        return counts[number] > 0, bool(there) and there.isdisjoint(takes[number]), counts[number]

    while left:
        chosen = min(left, key=cost)
        left.remove(chosen)
        order.append(chosen)
        there.update(gives[chosen])
    return order


T = TypeVar("T")


async def gather_all(works: Iterable[Coroutine[None, None, T]]) -> list[T]:
    """The results in order; the first failure ends the others and is raised."""
    tasks = [asyncio.create_task(work) for work in works]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def solve(
    patterns: Sequence[QuadPattern],
    sources: Sequence[LinkedDataSource],
    web: CachingHttpClient,
    seeds: Sequence[Binding] = (),
) -> BgpSolutions:
    """The solutions of the patterns over the union of the sources' quads, all in one round of the web.

    With seeds, each solution that joins with one of them, merged with it. SourceError when a source fails, or when
    there are more rows than the limit. ``order`` says which pattern is read when; sources decide by their pages whether
    to send all or what joins with the rows.
    """
    with web.round():
        if len(seeds) == 1:
            patterns = [with_terms(pattern, restrictions(pattern, seeds)[0]) for pattern in patterns]
        return await _BgpSolver(tuple(dict.fromkeys(patterns)), sources, web).solve(list(seeds) or [{}])


@dataclass(slots=True)
class _BgpSolver:
    """One basic graph pattern on its way."""

    patterns: tuple[QuadPattern, ...]
    sources: Sequence[LinkedDataSource]
    web: CachingHttpClient
    fetched: list[list[FetchedQuads]] = field(default_factory=list)
    """By pattern, what each source had."""

    async def solve(self, rows: list[Binding]) -> BgpSolutions:
        """The rows joined with all patterns."""
        variables = [pattern.variables for pattern in self.patterns]
        seeded = {variable for row in rows for variable in row}
        for number in read_order(await self._counts(), variables, variables, seeded):
            rows = await self._join(rows, self.patterns[number]) if rows else []
        found = [each for parts in self.fetched for each in parts]
        return BgpSolutions(
            tuple(rows),
            min((each.at for each in found), default=self.web.clock()),
            min((each.until for each in found if each.until is not None), default=None),
            tuple(map(_version, zip(*self.fetched, strict=True))),
        )

    async def _counts(self) -> list[int]:
        """By pattern, how many quads the sources have."""
        asked = [(pattern, source) for pattern in self.patterns for source in self.sources]
        found = await gather_all(source.count(pattern) for pattern, source in asked)
        size = len(self.sources)
        return [sum(found[begin : begin + size]) for begin in range(0, len(found), size)]

    async def _join(self, rows: list[Binding], pattern: QuadPattern) -> list[Binding]:
        """The rows joined with a pattern; a source that has none of it said all with its count."""
        seeds = rows if rows != [{}] else ()
        found = await gather_all(source.fetch(pattern, seeds) for source in self.sources)
        self.fetched.append(found)
        matched = match_bindings(pattern, (quad for each in found for quad in each.quads))
        return _joined(rows, _distinct(matched), self.web.limits.rows)


def _version(parts: Sequence[FetchedQuads]) -> str | None:
    """The version that all parts are of."""
    versions = {each.version for each in parts}
    return versions.pop() if len(versions) == 1 else None


def _distinct(rows: list[Binding]) -> list[Binding]:
    """Once each: quads that differ only in what a pattern does not bind are one solution."""
    return list({tuple(row.items()): row for row in rows}.values())


def _joined(left: list[Binding], right: list[Binding], limit: int) -> list[Binding]:
    """The natural join; a hash of what both sides bind, a scan for rows that bind less."""
    shared = _shared(left, right)
    loose = bool(right) and any(variable in row for row in left for variable in right[0] if variable not in shared)
    table: dict[tuple[Term, ...], list[Binding]] = {}
    for row in right:
        table.setdefault(tuple(row[variable] for variable in shared), []).append(row)
    joined: list[Binding] = []
    for row in left:
        candidates = table.get(tuple(row[variable] for variable in shared), ())
        joined += [{**row, **other} for other in candidates if not loose or _compatible(row, other)]
        if len(joined) > limit:
            raise SourceError("join", f"has more than {limit} rows: connect its patterns, or raise the limit `rows`")
    return joined


def _compatible(row: Binding, other: Binding) -> bool:
    return all(row.get(variable, term) == term for variable, term in other.items())


def _shared(left: list[Binding], right: list[Binding]) -> list[Var]:
    """The variables that every row on both sides binds."""
    if not left or not right:
        return []
    return [variable for variable in right[0] if all(variable in row for row in left)]
