"""The triples of one content in columns, and the changes that patterns over it find at each look."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from streamgauge.incremental.crossovers import BY_NUMBERS, SPARSE
from streamgauge.incremental.id_joins import IdConditions, RelationTriples
from streamgauge.incremental.list_joins import relation_tests
from streamgauge.incremental.operators import Bag, add, add_all
from streamgauge.incremental.plan import BgpRequest, plan
from streamgauge.incremental.span_joins import SolutionMoves, SpanJoins, WastefulError
from streamgauge.incremental.spans import ConsecutiveLooks, TripleSpans
from streamgauge.incremental.term_ids import Ids, IdTriples, Places, TermIds
from streamgauge.incremental.window_pieces import Arrivals, size_of
from streamgauge.model.terms import Row

_NEVER: Final = -(2**62)


class WindowColumns:
    """A content in columns, with the joins of each pattern over it; ``held`` is its number of triples.

    ``joining`` is the number of the pattern being joined.
    """

    def __init__(self, requests: Sequence[tuple[BgpRequest, Bag]], ids: TermIds) -> None:
        self._conditions = IdConditions(ids)
        # Many queries ask for the same rows: these are joined and decoded once for all of their bags.
        alike: dict[BgpRequest, list[Bag]] = {}
        for request, bag in requests:
            alike.setdefault(request, []).append(bag)
        planned = [plan(request.bgp, request.conditions) for request in alike]
        self._relations = {relation: relation_tests(relation) for plan_ in planned for relation in plan_.relations}
        self._spans = {relation: TripleSpans(len(relation.columns)) for relation in self._relations}
        self._joins = [
            (SpanJoins(plan_, request.output, self._conditions, self._spans), bags)
            for plan_, (request, bags) in zip(planned, alike.items(), strict=True)
        ]
        self.number, self.horizon = 0, _NEVER
        self.joining: int | None = None

    @property
    def held(self) -> int:
        """The number of live triples."""
        return sum(map(len, self._spans.values()))

    def take_in(self, arrivals: Arrivals, horizon: int) -> None:
        """Add arrivals that were evaluated before, at the horizon (ms)."""
        self._enter(arrivals, horizon)
        self._turned(self.number + 1, horizon)

    def move(self, arrivals: Arrivals, horizon: int) -> bool:
        """Process a look: the arrivals since the last one, and a new horizon (ms); changes are added to the bags.

        ``False`` if joins are wasteful: then the arrivals are only added.
        """
        # Arrivals enter before the solutions that end are looked for: a triple that arrives again extends its span.
        self._enter(arrivals, self.horizon)
        looks = ConsecutiveLooks(*(np.array([bound], np.int64) for bound in (self.number, horizon, self.horizon)))
        moves = self._moves(looks, size_of(arrivals))
        if moves is None:
            return False
        for number, (bags, begins, ends) in enumerate(moves):
            self.joining = number
            self._count(bags, begins, 1)
            self._count(bags, ends, -1)
        self.joining = None
        self._turned_by(looks)
        return True

    def move_by_ticks(self, triples: IdTriples, ticks: Places, horizons: Places) -> Iterator[int] | None:
        """Process ticks as consecutive looks; ``ticks`` has that of each triple. Yields the ticks with a change.

        The bags hold the change then. ``None`` if joins are wasteful, as ``move``.
        """
        looks = self._looks(triples, ticks, horizons)
        moves = self._moves(looks, len(triples))
        if moves is None:
            return None
        changes: dict[int, list[tuple[Sequence[Bag], Row, int]]] = {}
        # From before columns were begun, when nothing held kept a report back.
        if any(bag for _, bags in self._joins for bag in bags):
            changes[0] = []
        for bags, begins, ends in moves:
            for some, count in ((begins, 1), (ends, -1)):
                for tick, row in zip(some.at.tolist(), self._rows(some), strict=True):
                    changes.setdefault(tick, []).append((bags, row, count))
        self._turned_by(looks)
        return self._told(changes)

    def _moves(
        self, looks: ConsecutiveLooks, triples: int
    ) -> list[tuple[Sequence[Bag], SolutionMoves, SolutionMoves]] | None:
        """Per pattern its bags, and the solutions that begin and end at looks; ``triples`` have arrived in all.

        ``None`` if joins are wasteful.
        """
        begun = []
        try:
            for number, (joins, _) in enumerate(self._joins):
                self.joining = number
                begun.append(joins.beginning(looks, triples))
        except WastefulError:
            return None
        finally:
            self.joining = None
        # Nothing can end at a look whose horizon did not move.
        at = np.flatnonzero(looks.before < looks.horizons)
        ended = [self._ending(joins, looks, at) for joins, _ in self._joins]
        return [(bags, begins, ends) for (_, bags), begins, ends in zip(self._joins, begun, ended, strict=True)]

    def _ending(self, joins: SpanJoins, looks: ConsecutiveLooks, at: Places) -> SolutionMoves:
        """The solutions that end at some of the looks."""
        ends = joins.ending(ConsecutiveLooks(*(look[at] for look in looks)))
        return SolutionMoves(at[ends.at], ends.columns)

    def begun_by_ticks(
        self, triples: IdTriples, ticks: Places, horizons: Places, times: Places, left: Counter[Row]
    ) -> list[tuple[int, Row]] | None:
        """``move_by_ticks`` for one pattern: the rows that begin, with their ticks, minus those that end.

        A row that ends and begins at the same one of the ``times`` of ticks is not new. ``left`` are the rows that had
        ended at the first time before, and afterwards those that end at the last.
        """
        looks = self._looks(triples, ticks, horizons)
        ((joins, (bag,)),) = self._joins
        try:
            begins = joins.beginning(looks, len(triples))
        except WastefulError:
            return None
        left.update({row: -count for row, count in bag.items()})  # gone before columns were begun, without a report
        bag.clear()
        at = np.flatnonzero(looks.before < horizons)
        # Ends matter only where something begins at the same time (it is not new then), and at the last time, which
        # the next batch may continue.
        at = at[np.isin(times[at], np.append(times[begins.at], times[-1]))]
        ends = self._ending(joins, looks, at)
        gone = Counter(zip(times[ends.at].tolist(), self._rows(ends), strict=True))
        gone.update({(int(times[0]), row): count for row, count in left.items()})
        rows = list(zip(begins.at.tolist(), self._rows(begins), strict=True))
        self._turned_by(looks)
        if not gone:
            return rows
        new = []
        for tick, row in rows:
            # Each end at this time cancels one beginning of the same row: the row did not go in between, as far as
            # anybody can see.
            gone[int(times[tick]), row] -= 1
            if gone[int(times[tick]), row] < 0:
                new.append((tick, row))
        left.clear()
        left.update({row: count for (time, row), count in gone.items() if time == times[-1] and count > 0})
        return new

    def _looks(self, triples: IdTriples, ticks: Places, horizons: Places) -> ConsecutiveLooks:
        """Ticks as looks; adds their triples."""
        before = np.concatenate([np.array([self.horizon]), horizons[:-1]])[: len(horizons)]
        looks = ConsecutiveLooks(np.arange(self.number, self.number + len(horizons)), horizons, before)
        self._enter_triples(triples, looks.numbers[ticks], before[ticks])
        return looks

    def _told(self, changes: dict[int, list[tuple[Sequence[Bag], Row, int]]]) -> Iterator[int]:
        for tick in sorted(changes):
            for bags, row, count in changes[tick]:
                for bag in bags:
                    add(bag, row, count)
            yield tick

    def take_back(self) -> None:
        """Retract the solutions of the current window."""
        for joins, bags in self._joins:
            self._count(bags, joins.alive(self.number, self.horizon), -1)

    def _turned_by(self, looks: ConsecutiveLooks) -> None:
        """End looks whose rows have been decoded, so that terms may be renumbered."""
        self._turned(int(looks.numbers[-1]) + 1, int(looks.horizons.max()))

    def _turned(self, number: int, horizon: int) -> None:
        self.number, self.horizon = number, horizon
        ids, spans = self._conditions.ids, list(self._spans.values())
        if ids.full:
            # The spans hold ids outside of any piece; without these pieces their terms would be dropped.
            masks = [ids.holding(span.numbers()) for span in spans]
            ids.forget()
            for span, piece in zip(spans, masks, strict=True):
                span.renumber(piece.ids)

    def _count(self, bags: Sequence[Bag], moves: SolutionMoves, sign: int) -> None:
        """Add solutions to bags, or take them away."""
        change = self._bag(moves)
        if sign < 0:
            change = {row: -count for row, count in change.items()}
        for bag in bags:
            add_all(bag, change)

    def _bag(self, moves: SolutionMoves) -> Bag:
        if (few := distinct_rows(moves.columns, len(self._conditions.ids))) is not None:
            places, counts = few
            rows = self._rows(SolutionMoves(moves.at[places], [column[places] for column in moves.columns]))
            return dict(zip(rows, counts.tolist(), strict=True))
        rows = self._rows(moves)
        bag = dict.fromkeys(rows, 1)
        return bag if len(bag) == len(rows) else dict(Counter(rows))

    def _rows(self, moves: SolutionMoves) -> Sequence[Row]:
        if not moves.columns:
            return [()] * len(moves.at)
        return list(zip(*map(self._conditions.ids.texts, moves.columns), strict=True))

    def _enter(self, arrivals: Arrivals, limit: int) -> None:
        triples = self._conditions.ids.of_arrivals(arrivals)
        self._enter_triples(triples, np.full(len(triples), self.number), np.full(len(triples), limit))

    def _enter_triples(self, triples: IdTriples, births: Places, limits: Places) -> None:
        columns = (triples.ids[0::3], triples.ids[1::3], triples.ids[2::3])
        related = RelationTriples(columns, self._conditions)
        for relation, tests in self._relations.items():
            places = related.places(relation, tests)
            cells, spans = [columns[at][places] for at in relation.columns], self._spans[relation]
            spans.forget_before(self.horizon)
            spans.number(len(self._conditions.ids))
            spans.enter(cells, births[places], triples.times[places], limits[places])


def distinct_rows(columns: Sequence[Ids], terms: int) -> tuple[Places, Places] | None:
    """The first index of each distinct row in order, and the number of equal rows; ``None`` where all may differ.

    A row is a number with a digit for each column: the rows (a x), (b x), (a x) are 0, 1, 0.
    """
    size = len(columns[0]) if columns else 0
    if not size or size < BY_NUMBERS or terms > SPARSE * size:
        return None
    number, numbers = np.zeros(size, np.int64), 1
    for column in columns:
        occurs = np.zeros(terms, np.bool_)
        occurs[column] = True
        digits = int(np.count_nonzero(occurs))
        if (numbers := numbers * digits) >= size:
            return None
        number = number * digits + (np.cumsum(occurs) - 1)[column]
    counts, first = np.bincount(number, minlength=numbers), np.empty(numbers, np.int64)
    first[number[::-1]] = np.arange(size)[::-1]  # of several values for one place the last is kept, here the first row
    there = np.flatnonzero(counts)
    order = np.argsort(first[there])
    return first[there][order], counts[there][order]
