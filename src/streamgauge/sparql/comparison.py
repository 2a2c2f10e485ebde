"""Equality and order of terms (SPARQL 1.1, 15.1, 17.3 and 17.4.1.7; F&O 3.1, sections 4.3, 5.3, 7.3, 8.2 and 9.4).

Values of known datatypes with disjoint value spaces are not equal, and a language-tagged string is not equal to a
literal without a tag. If a datatype is unknown or a literal ill-typed, only the same term is known to be equal;
everything else is an error (``None``).
"""

import math
from collections.abc import Sequence
from decimal import Decimal
from itertools import pairwise
from typing import Any, Final

from streamgauge.model.terms import Term, is_iri, is_triple, triple_parts
from streamgauge.sparql import moments
from streamgauge.sparql.values import (
    BLANK,
    BOOLEAN,
    DECIMAL,
    DOUBLE,
    DURATION,
    FLOAT,
    ILL,
    INTEGER,
    IRI,
    MOMENTS,
    MONTHS,
    OTHER,
    SECONDS,
    STRING,
    TAGGED,
    TRIPLE,
    Value,
    nearest_double,
    nearest_single,
    read,
    written,
)

_NO_LITERALS: Final = frozenset({IRI, BLANK, TRIPLE})
_NO_VALUES: Final = frozenset({OTHER, ILL})
_FAMILY: Final = {
    **dict.fromkeys((INTEGER, DECIMAL, FLOAT, DOUBLE), INTEGER),
    **dict.fromkeys((DURATION, MONTHS, SECONDS), DURATION),
    MOMENTS["dateTimeStamp"]: MOMENTS["dateTime"],
}
"""The representative of kinds that share a value space; every other kind has one of its own."""


def same_term(left: Term, right: Term) -> bool:
    """SameTerm (17.4.1.8): the same lexical form, datatype and language tag, the latter in lower case."""
    # The last character tells a tagged literal from the others without parsing: a plain one ends in a quote, a typed
    # one in ">".
    return left == right or (left[-1] not in '">' and left[0] == '"' and _tag_lowered(left) == _tag_lowered(right))


def _tag_lowered(term: Term) -> Term:
    close = term.rfind('"')
    return term[:close] + term[close:].lower() if close > 0 and term[-1] not in '">' else term


def equal(left: Term, right: Term) -> bool | None:
    """``left = right``; ``None`` for an error."""
    return equal_values(read(left), read(right))


def equal_values(left: Value, right: Value) -> bool | None:
    """``=`` of two values; ``None`` for an error."""
    one, other = left.kind, right.kind
    if one <= DOUBLE and other <= DOUBLE:
        first, second = promoted(left, right)
        return bool(first == second)
    if one == other == STRING:
        return bool(left.value == right.value)
    if one == other == TRIPLE:
        return _equal_triples(left, right)
    if one in _NO_LITERALS or other in _NO_LITERALS:
        return written(left) == written(right)
    # Before unknown datatypes: "x"@en differs from every literal without a tag, whatever that one's value is.
    if (one == TAGGED) is not (other == TAGGED):
        return False
    if one in _NO_VALUES or other in _NO_VALUES:
        return True if written(left) == written(right) else None
    family = _FAMILY.get(one, one)
    if family != _FAMILY.get(other, other):
        return False
    if family <= DURATION:
        return bool(left.value == right.value)
    order = moments.compare(left.value, right.value)
    return None if order is None else order == 0


def _equal_triples(left: Value, right: Value) -> bool | None:
    """``=`` of triple terms, by their components (SPARQL 1.2, 17.3)."""
    pairs = zip(triple_parts(left.value), triple_parts(right.value), strict=True)
    answers = [equal(one, other) for one, other in pairs]
    # A component that differs decides, whatever errors the others are.
    return False if False in answers else None if None in answers else True


