"""The layers below a store of quads: a key-value store, sorted indexes in counted blocks over it, prepared changes.

A range of a sorted index is counted, and read from any offset, without visiting the keys in between: fragments state
their total number of quads, and their pages start at any offset.

A worked example with blocks of two keys: the keys aa ab | ba bb | ca are in blocks with the borders (first possible
keys) 00, ba and ca and the counts 2, 2, 1. The range of prefix b starts in block 1 at 0 and ends in block 2 at 0, so it
has 2 + 0 - 0 = 2 keys; only the blocks at its two ends are read. Key bc would go into block 1, whose border stays.
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
"""New values by key; ``None`` deletes the key."""

SortedRun: TypeAlias = tuple[Sequence[bytes], Sequence[bytes]]
"""Sorted keys, at least one and all with the same first byte, and their values."""

SIZED: Final = b"012345ABCDEFGHekl"
"""First bytes of keys that ``sizes`` supports: blocks of the six orders, of runs and of ends, and the log."""

TEXT: Final = b"t"
NAMED: Final = b"n="
"""Prefixes of a term's two records: ``TEXT`` + number -> text, and ``NAMED`` + text -> number, if the text is short."""


class FullError(MistakeError, RuntimeError):
    """The storage has no room for a change; nothing of it was applied."""


class DamagedStoreError(MistakeError, RuntimeError):
    """A damaged store; the sentence says where, and how its sound quads are saved."""


class KeyValueStore(Protocol):
    """Keys with values, in order. Committed writes become readable only by ``show``.

    The two steps let a store write without a lock, and then swap its in-memory borders and the readable state at once.
    """

    @property
    def remembered(self) -> int:
        """Maximum number of terms that a ``TermDictionary`` caches: few if a lookup costs as little."""

    def get(self, key: bytes) -> bytes | None:
        """The readable value of a key; DamagedStoreError if its checksum does not hold."""

    def lost(self, key: bytes) -> DamagedStoreError:
        """The error for a required record that is missing."""

    def sizes(self, prefix: bytes) -> Iterator[tuple[bytes, int]]:
        """Keys with a prefix (its first byte in ``SIZED``), sorted, with the size of each value in bytes."""

    def commit(self, writes: Writes) -> None:
        """Write all or nothing; durable when it returns, but not readable before ``show``. FullError."""

    def show(self) -> None:
        """Make committed writes readable."""

    def fill(self, *runs: SortedRun) -> None:
        """Write and show records of new keys, in sorted runs. FullError."""

    def trouble(self) -> str:
        """Why changes are currently refused, as a sentence; empty if they are accepted."""

    def close(self) -> None:
        """Close; the store can no longer be used."""


FULL: Final = 4000
"""Maximum bytes of a block: with LMDB's headers it fills one page of 4096 bytes."""

_SPLICED: Final = 16
"""Changes of a block up to which they are spliced in one by one; above it the block is sorted again."""

_SPARSE: Final = FULL // 4
"""Bytes below which a block is merged with the next one."""

Blocks: TypeAlias = list[tuple[bytes, bytes]]
"""Blocks in order: the border, the smallest key that belongs into it, and its keys, concatenated."""


Span: TypeAlias = tuple[int, int, int, int]
"""Start and end in the sorted keys to remove, then start and end in the sorted keys to add."""


@dataclass(slots=True)
class EditSketch:
    """Sorted keys to remove and to add, and blocks that were prepared while other changes went on.

    ``blocks`` maps a block's border to its bytes when it was read, the span of the keys in it, and the new blocks.
    """

    removed: Sequence[bytes]
    added: Sequence[bytes]
    blocks: dict[bytes, tuple[bytes, Span, list[bytes]]] | None = None


@dataclass(frozen=True, slots=True)
class IndexEdit:
    """The effect of a change on an index: by block number, the blocks that replace it."""

    blocks: dict[int, Blocks]
    writes: Writes
    growth: int


