"""Built-in functions of SPARQL 1.1 (17.4) on values; an error is ``None``.

Forms that do not evaluate all of their arguments (IF, COALESCE, BOUND, IN, &&, ||) are in ``expression``.
"""

import hashlib
import math
import re
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any, Final
from urllib.parse import quote

from streamgauge.model.terms import XSD, lexical, quoted, triple_parts, triple_term
from streamgauge.sparql import moments
from streamgauge.sparql.arithmetic import CASTS, OPERATORS, negated, unsigned
from streamgauge.sparql.comparison import equal_values, less_values, same_term
from streamgauge.sparql.moments import Duration, Moment
from streamgauge.sparql.regular import PatternError, pattern
from streamgauge.sparql.values import (
    BLANK,
    BOOLEAN,
    DECIMAL,
    DOUBLE,
    EXACT,
    FALSE,
    FLOAT,
    INTEGER,
    IRI,
    LANG_STRING,
    MOMENTS,
    OTHER,
    SECONDS,
    STRING,
    TAGGED,
    TRIPLE,
    TRUE,
    Value,
    datatype_of,
    read,
    written,
)

Function = Callable[..., Value | None]
PATTERN: Final = ".PATTERN"
"""The regular expression of REGEX or REPLACE as a function of its text and flags, under a name that no query has."""
_ABSOLUTE: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\x00-\x20<>\"{}|^`\\]*")
_TAG: Final = re.compile(r"[A-Za-z]{1,8}(-[A-Za-z0-9]{1,8})*")
_TEXTS: Final = frozenset({STRING, TAGGED})
_DATED: Final = {
    "year": ("dateTime", "dateTimeStamp", "date", "gYearMonth", "gYear"),
    "month": ("dateTime", "dateTimeStamp", "date", "gYearMonth", "gMonthDay", "gMonth"),
    "day": ("dateTime", "dateTimeStamp", "date", "gMonthDay", "gDay"),
    "hour": ("dateTime", "dateTimeStamp", "time"),
    "minute": ("dateTime", "dateTimeStamp", "time"),
    "second": ("dateTime", "dateTimeStamp", "time"),
}
_ZONE: Final = re.compile(r"(?:Z|[+-][0-9]{2}:[0-9]{2})$")


_BOOLEANS: Final = {None: None, False: FALSE, True: TRUE}
_NEGATED: Final = {None: None, False: TRUE, True: FALSE}


def boolean(answer: bool | None) -> Value | None:
    """An xsd:boolean, or the error."""
    return _BOOLEANS[answer]


def effective(value: Value | None) -> bool | None:
    """The effective boolean value (17.2.2) of booleans, numbers and plain strings; ``None``, an error, for others."""
    if value is None:
        return None
    kind = value.kind
    if kind == BOOLEAN:
        return bool(value.value)
    if kind <= DOUBLE:
        return bool(value.value) and value.value == value.value
    if kind == STRING:
        return bool(value.value)
    return None


# Terms (17.4.2)
def _is(*kinds: int) -> Function:
    return lambda value: boolean(value.kind in kinds)


def _str(value: Value) -> Value | None:
    """STR: an IRI's characters, or a literal's lexical form unchanged."""
    kind = value.kind
    if kind == STRING:
        return value
    if kind == IRI:
        return Value(STRING, value.value[1:-1])
    return None if kind in (BLANK, TRIPLE) else Value(STRING, lexical(written(value)))


def _tag_part(place: int) -> Function:
    """LANG (0) or LANGDIR (2): the language or the base direction of a literal, "" without one (SPARQL 1.2, 17.4.2)."""

    def run(value: Value) -> Value | None:
        if value.kind in (IRI, BLANK, TRIPLE):
            return None
        return Value(STRING, value.value[1].partition("--")[place] if value.kind == TAGGED else "")

    return run


def _strlangdir(form: Value, tag: Value, direction: Value) -> Value | None:
    tagged = _strlang(form, tag)
    if tagged is None or direction.kind != STRING or direction.value not in ("ltr", "rtl"):
        return None
    return Value(TAGGED, (form.value, f"{tagged.value[1]}--{direction.value}"))


