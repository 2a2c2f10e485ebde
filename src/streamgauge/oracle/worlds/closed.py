"""Where nothing is open: a query over terms that leave SPARQL no choice, so that its own answer is the only legal one.

All contents of a stream are closed if its terms are, as no content has others.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import combinations_with_replacement

from streamgauge.model import algebra as a
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.terms import Term, is_literal
from streamgauge.oracle.worlds.openings import is_plain
from streamgauge.oracle.worlds.operations import DATES, beyond_table
from streamgauge.oracle.worlds.restatement import compares, constants, is_compared_by_term
from streamgauge.query.traversal import every_pattern, expressions
from streamgauge.sparql.values import read


def may_be_open(form: a.QueryForm) -> bool:
    """Whether a query may have several legal answers: it computes, compares, samples or slices."""
    return any(
        isinstance(pattern, a.Slice | a.Reduced | a.Group) or expressions(pattern)
        for pattern in every_pattern(form.pattern)
    )


class ClosedTerms:
    """Tells whether a query has one legal answer over any triples with given objects."""

    def __init__(self, query: ContinuousQuery) -> None:
        named = (*constants(query.form), *(triple[2] for triple in query.static))
        self._by_term = is_compared_by_term(query.form) and all(map(is_plain, named))
        self._equality, self._compares = compares(query.form)
        self._kinds = set(_kinds(named)) if self._compares else set()

    def hold(self, objects: Callable[[], Iterable[Term]]) -> bool:
        """Whether only one answer is legal over triples with these objects, which are read only if that may be so."""
        if not self._by_term:
            return False
        distinct = dict.fromkeys(objects())
        return all(map(is_plain, distinct)) and not (self._compares and self._may_fail(distinct))

    def _may_fail(self, terms: Iterable[Term]) -> bool:
        """Whether two of these terms, or of the query's, are compared by what 17.3 does not list (``beyond_table``)."""
        # By kinds of literals and not by literals: a content has thousands of these and a handful of kinds.
        pairs = combinations_with_replacement(sorted(self._kinds | set(_kinds(terms))), 2)
        reasons = {beyond_table(*pair) for pair in pairs} - {""}
        return bool(reasons if self._equality else reasons & {DATES})


def literal_class(literal: Term) -> str:
    """The class of a literal: ``ClosedTerms.hold`` for one of each class as for all of them."""
    return f"{read(literal).kind} {is_plain(literal)}"


def _kinds(terms: Iterable[Term]) -> Iterator[int]:
    """The kinds of the literals."""
    return (read(term).kind for term in dict.fromkeys(terms) if is_literal(term))
