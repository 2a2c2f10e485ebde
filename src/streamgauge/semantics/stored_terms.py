"""Literals as pyoxigraph stores them, and what of their value matters to the question whether it answers exactly.

pyoxigraph's store keeps values, not lexical forms: ``"76.0"^^xsd:float`` comes back as ``"76"``, ``"1"^^xsd:int`` as an
xsd:integer, ``"a"@EN`` as ``"a"@en``. Numbers beyond 64 bits, or 18 digits after the point, are no numbers there.
"""

import re
import struct
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from fractions import Fraction
from typing import Final

import pyoxigraph as ox

from streamgauge.model.terms import XSD, Term, datatype

LIMIT: Final = 200_000
_CHUNK: Final = 50_000
_PLAIN: Final = re.compile(r'"[^"\\\n\r]*"')
_INTEGER: Final = re.compile(rf'"(?:0|-?[1-9]\d{{0,17}})"\^\^<{re.escape(XSD)}integer>', re.ASCII)
_NUMBER: Final = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)", re.ASCII)
_FLOATING: Final = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_MOMENT: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?(Z|[+-]\d\d:\d\d)?")
"""``_moment`` refuses digits beyond ASCII."""


class LiteralKind(Enum):
    """Literals by how pyoxigraph computes with them.

    ``FLOATING`` is xsd:float or xsd:double, ``ZONED`` and ``LOCAL`` are dateTimes with and without a zone. ``OTHER`` is
    every literal whose use is not known to be exact.
    """

    INTEGER, DECIMAL, FLOATING, STRING, BOOLEAN, ZONED, LOCAL, OTHER = range(8)


@dataclass(frozen=True, slots=True)
class StoredLiteral:
    """A literal: its stored form (``None`` when pyoxigraph takes no such term), kind and size.

    ``bits`` is how many the integral part takes, ``digits`` how many stand after the point (without final zeros).
    """

    form: Term | None
    kind: LiteralKind
    bits: int = 0
    digits: int = 0


_known: dict[Term, StoredLiteral] = {}


def stored_literals(literals: Collection[Term]) -> dict[Term, StoredLiteral]:
    """The description of each literal; at most ``LIMIT`` of them are remembered from call to call."""
    missing = [term for term in literals if term not in _known]
    found = {} if len(missing) == len(literals) else {term: _known[term] for term in literals if term in _known}
    if len(_known) + len(missing) > LIMIT:
        _known.clear()
    for start in range(0, len(missing), _CHUNK):
        chunk = missing[start : start + _CHUNK]
        for term, form in zip(chunk, _forms(chunk), strict=True):
            found[term] = _known[term] = _described(term, form)
    return found


def _forms(literals: list[Term]) -> list[Term | None]:
    """The stored forms, by one store for all that are not evident."""
    forms: list[Term | None] = [
        term if _PLAIN.fullmatch(term) or _INTEGER.fullmatch(term) else None for term in literals
    ]
    open_places = [place for place, form in enumerate(forms) if form is None]
    for place, form in zip(open_places, _round_trips([literals[place] for place in open_places]), strict=True):
        forms[place] = form
    return forms


def _round_trips(literals: list[Term]) -> Iterable[Term | None]:
    if not literals:
        return ()
    store = ox.Store()
    lines = "\n".join(f"<urn:n:{number}> <urn:p> {term} ." for number, term in enumerate(literals))
    try:
        store.bulk_extend(ox.parse(lines.encode(), format=ox.RdfFormat.N_TRIPLES))
    except (SyntaxError, ValueError):
        if len(literals) == 1:
            return (None,)
        half = len(literals) // 2
        return (*_round_trips(literals[:half]), *_round_trips(literals[half:]))
    found: list[Term | None] = [None] * len(literals)
    for quad in store:
        found[int(str(quad.subject)[7:-1])] = str(quad.object)
    return found


def _described(term: Term, form: Term | None) -> StoredLiteral:
    kind = datatype(term)
    if kind is None or form is None or not kind.startswith(XSD):
        return StoredLiteral(form, LiteralKind.OTHER)
    text = term[1 : term.rfind('"')]
    match kind.removeprefix(XSD):
        case "string":
            return StoredLiteral(form, LiteralKind.STRING)
        case "integer" if _NUMBER.fullmatch(text) and "." not in text:
            return _number(form, LiteralKind.INTEGER, text)
        case "decimal" if _NUMBER.fullmatch(text):
            return _number(form, LiteralKind.DECIMAL, text)
        case "float" | "double" if _FLOATING.fullmatch(text) and "INF" not in form:
            return StoredLiteral(form, LiteralKind.FLOATING, _exponent(float(text)))
        case "boolean" if text in ("true", "false", "1", "0"):
            return StoredLiteral(form, LiteralKind.BOOLEAN)
        case "dateTime" if moment := _MOMENT.fullmatch(text):
            return StoredLiteral(form, _moment(text, moment.group(1)))
        case _:
            return StoredLiteral(form, LiteralKind.OTHER)


def _number(form: Term, kind: LiteralKind, text: str) -> StoredLiteral:
    """An integer or decimal; one that pyoxigraph does not count with, or promotes inexactly, is OTHER."""
    whole, _, part = text.lstrip("+-").partition(".")
    part = part.rstrip("0")
    if len(whole) > 40 or len(part) > 18:
        return StoredLiteral(form, LiteralKind.OTHER)
    bits = int(whole or "0").bit_length()
    if bits > 62 or (part and not _promotes_exactly(Fraction(text))):
        return StoredLiteral(form, LiteralKind.OTHER)
    return StoredLiteral(form, kind, bits, len(part))


def _promotes_exactly(value: Fraction) -> bool:
    """Whether pyoxigraph's way from decimal over xsd:double to xsd:float gives the numbers nearest to the value.

    The value has a fraction, of at most 18 digits.
    It divides the digits by a power of ten: correctly rounded while both have at most 53 bits. The second rounding goes
    wrong only from a double that lies in the middle between two floats.
    """
    digits = str(abs(int(value * 10**18))).rstrip("0")
    if int(digits).bit_length() > 53:
        return False
    (pattern,) = struct.unpack("<q", struct.pack("<d", float(value)))
    return bool(pattern & 0x1FFFFFFF != 0x10000000) or Fraction(float(value)) == value


def _exponent(value: float) -> int:
    return max(0, int(abs(value)).bit_length())


def _moment(text: str, zone: str | None) -> LiteralKind:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return LiteralKind.OTHER
    if zone is None:
        return LiteralKind.LOCAL
    return LiteralKind.ZONED if zone == "Z" or zone[1:] <= "14:00" else LiteralKind.OTHER
