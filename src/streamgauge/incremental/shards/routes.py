"""Routing of the triples of a batch to the shards that need them, in columns, with a dictionary of terms per shard.

A row without triples for a shard is sent there only if it is needed for time: the very first one, which begins the
windows, and the last one of a batch, so that all shards report the same instants in the same batch.
"""

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TypeVar
from zlib import crc32

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from streamgauge.formats.batches import Columns, Numbers, Times, check_numbers, columns_with
from streamgauge.formats.lines import LineError
from streamgauge.incremental.drivers.admission import Admission, disorder
from streamgauge.incremental.shards.keys import Route, TripleRoutes
from streamgauge.incremental.shards.plan import ShardingPlan, WindowTurns
from streamgauge.model.element import StreamElement
from streamgauge.model.semantics import Origin, Semantics
from streamgauge.model.terms import Term, Triple
from streamgauge.semantics.refusal import OutOfOrderError

Mask = npt.NDArray[np.bool_]

AnyInteger = TypeVar("AnyInteger", np.int8, np.int32)

_UNKNOWN = -1
_NO_NUMBERS: Numbers = np.empty(0, np.int32)


class _Dictionary:
    """The terms of a numbering, with cached routes (as predicates) and shards (as keys)."""

    def __init__(self, routes: TripleRoutes, shards: int) -> None:
        self._routes, self._shards = routes, shards
        self.texts: list[Term] = []
        self._route, self._shard = _unknown(0, np.int8), _unknown(0, np.int8)

    def clear(self) -> None:
        """Begin a new numbering."""
        self.texts.clear()
        self._route.fill(_UNKNOWN)
        self._shard.fill(_UNKNOWN)

    def add(self, texts: pa.StringArray) -> None:
        """Add terms to the numbering."""
        self.texts += texts.to_pylist()
        if (more := len(self.texts) - len(self._route)) > 0:
            # The arrays at least double, so that all growth together costs as much as the last array, or less.
            fresh = _unknown(max(more, len(self._route)), np.int8)
            self._route, self._shard = (np.concatenate([column, fresh]) for column in (self._route, self._shard))

    def routes(self, predicates: Numbers) -> npt.NDArray[np.int8]:
        """The route of each triple by its predicate."""
        routes_ = self._route[predicates]
        # Python code runs only for terms that were never looked up before: in the long run, for hardly any.
        if len(routes_) and routes_.min() == _UNKNOWN:
            for number in different(predicates[routes_ == _UNKNOWN]).tolist():
                self._route[number] = self._routes.of.get(self.texts[number], self._routes.others)
            routes_ = self._route[predicates]
        return routes_

    def shards(self, keys: Numbers) -> npt.NDArray[np.int8]:
        """The shard of each term."""
        shards_ = self._shard[keys]
        if len(shards_) and shards_.min() == _UNKNOWN:
            for number in different(keys[shards_ == _UNKNOWN]).tolist():
                self._shard[number] = shard_of(self.texts[number], self._shards)
            shards_ = self._shard[keys]
        return shards_


def different(numbers: Numbers) -> Numbers:
    """The distinct numbers, ascending."""
    if not len(numbers):
        return numbers
    least = numbers.min()
    # Numbers of terms are dense, so that a mask is faster than a sort: {7, 5, 7, 9} marks the places 0, 2 and 4 from 5
    # on.
    there = np.zeros(int(numbers.max()) - int(least) + 1, np.bool_)
    there[numbers - least] = True
    present: Numbers = np.flatnonzero(there).astype(np.int32) + least
    return present


def _unknown(size: int, kind: type[AnyInteger]) -> npt.NDArray[AnyInteger]:
    return np.full(size, _UNKNOWN, kind)


def shard_of(term: Term, shards: int) -> int:
    """The shard of a term, by a hash of its text that is the same in all processes."""
    return crc32(term.encode(errors="surrogatepass")) % shards


class _ShardTerms:
    """The numbering of one shard, which only has the terms it needs; ``begins`` before its first batch."""

    def __init__(self) -> None:
        self._own = _unknown(0, np.int32)
        self._count, self.begins = 0, True

    def clear(self) -> None:
        """Begin a new numbering."""
        self._own.fill(_UNKNOWN)
        self._count, self.begins = 0, True

    def of(self, numbers: Numbers, texts: Sequence[Term]) -> tuple[Numbers, pa.StringArray]:
        """Translate numbers to the shard's; also the terms that are new to it."""
        if (more := len(texts) - len(self._own)) > 0:
            self._own = np.concatenate([self._own, _unknown(max(more, len(self._own)), np.int32)])
        own = self._own[numbers]
        fresh = different(numbers[own == _UNKNOWN])
        if len(fresh):
            self._own[fresh] = np.arange(self._count, self._count + len(fresh), dtype=np.int32)
            self._count += len(fresh)
            own = self._own[numbers]
        return own, pa.array([texts[number] for number in fresh.tolist()], pa.string())


