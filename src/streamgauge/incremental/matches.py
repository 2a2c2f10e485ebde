"""OPTIONAL, MINUS and EXISTS, which keep the rows of both sides by key.

A left row yields one output while it meets no right row, another while it meets some, and under OPTIONAL one per right
row that it meets. If all rows of a key meet, the change is computed key by key (``PerKey``). If columns may be
unbound, left rows that agree in them meet the same rows (``PerGroup``). If a condition decides, or pairs are emitted,
each left row keeps the number of rows that it meets (``PerRow``). A change costs as much as the pairs of rows, or of
groups, that it makes or breaks, not as much as all rows of its key.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Final, TypeAlias

from streamgauge.incremental.bands import Band
from streamgauge.incremental.budget import EvaluationBudget
from streamgauge.incremental.equalities import EqualTerms
from streamgauge.incremental.operators import Bag, LooseIndex, Operator, add, add_all
from streamgauge.incremental.row_joins import Merge, TwoSided
from streamgauge.model.terms import Row


@dataclass(frozen=True)
class MatchOutput:
    """The output for left rows: ``alone`` while they meet no right row, ``met`` while they meet some.

    ``pair`` merges a left and a right row for OPTIONAL; ``None`` if no pairs are emitted.
    """

    alone: Callable[[Bag], Bag]
    met: Callable[[Bag], Bag]
    pair: Callable[[Row, Row], Row] | None = None


def _less(change: Bag, rows: Bag) -> None:
    add_all(change, {row: -count for row, count in rows.items()})


class Matching(TwoSided, ABC):
    """An operator over left rows that depends on whether they meet right rows."""

    def __init__(
        self,
        sides: tuple[Operator, Operator],
        merge: Merge,
        output: MatchOutput,
        variables: tuple[str, ...],
        effort: EvaluationBudget,
        condition: Band | EqualTerms | None = None,
    ) -> None:
        left, right = sides
        super().__init__(left, right, merge, condition)
        # Columns that belong to neither side, such as the mark of an EXISTS, are always bound.
        self.variables, self.certain = variables, left.certain | (frozenset(variables) - frozenset(merge.variables))
        self._output, self._effort, self._rest = output, effort, merge.rest

    def pull(self) -> Bag:
        """The change of the output."""
        left, right = self._left.pull(), self._right.pull()
        if not left and not right:
            return {}
        self._effort.spend(len(left) + len(right))
        change: Bag = {}
        # The right side first, so that left rows that arrive in the same change meet the new right side once and do
        # not turn.
        if right:
            self._met_by(right, change)
        if left:
            self._meet(left, change)
        return change

    @abstractmethod
    def _met_by(self, right: Bag, change: Bag) -> None:
        """Apply a change of the right side, and add its effect on left rows to ``change``."""

    @abstractmethod
    def _meet(self, left: Bag, change: Bag) -> None:
        """Apply a change of the left side, and add its output given the current right side."""

    def _turn(self, change: Bag, rows: Bag, met: bool) -> None:
        """Left rows that met no right row now meet some, or the other way round."""
        self._effort.spend(len(rows))
        add_all(change, self._output.met(rows) if met else self._output.alone(rows))
        _less(change, self._output.alone(rows) if met else self._output.met(rows))


class PerKey(Matching):
    """A row meets all rows with its key."""

    def _met_by(self, right: Bag, change: Bag) -> None:
        lefts, rights = self._lefts, self._rights
        if not lefts:
            rights.add(right)
            return
        touched: dict[Row, Bag] = {}
        single, bags, key_of = lefts.single, lefts.bags, rights.key
        for row, count in right.items():
            key = key_of(row)
            if key in single or key in bags:
                touched.setdefault(key, {})[row] = count
        # Whether a key has rows at all decides; how many there are does not.
        before = {key for key in touched if key in rights}
        rights.add(right)
        for key, rows in touched.items():
            if (key in rights) is not (key in before):
                self._turn(change, lefts.get(key), key in rights)
            if self._output.pair is not None:
                self._pairs(change, lefts.get(key), rows)

    def _meet(self, left: Bag, change: Bag) -> None:
        met: Bag = {}
        alone: Bag = left
        if self._rights:
            single, bags = self._rights.single, self._rights.bags
            keys = self._lefts.keys_of(left)
            there = [key in single or key in bags for key in keys] if bags else map(single.__contains__, keys)
            met = dict(compress(left.items(), there))
            alone = {} if len(met) == len(left) else {row: count for row, count in left.items() if row not in met}
            if met and self._output.pair is not None:
                add_all(change, self._paired(met))
        self._lefts.add(left)
        add_all(change, self._output.alone(alone))
        add_all(change, self._output.met(met))

    def _paired(self, lefts: Bag) -> Bag:
        """The merged rows of left rows and all right rows with their keys, which are all different.

        They are charged to the budget before they are built: freeing many at once would block all other threads.
        """
        single, bags, rest_of = self._rights.single, self._rights.bags, self._rest
        keys = list(self._lefts.keys_of(lefts))
        size = sum(len(bags[key]) if key in bags else 1 for key in keys) if bags else len(lefts)
        self._effort.spend(size * self._effort.weight)
        pairs: Bag = {}
        for key, (row, count) in zip(keys, lefts.items(), strict=True):
            only = single.get(key)
            if only is not None:
                pairs[row + rest_of(only[0])] = count * only[1]
                continue
            for other, times in bags[key].items():
                pairs[row + rest_of(other)] = count * times
        return pairs

    def _pairs(self, change: Bag, lefts: Bag, rights: Bag) -> None:
        self._effort.spend(len(lefts) * len(rights) * self._effort.weight)
        rests = [(self._rest(other), times) for other, times in rights.items()]
        for row, count in lefts.items():
            for rest, times in rests:
                add(change, row + rest, count * times)


Pair: TypeAlias = tuple[Row, Row, int]
"""A left row, a right row (or the merged row if pairs are emitted), and the multiplicity of the latter."""

BATCH: Final = 10_000
"""Maximum number of pairs in memory, because freeing many at once would block all other threads."""

Test: TypeAlias = Callable[[Sequence[Pair]], Sequence[bool]]
"""Decides which pairs of agreeing rows meet."""


class PerRow(Matching):
    """A row meets the rows of its key that agree with it and pass a test; their number is kept per left row."""

    def __init__(
        self,
        sides: tuple[Operator, Operator],
        merge: Merge,
        output: MatchOutput,
        variables: tuple[str, ...],
        effort: EvaluationBudget,
        test: Test | None = None,
        condition: Band | EqualTerms | None = None,
    ) -> None:
        super().__init__(sides, merge, output, variables, effort, condition)
        self._test = test
        self._meets: Bag = {}

    def _met_by(self, right: Bag, change: Bag) -> None:
        # By whether the rows meet some now: index 0 are those that ceased to, 1 those that began to.
        turned: tuple[Bag, Bag] = {}, {}
        moved: Bag = {}
        for row, whole, times in self._passed(self._met_on_the_left(right)):
            add(moved, row, times)
            if self._output.pair is not None:
                add(change, whole, self._lefts.count(row) * times)
        self._rights.add(right)
        for row, times in moved.items():
            before = row in self._meets
            add(self._meets, row, times)
            if before is not (row in self._meets):
                turned[not before][row] = self._lefts.count(row)
        for met, rows in enumerate(turned):
            if rows:
                self._turn(change, rows, bool(met))

    def _met_on_the_left(self, right: Bag) -> Iterator[tuple[Iterable[Row], Bag]]:
        for other, count in right.items():
            for bag in self._lefts.meeting(self._rights.key(other), other):
                yield bag, {other: count}

    def _meet(self, left: Bag, change: Bag) -> None:
        count_of = self._lefts.count
        # Rows that were there before have their count already; another copy of the same row does not change it.
        fresh = {row for row in left if not count_of(row)}
        for row, whole, times in self._passed(self._met_on_the_right(left if self._output.pair else fresh)):
            if row in fresh:
                add(self._meets, row, times)
            if self._output.pair is not None:
                add(change, whole, left[row] * times)
        met = {row: count for row, count in left.items() if row in self._meets}
        add_all(change, self._output.met(met))
        if len(met) < len(left):
            add_all(change, self._output.alone({row: count for row, count in left.items() if row not in met}))
        self._lefts.add(left)
        # Removed rows are forgotten only now: their output had to be retracted as ``met`` above.
        for row in met:
            if not count_of(row):
                del self._meets[row]

    def _met_on_the_right(self, rows: Iterable[Row]) -> Iterator[tuple[Iterable[Row], Bag]]:
        for row in rows:
            for bag in self._rights.meeting(self._lefts.key(row), row):
                yield (row,), bag

    def _passed(self, meetings: Iterable[tuple[Iterable[Row], Bag]]) -> Iterator[Pair]:
        """The pairs that pass the test, which is applied to about ``BATCH`` pairs at a time."""
        pair, pairs = self._output.pair, list[Pair]()
        for lefts, rights in meetings:
            for row in lefts:
                self._effort.spend(len(rights) * (1 if pair is None else self._effort.weight))
                pairs += [(row, other if pair is None else pair(row, other), times) for other, times in rights.items()]
                if len(pairs) >= BATCH:
                    yield from self._tested(pairs)
                    pairs = []
        yield from self._tested(pairs)

    def _tested(self, pairs: Sequence[Pair]) -> Iterable[Pair]:
        if self._test is None or not pairs:
            return pairs
        return compress(pairs, self._test(pairs))


def _always(_values: Row, _other: Row) -> bool:
    return True


class PerGroup(Matching):
    """Left rows with the same key and the same loose columns form a group, whose rows meet the same right rows.

    Their number is kept per group. A worked example: ``OPTIONAL { ?s :extra ?e } FILTER EXISTS { ?o :extra ?e ; :note
    ?n }``. All rows without ?e meet every right row, so a new right row changes one number instead of one for each of
    them.
    """

    def __init__(
        self,
        sides: tuple[Operator, Operator],
        merge: Merge,
        output: MatchOutput,
        variables: tuple[str, ...],
        effort: EvaluationBudget,
        meets: Callable[[Row, Row], bool] | None = None,
    ) -> None:
        """``meets`` decides whether the loose columns of a group meet a right row."""
        super().__init__(sides, merge, output, variables, effort)
        self._meets_row = meets or _always
        self._loose, others = zip(*merge.loose, strict=True)
        width = len(self._lefts.key((None,) * len(sides[0].variables)))
        columns = range(width, width + len(self._loose))
        self._groups, self._width = LooseIndex(lambda group: group[:width], columns, others), width
        self._rows: dict[Row, Bag] = {}
        self._meets: Bag = {}

    def _group(self, row: Row) -> Row:
        return (*self._lefts.key(row), *[row[at] for at in self._loose])

    def _met_by(self, right: Bag, change: Bag) -> None:
        moved: Bag = {}
        for other, count in right.items():
            # Groups are indexed like rows, with their key columns first, so a right row finds the groups that it
            # agrees with.
            for bag in self._groups.meeting(self._rights.key(other), other):
                self._effort.spend(len(bag))
                for group in bag:
                    if self._meets_row(group[self._width :], other):
                        add(moved, group, count)
        self._rights.add(right)
        for group, times in moved.items():
            before = group in self._meets
            add(self._meets, group, times)
            if before is not (group in self._meets):
                self._turn(change, self._rows[group], not before)

    def _meet(self, left: Bag, change: Bag) -> None:
        met, alone = dict[Row, int](), dict[Row, int]()
        for row, count in left.items():
            group = self._group(row)
            rows = self._rows.get(group)
            if rows is None:
                rows = self._begin(group, row)
            (met if group in self._meets else alone)[row] = count
            add(rows, row, count)
            # The last row of the group has left, and with it the reason to count what the group meets.
            if not rows:
                self._end(group)
        add_all(change, self._output.met(met))
        add_all(change, self._output.alone(alone))

    def _begin(self, group: Row, row: Row) -> Bag:
        """Add an empty group, given one of its rows."""
        times = 0
        for bag in self._rights.meeting(self._lefts.key(row), row):
            self._effort.spend(len(bag))
            times += sum(count for other, count in bag.items() if self._meets_row(group[self._width :], other))
        if times:
            self._meets[group] = times
        self._groups.add({group: 1})
        rows = self._rows[group] = {}
        return rows

    def _end(self, group: Row) -> None:
        del self._rows[group]
        self._meets.pop(group, None)
        self._groups.add({group: -1})
