"""The parts below a store of quads: keys with values, sorted keys in counted blocks over these, a prepared change.

A range of a sorted index is counted, and read from any offset, without a walk through the range.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import takewhile
from types import MappingProxyType
from typing import Final, Protocol, TypeAlias

import numpy as np

from streamgauge.model.mistake import MistakeError
from streamgauge.servers.fragments import Quad

Writes: TypeAlias = Mapping[bytes, bytes | None]
"""New values by key; ``None`` drops the key."""

SortedRun: TypeAlias = tuple[Sequence[bytes], Sequence[bytes]]
"""Keys in their order, at least one and all with one first byte, and the value of each."""

SIZED: Final = b"012345ABCDEFGHekl"
"""First bytes of the keys whose values' sizes are asked for: orders, runs, ends, the log."""

TEXT: Final = b"t"
NAMED: Final = b"n="
"""The beginnings of the keys of a term: before its number, with its text as the value; before its text, if short."""


class FullError(MistakeError, RuntimeError):
    """There is no room for a change; nothing of it was made."""


class DamagedStoreError(MistakeError, RuntimeError):
    """A damaged store; the sentence says where, and how its sound quads are saved."""


class KeyValueStore(Protocol):
    """Keys with values, in order; what was committed is read only once it is shown."""

    @property
    def remembered(self) -> int:
        """How many terms a dictionary over it remembers at most: few where looking one up costs as little."""
        ...

    def get(self, key: bytes) -> bytes | None:
        """The value shown. DamagedStoreError when it is not the one that was written."""
        ...

    def lost(self, key: bytes) -> DamagedStoreError:
        """The error for a record that must be there and is not."""
        ...

    def sizes(self, prefix: bytes) -> Iterator[tuple[bytes, int]]:
        """Keys that begin so (with one of ``SIZED``), in order, with the number of bytes of each value."""
        ...

    def commit(self, writes: Writes) -> None:
        """Write all or nothing; kept when it returns, not yet shown. FullError when there is no room."""
        ...

    def show(self) -> None:
        """From now on what was committed is read."""
        ...

    def fill(self, *runs: SortedRun) -> None:
        """Write records of keys that are not there, each run in the order of keys, and show them. FullError."""
        ...

    def trouble(self) -> str:
        """Why changes are refused just now, a sentence; empty where they are made."""
        ...

    def close(self) -> None:
        """Close: nothing is read or written any more."""
        ...


FULL: Final = 4000
"""Bytes of a full block: with what a page of 4096 bytes says of itself, one page."""

_SPLICED: Final = 16
"""Changes of a block beyond which it is sorted anew."""

_SPARSE: Final = FULL // 4
"""Bytes of a block below which it is joined with the next."""

Blocks: TypeAlias = list[tuple[bytes, bytes]]
"""Blocks in order: the border from which on keys are in it, and its keys."""


Span: TypeAlias = tuple[int, int, int, int]
"""Of sorted keys that are taken out, and of those that are put in, from where to where."""


@dataclass(slots=True)
class EditSketch:
    """Sorted keys to be taken out and put in, and what was worked out of it while others change the order.

    ``blocks`` has, by its border, the block that was read, the span of the keys in it, and the block with them.
    """

    removed: Sequence[bytes]
    added: Sequence[bytes]
    blocks: dict[bytes, tuple[bytes, Span, list[bytes]]] | None = None


@dataclass(frozen=True, slots=True)
class IndexEdit:
    """The effect of a change on an index: by the number of a block, the blocks that take its place."""

    blocks: dict[int, Blocks]
    writes: Writes
    growth: int


