"""What a fragment selects: disjoint matches, whose places may have to hold the same term."""

from dataclasses import dataclass
from itertools import product
from typing import TypeAlias

from streamgauge.services.fragments.quads import Match, Quad

Places: TypeAlias = tuple[tuple[int, int], ...]
"""Pairs of places (0 subject .. 3 graph) that hold the same term."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Quads of any of ``matches``, no quad of two of them, that hold the same term in each pair of ``same``."""

    matches: tuple[Match, ...]
    same: Places = ()

    def takes(self, quad: Quad) -> bool:
        """Whether the quad is selected."""
        return self.alike(quad) and any(fits(quad, match) for match in self.matches)

    def alike(self, quad: Quad) -> bool:
        """Whether the places that should hold the same term do."""
        return all(quad[one] == quad[other] for one, other in self.same)


EVERYTHING = Selection(((None, None, None, None),))


def fits(quad: Quad, match: Match) -> bool:
    """Whether a quad is one of a match."""
    return all(wanted is None or wanted == term for term, wanted in zip(quad, match, strict=True))


def matches_of(quad: Quad) -> list[Match]:
    """The sixteen matches that select a quad."""
    return list(product(*((term, None) for term in quad)))
