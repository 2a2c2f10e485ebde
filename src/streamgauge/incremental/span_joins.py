"""Columnar joins over spans of triples: the solutions that begin and end at each look.

A solution begins at the look that first sees the last of its triples, if the others are still live then. Each triple
that is born is therefore joined with those born before it, so that no other join finds the same solution. Of triples
born at the same look, and of one triple that matches several patterns, the first pattern counts.

A worked example: ``?o :sensor ?s ; :value ?v`` and the looks 0: (o1 :value 7), 1: (o2 :sensor s), 2: (o1 :sensor s).
The triple of look 0 finds nothing that was born before it, nor does that of 1; that of 2 finds the first, so that the
solution o1 s 7 begins at look 2.

Solutions end by the same joins, which start from the triples that end; again the first pattern that ends counts.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from streamgauge.incremental.budget import LARGEST, LargeJoinError
from streamgauge.incremental.crossovers import COLUMNAR_CHANGE, ROWS_TOGETHER, WASTED_ROWS
from streamgauge.incremental.id_joins import IdConditions, IdTable
from streamgauge.incremental.list_joins import PendingCondition, pending
from streamgauge.incremental.plan import JoinPlan, PlannedBgp, TripleRelation
from streamgauge.incremental.spans import ConsecutiveLooks, TripleSpans
from streamgauge.incremental.term_ids import Ids, Places

_NONE: Final = np.empty(0, np.int32)
_ORIGIN: Final = ".origin"
"""The column with the index of each solution's starting triple."""


class WastefulError(Exception):
    """Joins produce many rows that conditions discard; joins in order of values are cheaper."""


class SpanBounds(NamedTuple):
    """The spans with which each starting triple is joined; arrays have a value per starting triple.

    They are born before ``born`` and had their last arrival at ``held`` (ms) or later. Each pair is for the patterns
    before the triple's own and for those after it.
    """

    born: tuple[Places, Places]
    held: tuple[Places, Places]


@dataclass(frozen=True, slots=True)
class SolutionMoves:
    """Solutions that begin, or that end, with the index of the look."""

    at: Places
    columns: list[Ids]


