"""Queries restated for pyoxigraph, where their text means something else there than in SPARQL 1.1."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial, reduce
from itertools import count

from streamgauge.model import algebra as al
from streamgauge.query.traversal import (
    children,
    expression_parts,
    parts,
    variable_names,
    with_names,
    with_pattern,
    written_variables,
)

Scope = frozenset[al.Var]


def restated(form: al.QueryForm) -> al.QueryForm:
    """The form for pyoxigraph, restated where its text means something else there than in SPARQL 1.1.

    Alternative paths are unions (18.4; it gives each pair of ends once), COUNT leaves out errors (18.5.1.2; its result
    is an error), REDUCED changes nothing. A key that is a variable with an alias, which it refuses, is COALESCE of it.
    Variables of EXISTS that its solutions do not have get names of their own (18.6: only a solution's variables are
    substituted; it takes those that are bound outside of the group too). ``<`` and ``<=`` of two variables are an error
    where these are no literals (17.3; it finds a resource equal to itself).
    """
    taken = variable_names(form)
    fresh = (al.Var(name) for number in count() if (name := f"restated{number}") not in taken)
    return with_pattern(form, _pattern(form.pattern, fresh, frozenset()))


def _pattern(pattern: al.Pattern, fresh: Iterator[al.Var], outer: Scope) -> al.Pattern:
    """``outer`` are the variables of the solutions for which the pattern stands in EXISTS."""
    below = partial(_pattern, fresh=fresh, outer=outer)
    match pattern:
        case al.BGP():
            return _block(pattern, fresh)
        case al.Reduced(pattern=inner):
            return below(inner)
        case _:
            scope = outer.union(*map(al.pattern_variables, children(pattern)))
            result = parts(pattern, below, partial(_expression, fresh=fresh, scope=scope))
            return _grouping(result, fresh) if isinstance(result, al.Group) else result


def _grouping(group: al.Group, fresh: Iterator[al.Var]) -> al.Group:
    """The grouping whose COUNTs are of variables: an expression that is an error leaves its variable unbound."""
    pattern, aggregates = group.pattern, []
    for variable, item in group.aggregates:
        counted = item
        if item.function == "COUNT" and item.argument is not None and not isinstance(item.argument, al.Var):
            value = next(fresh)
            pattern, counted = al.Extend(pattern, value, item.argument), replace(item, argument=value)
        aggregates.append((variable, counted))
    return al.Group(pattern, tuple(map(_named, group.keys)), tuple(aggregates))


def _named(key: tuple[al.Var, al.Expression]) -> tuple[al.Var, al.Expression]:
    """A key with its name: COALESCE of the variable where that is another one."""
    variable, value = key
    return key if variable == value or not isinstance(value, al.Var) else (variable, al.Call("COALESCE", (value,)))


def _expression(tree: al.Expression, fresh: Iterator[al.Var], scope: Scope) -> al.Expression:
    """``scope`` are the variables of the solutions for which the expression is evaluated."""
    inside = partial(_exists, fresh=fresh, scope=scope)
    result = expression_parts(tree, inside, partial(_expression, fresh=fresh, scope=scope))
    match result:
        case al.Call(operator="<" | ">" | "<=" | ">=", arguments=(al.Var() as left, al.Var())):
            return al.Call("IF", (al.Call("isLITERAL", (left,)), result, next(fresh)))
        case _:
            return result


def _exists(pattern: al.Pattern, fresh: Iterator[al.Var], scope: Scope) -> al.Pattern:
    own = sorted(written_variables(pattern) - scope, key=lambda var: var.name)
    names = {var: next(fresh) for var in own}
    return _pattern(with_names(pattern, names), fresh, scope)


def _block(block: al.BGP, fresh: Iterator[al.Var]) -> al.Pattern:
    if not any(_chooses(triple.predicate) for triple in block.patterns):
        return block
    patterns = without_blank_nodes(block.patterns, fresh)
    plain = tuple(triple for triple in patterns if not _chooses(triple.predicate))
    chosen = [_chosen(triple, fresh) for triple in patterns if _chooses(triple.predicate)]
    return reduce(al.Join, (al.BGP(plain), *chosen) if plain else chosen)


def without_blank_nodes(
    patterns: tuple[al.TriplePattern, ...], fresh: Iterator[al.Var]
) -> tuple[al.TriplePattern, ...]:
    """A block's blank nodes as variables: a label may not stand in two groups."""
    blank = {var for triple in patterns for var in al.triple_variables(triple) if var.name.startswith("_:")}
    names: dict[al.Node, al.Node] = {var: next(fresh) for var in sorted(blank, key=lambda var: var.name)}
    return tuple(
        replace(
            triple, subject=names.get(triple.subject, triple.subject), object=names.get(triple.object, triple.object)
        )
        for triple in patterns
    )


def _chooses(path: al.Node | al.Path) -> bool:
    """Whether the path is, or goes through, a choice that counts: an alternative, or a negated set both ways."""
    match path:
        case al.Alternative():
            return True
        case al.NegatedSet(forward=forward, backward=backward):
            return bool(forward) and bool(backward)
        case al.Inverse(path=inner):
            return _chooses(inner)
        case al.Sequence(steps=steps):
            return any(map(_chooses, steps))
        case _:
            return False


def _chosen(triple: al.TriplePattern, fresh: Iterator[al.Var]) -> al.Pattern:
    """The triple pattern taken apart as far as its choices go; blank nodes in it are variables of the block."""
    subject, path, end = triple.subject, triple.predicate, triple.object
    match path:
        case al.Alternative(choices=choices):
            return reduce(al.Union, [_chosen(al.TriplePattern(subject, choice, end), fresh) for choice in choices])
        case al.NegatedSet(forward=forward, backward=backward) if _chooses(path):
            ways = (al.NegatedSet(forward), al.NegatedSet((), backward))
            return al.Union(*(al.BGP((al.TriplePattern(subject, way, end),)) for way in ways))
        case al.Inverse(path=inner):
            return _chosen(al.TriplePattern(end, inner, subject), fresh)
        case al.Sequence(steps=steps):
            nodes = (subject, *(next(fresh) for _ in steps[1:]), end)
            hops = zip(nodes, steps, nodes[1:], strict=False)
            return reduce(al.Join, [_chosen(al.TriplePattern(*hop), fresh) for hop in hops])
        case _:
            return al.BGP((triple,))
