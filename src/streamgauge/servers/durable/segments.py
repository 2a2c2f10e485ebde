"""Segments: the items of a session in columns, how they are stored, and how engines read them back.

A segment numbers its own terms, so it can be dropped independently of the others. Consecutive small segments are read
as one, so that an engine that takes batches looks up each of their terms once.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain, groupby, pairwise
from operator import attrgetter
from typing import Final, NamedTuple, TypeAlias, cast

import msgspec
import numpy as np

from streamgauge.formats.batches import FEW, ElementBatch, NumberedTerms, Numbers, Taken, Times, triples_of
from streamgauge.formats.lines import Advance, Input
from streamgauge.model.element import StreamElement
from streamgauge.model.terms import Term, Triple

JournalItem: TypeAlias = tuple[str, Input]
"""An element or advance, with its stream. An element's sequence number is its number in the journal."""

KeptItem: TypeAlias = JournalItem | ElementBatch
"""An item, or a batch of consecutive elements of one stream."""

TOGETHER: Final = 4096
"""Number of items up to which consecutive segments are read together."""

_ADVANCE: Final = -1
_ADDED, _REMOVED, _UNTIL = attrgetter("added"), attrgetter("removed"), attrgetter("until")

Removal: TypeAlias = tuple[int, tuple[Triple, ...], int | None]
"""An element's position, the triples that it removes, and the end (ms) of those that it adds."""

_encode: Final = msgspec.msgpack.Encoder().encode


class ItemColumns(NamedTuple):
    """Items in columns, with a value of ``times`` (ms), ``places`` (in ``streams``) and ``counts`` each.

    ``counts`` are triples, -1 for an advance; ``ids`` has three term numbers per triple. ``others`` are the elements
    that remove triples or have an end.
    """

    streams: list[str]
    terms: list[Term]
    times: Times
    places: Numbers
    counts: Numbers
    ids: Numbers
    others: Sequence[Removal]

    @classmethod
    def of(
        cls, items: Sequence[JournalItem], streams: NumberedTerms | None = None, numbers: NumberedTerms | None = None
    ) -> "ItemColumns":
        """Convert items to columns; ``streams`` and ``numbers`` continue existing numberings."""
        elements = [item for _, item in items if not isinstance(item, Advance)]
        triples = list(map(_ADDED, elements))
        sizes, others = list(map(len, triples)), list[Removal]()
        if len(elements) < len(items):
            size = iter(sizes)
            sizes = [_ADVANCE if isinstance(item, Advance) else next(size) for _, item in items]
        if any(map(_REMOVED, elements)) or any(until is not None for until in map(_UNTIL, elements)):
            others = [
                (at, item.removed, item.until)
                for at, (_, item) in enumerate(items)
                if isinstance(item, StreamElement) and (item.removed or item.until is not None)
            ]
        streams, numbers = (
            NumberedTerms() if streams is None else streams,
            NumberedTerms() if numbers is None else numbers,
        )
        places = streams.of([stream for stream, _ in items])
        ids = numbers.of(list(chain.from_iterable(chain.from_iterable(triples))))
        times = np.array([item.time for _, item in items], np.int64)
        return cls(streams.terms, numbers.terms, times, places, np.array(sizes, np.int32), ids, others)

    @classmethod
    def of_batch(cls, batch: ElementBatch) -> "ItemColumns":
        """Convert a batch, which keeps all the terms of its reader."""
        places, counts = np.zeros(len(batch), np.int32), np.diff(batch.borders).astype(np.int32)
        return cls([batch.stream], batch.terms, batch.times, places, counts, batch.added, ())

    @classmethod
    def of_taken(cls, items: Sequence[tuple[str, Taken]]) -> "ItemColumns":
        """Convert items to columns; batches stay as they are."""
        parts = list[ItemColumns]()
        for in_columns, run in groupby(items, lambda item: isinstance(item[1], ElementBatch)):
            if in_columns:
                parts += [cls.of_batch(cast(ElementBatch, batch)) for _, batch in run]
            else:
                parts.append(cls.of(cast(Sequence[JournalItem], [*run])))
        return cls.together(parts)

    @classmethod
    def together(cls, parts: Sequence["ItemColumns"]) -> "ItemColumns":
        """Concatenate parts; streams and terms that occur are numbered anew, each once."""
        if not parts:
            return cls.of(())
        begins = accumulate((len(part.times) for part in parts), initial=0)
        others = [
            (begin + at, removed, until)
            for begin, part in zip(begins, parts, strict=False)
            for at, removed, until in part.others
        ]
        streams = NumberedTerms()
        places = np.concatenate([streams.of(part.streams)[part.places] for part in parts])
        times, counts = (np.concatenate([getattr(part, name) for part in parts]) for name in ("times", "counts"))
        terms, ids = _numbered_together([(part.terms, part.ids) for part in parts])
        return cls(streams.terms, terms, times, places, counts, ids, others)

    def encode(self) -> bytes:
        """Encode as MessagePack; columns are little-endian integers of the smallest sufficient width."""
        columns = [_packed(column) for column in (self.times, self.places, self.counts, self.ids)]
        return _encode([self.streams, self.terms, columns, self.others])

    @classmethod
    def decode(cls, body: bytes) -> "ItemColumns":
        """Decode what ``encode`` returned."""
        kept = _decode(body)
        times, *columns = [np.frombuffer(data, kind) for kind, data in kept.columns]
        places, counts, ids = [column.astype(np.int32, copy=False) for column in columns]
        return cls(kept.streams, kept.terms, times.astype(np.int64, copy=False), places, counts, ids, kept.others)


