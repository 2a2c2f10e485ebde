"""Solutions of a basic graph pattern as triples come in columns: when each begins, whatever else it goes through.

A solution begins with the birth of the last of its triples, if the others are still held then. Each triple that is born
is therefore joined with those that were born before it: no other join finds the same solution. A triple that matches
several patterns of a solution counts for the first of these.

A worked example: ``?o :sensor ?s ; :value ?v`` and the arrivals 0: (o1 :value 7), 1: (o2 :sensor s), 2: (o1 :sensor s).
Arrival 0 finds nothing that was born before it, nor does 1; 2 finds 0, so that the solution o1 s 7 begins with 2.

Where solutions also end at a tick (``ending``), the same joins go out from the triples that leave at the tick.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from streamgauge.incremental.id_joins import LARGEST, IdConditions, matching
from streamgauge.incremental.list_joins import PendingCondition, pending, relation_tests
from streamgauge.incremental.plan import JoinPlan, PlannedBgp, Step
from streamgauge.incremental.spans import LargeJoinError, TripleSpans
from streamgauge.incremental.term_ids import Ids, IdTriples, Places

TOGETHER: Final = 1_000_000
"""Rows of a join from which on the births that it goes out from are halved."""


class SpanBounds(NamedTuple):
    """The spans with which a triple is joined, by a value for each triple that joins go out from.

    They are born before ``born`` and had their last arrival at ``held`` (ms) or later: each in the patterns before the
    triple's own, and in those behind.
    """

    born: tuple[Places, Places]
    held: tuple[Places, Places]


@dataclass(slots=True)
class FoundSolutions:
    """Solutions in columns by variable; ``origin``: the triple, among those that joins go out from, of each."""

    columns: dict[str, Ids]
    origin: Places

    def take(self, kept: Places | npt.NDArray[np.bool_]) -> None:
        """Only the solutions at these places stay."""
        self.columns = {name: column[kept] for name, column in self.columns.items()}
        self.origin = self.origin[kept]


@dataclass(frozen=True, slots=True)
class SolutionBirths:
    """Solutions that begin, in the order in which they do: the ``births`` that they begin with, and their columns.

    ``until``: they are those up to before this birth.
    """

    births: Places
    columns: list[Ids]
    until: int = 0


class SpanJoins:
    """A planned pattern whose parts are connected, over triples that come in columns; ``output`` are its columns.

    ``reach``: a triple is held at a time while its last arrival is at most so many ms before. ``made`` counts the rows
    that joins have made, before conditions.
    """

    def __init__(self, planned: PlannedBgp, output: Sequence[str], conditions: IdConditions, reach: int) -> None:
        self._planned, self._output, self._reach = planned, tuple(output), reach
        self._conditions, self.made = conditions, 0
        self._tests = [relation_tests(relation) for relation in planned.relations]
        self._late = [pending(each) for each in planned.conditions]
        self._spans = [TripleSpans(len(relation.columns), reach) for relation in planned.relations]
        self._needed = {plan.pattern: self._needs(plan) for plan in planned.plans}

    def _needs(self, plan: JoinPlan) -> list[frozenset[str]]:
        """The variables that are needed behind each step of a plan."""
        needed = [frozenset(self._output).union(*[each.names for each in self._late])]
        for step in reversed(plan.steps):
            needed.append(needed[-1].union(self._planned.names(step.pattern)))
        return needed[::-1]

    def enter(self, triples: IdTriples, births: Places, since: int) -> None:
        """Triples have come; nothing is asked any more of what came last before ``since`` (ms)."""
        columns = (triples.ids[0::3], triples.ids[1::3], triples.ids[2::3])
        for relation, tests, spans in zip(self._planned.relations, self._tests, self._spans, strict=True):
            spans.forget_before(since)
            spans.number(len(self._conditions.ids))
            places = matching(columns, relation, tests, self._conditions)
            spans.enter([columns[at][places] for at in relation.columns], births[places], triples.times[places])

    def beginning(self, first: int, until: int, times: Places) -> Iterator[SolutionBirths]:
        """The solutions that begin with the births from ``first`` up to before ``until``; ``times`` (ms) of these."""
        try:
            found = self._beginning(first, until, times)
        except LargeJoinError:
            if until - first < 2:
                raise
        else:
            yield replace(found, until=until)
            return
        middle = (first + until) // 2
        yield from self.beginning(first, middle, times[: middle - first])
        yield from self.beginning(middle, until, times[middle - first :])

    def _beginning(self, first: int, until: int, times: Places) -> SolutionBirths:
        most = TOGETHER if until - first > 1 else LARGEST

        def of(plan: JoinPlan) -> SolutionBirths:
            spans = self._spans[self._planned.relation_of[plan.pattern]]
            places = spans.born(first, until)
            births = spans.births(places)
            held = times[births - first] - self._reach
            return self._from(plan, places, births, SpanBounds((births, births + 1), (held, held)), most)

        return self._ordered(map(of, self._planned.plans))

    def ending(self, ticks: Places, before: Places, births: Places) -> SolutionBirths:
        """The solutions that end at ticks (ms) since those ``before`` them, just ahead of births, and these births."""

        def of(plan: JoinPlan) -> SolutionBirths:
            spans = self._spans[self._planned.relation_of[plan.pattern]]
            places, at = spans.ending(ticks, before, births)
            born, kept, left = births[at], ticks[at] - self._reach, before[at] - self._reach
            return self._from(plan, places, born, SpanBounds((born, born), (kept, left)), LARGEST)

        return self._ordered(map(of, self._planned.plans))

    def _from(self, plan: JoinPlan, places: Places, births: Places, bounds: SpanBounds, most: int) -> SolutionBirths:
        """The solutions of a plan from spans at places, each with the birth that is given for its span."""
        found = self._joined(plan, places, bounds, most)
        return SolutionBirths(births[found.origin], [found.columns[name] for name in self._output])

    def _ordered(self, parts: Iterable[SolutionBirths]) -> SolutionBirths:
        """Parts as one, in the order of births."""
        found = list(parts)
        births = np.concatenate([each.births for each in found])
        order = np.argsort(births, kind="stable")
        columns = zip(*[each.columns for each in found], strict=True)
        return SolutionBirths(births[order], [np.concatenate(each)[order] for each in columns])

    def _joined(self, plan: JoinPlan, places: Places, bounds: SpanBounds, most: int) -> FoundSolutions:
        """The solutions with spans at places in a pattern."""
        spans, needed = self._spans[self._planned.relation_of[plan.pattern]], self._needed[plan.pattern]
        found = FoundSolutions(
            {
                name: spans.cells(at, places)
                for at, name in enumerate(self._planned.names(plan.pattern))
                if name in needed[0]
            },
            np.arange(len(places)),
        )
        late = list(self._late)
        self._test(found, late)
        for step, names in zip(plan.steps, needed[1:], strict=True):
            self._step(step, plan.pattern, found, bounds, names, most)
            self._test(found, late)
        return found

    def _step(
        self, step: Step, first: int, found: FoundSolutions, bounds: SpanBounds, needed: frozenset[str], most: int
    ) -> None:
        """Join solutions with the spans of one more pattern that may be with them."""
        spans, names = self._spans[step.path.relation], self._planned.names(step.pattern)
        positions = self._planned.relations[step.path.relation].columns
        bound = [positions.index(position) for position in step.path.bound]
        which, places = spans.pairs({at: found.columns[names[at]] for at in bound}, most)
        behind, origin = int(step.pattern > first), found.origin[which]
        kept = (spans.births(places) < bounds.born[behind][origin]) & (
            spans.lasts(places) >= bounds.held[behind][origin]
        )
        which, places = which[kept], places[kept]
        self.made += len(which)
        found.columns = {name: column for name, column in found.columns.items() if name in needed}
        found.take(which)
        for at, name in enumerate(names):
            if at not in bound and name in needed:
                found.columns[name] = spans.cells(at, places)

    def _test(self, found: FoundSolutions, late: list[PendingCondition]) -> None:
        """Keep the solutions for which the conditions hold that can be tested by now."""
        for condition in [each for each in late if found.columns.keys() >= set(each.names)]:
            late.remove(condition)
            if len(found.origin):
                columns = [found.columns[name] for name in condition.names]
                found.take(self._conditions.several(condition, columns))

    def forget_terms(self) -> None:
        """Have terms forgotten that nothing has any more, when they may be many."""
        ids = self._conditions.ids
        if not ids.full:
            return
        held = [ids.holding(spans.numbers()) for spans in self._spans]
        ids.forget()
        for spans, piece in zip(self._spans, held, strict=True):
            spans.renumber(piece.ids)
