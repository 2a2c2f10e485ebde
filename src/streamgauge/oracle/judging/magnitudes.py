"""How large the numbers that a query computes can be, from the size of its operands."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial, reduce
from operator import or_
from typing import Final

from streamgauge.model import algebra as al
from streamgauge.model.terms import Term, is_literal
from streamgauge.query.traversal import every_expression, every_pattern, expressions

_ROWS_BITS: Final = 30
"""SUM is taken to be over at most 2^30 solutions."""


@dataclass(frozen=True, slots=True)
class NumberSize:
    """A bound of what a query computes, linear in its operands: ``factor`` times their bits, and ``more`` bits.

    ``?x * ?x + 1`` over operands of b bits has at most 2 b + 1 of them.
    """

    factor: int = 1
    more: int = 0

    def __or__(self, other: "NumberSize") -> "NumberSize":
        return NumberSize(max(self.factor, other.factor), max(self.more, other.more))


class Magnitudes:
    """The literals of a query form, and the bits of the largest number that it computes."""

    def __init__(self, form: al.QueryForm) -> None:
        patterns = list(every_pattern(form.pattern))
        trees = [tree for pattern in patterns for tree in expressions(pattern)]
        self.constants: frozenset[Term] = frozenset(_constants(form, patterns, trees))
        self._sizes = frozenset(_sizes(patterns, trees))

    def bits(self, operand: int) -> int:
        """The bits of the largest result of any datatype, over operands of so many bits."""
        return max(size.factor * operand + size.more for size in self._sizes)


def _constants(form: al.QueryForm, patterns: list[al.Pattern], trees: list[al.Expression]) -> Iterator[Term]:
    parts = (part for tree in trees for part in every_expression(tree))
    triples = [triple for pattern in patterns if isinstance(pattern, al.BGP) for triple in pattern.patterns]
    if isinstance(form, al.Construct):
        triples += form.template
    cells = (cell for each in patterns if isinstance(each, al.Values) for row in each.rows for cell in row if cell)
    for node in (*parts, *(triple.object for triple in triples), *cells):
        if isinstance(node, str) and is_literal(node):
            yield node


def _assigns(pattern: al.Pattern) -> Iterator[tuple[al.Var, al.Expression | al.Aggregate]]:
    match pattern:
        case al.Extend(variable=variable, expression=value):
            yield variable, value
        case al.Group(keys=keys, aggregates=aggregates):
            yield from ((variable, key) for variable, key in keys if variable != key)
            yield from aggregates


def _binds(pattern: al.Pattern) -> tuple[al.Var, ...]:
    match pattern:
        case al.BGP() | al.Values():
            return al.pattern_variables(pattern)
        case al.Graph(name=al.Var() as name):
            return (name,)
        case _:
            return ()


def _sizes(patterns: list[al.Pattern], trees: list[al.Expression]) -> Iterator[NumberSize]:
    """Bounds of every number that the query computes."""
    assignments = [pair for pattern in patterns for pair in _assigns(pattern)]
    known = {variable: NumberSize(0) for variable, _ in assignments}
    known |= {variable: NumberSize() for pattern in patterns for variable in _binds(pattern)}
    for _ in range(len(assignments) + 1):
        for variable, value in assignments:
            known[variable] |= _size(value, known)
    yield NumberSize()
    yield from (_size(tree, known) for tree in trees)
    yield from (_size(value, known) for _, value in assignments)


def _size(value: al.Expression | al.Aggregate, known: Mapping[al.Var, NumberSize]) -> NumberSize:
    size = partial(_size, known=known)
    match value:
        case al.Aggregate(argument=None) | al.Aggregate(function="COUNT"):
            return NumberSize(0, _ROWS_BITS)
        case al.Aggregate(function="SUM" | "AVG", argument=argument) if argument is not None:
            inner = size(argument)
            return NumberSize(inner.factor, inner.more + _ROWS_BITS)
        case al.Aggregate(argument=argument) if argument is not None:
            return size(argument)
        case al.Var():
            return known.get(value, NumberSize())
        case al.Call(operator="*", arguments=(left, right)):
            one, two = size(left), size(right)
            return NumberSize(one.factor + two.factor, one.more + two.more)
        case al.Call(operator="+" | "-", arguments=arguments):
            widest = reduce(or_, map(size, arguments), NumberSize(0))
            return NumberSize(widest.factor, widest.more + 1)
        case al.Call(arguments=arguments):
            return reduce(or_, map(size, arguments), NumberSize())
        case _:
            return NumberSize()
