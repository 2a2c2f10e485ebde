"""Answers beside integers that implementations need not support: rows that are wrong in spite of them.

Implementations that support integers of 18 digits only may raise an error for larger ones, or compute modulo their
largest integer (F&O, 6.2). The query is evaluated for all of them at once: a comparison with such an integer may hold
or not, as in ``latitude.py``, and a sum, difference or product becomes a literal that stands for the exact value, that
value modulo 2^n (n from 61 to 128), and an error:

    FILTER(?v > 5) over 2^63, 6, 5      possible: the rows of 2^63 and 6; certain: the row of 6; wrong: the row of 5
    SUM over 2^63 - 1 and 1             2^63, -2^63 or unbound; 2^63 - 1 is wrong

``LimitedIntegers.exclude`` says that an answer is none of these. Where an operation on such integers is not one of
those above, or computed integers are joined, grouped or made distinct, nothing is excluded.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Final

from streamgauge.model import algebra as a
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.semantics import Counting, Semantics
from streamgauge.model.terms import Row
from streamgauge.oracle.judging.blanks import has_blanks
from streamgauge.oracle.judging.compare import computed_columns, fits
from streamgauge.oracle.judging.intervals import OpenError
from streamgauge.oracle.judging.latitude import BINARY, COMPARISONS, STORED, Latitude, Possible
from streamgauge.oracle.judging.support import is_beyond
from streamgauge.query.printer import sparql
from streamgauge.query.traversal import every_expression, every_pattern, expression_parts, expressions, parts
from streamgauge.semantics.content import Contents
from streamgauge.semantics.refusal import RefusedError

_TESTS: Final = frozenset({"BOUND", "SAMETERM", "ISIRI", "ISBLANK", "ISLITERAL", "DATATYPE", "LANG", "LANGMATCHES"})
_TEXTS: Final = frozenset({"STR", "STRLEN", "CONTAINS", "STRSTARTS", "STRENDS", "REGEX"})
"""Functions that read no number's value."""
_KNOWN: Final = COMPARISONS | BINARY | _TESTS | _TEXTS | {"&&", "||", "!", "IN"}
_SPINE: Final = (a.Project, a.Distinct, a.Reduced, a.OrderBy, a.Extend, a.Filter, a.Group)

MOST_PAIRED: Final = 300
"""Rows of a report, beside equal ones, for which partners are sought."""


class LimitedIntegers:
    """A query's answers by implementations of limited integers, over one content after another."""

    def __init__(self, query: ContinuousQuery, semantics: Semantics) -> None:
        self._columns = computed_columns(query.form)
        self._distinct = any(isinstance(each, a.Distinct) for each in every_pattern(query.form.pattern))
        self._fragile = _is_fragile(query.form.pattern)
        self._as_sets = semantics.answers is Counting.SET
        self._latitude: Latitude | None = None
        if isinstance(query.form, a.Select) and _is_decidable(query.form.pattern):
            form = replace(query.form, pattern=_hooked(query.form.pattern))
            self._latitude = Latitude(replace(query, form=form, sparql=sparql(form)), semantics, limited=True)

    def exclude(self, contents: Contents, said: Collection[Row]) -> bool:
        """Whether no implementation may send these rows for a content; ``False`` where that cannot be told."""
        if self._latitude is None:
            return False
        try:
            found = self._latitude.possible(contents)
        except (OpenError, RefusedError):
            return False
        if self._fragile and found.loose is not found.tight:
            return False
        if self._as_sets:
            found, said = Possible(*(tuple(dict.fromkeys(each)) for each in (found.loose, found.tight))), set(said)
        return self._tells(found, said) and not self._allows(found, tuple(said))

    def _tells(self, found: Possible, said: Collection[Row]) -> bool:
        """Whether the possible answers are those between the tight and the loose one."""
        if (self._distinct or self._as_sets) and any(
            is_beyond(row[place]) for row in found.loose for place in self._columns
        ):
            return False
        return not has_blanks(said) and not has_blanks(found.loose)

    def _allows(self, found: Possible, said: Sequence[Row]) -> bool:
        """Whether every row sent is a possible one, and every certain row was sent."""
        return self._all_fit(said, found.loose) and self._all_fit(found.tight, said)

    def _all_fit(self, rows: Sequence[Row], others: Sequence[Row]) -> bool:
        """Whether each row can be paired with one of the others; ``True`` also where too many are left to be paired.

        Equal rows first: whatever fits such a row fits all that its partner fits. Then row by row, along augmenting
        paths (Kuhn's algorithm).
        """
        wanted, given = Counter(rows), Counter(others)
        left, free = tuple((wanted - given).elements()), tuple((given - wanted).elements())
        if len(left) > MOST_PAIRED:
            return True
        places: dict[Row, list[int]] = defaultdict(list)
        for place, other in enumerate(free):
            places[self._key(other)].append(place)
        taken: dict[int, int] = {}

        def is_paired(row: int, tried: set[int]) -> bool:
            fitting = [place for place in places[self._key(left[row])] if self._fits(left[row], free[place])]
            for place in sorted(fitting, key=taken.__contains__):
                if place not in tried:
                    tried.add(place)
                    if place not in taken or is_paired(taken[place], tried):
                        taken[place] = row
                        return True
            return False

        return all(is_paired(row, set()) for row in range(len(left)))

    def _key(self, row: Row) -> Row:
        return tuple(term for place, term in enumerate(row) if place not in self._columns)

    def _fits(self, row: Row, other: Row) -> bool:
        return len(row) == len(other) and all(
            fits(row[place], other[place]) or fits(other[place], row[place]) for place in self._columns
        )