def _numbered_together(parts: Sequence[tuple[list[Term], Numbers]]) -> tuple[list[Term], Numbers]:
    """Number the terms that occur once for all parts, which may share lists; returns the terms, and the parts' ids."""
    lists, ids_of = dict[int, list[Term]](), defaultdict[int, list[Numbers]](list)
    for terms, ids in parts:
        if len(ids):  # advances have no terms
            lists[id(terms)] = terms
            ids_of[id(terms)].append(ids)
    used, numbers = dict[int, list[Term]](), dict[int, Numbers]()
    for key, terms in lists.items():
        # A reader numbers on over many batches, and may do so in another thread: the length is taken once.
        occurs = np.zeros(len(terms), np.bool_)
        for ids in ids_of[key]:
            occurs[ids] = True
        # The terms of a request's body all occur.
        at = None if occurs.all() else np.flatnonzero(occurs).tolist()
        used[key] = terms[: len(occurs)] if at is None else [terms[number] for number in at]
        numbers[key] = np.cumsum(occurs, dtype=np.int32) - 1
    together = _merged(used, numbers) if len(lists) > 1 else next(iter(used.values()), [])
    return together, np.concatenate([numbers[id(terms)][ids] if len(ids) else ids for terms, ids in parts])


def _merged(used: Mapping[int, list[Term]], numbers: dict[int, Numbers]) -> list[Term]:
    """Merge lists of terms without duplicates; ``numbers`` are updated to the terms' numbers in the result."""
    largest, *others = sorted(used, key=lambda key: len(used[key]), reverse=True)
    numbering = NumberedTerms()
    # The others are often a line between two chunks: its few terms are looked up, those of the largest list are not.
    numbering.add(used[largest])
    for key in others:
        numbers[key] = numbering.of(used[key])[numbers[key]]
    return numbering.terms


