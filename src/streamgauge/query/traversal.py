"""Traversals of the algebra: the parts of a pattern or expression, and copies with parts replaced."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, Final, TypeAlias, TypeVar, cast, get_args

from streamgauge.model import algebra as al
from streamgauge.model.terms import Term

OnPattern: TypeAlias = Callable[[al.Pattern], al.Pattern]
OnExpression: TypeAlias = Callable[[al.Expression], al.Expression]
Tree = TypeVar("Tree")

KEYWORDS: Final[Mapping[type[al.Pattern], str]] = {
    al.Filter: "FILTER",
    al.LeftJoin: "OPTIONAL",
    al.Union: "UNION",
    al.Minus: "MINUS",
    al.Extend: "BIND",
    al.Values: "VALUES",
    al.Graph: "GRAPH",
    al.Group: "GROUP BY and aggregates",
    al.Distinct: "DISTINCT",
}
"""The SPARQL keywords of operators."""


_BELOW: Final = {
    kind: tuple(field.name for field in fields(kind) if field.name in ("left", "right", "pattern"))
    for kind in get_args(al.Pattern)
}


def below(pattern: al.Pattern) -> tuple[str, ...]:
    """The fields of a pattern that are its sub-patterns."""
    return _BELOW[type(pattern)]


def is_subquery(pattern: al.Pattern) -> bool:
    """Whether a group that is this pattern is written as a SELECT."""
    return isinstance(pattern, al.Group | al.Project | al.Distinct | al.Reduced | al.Slice | al.OrderBy)


def answer_order(form: al.QueryForm) -> al.OrderBy | None:
    """The ORDER BY of a SELECT's answer; a subquery's orders no answer (SPARQL 1.1, 18.2.5: ToMultiset)."""
    pattern = form.pattern
    while isinstance(pattern, al.Slice | al.Distinct | al.Reduced):
        pattern = pattern.pattern
    # Only the outer projection: a second one is a subquery's.
    inner = pattern.pattern if isinstance(pattern, al.Project) else pattern
    return inner if isinstance(inner, al.OrderBy) and isinstance(form, al.Select) else None


def keyword(pattern: al.Pattern) -> str:
    """The words of an operator for sentences to users, who know OPTIONAL and not LeftJoin."""
    others = {al.Reduced: "REDUCED", al.OrderBy: "ORDER BY", al.Slice: "LIMIT and OFFSET", al.Project: "subquery"}
    return KEYWORDS.get(type(pattern)) or others.get(type(pattern), "nested group")


def with_pattern(form: al.QueryForm, pattern: al.Pattern) -> al.QueryForm:
    """The query form over another pattern; the same object if it is the same pattern."""
    return form if pattern is form.pattern else replace(form, pattern=pattern)


def parts(pattern: al.Pattern, on_pattern: OnPattern, on_expression: OnExpression) -> al.Pattern:
    """The pattern with its direct sub-patterns and own expressions replaced; patterns in EXISTS are not entered."""
    own: dict[str, Any] = {}
    match pattern:
        case al.LeftJoin(condition=condition) | al.Filter(condition=condition) if condition is not None:
            own["condition"] = on_expression(condition)
        case al.Extend(expression=value):
            own["expression"] = on_expression(value)
        case al.OrderBy(keys=keys):
            own["keys"] = tuple((on_expression(key), down) for key, down in keys)
        case al.Group(keys=keys, aggregates=aggregates):
            own["keys"] = tuple((var, on_expression(key)) for var, key in keys)
            own["aggregates"] = tuple((var, _aggregate(value, on_expression)) for var, value in aggregates)
    inner = {name: on_pattern(getattr(pattern, name)) for name in below(pattern)}
    changed: al.Pattern = replace(cast(Any, pattern), **own, **inner) if inner else pattern
    return changed


def _aggregate(aggregate: al.Aggregate, on_expression: OnExpression) -> al.Aggregate:
    if aggregate.argument is None:
        return aggregate
    return replace(aggregate, argument=on_expression(aggregate.argument))


def expression_parts(tree: al.Expression, on_pattern: OnPattern, on_expression: OnExpression) -> al.Expression:
    """The expression with its direct arguments, or the pattern of its EXISTS, replaced."""
    match tree:
        case al.Call(operator=operator, arguments=arguments):
            return al.Call(operator, tuple(map(on_expression, arguments)))
        case al.Exists(pattern=pattern):
            return al.Exists(on_pattern(pattern))
        case _:
            return tree


def exists_parts(tree: al.Expression, on_pattern: OnPattern) -> al.Expression:
    """The expression with the patterns of its EXISTS replaced, at any depth."""
    return expression_parts(tree, on_pattern, lambda inner: exists_parts(inner, on_pattern))


def patterns_replaced(pattern: al.Pattern, on_pattern: OnPattern) -> al.Pattern:
    """The pattern with its direct sub-patterns and those of EXISTS in its expressions replaced."""
    return parts(pattern, on_pattern, lambda tree: exists_parts(tree, on_pattern))


def with_parts(tree: Tree, changed: Callable[[Any], Any]) -> Tree:
    """A pattern or expression in which ``changed`` replaces parts of any kind, bottom up."""

    def new(part: Any) -> Any:
        if isinstance(part, tuple):
            part = tuple(map(new, part))
        elif is_dataclass(part) and not isinstance(part, type):
            part = replace(part, **{field.name: new(getattr(part, field.name)) for field in fields(part)})
        return changed(part)

    result: Tree = new(tree)
    return result


def with_names(tree: Tree, names: Mapping[al.Var, al.Node]) -> Tree:
    """A pattern or expression with its variables replaced by other variables or terms, everywhere."""
    return with_parts(tree, lambda part: names.get(part, part) if isinstance(part, al.Var) else part)


def with_value(tree: Tree, call: al.Call, value: al.Node) -> Tree:
    """A pattern or expression with a call replaced by a term or a variable, everywhere."""

    def is_call(part: Any) -> bool:
        return isinstance(part, al.Call) and part.arguments == call.arguments and part.operator.upper() == call.operator

    return with_parts(tree, lambda part: value if is_call(part) else part)


def expressions(pattern: al.Pattern) -> tuple[al.Expression, ...]:
    """The expressions of the operator itself, not of its sub-patterns."""
    match pattern:
        case al.LeftJoin(condition=condition):
            return () if condition is None else (condition,)
        case al.Filter(condition=condition):
            return (condition,)
        case al.Extend(expression=value):
            return (value,)
        case al.OrderBy(keys=keys):
            return tuple(key for key, _ in keys)
        case al.Group(keys=keys, aggregates=aggregates):
            arguments = (aggregate.argument for _, aggregate in aggregates)
            return (*(key for _, key in keys), *(argument for argument in arguments if argument is not None))
        case _:
            return ()


def children(pattern: al.Pattern) -> tuple[al.Pattern, ...]:
    """The direct sub-patterns, left before right."""
    return tuple([getattr(pattern, name) for name in below(pattern)])


def every_pattern(pattern: al.Pattern) -> Iterator[al.Pattern]:
    """The pattern and all patterns below it, including those in EXISTS, top down."""
    yield pattern
    for inner in (*exists_patterns(pattern), *children(pattern)):
        yield from every_pattern(inner)


def every_part(pattern: al.Pattern) -> Iterator[al.Expression]:
    """All parts of the operator's own expressions, top down; patterns in EXISTS are not entered."""
    return (part for tree in expressions(pattern) for part in every_expression(tree))


