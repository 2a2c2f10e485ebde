"""Interval arithmetic over SPARQL's numbers: the values that conforming implementations may compute.

Integers and decimals are points; divisions, and decimals of more than 18 digits, are known to 18 digits. A literal
xsd:float or xsd:double is a point if its datatype represents its decimal value; otherwise it spans that value and the
rounded one, because an implementation may keep a wider type. An operation on points with a representable exact result
is a point; any other is widened by the datatype's tolerance, relative to its operands.

    50.0 + 50.0     [100, 100]                      50 and 50 are representable, and so is their sum
    0.1 + 0.2       [0.3 - 3e-10, 0.3 + 3e-10]      0.1 is not
    0.1 - 0.1       [0, 0]                          the same value in every reading
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from math import ceil, copysign, floor, inf, isfinite, isnan, nan
from operator import add, mul, sub, truediv
from typing import Final, TypeAlias

from streamgauge.model.terms import XSD, Term, datatype
from streamgauge.sparql.values import (
    BOOLEAN,
    DECIMAL,
    DOUBLE,
    DURATION,
    FLOAT,
    INTEGER,
    INTEGER_RANGES,
    MOMENTS,
    MONTHS,
    SECONDS,
    Value,
    single,
    written,
)
from streamgauge.sparql.values import read as value_of

TOLERANCE: Final = {FLOAT: Fraction(1, 10**5), DOUBLE: Fraction(1, 10**9), DECIMAL: Fraction(1, 10**17)}
"""Maximum distance of an inexact result from the exact one, relative to the operands, by datatype."""

UNIT: Final = {FLOAT: Fraction(1, 1 << 24), DOUBLE: Fraction(1, 1 << 53), DECIMAL: Fraction(1, 10**18)}
"""The relative error of one rounding."""

DIGITS: Final = 18
"""Decimal digits that every implementation has to support (XSD 1.0, 3.2.3)."""

_BITS: Final = {FLOAT: 24, DOUBLE: 53}
_NAMES: Final = ("integer", "decimal", "float", "double")
_KINDS: Final = {XSD + name: INTEGER for name in INTEGER_RANGES} | {XSD + name: i for i, name in enumerate(_NAMES)}
_LEXICAL: Final = frozenset((BOOLEAN, DURATION, MONTHS, SECONDS, *MOMENTS.values()))
"""Kinds of values other than numbers with several lexical forms."""
_SPECIAL: Final = {"INF": inf, "+INF": inf, "-INF": -inf, "NaN": nan}


ARITHMETIC: Final = "a computed number (F&O, 4.2; SPARQL 17.3)"


class OpenError(ArithmeticError):
    """The legal answers cannot be decided; the message says why."""


def inexact(sentence: str) -> OpenError:
    """The error for an inexact number whose exact value would matter; the message names the choice."""
    return OpenError(f"{sentence}; open is: {ARITHMETIC}")


@dataclass(frozen=True, slots=True)
class Interval:
    """The possible values of a number, from ``low`` to ``high``; ``value`` is the one of exact arithmetic.

    ``kind`` is the datatype. ``stored`` marks a literal of the data, which has the same value everywhere in an
    implementation. ``special`` is NaN or an infinity, and replaces the other fields.
    """

    kind: int
    low: Fraction
    high: Fraction
    value: Fraction
    stored: bool = False
    special: float | None = None

    @property
    def exact(self) -> bool:
        """Whether only one value is possible."""
        return self.low == self.high

    @property
    def size(self) -> Fraction:
        """The greatest possible absolute value."""
        return max(abs(self.low), abs(self.high))

    @property
    def number(self) -> Fraction | float:
        """The number: ``value``, or ``special`` for infinities and NaN."""
        return self.value if self.special is None else self.special


_NOTHING: Final = Fraction(0)
_POWER: Final = 1000
"""Exponents beyond this are 0 or infinity in every datatype; exact fractions of them would fill memory."""


def point(kind: int, value: Fraction | int) -> Interval:
    """The interval of one exact value."""
    exact = Fraction(value)
    return Interval(kind, exact, exact, exact)


def _special(kind: int, value: float) -> Interval:
    return Interval(kind, _NOTHING, _NOTHING, _NOTHING, special=value)


@lru_cache(maxsize=1 << 16)
def read(term: Term) -> Interval | None:
    """The interval of a literal; ``None`` for a term that is not a number."""
    kind = _KINDS.get(datatype(term) or "")
    # The derived integers have ranges: "300"^^xsd:byte is ill-typed.
    if kind is None or (kind == INTEGER and value_of(term).kind != INTEGER):
        return None
    text = term[1 : term.rindex('"')]
    # Fraction would read digits of other scripts, 1_000 and 1/3, which are not numbers of XML Schema.
    if not text.isascii() or "_" in text or "/" in text:
        return None
    if kind >= FLOAT and text in _SPECIAL:
        return _special(kind, _SPECIAL[text])
    return _literal(kind, text)


def _literal(kind: int, text: str) -> Interval | None:
    power = text.lower().partition("e")[2]
    if kind <= DECIMAL and (power or "e" in text.lower() or (kind == INTEGER and "." in text)):
        return None
    try:
        # As a float, 1e-9999 is 0 and 1e9999 is infinite, which Fraction refuses with OverflowError.
        written = Fraction(text) if not power or abs(int(power)) < _POWER else Fraction(float(text))
    except OverflowError:
        return _special(kind, float(text))
    except ValueError:
        return None
    if kind <= DECIMAL:
        return replace(point(kind, written), stored=True)
    # Worked example: "0.1"^^xsd:float spans from 1/10 to 13421773/134217728, which is 0.100000001490116119384765625.
    value = _rounded(written, kind)
    if not isinstance(value, Fraction):
        return _special(kind, value)
    return Interval(kind, min(written, value), max(written, value), value, stored=True)


def own(interval: Interval) -> Term:
    """``value`` as a canonical literal; decimals have at most 18 digits after the point."""
    if interval.kind >= FLOAT:
        return written(Value(interval.kind, float(_near(interval))))
    if interval.kind == INTEGER:
        return written(Value(INTEGER, int(interval.value)))
    return written(Value(DECIMAL, Decimal(f"{int(interval.value * 10**DIGITS)}E-{DIGITS}")))


def _near(interval: Interval) -> Fraction | float:
    return interval.special if interval.special is not None else _rounded(interval.value, interval.kind)


def datatype_of(interval: Interval) -> str:
    """The datatype IRI of a number."""
    return XSD + _NAMES[interval.kind]


def fits(possible: Interval, actual: Interval) -> bool:
    """Whether a received number is a possible one; its datatype may differ.

    A number received in a datatype that cannot represent the value exactly is compared within that datatype's
    tolerance.
    """
    kind = max(possible.kind, actual.kind)
    wanted, measured = promoted(possible, kind), promoted(actual, kind)
    if wanted.special is not None or measured.special is not None:
        # By repr, since NaN is not equal to itself.
        return wanted.special is not None and repr(wanted.number) == repr(measured.number)
    slack = _NOTHING
    # The rounding of an exact value is in its interval already (``promoted``).
    if actual.kind > possible.kind and actual.kind >= FLOAT and not possible.exact:
        slack = TOLERANCE[kind] * wanted.size
    return measured.low <= wanted.high + slack and wanted.low - slack <= measured.high


def is_form_of(expected: Term, actual: Term) -> bool:
    """Whether a computed term may be received as another: a number that fits, or another lexical form of its value.

    A dateTime keeps its zone: ``05Z``, ``05.000Z`` and ``05+00:00`` are one value, ``06+01:00`` is another.
    """
    wanted, sent = read(expected), read(actual)
    if wanted is not None and sent is not None:
        return fits(wanted, sent)
    one, other = value_of(expected), value_of(actual)
    return one.kind == other.kind and one.kind in _LEXICAL and bool(one.value == other.value)


def close(one: Term | None, other: Term | None) -> bool:
    """Whether two computed terms have one value, or are numbers within the looser datatype's tolerance.

    For terms whose operands are unknown, and to align answers; ``fits`` decides with the operands.
    """
    if one == other:
        return True
    if one is None or other is None:
        return False
    left, right = read(one), read(other)
    if left is None or right is None:
        return is_form_of(one, other)
    if left.special is not None or right.special is not None:
        return repr(left.number) == repr(right.number)
    apart, size = abs(left.value - right.value), max(left.size, right.size)
    if kinds := {left.kind, right.kind} & {FLOAT, DOUBLE}:
        return apart <= max(TOLERANCE[kind] for kind in kinds) * size
    # Integers have no tolerance: 9007199254740993 is not 9007199254740992, even in an aligned answer.
    whole = left.value.denominator == right.value.denominator == 1
    return not apart or (not whole and apart <= UNIT[DECIMAL] * max(size, Fraction(1)))


def finite(term: Term | None) -> Decimal | None:
    """The value of a finite number; ``None`` for any other term."""
    if term is None or (known := read(term)) is None or known.special is not None:
        return None
    return Decimal(term[1 : term.rindex('"')])


def _scale(value: Fraction) -> int | None:
    """The number of decimal digits after the point; ``None`` for infinitely many."""
    rest, twos, fives = value.denominator, 0, 0
    # A fraction has finitely many decimal digits if its denominator is a product of twos and fives.
    while rest % 2 == 0:
        rest, twos = rest // 2, twos + 1
    while rest % 5 == 0:
        rest, fives = rest // 5, fives + 1
    return max(twos, fives) if rest == 1 else None


def _rounded(value: Fraction, kind: int) -> Fraction | float:
    """The nearest value of a float datatype, or an infinity."""
    try:
        near = float(value)
    except OverflowError:
        return inf if value > 0 else -inf
    if kind == FLOAT:
        near = single(near)
    return Fraction(near) if isfinite(near) else near


def representable(value: Fraction, kind: int) -> bool:
    """Whether every implementation has exactly this value in its datatype, which is not xsd:integer."""
    if kind == DECIMAL:
        scale = _scale(value)
        # XSD 1.0 requires 18 digits in all, before and after the point together: 123456789.123456789 is representable,
        # 1234567890.123456789 is not.
        return scale is not None and scale <= DIGITS and abs(value) * 10**scale < 10**DIGITS
    return _rounded(value, kind) == value


def promoted(interval: Interval, kind: int) -> Interval:
    """The number in another datatype: promoted (XPath, B.1), or a double rounded to a float."""
    if interval.kind == kind:
        return interval
    if interval.special is not None:
        return _special(kind, interval.special)
    if interval.kind == FLOAT or kind <= DECIMAL:
        return replace(interval, kind=kind, stored=False)
    value = _rounded(interval.value, kind)
    if not isinstance(value, Fraction):
        return _special(kind, value)
    return Interval(kind, min(interval.low, value), max(interval.high, value), value)


def _slack(kind: int, size: Fraction) -> Fraction:
    """The absolute error of a result of this size; decimals have at most ``DIGITS`` digits after the point."""
    return max(TOLERANCE[kind] * size, UNIT[DECIMAL]) if kind == DECIMAL else TOLERANCE[kind] * size


def _widened(kind: int, low: Fraction, high: Fraction, value: Fraction, size: Fraction) -> Interval:
    """The result of one operation, widened by its error unless it is exact; ``size`` bounds operands and result."""
    if kind == INTEGER or (low == high and representable(low, kind)):
        return Interval(kind, low, high, value)
    error = _slack(kind, size)
    return Interval(kind, low - error, high + error, value)


def arithmetic(operator: str, left: Interval, right: Interval) -> Interval | None:
    """``left operator right``; ``None`` for SPARQL's error, OpenError if the result is unbounded."""
    kind = max(left.kind, right.kind)
    if operator == "/" and kind == INTEGER:
        kind = DECIMAL
    # The same stored literal on both sides has one value in any implementation: x - x is 0 and x / x is 1 exactly.
    if operator in "-/" and _same(left, right) and (operator == "-" or left.value):
        return point(kind, 0 if operator == "-" else 1)
    first, second = promoted(left, kind), promoted(right, kind)
    if first.special is not None or second.special is not None or (operator == "/" and second.size == 0):
        return _extreme(operator, kind, first, second)
    neutral = _neutral(operator, first, second)
    return neutral if neutral is not None else _operated(operator, kind, first, second)


