"""A first, coarse look at comparisons of computed numbers: which contents may hold a comparison that goes either way.

The query is restated in SPARQL itself, so that any evaluator can look at all reports at once: every comparison of
computed numbers is once loosened and once tightened by more than ``intervals.py`` would allow. Contents on which both
agree are certain; the others are decided by ``latitude.py``. The error is measured by the operands, not by the result:
each computed number has a *reach*, the sum of the sizes of all that was added up for it.

    SUM(?v) > 0.5       near when |SUM(?v) - 0.5| <= k (SUM(|?v|) (1 + 0.006 COUNT(?v)) + 0.5), k = 1e-4

A computed number whose reach cannot be stated (a division by a computed number, a cast) is always near.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import count
from typing import Final

from streamgauge.model import algebra as a
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.terms import XSD, Row, Term, is_blank, is_literal
from streamgauge.oracle.judging.choices import supported
from streamgauge.oracle.judging.compare import computed_variables
from streamgauge.oracle.judging.intervals import read
from streamgauge.oracle.judging.latitude import (
    BINARY,
    COMPARISONS,
    UNARY,
    PolarityReading,
    computes,
    extension,
    restated,
)
from streamgauge.oracle.judging.magnitudes import Magnitudes
from streamgauge.query.printer import sparql
from streamgauge.query.stamps import uses_timestamp
from streamgauge.query.traversal import (
    every_expression,
    every_pattern,
    expressions,
    parts,
    variable_names,
    with_pattern,
)
from streamgauge.semantics.arrivals import Contents

_BITS: Final = 50
"""Bits of the largest result: rounding errors of 2^30 numbers added up keep it below 2^59, which has 18 digits."""

_READINGS: Final = frozenset(
    extension(f"{reading}{negated}")
    for reading in (PolarityReading.LOOSE, PolarityReading.TIGHT)
    for negated in ("", "-not")
)
_TESTS: Final = frozenset({"&&", "||", "!", "IN", "BOUND", "SAMETERM", "ISIRI", "ISBLANK", "ISLITERAL", "DATATYPE"})
_CALLS: Final = _READINGS | COMPARISONS | _TESTS | {extension("same"), extension("plain")}
_RING: Final = frozenset(f'"{name}"' for name in ("+", "-", "*", "ABS"))
_AGGREGATES: Final = frozenset({"COUNT", "MIN", "MAX", extension("SUM"), extension("AVG")})
_LIMIT: Final = 200_000


class DecidableContents:
    """The contents of one query about which interval arithmetic leaves nothing open; literals are looked at once.

    Nothing is open where a query only adds, subtracts, multiplies, counts and averages, compares the results in
    conditions only, and no result needs more than ``_BITS`` bits: no division by what may be 0, no overflow, no integer
    of more than 18 digits. An answer that differs from the expected one there is wrong without any evaluation by
    intervals; and rows on which the coarse readings agree are certain, so intervals are computed for the others only.

        FILTER(?v - ?w > 60.0)      one bit more than its operands: decidable over numbers below 2^49
        HAVING(SUM(?v) > 1)         30 bits more: decidable over numbers below 2^20
        FILTER(?v / ?w > 60.0)      never
    """

    def __init__(self, query: ContinuousQuery) -> None:
        self._static, self._magnitudes = query.static, Magnitudes(query.form)
        self._small: set[Term] = set()
        self._never = not _is_closed(query) or not all(map(self._is_small, self._magnitudes.constants))

    def include(self, contents: Contents) -> bool:
        """Whether nothing about a content is open."""
        if self._never:
            return False
        triples = (triple for inside in contents for arrival in inside for triple in arrival.triples)
        found = {term for _, _, term in (*self._static, *triples) if is_literal(term)} - self._small
        return all(map(self._is_small, found))

    def _is_small(self, term: Term) -> bool:
        """Whether a literal is no number, or one that keeps every result within its bounds."""
        number = read(term)
        if number is not None:
            if number.special is not None or not supported(number.kind, term):
                return False
            if self._magnitudes.bits(int(number.size).bit_length()) > _BITS:
                return False
        if len(self._small) < _LIMIT:
            self._small.add(term)
        return True


def _is_closed(query: ContinuousQuery) -> bool:
    """Whether a query has only what is open over large numbers at most."""
    if not isinstance(query.form, a.Select) or uses_timestamp(query.form):
        return False
    return all(map(_is_plain, every_pattern(restated(query, PolarityReading.LOOSE).form.pattern)))


def _is_plain(pattern: a.Pattern) -> bool:
    if isinstance(pattern, a.Slice):
        return False
    if isinstance(pattern, a.Group) and any(each.function not in _AGGREGATES for _, each in pattern.aggregates):
        return False
    parts = (part for tree in expressions(pattern) for part in every_expression(tree))
    return all(_is_harmless(part) for part in parts if isinstance(part, a.Call))


def _is_harmless(call: a.Call) -> bool:
    if call.operator == extension("number"):
        return call.arguments[0] in _RING
    return call.operator.upper() in _CALLS or call.operator in _CALLS


class Narrowed:
    """A query asked for the rows of some keys: the terms of those of its columns that are computed from nothing."""

    def __init__(self, query: ContinuousQuery) -> None:
        self._query = query
        self._columns = self._found(query.form)

    @property
    def possible(self) -> bool:
        """Whether the query can be asked so."""
        return bool(self._columns)

    def _found(self, form: a.QueryForm) -> tuple[int, ...]:
        if not isinstance(form, a.Select):
            return ()
        places = range(len(form.variables))
        return tuple(place for place in places if _narrowed(form.pattern, self._inline(form, (place,), ())))

    def key(self, row: Row) -> Row:
        """The terms of a row by which it is asked for."""
        return tuple(row[place] for place in self._columns)

    def to(self, keys: Collection[Row]) -> ContinuousQuery | None:
        """The query whose rows are those of these keys; ``None`` where blank nodes cannot be named."""
        form = self._query.form
        if not isinstance(form, a.Select) or any(term is None or is_blank(term) for key in keys for term in key):
            return None
        pattern = _narrowed(form.pattern, self._inline(form, self._columns, keys))
        if pattern is None:
            return None
        asked = replace(form, pattern=pattern)
        return replace(self._query, form=asked, sparql=sparql(asked))

    def _inline(self, form: a.Select, columns: Collection[int], keys: Collection[Row]) -> a.Values:
        return a.Values(tuple(a.Var(form.variables[place]) for place in columns), tuple(keys))


def _narrowed(pattern: a.Pattern, inline: a.Values) -> a.Pattern | None:
    """A pattern joined with inline data where its variables are bound; ``None`` where that would change more.

    Only triple patterns bind them, so a variable that is computed has no data.
    """
    match pattern:
        case a.BGP() if set(inline.variables) <= set(a.pattern_variables(pattern)):
            return a.Join(inline, pattern)
        case a.Project(variables=variables) if not set(inline.variables) <= set(variables):
            return None
        case a.Group(keys=keys) if not {(variable, variable) for variable in inline.variables} <= set(keys):
            return None
        case a.Project() | a.Extend() | a.Group() | a.Filter() | a.Distinct() | a.Reduced() | a.OrderBy():
            below = _narrowed(pattern.pattern, inline)
            return None if below is None else replace(pattern, pattern=below)
        case _:
            return None


_TRUE: Final = f'"true"^^<{XSD}boolean>'
_FALSE: Final = f'"false"^^<{XSD}boolean>'
_ONE: Final = f'"1"^^<{XSD}double>'
_ZERO: Final = f'"0"^^<{XSD}integer>'
_PER_ROUNDING: Final = f'"0.006"^^<{XSD}double>'
"""One rounding by the tolerance of its datatype: 2^-24 / 1e-5, more than 2^-53 / 1e-9."""

_FLOATING: Final = "0.0001"
"""Ten times the tolerance of xsd:float, for xsd:double too: an xsd:double may be computed from xsd:floats."""
_DECIMAL: Final = "0.00000001"
_LEAST: Final = f'"1e-15"^^<{XSD}double>'
"""More than the last digit that implementations keep of an xsd:decimal, however small the number."""

Reach = a.Expression | None
"""How large the numbers were that a number was computed from, as an expression; ``None`` where nothing bounds it."""


def bounded(form: a.QueryForm) -> tuple[a.QueryForm, a.QueryForm] | None:
    """The query with its bounds on computed numbers loosened, and tightened; ``None`` when it has no such bound."""
    restating = _Restating(form)
    loose = with_pattern(form, restating.pattern(form.pattern, True).pattern)
    if not restating.moved:
        return None
    return loose, with_pattern(form, _Restating(form).pattern(form.pattern, False).pattern)


@dataclass(frozen=True, slots=True)
class _Restated:
    """A pattern with the reaches of its computed variables."""

    pattern: a.Pattern
    reaches: Mapping[a.Var, Reach] = field(default_factory=dict)


class _Restating:
    """One query's bounds moved one way."""

    def __init__(self, form: a.QueryForm) -> None:
        taken = variable_names(form)
        self._fresh: Iterator[a.Var] = (a.Var(name) for n in count() if (name := f"reach{n}") not in taken)
        self._outermost = _projection(form.pattern)
        self.moved = False
        self._compares = _has_comparison(form.pattern)

    def pattern(self, pattern: a.Pattern, loose: bool) -> _Restated:
        match pattern:
            case a.Minus(left=left, right=right):
                first = self.pattern(left, loose)
                return _Restated(a.Minus(first.pattern, self.pattern(right, not loose).pattern), first.reaches)
            case a.Join(left=left, right=right) | a.Union(left=left, right=right):
                first, second = self.pattern(left, loose), self.pattern(right, loose)
                both = {
                    **first.reaches,
                    **second.reaches,
                    **dict.fromkeys(first.reaches.keys() & second.reaches.keys()),
                }
                return _Restated(replace(pattern, left=first.pattern, right=second.pattern), both)
            case a.LeftJoin(left=left, right=right, condition=condition):
                first, second = self.pattern(left, loose), self.pattern(right, loose)
                both = {**first.reaches, **second.reaches}
                wanted = None if condition is None else self._condition(condition, both, loose)
                return _Restated(a.LeftJoin(first.pattern, second.pattern, wanted), both)
            case a.Filter(condition=condition, pattern=inner):
                below = self.pattern(inner, loose)
                reaches = {**dict.fromkeys(computed_variables(inner)), **below.reaches}
                return _Restated(a.Filter(self._condition(condition, reaches, loose), below.pattern), below.reaches)
            case a.Extend(pattern=inner, variable=variable, expression=value):
                below = self.pattern(inner, loose)
                reaches = {**dict.fromkeys(computed_variables(inner)), **below.reaches}
                own = {variable: _reach(value, reaches)} if computes(value, frozenset(reaches)) else {}
                return _Restated(a.Extend(below.pattern, variable, value), {**reaches, **own})
            case a.Group():
                return self._grouped(pattern, loose)
            case a.Project():
                return self._projected(pattern, loose)
            case a.BGP() | a.Values():
                return _Restated(pattern)
            case a.Distinct(pattern=inner):
                below = self.pattern(inner, loose)
                return _Restated(a.Distinct(_without(below.pattern, inner)), dict.fromkeys(below.reaches))
            case _:
                found: list[_Restated] = []

                def inside(inner: a.Pattern) -> a.Pattern:
                    found.append(self.pattern(inner, loose))
                    return found[-1].pattern

                changed = parts(pattern, inside, lambda tree: tree)
                return _Restated(changed, found[0].reaches)

    def _projected(self, node: a.Project, loose: bool) -> _Restated:
        """A subquery with the reaches of its computed variables as variables of its own."""
        below = self.pattern(node.pattern, loose)
        if node is self._outermost:
            return _Restated(a.Project(below.pattern, node.variables))
        inner, names, reaches = below.pattern, list(node.variables), dict[a.Var, Reach]()
        for variable in node.variables:
            reach = below.reaches.get(variable)
            if variable in below.reaches and reach is not None:
                name = next(self._fresh)
                inner, reaches[variable] = a.Extend(inner, name, reach), name
                names.append(name)
            elif variable in below.reaches:
                reaches[variable] = None
        return _Restated(a.Project(inner, tuple(names)), reaches)

    def _grouped(self, group: a.Group, loose: bool) -> _Restated:
        below = self.pattern(group.pattern, loose)
        inside = {**dict.fromkeys(computed_variables(group.pattern)), **below.reaches}
        added: list[tuple[a.Var, a.Aggregate]] = []
        reaches: dict[a.Var, Reach] = dict.fromkeys(var for var, key in group.keys if computes(key, frozenset(inside)))
        for variable, each in group.aggregates if self._compares else ():
            reaches[variable] = self._aggregate(variable, each, inside, added)
        return _Restated(a.Group(below.pattern, group.keys, (*group.aggregates, *added)), reaches)

    def _aggregate(
        self, variable: a.Var, each: a.Aggregate, inside: Mapping[a.Var, Reach], added: list[tuple[a.Var, a.Aggregate]]
    ) -> Reach:
        if each.function in ("SAMPLE", "GROUP_CONCAT"):
            return None
        if each.argument is None or each.function not in ("SUM", "AVG", "MIN", "MAX"):
            return _size(variable)
        reach = _reach(each.argument, inside)
        if reach is None:
            return None
        function = "MAX" if each.function == "MIN" else each.function
        size, times = next(self._fresh), next(self._fresh)
        added += [(size, a.Aggregate(function, reach)), (times, a.Aggregate("COUNT", each.argument))]
        roundings = a.Call("+", (_ONE, a.Call("*", (_PER_ROUNDING, times))))
        return a.Call("*", (size, roundings))

    def _moved(
        self, operator: str, left: a.Expression, right: a.Expression, reaches: Mapping[a.Var, Reach], loose: bool
    ) -> a.Expression:
        self.moved = True
        comparison = a.Call(operator, (left, right))
        near = _near(left, right, _both("+", _reach(left, reaches), _reach(right, reaches)))
        if loose:
            return a.Call("||", (comparison, near))
        return a.Call("&&", (comparison, a.Call("!", (near,))))

    def _condition(self, tree: a.Expression, reaches: Mapping[a.Var, Reach], loose: bool) -> a.Expression:
        bound = frozenset(reaches)
        match tree:
            case a.Call(operator="&&" | "||" as operator, arguments=arguments):
                return a.Call(operator, tuple(self._condition(each, reaches, loose) for each in arguments))
            case a.Call(operator="!", arguments=(inner,)):
                return a.Call("!", (self._condition(inner, reaches, not loose),))
            case a.Call(operator="IN", arguments=(left, *others)) if others and computes(tree, bound):
                equal = [self._moved("=", left, other, reaches, loose) for other in others]
                return reduce(lambda one, other: a.Call("||", (one, other)), equal)
            case a.Call(operator=operator, arguments=(left, right)) if operator in COMPARISONS and computes(
                tree, bound
            ):
                return self._moved(operator, left, right, reaches, loose)
            case a.Call(operator=operator) if operator in BINARY or operator in UNARY:
                return self._moved("!=", tree, _ZERO, reaches, loose)
            case a.Exists(pattern=pattern):
                return a.Exists(self.pattern(pattern, loose).pattern)
            case _ if computes(tree, bound) and not _only_read(tree):
                self.moved = True
                return a.Call("||", (tree, _TRUE)) if loose else a.Call("&&", (tree, _FALSE))
            case _:
                return tree


