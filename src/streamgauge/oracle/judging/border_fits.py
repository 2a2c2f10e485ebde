"""How well an answer fits every pair of borders at once, from the solutions of a stretch of the stream."""

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from sys import maxsize
from typing import Final, TypeAlias

import numpy as np

from streamgauge.model import algebra as al
from streamgauge.model.element import StreamElement
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.report import View
from streamgauge.model.semantics import R2S, Counting, EmptyAggregate, Semantics
from streamgauge.model.terms import Row, Term, Triple
from streamgauge.oracle.judging.borders import BorderGrid, Quadrants, best_pair
from streamgauge.oracle.judging.compare import overlap
from streamgauge.oracle.judging.lifetimes import NotMonotoneError, Ranks, Span, TimedQuery, TimedSolutions, reached
from streamgauge.oracle.judging.metrics import ratio
from streamgauge.oracle.worlds.blank_nodes import has_blanks
from streamgauge.oracle.worlds.intervals import TOLERANCE, finite, read
from streamgauge.oracle.worlds.restatement import computed_columns
from streamgauge.semantics.arrivals import Arrival, admit, arrived_triples, content
from streamgauge.semantics.definition import facts, operator
from streamgauge.sparql.aggregates import aggregate

FAR: Final = maxsize
"""A time (ms) beyond every element; negated, before every element."""
MAX_STRETCH_TRIPLES: Final = 1_500_000
"""Triples of a stretch, whose solutions are in memory together; a single window may exceed it."""


@dataclass(frozen=True, slots=True)
class BorderFit:
    """Borders of a content (first and last time, ms, inclusive), and an answer's precision and recall under them."""

    first: int
    last: int
    precision: float
    recall: float

    def is_settled(self, view: View, reach: int) -> bool:
        """Whether no borders further than ``reach`` (ms) away can fit better: it is exact, shifted by less in all."""
        away = abs(self.first - view.first) + abs(self.last - view.last)
        return (self.precision, self.recall) == (1.0, 1.0) and away <= reach


class Contents:
    """The contents of a query's one window between any two borders.

    A *rank* is an arrival's place in the order of arrivals, over all streams of the query. Borders in time are turned
    into ranks once, since several elements may share a time and ``View.seen`` and ``View.after`` count arrivals.
    """

    def __init__(
        self, query: ContinuousQuery, semantics: Semantics, elements: Sequence[StreamElement], t0: int
    ) -> None:
        self.admitted, _late = admit(facts(elements), semantics, query.windows, t0)
        self.arrived: list[Arrival] = arrived_triples(self.admitted, query.windows, semantics)
        self._all = [arrival.time for arrival in self.arrived]
        self._bounded = [-FAR, *self._all, FAR]
        self._arrivals = np.array(self._all, dtype=np.int64)
        self.stream, self.reach_ms = query.windows[0].stream, query.windows[0].window.slide
        # Only the window's own elements move a border: between two of their times all contents are the same.
        own = (arrival.time for arrival in self.arrived if arrival.stream == self.stream)
        self._times = np.unique(np.fromiter(own, dtype=np.int64))

    def within(self, reach: int) -> "Contents":
        """The same with borders at most this far from the declared ones (ms)."""
        narrow = copy(self)
        narrow.reach_ms = reach
        return narrow

    def candidates(self, view: View) -> tuple[Ranks, Ranks]:
        """Candidate starts and ends (ms, ascending): those declared, and elements' times in ``reach_ms`` of them."""
        return self._near(view.first), self._near(view.last)

    def _near(self, border: int) -> Ranks:
        low, high = np.searchsorted(self._times, (border - self.reach_ms, border + self.reach_ms + 1))
        # The declared border stays a candidate even if no element has its time.
        return np.unique(np.append(self._times[low:high], border))

    def time(self, rank: int) -> int:
        """The time (ms) of the arrival of this rank; ``-FAR`` for a rank of -1, ``FAR`` for the one after the last."""
        return self._bounded[rank + 1]

    def moved(self, view: View, first: int, last: int) -> View:
        """The view with other borders (ms).

        A side that is widened loses its limit by arrivals (``seen``, ``after``).
        """
        seen = view.seen if last <= view.last else bisect_right(self._all, last)
        return replace(view, first=first, last=last, seen=seen, after=view.after if first >= view.first else 0)

    def ranks(self, view: View) -> Span:
        """The half-open range of ranks that a view contains."""
        return max(view.after, bisect_left(self._all, view.first)), min(view.seen, bisect_right(self._all, view.last))

    def starts(self, view: View, firsts: Ranks) -> Ranks:
        """For each candidate start, the first rank inside the view moved to it.

        ``ranks(moved(...))[0]`` as an array.
        """
        return np.maximum(np.where(firsts >= view.first, view.after, 0), np.searchsorted(self._arrivals, firsts))

    def ends(self, view: View, lasts: Ranks) -> Ranks:
        """For each candidate end, the rank after the last one inside the view moved to it."""
        ranks = np.searchsorted(self._arrivals, lasts, "right")
        return np.where(lasts <= view.last, np.minimum(view.seen, ranks), ranks)

    def inside(self, view: View) -> tuple[Arrival, ...]:
        """The arrivals that a view holds."""
        return content(self.arrived, self._all, self.stream, view)

    def size(self, view: View) -> int:
        """About how many triples a view holds."""
        start, end = self.ranks(view)
        return sum(len(arrival.triples) for arrival in self.arrived[start:end])

    def reach(self, view: View) -> Span:
        """The half-open range of ranks that a view can contain under any candidate borders."""
        return bisect_left(self._all, view.first - self.reach_ms), bisect_right(self._all, view.last + self.reach_ms)


