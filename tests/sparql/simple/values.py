"""Literals and their values: XSD's lexical forms, exact integers and decimals, float32, double, dates and times.

A term is its N-Triples string and keeps its lexical form. ``value`` is its typed value, an error where it has none.
"""

import math
import re
import struct
from dataclasses import dataclass
from fractions import Fraction

from tests.sparql.simple.choices import ExpressionError, OpenError

XSD = "http://www.w3.org/2001/XMLSchema#"
LANG_STRING = "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString"
DIR_LANG_STRING = "http://www.w3.org/1999/02/22-rdf-syntax-ns#dirLangString"
INTEGERS: dict[str, tuple[int | None, int | None]] = {
    "integer": (None, None),
    "nonPositiveInteger": (None, 0),
    "negativeInteger": (None, -1),
    "nonNegativeInteger": (0, None),
    "positiveInteger": (1, None),
    "long": (-(2**63), 2**63 - 1),
    "int": (-(2**31), 2**31 - 1),
    "short": (-(2**15), 2**15 - 1),
    "byte": (-(2**7), 2**7 - 1),
    "unsignedLong": (0, 2**64 - 1),
    "unsignedInt": (0, 2**32 - 1),
    "unsignedShort": (0, 2**16 - 1),
    "unsignedByte": (0, 2**8 - 1),
}
_INTEGER = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)")
_DOUBLE = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_SPECIAL = {"INF": math.inf, "+INF": math.inf, "-INF": -math.inf, "NaN": math.nan}
_ZONE = r"(Z|[+-](?:0[0-9]|1[0-3]):[0-5][0-9]|[+-]14:00)?"
_DATE = r"(-?(?:[1-9][0-9]{3,}|0[0-9]{3}))-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
_TIME = r"(?:([01][0-9]|2[0-3]):([0-5][0-9]):([0-5][0-9](?:\.[0-9]+)?)|(24:00:00(?:\.0+)?))"
_WHEN = {
    "date": re.compile(_DATE + _ZONE),
    "dateTime": re.compile(f"{_DATE}T{_TIME}{_ZONE}"),
    "time": re.compile(_TIME + _ZONE),
}
ORDER = ("integer", "decimal", "float", "double")
"""Numeric types in the order of promotion."""


class Computed(str):
    """A number that an expression computed: its lexical form is the implementation's, only its value is known."""

    __slots__ = ()


@dataclass(frozen=True)
class Number:
    """A numeric value: a Fraction for integer and decimal, a Python float for float and double."""

    kind: str
    number: Fraction | float


@dataclass(frozen=True)
class Moment:
    """A date, dateTime or time in seconds; ``zone`` in seconds, ``None`` when it has none."""

    kind: str
    seconds: Fraction
    zone: int | None


Value = Number | Moment | bool | str


def split(term: str) -> tuple[str, str, str]:
    """The lexical form, datatype IRI and language tag of a literal."""
    if not term.startswith('"'):
        raise ExpressionError("not a literal")
    close = term.rindex('"')
    text, rest = unescaped(term[1:close]), term[close + 1 :]
    if rest.startswith("@"):
        return text, DIR_LANG_STRING if "--" in rest else LANG_STRING, rest[1:]
    return text, rest[3:-1] if rest else XSD + "string", ""


_ESCAPES = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f", '"': '"', "'": "'", "\\": "\\"}
_ESCAPED = re.compile(r"\\(u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.)")


def unescaped(text: str) -> str:
    """The characters that the escapes of N-Triples stand for."""
    return _ESCAPED.sub(lambda m: _ESCAPES.get(m[1]) or chr(int(m[1][1:], 16)), text)


def literal(text: str, kind: str = XSD + "string", language: str = "") -> str:
    """The term of a lexical form."""
    body = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    if language:
        return f'"{body}"@{language}'
    return f'"{body}"' if kind == XSD + "string" else f'"{body}"^^<{kind}>'


def boolean(value: bool) -> str:
    """The term of a truth value."""
    return literal("true" if value else "false", XSD + "boolean")