def _is_decidable(pattern: a.Pattern) -> bool:
    """Whether computed integers go into filters and the answer only, by operations whose outcomes are known."""
    spine = list(_spine(pattern))
    inner = [each for each in every_pattern(pattern) if not any(each is one for one in spine)]
    if any(isinstance(each, a.Slice | a.Extend | a.Group | a.Project) for each in inner):
        return False
    trees = [tree for each in every_pattern(pattern) for tree in expressions(each)]
    calls = (part for tree in trees for part in every_expression(tree) if isinstance(part, a.Call))
    return all(call.operator.upper() in _KNOWN for call in calls) and not any(
        map(_tests_variable, _conditions(pattern))
    )


def _spine(pattern: a.Pattern) -> Iterator[a.Pattern]:
    """The modifiers, filters and values that stand around the pattern of a query."""
    while isinstance(pattern, _SPINE):
        yield pattern
        pattern = pattern.pattern


def _conditions(pattern: a.Pattern) -> Iterator[a.Expression]:
    for each in every_pattern(pattern):
        if isinstance(each, a.Filter | a.LeftJoin) and each.condition is not None:
            yield each.condition


def _tests_variable(condition: a.Expression) -> bool:
    """Whether a condition takes the effective boolean value of a variable."""
    match condition:
        case a.Var():
            return True
        case a.Call(operator="&&" | "||" | "!", arguments=arguments):
            return any(map(_tests_variable, arguments))
        case _:
            return False


def _is_fragile(pattern: a.Pattern) -> bool:
    """Whether a doubtful comparison may change other rows than its own: below a grouping, or in an OPTIONAL."""
    for each in every_pattern(pattern):
        match each:
            case a.Group(pattern=inner) if any(True for _ in _conditions(inner)):
                return True
            case a.LeftJoin(right=right, condition=own) if own is not None or any(True for _ in _conditions(right)):
                return True
    return False


def _hooked(pattern: a.Pattern) -> a.Pattern:
    """The pattern with every comparison, MIN and MAX of stored terms as one of computed ones."""
    result = parts(pattern, _hooked, _hooked_expression)
    if not isinstance(result, a.Group):
        return result
    return replace(
        result, aggregates=tuple((variable, _hooked_aggregate(each)) for variable, each in result.aggregates)
    )


def _hooked_aggregate(each: a.Aggregate) -> a.Aggregate:
    if each.argument is None or each.function not in ("MIN", "MAX"):
        return each
    return replace(each, argument=a.Call(STORED, (each.argument,)))


def _hooked_expression(tree: a.Expression) -> a.Expression:
    match expression_parts(tree, _hooked, _hooked_expression):
        case a.Call(operator=operator, arguments=(first, *others)) if operator in COMPARISONS or operator == "IN":
            return a.Call(operator, (a.Call(STORED, (first,)), *others))
        case result:
            return result