class Stretches:
    """The solutions of a query over stretches of the stream, each of which covers the reach of several windows.

    Wrong windows are searched in order of time, so a stretch is evaluated once and serves the next windows too.
    """

    def __init__(
        self,
        query: TimedQuery,
        contents: Contents,
        views: Iterable[View],
        prepare: Callable[[TimedSolutions], None],
    ) -> None:
        """``prepare`` gets the solutions of each stretch before it is searched."""
        self._query, self._contents, self._prepare = query, contents, prepare
        self._reaches = sorted(contents.reach(view) for view in views)
        self._current: tuple[Span, TimedSolutions] | None = None

    def over(self, reach: Span) -> TimedSolutions:
        """The solutions of a stretch that covers these ranks; evaluated when the current one does not."""
        if self._current is None or not (self._current[0][0] <= reach[0] and reach[1] <= self._current[0][1]):
            span = self._stretch(reach)
            solutions = self._evaluated(*span)
            self._prepare(solutions)
            self._current = span, solutions
        return self._current[1]

    def steady(self, view: View) -> tuple[Span, Span]:
        """(Least and greatest start, least and greatest end), ms, under which the solutions are the same.

        A solution with a span (first, last) enters or leaves as a border passes one of its two ranks; the nearest such
        rank on each side of each border is the limit.
        """
        low, high = self._contents.ranks(view)
        spans = [span for segment in self.over(self._contents.reach(view)).spans for span in segment]
        before = max((first for first, last in spans if first < low and last < high), default=-1)
        # With the borders themselves, because a solution of static data alone limits neither.
        starts = min((high, *(first for first, last in spans if first >= low and last < high)))
        ends = max((low - 1, *(last for first, last in spans if first >= low and last < high)))
        time, beyond = self._contents.time, len(self._contents.arrived)
        after = min((last for first, last in spans if first >= low and last >= high), default=beyond)
        return (time(before) + 1, time(starts)), (time(ends), time(after) - 1)

    def _stretch(self, reach: Span) -> Span:
        low, high = reach
        for first, last in self._reaches[bisect_left(self._reaches, reach) :]:
            if (
                # Windows that overlap the first by less than half begin a new stretch: a join over a long stretch also
                # finds the solutions whose triples no single window holds together.
                first > (reach[0] + reach[1]) // 2
                or sum(len(element.triples) for element in self._contents.arrived[low:last]) > MAX_STRETCH_TRIPLES
            ):
                break
            high = max(high, last)
        return low, high

    def _evaluated(self, low: int, high: int) -> TimedSolutions:
        arrived, stream = self._contents.arrived, self._contents.stream
        ranks: dict[Triple, list[int]] = {}
        inside: list[Arrival] = []
        for rank, arrival in enumerate(arrived[low:high], low):
            if arrival.stream == stream:
                if arrival.until is not None:
                    # A solution over such elements ends although its triples' arrivals are inside.
                    raise NotMonotoneError("elements that end by themselves")
                inside.append(arrival)
                for triple in arrival.triples:
                    ranks.setdefault(triple, []).append(rank)
        return self._query.solutions(tuple(inside), ranks)