def less_values(left: Value, right: Value) -> bool | None:
    """``<`` of two numbers, strings, booleans, dates or durations; ``None`` for an error."""
    one, other = left.kind, right.kind
    if one <= DOUBLE and other <= DOUBLE:
        first, second = (left.value, right.value) if one == other else promoted(left, right)
        return bool(first < second)
    family = _FAMILY.get(one, one)
    if family != _FAMILY.get(other, other) or family in (TAGGED, IRI, BLANK, TRIPLE, OTHER, ILL):
        return None
    if family in (STRING, BOOLEAN):
        return bool(left.value < right.value)
    compare = moments.compare_durations if family == DURATION else moments.compare
    order = compare(left.value, right.value)
    return None if order is None else order < 0


def promoted(left: Value, right: Value) -> tuple[Any, Any]:
    """Two numbers in the wider of their datatypes (17.3); integers and decimals remain exact."""
    one, other = left.kind, right.kind
    if one == other or (one <= DECIMAL and other <= DECIMAL):
        return left.value, right.value
    convert = nearest_single if max(one, other) == FLOAT else nearest_double
    # An integer beyond 2^53 has no double of its own: 9007199254740993 = 9007199254740992e0 is true (17.3), although
    # no order of the two as exact numbers would say so.
    first = left.value if one >= FLOAT else convert(left.value)
    return first, right.value if other >= FLOAT else convert(right.value)


def ordered(left: Term | None, right: Term | None) -> int | None:
    """-1, 0 or 1 if ORDER BY (15.1) puts left before, with or after right; ``None`` if SPARQL does not order them.

    Unbound comes first, then blank nodes (unordered), IRIs by their characters, literals as ``<`` compares them, triple
    terms by their components (SPARQL 1.2, 15.1).
    """
    if left == right:
        return 0
    if left is None or right is None:
        return -1 if left is None else 1
    one, other = read(left), read(right)
    if (first := _place(one)) != (second := _place(other)):
        return -1 if first < second else 1
    if one.kind == BLANK:
        return None
    if one.kind == TRIPLE:
        steps = map(ordered, triple_parts(left), triple_parts(right))
        return next((step for step in steps if step != 0), 0)
    if one.kind == IRI:
        return -1 if left[1:-1] < right[1:-1] else 1
    return _ordered_literals(one, other)


def _ordered_literals(one: Value, other: Value) -> int | None:
    before = less_values(one, other)
    # ``<`` has an error where ``=`` may still know that the two are equal, for example for literals of an unknown
    # datatype.
    if before or before is None:
        return -1 if before else (0 if equal_values(one, other) else None)
    return 1 if less_values(other, one) else (0 if equal_values(one, other) else None)


# Unbound is 0, literals are 4 (SPARQL 1.2, 15.1).
_PLACES: Final = {BLANK: 1, IRI: 2, TRIPLE: 5}


def _place(value: Value) -> int:
    return _PLACES.get(value.kind, 4)


def order_key(term: Term | None) -> tuple[Any, ...]:
    """A sort key: a total order that agrees with ``ordered``, except for numbers that are equal only after promotion.

    Literals that SPARQL does not order are sorted by kind (numbers first), NaN after all numbers, equal values by term.
    """
    if term is None:
        return (0,)
    value = read(term)
    place = _place(value)
    if place == 5:
        return (*value_key(value), term)
    return (place, *_literal_key(value), term) if place == 4 else (place, term[1:-1] if place == 2 else term)


def value_key(value: Value) -> tuple[Any, ...]:
    """``order_key`` without the term: equal for equal values."""
    place = _place(value)
    if value.kind == TRIPLE:
        return (place, *(value_key(read(part)) for part in triple_parts(value.value)))
    return (place, *_literal_key(value)) if place == 4 else (place, written(value)[1:-1])


def value_keys(terms: Sequence[Term]) -> list[tuple[Any, ...]]:
    """``value_key`` of each term; a fast path for IRIs, which are most terms."""
    iri = _PLACES[IRI]
    return [(iri, term[1:-1]) if term[0] == "<" and term[1] != "<" else value_key(read(term)) for term in terms]


