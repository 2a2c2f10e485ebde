"""Basic graph patterns: triple patterns joined star by star, in the order of what connects them.

A star is a set of triple patterns linked through a subject. Only RDF variables connect; the window never does.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import TypeVar

from streamgauge.compute.spark.facts import Facts
from streamgauge.compute.spark.relation import Relation, join
from streamgauge.model.algebra import TriplePattern, Var, triple_variables

Item = TypeVar("Item")


def basic_graph_pattern(
    facts: Facts, patterns: Sequence[TriplePattern], numeric: frozenset[str], filtered: frozenset[str]
) -> Relation:
    """The solutions of a non-empty basic graph pattern; stars with ``filtered`` variables are joined first."""

    def weight(star: Sequence[TriplePattern]) -> int:
        return max(selectivity(pattern, filtered) for pattern in star)

    stars = ordered(_stars(tuple(dict.fromkeys(patterns))), _star_variables, weight)
    return reduce(
        lambda left, right: join(left, right, facts.reports), [_star(facts, s, numeric, filtered) for s in stars]
    )


def ordered(
    items: Sequence[Item], variables: Callable[[Item], frozenset[str]], weight: Callable[[Item], int]
) -> list[Item]:
    """Heaviest first, then always one that shares a variable with what is there, if there is one."""
    rest, found, known = list(items), list[Item](), frozenset[str]()
    while rest:
        best = max(rest, key=lambda item: (bool(variables(item) & known), weight(item), -items.index(item)))
        rest.remove(best)
        found.append(best)
        known |= variables(best)
    return found


def selectivity(pattern: TriplePattern, filtered: frozenset[str]) -> int:
    """Two for a constant subject or object, one for a filtered variable, one for a constant predicate."""
    ends = (pattern.subject, pattern.object)
    constants = sum(2 for node in ends if isinstance(node, str)) + isinstance(pattern.predicate, str)
    return constants + len(_names(pattern) & filtered)


def _star(
    facts: Facts, patterns: Sequence[TriplePattern], numeric: frozenset[str], filtered: frozenset[str]
) -> Relation:
    order = ordered(patterns, _names, lambda pattern: selectivity(pattern, filtered))
    return reduce(lambda left, right: join(left, right, facts.reports), [facts.match(p, numeric) for p in order])


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
