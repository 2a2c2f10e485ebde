"""substitute(pattern, solution) of EXISTS (18.6): a solution's terms in the place of its variables.

A variable that a subquery does not project is another one than that of the same name outside (18.2.1). A pattern that
assigns one of the solution's variables (BIND, AS) is not defined.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from streamgauge.model import algebra as al
from tests.sparql.simple.choices import OpenError
from tests.sparql.simple.values import same

Solution = Mapping[str, str]


def substituted(pattern: al.Pattern, solution: Solution) -> al.Pattern:
    """The pattern with the solution's terms in it."""

    def inside(item: al.Pattern) -> al.Pattern:
        return substituted(item, solution)

    match pattern:
        case al.BGP(patterns=patterns):
            return al.BGP(tuple(_triple(pattern, solution) for pattern in patterns))
        case al.Join() | al.Union() | al.Minus():
            return replace(pattern, left=inside(pattern.left), right=inside(pattern.right))
        case al.LeftJoin(left=left, right=right, condition=condition):
            new = None if condition is None else expression(condition, solution)
            return al.LeftJoin(inside(left), inside(right), new)
        case al.Filter(condition=condition, pattern=inner):
            return al.Filter(expression(condition, solution), inside(inner))
        case al.Extend(pattern=inner, variable=var, expression=tree):
            _refuse(var, solution)
            return al.Extend(inside(inner), var, expression(tree, solution))
        case al.Values():
            return _values(pattern, solution)
        case al.Graph(name=name, pattern=inner):
            return al.Graph(_node(name, solution), inside(inner))
        case al.Group():
            return _group(pattern, solution)
        case al.Project(pattern=inner, variables=variables):
            seen = {var.name: solution[var.name] for var in variables if var.name in solution}
            return al.Project(substituted(inner, seen), tuple(var for var in variables if var.name not in solution))
        case al.OrderBy(pattern=inner, keys=keys):
            return al.OrderBy(inside(inner), tuple((expression(key, solution), down) for key, down in keys))
        case al.Distinct() | al.Reduced() | al.Slice():
            return replace(pattern, pattern=inside(pattern.pattern))


def expression(tree: al.Expression, solution: Solution) -> al.Expression:
    """The expression with the solution's terms in it."""
    match tree:
        case al.Var():
            return solution.get(tree.name, tree)
        case al.Call(operator=operator, arguments=arguments):
            return al.Call(operator, tuple(expression(argument, solution) for argument in arguments))
        case al.Exists(pattern=pattern):
            return al.Exists(substituted(pattern, solution))
        case _:
            return tree


def _refuse(var: al.Var, solution: Solution) -> None:
    if var.name in solution:
        raise OpenError(f"EXISTS that assigns ?{var.name}, a variable of the solution outside")


def _node(node: al.Node, solution: Solution) -> al.Node:
    return solution.get(node.name, node) if isinstance(node, al.Var) else node


def _triple(triple: al.TriplePattern, solution: Solution) -> al.TriplePattern:
    path = triple.predicate
    if isinstance(path, al.Var):
        path = _node(path, solution)
    return al.TriplePattern(_node(triple.subject, solution), path, _node(triple.object, solution))


def _values(data: al.Values, solution: Solution) -> al.Values:
    """The rows that agree with the solution, without its columns."""
    names = [var.name for var in data.variables]
    kept = [at for at, name in enumerate(names) if name not in solution]
    rows = [row for row in data.rows if _agrees(names, row, solution)]
    return al.Values(tuple(data.variables[at] for at in kept), tuple(tuple(row[at] for at in kept) for row in rows))


def _agrees(names: Sequence[str], row: Sequence[str | None], solution: Solution) -> bool:
    pairs = zip(names, row, strict=True)
    return all(cell is None or name not in solution or same(cell, solution[name]) for name, cell in pairs)


def _group(group: al.Group, solution: Solution) -> al.Group:
    keys = []
    for var, tree in group.keys:
        if tree != var:
            _refuse(var, solution)
        if var.name not in solution:
            keys.append((var, expression(tree, solution)))
    if group.keys and not keys:
        keys.append((al.Var(".constant"), '"1"'))
    aggregates = tuple((var, _aggregate(item, solution)) for var, item in group.aggregates)
    return al.Group(substituted(group.pattern, solution), tuple(keys), aggregates)


def _aggregate(aggregate: al.Aggregate, solution: Solution) -> al.Aggregate:
    if aggregate.argument is None:
        return aggregate
    return replace(aggregate, argument=expression(aggregate.argument, solution))
