"""EXISTS: what it mentions of the row outside, and the outer rows that its pattern is evaluated for.

SPARQL 1.1 puts an outer row's values for its variables everywhere in the pattern
(https://www.w3.org/TR/sparql11-query/#defn_substitute); here every leaf of the pattern is joined with all distinct
outer rows at once, so that each of its solutions knows which outer rows it belongs to.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import Column
from pyspark.sql import functions as fn

from streamgauge.model import algebra as al
from streamgauge.query.rebuild import children, every_expression, expressions
from streamgauge.spark.presence import bound_in, distinct, keyed
from streamgauge.spark.relation import Relation, fresh, join

_KEY = ".given"


@dataclass(frozen=True)
class Given:
    """Distinct outer rows, each under a ``key``; ``names`` are the variables in the key, in its order."""

    relation: Relation
    key: str
    names: tuple[str, ...]

    def limited(self, variables: Sequence[str]) -> "Given":
        """What a subquery that projects to these variables sees of the outer rows: its other variables are its own."""
        seen = tuple(name for name in self.relation.variables if name == self.key or name in variables)
        return replace(self, relation=self.relation.project(seen))

    def joined(self, relation: Relation, reports: int) -> Relation:
        """A leaf's solutions for each outer row."""
        return join(self.relation, relation, reports)

    def free(self) -> dict[str, Column]:
        """In which rows each outer variable is unbound outside, and so a variable in the pattern too."""
        free = {name: ~bound_in(self.key, index) for index, name in enumerate(self.names)}
        return {self.key: fn.lit(False), **free}


def outer_rows(outer: Relation, pattern: al.Pattern) -> tuple[Relation, Given]:
    """The outer rows with the key of what ``pattern`` mentions of them, and the distinct ones to evaluate it for."""
    names = tuple(name for name in outer.variables if al.Var(name) in mentioned(pattern))
    key = fresh(outer, _KEY)
    known = keyed(outer, key, names)
    return known, Given(distinct(known.project((*names, key))), key, names)


def mentioned(pattern: al.Pattern) -> frozenset[al.Var]:
    """The variables of a pattern that outer values are put for; what a subquery does not project is its own."""
    match pattern:
        case al.BGP(patterns=patterns):
            return frozenset(var for triple in patterns for var in al.triple_variables(triple))
        case al.Values(variables=variables):
            return frozenset(variables)
        case al.Project(pattern=inner, variables=variables):
            return mentioned(inner) & frozenset(variables)
        case _:
            found = set[al.Var]().union(*map(mentioned, children(pattern)))
            for part in (part for tree in expressions(pattern) for part in every_expression(tree)):
                found |= {part} if isinstance(part, al.Var) else set()
                found |= mentioned(part.pattern) if isinstance(part, al.Exists) else set()
            return frozenset(found | set(assigned_here(pattern)))


def assigned(pattern: al.Pattern) -> Iterator[al.Var]:
    """The variables that a pattern computes and shows: BIND, SELECT expressions, aggregates."""
    yield from assigned_here(pattern)
    for child in children(pattern):
        visible = frozenset(pattern.variables) if isinstance(pattern, al.Project) else None
        yield from (var for var in assigned(child) if visible is None or var in visible)


def assigned_here(pattern: al.Pattern) -> Iterator[al.Var]:
    """The variables that this operator computes."""
    match pattern:
        case al.Extend(variable=variable):
            yield variable
        case al.Group(keys=keys, aggregates=aggregates):
            yield from (var for var, expression in keys if var != expression)
            yield from (var for var, _ in aggregates)


def leaves(pattern: al.Pattern) -> int:
    """How often evaluating the pattern reads the outer rows."""
    own = isinstance(pattern, al.BGP | al.Values | al.Project | al.Group)
    return own + sum(map(leaves, children(pattern)))


def is_join(pattern: al.Pattern, outermost: bool = True) -> bool:
    """Whether EXISTS is a plain join with the outer rows: no operator needs its inner variables unbound."""
    match pattern:
        case al.Filter(condition=condition, pattern=inner):
            if any(isinstance(part, al.Exists) for part in every_expression(condition)):
                return False
            local = al.expression_variables(condition) <= frozenset(al.pattern_variables(inner))
            return (outermost or local) and is_join(inner, outermost)
        case al.Join(left=left, right=right) | al.Union(left=left, right=right):
            return is_join(left, False) and is_join(right, False)
        case al.Graph(pattern=inner):
            return is_join(inner, False)
        case al.BGP(patterns=patterns):
            return all(isinstance(triple.predicate, al.Var | str) for triple in patterns)
        case _:
            return isinstance(pattern, al.Values)
