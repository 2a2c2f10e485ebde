"""Terms as the values of Python that they stand for; the standard library only."""

import math
import re
from datetime import date, datetime, time
from decimal import Decimal, InvalidOperation
from typing import Final, TypeAlias

from streamgauge.model.terms import XSD, Term, datatype, is_iri, is_literal

Native: TypeAlias = bool | int | float | Decimal | datetime | date | time | str
"""The Python value of a term."""

_INTEGERS: Final = frozenset(
    XSD + name
    for name in (
        *("integer", "long", "int", "short", "byte", "nonNegativeInteger", "positiveInteger", "nonPositiveInteger"),
        *("negativeInteger", "unsignedLong", "unsignedInt", "unsignedShort", "unsignedByte"),
    )
)
_FLOATS: Final = {"INF": math.inf, "+INF": math.inf, "-INF": -math.inf, "NaN": math.nan}
_ESCAPE: Final = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.DOTALL)
_CONTROL: Final = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f"}


def native(term: Term | None) -> Native | None:
    """The value of a term: int, Decimal, float, bool, datetime, date, time or str; ``None`` for an unbound variable.

    IRIs are text without brackets, blank nodes as they are; a literal of another datatype, or one without a value that
    Python has (the year 12000), is its lexical form; a language is left out (``rows()`` has the terms).
    """
    if term is None or not is_literal(term):
        return term[1:-1] if term is not None and is_iri(term) else term
    text = lexical_form(term)
    kind = datatype(term)
    try:
        return _value(text, kind)
    except (ValueError, InvalidOperation, OverflowError):
        return text


def lexical_form(literal: Term) -> str:
    """The characters of a literal, without quotes, escapes, language and datatype."""
    text = literal[1 : literal.rindex('"')]

    def character(found: re.Match[str]) -> str:
        code = found[1] or found[2]
        return chr(int(code, 16)) if code else _CONTROL.get(found[3], found[3])

    return _ESCAPE.sub(character, text) if "\\" in text else text


def _value(text: str, kind: str | None) -> Native:
    if kind in _INTEGERS:
        return int(text)
    if kind in (XSD + "double", XSD + "float"):
        return _FLOATS[text] if text in _FLOATS else float(text)
    if kind == XSD + "decimal":
        return Decimal(text)
    if kind == XSD + "boolean" and text in ("true", "1", "false", "0"):
        return text in ("true", "1")
    if kind in (XSD + "dateTime", XSD + "dateTimeStamp"):
        return datetime.fromisoformat(text)
    if kind == XSD + "date":
        return date.fromisoformat(text)
    if kind == XSD + "time":
        return time.fromisoformat(text)
    return text
