"""Contents of which interval arithmetic tells everything, and a query asked for some of its rows only.

Nothing is open where a query only adds, subtracts, multiplies, counts and averages, compares the results in conditions
only, and no result needs more than ``_BITS`` bits: no division by what may be 0, no overflow, no integer of more than
18 digits. An answer that differs from the expected one there is wrong, without a look at what may be computed; and rows
on which the coarse readings (``bounds.py``) agree are certain, so intervals are asked for the others only.

    FILTER(?v - ?w > 60.0)      one bit more than its operands: decidable over numbers below 2^49
    HAVING(SUM(?v) > 1)         30 bits more: decidable over numbers below 2^20
    FILTER(?v / ?w > 60.0)      never
"""

from collections.abc import Collection
from dataclasses import replace
from typing import Final

from streamgauge.model import algebra as a
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.terms import Row, Term, is_blank, is_literal
from streamgauge.oracle.judging.compare import computed_columns
from streamgauge.oracle.judging.intervals import read
from streamgauge.oracle.judging.latitude import COMPARISONS, PolarityReading, extension, restated
from streamgauge.oracle.judging.support import supported
from streamgauge.query.printer import sparql
from streamgauge.query.stamps import uses_timestamp
from streamgauge.query.traversal import every_expression, every_pattern, expressions
from streamgauge.semantics.content import Contents
from streamgauge.semantics.query_traits import traits

_BITS: Final = 50
"""Bits of the largest result: rounding errors of 2^30 numbers added up keep it below 2^59, which has 18 digits."""

_READINGS: Final = frozenset(
    extension(f"{reading}{negated}")
    for reading in (PolarityReading.LOOSE, PolarityReading.TIGHT)
    for negated in ("", "-not")
)
_TESTS: Final = frozenset({"&&", "||", "!", "IN", "BOUND", "SAMETERM", "ISIRI", "ISBLANK", "ISLITERAL", "DATATYPE"})
_CALLS: Final = _READINGS | COMPARISONS | _TESTS | {extension("same"), extension("plain")}
_RING: Final = frozenset(f'"{name}"' for name in ("+", "-", "*", "ABS"))
_AGGREGATES: Final = frozenset({"COUNT", "MIN", "MAX", extension("SUM"), extension("AVG")})
_LIMIT: Final = 200_000


class DecidableContents:
    """The contents of one query of which intervals tell everything; literals are looked at once."""

    def __init__(self, query: ContinuousQuery) -> None:
        self._static, self._traits = query.static, traits(query.form)
        self._small: set[Term] = set()
        self._never = not _is_closed(query) or not all(map(self._is_small, self._traits.constants))

    def include(self, contents: Contents) -> bool:
        """Whether nothing about a content is open."""
        if self._never:
            return False
        triples = (triple for inside in contents for arrival in inside for triple in arrival.triples)
        found = {term for _, _, term in (*self._static, *triples) if is_literal(term)} - self._small
        return all(map(self._is_small, found))

    def _is_small(self, term: Term) -> bool:
        """Whether a literal is no number, or one that keeps every result within its bounds."""
        number = read(term)
        if number is not None:
            if number.special is not None or not supported(number.kind, term):
                return False
            if self._traits.magnitude(int(number.size).bit_length()) > _BITS:
                return False
        if len(self._small) < _LIMIT:
            self._small.add(term)
        return True


def _is_closed(query: ContinuousQuery) -> bool:
    """Whether a query has only what is open over large numbers at most."""
    if not isinstance(query.form, a.Select) or uses_timestamp(query.form):
        return False
    return all(map(_is_plain, every_pattern(restated(query, PolarityReading.LOOSE).form.pattern)))


def _is_plain(pattern: a.Pattern) -> bool:
    if isinstance(pattern, a.Slice):
        return False
    if isinstance(pattern, a.Group) and any(each.function not in _AGGREGATES for _, each in pattern.aggregates):
        return False
    parts = (part for tree in expressions(pattern) for part in every_expression(tree))
    return all(_is_harmless(part) for part in parts if isinstance(part, a.Call))


def _is_harmless(call: a.Call) -> bool:
    if call.operator == extension("number"):
        return call.arguments[0] in _RING
    return call.operator.upper() in _CALLS or call.operator in _CALLS


class Narrowed:
    """A query asked for the rows of some keys: the terms of those of its columns that are computed from nothing."""

    def __init__(self, query: ContinuousQuery) -> None:
        self._query = query
        self._columns = self._found(query.form)

    @property
    def possible(self) -> bool:
        """Whether the query can be asked so."""
        return bool(self._columns)

    def _found(self, form: a.QueryForm) -> tuple[int, ...]:
        if not isinstance(form, a.Select):
            return ()
        plain = [place for place in range(len(form.variables)) if place not in computed_columns(form)]
        return tuple(place for place in plain if _narrowed(form.pattern, self._inline(form, (place,), ())))

    def key(self, row: Row) -> Row:
        """The terms of a row by which it is asked for."""
        return tuple(row[place] for place in self._columns)

    def to(self, keys: Collection[Row]) -> ContinuousQuery | None:
        """The query whose rows are those of these keys; ``None`` where blank nodes cannot be named."""
        form = self._query.form
        if not isinstance(form, a.Select) or any(term is None or is_blank(term) for key in keys for term in key):
            return None
        pattern = _narrowed(form.pattern, self._inline(form, self._columns, keys))
        if pattern is None:
            return None
        asked = replace(form, pattern=pattern)
        return replace(self._query, form=asked, sparql=sparql(asked))

    def _inline(self, form: a.Select, columns: Collection[int], keys: Collection[Row]) -> a.Values:
        return a.Values(tuple(a.Var(form.variables[place]) for place in columns), tuple(keys))


def _narrowed(pattern: a.Pattern, inline: a.Values) -> a.Pattern | None:
    """A pattern joined with inline data where its variables are bound; ``None`` where that would change more."""
    match pattern:
        case a.BGP() if set(inline.variables) <= set(a.pattern_variables(pattern)):
            return a.Join(inline, pattern)
        case a.Project(variables=variables) if not set(inline.variables) <= set(variables):
            return None
        case a.Extend(variable=variable) if variable in inline.variables:
            return None
        case a.Group(keys=keys) if not {(variable, variable) for variable in inline.variables} <= set(keys):
            return None
        case a.Project() | a.Extend() | a.Group() | a.Filter() | a.Distinct() | a.Reduced() | a.OrderBy():
            below = _narrowed(pattern.pattern, inline)
            return None if below is None else replace(pattern, pattern=below)
        case _:
            return None
