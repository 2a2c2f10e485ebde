"""EXISTS and the solution around it: what its pattern takes from there, and whether that can be left to a join.

SPARQL 1.1, 18.6 substitutes the outer solution into the pattern. Where that is the same as joining with it afterwards
the pattern is ``closed``. Otherwise it is evaluated beside a ``Domain``: every place that matches triples is joined
with the distinct values of the outer variables, and a key keeps the outer solutions apart up to the end. A variable
that has become a value is not shared by the sides of MINUS; a subquery has values put for what it projects only.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from streamgauge.incremental.normal import leaf
from streamgauge.incremental.operators import Operator
from streamgauge.incremental.paths import nullable
from streamgauge.incremental.sharing import PRESENT, Shared
from streamgauge.model import algebra as al
from streamgauge.model.terms import Term
from streamgauge.query.rebuild import every_expression, every_pattern, expressions

Names = frozenset[str]


@dataclass(frozen=True)
class Domain:
    """The outer solutions, ``variables`` of them under a ``key`` each that is made of the variables ``keyed``."""

    key: str
    keyed: tuple[str, ...]
    variables: tuple[str, ...]
    rows: Shared

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that every operator beside the domain carries."""
        return (self.key, *self.variables)

    @property
    def places(self) -> dict[str, int]:
        """Where in a key it says whether a variable has a value outside."""
        return {name: self.keyed.index(name) for name in self.variables}

    def tap(self) -> Operator:
        """The distinct outer solutions with their keys."""
        return self.rows.tap()


def has_value(key: Term | None, place: int) -> bool:
    """Whether the outer variable at this place of a key has a value."""
    return key is not None and key[place] == PRESENT


def reads(expression: al.Expression) -> Names:
    """The variables that an expression may read, those anywhere in a pattern of its EXISTS too."""
    found: set[str] = set()
    for part in every_expression(expression):
        if isinstance(part, al.Var):
            found.add(part.name)
        elif isinstance(part, al.Exists):
            found |= mentions(part.pattern)
    return frozenset(found)


def mentions(pattern: al.Pattern) -> Names:
    """The variables that occur anywhere in a pattern."""
    found: set[str] = set()
    for inner in every_pattern(pattern):
        found.update(names_of(al.pattern_variables(inner)))
        for tree in expressions(inner):
            found.update(part.name for part in every_expression(tree) if isinstance(part, al.Var))
    return frozenset(found)


def scope(pattern: al.Pattern) -> Names:
    """The variables in scope."""
    return frozenset(names_of(al.pattern_variables(pattern)))


def names_of(variables: Iterable[al.Var]) -> tuple[str, ...]:
    """Their names."""
    return tuple(variable.name for variable in variables)


def bound(pattern: al.Pattern) -> Names:
    """The variables that every solution of a pattern binds."""
    match pattern:
        case al.BGP():
            return scope(pattern)
        case al.Join(left=left, right=right):
            return bound(left) | bound(right)
        case al.Union(left=left, right=right):
            return bound(left) & bound(right)
        case al.Values(variables=variables, rows=rows):
            return frozenset(var.name for at, var in enumerate(variables) if all(row[at] is not None for row in rows))
        case al.Group(pattern=inner, keys=keys):
            return bound(inner) & frozenset(var.name for var, key in keys if var == key)
        case al.Project(pattern=inner, variables=variables):
            return bound(inner) & frozenset(names_of(variables))
        case al.LeftJoin(left=inner) | al.Minus(left=inner):
            return bound(inner)
        case al.Graph(name=al.Var() as name, pattern=inner):
            return bound(inner) | {name.name}
        case _:
            return bound(pattern.pattern)


def zero_ends(pattern: al.Pattern) -> Names:
    """The variables at the ends of a leaf that is a path of length zero too: a value from outside is in place there."""
    found = leaf(pattern)
    if found is None or found.repeated is None or not nullable(found.repeated):
        return frozenset()
    return scope(pattern)


def closed(pattern: al.Pattern, outer: Names) -> bool:
    """Whether substituting values of the outer variables is the same as joining with them afterwards."""
    match pattern:
        case al.BGP() | al.Graph():
            return not zero_ends(pattern) & outer
        case al.Values():
            return True
        case al.Join(left=left, right=right) | al.Union(left=left, right=right):
            return closed(left, outer) and closed(right, outer)
        case al.LeftJoin(left=left, right=right, condition=condition):
            taken = mentions(right) | (reads(condition) if condition is not None else frozenset())
            return closed(left, outer) and closed(right, outer) and taken & outer <= bound(left)
        case al.Minus(left=left, right=right):
            return closed(left, outer) and not mentions(right) & outer
        case al.Filter(condition=condition, pattern=inner):
            return closed(inner, outer) and reads(condition) & outer <= bound(inner)
        case al.Extend(pattern=inner, variable=variable, expression=value):
            known = reads(value) & outer <= bound(inner) and variable.name not in outer
            return known and closed(inner, outer)
        case al.Project(pattern=inner, variables=variables):
            return closed(inner, outer & frozenset(names_of(variables)))
        case al.Group(pattern=inner, keys=keys):
            kept = outer & scope(pattern)
            return kept <= {var.name for var, key in keys if var == key} & bound(inner) and closed(inner, kept)
        case _:
            return closed(pattern.pattern, outer)
