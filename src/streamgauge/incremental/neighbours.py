"""EXISTS under a band: whether a row meets any row of its key follows from the values next to those that change.

The right values that match a left value form an interval. A left row that matches ?w and any other right value
therefore matches a neighbour of ?w, too: when ?w is added or removed, only the left rows that match ?w and neither
neighbour begin or cease to meet a row. Both ends of their interval are found by search, however many rows the key has.

A worked example: readings that another one confirms, ``?o :value ?v FILTER EXISTS { ?p :check ?w FILTER(ABS(?w - ?v) <
3) }``, over checks of 3, 5 and 9. 4 is added on the right: of the readings within 3 of it, 2 to 6, the neighbours 3 and
5 cover all, so no row changes. 9 is removed: readings of 7 to 11 were within 3 of it, its neighbour 5 covers 7, so
those of 8 to 11 cease to meet a check.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from streamgauge.incremental.bands import LEFT, RIGHT, Band
from streamgauge.incremental.budget import EvaluationBudget
from streamgauge.incremental.conditions import test
from streamgauge.incremental.crossovers import FEW_ROWS, SCANS
from streamgauge.incremental.matches import Matching, MatchOutput
from streamgauge.incremental.operators import Bag, Key, Operator, add_all
from streamgauge.incremental.ordered_rows import BandSearch, OrderedIndex, OrderedRows, ValueRun
from streamgauge.incremental.row_joins import Merge
from streamgauge.model.terms import Row, Term

# More than SCANS looks, so that the rows of a large key are put in order at the first probe.
_AT_ONCE: Final = SCANS + 1


class PerNeighbour(Matching):
    """Whether a row meets any row of its key under a band, decided by the order of values.

    Keys with few rows, and values that cannot be sorted, are tested one by one.
    """

    _lefts: OrderedIndex
    _rights: OrderedIndex

    def __init__(
        self,
        sides: tuple[Operator, Operator],
        merge: Merge,
        output: MatchOutput,
        variables: tuple[str, ...],
        effort: EvaluationBudget,
        band: Band,
    ) -> None:
        super().__init__(sides, merge, output, variables, effort, band)
        self._holds = test(band.condition, (LEFT.name, RIGHT.name))

    def _met_by(self, right: Bag, change: Bag) -> None:
        """Process additions before removals, so that no left row changes twice."""
        if not self._lefts:
            self._rights.add(right)
            return
        begun, ceased = dict[Row, int](), dict[Row, int]()
        for row, count in right.items():
            if count > 0:
                # Before the row is added: it would meet the left rows itself.
                begun.update(self._unmet(row))
                self._rights.add({row: count})
        for row, count in right.items():
            if count < 0:
                self._rights.add({row: count})
                ceased.update(self._unmet(row))
        for rows, met in ((begun, True), (ceased, False)):
            if rows:
                self._turn(change, rows, met)

    def _meet(self, left: Bag, change: Bag) -> None:
        met, alone = dict[Row, int](), dict[Row, int]()
        rights, key_of, value = self._rights, self._lefts.key, self._lefts.own
        for row, count in left.items():
            (met if rights and self._is_met(key_of(row), value(row)) else alone)[row] = count
        add_all(change, self._output.met(met))
        add_all(change, self._output.alone(alone))
        self._lefts.add(left)

    def _is_met(self, key: Key, term: Term | None) -> bool:
        """Whether a left value matches any current right value."""
        rows = self._rights.get(key)
        if term is None or not rows:
            return False
        ordered = self._ordered(self._rights, key)
        if ordered is not None and self._rights.has_place(term):
            if any(ordered.search.reaches(run, term) for run in ordered.runs.values() if run.order):
                return True
            rows = ordered.odd
        self._effort.spend(len(rows))
        return any(self._passes(term, self._rights.own(row)) for row in rows)

    def _unmet(self, right: Row) -> Iterator[tuple[Row, int]]:
        """The left rows, with their counts, that match this right row and no current one."""
        key, term = self._rights.key(right), self._rights.own(right)
        rows = self._lefts.get(key)
        if term is None or not rows:
            return
        lefts, rights = self._ordered(self._lefts, key), self._ordered(self._rights, key)
        if lefts is not None and self._lefts.has_place(term):
            # No right rows, no neighbours. ``None``: some right values cannot be compared with this one, so each row
            # of the interval is tested.
            neighbours = [] if rights is None else rights.around(term)
            for run in lefts.runs.values() if rights is None or not rights.covers(term) else ():
                for bag in _beside(run, lefts.search, term, neighbours or ()):
                    yield from bag.items() if neighbours is not None else self._tested(bag, key, None)
            rows = lefts.odd
        yield from self._tested(rows, key, term)

    def _tested(self, rows: Bag, key: Key, term: Term | None) -> Iterator[tuple[Row, int]]:
        """The given left rows that match no current right row, and match ``term`` if it is not ``None``."""
        self._effort.spend(len(rows))
        for row, count in rows.items():
            value = self._lefts.own(row)
            if (term is None or self._passes(value, term)) and not self._is_met(key, value):
                yield row, count

    def _passes(self, left: Term | None, right: Term | None) -> bool:
        return left is not None and right is not None and self._holds(left, right)

    def _ordered(self, index: OrderedIndex, key: Key) -> OrderedRows | None:
        """The sorted rows of a key, if either side has many."""
        rows = index.bags.get(key)
        if rows is None and key not in index.single:
            return None
        if len(self._lefts.get(key)) <= FEW_ROWS and len(self._rights.get(key)) <= FEW_ROWS:
            return None
        return index.ordered(key, _AT_ONCE)


def _beside(run: ValueRun, search: BandSearch, term: Term, neighbours: Sequence[Term]) -> Iterator[Bag]:
    """The rows of a run that match a value and none of its neighbours."""
    # The interval of ``term`` minus those of its neighbours leaves at most three gaps; they are walked from left to
    # right.
    start, end = search.span(run, term)
    # A worked example: ``ABS(?w - ?v) < 3``, left values 1 to 12, and 9 is removed beside 5 on the right. 9 matches 7
    # to 11, of which 5 matches 7; so 8 to 11 are yielded.
    spans = [search.clipped(run, neighbour, start, end) for neighbour in neighbours] if start < end else []
    for first, last in sorted(spans):
        if first < last:
            yield from run.between(start, max(start, first))
            start = max(start, last)
    yield from run.between(start, end)
