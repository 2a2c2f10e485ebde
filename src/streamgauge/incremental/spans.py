"""Triples with the spans of time for which a window contains them, in columns of term ids.

A window is evaluated again and again ("looks"). Each look has a ``horizon``: triples that arrived before it (ms) have
left. A triple's span begins with an arrival that finds it absent; its ``birth`` is the number of the first look that
sees it, and it lasts until its ``last`` arrival falls behind the horizon. A triple that arrives again within its span
extends it; one that arrives again later begins another span.

A worked example: look 0 is at 4 ms, look 1 at 20, look 2 at 30, and each sees the last 10 ms. (a p b) arrives at 0, 4
and 30 ms. It has two spans: one with birth 0, whose last arrival is at 4, and one with birth 2.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from streamgauge.incremental.budget import LARGEST, LargeJoinError
from streamgauge.incremental.crossovers import FEW_ROWS, SPARSE
from streamgauge.incremental.term_ids import Ids, Places

# 2**64 divided by the golden ratio: Fibonacci hashing (Knuth, The Art of Computer Programming 3, 6.4). Ids are small
# and dense, and the product spreads them over the upper bits, of which the key is taken.
_ODD: Final = np.uint64(0x9E3779B97F4A7C15)
_HALF: Final = np.uint64(32)

INITIAL_CAPACITY: Final = 1024
"""Initial capacity, in spans."""


class ConsecutiveLooks(NamedTuple):
    """Consecutive looks: their numbers, their horizons (ms), and the horizon of the look before each."""

    numbers: Places
    horizons: Places
    before: Places


class KeyTable:
    """Rows sorted by key, as in a counting sort."""

    def __init__(self, keys: Ids, room: int) -> None:
        self._counts = np.bincount(keys, minlength=room)
        self._starts = np.cumsum(self._counts) - self._counts
        self._order = np.argsort(keys, kind="stable")

    def counts(self, keys: Ids) -> Places:
        """The number of rows of each key."""
        counts: Places = self._counts[keys]
        return counts

    def rows(self, keys: Ids) -> tuple[Places, Places]:
        """The matches of keys and rows: the position of each key, repeated once per row, and the rows."""
        counts = self._counts[keys]
        # A worked example: keys with 2 and 3 rows that start at 10 and 40. The shifts are 10 - 0 and 40 - 2, repeated
        # as 10 10 38 38 38; plus 0 1 2 3 4 this is 10 11 40 41 42, the positions of all rows without a loop.
        shift = self._starts[keys] - (np.cumsum(counts) - counts)
        rows: Places = self._order[np.repeat(shift, counts) + np.arange(int(counts.sum()))]
        return np.repeat(np.arange(len(keys)), counts), rows


class SpanIndex:
    """An index from keys to the places of spans, as chains from the latest span back.

    The key of a single column is its term id. Several columns, or one column with few of many ``terms``, are hashed to
    at least ``capacity`` values, so collisions are rare but possible.
    """

    def __init__(self, columns: int, capacity: int, terms: int) -> None:
        dense = columns == 1 and terms <= SPARSE * capacity
        self._bits = 0 if dense else (2 * capacity).bit_length()
        self._latest: Places = np.full(terms if dense else 1 << self._bits, -1, np.int64)
        self.single = True
        """Whether all spans so far have different keys."""

    @property
    def hashed(self) -> bool:
        """Whether different rows may have the same key."""
        return self._bits > 0

    def crowded(self, spans: int) -> bool:
        """Whether a hashed index has become too small for this many spans."""
        return self._bits > 0 and spans > 1 << self._bits

    def keys(self, columns: Sequence[Ids]) -> Ids:
        """The key of each row."""
        if not self._bits:
            return columns[0]
        mixed = columns[0].astype(np.uint64) * _ODD
        for column in columns[1:]:
            mixed = ((mixed ^ (mixed >> _HALF)) + column.astype(np.uint64)) * _ODD
        hashed: Ids = (mixed >> np.uint64(64 - self._bits)).astype(np.int32)
        return hashed

    @property
    def room(self) -> int:
        """The exclusive upper bound of keys."""
        return len(self._latest)

    def latest(self, keys: Ids) -> Places:
        """The place of the latest span of each key, -1 if there is none."""
        return self._latest[keys]

    def different(self, begin: int) -> int:
        """The number of keys with a span at or after a place."""
        return int(np.count_nonzero(self._latest >= begin))

    def add(self, keys: Ids, places: Places) -> Places:
        """Add spans at ascending places; returns, for each, the place of the previous span with the same key."""
        # A worked example: the keys 5, 7, 5 at the places 0, 1, 2 of an empty index give -1, -1, 0. The latest of 5 is
        # 2, the one before it 0: following ``before`` from 2 finds both.
        before = self._latest[keys]
        # Assigning to repeated keys keeps the last place, so what can be read back tells whether any key came twice.
        self._latest[keys] = places
        self.single = self.single and not (before >= 0).any()
        if not (self._latest[keys] == places).all():
            self.single = False
            # A stable sort puts the spans of one key side by side in the order of their places: each follows the one
            # before it.
            order = np.argsort(keys, kind="stable")
            again = np.flatnonzero(keys[order[1:]] == keys[order[:-1]])
            before[order[again + 1]] = places[order[again]]
        return before

    def reserve(self, terms: int) -> None:
        """Grow to this many term ids."""
        if not self._bits and len(self._latest) < terms:
            more = np.full(max(terms, 2 * len(self._latest)) - len(self._latest), -1, np.int64)
            self._latest = np.concatenate([self._latest, more])


class TripleSpans:
    """The spans of the triples of one relation in order of birth; places are numbers that only grow.

    The same indexes arrange rows of any columns (``append``).
    """

    def __init__(self, columns: int) -> None:
        self._cells: list[Ids] = [np.empty(INITIAL_CAPACITY, np.int32) for _ in range(columns)]
        self._births, self._lasts = np.empty(INITIAL_CAPACITY, np.int64), np.empty(INITIAL_CAPACITY, np.int64)
        self._indexes: dict[tuple[int, ...], tuple[SpanIndex, Places]] = {}
        self._sorted: dict[tuple[int, ...], tuple[tuple[int, int, int], KeyTable]] = {}
        self._base = self.begin = self.end = self._terms = self._seen = 0
        self._since = -(2**62)

    def __len__(self) -> int:
        return self.end - self.begin

    @property
    def size(self) -> int:
        """The number of live spans."""
        return len(self)

    def cells(self, column: int, places: Places) -> Ids:
        """The term ids of spans in one column."""
        cells: Ids = self._cells[column][places - self._base]
        return cells

    def column(self, at: int) -> Ids:
        """The term ids of all live spans in one column."""
        cells: Ids = self._cells[at][self.begin - self._base : self.end - self._base]
        return cells

    def births(self, places: Places) -> Places:
        """The births of spans."""
        births: Places = self._births[places - self._base]
        return births

    def lasts(self, places: Places) -> Places:
        """The times (ms) of the last arrivals of spans."""
        lasts: Places = self._lasts[places - self._base]
        return lasts

    def born(self, first: int, until: int) -> Places:
        """The places of the spans born at looks ``first`` to ``until`` (exclusive)."""
        # Ascending, since spans are appended in order of birth.
        known = self._births[self.begin - self._base : self.end - self._base]
        ends = known.searchsorted([first, until]) + self.begin
        return np.arange(ends[0], ends[1])

    def forget_before(self, time: int) -> None:
        """Drop the spans whose last arrival was before ``time`` (ms)."""
        self._since = time
        # Spans are in the order of birth, not of end, so only those ahead of the first one that goes on can be passed
        # over.
        kept = self._lasts[self.begin - self._base : self.end - self._base] >= time
        self.begin = self.begin + int(kept.argmax()) if kept.any() else self.end

    def ending(self, looks: "ConsecutiveLooks") -> tuple[Places, Places]:
        """The spans that end at one of these looks, and the index of that look."""
        live = slice(self.begin - self._base, self.end - self._base)
        # A worked example: spans with their last arrivals at 4 and 9, and looks with the horizons 5 and 10 (before
        # them 0 and 5). The first ends at the look of 5, the second at that of 10; one with 12 ends at neither.
        lasts = self._lasts[live]
        # A span ends at the first look whose horizon lies behind its last arrival; horizons never go back.
        at = looks.horizons.searchsorted(lasts, "right")
        places = np.flatnonzero(at < len(looks.horizons))
        at = at[places]
        kept = (looks.before[at] <= lasts[places]) & (self._births[live][places] < looks.numbers[at])
        return places[kept] + self.begin, at[kept]

    def alive(self, number: int, horizon: int) -> Places:
        """The spans that began before a look and last until a horizon (ms)."""
        live = slice(self.begin - self._base, self.end - self._base)
        kept = (self._births[live] < number) & (self._lasts[live] >= horizon)
        return np.flatnonzero(kept) + self.begin

    def number(self, terms: int) -> None:
        """Set the number of term ids in use."""
        self._terms = terms
        for index, _ in self._indexes.values():
            index.reserve(terms)

    def enter(self, columns: Sequence[Ids], births: Places, times: Places, limits: Places) -> None:
        """Add arrivals of triples in order; times in ms.

        ``limits``: for each arrival, the horizon (ms) of the look before the first one that sees it.
        """
        if not len(births):
            return
        # Observations usually have a subject each; then no sort by three columns is needed.
        if self._all_differ(columns):
            kept = self._extended(columns, limits, times)
            if not kept.all():
                columns, births, times = [column[kept] for column in columns], births[kept], times[kept]
            self.append(columns, births, times)
            return
        keys: list[Any] = list(columns)
        # Sorted by the whole triple, copies lie side by side, and the stable sort keeps them in order of time. A copy
        # begins a new span if the one before it had left by the look ahead; otherwise it only moves the end of that
        # span.
        order = np.lexsort(keys)
        again = np.zeros(len(order), np.bool_)
        again[1:] = np.logical_and.reduce([column[order[1:]] == column[order[:-1]] for column in columns])
        begins = ~again
        begins[1:] |= times[order[:-1]] < limits[order[1:]]
        heads = np.flatnonzero(begins)
        lasts = times[order[np.append(heads[1:], len(order)) - 1]]
        first = ~again[heads]
        places = order[heads[first]]
        fresh = np.ones(len(heads), np.bool_)
        fresh[first] = self._extended([column[places] for column in columns], limits[places], lasts[first])
        new = order[heads[fresh]]
        in_order = np.argsort(births[new], kind="stable")
        new, lasts = new[in_order], lasts[fresh][in_order]
        self.append([column[new] for column in columns], births[new], lasts)

    def _all_differ(self, columns: Sequence[Ids]) -> bool:
        """Whether the first column alone shows that all triples differ."""
        places = np.arange(len(columns[0]), dtype=np.int32)
        # Uninitialised: only slots that were written are read.
        row = np.empty(self._terms, np.int32)
        row[columns[0]] = places
        return bool((row[columns[0]] == places).all())

    def _extended(self, columns: Sequence[Ids], limits: Places, lasts: Places) -> npt.NDArray[np.bool_]:
        """Extend the live spans of triples that arrive again; returns which triples begin a new span."""
        starts = np.ones(len(lasts), np.bool_)
        # Ids grow in order of first use, so a triple whose first term is newer than all before cannot have a span.
        rows = np.flatnonzero(columns[0] < self._seen)
        if len(rows):
            which, places = self.pairs({at: column[rows] for at, column in enumerate(columns)})
            which = rows[which]
            within = self.lasts(places) >= limits[which]
            which, at = which[within], places[within] - self._base
            self._lasts[at] = np.maximum(self._lasts[at], lasts[which])
            starts[which] = False
        self._seen = max(self._seen, int(columns[0].max()) + 1)
        return starts

    def append(self, columns: Sequence[Ids], births: Places, lasts: Places) -> None:
        """Append spans; births must not decrease."""
        self._reserve(len(births))
        at = slice(self.end - self._base, self.end - self._base + len(births))
        for cells, new in zip(self._cells, columns, strict=True):
            cells[at] = new
        self._births[at], self._lasts[at] = births, lasts
        places = np.arange(self.end, self.end + len(births))
        for bound, (index, before) in self._indexes.items():
            before[at] = index.add(index.keys([self._cells[column][at] for column in bound]), places)
        self.end += len(births)
        crowded = [bound for bound, (index, _) in self._indexes.items() if index.crowded(len(self))]
        # Rebuilt on next use with more bits; until then nobody pays for an index that is no longer asked for.
        for bound in crowded:
            del self._indexes[bound]

    def _reserve(self, more: int) -> None:
        """Make room for ``more`` spans, reusing the room of dropped ones."""
        if self.end - self._base + more <= len(self._births):
            return
        live: Any = slice(self.begin - self._base, self.end - self._base)
        surviving = np.flatnonzero(self._lasts[live] >= self._since)
        # Otherwise places must not change: the indexes have them.
        if 2 * len(surviving) < len(self):  # many ended behind one that goes on: all places change
            live, self.end = surviving + live.start, self.begin + len(surviving)
            self._indexes.clear()
            self._sorted.clear()
        capacity = max(INITIAL_CAPACITY, 2 * (len(self) + more))

        def moved(old: Any) -> Any:
            new = np.empty(capacity, old.dtype)
            new[: len(self)] = old[live]
            return new

        self._cells = [moved(column) for column in self._cells]
        self._births, self._lasts = moved(self._births), moved(self._lasts)
        self._indexes = {bound: (index, moved(before)) for bound, (index, before) in self._indexes.items()}
        self._base = self.begin

    def pairs(self, keys: dict[int, Ids], limit: int = LARGEST) -> tuple[Places, Places]:
        """Join rows of terms in some columns with spans: the index of each row, and the place of the span it meets.

        LargeJoinError if more than ``limit`` candidates would be tested.
        """
        bound = tuple(keys)
        index, before = self._indexed(bound)
        hashed = index.keys(list(keys.values()))
        if index.single or len(hashed) * SPARSE < len(self):
            # Few keys beside many spans: sorting all spans would cost more than following a few chains.
            which, places = self._chained(bound, hashed, index, before, limit)
        else:
            which, places = self._sorted_pairs(bound, hashed, limit)
        # Collisions give candidates with other terms.
        if index.hashed:
            same = np.logical_and.reduce([self.cells(at, places) == terms[which] for at, terms in keys.items()])
            which, places = which[same], places[same]
        return which, places

    def number_of_pairs(self, keys: dict[int, Ids]) -> int:
        """The number of candidates that ``pairs`` would test."""
        index, _ = self._indexed(tuple(keys))
        return int(self._table(tuple(keys)).counts(index.keys(list(keys.values()))).sum())

    def number_of_keys(self, bound: tuple[int, ...]) -> int:
        """About how many different keys some columns have."""
        index, _ = self._indexed(bound)
        return len(self) if index.single else index.different(self.begin)

    def _chained(
        self, bound: tuple[int, ...], keys: Ids, index: SpanIndex, before: Places, limit: int
    ) -> tuple[Places, Places]:
        which, places = np.arange(len(keys)), index.latest(keys)
        pairs: list[tuple[Places, Places]] = []
        # Follow the chains of all keys at once, a link a turn. A key with a longer chain would make turns of a single
        # row, so what is left after a few is looked up in a sorted table.
        for _ in range(FEW_ROWS):
            there = places >= self.begin
            if not there.all():
                which, places = which[there], places[there]
            pairs.append((which, places))
            if index.single or not len(which):
                break
            places = before[places - self._base]
        else:
            pairs.append(self._all(bound, keys, which, places, limit))
        if sum(len(rows) for rows, _ in pairs) > limit:
            raise LargeJoinError(limit)
        if len(pairs) == 1:
            return which, places
        return np.concatenate([rows for rows, _ in pairs]), np.concatenate([places_ for _, places_ in pairs])

    def _indexed(self, bound: tuple[int, ...]) -> tuple[SpanIndex, Places]:
        """The index of some columns, built on first use."""
        if bound not in self._indexes:
            index, before = SpanIndex(len(bound), len(self._births), self._terms), np.empty(len(self._births), np.int64)
            live = slice(self.begin - self._base, self.end - self._base)
            before[live] = index.add(self._keys(bound, index), np.arange(self.begin, self.end))
            self._indexes[bound] = index, before
        return self._indexes[bound]

    def _keys(self, bound: tuple[int, ...], index: SpanIndex) -> Ids:
        """The keys of all live spans."""
        live = slice(self.begin - self._base, self.end - self._base)
        return index.keys([self._cells[column][live] for column in bound])

    def _all(
        self, bound: tuple[int, ...], keys: Ids, which: Places, places: Places, limit: int
    ) -> tuple[Places, Places]:
        """The rest of the chains that begin at ``places``, from the sorted table."""
        rows, matches = self._sorted_pairs(bound, keys[which], limit)
        earlier = matches <= places[rows]
        return which[rows[earlier]], matches[earlier]

    def _sorted_pairs(self, bound: tuple[int, ...], keys: Ids, limit: int) -> tuple[Places, Places]:
        """All pairs of keys and spans, from the sorted table."""
        table = self._table(bound)
        if int(table.counts(keys).sum()) > limit:
            raise LargeJoinError(limit)
        which, rows = table.rows(keys)
        return which, rows + self.begin

    def _table(self, bound: tuple[int, ...]) -> KeyTable:
        """The live spans sorted by the keys of some columns, cached until spans change."""
        index, _ = self._indexed(bound)
        state = self.begin, self.end, index.room
        known = self._sorted.get(bound)
        if known is None or known[0] != state:
            known = self._sorted[bound] = state, KeyTable(self._keys(bound, index), index.room)
        return known[1]

    def numbers(self) -> Ids:
        """The term ids of all live spans, column after column."""
        live = slice(self.begin - self._base, self.end - self._base)
        return np.concatenate([column[live] for column in self._cells])

    def renumber(self, numbers: Ids) -> None:
        """Replace the term ids of all live spans, in the layout of ``numbers``."""
        live = slice(self.begin - self._base, self.end - self._base)
        for column, new in zip(self._cells, np.split(numbers, len(self._cells)), strict=True):
            column[live] = new
        self._seen = int(numbers.max()) + 1 if len(numbers) else 0
        self._indexes.clear()
        self._sorted.clear()
