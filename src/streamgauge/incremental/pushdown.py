"""Conditions are tested as far inside a pattern as the answers stay the same, so that operators keep fewer rows.

A worked example: ``?o :value ?v OPTIONAL { ?o :place ?p FILTER(?p = :hall) } BIND(?v * 1.8 + 32 AS ?f)
FILTER(?f > 90)``. Written for ?v, the last condition is ``?v * 1.8 + 32 > 90``, which passes BIND and the optional side
and is tested with the triples of ``:value``; ``?p = :hall`` is tested with those of ``:place``.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from streamgauge.incremental.conditions import size_of
from streamgauge.incremental.rewrite import names_of, reads, scope
from streamgauge.model import algebra as al
from streamgauge.query.traversal import bound, conjunction, conjuncts, every_expression, with_parts
from streamgauge.sparql.expression import is_pure

MAX_SIZE: Final = 64
"""Operators and terms of a condition into which the expression of a BIND is written: chains of BIND would nest it."""


def pushed(conditions: Sequence[al.Expression], pattern: al.Pattern) -> tuple[al.Pattern, list[al.Expression]]:
    """The pattern with conditions inside its operands, and the conditions that have to be tested above it."""
    rest = list[al.Expression]()
    # The last one first, so that they are tested inside in the order in which they are written.
    for condition in reversed(conditions):
        inner = _inside(condition, pattern) if is_pure(condition) else None
        if inner is None:
            rest.append(condition)
        else:
            pattern = inner
    return pattern, rest[::-1]


def _inside(condition: al.Expression, pattern: al.Pattern) -> al.Pattern | None:
    """The pattern with a condition around its operands; ``None`` where that could give other answers."""
    read = reads(condition)
    match pattern:
        case al.Extend(pattern=inner, variable=variable, expression=value):
            below = _written(condition, variable, value) if variable.name in read else condition
            return None if below is None else replace(pattern, pattern=al.Filter(below, inner))
        case al.LeftJoin(left=left, right=right) if not read & (scope(right) - bound(left)):
            return replace(pattern, left=al.Filter(condition, left))
        case al.Minus(left=left):
            return replace(pattern, left=al.Filter(condition, left))
        case al.Union(left=left, right=right):
            return al.Union(al.Filter(condition, left), al.Filter(condition, right))
        case al.Distinct(pattern=inner):
            below_distinct = _inside(condition, inner)
            return None if below_distinct is None else al.Distinct(below_distinct)
        case al.Project(pattern=inner, variables=variables) if read <= set(names_of(variables)):
            return replace(pattern, pattern=al.Filter(condition, inner))
        case _:
            return None


def _written(condition: al.Expression, variable: al.Var, value: al.Expression) -> al.Expression | None:
    """The condition with an expression in place of the variable that it is bound to; ``None`` if it would grow large.

    An error in the expression leaves the variable unbound, which is an error wherever it is read but in BOUND.
    """
    parts = list(every_expression(condition))
    if parts.count(variable) > 1 or size_of(condition) + size_of(value) > MAX_SIZE or not is_pure(value):
        return None
    if any(isinstance(part, al.Call) and part.operator.upper() == "BOUND" for part in parts):
        return None
    return with_parts(condition, lambda part: value if part == variable else part)


def decided_by_right(pattern: al.LeftJoin) -> al.LeftJoin:
    """An OPTIONAL whose right side tests the conditions that read nothing of the left side."""
    if pattern.condition is None:
        return pattern
    right, rest = pattern.right, list[al.Expression]()
    for condition in reversed(conjuncts(pattern.condition)):
        # A shared variable that the right side always binds has the same value on both sides.
        if is_pure(condition) and not reads(condition) & (scope(pattern.left) - bound(right)):
            right = al.Filter(condition, right)
        else:
            rest.append(condition)
    return replace(pattern, right=right, condition=conjunction(rest[::-1]))