class Descending:
    """A key, or part of one, in descending order."""

    __slots__ = ("key",)

    def __init__(self, key: Any) -> None:
        self.key = key

    def __lt__(self, other: "Descending") -> bool:
        return bool(other.key < self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Descending) and bool(other.key == self.key)

    def __hash__(self) -> int:
        return hash(self.key)


_INVERTED: Final = bytes(max(0, 245 - byte) for byte in range(256))
"""Reverses the order of UTF-8 bytes, none of which exceeds 244; 255 is free to end a text, so prefixes sort last."""


def descending(part: Any) -> Any:
    """A part of a key in descending order, as a type that compares in C if possible."""
    if isinstance(part, str):
        # UTF-8 keeps the order of code points (RFC 3629, section 1), so reversing bytes reverses the order of texts.
        return part.encode("utf-8", "surrogatepass").translate(_INVERTED) + b"\xff"
    if isinstance(part, Decimal):
        # Unary minus would round to the precision of the thread's decimal context.
        return part.copy_negate()
    if isinstance(part, int | float):
        return -part
    return Descending(part)


def _literal_key(value: Value) -> tuple[Any, ...]:
    kind = value.kind
    if kind <= DOUBLE:
        # NaN, the only value unequal to itself, would leave a sorted list in no order.
        return (INTEGER, 1, 0) if value.value != value.value else (INTEGER, 0, value.value)
    family = _FAMILY.get(kind, kind)
    if family in (BOOLEAN, STRING, TAGGED):
        return family, value.value
    if family in _NO_VALUES:
        return OTHER, written(value)
    if family == DURATION:
        duration = value.value
        # The order of durations is partial (XML Schema 1.1, 3.3.6.2); added to one of its reference dates it is total.
        return family, moments.later(moments.moment(1696, 9, 1), duration).local, duration.months
    return family, moments.utc(value.value), value.value.zone is None


def ranks(terms: Sequence[Term | None]) -> list[tuple[int, bool]]:
    """Each term's rank by ORDER BY, and whether terms of that rank are equal, so that the next key decides.

    Unequal terms of one rank are unordered: blank nodes, and all literals as soon as two neighbours among them cannot
    be compared. Worked example: 2, 1, 01 have the ranks 1, 0, 0; 1 and "a" share one rank, which is not decided.
    """
    distinct = sorted(dict.fromkeys(terms), key=order_key)
    groups: list[tuple[list[Term | None], bool]] = [([None], True)]
    groups.append(([term for term in distinct if term and term[0] == "_"], False))
    groups += [([term], True) for term in distinct if term and is_iri(term)]
    groups += _groups([term for term in distinct if term and term[0] == '"'])
    groups += _groups([term for term in distinct if term and is_triple(term)])
    known = {term: (rank, decided) for rank, (group, decided) in enumerate(groups) for term in group}
    return [known[term] for term in terms]


def _groups(literals: Sequence[Term]) -> list[tuple[list[Term | None], bool]]:
    """Sorted literals in groups of equal ones; a single undecided group if some are not comparable."""
    if not literals:
        return []
    steps = [ordered(left, right) for left, right in pairwise(literals)]
    if None in steps or (len(literals) > 1 and any(map(_unordered, literals))):
        return [(list(literals), False)]
    groups: list[tuple[list[Term | None], bool]] = [([literals[0]], True)]
    for term, step in zip(literals[1:], steps, strict=True):
        if step:
            groups.append(([], True))
        groups[-1][0].append(term)
    return groups


def _unordered(term: Term) -> bool:
    if is_triple(term):
        return any(map(_unordered, triple_parts(term)))
    value = read(term)
    return value.kind <= DOUBLE and isinstance(value.value, float) and math.isnan(value.value)
