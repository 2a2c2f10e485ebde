"""Conditions that compare a value of one side of a join with a value of the other, such as ``?v - ?w > 90``.

Such a condition is a ``Band`` where the values of one side that pass beside one value of the other are an interval of
the values in their order: the rows that meet are then found by search, not by testing each (``ordered_rows``). Only the
direction is taken from the text of the condition; where the interval ends, the condition itself says.

A worked example: ``?v - ?w > 90`` with ?v on the left. For ?w = 3 it fails at 93 and holds at 94 and for all greater
?v. With ``?v`` fixed it holds for small ?w, and fails from some ?w on. ``ABS(?v - ?w) < 5`` ends an interval on both
sides: it is ``?v - ?w < 5`` and ``?v - ?w > -5``.

Rounding is monotonic, so this is so for floats too, but for values of one kind only: beside the integer 2**53 + 1 the
double 2**53 is equal, and the integer 2**53 is less. Values are therefore searched kind by kind (``place``). Left out
of the order are values so great that a sum or product of them may be infinite or an error; those are tested one by one.
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
"""The values of the two sides in the conditions of a band."""

MOST_PARTS: Final = 16
"""Operators and terms of a condition."""
MOST_PRODUCTS: Final = 2
_FACTOR: Final = 10**9
_GREATEST: Final = 10**19
"""Of a value in order; with as many parts and products xsd:float does not become infinite."""
_PLACES: Final = 60
"""Decimal places of a value in order."""

_RISING: Final = {"<": -1, "<=": -1, ">": 1, ">=": 1}
_MIRRORED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(frozen=True, slots=True)
class BandLimit:
    """A condition over LEFT and RIGHT that ends an interval; ``left`` and ``right``: 1 where greater values pass."""

    condition: Expression
    left: int
    right: int


@dataclass(frozen=True, slots=True)
class Band:
    """Conditions between a variable of each side: one condition over LEFT and RIGHT, and its limits.

    ``direct`` where the values themselves are compared, so that strings, booleans and dates have an order too.
    """

    left: str
    right: str
    condition: Expression
    limits: tuple[BandLimit, ...]
    direct: bool


Kind: TypeAlias = tuple[int, bool]
"""The kind of values in one order, and whether they are dates or times without a zone."""


@lru_cache(REMEMBERED_VALUES)
def place(term: Term, direct: bool) -> tuple[Kind, Any] | None:
    """The kind of a term's value and where it stands among those; ``None`` for one that is tested by itself."""
    value = read(term)
    kind, content = value.kind, value.value
    if kind <= DOUBLE:
        return ((max(kind, DECIMAL), False), content) if _moderate(content) else None
    if not direct:
        return None
    if kind in (BOOLEAN, STRING):
        return (kind, False), content
    if isinstance(content, Moment):
        _, family, instant, unzoned = value_key(value)
        return (family, unzoned), instant
    return None


def _moderate(number: int | Decimal | float) -> bool:
    if not -_GREATEST < number < _GREATEST:
        return False
    return not isinstance(number, Decimal) or int(number.as_tuple().exponent) >= -_PLACES


@dataclass(frozen=True, slots=True)
class _Comparison:
    """A comparison of two variables, with LEFT and RIGHT for them."""

    names: tuple[str, str]
    condition: Expression
    limits: tuple[BandLimit, ...]


def band(
    conditions: Iterable[Expression], lefts: Collection[str], rights: Collection[str]
) -> tuple[Band | None, list[Expression]]:
    """The band that conditions over the variables of two sides are, and the conditions that are none or of others."""
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
    """The limits of a comparison; ``None`` where a direction is not known."""
    if not isinstance(condition, Call) or len(condition.arguments) != 2:
        return None
    calls = [call for call in every_expression(condition) if isinstance(call, Call)]
    if sum(call.operator == "*" for call in calls) > MOST_PRODUCTS:
        return None
    limits = []
    for operator, (one, other) in _unfolded(condition.operator, *condition.arguments):
        left, right = (_together(_rising(one, side), _against(_rising(other, side))) for side in (LEFT, RIGHT))
        if not left or not right:
            return None
        sign = _RISING[operator]
        limits.append(BandLimit(Call(operator, (one, other)), sign * left, sign * right))
    return tuple(limits)


def _unfolded(operator: str, one: Expression, other: Expression) -> list[tuple[str, tuple[Expression, Expression]]]:
    """A comparison as itself, one of an absolute value with what is greater as two."""
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
"""How a number changes with a value: 1 rises, -1 falls, 0 stays, ``None`` is not known."""


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
    """How the sum of two numbers changes."""
    if one is None or other is None or one * other < 0:
        return None
    return one or other


def _against(rising: Rising) -> Rising:
    return None if rising is None else -rising


def _scaled(rising: Rising, factor: Expression) -> Rising:
    number = _number(factor) if isinstance(factor, str) else None
    if rising is None or not number or not -_FACTOR < number < _FACTOR:
        return None
    return rising if number > 0 else -rising


def _number(term: Term) -> int | Decimal | float | None:
    """A number in reach, ``None`` for any other term."""
    value = read(term) if is_literal(term) else None
    if value is None or value.kind > DOUBLE or not math.isfinite(value.value) or not _moderate(value.value):
        return None
    number: int | Decimal | float = value.value
    return number
