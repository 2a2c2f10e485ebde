"""What the Spark evaluator does not do, by name."""

from collections.abc import Iterator

from streamgauge.model import algebra as al

_RANDOM = frozenset({"RAND", "UUID", "STRUUID", "BNODE"})


def refuse(query: al.QueryForm) -> str | None:
    """``None``, or the sentence that says which part of the query Spark does not evaluate."""
    if isinstance(query, al.Construct):
        return _sentence("CONSTRUCT")
    return next(map(_sentence, _unsupported(query.pattern)), None)


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


def _sentence(part: str) -> str:
    return f"compute/spark does not evaluate {part}"


def _unsupported(pattern: al.Pattern) -> Iterator[str]:
    match pattern:
        case al.BGP(patterns=patterns):
            yield from ("property paths" for p in patterns if not isinstance(p.predicate, str | al.Var))
        case al.Join(left=left, right=right) | al.Union(left=left, right=right) | al.Minus(left=left, right=right):
            yield from (*_unsupported(left), *_unsupported(right))
        case al.LeftJoin(left=left, right=right, condition=condition):
            yield from (*_unsupported(left), *_unsupported(right))
            yield from _in_expression(condition) if condition is not None else ()
        case al.Filter(condition=condition, pattern=inner):
            yield from _unsupported(inner)
            for part in conjuncts(condition):
                yield from _in_condition(part)
        case al.Extend(pattern=inner, expression=expression):
            yield from (*_unsupported(inner), *_in_expression(expression))
        case al.Group(pattern=inner, keys=keys, aggregates=aggregates):
            yield from _unsupported(inner)
            for _, expression in keys:
                yield from _in_expression(expression)
            for _, aggregate in aggregates:
                yield from _in_aggregate(aggregate)
        case al.Graph():
            yield "GRAPH"
        case al.Slice():
            yield "LIMIT and OFFSET"
        case al.Values():
            return
        case _:
            yield from _unsupported(pattern.pattern)


def _in_condition(part: al.Expression) -> Iterator[str]:
    exists = negated(part) or part
    if not isinstance(exists, al.Exists):
        yield from _in_expression(part)
    elif not _simple(exists.pattern):
        yield "EXISTS over anything but triple patterns, FILTER, UNION and VALUES"
    else:
        yield from _unsupported(exists.pattern)


def _in_expression(expression: al.Expression) -> Iterator[str]:
    match expression:
        case al.Call(operator=operator, arguments=arguments):
            if operator in _RANDOM:
                yield f"{operator}()"
            for argument in arguments:
                yield from _in_expression(argument)
        case al.Exists():
            yield "EXISTS inside another expression"
        case _:
            return


def _in_aggregate(aggregate: al.Aggregate) -> Iterator[str]:
    if aggregate.function == "GROUP_CONCAT":
        yield "GROUP_CONCAT"
    if aggregate.argument is not None:
        yield from _in_expression(aggregate.argument)


def _simple(pattern: al.Pattern, outermost: bool = True) -> bool:
    """Whether EXISTS is a join: no operator that needs its inner variables unbound, no outer variable deep inside."""
    match pattern:
        case al.Filter(condition=condition, pattern=inner):
            own = frozenset(al.pattern_variables(inner))
            if any(isinstance(negated(part) or part, al.Exists) for part in conjuncts(condition)):
                return False
            local = al.expression_variables(condition) <= own
            return (outermost or local) and _simple(inner, outermost)
        case al.Join(left=left, right=right) | al.Union(left=left, right=right):
            return _simple(left, False) and _simple(right, False)
        case _:
            return isinstance(pattern, al.BGP | al.Values)