def fast_search(
    query: ContinuousQuery, semantics: Semantics, contents: Contents, views: Sequence[View]
) -> "FastSearch | None":
    """A search that evaluates the query once for all pairs of borders; ``None`` where the query is not monotone."""
    if semantics.content is not Counting.SET or not isinstance(query.form, al.Select):
        return None
    try:
        if (number := _one_number(query.form.pattern)) is not None:
            inner, aggregate = number
            plain = semantics.empty_aggregate is EmptyAggregate.SPARQL
            # A difference of two numbers is two rows, and an empty aggregate that is not SPARQL's is no number.
            if not plain or operator(query, semantics) is not R2S.RSTREAM:
                return None
            shown = [aggregate.argument.name] if isinstance(aggregate.argument, al.Var) else []
            return NumberSearch(aggregate.function, TimedQuery(query, inner, shown), contents, views)
        pattern, distinct = _plain(query.form.pattern)
        # Computed columns compare by tolerance, which is not counting equal rows.
        if computed_columns(query.form):
            return None
        once = distinct or semantics.answers is Counting.SET
        timed = TimedQuery(query, pattern, query.form.variables)
        return SolutionSearch(timed, contents, views, operator(query, semantics), once=once)
    except NotMonotoneError:
        return None


def _plain(pattern: al.Pattern) -> tuple[al.Pattern, bool]:
    """The pattern below the projection, without ORDER BY, and whether rows are distinct; NotMonotoneError otherwise."""
    match pattern:
        case al.Project(pattern=al.OrderBy(pattern=inner)) | al.Project(pattern=inner):
            return inner, False
        case al.Distinct(pattern=al.Project() as projected):
            return _plain(projected)[0], True
    raise NotMonotoneError("no projection")


def _one_number(pattern: al.Pattern) -> tuple[al.Pattern, al.Aggregate] | None:
    """The pattern and the aggregate of ``SELECT (AVG(?x) AS ?y)`` without GROUP BY; AVG, SUM or COUNT of a variable."""
    match pattern:
        case al.Project(
            pattern=al.Extend(
                pattern=al.Group(pattern=inner, keys=(), aggregates=((name, aggregated),)), expression=expression
            ),
            variables=(_,),
        ) if expression == name and not aggregated.distinct:
            counts = aggregated.function == "COUNT"
            named = isinstance(aggregated.argument, al.Var) or (counts and aggregated.argument is None)
            if named and (counts or aggregated.function in ("AVG", "SUM")):
                return inner, aggregated
    return None


class _RankBorders:
    """The candidate borders of a view as ranks.

    ``low`` is the first rank for each start, ``high`` the one after each end.
    """

    def __init__(self, contents: Contents, view: View) -> None:
        firsts, lasts = contents.candidates(view)
        self.grid = BorderGrid.of(firsts, lasts, view.first, view.last)
        self.low, self.high = contents.starts(view, firsts), contents.ends(view, lasts)

    def quadrants(self, spans: Ranks, weights: Ranks, constant: int) -> Quadrants:
        """Spans of ranks (shape n x 2) with their weights, as quadrants of the grid of candidate borders."""
        start = np.searchsorted(self.low, spans[:, 0], "right") - 1
        return Quadrants(start, np.searchsorted(self.high, spans[:, 1], "right"), weights, constant)

    def fit(self, start: int, end: int, common: int, rows: int, received: int) -> BorderFit:
        """The fit of the borders at these places of the grid."""
        borders = int(self.grid.starts[start]), int(self.grid.ends[end])
        return BorderFit(*borders, ratio(common, received, rows), ratio(common, rows, received))


_Steps: TypeAlias = tuple[Ranks, Ranks, Ranks]
"""Spans (shape n x 2), and what each adds (n) to the number of common rows and (n) to the number of rows sent."""