class SortedIndex:
    """A sorted set of keys of ``width`` bytes, in blocks that a key-value store has under ``name`` + border.

    Borders and counts of blocks are in memory (about 60 bytes for 100 keys). There is one writer: it derives an edit
    from the current state (``edit``), commits its writes, and then updates the memory (``apply``).
    """

    def __init__(self, name: bytes, width: int, records: KeyValueStore) -> None:
        self.name, self.width, self._records = name, width, records
        # The smallest possible key is the first border, so that every key has a block.
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
        """The number of keys with a prefix."""
        if not prefix:
            return self._size
        # One byte longer than any key, so that a key of only 0xff bytes is still below it.
        first = self._place(prefix.ljust(self.width, b"\0"))
        last = self._place(prefix + b"\xff" * (self.width - len(prefix) + 1))
        between = int(self._counts[first[0] : last[0]].sum()) if first[0] < last[0] else 0
        return between + last[1] - first[1]

    def read(self, prefix: bytes, offset: int, limit: int) -> bytes:
        """Keys with a prefix, concatenated, from the ``offset``-th on, at most ``limit``."""
        lowest, highest = prefix.ljust(self.width, b"\0"), prefix + b"\xff" * (self.width - len(prefix) + 1)
        block = self._block(lowest)
        body = self._body(block)
        at = _smaller(body, prefix, self.width) + offset
        # Most ranges end in the block in which they begin; then no count and no second search is needed.
        if block + 1 == len(self._borders) or self._borders[block + 1] > highest:
            end = min(self._end(body, at, prefix, highest), at + limit)
            return body[at * self.width : end * self.width]
        return self._take(block, at, min(limit, self.count(prefix) - offset))

    def one(self, prefix: bytes) -> bytes:
        """The first key with a prefix; empty if there is none."""
        lowest = prefix.ljust(self.width, b"\0")
        body, at = self._find(lowest)
        # Behind the last key of a block the first one of the next block follows.
        key = body[at : at + self.width] or next(self.above(lowest), b"")
        return key if key.startswith(prefix) else b""

    def rank(self, key: bytes) -> int:
        """The number of keys smaller than ``key``."""
        block, at = self._place(key)
        return int(self._counts[:block].sum()) + at

    def first(self, limit: int) -> Iterator[bytes]:
        """The smallest keys, at most ``limit``."""
        return self._cut(self._take(0, 0, min(limit, self._size)))

    def within(self, prefix: bytes) -> Iterator[bytes]:
        """Keys with a prefix, in order."""
        return takewhile(lambda key: key.startswith(prefix), self.above(prefix.ljust(self.width, b"\0")))

    def above(self, key: bytes) -> Iterator[bytes]:
        """Keys not smaller than ``key``, in order."""
        block = self._block(key)
        body = self._body(block)
        yield from self._cut(body, _smaller(body, key, self.width))
        for later in range(block + 1, len(self._borders)):
            yield from self._cut(self._body(later))

    def edit(self, sketch: EditSketch) -> IndexEdit:
        """The edit that removes present keys and adds absent ones.

        Blocks that ``sketched`` has prepared are reused if other changes left them as they were.
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
        """Blocks as they were sketched, but computed again where other changes altered them since."""
        bodies: dict[int, bytes] = {}
        ready: dict[int, Blocks] = {}
        for block, span in self._spans(sketch.removed, sketch.added):
            body, worked = self._body(block), sketched.get(self._borders[block])
            # The span too: with other borders other keys fall into the block.
            pieces = worked[2] if worked is not None and worked[:2] == (body, span) else None
            if pieces is None:
                bodies[block] = self._changed(body, sketch.removed[span[0] : span[1]], sketch.added[span[2] : span[3]])
            # Left to `_settled`, which may merge it with its neighbour of now.
            elif len(pieces) == 1 and len(pieces[0]) < _SPARSE:
                bodies[block] = pieces[0]
            else:
                ready[block] = self._bordered(block, pieces)
        return self._settled(bodies, ready)

    def sketched(self, sketch: EditSketch, lock: AbstractContextManager[object]) -> None:
        """Compute the new blocks of a sketch; the lock is held only while a block is read."""
        at, came = 0, 0
        sketch.blocks = {}
        while at < len(sketch.removed) or came < len(sketch.added):
            # One block per turn: readers wait for a single lookup at most.
            with lock:
                block, span = self._span(sketch.removed, sketch.added, at, came)
                border, body = self._borders[block], self._body(block)
            _, at, _, came = span
            changed = self._changed(body, sketch.removed[span[0] : at], sketch.added[span[2] : came])
            sketch.blocks[border] = body, span, self._cut_up(changed)

    def _spans(self, removed: Sequence[bytes], added: Sequence[bytes]) -> list[tuple[int, Span]]:
        """The blocks that the sorted keys fall into, each with the span of its keys."""
        spans, at, came = [], 0, 0
        while at < len(removed) or came < len(added):
            block, span = self._span(removed, added, at, came)
            spans.append((block, span))
            _, at, _, came = span
        return spans

    def _span(self, removed: Sequence[bytes], added: Sequence[bytes], at: int, came: int) -> tuple[int, Span]:
        """The block of the first key from these positions on, and the span of the keys that fall into it."""
        # Both lists are sorted, so the smaller head is the next key of all.
        goes_first = at < len(removed) and (came == len(added) or removed[at] < added[came])
        block = bisect_right(self._borders, removed[at] if goes_first else added[came]) - 1
        if block + 1 == len(self._borders):
            return block, (at, len(removed), came, len(added))
        border = self._borders[block + 1]
        return block, (at, bisect_left(removed, border, at), came, bisect_left(added, border, came))

    def apply(self, edit: IndexEdit) -> None:
        """Update borders and counts in memory, once the edit's writes are shown."""
        # From the last block on, because a split shifts the numbers of all later ones.
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
        """``wanted`` existing keys from the ``at``-th on, counted from the beginning of a block."""
        if wanted <= 0:
            return b""
        # Doubling spans: a small offset is found at once, a large one in a number of steps logarithmic in the blocks.
        span = 1
        while at >= (passed := int(self._counts[block : block + span].sum())):
            block, at, span = block + span, at - passed, span * 2
        ends = np.cumsum(self._counts[block : block + span])
        ahead = int(np.searchsorted(ends, at, side="right"))
        block, at = block + ahead, at - (int(ends[ahead - 1]) if ahead else 0)
        taken = self._body(block)[at * self.width : (at + wanted) * self.width]
        # Callers ask for no more keys than there are (`count`), so the loop ends.
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
            # An empty first block has no record; any other one that is missing is damage.
            if self._counts[block]:
                raise self._records.lost(key)
            return b""
        return body

    def _block(self, key: bytes) -> int:
        return bisect_right(self._borders, key) - 1

    def _end(self, body: bytes, at: int, prefix: bytes, highest: bytes) -> int:
        """The position behind the keys from ``at`` on with a prefix.

        One or two are so common that they are tried first.
        """
        for place in (at, at + 1, at + 2):
            if not body.startswith(prefix, place * self.width):
                return place
        return _smaller(body, highest, self.width)

    def _find(self, key: bytes) -> tuple[bytes, int]:
        body = self._body(self._block(key))
        return body, _smaller(body, key, self.width) * self.width

    def _place(self, key: bytes) -> tuple[int, int]:
        """The block where ``key`` is or would be, and the number of smaller keys in that block."""
        block = self._block(key)
        return block, _smaller(self._body(block), key, self.width)

    def _changed(self, body: bytes, removed: Sequence[bytes], added: Sequence[bytes]) -> bytes:
        if len(removed) + len(added) > _SPLICED:
            # Splicing copies the block once per change, sorting once for all.
            return b"".join(sorted({*self._cut(body)}.difference(removed).union(added)))
        for key in removed:
            at = _smaller(body, key, self.width) * self.width
            body = body[:at] + body[at + self.width :]
        for key in added:
            at = _smaller(body, key, self.width) * self.width
            body = body[:at] + key + body[at:]
        return body

    def _cut(self, body: bytes, first: int = 0) -> Iterator[bytes]:
        """The single keys of a block, from the ``first``-th on."""
        return (body[at : at + self.width] for at in range(first * self.width, len(body), self.width))

    def _settled(
        self, bodies: dict[int, bytes], ready: Mapping[int, Blocks] = MappingProxyType({})
    ) -> dict[int, Blocks]:
        """Split blocks that are too large, and merge nearly empty ones with the next, unless that one changes too.

        ``ready`` are blocks that need neither.
        """
        settled = dict(ready)
        for block, body in bodies.items():
            after = block + 1
            if 0 < len(body) < _SPARSE and after < len(self._borders) and after not in bodies and after not in settled:
                body += self._body(after)
                # Its keys have moved into the block before it, and its record is deleted.
                settled[after] = []
            if 0 < len(body) <= FULL:
                settled[block] = [(self._borders[block], body)]
            else:
                settled[block] = self._bordered(block, self._cut_up(body))
        return settled

    def _bordered(self, block: int, pieces: list[bytes]) -> Blocks:
        """The pieces of a block with their borders; the first block exists even when it is empty, for ``_block``."""
        if not pieces:
            return [(self._borders[0], b"")] if block == 0 else []
        return [(self._borders[block], pieces[0]), *((piece[: self.width], piece) for piece in pieces[1:])]

    def _cut_up(self, body: bytes) -> list[bytes]:
        """A block's keys in pieces of valid size; empty without keys."""
        if len(body) <= FULL:
            return [body] if body else []
        # Three quarters full: the next keys of each piece do not split it again at once.
        size = FULL * 3 // 4 // self.width * self.width
        return [body[at : at + size] for at in range(0, len(body), size)]

    def _writes(self, blocks: dict[int, Blocks]) -> Iterator[tuple[bytes, bytes | None]]:
        for block, pieces in blocks.items():
            if not pieces:
                yield self.name + self._borders[block], None
            yield from ((self.name + border, body) for border, body in pieces)


