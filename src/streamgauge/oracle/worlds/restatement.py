"""Rewriting a query to the extension functions of ``operations``, and which of its variables are computed."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial, reduce
from typing import Final

from streamgauge.model import algebra as a
from streamgauge.model.terms import Term, is_iri
from streamgauge.oracle.worlds.intervals import UNARY
from streamgauge.oracle.worlds.operations import BINARY, CASTS, extension
from streamgauge.query.traversal import every_part, every_pattern, parts
from streamgauge.sparql.functions import COMPARISONS

_KIND_ONLY: Final = frozenset({"DATATYPE", "ISNUMERIC", "ISLITERAL", "ISIRI", "ISBLANK"})
_ANY_TERM: Final = frozenset({"SAMPLE", "GROUP_CONCAT", "MIN", "MAX"})
_LOGICAL: Final = frozenset({"&&", "||", "!", "IN", "BOUND", "SAMETERM", *_KIND_ONLY, *COMPARISONS})


def loose_columns(form: a.QueryForm) -> frozenset[int]:
    """The columns of aggregates that may return any of several terms: they say little about which report is meant."""
    if not isinstance(form, a.Select):
        return frozenset()
    aggregates = {
        variable
        for pattern in every_pattern(form.pattern)
        if isinstance(pattern, a.Group)
        for variable, aggregate in pattern.aggregates
        if aggregate.function in _ANY_TERM
    }
    names = {
        pattern.variable.name
        for pattern in every_pattern(form.pattern)
        if isinstance(pattern, a.Extend) and pattern.expression in aggregates
    }
    return frozenset(place for place, name in enumerate(form.variables) if name in names)


def computed_columns(form: a.QueryForm) -> frozenset[int]:
    """The columns that an aggregate or an expression binds; only these are compared by value."""
    if not isinstance(form, a.Select):
        return frozenset()
    bound = computed_variables(form.pattern)
    return frozenset(i for i, name in enumerate(form.variables) if a.Var(name) in bound)


def computed_variables(pattern: a.Pattern) -> frozenset[a.Var]:
    """The variables of a pattern that are bound by an aggregate or an expression."""
    match pattern:
        case a.Extend(pattern=inner, variable=variable, expression=expression):
            below = computed_variables(inner)
            plain = isinstance(expression, str) or (isinstance(expression, a.Var) and expression not in below)
            return below if plain else below | {variable}
        case a.Group(pattern=inner, keys=keys, aggregates=aggregates):
            below = computed_variables(inner)
            by = {variable for variable, key in keys if isinstance(key, a.Call) or key in below}
            return frozenset(by | {variable for variable, _ in aggregates})
        case a.BGP() | a.Values():
            return frozenset()
        case a.Join() | a.LeftJoin() | a.Union() | a.Minus():
            return computed_variables(pattern.left) | computed_variables(pattern.right)
        case _:
            return computed_variables(pattern.pattern)


def computes(tree: a.Expression, bound: frozenset[a.Var]) -> bool:
    """Whether an expression computes a number, or reads one of the ``bound`` (computed) variables."""
    match tree:
        case a.Var():
            return tree in bound
        case a.Call(operator=operator, arguments=arguments):
            own = operator in BINARY or operator in UNARY or operator in CASTS
            return own or any(computes(argument, bound) for argument in arguments)
    return False


def restated(pattern: a.Pattern) -> a.Pattern:
    """The pattern with arithmetic, comparisons and aggregates replaced by their open versions."""
    return _Restating(Counter(_joined_variables(pattern))).pattern(pattern)


def _joined_variables(pattern: a.Pattern) -> Iterable[a.Var]:
    """The variables of all triple patterns and VALUES, with which a computed number is joined as a term."""
    for part in every_pattern(pattern):
        if isinstance(part, a.BGP | a.Values):
            yield from a.pattern_variables(part)


class _Restating:
    def __init__(self, joined: Counter[a.Var]) -> None:
        self._joined = joined

    def _branch(self, pattern: a.Pattern, other: a.Pattern) -> a.Pattern:
        """A branch of a UNION, whose rows are not joined with those of the other branch."""
        return _Restating(self._joined - Counter(_joined_variables(other))).pattern(pattern)

    def pattern(self, pattern: a.Pattern) -> a.Pattern:
        match pattern:
            case a.Filter(condition=condition, pattern=inner):
                return a.Filter(self.condition(condition, computed_variables(inner)), self.pattern(inner))
            case a.LeftJoin(left=left, right=right, condition=condition):
                bound = computed_variables(left) | computed_variables(right)
                wanted = None if condition is None else self.condition(condition, bound)
                return a.LeftJoin(self.pattern(left), self.pattern(right), wanted)
            case a.Union(left=left, right=right):
                return a.Union(self._branch(left, right), self._branch(right, left))
            case a.Group():
                return self._grouped(pattern)
            case a.OrderBy(pattern=inner, keys=keys):
                bound = computed_variables(inner)
                return a.OrderBy(self.pattern(inner), tuple((self.value(key, bound), down) for key, down in keys))
            case a.Extend(pattern=inner, variable=variable, expression=tree):
                bound = computed_variables(inner)
                # A variable that triples bind too is joined by its lexical form.
                value = self.as_term(tree, bound) if variable in self._joined else self.bare(tree, bound)
                return a.Extend(self.pattern(inner), variable, value)
            case _:
                return parts(pattern, self.pattern, lambda tree: tree)

    def _grouped(self, group: a.Group) -> a.Group:
        bound = computed_variables(group.pattern)
        keys = tuple((variable, self.bare(key, bound)) for variable, key in group.keys)
        sets = tuple((variable, self._aggregate(aggregate, bound)) for variable, aggregate in group.aggregates)
        return a.Group(self.pattern(group.pattern), keys, sets)

    def _aggregate(self, aggregate: a.Aggregate, bound: frozenset[a.Var]) -> a.Aggregate:
        if aggregate.argument is None:
            return aggregate
        if aggregate.function == "COUNT":
            return replace(aggregate, argument=self.present(aggregate.argument, bound))
        # These two show terms; the others compute with values, whatever their form.
        read_as = self.as_term if aggregate.function in ("SAMPLE", "GROUP_CONCAT") else self.value
        return replace(aggregate, function=extension(aggregate.function), argument=read_as(aggregate.argument, bound))

    def as_term(self, tree: a.Expression, bound: frozenset[a.Var]) -> a.Expression:
        """An expression whose lexical form matters, such as an argument of STR: a computed number needs a text."""
        value = self.value(tree, bound)
        return a.Call(extension("text"), (value,)) if computes(tree, bound) else value

    def bare(self, tree: a.Expression, bound: frozenset[a.Var]) -> a.Expression:
        """An expression whose value is only passed on: a variable and the case of a language tag stay open."""
        match tree:
            case a.Var():
                return tree
            case a.Call(operator=operator, arguments=(tagged,)) if operator.upper() == "LANG":
                return a.Call(extension("lang"), (self.value(tagged, bound),))
            case a.Call(operator=operator, arguments=(test, *others)) if operator.upper() == "IF":
                return a.Call("IF", (self.condition(test, bound), *(self.bare(other, bound) for other in others)))
            case _:
                return self.value(tree, bound)

    def present(self, tree: a.Expression, bound: frozenset[a.Var]) -> a.Expression:
        """An expression of which only matters whether it is an error."""
        value = self.bare(tree, bound)
        return a.Call(extension("present"), (value,)) if computes(tree, bound) else value

    def value(self, tree: a.Expression, bound: frozenset[a.Var]) -> a.Expression:
        """An expression whose value is read: open terms are decided, open numbers are not."""
        match tree:
            case a.Var():
                return a.Call(extension("term"), (tree,)) if tree in bound else tree
            case a.Exists(pattern=pattern):
                return a.Exists(self.pattern(pattern))
            case a.Call():
                return self._called(tree, bound)
            case _:
                return tree

    def condition(self, tree: a.Expression, bound: frozenset[a.Var]) -> a.Expression:
        """An expression whose effective boolean value is taken."""
        value = self.value(tree, bound)
        plain = isinstance(tree, a.Exists) or (isinstance(tree, a.Call) and tree.operator.upper() in _LOGICAL)
        return value if plain else a.Call(extension("truth"), (value,))

    def _called(self, tree: a.Call, bound: frozenset[a.Var]) -> a.Expression:
        operator, arguments = tree.operator, tree.arguments
        name = operator if operator[0] == "<" and len(operator) > 2 else operator.upper()
        values = partial(map, partial(self.value, bound=bound))
        if name == "BOUND":
            return a.Call(name, tuple(self.present(argument, bound) for argument in arguments))
        if name in ("&&", "||", "!"):
            return a.Call(name, tuple(self.condition(argument, bound) for argument in arguments))
        if name == "IF" and len(arguments) == 3:
            return a.Call(name, (self.condition(arguments[0], bound), *values(arguments[1:])))
        if name == "IN" and len(arguments) > 1:
            # IN is a disjunction of = (SPARQL 17.4.1.9), each of which may be a decision.
            equal: list[a.Expression] = [a.Call("=", (arguments[0], other)) for other in arguments[1:]]
            return self.value(reduce(lambda one, other: a.Call("||", (one, other)), equal), bound)
        if (name in BINARY and len(arguments) == 2) or (name in (UNARY | CASTS.keys()) and len(arguments) == 1):
            return a.Call(extension("number"), (f'"{name}"', *values(arguments)))
        if name in COMPARISONS and len(arguments) == 2:
            return a.Call(extension("compare"), (f'"{name}"', *values(arguments)))
        if name == "LANG":
            return a.Call(extension("term"), (self.bare(tree, bound),))
        if name in _KIND_ONLY:
            return a.Call(name, tuple(self._kind_only(argument, bound) for argument in arguments))
        if name in ("COALESCE", "IN"):
            return a.Call(name, tuple(values(arguments)))
        return a.Call(operator, tuple(self.as_term(argument, bound) for argument in arguments))

    def _kind_only(self, tree: a.Expression, bound: frozenset[a.Var]) -> a.Expression:
        return (
            a.Call(extension("kind"), (self.bare(tree, bound),)) if computes(tree, bound) else self.value(tree, bound)
        )


def is_compared_by_term(form: a.QueryForm) -> bool:
    """Whether rows are compared by terms alone: the query computes no number, and neither samples nor slices."""
    for pattern in every_pattern(form.pattern):
        if isinstance(pattern, a.Slice | a.Reduced):
            return False
        if isinstance(pattern, a.Group) and any(aggregate.function != "COUNT" for _, aggregate in pattern.aggregates):
            return False
        if any(computes(part, frozenset()) for part in every_part(pattern)):
            return False
    return True


def compares(form: a.QueryForm) -> tuple[bool, bool]:
    """Whether literals may be compared by ``=``, ``!=`` or ``IN``, and whether by any comparison."""
    calls = [
        part for pattern in every_pattern(form.pattern) for part in every_part(pattern) if isinstance(part, a.Call)
    ]
    compared = [call for call in calls if call.operator.upper() in {"IN", *COMPARISONS}]
    equality = any(
        call.operator.upper() in ("=", "!=", "IN")
        and not any(isinstance(part, str) and is_iri(part) for part in call.arguments)
        for call in compared
    )
    return equality, bool(compared)


def constants(form: a.QueryForm) -> Iterator[Term]:
    """The constant terms in the expressions and VALUES of a query."""
    for pattern in every_pattern(form.pattern):
        yield from (part for part in every_part(pattern) if isinstance(part, str))
        if isinstance(pattern, a.Values):
            yield from (term for row in pattern.rows for term in row if term is not None)
