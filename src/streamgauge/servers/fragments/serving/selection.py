"""What a fragment selects: matches, and places that have to hold the same term."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import TypeAlias

from streamgauge.model.algebra import Node, Var
from streamgauge.servers.fragments.quads import Match, Quad
from streamgauge.servers.fragments.serving.bindings import Row

Places: TypeAlias = tuple[tuple[int, int], ...]
"""Pairs of places (0 subject .. 3 graph) that hold the same term."""

Wanted: TypeAlias = tuple[Node | None, Node | None, Node | None, Node | None]
"""What stands in the places of a request; ``None`` where nothing does."""


@dataclass(frozen=True, slots=True)
class Branch:
    """Quads of a match that hold the same term in each pair of ``same``."""

    match: Match
    same: Places = ()

    def takes(self, quad: Quad) -> bool:
        """Whether a quad is one of them."""
        return fits(quad, self.match) and all(quad[one] == quad[other] for one, other in self.same)


@dataclass(frozen=True, slots=True)
class Selection:
    """Quads of any of the branches; ``plain`` where each branch is a match and no quad is one of two."""

    branches: tuple[Branch, ...]
    plain: bool = True

    def takes(self, quad: Quad) -> bool:
        """Whether the quad is selected."""
        return any(branch.takes(quad) for branch in self.branches)

    @property
    def matches(self) -> tuple[Match, ...]:
        """The matches that all that is selected is among."""
        return tuple(dict.fromkeys(branch.match for branch in self.branches))


def selection(wanted: Wanted, rows: Sequence[Row] | None = None) -> Selection:
    """What a pattern selects, restricted to quads that are compatible with one of ``rows`` where there are any."""
    if rows is None:
        branch = _branch(wanted, {})
        return Selection((branch,), not branch.same)
    branches = list(dict.fromkeys(_branch(wanted, row) for row in rows))
    if len({tuple(term is None for term in branch.match) for branch in branches}) == 1 and not branches[0].same:
        return Selection(tuple(branches))
    least = [one for one in branches if not any(_within(one, other) for other in branches if other != one)]
    overlap = any(_overlap(one.match, other.match) for one, other in combinations(least, 2))
    return Selection(tuple(least), not overlap and not any(branch.same for branch in least))


def fits(quad: Quad, match: Match) -> bool:
    """Whether a quad is one of a match."""
    return all(wanted is None or wanted == term for term, wanted in zip(quad, match, strict=True))


def matches_of(quad: Quad) -> list[Match]:
    """The sixteen matches that select a quad."""
    s, p, o, g = quad
    return list(product((s, None), (p, None), (o, None), (g, None)))


def _branch(wanted: Wanted, row: Row) -> Branch:
    nodes = [row.get(node, node) if isinstance(node, Var) else node for node in wanted]
    subject, predicate, object_, graph = (None if isinstance(node, Var) else node for node in nodes)
    return Branch((subject, predicate, object_, graph), _same(nodes))


def _same(nodes: Sequence[Node | None]) -> Places:
    """The places of variables that are there more than once."""
    named = [(place, node) for place, node in enumerate(nodes) if isinstance(node, Var)]
    return tuple((one, other) for (one, this), (other, that) in combinations(named, 2) if this == that)


def _within(one: Branch, other: Branch) -> bool:
    """Whether all that one selects the other does."""
    held = all(wide is None or wide == narrow for narrow, wide in zip(one.match, other.match, strict=True))
    return held and all(
        pair in one.same or (one.match[pair[0]] is not None and one.match[pair[0]] == one.match[pair[1]])
        for pair in other.same
    )


def _overlap(one: Match, other: Match) -> bool:
    return all(a is None or b is None or a == b for a, b in zip(one, other, strict=True))