def _same(left: Interval, right: Interval) -> bool:
    return left.stored and left == right and left.special is None


def _neutral(operator: str, left: Interval, right: Interval) -> Interval | None:
    """The other operand of ``x + 0``, ``x - 0``, ``x * 1`` and ``x / 1``, which is not widened; else ``None``."""
    unit = 0 if operator in "+-" else 1
    if right.exact and right.value == unit:
        return left
    return right if operator in "+*" and left.exact and left.value == unit else None


def _operated(operator: str, kind: int, left: Interval, right: Interval) -> Interval:
    if operator == "/" and right.low <= 0 <= right.high:
        raise inexact("a division by what may be 0")
    operate = _OPERATIONS[operator]
    # Each operation is monotone in either operand, so its extremes are at the corners.
    corners = [operate(a, b) for a in (left.low, left.high) for b in (right.low, right.high)]
    low, high = min(corners), max(corners)
    size = max(abs(low), abs(high))
    if operator in "+-":
        # Cancellation: the rounding error of a difference is relative to the operands, not to their small difference.
        size = max(size, left.size, right.size)
    return _finite(_widened(kind, low, high, operate(left.value, right.value), size))


def _finite(interval: Interval) -> Interval:
    if interval.kind >= FLOAT and not all(
        isinstance(_rounded(end, interval.kind), Fraction) for end in (interval.low, interval.high)
    ):
        raise inexact("a result beyond the range of its datatype")
    return interval