class SortedIndex:
    """A set of keys of ``width`` bytes, blocks of them over a key-value store under ``name`` and the block's border.

    Borders and counts of blocks are in memory (about 60 bytes for 100 keys). One writer: edits are made of the state
    that is there, written, and then applied.
    """

    def __init__(self, name: bytes, width: int, records: KeyValueStore) -> None:
        self.name, self.width, self._records = name, width, records
        stored = [(key[len(name) :], size // width) for key, size in records.sizes(name)] or [(bytes(width), 0)]
        self._borders = [border for border, _ in stored]
        self._counts = np.array([count for _, count in stored], dtype=np.int64)
        self._size = int(self._counts.sum())

    def __len__(self) -> int:
        return self._size

    def __contains__(self, key: bytes) -> bool:
        body, at = self._find(key)
        return body[at : at + self.width] == key

    def count(self, prefix: bytes) -> int:
        """How many keys begin so."""
        if not prefix:
            return self._size
        first = self._place(prefix.ljust(self.width, b"\0"))
        last = self._place(prefix + b"\xff" * (self.width - len(prefix) + 1))
        between = int(self._counts[first[0] : last[0]].sum()) if first[0] < last[0] else 0
        return between + last[1] - first[1]

    def read(self, prefix: bytes, offset: int, limit: int) -> bytes:
        """Keys that begin so, one after the other, from the ``offset``-th on, at most ``limit``."""
        lowest, highest = prefix.ljust(self.width, b"\0"), prefix + b"\xff" * (self.width - len(prefix) + 1)
        block = self._block(lowest)
        body = self._body(block)
        at = _smaller(body, prefix, self.width) + offset
        if block + 1 == len(self._borders) or self._borders[block + 1] > highest:
            end = min(self._end(body, at, prefix, highest), at + limit)
            return body[at * self.width : end * self.width]
        return self._take(block, at, min(limit, self.count(prefix) - offset))

    def one(self, prefix: bytes) -> bytes:
        """The first key that begins so; nothing when none does."""
        lowest = prefix.ljust(self.width, b"\0")
        body, at = self._find(lowest)
        key = body[at : at + self.width] or next(self.above(lowest), b"")
        return key if key.startswith(prefix) else b""

    def rank(self, key: bytes) -> int:
        """How many keys are smaller than a key."""
        block, at = self._place(key)
        return int(self._counts[:block].sum()) + at

    def first(self, limit: int) -> Iterator[bytes]:
        """The smallest keys, at most ``limit``."""
        return self._cut(self._take(0, 0, min(limit, self._size)))

    def within(self, prefix: bytes) -> Iterator[bytes]:
        """Keys that begin so."""
        return takewhile(lambda key: key.startswith(prefix), self.above(prefix.ljust(self.width, b"\0")))

    def above(self, key: bytes) -> Iterator[bytes]:
        """Keys from a key on."""
        block = self._block(key)
        body = self._body(block)
        yield from self._cut(body, _smaller(body, key, self.width))
        for later in range(block + 1, len(self._borders)):
            yield from self._cut(self._body(later))

    def edit(self, sketch: EditSketch) -> IndexEdit:
        """The edit that removes keys which are there and adds keys which are not.

        Blocks that were ``sketched``, and that others left nearly as they were, are not worked out again.
        """
        removed, added = sketch.removed, sketch.added
        if sketch.blocks is not None:
            blocks = self._reconciled(sketch, sketch.blocks)
        else:
            changed = {
                block: self._changed(self._body(block), removed[one:two], added[three:four])
                for block, (one, two, three, four) in self._spans(removed, added)
            }
            blocks = self._settled(changed)
        return IndexEdit(blocks, dict(self._writes(blocks)), len(added) - len(removed))

    def _reconciled(
        self, sketch: EditSketch, sketched: Mapping[bytes, tuple[bytes, Span, list[bytes]]]
    ) -> dict[int, Blocks]:
        """Blocks as they were sketched, and anew those that others changed much meanwhile."""
        bodies: dict[int, bytes] = {}
        ready: dict[int, Blocks] = {}
        for block, span in self._spans(sketch.removed, sketch.added):
            body, worked = self._body(block), sketched.get(self._borders[block])
            pieces = None if worked is None or worked[1] != span else self._followed(body, worked[0], worked[2])
            if pieces is None:
                bodies[block] = self._changed(body, sketch.removed[span[0] : span[1]], sketch.added[span[2] : span[3]])
            elif len(pieces) == 1 and len(pieces[0]) < _SPARSE:
                bodies[block] = pieces[0]
            else:
                ready[block] = self._bordered(block, pieces)
        return self._settled(bodies, ready)

    def sketched(self, sketch: EditSketch, lock: AbstractContextManager[object]) -> None:
        """Work out what blocks would become; each is read under the lock, for as short as that takes."""
        at, came = 0, 0
        sketch.blocks = {}
        while at < len(sketch.removed) or came < len(sketch.added):
            with lock:
                block, span = self._span(sketch.removed, sketch.added, at, came)
                border, body = self._borders[block], self._body(block)
            _, at, _, came = span
            changed = self._changed(body, sketch.removed[span[0] : at], sketch.added[span[2] : came])
            sketch.blocks[border] = body, span, self._cut_up(changed)

    def _spans(self, removed: Sequence[bytes], added: Sequence[bytes]) -> list[tuple[int, Span]]:
        """The blocks that sorted keys are in, with the span of those in each."""
        spans, at, came = [], 0, 0
        while at < len(removed) or came < len(added):
            block, span = self._span(removed, added, at, came)
            spans.append((block, span))
            _, at, _, came = span
        return spans

    def _span(self, removed: Sequence[bytes], added: Sequence[bytes], at: int, came: int) -> tuple[int, Span]:
        """The block of the first of the keys from these places on, and the span of those that are in it."""
        goes_first = at < len(removed) and (came == len(added) or removed[at] < added[came])
        block = bisect_right(self._borders, removed[at] if goes_first else added[came]) - 1
        if block + 1 == len(self._borders):
            return block, (at, len(removed), came, len(added))
        border = self._borders[block + 1]
        return block, (at, bisect_left(removed, border, at), came, bisect_left(added, border, came))

    def _followed(self, body: bytes, read: bytes, pieces: list[bytes]) -> list[bytes] | None:
        """Pieces that were made of a block, with what few changes of others made of it since it was read."""
        if body == read:
            return pieces
        before, now = set(self._cut(read)), set(self._cut(body))
        gone, come = before - now, now - before
        if len(gone) + len(come) > _SPLICED:
            return None
        followed, firsts = list(pieces), [piece[: self.width] for piece in pieces]
        for key in (*gone, *come):
            at = max(0, bisect_right(firsts, key) - 1)
            followed[at] = self._changed(followed[at], [key] if key in gone else [], [key] if key in come else [])
        return followed if all(0 < len(piece) <= FULL for piece in followed) else None

    def apply(self, edit: IndexEdit) -> None:
        """Hold what an edit made, once its writes are shown."""
        for block in sorted(edit.blocks, reverse=True):
            pieces = edit.blocks[block]
            self._borders[block : block + 1] = [border for border, _ in pieces]
            counts = [len(body) // self.width for _, body in pieces]
            if len(counts) == 1:
                self._counts[block] = counts[0]
            else:
                around = self._counts[:block], np.array(counts, dtype=np.int64), self._counts[block + 1 :]
                self._counts = np.concatenate(around)
        self._size += edit.growth

    def _take(self, block: int, at: int, wanted: int) -> bytes:
        """``wanted`` keys, which are there, from the ``at``-th after a block's beginning on."""
        if wanted <= 0:
            return b""
        span = 1
        while at >= (passed := int(self._counts[block : block + span].sum())):
            block, at, span = block + span, at - passed, span * 2
        ends = np.cumsum(self._counts[block : block + span])
        ahead = int(np.searchsorted(ends, at, side="right"))
        block, at = block + ahead, at - (int(ends[ahead - 1]) if ahead else 0)
        taken = self._body(block)[at * self.width : (at + wanted) * self.width]
        while len(taken) < wanted * self.width:
            block += 1
            taken += self._body(block)[: wanted * self.width - len(taken)]
        return taken

    def _body(self, block: int) -> bytes:
        if not self._size:
            return b""
        key = self.name + self._borders[block]
        body = self._records.get(key)
        if body is None:
            if self._counts[block]:
                raise self._records.lost(key)
            return b""
        return body

    def _block(self, key: bytes) -> int:
        return bisect_right(self._borders, key) - 1

    def _end(self, body: bytes, at: int, prefix: bytes, highest: bytes) -> int:
        """The place in a block behind the keys from ``at`` on that begin so: most often there are one or two."""
        for place in (at, at + 1, at + 2):
            if not body.startswith(prefix, place * self.width):
                return place
        return _smaller(body, highest, self.width)

    def _find(self, key: bytes) -> tuple[bytes, int]:
        body = self._body(self._block(key))
        return body, _smaller(body, key, self.width) * self.width

    def _place(self, key: bytes) -> tuple[int, int]:
        """The block of the first key that is not smaller, and how many of the block's keys are before it."""
        block = self._block(key)
        return block, _smaller(self._body(block), key, self.width)

    def _changed(self, body: bytes, removed: Sequence[bytes], added: Sequence[bytes]) -> bytes:
        if len(removed) + len(added) > _SPLICED:
            return b"".join(sorted({*self._cut(body)}.difference(removed).union(added)))
        for key in removed:
            at = _smaller(body, key, self.width) * self.width
            body = body[:at] + body[at + self.width :]
        for key in added:
            at = _smaller(body, key, self.width) * self.width
            body = body[:at] + key + body[at:]
        return body

    def _cut(self, body: bytes, first: int = 0) -> Iterator[bytes]:
        """Keys one by one, from the ``first``-th on."""
        return (body[at : at + self.width] for at in range(first * self.width, len(body), self.width))

    def _settled(
        self, bodies: dict[int, bytes], ready: Mapping[int, Blocks] = MappingProxyType({})
    ) -> dict[int, Blocks]:
        """Blocks that are too large split, those that are nearly empty joined with the next where that is untouched.

        ``ready`` are blocks that are settled already.
        """
        settled = dict(ready)
        for block, body in bodies.items():
            after = block + 1
            if 0 < len(body) < _SPARSE and after < len(self._borders) and after not in bodies and after not in settled:
                body += self._body(after)
                settled[after] = []
            if 0 < len(body) <= FULL:
                settled[block] = [(self._borders[block], body)]
            else:
                settled[block] = self._bordered(block, self._cut_up(body))
        return settled

    def _bordered(self, block: int, pieces: list[bytes]) -> Blocks:
        """The pieces of a block with their borders; the first block is there even when it is empty."""
        if not pieces:
            return [(self._borders[0], b"")] if block == 0 else []
        return [(self._borders[block], pieces[0]), *((piece[: self.width], piece) for piece in pieces[1:])]

    def _cut_up(self, body: bytes) -> list[bytes]:
        """A block's keys as blocks that are not too large; none for no keys."""
        if len(body) <= FULL:
            return [body] if body else []
        size = FULL * 3 // 4 // self.width * self.width
        return [body[at : at + size] for at in range(0, len(body), size)]

    def _writes(self, blocks: dict[int, Blocks]) -> Iterator[tuple[bytes, bytes | None]]:
        for block, pieces in blocks.items():
            if not pieces:
                yield self.name + self._borders[block], None
            yield from ((self.name + border, body) for border, body in pieces)


def _smaller(body: bytes, key: bytes, width: int) -> int:
    """How many keys of a block are smaller than a key, or than all that begin so."""
    first, last = 0, len(body) // width
    while first < last:
        middle = (first + last) // 2
        at = middle * width
        if body[at : at + width] < key:
            first = middle + 1
        else:
            last = middle
    return first


@dataclass(frozen=True, slots=True)
class QuadChanges:
    """The effect of one or several changes on a data set: quads that are there now and were not, and the reverse."""

    version: int
    added: tuple[Quad, ...]
    removed: tuple[Quad, ...]


@dataclass(frozen=True, slots=True)
class Keep:
    """The past that a store keeps of quads that left: for how long (ms), and how many in all; ``None``: all."""

    span: int | None = None
    runs: int | None = None


@dataclass(eq=False, slots=True, weakref_slot=True)
class KeyedChange:
    """A change whose quads have keys; times are ms.

    ``come`` are the quads to be put in by their keys, with their ends in ``ends``: ``there`` are the keys of those that
    are there already, ``added`` the others. ``removed`` are the quads that are there and go, ``ended`` the ends that
    what is there has now. ``writes`` are to be made with it for new terms, ``numbers`` are those of its terms,
    ``fresh`` those of them that were written ahead of it. ``beside`` is true of a change that is worked out while
    others are made, ``stale`` once one of them was of the same quads.
    """

    come: dict[bytes, Quad] = field(default_factory=dict)
    ends: dict[bytes, int | None] = field(default_factory=dict)
    there: list[bytes] = field(default_factory=list)
    added: dict[bytes, Quad] = field(default_factory=dict)
    removed: dict[bytes, Quad] = field(default_factory=dict)
    ended: dict[bytes, int | None] = field(default_factory=dict)
    writes: Mapping[bytes, bytes | None] = field(default_factory=dict)
    numbers: set[bytes] = field(default_factory=set)
    fresh: list[bytes] = field(default_factory=list)
    edits: list[tuple[SortedIndex, EditSketch]] = field(default_factory=list)
    beside: bool = False
    stale: bool = False

    def touches(self, keys: Iterable[bytes]) -> bool:
        """Whether some of the keys are of its quads."""
        return any(key in self.come or key in self.removed for key in keys)


@dataclass(frozen=True, slots=True)
class StoreDraft:
    """A change that is worked out and not yet made."""

    version: int
    writes: dict[bytes, bytes | None]
    edits: list[tuple[SortedIndex, IndexEdit]]
    logged: tuple[bytes, bytes]
    touched: list[bytes]
    """Keys of quads that come, go or get another end."""
    added: tuple[Quad, ...]
    removed: tuple[Quad, ...]
    forgotten: bytes
    leaving: bytes
    """Keys that the log forgets, and all those whose terms may be in nothing any more."""
    looked_at: list[bytes]
    unused: list[bytes]
    """Terms that may be in no quad: the ones looked at so far, and the ones that are in none."""
