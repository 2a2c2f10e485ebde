"""The solutions of a monotone query with the arrivals that they depend on: the borders between which each exists.

A query without negation, OPTIONAL, paths and aggregates is monotone: a solution exists in a content exactly when all
triples of its pattern are in it. One evaluation over a long stretch of the stream therefore gives the answer over every
content within it: a solution whose triples arrived at the ranks 4, 7 and 5 exists in each content from rank 4 or before
to rank 7 or after. If a triple arrives again, at 9, its solution has several such spans, of which the minimal are kept.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product
from math import prod
from sys import maxsize
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from streamgauge.model import algebra as al
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.terms import Row, Term, Triple
from streamgauge.query.stamps import reads_time
from streamgauge.query.traversal import every_pattern, expressions, reads_patterns
from streamgauge.semantics.arrivals import Arrival
from streamgauge.semantics.evaluate import Snapshot
from streamgauge.sparql.algebra import makes_blank_nodes

ALWAYS: Final = maxsize
"""The first rank of a solution that depends on static data alone: inside every content, even an empty one."""
MAX_PAIRS: Final = 256
"""Maximum combinations of repeated arrivals for one solution."""

Ranks: TypeAlias = npt.NDArray[np.int64]
Span: TypeAlias = tuple[int, int]
"""The first and the last rank that a solution depends on, both inclusive."""


class NotMonotoneError(ValueError):
    """A query or content whose solutions do not follow from the arrivals that they depend on; the text says why."""


@dataclass(frozen=True, slots=True)
class TimedSolutions:
    """Solutions over one stretch: distinct ``rows``.

    For each solution the index of its ``row`` and its minimal ``spans``.
    """

    rows: tuple[Row, ...]
    row: Ranks
    spans: tuple[tuple[Span, ...], ...]


def spans_of(arrivals: Sequence[Sequence[int]]) -> tuple[Span, ...]:
    """The minimal spans of a solution that needs one arrival out of each sequence of ranks.

    Worked example: ranks 4 or 9 of one triple and 7 of another give (4, 7) and (7, 9).
    """
    if all(len(ranks) == 1 for ranks in arrivals):
        only = [ranks[0] for ranks in arrivals]
        return ((min(only, default=ALWAYS), max(only, default=-1)),)
    size = prod(map(len, arrivals))
    if size > MAX_PAIRS:
        raise NotMonotoneError(f"a solution rests on triples that came {size:,} ways")
    return minimal((min(chosen), max(chosen)) for chosen in product(*arrivals))


def minimal(spans: Iterator[Span]) -> tuple[Span, ...]:
    """The spans that contain no other span, ascending by first rank."""
    kept: list[Span] = []
    # From the latest start on: a span contains none of the earlier ones in this order if it ends before all of them.
    for first, last in sorted(set(spans), key=lambda span: (-span[0], span[1])):
        if not kept or last < kept[-1][1]:
            kept.append((first, last))
    return tuple(reversed(kept))


def signed(spans: Sequence[Span]) -> Iterator[tuple[Span, int]]:
    """Weights of spans that sum to 1 in every range that contains at least one of the minimal spans, else to 0.

    Inclusion and exclusion over neighbours: a range that contains spans i to j of the ascending list contains j - i of
    the unions of two neighbours, so the sum is (j - i + 1) - (j - i) = 1.
    """
    yield from ((span, 1) for span in spans)
    yield from (((one[0], other[1]), -1) for one, other in pairwise(spans))


def reached(members: Sequence[Sequence[Span]], numbers: Sequence[int]) -> Iterator[tuple[Span, int]]:
    """Weights of spans whose sum over a range is how many of ``numbers`` are at most the members that it contains.

    A range contains a member if it contains one of its spans. Sweeping the start backwards, each member has a smallest
    end; the k-th smallest of these is where a content with that start has k members.

    Worked example: members with the spans (0, 3) and (1, 2), numbers 1 and 2. From start 1 one member ends, at 2: the
    first number has the span (1, 2). From start 0 the ends are 2 and 3: the second has (0, 3), and (0, 2) for the first
    is not minimal. A content of 0 to 3 gets 1 + 1 = 2, one of 1 to 3 gets 1.
    """
    events = sorted(((first, last, at) for at, spans in enumerate(members) for first, last in spans), reverse=True)
    ends: dict[int, int] = {}
    ordered: list[int] = []
    by_number: dict[int, list[Span]] = {number: [] for number in numbers}
    for place, (first, last, at) in enumerate(events):
        if at not in ends or last < ends[at]:
            if at in ends:
                ordered.pop(bisect_left(ordered, ends[at]))
            ends[at] = last
            ordered.insert(bisect_left(ordered, last), last)
        # All spans of one start count together, so the state is read only after the last of them.
        if place + 1 == len(events) or events[place + 1][0] != first:
            for number, spans in by_number.items():
                if number <= len(ordered):
                    spans.append((first, ordered[number - 1]))
    for spans in by_number.values():
        yield from signed(minimal(iter(spans)))


class TimedQuery:
    """A monotone query, evaluated for its solutions and the arrivals that they depend on.

    ``shown`` are the variables of its rows. Raises NotMonotoneError for any other query.
    """

    def __init__(self, query: ContinuousQuery, pattern: al.Pattern, shown: Sequence[str]) -> None:
        # The same solution has other terms in another content: another time, other blank nodes.
        trees = (tree for part in every_pattern(pattern) for tree in expressions(part))
        if reads_time(query.form) or any(map(makes_blank_nodes, trees)):
            raise NotMonotoneError("times and fresh terms")
        self._static = set(query.static)
        name = query.windows[0].name
        self._window: Term | None = None if name is None else f"<{name}>"
        self._branches = [_Branch(query, branch, shown, self._window) for branch in branches(pattern)]

    def solutions(self, inside: tuple[Arrival, ...], ranks: Mapping[Triple, Sequence[int]]) -> TimedSolutions:
        """The solutions over these arrivals, whose triples have these ``ranks``.

        Raises NotMonotoneError for a solution that depends on a triple no element contains in this form.
        """
        numbers: dict[Row, int] = {}
        rows, spans = list[int](), list[tuple[Span, ...]]()
        for branch in self._branches:
            for row, triples in branch.matches(inside):
                arrivals = [
                    triple_arrivals
                    for triple, static in triples
                    if (triple_arrivals := self._arrivals(triple, static, ranks))
                ]
                rows.append(numbers.setdefault(row, len(numbers)))
                spans.append(spans_of(arrivals))
        return TimedSolutions(tuple(numbers), np.array(rows, dtype=np.int64), tuple(spans))

    def _arrivals(self, triple: Triple, static: bool, ranks: Mapping[Triple, Sequence[int]]) -> Sequence[int]:
        """The ranks of a triple; none if static data contains it, because it is then in every content."""
        if static and triple in self._static:
            return ()
        arrivals = ranks.get(triple)
        if not arrivals:
            raise NotMonotoneError(f"a solution rests on {' '.join(triple)}, which is in no element as it is written")
        return arrivals


class _Branch:
    """One alternative of the query, without UNION: all its triple patterns match in every solution."""

    def __init__(self, query: ContinuousQuery, pattern: al.Pattern, shown: Sequence[str], window: Term | None) -> None:
        names = [variable.name for variable in al.pattern_variables(pattern)]
        form = al.Select(al.Project(pattern, tuple(map(al.Var, names))), tuple(names))
        self._snapshot = Snapshot(replace(query, form=form))
        places = {name: at for at, name in enumerate(names)}
        self._shown = tuple(places.get(name) for name in shown)
        self._triples = [(_filled(triple, places), static) for triple, static in _placed(pattern, window, True)]

    def matches(self, inside: tuple[Arrival, ...]) -> Iterator[tuple[Row, list[tuple[Triple, bool]]]]:
        """Each solution's row, and the triples that it depends on, each with whether static data may provide it."""
        for matched in self._snapshot.rows((inside,)):
            row = tuple(None if at is None else matched[at] for at in self._shown)
            yield row, [(_triple(parts, matched), static) for parts, static in self._triples]


