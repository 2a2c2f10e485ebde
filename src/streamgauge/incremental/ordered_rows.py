"""Rows by key and, for keys with many rows, sorted by a value, so that those within a ``Band`` are found by search."""

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
"""A value of the other side, and the signed number of copies of its row."""


class ValueRun:
    """Rows sorted by values of one kind; ``terms`` has a term per value.

    ``spans`` caches, per term of the other side, the positions of matching values until the order changes;
    ``away``: the distances of the last interval's ends from its term's value.
    """

    def __init__(self, kind: Kind) -> None:
        self.kind, self.order = kind, SortedList()
        self.bags: dict[Any, Bag] = {}
        self.terms: dict[Any, Term] = {}
        self.spans: dict[Term, tuple[int, int]] = {}
        self.away: tuple[Any, Any] = (0, 0)

    def add(self, value: Any, term: Term, row: Row, count: int) -> None:
        """Add copies of a row; a negative count removes."""
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
        """A term with the value at this position."""
        return self.terms[self.order[at]]

    def between(self, start: int, end: int) -> Iterator[Bag]:
        """The rows of the values at these positions."""
        return map(self.bags.__getitem__, self.order.islice(start, end))


class BandSearch:
    """The compiled limits of a band, for searching the sorted values of one side.

    ``way``: ``True`` if all values above a matching one match too, ``False`` if all below do, ``None`` if neither.
    """

    def __init__(self, band: Band, left: bool) -> None:
        names = (LEFT.name, RIGHT.name)
        self._left, self.direct = left, band.direct
        self._limits = [
            (row_condition(limit.condition, names), (limit.left if left else limit.right) > 0) for limit in band.limits
        ]
        # The sign with which a border moves when the probe grows: ``?v > ?w`` moves the border up, ``?v + ?w > 90``
        # down.
        signs = {(limit.left if left else limit.right) > 0: -limit.left * limit.right for limit in band.limits}
        self._signs = signs.get(True, 1), signs.get(False, 1)
        ways = {rising for _, rising in self._limits}
        self.way = ways.pop() if len(ways) == 1 else None

    def span(self, run: ValueRun, probe: Term) -> tuple[int, int]:
        """The interval of positions of a run whose values match a value of the other side."""
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
            # Only for computed bands: if the values themselves are compared, the border is at the value, and nothing
            # is to be learnt.
            if value is not None and not self.direct:
                run.away = self._away(run, value, span, run.away)
        return span

    def _near(self, run: ValueRun, value: Any) -> tuple[int, int]:
        """Where to begin a search: at the value's own position, or as far from it as the last search ended."""
        if self.direct:
            at = run.order.bisect_left(value)
            return at, at
        start, end = (sign * value + away for sign, away in zip(self._signs, run.away, strict=True))
        return run.order.bisect_left(start), run.order.bisect_left(end)

    def _away(self, run: ValueRun, value: Any, ends: tuple[int, int], before: tuple[Any, Any]) -> tuple[Any, Any]:
        """The distances of an interval's ends from a value; unchanged for an end at the end of the run."""
        start, end = (
            run.order[at] - sign * value if 0 < at < len(run.order) else away
            for at, sign, away in zip(ends, self._signs, before, strict=True)
        )
        return start, end

    def reaches(self, run: ValueRun, probe: Term) -> bool:
        """Whether any value of a run matches a value of the other side; one end decides if ``way`` is known."""
        if self.way is None:
            start, end = self.span(run, probe)
            return start < end
        # If all values above a matching one match too, some value matches if and only if the greatest does.
        term = run.term(-1 if self.way else 0)
        return all(holds((term, probe) if self._left else (probe, term)) for holds, _ in self._limits)

    def clipped(self, run: ValueRun, probe: Term, start: int, end: int) -> tuple[int, int]:
        """``span`` within the positions ``start`` to ``end``, searched from there."""
        for holds, rising in self._limits:
            passes = self._passing(run.term, probe, holds, rising)
            border = bisect_left(range(end), True, *galloped(passes, start, end, start if rising else end), key=passes)
            start, end = (border, end) if rising else (start, border)
        return start, end

    def searched(
        self, term: Callable[[int], Term], count: int, probe: Term, near: tuple[int, int] | None = None
    ) -> tuple[int, int]:
        """The interval of positions whose values match ``probe``, among ``count`` sorted values.

        ``term`` returns a term with the value at a position. ``near``: positions where the search for each end begins;
        without them it begins in the middle.
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
        """A predicate over positions: at or beyond the border of a limit."""
        if self._left:
            return lambda at: holds((term(at), probe)) is rising
        return lambda at: holds((probe, term(at))) is rising


def galloped(passes: Callable[[int], bool], low: int, high: int, near: int) -> tuple[int, int]:
    """Bounds around the first position that ``passes``, between ``low`` and ``high``, by galloping search.

    All positions after one that passes pass too. Steps away from ``near`` double, so that a border at distance d is
    found, with a bisection of the result, after about 2 log d tests (Bentley, Yao, IPL 5(3), 1976).

    A worked example: 9 is the first to pass, ``near`` is 4. 4, 5 and 7 fail and 11 passes, which leaves 8 to 11.
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
    """The sorted rows of one key, a run per kind of values; ``odd`` are rows whose values cannot be sorted."""

    def __init__(self, search: BandSearch) -> None:
        self.search = search
        self.runs: dict[Kind, ValueRun] = {}
        self.odd: Bag = {}

    def add(self, row: Row, count: int, term: Term | None) -> None:
        """Add copies of a row with this value; a row without a value meets nothing."""
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
        """The rows that a sortable value of the other side may meet."""
        bags = [bag for run in self.runs.values() for bag in run.between(*self.search.span(run, probe))]
        return [*bags, self.odd] if self.odd else bags

    def covers(self, term: Term) -> bool:
        """Whether some present value matches wherever this one does."""
        place_ = place(term, self.search.direct)
        run = None if place_ is None else self.runs.get(place_[0])
        if place_ is None or run is None or not run.order:
            return False
        if self.search.way is None:
            return place_[1] in run.bags
        # With one direction, every value beyond this one admits at least the same rows.
        return bool(place_[1] <= run.order[-1] if self.search.way else run.order[0] <= place_[1])

    def around(self, term: Term) -> list[Term] | None:
        """The neighbours of a value, or itself if present; ``None`` if some values are not comparable with it."""
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
        """The bags of all runs, and the rows without an order."""
        return [*(bag for run in self.runs.values() for bag in run.bags.values()), self.odd]

    def net(self, probes: Sequence[Probe]) -> Iterator[tuple[Bag, int]]:
        """The sorted rows that the probes meet, with the sum of their copies unless it is 0."""
        for run in self.runs.values():
            # A sweep over the ends of all intervals. Where copies cancel out, as those of a row that was replaced by
            # one with a similar value, the rows between are not looked at.
            # A worked example: the average falls from 49.7 to 49.5, ``?v > ?a``, and the run has 49.4, 49.6, 49.8. The
            # old average (-1) meets the positions 2 to 3, the new one (+1) 1 to 3. The steps are +1 at 1 and -1 at 2;
            # those at 3 cancel out. Only 49.6 is yielded, with one copy.
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
    """Bags of rows by key; keys with many rows that are probed often are also sorted by a value.

    ``own`` returns the value of a row of this side, ``other`` that of a row of the other side.
    """

    def __init__(self, key: KeyOf, keys: KeysOf, own: ValueOf, other: ValueOf, search: BandSearch) -> None:
        super().__init__(key, keys)
        self.own, self._other = own, other
        self._search = search
        self._ordered: dict[Key, OrderedRows] = {}
        self._scans: dict[Key, int] = {}

    def clear(self) -> None:
        """Remove all rows, orders and scans."""
        super().clear()
        self._ordered.clear()
        self._scans.clear()

    def parts(self) -> Iterator[Mapping[Key, Bag]]:
        """The table by key, and the sorted ones."""
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
        """The sorted rows of a key, for this many probes; ``None`` if testing one by one is still cheaper."""
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
        """Whether a value of the other side can be searched for."""
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
    """Which values of two sides satisfy a band, by search among the sorted values of the right side."""

    def __init__(self, band: Band) -> None:
        self._direct, self._limits, self._search = band.direct, len(band.limits), BandSearch(band, False)

    def worth(self, lefts: int, rights: int, rows: int) -> bool:
        """Whether searching for the distinct values takes fewer tests than testing all rows."""
        return 2 * lefts * self._limits * rights.bit_length() <= rows

    def of(self, lefts: Iterable[Term], rights: Iterable[Term]) -> tuple[list[tuple[int, int]], list[int]] | None:
        """For each left term the interval of matching positions, and the position of each right term.

        ``None`` if a value cannot be sorted, or those on the right are of several kinds.
        """
        probes, terms = list(lefts), list(rights)
        probe_places = [place(term, self._direct) for term in probes]
        placed = [place(term, self._direct) for term in terms]
        if None in probe_places or None in placed or len({place_[0] for place_ in placed if place_}) > 1:
            return None
        # A dict, since different terms may have the same value ("1" and "1.0"): one of them stands for all.
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
    """The positions of left and right rows, pair by pair, that have the same key and may meet under a band.

    A row is given as its key and the value that the band compares. Rows with values that cannot be sorted may meet
    all rows. LargeJoinError for more than ``limit`` pairs.
    """
    search = BandSearch(band, False)
    ordered: defaultdict[Hashable, OrderedRows] = defaultdict(lambda: OrderedRows(search))
    for at, (key, term) in enumerate(rights):
        ordered[key].add((at,), 1, term)  # type: ignore[arg-type]
    # Left rows with equal key and value meet the same right rows.
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
        # Checked as pairs are made: each probe adds at most all rows of its key.
        if len(ones) > limit:
            raise LargeJoinError(limit)
    return ones, others