def exists_patterns(pattern: al.Pattern) -> Iterator[al.Pattern]:
    """The patterns of EXISTS in the operator's own expressions."""
    return (part.pattern for part in every_part(pattern) if isinstance(part, al.Exists))


def every_expression(tree: al.Expression) -> Iterator[al.Expression]:
    """The expression and all of its arguments, top down; patterns in EXISTS are not entered."""
    yield tree
    if isinstance(tree, al.Call):
        for argument in tree.arguments:
            yield from every_expression(argument)


def constant_predicates(form: al.QueryForm) -> tuple[Term, ...]:
    """The constant predicates of triple patterns in the order of the text, without those in paths."""
    groups = (pattern.patterns for pattern in every_pattern(form.pattern) if isinstance(pattern, al.BGP))
    predicates = (triple.predicate for patterns in groups for triple in patterns)
    return tuple(dict.fromkeys(predicate for predicate in predicates if isinstance(predicate, str)))


def variable_names(form: al.QueryForm) -> frozenset[str]:
    """The names of all variables that occur anywhere in a query form."""
    variables = written_variables(form.pattern)
    if isinstance(form, al.Construct):
        variables.update(var for triple in form.template for var in al.triple_variables(triple))
    return frozenset(var.name for var in variables)


def written_variables(pattern: al.Pattern) -> set[al.Var]:
    """All variables that occur anywhere in a pattern, in scope or not."""
    variables: set[al.Var] = set()
    for inner in every_pattern(pattern):
        variables.update(al.pattern_variables(inner))
        variables.update(part for part in every_part(inner) if isinstance(part, al.Var))
    return variables


def assigned(pattern: al.Pattern) -> Iterator[al.Var]:
    """The visible variables that a pattern computes: BIND, SELECT expressions, keys of groups, aggregates."""
    yield from assigned_here(pattern)
    for child in children(pattern):
        # A variable that a subquery computes and does not project is another variable than one of that name outside.
        visible = frozenset(pattern.variables) if isinstance(pattern, al.Project) else None
        yield from (var for var in assigned(child) if visible is None or var in visible)