def _only_read(tree: a.Expression) -> bool:
    """Whether a condition does not depend on a computed number's value."""
    return isinstance(tree, a.Call) and tree.operator in ("BOUND", "DATATYPE", "ISNUMERIC")


def _projection(pattern: a.Pattern) -> a.Pattern | None:
    """The outermost projection of a query."""
    while isinstance(pattern, a.Distinct | a.Reduced | a.Slice | a.OrderBy):
        pattern = pattern.pattern
    return pattern if isinstance(pattern, a.Project) else None


def _has_comparison(pattern: a.Pattern) -> bool:
    return any(
        isinstance(each, a.Filter) or (isinstance(each, a.LeftJoin) and each.condition is not None)
        for each in every_pattern(pattern)
    )


def _without(pattern: a.Pattern, before: a.Pattern) -> a.Pattern:
    """A projection under DISTINCT without the variables that were added."""
    if isinstance(pattern, a.Project) and isinstance(before, a.Project):
        return a.Project(pattern.pattern, before.variables)
    return pattern


def _reach(tree: a.Expression, reaches: Mapping[a.Var, Reach]) -> Reach:
    match tree:
        case a.Var():
            return reaches[tree] if tree in reaches else _size(tree)
        case a.Call(operator="+" | "-" | "*" as operator, arguments=(left, right)):
            return _both("*" if operator == "*" else "+", _reach(left, reaches), _reach(right, reaches))
        case a.Call(operator="/", arguments=(left, right)) if not computes(right, frozenset(reaches)):
            return _both("/", _reach(left, reaches), _size(right))
        case a.Call(operator="+" | "-" | "ABS", arguments=(operand,)):
            return _reach(operand, reaches)
        case a.Call(operator=operator, arguments=(operand,)) if operator in UNARY:
            return None if computes(operand, frozenset(reaches)) else _size(operand)
        case a.Call() | a.Exists():
            return None if computes(tree, frozenset(reaches)) else _size(tree)
        case _:
            return _size(tree)


