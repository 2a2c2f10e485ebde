"""What of its sources a query needs: triple patterns, and by the values of which others each may be restricted.

A pattern may be restricted to values of a variable found at another pattern without which there is no solution that it
could join with: in a group each by the others, in OPTIONAL, MINUS and EXISTS by what is certain around them.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, TypeAlias

from streamgauge.compute.changes.normal import Normaliser, leaf, operands
from streamgauge.compute.changes.paths import nullable
from streamgauge.model import algebra as al
from streamgauge.query.rebuild import every_expression, expressions

Supply: TypeAlias = Mapping[al.Var, frozenset[int]]
"""By variable, the patterns (their numbers) that have each of its values that can matter."""

EVERYTHING: Final = al.TriplePattern(al.Var("_:s"), al.Var("_:p"), al.Var("_:o"))
"""All there is."""

_NONE: Final[Supply] = {}


@dataclass(frozen=True, slots=True)
class Wanted:
    """A triple pattern whose facts are needed, at least those that join with facts of its suppliers (their numbers)."""

    pattern: al.TriplePattern
    suppliers: Supply = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Walked:
    """A pattern that was looked at: what it supplies to those beside it, and how it is told what they supply."""

    certain: Supply
    restrict: Callable[[Supply], None]


def demand(pattern: al.Pattern, outer: Iterable[al.Var] = ()) -> tuple[Wanted, ...]:
    """The triple patterns of a pattern, those of EXISTS too, repeated paths by their steps.

    ``outer`` are variables whose values are given: their supplier is number -1.
    """
    walk = _Walk()
    walked = walk.pattern(walk.normal.pattern(without_slices(pattern)))
    walked.restrict({variable: frozenset((OUTER,)) for variable in outer})
    return tuple(
        Wanted(each, {variable: ids for variable, ids in walk.suppliers.get(number, _NONE).items() if ids})
        for number, each in enumerate(walk.patterns)
    )


OUTER: Final = -1
"""The supplier whose values are given from outside."""


def without_slices(pattern: al.Pattern) -> al.Pattern:
    """The pattern whose outermost LIMIT and OFFSET are left out."""
    return without_slices(pattern.pattern) if isinstance(pattern, al.Slice) else pattern


@dataclass(slots=True)
class _Walk:
    """Numbers the triple patterns, then hands down what may restrict them."""

    patterns: list[al.TriplePattern] = field(default_factory=list)
    suppliers: dict[int, Supply] = field(default_factory=dict)
    normal: Normaliser = field(default_factory=Normaliser)

    def pattern(self, pattern: al.Pattern) -> _Walked:
        match pattern:
            case al.BGP() | al.Join():
                return self._join(operands(pattern))
            case al.LeftJoin(left=left, right=right):
                return self._within(self.pattern(left), [self.pattern(right), *self._exists(pattern)])
            case al.Minus(left=left, right=right):
                return self._within(self.pattern(left), [self.pattern(right)])
            case al.Union(left=left, right=right):
                both = self.pattern(left), self.pattern(right)
                return _Walked(_NONE, partial(_all, both))
            case al.Values():
                return _Walked(_NONE, partial(_all, ()))
            case al.Extend(pattern=inner, variable=variable):
                return _without(self._within(self.pattern(inner), self._exists(pattern)), (variable,))
            case al.Project(pattern=inner, variables=variables):
                return _only(self.pattern(inner), variables)
            case al.Group(pattern=inner, keys=keys):
                below = self._within(self.pattern(inner), self._exists(pattern))
                return _Walked(_NONE, _only(below, [var for var, key in keys if var == key]).restrict)
            case al.Slice(pattern=inner):
                return _alone(self.pattern(inner))
            case _:
                return self._within(self.pattern(pattern.pattern), self._exists(pattern))

    def _exists(self, pattern: al.Pattern) -> list[_Walked]:
        """The patterns of EXISTS in the expressions of a pattern."""
        parts = (part for tree in expressions(pattern) for part in every_expression(tree))
        return [self.pattern(self.normal.pattern(part.pattern)) for part in parts if isinstance(part, al.Exists)]

    def _within(self, first: _Walked, others: Sequence[_Walked]) -> _Walked:
        """Others that matter only where they join with what is certain in the first."""

        def restrict(known: Supply) -> None:
            first.restrict(known)
            for each in others:
                each.restrict({var: ids | known.get(var, frozenset()) for var, ids in first.certain.items()})

        return _Walked(first.certain, restrict)

    def _join(self, parts: Sequence[al.Pattern]) -> _Walked:
        """Parts that all have to match: each is restricted by the others."""
        walked = [
            each for at, part in enumerate(parts) for each in self._operand(part, [*parts[:at], *parts[at + 1 :]])
        ]

        def restrict(known: Supply) -> None:
            for each in walked:
                each.restrict(_merged((known, *(other.certain for other in walked if other is not each))))

        return _Walked(_merged(each.certain for each in walked), restrict)

    def _operand(self, part: al.Pattern, others: Sequence[al.Pattern]) -> list[_Walked]:
        found = leaf(part)
        if found is None:
            return [self.pattern(part)]
        if found.repeated is not None:
            return self._path(found.bgp.patterns[0], found.repeated, others)
        return [self._triple(each) for each in found.bgp.patterns]

    def _triple(self, triple: al.TriplePattern) -> _Walked:
        number = len(self.patterns)
        self.patterns.append(triple)
        own = frozenset((number,))

        def restrict(known: Supply) -> None:
            self.suppliers[number] = {var: known[var] - own for var in al.triple_variables(triple) if var in known}

        return _Walked(dict.fromkeys(al.triple_variables(triple), own), restrict)

    def _path(self, triple: al.TriplePattern, path: al.Repeat, others: Sequence[al.Pattern]) -> list[_Walked]:
        """A repeated path needs all of its steps, and all nodes where one of length zero may begin anywhere."""
        ends = self.normal.variable(), self.normal.variable()
        steps = [self.pattern(self.normal.path(ends[0], path.path, ends[1], None))]
        if nullable(path) and not _begins(triple, others):
            steps.append(self._triple(EVERYTHING))
        return list(map(_alone, steps))


def _begins(triple: al.TriplePattern, others: Sequence[al.Pattern]) -> bool:
    """Whether a path is followed from nodes that are known to be in the graph: a constant, or a place in a pattern."""
    if isinstance(triple.subject, str) or isinstance(triple.object, str):
        return True
    plain = [found for found in map(leaf, others) if found is not None and found.repeated is None]
    nodes = {node for each in plain for one in each.bgp.patterns for node in (one.subject, one.object)}
    if triple.subject in nodes:
        return True
    elsewhere = {var for other in others for var in al.pattern_variables(other)}
    return triple.object in nodes and triple.subject not in elsewhere


def _all(walked: Sequence[_Walked], known: Supply) -> None:
    for each in walked:
        each.restrict(known)


def _alone(walked: _Walked) -> _Walked:
    """A pattern that is needed whole, and that nothing is told of."""
    return _Walked(_NONE, lambda _: walked.restrict(_NONE))


def _merged(supplies: Iterable[Supply]) -> Supply:
    merged: dict[al.Var, frozenset[int]] = {}
    for supply in supplies:
        for variable, ids in supply.items():
            merged[variable] = merged.get(variable, frozenset()) | ids
    return merged


def _only(walked: _Walked, variables: Iterable[al.Var]) -> _Walked:
    """What is seen of a pattern, and what it sees, through a projection."""
    seen = frozenset(variables)

    def chosen(supply: Supply) -> Supply:
        return {variable: ids for variable, ids in supply.items() if variable in seen}

    return _Walked(chosen(walked.certain), lambda known: walked.restrict(chosen(known)))


def _without(walked: _Walked, variables: Iterable[al.Var]) -> _Walked:
    """What a pattern is told when some variables come into being above it."""
    hidden = frozenset(variables)
    return _Walked(
        walked.certain, lambda known: walked.restrict({var: ids for var, ids in known.items() if var not in hidden})
    )
