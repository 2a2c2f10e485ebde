"""Conditions that compare values of both sides of a join, such as ``?v - ?w > 90``.

Such a condition is a ``Band`` if, for each value of one side, the values of the other side that satisfy it form an
interval. Matching rows are then found by binary search instead of testing all (``ordered_rows``). Only the direction is
derived from the text of the condition; the end of the interval is found by evaluating the condition itself.

A worked example: ``?v - ?w > 90`` with ?v on the left. For ?w = 3 it fails at 93 and holds for 94 and all greater
?v. For a fixed ``?v`` it holds for small ?w and fails from some ?w on. ``ABS(?v - ?w) < 5`` bounds an interval on both
sides: it is ``?v - ?w < 5`` and ``?v - ?w > -5``.

Rounding is monotonic, so this also holds for floats, but only for values of one kind: compared with the integer
2**53 + 1, the double 2**53 is equal and the integer 2**53 is less. Values are therefore searched kind by kind
(``place``). Values so large that a sum or product may become infinite or an error are tested one by one.
"""

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final, TypeAlias

from streamgauge.incremental.conditions import size_of, variables_of
from streamgauge.incremental.crossovers import REMEMBERED_VALUES
from streamgauge.model.algebra import Call, Expression, Var
from streamgauge.model.terms import Term, is_literal
from streamgauge.query.traversal import every_expression, reads_patterns, with_names
from streamgauge.sparql.comparison import value_key
from streamgauge.sparql.moments import Moment
from streamgauge.sparql.values import BOOLEAN, DECIMAL, DOUBLE, STRING, read

LEFT: Final = Var(".left")
RIGHT: Final = Var(".right")
"""Stand for the values of the two sides in the conditions of a band."""

MOST_PARTS: Final = 16
"""Maximum operators and terms of a condition."""
# Two factors below _FACTOR on a value below _GREATEST stay below 1e37, and a sum of MOST_PARTS of them below 3.4e38,
# the greatest xsd:float. Beyond it a product is INF, and INF - INF is NaN: no longer monotonic.
MOST_PRODUCTS: Final = 2
_FACTOR: Final = 10**9
_GREATEST: Final = 10**19
"""Bound of sorted values; within MOST_PARTS and MOST_PRODUCTS an xsd:float stays finite."""
_PLACES: Final = 60
"""Maximum decimal places of sorted values."""

_RISING: Final = {"<": -1, "<=": -1, ">": 1, ">=": 1}
_MIRRORED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(frozen=True, slots=True)
class BandLimit:
    """A condition over LEFT and RIGHT that bounds an interval; ``left``, ``right``: 1 if greater values pass, or -1."""

    condition: Expression
    left: int
    right: int


@dataclass(frozen=True, slots=True)
class Band:
    """Conditions between one variable of each side: their conjunction over LEFT and RIGHT, and its limits.

    ``direct`` if the values themselves are compared, so that strings, booleans and dates are sorted too.
    """

    left: str
    right: str
    condition: Expression
    limits: tuple[BandLimit, ...]
    direct: bool


Kind: TypeAlias = tuple[int, bool]
"""The kind of values that are sorted together, and whether they are dates or times without a zone."""


@lru_cache(REMEMBERED_VALUES)
def place(term: Term, direct: bool) -> tuple[Kind, Any] | None:
    """The kind and sort key of a term's value; ``None`` if it has to be tested individually."""
    value = read(term)
    kind, content = value.kind, value.value
    if kind <= DOUBLE:
        # Integers and decimals are compared exactly, so they sort together; each kind of float has an order of its
        # own.
        return ((max(kind, DECIMAL), False), content) if _moderate(content) else None
    if not direct:
        return None
    # Tagged strings have no order in SPARQL's operator table (17.3); they are tested.
    if kind in (BOOLEAN, STRING):
        return (kind, False), content
    if isinstance(content, Moment):
        # A time without a zone is ordered beside one with a zone only if they are over 14 hours apart (XML Schema 1.0,
        # 3.2.7.4). So each has an order of its own.
        _, family, instant, unzoned = value_key(value)
        return (family, unzoned), instant
    return None


def _moderate(number: int | Decimal | float) -> bool:
    if not -_GREATEST < number < _GREATEST:
        return False
    return not isinstance(number, Decimal) or int(number.as_tuple().exponent) >= -_PLACES


@dataclass(frozen=True, slots=True)
class _Comparison:
    """A comparison of two variables, rewritten to LEFT and RIGHT."""

    names: tuple[str, str]
    condition: Expression
    limits: tuple[BandLimit, ...]


def band(
    conditions: Iterable[Expression], lefts: Collection[str], rights: Collection[str]
) -> tuple[Band | None, list[Expression]]:
    """The band that some of the conditions form over the variables of two sides, and the remaining conditions."""
    comparisons, rest = list[_Comparison](), list[Expression]()
    for condition in conditions:
        compared = _comparison(condition, lefts, rights)
        if compared is None or (comparisons and compared.names != comparisons[0].names):
            rest.append(condition)
        else:
            comparisons.append(compared)
    if not comparisons:
        return None, rest
    limits = tuple(limit for comparison in comparisons for limit in comparison.limits)
    whole = (
        comparisons[0].condition
        if len(comparisons) == 1
        else Call("&&", tuple(comparison.condition for comparison in comparisons))
    )
    return Band(
        *comparisons[0].names, whole, limits, all(_is_direct(comparison.condition) for comparison in comparisons)
    ), rest