def _triple(subject: Value, predicate: Value, item: Value) -> Value | None:
    """TRIPLE: a triple term; an error for terms that are not allowed at their positions."""
    if subject.kind not in (IRI, BLANK) or predicate.kind != IRI:
        return None
    return read(triple_term((written(subject), written(predicate), written(item))))


def _part(place: int) -> Function:
    """SUBJECT, PREDICATE or OBJECT of a triple term."""
    return lambda value: read(triple_parts(value.value)[place]) if value.kind == TRIPLE else None


def _datatype(value: Value) -> Value | None:
    datatype = datatype_of(value)
    return None if datatype is None else read(f"<{datatype}>")


def _iri(value: Value) -> Value | None:
    """IRI of an absolute IRI; relative constants were resolved by the parser, other relative IRIs are an error."""
    if value.kind == IRI:
        return value
    return read(f"<{value.value}>") if value.kind == STRING and _ABSOLUTE.fullmatch(value.value) else None


def _strdt(form: Value, name: Value) -> Value | None:
    if form.kind != STRING or name.kind != IRI or name.value == f"<{LANG_STRING}>":
        return None
    return form if name.value == f"<{XSD}string>" else read(f"{quoted(form.value)}^^{name.value}")


def _strlang(form: Value, tag: Value) -> Value | None:
    if form.kind != STRING or tag.kind != STRING or not _TAG.fullmatch(tag.value):
        return None
    return Value(TAGGED, (form.value, tag.value.lower()))


# Strings (17.4.3)
def _characters(value: Value) -> str | None:
    """The characters of a string with or without a language tag."""
    return value.value if value.kind == STRING else value.value[0] if value.kind == TAGGED else None


def _like(value: Value, characters: str) -> Value:
    """Characters with the language tag of a string."""
    return Value(STRING, characters) if value.kind == STRING else Value(TAGGED, (characters, value.value[1]))


def _on_text(result: Callable[[Value, str], Value | None]) -> Function:
    """A function of a string, with or without a language tag, and of its characters."""

    def run(value: Value) -> Value | None:
        characters = _characters(value)
        return None if characters is None else result(value, characters)

    return run


def _compatible(one: Value, other: Value) -> tuple[str, str] | None:
    """The characters of two argument-compatible strings (17.4.3.1.2); ``None`` if they are not compatible."""
    if one.kind not in _TEXTS or other.kind not in _TEXTS:
        return None
    if other.kind == TAGGED and (one.kind != TAGGED or one.value[1] != other.value[1]):
        return None
    return str(_characters(one)), str(_characters(other))


def _on_pair(test: Callable[[str, str], bool]) -> Function:
    def run(one: Value, other: Value) -> Value | None:
        pair = _compatible(one, other)
        return None if pair is None else boolean(test(*pair))

    return run


def _beside(place: int) -> Function:
    """STRBEFORE (0) or STRAFTER (2)."""

    def run(one: Value, other: Value) -> Value | None:
        pair = _compatible(one, other)
        if pair is None:
            return None
        # Python refuses to part at the empty string, which SPARQL finds at the beginning.
        parts = pair[0].partition(pair[1]) if pair[1] else ("", "found", pair[0])
        return _like(one, parts[place]) if parts[1] else Value(STRING, "")

    return run


def _substr(value: Value, start: Value, length: Value | None = None) -> Value | None:
    """SUBSTR: ``length`` characters from ``start`` (1-based); both have to be integers (17.4.3.3)."""
    characters = _characters(value)
    if characters is None or start.kind != INTEGER or (length is not None and length.kind != INTEGER):
        return None
    end = len(characters) if length is None else start.value - 1 + length.value
    return _like(value, characters[max(start.value - 1, 0) : max(end, 0)])


