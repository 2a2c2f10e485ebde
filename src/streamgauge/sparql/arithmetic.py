"""Computed values: the operators + - * / and the constructor functions of XSD datatypes (SPARQL 1.1, 17.3 and 17.5).

Integers and decimals are exact, quotients of them have at least 18 digits, xsd:float and xsd:double are rounded once. A
product of more than 60,000 digits is an error, because repeated squaring would not terminate in reasonable time.
Arithmetic on dates and durations follows F&O 3.1 (8.4 and 9.7), which SPARQL 1.1 leaves to implementations; casts
follow F&O 3.1, section 19.
"""

import math
from collections.abc import Callable, Sequence
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, Inexact, InvalidOperation
from operator import add, mul, sub
from typing import Any, Final

from streamgauge.model.terms import XSD
from streamgauge.sparql import moments
from streamgauge.sparql.comparison import promoted
from streamgauge.sparql.moments import Duration, Moment
from streamgauge.sparql.values import (
    BOOLEAN,
    DECIMAL,
    DOUBLE,
    DURATION,
    EXACT,
    FLOAT,
    INTEGER,
    IRI,
    MOMENTS,
    MONTHS,
    SECONDS,
    STRING,
    TAGGED,
    Value,
    from_text,
    nearest_double,
    nearest_single,
    shortest,
    single,
    text_of,
)

_DATE_TIME, _DATE, _TIME = MOMENTS["dateTime"], MOMENTS["date"], MOMENTS["time"]
_DAYS: Final = ("dateTime", "dateTimeStamp", "date")
_SPACE: Final = " \t\n\r"
Cast = Callable[[Value], Value | None]


def _cast(name: str, convert: Cast) -> Cast:
    """A constructor function: strings are parsed without surrounding space (19.2), other values converted."""

    def run(value: Value) -> Value | None:
        return from_text(value.value.strip(_SPACE), name) if value.kind == STRING else convert(value)

    return run


def _of_number(kind: int, convert: Callable[[Any], Any], finite: bool = False) -> Cast:
    """A cast of numbers and booleans; of finite ones only if the datatype has no infinities."""

    def run(value: Value) -> Value | None:
        number = value.value
        if value.kind > BOOLEAN or (finite and isinstance(number, float) and not math.isfinite(number)):
            return None
        return Value(kind, convert(number))

    return run


def text(value: Value) -> str | None:
    """A value cast to xsd:string (F&O 3.1, 19.1.1), or the characters of an IRI; ``None`` for other terms.

    A float is written without exponent from 0.000001 to 1000000, else as ``1.0E6``.
    """
    if value.kind == STRING:
        return str(value.value)
    if value.kind == TAGGED:
        return str(value.value[0])
    if value.kind == IRI:
        return str(value.value[1:-1])
    if value.kind in (FLOAT, DOUBLE) and math.isfinite(value.value) and value.value:
        return _real_text(value)
    return text_of(value.kind, value.value) if value.kind < IRI or value.kind >= _DATE_TIME else None


def _real_text(value: Value) -> str:
    if 1e-6 <= abs(value.value) < 1e6:
        return text_of(value.kind, value.value)
    # From the shortest text: Decimal of the float itself would have all of its binary digits.
    sign, digits, exponent = Decimal(shortest(value.value, value.kind)).as_tuple()
    every = "".join(map(str, digits)).rstrip("0")
    place = int(exponent) + len(digits) - 1
    return f"{'-' if sign else ''}{every[0]}.{every[1:] or '0'}E{place}"


def _to_string(value: Value) -> Value | None:
    string = text(value)
    return None if string is None else Value(STRING, string)


def _of_moment(name: str, others: Sequence[str], convert: Callable[[Moment], Moment | None]) -> Cast:
    """A cast of dates and times, of the datatype itself and others."""
    kinds = frozenset(MOMENTS[kind] for kind in (name, *others))

    def run(value: Value) -> Value | None:
        moment = convert(value.value) if value.kind in kinds else None
        return None if moment is None else Value(MOMENTS[name], moment)

    return run