class OpenSegment:
    """A segment being filled, from item ``number`` on; engines receive its items as they are added.

    Terms are numbered once, for engine and disk.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self._loose, self._parts = list[JournalItem](), list[ItemColumns]()
        self._streams, self._terms, self._size = NumberedTerms(), NumberedTerms(), 0

    def __len__(self) -> int:
        return self._size + len(self._loose)

    @property
    def end(self) -> int:
        """The next item's number."""
        return self.number + len(self)

    def append(self, stream: str, item: Input) -> None:
        """Add an item; an element must have its number already."""
        self._loose.append((stream, item))

    def pop_advance(self) -> None:
        """Remove the last item if it is an appended advance."""
        if self._loose and isinstance(self._loose[-1][1], Advance):
            self._loose.pop()

    def extend(self, items: Sequence[JournalItem]) -> Iterator[tuple[int, KeptItem]]:
        """Add items; yields them for an engine, each with its number (a batch with that of its first)."""
        self._close_part()
        number, part = self.end, self._part(items)
        return _runs(number, part)

    def extend_batch(self, batch: ElementBatch) -> ElementBatch:
        """Add a batch, which keeps its terms; returns it with the elements numbered."""
        self._close_part()
        own = batch.numbered(self.end)
        self._parts.append(ItemColumns.of_batch(own))
        self._size += len(own)
        return own

    @property
    def columns(self) -> ItemColumns:
        """All items in columns."""
        self._close_part()
        return ItemColumns.together(self._parts)

    def _close_part(self) -> None:
        if self._loose:
            self._part(self._loose)
            self._loose = []

    def _part(self, items: Sequence[JournalItem]) -> ItemColumns:
        part = ItemColumns.of(items, self._streams, self._terms)
        self._parts.append(part)
        self._size += len(items)
        return part


class _Kept(msgspec.Struct, array_like=True, gc=False):
    streams: list[str]
    terms: list[str]
    columns: list[tuple[str, bytes]]
    others: list[Removal]


_decode: Final = msgspec.msgpack.Decoder(_Kept).decode
_KINDS: Final = ("<i1", "<i2", "<i4", "<i8")


def _packed(column: Times | Numbers) -> tuple[str, bytes]:
    least, greatest = (int(column.min()), int(column.max())) if len(column) else (0, 0)
    # Counts fit one byte and the ids of a small segment two, so columns of 8 bytes would multiply the size on disk.
    kind = next(kind for kind in _KINDS if np.iinfo(kind).min <= least and greatest <= np.iinfo(kind).max)
    return kind, column.astype(kind).tobytes()


@dataclass(slots=True)
class SegmentExtent:
    """The extent of a segment: items ``number`` to ``end`` (exclusive), and the latest time (ms) of its elements.

    An element is timely if no later one came before it (up to ``greatest``): ``timely`` is the latest time of such
    elements, ``triples`` counts theirs by stream. ``advances`` and ``times`` are the latest advances and elements by
    stream (ms). They outlive the segment (``changed``), so that later elements are late in a restarted session too.
    """

    number: int
    end: int
    latest: int | None = None
    timely: int | None = None
    greatest: int | None = None
    triples: dict[str, int] = field(default_factory=dict)
    advances: dict[str, int] = field(default_factory=dict)
    times: dict[str, int] = field(default_factory=dict)
    changed: bool = False

    @property
    def is_rest(self) -> bool:
        """Whether only times remain, without triples."""
        return not self.triples

    def rest(self) -> list[JournalItem]:
        """The times as items: elements without triples, and advances."""
        times = sorted(self.times.items(), key=lambda stream_time: stream_time[1])  # or time would go back
        elements = [(stream, StreamElement(stream, time, self.number, ())) for stream, time in times]
        return [*elements, *((stream, Advance(time)) for stream, time in self.advances.items())]

    def encode(self) -> bytes:
        """Encode as MessagePack, without the number."""
        times = (self.latest, self.timely, self.greatest)
        return _encode((self.end, *times, self.triples, self.advances, self.times))

    @classmethod
    def decode(cls, number: int, body: bytes) -> "SegmentExtent":
        """Decode an extent from MessagePack."""
        return cls(number, *msgspec.msgpack.decode(body))


