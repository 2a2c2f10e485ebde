"""Terms as values and values as terms (RDF 1.1 Concepts 5; XML Schema 1.1 Datatypes 3.3; SPARQL 1.1, 17.1).

A value keeps the term that it was read from: ``"01"^^xsd:integer`` is the integer 1 together with that term. Integers
and decimals are exact. An ill-typed literal has no value (``ILL``), and neither has a number of more than 10,000
characters, which would take too long to parse (XML Schema 1.1, 5.4 requires 16 digits).
"""

import math
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal
from functools import lru_cache, partial
from typing import Any, Final

from streamgauge.model.terms import XSD, Term, datatype, quoted, unescaped
from streamgauge.sparql.moments import (
    DATE_TIME_KINDS,
    Duration,
    date_time,
    plain,
    read_duration,
    write_date_time,
    write_duration,
)

INTEGER, DECIMAL, FLOAT, DOUBLE = range(4)
BOOLEAN, STRING, TAGGED, DURATION, MONTHS, SECONDS = range(4, 10)
"""Kinds of values, numbers first in the order of promotion; ``TAGGED`` is a language-tagged string."""
IRI, BLANK, TRIPLE, OTHER, ILL = range(10, 15)
"""``OTHER`` is a literal of an unknown datatype, ``ILL`` an ill-typed literal."""
MOMENTS: Final = {name: 20 + place for place, name in enumerate(DATE_TIME_KINDS)}
"""The kinds of dateTime, date, time, gYear and so on, by the datatype's local name."""

EXACT: Final = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)
"""Decimal arithmetic without rounding."""

LANG_STRING: Final = "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString"
DIR_LANG_STRING: Final = "http://www.w3.org/1999/02/22-rdf-syntax-ns#dirLangString"
MAX_NUMBER_CHARACTERS: Final = 10_000
"""Maximum characters of a number; a longer one has no value here."""
_MAX_CACHED: Final = 200_000
_DURATIONS: Final = {"duration": DURATION, "yearMonthDuration": MONTHS, "dayTimeDuration": SECONDS}
_NAMES: Final = {
    INTEGER: "integer",
    DECIMAL: "decimal",
    FLOAT: "float",
    DOUBLE: "double",
    BOOLEAN: "boolean",
    **{kind: name for name, kind in (_DURATIONS | MOMENTS).items()},
}
INTEGER_RANGES: Final[dict[str, tuple[float, float]]] = {
    "integer": (-math.inf, math.inf),
    "byte": (-(1 << 7), (1 << 7) - 1),
    "short": (-(1 << 15), (1 << 15) - 1),
    "int": (-(1 << 31), (1 << 31) - 1),
    "long": (-(1 << 63), (1 << 63) - 1),
    "unsignedByte": (0, (1 << 8) - 1),
    "unsignedShort": (0, (1 << 16) - 1),
    "unsignedInt": (0, (1 << 32) - 1),
    "unsignedLong": (0, (1 << 64) - 1),
    "positiveInteger": (1, math.inf),
    "negativeInteger": (-math.inf, -1),
    "nonPositiveInteger": (-math.inf, 0),
    "nonNegativeInteger": (0, math.inf),
}
_WHOLE: Final = re.compile(r"[+-]?[0-9]+")
_POINT: Final = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)")
_REAL: Final = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_LEAST_NORMAL: Final = 2.0**-126
"""The least normal xsd:float."""
_BELOW_SINGLE: Final = (1 << 29) - 1
_MIDPOINT: Final = 1 << 28
"""Bits of a 64-bit float below those of a 32-bit one, and their value halfway between two of the latter."""
_SPECIAL: Final = {"INF": math.inf, "+INF": math.inf, "-INF": -math.inf, "NaN": math.nan}
_NUMERIC: Final = frozenset(XSD + name for name in (*INTEGER_RANGES, "decimal", "float", "double"))
_BOOLEANS: Final = {"true": True, "1": True, "false": False, "0": False}


@dataclass(slots=True)
class Value:
    """A value of one of the kinds above.

    ``term`` is the literal it was read from, ``""`` until a computed one is written. ``value`` is an int, Decimal,
    float (rounded to 32 bits for FLOAT), bool, str, (str, tag) for TAGGED, a Moment or a Duration; for other terms it
    is the term itself.
    """

    kind: int
    value: Any
    term: Term = ""


