"""The parts of queries that the Spark evaluator does not do, by name."""

from collections.abc import Iterator

from streamgauge.model import algebra as al
from streamgauge.query.traversal import children, every_expression, every_pattern, expressions
from streamgauge.spark.exists import assigned

_CHANGING = frozenset({"RAND", "UUID", "STRUUID", "BNODE", "NOW"})
"""Functions whose value is another one each time; no recorded answer can be compared with ours."""


def refuse(query: al.QueryForm) -> str | None:
    """``None``, or the sentence that says which part of the query Spark does not evaluate."""
    part = next(_unsupported(query.pattern), None)
    return None if part is None else f"spark does not evaluate {part}"


def conjuncts(condition: al.Expression) -> tuple[al.Expression, ...]:
    """The parts of a condition that must all hold."""
    match condition:
        case al.Call("&&", arguments):
            return tuple(part for argument in arguments for part in conjuncts(argument))
        case _:
            return (condition,)


def negated(condition: al.Expression) -> al.Exists | None:
    """The EXISTS of a NOT EXISTS."""
    match condition:
        case al.Call("!", (al.Exists() as exists,)):
            return exists
        case _:
            return None


def _unsupported(pattern: al.Pattern) -> Iterator[str]:
    for part in every_pattern(pattern):
        for tree in expressions(part):
            for call in every_expression(tree):
                if isinstance(call, al.Call) and call.operator in _CHANGING:
                    yield f"{call.operator}()"
    for name in _assigned_outside(pattern, frozenset()):
        yield f"EXISTS that assigns ?{name}, a variable of the pattern around it"


def _assigned_outside(pattern: al.Pattern, around: frozenset[al.Var]) -> Iterator[str]:
    """The outer variables that an EXISTS computes anew: what SPARQL means by that is not defined."""
    below = children(pattern)
    outer = around.union(*map(al.pattern_variables, below))
    for part in (part for tree in expressions(pattern) for part in every_expression(tree)):
        if isinstance(part, al.Exists):
            yield from (var.name for var in assigned(part.pattern) if var in outer)
            yield from _assigned_outside(part.pattern, outer)
    for child in below:
        yield from _assigned_outside(child, around)