def _smaller(body: bytes, key: bytes, width: int) -> int:
    """The number of a block's keys that are smaller than ``key``, which may be a prefix."""
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
    """The net effect of one or several changes on a data set: quads that were added and that were removed."""

    version: int
    added: tuple[Quad, ...]
    removed: tuple[Quad, ...]


@dataclass(frozen=True, slots=True)
class Keep:
    """How much history a store keeps of removed quads: for ``span`` ms, at most ``runs``; ``None`` for no limit."""

    span: int | None = None
    runs: int | None = None


@dataclass(eq=False, slots=True, weakref_slot=True)
class KeyedChange:
    """A change whose quads have keys; times are ms.

    ``come`` has the quads to insert by key, with their ends in ``ends``: the keys of those that exist already are in
    ``there``, the others in ``added``. ``removed`` has the existing quads to delete, ``ended`` the current ends of
    existing quads. ``writes`` are the records of new terms, written with the change; ``numbers`` are those of all its
    terms, ``fresh`` those that were written ahead of it. ``beside`` marks a change that is prepared while others are
    applied; it becomes ``stale`` when one of them concerns the same quads.
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
        """Whether it inserts or deletes a quad with one of the keys."""
        return any(key in self.come or key in self.removed for key in keys)


@dataclass(frozen=True, slots=True)
class StoreDraft:
    """A computed change that is not applied yet."""

    version: int
    writes: dict[bytes, bytes | None]
    edits: list[tuple[SortedIndex, IndexEdit]]
    logged: tuple[bytes, bytes]
    touched: list[bytes]
    """Keys of quads that are inserted, deleted or get another end."""
    added: tuple[Quad, ...]
    removed: tuple[Quad, ...]
    forgotten: bytes
    leaving: bytes
    """Keys that the log forgets, and all keys whose terms may have become unused."""
    looked_at: list[bytes]
    unused: list[bytes]
    """Terms checked for use, and those of them that are in no quad."""
