"""Computed numbers within the tolerance of their datatypes, where nothing is known of their operands."""

from decimal import Decimal, InvalidOperation
from functools import lru_cache

from streamgauge.model.terms import XSD, Term, datatype

TOLERANCE = {XSD + "float": Decimal("1e-5"), XSD + "double": Decimal("1e-9")}
"""Relative tolerance by datatype; xsd:decimal is exact to 18 digits, xsd:integer exact."""

_DECIMAL_DIGITS = Decimal("1e-18")
_COMPUTED = {XSD + name for name in ("float", "double", "decimal", "integer")}


def close(expected: Term | None, actual: Term | None) -> bool:
    """Whether two computed terms are equal: the same term, or numbers within the looser datatype's tolerance."""
    if expected == actual:
        return True
    (left, loose), (right, looser) = _measured(expected), _measured(actual)
    if left is None or right is None:
        return False
    if left == left.to_integral_value() and right == right.to_integral_value() and not max(loose, looser):
        return left == right
    difference = abs(left - right)
    relative = max(loose, looser)
    if relative:
        return difference <= relative * max(abs(left), abs(right))
    return difference <= _DECIMAL_DIGITS * max(Decimal(1), abs(left))


@lru_cache(maxsize=1 << 16)
def _measured(term: Term | None) -> tuple[Decimal | None, Decimal]:
    """A term's number and its datatype's tolerance; aligning compares each with many others."""
    return number(term), TOLERANCE.get(datatype(term or "") or "", Decimal(0))


def number(term: Term | None) -> Decimal | None:
    """The finite value of a numeric literal; ``None`` for anything else."""
    if term is None or datatype(term) not in _COMPUTED:
        return None
    try:
        value = Decimal(term[1 : term.rindex('"')])
    except InvalidOperation:
        return None
    return value if value.is_finite() else None