def _concat(*values: Value) -> Value | None:
    """CONCAT, with a language tag if all arguments have the same (17.4.3.12)."""
    parts = [_characters(value) for value in values]
    joined = "".join(part for part in parts if part is not None)
    if None in parts:
        return None
    tags = {value.value[1] if value.kind == TAGGED else None for value in values}
    tag = tags.pop() if len(tags) == 1 else None
    return Value(STRING, joined) if tag is None else Value(TAGGED, (joined, tag))


def _langmatches(tag: Value, wanted: Value) -> Value | None:
    """LANGMATCHES: basic filtering (RFC 4647, 3.3.1)."""
    if tag.kind != STRING or wanted.kind != STRING:
        return None
    language, within = tag.value.lower(), wanted.value.lower()
    return boolean(bool(language) if within == "*" else f"{language}-".startswith(f"{within}-") and bool(language))


def _pattern(source: Value, flags: Value | None = None) -> Value | None:
    """The compiled regular expression of REGEX or REPLACE; an error unless it is a valid pattern of XPath."""
    if source.kind != STRING or (flags is not None and flags.kind != STRING):
        return None
    try:
        return Value(OTHER, pattern(source.value, "" if flags is None else flags.value))
    except PatternError:
        return None


def _regex(value: Value, expression: Value) -> Value | None:
    characters = _characters(value)
    try:
        return None if characters is None else boolean(expression.value.found(characters))
    except PatternError:
        return None


def _replace(value: Value, expression: Value, replacement: Value) -> Value | None:
    characters = _characters(value)
    if characters is None or replacement.kind != STRING:
        return None
    try:
        return _like(value, expression.value.replaced(characters, replacement.value))
    except PatternError:
        return None


def _hash(name: str) -> Function:
    def run(value: Value) -> Value | None:
        if value.kind != STRING:
            return None
        # Otherwise a Python in FIPS mode refuses MD5.
        return Value(STRING, hashlib.new(name, value.value.encode(), usedforsecurity=False).hexdigest())

    return run


# Numbers (17.4.4)
def _abs(value: Value) -> Value | None:
    if value.kind > DOUBLE:
        return None
    return Value(value.kind, value.value.copy_abs() if value.kind == DECIMAL else abs(value.value))


def _rounding(exact: Callable[[Decimal], Decimal], real: Callable[[float], int]) -> Function:
    """CEIL, FLOOR or ROUND: a number of the same datatype; -0.0 keeps its sign."""

    def run(value: Value) -> Value | None:
        kind, number = value.kind, value.value
        if kind > DOUBLE:
            return None
        if kind == INTEGER or (kind in (FLOAT, DOUBLE) and not math.isfinite(number)):
            return Value(kind, number)
        if kind == DECIMAL:
            # -0.5 is rounded to -0, which xsd:decimal does not have.
            return Value(DECIMAL, exact(number) or Decimal(0))
        # math.ceil and math.floor return integers, which have no -0.
        return Value(kind, math.copysign(float(real(number)), number))

    return run


def _half_up(number: float) -> int:
    """The nearest integer, with ties rounded up: -2.5 to -2 (F&O 3.1, 4.4.4)."""
    below = math.floor(number)
    # Not floor(number + 0.5): for 0.49999999999999994 that sum is rounded to 1.
    return below + (number - below >= 0.5)


def _whole(number: Decimal) -> Decimal:
    return number.to_integral_value(ROUND_FLOOR, EXACT)


# Dates and times (17.4.5)
def _field(name: str) -> Function:
    kinds = frozenset(MOMENTS[kind] for kind in _DATED[name])

    def run(value: Value) -> Value | None:
        if value.kind not in kinds:
            return None
        field: Any = getattr(moments.fields(value.value), name)
        return Value(DECIMAL if name == "second" else INTEGER, field)

    return run


def _timezone(value: Value) -> Value | None:
    """TIMEZONE: a dayTimeDuration; an error without a time zone."""
    if not isinstance(value.value, Moment) or value.value.zone is None:
        return None
    return Value(SECONDS, Duration(0, Decimal(value.value.zone * 60)))