def assigned_here(pattern: al.Pattern) -> Iterator[al.Var]:
    """The variables that this operator computes."""
    match pattern:
        case al.Extend(variable=variable):
            yield variable
        case al.Group(keys=keys, aggregates=aggregates):
            # GROUP BY ?x computes nothing; GROUP BY (STR(?x) AS ?y) computes ?y.
            yield from (var for var, expression in keys if var != expression)
            yield from (var for var, _ in aggregates)


def assigned_in_exists(pattern: al.Pattern, around: frozenset[al.Var] = frozenset()) -> Iterator[str]:
    """The names of outer variables that an EXISTS computes, whose meaning SPARQL does not define (18.6)."""
    below = children(pattern)
    outer = around.union(*map(al.pattern_variables, below))
    for inner in exists_patterns(pattern):
        yield from (var.name for var in assigned(inner) if var in outer)
        yield from assigned_in_exists(inner, outer)
    for child in below:
        yield from assigned_in_exists(child, around)


def bound(pattern: al.Pattern) -> frozenset[str]:
    """The names of the variables that every solution of a pattern binds."""
    match pattern:
        case al.BGP():
            return frozenset(var.name for triple in pattern.patterns for var in al.triple_variables(triple))
        case al.Join(left=left, right=right):
            return bound(left) | bound(right)
        case al.Union(left=left, right=right):
            # A solution comes from one of the two sides, so only what both bind is bound in all.
            return bound(left) & bound(right)
        case al.Values(variables=variables, rows=rows):
            # UNDEF in one row is enough to leave a variable unbound in that solution.
            return frozenset(var.name for at, var in enumerate(variables) if all(row[at] is not None for row in rows))
        case al.Group(pattern=inner, keys=keys):
            return bound(inner) & frozenset(var.name for var, key in keys if var == key)
        case al.Project(pattern=inner, variables=variables):
            return bound(inner) & frozenset(var.name for var in variables)
        case al.LeftJoin(left=inner) | al.Minus(left=inner):
            return bound(inner)
        case al.Graph(name=al.Var() as name, pattern=inner):
            # GRAPH ?g binds ?g to the graph's name, whatever the pattern inside does.
            return bound(inner) | {name.name}
        case _:
            return bound(pattern.pattern)


def repeats(path: al.Node | al.Path) -> bool:
    """Whether a property path has ``*``, ``+`` or ``?`` anywhere in it."""
    match path:
        case al.Repeat():
            return True
        case al.Inverse(path=inner):
            return repeats(inner)
        case al.Sequence(steps=some) | al.Alternative(choices=some):
            return any(map(repeats, some))
        case _:
            return False


def nullable(path: al.Node | al.Path) -> bool:
    """Whether a property path has length zero too."""
    match path:
        case al.Repeat(path=inner, modifier=modifier):
            return modifier in "*?" or nullable(inner)
        case al.Sequence(steps=steps):
            return all(map(nullable, steps))
        case al.Alternative(choices=choices):
            return any(map(nullable, choices))
        case al.Inverse(path=inner):
            return nullable(inner)
        case _:
            return False


def needs_triple(pattern: al.Pattern) -> bool:
    """Whether every solution needs a triple of the active graph."""
    match pattern:
        case al.BGP(patterns=patterns):
            # ``?x :p* ?y`` has solutions of length zero, for which no triple is needed.
            return any(not nullable(triple.predicate) for triple in patterns)
        case al.Join(left=left, right=right):
            return needs_triple(left) or needs_triple(right)
        case al.Union(left=left, right=right):
            return needs_triple(left) and needs_triple(right)
        case al.LeftJoin(left=inner) | al.Minus(left=inner):
            return needs_triple(inner)
        case al.Group(pattern=inner, keys=keys):
            # Without keys there is one group even for no solutions.
            return bool(keys) and needs_triple(inner)
        # A pattern in GRAPH needs triples of another graph.
        case al.Values() | al.Graph():
            return False
        case _:
            return needs_triple(pattern.pattern)


def conjuncts(condition: al.Expression) -> tuple[al.Expression, ...]:
    """The conjuncts of a FILTER: ``a && b`` filters like ``a`` and ``b`` one after the other."""
    if isinstance(condition, al.Call) and condition.operator == "&&":
        return tuple(part for argument in condition.arguments for part in conjuncts(argument))
    return (condition,)


def below_filters(pattern: al.Pattern) -> tuple[al.Pattern, list[al.Expression]]:
    """The pattern below the FILTERs at its top, and their conjuncts."""
    conditions = list[al.Expression]()
    while isinstance(pattern, al.Filter):
        conditions += conjuncts(pattern.condition)
        pattern = pattern.pattern
    return pattern, conditions


def conjunction(conditions: Sequence[al.Expression]) -> al.Expression | None:
    """The condition that holds where all do; ``None`` without conditions."""
    if len(conditions) < 2:
        return conditions[0] if conditions else None
    return al.Call("&&", tuple(conditions))


def reads_patterns(expression: al.Expression) -> bool:
    """Whether the expression contains an EXISTS."""
    return any(isinstance(part, al.Exists) for part in every_expression(expression))