_known: dict[Term, Value] = {}


def read(term: Term) -> Value:
    """The value of a term, cached for at most 200,000 terms."""
    value = _known.get(term)
    if value is None:
        if len(_known) >= _MAX_CACHED:
            _known.clear()
        value = _known[term] = _read(term)
    return value


def _read(term: Term) -> Value:
    first = term[:1]  # a recorded answer may have an empty cell
    if first == '"':
        return _literal(term)
    if first == "_":
        return Value(BLANK, term, term)
    return Value(TRIPLE if term.startswith("<<(") else IRI, term, term)


def _literal(term: Term) -> Value:
    if term[-1] == '"':
        return Value(STRING, unescaped(term[1:-1]), term)
    close = term.rindex('"')
    if term[close + 1] == "@":
        return Value(TAGGED, (unescaped(term[1:close]), term[close + 2 :].lower()), term)
    name = term[close + 4 : -1]
    reader = _READERS.get(name)
    if reader is None:
        return Value(OTHER, term, term)
    value = reader(unescaped(term[1:close])) if close <= MAX_NUMBER_CHARACTERS or name not in _NUMERIC else None
    if value is None:
        return Value(ILL, term, term)
    # The literal is kept, so that a value that is only passed on is written as it was.
    value.term = term
    return value


def typed(text: str, kind: str) -> Term:
    """A literal of the XSD datatype with this local name."""
    return f'"{text}"^^<{XSD}{kind}>'


# Reading: one function per datatype maps a lexical form to its value, None for an ill-typed one.
def whole(text: str) -> int | None:
    """An xsd:integer of any size."""
    if not _WHOLE.fullmatch(text):
        return None
    # Python refuses int() of more than 4,300 digits (sys.set_int_max_str_digits); Decimal has no such limit.
    return int(text) if len(text) < 4000 else int(Decimal(text))


def point(text: str) -> Decimal | None:
    """The value of an exact xsd:decimal."""
    # Without the sign of -0, which xsd:decimal does not have.
    return (Decimal(text) or Decimal(0)) if _POINT.fullmatch(text) else None


def real(text: str) -> float | None:
    """An xsd:double, rounded from the lexical form."""
    if text in _SPECIAL:
        return _SPECIAL[text]
    return float(text) if _REAL.fullmatch(text) else None


def single_real(text: str) -> float | None:
    """An xsd:float, rounded once from the lexical form to 32 bits."""
    near = real(text)
    return near if near is None or not near or not math.isfinite(near) else nearest_single(Decimal(text))


def _reader(kind: int, parse: Callable[[str], Any]) -> Callable[[str], Value | None]:
    def run(text: str) -> Value | None:
        result = parse(text)
        return None if result is None else Value(kind, result)

    return run


def _ranged(least: float, upper: float) -> Callable[[str], int | None]:
    def parse(text: str) -> int | None:
        number = whole(text)
        return number if number is not None and least <= number <= upper else None

    return parse


_READERS: Final[dict[str, Callable[[str], Value | None]]] = {
    XSD + "string": _reader(STRING, lambda text: text),
    XSD + "decimal": _reader(DECIMAL, point),
    XSD + "double": _reader(DOUBLE, real),
    XSD + "float": _reader(FLOAT, single_real),
    XSD + "boolean": _reader(BOOLEAN, _BOOLEANS.get),
    **{XSD + name: _reader(INTEGER, _ranged(*bounds)) for name, bounds in INTEGER_RANGES.items()},
    **{XSD + name: _reader(kind, partial(read_duration, kind=name)) for name, kind in _DURATIONS.items()},
    **{XSD + name: _reader(kind, partial(date_time, kind=name)) for name, kind in MOMENTS.items()},
}


def from_text(text: str, name: str) -> Value | None:
    """The value of a lexical form in the XSD datatype of this local name, without a term."""
    return _READERS[XSD + name](text) if len(text) <= MAX_NUMBER_CHARACTERS or XSD + name not in _NUMERIC else None


def single(value: float) -> float:
    """A 64-bit float rounded to 32 bits, an infinity beyond the range."""
    try:
        rounded: float = struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return rounded