def _tz(value: Value) -> Value | None:
    """TZ: the zone as written, "" without one."""
    if not isinstance(value.value, Moment):
        return None
    match = _ZONE.search(lexical(written(value))) if value.value.zone is not None else None
    return Value(STRING, match.group() if match else "")


def _at_most(one: Value, other: Value) -> bool | None:
    """``<=`` as less or equal (17.3), not as the negation of ``>``: it is false for NaN."""
    less = less_values(one, other)
    return less if less or less is None else equal_values(one, other)


COMPARISONS: Final[dict[str, Function]] = {
    "=": lambda one, other: _BOOLEANS[equal_values(one, other)],
    "!=": lambda one, other: _NEGATED[equal_values(one, other)],
    "<": lambda one, other: _BOOLEANS[less_values(one, other)],
    ">": lambda one, other: _BOOLEANS[less_values(other, one)],
    "<=": lambda one, other: _BOOLEANS[_at_most(one, other)],
    ">=": lambda one, other: _BOOLEANS[_at_most(other, one)],
}

ONE: Final[dict[str, Function]] = {
    "+": unsigned,
    "-": negated,
    "STR": _str,
    "LANG": _tag_part(0),
    "LANGDIR": _tag_part(2),
    "HASLANG": _is(TAGGED),
    "HASLANGDIR": lambda value: boolean(value.kind == TAGGED and "--" in value.value[1]),
    "DATATYPE": _datatype,
    "ISTRIPLE": _is(TRIPLE),
    "SUBJECT": _part(0),
    "PREDICATE": _part(1),
    "OBJECT": _part(2),
    "IRI": _iri,
    "ISIRI": _is(IRI),
    "ISBLANK": _is(BLANK),
    "ISLITERAL": lambda value: boolean(value.kind not in (IRI, BLANK, TRIPLE)),
    "ISNUMERIC": _is(INTEGER, DECIMAL, FLOAT, DOUBLE),
    "STRLEN": _on_text(lambda _value, text: Value(INTEGER, len(text))),
    "UCASE": _on_text(lambda value, text: _like(value, text.upper())),
    "LCASE": _on_text(lambda value, text: _like(value, text.lower())),
    # The unreserved marks of RFC 3986; by default ``quote`` would also leave slashes.
    "ENCODE_FOR_URI": _on_text(lambda _value, text: Value(STRING, quote(text, safe="-_.~", errors="replace"))),
    **{name: _hash(name) for name in ("MD5", "SHA1", "SHA256", "SHA384", "SHA512")},
    "ABS": _abs,
    "CEIL": _rounding(lambda number: number.to_integral_value(ROUND_CEILING, EXACT), math.ceil),
    "FLOOR": _rounding(_whole, math.floor),
    "ROUND": _rounding(lambda number: _whole(EXACT.add(number, Decimal("0.5"))), _half_up),
    "YEAR": _field("year"),
    "MONTH": _field("month"),
    "DAY": _field("day"),
    "HOURS": _field("hour"),
    "MINUTES": _field("minute"),
    "SECONDS": _field("second"),
    "TIMEZONE": _timezone,
    "TZ": _tz,
    **CASTS,
}
TWO: Final[dict[str, Function]] = {
    **COMPARISONS,
    **OPERATORS,
    "SAMETERM": lambda one, other: boolean(same_term(written(one), written(other))),
    "STRDT": _strdt,
    "STRLANG": _strlang,
    "STRSTARTS": _on_pair(str.startswith),
    "STRENDS": _on_pair(str.endswith),
    "CONTAINS": _on_pair(str.__contains__),
    "STRBEFORE": _beside(0),
    "STRAFTER": _beside(2),
    "LANGMATCHES": _langmatches,
    "REGEX": _regex,
}
ANY: Final[dict[str, Function]] = {
    "TRIPLE": _triple,
    "STRLANGDIR": _strlangdir,
    "CONCAT": _concat,
    "SUBSTR": _substr,
    "REPLACE": _replace,
    PATTERN: _pattern,
}
"""Functions by name, with any number of arguments; ``ONE`` and ``TWO`` have those of one and two arguments."""