def _comparison(condition: Expression, lefts: Collection[str], rights: Collection[str]) -> _Comparison | None:
    if not isinstance(condition, Call) or condition.operator not in _RISING or reads_patterns(condition):
        return None
    names = variables_of(condition)
    if len(names) != 2 or size_of(condition) > MOST_PARTS:
        return None
    # Names of the condition may come in either order; the sides decide which of them is on the left.
    for left, right in (names, names[::-1]):
        if left in lefts and right in rights:
            whole = with_names(condition, {Var(left): LEFT, Var(right): RIGHT})
            limits = _limits(whole)
            return None if limits is None else _Comparison((left, right), whole, limits)
    return None


def _is_direct(condition: Expression) -> bool:
    return isinstance(condition, Call) and set(condition.arguments) == {LEFT, RIGHT}


def _limits(condition: Expression) -> tuple[BandLimit, ...] | None:
    """The limits of a comparison; ``None`` if a direction is unknown."""
    if not isinstance(condition, Call) or len(condition.arguments) != 2:
        return None
    # Counted over the whole condition and not along a path of it: the bound is coarse but cannot be exceeded by
    # nesting.
    calls = [call for call in every_expression(condition) if isinstance(call, Call)]
    if sum(call.operator == "*" for call in calls) > MOST_PRODUCTS:
        return None
    limits = []
    for operator, (one, other) in _unfolded(condition.operator, *condition.arguments):
        left, right = (_together(_rising(one, side), _against(_rising(other, side))) for side in (LEFT, RIGHT))
        # 0 as well as None: a condition that does not depend on one side is a filter, not a band.
        if not left or not right:
            return None
        sign = _RISING[operator]
        limits.append(BandLimit(Call(operator, (one, other)), sign * left, sign * right))
    return tuple(limits)


def _unfolded(operator: str, one: Expression, other: Expression) -> list[tuple[str, tuple[Expression, Expression]]]:
    """A comparison unchanged; an upper bound of an absolute value as two comparisons."""
    if _is_absolute(other) and not _is_absolute(one):
        # 5 > ABS(?v - ?w) is ABS(?v - ?w) < 5.
        operator, one, other = _MIRRORED[operator], other, one
    if isinstance(one, Call) and _is_absolute(one) and operator in ("<", "<="):
        inner = one.arguments[0]
        # Only a bound from above is an interval: what is beyond one from below are two, one on each side.
        return [(operator, (inner, other)), (_MIRRORED[operator], (inner, Call("-", (other,))))]
    return [(operator, (one, other))]


def _is_absolute(expression: Expression) -> bool:
    return isinstance(expression, Call) and expression.operator.upper() == "ABS" and len(expression.arguments) == 1


Rising: TypeAlias = int | None
"""How an expression changes with a value: 1 rises, -1 falls, 0 is constant, ``None`` is unknown."""


def _rising(expression: Expression, side: Var) -> Rising:
    match expression:
        case Var():
            return int(expression == side)
        case Call(operator="+", arguments=(one, other)):
            return _together(_rising(one, side), _rising(other, side))
        case Call(operator="-", arguments=(one, other)):
            return _together(_rising(one, side), _against(_rising(other, side)))
        case Call(operator="-", arguments=(inner,)):
            return _against(_rising(inner, side))
        case Call(operator="+", arguments=(inner,)):
            return _rising(inner, side)
        case Call(operator="*", arguments=(one, other)):
            # A product of two variables rises or falls by the sign of each, so only one with a constant has a
            # direction.
            factor, inner = (one, other) if isinstance(one, str) else (other, one)
            return _scaled(_rising(inner, side), factor)
        case str():
            return None if _number(expression) is None else 0
        case _:
            return None


def _together(one: Rising, other: Rising) -> Rising:
    """How the sum of two expressions changes."""
    # The sum of a rising and a falling expression can do either: ?v - ?v is 0, but its text has both signs.
    if one is None or other is None or one * other < 0:
        return None
    return one or other


def _against(rising: Rising) -> Rising:
    return None if rising is None else -rising


def _scaled(rising: Rising, factor: Expression) -> Rising:
    number = _number(factor) if isinstance(factor, str) else None
    # A factor of 0 has no direction, and INF * 0 is NaN.
    if rising is None or not number or not -_FACTOR < number < _FACTOR:
        return None
    return rising if number > 0 else -rising


def _number(term: Term) -> int | Decimal | float | None:
    """A number within bounds; ``None`` for any other term."""
    value = read(term) if is_literal(term) else None
    if value is None or value.kind > DOUBLE or not math.isfinite(value.value) or not _moderate(value.value):
        return None
    number: int | Decimal | float = value.value
    return number