def is_iri(term: str) -> bool:
    """Whether the term is an IRI."""
    return term.startswith("<") and not is_triple(term)


def is_triple(term: str) -> bool:
    """Whether the term is a triple term (RDF 1.2)."""
    return term.startswith("<<( ")


def triple(term: str) -> tuple[str, str, str]:
    """The parts of a triple term: neither subject nor predicate is one, so neither has a blank."""
    if not is_triple(term):
        raise ExpressionError("not a triple term")
    subject, predicate, item = term[4:-4].split(" ", 2)
    return subject, predicate, item


def is_literal(term: str) -> bool:
    """Whether the term is a literal."""
    return term.startswith('"')


def value(term: str) -> Value:
    """The value of a literal of a known datatype; ExpressionError for another term or an ill-typed literal."""
    text, kind, language = split(term)
    name = kind.removeprefix(XSD)
    if language or name == kind:
        raise ExpressionError("no known datatype")
    if name == "string":
        return text
    if name == "boolean" and text in ("true", "false", "0", "1"):
        return text in ("true", "1")
    if name in ("decimal", "float", "double") or name in INTEGERS:
        return number(text, name)
    if name in _WHEN:
        return moment(text, name)
    raise ExpressionError(f"no value: {term}")


def number(text: str, name: str) -> Number:
    """The number of a lexical form of a numeric type."""
    if name in INTEGERS and _INTEGER.fullmatch(text):
        least, most = INTEGERS[name]
        result = int(text)
        if (least is None or result >= least) and (most is None or result <= most):
            return Number("integer", Fraction(result))
    elif name == "decimal" and _DECIMAL.fullmatch(text):
        return Number("decimal", Fraction(text))
    elif name in ("float", "double") and text in _SPECIAL:
        return Number(name, _SPECIAL[text])
    elif name in ("float", "double") and _DOUBLE.fullmatch(text):
        rounded = float(text)
        return Number(name, rounded if name == "double" or rounded == 0 else float32(Fraction(text)))
    raise ExpressionError(f"ill-typed: {text}")


def float32(exact: Fraction | float) -> float:
    """The nearest float32, ties to even, of an exact value or of a double."""
    if isinstance(exact, float):
        if math.isnan(exact) or math.isinf(exact):
            return exact
        if exact == 0:
            return exact
        exact = Fraction(exact)
    size = abs(exact)
    if size == 0:
        return 0.0
    exponent = max(_exponent(size), -126) - 23
    unit = Fraction(2) ** exponent
    result = Fraction(round(size / unit)) * unit
    if result >= Fraction(2) ** 128:
        return math.copysign(math.inf, exact)
    return math.copysign(float(result), exact)


def _exponent(size: Fraction) -> int:
    """The greatest e with 2**e <= size."""
    guess = size.numerator.bit_length() - size.denominator.bit_length()
    return guess if Fraction(2) ** guess <= size else guess - 1


def _seconds(days: int, hours: str | None, minutes: str, seconds: str) -> Fraction:
    if hours is None:
        return Fraction((days + 1) * 86400)
    return Fraction(days * 86400 + int(hours) * 3600 + int(minutes) * 60) + Fraction(seconds)


def moment(text: str, name: str) -> Moment:
    """The point in time of a lexical form; without a zone the seconds are as in UTC."""
    match = _WHEN[name].fullmatch(text)
    if not match:
        raise ExpressionError(f"ill-typed: {text}")
    parts = list(match.groups())
    zone = _zone(parts.pop())
    days = _days(1972, 12, 31)
    if name != "time":
        year, month, day = map(int, parts[:3])
        if day > _length(year, month):
            raise ExpressionError(f"ill-typed: {text}")
        days, parts = _days(year, month, day), parts[3:]
    if name == "time" and parts[3]:
        parts = ["00", "00", "00", None]  # 24:00:00 is 00:00:00 as a time of day
    at = Fraction(days * 86400) if name == "date" else _seconds(days, parts[0], parts[1], parts[2])
    return Moment(name, at - (zone or 0), zone)


