"""Constructor functions of XSD datatypes (SPARQL 1.1, 17.5; F&O 3.1, section 19)."""

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Final

from streamgauge.model.terms import XSD
from streamgauge.sparql import moments
from streamgauge.sparql.moments import Duration
from streamgauge.sparql.values import (
    BOOLEAN,
    DECIMAL,
    DOUBLE,
    DURATION,
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
_STAMP: Final = MOMENTS["dateTimeStamp"]
_PARTS: Final = ("gYearMonth", "gYear", "gMonthDay", "gDay", "gMonth")
_SPACE: Final = " \t\n\r"
Cast = Callable[[Value], Value | None]


def _cast(name: str, convert: Cast) -> Cast:
    """A constructor function: strings by their form, space around it left out (19.2), other values by ``convert``."""

    def run(value: Value) -> Value | None:
        return from_text(value.value.strip(_SPACE), name) if value.kind == STRING else convert(value)

    return run


def _to_integer(value: Value) -> Value | None:
    if value.kind > BOOLEAN or (value.kind in (FLOAT, DOUBLE) and not math.isfinite(value.value)):
        return None
    return Value(INTEGER, int(value.value))


def _to_decimal(value: Value) -> Value | None:
    if value.kind > BOOLEAN or (value.kind in (FLOAT, DOUBLE) and not math.isfinite(value.value)):
        return None
    return Value(DECIMAL, Decimal(value.value) or Decimal(0))


def _to_double(value: Value) -> Value | None:
    return Value(DOUBLE, nearest_double(value.value)) if value.kind <= BOOLEAN else None


def _to_float(value: Value) -> Value | None:
    if value.kind > BOOLEAN:
        return None
    return Value(FLOAT, single(value.value) if value.kind == DOUBLE else nearest_single(value.value))


def _to_boolean(value: Value) -> Value | None:
    if value.kind > BOOLEAN:
        return None
    return Value(BOOLEAN, bool(value.value) and value.value == value.value)


def text(value: Value) -> str | None:
    """The characters of a value as xsd:string has them (F&O 3.1, 19.1.1), of an IRI its own; ``None`` for other terms.

    A real number is written without exponent from 0.000001 to 1000000, else as ``1.0E6``.
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
    sign, digits, exponent = Decimal(shortest(value.value, value.kind)).as_tuple()
    every = "".join(map(str, digits)).rstrip("0")
    place = int(exponent) + len(digits) - 1
    return f"{'-' if sign else ''}{every[0]}.{every[1:] or '0'}E{place}"


def _to_string(value: Value) -> Value | None:
    found = text(value)
    return None if found is None else Value(STRING, found)


def _to_date_time(value: Value) -> Value | None:
    if value.kind not in (_DATE_TIME, _STAMP, _DATE):
        return None
    return Value(_DATE_TIME, value.value)


def _to_date(value: Value) -> Value | None:
    if value.kind not in (_DATE_TIME, _STAMP, _DATE):
        return None
    now = moments.fields(value.value)
    return Value(_DATE, moments.moment(now.year, now.month, now.day, 0, value.value.zone))


def _to_time(value: Value) -> Value | None:
    if value.kind == _TIME:
        return Value(_TIME, value.value)
    return Value(_TIME, moments.on_the_clock(value.value)) if value.kind in (_DATE_TIME, _STAMP) else None


def _to_part(name: str) -> Cast:
    """A part of a date: of the moment, its text is read again."""

    def run(value: Value) -> Value | None:
        if value.kind not in (_DATE_TIME, _STAMP, _DATE, MOMENTS[name]):
            return None
        return from_text(moments.write_date_time(value.value, name), name)

    return run


def _to_duration(kind: int) -> Cast:
    """Of another duration the months or the seconds, the rest left out (19.1.4)."""

    def run(value: Value) -> Value | None:
        found = value.value
        if not isinstance(found, Duration):
            return None
        months = 0 if kind == SECONDS else found.months
        return Value(kind, Duration(months, Decimal(0) if kind == MONTHS else found.seconds))

    return run


CASTS: Final[dict[str, Cast]] = {
    f"<{XSD}{name}>": _cast(name, convert)
    for name, convert in {
        "integer": _to_integer,
        "decimal": _to_decimal,
        "double": _to_double,
        "float": _to_float,
        "boolean": _to_boolean,
        "dateTime": _to_date_time,
        "date": _to_date,
        "time": _to_time,
        "duration": _to_duration(DURATION),
        "yearMonthDuration": _to_duration(MONTHS),
        "dayTimeDuration": _to_duration(SECONDS),
        **{name: _to_part(name) for name in _PARTS},
    }.items()
} | {f"<{XSD}string>": _to_string}
"""Constructor functions by the term of their datatype."""