_Parts: TypeAlias = tuple[int | Term, int | Term, int | Term]
"""A triple pattern whose variables are replaced by their columns."""


def _filled(triple: al.TriplePattern, places: Mapping[str, int]) -> _Parts:
    subject, predicate, item = (_part(node, places) for node in (triple.subject, triple.predicate, triple.object))
    return subject, predicate, item


def _part(node: object, places: Mapping[str, int]) -> int | Term:
    if isinstance(node, al.Var):
        return places[node.name]
    if isinstance(node, str):
        return node
    raise NotMonotoneError("paths and triple terms with variables")


def _triple(parts: _Parts, row: Row) -> Triple:
    subject, predicate, item = (row[part] if isinstance(part, int) else part for part in parts)
    assert subject is not None
    assert predicate is not None
    assert item is not None
    return subject, predicate, item


def _placed(pattern: al.Pattern, window: Term | None, static: bool) -> Iterator[tuple[al.TriplePattern, bool]]:
    """The triple patterns of a branch, each with whether it may match static data: outside a named window."""
    match pattern:
        case al.BGP(patterns=triples):
            yield from ((triple, static) for triple in triples)
        case al.Join(left=left, right=right):
            yield from _placed(left, window, static)
            yield from _placed(right, window, static)
        case al.Graph(name=name, pattern=inner):
            if name != window:
                raise NotMonotoneError("graphs other than the window's")
            yield from _placed(inner, None, False)
        case al.Filter(pattern=inner) | al.Extend(pattern=inner):
            yield from _placed(inner, window, static)


def branches(pattern: al.Pattern) -> list[al.Pattern]:
    """The alternatives of a monotone pattern, with UNION distributed over joins; NotMonotoneError for any other."""
    match pattern:
        case al.BGP(patterns=triples):
            return [al.BGP(tuple(map(_named, triples)))]
        case al.Values():
            return [pattern]
        case al.Join(left=left, right=right):
            # Joins distribute over UNION, also in multiplicity, so each branch is a pattern without alternatives.
            return [al.Join(one, other) for one in branches(left) for other in branches(right)]
        case al.Union(left=left, right=right):
            return branches(left) + branches(right)
        case al.Filter(condition=condition, pattern=inner):
            return [al.Filter(_plain(condition), branch) for branch in branches(inner)]
        case al.Extend(pattern=inner, variable=variable, expression=value):
            return [al.Extend(branch, variable, _plain(value)) for branch in branches(inner)]
        case al.Graph(name=name, pattern=inner) if isinstance(name, str):
            return [al.Graph(name, branch) for branch in branches(inner)]
    raise NotMonotoneError(f"{type(pattern).__name__} in the query")


def _plain(expression: al.Expression) -> al.Expression:
    if reads_patterns(expression):
        raise NotMonotoneError("EXISTS in the query")
    return expression


def _named(triple: al.TriplePattern) -> al.TriplePattern:
    """A triple pattern with named variables for blank nodes, so that a solution shows which triples it matched."""
    return replace(triple, subject=_variable(triple.subject), object=_variable(triple.object))


def _variable(node: al.Node) -> al.Node:
    if isinstance(node, al.Var) and node.name.startswith("_:"):
        return al.Var(f"?{node.name}")  # a name that no query can give to a variable of its own
    return node