def fields(text: str, name: str) -> tuple[list[str | None], str | None]:
    """The fields of a date or time as they are written (year, month, day, hours, minutes, seconds), and its zone."""
    match = _WHEN[name].fullmatch(text)
    if not match:
        raise ExpressionError(f"ill-typed: {text}")
    *parts, zone = match.groups()
    return parts, zone


def _zone(text: str | None) -> int | None:
    if text is None or text == "Z":
        return None if text is None else 0
    return (int(text[1:3]) * 3600 + int(text[4:6]) * 60) * (-1 if text[0] == "-" else 1)


def _length(year: int, month: int) -> int:
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month in (4, 6, 9, 11) else 31


def _days(year: int, month: int, day: int) -> int:
    """Days of the proleptic Gregorian calendar since 0000-01-01."""
    before = year - 1
    whole = year * 365 + before // 4 - before // 100 + before // 400
    return whole + sum(_length(year, index) for index in range(1, month)) + day - 1


def compared(left: Moment, right: Moment) -> int:
    """-1, 0 or 1; an error where one has no zone and the two are at most 14 hours apart (XSD 1.0, 3.2.7.4)."""
    if (left.zone is None) == (right.zone is None):
        return (left.seconds > right.seconds) - (left.seconds < right.seconds)
    apart = left.seconds - right.seconds
    if abs(apart) <= 14 * 3600:
        raise ExpressionError("indeterminate without a zone")
    return 1 if apart > 0 else -1


def promoted(left: Number, right: Number) -> tuple[str, Fraction | float, Fraction | float]:
    """Both as the later of their types (XPath 2.0, B.1)."""
    kind = max(left.kind, right.kind, key=ORDER.index)
    return kind, as_kind(left, kind), as_kind(right, kind)


def as_kind(result: Number, kind: str) -> Fraction | float:
    """A number as a type that is not before its own."""
    if kind in ("integer", "decimal") or isinstance(result.number, float):
        return result.number
    try:
        return float32(result.number) if kind == "float" else float(result.number)
    except OverflowError:
        raise OpenError("a number beyond xsd:double's range") from None


def term(result: Number) -> str:
    """The term of a computed number; the lexical form of all but integers is the implementation's."""
    if result.kind == "integer":
        return literal(str(int(result.number)), XSD + "integer")
    return Computed(literal(lexical(result), XSD + result.kind))


def lexical(result: Number) -> str:
    """A number as F&O casts it to a string where that is simple (17.1.2)."""
    if isinstance(result.number, Fraction):
        return _decimal(result.number)
    if math.isnan(result.number):
        return "NaN"
    if math.isinf(result.number):
        return "INF" if result.number > 0 else "-INF"
    if result.number == int(result.number) and abs(result.number) < 1e6:
        return ("-" if math.copysign(1, result.number) < 0 else "") + str(abs(int(result.number)))
    if result.kind == "float":
        for digits in range(6, 10):
            text = f"{result.number:.{digits}g}"
            if struct.pack("f", float(text)) == struct.pack("f", result.number):
                return text
    return repr(result.number)


def _decimal(exact: Fraction) -> str:
    sign, size = "-" if exact < 0 else "", abs(exact)
    whole, rest = divmod(size, 1)
    digits = ""
    while rest and len(digits) < 40:
        digit, rest = divmod(rest * 10, 1)
        digits += str(int(digit))
    return f"{sign}{int(whole)}{'.' + digits if digits else ''}"


def same(left: str | None, right: str | None) -> bool:
    """Whether two terms are the same term; open where that depends on the lexical form of a computed number."""
    if left == right:
        return True
    if isinstance(left, Computed) or isinstance(right, Computed):
        if left is None or right is None:
            return False
        try:
            one, other = value(left), value(right)
        except ExpressionError:
            return False
        if split(left)[1] == split(right)[1] and _same_number(one, other):
            raise OpenError("the lexical form of a computed number")
    return False


def _same_number(one: Value, other: Value) -> bool:
    if not isinstance(one, Number) or not isinstance(other, Number):
        return False
    return one.number == other.number or (one.number != one.number and other.number != other.number)
