"""Group and aggregates (SPARQL 1.1, 11 and 18.5.1): one solution for each key."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

from streamgauge.model.algebra import Aggregate, Expression, Group
from streamgauge.model.terms import Term
from streamgauge.sparql.aggregates import aggregate

Solution: TypeAlias = dict[str, Term]
Valuation: TypeAlias = Callable[[Solution], Term | None]
Keys: TypeAlias = tuple[Term | None, ...]


def grouped(
    group: Group, solutions: Iterable[Solution], valuation: Callable[[Expression], Valuation]
) -> Iterator[Solution]:
    """A solution with the keys and the aggregates for each group, in the order of first members.

    Without keys there is one group, also over no solution. A key whose value is an error is a value of its own (18.5.1,
    ListEval) and leaves its variable unbound. ``valuation`` compiles an expression.
    """
    keys = [(variable.name, valuation(key)) for variable, key in group.keys]
    groups: dict[Keys, list[Solution]] = {} if keys else {(): []}
    for solution in solutions:
        groups.setdefault(tuple(value(solution) for _, value in keys), []).append(solution)
    sets = [(variable.name, _set_function(each, valuation)) for variable, each in group.aggregates]
    for key, members in groups.items():
        row = {name: term for (name, _), term in zip(keys, key, strict=True) if term is not None}
        for name, compute in sets:
            value = compute(members)
            if value is not None:
                row[name] = value
        yield row


def _set_function(
    each: Aggregate, valuation: Callable[[Expression], Valuation]
) -> Callable[[Sequence[Solution]], Term | None]:
    if each.argument is None:
        counted = ['"*"']
        return lambda members: aggregate("COUNT", counted * _rows(members, each.distinct))
    value = valuation(each.argument)
    return lambda members: aggregate(
        each.function, [value(member) for member in members], distinct=each.distinct, separator=each.separator
    )


def _rows(members: Sequence[Solution], distinct: bool) -> int:
    """COUNT(*), or COUNT(DISTINCT *): the solutions, or the different ones."""
    return len({frozenset(member.items()) for member in members}) if distinct else len(members)