def nearest_double(exact: int | Decimal) -> float:
    """The nearest 64-bit float, an infinity beyond the range."""
    return _nearest_double(exact) if exact else float(exact)  # 0 and -0 are one key of a cache


@lru_cache(maxsize=4096)
def _nearest_double(exact: int | Decimal) -> float:
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def nearest_single(exact: int | Decimal) -> float:
    """The nearest 32-bit float, rounded once."""
    return _nearest_single(exact) if exact else float(exact)


@lru_cache(maxsize=4096)
def _nearest_single(exact: int | Decimal) -> float:
    near = nearest_double(exact)
    return single_of(near, (exact > near) - (exact < near))


def single_of(near: float, error: int) -> float:
    """The 32-bit float nearest to a number of which ``near`` is the nearest 64-bit float.

    ``error`` is the sign of their difference. Rounding twice would err at the midpoint of two 32-bit floats, so the
    first result is rounded to odd (Boldo and Melquiond, 2008): to the neighbour whose last bit is set.
    """
    if error and not struct.unpack("q", struct.pack("d", near))[0] & 1:
        near = math.nextafter(near, math.copysign(math.inf, error))
    return single(near)


# Writing: the form of computed values is short, has no exponent, and reads back as the same value.
def written(value: Value) -> Term:
    """The term that a value was read from, else its canonical literal."""
    if not value.term:
        value.term = _write(value)
    return value.term


def _write(value: Value) -> Term:
    kind, content = value.kind, value.value
    if kind == STRING:
        return quoted(content)
    if kind == TAGGED:
        return f"{quoted(content[0])}@{content[1]}"
    return f'"{text_of(kind, content)}"^^<{XSD}{_NAMES[kind]}>'


def text_of(kind: int, content: Any) -> str:
    """The lexical form of a computed number, boolean, date, time or duration."""
    if kind == INTEGER:
        return digits(content)
    if kind == DECIMAL:
        return plain(content)
    if kind == BOOLEAN:
        return "true" if content else "false"
    if kind in (FLOAT, DOUBLE):
        return _real_text(content, kind)
    if isinstance(content, Duration):
        return write_duration(content, _NAMES[kind])
    return write_date_time(content, _NAMES[kind])


def digits(number: int) -> str:
    """The decimal digits of an integer of any size."""
    # str() raises ValueError for more than 4,300 digits (sys.set_int_max_str_digits).
    return str(number) if -(1 << 4096) < number < 1 << 4096 else f"{Decimal(number):f}"


def _real_text(number: float, kind: int) -> str:
    if not math.isfinite(number):
        return "NaN" if math.isnan(number) else "INF" if number > 0 else "-INF"
    text = shortest(number, kind)
    if "e" not in text:
        return text.removesuffix(".0")
    return plain(Decimal(text))


def shortest(number: float, kind: int) -> str:
    """The fewest digits that read back as the same finite number, in Python's notation."""
    if kind == DOUBLE:
        return repr(number)
    # Any six digits survive a 32-bit float, and nine always tell two of them apart.
    for length in (6, 7, 8):
        text = f"{number:.{length}g}"
        if _reads_back(text, number):
            return text
    return f"{number:.9g}"


def _reads_back(text: str, number: float) -> bool:
    """Whether an xsd:float is the nearest one to a decimal.

    Rounding to 64 bits first is exact enough unless it gives the midpoint of two normal 32-bit floats.
    """
    near = float(text)
    if abs(near) >= _LEAST_NORMAL and struct.unpack("q", struct.pack("d", near))[0] & _BELOW_SINGLE != _MIDPOINT:
        return single(near) == number
    return nearest_single(Decimal(text)) == number


def datatype_of(value: Value) -> str | None:
    """The datatype IRI of a literal; ``None`` for another term."""
    if value.kind in (IRI, BLANK, TRIPLE):
        return None
    if value.kind == TAGGED:
        return DIR_LANG_STRING if "--" in value.value[1] else LANG_STRING
    if not value.term and value.kind in _NAMES:
        return XSD + _NAMES[value.kind]
    return datatype(written(value))


TRUE: Final = Value(BOOLEAN, True, typed("true", "boolean"))
FALSE: Final = Value(BOOLEAN, False, typed("false", "boolean"))