def extent_of(number: int, columns: ItemColumns, greatest: int | None) -> SegmentExtent:
    """The extent of items that follow others, whose latest time is ``greatest`` (ms)."""
    times, counts = columns.times, columns.counts
    elements = counts != _ADVANCE
    # After an advance to t, elements of time t are late too (``EngineSession.push``); after an element of time t they
    # are not. Hence + 1. A worked example: elements of 5 and 3, an advance to 7, elements of 7 and 8. ``came`` is 5,
    # 5, 8, 8, 8 behind them, so 5 and 8 are timely, 3 and 7 are late.
    came = np.maximum.accumulate(np.concatenate([[_NEVER if greatest is None else greatest], times + ~elements]))
    entering = counts > 0
    timely = entering & (times >= came[:-1])
    extent = SegmentExtent(number, number + len(times), greatest=int(came[-1]))
    extent.latest, extent.timely = _latest(times[entering]), _latest(times[timely])
    for at, stream in enumerate(columns.streams):
        own = columns.places == at
        if (own & entering).any():
            extent.triples[stream] = int(counts[own & timely].sum())
        for latest, which in ((extent.times, own & elements), (extent.advances, own & ~elements)):
            if (time := _latest(times[which])) is not None:
                latest[stream] = time
    return extent


_NEVER: Final = -(2**62)


def _latest(times: Times) -> int | None:
    return int(times.max()) if len(times) else None


def kept_items(segments: Iterable[tuple[SegmentExtent, bytes]]) -> Iterator[tuple[int, KeptItem]]:
    """The items of segments, each with its number (a batch with its first); without a body, only times remain."""
    waiting, begin, size = list[ItemColumns](), 0, 0
    for extent, body in segments:
        # Only numbers without a gap can be read as one: a batch has consecutive numbers.
        if waiting and (not body or extent.number != begin + size or size >= TOGETHER):
            yield from _runs(begin, ItemColumns.together(waiting))
            waiting = []
        if not body:
            yield from ((extent.number, item) for item in extent.rest())
            continue
        if not waiting:
            begin, size = extent.number, 0
        waiting.append(ItemColumns.decode(body))
        size += len(waiting[-1].times)
    if waiting:
        yield from _runs(begin, ItemColumns.together(waiting))


def _runs(number: int, columns: ItemColumns) -> Iterator[tuple[int, KeptItem]]:
    """The items, with consecutive elements of one stream as batches."""
    terms, ids, plain = columns.terms, columns.ids, columns.counts >= 0
    plain[[at for at, _, _ in columns.others]] = False
    borders = np.concatenate([[0], np.cumsum(columns.counts.clip(0), dtype=np.int64)])
    ends = np.flatnonzero((np.diff(columns.places) != 0) | (plain[1:] != plain[:-1])) + 1
    cuts = [0, *ends.tolist(), len(plain)]
    others = {at: (removed, until) for at, removed, until in columns.others}
    for begin, end in pairwise(cuts):
        stream = columns.streams[columns.places[begin]]
        first, last = int(borders[begin]), int(borders[end])
        if plain[begin]:
            batch = ElementBatch(
                terms,
                stream,
                columns.times[begin:end],
                np.arange(number + begin, number + end),
                borders[begin : end + 1] - first,
                ids[3 * first : 3 * last],
            )
            # For a few elements the overhead of a batch exceeds that of single elements.
            yield from [(number + begin, batch)] if end - begin >= FEW else _elements(number + begin, batch)
            continue
        triples = triples_of(terms, ids[3 * first : 3 * last])
        for at in range(begin, end):
            time = int(columns.times[at])
            if columns.counts[at] == _ADVANCE:
                yield number + at, (stream, Advance(time))
                continue
            added = tuple(triples[borders[at] - first : borders[at + 1] - first])
            yield number + at, (stream, StreamElement(stream, time, number + at, added, *others[at]))


def _elements(number: int, batch: ElementBatch) -> Iterator[tuple[int, JournalItem]]:
    return ((number + at, (batch.stream, element)) for at, element in enumerate(batch.elements()))