class ShardRouter:
    """Partitions batches for ``shards`` of one query (default: all), and checks its streams and the order of time.

    ``error`` is set if an element goes back in time without a lateness bound; the elements before it are routed.
    """

    def __init__(
        self, plan: ShardingPlan, streams: Iterable[str], semantics: Semantics, shards: Sequence[int] | None = None
    ) -> None:
        self._plan, self._semantics = plan, semantics
        self.admission = Admission(frozenset(streams))
        self._t0: int | None = None if semantics.origin is Origin.FIRST else semantics.t0
        self._greatest = -(2**62)
        self._begun = False
        self.error: OutOfOrderError | None = None
        self._known = _Dictionary(plan.routes, plan.shards)
        self._own = {shard: _ShardTerms() for shard in shards or range(plan.shards)}

    def route(self, columns: Columns) -> list[Columns] | None:
        """The batch of each shard; ``None`` if nothing concerns the query. LineError."""
        batch = columns.batch
        if columns.begins:
            self._known.clear()
            for own in self._own.values():
                own.clear()
        self._known.add(batch.column("terms").flatten())
        cells = _Cells(batch, len(self._known.texts))
        rows = self._rows(cells)
        if not len(rows):
            return None
        if len(rows) < len(batch):
            cells = _Cells(batch.take(pa.array(rows)), len(self._known.texts))
        keeps = self._keeps(cells)
        forced = np.zeros(len(rows), np.bool_)
        # Rows that every shard needs even without triples: the last one, the very first one, and advances of time.
        forced[-1] = True
        forced[0] |= not self._begun
        forced |= cells.told | self._plan.every
        self._begun = True
        return [self._part(cells, keep, forced, shard) for shard, keep in zip(self._own, keeps, strict=True)]

    def place(self, instant: int) -> int | None:
        """The shard whose window closes at an instant (ms); ``None`` unless shards take turns at windows."""
        if self._plan.turns is None or self._t0 is None:
            return None
        return self._plan.turns.closing(instant, self._t0) % self._plan.shards

    def _rows(self, cells: "_Cells") -> Times:
        """The relevant rows: advances, and elements of the query's streams up to one that goes back in time."""
        rows = np.arange(len(cells.times))
        if not all(self._asks_for(number, cells) for number in cells.numbers):
            numbers = [number for number in cells.numbers if self._asks_for(number, cells)]
            # Advances have no stream and go to all.
            rows = np.flatnonzero(np.isin(cells.streams, [_UNKNOWN, *numbers]))
        if self._t0 is None:
            # Nothing has happened before the first element: advances ahead of it are dropped, since windows have no
            # origin yet.
            rows = rows[np.cumsum(~cells.told[rows]) > 0]
        return self._ordered(rows, cells)

    def _asks_for(self, number: int, cells: "_Cells") -> bool:
        stream, time = self._known.texts[number][1:-1], int(cells.times[0])
        return self.admission.takes(StreamElement(stream, time, 0, ()))

    def _ordered(self, rows: Times, cells: "_Cells") -> Times:
        """The rows up to the first element that goes back in time, unless a lateness bound allows it."""
        if not len(rows):
            return rows
        times = cells.times[rows]
        if self._t0 is None:
            self._t0 = int(times[0]) // self._semantics.time_unit * self._semantics.time_unit
        # The greatest time ahead of each row: an element below it goes back in time.
        reached = np.maximum.accumulate(np.concatenate([[self._greatest], times]))
        self._greatest = int(reached[-1])
        back = (times < reached[:-1]) & ~cells.told[rows]
        if self._semantics.lateness is not None or not back.any():
            return rows
        at = int(np.argmax(back))
        sequence = cells.sequences[int(rows[at])].as_py()
        self.error = disorder(StreamElement("", int(times[at]), sequence, ()), int(reached[at]))
        return rows[:at]

    def _keeps(self, cells: "_Cells") -> list[Mask]:
        """Masks of the triples for each shard."""
        if self._plan.turns is not None:
            return self._held(cells, self._plan.turns)
        routes = self._routes(cells, Route.SUBJECT)
        # Triples alternate subject, predicate and object in one array: every third number from 0 is a subject, from 2
        # an object.
        keys = np.where(routes == Route.OBJECT, cells.triples[2::3], cells.triples[0::3])
        own = np.full(len(routes), _UNKNOWN, np.int8)
        by_key = (routes == Route.SUBJECT) | (routes == Route.OBJECT)
        own[by_key] = self._known.shards(keys[by_key])
        everywhere = routes == Route.EVERYWHERE
        return [(own == shard) | everywhere for shard in self._own]

    def _held(self, cells: "_Cells", turns: WindowTurns) -> list[Mask]:
        """``_keeps`` for shards that take turns at windows."""
        assert self._t0 is not None
        first, last = turns.holding(cells.times, self._t0)
        masks = [_turn(first, last, shard, self._plan.shards) for shard in self._own]
        if not any(mask.any() for mask in masks):
            return [np.zeros(0, np.bool_)] * len(masks)
        matched = self._routes(cells, Route.EVERYWHERE) != Route.NOWHERE
        return [mask[cells.rows] & matched for mask in masks]

    def _routes(self, cells: "_Cells", present: Route) -> npt.NDArray[np.int8]:
        """The route of each triple; if ``present``, the first triple of a row without matches gets one too."""
        routes = self._known.routes(cells.triples[1::3])
        if self._plan.present:
            routes[cells.unmatched(routes != Route.NOWHERE)] = present
        return routes

    def _part(self, cells: "_Cells", keep: Mask, forced: Mask, shard: int) -> Columns:
        """The rows of one shard, in its own numbering."""
        kept = np.flatnonzero(keep)
        # The number of triples that each row keeps.
        sizes = np.bincount(cells.rows[kept] if len(kept) else kept, minlength=len(cells.times))
        taken = np.flatnonzero((sizes > 0) | forced)
        marked = cells.told[taken]
        named = cells.streams[taken][~marked]
        own = self._own[shard]
        triples = cells.triples.reshape(-1, 3).take(kept, axis=0).ravel() if len(kept) else _NO_NUMBERS
        numbers, terms = own.of(np.concatenate([named, triples]), self._known.texts)
        streams = np.full(len(taken), _UNKNOWN, np.int32)
        streams[~marked] = numbers[: len(named)]
        borders = np.zeros(len(taken) + 1, np.int32)
        # The offsets of Arrow's list column: rows of 2 and 1 triples begin at 0 and 6, and end at 9.
        np.cumsum(3 * sizes[taken], out=borders[1:])
        at = pa.array(taken)
        columns = [
            pa.array(cells.times[taken]),
            cells.sequences.take(at),
            pa.array(streams, mask=marked) if marked.any() else pa.array(streams),
            cells.until.take(at),
            pa.ListArray.from_arrays(pa.array(borders), pa.array(numbers[len(named) :])),
            pa.ListArray.from_arrays(pa.array(np.zeros(len(taken) + 1, np.int32)), pa.array([], pa.int32())),
        ]
        begins, own.begins = own.begins, False
        return columns_with(columns, terms, begins)


