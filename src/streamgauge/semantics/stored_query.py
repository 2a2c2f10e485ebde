"""One query asked again and again over facts that come and go in a store of pyoxigraph's.

The store keeps values, facts are terms: ``StoredQuery.forms`` says what to put back in the store's answer, or that the
algebra is to be evaluated over the facts themselves (see ``pyoxigraph_gaps``).
"""

import re
from collections.abc import Collection, Iterable, Iterator, Set
from dataclasses import replace
from functools import partial, reduce
from itertools import count
from typing import Final

import pyoxigraph as ox

from streamgauge.model import algebra as al
from streamgauge.model.terms import Row, Term
from streamgauge.query.printer import sparql
from streamgauge.query.traversal import (
    children,
    expression_parts,
    parts,
    variable_names,
    with_names,
    with_pattern,
    written_variables,
)
from streamgauge.semantics.pyoxigraph_gaps import shape_gap, volatile
from streamgauge.semantics.stored_terms import ContentGaps, Forms

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
    for variable, each in group.aggregates:
        counted = each
        if each.function == "COUNT" and each.argument is not None and not isinstance(each.argument, al.Var):
            value = next(fresh)
            pattern, counted = al.Extend(pattern, value, each.argument), replace(each, argument=value)
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
            return reduce(al.Union, [_chosen(al.TriplePattern(subject, each, end), fresh) for each in choices])
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


_PLAIN_PATTERN: Final = re.compile(r'"\^?(?:[A-Za-z0-9 @_-]*|\([A-Za-z0-9 @_|-]*\)[A-Za-z0-9 @_-]*)\$?"')
"""Regular expressions that mean the same in XPath (F&O 3.1, 5.6.1) and in pyoxigraph: letters, and one choice."""


def store_gap(form: al.QueryForm, graphs: Collection[Term] = ()) -> str | None:
    """``shape_gap`` over these graphs; REGEX with a plain pattern is no gap, it is as exact as CONTAINS."""
    return shape_gap(with_pattern(form, _with_plain_tests(form.pattern)), graphs, occurrences=False)


def _with_plain_tests(pattern: al.Pattern) -> al.Pattern:
    return parts(pattern, _with_plain_tests, _plain_test)


def _plain_test(tree: al.Expression) -> al.Expression:
    match tree:
        case al.Call(operator="REGEX", arguments=(_, str(pattern))) if _PLAIN_PATTERN.fullmatch(pattern):
            return al.Call("CONTAINS", tree.arguments)
        case _:
            return expression_parts(tree, _with_plain_tests, _plain_test)


class StoredQuery:
    """A SELECT or ASK to be answered over stored facts: its text for pyoxigraph, and where pyoxigraph is not asked."""

    def __init__(self, form: al.Select | al.Ask, graphs: Collection[Term] = ()) -> None:
        """``graphs`` are the names of the named graphs."""
        self.form, self.text = form, sparql(restated(form))
        self._volatile = volatile(form) is not None
        self._gap = None if self._volatile else store_gap(form, graphs)
        self._contents = ContentGaps(form)

    def forms(self, literals: Set[Term]) -> Forms | None:
        """The literals to put back over facts with these literals; ``None``: evaluate the algebra instead."""
        if self._volatile:
            return {}
        return None if self._gap is not None else self._contents.forms(literals)

    def rows(self, solutions: Iterable[ox.QuerySolution], forms: Forms) -> Iterator[Row]:
        """Solutions of pyoxigraph's, with the literals that the facts have."""
        plain = self._contents.plain_columns
        width = range(len(plain))
        if not forms:
            for solution in solutions:
                cells = [solution[at] for at in width]
                yield tuple([None if cell is None else str(cell) for cell in cells])
            return
        for solution in solutions:
            yield tuple([_text(solution[at], forms if plain[at] else {}) for at in width])


def _text(term: object, forms: Forms) -> str | None:
    return None if term is None else forms.get(text := str(term), text)
