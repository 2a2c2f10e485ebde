"""The join of rows under a ``Band``: a change costs the pairs that it makes or breaks, however many rows exist.

A worked example: ``?s :value ?v { SELECT (AVG(?w) AS ?a) { ?o :value ?w } } FILTER(?v > ?a)``. When the average goes
from 49.5 to 49.7, the row of 49.5 is removed on the right and that of 49.7 added. The left rows that met the first
(those above 49.5) lose a copy; the rows that meet the second (above 49.7) gain one. If ?a is not part of the output,
both are the same output rows, and the sum over the left rows is -1 between 49.5 and 49.7 and 0 beyond: only the rows
between are visited.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

from streamgauge.incremental.bands import LEFT, RIGHT, Band
from streamgauge.incremental.budget import EvaluationBudget
from streamgauge.incremental.conditions import Test, test, variables_of
from streamgauge.incremental.crossovers import FEW_ROWS
from streamgauge.incremental.operators import Bag, Key, Operator, Stateful, add, picker
from streamgauge.incremental.ordered_rows import OrderedIndex, Probe
from streamgauge.incremental.row_joins import Merge
from streamgauge.model.algebra import Expression
from streamgauge.model.terms import Row, Term


@dataclass(frozen=True, slots=True)
class _Side:
    """One side of a join: its rows, and the projection to its output columns."""

    index: OrderedIndex
    keep: Callable[[Row], Row]
    left: bool


class BandJoin(Stateful):
    """The join of rows under a band, projected to the columns ``kept`` and filtered by further conditions on them."""

    def __init__(
        self,
        left: Operator,
        right: Operator,
        band: Band,
        kept: Collection[str],
        effort: EvaluationBudget,
        conditions: Sequence[Expression] = (),
    ) -> None:
        merge = Merge(left, right)
        ours = tuple(name for name in left.variables if name in kept)
        theirs = tuple(name for name in right.variables if name in kept and name not in left.variables)
        self.variables = (*ours, *theirs)
        self.certain = (left.certain | right.certain) & frozenset(self.variables)
        self._left, self._right, self._effort = left, right, effort
        self._lefts, self._rights = merge.ordered(band)
        self._sides = (
            _Side(self._lefts, picker(left.variables, ours), True),
            _Side(self._rights, picker(right.variables, theirs), False),
        )
        self._holds: Test = test(band.condition, (LEFT.name, RIGHT.name))
        self._tests = [
            (test(condition, variables_of(condition)), [self.variables.index(name) for name in variables_of(condition)])
            for condition in conditions
        ]

    def pull(self) -> Bag:
        """The change of the join."""
        change: Bag = {}
        left, right = self._left.pull(), self._right.pull()
        one, other = self._sides
        # The changed left rows meet the right rows of before, the changed right rows the left rows of now, so that a
        # pair of two new rows is made once.
        self._meet(change, left, one, other)
        self._lefts.add(left)
        self._meet(change, right, other, one)
        self._rights.add(right)
        return change

    def _meet(self, change: Bag, rows: Bag, own: _Side, other: _Side) -> None:
        """Add the pairs of a change of one side with the rows of the other."""
        rows_of, key_of, value, keep = other.index.get, own.index.key, own.index.own, own.keep
        groups: dict[tuple[Key, Row], list[Probe]] = {}
        for row, count in rows.items() if other.index else ():
            key = key_of(row)
            bag, term = rows_of(key), value(row)
            if not bag or term is None:
                continue
            # Ordering a key is worth it from some size on only; most keys of a join on a subject have one to three
            # rows.
            if len(bag) <= FEW_ROWS:
                self._test(change, (term, keep(row), count), bag, other)
            else:
                # Rows with equal output columns are searched together: when an average moves, its old and new row have
                # opposite signs, and only rows between both are visited instead of all beyond either.
                groups.setdefault((key, keep(row)), []).append((term, count))
        for (key, kept), probes in groups.items():
            for bag, copies in self._met(key, probes, other):
                self._effort.spend(len(bag) * self._effort.weight)
                for row, count in bag.items():
                    self._emit(change, self._row(kept, row, other), count * copies)

    def _emit(self, change: Bag, row: Row, count: int) -> None:
        for holds, places in self._tests:
            if not holds(*[row[at] for at in places]):
                return
        add(change, row, count)

    def _row(self, kept: Row, row: Row, other: _Side) -> Row:
        return other.keep(row) + kept if other.left else kept + other.keep(row)

    def _test(self, change: Bag, probe: tuple[Term, Row, int], rows: Bag, other: _Side) -> None:
        """Test a row, given as its value and output columns, against a few rows of the other side."""
        term, kept, copies = probe
        self._effort.spend(len(rows))
        holds, value, left = self._holds, other.index.own, other.left
        for row, count in rows.items():
            own = value(row)
            if holds(own, term) if left else holds(term, own):
                self._effort.spend(self._effort.weight)
                self._emit(change, self._row(kept, row, other), count * copies)

    def _met(self, key: Key, probes: list[Probe], other: _Side) -> Iterator[tuple[Bag, int]]:
        """Rows of the other side, each with the net number of copies of the probes that meet it."""
        ordered = other.index.ordered(key, len(probes))
        if ordered is None:
            yield from self._tested(other.index.get(key), probes, other)
            return
        searched = [probe for probe in probes if other.index.has_place(probe[0])]
        yield from ordered.net(searched)
        if len(searched) < len(probes):
            # Values without a place in the order, such as NaN or an IRI, are rare and are tested pair by pair, in both
            # directions.
            odd = [probe for probe in probes if not other.index.has_place(probe[0])]
            yield from self._tested(other.index.get(key), odd, other)
        if ordered.odd and searched:
            yield from self._tested(ordered.odd, searched, other)

    def _tested(self, rows: Bag, probes: Sequence[Probe], other: _Side) -> Iterator[tuple[Bag, int]]:
        """``_met`` by testing every pair."""
        self._effort.spend(len(rows) * len(probes))
        holds, value, left = self._holds, other.index.own, other.left
        for row, count in rows.items():
            own = value(row)
            copies = sum([n for probe, n in probes if (holds(own, probe) if left else holds(probe, own))])
            if copies:
                yield {row: count}, copies
