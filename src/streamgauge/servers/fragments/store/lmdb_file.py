"""LMDB's file (data version 1, of LMDB 0.9) read without LMDB, so that a damaged file is never memory-mapped.

LMDB trusts the file that it maps: a page number beyond its end is a bus error, a wrong offset reads foreign memory.
This module checks every reachable page, with ordinary reads, against the rules that LMDB relies on: its number and
kind, the bounds of its nodes, the order of keys, that no page is used twice or also listed as free, and the counts in
the meta page.

The file consists of pages of ``psize`` bytes. Pages 0 and 1 are meta pages; the one with the later transaction counts.
A page has a header of 16 bytes (number, padding, flags, bounds of its free space, or the number of an overflow's
pages). In a branch or leaf the offsets of nodes follow. A node consists of the size of its value or the number of its
child page, flags, the size of its key, the key and the value. Values of more than about half a page are in pages of
their own (overflow).
"""

import errno
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from operator import lt
from pathlib import Path
from struct import Struct
from typing import Final, NamedTuple, TypeAlias

from streamgauge.servers.durability import UNREADABLE

_HEADER: Final = Struct("<QHHHH")
_META: Final = Struct("<IIQQ")
_TREE: Final = Struct("<IHHQQQQQ")
_END: Final = Struct("<QQ")
_NODE: Final = Struct("<HHHH")
_NUMBER: Final = Struct("<Q")
_HEAD: Final = 16
_TREES_AT: Final = _HEAD + _META.size
_MAGIC: Final = 0xBEEFC0DE
_BRANCH, _LEAF, _OVERFLOW, _METAS = 1, 2, 4, 8
_BIG: Final = 1
"""The flag of a record whose value has pages of its own."""
_NONE: Final = (1 << 64) - 1
_FLAGS: Final = (8, 0)
"""Flags of the tree of free pages (keys are integers) and of the main tree."""
_TAIL: Final = 4096
"""Pages that a meta page may count beyond the end of the file: LMDB allocates some that it never writes."""


class PageError(ValueError):
    """A damaged page; ``page`` is its number."""

    def __init__(self, page: int, what: str) -> None:
        super().__init__(f"page {page} (byte {page * 4096}): {what}")
        self.page = page


class LmdbTree(NamedTuple):
    """The description of a tree in a meta page."""

    page_size: int
    flags: int
    depth: int
    branches: int
    leaves: int
    overflows: int
    entries: int
    root: int


class MetaPage(NamedTuple):
    """A meta page: its number, the trees of free pages and of records, the last used page, the transaction."""

    page: int
    free: LmdbTree
    main: LmdbTree
    last: int
    transaction: int


class Overflow(NamedTuple):
    """A value in pages of its own: the first page, the size in bytes."""

    page: int
    size: int


Value: TypeAlias = bytes | Overflow
Records: TypeAlias = list[tuple[bytes, Value]]
"""Keys and values of a leaf."""


@dataclass(slots=True)
class _TreeWalk:
    """Counts and the last key during the traversal of a tree."""

    tree: LmdbTree
    branches: int = 0
    leaves: int = 0
    overflows: int = 0
    entries: int = 0
    last: bytes = b""
    border: bytes = b""

    def follow(self, number: int, key: bytes) -> None:
        """Record a branch's key, a lower bound of the keys that follow; PageError if it is not above the last key."""
        self.border = key[::-1] if self.tree.flags else key
        if self.entries and not self.last < self.border:
            raise PageError(number, "its keys are not in order")

    def enter(self, number: int, keys: list[bytes]) -> None:
        """Record a leaf with these sorted keys; PageError if they do not continue the tree's order."""
        self.leaves += 1
        if (self.entries and not self.last < keys[0]) or keys[0] < self.border:
            raise PageError(number, "its keys are not in order with those of its neighbours")
        self.last, self.entries = keys[-1], self.entries + len(keys)


