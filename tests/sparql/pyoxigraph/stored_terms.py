"""Literals as pyoxigraph stores them, and what of their value matters to the question whether it answers exactly.

pyoxigraph's store keeps values, not lexical forms: ``"76.0"^^xsd:float`` comes back as ``"76"``, ``"1"^^xsd:int`` as an
xsd:integer, ``"a"@EN`` as ``"a"@en``. Numbers beyond 64 bits, or 18 digits after the point, are no numbers there.
"""

import re
import struct
from collections.abc import Collection, Iterable, Mapping, Set
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import Any, Final, TypeAlias

import pyoxigraph as ox

from streamgauge.model import algebra as al
from streamgauge.model.terms import XSD, Term, datatype, is_literal
from streamgauge.sparql.comparison import value_key
from streamgauge.sparql.values import read, single
from tests.sparql.pyoxigraph.gaps import QueryTraits, traits

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
    results = {} if len(missing) == len(literals) else {term: _known[term] for term in literals if term in _known}
    if len(_known) + len(missing) > LIMIT:
        _known.clear()
    for start in range(0, len(missing), _CHUNK):
        chunk = missing[start : start + _CHUNK]
        for term, form in zip(chunk, _forms(chunk), strict=True):
            results[term] = _known[term] = _described(term, form)
    return results


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
    results: list[Term | None] = [None] * len(literals)
    for quad in store:
        results[int(str(quad.subject)[7:-1])] = str(quad.object)
    return results


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
            return StoredLiteral(form, LiteralKind.FLOATING, max(0, int(abs(float(text))).bit_length()))
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


def _moment(text: str, zone: str | None) -> LiteralKind:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return LiteralKind.OTHER
    if zone is None:
        return LiteralKind.LOCAL
    return LiteralKind.ZONED if zone == "Z" or zone[1:] <= "14:00" else LiteralKind.OTHER


_ORDERED: Final = frozenset(
    {LiteralKind.INTEGER, LiteralKind.DECIMAL, LiteralKind.FLOATING, LiteralKind.ZONED, LiteralKind.LOCAL}
)
"""Kinds of which two different terms may have equal values that pyoxigraph keeps apart."""


Forms: TypeAlias = Mapping[Term, Term]
"""Literals of a content by their stored form, as far as the two differ."""
_BOUNDED: Final = 62
_EXPONENT: Final = 1_000
"""Bits of the largest finite xsd:double are 1,024; infinities and NaN compare otherwise in pyoxigraph."""
_DIGITS: Final = 18
_PROMOTED: Final = 53


def _value(term: Term) -> tuple[Any, ...]:
    """A key that is the same for equal values: of numbers as xsd:float, of dateTimes by their instant."""
    value = read(term)
    if isinstance(value.value, int | float | Decimal):
        return "number", single(float(value.value))
    return value_key(value)


@dataclass(slots=True)
class _Seen:
    """The literals that have been looked at, and which of them matter to the choice."""

    all: set[Term]
    refused: set[Term]
    zoned: set[Term]
    local: set[Term]
    divided: set[Term]
    fractions: set[Term]
    floating: set[Term]
    first: dict[Term, Term]
    clashing: set[Term]
    raw: dict[Term, Term]
    equals: dict[tuple[Any, ...], set[Term]]
    twins: set[Term]

    @classmethod
    def nothing(cls) -> "_Seen":
        return cls(set(), set(), set(), set(), set(), set(), set(), {}, set(), {}, {}, set())