_OPERATIONS: Final[dict[str, Callable[[Fraction, Fraction], Fraction]]] = {
    "+": add,
    "-": sub,
    "*": mul,
    "/": lambda a, b: a / b,
}


_IEEE: Final[dict[str, Callable[[float, float], float]]] = {"+": add, "-": sub, "*": mul, "/": truediv}


def _extreme(operator: str, kind: int, left: Interval, right: Interval) -> Interval | None:
    """An operation with an infinity or NaN, or a division by 0, by IEEE 754; an error for decimals."""
    if not (left.exact and right.exact):
        raise inexact("an infinity, NaN or 0 beside an inexact number")
    if kind <= DECIMAL:
        return None
    a, b = float(left.number), float(right.number)
    if operator == "/" and b == 0:
        result = nan if a == 0 or isnan(a) else copysign(inf, a) * copysign(1, b)
    else:
        result = _IEEE[operator](a, b)
    return _special(kind, result) if not isfinite(result) else point(kind, Fraction(result))


def unary(function: str, operand: Interval) -> Interval:
    """A sign, ABS, CEIL, FLOOR or ROUND (half up: F&O, 6.4.4)."""
    if operand.special is not None:
        return _special(
            operand.kind, {"-": -operand.special, "ABS": abs(operand.special)}.get(function, operand.special)
        )
    if function == "+" or (function == "ABS" and operand.low >= 0):
        return operand
    if function == "ABS" and operand.low < 0 < operand.high:
        # Between a negative and a positive end the least absolute value is 0, which neither end has.
        return Interval(operand.kind, _NOTHING, operand.size, abs(operand.value))
    operate = _UNARY[function]
    # Each of these functions is monotone on the interval, so its ends map to ends; "-" swaps them.
    low, high = sorted((Fraction(operate(operand.low)), Fraction(operate(operand.high))))
    return Interval(operand.kind, low, high, Fraction(operate(operand.value)), operand.stored and function == "ABS")


