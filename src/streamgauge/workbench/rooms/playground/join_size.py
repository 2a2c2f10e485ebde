"""An upper bound of the solutions that matching a query's patterns over some triples can make.

The bound is made of how many triples a predicate has at most for one subject or object.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from math import prod
from typing import Final

from streamgauge.model import algebra as al
from streamgauge.model.terms import Term, Triple
from streamgauge.query.traversal import every_pattern

SMALL: Final = 3_000_000
"""Solutions that an evaluation makes in seconds."""


class _Degrees:
    """How many triples a predicate has: in all, and at most for one subject and for one object."""

    def __init__(self, triples: Iterable[Triple]) -> None:
        by_predicate = defaultdict[Term, list[Triple]](list)
        distinct = set(triples)
        for triple in distinct:
            by_predicate[triple[1]].append(triple)
        self.total = len(distinct)
        self._counts = {predicate: _most(triples_) for predicate, triples_ in by_predicate.items()}
        self._any = _most(distinct)

    def of(self, predicate: object) -> tuple[int, int, int]:
        """The three counts; of all triples where the predicate is a variable."""
        return self._any if isinstance(predicate, al.Var) else self._counts.get(str(predicate), (0, 0, 0))


def _most(triples: Iterable[Triple]) -> tuple[int, int, int]:
    triples_ = list(triples)
    return (
        len(triples_),
        max(Counter(subject for subject, _, _ in triples_).values(), default=0),
        max(Counter(item for _, _, item in triples_).values(), default=0),
    )


def most_solutions(form: al.QueryForm, triples: Iterable[Triple]) -> int:
    """No fewer than the solutions of all basic graph patterns of the query joined, over any part of the triples."""
    degrees = _Degrees(triples)
    bgps = (bgp for bgp in every_pattern(form.pattern) if isinstance(bgp, al.BGP))
    return prod(max(1, _solutions(bgp, degrees)) for bgp in bgps)


def _solutions(bgp: al.BGP, degrees: _Degrees) -> int:
    """The bound of one basic graph pattern: the most selective triple pattern is always taken next."""
    bound: set[al.Var] = set()
    waiting = list(bgp.patterns)
    size = 1
    while waiting:
        # Example: 100 triples with :in, one for each subject and at most 50 for an object. Of ``?x :in ?g . ?y :in
        # ?g`` the first pattern has 100 matches. Then ?g is bound, and each has at most 50 in the second: 5,000 in
        # all.
        costs = [_matches(pattern_, bound, degrees) for pattern_ in waiting]
        cheapest = costs.index(min(costs))
        # At least 1: an OPTIONAL around a pattern without matches keeps its left side.
        size *= max(1, costs[cheapest])
        bound.update(_variables(waiting.pop(cheapest)))
    return size


def _variables(pattern: al.TriplePattern) -> Iterator[al.Var]:
    return (node for node in (pattern.subject, pattern.predicate, pattern.object) if isinstance(node, al.Var))


def _matches(pattern: al.TriplePattern, bound: set[al.Var], degrees: _Degrees) -> int:
    """How many triples match at most, once some variables have values."""
    if not isinstance(pattern.predicate, al.Var | str):
        return max(1, degrees.total) ** 2  # a path: any two terms
    total, of_subject, of_object = degrees.of(pattern.predicate)
    ends = [_known(pattern.subject, bound), _known(pattern.object, bound)]
    if all(ends):
        return 1 if isinstance(pattern.predicate, str) or pattern.predicate in bound else min(of_subject, of_object)
    return of_subject if ends[0] else of_object if ends[1] else total


def _known(node: al.Node, bound: set[al.Var]) -> bool:
    return not isinstance(node, al.Var) or node in bound
