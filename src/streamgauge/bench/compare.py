"""Comparing bags of rows: terms exactly, computed numbers by value (SEMANTICS, terms and numbers)."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from streamgauge.model import algebra as a
from streamgauge.model.terms import XSD, Row, Term, datatype

TOLERANCE = {XSD + "float": Decimal("1e-5"), XSD + "double": Decimal("1e-9")}
"""Relative tolerance by datatype; xsd:decimal is exact to 18 digits, xsd:integer exact."""

_DECIMAL_DIGITS = Decimal("1e-18")
_COMPUTED = {XSD + name for name in ("float", "double", "decimal", "integer")}


@dataclass(frozen=True, slots=True)
class Overlap:
    """Two bags compared: the size of the intersection, and what either side has alone."""

    common: int
    missing: tuple[Row, ...]
    surplus: tuple[Row, ...]


def computed_columns(form: a.QueryForm) -> frozenset[int]:
    """The positions of variables that an aggregate or an expression binds; only these are compared by value."""
    if not isinstance(form, a.Select):
        return frozenset()
    computed = _computed(form.pattern)
    return frozenset(i for i, name in enumerate(form.variables) if a.Var(name) in computed)


def _computed(pattern: a.Pattern) -> frozenset[a.Var]:
    match pattern:
        case a.Extend(pattern=inner, variable=variable, expression=expression):
            below = _computed(inner)
            plain = isinstance(expression, str) or (isinstance(expression, a.Var) and expression not in below)
            return below if plain else below | {variable}
        case a.Group(pattern=inner, aggregates=aggregates):
            return _computed(inner) | {variable for variable, _ in aggregates}
        case a.BGP() | a.Values():
            return frozenset()
        case a.Join() | a.LeftJoin() | a.Union() | a.Minus():
            return _computed(pattern.left) | _computed(pattern.right)
        case _:
            return _computed(pattern.pattern)


def tolerance_sentence(form: a.QueryForm) -> str:
    """What the verdict says about how numbers were compared."""
    if not computed_columns(form):
        return "terms compared exactly"
    return (
        "computed numbers by value: xsd:float relative 1e-5, xsd:double 1e-9, xsd:decimal to 18 digits; terms exactly"
    )


def overlap(expected: Iterable[Row], actual: Iterable[Row], computed: frozenset[int]) -> Overlap:
    """The bag intersection of expected and actual rows, and the rows that only one side has."""
    wanted, given = Counter(expected), Counter(actual)
    common = (wanted & given).total()
    missing, surplus = wanted - given, given - wanted
    if computed and missing and surplus:
        common += _match_by_value(missing, surplus, computed)
    return Overlap(common, tuple(missing.elements()), tuple(surplus.elements()))


def _match_by_value(missing: Counter[Row], surplus: Counter[Row], computed: frozenset[int]) -> int:
    """Pair rows that are equal but for numbers within tolerance; takes the pairs out of both bags."""
    candidates: dict[Row, list[Row]] = defaultdict(list)
    for row in surplus:
        candidates[_exact(row, computed)].append(row)
    found = 0
    for row in list(missing):
        for other in candidates[_exact(row, computed)]:
            pairs = min(missing[row], surplus[other])
            if pairs > 0 and all(close(row[i], other[i]) for i in computed):
                missing[row] -= pairs
                surplus[other] -= pairs
                found += pairs
    return found


def _exact(row: Row, computed: frozenset[int]) -> Row:
    return tuple(term for i, term in enumerate(row) if i not in computed)


def close(expected: Term | None, actual: Term | None) -> bool:
    """Whether two computed terms are equal: the same term, or numbers within the looser datatype's tolerance."""
    if expected == actual:
        return True
    left, right = number(expected), number(actual)
    if left is None or right is None:
        return False
    difference = abs(left - right)
    relative = max(TOLERANCE.get(datatype(term) or "", Decimal(0)) for term in (expected or "", actual or ""))
    if relative:
        return difference <= relative * max(abs(left), abs(right))
    return difference <= _DECIMAL_DIGITS * max(Decimal(1), abs(left))


def number(term: Term | None) -> Decimal | None:
    """The finite value of a numeric literal; ``None`` for anything else."""
    if term is None or datatype(term) not in _COMPUTED:
        return None
    try:
        value = Decimal(term[1 : term.rindex('"')])
    except InvalidOperation:
        return None
    return value if value.is_finite() else None


def similarity(common: int, expected: int, actual: int) -> float:
    """|E and A| / |E or A| of two bags by their sizes; 1 when both are empty."""
    either = expected + actual - common
    return common / either if either else 1.0
