"""Set functions of SPARQL 1.1 (18.5.1) over the values of one group.

Sums are exact: integers and decimals are unbounded, sums of xsd:float and xsd:double are rounded once, so the order of
the values does not matter. Where SPARQL leaves a choice, it is deterministic: SAMPLE takes the first value,
GROUP_CONCAT keeps the order, MIN and MAX take the least of the terms that are equal by value.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Final

from streamgauge.model.terms import Term, quoted
from streamgauge.sparql.arithmetic import quotient
from streamgauge.sparql.comparison import value_key
from streamgauge.sparql.values import (
    DECIMAL,
    DOUBLE,
    EXACT,
    FLOAT,
    INTEGER,
    STRING,
    TAGGED,
    Value,
    read,
    single_of,
    written,
)

EXTENSIONS: Final[dict[str, Callable[[Sequence[Term | None], str], Term | None]]] = {}
"""Custom set functions by IRI in angle brackets, called with (values, separator); a value ``None`` is an error."""


def aggregate(
    function: str, values: Sequence[Term | None], *, distinct: bool = False, separator: str = " "
) -> Term | None:
    """COUNT, SUM, AVG, MIN, MAX, SAMPLE or GROUP_CONCAT; ``None`` is an error, as a result and among the values.

    ``distinct`` drops repeated terms (not values: 1 and 01 count twice). COUNT(*) counts rows: see ``algebra``.
    """
    # A dict and not a set: GROUP_CONCAT(DISTINCT ...) shows the order, and SAMPLE the first one.
    terms = list(dict.fromkeys(values)) if distinct else values
    if function in EXTENSIONS:
        return EXTENSIONS[function](terms, separator)
    if function == "GROUP_CONCAT":
        return concatenation(terms, separator)
    if function in ("MIN", "MAX"):
        return extreme(function, terms)
    present = [value for value in terms if value is not None]
    if function == "COUNT":
        return written(Value(INTEGER, len(present)))
    if function == "SAMPLE":
        return present[0] if present else None
    # An error among the values is one of SUM and AVG (18.5.1); COUNT and SAMPLE, above, pass over it.
    if len(present) < len(terms):
        return None
    return total(present) if function == "SUM" else average(present)


def total(terms: Sequence[Term]) -> Term | None:
    """SUM: 0 without values; an error unless all are numbers."""
    values = [read(term) for term in terms]
    kind = max((value.kind for value in values), default=INTEGER)
    return (
        None
        if kind > DOUBLE
        else written(Value(kind, _exact_sum(values, kind) if kind <= DECIMAL else _real_mean(values, kind, 1)))
    )


def average(terms: Sequence[Term]) -> Term | None:
    """AVG: 0 without values; for integers and decimals a decimal of at least 18 digits."""
    values = [read(term) for term in terms]
    kind = max((value.kind for value in values), default=INTEGER)
    if not values:
        return written(Value(INTEGER, 0))
    if kind > DOUBLE:
        return None
    if kind <= DECIMAL:
        return written(Value(DECIMAL, quotient(_exact_sum(values, kind), len(values))))
    return written(Value(kind, _real_mean(values, kind, len(values))))


def _exact_sum(values: Iterable[Value], kind: int) -> int | Decimal:
    if kind == INTEGER:
        return sum(int(value.value) for value in values)
    # With a context of its own and not ``sum``, which would round to the 28 digits of the thread's context.
    total = Decimal(0)
    for value in values:
        total = EXACT.add(total, value.value)
    return total


def _real_mean(values: Iterable[Value], kind: int, over: int) -> float:
    """The exact sum of floats divided by ``over``, rounded once to the datatype."""
    numbers = [value.value for value in values]
    special = {number for number in numbers if isinstance(number, float) and not math.isfinite(number)}
    if special:
        # Infinities of both signs, or NaN, give NaN in any order; a single infinity absorbs all finite numbers.
        return special.pop() if len(special) == 1 else math.nan
    # Floats are fractions with a power of two below, so their sum as fractions is exact: 1e16 + 1 - 1e16 is 1 in any
    # order, while floats added from left to right give 0.
    exact = sum(map(Fraction, numbers), Fraction(0)) / over
    return rounded(exact.numerator, exact.denominator, kind)


def rounded(top: int, bottom: int, kind: int) -> float:
    """The xsd:float or xsd:double nearest to top / bottom (``bottom`` > 0), an infinity beyond its range."""
    try:
        # CPython divides integers of any size with a single, correct rounding.
        near = top / bottom
    except OverflowError:
        return math.inf if top > 0 else -math.inf
    if kind != FLOAT:
        return near
    # A double has 53 bits and a float 24. Rounding to 53 bits first can produce a tie between two floats that the
    # exact quotient does not have, and the tie would then be broken towards the even one.
    above, below = near.as_integer_ratio()
    # The sign of what this rounding lost keeps ``single_of`` from rounding twice.
    apart = top * below - above * bottom
    return single_of(near, (apart > 0) - (apart < 0))


def extreme(function: str, terms: Sequence[Term | None]) -> Term | None:
    """MIN or MAX in the order of ORDER BY, then by kind, with NaN after all numbers; an error without values.

    Among terms that are equal by value the least term: MAX over 1, 2, 02 is 02.
    """
    if not terms or None in terms:
        return None
    # By term, so that a group with a million equal terms is parsed once.
    keys = {term: value_key(read(term)) for term in terms if term is not None}
    best = min(keys.values()) if function == "MIN" else max(keys.values())
    return min(term for term, key in keys.items() if key == best)


def concatenation(terms: Iterable[Term | None], separator: str) -> Term | None:
    """GROUP_CONCAT as a simple literal; an error unless all values are strings, with or without a language tag."""
    pieces = []
    for term in terms:
        value = None if term is None else read(term)
        if value is None or value.kind not in (STRING, TAGGED):
            return None
        pieces.append(value.value if value.kind == STRING else value.value[0])
    return quoted(separator.join(pieces))