@dataclass(slots=True)
class LmdbFile:
    """An LMDB file opened for reading. All methods that read a damaged page raise PageError."""

    path: Path
    page_size: int = 4096
    _descriptor: int = field(init=False)
    pages: int = field(init=False)
    _used: bytearray = field(init=False)

    def __post_init__(self) -> None:
        self._descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        self.pages = os.fstat(self._descriptor).st_size // self.page_size
        self._used = bytearray(self.pages)

    def close(self) -> None:
        """Close the file descriptor."""
        os.close(self._descriptor)

    def meta(self) -> MetaPage:
        """The valid meta page; both must be intact."""
        one, two = self.read_meta(0), self.read_meta(1)
        # LMDB takes the first where both have the same number.
        return one if one.transaction >= two.transaction else two

    def read_meta(self, page: int) -> MetaPage:
        """One of the two meta pages, checked."""
        data = self._page(page, _METAS)
        magic, version, _, _ = _META.unpack_from(data, _HEAD)
        trees = [LmdbTree(*_TREE.unpack_from(data, _TREES_AT + index * _TREE.size)) for index in range(2)]
        last, transaction = _END.unpack_from(data, _TREES_AT + 2 * _TREE.size)
        if (magic, version, trees[0].page_size) != (_MAGIC, 1, self.page_size):
            raise PageError(page, "no meta page of LMDB 0.9 with pages of 4096 bytes")
        # LMDB alternates between the two pages, so that one of them survives an interrupted write.
        if transaction and transaction & 1 != page:
            raise PageError(page, f"transaction {transaction} is never written here")
        for tree, flags in zip(trees, _FLAGS, strict=True):
            if tree.flags != flags or (tree.root == _NONE) != (tree.depth == 0):
                raise PageError(page, "a tree has other flags or another depth than LMDB gives")
        # A number far beyond the file would make this module allocate a table of that size.
        if not 1 <= last < self.pages + _TAIL:
            raise PageError(page, f"the last page is {last} by the meta page, but the file ends before {self.pages}")
        return MetaPage(page, trees[0], trees[1], last, transaction)

    def leaves(self, meta: MetaPage) -> Iterator[Records]:
        """All records in order, leaf by leaf; PageError, at the latest at the end, where a page or count is damaged."""
        self._used = bytearray(max(self.pages, meta.last + 1))
        # The meta pages are in no tree and in no list of free pages.
        self._used[0] = self._used[1] = 1
        yield from self._walked(meta, meta.main, meta.page)
        self._check_free(meta)

    def value(self, value: Value) -> bytes:
        """The bytes of a value, read from its own pages if necessary."""
        if isinstance(value, bytes):
            return value
        return self._read(value.page, value.size, _HEAD)

    def free(self, meta: MetaPage) -> set[int]:
        """The pages in the list of free pages; whether some of them are in use is not checked."""
        pages: set[int] = set()
        self._used = bytearray(max(self.pages, meta.last + 1))
        for leaf in self._walked(meta, meta.free, meta.page):
            for _, value in leaf:
                pages.update(self._listed(meta, self.value(value)))
        return pages

    def live_leaves(self, meta: MetaPage) -> Iterator[tuple[int, Records | PageError]]:
        """All leaves that are not free, reachable by a tree or not, with their records or the error, for salvage."""
        free = self.free(meta)
        free.update(page for page, used in enumerate(self._used) if used)
        number = 2
        while number < min(self.pages, meta.last + 1):
            if number in free:
                number += 1
                continue
            try:
                own, _, flags, lower, upper = _HEADER.unpack_from(self._read(number, self.page_size))
            except PageError as error:
                yield number, error
                number += 1
                continue
            # The pages behind the first of a value have no headers, and any bytes.
            if own == number and flags == _OVERFLOW:
                number += max(1, lower | upper << 16)
            else:
                if flags != _BRANCH or own != number:
                    yield number, self._salvaged(number)
                number += 1

    def _read(self, page: int, size: int, offset: int = 0) -> bytes:
        """Bytes from an offset in a page; PageError if the disk cannot read them."""
        try:
            return os.pread(self._descriptor, size, page * self.page_size + offset)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            raise PageError(page, UNREADABLE) from error

    def _salvaged(self, number: int) -> Records | PageError:
        try:
            return self._records(number, self._page(number, _LEAF))
        except PageError as error:
            return error

    def _page(self, number: int, kind: int) -> bytes:
        if not 0 <= number < self.pages:
            raise PageError(number, f"the file ends before it, after {self.pages} whole pages")
        data = self._read(number, self.page_size)
        own, _, flags, _, _ = _HEADER.unpack_from(data)
        if own != number:
            raise PageError(number, f"its header has the number {own}")
        if flags != kind:
            raise PageError(number, f"its flags are {flags:#x}, not {kind:#x}")
        return data

    def _use(self, number: int, last: int) -> None:
        if number > last:
            raise PageError(number, f"the last page is {last} by the meta page")
        if number >= len(self._used) or self._used[number]:
            raise PageError(number, "it is used twice")
        self._used[number] = 1

    def _walked(self, meta: MetaPage, tree: LmdbTree, page: int) -> Iterator[Records]:
        walk = _TreeWalk(tree)
        if tree.root != _NONE:
            yield from self._descended(meta, walk, tree.root, 1)
        counted_pages = walk.branches, walk.leaves, walk.overflows, walk.entries
        if counted_pages != tree[3:7]:
            raise PageError(page, "a tree has other numbers of pages or records than the meta page states")

    def _descended(self, meta: MetaPage, walk: _TreeWalk, number: int, level: int) -> Iterator[Records]:
        self._use(number, meta.last)
        if level == walk.tree.depth:
            yield self._leaf(meta, walk, number)
            return
        walk.branches += 1
        for place, (key, child) in enumerate(self._children(number, self._page(number, _BRANCH))):
            if place:
                walk.follow(number, key)
            # As deep as the meta page says: a page that points to its parent is met by `_use`.
            yield from self._descended(meta, walk, child, level + 1)

    def _leaf(self, meta: MetaPage, walk: _TreeWalk, number: int) -> Records:
        records = self._records(number, self._page(number, _LEAF))
        keys = [key for key, _ in records]
        if walk.tree.flags:
            keys = [key[::-1] for key in keys]  # keys are little-endian integers
        if not all(map(lt, keys, keys[1:])):
            raise PageError(number, "its keys are not in order")
        walk.enter(number, keys)
        for _, value in records:
            if type(value) is Overflow:
                walk.overflows += self._overflow(meta, value)
        return records

    def _records(self, number: int, data: bytes) -> Records:
        """The checked records of a leaf."""
        return [
            (key, self._large(value, size) if flags else value)
            for key, value, size, flags in self._nodes(number, data, branch=False)
        ]

    def _children(self, number: int, data: bytes) -> list[tuple[bytes, int]]:
        """The checked keys and child page numbers of a branch."""
        return [(key, low | top << 32) for key, _, low, top in self._nodes(number, data, branch=True)]

    def _nodes(self, number: int, data: bytes, *, branch: bool) -> list[tuple[bytes, bytes, int, int]]:
        """The checked nodes of a page: key, value, and the two numbers that a node begins with.

        In a leaf these are the size of the value and the flags, in a branch the lower 32 bits of the child's number and
        the upper 16; there a node has no value.
        """
        lower, upper = self._bounds(number, data)
        size, used, nodes, unpack = self.page_size, 0, [], _NODE.unpack_from
        for offset in memoryview(data)[_HEAD:lower].cast("H"):
            if offset & 1 or not upper <= offset <= size - _NODE.size:
                raise PageError(number, "the offset of a node is damaged")
            low, high, flags, key_size = unpack(data, offset)
            value_at = offset + 8 + key_size
            first = low | high << 16
            end = value_at if branch else value_at + (8 if flags else first)
            if end > size or (flags > _BIG and not branch):
                raise PageError(number, "a node reaches beyond it, or has flags that are not LMDB's")
            # LMDB rounds nodes up to even sizes, and they fill the end of the page without gaps.
            used += end - offset + 1 & -2
            nodes.append((data[offset + 8 : value_at], data[value_at:end], first, flags))
        if used != size - upper:
            raise PageError(number, "its nodes overlap, or leave room between them")
        return nodes

    def _bounds(self, number: int, data: bytes) -> tuple[int, int]:
        """The bounds of a page's free space, checked."""
        _, _, _, lower, upper = _HEADER.unpack_from(data)
        if lower & 1 or not _HEAD < lower <= upper <= self.page_size:
            raise PageError(number, "the offsets of its nodes are damaged")
        return lower, upper

    def _large(self, data: bytes, size: int) -> Overflow:
        (page,) = _NUMBER.unpack(data)
        value = Overflow(page, size)
        if page + self._spans(value) > self.pages:
            raise PageError(page, f"the file ends before it, after {self.pages} whole pages")
        return value

    def _spans(self, value: Overflow) -> int:
        return (_HEAD - 1 + value.size) // self.page_size + 1

    def _overflow(self, meta: MetaPage, value: Overflow) -> int:
        """Check a value's own pages and mark them as used; returns their number."""
        head = self._read(value.page, _HEAD)
        own, _, flags, lower, upper = _HEADER.unpack(head)
        spans = self._spans(value)
        if (own, flags, lower | upper << 16) != (value.page, _OVERFLOW, spans):
            raise PageError(value.page, "it is not the beginning of a value's own pages")
        for index in range(spans):
            self._use(value.page + index, meta.last)
        return spans

    def _check_free(self, meta: MetaPage) -> None:
        """Check the list of free pages: its order, its transactions, and that none of the pages is in use."""
        lists = list(self._walked(meta, meta.free, meta.page))
        for key, value in (record for leaf in lists for record in leaf):
            if len(key) != 8 or not 0 < int.from_bytes(key, "little") <= meta.transaction:
                raise PageError(meta.free.root, "a list of free pages is of a transaction that never was")
            for page in self._listed(meta, self.value(value)):
                self._use(page, meta.last)

    def _listed(self, meta: MetaPage, data: bytes) -> list[int]:
        numbers = memoryview(data[: len(data) // 8 * 8]).cast("Q").tolist()
        pages = numbers[1:]
        whole = len(data) % 8 == 0 and numbers and numbers[0] == len(pages)
        # LMDB keeps the numbers of a list in descending order.
        if not whole or any(one <= two for one, two in pairwise(pages)):
            raise PageError(meta.free.root, "a list of free pages is damaged")
        if pages and not (pages[-1] >= 2 and pages[0] <= meta.last):
            raise PageError(meta.free.root, "a list of free pages has one that cannot be")
        return pages
