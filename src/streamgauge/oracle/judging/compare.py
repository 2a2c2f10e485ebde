"""Comparing bags of rows: terms exactly, computed numbers by value (SEMANTICS, terms and numbers)."""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from functools import cache, lru_cache

from streamgauge.model import algebra as a
from streamgauge.model.terms import Row, Term, datatype
from streamgauge.oracle.worlds import intervals
from streamgauge.oracle.worlds.blank_nodes import has_blanks, readings
from streamgauge.oracle.worlds.intervals import close
from streamgauge.oracle.worlds.membership import Overlap
from streamgauge.oracle.worlds.restatement import computed_columns

Alike = Callable[[Row, Row], bool]
"""Whether an expected and a received row, whose terms outside computed columns are equal, are equal."""


def tolerance_sentence(form: a.QueryForm, retyped: Sequence[str], *, exact_datatypes: bool) -> str:
    """The verdict's note on how numbers were compared; ``retyped`` are columns received with another datatype."""
    if not computed_columns(form):
        return "terms compared exactly"
    message = (
        "computed numbers by value, inexact ones within what their operands allow (at least xsd:float 1e-5, xsd:double "
        "1e-9, xsd:decimal 18 digits); terms exactly"
    )
    if exact_datatypes:
        return f"{message}; datatypes exactly"
    if not retyped:
        return message
    names = ", ".join(f"?{name}" for name in retyped)
    return (
        f"{message}; the datatype of {names} is another than expected and was left out (--exact-datatypes compares it)"
    )


def overlap(
    expected: Sequence[Row], actual: Sequence[Row], computed: frozenset[int], equal: Alike | None = None
) -> Overlap:
    """The bag intersection of expected and actual rows, and the rows that only one side has.

    Blank nodes are compared by isomorphism. ``equal`` compares two rows in the ``computed`` columns; by default numbers
    are equal within the tolerance of their datatypes.
    """
    same = equal or (lambda row, other: alike(row, other, computed))

    def compared(received: Sequence[Row]) -> Overlap:
        wanted, actual = Counter(expected), Counter(received)
        # Equal terms first, so that only what is left is compared by value, which is quadratic within equal exact
        # terms.
        common = (wanted & actual).total()
        missing, surplus = wanted - actual, actual - wanted
        retyped: set[int] = set()
        if computed:
            common += _match_by_value(missing, surplus, computed, same, retyped)
        return Overlap(common, tuple(missing.elements()), tuple(surplus.elements()), frozenset(retyped))

    overlaps: list[Overlap] = []
    # Each reading maps the received blank nodes to expected ones in another way. One without surplus rows cannot be
    # beaten.
    for received in readings(expected, actual, computed):
        overlaps.append(compared(received))
        if not overlaps[-1].surplus:
            break
    return min(overlaps, key=lambda both: len(both.surplus))


def _match_by_value(
    missing: Counter[Row], surplus: Counter[Row], computed: frozenset[int], same: Alike, retyped: set[int]
) -> int:
    """The number of rows paired by value; they are removed from both bags, and their retyped columns added.

    Equality within tolerance is not transitive, so pairs are greedy within rows of equal exact terms.
    """
    candidates: dict[Row, list[Row]] = defaultdict(list)
    for row in surplus:
        candidates[exact_terms(row, computed)].append(row)
    matches = 0
    for row in list(missing):
        for other in candidates[exact_terms(row, computed)]:
            pairs = min(missing[row], surplus[other])
            if pairs > 0 and len(row) == len(other) and same(row, other):
                missing[row] -= pairs
                surplus[other] -= pairs
                matches += pairs
                retyped.update(
                    place for place in computed if datatype(row[place] or "") != datatype(other[place] or "")
                )
    return matches


def alike(expected: Row, actual: Row, computed: frozenset[int], loose: frozenset[int] = frozenset()) -> bool:
    """Whether two rows are equal: terms exactly, computed numbers within tolerance.

    ``loose`` columns are not compared.
    """
    return len(expected) == len(actual) and all(
        left == right or i in loose or (i in computed and close(left, right))
        for i, (left, right) in enumerate(zip(expected, actual, strict=True))
    )


def fits(expected: Term | None, actual: Term | None) -> bool:
    """Whether a received term is the expected one, or another lexical form of its value."""
    return expected == actual or (
        expected is not None and actual is not None and intervals.is_form_of(expected, actual)
    )


class Bags:
    """Expected and received bags of one run, compared pair by pair with a cache, because alignment asks repeatedly."""

    def __init__(
        self,
        expected: Sequence[Sequence[Row]],
        actual: Sequence[Sequence[Row]],
        computed: frozenset[int] = frozenset(),
        equal: Alike | None = None,
    ) -> None:
        self._expected, self._actual, self._computed, self._equal = expected, actual, computed, equal
        self._bags = cache(lambda i: Counter(expected[i])), cache(lambda j: Counter(actual[j]))
        # A cache for each instance: one on the method would keep the bags of every run alive.
        self.similarity = lru_cache(maxsize=1 << 18)(self._similarity)
        self._blank = any(map(has_blanks, (*expected, *actual)))

    def _similarity(self, i: int, j: int) -> float:
        expected, actual = len(self._expected[i]), len(self._actual[j])
        if not self._blank:
            if not self._computed:
                return similarity(self._common(i, j), expected, actual)
            # One computed number each, the usual answer of an aggregate: no intervals are needed where the terms are
            # equal.
            if expected == actual == 1 and self._expected[i][0] == self._actual[j][0]:
                return 1.0
        both = overlap(self._expected[i], self._actual[j], self._computed, self._equal)
        return similarity(both.common, expected, actual)

    def _common(self, i: int, j: int) -> int:
        wanted, actual = self._bags[0](i), self._bags[1](j)
        # Only one bag is walked, so let it be the smaller one.
        if len(wanted) > len(actual):
            wanted, actual = actual, wanted
        return sum(min(count, actual[row]) for row, count in wanted.items() if row in actual)


def exact_terms(row: Row, computed: frozenset[int]) -> Row:
    """The terms of a row that are compared exactly: all but those of computed columns."""
    return tuple(term for i, term in enumerate(row) if i not in computed)


def similarity(common: int, expected: int, actual: int) -> float:
    """|E and A| / |E or A| of two bags by their sizes; 1 when both are empty."""
    either = expected + actual - common
    return common / either if either else 1.0