def _of_part(name: str) -> Cast:
    """A cast to gYear, gMonthDay and so on: written in that datatype and parsed again, which drops the other fields."""
    return _of_moment(name, _DAYS, lambda at: moments.date_time(moments.write_date_time(at, name), name))


def _to_duration(kind: int) -> Cast:
    """A cast between durations: keeps the months or the seconds only (19.1.4)."""

    def run(value: Value) -> Value | None:
        duration = value.value
        if not isinstance(duration, Duration):
            return None
        # A cast from P1Y2DT3H to xsd:dayTimeDuration is P2DT3H: F&O drops the other part without an error.
        months = 0 if kind == SECONDS else duration.months
        return Value(kind, Duration(months, Decimal(0) if kind == MONTHS else duration.seconds))

    return run


CASTS: Final[dict[str, Cast]] = {
    f"<{XSD}{name}>": _cast(name, convert)
    for name, convert in {
        "integer": _of_number(INTEGER, int, finite=True),
        # Without the sign of -0, which xsd:decimal does not have.
        "decimal": _of_number(DECIMAL, lambda number: Decimal(number) or Decimal(0), finite=True),
        "double": _of_number(DOUBLE, nearest_double),
        "float": _of_number(FLOAT, nearest_single),
        # Every comparison with NaN is false, and so is its boolean.
        "boolean": _of_number(BOOLEAN, lambda number: abs(number) > 0),
        "dateTime": _of_moment("dateTime", _DAYS, lambda at: at),
        "date": _of_moment("date", _DAYS, moments.start_of_day),
        "time": _of_moment("time", ("dateTime", "dateTimeStamp"), moments.on_the_clock),
        "duration": _to_duration(DURATION),
        "yearMonthDuration": _to_duration(MONTHS),
        "dayTimeDuration": _to_duration(SECONDS),
        **{name: _of_part(name) for name in ("gYearMonth", "gYear", "gMonthDay", "gDay", "gMonth")},
    }.items()
} | {f"<{XSD}string>": _to_string}
"""Constructor functions by their datatype's IRI in angle brackets."""


Operation = Callable[[Value, Value], Value | None]
_DIGITS: Final = 18
# The limit of a product, for integers, in bits, because counting decimal digits would convert the number to text.
# About 60,200 digits.
_BITS: Final = 200_000
_FAR: Final = Decimal("1e1000")
# Inexact is trapped, so that a longer result is an error and never a rounded number.
_BOUNDED: Final = Context(prec=60_000, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[Inexact, InvalidOperation])
_DURATIONS: Final = frozenset({DURATION, MONTHS, SECONDS})
_DATED: Final = frozenset({_DATE_TIME, _DATE, _TIME, MOMENTS["dateTimeStamp"]})


def _operation(plain: Callable[[Any, Any], Any], exact: Callable[[Any, Any], Decimal], other: Operation) -> Operation:
    """An operator that promotes numbers: ``plain`` on integers and floats, ``exact`` on decimals, else ``other``."""

    def run(left: Value, right: Value) -> Value | None:
        kind = left.kind if left.kind > right.kind else right.kind
        if kind > DOUBLE:
            return other(left, right)
        if kind == INTEGER:
            # A product has at most the bits of both factors together.
            if plain is mul and left.value.bit_length() + right.value.bit_length() > _BITS:
                return None
            return Value(INTEGER, plain(left.value, right.value))
        if kind == DECIMAL:
            try:
                return Value(DECIMAL, exact(left.value, right.value))
            except Inexact:
                return None
        # The usual case, two numbers of one datatype, needs no promotion.
        first, second = (left.value, right.value) if left.kind == right.kind else promoted(left, right)
        result = plain(first, second)
        # Python computes in doubles. Rounding a double's sum, difference or product of two floats to a float gives the
        # same as rounding once, since 53 bits are at least 2 * 24 + 2 (Figueroa 1995, When is double rounding
        # innocuous?).
        return Value(kind, single(result) if kind == FLOAT else result)

    return run


