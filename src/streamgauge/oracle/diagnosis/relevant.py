"""The triples of a stream that can matter to a query: those that match a pattern whose star can be whole."""

from collections import defaultdict
from collections.abc import Iterable

from streamgauge.model import algebra as al
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.terms import Term, Triple
from streamgauge.query.traversal import every_pattern


def relevant(query: ContinuousQuery, triples: Iterable[Triple]) -> frozenset[Triple] | None:
    """The triples that some match may use, whatever the window; ``None`` for all (property paths are not followed).

    A triple matters when it matches a pattern, and its subject has a match, in the stream or the static data, of
    every pattern with the same subject in the same basic graph pattern.
    """
    bgps = [pattern for pattern in every_pattern(query.form.pattern) if isinstance(pattern, al.BGP)]
    patterns = [triple for bgp in bgps for triple in bgp.patterns]
    if any(not isinstance(pattern.predicate, al.Var | str) for pattern in patterns):
        return None
    every = dict.fromkeys((*triples, *query.static))
    found: set[Triple] = set()
    for bgp in bgps:
        found |= _of_stars(bgp, every)
    return frozenset(found)


def _of_stars(bgp: al.BGP, every: Iterable[Triple]) -> set[Triple]:
    stars: dict[al.Node, list[al.TriplePattern]] = defaultdict(list)
    for pattern in bgp.patterns:
        stars[pattern.subject].append(pattern)
    found: set[Triple] = set()
    for star in stars.values():
        matching = [[triple for triple in every if _matches(pattern, triple)] for pattern in star]
        subjects: set[Term] = set.intersection(*({triple[0] for triple in matched} for matched in matching))
        found.update(triple for matched in matching for triple in matched if triple[0] in subjects)
    return found


def _matches(pattern: al.TriplePattern, triple: Triple) -> bool:
    nodes = (pattern.subject, pattern.predicate, pattern.object)
    return all(isinstance(node, al.Var) or node == term for node, term in zip(nodes, triple, strict=True))
