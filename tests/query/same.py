"""Whether two conjunctive queries say the same, up to hidden names, order and how triples are grouped."""

from collections.abc import Iterator
from dataclasses import dataclass

from streamgauge.model import algebra as al

Renaming = dict[al.Var, al.Var]


@dataclass(frozen=True)
class Conjunctive:
    """A SELECT taken apart: columns, aggregates, triple patterns, conditions."""

    columns: tuple[str, ...]
    computed: tuple[tuple[str, al.Aggregate], ...]
    patterns: tuple[al.TriplePattern, ...]
    conditions: tuple[al.Expression, ...]


def same(one: al.QueryForm, two: al.QueryForm) -> bool:
    """Whether there is a renaming of the hidden variables that makes the two equal."""
    left, right = _taken_apart(one), _taken_apart(two)
    fixed = {al.Var(name): al.Var(name) for name in left.columns}
    if (left.columns, len(left.patterns)) != (right.columns, len(right.patterns)):
        return False
    return any(
        [(name, _aggregate(value, names)) for name, value in left.computed] == list(right.computed)
        and {_renamed(item, names) for item in left.conditions} == set(right.conditions)
        for names in _matches(left.patterns, right.patterns, fixed)
    )


def _taken_apart(form: al.QueryForm) -> Conjunctive:
    assert isinstance(form, al.Select)
    assert isinstance(form.pattern, al.Project)
    pattern, named, aggregates = form.pattern.pattern, {}, {}
    while isinstance(pattern, al.Extend):
        named[pattern.expression] = pattern.variable.name
        pattern = pattern.pattern
    if isinstance(pattern, al.Group):
        assert pattern.keys == ()
        aggregates, pattern = dict(pattern.aggregates), pattern.pattern
    computed = tuple((named[var], value) for var, value in aggregates.items())
    patterns, conditions = _flat(pattern)
    return Conjunctive(form.variables, computed, patterns, conditions)


def _flat(pattern: al.Pattern) -> tuple[tuple[al.TriplePattern, ...], tuple[al.Expression, ...]]:
    match pattern:
        case al.BGP(patterns=patterns):
            return patterns, ()
        case al.Join(left=left, right=right):
            (one, first), (two, second) = _flat(left), _flat(right)
            return one + two, first + second
        case al.Filter(condition=condition, pattern=inner):
            patterns, conditions = _flat(inner)
            return patterns, conditions + _conjuncts(condition)
        case _:
            raise AssertionError(f"not conjunctive: {pattern}")


def _conjuncts(tree: al.Expression) -> tuple[al.Expression, ...]:
    match tree:
        case al.Call(operator="&&", arguments=(left, right)):
            return _conjuncts(left) + _conjuncts(right)
        case _:
            return (tree,)


def _matches(
    one: tuple[al.TriplePattern, ...], two: tuple[al.TriplePattern, ...], names: Renaming
) -> Iterator[Renaming]:
    if not one:
        yield names
        return
    for index, other in enumerate(two):
        extended = _unified(one[0], other, names)
        if extended is not None:
            yield from _matches(one[1:], two[:index] + two[index + 1 :], extended)


def _unified(one: al.TriplePattern, two: al.TriplePattern, names: Renaming) -> Renaming | None:
    names = dict(names)
    for left, right in ((one.subject, two.subject), (one.predicate, two.predicate), (one.object, two.object)):
        if isinstance(left, al.Var) and isinstance(right, al.Var):
            if names.setdefault(left, right) != right or list(names.values()).count(right) > 1:
                return None
        elif left != right:
            return None
    return names


def _renamed(tree: al.Expression, names: Renaming) -> al.Expression:
    match tree:
        case al.Var():
            return names.get(tree, tree)
        case al.Call(operator=operator, arguments=arguments):
            return al.Call(operator, tuple(_renamed(item, names) for item in arguments))
        case _:
            return tree


def _aggregate(value: al.Aggregate, names: Renaming) -> al.Aggregate:
    argument = None if value.argument is None else _renamed(value.argument, names)
    return al.Aggregate(value.function, argument, value.distinct, value.separator)
