"""Basic graph patterns over sources, by few requests."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from streamgauge.model.algebra import Var
from streamgauge.model.terms import Term
from streamgauge.servers.fragments.fetching.contract import Binding, Fetched, Solved, Source, SourceError
from streamgauge.servers.fragments.fetching.matching import bindings, restrictions, substituted
from streamgauge.servers.fragments.fetching.order import ordered
from streamgauge.servers.fragments.fetching.together import together
from streamgauge.servers.fragments.fetching.web import Web
from streamgauge.servers.fragments.quads import QuadPattern


async def solve(
    patterns: Sequence[QuadPattern], sources: Sequence[Source], web: Web, seeds: Sequence[Binding] = ()
) -> Solved:
    """The solutions of the patterns over the union of the sources' quads, all in one round of the web.

    With seeds, each solution that joins with one of them, merged with it. SourceError when a source fails, or when
    there are more rows than the limit. ``order`` says which pattern is read when; sources decide by their pages whether
    to send all or what joins with the rows.
    """
    with web.round():
        if len(seeds) == 1:
            patterns = [substituted(pattern, restrictions(pattern, seeds)[0]) for pattern in patterns]
        return await _Solving(tuple(dict.fromkeys(patterns)), sources, web).solve(list(seeds) or [{}])


@dataclass(slots=True)
class _Solving:
    """One basic graph pattern on its way."""

    patterns: tuple[QuadPattern, ...]
    sources: Sequence[Source]
    web: Web
    fetched: list[list[Fetched]] = field(default_factory=list)
    """By pattern, what each source had."""

    async def solve(self, rows: list[Binding]) -> Solved:
        """The rows joined with all patterns."""
        variables = [pattern.variables for pattern in self.patterns]
        seeded = {variable for row in rows for variable in row}
        for number in ordered(await self._counts(), variables, variables, seeded):
            rows = await self._join(rows, self.patterns[number]) if rows else []
        found = [each for parts in self.fetched for each in parts]
        return Solved(
            tuple(rows),
            min((each.at for each in found), default=self.web.clock()),
            min((each.until for each in found if each.until is not None), default=None),
            tuple(map(_version, zip(*self.fetched, strict=True))),
        )

    async def _counts(self) -> list[int]:
        """By pattern, how many quads the sources have."""
        asked = [(pattern, source) for pattern in self.patterns for source in self.sources]
        found = await together(source.count(pattern) for pattern, source in asked)
        size = len(self.sources)
        return [sum(found[begin : begin + size]) for begin in range(0, len(found), size)]

    async def _join(self, rows: list[Binding], pattern: QuadPattern) -> list[Binding]:
        """The rows joined with a pattern; a source that has none of it said all with its count."""
        seeds = rows if rows != [{}] else ()
        found = await together(source.fetch(pattern, seeds) for source in self.sources)
        self.fetched.append(found)
        matched = bindings(pattern, (quad for each in found for quad in each.quads))
        return _joined(rows, _distinct(matched), self.web.limits.rows)


def _version(parts: Sequence[Fetched]) -> str | None:
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