def _size(tree: a.Expression) -> a.Expression:
    return a.Call("ABS", (tree,))


def _both(operator: str, left: Reach, right: Reach) -> Reach:
    return None if left is None or right is None else a.Call(operator, (left, right))


def _near(left: a.Expression, right: a.Expression, reach: Reach) -> a.Expression:
    """Whether a comparison may go either way: more often than it does."""
    if reach is None:
        return _TRUE
    apart = a.Call("ABS", (a.Call("-", (left, right)),))
    far = a.Call(">", (apart, a.Call("+", (a.Call("*", (_tolerance(left, right), reach)), _LEAST))))
    near = a.Call("&&", (_inexact(left, right), a.Call("!", (far,))))
    return a.Call("COALESCE", (near, _FALSE))


def _tolerance(left: a.Expression, right: a.Expression) -> a.Expression:
    loose, tight = (f'"{each}"^^<{XSD}double>' for each in (_FLOATING, _DECIMAL))
    floating = a.Call("||", (_typed(left, right, "float"), _typed(left, right, "double")))
    return a.Call("IF", (floating, loose, tight))


def _inexact(left: a.Expression, right: a.Expression) -> a.Expression:
    """Whether one side is of a datatype whose operations round."""
    kinds = [_typed(left, right, name) for name in ("float", "double", "decimal")]
    return reduce(lambda one, other: a.Call("||", (one, other)), kinds)


def _typed(left: a.Expression, right: a.Expression, name: str) -> a.Expression:
    one, other = (a.Call("=", (a.Call("DATATYPE", (side,)), f"<{XSD}{name}>")) for side in (left, right))
    return a.Call("||", (one, other))