_UNARY: Final[dict[str, Callable[[Fraction], Fraction | int]]] = {
    "-": lambda x: -x,
    "ABS": abs,
    "CEIL": ceil,
    "FLOOR": floor,
    "ROUND": lambda x: floor(x + Fraction(1, 2)),
}
UNARY: Final = frozenset({"+", *_UNARY})
"""The operations on one number."""


def cast(kind: int, operand: Interval) -> Interval | None:
    """A number cast to another numeric datatype (F&O, 17.1); ``None`` for an infinity or NaN as a decimal."""
    if operand.special is not None:
        return None if kind <= DECIMAL else _special(kind, operand.special)
    if kind == INTEGER:
        low, high, value = (Fraction(int(end)) for end in (operand.low, operand.high, operand.value))
        return Interval(kind, low, high, value)
    if kind == DECIMAL:
        return _widened(kind, operand.low, operand.high, operand.value, operand.size)
    return promoted(operand, kind)


Sign: TypeAlias = int | None
"""The sign of a difference: -1, 0 or 1; ``None`` for that of NaN and any number."""

HOLDS: Final[dict[str, Callable[[Sign], bool]]] = {
    "=": lambda sign: sign == 0,
    "!=": lambda sign: sign != 0,
    "<": lambda sign: sign == -1,
    "<=": lambda sign: sign in (-1, 0),
    ">": lambda sign: sign == 1,
    ">=": lambda sign: sign in (0, 1),
}
"""Whether a comparison holds, by the sign of the difference."""


