"""Basic graph patterns: triple patterns joined star by star, in the order of what connects them.

A star is a set of triple patterns linked through a subject. Only RDF variables connect; the window never does.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import TypeVar

from streamgauge.model.algebra import TriplePattern, Var, triple_variables
from streamgauge.spark.facts import Facts
from streamgauge.spark.relation import Relation, join

Item = TypeVar("Item")

_FEWER = 1  # a constant or a condition is taken to halve the rows


def basic_graph_pattern(
    facts: Facts, patterns: Sequence[TriplePattern], numeric: frozenset[str], filtered: frozenset[str]
) -> Relation:
    """The solutions of a non-empty basic graph pattern, smallest first; ``filtered`` variables have conditions."""

    def size(pattern: TriplePattern) -> int:
        constants = sum(isinstance(node, str) for node in (pattern.subject, pattern.object))
        return facts.rows(pattern) // (1 + _FEWER * (constants + len(_names(pattern) & filtered)))

    def smallest(star: Sequence[TriplePattern]) -> int:
        return min(map(size, star))

    def star(chosen: Sequence[TriplePattern]) -> Relation:
        return _joined(facts, [facts.match(pattern, numeric) for pattern in ordered(chosen, _names, size)])

    stars = _stars(patterns)
    return _joined(facts, [star(chosen) for chosen in ordered(stars, _star_variables, smallest)])


def ordered(
    items: Sequence[Item], variables: Callable[[Item], frozenset[str]], size: Callable[[Item], int]
) -> list[Item]:
    """Smallest first, then always one that shares a variable with what is there, if there is one."""
    rest, found, known = list(items), list[Item](), frozenset[str]()
    while rest:
        best = min(rest, key=lambda item: (not variables(item) & known, size(item), items.index(item)))
        rest.remove(best)
        found.append(best)
        known |= variables(best)
    return found


def _joined(facts: Facts, relations: Sequence[Relation]) -> Relation:
    return reduce(lambda left, right: join(left, right, facts.reports), relations)


def _stars(patterns: Sequence[TriplePattern]) -> list[tuple[TriplePattern, ...]]:
    stars: list[tuple[TriplePattern, ...]] = []
    for pattern in patterns:
        linked = [star for star in stars if any(_linked(pattern, other) for other in star)]
        merged = tuple(item for star in linked for item in star)
        stars = [star for star in stars if star not in linked] + [(*merged, pattern)]
    return stars


def _linked(one: TriplePattern, other: TriplePattern) -> bool:
    """Whether the two share a variable that is the subject of at least one of them."""
    subjects = {node.name for node in (one.subject, other.subject) if isinstance(node, Var)}
    return bool(subjects & _names(one) & _names(other))


def _names(pattern: TriplePattern) -> frozenset[str]:
    return frozenset(var.name for var in triple_variables(pattern))


def _star_variables(star: Iterable[TriplePattern]) -> frozenset[str]:
    return frozenset().union(*map(_names, star))