class _Cells:
    """The rows of a batch: elements, and advances (``told``); triples are read on demand.

    ``numbers`` are those of the streams. LineError for numbers of unknown terms.
    """

    def __init__(self, batch: pa.RecordBatch, known: int) -> None:
        self._known = known
        self.times: Times = batch.column("time").to_numpy()
        self.sequences, self.until = batch.column("sequence"), batch.column("until")
        streams = batch.column("stream")
        self.streams: Numbers = (streams.fill_null(_UNKNOWN) if streams.null_count else streams).to_numpy()
        self.told = self.streams == _UNKNOWN
        self.numbers = [number for number in different(self.streams).tolist() if number != _UNKNOWN]
        check_numbers(known, np.array(self.numbers, np.int32))
        self._added = batch.column("added")

    @cached_property
    def borders(self) -> Times:
        """The offsets of each row's triples, and the end."""
        offsets = self._added.offsets.to_numpy().astype(np.int64)
        if (offsets % 3).any():
            raise LineError("a triple is three numbers: the column added has another count of them")
        borders: Times = (offsets - offsets[0]) // 3
        return borders

    @cached_property
    def triples(self) -> Numbers:
        """Three numbers per triple."""
        numbers: Numbers = self._added.flatten().to_numpy()
        check_numbers(self._known, numbers)
        return numbers

    @cached_property
    def rows(self) -> Times:
        """The row of each triple."""
        return np.repeat(np.arange(len(self.times)), np.diff(self.borders))

    def unmatched(self, matched: Mask) -> Times:
        """The first triple of each row without a matched triple."""
        some = np.bincount(self.rows[matched], minlength=len(self.times))
        times: Times = self.borders[:-1][(some == 0) & (np.diff(self.borders) > 0)]
        return times


def _turn(first: Times, last: Times, shard: int, shards: int) -> Mask:
    """Whether a window from ``first`` to ``last``, at most one apart, belongs to a shard."""
    mask: Mask = ((first <= last) & (first % shards == shard)) | ((first < last) & (last % shards == shard))
    return mask


def part_static(static: Iterable[Triple], plan: ShardingPlan) -> list[list[Triple]]:
    """Partition static triples like those of streams."""
    parts: list[list[Triple]] = [[] for _ in range(plan.shards)]
    for triple in static:
        route = plan.routes.of.get(triple[1], plan.routes.others)
        if route is Route.EVERYWHERE:
            for part in parts:
                part.append(triple)
        elif route is not Route.NOWHERE:
            parts[shard_of(triple[0] if route is Route.SUBJECT else triple[2], plan.shards)].append(triple)
    return parts