class SpanJoins:
    """A planned connected pattern over the spans of its relations; ``output`` are its columns."""

    def __init__(
        self,
        planned: PlannedBgp,
        output: Sequence[str],
        conditions: IdConditions,
        spans: Mapping[TripleRelation, TripleSpans],
    ) -> None:
        self._planned, self._output, self._conditions = planned, tuple(output), conditions
        self._made = 0
        self._late = [pending(condition) for condition in planned.conditions]
        self._spans = [spans[planned.relations[at]] for at in planned.relation_of]
        self._names = [planned.names(at) for at in range(len(planned.patterns))]
        self._needed = {plan.pattern: self._needs(plan) for plan in planned.plans}

    def _needs(self, plan: JoinPlan) -> list[frozenset[str]]:
        """The variables that are still needed after each step of a plan."""
        # Backwards through the plan: a column is dropped after the last step that reads it.
        needed = [frozenset((_ORIGIN, *self._output)).union(*[condition.names for condition in self._late])]
        for step in reversed(plan.steps):
            needed.append(needed[-1].union(self._planned.names(step.pattern)))
        return needed[::-1]

    def beginning(self, looks: ConsecutiveLooks, triples: int) -> SolutionMoves:
        """The solutions that begin at looks to which ``triples`` triples are new; WastefulError."""
        self._made, rows = 0, 0
        first, until, moves = int(looks.numbers[0]), int(looks.numbers[-1]) + 1, list[SolutionMoves]()
        for plan in self._planned.plans:
            places = self._spans[plan.pattern].born(first, until)
            births = self._spans[plan.pattern].births(places)
            at = births - first
            horizons = looks.horizons[at]
            # A triple that has left by the first look that could see it begins no solution.
            there = self._spans[plan.pattern].lasts(places) >= horizons
            # Patterns ahead of the triple's own may only use older spans, those behind it also spans of the same look:
            # a solution whose triples were born at one look is found from the first of its patterns alone.
            bounds = SpanBounds((births[there], births[there] + 1), (horizons[there], horizons[there]))
            for part in self._in_parts(plan, places[there], at[there], bounds):
                moves.append(part)
                rows += len(part.at)
                # Checked per part and not at the end, so that a bad join is given up after the first parts.
                if self._made > WASTED_ROWS * (COLUMNAR_CHANGE + triples + rows):
                    raise WastefulError
        return self._together(moves)

    def ending(self, looks: ConsecutiveLooks) -> SolutionMoves:
        """The solutions of the look before that end at these looks."""
        moves = list[SolutionMoves]()
        for plan in self._planned.plans:
            places, at = self._spans[plan.pattern].ending(looks)
            born = looks.numbers[at]
            # The mirror image: ahead of the pattern spans that outlive this look, behind it those that end at it too.
            bounds = SpanBounds((born, born), (looks.horizons[at], looks.before[at]))
            moves += self._in_parts(plan, places, at, bounds)
        return self._together(moves)

    def alive(self, number: int, horizon: int) -> SolutionMoves:
        """The solutions just before a look, given the horizon (ms) of the look before it."""
        # Any plan finds all solutions that are alive; one is enough.
        plan = self._planned.plans[0]
        places = self._spans[plan.pattern].alive(number, horizon)
        born, ends = np.full(len(places), number), np.full(len(places), horizon)
        none = np.zeros(len(places), np.int64)
        return self._together(self._in_parts(plan, places, none, SpanBounds((born, born), (ends, ends))))

    def _in_parts(self, plan: JoinPlan, places: Places, at: Places, bounds: SpanBounds) -> Iterator[SolutionMoves]:
        """The solutions of a plan from the spans at ``places``, which are halved if a join gets too large."""
        most = ROWS_TOGETHER if len(places) > 1 else LARGEST
        try:
            table = self._joined(plan, places, bounds, most)
        except LargeJoinError:
            if len(places) < 2:
                raise
            # Half as many origins make about half as many rows; one origin alone cannot be divided.
            middle = len(places) // 2
            for part in (slice(0, middle), slice(middle, None)):
                born, ends = ((one[part], other[part]) for one, other in bounds)
                yield from self._in_parts(plan, places[part], at[part], SpanBounds(born, ends))
            return
        yield SolutionMoves(at[table.columns[_ORIGIN]], [table.columns.get(name, _NONE) for name in self._output])

    def _together(self, parts: Iterable[SolutionMoves]) -> SolutionMoves:
        """All moves in the order of looks; TooMuchError."""
        moves = list(parts)
        at = np.concatenate([move.at for move in moves])
        if len(at) > LARGEST:
            raise LargeJoinError
        if len(moves) == 1:
            return moves[0]
        # Each plan gives its solutions in order; the looks of all plans have to be merged.
        order = np.argsort(at, kind="stable")
        columns = zip(*[move.columns for move in moves], strict=True)
        return SolutionMoves(at[order], [np.concatenate(column)[order] for column in columns])

    def _joined(self, plan: JoinPlan, places: Places, bounds: SpanBounds, limit: int) -> IdTable:
        """The solutions that start from the spans at ``places``; their index is the origin."""
        spans, needed = self._spans[plan.pattern], self._needed[plan.pattern]
        names = enumerate(self._names[plan.pattern])
        columns: dict[str, Any] = {name: spans.cells(at, places) for at, name in names if name in needed[0]}
        columns[_ORIGIN] = np.arange(len(places))
        table, late = IdTable(self._conditions, columns, len(places)), list(self._late)
        self._test(table, late)
        for step, kept in zip(plan.steps, needed[1:], strict=True):
            if not table.size:
                break
            spans, behind = self._spans[step.pattern], int(step.pattern > plan.pattern)
            beside = _Beside(spans, bounds.born[behind], bounds.held[behind], table.columns[_ORIGIN])
            table.join(self._names[step.pattern], spans, kept, limit=limit, admits=beside.admits)
            self._made += table.size
            self._test(table, late)
        return table

    def _test(self, table: IdTable, late: list[PendingCondition]) -> None:
        """Apply the conditions whose variables are bound by now."""
        for condition in [condition for condition in late if table.columns.keys() >= set(condition.names)]:
            late.remove(condition)
            if table.size:
                table.filter(condition)


@dataclass(frozen=True, slots=True)
class _Beside:
    """The spans that may take part in solutions, by the bounds of their starting triples."""

    spans: TripleSpans
    born: Places
    since: Places
    origin: Places

    def admits(self, which: Places, places: Places) -> npt.NDArray[np.bool_]:
        """Whether each pair of a solution and a span is admitted."""
        origin = self.origin[which]
        admitted: npt.NDArray[np.bool_] = (self.spans.births(places) < self.born[origin]) & (
            self.spans.lasts(places) >= self.since[origin]
        )
        return admitted
