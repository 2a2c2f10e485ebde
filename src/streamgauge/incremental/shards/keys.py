"""Shard keys: a variable through which all joins of a query go, so that triples can be partitioned by its value.

A triple goes to the shard of its term at the position of the key in the patterns of its predicate, or to all shards.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TypeAlias

from streamgauge.model import algebra as al
from streamgauge.model.terms import Term
from streamgauge.query.traversal import every_expression, every_pattern, expressions


class Route(IntEnum):
    """The destination of the triples of a predicate."""

    NOWHERE = 0  # no pattern matches them
    SUBJECT = 1  # to that of the subject
    OBJECT = 2  # to that of the object
    EVERYWHERE = 3  # to all


@dataclass(frozen=True, slots=True)
class TripleRoutes:
    """The route of each predicate in a query, and of all ``others``."""

    of: Mapping[Term, Route] = field(default_factory=dict)
    others: Route = Route.NOWHERE

    def shared(self) -> list[Term]:
        """The predicates whose triples go to all shards, sorted."""
        return sorted(term for term, route in self.of.items() if route is Route.EVERYWHERE)


@dataclass(frozen=True, slots=True)
class ShardKey:
    """A variable by whose value the solutions of a query are partitioned.

    ``disjoint``: it is a column of the answer, so that shards have no rows in common. ``shared`` is the fraction of the
    triple patterns whose triples go to all shards.
    """

    name: str
    routes: TripleRoutes
    disjoint: bool
    shared: float


Keys: TypeAlias = frozenset[al.Var] | None
"""The variables that partition the solutions of a part. Empty: its solutions are the sum over the shards, but no
variable identifies the shard. ``None``: each shard has all solutions."""


class _NotLocalError(Exception):
    """A part of a query whose solutions are not the sum over shards."""


def shard_key(form: al.QueryForm) -> ShardKey | None:
    """The key for which the fewest triples go to all shards; ``None`` if the query has no key.

    A basic graph pattern is local to a key if, in each of its patterns, the key is at the position by which the
    predicate is routed, or the predicate's triples go to all shards; not all of them may. Other operators:
    joins, OPTIONAL, MINUS and EXISTS are local if both sides are, to the same key, or the right one is everywhere;
    GROUP BY if the key is one of its keys; DISTINCT if the key is a column; LIMIT and OFFSET never.

    Example: ``{ ?o :sensor ?s ; :result ?r . ?r :value ?v }`` has the key ?o, with ``:sensor`` and ``:result`` by
    subject and ``:value`` everywhere: a solution with o = 1 is found only in the shard of 1.
    """
    patterns = list(_triple_patterns(form))
    if not isinstance(form, al.Select) or any(isinstance(pattern.predicate, _PATHS) for pattern in patterns):
        return None
    candidates = (
        node for pattern in patterns for node in (pattern.subject, pattern.object) if isinstance(node, al.Var)
    )
    keys = [key for var in dict.fromkeys(candidates) if (key := _by(var, form, patterns)) is not None]
    # The fewer triples go to all shards, the less is held and joined twice.
    return min(keys, key=lambda key: key.shared, default=None)


_PATHS = (al.Inverse, al.Sequence, al.Alternative, al.Repeat, al.NegatedSet)


def _triple_patterns(form: al.QueryForm) -> Iterator[al.TriplePattern]:
    for pattern in every_pattern(form.pattern):
        if isinstance(pattern, al.BGP):
            yield from pattern.patterns


def _by(var: al.Var, form: al.QueryForm, patterns: list[al.TriplePattern]) -> ShardKey | None:
    routes = _routes(var, patterns)
    if routes is None:
        return None
    try:
        keys = _Locality(routes).of(form.pattern)
    except _NotLocalError:
        return None
    # All patterns would go everywhere: every shard would compute the whole answer.
    if keys is None:
        return None
    shared = sum(_route(routes, pattern) is Route.EVERYWHERE for pattern in patterns)
    return ShardKey(var.name, routes, var in keys, shared / len(patterns))


def _route(routes: TripleRoutes, pattern: al.TriplePattern) -> Route:
    predicate = pattern.predicate
    return routes.of.get(predicate, routes.others) if isinstance(predicate, str) else routes.others


def _routes(var: al.Var, patterns: list[al.TriplePattern]) -> TripleRoutes | None:
    """Route each predicate by the variable's position in all its patterns, or everywhere if they have none in common.

    A pattern with a variable predicate matches all triples: then all are routed by one position, or not at all.
    """
    places: dict[Term, set[Route]] = {}
    for pattern in patterns:
        own = {place for place, node in _ends(pattern) if node == var}
        predicate = pattern.predicate if isinstance(pattern.predicate, str) else ""
        places[predicate] = places.get(predicate, own) & own
    if "" in places:
        common = set.intersection(*places.values())
        return TripleRoutes(others=min(common)) if common else None
    return TripleRoutes({term: min(place, default=Route.EVERYWHERE) for term, place in places.items()})


def _ends(pattern: al.TriplePattern) -> tuple[tuple[Route, al.Node], tuple[Route, al.Node]]:
    return (Route.SUBJECT, pattern.subject), (Route.OBJECT, pattern.object)


class _Locality:
    """Determines the keys of parts of a query under given routes; _NotLocalError for a part that is not local."""

    def __init__(self, routes: TripleRoutes) -> None:
        self._routes = routes

    def of(self, pattern: al.Pattern) -> Keys:
        """The keys of a part."""
        keys = self._keys(pattern)
        for tree in expressions(pattern):
            self._check(tree, keys)
        return keys

    def _keys(self, pattern: al.Pattern) -> Keys:
        match pattern:
            case al.BGP(patterns=patterns):
                return self._block(patterns)
            case al.Values():
                return None
            case al.Join(left=left, right=right):
                return _joined(self.of(left), self.of(right))
            case al.LeftJoin(left=left, right=right) | al.Minus(left=left, right=right):
                return _beside(self.of(left), self.of(right))
            case al.Union(left=left, right=right):
                return _together(self.of(left), self.of(right))
            case al.Group(pattern=inner, keys=names):
                return _grouped(self.of(inner), names)
            case al.Project(pattern=inner, variables=variables):
                keys = self.of(inner)
                # A projected-away key still partitions the rows, but no column identifies the shard: the empty set,
                # not ``None``.
                return None if keys is None else keys & frozenset(variables)
            case al.Distinct(pattern=inner) | al.Slice(pattern=inner):
                return _whole(self.of(inner), isinstance(pattern, al.Slice))
            case _:
                return self.of(pattern.pattern)

    def _block(self, patterns: tuple[al.TriplePattern, ...]) -> Keys:
        """The key of a basic graph pattern: one variable that all patterns have whose triples are not everywhere."""
        nodes: list[al.Node] = []
        for pattern in patterns:
            route = _route(self._routes, pattern)
            if route is not Route.EVERYWHERE:
                nodes.append(pattern.subject if route is Route.SUBJECT else pattern.object)
        if not nodes:
            return None
        if not isinstance(nodes[0], al.Var) or any(node != nodes[0] for node in nodes):
            raise _NotLocalError
        return frozenset({nodes[0]})

    def _check(self, tree: al.Expression, keys: Keys) -> None:
        """EXISTS in an expression only sees the solution's own shard."""
        for expression in every_expression(tree):
            if isinstance(expression, al.Exists):
                _beside(keys, self.of(expression.pattern))


def _joined(left: Keys, right: Keys) -> Keys:
    if left is None or right is None:
        return right if left is None else left
    if not left & right:
        raise _NotLocalError
    return left | right


def _beside(left: Keys, right: Keys) -> Keys:
    """The keys of an operator whose right side only extends, or removes, solutions of the left one."""
    if right is not None and (left is None or not left & right):
        raise _NotLocalError
    return left


def _together(left: Keys, right: Keys) -> Keys:
    if left is None and right is None:
        return None
    if left is None or right is None:
        raise _NotLocalError
    return left & right


def _grouped(inner: Keys, names: tuple[tuple[al.Var, al.Expression], ...]) -> Keys:
    if inner is None:
        return None
    keys = frozenset(name for name, key in names if key in inner)
    if not keys:
        raise _NotLocalError
    return keys


def _whole(inner: Keys, counted: bool) -> Keys:
    """DISTINCT, whose rows must not occur in two shards, or LIMIT, which needs all rows."""
    if inner is not None and (counted or not inner):
        raise _NotLocalError
    return inner
