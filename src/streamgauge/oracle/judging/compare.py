"""Comparing bags of rows: terms exactly, computed numbers by value (SEMANTICS, terms and numbers)."""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import lru_cache

from streamgauge.model import algebra as a
from streamgauge.model.report import TiePool
from streamgauge.model.terms import XSD, Row, Term, datatype
from streamgauge.oracle.judging import choices, intervals, support
from streamgauge.oracle.judging.blanks import has_blanks, renamed
from streamgauge.oracle.judging.chains import legal

TOLERANCE = {XSD + "float": Decimal("1e-5"), XSD + "double": Decimal("1e-9")}
"""Relative tolerance by datatype; xsd:decimal is exact to 18 digits, xsd:integer exact."""

_DECIMAL_DIGITS = Decimal("1e-18")
_COMPUTED = {XSD + name for name in ("float", "double", "decimal", "integer")}


@dataclass(frozen=True, slots=True)
class Overlap:
    """Two bags compared: the size of the intersection, what either side has alone, how many received are undecided.

    ``retyped`` are the columns of which some number is equal but of another datatype.
    """

    common: int
    missing: tuple[Row, ...]
    surplus: tuple[Row, ...]
    undecided: int = 0
    retyped: frozenset[int] = frozenset()

    @property
    def differs(self) -> bool:
        """Whether either side has rows alone."""
        return bool(self.missing or self.surplus)


Alike = Callable[[Row, Row], bool]
"""Whether a received row is equal to an expected one, of which the terms that are not computed are equal."""


def computed_columns(form: a.QueryForm) -> frozenset[int]:
    """The positions of variables that an aggregate or an expression binds; only these are compared by value."""
    if not isinstance(form, a.Select):
        return frozenset()
    bound = computed_variables(form.pattern)
    return frozenset(i for i, name in enumerate(form.variables) if a.Var(name) in bound)


def computed_variables(pattern: a.Pattern) -> frozenset[a.Var]:
    """The variables of a pattern that an aggregate or an expression binds."""
    match pattern:
        case a.Extend(pattern=inner, variable=variable, expression=expression):
            below = computed_variables(inner)
            plain = isinstance(expression, str) or (isinstance(expression, a.Var) and expression not in below)
            return below if plain else below | {variable}
        case a.Group(pattern=inner, keys=keys, aggregates=aggregates):
            below = computed_variables(inner)
            by = {variable for variable, key in keys if isinstance(key, a.Call) or key in below}
            return frozenset(by | {variable for variable, _ in aggregates})
        case a.BGP() | a.Values():
            return frozenset()
        case a.Join() | a.LeftJoin() | a.Union() | a.Minus():
            return computed_variables(pattern.left) | computed_variables(pattern.right)
        case _:
            return computed_variables(pattern.pattern)


def tolerance_sentence(form: a.QueryForm, retyped: Sequence[str], *, exact_datatypes: bool) -> str:
    """The verdict's note on the comparison of numbers; ``retyped`` are columns sent in another datatype."""
    if not computed_columns(form):
        return "terms compared exactly"
    said = (
        "computed numbers by value, inexact ones within what their operands allow (at least xsd:float 1e-5, xsd:double "
        "1e-9, xsd:decimal 18 digits); terms exactly"
    )
    if exact_datatypes:
        return f"{said}; datatypes exactly"
    if not retyped:
        return said
    names = ", ".join(f"?{name}" for name in retyped)
    return f"{said}; the datatype of {names} is another than expected and was left out (--exact-datatypes compares it)"


def overlap(
    expected: Sequence[Row],
    actual: Sequence[Row],
    computed: frozenset[int],
    doubtful: Sequence[Row] = (),
    equal: Alike | None = None,
    pools: Sequence[TiePool] = (),
) -> Overlap:
    """The bag intersection of expected and actual rows, and the rows that only one side has.

    Blank nodes are equal by isomorphism. Received rows that are not expected but ``doubtful`` (so near a bound that
    either is right) are counted as undecided and are on neither side. ``equal`` says which rows are equal but for
    computed numbers; within the tolerance of their datatypes unless given. A row of one of the ``pools`` may be sent
    in place of an expected row that came from the same.
    """
    pooled = [row for pool in pools for row in pool.rows[pool.take :]]
    if has_blanks(expected) or has_blanks(doubtful) or has_blanks(pooled):
        actual = renamed((*expected, *doubtful, *pooled), actual, computed)
    same = equal or (lambda row, other: alike(row, other, computed))
    wanted, given = Counter(expected), Counter(actual)
    common = (wanted & given).total()
    missing, surplus = wanted - given, given - wanted
    retyped: set[int] = set()
    if computed and missing and surplus:
        common += _match_by_value(missing, surplus, computed, same, retyped)
    common += sum(_swap(missing, surplus, pool, computed, same) for pool in pools)
    undecided = _take(Counter(doubtful), surplus, computed, same) if doubtful and surplus else 0
    return Overlap(common, tuple(missing.elements()), tuple(surplus.elements()), undecided, frozenset(retyped))


def _take(doubtful: Counter[Row], surplus: Counter[Row], computed: frozenset[int], same: Alike) -> int:
    """Take the doubtful rows out of the surplus; how many."""
    both = doubtful & surplus
    doubtful -= both
    surplus -= both
    return both.total() + (_match_by_value(doubtful, surplus, computed, same, set()) if computed else 0)