def _added(left: Value, right: Value) -> Value | None:
    if left.kind in _DURATIONS and right.kind in _DURATIONS:
        return _sum(left, right, 1)
    if left.kind in _DURATIONS:
        return _moved(right, left, 1)
    return _moved(left, right, 1)


def _subtracted(left: Value, right: Value) -> Value | None:
    if left.kind in _DURATIONS and right.kind in _DURATIONS:
        return _sum(left, right, -1)
    if isinstance(left.value, Moment) and isinstance(right.value, Moment):
        alike = left.kind == right.kind or {left.kind, right.kind} <= {_DATE_TIME, MOMENTS["dateTimeStamp"]}
        difference = moments.between(left.value, right.value) if alike and left.kind in _DATED else None
        return None if difference is None else Value(SECONDS, difference)
    return _moved(left, right, -1)


def _sum(left: Value, right: Value, sign: int) -> Value | None:
    """The sum of two durations.

    An error if months and seconds would have opposite signs, which xsd:duration excludes.
    """
    months = left.value.months + sign * right.value.months
    seconds = EXACT.add(left.value.seconds, EXACT.multiply(right.value.seconds, Decimal(sign)))
    # Worked example: P1M minus P1D has no xsd:duration, since "-P1D" cannot be a part of "P1M" and months have no
    # length in days.
    if (months > 0 > seconds) or (months < 0 < seconds) or max(abs(months), abs(seconds)) > _FAR:
        return None
    return Value(left.kind if left.kind == right.kind else DURATION, Duration(months, seconds))


def _moved(at: Value, by: Value, sign: int) -> Value | None:
    """A date or time plus a duration (F&O 3.1, 9.7.5 to 9.7.14): a time wraps around, a date stays a date."""
    if at.kind not in _DATED or by.kind not in _DURATIONS or (at.kind == _TIME and by.kind != SECONDS):
        return None
    step = Duration(sign * by.value.months, EXACT.multiply(by.value.seconds, Decimal(sign)))
    if max(abs(at.value.local), abs(step.seconds), abs(step.months)) > _FAR:
        return None
    moment = moments.later(at.value, step)
    # 23:30:00 plus PT1H is 00:30:00: a time has no date that could change.
    if at.kind == _TIME:
        moment = moments.on_the_clock(moment)
    elif at.kind == _DATE:
        moment = moments.start_of_day(moment)
    return Value(at.kind, moment)


def _multiplied(left: Value, right: Value) -> Value | None:
    if right.kind in (MONTHS, SECONDS):
        left, right = right, left
    if left.kind not in (MONTHS, SECONDS) or right.kind > DOUBLE or not math.isfinite(right.value):
        return None
    return _scaled(left, Decimal(right.value), Decimal(1))


def _divided(left: Value, right: Value) -> Value | None:
    if left.kind not in (MONTHS, SECONDS):
        return None
    if right.kind == left.kind:
        one, other = _amount(left), _amount(right)
        return Value(DECIMAL, quotient(one, other)) if other else None
    if right.kind > DOUBLE or right.value == 0 or right.value != right.value:
        return None
    if isinstance(right.value, float) and math.isinf(right.value):
        # F&O 8.4.4 and 8.4.9: a duration divided by an infinity is a duration of length zero.
        return Value(left.kind, Duration(0, Decimal(0)))
    return _scaled(left, Decimal(1), Decimal(right.value))


def _amount(value: Value) -> int | Decimal:
    amount: int | Decimal = value.value.months if value.kind == MONTHS else value.value.seconds
    return amount


