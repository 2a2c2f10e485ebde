"""Quads against patterns, and what seeds leave open of a pattern."""

from collections.abc import Iterable, Sequence

from streamgauge.model.algebra import Node, Var
from streamgauge.model.terms import Term, is_blank, is_literal
from streamgauge.services.fragments.fetching.contract import Binding
from streamgauge.services.fragments.quads import ANYWHERE, DEFAULT, Quad, QuadPattern


def binding(pattern: QuadPattern, quad: Quad) -> Binding | None:
    """The solution mapping by which a quad matches; ``None`` when it does not. A graph's variable is a named graph."""
    found: Binding = {}
    for node, term in zip(pattern.nodes, quad, strict=True):
        if not isinstance(node, Var):
            if node != term:
                return None
        elif node != ANYWHERE and found.setdefault(node, term) != term:
            return None
    return None if isinstance(pattern.graph, Var) and pattern.graph != ANYWHERE and quad[3] == DEFAULT else found


def matching(pattern: QuadPattern, quads: Iterable[Quad]) -> tuple[Quad, ...]:
    """The distinct quads that match, in order."""
    return tuple(quad for quad in dict.fromkeys(quads) if binding(pattern, quad) is not None)


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
