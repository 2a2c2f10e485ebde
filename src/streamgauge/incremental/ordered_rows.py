"""Rows by key and, where a key has many, in the order of a value, so that those within a ``Band`` are searched for."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from operator import itemgetter
from typing import Any, TypeAlias

from sortedcontainers import SortedList

from streamgauge.incremental.bands import LEFT, RIGHT, Band, Kind, place
from streamgauge.incremental.budget import LargeJoinError
from streamgauge.incremental.crossovers import FEW_ROWS, REMEMBERED_VALUES, SCANS
from streamgauge.incremental.operators import Bag, Index, Key, add
from streamgauge.model.terms import Row, Term
from streamgauge.sparql.expression import row_condition

ValueOf: TypeAlias = Callable[[Row], Term | None]
KeyOf: TypeAlias = Callable[[Row], Row]
KeysOf: TypeAlias = Callable[[Iterable[Row]], Iterable[Row]]
Probe: TypeAlias = tuple[Term, int]
"""A value of the other side, and how many copies of a row with it come (or go)."""


class ValueRun:
    """Rows by a value of one kind, in its order; ``terms`` has a term for each value.

    ``spans`` has the places between which values pass beside terms of the other side, until the order changes;
    ``away``: how far from its term's value the last of them began and ended.
    """

    def __init__(self, kind: Kind) -> None:
        self.kind, self.order = kind, SortedList()
        self.bags: dict[Any, Bag] = {}
        self.terms: dict[Any, Term] = {}
        self.spans: dict[Term, tuple[int, int]] = {}
        self.away: tuple[Any, Any] = (0, 0)

    def add(self, value: Any, term: Term, row: Row, count: int) -> None:
        """Add copies of a row (of either sign)."""
        bag = self.bags.get(value)
        if bag is None:
            self.bags[value], self.terms[value] = {row: count}, term
            self.order.add(value)
            self.spans.clear()
            return
        add(bag, row, count)
        if not bag:
            self.order.remove(value)
            self.spans.clear()
            del self.bags[value], self.terms[value]

    def term(self, at: int) -> Term:
        """A term with the value at this place."""
        return self.terms[self.order[at]]

    def between(self, start: int, end: int) -> Iterator[Bag]:
        """The rows of the values at these places."""
        return map(self.bags.__getitem__, self.order.islice(start, end))


class BandSearch:
    """The limits of a band, compiled, for the values of one side in order.

    ``way``: greater values pass wherever a value does (true), or less ones (false); ``None`` where neither do.
    """

    def __init__(self, band: Band, left: bool) -> None:
        names = (LEFT.name, RIGHT.name)
        self._left, self.direct = left, band.direct
        self._limits = [
            (row_condition(limit.condition, names), (limit.left if left else limit.right) > 0) for limit in band.limits
        ]
        signs = {(limit.left if left else limit.right) > 0: -limit.left * limit.right for limit in band.limits}
        self._signs = signs.get(True, 1), signs.get(False, 1)
        ways = {rising for _, rising in self._limits}
        self.way = ways.pop() if len(ways) == 1 else None

    def span(self, run: ValueRun, probe: Term) -> tuple[int, int]:
        """The places of a run from and up to which values pass beside a value of the other side."""
        span = run.spans.get(probe)
        if span is None:
            if len(run.spans) >= REMEMBERED_VALUES:
                run.spans.clear()
            probed = place(probe, self.direct)
            value = probed[1] if probed is not None and probed[0] == run.kind else None
            # The ends of intervals of like values are about as far away as before: a search from there takes a few
            # tests.
            near = None if value is None else self._near(run, value)
            # The condition itself is asked where the interval ends, so rounding and mixed kinds cannot make it wrong.
            span = run.spans[probe] = self.searched(run.term, len(run.order), probe, near)
            if value is not None and not self.direct:
                run.away = self._away(run, value, span, run.away)
        return span

    def _near(self, run: ValueRun, value: Any) -> tuple[int, int]:
        """Where a search begins: where the value would stand, or as far from there as the last search ended."""
        if self.direct:
            at = run.order.bisect_left(value)
            return at, at
        start, end = (sign * value + away for sign, away in zip(self._signs, run.away, strict=True))
        return run.order.bisect_left(start), run.order.bisect_left(end)

    def _away(self, run: ValueRun, value: Any, ends: tuple[int, int], before: tuple[Any, Any]) -> tuple[Any, Any]:
        """How far from a value the ends of its span are, as before where an end is that of the run."""
        start, end = (
            run.order[at] - sign * value if 0 < at < len(run.order) else away
            for at, sign, away in zip(ends, self._signs, before, strict=True)
        )
        return start, end

    def reaches(self, run: ValueRun, probe: Term) -> bool:
        """Whether any value of a run passes beside a value of the other side: an end of it where one end passes."""
        if self.way is None:
            start, end = self.span(run, probe)
            return start < end
        term = run.term(-1 if self.way else 0)
        return all(holds((term, probe) if self._left else (probe, term)) for holds, _ in self._limits)

    def clipped(self, run: ValueRun, probe: Term, start: int, end: int) -> tuple[int, int]:
        """The same as ``span`` among the places from ``start`` up to ``end``, searched for from these."""
        for holds, rising in self._limits:
            passes = self._passing(run.term, probe, holds, rising)
            border = bisect_left(range(end), True, *galloped(passes, start, end, start if rising else end), key=passes)
            start, end = (border, end) if rising else (start, border)
        return start, end

    def searched(
        self, term: Callable[[int], Term], count: int, probe: Term, near: tuple[int, int] | None = None
    ) -> tuple[int, int]:
        """The places between which values pass beside ``probe``, among ``count`` values in order.

        ``term`` gives a term with the value at a place. ``near`` are places close to which the search begins; without
        them it begins in the middle.
        """
        start, end = 0, count
        for holds, rising in self._limits:
            passes = self._passing(term, probe, holds, rising)
            around = (start, end) if near is None else galloped(passes, start, end, near[not rising])
            border = bisect_left(range(count), True, *around, key=passes)
            start, end = (border, end) if rising else (start, border)
        return start, end

    def _passing(
        self, term: Callable[[int], Term], probe: Term, holds: Callable[[Row], bool], rising: bool
    ) -> Callable[[int], bool]:
        """Whether a place is at the border of a limit or behind."""
        if self._left:
            return lambda at: holds((term(at), probe)) is rising
        return lambda at: holds((probe, term(at))) is rising


def galloped(passes: Callable[[int], bool], low: int, high: int, near: int) -> tuple[int, int]:
    """Places between which the first place lies that ``passes``, from ``low`` up to ``high``, by galloping search.

    All places behind one that passes pass too. Steps away from ``near`` double each time, so that a border at distance
    d is found, with a bisection of what this returns, after about 2 log d tests (Bentley, Yao, IPL 5(3), 1976).

    A worked example: the first that passes is 9, ``near`` is 4. 4, 5 and 7 fail and 11 passes, which leaves 8 to 11.
    """
    near, step = min(max(near, low), high), 1
    if near < high and not passes(near):
        low = near + 1
        while low + step <= high and not passes(low + step - 1):
            low, step = low + step, 2 * step
        return low, min(high, low + step - 1)
    high = near
    while high - step >= low and passes(high - step):
        high, step = high - step, 2 * step
    return max(low, high - step + 1), high


class OrderedRows:
    """The rows of one key in order, by the kinds of their values; ``odd`` are those without a place in an order."""

    def __init__(self, search: BandSearch) -> None:
        self.search = search
        self.runs: dict[Kind, ValueRun] = {}
        self.odd: Bag = {}

    def add(self, row: Row, count: int, term: Term | None) -> None:
        """Add copies of a row with this value; one without a value meets nothing."""
        if term is None:
            return
        place_ = place(term, self.search.direct)
        if place_ is None:
            add(self.odd, row, count)
        else:
            run = self.runs.get(place_[0])
            if run is None:
                run = self.runs[place_[0]] = ValueRun(place_[0])
            run.add(place_[1], term, row, count)

    def meeting(self, probe: Term) -> list[Bag]:
        """The rows that a value of the other side may meet, which has a place itself."""
        bags = [bag for run in self.runs.values() for bag in run.between(*self.search.span(run, probe))]
        return [*bags, self.odd] if self.odd else bags

    def covers(self, term: Term) -> bool:
        """Whether a value that is there passes wherever this one does."""
        place_ = place(term, self.search.direct)
        run = None if place_ is None else self.runs.get(place_[0])
        if place_ is None or run is None or not run.order:
            return False
        if self.search.way is None:
            return place_[1] in run.bags
        return bool(place_[1] <= run.order[-1] if self.search.way else run.order[0] <= place_[1])

    def around(self, term: Term) -> list[Term] | None:
        """The values next to one, or its own where it is there; ``None`` where others of no order with it are there."""
        place_ = place(term, self.search.direct)
        if place_ is None or self.odd or any(run.order for kind, run in self.runs.items() if kind != place_[0]):
            return None
        run = self.runs.get(place_[0])
        if run is None:
            return []
        if place_[1] in run.bags:
            return [run.terms[place_[1]]]
        at = run.order.bisect_left(place_[1])
        return [run.term(beside) for beside in (at - 1, at) if 0 <= beside < len(run.order)]

    def all(self) -> list[Bag]:
        """All rows."""
        return [*(bag for run in self.runs.values() for bag in run.bags.values()), self.odd]

    def net(self, probes: Sequence[Probe]) -> Iterator[tuple[Bag, int]]:
        """The rows in order that values of the other side meet, with the sum of copies that is not 0."""
        for run in self.runs.values():
            # A sweep over the ends of all intervals. Where copies cancel out, as those of a row that was replaced by
            # one with a similar value, the rows between are not looked at.
            steps: dict[int, int] = {}
            for term, count in probes:
                start, end = self.search.span(run, term)
                if start < end:
                    steps[start] = steps.get(start, 0) + count
                    steps[end] = steps.get(end, 0) - count
            places, copies = sorted(steps), 0
            for start, end in pairwise(places):
                copies += steps[start]
                if copies:
                    for bag in run.between(start, end):
                        yield bag, copies


class OrderedIndex(Index):
    """Bags of rows by key; where a key has many that are looked at often, also in the order of a value.

    ``own`` gives the value of a row of this side, ``other`` that of a row of the other side.
    """

    def __init__(self, key: KeyOf, keys: KeysOf, own: ValueOf, other: ValueOf, search: BandSearch) -> None:
        super().__init__(key, keys)
        self.own, self._other = own, other
        self._search = search
        self._ordered: dict[Key, OrderedRows] = {}
        self._scans: dict[Key, int] = {}

    def clear(self) -> None:
        """Remove all rows."""
        super().clear()
        self._ordered.clear()
        self._scans.clear()

    def parts(self) -> Iterator[Mapping[Key, Bag]]:
        """The table by key, and those by value."""
        yield from super().parts()
        for ordered in self._ordered.values():
            yield from (run.bags for run in ordered.runs.values())

    def add(self, change: Bag) -> None:
        """Add a change in place."""
        super().add(change)
        if not self._scans and not self._ordered:
            return
        for row, count in change.items():
            key = self.key(row)
            if key not in self.bags:
                self._ordered.pop(key, None)
                self._scans.pop(key, None)
            elif key in self._ordered:
                self._ordered[key].add(row, count, self.own(row))

    def ordered(self, key: Key, looks: int) -> OrderedRows | None:
        """The many rows of a key in order, for so many looks; ``None`` where they are to be tested one by one."""
        rows = self._ordered.get(key)
        if rows is not None:
            return rows
        scans = self._scans[key] = self._scans.get(key, 0) + looks
        # Sorting pays only for keys that are looked up again and again.
        if scans <= SCANS:
            return None
        rows = self._ordered[key] = OrderedRows(self._search)
        for row, count in self.get(key).items():
            rows.add(row, count, self.own(row))
        return rows

    def has_place(self, term: Term) -> bool:
        """Whether rows that meet a value of the other side can be searched for."""
        return place(term, self._search.direct) is not None

    def meeting(self, key: Key, row: Row) -> Sequence[Bag]:
        """The rows, in bags, that may meet a row of the other side, which has this key."""
        bag = self.get(key)
        if not bag:
            return ()
        ordered = None if len(bag) <= FEW_ROWS else self.ordered(key, 1)
        probe = self._other(row) if ordered is not None else None
        if ordered is None or (probe is not None and not self.has_place(probe)):
            return (bag,)
        return () if probe is None else ordered.meeting(probe)


class ValueSpans:
    """Which values of two sides pass a band beside each other, by search among those of the right side in order."""

    def __init__(self, band: Band) -> None:
        self._direct, self._limits, self._search = band.direct, len(band.limits), BandSearch(band, False)

    def worth(self, lefts: int, rights: int, rows: int) -> bool:
        """Whether searches for so many values test less than so many rows, each by itself, would."""
        return 2 * lefts * self._limits * rights.bit_length() <= rows

    def of(self, lefts: Iterable[Term], rights: Iterable[Term]) -> tuple[list[tuple[int, int]], list[int]] | None:
        """For each term on the left the places between which values pass, and the place of each term on the right.

        ``None`` where a value has no place in an order, or those on the right are of several kinds.
        """
        probes, terms = list(lefts), list(rights)
        probe_places = [place(term, self._direct) for term in probes]
        placed = [place(term, self._direct) for term in terms]
        if None in probe_places or None in placed or len({place_[0] for place_ in placed if place_}) > 1:
            return None
        order = dict(sorted(zip(placed, terms, strict=True), key=itemgetter(0)))
        at, spans = list(order.values()).__getitem__, [(0, 0)] * len(probes)
        near = (0, 0)
        # In order, each search begins where the one before it ended.
        for number, _ in sorted(enumerate(probe_places), key=itemgetter(1)):
            near = spans[number] = self._search.searched(at, len(order), probes[number], near)
        places = {value: at for at, value in enumerate(order)}
        return spans, [places[value] for value in placed]


def pairs_within(
    band: Band, lefts: Iterable[tuple[Hashable, Term]], rights: Iterable[tuple[Hashable, Term]], limit: int
) -> tuple[list[int], list[int]]:
    """Places of rows on the left and on the right, side by side, that have the same key and may meet under a band.

    A row is its key and the value that the band compares. Those with values that have no place in an order may meet
    all. LargeJoinError for more than ``limit`` pairs.
    """
    search = BandSearch(band, False)
    ordered: defaultdict[Hashable, OrderedRows] = defaultdict(lambda: OrderedRows(search))
    for at, (key, term) in enumerate(rights):
        ordered[key].add((at,), 1, term)  # type: ignore[arg-type]
    known: dict[tuple[Hashable, Term], list[int]] = {}
    ones, others = list[int](), list[int]()
    for at, probe in enumerate(lefts):
        matching = known.get(probe)
        if matching is None:
            rows = ordered.get(probe[0])
            met = [] if rows is None else rows.meeting(probe[1]) if place(probe[1], band.direct) else rows.all()
            matching = known[probe] = [row[0] for bag in met for row in bag]  # type: ignore[misc]
        ones += [at] * len(matching)
        others += matching
        if len(ones) > limit:
            raise LargeJoinError(limit)
    return ones, others