def _scaled(value: Value, by: Decimal, over: Decimal) -> Value | None:
    """A duration times ``by / over``; months are rounded half up. An error for an overflow (FODT0002)."""
    amount = EXACT.multiply(Decimal(_amount(value)), by)
    if abs(amount) > _FAR or abs(over) < 1 / _FAR:
        return None
    if value.kind == SECONDS:
        return Value(SECONDS, Duration(0, quotient(amount, over)))
    # floor(a / b + 1/2) as floor((2a + b) / 2b), which needs no rounded quotient.
    twice = EXACT.add(EXACT.multiply(amount, Decimal(2)), over)
    return Value(MONTHS, Duration(_floor(twice, EXACT.multiply(over, Decimal(2))), Decimal(0)))


def _floor(top: Decimal, bottom: Decimal) -> int:
    (above, over), (below, under) = top.as_integer_ratio(), bottom.as_integer_ratio()
    return (above * under) // (below * over)


def quotient(left: int | Decimal, right: int | Decimal) -> Decimal:
    """The quotient truncated after at least 18 digits and at least 18 places; ``right`` is not 0 (F&O 3.1, 4.2.4).

    Worked example: 1 / 3 is 0.333333333333333333; 1 / 3000 is truncated after 21 places, so it has 18 digits too.
    """
    (above, over), (below, under) = left.as_integer_ratio(), right.as_integer_ratio()
    top, bottom = above * under, below * over
    if bottom < 0:
        top, bottom = -top, -bottom
    # 1233 / 2^12 is just below log10(2): bits become decimal places, at most one too few, which the next step adds.
    places = _DIGITS + max(0, (bottom.bit_length() - abs(top).bit_length()) * 1233 >> 12)
    # The quotient is computed without its sign, because Python's // rounds down and the quotient of F&O towards zero.
    quotient_, rest = divmod(abs(top) * 10**places, bottom)
    if rest and quotient_ < 10 ** (_DIGITS - 1):
        places += 1
        quotient_ = abs(top) * 10**places // bottom
    return EXACT.scaleb(Decimal(-quotient_ if top < 0 else quotient_), -places)


def divide(left: Value, right: Value) -> Value | None:
    """``/``: a decimal for integers; division by zero is an error, except for xsd:float and xsd:double."""
    kind = max(left.kind, right.kind)
    if kind > DOUBLE:
        return _divided(left, right)
    if kind <= DECIMAL:
        return Value(DECIMAL, quotient(left.value, right.value)) if right.value else None
    first, second = promoted(left, right)
    result = real_quotient(first, second)
    return Value(kind, single(result) if kind == FLOAT else result)


def real_quotient(left: float, right: float) -> float:
    """The quotient by IEEE 754: division by zero gives an infinity or NaN."""
    if right:
        return left / right
    if not left or math.isnan(left) or math.isnan(right):
        return math.nan
    # copysign sees the sign of -0.0; a comparison with 0 would not.
    return math.copysign(math.inf, left) * math.copysign(1.0, right)


plus: Final = _operation(add, _BOUNDED.add, _added)
minus: Final = _operation(sub, _BOUNDED.subtract, _subtracted)
times: Final = _operation(mul, _BOUNDED.multiply, _multiplied)

OPERATORS: Final[dict[str, Operation]] = {"+": plus, "-": minus, "*": times, "/": divide}


def negated(value: Value) -> Value | None:
    """Unary minus of a numeric value."""
    if value.kind <= DOUBLE:
        # Python's unary minus rounds a decimal to the precision of the thread's context.
        return Value(value.kind, EXACT.minus(value.value) if value.kind == DECIMAL else -value.value)
    if value.kind in _DURATIONS:
        return Value(value.kind, Duration(-value.value.months, EXACT.minus(value.value.seconds)))
    return None


def unsigned(value: Value) -> Value | None:
    """Unary plus: the number in canonical form."""
    return Value(value.kind, value.value) if value.kind <= DOUBLE else None