class SolutionSearch:
    """The best borders for an answer whose rows are solutions.

    A row exists where one of its solutions' spans is inside.
    """

    def __init__(self, query: TimedQuery, contents: Contents, views: Iterable[View], sends: R2S, *, once: bool) -> None:
        """``once``: rows are distinct, however many solutions a row has."""
        self.stretches = Stretches(query, contents, views, self._prepare)
        self._contents, self._once = contents, once
        self._sign = -1 if sends is R2S.DSTREAM else 1

    def _prepare(self, solutions: TimedSolutions) -> None:
        ends = _ranks([(spans[-1][0], spans[0][1]) for spans in solutions.spans])
        simple = np.array([len(spans) == 1 for spans in solutions.spans], dtype=bool)
        bisected = simple & (ends[:, 0] <= ends[:, 1])
        order = np.lexsort((ends[:, 0], ~bisected))  # sorted, so that _within can bisect them
        self._outer, self._row, self._simple = ends[order], solutions.row[order], simple[order]
        self._first = self._outer[: bisected.sum(), 0]
        self._spans = [solutions.spans[at] for at in order.tolist()]
        self._numbers = {row: number for number, row in enumerate(solutions.rows)}

    def _within(self, reach: Span) -> Ranks:
        """Places of the solutions whose outer span is within these ranks: those of one span exist there, others may."""
        low, high = np.searchsorted(self._first, reach)
        places = np.concatenate((np.arange(low, high), np.arange(len(self._first), len(self._outer))))
        first, last = self._outer[places].T
        within: Ranks = places[(first >= reach[0]) & (last < reach[1])]
        return within

    def _row_counts(self, view: View) -> Ranks:
        """Copies of each row in a view's content, by row number."""
        low, high = self._contents.ranks(view)
        within = self._within((low, high))
        exist = self._simple[within]
        for place in np.nonzero(~exist)[0].tolist():
            exist[place] = any(first >= low and last < high for first, last in self._spans[within[place]])
        counts: Ranks = np.bincount(self._row[within[exist]], minlength=len(self._numbers))
        return np.minimum(counts, 1) if self._once else counts

    def _sent(self, ranks: Ranks | int, before: Ranks) -> Ranks:
        """Copies of rows that are sent, from the copies now and before: the positive part of the signed difference."""
        sent: Ranks = np.maximum(self._sign * (ranks - before), 0)
        return sent

    def fit(self, view: View, received: Sequence[Row], previous: View | None) -> BorderFit:
        """The best borders for an answer; ``previous`` is the content before, where differences to it are sent."""
        if has_blanks(received):
            raise NotMonotoneError("blank nodes in the answer")
        reach = self._contents.reach(view)
        low, high = reach if previous is None else self._contents.reach(previous)
        solutions = self.stretches.over((min(low, reach[0]), max(high, reach[1])))
        before = np.zeros(len(solutions.rows), dtype=np.int64) if previous is None else self._row_counts(previous)
        wanted = np.zeros_like(before)
        for row, times in Counter(received).items():
            if row in self._numbers:
                wanted[self._numbers[row]] = times
        within = self._within(reach)
        numbers = self._row[within]
        several = ~self._simple[within] | (np.bincount(numbers, minlength=len(before))[numbers] > 1)
        steps = [
            self._alone(within[~several], before, wanted),
            *self._together(within[several].tolist(), before, wanted),
        ]
        spans, common, rows = (np.concatenate(columns) for columns in zip(*steps, strict=True))
        ranks, silent = _RankBorders(self._contents, view), self._sent(0, before)
        shared = ranks.quadrants(spans, common, int(np.minimum(silent, wanted).sum()))
        best = best_pair(ranks.grid, shared, ranks.quadrants(spans, rows, int(silent.sum())), len(received))
        return ranks.fit(best.start, best.end, best.common, best.rows, len(received))

    def _steps(self, ranks: Ranks, before: Ranks, wanted: Ranks) -> tuple[Ranks, Ranks]:
        """The effect of one more solution: in the number of common rows, and in the number of rows sent."""
        sent, more = self._sent(ranks, before), self._sent(ranks + 1, before)
        return np.minimum(more, wanted) - np.minimum(sent, wanted), more - sent

    def _alone(self, places: Ranks, before: Ranks, wanted: Ranks) -> _Steps:
        """The steps of rows that have one solution, of one span: most rows, so they are computed as arrays."""
        rows = self._row[places]
        return self._outer[places], *self._steps(np.zeros_like(rows), before[rows], wanted[rows])

    def _together(self, places: Sequence[int], before: Ranks, wanted: Ranks) -> Iterator[_Steps]:
        """The steps of the other rows: the k-th solution inside adds the k-th copy, unless rows are distinct."""
        members: dict[int, list[tuple[Span, ...]]] = defaultdict(list)
        for place in places:
            members[int(self._row[place])].append(self._spans[place])
        for row, solutions in members.items():
            counts = np.arange(1 if self._once else len(solutions))
            common, sent = self._steps(counts, before[row], wanted[row])
            for shared in (True, False):
                # The copies that change what is sent, those that the answer has apart from those that it lacks: both
                # count as rows of the content, but only the former as common.
                numbers = np.nonzero(sent * ((common != 0) == shared))[0] + 1
                weighted = [*reached(solutions, numbers.tolist())]
                weights = self._sign * np.array([weight for _, weight in weighted], dtype=np.int64)
                yield _ranks([span for span, _ in weighted]), weights * shared, weights


MAX_EXACT_TRIALS: Final = 200
"""Pairs of borders for which a number that is equal as a float is computed exactly."""