def signs(left: Interval, right: Interval) -> set[Sign]:
    """The signs that the difference of two numbers may have.

    Two stored literals are compared exactly, because no computation is involved.
    """
    kind = max(left.kind, right.kind)
    first, second = promoted(left, kind), promoted(right, kind)
    if first.special is not None or second.special is not None or (left.stored and right.stored):
        one, other = first.number, second.number
        return {1 if one > other else -1 if one < other else 0 if one == other else None}
    equal = first.low <= second.high and second.low <= first.high
    # Worked example: [49.9, 50.1] and 50 may have any sign; [50, 50.1] and 50 only 0 and 1.
    possible = {-1: first.low < second.high, 0: equal, 1: first.high > second.low}
    return {sign for sign, holds in possible.items() if holds}


class IntervalSum:
    """The sum and the average of numbers in an unspecified order.

    A sum is exact if all numbers are and every partial sum in any order is representable: all are multiples of one
    power of 2, and their sizes sum to at most 2^53 (xsd:float: 2^24) times it. Otherwise its error is ``n u sum|x|``,
    where u is the unit of rounding, and at least the datatype's tolerance (Higham, Accuracy and Stability, 4.2).

        1e16, 1.0, -1e16: n u sum|x| = 3 * 2^-53 * 2e16 = 6.7, so the sum is in [-5.7, 7.7]
    """

    def __init__(self, numbers: Iterable[Interval] | Counter[Interval]) -> None:
        """``numbers`` with repetitions, or with the multiplicity of each."""
        self._counted = numbers if isinstance(numbers, Counter) else Counter(numbers)
        self.count = self._counted.total()
        self._kind = max((number.kind for number in self._counted), default=INTEGER)

    @property
    def total(self) -> Interval:
        """The sum (18.5.1.3); 0 without numbers. OpenError for a result beyond the range of its datatype."""
        if self.count == 1:
            return next(iter(self._counted))
        numbers = Counter[Interval]()
        for number, times in self._counted.items():
            numbers[promoted(number, self._kind)] += times
        parts = [(number.low, number.high, number.value, number.size) for number in numbers]
        if any(number.special is not None for number in numbers):
            # Infinities and NaN decide alone: a finite number beside them changes nothing, and both signs give NaN in
            # any order.
            return _special(self._kind, sum(number.special for number in numbers if number.special is not None))
        low, high, value, size = (
            sum((ends[at] * times for ends, times in zip(parts, numbers.values(), strict=True)), start=_NOTHING)
            for at in range(4)
        )
        if self._adds_exactly(numbers, size):
            return point(self._kind, value)
        unit = UNIT[self._kind] if self._kind != INTEGER else _NOTHING
        error = max(self.count * unit * size, _slack(self._kind, max(abs(low), abs(high))))
        return _finite(Interval(self._kind, low - error, high + error, value))

    def _adds_exactly(self, numbers: Counter[Interval], size: Fraction) -> bool:
        if self._kind == INTEGER:
            return True
        if not all(number.exact for number in numbers):
            return False
        if self._kind == DECIMAL:
            scales = [_scale(number.value) for number in numbers]
            return None not in scales and size * 10 ** max(scale or 0 for scale in scales) < 10**DIGITS
        # Denominators are powers of 2 here. ``common`` is the greatest power of 2 that divides all numbers, in units of
        # 1/grain.
        # Worked example: 0.5, 0.25, 3 in doubles. The grain is 4, in quarters they are 2, 1 and 12, and ``common`` is
        # 1: sizes sum to 15 quarters, far below 2^53, so every order of adding gives 3.75.
        grain = max(number.value.denominator for number in numbers)
        whole = [abs(int(number.value * grain)) for number in numbers if number.value]
        # ``n & -n`` is the lowest set bit of n, the greatest power of 2 that divides it.
        common = min((number & -number for number in whole), default=1)
        return size * grain / common <= 1 << _BITS[self._kind]

    @property
    def average(self) -> Interval:
        """The sum divided by the count (18.5.1.4); 0 without numbers."""
        average = arithmetic("/", self.total, point(INTEGER, self.count)) if self.count else point(INTEGER, 0)
        assert average is not None
        return average