def _match_by_value(
    missing: Counter[Row], surplus: Counter[Row], computed: frozenset[int], same: Alike, retyped: set[int]
) -> int:
    """Pair rows that are equal but for numbers within tolerance; takes the pairs out of both bags."""
    candidates: dict[Row, list[Row]] = defaultdict(list)
    for row in surplus:
        candidates[_exact(row, computed)].append(row)
    found = 0
    for row in list(missing):
        for other in candidates[_exact(row, computed)]:
            pairs = min(missing[row], surplus[other])
            if pairs > 0 and len(row) == len(other) and same(row, other):
                missing[row] -= pairs
                surplus[other] -= pairs
                found += pairs
                retyped.update(
                    place for place in computed if datatype(row[place] or "") != datatype(other[place] or "")
                )
    return found


def _swap(missing: Counter[Row], surplus: Counter[Row], pool: TiePool, computed: frozenset[int], same: Alike) -> int:
    """Take out of both what is legal: rows of a pool that were sent in place of those taken from it; how many."""
    chosen = Counter(pool.rows[: pool.take])
    unsent = missing & chosen
    left, sent, rest = unsent.total(), Counter[Row](), surplus.copy()
    for row, times in Counter(pool.rows[pool.take :]).items():
        for other in list(rest):
            if row == other or (_exact(row, computed) == _exact(other, computed) and same(row, other)):
                pairs = min(times, rest[other], left)
                times, left = times - pairs, left - pairs
                rest[other] -= pairs
                sent[row] += pairs
    if pool.order and not left and not legal(chosen - unsent + sent, pool.rows, pool.order, pool.skipped):
        return 0
    surplus.clear()
    surplus.update(+rest)
    _remove(missing, pool, sent.total())
    return sent.total()


def _remove(missing: Counter[Row], pool: TiePool, times: int) -> None:
    for row in pool.rows[: pool.take]:
        if times and missing[row] > 0:
            missing[row] -= 1
            times -= 1


def alike(expected: Row, actual: Row, computed: frozenset[int]) -> bool:
    """Whether two rows are equal: terms exactly, computed numbers within tolerance."""
    return len(expected) == len(actual) and all(
        close(left, right) if i in computed else left == right
        for i, (left, right) in enumerate(zip(expected, actual, strict=True))
    )


def fits(possible: Term | None, actual: Term | None) -> bool:
    """Whether a received term is the expected one, or one of the numbers that an interval literal allows."""
    if possible == actual:
        return True
    if support.is_beyond(possible):
        return support.allows(possible or "", actual)
    if choices.is_open(possible):
        return choices.allows(possible or "", actual)
    wanted, given = intervals.read(possible or ""), intervals.read(actual or "")
    return wanted is not None and given is not None and intervals.fits(wanted, given)


class Bags:
    """Expected and received bags of one run, compared pair by pair; what was compared is remembered."""

    def __init__(
        self,
        expected: Sequence[Sequence[Row]],
        actual: Sequence[Sequence[Row]],
        computed: frozenset[int] = frozenset(),
        doubtful: Sequence[Sequence[Row]] = (),
        equal: Callable[[int], Alike] | None = None,
        pools: Sequence[Sequence[TiePool]] = (),
    ) -> None:
        self._expected, self._actual, self._computed = expected, actual, computed
        self._equal, self._pools = equal, pools
        self._doubtful = doubtful
        self._counts: tuple[dict[int, Counter[Row]], dict[int, Counter[Row]]] = {}, {}
        self.similarity = lru_cache(maxsize=1 << 18)(self._similarity)
        self._blank = any(map(has_blanks, (*expected, *actual, *doubtful)))

    def overlap(self, i: int, j: int) -> Overlap:
        """Expected bag i beside received bag j."""
        equal = self._equal(i) if self._equal is not None else None
        pools = self._pools[i] if self._pools else ()
        return overlap(self._expected[i], self._actual[j], self._computed, self._doubt(i), equal, pools)

    def _doubt(self, i: int) -> Sequence[Row]:
        return self._doubtful[i] if self._doubtful else ()

    def _similarity(self, i: int, j: int) -> float:
        expected, actual = len(self._expected[i]), len(self._actual[j])
        if not self._blank and not self._doubt(i) and not (self._pools and self._pools[i]):
            if not self._computed:
                return similarity(self._common(i, j), expected, actual)
            if expected == actual == 1 and self._expected[i][0] == self._actual[j][0]:
                return 1.0
        both = self.overlap(i, j)
        return similarity(both.common, expected, actual - both.undecided)

    def _common(self, i: int, j: int) -> int:
        wanted = self._counted(0, i, self._expected)
        given = self._counted(1, j, self._actual)
        if len(wanted) > len(given):
            wanted, given = given, wanted
        return sum(min(count, given[row]) for row, count in wanted.items() if row in given)

    def _counted(self, side: int, place: int, bags: Sequence[Sequence[Row]]) -> Counter[Row]:
        known = self._counts[side]
        if place not in known:
            known[place] = Counter(bags[place])
        return known[place]


def _exact(row: Row, computed: frozenset[int]) -> Row:
    return tuple(term for i, term in enumerate(row) if i not in computed)


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


def similarity(common: int, expected: int, actual: int) -> float:
    """|E and A| / |E or A| of two bags by their sizes; 1 when both are empty."""
    either = expected + actual - common
    return common / either if either else 1.0