class NumberSearch:
    """The best borders for one COUNT, SUM or AVG over all solutions of a content.

    A content's sum is the difference of two prefix sums if solutions begin and end in the same order. Floats select the
    candidates; the nearest are then computed by ``sparql.aggregates``.
    """

    def __init__(self, function: str, query: TimedQuery, contents: Contents, views: Iterable[View]) -> None:
        self.stretches = Stretches(query, contents, views, self._prepare)
        self._function, self._contents = function, contents

    def _prepare(self, solutions: TimedSolutions) -> None:
        if any(len(spans) > 1 for spans in solutions.spans):
            raise NotMonotoneError("triples that come again")
        spans = _ranks([spans[0] for spans in solutions.spans])
        order = np.lexsort((spans[:, 1], spans[:, 0]))
        self._first, self._last = spans[order, 0], spans[order, 1]
        # Otherwise the solutions of a content are not one range of this order, and prefix sums do not apply.
        if np.any(np.diff(self._last) < 0):
            raise NotMonotoneError("solutions that begin and end in another order")
        # COUNT(*) shows no variable; any term stands for a row.
        self._terms: list[Term | None] = [(*solutions.rows[row], '"*"')[0] for row in solutions.row[order].tolist()]
        values = [1 if self._function == "COUNT" else finite(term) for term in self._terms]
        known = [float(value) for value in values if value is not None]
        if len(known) < len(values):
            raise NotMonotoneError("values that are not numbers")
        self._sums = np.concatenate(([0.0], np.cumsum(known)))

    def fit(self, view: View, received: Sequence[Row], _previous: View | None) -> BorderFit:
        """The borders of least shift that give the number in the answer, else the declared ones with a score of 0."""
        self.stretches.over(self._contents.reach(view))
        ranks = _RankBorders(self._contents, view)
        low = np.searchsorted(self._first, ranks.low, "left")
        high = np.searchsorted(self._last, ranks.high, "left")
        for start, end in self._equal(ranks.grid, low, high, received):
            row = (aggregate(self._function, self._terms[low[start] : high[end]]),)
            if overlap([row], received, frozenset({0})).common:
                return ranks.fit(start, end, 1, 1, len(received))
        declared = np.searchsorted(ranks.grid.starts, view.first), np.searchsorted(ranks.grid.ends, view.last)
        return ranks.fit(int(declared[0]), int(declared[1]), 0, 1, len(received))

    def _equal(self, grid: BorderGrid, low: Ranks, high: Ranks, received: Sequence[Row]) -> Iterator[tuple[int, int]]:
        """At most ``MAX_EXACT_TRIALS`` pairs whose number is near one of the answer, by ascending shift."""
        terms = (term for row in received for term in row if term is not None)
        targets = [(float(value), _near(term)) for term in terms if (value := finite(term)) is not None]
        near: list[tuple[int, int, int, int]] = []
        for start in np.argsort(grid.start_shift, kind="stable").tolist():
            own = int(grid.start_shift[start])
            # Starts ascend by their own shift, which is part of the total: no later pair can enter a full list.
            if len(near) == MAX_EXACT_TRIALS and own > near[-1][0]:
                break
            ends = self._ends(grid, start, low, high, targets)
            if len(ends):
                total = own + grid.end_shift[ends]
                nearest = np.argsort(total, kind="stable")[:MAX_EXACT_TRIALS]
                near += [(int(total[at]), own, start, int(ends[at])) for at in nearest]
                near = sorted(near)[:MAX_EXACT_TRIALS]
        yield from ((start, end) for _, _, start, end in near)

    def _ends(
        self, grid: BorderGrid, start: int, low: Ranks, high: Ranks, targets: Sequence[tuple[float, float]]
    ) -> Ranks:
        """Places of the ends that give, with this start, a number near a target (value, relative tolerance)."""
        size = np.maximum(high - low[start], 0)
        total = self._sums[np.maximum(high, low[start])] - self._sums[low[start]]
        value = total / np.maximum(size, 1) if self._function == "AVG" else total
        close = np.zeros(len(high), dtype=bool)
        for target, tolerance in targets:
            close |= np.abs(value - target) <= tolerance * np.maximum(np.maximum(np.abs(value), abs(target)), 1e-6)
        # A window does not end before it starts.
        ends: Ranks = np.nonzero(close & (grid.ends >= grid.starts[start]))[0]
        return ends


FastSearch: TypeAlias = SolutionSearch | NumberSearch
"""A search that evaluates the query once for all pairs of borders."""


def _ranks(spans: Sequence[Span]) -> Ranks:
    """Spans as an array, shape n x 2."""
    return np.array(spans, dtype=np.int64).reshape(-1, 2)


def _near(term: Term) -> float:
    """The relative tolerance for candidates: twice that of the number's datatype, so that rounding excludes none."""
    known = read(term)
    return 1e-9 if known is None else 2 * float(TOLERANCE.get(known.kind, 0)) + 1e-9
