"""Numbers as SPARQL counts them, per canonical term: exact integers and decimals, xsd:float in 32 bits, xsd:double.

The fast path beside ``compute.expressions``: what it does not know it answers with ``UNKNOWN``, never with a guess.
Ranges are pyoxigraph's: integers of 64 bits, decimals of 128 bits with 18 digits after the point.
"""

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from operator import add, eq, ge, gt, le, lt, mul, ne, sub
from typing import Final

from streamgauge.model.terms import XSD, Term

INTEGER, DECIMAL, FLOAT, DOUBLE = 0, 1, 2, 3
SCALE: Final = 10**18
"""Decimals are counted in units of 10^-18."""

_LIMIT = 200_000
_INTEGERS = ("integer", "byte", "short", "int", "long", "unsignedByte", "unsignedShort", "unsignedInt", "unsignedLong")
_SIGNED = ("positiveInteger", "negativeInteger", "nonPositiveInteger", "nonNegativeInteger")
_KINDS: Final = {XSD + name: INTEGER for name in _INTEGERS + _SIGNED} | {
    XSD + "decimal": DECIMAL,
    XSD + "float": FLOAT,
    XSD + "double": DOUBLE,
}
_NAMES: Final = ("integer", "decimal", "float", "double")
_SPECIAL: Final = {"INF": math.inf, "+INF": math.inf, "-INF": -math.inf, "NaN": math.nan}
_EXACT: Final = 1 << 53


@dataclass(frozen=True, slots=True)
class Number:
    """A numeric value: ``kind`` is INTEGER, DECIMAL (``value`` counts 10^-18), FLOAT or DOUBLE."""

    kind: int
    value: int | float

    @property
    def exact(self) -> Fraction:
        """The value as a fraction; ValueError or OverflowError for NaN and the infinities."""
        exact = Fraction(self.value)
        return exact / SCALE if self.kind == DECIMAL else exact


class Unknown:
    """The type of ``UNKNOWN``: the fast path cannot tell."""


UNKNOWN: Final = Unknown()
Outcome = Number | bool | Unknown | None
"""A value, ``None`` for SPARQL's error, or UNKNOWN."""

_known: dict[Term, Number | Unknown] = {}


def number(term: Term) -> Number | Unknown:
    """The numeric value of a term, UNKNOWN when it is no number that this module counts with."""
    found = _known.get(term)
    if found is None:
        if len(_known) >= _LIMIT:
            _known.clear()
        found = _known[term] = _read(term)
    return found


def _read(term: Term) -> Number | Unknown:
    close = term.rfind('"^^<')
    kind = _KINDS.get(term[close + 4 : -1]) if term[:1] == '"' and close > 0 else None
    if kind is None:
        return UNKNOWN
    try:
        return Number(kind, _value(kind, term[1:close]))
    except (ValueError, OverflowError):
        return UNKNOWN


def _value(kind: int, text: str) -> int | float:
    if "_" in text or text != text.strip() or not text.isascii():
        raise ValueError(text)
    if kind == INTEGER:
        return _within(int(text), 63)
    if kind == DECIMAL:
        if not set(text) <= set("+-.0123456789"):
            raise ValueError(text)
        scaled = Fraction(text) * SCALE
        return _within(scaled.numerator if scaled.denominator == 1 else 1 << 127, 127)
    if text in _SPECIAL:
        return _SPECIAL[text]
    if text.strip("+-")[:1].isalpha():
        raise ValueError(text)
    return single(float(text)) if kind == FLOAT else float(text)


def _within(value: int, bits: int) -> int:
    if not -(1 << bits) <= value < 1 << bits:
        raise OverflowError(value)
    return value


def single(value: float) -> float:
    """The nearest xsd:float (32 bits), an infinity beyond its range."""
    try:
        rounded: float = struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return rounded


def _pair(left: Number, right: Number) -> tuple[int, int | float, int | float] | None:
    """Both values promoted to the wider kind, ``None`` where that may round."""
    if left.kind == right.kind:
        return left.kind, left.value, right.value
    kind = max(left.kind, right.kind)
    first, second = _promoted(left, kind), _promoted(right, kind)
    return None if first is None or second is None else (kind, first, second)


def _promoted(number: Number, kind: int) -> int | float | None:
    if number.kind == kind:
        return number.value
    if kind == DECIMAL:
        return _fits(int(number.value) * SCALE, 127)
    if number.kind == FLOAT:
        return number.value
    if number.kind == DECIMAL:
        whole, rest = divmod(int(number.value), SCALE)
        if rest:
            return None
        value = whole
    else:
        value = int(number.value)
    if abs(value) > _EXACT:
        return None
    return float(value) if kind == DOUBLE else single(float(value))


def _fits(value: int, bits: int) -> int | None:
    return value if -(1 << bits) <= value < 1 << bits else None


def _comparison(operate: Callable[[int | float, int | float], bool], *, ordered: bool) -> Callable[..., Outcome]:
    def compare(left: Number, right: Number) -> Outcome:
        pair = _pair(left, right)
        if pair is None:
            return UNKNOWN
        kind, first, second = pair
        if ordered and kind >= FLOAT and (math.isnan(first) or math.isnan(second)):
            return UNKNOWN
        return bool(operate(first, second))

    return compare


def _arithmetic(operate: Callable[[int | float, int | float], int | float]) -> Callable[..., Outcome]:
    def combine(left: Number, right: Number) -> Outcome:
        pair = _pair(left, right)
        if pair is None or (operate is mul and pair[0] == DECIMAL):
            return UNKNOWN
        kind, first, second = pair
        if kind >= FLOAT:
            value = operate(first, second)
            return Number(kind, single(value) if kind == FLOAT else value)
        fitted = _fits(int(operate(first, second)), 63 if kind == INTEGER else 127)
        return None if fitted is None else Number(kind, fitted)

    return combine


BINARY: Final[dict[str, Callable[..., Outcome]]] = {
    "=": _comparison(eq, ordered=False),
    "!=": _comparison(ne, ordered=False),
    "<": _comparison(lt, ordered=True),
    ">": _comparison(gt, ordered=True),
    "<=": _comparison(le, ordered=True),
    ">=": _comparison(ge, ordered=True),
    "+": _arithmetic(add),
    "-": _arithmetic(sub),
    "*": _arithmetic(mul),
}
"""Operators on two Numbers; division and products of decimals are left to pyoxigraph, and so is the order of NaN."""


def decimal(scaled: int) -> Term:
    """The canonical xsd:decimal of ``scaled`` units of 10^-18."""
    whole, rest = divmod(abs(scaled), SCALE)
    digits = f".{rest:018d}".rstrip("0") if rest else ""
    return f'"{"-" if scaled < 0 else ""}{whole}{digits}"^^<{XSD}decimal>'


def integer(value: int) -> Term:
    """The canonical xsd:integer."""
    return f'"{value}"^^<{XSD}integer>'


def floating(value: float, kind: int) -> str:
    """A literal (not yet canonical) that reads back as this xsd:float or xsd:double."""
    name = f"^^<{XSD}{_NAMES[kind]}>"
    if math.isnan(value):
        return f'"NaN"{name}'
    if math.isinf(value):
        return f'"{"-" if value < 0 else ""}INF"{name}'
    return f'"{value!r}"{name}'