class ContentGaps:
    """Which contents pyoxigraph is asked about, for one query of a shape that it is asked for.

    Literals are looked at once; a content costs one difference of sets and a few tests for disjoint ones.
    """

    def __init__(self, form: al.QueryForm) -> None:
        self._traits: QueryTraits = traits(form)
        self._constants = frozenset(self._traits.constants)
        self._seen = _Seen.nothing()

    @property
    def plain_columns(self) -> tuple[bool, ...]:
        """Which columns of the answer hold terms of the content or the query as they are, not computed ones."""
        return self._traits.plain_columns

    @property
    def compares(self) -> bool:
        """Whether the answer depends on values."""
        return self._traits.compares

    def forms(self, literals: Set[Term]) -> Forms | None:
        """The literals to put back in pyoxigraph's answer over these literals; ``None``: do not ask pyoxigraph."""
        if len(self._seen.all) > LIMIT:
            self._seen = _Seen.nothing()
        fresh = literals - self._seen.all
        if not self._seen.all:
            fresh |= self._constants
        if fresh:
            self._learn(fresh)
        if self._differs(literals):
            return None
        return self._forms(literals)

    def _learn(self, fresh: Set[Term]) -> None:
        seen = self._seen
        seen.all |= fresh
        for term, known in stored_literals(sorted(fresh)).items():
            if self._refuses(term, known):
                seen.refused.add(term)
                continue
            assert known.form is not None
            other = seen.first.setdefault(known.form, term)
            if other != term:
                seen.clashing |= {other, term}
            elif known.form != term:
                seen.raw[known.form] = term
            self._sort(term, known)
            if self._traits.extremes and known.kind in _ORDERED:
                self._pair(term)

    def _pair(self, term: Term) -> None:
        """Note literals of equal values: MIN and MAX give any of them (18.5.1.4 leaves open which)."""
        alike = self._seen.equals.setdefault(_value(term), set())
        alike.add(term)
        if len(alike) > 1:
            self._seen.twins |= alike

    def _sort(self, term: Term, known: StoredLiteral) -> None:
        seen = self._seen
        match known.kind:
            case LiteralKind.ZONED:
                seen.zoned.add(term)
            case LiteralKind.LOCAL:
                seen.local.add(term)
            case LiteralKind.FLOATING:
                seen.floating.add(term)
            case LiteralKind.INTEGER:
                seen.divided.add(term)
            case LiteralKind.DECIMAL:
                seen.divided.add(term)
                if known.digits:
                    seen.fractions.add(term)

    def _refuses(self, term: Term, known: StoredLiteral) -> bool:
        """Whether the literal alone decides that pyoxigraph is not asked."""
        has = self._traits
        if known.form is None or (known.form != term and has.reads_forms):
            return True
        if has.reads_datatypes and datatype(known.form) != datatype(term):
            return True
        if not has.compares:
            return False
        if known.kind is LiteralKind.OTHER or (known.kind is LiteralKind.INTEGER and known.bits > _PROMOTED):
            return True
        return (
            has.bits(known.bits) > _BOUNDED
            or has.magnitude(known.bits) > _EXPONENT
            or has.digits(known.digits) > _DIGITS
        )

    def _differs(self, literals: Set[Term]) -> bool:
        """Whether the literals together decide that pyoxigraph is not asked.

        A constant that the query only compares with is neither averaged nor added up, unless the content has it too.
        """
        seen, has = self._seen, self._traits
        if _meets(seen.refused, literals, self._constants):
            return True
        if not has.compares:
            return False
        if has.extremes and self._has_twins(literals):
            return True
        if has.averages and _meets(seen.divided, literals, has.inline):
            return True
        if _meets(seen.zoned, literals, self._constants) and _meets(seen.local, literals, self._constants):
            return True
        if not has.computes or not _meets(seen.floating, literals, self._constants):
            return False
        return _meets(seen.fractions, literals, has.inline | has.computed_constants)

    def _has_twins(self, literals: Set[Term]) -> bool:
        """Whether two of the literals, or of the query's, have equal values and are not the same term."""
        here = self._seen.twins & (literals | self._constants) if self._seen.twins else ()
        return len({_value(term) for term in here}) < len(here)

    def _forms(self, literals: Set[Term]) -> Forms | None:
        """The map from stored forms to literals, ``None`` when one stored form stands for two."""
        seen = self._seen
        if not seen.clashing:
            return seen.raw
        here = seen.clashing & (literals | self._constants)
        if not here:
            return seen.raw
        back: dict[Term, Term] = {}
        for term, known in stored_literals(here).items():
            assert known.form is not None
            if back.setdefault(known.form, term) != term:
                return None
        return {**seen.raw, **back}


def _meets(seen: Set[Term], literals: Set[Term], beside: Set[Term]) -> bool:
    """Whether some of the literals that have been seen are in a content or beside it."""
    return bool(seen) and not (seen.isdisjoint(literals) and seen.isdisjoint(beside))


def literals_of(triples: Iterable[tuple[Term, Term, Term]]) -> set[Term]:
    """The literals of some triples."""
    return {item for _, _, item in triples if is_literal(item)}
