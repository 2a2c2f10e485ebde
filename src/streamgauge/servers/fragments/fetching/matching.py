"""Quads against patterns, and what seeds leave open of a pattern."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from streamgauge.model.algebra import Node, Var
from streamgauge.model.terms import Term, is_blank, is_literal
from streamgauge.servers.fragments.fetching.contract import Binding
from streamgauge.servers.fragments.quads import ANYWHERE, DEFAULT, Quad, QuadPattern


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


def matching(pattern: QuadPattern, quads: Iterable[Quad]) -> tuple[Quad, ...]:
    """The distinct quads that match, in order."""
    places = _places(pattern)
    return tuple(
        quad
        for quad in dict.fromkeys(quads)
        if all(quad[place] == term for place, term in places.terms)
        and all(quad[place] == quad[first] for place, first in places.repeated)
        and not (places.named and quad[3] == DEFAULT)
    )


def bindings(pattern: QuadPattern, quads: Iterable[Quad]) -> list[Binding]:
    """The solution mappings by which quads match."""
    variables = _places(pattern).variables
    return [{variable: quad[place] for variable, place in variables} for quad in matching(pattern, quads)]


def substituted(pattern: QuadPattern, seed: Binding) -> QuadPattern:
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
